/* A framework for tests. It compiles a partition by writing and reading it as ONNX, and runs it with the host's reference
 * kernels. It counts its calls, and fails or hangs if a test requests that. */
#ifndef CLEAVE_TESTS_FAKE_FRAMEWORK_H
#define CLEAVE_TESTS_FAKE_FRAMEWORK_H

#include <stdatomic.h>
#include <string.h>

#include "backends/framework/framework.h"
#include "machine.h"

/* What a test requests of the fake, and the fake's counters. There is only one, so all devices share it. */
typedef struct fake_control {
  const char *refused;    /* operator that may_support() rejects */
  const char *uncompiled; /* operator that may_support() accepts but that does not compile */
  const char *in_company; /* operator that compiles alone, but not together with other nodes */
  bool is_static, is_remote, refuses_library;
  atomic_int loads, tries, compiles, runs, live;
  atomic_int fail_run; /* number, counted from 1 in `runs`, of the run that fails; 0: none */
  atomic_bool hang;    /* while true, runs wait; then they fail */
  atomic_bool hold;    /* while true, runs wait; then they continue */
  atomic_int hung;     /* number of runs that have begun to wait */
  atomic_bool stopped; /* ends runs that wait because of `hold` */
} fake_control;
static fake_control fake;

typedef struct fake_model {
  const clv_host *host;
  clv_graph_view *graph;
  void *data; /* the partition as an ONNX model */
  size_t size_bytes;
} fake_model;

static clv_status fake_load(const clv_host *host, void **library, clv_error *error) {
  (void)host;
  atomic_fetch_add(&fake.loads, 1);
  *library = &fake;
  return fake.refuses_library ? clv__error_set(error, CLV_NOT_SUPPORTED, "the fake's library is not here") : CLV_OK;
}

static clv_status fake_list(void *library, clv_found_fn found, void *cookie, clv_error *error) {
  (void)library;
  (void)error;
  CLV__TRY(found(cookie, "ONE", "cpu"));
  return found(cookie, "TWO", "cpu");
}

static clv_status fake_open(void *library, const clv_host *host, const char *name, const clv_device_config *config, void **device,
                            clv__framework_device_info *info, clv_error *error) {
  (void)library;
  for (uint32_t i = 0; i < config->option_count; ++i) assert_string_equal(config->options[i].key, "level");
  if (strcmp(name, "ONE") != 0 && strcmp(name, "TWO") != 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the fake has no '%s'", name);
  }
  *device = (void *)host;
  *info = (clv__framework_device_info){.kind = "cpu",
                                       .description = "a fake",
                                       .fingerprint = strcmp(name, "ONE") == 0 ? "fake one" : "fake two",
                                       .static_shapes_only = fake.is_static,
                                       .computes_on_host = !fake.is_remote};
  atomic_fetch_add(&fake.live, 1);
  return CLV_OK;
}

static void fake_close(void *device) {
  (void)device;
  atomic_fetch_sub(&fake.live, 1);
}

static bool is_op(const clv_host *host, const clv_graph_view *graph, uint32_t n, const char *op) {
  clv_node_info node = {.struct_size = sizeof node};
  host->graph_node(graph, n, &node);
  return op != NULL && strcmp(node.op, op) == 0;
}

static bool fake_may_support(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict) {
  assert_false(*is_sure);
  if (!is_op(device, graph, node, fake.refused)) return true;
  strcpy(verdict->reason, "in no table");
  return false;
}

static void fake_model_destroy(void *self) {
  fake_model *model = self;
  model->host->graph_close(model->host->self, model->graph);
  clv__release(model->host->allocator, model->data);
  clv__release(model->host->allocator, model);
  atomic_fetch_sub(&fake.live, 1);
}

