/* The kernels that backends run in host memory: an operator's fast kernel, or the reference loops if it has none. Also
 * functions that a backend calls directly, without a node. Fast kernels and these functions are compiled once per instruction
 * set (base/isa.h). */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_H

#include "backends/common/kernels/attention/attention.h"
#include "backends/common/kernels/channels.h"
#include "backends/common/kernels/elementwise.h"
#include "backends/common/kernels/families.h"
#include "backends/common/kernels/recurrent/recurrent.h"
#include "base/isa.h"
#include "operators/common/rows.h"
#include "operators/run.h"

/* The functions and tables of backends/common/kernels, as compiled for one instruction set. Each function is described where it
 * is declared. */
typedef struct clv__kernel_versions {
  const clv__fast_kernel *const *families; /* ends with NULL */
  const clv__kernel *recurrent_prepared;
  __typeof__(&clv__attention_run) attention_run;
  __typeof__(&clv__attention_scratch_bytes) attention_scratch_bytes;
  __typeof__(&clv__channels_plan) channels_plan;
  __typeof__(&clv__channels_join) channels_join;
  __typeof__(&clv__elementwise_find) elementwise_find;
  __typeof__(&clv__recurrent_tile_of) recurrent_tile_of;
  __typeof__(&clv__row_to_f32) row_to_f32;
  __typeof__(&clv__row_from_f32) row_from_f32;
} clv__kernel_versions;

/* The version for the instruction set that this process uses. Any thread may call it. */
const clv__kernel_versions *clv__kernels(void);

/* The fast kernel of an operator or, if it has none, its reference; NULL if it has neither. A fast kernel accepts every call that
 * the reference accepts, and its results agree within the dtype's tolerance. Any thread may call it. */
const clv__kernel *clv__fast_kernel_find(const char *domain, const char *op);

#endif
