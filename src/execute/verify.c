/* Verification: every partition runs on the reference evaluator's inputs, so that the report names the first wrong partition, and
 * not a later one that received its errors. A partition with an operator that only its device implements has no reference. The
 * device's result for the reference inputs is passed on instead, and the partition is counted. */
#include <math.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "analysis/rounding.h"
#include "base/hash.h"
#include "base/tensor/compare.h"
#include "execute/session_own.h"

/* The contents that the reference evaluator computes for the values that cross partition boundaries. The memory is from the
 * pool, because a device that is removed may still read it. */
typedef struct reference {
  clv__request *request;
  clv_tensor *values;        /* indexed by value id; `data` is NULL if not needed */
  clv__memory_block *blocks; /* the memory of the values */
} reference;

static clv_status keep_value(reference *ref, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(tensor, &size_bytes)) return CLV_OK;
  clv_devices *devices = ref->request->session->devices;
  clv__memory_pool_free(devices, &ref->blocks[value]);
  ref->values[value].data = NULL;
  CLV__TRY(clv__memory_pool_allocate(devices, CLV__NO_ID, size_bytes, &ref->blocks[value], error));
  if (size_bytes > 0) memcpy(ref->blocks[value].host, tensor->data, size_bytes);
  ref->values[value] = *tensor;
  ref->values[value].data = ref->blocks[value].host;
  return CLV_OK;
}

/* Returns the tolerance of a value. `precision` is the dtype in which the session's devices may compute f32. */
static clv__tolerance tolerance_of(clv_dtype dtype, const clv__rounding *rounding, clv_dtype precision) {
  const bool is_float = clv__dtype_is_in(dtype, CLV__DTYPES_FLOAT), is_coarse = precision != CLV_DTYPE_NONE;
  const bool has_steps = rounding->times > 0 && (is_float || rounding->step > 0);
  clv__tolerance allowed = {.share = clv__dtype_tolerance(dtype)};
  if (is_coarse && (dtype == CLV_F32 || (has_steps && !is_float))) allowed.share = clv__dtype_tolerance(precision);
  if (has_steps) allowed.steps = (uint32_t)ceil(sqrt(rounding->times));
  allowed.step = rounding->step;
  return allowed;
}

/* Compares an output. Keeps the comparison in `check` if it is the partition's worst so far. */
static bool agrees(const clv_tensor *expected, const clv_tensor *actual, const clv__tolerance *allowed, clv_value_id value,
                   clv__partition_check *check) {
  clv__difference difference;
  const bool agree = clv__tensor_agrees_within(expected, actual, allowed, &difference);
  const clv__difference *worst = &check->difference;
  if (check->value == CLV__NO_ID || !agree || difference.difference * worst->tolerance > worst->difference * difference.tolerance)
    *check = (clv__partition_check){value, *allowed, difference};
  return agree;
}

/* If a copy for the partition failed, names the partition in the error. */
static clv_status copy_status(const clv__request *request, uint32_t partition, clv_status status, clv_error *error) {
  return status == CLV_OK ? status : clv__partition_failed(request, partition, status, error);
}

static clv_status copy_in(clv__request *request, uint32_t device, const clv_tensor *value, bool is_constant, clv__slot *slot,
                          clv_error *error) {
  clv_stream *stream;
  CLV__TRY(clv__request_stream(request, 2 * device, &stream, error));
  return clv__request_blame(request, device, clv__slot_copy_in(request, device, stream, slot, value, is_constant, error));
}

static clv_status copy_out(clv__request *request, uint32_t device, const clv_tensor *value, clv__slot *slot, bool *is_uncut,
                           clv_error *error) {
  clv_stream *stream;
  CLV__TRY(clv__request_stream(request, 2 * device, &stream, error));
  return clv__request_blame(request, device, clv__slot_copy_out(request, device, stream, value, slot, is_uncut, error));
}

