/* Infers the shapes of a whole graph in one pass over its nodes in topological order, together with symbols and known values. The
 * body of an If, Loop or Scan is a separate pass, started by the infer function of its node. */
#include "analysis/shapes.h"

#include "analysis/node.h"
#include "analysis/shapes_fold.h"
#include "analysis/shapes_given.h"
#include "graph/view.h"

enum {
  FLOAT_LIMIT = 4096,     /* largest float tensor, in bytes, that inference may read (scales and the like) */
  BODY_BUDGET = 1 << 19,  /* limit on the node inferences in all bodies together: nested loops infer their bodies several
                           * times */
  BODY_FOLD_LIMIT = 65536 /* largest value, in bytes, that is folded in a body: shapes rarely depend on larger ones */
};

/* State that a pass shares with the passes of its bodies. */
typedef struct inference {
  const clv_allocator *allocator;
  uint32_t symbol_count;
  size_t body_budget;
  clv__fold_budget fold_budget;
  const clv_graph *graph; /* whose symbols are named in messages */
} inference;

typedef struct pass {
  inference *shared;
  const clv_graph *graph;
  clv_tensor *types;          /* by value id */
  clv__content **content;     /* by value id; NULL: no partly known content */
  bool *node_folded;          /* by node id; NULL in bodies */
  const int64_t *bindings;    /* by symbol of the graph: the size or symbol that replaces it in this pass */
  clv__arena *keep;           /* folded data */
  clv__file_map_list **fills; /* folded data that is mapped; NULL in bodies */
  clv__arena scratch;         /* all other memory of the pass */
  size_t fold_limit_bytes;
  uint32_t depth;
  clv_tensor *operands; /* room for the node with the most operands: inputs, aligned inputs, outputs */
  const clv__content **operand_content;
  clv_error *error;
} pass;

/* What infer_body() needs to know about the node that has the body. */
typedef struct body_context {
  inference *shared;
  const clv__node *node;
  const clv_tensor *inputs; /* captures last */
  const clv__content *const *contents;
  uint32_t depth;
} body_context;

static clv_status infer_body(clv__infer *infer, const clv_graph_view *body, const clv_tensor *inputs, uint32_t input_count,
                             clv_tensor *outputs, uint32_t output_count);

static void set_unknown(clv_tensor *type) {
  *type = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
}

/* ---- One node ------------------------------------------------------------------------------------------------------------ */

/* Fills `outputs` with everything that the node's operator can infer from `inputs` (aligned; captures last). */
static clv_status infer_node(inference *shared, const clv__node *node, const clv_tensor *inputs,
                             const clv__content *const *contents, clv_tensor *outputs, clv__content *content, uint32_t depth,
                             clv_error *error) {
  for (uint32_t i = 0; i < node->output_count; ++i) set_unknown(&outputs[i]);
  content->known = false;
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (op == NULL) return CLV_OK;
  clv_status status = clv__node_check(node, op, error);
  if (status != CLV_OK) return clv__node_error(node, status, error);
  uint32_t count = clv__node_explicit_inputs(node);
  for (uint32_t i = 0; i < count; ++i) { /* an input from an unknown operator has no dtype: nothing can be inferred */
    if (node->inputs[i] != CLV__NO_ID && inputs[i].dtype == CLV_DTYPE_NONE) return CLV_OK;
  }
  body_context context = {shared, node, inputs, contents, depth};
  clv__infer infer = {.op = node->op,
                      .opset = node->opset,
                      .attributes = node->attributes,
                      .inputs = inputs,
                      .contents = contents,
                      .input_count = count,
                      .outputs = outputs,
                      .output_content = content,
                      .output_count = node->output_count,
                      .allocator = shared->allocator,
                      .symbol_name = clv__graph_symbol_name,
                      .symbol_cookie = shared->graph,
                      .error = error,
                      .infer_body = infer_body,
                      .body_cookie = &context};
  status = op->infer(&infer);
  if (status != CLV_OK) return clv__node_error(node, status, error);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    outputs[i].data = NULL;
    if (outputs[i].rank > CLV_MAX_RANK) outputs[i].rank = CLV_RANK_UNKNOWN;
  }
  return CLV_OK;
}

