/* Models: turns a partition, written as ONNX, into a session. Verdicts: checks whether ONNX Runtime can create a session for a
 * node alone. */
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

/* ---- Options ---- */

static clv_status append_cuda(const clv__ort_device *device, clv__ort_options *options, const char *const *keys,
                              const char *const *values, clv_error *error) {
  const clv__ort_api *api = device->api;
  clv__ort_cuda *cuda = NULL;
  CLV__ORT_TRY(api, CreateCUDAProviderOptions, &cuda);
  clv_status status = CLV_OK;
  if (device->provider_option_count > 0) {
    CLV__ORT_TRY_GOTO(api, UpdateCUDAProviderOptions, cuda, keys, values, device->provider_option_count);
  }
  CLV__ORT_TRY_GOTO(api, SessionOptionsAppendExecutionProvider_CUDA_V2, options, cuda);
cleanup:
  api->ReleaseCUDAProviderOptions(cuda);
  return status;
}

static clv_status append_provider(const clv__ort_device *device, clv__ort_options *options, clv_error *error) {
  enum { MOST = 64 };
  const char *keys[MOST], *values[MOST];
  if (device->provider_option_count > MOST) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "option provider: more than %d options of the execution provider", MOST);
  }
  for (uint32_t i = 0; i < device->provider_option_count; ++i) {
    keys[i] = device->provider_options[i].key;
    values[i] = device->provider_options[i].value;
  }
  if (strcmp(device->provider, "CUDA") == 0) return append_cuda(device, options, keys, values, error);
  CLV__ORT_TRY(device->api, SessionOptionsAppendExecutionProvider, options, device->provider, keys, values,
               device->provider_option_count);
  return CLV_OK;
}

clv_status clv__ort_options_create(const clv__ort_device *device, clv__ort_options **out, clv_error *error) {
  *out = NULL;
  clv__ort_options *options = NULL;
  CLV__ORT_TRY(device->api, CreateSessionOptions, &options);
  clv_status status = device->is_cpu ? CLV_OK : append_provider(device, options, error);
  if (status != CLV_OK) {
    device->api->ReleaseSessionOptions(options);
    return status;
  }
  *out = options;
  return CLV_OK;
}

static clv_status set_for_use(const clv__ort_device *device, clv__ort_options *options, bool deterministic, clv_error *error) {
  const clv__ort_api *api = device->api;
  CLV__ORT_TRY(api, SetUserLoggingFunction, options, clv__ort_log, (void *)device);
  CLV__ORT_TRY(api, SetSessionLogSeverityLevel, options, CLV__ORT_LOG_WARNING);
  CLV__ORT_TRY(api, SetSessionGraphOptimizationLevel, options, device->level);
  if (device->shares_threads)
    CLV__ORT_TRY(api, DisablePerSessionThreads, options);
  else
    CLV__ORT_TRY(api, SetIntraOpNumThreads, options, device->thread_count);
  if (deterministic) CLV__ORT_TRY(api, SetDeterministicCompute, options, true);
  return CLV_OK;
}

/* Disables the optimiser's rule EliminateDropout: in ONNX Runtime 1.31 it crashes on some valid graphs. Without the rule a
 * Dropout runs as a copy. */
static clv_status leave_dropout(const clv__ort_device *device, const clv_host *host, const clv_graph_view *graph,
                                clv__ort_options *options, clv_error *error) {
  bool has_dropout = false;
  clv_node_info node = {.struct_size = sizeof node};
  for (uint32_t n = 0; n < host->graph_node_count(graph) && !has_dropout; ++n) {
    host->graph_node(graph, n, &node);
    has_dropout = strcmp(node.op, "Dropout") == 0;
  }
  if (has_dropout) {
    CLV__ORT_TRY(device->api, AddSessionConfigEntry, options, "optimization.disable_specified_optimizers", "EliminateDropout");
  }
  return CLV_OK;
}

/* Stops the optimiser from turning float products of dequantised operands into integer products if the integer products might
 * saturate. */
static clv_status leave_quantised(const clv__ort_device *device, const clv_host *host, const clv_graph_view *graph,
                                  clv__ort_options *options, clv_error *error) {
  if (device->saturates && clv__ort_dequantises_widely(host, graph)) {
    CLV__ORT_TRY(device->api, AddSessionConfigEntry, options, "session.disable_quant_qdq", "1");
  }
  return CLV_OK;
}

/* Sets the options of a trial: no optimisation, one thread, and no log messages, because errors are returned as a status. Also
 * disables the fallback to the CPU's kernels, because a trial must show what the provider itself supports. */
static clv_status set_for_trial(const clv__ort_device *device, clv__ort_options *options, clv_error *error) {
  const clv__ort_api *api = device->api;
  CLV__ORT_TRY(api, SetSessionLogSeverityLevel, options, CLV__ORT_LOG_FATAL);
  CLV__ORT_TRY(api, SetSessionGraphOptimizationLevel, options, CLV__ORT_OPTIMIZE_NONE);
  CLV__ORT_TRY(api, SetIntraOpNumThreads, options, 1);
  if (!device->is_cpu) CLV__ORT_TRY(api, AddSessionConfigEntry, options, "session.disable_cpu_ep_fallback", "1");
  return CLV_OK;
}

/* Creates a session. Releases the options, even on failure. */
static clv_status create_session(const clv__ort_device *device, clv__ort_options *options, const void *data, size_t size_bytes,
                                 clv__ort_session **session, clv_error *error) {
  const clv__ort_api *api = device->api;
  *session = NULL;
  clv_status status = clv__ort_check(api, api->CreateSessionFromArray(device->env, data, size_bytes, options, session),
                                     "CreateSessionFromArray", error);
  api->ReleaseSessionOptions(options);
  return status;
}

