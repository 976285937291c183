/* Fitting a plan into the memory of its devices, shared by memory.c, which counts and decides, and memory_ways.c. */
#ifndef CLEAVE_PLAN_MEMORY_H
#define CLEAVE_PLAN_MEMORY_H

#include "plan/make.h"

/* Two ways out: another device, or the same with its weights streamed in every run, in pieces whose weights fit. */
typedef struct clv__way {
  uint32_t device; /* CLV__NONE: there is no such way */
  uint32_t *devices, *groups;
  uint16_t *streamed;
  uint64_t time_ns; /* of the whole plan */
} clv__way;

/* What is being fitted: `placing` holds what was decided for the problem's nodes and weights. */
typedef struct clv__fitting {
  clv_plan *plan;
  clv__placing *placing;
  uint32_t device;
  uint64_t used, passing, limit; /* bytes; `passing`: the most that one partition's streamed weights take */
  uint64_t excess;               /* bytes of what is looked at now that do not fit; 0: not known */
  uint32_t *resident;
  uint64_t compared; /* nodes */
  bool moves_were_better;
  clv_tensor *open_types;  /* the plan's; a partition's weights lose their data while its device is asked */
  clv__way *move, *stream; /* their arrays serve every partition: those of the one chosen change hands with those of `placing` */
} clv__fitting;

/* Of the weights that are streamed to the partition. */
uint64_t clv__streamed_bytes(const clv_plan *plan, uint32_t partition);
/* Whether a node of the partition is: then `name` is its. */
bool clv__partition_is_pinned(const clv_plan *plan, const clv__partition *partition, const char **name);

/* Each fills its way for the partition; its device is CLV__NONE where there is none. */
clv_status clv__fitting_move(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error);
clv_status clv__fitting_stream(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error);
/* What the whole plan would take that way. */
clv_status clv__fitting_price(clv__fitting *f, clv__way *w, clv_error *error);

#endif
