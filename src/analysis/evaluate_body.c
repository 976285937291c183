/* Runs the bodies of If, Loop and Scan. Keeps the carried values from one iteration to the next. */
#include "analysis/evaluate_body.h"

#include "analysis/node.h"
#include "analysis/shapes.h"
#include "analysis/stack.h"
#include "operators/control/body.h"

typedef struct loop {
  const clv__node *node;
  const clv_graph *body;
  const clv_tensor *captures;
  uint32_t carried_count, scan_count; /* number of carried values; number of scan outputs */
  clv_tensor *state;                  /* carried values */
  bool *owned;                        /* per carried value: the loop owns the data */
  clv__stack *stacks;
  clv_tensor *arguments; /* the body's inputs */
  clv_tensor *results;   /* the body's outputs */
  const clv__evaluation *how;
  const clv_allocator *allocator;
  clv_error *error;
} loop;

static void release_tensors(clv_tensor *tensors, uint32_t count, const clv_allocator *allocator) {
  for (uint32_t i = 0; tensors != NULL && i < count; ++i) {
    clv__release(allocator, tensors[i].data);
    memset(&tensors[i], 0, sizeof tensors[i]);
  }
}

static clv_status read_bool(const clv_tensor *tensor, const char *what, bool *value, clv_error *error) {
  size_t count;
  if (tensor->dtype != CLV_BOOL || !clv__tensor_count(tensor, &count) || count != 1) {
    char text[96];
    clv__tensor_text(tensor, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s is %s; expected one bool", what, text);
  }
  *value = *(const uint8_t *)tensor->data != 0;
  return CLV_OK;
}

static clv_status evaluate_if(const clv__node *node, const clv_tensor *inputs, clv_tensor *outputs, const clv__evaluation *how,
                              const clv_allocator *allocator, clv_error *error) {
  bool condition;
  uint32_t given = clv__node_explicit_inputs(node);
  if (given != 1) return clv__error_set(error, CLV_INVALID_MODEL, "If must have one input, the condition; it has %u", given);
  CLV__TRY(read_bool(&inputs[0], "the condition", &condition, error));
  const char *name = condition ? "then_branch" : "else_branch";
  const clv_graph *body = clv__node_body(node, name);
  if (body == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "attribute '%s' is missing", name);
  if (body->output_count != node->output_count || body->input_count != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "its %s has %u input%s and %u output%s; expected 0 and %u", name,
                          body->input_count, CLV__S(body->input_count), body->output_count, CLV__S(body->output_count),
                          node->output_count);
  }
  CLV__TRY(clv__graph_evaluate_at(body, NULL, inputs + given, outputs, NULL, NULL, how, allocator, error));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__NO_ID) release_tensors(&outputs[i], 1, allocator);
  }
  return CLV_OK;
}

/* ---- Loop and Scan ------------------------------------------------------------------------------------------------------- */

static clv_status loop_prepare(loop *l) {
  const clv_graph *body = l->body;
  uint32_t carried = l->carried_count;
  l->state = clv__allocate_zero(l->allocator, carried * sizeof *l->state);
  l->owned = clv__allocate_zero(l->allocator, carried * sizeof *l->owned);
  l->stacks = clv__allocate_zero(l->allocator, l->scan_count * sizeof *l->stacks);
  l->arguments = clv__allocate_zero(l->allocator, body->input_count * sizeof *l->arguments);
  l->results = clv__allocate_zero(l->allocator, body->output_count * sizeof *l->results);
  if (l->state == NULL || l->owned == NULL || l->stacks == NULL || l->arguments == NULL || l->results == NULL) {
    return clv__error_memory(l->error, carried * sizeof *l->state);
  }
  return CLV_OK;
}

static void loop_finish(loop *l) {
  for (uint32_t i = 0; l->state != NULL && l->owned != NULL && i < l->carried_count; ++i) {
    if (l->owned[i]) clv__release(l->allocator, l->state[i].data);
  }
  for (uint32_t i = 0; l->stacks != NULL && i < l->scan_count; ++i) clv__release(l->allocator, l->stacks[i].data);
  release_tensors(l->results, l->body->output_count, l->allocator);
  clv__release(l->allocator, l->results);
  clv__release(l->allocator, l->arguments);
  clv__release(l->allocator, l->stacks);
  clv__release(l->allocator, l->owned);
  clv__release(l->allocator, l->state);
}

/* Runs the body on l->arguments. Its results from `first` on are the new carried values, followed by the next slice of each scan
 * output. */
