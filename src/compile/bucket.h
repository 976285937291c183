/* Buckets: a partition on a device that needs fixed shapes is compiled for sizes slightly above those it receives, so that one
 * executable serves many sizes. Inputs are padded with zeros at the end of each open axis, and outputs are cut. The results equal
 * those of the exact sizes, because planning gives such a device only nodes that are independent along their open axes
 * (analysis/open.h).
 *
 * The rule. A size n is rounded up to a multiple of a step. The candidate steps are `multiple` (64 by default) and the powers of
 * two below it. The rule takes the largest step at which all bucketed partitions together, with the other open sizes at
 * `multiple`, take at most a quarter longer than at n itself; step 1 always qualifies. Times come from the devices' own
 * estimates, or else from nominal peak rates, and are modelled as a straight line over n. So there are few buckets if launches
 * dominate, and few padded rows if arithmetic dominates. If one open size is always a multiple of another, it is padded to the
 * same multiple of the other's padded size. Size 0 is padded like 1. The rule depends only on the plan and `multiple`, so all
 * partitions pad a value to the same size. */
#ifndef CLEAVE_COMPILE_BUCKET_H
#define CLEAVE_COMPILE_BUCKET_H

#include "plan/plan.h"

typedef struct clv__bucket_rule clv__bucket_rule;

/* Creates the rule. If no partition is bucketed, `rule` is NULL and the status CLV_OK; the other functions then pad nothing.
 * `multiple` comes from the session's options: 0 means 64; 1 means that sizes stay as they are and each is compiled separately.
 * The plan must outlive the rule. */
clv_status clv__bucket_rule_create(const clv_plan *plan, uint32_t multiple, clv__bucket_rule **rule, clv_error *error);
void clv__bucket_rule_destroy(clv__bucket_rule *rule); /* accepts NULL */

/* Returns the padded size of a symbol of the plan's shapes. Any thread may call it. */
int64_t clv__bucket_size(const clv__bucket_rule *rule, uint32_t symbol, int64_t size);

/* Returns the type of value `value`, whose type in this run is `exact`, on a device whose partitions are bucketed. It equals
 * `exact` if none of its sizes is open, or if not all sizes of `exact` are known. Any thread may call it. */
clv_tensor clv__bucket_type(const clv__bucket_rule *rule, clv_value_id value, const clv_tensor *exact);

/* A partition as compiled and bound for one run. */
typedef struct clv__bucket {
  const clv_graph_view *view; /* for clv__executables_compile(); inputs and outputs are those of the partition's view */
  const clv_tensor *inputs;   /* types at the bucket's sizes, for instance_create() and bindings */
  const clv_tensor *outputs;
  const bool *input_is_padded;  /* per input: it must be padded with clv__bucket_pad() */
  const bool *output_is_padded; /* per output: it must be cut with clv__bucket_cut() */
  bool is_exact;                /* nothing is padded or cut */
} clv__bucket;

/* Describes a bucketed partition. `exact` is indexed by value id and must have the types of the partition's inputs. Allocates
 * everything in `arena`. CLV_INTERNAL_ERROR if the inputs contradict each other. */
clv_status clv__bucket_describe(const clv__bucket_rule *rule, uint32_t partition, const clv_tensor *exact, clv__arena *arena,
                                clv__bucket *bucket, clv_error *error);

/* Returns whether the bytes of `exact` are the first bytes of `padded`: only one axis is longer, and all axes before it have size
 * 1. Then cutting is a plain copy of the exact bytes, and padding is the same copy with zeros after it. */
bool clv__bucket_is_prefix(const clv_tensor *exact, const clv_tensor *padded);
/* Copies in host memory. clv__bucket_pad() copies `exact` into the corner of `padded` and zeroes the rest. clv__bucket_cut()
 * copies the corner of `padded` to `exact`. Any axes may be longer in `padded`. The two must not overlap. Not for strings. */
void clv__bucket_pad(const clv_tensor *exact, const clv_tensor *padded);
void clv__bucket_cut(const clv_tensor *padded, const clv_tensor *exact);

#endif
