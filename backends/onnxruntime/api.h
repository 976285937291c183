/* The part of ONNX Runtime's C API that this backend uses. It is declared here because the Python wheel contains the library
 * without its header.
 *
 * The library exports only OrtGetApiBase(), which gives access to a table of functions for the requested API version. New
 * versions add functions only at the end of the table. The table below names the functions that are used, with gaps for those
 * that are not. The assertions at the end check every position against the documented order. If the library grants version
 * CLV__ORT_API_VERSION, all of these functions exist. */
#ifndef CLEAVE_BACKENDS_ONNXRUNTIME_API_H
#define CLEAVE_BACKENDS_ONNXRUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#define CLV__ORT_API_VERSION 17u /* that of ONNX Runtime 1.17, the first release with all functions of the table */

typedef struct clv__ort_status clv__ort_status; /* NULL: success */
typedef struct clv__ort_env clv__ort_env;
typedef struct clv__ort_threading clv__ort_threading;
typedef struct clv__ort_options clv__ort_options; /* of a session */
typedef struct clv__ort_session clv__ort_session;
typedef struct clv__ort_run_options clv__ort_run_options;
typedef struct clv__ort_memory clv__ort_memory;
typedef struct clv__ort_value clv__ort_value;
typedef struct clv__ort_tensor_info clv__ort_tensor_info;
typedef struct clv__ort_cuda clv__ort_cuda;

enum { CLV__ORT_LOG_VERBOSE, CLV__ORT_LOG_INFO, CLV__ORT_LOG_WARNING, CLV__ORT_LOG_ERROR, CLV__ORT_LOG_FATAL };
enum { CLV__ORT_CODE_NOT_IMPLEMENTED = 9 };
enum { CLV__ORT_OPTIMIZE_NONE = 0, CLV__ORT_OPTIMIZE_BASIC = 1, CLV__ORT_OPTIMIZE_EXTENDED = 2, CLV__ORT_OPTIMIZE_ALL = 99 };
enum { CLV__ORT_ARENA_ALLOCATOR = 1, CLV__ORT_MEMORY_DEFAULT = 0 };

typedef void (*clv__ort_log_fn)(void *cookie, int severity, const char *category, const char *log_id, const char *location,
                                const char *message);

#define CALL(name) clv__ort_status *(*name)
#define GAP(first, last) void *gap_##first[(last) - (first) + 1];