clv_status clv__node_infer(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                           clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  const clv_allocator *allocator = graph->allocator;
  clv_tensor *aligned = clv__allocate(allocator, node->input_count * sizeof *aligned);
  if (aligned == NULL) return clv__error_memory(error, node->input_count * sizeof *aligned);
  clv_status status = clv__operands_align(inputs, node->input_count, FLOAT_LIMIT, aligned, allocator, error);
  if (status == CLV_OK) {
    inference shared = {allocator, graph->symbol_count, BODY_BUDGET, clv__fold_budget_of(NULL), graph};
    clv__content content;
    status = infer_node(&shared, node, aligned, NULL, outputs, &content, 0, error);
    clv__operands_release(inputs, node->input_count, aligned, allocator);
  }
  clv__release(allocator, aligned);
  for (uint32_t i = 0; status == CLV_OK && i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__NO_ID) set_unknown(&outputs[i]);
    for (int32_t d = 0; d < outputs[i].rank; ++d) { /* symbols created in bodies have no meaning outside this call */
      if (outputs[i].dims[d] <= CLV_DIM_SYMBOL(graph->symbol_count)) outputs[i].dims[d] = CLV_DIM_UNKNOWN;
    }
  }
  return status;
}

/* ---- A graph ------------------------------------------------------------------------------------------------------------- */

/* The declared type, expressed in this pass's symbols. */
static clv_tensor declared_type(const pass *p, clv_value_id value) {
  clv_tensor type = p->graph->values[value].type;
  if (type.dtype == CLV_DTYPE_NONE) type.rank = CLV_RANK_UNKNOWN;
  for (int32_t d = 0; d < type.rank; ++d) {
    if (type.dims[d] < CLV_DIM_UNKNOWN) type.dims[d] = p->bindings[-2 - type.dims[d]];
  }
  return type;
}

/* Takes from the declaration everything that inference could not determine. If the two contradict each other, inference wins. */
static void merge_declared(const pass *p, clv_value_id value, clv_tensor *type) {
  clv_tensor declared = declared_type(p, value);
  if (type->dtype == CLV_DTYPE_NONE) type->dtype = declared.dtype;
  if (type->rank < 0) {
    clv_dtype dtype = type->dtype;
    *type = declared;
    type->dtype = dtype;
    type->data = NULL;
  } else if (type->rank == declared.rank) {
    for (int32_t d = 0; d < type->rank; ++d) {
      if (type->dims[d] == CLV_DIM_UNKNOWN) type->dims[d] = declared.dims[d];
    }
  }
}

static void name_unknown_dims(pass *p, clv_tensor *type) {
  for (int32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] == CLV_DIM_UNKNOWN) type->dims[d] = CLV_DIM_SYMBOL(p->shared->symbol_count++);
  }
}

static clv_status pass_prepare(pass *p) {
  const clv_graph *graph = p->graph;
  uint32_t widest_in = 1, widest_out = 1;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (graph->nodes[n].input_count > widest_in) widest_in = graph->nodes[n].input_count;
    if (graph->nodes[n].output_count > widest_out) widest_out = graph->nodes[n].output_count;
  }
  p->content = clv__arena_allocate_zero(&p->scratch, graph->value_count, sizeof *p->content);
  p->operands = clv__arena_allocate_zero(&p->scratch, (size_t)2 * widest_in + widest_out, sizeof *p->operands);
  p->operand_content = clv__arena_allocate_zero(&p->scratch, widest_in, sizeof *p->operand_content);
  if (p->content == NULL || p->operands == NULL || p->operand_content == NULL) {
    return clv__error_memory(p->error, graph->value_count * sizeof *p->content);
  }
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    set_unknown(&p->types[v]);
    if (value->producer == CLV__NO_ID && (value->type.data != NULL || value->is_unbound)) p->types[v] = value->type;
  }
  return CLV_OK;
}

/* Keeps the content of a node's first output: a list of elements that are each a number, a symbol or unknown. If all are
 * numbers, the output becomes a known value. */
static clv_status keep_content(pass *p, clv_value_id value, const clv__content *content) {
  clv_tensor *type = &p->types[value];
  size_t count;
  if (!content->known || type->data != NULL) return CLV_OK;
  bool numbers = type->dtype == CLV_I64 || type->dtype == CLV_I32 || type->dtype == CLV_BOOL;
  for (uint32_t i = 0; i < content->count; ++i) numbers = numbers && clv__element_is_number(content->elements[i]);
  if (numbers && clv__tensor_count(type, &count) && count == content->count) {
    return clv__fold_content(content, p->keep, type, p->error);
  }
  p->content[value] = clv__arena_copy(&p->scratch, content, sizeof *content);
  return p->content[value] != NULL ? CLV_OK : clv__error_memory(p->error, sizeof *content);
}