static clv_status read_model(const clv_host *host, void *data, size_t size_bytes, void **out, clv_error *error) {
  fake_model *model = clv__allocate_zero(host->allocator, sizeof *model);
  if (model == NULL) {
    clv__release(host->allocator, data);
    return clv__error_memory(error, sizeof *model);
  }
  *model = (fake_model){.host = host, .data = data, .size_bytes = size_bytes};
  atomic_fetch_add(&fake.live, 1);
  clv_status status = host->graph_open(host->self, data, size_bytes, &model->graph, error);
  if (status == CLV_OK) {
    *out = model;
    return CLV_OK;
  }
  model->graph = NULL;
  fake_model_destroy(model);
  return status;
}

static clv_status fake_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                               const clv_compile_options *options, void **model, clv_error *error) {
  (void)options;
  assert_ptr_equal(device, host);
  uint32_t count = host->graph_node_count(graph);
  atomic_fetch_add(count == 1 ? &fake.tries : &fake.compiles, 1);
  for (uint32_t n = 0; n < count; ++n) {
    if (is_op(host, graph, n, fake.uncompiled) || (count > 1 && is_op(host, graph, n, fake.in_company))) {
      return clv__error_set(error, CLV_DEVICE_ERROR, "the fake cannot\nbuild it");
    }
  }
  void *data;
  size_t size_bytes;
  CLV__TRY(clv__framework_onnx(host, graph, &data, &size_bytes, error));
  return read_model(host, data, size_bytes, model, error);
}

static clv_status fake_save(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  (void)error;
  const fake_model *model = self;
  return write(cookie, model->data, model->size_bytes);
}

static clv_status fake_model_load(void *device, const void *data, size_t size_bytes, void **model, clv_error *error) {
  const clv_host *host = device;
  void *copy = clv__allocate(host->allocator, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  memcpy(copy, data, size_bytes);
  return read_model(host, copy, size_bytes, model, error);
}

static clv_status fake_request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **request,
                                      clv_error *error) {
  (void)inputs;
  (void)error;
  assert_int_equal(input_count, ((fake_model *)model)->host->graph_input_count(((fake_model *)model)->graph));
  *request = model;
  atomic_fetch_add(&fake.live, 1);
  return CLV_OK;
}

static void fake_request_destroy(void *request) {
  (void)request;
  atomic_fetch_sub(&fake.live, 1);
}

static clv_status run_nodes(const fake_model *model, clv_tensor *values, bool *owned, clv_error *error) {
  const clv_host *host = model->host;
  clv_status status = CLV_OK;
  for (uint32_t n = 0; n < host->graph_node_count(model->graph) && status == CLV_OK; ++n) {
    clv_node_info node = {.struct_size = sizeof node};
    clv_tensor inputs[8] = {{0}}, outputs[8] = {{0}};
    host->graph_node(model->graph, n, &node);
    for (uint32_t i = 0; i < node.input_count; ++i) {
      if (node.inputs[i] != CLV_NO_VALUE) inputs[i] = values[node.inputs[i]];
    }
    status = host->evaluate_node(model->graph, n, inputs, outputs, error);
    for (uint32_t i = 0; i < node.output_count && status == CLV_OK; ++i) {
      if (node.outputs[i] == CLV_NO_VALUE) continue;
      values[node.outputs[i]] = outputs[i];
      owned[node.outputs[i]] = true;
    }
  }
  return status;
}

static clv_status write_output(clv__framework_run *run, uint32_t index, const clv_tensor *made, clv_error *error) {
  clv_binding *output = &run->outputs[index];
  size_t size_bytes = 0;
  if (output->type.rank == CLV_RANK_UNKNOWN) {
    clv_tensor type = *made;
    type.data = NULL;
    CLV__TRY(run->allocate_output(run->cookie, index, &type, output, error));
  }
  if (!clv__tensor_same_type(&output->type, made))
    return clv__error_set(error, CLV_INTERNAL_ERROR, "an output's type differs from its binding's");
  clv__tensor_size_bytes(made, &size_bytes);
  if (size_bytes > 0) memcpy(output->type.data, made->data, size_bytes);
  return CLV_OK;
}

