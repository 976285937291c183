/* Compiles and runs a partition of ATen nodes: see model.h. */
#include "model.h"

#include <string.h>

#include "base/tensor/tensor.h"

typedef struct node {
  const char *name;
  clv__torch_call call;
  uint32_t input_count, output_count;
  const uint32_t *inputs, *outputs; /* value ids in the model */
} node;

struct clv__torch_model {
  const clv__torch_api *api;
  const clv_allocator *allocator;
  clv__arena arena;
  uint32_t node_count, value_count, input_count, output_count;
  node *nodes;
  uint32_t *inputs, *outputs;   /* value ids */
  clv_tensor *types;            /* indexed by value: the declared type; for a constant, `data` points to a copy of its data */
  clv__torch_tensor *constants; /* indexed by value; NULL if the value is not a constant */
  uint32_t *last_reader;        /* indexed by value: the last node that reads it; node_count for an output of the model */
  uint32_t most_operands, most_arguments;
  uint64_t constant_bytes;
};

struct clv__torch_request {
  clv__torch_model *model;
  clv__torch_tensor *values;   /* indexed by value; NULL if not computed yet, or no longer needed */
  clv__torch_tensor *operands; /* inputs, then outputs, of the current node */
  clv__torch_value *stack;
};

/* Computes the dims and strides of a dense tensor, which PyTorch needs. */
static void describe(const clv_tensor *type, int64_t *dims, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = type->rank; d-- > 0;) {
    dims[d] = type->dims[d];
    strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
}

/* Returns the number by which PyTorch identifies a dtype; -1 if PyTorch does not have the dtype. */
static int32_t number_of(const clv__torch_api *api, clv_dtype dtype) {
  return (int)dtype < CLV__TORCH_DTYPES ? api->dtypes[dtype] : -1;
}

static clv_status wrap(const clv__torch_api *api, const clv_tensor *tensor, const char *what, clv__torch_tensor *made,
                       clv_error *error) {
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
  static uint64_t nothing; /* the address of a tensor without elements */
  int32_t dtype = number_of(api, tensor->dtype);
  if (dtype < 0)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: PyTorch has no dtype %s", what, clv_dtype_name(tensor->dtype));
  describe(tensor, dims, strides);
  void *data = tensor->data != NULL ? tensor->data : &nothing;
  if (api->tensor_from_blob(data, tensor->rank, dims, strides, 0, dtype, api->cpu, 0, made) == 0) return CLV_OK;
  const char *words = api->last_error();
  return clv__error_set(error, CLV_DEVICE_ERROR, "%s: PyTorch cannot create a tensor: %s", what, words != NULL ? words : "");
}

/* ---- Compiling ---- */

