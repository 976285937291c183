/* See open.h. One walk visits the nodes in order and traces each symbol to the symbol that it is a multiple of. */
#include "analysis/open.h"

#include <string.h>

#include "analysis/node.h"
#include "operators/common/padding.h"

/* For verdicts and prices, one number replaces all open sizes: the first of these that the model accepts. */
static const int64_t typical_sizes[] = {16, 64, 60, 1};

enum { FLOAT_LIMIT = 4096 }; /* largest float constant, in bytes, that a rule may read */

typedef struct finding {
  const clv_graph *graph;
  const clv__shapes *shapes;
  clv__arena *arena;
  uint32_t *base;
  int64_t *factor;
  bool *is_seen; /* by symbol: a value before the current node has a dimension of this size */
  bool *is_zero; /* by value: the elements that padding adds to it are zero, however the graph is split into partitions */
  bool *is_open;
  const char **reasons;
  clv_tensor *operands; /* room for the node with the most operands: inputs, aligned inputs, outputs */
  uint32_t *axes;       /* room for a set of axes per operand of that node: inputs, outputs, and the outputs' computed axes */
  bool *zeros;
  clv_error *error;
} finding;

static bool is_symbol(int64_t dim) {
  return dim < CLV_DIM_UNKNOWN;
}
static uint32_t symbol_of(int64_t dim) {
  return (uint32_t)(-2 - dim);
}

static bool is_fixed(const clv_tensor *type) {
  return type->dtype == CLV_DTYPE_NONE || clv__tensor_is_static(type);
}

int64_t clv__open_size(const clv__open *open, int64_t dim, const int64_t *sizes) {
  int64_t size;
  if (dim >= 0) return dim;
  if (!is_symbol(dim) || symbol_of(dim) >= open->symbol_count) return CLV_DIM_UNKNOWN;
  uint32_t symbol = symbol_of(dim);
  if (sizes[open->base[symbol]] < 0 || __builtin_mul_overflow(sizes[open->base[symbol]], open->factor[symbol], &size))
    return CLV_DIM_UNKNOWN;
  return size;
}

/* ---- One node ---- */

/* The axes of a type (as bits) whose size is `factor` times symbol `base`. */
static uint32_t axes_of(const finding *f, const clv_tensor *type, uint32_t base, int64_t factor) {
  uint32_t axes = 0;
  if (type->dtype == CLV_DTYPE_NONE || type->data != NULL) return 0;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (!is_symbol(type->dims[d])) continue;
    uint32_t symbol = symbol_of(type->dims[d]);
    if (f->base[symbol] == base && f->factor[symbol] == factor) axes |= 1u << d;
  }
  return axes;
}

/* Whether `dim`, the size of axis `axis` of an output, is the multiple of `base` that the node's padding rule predicts. The
 * rule computes it from the size of the input's axis, which is `factor` times `base`. If `dim` is a symbol that inference
 * created and that no earlier value has, records the symbol as this multiple. */
static bool trace(finding *f, const clv__padding *padding, int32_t axis, uint32_t base, int64_t factor, int64_t dim) {
  if (!is_symbol(dim)) return false;
  uint32_t symbol = symbol_of(dim);
  int64_t times;
  if (__builtin_mul_overflow(factor, padding->times[axis], &times) || times % padding->over[axis] != 0) return false;
  times /= padding->over[axis];
  if (!f->is_seen[symbol] && symbol >= f->graph->symbol_count) {
    f->base[symbol] = base;
    f->factor[symbol] = times;
    f->is_seen[symbol] = true;
  }
  return f->base[symbol] == base && f->factor[symbol] == times;
}

/* Whether the node is independent (padding.h) along the input axes whose size is `factor` times `base`. If so, adds the output
 * axes that get their size from these input axes to `covered`. */
