/* If, Loop and Scan: infers their outputs from their bodies. The caller provides infer_body(), which infers a body. This file
 * prepares the body's inputs and merges its results. */
#include "graph/view.h"
#include "operators/common/dims.h"
#include "operators/control/body.h"

static const clv_graph_view *body_of(const clv__infer *infer, const char *name) {
  const clv_attribute *attribute = clv__attribute_find(infer->attributes, name);
  return attribute != NULL && attribute->kind == CLV_ATTRIBUTE_GRAPH ? attribute->graph : NULL;
}

static clv_status missing_body(clv__infer *infer, const char *name) {
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "graph attribute %s is missing", name);
}

/* Keeps in type `a` only what is equal in type `b`; the rest becomes unknown. */
static void meet(clv_tensor *a, const clv_tensor *b) {
  if (a->dtype != b->dtype) a->dtype = CLV_DTYPE_NONE;
  if (a->rank != b->rank || a->dtype == CLV_DTYPE_NONE) a->rank = CLV_RANK_UNKNOWN;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d]) a->dims[d] = CLV_DIM_UNKNOWN;
  }
}

static bool same_type(const clv_tensor *a, const clv_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d]) return false;
  }
  return true;
}

static clv_status both_branches(clv__infer *infer, const clv_graph_view *then_body, const clv_graph_view *else_body) {
  uint32_t count = infer->output_count;
  clv_tensor *other = clv__allocate(infer->allocator, count * sizeof *other);
  if (other == NULL) return clv__error_memory(infer->error, count * sizeof *other);
  clv_status first = infer->infer_body(infer, then_body, NULL, 0, infer->outputs, count);
  clv_error kept = {0};
  if (first != CLV_OK && infer->error != NULL) kept = *infer->error;
  clv_status second = first == CLV_OUT_OF_MEMORY ? first : infer->infer_body(infer, else_body, NULL, 0, other, count);
  clv_status status = CLV_OK;
  /* A branch whose shapes contradict each other is ignored, because it is probably never taken: models exported with fixed sizes
   * have such branches. */
  if (first == CLV_OUT_OF_MEMORY || second == CLV_OUT_OF_MEMORY) {
    status = CLV_OUT_OF_MEMORY;
  } else if (first != CLV_OK && second != CLV_OK) {
    status = first;
    if (infer->error != NULL) *infer->error = kept;
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      if (first != CLV_OK)
        infer->outputs[i] = other[i];
      else if (second == CLV_OK)
        meet(&infer->outputs[i], &other[i]);
    }
  }
  clv__release(infer->allocator, other);
  return status;
}

static clv_status infer_if(clv__infer *infer) {
  const clv_graph_view *then_body = body_of(infer, "then_branch"), *else_body = body_of(infer, "else_branch");
  const clv_tensor *condition = &infer->inputs[0];
  size_t count;
  if (then_body == NULL) return missing_body(infer, "then_branch");
  if (else_body == NULL) return missing_body(infer, "else_branch");
  if (condition->dtype != CLV_BOOL) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the condition is %s; expected bool",
                          clv_dtype_name(condition->dtype));
  }
  if (infer->infer_body == NULL) return CLV_OK;
  if (condition->data != NULL && clv__tensor_count(condition, &count) && count == 1) {
    bool taken = *(const uint8_t *)condition->data != 0;
    return infer->infer_body(infer, taken ? then_body : else_body, NULL, 0, infer->outputs, infer->output_count);
  }
  return both_branches(infer, then_body, else_body);
}

/* ---- Loop and Scan ------------------------------------------------------------------------------------------------------- */

/* Infers a body whose state may change its shape between iterations. Repeats the inference with the dims or rank that changed set
 * to unknown, until the types no longer change. `arguments` are the body's inputs, with the state from `first_state` on;
 * `results` are its outputs, with the state from `first_result` on. */
static clv_status infer_until_stable(clv__infer *infer, const clv_graph_view *body, clv_tensor *arguments,
                                     uint32_t argument_count, uint32_t first_state, clv_tensor *results, uint32_t result_count,
                                     uint32_t first_result, uint32_t state_count) {
  for (int round = 0; round < 3; ++round) {
    CLV__TRY(infer->infer_body(infer, body, arguments, argument_count, results, result_count));
    bool settled = true;
    for (uint32_t i = 0; i < state_count; ++i) {
      clv_tensor *state = &arguments[first_state + i], before = *state;
      meet(state, &results[first_result + i]);
      if (state->dtype == CLV_DTYPE_NONE) state->dtype = before.dtype;
      if (round > 0 && !same_type(&before, state)) state->rank = CLV_RANK_UNKNOWN;
      settled = settled && same_type(&before, state);
    }
    if (settled) return CLV_OK;
  }
  return CLV_OK;
}

