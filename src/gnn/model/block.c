/* Builds blocks as graphs and asks devices whether they support them. See block.h. */
#include "gnn/model/block.h"

#include <stdio.h>
#include <string.h>

#include "analysis/open.h"
#include "gnn/model/block_emit.h"

enum { OPSET = 20, LEAST_ROWS = 64, LEAST_EDGES = 128 };

clv__block_form clv__block_form_padded(uint64_t rows, uint64_t edges, uint64_t step) {
  uint64_t m_pad = clv__pad_up(edges, step), n_pad = clv__pad_up(rows + (m_pad != edges), step);
  clv__layer_sizes sizes = {.rows = n_pad, .targets = n_pad, .edges = m_pad};
  return (clv__block_form){.is_fixed = true, .same_rows = true, .sizes = sizes};
}

/* ---- Building ---- */

static clv_status check_form(const clv__block_form *form, clv_error *error) {
  const clv__layer_sizes *sizes = &form->sizes;
  if (!form->is_fixed) return CLV_OK;
  if (sizes->targets > sizes->rows || (form->same_rows && sizes->targets != sizes->rows))
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "a block has %llu targets and %llu rows; expected no more targets than rows, or as many if both are the same vertices",
        (unsigned long long)sizes->targets, (unsigned long long)sizes->rows);
  if (sizes->rows > INT32_MAX || sizes->edges > INT64_MAX / 1024)
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "a block has %llu rows and %llu edges, but at most %d and %lld are possible: partition the graph into more parts",
        (unsigned long long)sizes->rows, (unsigned long long)sizes->edges, INT32_MAX, (long long)(INT64_MAX / 1024));
  return CLV_OK;
}

static clv_status find_dims(const clv__block_form *form, clv__builder *builder, int64_t dims[CLV__LAYER_DIMENSIONS],
                            clv_error *error) {
  static const char *const names[CLV__LAYER_DIMENSIONS] = {"rows", "targets", "offsets", "edges"};
  for (uint32_t d = 0; d < CLV__LAYER_DIMENSIONS; ++d) {
    bool is_targets = d == CLV__DIMENSION_TARGETS && form->same_rows;
    uint32_t symbol;
    dims[d] = (int64_t)clv__layer_dimension_size((clv__layer_dimension)d, form->sizes);
    if (form->is_fixed) continue;
    CLV__TRY(clv__builder_symbol(builder, names[is_targets ? CLV__DIMENSION_ROWS : d], &symbol, error));
    dims[d] = CLV_DIM_SYMBOL(symbol);
  }
  return CLV_OK;
}

static clv_status add_inputs(clv__block *block, clv__emitter *emitter, clv_error *error) {
  static const clv__layer_value pairs[][2] = {{CLV__VALUE_OWN, CLV__VALUE_ROWS}, {CLV__VALUE_OWN_DEGREES, CLV__VALUE_DEGREES}};
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    if ((block->reads & CLV__VALUE_BIT(v)) == 0) continue;
    clv_value_id id = clv__emit_value(emitter, (clv__layer_value)v);
    CLV__TRY(emitter->status);
    CLV__TRY(clv__builder_input(emitter->builder, id, error));
    block->inputs[block->input_count++] = (clv__layer_value)v;
  }
  /* If the targets are all rows, and the block reads only the rows' value of a pair, the graph uses this value for the targets
   * too. */
  for (size_t p = 0; p < sizeof pairs / sizeof *pairs; ++p) {
    clv__value_set both = CLV__VALUE_BIT(pairs[p][0]) | CLV__VALUE_BIT(pairs[p][1]);
    if (block->form.same_rows && (block->reads & both) == CLV__VALUE_BIT(pairs[p][1]))
      emitter->ids[pairs[p][0]] = emitter->ids[pairs[p][1]];
  }
  return CLV_OK;
}

static clv_status add_outputs(clv__block *block, clv__emitter *emitter, clv_error *error) {
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    if ((block->makes & CLV__VALUE_BIT(v)) == 0) continue;
    CLV__TRY(clv__builder_output(emitter->builder, emitter->ids[v], error));
    block->outputs[block->output_count++] = (clv__layer_value)v;
  }
  return CLV_OK;
}

static clv_status build(clv__block *block, clv__builder *builder, clv_error *error) {
  int64_t dims[CLV__LAYER_DIMENSIONS];
  char name[96];
  CLV__TRY(clv__builder_import(builder, "", OPSET, error));
  CLV__TRY(clv__builder_import(builder, "ai.cleave", 1, error));
  CLV__TRY(find_dims(&block->form, builder, dims, error));
  clv__emitter emitter = {
      .builder = builder, .stages = &block->stages, .dims = dims, .prefix = "", .status = CLV_OK, .error = error};
  memset(emitter.ids, 0xff, sizeof emitter.ids);
  CLV__TRY(add_inputs(block, &emitter, error));
  for (uint32_t s = block->first; s < block->last;) {
    clv__layer_step step = clv__layer_step_at(&block->stages, s, block->last);
    clv__emit_step(&emitter, &step);
    s = step.last;
  }
  CLV__TRY(emitter.status);
  CLV__TRY(add_outputs(block, &emitter, error));
  snprintf(name, sizeof name, "%s_%s_to_%s", clv__gnn_type_name(block->stages.type),
           clv__stage_name(block->stages.items[block->first]), clv__stage_name(block->stages.items[block->last - 1]));
  const char *kept = clv__arena_string(clv__builder_arena(builder), name, strlen(name));
  if (kept == NULL) return clv__error_memory(error, sizeof name);
  clv__builder_info(builder, kept, "", 9);
  return CLV_OK;
}