static bool ask(finding *f, clv__padding *padding, uint32_t base, int64_t factor, uint32_t *inputs, uint32_t *covered) {
  const clv__infer *node = padding->node;
  for (uint32_t i = 0; i < node->input_count; ++i) inputs[i] = axes_of(f, &node->inputs[i], base, factor);
  if (!clv__padding_ask(padding)) return false;
  for (uint32_t o = 0; o < node->output_count; ++o) {
    const clv_tensor *type = &node->outputs[o];
    if (type->dtype == CLV_DTYPE_NONE) continue;
    for (int32_t d = 0; d < type->rank; ++d) {
      if ((padding->outputs[o] >> d & 1u) == 0) continue;
      if (trace(f, padding, d, base, factor, type->dims[d])) continue;
      memcpy(padding->reason, "the size of its output is not a known multiple of an open size of its inputs",
             sizeof "the size of its output is not a known multiple of an open size of its inputs");
      return false;
    }
    covered[o] |= padding->outputs[o];
  }
  return true;
}

/* Whether every open axis of every output comes from an open axis of an input. */
static bool outputs_follow(clv__padding *padding, const uint32_t *covered) {
  for (uint32_t o = 0; o < padding->node->output_count; ++o) {
    const clv_tensor *type = &padding->node->outputs[o];
    for (int32_t d = 0; type->dtype != CLV_DTYPE_NONE && type->data == NULL && d < type->rank; ++d) {
      if (type->dims[d] >= 0 || (covered[o] >> d & 1u) != 0) continue;
      memcpy(padding->reason, "an open size of its outputs does not come from one of its inputs",
             sizeof "an open size of its outputs does not come from one of its inputs");
      return false;
    }
  }
  return true;
}

static bool is_independent(finding *f, const clv__node *node, const clv__op *op, const clv_tensor *inputs, clv_tensor *outputs,
                           char reason[CLV__REASON_BYTES]) {
  uint32_t count = clv__node_explicit_inputs(node), *in = f->axes, *out = in + node->input_count,
           *covered = out + node->output_count;
  for (uint32_t i = 0; i < count; ++i) f->zeros[i] = node->inputs[i] == CLV__NO_ID || f->is_zero[node->inputs[i]];
  memset(covered, 0, node->output_count * sizeof *covered);
  clv__infer infer = {.op = node->op,
                      .opset = node->opset,
                      .attributes = node->attributes,
                      .inputs = inputs,
                      .input_count = count,
                      .outputs = outputs,
                      .output_count = node->output_count,
                      .allocator = f->graph->allocator};
  clv__padding padding = {.op = op, .node = &infer, .inputs = in, .zero = f->zeros, .outputs = out};
  bool good = true;
  uint32_t base = CLV__NO_ID; /* the last size asked about; asking twice about one size is harmless */
  int64_t factor = 0;
  for (uint32_t i = 0; i < count && good; ++i) {
    if (inputs[i].dtype == CLV_DTYPE_NONE || inputs[i].data != NULL) continue;
    if (inputs[i].rank < 0) good = false, memcpy(padding.reason, "a rank is unknown", sizeof "a rank is unknown");
    for (int32_t d = 0; d < inputs[i].rank && good; ++d) {
      uint32_t symbol = is_symbol(inputs[i].dims[d]) ? symbol_of(inputs[i].dims[d]) : CLV__NO_ID;
      if (symbol == CLV__NO_ID || (f->base[symbol] == base && f->factor[symbol] == factor)) continue;
      base = f->base[symbol], factor = f->factor[symbol];
      good = ask(f, &padding, base, factor, in, covered);
    }
  }
  good = good && outputs_follow(&padding, covered);
  if (!good) memcpy(reason, padding.reason, CLV__REASON_BYTES);
  return good;
}

static void see(finding *f, const clv_tensor *type) {
  for (int32_t d = 0; d < type->rank; ++d) {
    if (is_symbol(type->dims[d])) f->is_seen[symbol_of(type->dims[d])] = true;
  }
}

