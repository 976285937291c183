/* Prepares a run: checks the plan and converts it into tasks with memory. run.c executes them. */
#include <string.h>

#include "base/error.h"
#include "gnn/run/own.h"
#include "gnn/run/single.h"

/* ---- Vertices ---- */

/* Gives every vertex a row in the buffers between layers, so that each subgraph's owned rows are contiguous. */
static clv_status number_vertices(clv__gnn_run *run, clv_error *error) {
  const clv__partitioned *parts = run->partitioned;
  uint32_t used = 0, n = run->vertex_count;
  run->rows = clv__arena_allocate_zero(&run->arena, n, sizeof *run->rows);
  if (run->rows == NULL) return clv__error_memory(error, (size_t)n * sizeof *run->rows);
  run->is_in_order = true;
  for (uint32_t s = 0; s < parts->k; ++s) {
    const clv__subgraph *sub = &parts->subgraphs[s];
    for (uint32_t v = 0; v < sub->owned_count; ++v, ++used) {
      if (used == n || sub->vertices[v] >= n)
        return clv__error_set(error, CLV_INVALID_ARGUMENT, "the subgraphs belong to another graph");
      run->is_in_order = run->is_in_order && sub->vertices[v] == used;
      run->rows[sub->vertices[v]] = used;
    }
  }
  if (used != n)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the subgraphs own %u vertices, but the graph has %u", used, n);
  return CLV_OK;
}

static clv_status count_degrees(clv__gnn_run *run, clv_error *error) {
  const clv__partitioned *parts = run->partitioned;
  run->degrees = clv__arena_allocate_zero(&run->arena, run->vertex_count, sizeof *run->degrees);
  if (run->degrees == NULL) return clv__error_memory(error, (size_t)run->vertex_count * sizeof *run->degrees);
  for (uint32_t s = 0; s < parts->k; ++s) {
    const clv__subgraph *sub = &parts->subgraphs[s];
    for (uint32_t v = 0; v < sub->owned_count; ++v)
      run->degrees[sub->vertices[v]] = (float)(sub->offsets[v + 1] - sub->offsets[v]);
  }
  return CLV_OK;
}

static clv_status find_portion(clv__gnn_run *run, uint32_t subgraph, const clv__pep_part *part, const clv__portion **found,
                               clv_error *error) {
  const clv__subgraph *sub = &run->partitioned->subgraphs[subgraph];
  uint32_t from = clv__subgraph_vertex_at(sub, (double)part->from / CLV__PEP_SHARES);
  uint32_t to = clv__subgraph_vertex_at(sub, (double)part->to / CLV__PEP_SHARES);
  for (clv__run_portion *p = run->portions[subgraph]; p != NULL; p = p->next) {
    *found = &p->portion;
    if (p->portion.from == from && p->portion.to == to) return CLV_OK;
  }
  clv__run_portion *made = clv__arena_allocate(&run->arena, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  CLV__TRY(clv__portion_make(&run->arena, sub, from, to, &made->portion, error));
  made->next = run->portions[subgraph];
  run->portions[subgraph] = made;
  *found = &made->portion;
  return CLV_OK;
}

/* ---- Tasks ---- */

static bool reads_dimension(const clv__stages *stages, const clv__pep_block *block, bool and_makes,
                            clv__layer_dimension dimension) {
  clv__value_set set = clv__block_reads(stages, block->first, block->last, false);
  if (and_makes) set |= clv__block_makes(stages, block->first, block->last);
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    if ((set & CLV__VALUE_BIT(v)) != 0 && clv__layer_value_shape(stages, (clv__layer_value)v).dimension == dimension) return true;
  }
  return false;
}

/* Determines the sizes of a part and its padding. Uses the plan's padded sizes if they suffice, so that several parts share an
 * executable. */