/* Whether every output that has a reader is a known value. */
static bool outputs_known(const pass *p, const clv__node *node) {
  const clv_graph *graph = p->graph;
  bool any = false;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv_value_id v = node->outputs[i];
    if (v == CLV__NO_ID) continue;
    if (p->types[v].data != NULL)
      any = true;
    else if (graph->values[v].is_output || graph->use_offsets[v] != graph->use_offsets[v + 1])
      return false;
  }
  return any;
}

static clv_status pass_node(pass *p, clv_node_id id) {
  const clv__node *node = &p->graph->nodes[id];
  const clv_allocator *allocator = p->shared->allocator;
  clv_tensor *inputs = p->operands, *aligned = inputs + node->input_count, *outputs = aligned + node->input_count;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    clv_value_id v = node->inputs[i];
    memset(&inputs[i], 0, sizeof inputs[i]);
    if (v != CLV__NO_ID) inputs[i] = p->types[v];
    p->operand_content[i] = v != CLV__NO_ID ? p->content[v] : NULL;
  }
  CLV__TRY(clv__operands_align(inputs, node->input_count, FLOAT_LIMIT, aligned, allocator, p->error));
  for (uint32_t i = 0; p->fills != NULL && i < node->input_count; ++i) {
    if (clv__fold_is_too_large(&aligned[i], *p->fills, &p->shared->fold_budget)) aligned[i].data = NULL;
  }
  clv__content content;
  clv_status status = infer_node(p->shared, node, aligned, p->operand_content, outputs, &content, p->depth, p->error);
  clv__operands_release(inputs, node->input_count, aligned, allocator);
  CLV__TRY(status);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__NO_ID) continue;
    merge_declared(p, node->outputs[i], &outputs[i]);
    name_unknown_dims(p, &outputs[i]);
    p->types[node->outputs[i]] = outputs[i];
  }
  status =
      clv__fold_node(p->graph, id, inputs, p->fold_limit_bytes, &p->shared->fold_budget, p->keep, p->fills, p->types, p->error);
  if (status == CLV_OK && node->output_count > 0 && node->outputs[0] != CLV__NO_ID) {
    status = keep_content(p, node->outputs[0], &content);
  }
  if (status != CLV_OK) return clv__node_error(node, status, p->error);
  if (p->node_folded != NULL) p->node_folded[id] = outputs_known(p, node);
  return CLV_OK;
}

/* ---- Bodies -------------------------------------------------------------------------------------------------------------- */

static clv_status body_pass(pass *p, const body_context *context, const clv_tensor *inputs, clv_tensor *outputs) {
  const clv_graph *graph = p->graph;
  const clv__node *node = context->node;
  int64_t *bindings = clv__arena_allocate_zero(&p->scratch, graph->symbol_count, sizeof *bindings);
  p->types = clv__arena_allocate_zero(&p->scratch, graph->value_count, sizeof *p->types);
  if (bindings == NULL || p->types == NULL) return clv__error_memory(p->error, graph->value_count * sizeof *p->types);
  for (uint32_t i = 0; i < graph->symbol_count; ++i) bindings[i] = CLV_DIM_SYMBOL(p->shared->symbol_count++);
  p->bindings = bindings;
  CLV__TRY(pass_prepare(p));
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_tensor type = inputs[i];
    type.data = NULL;
    merge_declared(p, graph->inputs[i], &type);
    name_unknown_dims(p, &type);
    p->types[graph->inputs[i]] = type;
  }
  uint32_t first = clv__node_explicit_inputs(node);
  for (uint32_t i = 0; i < graph->capture_count; ++i) {
    uint32_t operand = first + graph->capture_index[i];
    clv_tensor type = context->inputs[operand];
    merge_declared(p, graph->captures[i], &type);
    if (type.data == NULL)
      name_unknown_dims(p, &type);
    else
      type.data = context->inputs[operand].data;
    p->types[graph->captures[i]] = type;
    if (context->contents != NULL) p->content[graph->captures[i]] = (clv__content *)context->contents[operand];
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) CLV__TRY(pass_node(p, n));
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    outputs[i] = p->types[graph->outputs[i]];
    outputs[i].data = NULL;
  }
  return CLV_OK;
}

