/* See planning.h. */
#include "gnn/planning.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "gnn/plan/subgraph_sizes.h"
#include "gnn/run/single.h"

/* The merge cost if the tables have none: about the time to wake a thread that waits for another. It is small compared with
 * any block that is worth dividing among devices. */
#define MERGE_NS 20e3

/* ---- The machine ---- */

static clv_status make_machine(clv__gnn_planning *p, uint64_t pad_step, clv_error *error) {
  const clv_devices *devices = p->devices;
  clv__machine *machine = &p->machine;
  if (devices->count > CLV__PEP_DEVICES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u devices, but at most %d can share a graph: choose them with --devices",
                          devices->count, CLV__PEP_DEVICES);
  *machine = (clv__machine){.device_count = devices->count, .pad_step = pad_step, .merge_ns = MERGE_NS, .queue_depth = 2};
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv__device *device = &devices->items[d];
    machine->devices[d] = (clv__machine_device){.name = device->name,
                                                .space = device->space,
                                                .is_static = device->info.static_shapes_only,
                                                .memory_bytes = device->info.memory_limit_bytes};
  }
  return CLV_OK;
}

/* Whether the device runs a block that contains the stage. It may reject the stage alone and run it fused with others. */
static bool runs_stage(const clv__stage_table *table, uint32_t device, uint32_t stage) {
  for (uint32_t first = 0; first <= stage; ++first) {
    for (uint32_t last = stage + 1; last <= table->stage_count; ++last) {
      if (table->runs[device][first][last]) return true;
    }
  }
  return false;
}

/* Asks every device which blocks of each layer it runs. A device that runs a stage in no block of one layer does not get this
 * stage in any layer, because clv__machine_device.cannot is for all layers. */