static void size_task(const clv__gnn_run *run, const clv__stages *stages, const clv__pep_block *block, const clv__pep_part *part,
                      bool is_static, const clv__portion *portion, clv__gnn_task *said) {
  clv__layer_sizes *sizes = &said->sizes;
  *sizes = portion->sizes;
  if (!reads_dimension(stages, block, false, CLV__DIMENSION_ROWS)) sizes->rows = sizes->targets;
  if (!reads_dimension(stages, block, true, CLV__DIMENSION_EDGES)) sizes->edges = 0;
  said->padded = *sizes;
  if (!is_static || sizes->targets == 0) return;
  said->padded = clv__block_form_padded(sizes->rows, sizes->edges, run->schedule->machine->pad_step).sizes;
  const clv__layer_sizes *asked = &part->padded;
  if (part->is_static && asked->edges >= said->padded.edges && asked->rows >= said->padded.rows &&
      asked->rows == asked->targets && (asked->edges == sizes->edges || asked->rows > sizes->rows))
    said->padded = *asked;
}

static clv_status make_task(clv__gnn_run *run, uint32_t layer, const clv__gnn_task *where, clv__run_task *task,
                            clv_error *error) {
  const clv__pep *pep = run->schedule->layers[layer][where->turn].pep;
  const clv__pep_block *block = &pep->blocks[where->block];
  const clv__pep_part *part = &block->parts[where->part];
  const clv__device *device = &run->devices->items[run->device_of[part->device]];
  bool is_static = device->info.static_shapes_only;
  task->said = *where;
  task->said.first = block->first;
  task->said.last = block->last;
  task->said.device = part->device;
  task->said.predicted_ns = part->time_ns;
  CLV__TRY(find_portion(run, where->subgraph, part, &task->portion, error));
  size_task(run, &run->layers[layer].stages, block, part, is_static, task->portion, &task->said);
  if (task->portion->sizes.targets == 0) {
    task->said.predicted_ns = 0;
    return CLV_OK;
  }
  if (!clv__device_runs_fixed(device) && run->schedule->machine->devices[part->device].space == 0) {
    const clv__csr csr = clv__run_portion_csr(task->portion);
    task->sweep = clv__sweep_find(&run->layers[layer].stages, block->first, block->last, &csr);
  }
  return clv__run_block_find(run, &task->said, is_static, &task->block, error);
}

/* Finds the values that cross between blocks, and their offsets in the turn's room. */
static clv_status lay_out(const clv__gnn_run *run, const clv__stages *stages, const clv__pep *pep, clv__run_turn *turn,
                          clv_error *error) {
  const clv__subgraph *sub = &run->partitioned->subgraphs[turn->subgraph];
  const clv__layer_sizes whole = {(uint64_t)sub->owned_count + sub->halo_count, sub->owned_count, sub->edge_count};
  for (uint32_t b = 1; b < pep->block_count; ++b)
    turn->crossing |= clv__block_reads(stages, pep->blocks[b].first, pep->blocks[b].last, false) & ~CLV__VALUES_GIVEN;
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    if ((turn->crossing & CLV__VALUE_BIT(v)) == 0) continue;
    turn->offsets[v] = turn->size_bytes;
    uint64_t bytes = clv__layer_value_bytes(stages, (clv__layer_value)v, whole);
    if (bytes > SIZE_MAX / 2 || !clv__add(turn->size_bytes, clv__align_up((size_t)bytes, CLV__ALIGNMENT), &turn->size_bytes))
      return clv__error_memory(error, SIZE_MAX);
  }
  return CLV_OK;
}

