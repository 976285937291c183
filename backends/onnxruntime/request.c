/* Requests: run a session on host memory. The OrtValue that was created for a binding is reused as long as the binding's
 * address and type are the same, so repeated runs create no objects. */
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

/* An OrtValue of the library for the memory of a binding. */
typedef struct slot {
  clv__ort_value *value;
  clv_tensor type; /* type and address of the binding */
} slot;

typedef struct request {
  clv__ort_model *model;
  slot *slots;             /* inputs, then outputs */
  clv__ort_value **values; /* in the same order, as arguments of a run */
  clv__ort_run_options *options;
} request;

static const clv_allocator *allocator_of(const request *self) {
  return self->model->device->host->allocator;
}

static void clear_slot(const clv__ort_api *api, slot *s) {
  if (s->value != NULL) api->ReleaseValue(s->value);
  s->value = NULL;
}

void clv__ort_request_destroy(void *given) {
  request *self = given;
  if (self == NULL) return;
  const clv_allocator *allocator = allocator_of(self);
  size_t count = (size_t)self->model->input_count + self->model->output_count;
  for (size_t i = 0; i < count && self->slots != NULL; ++i) clear_slot(self->model->device->api, &self->slots[i]);
  if (self->options != NULL) self->model->device->api->ReleaseRunOptions(self->options);
  clv__release(allocator, self->slots);
  clv__release(allocator, self->values);
  clv__release(allocator, self);
}

/* Checks the inputs against the shapes that the session was created for. An unknown dim accepts any size. */
static clv_status check_shapes(const clv__ort_model *model, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  if (input_count != model->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the model has %u", input_count, model->input_count);
  }
  for (uint32_t i = 0; i < input_count; ++i) {
    const clv_tensor *made = &model->input_types[i], *given = &inputs[i];
    if (made->rank == CLV_RANK_UNKNOWN) continue;
    bool fits = made->rank == given->rank;
    for (int32_t d = 0; d < made->rank && fits; ++d) fits = made->dims[d] < 0 || made->dims[d] == given->dims[d];
    if (fits) continue;
    char a[100], b[100];
    clv__tensor_text(given, a, sizeof a);
    clv__tensor_text(made, b, sizeof b);
    return clv__error_set(error, CLV_NOT_SUPPORTED, "input '%.200s' is %s, but the model was compiled for %s",
                          model->input_names[i], a, b);
  }
  return CLV_OK;
}

clv_status clv__ort_request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **out, clv_error *error) {
  const clv__ort_model *m = model;
  const clv_allocator *allocator = m->device->host->allocator;
  size_t count = (size_t)m->input_count + m->output_count;
  *out = NULL;
  CLV__TRY(check_shapes(m, inputs, input_count, error));
  request *self = clv__allocate_zero(allocator, sizeof *self);
  if (self == NULL) return clv__error_memory(error, sizeof *self);
  self->model = model;
  self->slots = clv__allocate_zero(allocator, count * sizeof *self->slots);
  self->values = clv__allocate_zero(allocator, count * sizeof *self->values);
  if (self->slots == NULL || self->values == NULL) {
    clv__ort_request_destroy(self);
    return clv__error_memory(error, count * sizeof *self->slots);
  }
  clv_status status = clv__ort_check(m->device->api, m->device->api->CreateRunOptions(&self->options), "CreateRunOptions", error);
  if (status != CLV_OK) {
    self->options = NULL;
    clv__ort_request_destroy(self);
    return status;
  }
  *out = self;
  return CLV_OK;
}

/* Sets a flag that ONNX Runtime checks before it runs each node. */
void clv__ort_request_stop(void *given) {
  request *self = given;
  clv_error ignored;
  (void)clv__ort_check(self->model->device->api, self->model->device->api->RunOptionsSetTerminate(self->options),
                       "RunOptionsSetTerminate", &ignored);
}

void clv__ort_request_resume(void *given) {
  request *self = given;
  clv_error ignored;
  (void)clv__ort_check(self->model->device->api, self->model->device->api->RunOptionsUnsetTerminate(self->options),
                       "RunOptionsUnsetTerminate", &ignored);
}

clv_status clv__ort_request_resize(void *given, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  return check_shapes(((request *)given)->model, inputs, input_count, error);
}

