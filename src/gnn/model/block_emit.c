/* Emits the nodes of a layer's stages. However a layer is divided into blocks, it computes the same sums in the same order.
 * Scaling before or after the gather gives bit-identical numbers. */
#include <stdio.h>
#include <string.h>

#include "gnn/model/block_emit.h"

typedef struct operands {
  clv_value_id items[4];
  uint32_t count;
} operands;

/* ---- Values and nodes ---- */

static clv_tensor value_type(const clv__emitter *emitter, clv__layer_value value) {
  clv__value_shape shape = clv__layer_value_shape(emitter->stages, value);
  const int64_t dims[] = {emitter->dims[shape.dimension], shape.columns};
  return clv__tensor_make(shape.dtype, shape.columns == 0 ? 1 : 2, dims, NULL);
}

clv_value_id clv__emit_value(clv__emitter *emitter, clv__layer_value value) {
  clv_value_id *id = &emitter->ids[value];
  if (*id != CLV__NO_ID || emitter->status != CLV_OK) return *id;
  emitter->status = clv__builder_value(emitter->builder, clv__layer_value_name(value), id, emitter->error);
  if (emitter->status != CLV_OK) return *id;
  clv_tensor type = value_type(emitter, value);
  clv__builder_type(emitter->builder, *id, &type);
  return *id;
}

static clv_value_id value(clv__emitter *emitter, clv__layer_value which) {
  return clv__emit_value(emitter, which);
}

/* An intermediate value between two nodes. */
static clv_value_id between(clv__emitter *emitter) {
  char name[64];
  clv_value_id id = CLV__NO_ID;
  snprintf(name, sizeof name, "%s.%u", emitter->prefix, emitter->made++);
  if (emitter->status == CLV_OK) emitter->status = clv__builder_value(emitter->builder, name, &id, emitter->error);
  return id;
}

static void add_node(clv__emitter *emitter, const char *domain, const char *op, operands inputs, clv_value_id output,
                     const clv_attribute *attribute) {
  char name[64];
  if (emitter->status != CLV_OK) return;
  snprintf(name, sizeof name, "%s.%u.%s", emitter->prefix, emitter->made++, op);
  emitter->status = clv__builder_node(emitter->builder, name, domain, op, inputs.items, inputs.count, &output, 1, attribute,
                                      attribute != NULL, emitter->error);
}

static clv_value_id node(clv__emitter *emitter, const char *op, operands inputs) {
  clv_value_id output = between(emitter);
  add_node(emitter, "", op, inputs, output, NULL);
  return output;
}
#define NODE1(op, a) node(emitter, op, (operands){{a}, 1})
#define NODE2(op, a, b) node(emitter, op, (operands){{a, b}, 2})
#define NODE3(op, a, b, c) node(emitter, op, (operands){{a, b, c}, 3})

/* Emits a node that computes a value of the layer. */
static void finish_as(clv__emitter *emitter, const char *op, operands inputs, clv__layer_value which) {
  add_node(emitter, "", op, inputs, value(emitter, which), NULL);
}

static clv_value_id constant(clv__emitter *emitter, const char *name, const clv_tensor *tensor) {
  clv_value_id id = CLV__NO_ID;
  if (emitter->status == CLV_OK) emitter->status = clv__builder_value(emitter->builder, name, &id, emitter->error);
  if (emitter->status == CLV_OK) clv__builder_type(emitter->builder, id, tensor);
  return id;
}

/* Copies a small numeric constant into the graph. */
static clv_value_id small(clv__emitter *emitter, clv_dtype dtype, int32_t rank, int64_t count, const void *data) {
  char name[64];
  size_t size_bytes = (size_t)count * clv_dtype_size_bytes(dtype);
  clv_tensor tensor =
      clv__tensor_make(dtype, rank, &count, clv__arena_copy(clv__builder_arena(emitter->builder), data, size_bytes));
  if (tensor.data == NULL && emitter->status == CLV_OK) emitter->status = clv__error_memory(emitter->error, size_bytes);
  snprintf(name, sizeof name, "%s.%u.constant", emitter->prefix, emitter->made++);
  return constant(emitter, name, &tensor);
}

static clv_value_id numbers(clv__emitter *emitter, int64_t count, const int64_t *items) {
  return small(emitter, CLV_I64, 1, count, items);
}

static clv_value_id cast(clv__emitter *emitter, clv_value_id from, clv_dtype to) {
  int64_t code = to;
  const int64_t *kept = clv__arena_copy(clv__builder_arena(emitter->builder), &code, sizeof code);
  clv_value_id output = between(emitter);
  if (kept == NULL && emitter->status == CLV_OK) emitter->status = clv__error_memory(emitter->error, sizeof code);
  const clv_attribute attribute = {.name = "to", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = kept};
  add_node(emitter, "", "Cast", (operands){{from}, 1}, output, &attribute);
  return output;
}