static clv_status find_node(finding *f, clv_node_id id) {
  const clv__node *node = &f->graph->nodes[id];
  const clv_allocator *allocator = f->graph->allocator;
  clv_tensor *inputs = f->operands, *aligned = inputs + node->input_count, *outputs = aligned + node->input_count;
  bool open = false, zero = true;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    inputs[i] = (clv_tensor){0};
    if (node->inputs[i] == CLV__NO_ID) continue;
    inputs[i] = f->shapes->types[node->inputs[i]];
    open = open || (inputs[i].data == NULL && !is_fixed(&inputs[i]));
    zero = zero && f->is_zero[node->inputs[i]];
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    outputs[i] = (clv_tensor){0};
    if (node->outputs[i] != CLV__NO_ID) outputs[i] = f->shapes->types[node->outputs[i]];
    open = open || (outputs[i].data == NULL && !is_fixed(&outputs[i]));
  }
  f->is_open[id] = open;
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (open) {
    char reason[CLV__REASON_BYTES] = "the operator has no rule for padding";
    CLV__TRY(clv__operands_align(inputs, node->input_count, FLOAT_LIMIT, aligned, allocator, f->error));
    bool good = op != NULL && is_independent(f, node, op, aligned, outputs, reason);
    clv__operands_release(inputs, node->input_count, aligned, allocator);
    if (!good) {
      f->reasons[id] = clv__arena_string(f->arena, reason, strlen(reason));
      if (f->reasons[id] == NULL) return clv__error_memory(f->error, CLV__REASON_BYTES);
    }
  }
  /* A node that is not independent along its open axes runs with exact sizes, so its outputs are padded with zeros afterwards. */
  bool keeps = !open || f->reasons[id] != NULL || (zero && (op->flags & CLV__OP_KEEPS_ZERO) != 0);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__NO_ID) continue;
    f->is_zero[node->outputs[i]] = keeps;
    see(f, &outputs[i]);
  }
  return CLV_OK;
}

/* ---- Typical sizes ---- */

static clv_status infer_typical(const clv_graph *graph, const clv__shapes *shapes, clv__shape_given *all, uint32_t given_count,
                                int64_t size, clv__arena *arena, const clv_tensor **typical, clv_error *error) {
  uint32_t count = given_count;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = &shapes->types[graph->inputs[i]];
    if (type->rank < 0 || clv__tensor_is_static(type)) continue;
    all[count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = type->rank};
    for (int32_t d = 0; d < type->rank; ++d) all[count].dims[d] = type->dims[d] >= 0 ? type->dims[d] : size;
    ++count;
  }
  clv__shapes *inferred;
  clv_error why; /* receives the reason if the model needs another size, which is not an error here */
  clv_status status = clv__shapes_infer(graph, all, count, (size_t)1 << 16, &inferred, &why);
  if (status == CLV_OUT_OF_MEMORY) return clv__error_memory(error, graph->value_count * sizeof *shapes->types);
  if (status != CLV_OK) return CLV_OK;
  clv_tensor *types = clv__arena_copy(arena, inferred->types, graph->value_count * sizeof *types);
  for (uint32_t v = 0; types != NULL && v < graph->value_count; ++v) {
    if (shapes->types[v].data != NULL) types[v] = shapes->types[v];
    types[v].data = shapes->types[v].data;
    for (int32_t d = 0; d < types[v].rank; ++d) { /* symbols of another inference have no meaning here */
      if (types[v].dims[d] < 0) types[v] = shapes->types[v];
    }
  }
  clv__shapes_destroy(inferred);
  *typical = types;
  return types != NULL ? CLV_OK : clv__error_memory(error, graph->value_count * sizeof *types);
}

