/* What the files of this folder share: the library, a provider as device, a session as model. */
#ifndef CLEAVE_BACKENDS_ONNXRUNTIME_DEVICE_H
#define CLEAVE_BACKENDS_ONNXRUNTIME_DEVICE_H

#include "api.h"
#include "backends/framework/framework.h"

#define CLV__ORT_PROVIDER_SUFFIX "ExecutionProvider" /* of every provider's name; ours go without */

typedef struct clv__ort_library {
  const clv__ort_api *api;
  char version[32];
} clv__ort_library;

typedef struct clv__ort_device {
  const clv__ort_library *library;
  const clv__ort_api *api;
  const clv_host *host;
  clv__ort_env *env;
  clv__ort_memory *memory; /* the host's, as it is described */
  char provider[64];       /* "CPU" */
  bool is_cpu;             /* ONNX Runtime's own kernels: nothing to append, and nothing falls back to them */
  bool shares_threads;     /* those of the environment */
  int thread_count;
  int level; /* of optimisation */
  clv_option *provider_options;
  uint32_t provider_option_count;
  char *option_text;            /* what they point into */
  struct clv__ort_device *next; /* open ones, in environment.c */
  char description[160];
  char fingerprint[256];
} clv__ort_device;

/* CLV_OK for NULL; otherwise the call and the library's own words. Takes the status. (library.c) */
clv_status clv__ort_check(const clv__ort_api *api, clv__ort_status *status, const char *call, clv_error *error);
#define CLV__ORT_TRY(api, function, ...) CLV__TRY(clv__ort_check(api, (api)->function(__VA_ARGS__), #function, error))
#define CLV__ORT_TRY_GOTO(api, function, ...) CLV__TRY_GOTO(clv__ort_check(api, (api)->function(__VA_ARGS__), #function, error))

/* ---- library.c ---- */
clv_status clv__ort_load(const clv_host *host, void **library, clv_error *error);

/* ---- provider.c ---- */
clv_status clv__ort_list(void *library, clv_found_fn found, void *cookie, clv_error *error);
clv_status clv__ort_device_open(void *library, const clv_host *host, const char *name, const clv_device_config *config,
                                void **device, clv__framework_device_info *info, clv_error *error);
void clv__ort_device_close(void *device);
enum { CLV__ORT_OPTION_COUNT = 3 };
extern const clv_option_info clv__ort_options_known[CLV__ORT_OPTION_COUNT];

/* ---- environment.c: what a process has once; it lives while a device is open. ---- */
clv_status clv__ort_environment_join(clv__ort_device *device, bool spins, clv_error *error);
void clv__ort_environment_leave(clv__ort_device *device); /* one that has not joined may */
/* For a session: what it says goes to the device's host. */
void clv__ort_log(void *device, int severity, const char *category, const char *log_id, const char *location,
                  const char *message);

/* ---- doubts.c: whatever ONNX Runtime takes, but for a few nodes ---- */
bool clv__ort_may_support(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict);

/* ---- session.c ---- */
clv_status clv__ort_node_try(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error);
clv_status clv__ort_model_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                                  const clv_compile_options *options, void **model, clv_error *error);
void clv__ort_model_destroy(void *model);
uint64_t clv__ort_model_bytes(void *model);
/* Whether a session can be made at all: of one node that does nothing. */
clv_status clv__ort_probe(clv__ort_device *device, clv_error *error);
/* Options with the device's provider in them. For list() the device has its library, api and provider alone. */
clv_status clv__ort_options_create(const clv__ort_device *device, clv__ort_options **options, clv_error *error);

typedef struct clv__ort_model {
  clv__ort_device *device;
  clv__ort_session *session;
  clv__arena arena; /* of what follows */
  uint32_t input_count, output_count;
  const char **input_names, **output_names;
  clv_tensor *input_types; /* as compiled: dims may be unknown */
  uint64_t size_bytes;
} clv__ort_model;

/* ---- request.c ---- */
clv_status clv__ort_request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **request, clv_error *error);
clv_status clv__ort_request_resize(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
void clv__ort_request_destroy(void *request);
clv_status clv__ort_request_run(void *request, clv__framework_run *run, clv_error *error);

#endif
