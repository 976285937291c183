/* Implements executables as the framework's models, and instances as its requests. Each execution uses a `launch`, which holds
 * the bindings with buffers replaced by addresses. Launches are reused. */
#include <string.h>

#include "base/files/sealed.h"
#include "base/tensor/tensor.h"
#include "queue.h"

struct clv_executable {
  clv__object object;
  void *model; /* NULL: the partition has no outputs, so there is nothing to run */
  uint32_t input_count, output_count;
};

typedef struct launch {
  clv__framework_work work;
  struct launch *next;
  clv_instance *instance;
  clv__framework_run run;
  void *cookie; /* passed to the host's allocate_output() */
  clv_status (*allocate_output)(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error);
  clv_binding bindings[]; /* inputs, then outputs */
} launch;

struct clv_instance {
  clv__object object;
  clv_device *device;
  clv_executable *executable;
  void *request;
  launch *unused; /* list of launches that are not in use; guarded by the queue's lock if streams have threads */
};

/* ---- Executables ---- */

static void destroy_executable(clv_device *device, void *self) {
  clv_executable *executable = self;
  if (executable->model != NULL) device->framework->model_destroy(executable->model);
  clv__object_free(&device->objects, executable);
}

void clv__framework_executable_destroy(clv_device *device, clv_executable *executable) {
  if (executable != NULL) destroy_executable(device, executable);
}

/* Tells the host that the model has its own copy of every constant. */
static void let_constants_go(const clv_host *host, const clv_graph_view *graph) {
  if (host->constant_copied == NULL) return;
  uint32_t count = host->graph_value_count(graph);
  for (uint32_t v = 0; v < count; ++v) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(graph, v, &value);
    if (value.type.data != NULL) host->constant_copied(graph, v);
  }
}

clv_status clv__framework_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                  clv_executable **out, clv_error *error) {
  const clv_compile_options defaults = {.struct_size = sizeof defaults};
  *out = NULL;
  clv_executable *executable = clv__object_new(&device->objects, sizeof *executable, destroy_executable);
  if (executable == NULL) return clv__error_memory(error, sizeof *executable);
  executable->input_count = device->host->graph_input_count(graph);
  executable->output_count = device->host->graph_output_count(graph);
  clv__error_clear(error);
  clv_status status = CLV_OK;
  if (executable->output_count > 0) {
    status = device->framework->model_compile(device->handle, device->host, graph, options != NULL ? options : &defaults,
                                              &executable->model, error);
  }
  if (status != CLV_OK) {
    executable->model = NULL;
    destroy_executable(device, executable);
    return status;
  }
  let_constants_go(device->host, graph);
  *out = executable;
  return CLV_OK;
}

void clv__framework_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  clv_executable_info filled = {.struct_size = info->struct_size};
  if (device->framework->model_bytes != NULL && executable->model != NULL)
    filled.resident_bytes = device->framework->model_bytes(executable->model);
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}

/* ---- Files ----
 *
 * A file contains the framework's name, the device's fingerprint, the numbers of inputs and outputs, and the framework's
 * data. */

static const clv__sealed_kind kind = {.what = "compiled model", .magic = "CLVMODEL", .version = 1};

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  clv__text *text = cookie;
  clv__text_append_bytes(text, data, size_bytes);
  return text->failed ? CLV_OUT_OF_MEMORY : CLV_OK;
}

clv_status clv__framework_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                          clv_error *error) {
  clv__text payload;
  clv__text_init(&payload, device->allocator);
  clv__sealed_put_text(&payload, device->framework->name);
  clv__sealed_put_text(&payload, device->info.fingerprint);
  clv__sealed_put(&payload, executable->input_count, 4);
  clv__sealed_put(&payload, executable->output_count, 4);
  clv__error_clear(error);
  clv_status status = CLV_OK;
  if (executable->model != NULL) status = device->framework->model_save(executable->model, append, &payload, error);
  if (status == CLV_OK) status = clv__sealed_write(&kind, &payload, write, cookie, error);
  clv__text_finish(&payload);
  return status;
}

