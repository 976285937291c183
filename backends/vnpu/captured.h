/* Captures: executions that were recorded once as command lists, and run as a single launch from then on. */
#ifndef CLEAVE_BACKENDS_VNPU_CAPTURED_H
#define CLEAVE_BACKENDS_VNPU_CAPTURED_H

#include "instance.h"

struct clv_captured {
  clv__vnpu_live live;
  clv__vnpu_launch launch;
  clv_device *device;
  clv__arena arena; /* holds the lists' arrays */
  clv__vnpu_list *lists;
  size_t count, capacity;
  uint64_t size_bytes;
  double seconds; /* duration according to the speed model: the overhead of one launch, plus the instructions of all executions */
  clv_error failure; /* error of the first execution that could not be recorded */
};

clv_status clv__vnpu_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error);
/* If `captured` is NULL, the recording is discarded. */
clv_status clv__vnpu_capture_end(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error);
/* Records one execution on a stream that is being captured. Returns CLV_NOT_SUPPORTED for a dynamic program. */
clv_status clv__vnpu_capture_record(clv_captured *captured, clv_instance *instance, const clv_execute_args *args,
                                    clv_error *error);
clv_status clv__vnpu_captured_launch(clv_captured *captured, clv_stream *stream, clv_error *error);
clv_status clv__vnpu_captured_bind(clv_captured *captured, uint32_t index, const clv_execute_args *args, clv_error *error);
void clv__vnpu_captured_destroy(clv_captured *captured); /* waits until its launches are complete; accepts NULL */
uint64_t clv__vnpu_captured_bytes(const clv_captured *captured);

#endif