static clv_status copy_constant(clv__torch_model *model, uint32_t value, const clv_value_info *info, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&info->type, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  void *copy = clv__arena_allocate_data(&model->arena, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(copy, info->type.data, size_bytes);
  model->types[value].data = copy;
  model->constant_bytes += size_bytes;
  return wrap(model->api, &model->types[value], info->name, &model->constants[value], error);
}

static clv_status read_values(clv__torch_model *model, const clv_host *host, const clv_graph_view *graph, clv_error *error) {
  for (uint32_t v = 0; v < model->value_count; ++v) {
    clv_value_info info = {.struct_size = sizeof info};
    host->graph_value(graph, v, &info);
    model->types[v] = info.type;
    model->types[v].data = NULL;
    if (info.type.data == NULL) continue;
    CLV__TRY(copy_constant(model, v, &info, error));
    host->constant_copied(graph, v);
  }
  for (uint32_t i = 0; i < model->input_count; ++i) model->inputs[i] = host->graph_input(graph, i);
  for (uint32_t i = 0; i < model->output_count; ++i) {
    model->outputs[i] = host->graph_output(graph, i);
    model->last_reader[model->outputs[i]] = model->node_count;
  }
  return CLV_OK;
}

/* Checks that PyTorch has the operator, by a call with tensors that have types but no data. Ignores any other error of the call,
 * because many operators need data. */
static clv_status check_operator(const clv__torch_model *model, const node *n, clv__torch_request *scratch, clv_error *error) {
  const clv__torch_api *api = model->api;
  clv_status status = CLV_OK;
  clv_error own = {0};
  uint32_t made = 0, taken = 0;
  for (; status == CLV_OK && made < n->input_count; ++made) {
    scratch->operands[made] = NULL;
    if (n->inputs[made] == CLV_NO_VALUE) continue;
    clv_tensor type = model->types[n->inputs[made]];
    int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
    if (type.rank < 0) type.rank = 0;
    for (int32_t d = 0; d < type.rank; ++d) type.dims[d] = type.dims[d] < 0 ? 1 : type.dims[d];
    describe(&type, dims, strides);
    int32_t dtype = number_of(api, type.dtype);
    if (dtype < 0) {
      status = clv__error_set(error, CLV_NOT_SUPPORTED, "PyTorch has no dtype %s", clv_dtype_name(type.dtype));
    } else if (api->tensor_empty(type.rank, dims, strides, dtype, api->meta, 0, &scratch->operands[made]) != 0) {
      status = clv__error_set(error, CLV_DEVICE_ERROR, "PyTorch cannot create a tensor: %s", api->last_error());
    }
  }
  if (status == CLV_OK) {
    clv__torch_tensor *outputs = scratch->operands + n->input_count;
    clv_status called = clv__torch_call_make(api, &n->call, scratch->operands, scratch->stack, outputs, n->output_count, &own);
    taken = called == CLV_OK ? n->output_count : 0;
    if (called == CLV_NOT_SUPPORTED) status = clv__error_set(error, called, "%s", own.message);
    for (uint32_t i = 0; i < taken; ++i) (void)api->tensor_delete(outputs[i]);
  }
  for (uint32_t i = 0; i < made; ++i) {
    if (scratch->operands[i] != NULL) (void)api->tensor_delete(scratch->operands[i]);
  }
  return status;
}

static clv_status read_nodes(clv__torch_model *model, const clv_host *host, const clv_graph_view *graph, clv_error *error) {
  for (uint32_t i = 0; i < model->node_count; ++i) {
    clv_node_info info = {.struct_size = sizeof info};
    host->graph_node(graph, i, &info);
    node *n = &model->nodes[i];
    *n = (node){.input_count = info.input_count, .output_count = info.output_count};
    n->name = clv__arena_string(&model->arena, info.name, strlen(info.name));
    n->inputs = clv__arena_copy(&model->arena, info.inputs, info.input_count * sizeof *info.inputs);
    n->outputs = clv__arena_copy(&model->arena, info.outputs, info.output_count * sizeof *info.outputs);
    if (n->name == NULL || n->inputs == NULL || n->outputs == NULL) return clv__error_memory(error, info.input_count);
    clv_status status = clv__torch_call_read(model->api, &info, &model->arena, &n->call, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", info.name, info.op);
    uint32_t operands = info.input_count + info.output_count;
    if (operands > model->most_operands) model->most_operands = operands;
    if (n->call.room > model->most_arguments) model->most_arguments = n->call.room;
    for (uint32_t k = 0; k < n->input_count; ++k) {
      if (n->inputs[k] != CLV_NO_VALUE && model->last_reader[n->inputs[k]] < i) model->last_reader[n->inputs[k]] = i;
    }
  }
  return CLV_OK;
}

static clv_status check_operators(clv__torch_model *model, clv_error *error) {
  clv__torch_request *scratch;
  CLV__TRY(clv__torch_request_create(model, &scratch, error));
  model->api->set_gradients(false);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < model->node_count; ++i) {
    status = check_operator(model, &model->nodes[i], scratch, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "node '%s'", model->nodes[i].name);
  }
  clv__torch_request_destroy(scratch);
  return status;
}

clv_status clv__torch_model_compile(const clv__torch_api *api, const clv_host *host, const clv_graph_view *graph,
                                    clv__torch_model **out, clv_error *error) {
  *out = NULL;
  clv__torch_model *model = clv__allocate_zero(host->allocator, sizeof *model);
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  model->api = api;
  model->allocator = host->allocator;
  clv__arena_init(&model->arena, host->allocator);
  model->node_count = host->graph_node_count(graph);
  model->value_count = host->graph_value_count(graph);
  model->input_count = host->graph_input_count(graph);
  model->output_count = host->graph_output_count(graph);
  model->nodes = clv__arena_allocate_zero(&model->arena, model->node_count, sizeof *model->nodes);
  model->inputs = clv__arena_allocate_zero(&model->arena, model->input_count, sizeof *model->inputs);
  model->outputs = clv__arena_allocate_zero(&model->arena, model->output_count, sizeof *model->outputs);
  model->types = clv__arena_allocate_zero(&model->arena, model->value_count, sizeof *model->types);
  model->last_reader = clv__arena_allocate_zero(&model->arena, model->value_count, sizeof *model->last_reader);
  clv__torch_tensor *constants = clv__arena_allocate_zero(&model->arena, model->value_count, sizeof *model->constants);
  clv_status status = CLV_OK;
  model->constants = constants;
  if (model->nodes == NULL || model->inputs == NULL || model->outputs == NULL || model->types == NULL ||
      model->last_reader == NULL || constants == NULL) {
    status = clv__error_memory(error, model->value_count * sizeof *model->types);
  }
  if (status == CLV_OK) status = read_values(model, host, graph, error);
  if (status == CLV_OK) status = read_nodes(model, host, graph, error);
  if (status == CLV_OK) status = check_operators(model, error);
  if (status != CLV_OK) {
    clv__torch_model_destroy(model);
    return status;
  }
  *out = model;
  return CLV_OK;
}

void clv__torch_model_destroy(clv__torch_model *model) {
  if (model == NULL) return;
  for (uint32_t v = 0; model->constants != NULL && v < model->value_count; ++v) {
    if (model->constants[v] != NULL) (void)model->api->tensor_delete(model->constants[v]);
  }
  clv__arena_finish(&model->arena);
  clv__release(model->allocator, model);
}

uint64_t clv__torch_model_bytes(const clv__torch_model *model) {
  return model->constant_bytes;
}

/* ---- Running ---- */

clv_status clv__torch_request_create(clv__torch_model *model, clv__torch_request **out, clv_error *error) {
  size_t values = model->value_count, operands = model->most_operands, arguments = model->most_arguments;
  size_t size_bytes =
      sizeof(clv__torch_request) + (values + operands) * sizeof(clv__torch_tensor) + arguments * sizeof(clv__torch_value);
  clv__torch_request *request = clv__allocate_zero(model->allocator, size_bytes);
  if (request == NULL) return clv__error_memory(error, size_bytes);
  request->model = model;
  request->stack = (clv__torch_value *)(request + 1);
  request->values = (clv__torch_tensor *)(request->stack + arguments);
  request->operands = request->values + values;
  *out = request;
  return CLV_OK;
}

void clv__torch_request_destroy(clv__torch_request *request) {
  if (request != NULL) clv__release(request->model->allocator, request);
}

static void release_tensor(clv__torch_request *request, uint32_t value) {
  if (request->values[value] == NULL) return;
  (void)request->model->api->tensor_delete(request->values[value]);
  request->values[value] = NULL;
}

static clv_status run_node(clv__torch_request *request, uint32_t index, clv_error *error) {
  clv__torch_model *model = request->model;
  const node *n = &model->nodes[index];
  for (uint32_t i = 0; i < n->input_count; ++i) {
    uint32_t value = n->inputs[i];
    request->operands[i] = value == CLV_NO_VALUE             ? NULL
                           : model->constants[value] != NULL ? model->constants[value]
                                                             : request->values[value];
  }
  clv__torch_tensor *outputs = request->operands + n->input_count;
  CLV__TRY(clv__torch_call_make(model->api, &n->call, request->operands, request->stack, outputs, n->output_count, error));
  for (uint32_t i = 0; i < n->output_count; ++i) {
    if (n->outputs[i] == CLV_NO_VALUE) {
      (void)model->api->tensor_delete(outputs[i]);
    } else {
      request->values[n->outputs[i]] = outputs[i];
      if (model->last_reader[n->outputs[i]] <= index) release_tensor(request, n->outputs[i]);
    }
  }
  for (uint32_t i = 0; i < n->input_count; ++i) {
    if (n->inputs[i] != CLV_NO_VALUE && model->last_reader[n->inputs[i]] == index) release_tensor(request, n->inputs[i]);
  }
  return CLV_OK;
}

/* Reads the type of a result from PyTorch. `type->data` receives the address of its data, and `strides` its strides. */
static clv_status look_at(const clv__torch_api *api, clv__torch_tensor tensor, clv_tensor *type, int64_t **strides,
                          clv_error *error) {
  int64_t rank, *dims;
  int32_t dtype;
  *type = (clv_tensor){0};
  if (api->tensor_rank(tensor, &rank) != 0 || api->tensor_dims(tensor, &dims) != 0 || api->tensor_strides(tensor, strides) != 0 ||
      api->tensor_dtype(tensor, &dtype) != 0 || api->tensor_data(tensor, &type->data) != 0) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "cannot read the type of PyTorch's result: %s", api->last_error());
  }
  if (rank > CLV_MAX_RANK) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "PyTorch produced a tensor of rank %lld, above the maximum of %d",
                          (long long)rank, CLV_MAX_RANK);
  }
  for (int i = 0; i < CLV__TORCH_DTYPES; ++i) {
    if (api->dtypes[i] == dtype) type->dtype = (clv_dtype)i;
  }
  type->rank = (int32_t)rank;
  for (int64_t d = 0; d < rank; ++d) type->dims[d] = dims[d];
  return CLV_OK;
}