static clv_status ask_layers(clv__gnn_planning *p, clv_error *error) {
  uint32_t count = p->model->layer_count;
  p->stages = clv__arena_allocate_zero(&p->arena, count, sizeof *p->stages);
  p->chains = clv__arena_allocate_zero(&p->arena, count, sizeof *p->chains);
  p->runs = clv__arena_allocate_zero(&p->arena, count, sizeof *p->runs);
  if (p->stages == NULL || p->chains == NULL || p->runs == NULL) return clv__error_memory(error, count * sizeof *p->chains);
  for (uint32_t i = 0; i < count; ++i) {
    clv__stages_of(p->model->type, &p->model->layers[i], CLV_F32, &p->stages[i]);
    clv__chain_of(&p->stages[i], &p->chains[i]);
    p->runs[i] = clv__arena_allocate(&p->arena, sizeof *p->runs[i]);
    if (p->runs[i] == NULL) return clv__error_memory(error, sizeof *p->runs[i]);
    clv_status status = clv__stage_table_make(p->devices, &p->stages[i], p->runs[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u", i);
    for (uint32_t d = 0; d < p->machine.device_count; ++d) {
      for (uint32_t s = 0; s < p->stages[i].count; ++s) {
        if (!runs_stage(p->runs[i], d, s)) p->machine.devices[d].cannot |= 1u << p->stages[i].items[s];
      }
    }
  }
  return CLV_OK;
}

static clv_status init_memory(clv__gnn_planning *p, clv_error *error) {
  uint32_t device_of[CLV__PEP_DEVICES];
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) device_of[d] = d;
  return clv__memory_init(&p->memory, &p->arena, p->devices, device_of, p->machine.device_count, p->stages, p->model->layer_count,
                          error);
}

/* ---- Cuts: the partitioning of the graph for each k ---- */

/* The settings for partitioning the graph for each k. */
typedef struct cutting {
  const uint32_t *ks;
  uint32_t count;
  const clv__membership *given; /* [count]; NULL: use METIS or the cache */
  clv__cache *cache;
  void (*progress)(void *user_data, uint32_t k);
  void *user_data;
} cutting;

static clv_status copy_membership(const clv_allocator *allocator, const clv__membership *given, clv__membership *own,
                                  clv_error *error) {
  size_t size_bytes = (size_t)given->vertex_count * sizeof *given->parts;
  uint32_t *parts = clv__allocate(allocator, size_bytes);
  if (parts == NULL) return clv__error_memory(error, size_bytes);
  memcpy(parts, given->parts, size_bytes);
  *own = (clv__membership){.k = given->k, .vertex_count = given->vertex_count, .parts = parts};
  return CLV_OK;
}

static clv_status make_cut(clv__gnn_planning *p, const cutting *how, uint32_t index, clv__gnn_cut *cut, clv_error *error) {
  clv__partitioned partitioned;
  uint32_t k = cut->membership.k;
  if (how->given != NULL)
    CLV__TRY(copy_membership(p->arena.allocator, &how->given[index], &cut->membership, error));
  else
    CLV__TRY(clv__membership_make(p->arena.allocator, p->graph, k, p->seed, how->cache, &cut->membership, error));
  cut->subgraphs = clv__arena_allocate_zero(&p->arena, k, sizeof *cut->subgraphs);
  cut->subgraph_cut_edges = clv__arena_allocate_zero(&p->arena, k, sizeof *cut->subgraph_cut_edges);
  if (cut->subgraphs == NULL || cut->subgraph_cut_edges == NULL) return clv__error_memory(error, k * sizeof *cut->subgraphs);
  CLV__TRY(clv__gnn_planning_subgraphs(p, k, &partitioned, error));
  clv_status status = CLV_OK;
  cut->communication_volume = partitioned.communication_volume;
  for (uint32_t i = 0; i < k && status == CLV_OK; ++i) {
    cut->edge_count += partitioned.subgraphs[i].edge_count;
    cut->cut_edges += cut->subgraph_cut_edges[i] = partitioned.subgraphs[i].cut_edge_count;
    status = clv__subgraph_sizes_of(&p->arena, &partitioned.subgraphs[i], &cut->subgraphs[i], error);
  }
  clv__partitioned_finish(&partitioned);
  return status;
}

static clv_status make_cuts(clv__gnn_planning *p, const cutting *how, clv_error *error) {
  uint32_t count = how->count;
  p->cuts = clv__arena_allocate_zero(&p->arena, count, sizeof *p->cuts);
  p->choose_cuts = clv__arena_allocate_zero(&p->arena, count, sizeof *p->choose_cuts);
  if (p->cuts == NULL || p->choose_cuts == NULL) return clv__error_memory(error, count * sizeof *p->cuts);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t k = how->given != NULL ? how->given[i].k : how->ks[i];
    if (how->progress != NULL) how->progress(how->user_data, k);
    p->cut_count = i + 1;
    p->cuts[i].membership.k = k;
    clv_status status = make_cut(p, how, i, &p->cuts[i], error);
    /* Errors from METIS already name k. */
    if (status != CLV_OK) return how->given == NULL ? status : clv__error_prefix(error, status, "k = %u", k);
    p->choose_cuts[i] = (clv__choose_cut){k, p->cuts[i].subgraphs};
  }
  return CLV_OK;
}

clv_status clv__gnn_planning_cut(clv__gnn_planning *p, uint32_t k, clv__cache *cache, clv_error *error) {
  uint32_t count = p->cut_count;
  const cutting how = {.cache = cache};
  clv__gnn_cut *cuts = clv__arena_allocate_zero(&p->arena, count + 1u, sizeof *cuts);
  clv__choose_cut *choose_cuts = clv__arena_allocate_zero(&p->arena, count + 1u, sizeof *choose_cuts);
  if (cuts == NULL || choose_cuts == NULL) return clv__error_memory(error, (count + 1u) * sizeof *cuts);
  memcpy(cuts, p->cuts, count * sizeof *cuts);
  memcpy(choose_cuts, p->choose_cuts, count * sizeof *choose_cuts);
  cuts[count].membership.k = k;
  p->cuts = cuts;
  p->choose_cuts = choose_cuts;
  p->cut_count = count + 1;
  CLV__TRY(make_cut(p, &how, count, &cuts[count], error));
  choose_cuts[count] = (clv__choose_cut){k, cuts[count].subgraphs};
  return CLV_OK;
}

