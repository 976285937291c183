/* Captured executions. They are launched again as a command buffer (cl_khr_command_buffer), or as a list of enqueues whose
 * arguments are already set, whichever is faster with this driver. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_CAPTURE_H
#define CLEAVE_BACKENDS_OPENCL_RUN_CAPTURE_H

#include "instance.h"

clv_status clv__opencl_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error);
/* Adds an execution to a stream that is recording. */
clv_status clv__opencl_capture_add(clv_device *device, clv_captured *captured, clv_instance *instance,
                                   const clv_execute_args *args, clv_error *error);
clv_status clv__opencl_capture_end(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error);
clv_status clv__opencl_captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error);
clv_status clv__opencl_captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                     clv_error *error);
void clv__opencl_captured_destroy(clv_device *device, clv_captured *captured);
uint64_t clv__opencl_captured_bytes(clv_device *device, const clv_captured *captured);

/* Returns whether captures on this device are command buffers or lists (capture_choice.c), as option `capture` says. If it says
 * auto, a measurement decides, which is made once. */
clv__opencl_capture clv__opencl_capture_choice(clv_device *device);

#endif
