/* Fitting a plan into the memory of its devices. Shared by memory.c, which counts and decides, and memory_ways.c. */
#ifndef CLEAVE_PLAN_MEMORY_H
#define CLEAVE_PLAN_MEMORY_H

#include "plan/make.h"

/* A remedy for a partition that does not fit. There are two: to move to another device, or to stay and stream the weights in
 * every run, in groups of nodes whose weights fit. */
typedef struct clv__way {
  uint32_t device; /* the partition's device; CLV__NONE: this remedy is not possible */
  uint32_t *devices, *groups;
  uint16_t *streamed;
  uint64_t time_ns; /* predicted time of the whole plan with this remedy */
} clv__way;

/* The state of the fitting. `placing` holds the decisions so far for the problem's nodes and weights. */
typedef struct clv__fitting {
  clv_plan *plan;
  clv__placing *placing;
  uint32_t device;
  uint64_t used, passing, limit; /* bytes; `passing`: the largest sum of streamed weights of one partition */
  uint64_t excess;               /* bytes of the current partition that do not fit; 0: not known */
  uint32_t *resident;
  uint64_t compared; /* number of nodes that were cut again to compare remedies */
  bool moves_were_better;
  clv_tensor *open_types;  /* a copy of the plan's types, in which a partition's weights have no data while its device is asked */
  clv__way *move, *stream; /* every partition uses the same arrays: the chosen remedy swaps its arrays with those of `placing` */
} clv__fitting;

/* The bytes of the weights that are streamed to the partition. */
uint64_t clv__streamed_bytes(const clv_plan *plan, uint32_t partition);
/* Returns whether a node of the partition is pinned; if so, `name` is its name. */
bool clv__partition_is_pinned(const clv_plan *plan, const clv__partition *partition, const char **name);

/* Computes what to change so that the partition moves, or is streamed. `w->device` is CLV__NONE if that is not possible. */
clv_status clv__fitting_move(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error);
clv_status clv__fitting_stream(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error);
/* Computes the time of the whole plan with the remedy, w->time_ns. */
clv_status clv__fitting_price(clv__fitting *f, clv__way *w, clv_error *error);

#endif
