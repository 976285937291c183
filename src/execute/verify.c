/* Verification: every partition is run on the reference evaluator's inputs, so that the first wrong partition is the one named,
 * and not one that was fed with its errors. */
#include <math.h>
#include <string.h>

#include "execute/internal.h"
#include "ops/evaluate.h"

/* What may differ, as a share of a value's largest magnitude. Integers and bools must be equal. */
static double tolerance_of(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F64:
      return 1e-9;
    case CLV_F32:
      return 1e-4;
    case CLV_F16:
      return 4e-3;
    case CLV_BF16:
      return 3e-2;
    default:
      return 0;
  }
}

/* What the reference made of each boundary value. */
typedef struct reference {
  clv_session *session;
  clv_tensor *values; /* by value id; data owned, NULL where not needed */
} reference;

static bool is_boundary(const clv_session *session, clv_value_id value) {
  for (uint32_t space = 0; space < session->plan->devices->space_count; ++space) {
    if (clv__session_slot((clv_session *)session, value, space) != NULL) return true;
  }
  return false;
}

static clv_status keep_value(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  reference *ref = cookie;
  size_t size_bytes;
  if (!is_boundary(ref->session, value) || !clv__tensor_size_bytes(tensor, &size_bytes)) return CLV_OK;
  void *copy = clv__allocate(ref->session->allocator, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(copy, tensor->data, size_bytes);
  clv__release(ref->session->allocator, ref->values[value].data);
  ref->values[value] = *tensor;
  ref->values[value].data = copy;
  return CLV_OK;
}

/* Bit for bit: for integers, bools and strings. */
static bool same_element(const clv_tensor *a, const clv_tensor *b, size_t index) {
  size_t element = clv_dtype_size_bytes(a->dtype);
  if (a->dtype != CLV_STRING) return memcmp((char *)a->data + index * element, (char *)b->data + index * element, element) == 0;
  const clv_string *x = (const clv_string *)a->data + index, *y = (const clv_string *)b->data + index;
  return x->size_bytes == y->size_bytes && (x->size_bytes == 0 || memcmp(x->data, y->data, x->size_bytes) == 0);
}

static void compare(const clv_tensor *expected, const clv_tensor *actual, clv__mismatch *worst, bool *differs) {
  size_t count;
  bool is_float = (CLV__DTYPE_BIT(expected->dtype) & CLV__DTYPES_FLOAT) != 0;
  *differs = false;
  if (!clv__tensor_count(expected, &count)) return;
  double largest = 0, gap = -1;
  for (size_t i = 0; i < count; ++i) {
    double value = fabs(clv__tensor_get(expected, i));
    if (isfinite(value) && value > largest) largest = value;
  }
  worst->largest = largest;
  worst->tolerance = tolerance_of(expected->dtype) * largest;
  for (size_t i = 0; i < count; ++i) {
    double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
    if (is_float ? e == a || (isnan(e) && isnan(a)) : same_element(expected, actual, i)) continue;
    double difference = isfinite(e) && isfinite(a) ? fabs(e - a) : INFINITY;
    if (!is_float && difference == 0) difference = 1; /* beyond what a double can tell */
    if (difference <= gap) continue;
    gap = difference;
    worst->element = i;
    worst->expected = e;
    worst->actual = a;
  }
  *differs = gap > worst->tolerance;
}

/* Puts a reference value into the slot a partition reads. */
static clv_status feed(clv_session *session, const clv__device *device, uint32_t device_index, const clv_tensor *value,
                       clv__slot *slot, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(value, &size_bytes)) return CLV_OK;
  session->types[slot->value] = *value;
  session->types[slot->value].data = NULL;
  if (slot->space == CLV__SPACE_HOST) {
    slot->bound = value->data; /* inputs are only read */
    return CLV_OK;
  }
  if (!slot->size_known) CLV__TRY(clv__session_grow_slot(session, slot, size_bytes, error));
  if (size_bytes == 0) return CLV_OK;
  clv_binding binding = clv__session_binding(session, slot);
  return device->backend->copy_in(device->handle, session->streams[device_index], binding.buffer, binding.offset_bytes,
                                  value->data, size_bytes, error);
}

/* Reads what a partition wrote into `copy` (allocated here when it lies on a device). */
static clv_status fetch(clv_session *session, const clv__device *device, uint32_t device_index, clv__slot *slot,
                        clv_tensor *actual, void **copy, clv_error *error) {
  *copy = NULL;
  clv_binding binding = clv__session_binding(session, slot);
  *actual = session->types[slot->value];
  actual->data = binding.type.data;
  size_t size_bytes;
  if (slot->space == CLV__SPACE_HOST || !clv__tensor_size_bytes(actual, &size_bytes)) return CLV_OK;
  *copy = actual->data = clv__allocate(session->allocator, size_bytes);
  if (*copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes == 0) return CLV_OK;
  CLV__TRY(device->backend->copy_out(device->handle, session->streams[device_index], *copy, binding.buffer, binding.offset_bytes,
                                     size_bytes, error));
  return clv__session_wait(session, device_index, error);
}