/* Convert rows from the storage dtype to f32 for computing, and back. */
static clv_value_id widen(clv__emitter *emitter, clv_value_id from) {
  return emitter->stages->storage == CLV_F32 ? from : cast(emitter, from, CLV_F32);
}
static clv_value_id narrow(clv__emitter *emitter, clv_value_id from) {
  return emitter->stages->storage == CLV_F32 ? from : cast(emitter, from, emitter->stages->storage);
}

/* Gives a computed value the name of a layer value. */
static void pass_on(clv__emitter *emitter, clv_value_id from, clv__layer_value as) {
  finish_as(emitter, "Identity", (operands){{from}, 1}, as);
}

/* Multiplies rows by a weight in state_dict's layout, [columns of the result, columns]. `bias` may be absent. */
static void multiply(clv__emitter *emitter, clv_value_id rows, const char *name, const clv_tensor *weight, const clv_tensor *bias,
                     clv_value_id output) {
  static const int64_t one[] = {1};
  static const clv_attribute transposed = {.name = "transB", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = one};
  operands inputs = {{rows, constant(emitter, name, weight)}, 2};
  if (bias != NULL && bias->dtype != CLV_DTYPE_NONE) inputs.items[inputs.count++] = constant(emitter, "bias", bias);
  add_node(emitter, "", "Gemm", inputs, output, &transposed);
}

/* Like multiply(), but into a layer value of the storage dtype. */
static void multiply_stored(clv__emitter *emitter, clv_value_id rows, const char *name, const clv_tensor *weight,
                            clv__layer_value as) {
  if (emitter->stages->storage == CLV_F32) {
    multiply(emitter, rows, name, weight, NULL, value(emitter, as));
    return;
  }
  clv_value_id wide = between(emitter);
  multiply(emitter, rows, name, weight, NULL, wide);
  pass_on(emitter, narrow(emitter, wide), as);
}

/* ---- Aggregation ---- */

static void aggregate_into(clv__emitter *emitter, clv_value_id data, clv_value_id sources, const char *how, clv_value_id output) {
  clv_string *text = clv__arena_allocate(clv__builder_arena(emitter->builder), sizeof *text);
  if (text == NULL) {
    if (emitter->status == CLV_OK) emitter->status = clv__error_memory(emitter->error, sizeof *text);
    return;
  }
  *text = (clv_string){how, strlen(how)};
  const clv_attribute reduce = {.name = "reduce", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = text};
  operands inputs = {{data, value(emitter, CLV__VALUE_OFFSETS), sources}, 3};
  add_node(emitter, "ai.cleave", "SparseAggregate", inputs, output, &reduce);
}

static clv_value_id aggregate(clv__emitter *emitter, clv_value_id data, clv_value_id sources, const char *how) {
  clv_value_id output = between(emitter);
  aggregate_into(emitter, data, sources, how, output);
  return output;
}

/* Sums (or averages) rows as the layer defines it: scaled for GCN, in f32. */
static void aggregate_as(clv__emitter *emitter, clv_value_id data, clv_value_id sources, const char *how, clv__layer_value as) {
  const clv__stages *stages = emitter->stages;
  if (stages->type == CLV__GNN_GCN) {
    clv_value_id sum = widen(emitter, aggregate(emitter, data, sources, how));
    finish_as(emitter, "Mul", (operands){{sum, value(emitter, CLV__VALUE_OWN_SCALE)}, 2}, as);
  } else if (stages->storage != CLV_F32) {
    pass_on(emitter, widen(emitter, aggregate(emitter, data, sources, how)), as);
  } else {
    aggregate_into(emitter, data, sources, how, value(emitter, as));
  }
}

static clv__layer_value gathered_rows(const clv__stages *stages) {
  return stages->transform_first ? CLV__VALUE_PROJECTED : CLV__VALUE_ROWS;
}

static void emit_attention(clv__emitter *emitter) {
  clv_value_id inputs[] = {value(emitter, CLV__VALUE_PROJECTED), narrow(emitter, value(emitter, CLV__VALUE_SOURCE_SCORE)),
                           narrow(emitter, value(emitter, CLV__VALUE_TARGET_SCORE)), value(emitter, CLV__VALUE_OFFSETS),
                           value(emitter, CLV__VALUE_SOURCES)};
  clv_value_id stored = emitter->stages->storage == CLV_F32 ? value(emitter, CLV__VALUE_SUM) : between(emitter);
  if (emitter->status == CLV_OK)
    emitter->status = clv__builder_node(emitter->builder, "attention", "ai.cleave", "SparseAttention", inputs, 5, &stored, 1,
                                        NULL, 0, emitter->error);
  if (emitter->stages->storage != CLV_F32) pass_on(emitter, widen(emitter, stored), CLV__VALUE_SUM);
}