static clv_status fake_run(void *request, clv__framework_run *run, clv_error *error) {
  const fake_model *model = request;
  const clv_host *host = model->host;
  clv_tensor values[64] = {{0}};
  bool owned[64] = {false};
  if (atomic_load(&fake.hang)) {
    atomic_fetch_add(&fake.hung, 1);
    while (atomic_load(&fake.hang)) usleep(1000);
    return clv__error_set(error, CLV_DEVICE_ERROR, "it hung");
  }
  if (atomic_load(&fake.hold)) atomic_fetch_add(&fake.hung, 1);
  while (atomic_load(&fake.hold)) {
    if (atomic_load(&fake.stopped)) return clv__error_set(error, CLV_DEVICE_ERROR, "it was terminated");
    usleep(1000);
  }
  if (atomic_fetch_add(&fake.runs, 1) + 1 == atomic_load(&fake.fail_run)) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "the fake fails");
  }
  uint32_t count = host->graph_value_count(model->graph);
  if (count > 64) return clv__error_set(error, CLV_INTERNAL_ERROR, "the fake supports at most 64 values");
  for (uint32_t v = 0; v < count; ++v) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(model->graph, v, &value);
    values[v] = value.type;
  }
  for (uint32_t i = 0; i < run->input_count; ++i) {
    if (run->inputs[i].buffer != NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "an input is bound to a buffer");
    values[host->graph_input(model->graph, i)] = run->inputs[i].type;
  }
  clv_status status = run_nodes(model, values, owned, error);
  for (uint32_t i = 0; i < run->output_count && status == CLV_OK; ++i) {
    status = write_output(run, i, &values[host->graph_output(model->graph, i)], error);
  }
  for (uint32_t v = 0; v < count; ++v) {
    if (owned[v]) clv__release(host->allocator, values[v].data);
  }
  return status;
}

static void fake_stop(void *request) {
  (void)request;
  atomic_store(&fake.stopped, true);
}

static void fake_resume(void *request) {
  (void)request;
  atomic_store(&fake.stopped, false);
}

static clv_status fake_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static const clv_option_info options[] = {{"level", "a number", "nothing"}};
  static const clv__framework framework = {
      .name = "fake",
      .version = "1",
      .options = options,
      .option_count = 1,
      .load = fake_load,
      .list = fake_list,
      .device_open = fake_open,
      .device_close = fake_close,
      .may_support = fake_may_support,
      .model_compile = fake_compile,
      .model_destroy = fake_model_destroy,
      .model_save = fake_save,
      .model_load = fake_model_load,
      .request_create = fake_request_create,
      .request_destroy = fake_request_destroy,
      .request_run = fake_run,
      .request_stop = fake_stop,
      .request_resume = fake_resume,
  };
  (void)host;
  (void)user_data;
  *backend = clv__framework_backend(&framework);
  return *backend != NULL ? CLV_OK : clv__error_set(error, CLV_INTERNAL_ERROR, "too many frameworks");
}

static inline void fake_reset(void) {
  memset(&fake, 0, sizeof fake);
}

/* Creates a context with the fake among its backends, and without open devices. */
static inline clv_context *fake_context(const clv_allocator *allocator, const char *cache) {
  clv_error error = {0};
  clv_context *context;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.allocator = allocator;
  options.cache_directory = cache;
  assert_ok(clv_context_create(&options, &context, &error), error);
  assert_ok(clv_context_add_backend(context, fake_query, NULL, &error), error);
  return context;
}

static inline clv_status fake_open_devices(clv_context *context, const char *list, const char *option, clv_devices **devices,
                                           clv_error *error) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = list;
  options.device_options = &option;
  options.device_option_count = option != NULL;
  return clv_devices_open(context, &options, devices, error);
}

static inline void fake_machine(machine *m, const char *list, const char *option, const char *cache) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  m->context = fake_context(&m->counting.allocator, cache);
  assert_ok(fake_open_devices(m->context, list, option, &m->devices, &error), error);
}

#endif