/* Allocates `count` zeroed tensor types. */
static clv_status make_room(clv__infer *infer, uint32_t count, clv_tensor **room) {
  *room = clv__allocate_zero(infer->allocator, count * sizeof **room);
  return *room != NULL ? CLV_OK : clv__error_memory(infer->error, count * sizeof **room);
}

/* Sets the type of a scan output, which stacks `length` slices that the body returns along a new axis. */
static clv_status set_stacked(clv__infer *infer, uint32_t output, const clv_tensor *slice, int64_t axis, int64_t length) {
  if (slice->rank < 0) {
    clv__infer_set(infer, output, slice->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  CLV__TRY(clv__infer_rank(infer, slice->rank + 1));
  int32_t at;
  CLV__TRY(clv__infer_axis(infer, axis, slice->rank + 1, &at));
  int64_t dims[CLV_MAX_RANK];
  for (int32_t d = 0, from = 0; d <= slice->rank; ++d) dims[d] = d == at ? length : slice->dims[from++];
  clv__infer_set(infer, output, slice->dtype, slice->rank + 1, dims);
  return CLV_OK;
}

/* The number of iterations, if the trip count alone determines it; otherwise CLV_DIM_UNKNOWN. */
static int64_t trip_count(const clv__infer *infer) {
  size_t count;
  if (!clv__infer_has(infer, 0) || clv__infer_has(infer, 1)) return CLV_DIM_UNKNOWN;
  const clv_tensor *trips = &infer->inputs[0];
  if (trips->data == NULL || !clv__tensor_count(trips, &count) || count != 1) return CLV_DIM_UNKNOWN;
  int64_t number = clv__tensor_get_int(trips, 0);
  return number < 0 ? 0 : number;
}

static clv_status infer_loop(clv__infer *infer) {
  const clv_graph_view *body = body_of(infer, "body");
  if (body == NULL) return missing_body(infer, "body");
  uint32_t state_count = infer->input_count - 2, argument_count = infer->input_count, result_count = infer->output_count + 1;
  if (infer->output_count < state_count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the loop carries %u value%s, but has only %u output%s", state_count,
                          CLV__S(state_count), infer->output_count, CLV__S(infer->output_count));
  }
  if (infer->infer_body == NULL) return CLV_OK;
  const clv_graph *graph = body->graph;
  if (graph->input_count != argument_count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the loop's body has %u input%s; expected %u", graph->input_count,
                          CLV__S(graph->input_count), argument_count);
  }
  clv_tensor *arguments, *results;
  const int64_t one = 1;
  CLV__TRY(make_room(infer, argument_count + result_count, &arguments));
  results = arguments + argument_count;
  arguments[0] = clv__tensor_make(CLV_I64, clv__body_scalar_rank(graph, 0), &one, NULL);
  arguments[1] = clv__tensor_make(CLV_BOOL, clv__body_scalar_rank(graph, 1), &one, NULL);
  for (uint32_t i = 0; i < state_count; ++i) {
    arguments[2 + i] = infer->inputs[2 + i];
    arguments[2 + i].data = NULL; /* valid only in the first iteration */
  }
  clv_status status = infer_until_stable(infer, body, arguments, argument_count, 2, results, result_count, 1, state_count);
  for (uint32_t i = 0; status == CLV_OK && i < state_count; ++i) {
    clv__infer_set(infer, i, arguments[2 + i].dtype, arguments[2 + i].rank, arguments[2 + i].dims);
  }
  for (uint32_t i = state_count; status == CLV_OK && i < infer->output_count; ++i) {
    status = set_stacked(infer, i, &results[1 + i], 0, trip_count(infer));
  }
  clv__release(infer->allocator, arguments);
  return status;
}

static int64_t listed(clv__attributes attributes, const char *name, uint32_t index) {
  size_t count;
  const int64_t *list = clv__attribute_ints(attributes, name, &count);
  return list != NULL && index < count ? list[index] : 0;
}

/* Sets *slice to the type of one slice of scan input `index`. Also merges the number of slices into *length. */
static clv_status scan_slice(clv__infer *infer, uint32_t index, const clv_tensor *input, clv_tensor *slice, int64_t *length) {
  *slice = *input;
  slice->data = NULL;
  if (input->rank < 0) return CLV_OK;
  int32_t axis;
  CLV__TRY(clv__infer_axis(infer, listed(infer->attributes, "scan_input_axes", index), input->rank, &axis));
  if (!clv__dim_merge(*length, input->dims[axis], length)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "scan input %u has %lld slices, but the scan inputs before it have %lld", index,
                          (long long)input->dims[axis], (long long)*length);
  }
  slice->rank--;
  for (int32_t d = axis; d < slice->rank; ++d) slice->dims[d] = input->dims[d + 1];
  return CLV_OK;
}

