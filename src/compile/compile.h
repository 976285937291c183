/* Partitions to executables: compiled once a plan, weights uploaded once a device. */
#ifndef CLEAVE_COMPILE_COMPILE_H
#define CLEAVE_COMPILE_COMPILE_H

#include "split/plan.h"

typedef struct clv__compiled {
  clv_executable *executable;
  clv_executable_info info;
  clv_weight **weights; /* info.weight_count of them, owned by the program */
} clv__compiled;

typedef struct clv__device_weights {
  clv__map by_name; /* index into items */
  clv_weight **items;
  size_t count, capacity;
} clv__device_weights;

typedef struct clv__program {
  const clv_plan *plan;
  clv__arena arena;
  clv_compile_options options;
  clv__compiled *partitions;
  clv__device_weights weights[CLV__MAX_DEVICES];
  uint64_t uploaded_bytes;
} clv__program;

/* Compiles every partition of the plan and uploads what their executables ask for. `program` is the caller's storage. */
clv_status clv__program_init(const clv_plan *plan, const clv_compile_options *options, clv__program *program, clv_error *error);
/* One partition again, as `view` sees it (other shapes); `compiled` is the caller's, its weights stay the program's and are
 * listed in `arena`. */
clv_status clv__program_compile(clv__program *program, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                clv__compiled *compiled, clv_error *error);
void clv__program_finish(clv__program *program);

#endif