static clv_status find_typical(const clv_graph *graph, const clv__shapes *shapes, const clv__shape_given *given,
                               uint32_t given_count, clv__arena *arena, const clv_tensor **typical, clv_error *error) {
  size_t most = (size_t)given_count + graph->input_count;
  clv__shape_given *all = clv__allocate_zero(graph->allocator, most * sizeof *all);
  if (all == NULL) return clv__error_memory(error, most * sizeof *all);
  if (given_count > 0) memcpy(all, given, given_count * sizeof *all);
  clv_status status = CLV_OK;
  for (size_t i = 0; status == CLV_OK && *typical == NULL && i < sizeof typical_sizes / sizeof *typical_sizes; ++i) {
    status = infer_typical(graph, shapes, all, given_count, typical_sizes[i], arena, typical, error);
  }
  clv__release(graph->allocator, all);
  return status;
}

/* ---- The whole graph ---- */

static bool has_open(const clv_graph *graph, const clv__shapes *shapes) {
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    if (shapes->types[v].dtype != CLV_DTYPE_NONE && shapes->types[v].data == NULL && !is_fixed(&shapes->types[v])) return true;
  }
  return false;
}

static clv_status find_all(finding *f, clv__arena *scratch) {
  const clv_graph *graph = f->graph;
  uint32_t widest_in = 1, widest_out = 1, symbols = f->shapes->symbol_count;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (graph->nodes[n].input_count > widest_in) widest_in = graph->nodes[n].input_count;
    if (graph->nodes[n].output_count > widest_out) widest_out = graph->nodes[n].output_count;
  }
  f->base = clv__arena_allocate_zero(f->arena, symbols, sizeof *f->base);
  f->factor = clv__arena_allocate_zero(f->arena, symbols, sizeof *f->factor);
  f->is_open = clv__arena_allocate_zero(f->arena, graph->node_count, sizeof *f->is_open);
  f->reasons = clv__arena_allocate_zero(f->arena, graph->node_count, sizeof *f->reasons);
  f->is_seen = clv__arena_allocate_zero(scratch, symbols, sizeof *f->is_seen);
  f->is_zero = clv__arena_allocate_zero(scratch, graph->value_count, sizeof *f->is_zero);
  f->operands = clv__arena_allocate_zero(scratch, (size_t)2 * widest_in + widest_out, sizeof *f->operands);
  f->axes = clv__arena_allocate_zero(scratch, (size_t)widest_in + 2 * (size_t)widest_out, sizeof *f->axes);
  f->zeros = clv__arena_allocate_zero(scratch, widest_in, sizeof *f->zeros);
  if (f->base == NULL || f->factor == NULL || f->is_open == NULL || f->reasons == NULL || f->is_seen == NULL ||
      f->is_zero == NULL || f->operands == NULL || f->axes == NULL || f->zeros == NULL) {
    return clv__error_memory(f->error, graph->value_count * sizeof *f->operands);
  }
  for (uint32_t s = 0; s < symbols; ++s) f->base[s] = s, f->factor[s] = 1;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    f->is_zero[v] = graph->values[v].producer == CLV__NO_ID;
    if (f->is_zero[v]) see(f, &f->shapes->types[v]);
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (!f->shapes->node_folded[n]) CLV__TRY(find_node(f, n));
  }
  return CLV_OK;
}

clv_status clv__open_find(const clv_graph *graph, const clv__shapes *shapes, const clv__shape_given *given, uint32_t given_count,
                          clv__arena *arena, const clv__open **out, clv_error *error) {
  *out = NULL;
  if (!has_open(graph, shapes)) return CLV_OK;
  clv__arena scratch;
  clv__arena_init(&scratch, graph->allocator);
  finding f = {.graph = graph, .shapes = shapes, .arena = arena, .error = error};
  clv__open *open = clv__arena_allocate_zero(arena, 1, sizeof *open);
  clv_status status = open == NULL ? clv__error_memory(error, sizeof *open) : find_all(&f, &scratch);
  if (status == CLV_OK) status = find_typical(graph, shapes, given, given_count, arena, &open->typical, error);
  clv__arena_finish(&scratch);
  if (status != CLV_OK) return status;
  open->symbol_count = shapes->symbol_count;
  open->base = f.base, open->factor = f.factor;
  open->is_open = f.is_open, open->reasons = f.reasons;
  *out = open;
  return CLV_OK;
}