static clv_status loop_step(loop *l, uint32_t first) {
  CLV__TRY(clv__graph_evaluate_at(l->body, l->arguments, l->captures, l->results, NULL, NULL, l->how, l->allocator, l->error));
  for (uint32_t i = 0; i < l->carried_count; ++i) {
    if (l->owned[i]) clv__release(l->allocator, l->state[i].data);
    l->state[i] = l->results[first + i];
    l->owned[i] = true;
    memset(&l->results[first + i], 0, sizeof l->results[first + i]);
  }
  for (uint32_t i = 0; i < l->scan_count; ++i) {
    CLV__TRY(clv__stack_push(&l->stacks[i], &l->results[first + l->carried_count + i], l->allocator, l->error));
  }
  return CLV_OK;
}

static clv_status loop_results(loop *l, clv_tensor *outputs) {
  for (uint32_t i = 0; i < l->carried_count; ++i) {
    if (l->node->outputs[i] == CLV__NO_ID) continue;
    if (l->owned[i]) {
      outputs[i] = l->state[i];
      l->owned[i] = false;
    } else {
      CLV__TRY(clv__tensor_clone(&l->state[i], &outputs[i], l->allocator, l->error));
    }
  }
  return CLV_OK;
}

/* For a loop of which no iteration ran: takes the types of the scan outputs' slices from inference. Sets dimensions that
 * inference cannot determine to 0. */
static clv_status empty_slices(loop *l, const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, const int64_t *axes) {
  clv_tensor *types = clv__allocate_zero(l->allocator, l->node->output_count * sizeof *types);
  if (types == NULL) return clv__error_memory(l->error, l->node->output_count * sizeof *types);
  clv_status status = clv__node_infer(graph, id, inputs, types, l->error);
  for (uint32_t i = 0; status == CLV_OK && i < l->scan_count; ++i) {
    clv_tensor type = types[l->carried_count + i];
    if (l->node->outputs[l->carried_count + i] == CLV__NO_ID) continue;
    if (type.dtype == CLV_DTYPE_NONE) {
      status = clv__error_set(l->error, CLV_NOT_SUPPORTED, "no iteration ran, so the type of scan output %u is unknown", i);
      break;
    }
    if (type.rank < 1) type.rank = 1;
    int32_t axis = (int32_t)(axes != NULL ? axes[i] : 0);
    if (axis < 0) axis += type.rank;
    if (axis < 0 || axis >= type.rank) axis = 0;
    clv_tensor *slice = &l->stacks[i].slice;
    *slice = type;
    slice->rank = type.rank - 1;
    for (int32_t d = 0; d < slice->rank; ++d) {
      int64_t dim = type.dims[d < axis ? d : d + 1];
      slice->dims[d] = dim < 0 ? 0 : dim;
    }
  }
  clv__release(l->allocator, types);
  return status;
}

static clv_status evaluate_loop(const clv_graph *graph, clv_node_id id, loop *l, const clv_tensor *inputs, clv_tensor *outputs) {
  const clv__node *node = l->node;
  uint32_t given = clv__node_explicit_inputs(node);
  if (given < 2 || node->output_count < given - 2) {
    return clv__error_set(l->error, CLV_INVALID_MODEL,
                          "it has %u input%s and %u output%s; expected a trip count, a condition, and an output for each "
                          "further input",
                          given, CLV__S(given), node->output_count, CLV__S(node->output_count));
  }
  if (l->body->input_count != given || l->body->output_count != node->output_count + 1) {
    return clv__error_set(l->error, CLV_INVALID_MODEL,
                          "it has %u input%s and %u output%s, but its body has %u input%s and %u output%s; expected as many "
                          "inputs and one more output",
                          given, CLV__S(given), node->output_count, CLV__S(node->output_count), l->body->input_count,
                          CLV__S(l->body->input_count), l->body->output_count, CLV__S(l->body->output_count));
  }
  l->carried_count = given - 2;
  l->scan_count = node->output_count - l->carried_count;
  CLV__TRY(loop_prepare(l));
  bool has_limit = inputs[0].dtype != CLV_DTYPE_NONE, has_condition = inputs[1].dtype != CLV_DTYPE_NONE, go_on = true;
  if (!has_limit && !has_condition) {
    return clv__error_set(l->error, CLV_INVALID_MODEL, "it has neither a trip count nor a condition, so it would never end");
  }
  size_t limit_elements;
  if (has_limit && (!clv__tensor_count(&inputs[0], &limit_elements) || limit_elements != 1)) {
    return clv__error_set(l->error, CLV_INVALID_ARGUMENT, "its trip count is not a single number");
  }
  int64_t limit = has_limit ? clv__tensor_get_int(&inputs[0], 0) : INT64_MAX;
  if (has_condition) CLV__TRY(read_bool(&inputs[1], "the condition", &go_on, l->error));
  for (uint32_t i = 0; i < l->carried_count; ++i) l->state[i] = inputs[2 + i];

  const int64_t one = 1;
  int64_t iteration = 0;
  uint8_t truth = 1;
  for (; iteration < limit && go_on; ++iteration) {
    l->arguments[0] = clv__tensor_make(CLV_I64, clv__body_scalar_rank(l->body, 0), &one, &iteration);
    l->arguments[1] = clv__tensor_make(CLV_BOOL, clv__body_scalar_rank(l->body, 1), &one, &truth);
    for (uint32_t i = 0; i < l->carried_count; ++i) l->arguments[2 + i] = l->state[i];
    clv_status status = loop_step(l, 1);
    if (status != CLV_OK) {
      clv__error_prefix(l->error, status, "iteration %lld", (long long)iteration);
      return status;
    }
    /* Without a condition input the body's condition is computed and ignored, as the specification requires. */
    if (has_condition) CLV__TRY(read_bool(&l->results[0], "the body's condition", &go_on, l->error));
    release_tensors(l->results, l->body->output_count, l->allocator);
  }
  if (iteration == 0 && l->scan_count > 0) CLV__TRY(empty_slices(l, graph, id, inputs, NULL));
  CLV__TRY(loop_results(l, outputs));
  for (uint32_t i = 0; i < l->scan_count; ++i) {
    if (node->outputs[l->carried_count + i] == CLV__NO_ID) continue;
    CLV__TRY(clv__stack_finish(&l->stacks[i], 0, false, &outputs[l->carried_count + i], l->allocator, l->error));
  }
  return CLV_OK;
}