static clv_status scan_outputs(clv__infer *infer, const clv_graph_view *body, clv_tensor *arguments, uint32_t state_count) {
  clv_tensor *results = arguments + infer->input_count;
  int64_t length = CLV_DIM_UNKNOWN;
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    arguments[i] = infer->inputs[i];
    arguments[i].data = NULL;
    if (i >= state_count) CLV__TRY(scan_slice(infer, i - state_count, &infer->inputs[i], &arguments[i], &length));
  }
  CLV__TRY(infer_until_stable(infer, body, arguments, infer->input_count, 0, results, infer->output_count, 0, state_count));
  for (uint32_t i = 0; i < state_count; ++i) {
    clv__infer_set(infer, i, arguments[i].dtype, arguments[i].rank, arguments[i].dims);
  }
  for (uint32_t i = state_count; i < infer->output_count; ++i) {
    CLV__TRY(set_stacked(infer, i, &results[i], listed(infer->attributes, "scan_output_axes", i - state_count), length));
  }
  return CLV_OK;
}

/* Scan of opset 8. Its inputs are the lengths of the sequences, followed by values. The first axis of every value is the batch;
 * the second axis of scanned values is time. */
static clv_status scan_batched_outputs(clv__infer *infer, const clv_graph_view *body, clv_tensor *arguments,
                                       uint32_t state_count) {
  const uint32_t count = infer->input_count - 1;
  clv_tensor *results = arguments + count;
  int64_t outer[2] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN}; /* sequences, steps */
  for (uint32_t i = 0; i < count; ++i) {
    const clv_tensor *input = &infer->inputs[1 + i];
    const int32_t dropped = i < state_count ? 1 : 2;
    arguments[i] = *input;
    arguments[i].data = NULL;
    if (input->rank < 0) continue;
    if (input->rank < dropped) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u has rank %d; expected at least %d", 1 + i,
                            (int)input->rank, (int)dropped);
    }
    for (int32_t d = 0; d < dropped; ++d) {
      if (clv__dim_merge(outer[d], input->dims[d], &outer[d])) continue;
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u has %lld %s, but the inputs before it have %lld", 1 + i,
                            (long long)input->dims[d], d == 0 ? "sequences" : "steps", (long long)outer[d]);
    }
    arguments[i].rank -= dropped;
    for (int32_t d = 0; d < arguments[i].rank; ++d) arguments[i].dims[d] = input->dims[d + dropped];
  }
  CLV__TRY(infer_until_stable(infer, body, arguments, count, 0, results, infer->output_count, 0, state_count));
  for (uint32_t i = 0; i < infer->output_count; ++i) {
    const clv_tensor *one = i < state_count ? &arguments[i] : &results[i];
    const int32_t added = i < state_count ? 1 : 2;
    int64_t dims[CLV_MAX_RANK] = {outer[0], outer[1]};
    if (one->rank >= 0) CLV__TRY(clv__infer_rank(infer, one->rank + added));
    for (int32_t d = 0; d < one->rank; ++d) dims[d + added] = one->dims[d];
    clv__infer_set(infer, i, one->dtype, one->rank < 0 ? CLV_RANK_UNKNOWN : one->rank + added, dims);
  }
  return CLV_OK;
}

static clv_status infer_scan(clv__infer *infer) {
  const clv_graph_view *body = body_of(infer, "body");
  int64_t scanned = clv__attribute_int(infer->attributes, "num_scan_inputs", 0);
  const bool batched = infer->opset < 9;
  const uint32_t count = infer->input_count - batched; /* number of inputs of the body */
  if (body == NULL) return missing_body(infer, "body");
  if (scanned < 1 || scanned > count || infer->output_count < count - (uint32_t)scanned) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute num_scan_inputs is %lld, which does not fit the node's %u input%s and %u output%s",
                          (long long)scanned, infer->input_count, CLV__S(infer->input_count), infer->output_count,
                          CLV__S(infer->output_count));
  }
  if (infer->infer_body == NULL) return CLV_OK;
  clv_tensor *arguments;
  CLV__TRY(make_room(infer, count + infer->output_count, &arguments));
  clv_status status = batched ? scan_batched_outputs(infer, body, arguments, count - (uint32_t)scanned)
                              : scan_outputs(infer, body, arguments, count - (uint32_t)scanned);
  clv__release(infer->allocator, arguments);
  return status;
}

const clv__op clv__ops_control[] = {
    {"", "If", 1, 1, 1, CLV__ANY_COUNT, CLV__OP_HAS_BODY, infer_if, clv__work_none, NULL},
    {"", "Loop", 2, CLV__ANY_COUNT, 1, CLV__ANY_COUNT, CLV__OP_HAS_BODY, infer_loop, clv__work_none, NULL},
    {"", "Scan", 1, CLV__ANY_COUNT, 1, CLV__ANY_COUNT, CLV__OP_HAS_BODY, infer_scan, clv__work_none, NULL},
    {.name = NULL},
};