typedef struct clv__ort_api {
  GAP(0, 0)
  int (*GetErrorCode)(const clv__ort_status *status);
  const char *(*GetErrorMessage)(const clv__ort_status *status);
  GAP(3, 7)
  CALL(CreateSessionFromArray)
  (const clv__ort_env *env, const void *data, size_t size_bytes, const clv__ort_options *options, clv__ort_session **session);
  CALL(Run)
  (clv__ort_session *session, const clv__ort_run_options *options, const char *const *input_names,
   const clv__ort_value *const *inputs, size_t input_count, const char *const *output_names, size_t output_count,
   clv__ort_value **outputs);
  CALL(CreateSessionOptions)(clv__ort_options **options);
  GAP(11, 21)
  CALL(SetSessionLogSeverityLevel)(clv__ort_options *options, int severity);
  CALL(SetSessionGraphOptimizationLevel)(clv__ort_options *options, int level);
  CALL(SetIntraOpNumThreads)(clv__ort_options *options, int count);
  GAP(25, 38)
  CALL(CreateRunOptions)(clv__ort_run_options **options);
  GAP(40, 45)
  CALL(RunOptionsSetTerminate)(clv__ort_run_options *options);
  CALL(RunOptionsUnsetTerminate)(clv__ort_run_options *options);
  GAP(48, 48)
  CALL(CreateTensorWithDataAsOrtValue)
  (const clv__ort_memory *memory, void *data, size_t size_bytes, const int64_t *dims, size_t rank, int dtype,
   clv__ort_value **value);
  GAP(50, 50)
  CALL(GetTensorMutableData)(clv__ort_value *value, void **data);
  GAP(52, 59)
  CALL(GetTensorElementType)(const clv__ort_tensor_info *info, int *dtype);
  CALL(GetDimensionsCount)(const clv__ort_tensor_info *info, size_t *rank);
  CALL(GetDimensions)(const clv__ort_tensor_info *info, int64_t *dims, size_t rank);
  GAP(63, 64)
  CALL(GetTensorTypeAndShape)(const clv__ort_value *value, clv__ort_tensor_info **info);
  GAP(66, 68)
  CALL(CreateCpuMemoryInfo)(int allocator_type, int memory_type, clv__ort_memory **memory);
  GAP(70, 91)
  void (*ReleaseEnv)(clv__ort_env *env);
  void (*ReleaseStatus)(clv__ort_status *status);
  void (*ReleaseMemoryInfo)(clv__ort_memory *memory);
  void (*ReleaseSession)(clv__ort_session *session);
  void (*ReleaseValue)(clv__ort_value *value);
  void (*ReleaseRunOptions)(clv__ort_run_options *options);
  GAP(98, 98)
  void (*ReleaseTensorTypeAndShapeInfo)(clv__ort_tensor_info *info);
  void (*ReleaseSessionOptions)(clv__ort_options *options);
  GAP(101, 119)
  CALL(DisablePerSessionThreads)(clv__ort_options *options);
  CALL(CreateThreadingOptions)(clv__ort_threading **threading);
  void (*ReleaseThreadingOptions)(clv__ort_threading *threading);
  GAP(123, 124)
  CALL(GetAvailableProviders)(char ***names, int *count);
  CALL(ReleaseAvailableProviders)(char **names, int count);
  GAP(127, 129)
  CALL(AddSessionConfigEntry)(clv__ort_options *options, const char *key, const char *value);
  GAP(131, 146)
  CALL(SetGlobalIntraOpNumThreads)(clv__ort_threading *threading, int count);
  GAP(148, 148)
  CALL(SetGlobalSpinControl)(clv__ort_threading *threading, int allow);
  GAP(150, 150)
  CALL(CreateEnvWithCustomLoggerAndGlobalThreadPools)
  (clv__ort_log_fn log, void *cookie, int severity, const char *log_id, const clv__ort_threading *threading, clv__ort_env **env);
  GAP(152, 203)
  CALL(SessionOptionsAppendExecutionProvider_CUDA_V2)(clv__ort_options *options, const clv__ort_cuda *cuda);
  CALL(CreateCUDAProviderOptions)(clv__ort_cuda **cuda);
  CALL(UpdateCUDAProviderOptions)(clv__ort_cuda *cuda, const char *const *keys, const char *const *values, size_t count);
  GAP(207, 207)
  void (*ReleaseCUDAProviderOptions)(clv__ort_cuda *cuda);
  GAP(209, 215)
  CALL(SessionOptionsAppendExecutionProvider)
  (clv__ort_options *options, const char *name, const char *const *keys, const char *const *values, size_t count);
  GAP(217, 265)
  CALL(SetUserLoggingFunction)(clv__ort_options *options, clv__ort_log_fn log, void *cookie);
  GAP(267, 272)
  CALL(SetDeterministicCompute)(clv__ort_options *options, _Bool deterministic);
} clv__ort_api;

#undef GAP
#undef CALL

#define CLV__ORT_PLACE(function, place) \
  _Static_assert(offsetof(clv__ort_api, function) == (place) * sizeof(void *), #function " must be at index " #place)
CLV__ORT_PLACE(GetErrorCode, 1);
CLV__ORT_PLACE(CreateSessionFromArray, 8);
CLV__ORT_PLACE(CreateSessionOptions, 10);
CLV__ORT_PLACE(SetSessionLogSeverityLevel, 22);
CLV__ORT_PLACE(SetIntraOpNumThreads, 24);
CLV__ORT_PLACE(CreateRunOptions, 39);
CLV__ORT_PLACE(RunOptionsSetTerminate, 46);
CLV__ORT_PLACE(CreateTensorWithDataAsOrtValue, 49);
CLV__ORT_PLACE(GetTensorMutableData, 51);
CLV__ORT_PLACE(GetTensorElementType, 60);
CLV__ORT_PLACE(GetTensorTypeAndShape, 65);
CLV__ORT_PLACE(CreateCpuMemoryInfo, 69);
CLV__ORT_PLACE(ReleaseEnv, 92);
CLV__ORT_PLACE(ReleaseRunOptions, 97);
CLV__ORT_PLACE(ReleaseTensorTypeAndShapeInfo, 99);
CLV__ORT_PLACE(DisablePerSessionThreads, 120);
CLV__ORT_PLACE(GetAvailableProviders, 125);
CLV__ORT_PLACE(AddSessionConfigEntry, 130);
CLV__ORT_PLACE(SetGlobalIntraOpNumThreads, 147);
CLV__ORT_PLACE(SetGlobalSpinControl, 149);
CLV__ORT_PLACE(CreateEnvWithCustomLoggerAndGlobalThreadPools, 151);
CLV__ORT_PLACE(SessionOptionsAppendExecutionProvider_CUDA_V2, 204);
CLV__ORT_PLACE(ReleaseCUDAProviderOptions, 208);
CLV__ORT_PLACE(SessionOptionsAppendExecutionProvider, 216);
CLV__ORT_PLACE(SetUserLoggingFunction, 266);
CLV__ORT_PLACE(SetDeterministicCompute, 273);
#undef CLV__ORT_PLACE

typedef struct clv__ort_base {
  const clv__ort_api *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} clv__ort_base;

#endif
