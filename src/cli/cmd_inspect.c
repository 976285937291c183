/* `cleave inspect`: what a model is made of, and what the devices say of it. */
#include <string.h>

#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "report/label.h"
#include "report/table.h"

enum { MOST_REASONS = 6, NAME_COLUMNS = 80 }; /* of a device, without -v; of a name in a table */

typedef struct op_row {
  const char *op, *domain;
  uint32_t count, folded;
  double flops;
  bool flops_complete;
  uint32_t supported[CLV__MAX_DEVICES]; /* nodes, by device */
} op_row;

typedef struct inspection {
  cli_invocation *cli;
  cli_job job;
  clv__shapes *shapes;
  clv__arena arena;
  clv__capability capability;
  bool has_capability;
  uint64_t parameter_count, parameter_bytes, folded_nodes;
  uint64_t unbound_bytes;              /* of parameters that the file does not hold */
  uint64_t folded_count, folded_bytes; /* elements computed when planning that nodes read at run time */
  uint32_t parameter_values;
  double flops;
  bool flops_complete; /* false where shapes are open, or an operator is unknown */
  op_row *rows;
  uint32_t row_count;
  clv_tensor *operands;
} inspection;

/* FLOPs of a node at the sizes that are known; false where they do not tell. */
static bool node_flops(inspection *in, clv_node_id id, double *flops) {
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

static op_row *row_of(inspection *in, const clv__node *node) {
  for (uint32_t i = 0; i < in->row_count; ++i) {
    if (strcmp(in->rows[i].op, node->op) == 0 && strcmp(in->rows[i].domain, node->domain) == 0) return &in->rows[i];
  }
  in->rows[in->row_count] = (op_row){.op = node->op, .domain = node->domain, .flops_complete = true};
  return &in->rows[in->row_count++];
}

static int compare_rows(const op_row *a, const op_row *b) {
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return strcmp(a->op, b->op);
}

/* A value that some node reads when the model runs. */
static bool is_read(const inspection *in, clv_value_id value) {
  const clv_graph *graph = in->job.graph;
  for (uint32_t u = graph->use_offsets[value]; u < graph->use_offsets[value + 1]; ++u) {
    if (!in->shapes->node_folded[graph->use_nodes[u]]) return true;
  }
  return graph->values[value].is_output;
}

/* Initializers, weights whose bytes are elsewhere, and what folding makes of them or out of nothing. */
static void count_parameters(inspection *in) {
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

static void count_everything(inspection *in) {
  const clv_graph *graph = in->job.graph;
  in->flops_complete = true;
  count_parameters(in);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    op_row *row = row_of(in, &graph->nodes[n]);
    double flops = 0;
    bool folded = in->shapes->node_folded[n];
    bool known = folded || node_flops(in, n, &flops);
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
  for (uint32_t i = 1; i < in->row_count; ++i) { /* insertion: few rows */
    op_row row = in->rows[i];
    uint32_t k = i;
    for (; k > 0 && compare_rows(&row, &in->rows[k - 1]) < 0; --k) in->rows[k] = in->rows[k - 1];
    in->rows[k] = row;
  }
}

static clv_status analyse(inspection *in, clv_error *error) {
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
    status = clv__capability_ask(in->job.devices, whole, in->shapes->node_folded, open, NULL, NULL, &in->capability, error);
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

/* ---- Text ---- */

static bool inputs_are_open(const inspection *in) {
  const clv_graph *graph = in->job.graph;
  bool open = false;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    open = open || !clv__tensor_is_static(&in->shapes->types[graph->inputs[i]]);
  }
  return open;
}

static void write_summary(inspection *in, clv__text *text) {
  const clv_graph *graph = in->job.graph;
  char number[CLV__LABEL_BYTES], size[CLV__LABEL_BYTES];
  clv__text_append(text, "%s%s%s\n", cli_begin(in->cli, CLI_BOLD), in->job.path, cli_reset(in->cli));
  clv__text_append(text, "IR version %lld, opsets", (long long)graph->ir_version);
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    clv__text_append(text, "%s ", i > 0 ? "," : "");
    clv__label_name(text, graph->imports[i].domain[0] == '\0' ? "ai.onnx" : graph->imports[i].domain);
    clv__text_append(text, " %d", graph->imports[i].version);
  }
  clv__text_append(text, "\n");
  clv__label_plural(text, graph->node_count, "node");
  if (in->folded_nodes > 0) {
    clv__text_append(text, ", of which %llu %s computed when planning", (unsigned long long)in->folded_nodes,
                     in->folded_nodes == 1 ? "is" : "are");
  }
  clv__text_append(text, "\n");
  clv__label_plural(text, in->parameter_count, "parameter");
  clv__text_append(text, " in ");
  clv__label_plural(text, in->parameter_values, "initializer");
  clv__text_append(text, ", %s", clv__label_size(in->parameter_bytes, size));
  if (in->unbound_bytes > 0)
    clv__text_append(text, ", of which the file holds no bytes for %s", clv__label_size(in->unbound_bytes, size));
  clv__text_append(text, "\n");
  if (in->folded_count > 0) {
    clv__label_plural(text, in->folded_count, "number");
    clv__text_append(text, " computed when planning, %s\n", clv__label_size(in->folded_bytes, size));
  }
  clv__label_count(in->flops, number);
  clv__text_append(text, "%s%s%sFLOP a run%s\n", in->flops_complete ? "" : "at least ", number,
                   strchr(number, ' ') != NULL ? "" : " ", /* GFLOP, but 7 FLOP */
                   in->flops_complete    ? ""
                   : inputs_are_open(in) ? " (shapes are open: --shape and --dim set them)"
                                         : " (of some nodes it shows only when they run)");
}

static void write_values(inspection *in, const char *title, const clv_value_id *values, uint32_t count, clv__text *text) {
  const clv_graph *graph = in->job.graph;
  clv__table table;
  clv__table_init(&table, in->cli->allocator, "lll", true);
  clv__table_cell(&table, "%s", title);
  clv__table_cell(&table, "type");
  clv__table_cell(&table, "%s", "");
  for (uint32_t i = 0; i < count; ++i) {
    clv__text name, type;
    clv__text_init(&name, in->cli->allocator);
    clv__text_init(&type, in->cli->allocator);
    clv__label_short(&name, graph->values[values[i]].name, NAME_COLUMNS);
    clv__label_type(&type, graph, &in->shapes->types[values[i]]);
    clv__table_cell(&table, "%s", name.data);
    clv__table_cell(&table, "%s", type.data);
    clv__table_cell(&table, "%s", graph->values[values[i]].type.data != NULL ? "has a default" : "");
    clv__text_finish(&type);
    clv__text_finish(&name);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, in->cli->color_out, text);
  clv__table_finish(&table);
}

static void write_operators(inspection *in, clv__text *text) {
  const clv_devices *devices = in->job.devices;
  clv__table table;
  char alignments[CLV__MAX_DEVICES + 4] = "lrr", label[CLV__LABEL_BYTES];
  uint32_t shown = devices->count < CLV__TABLE_MAX_COLUMNS - 3 ? devices->count : CLV__TABLE_MAX_COLUMNS - 3;
  memset(alignments + 3, 'r', shown);
  alignments[3 + shown] = '\0';
  clv__table_init(&table, in->cli->allocator, alignments, true);
  clv__table_cell(&table, "operator");
  clv__table_cell(&table, "nodes");
  clv__table_cell(&table, "FLOP");
  for (uint32_t d = 0; d < shown; ++d) clv__table_cell(&table, "%s", devices->items[d].name);
  for (uint32_t i = 0; i < in->row_count; ++i) {
    const op_row *row = &in->rows[i];
    clv__table_cell(&table, "%s%s%s", row->domain, row->domain[0] != '\0' ? "." : "", row->op);
    clv__table_cell(&table, "%u", row->count);
    clv__table_cell(&table, "%s", row->flops_complete ? clv__label_count(row->flops, label) : "?");
    for (uint32_t d = 0; d < shown; ++d) {
      uint32_t asked = row->count - row->folded;
      if (asked == 0)
        clv__table_cell(&table, "const");
      else if (row->supported[d] == asked)
        clv__table_cell(&table, "yes");
      else if (row->supported[d] == 0)
        clv__table_cell(&table, "no");
      else
        clv__table_cell(&table, "%u of %u", row->supported[d], asked);
    }
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, in->cli->color_out, text);
  clv__table_finish(&table);
}

/* The reasons of one device, each once with the number of its nodes and the first of them. Verdicts with the same text share it.
 */
static void write_reasons(inspection *in, uint32_t device, clv__text *text) {
  const clv_graph *graph = in->job.graph;
  uint32_t distinct = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const char *reason = clv__capability_reason(&in->capability, n, device);
    if (reason == NULL) continue;
    bool first = true;
    for (clv_node_id k = 0; k < n && first; ++k) {
      first = clv__capability_reason(&in->capability, k, device) != reason || strcmp(graph->nodes[k].op, graph->nodes[n].op) != 0;
    }
    if (!first) continue;
    if (distinct == 0) clv__text_append(text, "\n%s cannot run:\n", in->job.devices->items[device].name);
    if (distinct++ == MOST_REASONS && !in->cli->verbose) {
      clv__text_append(text, "  … (-v lists all)\n");
      return;
    }
    uint32_t count = 0;
    for (clv_node_id k = n; k < graph->node_count; ++k) {
      count +=
          clv__capability_reason(&in->capability, k, device) == reason && strcmp(graph->nodes[k].op, graph->nodes[n].op) == 0;
    }
    clv__text_append(text, "  ");
    clv__label_name(text, graph->nodes[n].op);
    clv__text_append(text, ": ");
    clv__label_name(text, reason);
    clv__text_append(text, " (");
    clv__label_plural(text, count, "node");
    clv__text_append(text, count == 1 ? ": " : ", the first: ");
    clv__label_short(text, graph->nodes[n].name, 40);
    clv__text_append(text, ")\n");
  }
}