/* Copies slice `index` of `tensor` along `axis` into `room`. */
static void take_slice(const clv_tensor *tensor, int32_t axis, int64_t index, clv_tensor *slice, void *room) {
  size_t inner = (size_t)clv__dims_product(tensor, axis + 1, tensor->rank) * clv_dtype_size_bytes(tensor->dtype);
  size_t outer = (size_t)clv__dims_product(tensor, 0, axis), count = (size_t)tensor->dims[axis];
  for (size_t o = 0; inner > 0 && o < outer; ++o) {
    memcpy((char *)room + o * inner, (const char *)tensor->data + (o * count + (size_t)index) * inner, inner);
  }
  *slice = *tensor;
  slice->rank--;
  for (int32_t d = axis; d < slice->rank; ++d) slice->dims[d] = tensor->dims[d + 1];
  slice->data = room;
}

static int64_t listed(const int64_t *list, size_t count, uint32_t index) {
  return list != NULL && index < count ? list[index] : 0;
}

typedef struct scan {
  uint32_t input_count; /* the number of scanned inputs */
  int32_t axes[64];
  void *rooms[64];
  int64_t length;
} scan;

static clv_status scan_prepare(loop *l, scan *s, const clv_tensor *inputs) {
  size_t axis_count;
  const int64_t *axes = clv__attribute_ints(l->node->attributes, "scan_input_axes", &axis_count);
  s->length = -1;
  for (uint32_t i = 0; i < s->input_count; ++i) {
    const clv_tensor *input = &inputs[l->carried_count + i];
    CLV__TRY(clv__slices_allowed(input, "a scan input", l->error));
    int64_t axis = listed(axes, axis_count, i);
    if (axis < 0) axis += input->rank;
    if (axis < 0 || axis >= input->rank) {
      return clv__error_set(l->error, CLV_INVALID_MODEL, "scan input axis %lld is out of range for rank %d", (long long)axis,
                            input->rank);
    }
    if (s->length >= 0 && s->length != input->dims[axis]) {
      return clv__error_set(l->error, CLV_INVALID_ARGUMENT, "its scan inputs differ in their number of slices: %lld and %lld",
                            (long long)s->length, (long long)input->dims[axis]);
    }
    s->axes[i] = (int32_t)axis;
    s->length = input->dims[axis];
    size_t size_bytes;
    if (!clv__tensor_size_bytes(input, &size_bytes)) return clv__error_memory(l->error, SIZE_MAX);
    if (s->length > 0) size_bytes /= (size_t)s->length;
    s->rooms[i] = clv__allocate(l->allocator, size_bytes);
    if (s->rooms[i] == NULL) return clv__error_memory(l->error, size_bytes);
  }
  return CLV_OK;
}