/* Emits a fused step: one pass over the edges. */
static void emit_fused(clv__emitter *emitter, const clv__layer_step *step) {
  const clv__stages *stages = emitter->stages;
  if (stages->type == CLV__GNN_GAT) {
    emit_attention(emitter);
    return;
  }
  clv_value_id rows = value(emitter, gathered_rows(stages));
  if (stages->type == CLV__GNN_GCN) rows = narrow(emitter, NODE2("Mul", widen(emitter, rows), value(emitter, CLV__VALUE_SCALE)));
  bool is_mean = stages->items[step->last - 1] == CLV__STAGE_NORMALIZE;
  aggregate_as(emitter, rows, value(emitter, CLV__VALUE_SOURCES), is_mean ? "mean" : "sum",
               is_mean ? CLV__VALUE_MEAN : CLV__VALUE_SUM);
}

/* Computes row lengths: the differences between consecutive offsets. */
static void emit_reduce_count(clv__emitter *emitter) {
  static const int64_t zero[] = {0}, one[] = {1}, minus[] = {-1}, end[] = {INT64_MAX};
  clv_value_id offsets = value(emitter, CLV__VALUE_OFFSETS), first = numbers(emitter, 1, one);
  clv_value_id ends = NODE3("Slice", offsets, first, numbers(emitter, 1, end));
  clv_value_id begins = NODE3("Slice", offsets, numbers(emitter, 1, zero), numbers(emitter, 1, minus));
  clv_value_id lengths = cast(emitter, NODE2("Sub", ends, begins), CLV_F32);
  finish_as(emitter, "Unsqueeze", (operands){{lengths, first}, 2}, CLV__VALUE_COUNT);
}

static void emit_normalize(clv__emitter *emitter) {
  static const float one = 1;
  clv_value_id least = NODE2("Max", value(emitter, CLV__VALUE_COUNT), small(emitter, CLV_F32, 0, 1, &one));
  clv_value_id share = NODE1("Reciprocal", least);
  finish_as(emitter, "Mul", (operands){{value(emitter, CLV__VALUE_SUM), share}, 2}, CLV__VALUE_MEAN);
}

/* ---- Steps per vertex ---- */

/* Uses a . (W x) = (W^T a) . x to compute the scores of all heads with one product, [heads, in]. */
static clv_tensor fold_scores(clv__emitter *emitter, const clv_tensor *attention) {
  const clv__gnn_layer *layer = emitter->stages->layer;
  const int64_t dims[] = {layer->heads, layer->in};
  clv_tensor folded = clv__tensor_make(CLV_F32, 2, dims, NULL);
  float *to = clv__arena_allocate_data(clv__builder_arena(emitter->builder), (size_t)layer->heads * layer->in * sizeof *to);
  folded.data = to;
  if (to == NULL) {
    if (emitter->status == CLV_OK) emitter->status = clv__error_memory(emitter->error, (size_t)layer->in * sizeof *to);
    return folded;
  }
  const float *weight = layer->neighbour.data, *by = attention->data;
  for (uint32_t h = 0; h < layer->heads; ++h) {
    for (uint32_t f = 0; f < layer->in; ++f) {
      double sum = 0;
      for (uint32_t c = 0; c < layer->out; ++c) {
        size_t row = (size_t)h * layer->out + c;
        sum += (double)by[row] * (double)weight[row * layer->in + f];
      }
      to[(size_t)h * layer->in + f] = (float)sum;
    }
  }
  return folded;
}

