/* Loads libOpenCL.so.1 at run time: a table of its entry points, and the names of its error codes. Nothing links against it. */
#ifndef CLEAVE_BACKENDS_OPENCL_ICD_H
#define CLEAVE_BACKENDS_OPENCL_ICD_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which devices of every version support */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "base/error.h"

/* clang-format is off, because it would change the layout of these lines again on each run. */
/* clang-format off */
#define CLV__OPENCL_ENTRY_POINTS(X) \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) \
  X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clFlush) X(clFinish) X(clCreateBuffer) \
  X(clCreateSubBuffer) X(clReleaseMemObject) X(clRetainMemObject) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) \
  X(clEnqueueCopyBuffer) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) \
  X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clWaitForEvents) X(clRetainEvent) \
  X(clReleaseEvent) X(clGetEventInfo) X(clSetEventCallback) X(clCreateUserEvent) X(clSetUserEventStatus) \
  X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram) X(clGetProgramInfo) \
  X(clGetProgramBuildInfo) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) \
  X(clGetKernelWorkGroupInfo) X(clGetExtensionFunctionAddressForPlatform)
/* clang-format on */

typedef struct clv__opencl_icd {
#define FIELD(name) __typeof__(name) *name;
  CLV__OPENCL_ENTRY_POINTS(FIELD)
#undef FIELD
} clv__opencl_icd;

/* Returns the table. It is loaded once per process. The library is never unloaded, because threads of a driver may still run.
 * Returns CLV_NOT_SUPPORTED if there is no loader, or if it lacks an entry point. Any thread may call it. */
clv_status clv__opencl_icd_open(const clv__opencl_icd **icd, clv_error *error);

/* The name of a code, such as "CL_OUT_OF_RESOURCES"; "unknown code" for other values. */
const char *clv__opencl_code_name(cl_int code);

/* Converts a failed call to an error such as "clFlush: CL_… (-36)". Codes that report a lack of memory give CLV_OUT_OF_MEMORY,
 * all others CLV_DEVICE_ERROR. */
clv_status clv__opencl_failed(clv_error *error, const char *call, cl_int code);

#define CLV__OPENCL_TRY(error, call_name, call)                                                        \
  do {                                                                                                 \
    cl_int clv__opencl_code = (call);                                                                  \
    if (clv__opencl_code != CL_SUCCESS) return clv__opencl_failed(error, call_name, clv__opencl_code); \
  } while (0)

#endif
