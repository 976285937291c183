/* Buckets: a partition of a device that takes fixed shapes is compiled for sizes a little above those that it meets, so that one
 * executable serves many. What comes in is filled up with zeros at the end of each open axis, and what goes out is cut: results
 * are those of the exact sizes, since planning puts only nodes there that are independent along their open axes
 * (analysis/open.h).
 *
 * The rule. A size n is rounded up to a multiple of the largest step of `multiple` (64 unless told otherwise) and the powers of
 * two below it at which all bucketed partitions together, the other open sizes being `multiple`, take at most a quarter longer
 * than at n itself; step 1 always does. Times are those that devices state of themselves, else by nominal peaks: a straight line
 * over n. So where launches are what takes time few buckets serve, and where arithmetic is, rows that nobody asked for stay few.
 * A size that is a multiple of another one is padded to that multiple of what the other is padded to; 0 as if it were 1. It
 * depends on the plan and `multiple` alone: a value has the same bucket wherever it goes. */
#ifndef CLEAVE_COMPILE_BUCKET_H
#define CLEAVE_COMPILE_BUCKET_H

#include "plan/plan.h"

typedef struct clv__bucket_rule clv__bucket_rule;

/* NULL in `rule`, and CLV_OK, where no partition is bucketed: the other functions take it then as "nothing is padded". `multiple`
 * is that of the session's options: 0: 64; 1: sizes stay as they are, and each is compiled for. The plan outlives the rule. */
clv_status clv__bucket_rule_create(const clv_plan *plan, uint32_t multiple, clv__bucket_rule **rule, clv_error *error);
void clv__bucket_rule_destroy(clv__bucket_rule *rule); /* accepts NULL */

/* What `size` of a symbol of the plan's shapes is padded to. Any thread. */
int64_t clv__bucket_size(const clv__bucket_rule *rule, uint32_t symbol, int64_t size);

/* The type that value `value`, which is `exact` in this run, has on a device whose partitions are bucketed; equal to `exact`
 * where none of its sizes is open, or exact's sizes are not all known. Any thread. */
clv_tensor clv__bucket_type(const clv__bucket_rule *rule, clv_value_id value, const clv_tensor *exact);

/* A partition as it is to be compiled and bound for one run. */
typedef struct clv__bucket {
  const clv_graph_view *view; /* for clv__program_compile(); inputs and outputs are those of the partition's view */
  const clv_tensor *inputs;   /* types at the bucket, for instance_create() and bindings */
  const clv_tensor *outputs;
  const bool *input_is_padded;  /* which of them differ from the exact ones: clv__bucket_pad() */
  const bool *output_is_padded; /* clv__bucket_cut() */
  bool is_exact;                /* none does */
} clv__bucket;

/* Describes a bucketed partition. `exact`: by value id, known for the partition's inputs. All of it is in `arena`.
 * CLV_INTERNAL_ERROR where the inputs contradict each other. */
clv_status clv__bucket_describe(const clv__bucket_rule *rule, uint32_t partition, const clv_tensor *exact, clv__arena *arena,
                                clv__bucket *bucket, clv_error *error);

/* Whether the bytes of `exact` are the first ones of `padded`: only the first axis, or one behind axes of 1, is longer. Then a
 * copy of the exact bytes is all that cutting takes, and padding takes zeros behind them. */
bool clv__bucket_is_prefix(const clv_tensor *exact, const clv_tensor *padded);
/* Host memory to host memory: `exact` into the corner of `padded` and zeros elsewhere; the corner of `padded` into `exact`. Types
 * are those of above, any axes longer; the two do not overlap. No strings. */
void clv__bucket_pad(const clv_tensor *exact, const clv_tensor *padded);
void clv__bucket_cut(const clv_tensor *padded, const clv_tensor *exact);

#endif