/* Copies a reference value, or a streamed weight, into the slot that a partition reads. */
static clv_status feed(clv__request *request, uint32_t partition, clv_value_id id, const clv_tensor *value, bool is_constant,
                       clv__slot *slot, clv_error *error) {
  uint32_t device = clv__request_plan(request)->partitions[partition].device;
  size_t size_bytes;
  if (!clv__tensor_size_bytes(value, &size_bytes)) return CLV_OK;
  request->prepared->types[id] = *value;
  request->prepared->types[id].data = NULL;
  if (slot->space == CLV__SPACE_HOST) {
    slot->bound = value->data; /* inputs are only read */
    return CLV_OK;
  }
  if (!slot->size_known) CLV__TRY(clv__prepared_grow_slot(request->prepared, slot, size_bytes, error));
  return copy_status(request, partition, copy_in(request, device, value, is_constant, slot, error), error);
}

/* Reads a partition's output. If it is in device memory, copies it to host memory that this function allocates as `copy`; the
 * caller frees it, even after a failure. */
static clv_status fetch(clv__request *request, uint32_t partition, clv__slot *slot, clv_tensor *actual, clv__memory_block *copy,
                        clv_error *error) {
  uint32_t device = clv__request_plan(request)->partitions[partition].device;
  *copy = (clv__memory_block){0};
  clv_binding binding = clv__prepared_binding(request->prepared, slot);
  *actual = request->prepared->types[slot->value];
  actual->data = binding.type.data;
  size_t size_bytes;
  if (slot->space == CLV__SPACE_HOST || !clv__tensor_size_bytes(actual, &size_bytes)) return CLV_OK;
  CLV__TRY(clv__memory_pool_allocate(request->session->devices, CLV__NO_ID, size_bytes, copy, error));
  actual->data = copy->host;
  if (size_bytes == 0) return CLV_OK;
  bool is_uncut;
  CLV__TRY(copy_status(request, partition, copy_out(request, device, actual, slot, &is_uncut, error), error));
  CLV__TRY(clv__request_synchronize(request, 2 * device, error));
  if (is_uncut) clv__slot_cut(request->prepared, slot, actual);
  return CLV_OK;
}

static clv_status check_output(reference *ref, uint32_t partition, clv_value_id value, const clv__rounding *rounding,
                               clv__partition_check *check, bool *differs, clv_error *error) {
  clv__request *request = ref->request;
  const clv_plan *plan = clv__request_plan(request);
  clv__slot *slot = clv__prepared_slot(request->prepared, value, plan->devices->items[plan->partitions[partition].device].space);
  const clv_tensor *expected = &ref->values[value];
  clv_tensor actual;
  clv__memory_block copy;
  *differs = false;
  clv_status status = fetch(request, partition, slot, &actual, &copy, error);
  if (status == CLV_OK && expected->data == NULL) {
    status = keep_value(ref, value, &actual, error);
  } else if (status == CLV_OK) {
    clv_tensor expected_type = *expected, actual_type = actual;
    if (!clv__tensor_same_type(&expected_type, &actual_type)) {
      char is[160], should[160];
      clv__tensor_text(&actual, is, sizeof is);
      clv__tensor_text(expected, should, sizeof should);
      status = clv__error_set(error, CLV_INTERNAL_ERROR, "'%s' was computed as %s, but the reference has %s",
                              plan->graph->values[value].name, is, should);
    } else {
      const clv__tolerance allowed = tolerance_of(expected->dtype, rounding, request->session->options.precision);
      *differs = !agrees(expected, &actual, &allowed, value, check);
    }
  }
  clv__memory_pool_free(request->session->devices, &copy);
  return status;
}

/* Returns the value that a partition reads: a streamed weight (`is_constant`), or the reference's value. */
static const clv_tensor *input_of(const reference *ref, clv_value_id value, bool *is_constant) {
  const clv_tensor *streamed =
      &clv__request_plan(ref->request)->shapes->types[value]; /* the reference has no copy of a streamed weight */
  *is_constant = streamed->data != NULL;
  return *is_constant ? streamed : &ref->values[value];
}

/* Computes the expected outputs of the partition. */
static clv_status evaluate_partition(reference *ref, const clv_graph_view *view, clv_error *error) {
  const clv_allocator *allocator = ref->request->session->allocator;
  size_t count = (size_t)view->input_count + view->output_count;
  clv_tensor *operands = clv__allocate_zero(allocator, count * sizeof *operands), *outputs = operands + view->input_count;
  bool is_constant;
  if (operands == NULL) return clv__error_memory(error, count * sizeof *operands);
  for (uint32_t i = 0; i < view->input_count; ++i) operands[i] = *input_of(ref, view->values[view->inputs[i]], &is_constant);
  clv_status status = clv__view_evaluate(view, operands, outputs, allocator, error);
  if (status != CLV_OK) clv__error_prefix(error, status, "reference");
  for (uint32_t i = 0; i < view->output_count; ++i) {
    if (status == CLV_OK) status = keep_value(ref, view->values[view->outputs[i]], &outputs[i], error);
    clv__release(allocator, outputs[i].data);
  }
  clv__release(allocator, operands);
  return status;
}

