/* Errors that kernels find in their input data, such as invalid vertices of a graph. They are reported to the caller that waits
 * for the execution.
 *
 * An instance has one clv__opencl_fault in device memory for each launch that checks its input. The first work item that finds
 * an error writes the error there. The faults are read back after each execution, and cleared when the stream is synchronised.
 * A stream watches the faults of the instances that ran on it, and those of the streams it waited for. An event watches the
 * faults of its stream. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_FAULTS_H
#define CLEAVE_BACKENDS_OPENCL_RUN_FAULTS_H

#include "backends/opencl/variant.h"

typedef struct clv__opencl_faults clv__opencl_faults; /* reference-counted, because the instance may be destroyed first */
typedef struct clv__opencl_watch clv__opencl_watch;   /* shared by a stream and its recorded events; reference-counted */

/* Creates the faults of an instance whose variant has fault places. `memory` has room for one fault per place. */
clv_status clv__opencl_faults_create(const clv__opencl_variant *variant, cl_mem memory, clv__opencl_faults **faults,
                                     clv_error *error);
/* Call when the instance is destroyed; accepts NULL. */
void clv__opencl_faults_leave(clv_device *device, clv__opencl_faults *faults);
/* Call before an execution: from now on `*watch` (created if NULL) watches these faults. Does nothing if `faults` is NULL. */
clv_status clv__opencl_faults_watch(clv_device *device, clv__opencl_faults *faults, clv__opencl_watch **watch, clv_error *error);
/* Call after the execution: reads the faults back. */
clv_status clv__opencl_faults_read(clv_device *device, clv__opencl_faults *faults, cl_command_queue queue, clv_error *error);

clv__opencl_watch *clv__opencl_watch_share(clv_device *device, clv__opencl_watch *watch); /* adds a user; accepts NULL */
void clv__opencl_watch_release(clv_device *device, clv__opencl_watch *watch);             /* accepts NULL */
/* Makes `*watch` (created if NULL) watch everything that `other` watches. `other` may be NULL. */
clv_status clv__opencl_watch_join(clv_device *device, clv__opencl_watch **watch, clv__opencl_watch *other, clv_error *error);
/* Returns an error for a fault that was read back, CLV_OK if there is none. Call after the executions are complete. If `queue` is
 * not NULL, also clears the faults. */
clv_status clv__opencl_watch_check(clv_device *device, clv__opencl_watch *watch, cl_command_queue queue, clv_error *error);

#endif
