/* Inspects a graph: clv_graph_inspect(). See cleave/inspect.h. */
#include "report/inspect/inspect.h"

#include <string.h>

#include "base/document.h"
#include "base/options.h"

/* Computes a node's FLOPs. Returns false if they depend on sizes that are not known. `operands` has room for its operands. */
static bool find_flops(const clv_inspection *in, clv_node_id id, clv_tensor *operands, double *flops) {
  const clv__node *node = &in->graph->nodes[id];
  const clv__op *op = clv__op_find(node->domain, node->op);
  *flops = 0;
  if (op == NULL) return false;
  bool known = true;
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    clv_value_id value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    operands[i] = value == CLV__NO_ID ? (clv_tensor){0} : in->shapes->types[value];
    known = known && (value == CLV__NO_ID || clv__tensor_is_static(&operands[i]));
  }
  clv__infer infer = {.op = node->op,
                      .opset = node->opset,
                      .attributes = node->attributes,
                      .inputs = operands,
                      .input_count = node->input_count,
                      .outputs = operands + node->input_count,
                      .output_count = node->output_count,
                      .allocator = in->arena.allocator};
  clv__work work;
  clv__op_work(op, &infer, &work);
  *flops = work.flops;
  return known;
}

static clv__inspected_operator *row_of(clv_inspection *in, const clv__node *node) {
  for (uint32_t i = 0; i < in->row_count; ++i) {
    if (strcmp(in->rows[i].op, node->op) == 0 && strcmp(in->rows[i].domain, node->domain) == 0) return &in->rows[i];
  }
  in->rows[in->row_count] = (clv__inspected_operator){.op = node->op, .domain = node->domain, .flops_complete = true};
  return &in->rows[in->row_count++];
}

static int compare_rows(const clv__inspected_operator *a, const clv__inspected_operator *b) {
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return strcmp(a->op, b->op);
}

/* Returns whether some node reads the value at run time. */
static bool is_read(const clv_inspection *in, clv_value_id value) {
  const clv_graph *graph = in->graph;
  for (uint32_t u = graph->use_offsets[value]; u < graph->use_offsets[value + 1]; ++u) {
    if (!in->shapes->node_folded[graph->use_nodes[u]]) return true;
  }
  return graph->values[value].is_output;
}

/* Counts initializers, weights stored elsewhere, and the results of constant folding. */
static void count_parameters(clv_inspection *in) {
  const clv_graph *graph = in->graph;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    const clv_tensor *type = value->type.data != NULL ? &value->type : &in->shapes->types[v];
    size_t count, size_bytes;
    if ((type->data == NULL && !value->is_unbound) || !clv__tensor_count(type, &count)) continue;
    if (!clv__tensor_size_bytes(type, &size_bytes)) continue;
    in->unbound_bytes += value->is_unbound ? size_bytes : 0;
    if (value->type.data != NULL || value->is_unbound) {
      ++in->parameter_values;
      in->parameter_count += count;
      in->parameter_bytes += size_bytes;
    } else if (is_read(in, v)) {
      in->folded_count += count;
      in->folded_bytes += size_bytes;
    }
  }
}

static void count_everything(clv_inspection *in, clv_tensor *operands) {
  const clv_graph *graph = in->graph;
  in->flops_complete = true;
  count_parameters(in);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    clv__inspected_operator *row = row_of(in, &graph->nodes[n]);
    double flops = 0;
    bool folded = in->shapes->node_folded[n];
    bool computed = find_flops(in, n, operands, &flops), known = folded || computed;
    in->node_flops[n] = computed ? flops : -1;
    if (folded) flops = 0;
    in->flops_complete = in->flops_complete && known;
    in->flops += flops;
    in->folded_nodes += folded;
    ++row->count;
    row->folded += folded;
    row->flops += flops;
    row->flops_complete = row->flops_complete && known;
    for (uint32_t d = 0; d < in->devices->count; ++d) {
      row->supported[d] += !folded && clv__capability_reason(&in->capability, n, d) == NULL;
    }
  }
  for (uint32_t i = 1; i < in->row_count; ++i) { /* insertion sort: there are few rows */
    clv__inspected_operator row = in->rows[i];
    uint32_t k = i;
    for (; k > 0 && compare_rows(&row, &in->rows[k - 1]) < 0; --k) in->rows[k] = in->rows[k - 1];
    in->rows[k] = row;
  }
}