clv_status clv__block_make(const clv_allocator *allocator, const clv__stages *stages, uint32_t first, uint32_t last,
                           const clv__block_form *form, clv__block *block, clv_error *error) {
  clv__builder *builder;
  *block = (clv__block){.stages = *stages, .first = first, .last = last, .form = *form};
  if (first >= last || last > stages->count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a block has stages %u to %u, but there are %u stages", first, last,
                          stages->count);
  CLV__TRY(check_form(form, error));
  block->reads = clv__block_reads(stages, first, last, form->same_rows);
  block->makes = clv__block_makes(stages, first, last);
  CLV__TRY(clv__builder_create(allocator, &builder, error));
  clv_status status = build(block, builder, error);
  if (status == CLV_OK)
    status = clv__builder_finish(builder, &block->graph, error);
  else
    clv__builder_destroy(builder);
  if (status != CLV_OK) block->graph = NULL;
  return status;
}

void clv__block_finish(clv__block *block) {
  clv__graph_destroy(block->graph);
  block->graph = NULL;
}

/* ---- Views ---- */

clv_status clv__block_view_make(const clv__block *block, clv__block_view *view, clv_error *error) {
  *view = (clv__block_view){.shapes = NULL};
  clv__arena_init(&view->arena, block->graph->allocator);
  clv_status status = clv__shapes_infer(block->graph, NULL, 0, 0, &view->shapes, error);
  if (status == CLV_OK) status = clv__view_create_whole(block->graph, view->shapes->types, &view->arena, &view->view, error);
  if (status != CLV_OK) clv__block_view_finish(view);
  return status;
}

void clv__block_view_finish(clv__block_view *view) {
  clv__shapes_destroy(view->shapes);
  if (view->arena.allocator != NULL) clv__arena_finish(&view->arena);
  *view = (clv__block_view){.shapes = NULL};
}

/* ---- Devices' support ---- */

static clv_status ask(clv_devices *devices, uint32_t device, const clv__block_view *whole, bool *runs, char reason[200],
                      clv_error *error) {
  clv__capability capability;
  const clv_graph_view *view = whole->view;
  CLV__TRY(clv__capability_ask(devices, view, whole->shapes->node_folded, NULL, NULL, NULL, NULL, &capability, error));
  *runs = true;
  for (uint32_t n = 0; n < view->node_count && *runs; ++n) {
    const char *why = clv__capability_reason(&capability, n, device);
    if (why == NULL) continue;
    *runs = false;
    snprintf(reason, 200, "%.60s: %.130s", view->graph->nodes[n].op, why);
  }
  clv__capability_finish(&capability);
  return CLV_OK;
}

clv_status clv__block_ask(clv_devices *devices, uint32_t device, const clv__block *block, bool *runs, char reason[200],
                          clv_error *error) {
  clv__block_view whole;
  *runs = false;
  reason[0] = '\0';
  /* A device of fixed shapes would receive the padded form, so ask about that form. */
  if (!block->form.is_fixed && devices->items[device].info.static_shapes_only) {
    clv__block_form form = clv__block_form_padded(LEAST_ROWS, LEAST_EDGES, LEAST_ROWS);
    clv__block fixed;
    CLV__TRY(clv__block_make(clv__context_allocator(devices->context), &block->stages, block->first, block->last, &form, &fixed,
                             error));
    clv_status status = clv__block_ask(devices, device, &fixed, runs, reason, error);
    clv__block_finish(&fixed);
    return status;
  }
  CLV__TRY(clv__block_view_make(block, &whole, error));
  clv__devices_lock(devices);
  clv_status status = ask(devices, device, &whole, runs, reason, error);
  clv__devices_unlock(devices);
  clv__block_view_finish(&whole);
  return status;
}

/* Asks every device about one block. */
static clv_status ask_all(clv_devices *devices, const clv__stages *stages, uint32_t first, uint32_t last, clv__stage_table *table,
                          clv_error *error) {
  clv__block_form form = clv__block_form_open(false);
  clv__block block;
  clv_status status = clv__block_make(clv__context_allocator(devices->context), stages, first, last, &form, &block, error);
  for (uint32_t d = 0; d < devices->count && status == CLV_OK; ++d) {
    char reason[200];
    status = clv__block_ask(devices, d, &block, &table->runs[d][first][last], reason, error);
    if (first + 1 == last) memcpy(table->reasons[d][first], reason, sizeof reason);
  }
  clv__block_finish(&block);
  return status;
}

clv_status clv__stage_table_make(clv_devices *devices, const clv__stages *stages, clv__stage_table *table, clv_error *error) {
  memset(table, 0, sizeof *table);
  table->stage_count = stages->count;
  table->device_count = devices->count;
  for (uint32_t first = 0; first < stages->count; ++first) {
    for (uint32_t last = first + 1; last <= stages->count; ++last) CLV__TRY(ask_all(devices, stages, first, last, table, error));
  }
  return CLV_OK;
}