clv_status clv__framework_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                          clv_error *error) {
  *out = NULL;
  clv__sealed_reader reader;
  CLV__TRY(clv__sealed_open(&kind, data, size_bytes, &reader, error));
  CLV__TRY(clv__sealed_check_fingerprint(&reader, device->framework->name));
  CLV__TRY(clv__sealed_check_fingerprint(&reader, device->info.fingerprint));
  clv_executable *executable = clv__object_new(&device->objects, sizeof *executable, destroy_executable);
  if (executable == NULL) return clv__error_memory(error, sizeof *executable);
  executable->input_count = (uint32_t)clv__sealed_take(&reader, 4);
  executable->output_count = (uint32_t)clv__sealed_take(&reader, 4);
  clv_status status = reader.failed ? clv__sealed_damaged(&reader, "truncated before the model") : CLV_OK;
  clv__error_clear(error);
  if (status == CLV_OK && executable->output_count > 0) {
    status = device->framework->model_load(device->handle, reader.data + reader.at, reader.size_bytes - reader.at,
                                           &executable->model, error);
  }
  if (status != CLV_OK) {
    executable->model = NULL;
    destroy_executable(device, executable);
    return status;
  }
  *out = executable;
  return CLV_OK;
}

/* ---- Launches ---- */

static clv_status run_launch(clv__framework_work *work, clv_error *error);
static void finish_launch(clv__framework_work *work);
static void stop_launch(clv__framework_work *work);
static void resume_launch(clv__framework_work *work);

static launch *create_launch(clv_instance *instance) {
  size_t count = (size_t)instance->executable->input_count + instance->executable->output_count;
  launch *made = clv__allocate_zero(instance->device->allocator, sizeof *made + count * sizeof *made->bindings);
  if (made == NULL) return NULL;
  made->work = (clv__framework_work){run_launch, finish_launch, stop_launch, resume_launch};
  made->instance = instance;
  return made;
}

/* Takes an unused launch from the list, or creates one. Returns NULL if memory runs out. */
static launch *take_launch(clv_instance *instance) {
  clv_device *device = instance->device;
  if (device->is_async) pthread_mutex_lock(&device->queue.lock);
  launch *taken = instance->unused;
  if (taken != NULL) instance->unused = taken->next;
  if (device->is_async) pthread_mutex_unlock(&device->queue.lock);
  return taken != NULL ? taken : create_launch(instance);
}

static void put_back(launch *used) {
  used->next = used->instance->unused;
  used->instance->unused = used;
}

static void put_back_locked(launch *used) {
  clv_device *device = used->instance->device;
  if (device->is_async) pthread_mutex_lock(&device->queue.lock);
  put_back(used);
  if (device->is_async) pthread_mutex_unlock(&device->queue.lock);
}

/* Called with the queue's lock held. */
static void finish_launch(clv__framework_work *work) {
  put_back((launch *)work);
}

/* Calls the host's allocate_output(), and stores the address of the memory in `binding`, without the buffer. */
static clv_status allocate(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error) {
  launch *self = cookie;
  if (index >= self->run.output_count || self->allocate_output == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "output %u cannot be allocated: there is no such output, or no allocate_output()", index);
  }
  clv_binding given = *binding;
  CLV__TRY(self->allocate_output(self->cookie, index, type, &given, error));
  void *address = given.type.data;
  given.type = *type;
  given.type.data = address;
  return clv__framework_binding_resolve(&given, binding, error);
}

static clv_status run_launch(clv__framework_work *work, clv_error *error) {
  launch *self = (launch *)work;
  if (self->instance->request == NULL) return CLV_OK;
  clv__error_clear(error);
  return self->instance->device->framework->request_run(self->instance->request, &self->run, error);
}

static void stop_launch(clv__framework_work *work) {
  const clv_instance *instance = ((launch *)work)->instance;
  const clv__framework *framework = instance->device->framework;
  if (instance->request != NULL && framework->request_stop != NULL) framework->request_stop(instance->request);
}