static clv_status make_turn(clv__gnn_run *run, uint32_t index, uint32_t p, clv_error *error) {
  clv__run_layer *layer = &run->layers[index];
  const clv__gnn_turn *said = &run->schedule->layers[index][p], *before = p > 0 ? said - 1 : NULL;
  clv__run_turn *turn = &layer->turns[p];
  bool goes_on = before != NULL && clv__pep_same(before->pep, said->pep);
  *turn = (clv__run_turn){.subgraph = said->subgraph, .block_count = said->pep->block_count, .room = CLV__NO_ID};
  layer->cluster_count += !goes_on;
  turn->cluster = layer->cluster_count - 1;
  turn->run = goes_on ? turn[-1].run + 1 : 0;
  CLV__TRY(lay_out(run, &layer->stages, said->pep, turn, error));
  if (turn->size_bytes > layer->room_bytes) layer->room_bytes = turn->size_bytes;
  for (uint32_t b = 0; b < turn->block_count; ++b) {
    turn->first_task[b] = layer->task_count;
    for (uint32_t i = 0; i < said->pep->blocks[b].part_count; ++i) {
      clv__gnn_task where = {
          .layer = index, .turn = p, .cluster = turn->cluster, .subgraph = said->subgraph, .block = b, .part = i};
      clv_status status = make_task(run, index, &where, &layer->tasks[layer->task_count++], error);
      if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u, subgraph %u", index, said->subgraph);
    }
  }
  turn->first_task[turn->block_count] = layer->task_count;
  return CLV_OK;
}

static clv_status make_layers(clv__gnn_run *run, clv_error *error) {
  uint32_t k = run->schedule->k;
  for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
    clv__run_layer *layer = &run->layers[i];
    layer->turns = clv__arena_allocate_zero(&run->arena, k, sizeof *layer->turns);
    layer->tasks = clv__arena_allocate_zero(&run->arena, (size_t)k * CLV__PEP_DEVICES, sizeof *layer->tasks);
    if (layer->turns == NULL || layer->tasks == NULL)
      return clv__error_memory(error, k * (sizeof *layer->turns + CLV__PEP_DEVICES * sizeof *layer->tasks));
    for (uint32_t p = 0; p < k; ++p) CLV__TRY(make_turn(run, i, p, error));
    run->task_count += layer->task_count;
  }
  return CLV_OK;
}

/* Sets each task's weight in the progress: its predicted time if all tasks have one, otherwise its number of rows and edges. */
static void weigh(clv__gnn_run *run) {
  bool is_predicted = true;
  for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
    const clv__run_layer *layer = &run->layers[i];
    for (uint32_t t = 0; t < layer->task_count; ++t)
      is_predicted = is_predicted && (layer->tasks[t].said.predicted_ns > 0 || layer->tasks[t].portion->sizes.targets == 0);
  }
  for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
    clv__run_layer *layer = &run->layers[i];
    for (uint32_t t = 0; t < layer->task_count; ++t) {
      const clv__gnn_task *said = &layer->tasks[t].said;
      layer->tasks[t].weight = is_predicted ? said->predicted_ns : (double)said->sizes.rows + (double)said->sizes.edges;
      run->weight += layer->tasks[t].weight;
    }
  }
}

/* ---- Memory ---- */

static clv_status make_memory(clv__gnn_run *run, clv_error *error) {
  const clv__gnn_model *model = run->model;
  size_t widest = 0, count, size_bytes;
  uint32_t k = run->schedule->k;
  run->said = clv__arena_allocate_zero(&run->arena, run->task_count, sizeof *run->said);
  run->rooms = clv__arena_allocate_zero(&run->arena, k, sizeof *run->rooms);
  run->room_is_taken = clv__arena_allocate_zero(&run->arena, k, sizeof *run->room_is_taken);
  run->layer_ns = clv__arena_allocate_zero(&run->arena, model->layer_count, sizeof *run->layer_ns);
  if (run->said == NULL || run->rooms == NULL || run->room_is_taken == NULL || run->layer_ns == NULL)
    return clv__error_memory(error, run->task_count * sizeof *run->said + k * sizeof *run->rooms);
  for (uint32_t i = 0; i + 1 < model->layer_count; ++i) {
    uint32_t width = clv__gnn_layer_width(&model->layers[i]);
    if (width > widest) widest = width;
  }
  if (!clv__multiply(run->vertex_count, widest, &count) || !clv__multiply(count, sizeof(float), &size_bytes))
    return clv__error_memory(error, SIZE_MAX);
  for (uint32_t i = 0; i < 2 && i + 1 < model->layer_count; ++i) {
    run->between[i] = clv__allocate(run->allocator, size_bytes);
    if (run->between[i] == NULL) return clv__error_memory(error, size_bytes);
  }
  return CLV_OK;
}