static void emit_transform(clv__emitter *emitter) {
  const clv__stages *stages = emitter->stages;
  const clv__gnn_layer *layer = stages->layer;
  if (stages->type == CLV__GNN_GAT) {
    clv_tensor source = fold_scores(emitter, &layer->att_src), target = fold_scores(emitter, &layer->att_dst);
    if (emitter->status != CLV_OK) return;
    clv_value_id rows = widen(emitter, value(emitter, CLV__VALUE_ROWS));
    clv_value_id own = widen(emitter, value(emitter, CLV__VALUE_OWN));
    multiply_stored(emitter, rows, "neighbour", &layer->neighbour, CLV__VALUE_PROJECTED);
    multiply(emitter, rows, "att_src", &source, NULL, value(emitter, CLV__VALUE_SOURCE_SCORE));
    multiply(emitter, own, "att_dst", &target, NULL, value(emitter, CLV__VALUE_TARGET_SCORE));
  } else if (stages->transform_first) {
    clv_value_id rows = widen(emitter, value(emitter, CLV__VALUE_ROWS));
    multiply_stored(emitter, rows, "neighbour", &layer->neighbour, CLV__VALUE_PROJECTED);
    if (stages->type == CLV__GNN_GCN) return;
    clv_value_id own = widen(emitter, value(emitter, CLV__VALUE_OWN));
    multiply(emitter, own, "self", &layer->self, &layer->bias, value(emitter, CLV__VALUE_OWN_PROJECTED));
  } else if (stages->type == CLV__GNN_GCN) {
    multiply(emitter, value(emitter, CLV__VALUE_SUM), "neighbour", &layer->neighbour, &layer->bias,
             value(emitter, CLV__VALUE_TRANSFORMED));
  } else {
    clv_value_id neighbour = between(emitter), self = between(emitter);
    multiply(emitter, value(emitter, CLV__VALUE_MEAN), "neighbour", &layer->neighbour, &layer->bias, neighbour);
    multiply(emitter, widen(emitter, value(emitter, CLV__VALUE_OWN)), "self", &layer->self, NULL, self);
    finish_as(emitter, "Add", (operands){{neighbour, self}, 2}, CLV__VALUE_TRANSFORMED);
  }
}

static void emit_activate(clv__emitter *emitter) {
  static const char *const ops[] = {[CLV__GNN_NONE] = "Identity", [CLV__GNN_RELU] = "Relu", [CLV__GNN_ELU] = "Elu"};
  const clv__stages *stages = emitter->stages;
  const clv__gnn_layer *layer = stages->layer;
  clv_value_id at;
  if (!stages->transform_first) {
    at = value(emitter, CLV__VALUE_TRANSFORMED);
  } else if (stages->type == CLV__GNN_SAGE) {
    at = NODE2("Add", value(emitter, CLV__VALUE_MEAN), value(emitter, CLV__VALUE_OWN_PROJECTED));
  } else {
    at = value(emitter, CLV__VALUE_SUM);
    if (stages->type == CLV__GNN_GAT && !layer->concat && layer->heads > 1) {
      const int64_t apart[] = {0, layer->heads, layer->out}, together[] = {0, layer->out};
      static const int64_t axis[] = {1};
      at = NODE2("Reshape", at, numbers(emitter, 3, apart));
      at = NODE2("ReduceMean", at, numbers(emitter, 1, axis));
      at = NODE2("Reshape", at, numbers(emitter, 2, together));
    }
    if (layer->bias.dtype != CLV_DTYPE_NONE) at = NODE2("Add", at, constant(emitter, "bias", &layer->bias));
  }
  finish_as(emitter, ops[layer->activation], (operands){{at}, 1}, CLV__VALUE_RESULT);
}

static void emit_scale(clv__emitter *emitter, clv__layer_value degrees, clv__layer_value as) {
  finish_as(emitter, "Reciprocal", (operands){{NODE1("Sqrt", value(emitter, degrees))}, 1}, as);
}

/* ---- Steps per edge, if another block computes the sums ---- */

static void emit_gather(clv__emitter *emitter) {
  clv_value_id sources = value(emitter, CLV__VALUE_SOURCES), rows = value(emitter, gathered_rows(emitter->stages));
  finish_as(emitter, "Gather", (operands){{rows, sources}, 2}, CLV__VALUE_GATHERED);
  if (emitter->stages->type == CLV__GNN_GCN)
    finish_as(emitter, "Gather", (operands){{value(emitter, CLV__VALUE_SCALE), sources}, 2}, CLV__VALUE_GATHERED_SCALE);
}

static void emit_message(clv__emitter *emitter) {
  clv_value_id gathered = value(emitter, CLV__VALUE_GATHERED);
  if (emitter->stages->type == CLV__GNN_SAGE) {
    pass_on(emitter, gathered, CLV__VALUE_MESSAGES);
    return;
  }
  operands inputs = {{widen(emitter, gathered), value(emitter, CLV__VALUE_GATHERED_SCALE)}, 2};
  if (emitter->stages->storage == CLV_F32) {
    finish_as(emitter, "Mul", inputs, CLV__VALUE_MESSAGES);
  } else {
    pass_on(emitter, narrow(emitter, node(emitter, "Mul", inputs)), CLV__VALUE_MESSAGES);
  }
}