/* Copies a tensor with arbitrary strides to dense memory, element by element. PyTorch's results may have any strides. */
static void copy_strided(const clv_tensor *from, const int64_t *strides, void *to) {
  size_t element = clv_dtype_size_bytes(from->dtype), count = 1;
  int64_t at[CLV_MAX_RANK] = {0};
  const char *source = from->data;
  char *out = to;
  for (int32_t d = 0; d < from->rank; ++d) count *= (size_t)from->dims[d];
  for (size_t i = 0; i < count; ++i) {
    memcpy(out + i * element, source, element);
    for (int32_t d = from->rank; d-- > 0;) {
      source += strides[d] * (int64_t)element;
      if (++at[d] < from->dims[d]) break;
      source -= strides[d] * (int64_t)element * from->dims[d];
      at[d] = 0;
    }
  }
}

static bool is_dense(const clv_tensor *type, const int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = type->rank; d-- > 0;) {
    if (type->dims[d] != 1 && strides[d] != stride) return false;
    stride *= type->dims[d];
  }
  return true;
}

static clv_status give_output(clv__torch_request *request, uint32_t index, clv__framework_run *run, clv_error *error) {
  clv__torch_model *model = request->model;
  uint32_t value = model->outputs[index];
  clv__torch_tensor tensor = model->constants[value] != NULL ? model->constants[value] : request->values[value];
  clv_binding *binding = &run->outputs[index];
  clv_tensor made;
  int64_t *strides;
  size_t size_bytes;
  CLV__TRY(look_at(model->api, tensor, &made, &strides, error));
  if (binding->type.rank == CLV_RANK_UNKNOWN) {
    clv_tensor type = made;
    type.data = NULL;
    CLV__TRY(run->allocate_output(run->cookie, index, &type, binding, error));
  }
  if (!clv__tensor_same_type(&made, &binding->type)) {
    char is[160], should[160];
    clv__tensor_text(&made, is, sizeof is);
    clv__tensor_text(&binding->type, should, sizeof should);
    return clv__error_set(error, CLV_INVALID_MODEL, "output %u: PyTorch produced %s, but the file says %s", index, is, should);
  }
  if (!clv__tensor_size_bytes(&made, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  if (size_bytes == 0) return CLV_OK;
  if (is_dense(&made, strides))
    memcpy(binding->type.data, made.data, size_bytes);
  else
    copy_strided(&made, strides, binding->type.data);
  return CLV_OK;
}

clv_status clv__torch_request_run(clv__torch_request *request, clv__framework_run *run, clv_error *error) {
  clv__torch_model *model = request->model;
  clv_status status = CLV_OK;
  model->api->set_gradients(false); /* the setting is per thread */
  for (uint32_t i = 0; status == CLV_OK && i < model->input_count; ++i) {
    release_tensor(request, model->inputs[i]);
    status = wrap(model->api, &run->inputs[i].type, "an input", &request->values[model->inputs[i]], error);
  }
  for (uint32_t i = 0; status == CLV_OK && i < model->node_count; ++i) {
    status = run_node(request, i, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "node '%s'", model->nodes[i].name);
  }
  for (uint32_t i = 0; status == CLV_OK && i < model->output_count; ++i) status = give_output(request, i, run, error);
  for (uint32_t v = 0; v < model->value_count; ++v) release_tensor(request, v);
  return status;
}
