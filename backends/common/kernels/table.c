/* The table of the kernels that are compiled for one instruction set. See backends/common/kernels.h. */
#include "backends/common/kernels.h"
#include "backends/common/kernels/families.h"

#define FAMILY(name) clv__fast_##name,
static const clv__fast_kernel *const families[] = {CLV__FAST_FAMILIES(FAMILY) NULL};
#undef FAMILY

extern const clv__kernel_versions clv__kernel_table;
const clv__kernel_versions clv__kernel_table = {
    .families = families,
    .recurrent_prepared = &clv__kernel_recurrent_prepared,
    .attention_run = clv__attention_run,
    .attention_scratch_bytes = clv__attention_scratch_bytes,
    .channels_plan = clv__channels_plan,
    .channels_join = clv__channels_join,
    .elementwise_find = clv__elementwise_find,
    .recurrent_tile_of = clv__recurrent_tile_of,
    .row_to_f32 = clv__row_to_f32,
    .row_from_f32 = clv__row_from_f32,
};