clv_status clv__gnn_planning_subgraphs(const clv__gnn_planning *p, uint32_t k, clv__partitioned *partitioned, clv_error *error) {
  const clv__gnn_graph *graph = p->looped != NULL ? p->looped : p->graph;
  for (uint32_t i = 0; i < p->cut_count; ++i) {
    if (p->cuts[i].membership.k == k)
      return clv__partitioned_make(p->arena.allocator, graph, &p->cuts[i].membership, partitioned, error);
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "the graph was not partitioned into %u subgraphs", k);
}

static clv_status init(clv__gnn_planning *p, uint64_t pad_step, const cutting *how, clv_error *error) {
  clv__arena_init(&p->arena, clv__context_allocator(p->devices->context));
  clv_status status = clv__gnn_check_fit(p->model, p->graph, error);
  if (status == CLV_OK && p->model->type != CLV__GNN_SAGE) status = clv__gnn_graph_with_loops(p->graph, &p->looped, error);
  if (status == CLV_OK) status = make_machine(p, pad_step, error);
  if (status == CLV_OK) status = ask_layers(p, error);
  if (status == CLV_OK) status = init_memory(p, error);
  if (status == CLV_OK) status = make_cuts(p, how, error);
  if (status != CLV_OK) clv__gnn_planning_finish(p);
  return status;
}

clv_status clv__gnn_planning_init(clv__gnn_planning *p, clv_devices *devices, const clv__gnn_model *model,
                                  const clv__gnn_graph *graph, const uint32_t *ks, uint32_t k_count, uint64_t seed,
                                  uint64_t pad_step, clv__cache *cache, void (*progress)(void *user_data, uint32_t k),
                                  void *user_data, clv_error *error) {
  *p = (clv__gnn_planning){.devices = devices, .model = model, .graph = graph, .seed = seed};
  return init(p, pad_step, &(cutting){ks, k_count, NULL, cache, progress, user_data}, error);
}

clv_status clv__gnn_planning_init_parts(clv__gnn_planning *p, clv_devices *devices, const clv__gnn_model *model,
                                        const clv__gnn_graph *graph, const clv__membership *given, uint32_t count,
                                        uint64_t pad_step, clv_error *error) {
  *p = (clv__gnn_planning){.devices = devices, .model = model, .graph = graph};
  return init(p, pad_step, &(cutting){.count = count, .given = given}, error);
}

void clv__gnn_planning_finish(clv__gnn_planning *p) {
  if (p->arena.allocator == NULL) return;
  for (uint32_t i = 0; i < p->cut_count; ++i) clv__membership_finish(p->arena.allocator, &p->cuts[i].membership);
  clv__gnn_graph_destroy(p->looped);
  clv__arena_finish(&p->arena);
  *p = (clv__gnn_planning){0};
}

/* ---- The choice ---- */

static double overhead_of(const clv__tables *tables, clv__overhead_kind kind, const char *device, double otherwise_ns) {
  const clv__table_overhead *overhead = clv__tables_find_overhead(tables, kind, device);
  return overhead != NULL ? round(overhead->time_ns) : otherwise_ns; /* whole nanoseconds, like all times of a plan */
}

static void take_overheads(clv__gnn_planning *p, const clv__tables *tables) {
  clv__machine *machine = &p->machine;
  machine->merge_ns = overhead_of(tables, CLV__OVERHEAD_MERGE, "", MERGE_NS);
  p->exchange_ns = overhead_of(tables, CLV__OVERHEAD_EXCHANGE, "", 0);
  for (uint32_t d = 0; d < machine->device_count; ++d)
    machine->devices[d].switch_ns = overhead_of(tables, CLV__OVERHEAD_SWITCH, machine->devices[d].name, 0);
}