/* Prepares run->memory, which tells whether blocks fit the memory of devices. */
static clv_status make_limits(clv__gnn_run *run, clv_error *error) {
  clv__stages *stages = clv__arena_allocate_zero(&run->arena, run->model->layer_count, sizeof *stages);
  if (stages == NULL) return clv__error_memory(error, run->model->layer_count * sizeof *stages);
  for (uint32_t i = 0; i < run->model->layer_count; ++i) stages[i] = run->layers[i].stages;
  return clv__memory_init(&run->memory, &run->arena, run->devices, run->device_of, run->schedule->machine->device_count, stages,
                          run->model->layer_count, error);
}

static clv_status make(clv__gnn_run *run, clv_error *error) {
  const clv__gnn_model *model = run->model;
  CLV__TRY(clv__gnn_check_fit(model, run->graph, error));
  run->layers = clv__arena_allocate_zero(&run->arena, model->layer_count, sizeof *run->layers);
  run->portions = clv__arena_allocate_zero(&run->arena, run->partitioned->k, sizeof *run->portions);
  if (run->layers == NULL || run->portions == NULL) return clv__error_memory(error, model->layer_count * sizeof *run->layers);
  for (uint32_t i = 0; i < model->layer_count; ++i)
    clv__stages_of(model->type, &model->layers[i], CLV_F32, &run->layers[i].stages);
  CLV__TRY(clv__run_check_schedule(run, error));
  CLV__TRY(make_limits(run, error));
  CLV__TRY(number_vertices(run, error));
  if (model->type == CLV__GNN_GCN) CLV__TRY(count_degrees(run, error));
  CLV__TRY(make_layers(run, error));
  weigh(run);
  CLV__TRY(make_memory(run, error));
  return clv__run_blocks_open(run, error);
}

clv_status clv__gnn_run_create(clv_devices *devices, const clv__gnn_model *model, const clv__gnn_graph *graph,
                               const clv__partitioned *partitioned, const clv__gnn_schedule *schedule, clv__gnn_run **out,
                               clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  *out = NULL;
  clv__gnn_run *run = clv__allocate_zero(allocator, sizeof *run);
  if (run == NULL) return clv__error_memory(error, sizeof *run);
  *run = (clv__gnn_run){.allocator = allocator,
                        .devices = devices,
                        .model = model,
                        .graph = graph,
                        .partitioned = partitioned,
                        .schedule = schedule,
                        .vertex_count = graph->csr.vertex_count};
  clv__arena_init(&run->arena, allocator);
  pthread_mutex_init(&run->memory_lock, NULL);
  clv_status status = make(run, error);
  if (status == CLV_OK)
    *out = run;
  else
    clv__gnn_run_destroy(run);
  return status;
}

void clv__gnn_run_close(clv__gnn_run *run) {
  if (run != NULL) clv__run_blocks_close(run);
}

void clv__gnn_run_destroy(clv__gnn_run *run) {
  if (run == NULL) return;
  clv__run_blocks_close(run);
  for (uint32_t i = 0; i < 2; ++i) clv__release(run->allocator, run->between[i]);
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) clv__release(run->allocator, run->scratch[d].data);
  for (uint32_t r = 0; run->rooms != NULL && r < run->schedule->k; ++r) clv__release(run->allocator, run->rooms[r].data);
  pthread_mutex_destroy(&run->memory_lock);
  clv__arena_finish(&run->arena);
  clv__release(run->allocator, run);
}