/* ---- Verdicts ---- */

static clv_status try_session(const clv__ort_device *device, bool is_trial, const void *data, size_t size_bytes,
                              clv_error *error) {
  clv__ort_options *options;
  clv__ort_session *session;
  CLV__TRY(clv__ort_options_create(device, &options, error));
  clv_status status = is_trial ? set_for_trial(device, options, error) : set_for_use(device, options, false, error);
  if (status != CLV_OK) {
    device->api->ReleaseSessionOptions(options);
    return status;
  }
  CLV__TRY(create_session(device, options, data, size_bytes, &session, error));
  device->api->ReleaseSession(session);
  return CLV_OK;
}

clv_status clv__ort_node_try(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error) {
  void *data;
  size_t size_bytes;
  CLV__TRY(clv__framework_onnx_trial(host, part, &data, &size_bytes, error));
  clv_status status = try_session(device, true, data, size_bytes, error);
  clv__release(host->allocator, data);
  return status;
}

clv_status clv__ort_probe(clv__ort_device *device, clv_error *error) {
  /* The model y = Identity(x) with IR version 8 and opset 13; both values are float[1]. */
  static const uint8_t model[] = {0x08, 0x08, 0x3a, 0x3b, 0x0a, 0x10, 0x0a, 0x01, 'x',  0x12, 0x01, 'y',  0x22, 0x08,
                                  'I',  'd',  'e',  'n',  't',  'i',  't',  'y',  0x12, 0x05, 'p',  'r',  'o',  'b',
                                  'e',  0x5a, 0x0f, 0x0a, 0x01, 'x',  0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04,
                                  0x0a, 0x02, 0x08, 0x01, 0x62, 0x0f, 0x0a, 0x01, 'y',  0x12, 0x0a, 0x0a, 0x08, 0x08,
                                  0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x0d};
  return try_session(device, false, model, sizeof model, error);
}

/* ---- Models ---- */

static const char *copy_name(clv__ort_model *model, const char *name) {
  return clv__arena_string(&model->arena, name, strlen(name));
}

/* Reads the names and types that are needed to run a session. */
static clv_status describe(clv__ort_model *model, const clv_host *host, const clv_graph_view *graph, clv_error *error) {
  model->input_count = host->graph_input_count(graph);
  model->output_count = host->graph_output_count(graph);
  model->input_names = clv__arena_allocate_zero(&model->arena, model->input_count, sizeof *model->input_names);
  model->output_names = clv__arena_allocate_zero(&model->arena, model->output_count, sizeof *model->output_names);
  model->input_types = clv__arena_allocate_zero(&model->arena, model->input_count, sizeof *model->input_types);
  bool memory = model->input_names != NULL && model->output_names != NULL && model->input_types != NULL;
  clv_value_info value = {.struct_size = sizeof value};
  for (uint32_t i = 0; i < model->input_count && memory; ++i) {
    host->graph_value(graph, host->graph_input(graph, i), &value);
    model->input_types[i] = value.type;
    model->input_types[i].data = NULL;
    memory = (model->input_names[i] = copy_name(model, value.name)) != NULL;
  }
  for (uint32_t i = 0; i < model->output_count && memory; ++i) {
    host->graph_value(graph, host->graph_output(graph, i), &value);
    memory = (model->output_names[i] = copy_name(model, value.name)) != NULL;
  }
  return memory ? CLV_OK : clv__error_memory(error, model->input_count + model->output_count);
}

void clv__ort_model_destroy(void *self) {
  clv__ort_model *model = self;
  if (model == NULL) return;
  if (model->session != NULL) model->device->api->ReleaseSession(model->session);
  clv__arena_finish(&model->arena);
  clv__release(model->device->host->allocator, model);
}

static clv_status make_session(clv__ort_model *model, const clv_host *host, const clv_graph_view *graph, bool deterministic,
                               clv_error *error) {
  const clv__ort_device *device = model->device;
  clv__ort_options *options = NULL;
  void *data = NULL;
  size_t size_bytes;
  CLV__TRY(clv__ort_options_create(device, &options, error));
  clv_status status;
  CLV__TRY_GOTO(set_for_use(device, options, deterministic, error));
  CLV__TRY_GOTO(leave_dropout(device, host, graph, options, error));
  CLV__TRY_GOTO(leave_quantised(device, host, graph, options, error));
  CLV__TRY_GOTO(clv__framework_onnx(host, graph, &data, &size_bytes, error));
  model->size_bytes = size_bytes;
  status = create_session(device, options, data, size_bytes, &model->session, error);
  options = NULL;
cleanup:
  if (options != NULL) device->api->ReleaseSessionOptions(options);
  clv__release(host->allocator, data);
  return status;
}

clv_status clv__ort_model_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                                  const clv_compile_options *options, void **out, clv_error *error) {
  clv__ort_model *model = clv__allocate_zero(host->allocator, sizeof *model);
  *out = NULL;
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  model->device = device;
  clv__arena_init(&model->arena, host->allocator);
  clv_status status = describe(model, host, graph, error);
  if (status == CLV_OK) status = make_session(model, host, graph, options->deterministic, error);
  if (status != CLV_OK) {
    clv__ort_model_destroy(model);
    return status;
  }
  *out = model;
  return CLV_OK;
}

uint64_t clv__ort_model_bytes(void *self) {
  const clv__ort_model *model = self;
  return model->size_bytes;
}
