/* Requests: run a compiled model. Its tensors use the host's memory directly. A tensor is set again only if its address or shape
 * has changed. An output whose size is known only after the run is copied from OpenVINO's memory. */
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

/* The tensor that was last set at a port. */
typedef struct bound_tensor {
  ov_tensor *tensor; /* NULL if none was set; OpenVINO then allocates the memory for this port */
  const void *data;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK];
} bound_tensor;

typedef struct request {
  clv__openvino_model *model;
  ov_infer_request *infer;
  bound_tensor bound[]; /* in the order of the model's ports */
} request;

static void release_tensors(request *self) {
  const clv__openvino *ov = self->model->device->ov;
  for (uint32_t i = 0; i < self->model->input_count + self->model->output_count; ++i) {
    if (self->bound[i].tensor != NULL) ov->tensor_free(self->bound[i].tensor);
    self->bound[i].tensor = NULL;
  }
}

void clv__openvino_request_destroy(void *handle) {
  request *self = handle;
  if (self == NULL) return;
  const clv__openvino_device *device = self->model->device;
  if (self->infer != NULL) device->ov->infer_request_free(self->infer);
  release_tensors(self);
  clv__release(device->allocator, self);
}

/* Rejects inputs without elements. For such inputs, OpenVINO computes some operators wrongly, and others divide by zero, which
 * kills the process. The host then runs the partition on another device. */
static clv_status check_inputs(const clv__openvino_model *model, const clv_tensor *inputs, uint32_t input_count,
                               clv_error *error) {
  for (uint32_t i = 0; i < input_count; ++i) {
    for (int32_t d = 0; d < inputs[i].rank; ++d) {
      if (inputs[i].dims[d] != 0) continue;
      return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO: input '%s' has no elements, which is not supported",
                            model->ports[i].name);
    }
  }
  return CLV_OK;
}

clv_status clv__openvino_request_create(void *handle, const clv_tensor *inputs, uint32_t input_count, void **out,
                                        clv_error *error) {
  clv__openvino_model *model = handle;
  *out = NULL;
  CLV__TRY(check_inputs(model, inputs, input_count, error));
  size_t count = (size_t)model->input_count + model->output_count;
  request *self = clv__allocate_zero(model->device->allocator, sizeof *self + count * sizeof *self->bound);
  if (self == NULL) return clv__error_memory(error, sizeof *self);
  self->model = model;
  int code = model->device->ov->compiled_model_create_infer_request(model->compiled, &self->infer);
  if (code != 0) {
    self->infer = NULL;
    clv__openvino_request_destroy(self);
    return clv__openvino_failed(model->device->ov, error, "ov_compiled_model_create_infer_request", code);
  }
  *out = self;
  return CLV_OK;
}

/* Only checks the inputs, because each run passes tensors with their shapes. */
clv_status clv__openvino_request_resize(void *handle, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  const request *self = handle;
  if (self->model->device->static_shapes) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO: models for %s have fixed shapes", self->model->device->name);
  }
  return check_inputs(self->model, inputs, input_count, error);
}

/* ---- Running ---- */

static bool is_bound(const bound_tensor *bound, const clv_tensor *type) {
  return bound->tensor != NULL && bound->data == type->data && bound->rank == type->rank &&
         memcmp(bound->dims, type->dims, (size_t)type->rank * sizeof *type->dims) == 0;
}

static clv_status bind(request *self, uint32_t index, const clv_tensor *type, clv_error *error) {
  static char nothing[64];
  const clv__openvino *ov = self->model->device->ov;
  const clv__openvino_port *port = &self->model->ports[index];
  bound_tensor *bound = &self->bound[index];
  if (port->port == NULL || port->is_copy || is_bound(bound, type)) return CLV_OK;
  int64_t dims[CLV_MAX_RANK] = {0};
  memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
  void *data = type->data != NULL ? type->data : nothing; /* even a tensor without elements needs an address */
  ov_tensor *tensor = NULL;
  CLV__OPENVINO_TRY(ov, error, tensor_create_from_host_ptr, clv__openvino_type(port->type.dtype),
                    ((ov_shape){.rank = type->rank, .dims = dims}), data, &tensor);
  int code = ov->infer_request_set_tensor_by_const_port(self->infer, port->port, tensor);
  if (code != 0) {
    clv_status status = clv__openvino_failed(ov, error, "ov_infer_request_set_tensor_by_const_port", code);
    ov->tensor_free(tensor);
    return clv__error_prefix(error, status, "'%s'", port->name);
  }
  if (bound->tensor != NULL) ov->tensor_free(bound->tensor);
  *bound = (bound_tensor){.tensor = tensor, .data = type->data, .rank = type->rank};
  memcpy(bound->dims, type->dims, (size_t)type->rank * sizeof *type->dims);
  return CLV_OK;
}

/* Lets OpenVINO allocate a port's memory again. A tensor that was set cannot be removed, so the request is created anew. */
static clv_status unbind(request *self, uint32_t index, clv_error *error) {
  const clv__openvino *ov = self->model->device->ov;
  if (self->bound[index].tensor == NULL) return CLV_OK;
  ov_infer_request *fresh = NULL;
  CLV__OPENVINO_TRY(ov, error, compiled_model_create_infer_request, self->model->compiled, &fresh);
  ov->infer_request_free(self->infer);
  self->infer = fresh;
  release_tensors(self);
  return CLV_OK;
}

