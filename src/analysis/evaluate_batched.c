/* Scan of opset 8: a batch of sequences, each with its own length. The sequences run one at a time, each like a Scan of a current
 * opset. Output beyond the end of a sequence is zero. */
#include "analysis/evaluate_body.h"
#include "analysis/node.h"
#include "analysis/stack.h"

typedef struct batch {
  const clv__node *node;
  const clv_tensor *inputs; /* the node's inputs after the first, which has the lengths of the sequences */
  uint32_t input_count, state_count;
  int64_t sequences, steps;
  const clv_allocator *allocator;
  clv_error *error;
} batch;

uint32_t clv__scan_inputs(const clv__node *node) {
  const uint32_t given = clv__node_explicit_inputs(node);
  return node->opset < 9 && given > 0 ? given - 1 : given;
}

/* Reads the number of sequences and of steps, which must be the same in all inputs. */
static clv_status read_sizes(batch *b) {
  b->sequences = b->steps = -1;
  for (uint32_t i = 0; i < b->input_count; ++i) {
    const clv_tensor *t = &b->inputs[i];
    const bool scanned = i >= b->state_count;
    CLV__TRY(clv__slices_allowed(t, "sequences", b->error));
    if (t->dtype == CLV_DTYPE_NONE || t->rank < (scanned ? 2 : 1)) {
      return clv__error_set(b->error, CLV_INVALID_MODEL, "input %u has no batch axis%s", i + 1,
                            scanned ? " or no step axis" : "");
    }
    if (b->sequences < 0) b->sequences = t->dims[0];
    if (scanned && b->steps < 0) b->steps = t->dims[1];
    if (t->dims[0] != b->sequences || (scanned && t->dims[1] != b->steps)) {
      return clv__error_set(b->error, CLV_INVALID_ARGUMENT,
                            "input %u differs from an earlier input in its number of sequences or steps", i + 1);
    }
  }
  return CLV_OK;
}

static clv_status check_lengths(const batch *b, const clv_tensor *lengths) {
  if (lengths->dtype == CLV_DTYPE_NONE) return CLV_OK;
  if (lengths->dtype != CLV_I64 || lengths->rank != 1 || lengths->dims[0] != b->sequences) {
    char text[96];
    clv__tensor_text(lengths, text, sizeof text);
    return clv__error_set(b->error, CLV_INVALID_ARGUMENT, "the lengths are %s; expected i64[%lld]", text,
                          (long long)b->sequences);
  }
  for (int64_t i = 0; i < b->sequences; ++i) {
    const int64_t length = ((const int64_t *)lengths->data)[i];
    if (length >= 0 && length <= b->steps) continue;
    return clv__error_set(b->error, CLV_INVALID_ARGUMENT,
                          "the length of sequence %lld is %lld; it must be from 0 to %lld, the number of steps", (long long)i,
                          (long long)length, (long long)b->steps);
  }
  return CLV_OK;
}

/* Points `slice` at sequence `at` of input `index`. The slice of a scanned input has only `length` steps. */
static clv_status view_sequence(const batch *b, uint32_t index, int64_t at, int64_t length, clv_tensor *slice) {
  const clv_tensor *whole = &b->inputs[index];
  size_t bytes;
  *slice = *whole;
  slice->rank--;
  for (int32_t d = 0; d < slice->rank; ++d) slice->dims[d] = whole->dims[d + 1];
  if (!clv__tensor_size_bytes(slice, &bytes)) return clv__error_memory(b->error, SIZE_MAX);
  slice->data = (char *)whole->data + (size_t)at * bytes;
  if (index >= b->state_count) slice->dims[0] = length;
  return CLV_OK;
}

/* Copies the result of one sequence into its place in the output. The first result determines the output's type, which all
 * later results must have. */