static void append_types(inspection *in, const clv_value_id *values, uint32_t count, clv__text *text) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(text, i > 0 ? ", " : "");
    if (values[i] == CLV__NO_ID)
      clv__text_append(text, "-");
    else
      clv__label_type(text, in->job.graph, &in->shapes->types[values[i]]);
  }
}

static void write_nodes(inspection *in, clv__text *text) {
  const clv_graph *graph = in->job.graph;
  clv__table table;
  char label[CLV__LABEL_BYTES];
  bool from_source = false; /* another format than ONNX */
  for (clv_node_id n = 0; n < graph->node_count; ++n) from_source = from_source || graph->nodes[n].source_op[0] != '\0';
  clv__table_init(&table, in->cli->allocator, from_source ? "rlllllr" : "rllllr", true);
  static const char *const titles[] = {"#", "node", "from", "operator", "reads", "writes", "FLOP"};
  for (uint32_t i = 0; i < sizeof titles / sizeof *titles; ++i) {
    if (i != 2 || from_source) clv__table_cell(&table, "%s", titles[i]);
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    clv__text name, reads, writes;
    clv__text_init(&name, in->cli->allocator);
    clv__label_short(&name, node->name, NAME_COLUMNS);
    clv__text_init(&reads, in->cli->allocator);
    clv__text_init(&writes, in->cli->allocator);
    append_types(in, node->inputs, node->input_count, &reads);
    append_types(in, node->outputs, node->output_count, &writes);
    double flops;
    bool known = node_flops(in, n, &flops);
    clv__table_cell(&table, "%u", n);
    clv__table_cell(&table, "%s", name.data);
    if (from_source) clv__table_cell(&table, "%s", node->source_op);
    clv__table_cell(&table, "%s%s%s", node->domain, node->domain[0] != '\0' ? "." : "", node->op);
    clv__table_cell(&table, "%s", reads.data);
    clv__table_cell(&table, "%s", writes.data);
    clv__table_cell(&table, "%s", in->shapes->node_folded[n] ? "const" : known ? clv__label_count(flops, label) : "?");
    clv__text_finish(&writes);
    clv__text_finish(&reads);
    clv__text_finish(&name);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, in->cli->color_out, text);
  clv__table_finish(&table);
}

