/* Fitting a plan into the memory of its devices: memory.c decides, memory_ways.c finds the two remedies for a device that is
 * overfull. */
#ifndef CLEAVE_PLAN_MEMORY_H
#define CLEAVE_PLAN_MEMORY_H

#include "plan/make.h"

/* The result of one remedy: whether the device fits with it, its decisions, and the time of the whole plan. */
typedef struct clv__way {
  bool is_possible;
  clv__placing placing;
  uint64_t time_ns;
} clv__way;

/* The state of the fitting of one device, and of those that share its memory. */
typedef struct clv__fitting {
  clv_plan *plan;
  const clv__cutter *cutter;
  uint32_t device;
  uint64_t least_bytes; /* the least that the device needs with any remedy that was tried */
} clv__fitting;

/* Copies the arrays of a placing into the plan's arena. The copy has groups and streamed weights even if there are none. */
clv_status clv__placing_copy(const clv_plan *plan, const clv__placing *placing, clv__placing *copy, clv_error *error);
/* Returns whether `device` uses the same memory as the device that is being fitted. */
static inline bool clv__fitting_shares(const clv__fitting *f, uint32_t device) {
  return f->plan->problem->spaces[device] == f->plan->problem->spaces[f->device];
}
/* Returns whether the memory of the device suffices for it and for all devices that share it. */
bool clv__fitting_fits(const clv__fitting *f);
/* Cuts the placing, makes it the plan's and counts its memory. */
clv_status clv__fitting_adopt(clv__fitting *f, clv__placing *placing, clv_error *error);

/* Moves partitions of the device to other devices, one after the other, until the rest fits. If the rest still does not fit but
 * nothing more can move, way->is_possible is false, and way->placing has the moves made so far. */
clv_status clv__fitting_move(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error);
/* Streams weights to the device: of all prefixes of their order that stay resident, and of several sizes of the buffer, takes the
 * fastest combination that fits. The choices do not depend on the device's memory, so more memory never means a slower plan. */
clv_status clv__fitting_stream(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error);

#endif