static clv_status bind_all(request *self, const clv__framework_run *run, clv_error *error) {
  for (uint32_t i = 0; i < run->output_count; ++i) {
    if (run->outputs[i].type.rank == CLV_RANK_UNKNOWN) CLV__TRY(unbind(self, run->input_count + i, error));
  }
  for (uint32_t i = 0; i < run->input_count; ++i) CLV__TRY(bind(self, i, &run->inputs[i].type, error));
  for (uint32_t i = 0; i < run->output_count; ++i) {
    const clv_tensor *type = &run->outputs[i].type;
    if (type->rank != CLV_RANK_UNKNOWN) CLV__TRY(bind(self, run->input_count + i, type, error));
  }
  return CLV_OK;
}

/* Reads the shape that a tensor has after the run. */
static clv_status read_shape(const clv__openvino *ov, const ov_tensor *tensor, clv_tensor *type, clv_error *error) {
  ov_shape shape = {0, NULL};
  CLV__OPENVINO_TRY(ov, error, tensor_get_shape, tensor, &shape);
  clv_status status = CLV_OK;
  if (shape.rank < 0 || shape.rank > CLV_MAX_RANK) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO produced an output of rank %lld; the maximum is %d",
                            (long long)shape.rank, CLV_MAX_RANK);
  } else {
    type->rank = (int32_t)shape.rank;
    memcpy(type->dims, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  }
  ov->shape_free(&shape);
  return status;
}

/* Copies an output from the memory that OpenVINO allocated. */
static clv_status take_output(request *self, uint32_t index, clv__framework_run *run, clv_error *error) {
  const clv__openvino *ov = self->model->device->ov;
  const clv__openvino_port *port = &self->model->ports[run->input_count + index];
  ov_tensor *tensor = NULL;
  CLV__OPENVINO_TRY(ov, error, infer_request_get_tensor_by_const_port, self->infer, port->port, &tensor);
  clv_tensor type = {.dtype = port->type.dtype};
  size_t size_bytes = 0, given_bytes = 0;
  void *data = NULL;
  clv_status status;
  CLV__TRY_GOTO(read_shape(ov, tensor, &type, error));
  CLV__TRY_GOTO(run->allocate_output(run->cookie, index, &type, &run->outputs[index], error));
  if (!clv__tensor_size_bytes(&type, &size_bytes) || ov->tensor_get_byte_size(tensor, &given_bytes) != 0 ||
      given_bytes != size_bytes || (size_bytes > 0 && ov->tensor_data(tensor, &data) != 0)) {
    status = clv__error_set(error, CLV_DEVICE_ERROR, "OpenVINO: output '%s' cannot be read: %zu bytes, but its shape needs %zu",
                            port->name, given_bytes, size_bytes);
  } else if (size_bytes > 0) {
    memcpy(run->outputs[index].type.data, data, size_bytes);
  }
cleanup:
  ov->tensor_free(tensor);
  return status;
}

/* Checks an output that was written to the host's memory, and whose shape the model determines in each run: the shape may be
 * smaller than the host expects. */
static clv_status check_output(request *self, uint32_t index, const clv__framework_run *run, clv_error *error) {
  const clv__openvino *ov = self->model->device->ov;
  const clv_tensor *expected = &run->outputs[index].type;
  clv_tensor type = {.dtype = expected->dtype};
  CLV__TRY(read_shape(ov, self->bound[run->input_count + index].tensor, &type, error));
  if (clv__tensor_same_type(&type, expected)) return CLV_OK;
  char made[160], wanted[160];
  clv__tensor_text(&type, made, sizeof made);
  clv__tensor_text(expected, wanted, sizeof wanted);
  return clv__error_set(error, CLV_DEVICE_ERROR, "OpenVINO: output '%s' was computed as %s; expected %s",
                        self->model->ports[run->input_count + index].name, made, wanted);
}

/* Copies an output that is the same tensor as an input or an earlier output. */
static clv_status copy_output(const request *self, uint32_t index, clv__framework_run *run, clv_error *error) {
  uint32_t of = self->model->ports[run->input_count + index].of;
  const clv_tensor *from = of < run->input_count ? &run->inputs[of].type : &run->outputs[of - run->input_count].type;
  clv_binding *to = &run->outputs[index];
  size_t size_bytes;
  if (!clv__tensor_size_bytes(from, &size_bytes))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "OpenVINO: the size of output '%s' is unknown",
                          self->model->ports[run->input_count + index].name);
  if (to->type.rank == CLV_RANK_UNKNOWN) {
    clv_tensor type = *from;
    type.data = NULL;
    CLV__TRY(run->allocate_output(run->cookie, index, &type, to, error));
  }
  if (size_bytes > 0) memcpy(to->type.data, from->data, size_bytes);
  return CLV_OK;
}

/* Does nothing if no run is in progress. The next run is not affected, so no request_resume() is needed. */
void clv__openvino_request_stop(void *handle) {
  const request *self = handle;
  (void)self->model->device->ov->infer_request_cancel(self->infer);
}

clv_status clv__openvino_request_run(void *handle, clv__framework_run *run, clv_error *error) {
  request *self = handle;
  const clv__openvino_model *model = self->model;
  if (run->input_count != model->input_count || run->output_count != model->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "OpenVINO: %u inputs and %u outputs are bound, but the model has %u and %u", run->input_count,
                          run->output_count, model->input_count, model->output_count);
  }
  CLV__TRY(bind_all(self, run, error));
  CLV__OPENVINO_TRY(model->device->ov, error, infer_request_infer, self->infer);
  for (uint32_t i = 0; i < run->output_count; ++i) {
    if (model->ports[run->input_count + i].is_copy) {
      CLV__TRY(copy_output(self, i, run, error));
    } else if (self->bound[run->input_count + i].tensor == NULL) {
      CLV__TRY(take_output(self, i, run, error));
    } else if (model->ports[run->input_count + i].is_open) {
      CLV__TRY(check_output(self, i, run, error));
    }
  }
  return CLV_OK;
}