static clv_status print_text(inspection *in, clv_error *error) {
  clv__text text;
  clv__text_init(&text, in->cli->allocator);
  write_summary(in, &text);
  write_values(in, "input", in->job.graph->inputs, in->job.graph->input_count, &text);
  write_values(in, "output", in->job.graph->outputs, in->job.graph->output_count, &text);
  write_operators(in, &text);
  for (uint32_t d = 0; d < in->job.devices->count; ++d) write_reasons(in, d, &text);
  if (cli_is_given(in->cli, OPTION_NODES)) write_nodes(in, &text);
  return cli_print(in->cli, &text, error);
}

/* ---- JSON ---- */

static json_t *values_json(inspection *in, const clv_value_id *values, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == CLV__NO_ID) {
      json_array_append_new(list, json_null());
      continue;
    }
    json_t *object = cli_json_type(in->job.graph, &in->shapes->types[values[i]]);
    json_object_set_new(object, "name", cli_json_text(in->job.graph->values[values[i]].name));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *node_json(inspection *in, clv_node_id id) {
  const clv__node *node = &in->job.graph->nodes[id];
  json_t *object = json_object(), *refused = json_object();
  double flops;
  bool known = node_flops(in, id, &flops);
  json_object_set_new(object, "name", cli_json_text(node->name));
  json_object_set_new(object, "op", cli_json_text(node->op));
  json_object_set_new(object, "domain", cli_json_text(node->domain));
  if (node->source_op[0] != '\0') {
    json_object_set_new(object, "source_name", cli_json_text(node->source_name));
    json_object_set_new(object, "source_op", cli_json_text(node->source_op));
  }
  json_object_set_new(object, "opset", json_integer(node->opset));
  json_object_set_new(object, "folded", json_boolean(in->shapes->node_folded[id]));
  json_object_set_new(object, "inputs", values_json(in, node->inputs, node->input_count));
  json_object_set_new(object, "outputs", values_json(in, node->outputs, node->output_count));
  json_object_set_new(object, "flops", known ? cli_json_real(flops) : json_null());
  for (uint32_t d = 0; d < in->job.devices->count; ++d) {
    const char *reason = clv__capability_reason(&in->capability, id, d);
    if (reason != NULL) json_object_set_new(refused, in->job.devices->items[d].name, cli_json_text(reason));
  }
  json_object_set_new(object, "refused_by", refused);
  return object;
}

