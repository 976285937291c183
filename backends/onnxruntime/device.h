/* Shared by the files of this folder: the library, a provider as a device, a session as a model. */
#ifndef CLEAVE_BACKENDS_ONNXRUNTIME_DEVICE_H
#define CLEAVE_BACKENDS_ONNXRUNTIME_DEVICE_H

#include "api.h"
#include "backends/framework/framework.h"

#define CLV__ORT_PROVIDER_SUFFIX "ExecutionProvider" /* the end of every provider's name; names in Cleave omit it */

typedef struct clv__ort_library {
  const clv__ort_api *api;
  char version[32];
} clv__ort_library;

typedef struct clv__ort_device {
  const clv__ort_library *library;
  const clv__ort_api *api;
  const clv_host *host;
  clv__ort_env *env;
  clv__ort_memory *memory; /* describes host memory */
  char provider[64];       /* "CPU" */
  bool is_cpu;             /* ONNX Runtime's own kernels, which sessions use even if their options do not list them */
  bool saturates;          /* u8 times s8 may saturate: see saturates.c */
  bool shares_threads;     /* sessions use the threads of the environment instead of their own */
  int thread_count;
  int level; /* optimisation level of sessions: CLV__ORT_OPTIMIZE_… */
  clv_option *provider_options;
  uint32_t provider_option_count;
  char *option_text;            /* holds the keys and values of the options */
  struct clv__ort_device *next; /* list of open devices, in environment.c */
  char description[160];
  char fingerprint[256];
} clv__ort_device;

/* Converts a status of the library, and releases it. Returns CLV_OK for NULL; otherwise returns an error whose text names the
 * call and has the library's message (library.c). */
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

/* ---- environment.c: the library's environment, one per process; it exists while a device is open ---- */
clv_status clv__ort_environment_join(clv__ort_device *device, bool spins, clv_error *error);
void clv__ort_environment_leave(clv__ort_device *device); /* does nothing if the device has not joined */
/* Logging function of a session: passes its messages to the device's host. */
void clv__ort_log(void *device, int severity, const char *category, const char *log_id, const char *location,
                  const char *message);

/* ---- doubts.c: rejects the few nodes that ONNX Runtime accepts but computes wrongly ---- */
bool clv__ort_may_support(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict);

/* ---- saturates.c: products of u8 and s8, which saturate if the processor adds two of them in 16 bits ---- */
bool clv__ort_saturates(void); /* whether the CPU provider saturates on this processor */
/* Whether a product of u8 and s8 may saturate if this value is its s8 operand. No product saturates if the value is a constant
 * with all elements from -64 to 64. */
bool clv__ort_may_saturate(const clv_value_info *value);
/* Whether the graph has a float product whose second operand is dequantised from a value for which clv__ort_may_saturate() is
 * true. ONNX Runtime's optimiser would turn the float product into an integer product, which may saturate. */
bool clv__ort_dequantises_widely(const clv_host *host, const clv_graph_view *graph);

/* ---- session.c ---- */
clv_status clv__ort_node_try(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error);
clv_status clv__ort_model_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                                  const clv_compile_options *options, void **model, clv_error *error);
void clv__ort_model_destroy(void *model);
uint64_t clv__ort_model_bytes(void *model);
/* Checks that sessions can be created at all, by creating one for a model whose only node is Identity. */
clv_status clv__ort_probe(clv__ort_device *device, clv_error *error);
/* Creates options that contain the device's provider. clv__ort_list() calls this with a device of which only `library`, `api`,
 * `is_cpu` and `provider` are set. */
clv_status clv__ort_options_create(const clv__ort_device *device, clv__ort_options **options, clv_error *error);

typedef struct clv__ort_model {
  clv__ort_device *device;
  clv__ort_session *session;
  clv__arena arena; /* holds everything below */
  uint32_t input_count, output_count;
  const char **input_names, **output_names;
  clv_tensor *input_types; /* as compiled; dims may be unknown */
  uint64_t size_bytes;
} clv__ort_model;

/* ---- request.c ---- */
clv_status clv__ort_request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **request, clv_error *error);
clv_status clv__ort_request_resize(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
void clv__ort_request_destroy(void *request);
clv_status clv__ort_request_run(void *request, clv__framework_run *run, clv_error *error);
void clv__ort_request_stop(void *request);
void clv__ort_request_resume(void *request);

#endif