static clv_status infer_body(clv__infer *infer, const clv_graph_view *body, const clv_tensor *inputs, uint32_t input_count,
                             clv_tensor *outputs, uint32_t output_count) {
  const body_context *context = infer->body_cookie;
  const clv_graph *graph = body->graph;
  for (uint32_t i = 0; i < output_count; ++i) set_unknown(&outputs[i]);
  if (graph->input_count != input_count || graph->output_count != output_count) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "its body has %u input%s and %u output%s; expected %u and %u",
                          graph->input_count, CLV__S(graph->input_count), graph->output_count, CLV__S(graph->output_count),
                          input_count, output_count);
  }
  inference *shared = context->shared;
  if (context->depth >= CLV__MAX_BODY_DEPTH || shared->body_budget < graph->node_count) return CLV_OK;
  shared->body_budget -= graph->node_count;
  clv__arena keep;
  clv__arena_init(&keep, shared->allocator);
  pass p = {.shared = shared,
            .graph = graph,
            .keep = &keep,
            .fold_limit_bytes = BODY_FOLD_LIMIT,
            .depth = context->depth + 1,
            .error = infer->error};
  clv__arena_init(&p.scratch, shared->allocator);
  clv_status status = body_pass(&p, context, inputs, outputs);
  clv__arena_finish(&p.scratch);
  clv__arena_finish(&keep);
  return status;
}

/* ---- The whole graph ----------------------------------------------------------------------------------------------------- */

static clv_status whole_pass(pass *p, const clv__shape_given *given, uint32_t given_count) {
  const clv_graph *graph = p->graph;
  int64_t *bindings = clv__arena_allocate_zero(&p->scratch, graph->symbol_count, sizeof *bindings);
  if (bindings == NULL) return clv__error_memory(p->error, graph->symbol_count * sizeof *bindings);
  p->bindings = bindings;
  CLV__TRY(clv__given_bind(graph, given, given_count, bindings, p->error));
  CLV__TRY(pass_prepare(p));
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_value_id v = graph->inputs[i];
    clv_tensor type = declared_type(p, v);
    if (graph->ir_version >= 4) type.data = NULL; /* its initializer may be overridden at run time */
    clv__given_apply(graph->values[v].name, given, given_count, &type);
    name_unknown_dims(p, &type);
    p->types[v] = type;
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) CLV__TRY(pass_node(p, n));
  return CLV_OK;
}

clv_status clv__shapes_infer(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, size_t fold_limit_bytes,
                             clv__shapes **out, clv_error *error) {
  *out = NULL;
  clv__shapes *shapes = clv__allocate_zero(graph->allocator, sizeof *shapes);
  if (shapes == NULL) return clv__error_memory(error, sizeof *shapes);
  clv__arena_init(&shapes->arena, graph->allocator);
  shapes->types = clv__arena_allocate_zero(&shapes->arena, graph->value_count, sizeof *shapes->types);
  shapes->node_folded = clv__arena_allocate_zero(&shapes->arena, graph->node_count, sizeof *shapes->node_folded);
  if (shapes->types == NULL || shapes->node_folded == NULL) {
    clv__shapes_destroy(shapes);
    return clv__error_memory(error, graph->value_count * sizeof *shapes->types);
  }
  inference shared = {graph->allocator, graph->symbol_count, BODY_BUDGET, clv__fold_budget_of(graph), graph};
  pass p = {.shared = &shared,
            .graph = graph,
            .types = shapes->types,
            .node_folded = shapes->node_folded,
            .keep = &shapes->arena,
            .fills = &shapes->fills,
            .fold_limit_bytes = fold_limit_bytes,
            .error = error};
  clv__arena_init(&p.scratch, graph->allocator);
  clv_status status = whole_pass(&p, given, given_count);
  clv__arena_finish(&p.scratch);
  if (status != CLV_OK) {
    clv__shapes_destroy(shapes);
    return status;
  }
  shapes->symbol_count = shared.symbol_count;
  *out = shapes;
  return CLV_OK;
}

void clv__shapes_destroy(clv__shapes *shapes) {
  if (shapes == NULL) return;
  const clv_allocator *allocator = shapes->arena.allocator;
  for (clv__file_map_list *fill = shapes->fills; fill != NULL; fill = fill->next) clv__file_map_close(&fill->map);
  clv__arena_finish(&shapes->arena);
  clv__release(allocator, shapes);
}
