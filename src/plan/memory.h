/* Fitting a plan into the memory of its devices: memory.c decides, memory_ways.c finds the two remedies for a device that is
 * overfull. */
#ifndef CLEAVE_PLAN_MEMORY_H
#define CLEAVE_PLAN_MEMORY_H

#include "plan/make.h"

/* The result of trying one remedy: whether the device fits with it, the placing that it makes, and the predicted time of the
 * whole plan with that placing (only if the device fits). */
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
/* Cuts the placing, gives this cut to the plan, and counts the memory that the plan then needs. Also lowers f->least_bytes if
 * the device needs less than in all earlier tries. */
clv_status clv__fitting_adopt(clv__fitting *f, clv__placing *placing, clv_error *error);

/* Moves partitions of the device to other devices, one after the other, until those that stay fit. If they still do not fit but
 * no more of them can move, way->is_possible is false, and way->placing has the moves made so far. */
clv_status clv__fitting_move(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error);
/* Streams weights to the device. Tries several numbers of weights that stay resident (the first ones in the order of
 * place/stream.h), each with several sizes of the buffer for the streamed ones, and takes the fastest combination that fits. If
 * none fits, way->is_possible is false, and way->placing has the combination that needs the least memory. Which combinations
 * are tried does not depend on the device's memory, so more memory never means a slower plan. */
clv_status clv__fitting_stream(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error);

#endif