/* Hashes a partition's inputs in host memory. The partition must not change them, because they belong to the reference. */
static void hash_inputs(const reference *ref, const clv__partition *partition, clv__hash *hash) {
  const clv_plan *plan = clv__request_plan(ref->request);
  const clv_graph_view *view = partition->view;
  bool is_host = plan->devices->items[partition->device].space == CLV__SPACE_HOST, is_constant;
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  for (uint32_t i = 0; is_host && i < view->input_count; ++i) {
    const clv_tensor *input = input_of(ref, view->values[view->inputs[i]], &is_constant);
    clv__hash content;
    size_t size_bytes;
    if (!clv__tensor_size_bytes(input, &size_bytes)) continue;
    clv__hash_bytes(input->data, size_bytes, &content);
    clv__hasher_update(&hasher, content.bytes, sizeof content.bytes);
  }
  clv__hasher_finish(&hasher, hash);
}

static clv_status check_inputs(const reference *ref, uint32_t index, const clv__hash *before, clv_error *error) {
  const clv_plan *plan = clv__request_plan(ref->request);
  const clv__partition *partition = &plan->partitions[index];
  clv__hash after;
  hash_inputs(ref, partition, &after);
  if (memcmp(&after, before, sizeof after) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INTERNAL_ERROR, "partition %u on %s overwrote one of its inputs", index,
                        plan->devices->items[partition->device].name);
}

static clv_status check_outputs(reference *ref, uint32_t index, clv__mismatch *mismatch, bool *differs, clv_error *error) {
  clv_session *session = ref->request->session;
  const clv__partition *partition = &clv__request_plan(ref->request)->partitions[index];
  const clv_graph_view *view = partition->view;
  clv__rounding *roundings = clv__allocate_zero(session->allocator, view->value_count * sizeof *roundings);
  if (roundings == NULL) return clv__error_memory(error, view->value_count * sizeof *roundings);
  clv__view_roundings(view, roundings);
  clv__partition_check *check = &session->checks[index];
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && !*differs && i < view->output_count; ++i) {
    const uint32_t output = view->outputs[i];
    status = check_output(ref, index, view->values[output], &roundings[output], check, differs, error);
  }
  if (status == CLV_OK && *differs) {
    const clv__difference *worst = &check->difference;
    mismatch->partition = index;
    mismatch->value = check->value;
    mismatch->element = worst->element;
    mismatch->expected = worst->expected;
    mismatch->actual = worst->actual;
    mismatch->largest = worst->largest;
    mismatch->tolerance = worst->tolerance;
  }
  clv__release(session->allocator, roundings);
  return status;
}

static clv_status verify_partition(reference *ref, uint32_t index, clv__mismatch *mismatch, bool *differs, clv_error *error) {
  clv__request *request = ref->request;
  clv__prepared *prepared = request->prepared;
  const clv_plan *plan = clv__request_plan(request);
  const clv__partition *partition = &plan->partitions[index];
  uint32_t space = plan->devices->items[partition->device].space;
  const clv_graph_view *view = partition->view;
  bool is_known = clv__view_is_known(view);
  mismatch->partitions_unknown += !is_known;
  if (is_known) CLV__TRY(evaluate_partition(ref, view, error));
  if (partition->is_hosted) { /* readers of the views get them from the reference */
    ++mismatch->partitions_hosted;
    return CLV_OK;
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id value = view->values[view->inputs[i]];
    bool is_constant;
    const clv_tensor *input = input_of(ref, value, &is_constant);
    CLV__TRY(feed(request, index, value, input, is_constant, clv__prepared_slot(prepared, value, space), error));
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv__slot *slot = clv__prepared_slot(prepared, view->values[view->outputs[i]], space);
    if (!slot->is_external) slot->bound = NULL;
  }
  clv__hash before;
  hash_inputs(ref, partition, &before);
  request->pending_first = CLV__NO_ID;
  CLV__TRY(clv__request_partition(request, index, error));
  CLV__TRY(clv__request_synchronize(request, 2 * partition->device, error));
  CLV__TRY(copy_status(request, index, clv__stage_finish(&prepared->partitions[index], error), error));
  CLV__TRY(check_inputs(ref, index, &before, error));
  return check_outputs(ref, index, mismatch, differs, error);
}