static clv_status scan_iterate(const clv_graph *graph, clv_node_id id, loop *l, scan *s, const clv_tensor *inputs,
                               clv_tensor *outputs) {
  clv__attributes attributes = l->node->attributes;
  size_t direction_count, axis_count, reverse_count;
  const char *name = l->node->opset < 9 ? "directions" : "scan_input_directions";
  const int64_t *directions = clv__attribute_ints(attributes, name, &direction_count);
  const int64_t *axes = clv__attribute_ints(attributes, "scan_output_axes", &axis_count);
  const int64_t *reverse = clv__attribute_ints(attributes, "scan_output_directions", &reverse_count);
  CLV__TRY(scan_prepare(l, s, inputs));
  for (uint32_t i = 0; i < l->carried_count; ++i) l->state[i] = inputs[i];
  for (int64_t step = 0; step < s->length; ++step) {
    for (uint32_t i = 0; i < l->carried_count; ++i) l->arguments[i] = l->state[i];
    for (uint32_t i = 0; i < s->input_count; ++i) {
      int64_t index = listed(directions, direction_count, i) != 0 ? s->length - 1 - step : step;
      take_slice(&inputs[l->carried_count + i], s->axes[i], index, &l->arguments[l->carried_count + i], s->rooms[i]);
    }
    CLV__TRY(loop_step(l, 0));
    release_tensors(l->results, l->body->output_count, l->allocator);
  }
  if (s->length == 0 && l->scan_count > 0) {
    CLV__TRY(empty_slices(l, graph, id, inputs, axis_count >= l->scan_count ? axes : NULL));
  }
  CLV__TRY(loop_results(l, outputs));
  for (uint32_t i = 0; i < l->scan_count; ++i) {
    if (l->node->outputs[l->carried_count + i] == CLV__NO_ID) continue;
    CLV__TRY(clv__stack_finish(&l->stacks[i], (int32_t)listed(axes, axis_count, i), listed(reverse, reverse_count, i) != 0,
                               &outputs[l->carried_count + i], l->allocator, l->error));
  }
  return CLV_OK;
}

static clv_status evaluate_scan(const clv_graph *graph, clv_node_id id, loop *l, const clv_tensor *inputs, clv_tensor *outputs) {
  const clv__node *node = l->node;
  uint32_t given = clv__scan_inputs(node);
  int64_t scanned = clv__attribute_int(node->attributes, "num_scan_inputs", 0);
  if (scanned < 1 || scanned > 64 || scanned > given || node->output_count < given - (uint32_t)scanned) {
    return clv__error_set(l->error, CLV_INVALID_MODEL,
                          "it has %u input%s (num_scan_inputs is %lld) and %u output%s; expected 1 to 64 scan inputs, and an "
                          "output for each further input",
                          given, CLV__S(given), (long long)scanned, node->output_count, CLV__S(node->output_count));
  }
  if (l->body->input_count != given || l->body->output_count != node->output_count) {
    return clv__error_set(l->error, CLV_INVALID_MODEL,
                          "it has %u input%s and %u output%s, which do not match the %u input%s and %u output%s of its body",
                          given, CLV__S(given), node->output_count, CLV__S(node->output_count), l->body->input_count,
                          CLV__S(l->body->input_count), l->body->output_count, CLV__S(l->body->output_count));
  }
  scan s = {.input_count = (uint32_t)scanned};
  l->carried_count = given - s.input_count;
  l->scan_count = node->output_count - l->carried_count;
  clv_status status = loop_prepare(l);
  if (status == CLV_OK) status = scan_iterate(graph, id, l, &s, inputs, outputs);
  for (uint32_t i = 0; i < s.input_count; ++i) clv__release(l->allocator, s.rooms[i]);
  return status;
}

clv_status clv__body_iterate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, const clv_tensor *captures,
                             clv_tensor *outputs, const clv__evaluation *how, const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  loop l = {.node = node,
            .body = clv__node_body(node, "body"),
            .captures = captures,
            .how = how,
            .allocator = allocator,
            .error = error};
  if (l.body == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "attribute 'body' is missing");
  bool is_loop = strcmp(node->op, "Loop") == 0;
  clv_status status = is_loop ? evaluate_loop(graph, id, &l, inputs, outputs) : evaluate_scan(graph, id, &l, inputs, outputs);
  loop_finish(&l);
  return status;
}

clv_status clv__body_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  const clv_tensor *captures = inputs + clv__node_explicit_inputs(node);
  if (strcmp(node->op, "If") == 0) return evaluate_if(node, inputs, outputs, how, allocator, error);
  if (strcmp(node->op, "FlexAttention") == 0) {
    return clv__flex_evaluate(graph, id, inputs, outputs, how, allocator, error);
  }
  if (strcmp(node->op, "Scan") == 0 && node->opset < 9) {
    return clv__scan_evaluate_batched(graph, id, inputs, captures, outputs, how, allocator, error);
  }
  return clv__body_iterate(graph, id, inputs, captures, outputs, how, allocator, error);
}