static clv_status put(const batch *b, uint32_t index, int64_t at, const clv_tensor *result, clv_tensor *output) {
  const bool scanned = index >= b->state_count;
  clv_tensor one = *result;
  size_t bytes, used, total;
  CLV__TRY(clv__slices_allowed(result, "sequences", b->error));
  if (scanned) one.dims[0] = b->steps;
  if (!clv__tensor_size_bytes(&one, &bytes) || !clv__tensor_size_bytes(result, &used) ||
      !clv__multiply(bytes, (size_t)b->sequences, &total)) {
    return clv__error_memory(b->error, SIZE_MAX);
  }
  if (output->data == NULL) {
    if (one.rank + 1 > CLV_MAX_RANK) {
      return clv__error_set(b->error, CLV_NOT_SUPPORTED, "output %u has rank %d, above the maximum of %d", index, one.rank + 1,
                            CLV_MAX_RANK);
    }
    clv_tensor whole = one;
    whole.rank++;
    whole.dims[0] = b->sequences;
    for (int32_t d = 0; d < one.rank; ++d) whole.dims[d + 1] = one.dims[d];
    whole.data = clv__allocate_zero(b->allocator, total);
    if (whole.data == NULL) return clv__error_memory(b->error, total);
    *output = whole;
  }
  bool same = output->dtype == one.dtype && output->rank == one.rank + 1;
  for (int32_t d = 0; same && d < one.rank; ++d) same = output->dims[d + 1] == one.dims[d];
  if (!same) {
    return clv__error_set(b->error, CLV_INVALID_ARGUMENT,
                          "output %u of sequence %lld differs in type from that of the first sequence", index, (long long)at);
  }
  if (used > 0) memcpy((char *)output->data + (size_t)at * bytes, result->data, used);
  return CLV_OK;
}

static clv_status run_all(const batch *b, const clv_graph *graph, clv_node_id id, const clv_tensor *lengths,
                          const clv_tensor *captures, clv_tensor *slices, clv_tensor *outputs, const clv__evaluation *how) {
  clv_tensor *results = slices + b->input_count;
  for (int64_t at = 0; at < b->sequences; ++at) {
    const int64_t length = lengths->dtype != CLV_DTYPE_NONE ? ((const int64_t *)lengths->data)[at] : b->steps;
    for (uint32_t i = 0; i < b->input_count; ++i) CLV__TRY(view_sequence(b, i, at, length, &slices[i]));
    memset(results, 0, b->node->output_count * sizeof *results);
    clv_status status = clv__body_iterate(graph, id, slices, captures, results, how, b->allocator, b->error);
    if (status != CLV_OK) clv__error_prefix(b->error, status, "sequence %lld", (long long)at);
    for (uint32_t i = 0; i < b->node->output_count; ++i) {
      if (status == CLV_OK && b->node->outputs[i] != CLV__NO_ID) status = put(b, i, at, &results[i], &outputs[i]);
      clv__release(b->allocator, results[i].data);
    }
    if (status != CLV_OK) return status;
  }
  return CLV_OK;
}

clv_status clv__scan_evaluate_batched(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs,
                                      const clv_tensor *captures, clv_tensor *outputs, const clv__evaluation *how,
                                      const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  const int64_t scanned = clv__attribute_int(node->attributes, "num_scan_inputs", 0);
  batch b = {.node = node, .inputs = inputs + 1, .input_count = clv__scan_inputs(node), .allocator = allocator, .error = error};
  if (scanned < 1 || scanned > b.input_count || node->output_count < b.input_count - (uint32_t)scanned) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "it has %u state and scan input%s (num_scan_inputs is %lld) and %u output%s, which do not match",
                          b.input_count, CLV__S(b.input_count), (long long)scanned, node->output_count,
                          CLV__S(node->output_count));
  }
  b.state_count = b.input_count - (uint32_t)scanned;
  CLV__TRY(read_sizes(&b));
  CLV__TRY(check_lengths(&b, &inputs[0]));
  if (b.sequences == 0) return clv__error_set(error, CLV_NOT_SUPPORTED, "Scan over an empty batch is not supported");
  const size_t count = (size_t)b.input_count + node->output_count;
  clv_tensor *slices = clv__allocate_zero(allocator, count * sizeof *slices);
  if (slices == NULL) return clv__error_memory(error, count * sizeof *slices);
  clv_status status = run_all(&b, graph, id, &inputs[0], captures, slices, outputs, how);
  clv__release(allocator, slices);
  return status;
}
