/* `cleave inspect`: shows the contents of a model, and which devices support its nodes. */
#include <string.h>

#include "cli/inspect/inspect.h"

bool cli_inspected_flops(cli_inspection *in, clv_node_id id, double *flops) {
  const clv__node *node = &in->job.graph->nodes[id];
  const clv__op *op = clv__op_find(node->domain, node->op);
  *flops = 0;
  if (op == NULL) return false;
  bool known = true;
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    clv_value_id value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    in->operands[i] = value == CLV__NO_ID ? (clv_tensor){0} : in->shapes->types[value];
    known = known && (value == CLV__NO_ID || clv__tensor_is_static(&in->operands[i]));
  }
  clv__infer infer = {.op = node->op,
                      .opset = node->opset,
                      .attributes = node->attributes,
                      .inputs = in->operands,
                      .input_count = node->input_count,
                      .outputs = in->operands + node->input_count,
                      .output_count = node->output_count,
                      .allocator = in->cli->allocator};
  clv__work work;
  clv__op_work(op, &infer, &work);
  *flops = work.flops;
  return known;
}

static cli_inspected_operator *row_of(cli_inspection *in, const clv__node *node) {
  for (uint32_t i = 0; i < in->row_count; ++i) {
    if (strcmp(in->rows[i].op, node->op) == 0 && strcmp(in->rows[i].domain, node->domain) == 0) return &in->rows[i];
  }
  in->rows[in->row_count] = (cli_inspected_operator){.op = node->op, .domain = node->domain, .flops_complete = true};
  return &in->rows[in->row_count++];
}

static int compare_rows(const cli_inspected_operator *a, const cli_inspected_operator *b) {
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return strcmp(a->op, b->op);
}

/* Returns whether some node reads the value at run time. */
static bool is_read(const cli_inspection *in, clv_value_id value) {
  const clv_graph *graph = in->job.graph;
  for (uint32_t u = graph->use_offsets[value]; u < graph->use_offsets[value + 1]; ++u) {
    if (!in->shapes->node_folded[graph->use_nodes[u]]) return true;
  }
  return graph->values[value].is_output;
}

/* Counts initializers, weights stored elsewhere, and the results of constant folding. */
static void count_parameters(cli_inspection *in) {
  const clv_graph *graph = in->job.graph;
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

static void count_everything(cli_inspection *in) {
  const clv_graph *graph = in->job.graph;
  in->flops_complete = true;
  count_parameters(in);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    cli_inspected_operator *row = row_of(in, &graph->nodes[n]);
    double flops = 0;
    bool folded = in->shapes->node_folded[n];
    bool known = folded || cli_inspected_flops(in, n, &flops);
    in->flops_complete = in->flops_complete && known;
    in->flops += flops;
    in->folded_nodes += folded;
    ++row->count;
    row->folded += folded;
    row->flops += flops;
    row->flops_complete = row->flops_complete && known;
    for (uint32_t d = 0; d < in->job.devices->count; ++d) {
      row->supported[d] += !folded && clv__capability_reason(&in->capability, n, d) == NULL;
    }
  }
  for (uint32_t i = 1; i < in->row_count; ++i) { /* insertion sort: there are few rows */
    cli_inspected_operator row = in->rows[i];
    uint32_t k = i;
    for (; k > 0 && compare_rows(&row, &in->rows[k - 1]) < 0; --k) in->rows[k] = in->rows[k - 1];
    in->rows[k] = row;
  }
}

static clv_status analyse(cli_inspection *in, clv_error *error) {
  cli_invocation *cli = in->cli;
  const clv_graph *graph = in->job.graph;
  clv_size *sizes;
  uint32_t size_count, widest = 0;
  CLV__TRY(cli_inputs_sizes(cli, graph, &in->job.inputs, false, &sizes, &size_count, error));
  clv__shape_given *given = clv__arena_allocate_zero(&in->arena, size_count, sizeof *given);
  if (given == NULL) return clv__error_memory(error, size_count * sizeof *given);
  for (uint32_t i = 0; i < size_count; ++i) {
    given[i] = (clv__shape_given){.name = sizes[i].name, .is_symbol = sizes[i].is_symbol, .rank = sizes[i].rank};
    memcpy(given[i].dims, sizes[i].dims, sizeof given[i].dims);
  }
  clv_graph_view *whole;
  const clv__open *open;
  clv_status status = clv__shapes_infer(graph, given, size_count, SIZE_MAX, &in->shapes, error);
  if (status == CLV_OK) status = clv__open_find(graph, in->shapes, given, size_count, &in->arena, &open, error);
  if (status == CLV_OK) status = clv__view_create_whole(graph, in->shapes->types, &in->arena, &whole, error);
  if (status == CLV_OK) {
    status = clv__capability_ask(in->job.devices, whole, in->shapes->node_folded, open, NULL, NULL, NULL, &in->capability, error);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", in->job.path);
  in->has_capability = true;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t width = graph->nodes[n].input_count + graph->nodes[n].output_count;
    if (width > widest) widest = width;
  }
  in->operands = clv__arena_allocate_zero(&in->arena, widest, sizeof *in->operands);
  in->rows = clv__arena_allocate_zero(&in->arena, graph->node_count, sizeof *in->rows);
  if (in->operands == NULL || in->rows == NULL) return clv__error_memory(error, graph->node_count * sizeof *in->rows);
  count_everything(in);
  return CLV_OK;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_inspection in = {.cli = cli};
  clv__arena_init(&in.arena, cli->allocator);
  clv_status status = cli_job_load(cli, cli->options->operands[0], &in.job, error);
  if (status == CLV_OK) status = cli_job_check_target(cli, &in.job, OPTION_HTML, error);
  if (status == CLV_OK) status = analyse(&in, error);
  if (status == CLV_OK) status = cli_inspect_page(&in, error);
  if (status == CLV_OK) status = cli->json ? cli_inspect_json(&in, error) : cli_inspect_text(&in, error);
  if (in.has_capability) clv__capability_finish(&in.capability);
  clv__shapes_destroy(in.shapes);
  clv__arena_finish(&in.arena);
  cli_job_finish(cli, &in.job);
  return status;
}

const cli_command cli_command_inspect = {
    .name = "inspect",
    .operands = "MODEL|PLAN",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show a model's operators, and which devices support them",
    .description =
        "Shows nodes, parameters, FLOPs (a multiply-add is two of them), inputs and outputs. For every operator, shows how\n"
        "many of its nodes each device of --devices can run, and the reasons why it cannot run the others. In the\n"
        "tables, 'const' means computed when planning, and '?' that sizes are unknown. Given a plan file, inspects its model.\n"
        "--html draws the graph. On the page, click a node for its attributes, its inputs and outputs, the statistics and first\n"
        "values of its weights, and what every device says about it.",
    .examples =
        "  cleave inspect resnet50.onnx --devices npu,cpu                       # which operators each device can run\n"
        "  cleave inspect bert.onnx --dim batch=1 --dim sequence=128 --nodes    # set the open sizes, and list every node\n"
        "  cleave inspect resnet50.onnx --devices npu,cpu --html resnet50.html  # draw the graph on a page\n",
    .execute = execute,
};
