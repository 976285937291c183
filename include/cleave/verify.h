/* Verifying a session: compares what its devices compute with Cleave's reference evaluator. Unstable: may change until 1.0.
 *
 *   clv_session_verify(session, inputs, input_count, NULL, &verification, &error)
 *   clv_verification_get_result(verification, &result)
 *   clv_verification_text(verification, CLV_FORM_TEXT, false, &text, &error)
 *   clv_verification_destroy(verification)
 *
 * Functions that fill a struct copy as many bytes as its struct_size says, which the caller sets first. */
#ifndef CLEAVE_VERIFY_H
#define CLEAVE_VERIFY_H

#include "plan_contents.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_verification clv_verification;

typedef struct clv_verify_options {
  uint32_t struct_size;
  bool (*go_on)(void *user_data); /* called before each partition; return false to stop: clv_session_verify() then returns
                                     CLV_CANCELLED. May be NULL */
  void *user_data;
} clv_verify_options;
#define CLV_VERIFY_OPTIONS_INIT \
  { sizeof(clv_verify_options), NULL, NULL }

/* Runs every partition on inputs that the reference evaluator computed, and compares its outputs with the reference. Therefore
 * each partition is judged alone, and the first one that differs is at fault. The verification ends with it.
 *
 * `inputs` are as for clv_session_run(). `options` may be NULL. Outputs in the session's own memory become invalid. The call
 * needs memory for all values between partitions, and takes much longer than a run. It must not overlap with other calls for the
 * same session. A device that fails is removed, as in a run.
 *
 * An output may differ by a share of its largest magnitude, which depends on its dtype, plus steps of its quantisation grid where
 * the partition rounded it. clv_partition_result has both.
 *
 * Wrong results are no error: see clv_verify_result.equal. Destroy the verification before the session's context. It does not
 * need the session. Errors: CLV_INVALID_ARGUMENT, with the input, its type and the expected type; CLV_CANCELLED by go_on();
 * CLV_INTERNAL_ERROR if a partition computes another type than the reference, or overwrites its inputs; CLV_DEVICE_ERROR;
 * CLV_OUT_OF_MEMORY; CLV_IO_ERROR if the model's file changed after it was loaded. */
CLV_API CLV_MUST_USE clv_status clv_session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                   const clv_verify_options *options, clv_verification **verification,
                                                   clv_error *error);
CLV_API void clv_verification_destroy(clv_verification *verification); /* accepts NULL */

/* The overall result. Its strings are valid as long as the verification. */
typedef struct clv_verify_result {
  uint32_t struct_size;
  bool equal;              /* all compared partitions agree with the reference within their tolerance */
  uint32_t compared_count; /* partitions that were compared */
  uint32_t unknown_count;  /* partitions that were not compared, because the reference does not have one of their operators */
  /* The first partition that differs, and the worst element of its output. If `equal`, the partition is CLV_NO_INDEX, the texts
   * are NULL, and the numbers are 0. */
  uint32_t partition; /* of the plan that the session runs, which differs from its first plan if a device was removed */
  const char *device;
  const char *value;    /* the output's name */
  const char *position; /* of the element: "[0,3,2]"; its flat index, as "[5]", if the plan leaves the shape open */
  uint64_t element;     /* flat index */
  double expected, actual;
  double tolerance; /* the allowed difference, absolute */
  double largest;   /* the largest magnitude among the expected elements */
} clv_verify_result;
/* Any thread may call these functions. */
CLV_API void clv_verification_get_result(const clv_verification *verification, clv_verify_result *result);

/* The result of one partition: its output that came closest to its tolerance, or went furthest beyond it. */
typedef struct clv_partition_result {
  uint32_t struct_size;
  uint32_t partition;
  const char *device;
  const char *value; /* the output's name; NULL: the partition was not compared, and all that follows is 0 */
  double difference; /* of the worst element */
  double tolerance;  /* the allowed difference: share * largest + steps * step */
  double largest;    /* the largest magnitude among the expected elements */
  double share;
  uint32_t steps; /* the allowed number of steps of a quantisation grid */
  double step;    /* the size of one */
  uint64_t element_count;
  uint64_t beyond_count; /* elements that differ by more than the tolerance */
} clv_partition_result;
/* Returns false, and fills the struct with zeros, for an index beyond the partitions that ran. Partitions that the host runs as
 * views have no result. */
CLV_API bool clv_verification_partition(const clv_verification *verification, uint32_t index, clv_partition_result *result);

/* Makes a document of all results, as `cleave run --verify` prints it: a table of the partitions, and the verdict. With `brief`,
 * text has only the verdict; JSON is the same. Free it with clv_text_free().
 * Errors: CLV_INVALID_ARGUMENT for an unknown form; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_verification_text(const clv_verification *verification, clv_form form, bool brief,
                                                      char **text, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
