/* FlexAttention with bodies. The scores of all queries and keys pass through the body score_mod, and their softmax passes through
 * the body prob_mod, if the node has them. Each step runs a kernel. */
#include "analysis/evaluate_body.h"
#include "analysis/node.h"
#include "analysis/shapes.h"
#include "operators/run.h"

typedef struct flex {
  const clv__node *node;
  const clv_tensor *inputs; /* aligned; captures last */
  const clv__evaluation *how;
  clv_dtype precision; /* the dtype in which scores are computed and bodies run */
  const clv_allocator *allocator;
  clv_error *error;
} flex;

/* Runs a kernel for its last output only. The caller has set that output's type; its data is allocated here. */
static clv_status run(const flex *f, const char *op, int32_t opset, clv__attributes attributes, const clv_tensor *inputs,
                      uint32_t input_count, clv_tensor *outputs, uint32_t output_count) {
  clv_tensor *output = &outputs[output_count - 1]; /* the outputs before it are not computed */
  size_t size_bytes;
  if (!clv__tensor_size_bytes(output, &size_bytes)) return clv__error_memory(f->error, SIZE_MAX);
  output->data = clv__allocate(f->allocator, size_bytes);
  if (output->data == NULL) return clv__error_memory(f->error, size_bytes);
  const clv__kernel_call call = {.op = op,
                                 .opset = opset,
                                 .attributes = attributes,
                                 .inputs = inputs,
                                 .input_count = input_count,
                                 .outputs = outputs,
                                 .output_count = output_count,
                                 .error = f->error};
  const clv_status status = clv__call_evaluate("", &call, f->how, f->allocator);
  if (status == CLV_OK) return CLV_OK;
  clv__error_prefix(f->error, status, "in its decomposition, %s", op);
  clv__release(f->allocator, output->data);
  output->data = NULL;
  return status;
}

/* Casts `tensor` to another dtype and frees its old data. */
static clv_status cast(const flex *f, clv_tensor *tensor, clv_dtype dtype) {
  if (tensor->dtype == dtype) return CLV_OK;
  const int64_t to = dtype;
  const clv_attribute attribute = {.name = "to", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = &to};
  clv_tensor result = *tensor;
  result.dtype = dtype;
  CLV__TRY(run(f, "Cast", 13, (clv__attributes){&attribute, 1}, tensor, 1, &result, 1));
  clv__release(f->allocator, tensor->data);
  *tensor = result;
  return CLV_OK;
}

/* Replaces `tensor` by the result of body `name`, if the node has that body. */
static clv_status modify(const flex *f, const char *name, clv_tensor *tensor) {
  const clv_graph *body = clv__node_body(f->node, name);
  clv_tensor result = {0};
  if (body == NULL) return CLV_OK;
  if (body->input_count != 1 || body->output_count != 1) {
    return clv__error_set(f->error, CLV_INVALID_MODEL, "its %s has %u input%s and %u output%s; expected one each", name,
                          body->input_count, CLV__S(body->input_count), body->output_count, CLV__S(body->output_count));
  }
  const clv_tensor *captures = f->inputs + clv__node_explicit_inputs(f->node);
  CLV__TRY(clv__graph_evaluate_at(body, tensor, captures, &result, NULL, NULL, f->how, f->allocator, f->error));
  if (!clv__tensor_same_type(&result, tensor)) {
    char given[96], made[96];
    clv__tensor_text(tensor, given, sizeof given);
    clv__tensor_text(&result, made, sizeof made);
    clv__release(f->allocator, result.data);
    return clv__error_set(f->error, CLV_INVALID_ARGUMENT, "its %s produces %s from %s; expected the same type", name, made,
                          given);
  }
  clv__release(f->allocator, tensor->data);
  *tensor = result;
  return CLV_OK;
}

/* Replaces the scores in `shares` by their softmax, applying both bodies. */
static clv_status make_shares(const flex *f, clv_tensor *shares) {
  clv_tensor probabilities;
  CLV__TRY(cast(f, shares, f->precision));
  CLV__TRY(modify(f, "score_mod", shares));
  probabilities = *shares;
  CLV__TRY(run(f, "Softmax", 13, (clv__attributes){NULL, 0}, shares, 1, &probabilities, 1));
  clv__release(f->allocator, shares->data);
  *shares = probabilities;
  return modify(f, "prob_mod", shares);
}

/* Multiplies the shares (probabilities) by the values. The query heads that share a head of V are adjacent in memory, so their
 * queries form the rows of one matrix. */
static clv_status weigh(const flex *f, const clv_tensor *shares, clv_tensor *values, clv_tensor *output) {
  const int64_t heads = values->dims[1];
  clv_tensor factors[2] = {*shares, *values}, product = *values;
  CLV__TRY(cast(f, values, f->precision));
  factors[1] = *values;
  product.dtype = f->precision;
  factors[0].dims[1] = product.dims[1] = heads;
  factors[0].dims[2] = product.dims[2] = heads > 0 ? shares->dims[1] / heads * shares->dims[2] : 0;
  product.data = NULL;
  CLV__TRY(run(f, "MatMul", 13, (clv__attributes){NULL, 0}, factors, 2, &product, 1));
  product.dims[1] = shares->dims[1];
  product.dims[2] = shares->dims[2];
  *output = product;
  return cast(f, output, f->inputs[0].dtype);
}

static clv_status evaluate(const flex *f, clv_tensor *output) {
  const clv_tensor *q = &f->inputs[0], *k = &f->inputs[1];
  clv_tensor attention[4] = {{0}}, *scores = &attention[3], values = {0};
  const clv_attribute *scale = clv__attribute_find(f->node->attributes, "scale");
  const int64_t dims[4] = {q->dims[0], q->dims[1], q->dims[2], k->dims[2]};
  *scores = clv__tensor_make(q->dtype, 4, dims, NULL);
  clv_status status = run(f, "Attention", 23, (clv__attributes){scale, scale != NULL ? 1 : 0}, f->inputs, 3, attention, 4);
  if (status == CLV_OK) status = make_shares(f, scores);
  if (status == CLV_OK) status = clv__tensor_clone(&f->inputs[2], &values, f->allocator, f->error);
  if (status == CLV_OK) status = weigh(f, scores, &values, output);
  clv__release(f->allocator, scores->data);
  clv__release(f->allocator, values.data);
  return status;
}

clv_status clv__flex_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  const uint32_t count = node->input_count;
  clv_tensor *aligned = clv__allocate(allocator, count * sizeof *aligned), type;
  if (aligned == NULL) return clv__error_memory(error, count * sizeof *aligned);
  clv_status status = clv__operands_align(inputs, count, SIZE_MAX, aligned, allocator, error);
  if (status == CLV_OK) {
    status = clv__node_infer(graph, id, aligned, &type, error); /* modify() checks the bodies */
    flex f = {.node = node, .inputs = aligned, .how = how, .allocator = allocator, .error = error};
    const int64_t asked = clv__attribute_int(node->attributes, "softmax_precision", 0);
    f.precision = asked != 0 ? (clv_dtype)asked : aligned[0].dtype == CLV_F64 ? CLV_F64 : CLV_F32;
    if (status == CLV_OK) status = evaluate(&f, &outputs[0]);
    clv__operands_release(inputs, count, aligned, allocator);
  }
  clv__release(allocator, aligned);
  return status;
}