static clv_status check_output(reference *ref, const clv__partition *partition, clv_value_id value, clv__mismatch *mismatch,
                               bool *differs, clv_error *error) {
  clv_session *session = ref->session;
  const clv__device *device = &session->plan->devices->items[partition->device];
  clv__slot *slot = clv__session_slot(session, value, device->space);
  const clv_tensor *expected = &ref->values[value];
  clv_tensor actual;
  void *copy;
  *differs = false;
  clv_status status = fetch(session, device, partition->device, slot, &actual, &copy, error);
  if (status == CLV_OK && expected->data != NULL) {
    clv_tensor expected_type = *expected, actual_type = actual;
    if (!clv__tensor_same_type(&expected_type, &actual_type)) {
      char is[160], should[160];
      clv__tensor_text(&actual, is, sizeof is);
      clv__tensor_text(expected, should, sizeof should);
      status = clv__error_set(error, CLV_INTERNAL_ERROR, "'%s' came out as %s, the reference has %s",
                              session->plan->graph->values[value].name, is, should);
    } else {
      compare(expected, &actual, mismatch, differs);
    }
  }
  clv__release(session->allocator, copy);
  return status;
}

static clv_status verify_partition(reference *ref, uint32_t index, clv__mismatch *mismatch, bool *differs, clv_error *error) {
  clv_session *session = ref->session;
  const clv__partition *partition = &session->plan->partitions[index];
  const clv__device *device = &session->plan->devices->items[partition->device];
  const clv_graph_view *view = partition->view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id value = view->values[view->inputs[i]];
    const clv_tensor *streamed = &session->plan->shapes->types[value]; /* a weight: the reference makes none */
    CLV__TRY(feed(session, device, partition->device, streamed->data != NULL ? streamed : &ref->values[value],
                  clv__session_slot(session, value, device->space), error));
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv__slot *slot = clv__session_slot(session, view->values[view->outputs[i]], device->space);
    if (!slot->is_external) slot->bound = NULL;
  }
  CLV__TRY(clv__session_execute_partition(session, index, error));
  CLV__TRY(clv__session_wait(session, partition->device, error));
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id value = view->values[view->outputs[i]];
    CLV__TRY(check_output(ref, partition, value, mismatch, differs, error));
    if (!*differs) continue;
    mismatch->partition = index;
    mismatch->value = value;
    return CLV_OK;
  }
  return CLV_OK;
}

static clv_status run_reference(reference *ref, const clv_tensor *inputs, clv_error *error) {
  clv_session *session = ref->session;
  const clv_graph *graph = session->plan->graph;
  clv_tensor *outputs = clv__allocate_zero(session->allocator, graph->output_count * sizeof *outputs);
  if (outputs == NULL) return clv__error_memory(error, graph->output_count * sizeof *outputs);
  clv_status status = clv__graph_evaluate(graph, inputs, NULL, outputs, keep_value, ref, session->allocator, error);
  for (uint32_t i = 0; status == CLV_OK && i < graph->output_count; ++i) clv__release(session->allocator, outputs[i].data);
  clv__release(session->allocator, outputs);
  for (uint32_t i = 0; status == CLV_OK && i < graph->input_count; ++i) {
    const clv_tensor *input = inputs[i].dtype != CLV_DTYPE_NONE ? &inputs[i] : &graph->values[graph->inputs[i]].type;
    status = keep_value(ref, graph->inputs[i], input, error);
  }
  return status == CLV_OK ? status : clv__error_prefix(error, status, "reference");
}

clv_status clv__session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv__mismatch *mismatch,
                               clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  *mismatch = (clv__mismatch){.partition = CLV__NO_ID};
  CLV__TRY(clv__session_bind_inputs(session, inputs, input_count, error));
  reference ref = {session, clv__allocate_zero(session->allocator, graph->value_count * sizeof(clv_tensor))};
  if (ref.values == NULL) return clv__error_memory(error, graph->value_count * sizeof(clv_tensor));
  clv_status status = run_reference(&ref, inputs, error);
  bool differs = false;
  for (uint32_t p = 0; status == CLV_OK && !differs && p < session->plan->partition_count; ++p) {
    status = verify_partition(&ref, p, mismatch, &differs, error);
    if (status != CLV_OK) {
      clv__error_prefix(error, status, "verify");
      (void)clv__session_wait(session, session->plan->partitions[p].device, NULL); /* it may still read the reference's memory */
    }
    ++mismatch->partitions_checked;
  }
  for (uint32_t i = 0; i < session->slot_count; ++i) session->slots[i].bound = NULL; /* the reference's memory goes now */
  for (uint32_t v = 0; v < graph->value_count; ++v) clv__release(session->allocator, ref.values[v].data);
  clv__release(session->allocator, ref.values);
  return status;
}