static void resume_launch(clv__framework_work *work) {
  const clv_instance *instance = ((launch *)work)->instance;
  const clv__framework *framework = instance->device->framework;
  if (instance->request != NULL && framework->request_resume != NULL) framework->request_resume(instance->request);
}

static clv_status fill_launch(launch *self, const clv_execute_args *args, clv_error *error) {
  const clv_executable *executable = self->instance->executable;
  if (args->input_count != executable->input_count || args->output_count != executable->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the partition has %u and %u",
                          args->input_count, args->output_count, executable->input_count, executable->output_count);
  }
  clv_binding *inputs = self->bindings, *outputs = self->bindings + args->input_count;
  for (uint32_t i = 0; i < args->input_count; ++i) {
    CLV__TRY(clv__framework_binding_resolve(&args->inputs[i], &inputs[i], error));
  }
  for (uint32_t i = 0; i < args->output_count; ++i) {
    CLV__TRY(clv__framework_binding_resolve(&args->outputs[i], &outputs[i], error));
  }
  self->cookie = args->cookie;
  self->allocate_output = args->allocate_output;
  self->run = (clv__framework_run){
      .struct_size = sizeof self->run,
      .input_count = args->input_count,
      .output_count = args->output_count,
      .inputs = inputs,
      .outputs = outputs,
      .cookie = self,
      .allocate_output = allocate,
  };
  return CLV_OK;
}

clv_status clv__framework_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                  clv_error *error) {
  launch *self = take_launch(instance);
  if (self == NULL) return clv__error_memory(error, sizeof *self);
  clv_status status = fill_launch(self, args, error);
  if (status == CLV_OK && device->is_async) {
    status = clv__framework_enqueue(device, stream, &self->work, error);
    if (status == CLV_OK) return CLV_OK; /* finish_launch() puts the launch back */
  } else if (status == CLV_OK) {
    status = clv__framework_run_here(device, stream, &self->work, error);
  }
  put_back_locked(self);
  return status;
}

/* ---- Instances ---- */

static void destroy_instance(clv_device *device, void *self) {
  clv_instance *instance = self;
  if (instance->request != NULL) device->framework->request_destroy(instance->request);
  while (instance->unused != NULL) {
    launch *next = instance->unused->next;
    clv__release(device->allocator, instance->unused);
    instance->unused = next;
  }
  clv__object_free(&device->objects, instance);
}

static clv_status check_inputs(const clv_executable *executable, uint32_t input_count, clv_error *error) {
  if (input_count == executable->input_count) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the partition has %u", input_count,
                        executable->input_count);
}

clv_status clv__framework_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                          uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                          clv_instance **out, clv_error *error) {
  (void)weights;
  *out = NULL;
  if (weight_count != 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights given; expected none", weight_count);
  CLV__TRY(check_inputs(executable, input_count, error));
  clv_instance *instance = clv__object_new(&device->objects, sizeof *instance, destroy_instance);
  if (instance == NULL) return clv__error_memory(error, sizeof *instance);
  instance->device = device;
  instance->executable = executable;
  instance->unused = create_launch(instance);
  clv_status status = instance->unused != NULL ? CLV_OK : clv__error_memory(error, sizeof *instance->unused);
  clv__error_clear(error);
  if (status == CLV_OK && executable->model != NULL) {
    status = device->framework->request_create(executable->model, inputs, input_count, &instance->request, error);
    if (status != CLV_OK) instance->request = NULL;
  }
  if (status != CLV_OK) {
    destroy_instance(device, instance);
    return status;
  }
  *out = instance;
  return CLV_OK;
}

void clv__framework_instance_destroy(clv_device *device, clv_instance *instance) {
  if (instance != NULL) destroy_instance(device, instance);
}

clv_status clv__framework_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs,
                                          uint32_t input_count, clv_error *error) {
  CLV__TRY(check_inputs(instance->executable, input_count, error));
  if (instance->request == NULL) return CLV_OK;
  clv__error_clear(error);
  return device->framework->request_resize(instance->request, inputs, input_count, error);
}