/* Sets the slot's value for a binding: keeps the last run's value if it still fits, otherwise creates one. */
static clv_status bind(request *self, slot *s, const clv_tensor *type, clv_error *error) {
  static uint64_t nothing; /* the address of a tensor without elements */
  const clv__ort_device *device = self->model->device;
  if (s->value != NULL && s->type.data == type->data && clv__tensor_same_type(&s->type, type)) return CLV_OK;
  size_t size_bytes;
  if (!clv__tensor_size_bytes(type, &size_bytes)) {
    char text[100];
    clv__tensor_text(type, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a binding of type %s has an unknown size, or is too large", text);
  }
  clear_slot(device->api, s);
  s->type = *type;
  CLV__ORT_TRY(device->api, CreateTensorWithDataAsOrtValue, device->memory, size_bytes > 0 ? type->data : &nothing, size_bytes,
               type->dims, (size_t)type->rank, (int)type->dtype, &s->value);
  return CLV_OK;
}

/* Reads the type of a value that the library created. */
static clv_status read_type(const clv__ort_api *api, const clv__ort_value *value, clv_tensor *type, clv_error *error) {
  clv__ort_tensor_info *info = NULL;
  int dtype;
  size_t rank;
  CLV__ORT_TRY(api, GetTensorTypeAndShape, value, &info);
  clv_status status;
  *type = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
  CLV__ORT_TRY_GOTO(api, GetTensorElementType, info, &dtype);
  CLV__ORT_TRY_GOTO(api, GetDimensionsCount, info, &rank);
  if (rank > CLV_MAX_RANK) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "an output has rank %zu, above the maximum of %d", rank, CLV_MAX_RANK);
    goto cleanup;
  }
  CLV__ORT_TRY_GOTO(api, GetDimensions, info, type->dims, rank);
  type->dtype = (clv_dtype)dtype;
  type->rank = (int32_t)rank;
cleanup:
  api->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

/* Copies an output whose size was not known into memory that the host allocates now. */
static clv_status deliver(request *self, clv__framework_run *run, uint32_t index, clv__ort_value *value, clv_error *error) {
  const clv__ort_api *api = self->model->device->api;
  clv_tensor type;
  size_t size_bytes;
  void *data;
  CLV__TRY(read_type(api, value, &type, error));
  clv_binding *binding = &run->outputs[index];
  if (type.dtype != binding->type.dtype || !clv__tensor_size_bytes(&type, &size_bytes)) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "output '%.200s' is %s; expected %s", self->model->output_names[index],
                          clv_dtype_name(type.dtype), clv_dtype_name(binding->type.dtype));
  }
  CLV__TRY(run->allocate_output(run->cookie, index, &type, binding, error));
  CLV__ORT_TRY(api, GetTensorMutableData, value, &data);
  if (size_bytes > 0) memcpy(binding->type.data, data, size_bytes);
  return CLV_OK;
}

static bool is_open(const clv_binding *output) {
  return output->type.rank == CLV_RANK_UNKNOWN;
}

clv_status clv__ort_request_run(void *given, clv__framework_run *run, clv_error *error) {
  request *self = given;
  clv__ort_model *model = self->model;
  const clv__ort_api *api = model->device->api;
  clv__ort_value **inputs = self->values, **outputs = self->values + run->input_count;
  for (uint32_t i = 0; i < run->input_count; ++i) {
    CLV__TRY(bind(self, &self->slots[i], &run->inputs[i].type, error));
    inputs[i] = self->slots[i].value;
  }
  for (uint32_t i = 0; i < run->output_count; ++i) {
    slot *s = &self->slots[run->input_count + i];
    outputs[i] = NULL;
    if (is_open(&run->outputs[i])) continue;
    CLV__TRY(bind(self, s, &run->outputs[i].type, error));
    outputs[i] = s->value;
  }
  clv_status status =
      clv__ort_check(api,
                     api->Run(model->session, self->options, model->input_names, (const clv__ort_value *const *)inputs,
                              run->input_count, model->output_names, run->output_count, outputs),
                     "Run", error);
  for (uint32_t i = 0; i < run->output_count; ++i) {
    if (!is_open(&run->outputs[i]) || outputs[i] == NULL) continue;
    clv__ort_value *made = outputs[i];
    if (status == CLV_OK) status = deliver(self, run, i, made, error);
    api->ReleaseValue(made);
  }
  return status;
}