static void emit_gather_both(clv__emitter *emitter) {
  finish_as(emitter, "Gather", (operands){{value(emitter, CLV__VALUE_SOURCE_SCORE), value(emitter, CLV__VALUE_SOURCES)}, 2},
            CLV__VALUE_EDGE_SOURCE_SCORE);
  finish_as(emitter, "Gather", (operands){{value(emitter, CLV__VALUE_TARGET_SCORE), value(emitter, CLV__VALUE_DESTINATIONS)}, 2},
            CLV__VALUE_EDGE_TARGET_SCORE);
}

static void emit_score(clv__emitter *emitter) {
  static const float slope = 0.2f;
  static const clv_attribute alpha = {.name = "alpha", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &slope};
  clv_value_id both = NODE2("Add", value(emitter, CLV__VALUE_EDGE_SOURCE_SCORE), value(emitter, CLV__VALUE_EDGE_TARGET_SCORE));
  add_node(emitter, "", "LeakyRelu", (operands){{both}, 1}, value(emitter, CLV__VALUE_SCORES), &alpha);
}

/* A row with edges sums to at least 1, because its largest term is exp(0). The Max with 1 is for rows without edges. */
static void emit_softmax(clv__emitter *emitter) {
  static const float one = 1;
  clv_value_id scores = value(emitter, CLV__VALUE_SCORES), positions = value(emitter, CLV__VALUE_POSITIONS);
  clv_value_id destinations = value(emitter, CLV__VALUE_DESTINATIONS);
  clv_value_id largest = NODE2("Gather", aggregate(emitter, scores, positions, "max"), destinations);
  clv_value_id power = NODE1("Exp", NODE2("Sub", scores, largest));
  clv_value_id total = aggregate(emitter, power, positions, "sum");
  clv_value_id least = NODE2("Max", total, small(emitter, CLV_F32, 0, 1, &one));
  finish_as(emitter, "Div", (operands){{power, NODE2("Gather", least, destinations)}, 2}, CLV__VALUE_SHARES);
}

static void emit_weighted_message(clv__emitter *emitter) {
  const clv__gnn_layer *layer = emitter->stages->layer;
  const int64_t apart[] = {0, layer->heads, layer->out}, together[] = {0, (int64_t)layer->heads * layer->out};
  static const int64_t axis[] = {2};
  clv_value_id rows = NODE2("Gather", value(emitter, CLV__VALUE_PROJECTED), value(emitter, CLV__VALUE_SOURCES));
  rows = NODE2("Reshape", widen(emitter, rows), numbers(emitter, 3, apart));
  clv_value_id shares = NODE2("Unsqueeze", value(emitter, CLV__VALUE_SHARES), numbers(emitter, 1, axis));
  rows = NODE2("Mul", rows, shares);
  rows = narrow(emitter, NODE2("Reshape", rows, numbers(emitter, 2, together)));
  pass_on(emitter, rows, CLV__VALUE_MESSAGES);
}

void clv__emit_step(clv__emitter *emitter, const clv__layer_step *step) {
  clv__stage stage = emitter->stages->items[step->first];
  emitter->prefix = clv__stage_name(stage);
  if (step->is_fused) {
    emit_fused(emitter, step);
    return;
  }
  switch (stage) {
    case CLV__STAGE_NORMALISE_DEGREE:
      emit_scale(emitter, CLV__VALUE_DEGREES, CLV__VALUE_SCALE);
      emit_scale(emitter, CLV__VALUE_OWN_DEGREES, CLV__VALUE_OWN_SCALE);
      break;
    case CLV__STAGE_GATHER:
      emit_gather(emitter);
      break;
    case CLV__STAGE_GATHER_BOTH:
      emit_gather_both(emitter);
      break;
    case CLV__STAGE_MESSAGE:
      emit_message(emitter);
      break;
    case CLV__STAGE_SCORE:
      emit_score(emitter);
      break;
    case CLV__STAGE_SOFTMAX:
      emit_softmax(emitter);
      break;
    case CLV__STAGE_WEIGHTED_MESSAGE:
      emit_weighted_message(emitter);
      break;
    case CLV__STAGE_REDUCE_SUM:
      aggregate_as(emitter, value(emitter, CLV__VALUE_MESSAGES), value(emitter, CLV__VALUE_POSITIONS), "sum", CLV__VALUE_SUM);
      break;
    case CLV__STAGE_REDUCE_COUNT:
      emit_reduce_count(emitter);
      break;
    case CLV__STAGE_NORMALIZE:
      emit_normalize(emitter);
      break;
    case CLV__STAGE_TRANSFORM:
      emit_transform(emitter);
      break;
    default:
      emit_activate(emitter);
      break;
  }
}