/* Drops the prices of blocks that a device does not run. Imported measurements may have such prices. */
static void drop_rejected(const clv__gnn_planning *p, uint32_t layer, clv__costs *costs) {
  const clv__stage_table *table = p->runs[layer];
  for (uint32_t d = 0; d < table->device_count; ++d) {
    for (uint32_t first = 0; first < table->stage_count; ++first) {
      for (uint32_t last = first + 1; last <= table->stage_count; ++last)
        if (!table->runs[d][first][last]) costs->blocks[d][first][last] = NULL;
    }
  }
}

clv_status clv__gnn_planning_choose(clv__gnn_planning *p, const clv__tables *tables, const clv__choose_options *options,
                                    clv__choice *choice, clv_error *error) {
  for (uint32_t d = 0; d < p->machine.device_count; ++d)
    CLV__TRY(clv__tables_check_device(tables, p->machine.devices[d].name, p->devices->items[d].info.fingerprint, error));
  uint32_t count = p->model->layer_count;
  take_overheads(p, tables);
  clv__costs *costs = clv__arena_allocate_zero(&p->arena, count, sizeof *costs);
  if (costs == NULL) return clv__error_memory(error, count * sizeof *costs);
  for (uint32_t i = 0; i < count; ++i) {
    clv_status status = clv__costs_init(&costs[i], tables, &p->machine, &p->chains[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u", i);
    drop_rejected(p, i, &costs[i]);
    costs[i].is_last = i + 1 == count;
    costs[i].memory = &p->memory;
    costs[i].layer = i;
  }
  p->costs = costs;
  clv__choose_options asked = *options;
  asked.exchange_ns = p->exchange_ns;
  clv_status status = clv__choose(&p->arena, costs, count, p->choose_cuts, p->cut_count, &asked, choice, error);
  return p->memory.status == CLV_OK ? status : clv__error_set(error, p->memory.status, "%s", p->memory.error.message);
}

/* ---- The plan ---- */

static void name_membership(const clv__membership *membership, char text[2 * CLV__HASH_BYTES + 1]) {
  clv__hash hash;
  clv__hash_bytes(membership->parts, (size_t)membership->vertex_count * sizeof *membership->parts, &hash);
  clv__hash_text(&hash, text);
}

static void name_model(const clv__gnn_model *model, char text[2 * CLV__HASH_BYTES + 1]) {
  clv__hash hash;
  clv__gnn_model_hash(model, &hash);
  clv__hash_text(&hash, text);
}

static clv_status name_tables(const clv__gnn_planning *p, const clv__tables *tables, char name[2 * CLV__HASH_BYTES + 1],
                              clv_error *error) {
  clv__hash hash;
  clv__text text;
  clv__text_init(&text, p->arena.allocator);
  clv_status status = clv__tables_print(tables, &text, error);
  if (status == CLV_OK) {
    clv__hash_bytes(text.data, text.size_bytes, &hash);
    clv__hash_text(&hash, name);
  }
  clv__text_finish(&text);
  return status;
}

clv_status clv__gnn_planning_plan(const clv__gnn_planning *p, const clv__tables *tables, const clv__choice *choice,
                                  const char *model_path, const char *graph_path, clv__gnn_plan **plan, clv_error *error) {
  char model[2 * CLV__HASH_BYTES + 1], graph[2 * CLV__HASH_BYTES + 1],
      membership[2 * CLV__HASH_BYTES + 1] = "", table[2 * CLV__HASH_BYTES + 1];
  for (uint32_t c = 0; c < p->cut_count; ++c) {
    if (p->cuts[c].membership.k == choice->items[choice->chosen].k) name_membership(&p->cuts[c].membership, membership);
  }
  name_model(p->model, model);
  clv__hash_text(&p->graph->hash, graph);
  CLV__TRY(name_tables(p, tables, table, error));
  const clv__gnn_plan_names names = {model_path, model, graph_path, graph, membership, table, p->seed};
  return clv__gnn_plan_make(p->arena.allocator, &names, p->costs, choice, p->exchange_ns, plan, error);
}

clv_status clv__gnn_schedule_of(clv__arena *arena, const clv__gnn_plan *plan, clv__gnn_schedule *schedule, clv_error *error) {
  const clv__gnn_turn **layers = clv__arena_allocate_zero(arena, plan->layer_count, sizeof *layers);
  if (layers == NULL) return clv__error_memory(error, plan->layer_count * sizeof *layers);
  for (uint32_t i = 0; i < plan->layer_count; ++i) {
    clv__gnn_turn *turns = clv__arena_allocate_zero(arena, plan->k, sizeof *turns);
    if (turns == NULL) return clv__error_memory(error, plan->k * sizeof *turns);
    for (uint32_t a = 0; a < plan->k; ++a) {
      turns[a].subgraph = plan->layers[i].sequence[a];
      turns[a].pep = &plan->layers[i].peps[turns[a].subgraph];
    }
    layers[i] = turns;
  }
  *schedule = (clv__gnn_schedule){&plan->machine, plan->layer_count, plan->k, layers};
  return CLV_OK;
}

static clv_status check_plan(const clv__gnn_plan *plan, const clv__gnn_model *model, const clv__gnn_graph *graph,
                             clv_error *error) {
  char text[2 * CLV__HASH_BYTES + 1];
  clv__hash_text(&graph->hash, text);
  if (plan->graph_hash[0] != '\0' && strcmp(plan->graph_hash, text) != 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan is for another graph (%s): plan again", plan->graph);
  name_model(model, text);
  if (plan->model_hash[0] != '\0' && strcmp(plan->model_hash, text) != 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan is for another model (%s): plan again", plan->model);
  return CLV_OK;
}

/* Returns the membership of the plan's subgraphs: a copy of `given` or, if that is NULL, from METIS or the cache. */
static clv_status plan_membership(const clv_allocator *allocator, const clv__gnn_plan *plan, const clv__gnn_graph *graph,
                                  const clv__membership *given, clv__cache *cache, clv__membership *membership,
                                  clv_error *error) {
  if (given == NULL) return clv__membership_make(allocator, graph, plan->k, plan->seed, cache, membership, error);
  if (given->k != plan->k)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the given partition has %u parts, but the plan has %u subgraphs",
                          given->k, plan->k);
  return copy_membership(allocator, given, membership, error);
}

clv_status clv__gnn_plan_subgraphs(const clv_allocator *allocator, const clv__gnn_plan *plan, const clv__gnn_model *model,
                                   const clv__gnn_graph *graph, const clv__membership *given, clv__cache *cache,
                                   clv__partitioned *partitioned, clv_error *error) {
  clv__gnn_graph *looped = NULL;
  clv__membership membership;
  char text[2 * CLV__HASH_BYTES + 1];
  CLV__TRY(check_plan(plan, model, graph, error));
  CLV__TRY(plan_membership(allocator, plan, graph, given, cache, &membership, error));
  clv_status status = CLV_OK;
  name_membership(&membership, text);
  if (plan->membership_key[0] != '\0' && strcmp(plan->membership_key, text) != 0)
    status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                            given != NULL ? "these are not the parts that the plan was made for: plan again"
                                          : "METIS partitions the graph differently from when the plan was made: plan again, or "
                                            "give the original parts (--parts)");
  if (status == CLV_OK && model->type != CLV__GNN_SAGE) status = clv__gnn_graph_with_loops(graph, &looped, error);
  if (status == CLV_OK)
    status = clv__partitioned_make(allocator, looped != NULL ? looped : graph, &membership, partitioned, error);
  if (status == CLV_OK && plan->k == 1)
    partitioned->graph = looped; /* takes ownership of the graph, because `partitioned` refers to its rows */
  else
    clv__gnn_graph_destroy(looped);
  clv__membership_finish(allocator, &membership);
  return status;
}
