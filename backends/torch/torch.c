/* PyTorch as a framework (../framework): one device, the CPU. */
#include "torch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "model.h"

#define VERSION "1"

typedef struct device {
  const clv__torch_api *api;
  const clv_host *host;
  char description[96], fingerprint[64];
} device;

/* Static, because the library is never unloaded. */
static clv__torch_api loaded_api;

static clv_status load(const clv_host *host, void **library, clv_error *error) {
  static const char *const names[] = {"libtorch_cpu.so", NULL}, *const subfolders[] = {"torch/lib", NULL};
  const clv__library_search search = {.what = "PyTorch",
                                      .variable_name = clv__variables[CLV__VARIABLE_TORCH].name,
                                      .variable = clv__environment_get(CLV__VARIABLE_TORCH),
                                      .names = names,
                                      .subfolders = subfolders};
  char path[512];
  void *handle;
  (void)host;
  CLV__TRY(clv__library_open(&search, RTLD_NOW | RTLD_LOCAL, &handle, path, sizeof path, error));
  clv_status status = clv__torch_api_fill(handle, path, &loaded_api, error);
  if (status != CLV_OK) {
    dlclose(handle);
    return status;
  }
  *library = &loaded_api;
  return CLV_OK;
}

static clv_status list(void *library, clv_found_fn found, void *cookie, clv_error *error) {
  (void)library;
  (void)error;
  return found(cookie, "", "cpu");
}

static clv_status device_open(void *library, const clv_host *host, const char *name, const clv_device_config *config,
                              void **opened, clv__framework_device_info *info, clv_error *error) {
  (void)config;
  if (name[0] != '\0' && strcmp(name, "CPU") != 0)
    return clv__error_set(error, CLV_NOT_FOUND, "PyTorch is supported only on the CPU: write torch, not torch:%s", name);
  device *d = clv__allocate_zero(host->allocator, sizeof *d);
  if (d == NULL) return clv__error_memory(error, sizeof *d);
  d->api = library;
  d->host = host;
  snprintf(d->description, sizeof d->description, "PyTorch %s, for ATen operators without an ONNX equivalent", d->api->version);
  snprintf(d->fingerprint, sizeof d->fingerprint, "torch %s cpu", d->api->version);
  *info = (clv__framework_device_info){
      .kind = "cpu", .description = d->description, .fingerprint = d->fingerprint, .computes_on_host = true};
  *opened = d;
  return CLV_OK;
}

static void device_close(void *closed) {
  device *d = closed;
  if (d != NULL) clv__release(d->host->allocator, d);
}

/* Accepts only nodes of domain `aten`. Nodes with ONNX operators run on other devices. */
static bool may_support(void *self, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict) {
  device *d = self;
  clv_node_info info = {.struct_size = sizeof info};
  d->host->graph_node(graph, node, &info);
  *is_sure = false;
  verdict->supported = false;
  if (strcmp(info.domain, "aten") != 0) {
    snprintf(verdict->reason, sizeof verdict->reason, "not a PyTorch operator");
    return false;
  }
  clv__arena arena;
  clv__torch_call call;
  clv_error error = {0};
  clv__arena_init(&arena, d->host->allocator);
  clv_status status = clv__torch_call_read(d->api, &info, &arena, &call, &error);
  clv__arena_finish(&arena);
  if (status != CLV_OK) snprintf(verdict->reason, sizeof verdict->reason, "%.*s", (int)sizeof verdict->reason - 1, error.message);
  verdict->supported = status == CLV_OK;
  return verdict->supported;
}

static clv_status model_compile(void *self, const clv_host *host, const clv_graph_view *graph, const clv_compile_options *options,
                                void **model, clv_error *error) {
  const device *d = self;
  clv__torch_model *made;
  (void)options;
  CLV__TRY(clv__torch_model_compile(d->api, host, graph, &made, error));
  *model = made;
  return CLV_OK;
}

static void model_destroy(void *model) {
  clv__torch_model_destroy(model);
}

static uint64_t model_bytes(void *model) {
  return clv__torch_model_bytes(model);
}

static clv_status request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **request, clv_error *error) {
  clv__torch_request *made;
  (void)inputs;
  (void)input_count;
  CLV__TRY(clv__torch_request_create(model, &made, error));
  *request = made;
  return CLV_OK;
}

/* Does nothing, because a call accepts tensors of any shape. */
static clv_status request_resize(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  (void)request;
  (void)inputs;
  (void)input_count;
  (void)error;
  return CLV_OK;
}

static void request_destroy(void *request) {
  clv__torch_request_destroy(request);
}

static clv_status request_run(void *request, clv__framework_run *run, clv_error *error) {
  return clv__torch_request_run(request, run, error);
}

clv_status clv__torch_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static const clv__framework framework = {
      .name = "torch",
      .version = VERSION,
      .load = load,
      .list = list,
      .device_open = device_open,
      .device_close = device_close,
      .may_support = may_support,
      .model_compile = model_compile,
      .model_destroy = model_destroy,
      .model_bytes = model_bytes,
      .request_create = request_create,
      .request_resize = request_resize,
      .request_destroy = request_destroy,
      .request_run = request_run,
  };
  (void)host;
  (void)user_data;
  (void)error;
  *backend = clv__framework_backend(&framework);
  return CLV_OK;
}
