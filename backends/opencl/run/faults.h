/* What kernels find wrong with the numbers that they are given, vertices of a graph say, told to whoever waits for the execution.
 *
 * An instance has a clv__opencl_fault for each launch that looks, on the device: the first to find something writes it there. It
 * is read back behind each execution, and stays until the stream is synchronised. A stream watches over those of the instances
 * that ran on it and of the streams that it waited for; an event over its stream's. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_FAULTS_H
#define CLEAVE_BACKENDS_OPENCL_RUN_FAULTS_H

#include "backends/opencl/plan.h"

typedef struct clv__opencl_faults clv__opencl_faults; /* of an instance; counted, as it may go before its streams */
typedef struct clv__opencl_watch clv__opencl_watch;   /* counted: of a stream and the events recorded on it */

/* For a plan with places where something can be found; `memory` is for as many faults. */
clv_status clv__opencl_faults_create(const clv__opencl_plan *plan, cl_mem memory, clv__opencl_faults **faults, clv_error *error);
/* Of an instance that is destroyed; accepts NULL. */
void clv__opencl_faults_leave(clv_device *device, clv__opencl_faults *faults);
/* Before an execution: `*watch` (made where it is NULL) watches over it from now on. NULL faults: nothing to do. */
clv_status clv__opencl_faults_watch(clv_device *device, clv__opencl_faults *faults, clv__opencl_watch **watch, clv_error *error);
/* Behind it. */
clv_status clv__opencl_faults_read(clv_device *device, clv__opencl_faults *faults, cl_command_queue queue, clv_error *error);

clv__opencl_watch *clv__opencl_watch_share(clv_device *device, clv__opencl_watch *watch); /* the same, or NULL */
void clv__opencl_watch_release(clv_device *device, clv__opencl_watch *watch);             /* accepts NULL */
/* `*watch` (made where it is NULL) watches over all that `other`, which may be NULL, does. */
clv_status clv__opencl_watch_join(clv_device *device, clv__opencl_watch **watch, clv__opencl_watch *other, clv_error *error);
/* What was found, once the executions are over; with a queue it is forgotten. */
clv_status clv__opencl_watch_check(clv_device *device, clv__opencl_watch *watch, cl_command_queue queue, clv_error *error);

#endif