static clv_status find_types(clv_inspection *in, const clv_plan_options *options, clv_error *error) {
  clv__shape_given *given = clv__arena_allocate_zero(&in->arena, (size_t)options->size_count + 1, sizeof *given);
  if (given == NULL) return clv__error_memory(error, options->size_count * sizeof *given);
  for (uint32_t i = 0; i < options->size_count; ++i) {
    const clv_size *size = &options->sizes[i];
    given[i] = (clv__shape_given){.name = size->name, .is_symbol = size->is_symbol, .rank = size->rank};
    memcpy(given[i].dims, size->dims, sizeof given[i].dims);
  }
  clv_graph_view *whole;
  const clv__open *open;
  clv__poll poll = {options->go_on, options->go_on_user_data, false};
  CLV__TRY(clv__shapes_infer(in->graph, given, options->size_count, SIZE_MAX, &in->shapes, error));
  CLV__TRY(clv__open_find(in->graph, in->shapes, given, options->size_count, &in->arena, &open, error));
  CLV__TRY(clv__view_create_whole(in->graph, in->shapes->types, &in->arena, &whole, error));
  clv__devices_lock(in->devices);
  clv_status status = clv__capability_ask(in->devices, whole, in->shapes->node_folded, open, options->support,
                                          options->support_user_data, &poll, &in->capability, error);
  clv__devices_unlock(in->devices);
  in->has_capability = status == CLV_OK;
  return status;
}

static clv_status analyse(clv_inspection *in, const clv_plan_options *options, clv_error *error) {
  const clv_graph *graph = in->graph;
  uint32_t widest = 0;
  CLV__TRY(find_types(in, options, error));
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t width = graph->nodes[n].input_count + graph->nodes[n].output_count;
    if (width > widest) widest = width;
  }
  clv_tensor *operands = clv__arena_allocate_zero(&in->arena, widest, sizeof *operands);
  in->rows = clv__arena_allocate_zero(&in->arena, graph->node_count, sizeof *in->rows);
  in->node_flops = clv__arena_allocate_zero(&in->arena, (size_t)graph->node_count + 1, sizeof *in->node_flops);
  if (operands == NULL || in->rows == NULL || in->node_flops == NULL)
    return clv__error_memory(error, graph->node_count * sizeof *in->rows);
  count_everything(in, operands);
  return CLV_OK;
}

static clv_status check_sizes(const clv_plan_options *options, clv_error *error) {
  CLV__TRY(clv__options_list(options->sizes, options->size_count, "sizes", error));
  for (uint32_t i = 0; i < options->size_count; ++i) {
    if (options->sizes[i].name == NULL || options->sizes[i].rank < 0 || options->sizes[i].rank > CLV_MAX_RANK)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "size %u of %u needs a name and a rank of 0 to %d", i,
                            options->size_count, CLV_MAX_RANK);
  }
  return CLV_OK;
}

clv_status clv_graph_inspect(const clv_graph *graph, clv_devices *devices, const clv_plan_options *given, clv_inspection **out,
                             clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "inspection must not be NULL");
  *out = NULL;
  if (graph == NULL || devices == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices must not be NULL");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_PLAN_OPTIONS_INIT", error));
  CLV__TRY(check_sizes(&options, error));
  clv_inspection *in = clv__allocate_zero(graph->allocator, sizeof *in);
  if (in == NULL) return clv__error_memory(error, sizeof *in);
  in->graph = graph;
  in->devices = devices;
  clv__arena_init(&in->arena, graph->allocator);
  clv_status status = analyse(in, &options, error);
  if (status == CLV_OK)
    *out = in;
  else
    clv_inspection_destroy(in);
  return status;
}

void clv_inspection_destroy(clv_inspection *in) {
  if (in == NULL) return;
  const clv_allocator *allocator = in->arena.allocator;
  if (in->has_capability) clv__capability_finish(&in->capability);
  clv__shapes_destroy(in->shapes);
  clv__arena_finish(&in->arena);
  clv__release(allocator, in);
}

clv_status clv_inspection_text(const clv_inspection *in, const clv_inspection_options *given, clv_form form, char **out,
                               clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (in == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "inspection must not be NULL");
  clv_inspection_options options = CLV_INSPECTION_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_INSPECTION_OPTIONS_INIT", error));
  const char *name = options.name != NULL ? options.name : in->graph->path;
  if (form == CLV_FORM_JSON) return clv__inspect_json(in, name, options.nodes, out, error);
  clv__text text;
  clv__text_init(&text, in->arena.allocator);
  clv__inspect_text(in, name, options.nodes, options.all_reasons, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