static json_t *operator_json(inspection *in, const op_row *row) {
  json_t *object = json_object(), *supported = json_object();
  json_object_set_new(object, "op", cli_json_text(row->op));
  json_object_set_new(object, "domain", cli_json_text(row->domain));
  json_object_set_new(object, "nodes", json_integer(row->count));
  json_object_set_new(object, "folded", json_integer(row->folded));
  json_object_set_new(object, "flops", cli_json_real(row->flops));
  json_object_set_new(object, "flops_complete", json_boolean(row->flops_complete));
  for (uint32_t d = 0; d < in->job.devices->count; ++d) {
    json_object_set_new(supported, in->job.devices->items[d].name, json_integer(row->supported[d]));
  }
  json_object_set_new(object, "supported", supported);
  return object;
}

static clv_status print_json(inspection *in, clv_error *error) {
  const clv_graph *graph = in->job.graph;
  json_t *root = json_object(), *operators = json_array(), *opsets = json_object();
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    json_object_set_new(opsets, graph->imports[i].domain[0] == '\0' ? "ai.onnx" : graph->imports[i].domain,
                        json_integer(graph->imports[i].version));
  }
  for (uint32_t i = 0; i < in->row_count; ++i) json_array_append_new(operators, operator_json(in, &in->rows[i]));
  json_object_set_new(root, "model", cli_json_text(in->job.path));
  json_object_set_new(root, "ir_version", json_integer((json_int_t)graph->ir_version));
  json_object_set_new(root, "opsets", opsets);
  json_object_set_new(root, "node_count", json_integer(graph->node_count));
  json_object_set_new(root, "folded_nodes", json_integer((json_int_t)in->folded_nodes));
  json_object_set_new(root, "parameters", json_integer((json_int_t)in->parameter_count));
  json_object_set_new(root, "parameter_bytes", json_integer((json_int_t)in->parameter_bytes));
  json_object_set_new(root, "unbound_bytes", json_integer((json_int_t)in->unbound_bytes));
  json_object_set_new(root, "folded_numbers", json_integer((json_int_t)in->folded_count));
  json_object_set_new(root, "folded_bytes", json_integer((json_int_t)in->folded_bytes));
  json_object_set_new(root, "flops", cli_json_real(in->flops));
  json_object_set_new(root, "flops_complete", json_boolean(in->flops_complete));
  json_object_set_new(root, "inputs", values_json(in, graph->inputs, graph->input_count));
  json_object_set_new(root, "outputs", values_json(in, graph->outputs, graph->output_count));
  json_object_set_new(root, "operators", operators);
  if (cli_is_given(in->cli, OPTION_NODES)) {
    json_t *nodes = json_array();
    for (clv_node_id n = 0; n < graph->node_count; ++n) json_array_append_new(nodes, node_json(in, n));
    json_object_set_new(root, "nodes", nodes);
  }
  return cli_json_print(in->cli, root, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  inspection in = {.cli = cli};
  clv__arena_init(&in.arena, cli->allocator);
  clv_status status = cli_job_load(cli, cli->options->operands[0], &in.job, error);
  if (status == CLV_OK) status = analyse(&in, error);
  if (status == CLV_OK) status = cli->json ? print_json(&in, error) : print_text(&in, error);
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
    .summary = "what a model is made of, and which device can run what",
    .description =
        "Shows nodes, parameters, FLOPs (a multiply-add is two), inputs and outputs, and for every operator how many of its\n"
        "nodes each device of --devices can run, with the reasons where it cannot. Of a plan file, its model.",
    .examples =
        "  cleave inspect resnet50.onnx --devices npu,cpu\n"
        "  cleave inspect bert.onnx --dim batch=1 --dim sequence=128 --nodes\n",
    .execute = execute,
};