static clv_status keep_inputs(reference *ref, const clv_tensor *inputs, clv_error *error) {
  const clv_graph *graph = clv__request_plan(ref->request)->graph;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *input = inputs[i].dtype != CLV_DTYPE_NONE ? &inputs[i] : &graph->values[graph->inputs[i]].type;
    CLV__TRY(keep_value(ref, graph->inputs[i], input, error));
  }
  return CLV_OK;
}

/* Makes room for the comparisons of a verification, in place of those of the last one. */
static clv_status begin_checks(clv_session *session, uint32_t count, clv_error *error) {
  clv__release(session->allocator, session->checks);
  session->checks = clv__allocate_zero(session->allocator, count * sizeof *session->checks);
  if (session->checks == NULL && count > 0) return clv__error_memory(error, count * sizeof *session->checks);
  for (uint32_t p = 0; p < count; ++p) session->checks[p].value = CLV__NO_ID;
  return CLV_OK;
}

static clv_status verify(clv__request *request, const clv_tensor *inputs, clv__poll *poll, clv__mismatch *mismatch,
                         clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const clv_allocator *allocator = request->session->allocator;
  uint32_t count = plan->graph->value_count;
  reference ref = {.request = request,
                   .values = clv__allocate_zero(allocator, count * sizeof *ref.values),
                   .blocks = clv__allocate_zero(allocator, count * sizeof *ref.blocks)};
  clv_status status = ref.values == NULL || ref.blocks == NULL ? clv__error_memory(error, count * sizeof *ref.blocks) : CLV_OK;
  if (status == CLV_OK) status = begin_checks(request->session, plan->partition_count, error);
  if (status == CLV_OK) status = keep_inputs(&ref, inputs, error);
  mismatch->checks = request->session->checks;
  bool differs = false;
  for (uint32_t p = 0; status == CLV_OK && !differs && p < plan->partition_count; ++p) {
    if (clv__poll_stops(poll)) {
      status = clv__error_set(error, CLV_CANCELLED, "verify: stopped before partition %u of %u", p, plan->partition_count);
      break;
    }
    status = verify_partition(&ref, p, mismatch, &differs, error);
    if (status != CLV_OK) {
      clv__error_prefix(error, status, "verify");
      (void)clv__request_synchronize(request, 2 * plan->partitions[p].device,
                                     NULL); /* the device may still read the reference's memory */
    }
    ++mismatch->partitions_checked;
  }
  for (uint32_t i = 0; i < request->prepared->slot_count; ++i) {
    request->prepared->slots[i].bound = NULL; /* the reference's memory is freed now */
  }
  for (uint32_t v = 0; v < count && ref.blocks != NULL; ++v) clv__memory_pool_free(request->session->devices, &ref.blocks[v]);
  clv__release(allocator, ref.blocks);
  clv__release(allocator, ref.values);
  return status;
}

/* The arguments and the result of clv__session_verify(). */
typedef struct asked {
  const clv_tensor *inputs;
  uint32_t input_count;
  clv__poll *poll;
  clv__mismatch *mismatch;
} asked;

static clv_status bind_and_verify(clv__request *request, const void *cookie, clv_error *error) {
  const asked *what = cookie;
  *what->mismatch = (clv__mismatch){.partition = CLV__NO_ID};
  const clv_graph *graph = clv__request_plan(request)->graph;
  CLV__TRY(clv__graph_check_files(graph, error)); /* the reference reads the model's files */
  CLV__TRY(clv__request_bind_inputs(request, what->inputs, what->input_count, error));
  CLV__TRY(verify(request, what->inputs, what->poll, what->mismatch, error));
  return clv__graph_check_files(graph, error);
}

clv_status clv__session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv__poll *poll,
                               clv__mismatch *mismatch, clv_error *error) {
  const asked what = {inputs, input_count, poll, mismatch};
  return clv__session_attempt(session, bind_and_verify, &what, error);
}
