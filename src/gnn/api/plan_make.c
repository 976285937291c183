/* Makes and reads plans for programs: see cleave/gnn.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "device/device.h"
#include "gnn/api/costs.h"
#include "gnn/api/handles.h"
#include "gnn/measure/nominal.h"

#define LESS_MEMORY 0.9 /* a larger k helps only if it needs less than this share of the memory that k / 4 needs */
enum { DEFAULT_PAD_STEP = 1000 };

/* A plan that is being made or read. */
typedef struct making {
  clv_gnn_plan *plan;
  clv_gnn_plan_options options;
  uint32_t count;         /* of `ks` or `parts` */
  uint32_t *ks;           /* ascending, from 1 on */
  clv__membership *parts; /* sorted by k, from 1 on; NULL: METIS partitions the graph. The arrays belong to the caller's parts */
  clv_error *error;
} making;

static void tell(const making *m, clv_gnn_message kind, const char *format, ...) CLV_PRINTF(3, 4);
static void tell(const making *m, clv_gnn_message kind, const char *format, ...) {
  char text[1024];
  va_list arguments;
  if (m->options.tell == NULL && kind == CLV_GNN_PROGRESS) return;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (m->options.tell != NULL)
    m->options.tell(m->options.user_data, kind, text);
  else
    clv__context_log(m->plan->devices->context, kind == CLV_GNN_NOTE ? 2 : 3, "%s", text);
}

/* ---- The numbers of subgraphs ---- */

static int compare_ks(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static clv_status find_ks(making *m) {
  static const uint32_t usual[] = {1, 2, 4, 8};
  const clv_gnn_plan_options *o = &m->options;
  uint32_t count = o->k_count, filled = 0;
  const uint32_t *ks = o->ks;
  if (count == 0) ks = usual, count = sizeof usual / sizeof *usual;
  m->ks = clv__arena_allocate_zero(&m->plan->arena, count + (size_t)1, sizeof *m->ks);
  if (m->ks == NULL) return clv__error_memory(m->error, (count + (size_t)1) * sizeof *m->ks);
  m->ks[filled++] = 1; /* the whole graph is always a candidate */
  for (uint32_t i = 0; i < count; ++i) {
    if (ks[i] == 0) return clv__error_set(m->error, CLV_INVALID_ARGUMENT, "ks[%u] is 0; a graph has at least 1 subgraph", i);
    if (o->k_count == 0 && ks[i] > m->plan->graph->graph->csr.vertex_count) continue;
    m->ks[filled++] = ks[i];
  }
  qsort(m->ks, filled, sizeof *m->ks, compare_ks);
  for (uint32_t i = 0; i < filled; ++i) {
    if (m->count == 0 || m->ks[m->count - 1] != m->ks[i]) m->ks[m->count++] = m->ks[i];
  }
  return CLV_OK;
}

static int compare_parts(const void *a, const void *b) {
  uint32_t x = ((const clv__membership *)a)->k, y = ((const clv__membership *)b)->k;
  return x < y ? -1 : x > y;
}

static clv_status find_parts(making *m) {
  const clv_gnn_plan_options *o = &m->options;
  const uint32_t vertex_count = m->plan->graph->graph->csr.vertex_count;
  bool has_whole = false;
  if (o->part_count == 0) return CLV_OK;
  m->parts = clv__arena_allocate_zero(&m->plan->arena, o->part_count + (size_t)1, sizeof *m->parts);
  uint32_t *zeros = clv__arena_allocate_zero(&m->plan->arena, vertex_count, sizeof *zeros);
  if (m->parts == NULL || zeros == NULL) return clv__error_memory(m->error, vertex_count * sizeof *zeros);
  for (uint32_t i = 0; i < o->part_count; ++i) {
    if (o->parts[i] == NULL) return clv__error_set(m->error, CLV_INVALID_ARGUMENT, "parts[%u] is NULL", i);
    const clv__membership *given = &o->parts[i]->membership;
    if (given->vertex_count != vertex_count)
      return clv__error_set(m->error, CLV_INVALID_ARGUMENT, "parts[%u] are of a graph with %u vertices, but this one has %u", i,
                            given->vertex_count, vertex_count);
    m->parts[m->count++] = *given;
    has_whole = has_whole || given->k == 1;
  }
  if (!has_whole) m->parts[m->count++] = (clv__membership){.k = 1, .vertex_count = vertex_count, .parts = zeros};
  qsort(m->parts, m->count, sizeof *m->parts, compare_parts);
  for (uint32_t i = 1; i < m->count; ++i) {
    if (m->parts[i].k == m->parts[i - 1].k)
      return clv__error_set(m->error, CLV_INVALID_ARGUMENT, "two of the given parts have k = %u", m->parts[i].k);
  }
  return CLV_OK;
}

/* ---- Cutting ---- */

static void tell_cut(void *user_data, uint32_t k) {
  tell(user_data, CLV_GNN_PROGRESS, "partitioning into %u subgraphs", k);
}

static void tell_cuts(const making *m) {
  for (uint32_t c = 0; c < m->plan->planning.cut_count; ++c) {
    const clv__membership *membership = &m->plan->planning.cuts[c].membership;
    if (membership->k == 1) continue;
    if (membership->from_cache)
      tell(m, CLV_GNN_DETAIL, "k = %u: subgraphs from the cache", membership->k);
    else if (membership->metis_seconds > 0)
      tell(m, CLV_GNN_DETAIL, "k = %u: partitioned by METIS in %.1f ms", membership->k, 1e3 * membership->metis_seconds);
    else
      tell(m, CLV_GNN_DETAIL, "k = %u: METIS not used", membership->k);
  }
}

static clv_status cut(making *m) {
  clv_gnn_plan *plan = m->plan;
  const clv__gnn_model *model = plan->model->model;
  const clv__gnn_graph *graph = plan->graph->graph;
  const uint64_t pad_step = m->options.pad_step > 0 ? m->options.pad_step : DEFAULT_PAD_STEP;
  const char *reason;
  uint64_t begin_ns = clv__clock_ns();
  clv_status status;
  if (m->parts != NULL) {
    tell(m, CLV_GNN_PROGRESS, "partitioning as given");
    status = clv__gnn_planning_init_parts(&plan->planning, plan->devices, model, graph, m->parts, m->count, pad_step, m->error);
  } else {
    status = clv__gnn_planning_init(&plan->planning, plan->devices, model, graph, m->ks, m->count, m->options.seed, pad_step,
                                    clv__context_cache(plan->devices->context, &reason), tell_cut, m, m->error);
  }
  plan->cut_ns = (double)(clv__clock_ns() - begin_ns);
  if (status != CLV_OK) return clv__error_prefix(m->error, status, "%s", plan->graph->name);
  if (m->parts == NULL) tell_cuts(m);
  return CLV_OK;
}

/* ---- Choosing ---- */

static void tell_move(void *user, uint32_t k, uint32_t layer, const clv__assign_move *move, const clv__pep *from,
                      const clv__pep *to) {
  const making *m = user;
  const clv__machine *machine = &m->plan->planning.machine;
  clv__text text;
  clv__text_init(&text, m->plan->allocator);
  clv__pep_describe(from, machine, &text);
  clv__text_append(&text, " -> ");
  clv__pep_describe(to, machine, &text);
  if (!text.failed)
    tell(m, CLV_GNN_DETAIL, "k = %u, layer %u: moved subgraph %u off %s: %s; largest load %.3f -> %.3f ms", k, layer,
         move->subgraph, machine->devices[move->bottleneck].name, text.data, 1e-6 * move->before_ns, 1e-6 * move->after_ns);
  clv__text_finish(&text);
}

static clv_status find_prices(making *m) {
  clv_gnn_plan *plan = m->plan;
  clv__tables_init(&plan->tables, plan->allocator);
  if (m->options.costs != NULL) return clv__tables_copy(&plan->tables, &m->options.costs->tables, m->error);
  return clv__gnn_nominal(&plan->planning, &plan->tables, m->error);
}

/* Returns twice the largest k, if more subgraphs may help: METIS partitions the graph, and the last k needs clearly less memory
 * than a quarter as many subgraphs. Otherwise, returns 0. */
static uint32_t next_k(const making *m) {
  const clv__choice *choice = &m->plan->choice;
  const clv__chosen_k *last = &choice->items[choice->k_count - 1];
  if (m->parts != NULL || last->least.size_bytes == 0 || last->k > m->plan->graph->graph->csr.vertex_count / 2) return 0;
  for (uint32_t c = 0; c + 1 < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    if (4 * item->k == last->k && (double)last->least.size_bytes > LESS_MEMORY * (double)item->least.size_bytes) return 0;
  }
  return 2 * last->k;
}

/* Chooses a plan. If no k fits the memory of the devices, tries more and smaller subgraphs. */
static clv_status choose_fitting(making *m, const clv__choose_options *options) {
  clv_gnn_plan *plan = m->plan;
  const char *reason;
  clv__cache *cache = clv__context_cache(plan->devices->context, &reason);
  for (;;) {
    clv_status status = clv__gnn_planning_choose(&plan->planning, &plan->tables, options, &plan->choice, m->error);
    uint32_t k = status == CLV_TOO_LARGE ? next_k(m) : 0;
    if (k == 0) return status;
    tell(m, CLV_GNN_NOTE, "no k up to %u fits the memory of the devices: trying k = %u", k / 2, k);
    clv__error_clear(m->error);
    CLV__TRY(clv__gnn_planning_cut(&plan->planning, k, cache, m->error));
  }
}

static clv_status choose(making *m) {
  clv_gnn_plan *plan = m->plan;
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  const char *costs = m->options.costs != NULL ? m->options.costs->name : NULL;
  CLV__TRY(find_prices(m));
  options.effort = m->options.quick ? CLV__EFFORT_QUICK : CLV__EFFORT_FULL;
  options.peps.top_k = plan->top_k = m->options.top_k;
  options.moves = tell_move;
  options.user = m;
  tell(m, CLV_GNN_PROGRESS, "planning");
  uint64_t begin_ns = clv__clock_ns();
  clv_status status = choose_fitting(m, &options);
  plan->plan_ns = (double)(clv__clock_ns() - begin_ns);
  if (status != CLV_OK) return clv__error_prefix(m->error, status, "%s", costs != NULL ? costs : plan->graph->name);
  return clv__gnn_planning_plan(&plan->planning, &plan->tables, &plan->choice, plan->model->name, plan->graph->name, &plan->plan,
                                m->error);
}

/* ---- Reading ---- */

/* The options' parts with the plan's number of subgraphs. NULL: no parts are given. */
static clv_status find_given(const making *m, const char *path, const clv__membership **given) {
  *given = NULL;
  for (uint32_t i = 0; i < m->count && m->parts != NULL; ++i) {
    if (m->parts[i].k == m->plan->plan->k) *given = &m->parts[i];
  }
  if (m->parts == NULL || *given != NULL) return CLV_OK;
  return clv__error_set(m->error, CLV_INVALID_ARGUMENT,
                        "%s: the plan has %u subgraphs, but none of the given parts have this number of parts", path,
                        m->plan->plan->k);
}

static clv_status read_plan(making *m, const char *path) {
  clv_gnn_plan *plan = m->plan;
  const char *reason;
  const clv__membership *given;
  clv__membership beside = {.k = 0};
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(clv__gnn_plan_read(plan->allocator, path, &plan->plan, m->error));
  CLV__TRY(find_given(m, path, &given));
  if (given == NULL && plan->plan->membership[0] != '\0') {
    clv_status found = clv__gnn_plan_read_membership(plan->plan, path, plan->allocator, &beside, m->error);
    if (found != CLV_OK && found != CLV_NOT_FOUND) return found;
    if (found == CLV_OK) given = &beside;
    if (found != CLV_OK)
      tell(m, CLV_GNN_DETAIL, "%s is not beside the plan: partitioning the graph again", plan->plan->membership);
    if (found != CLV_OK) clv__error_clear(m->error);
  }
  tell(m, CLV_GNN_PROGRESS, "partitioning into %u subgraphs", plan->plan->k);
  clv_status status = clv__gnn_plan_subgraphs(plan->allocator, plan->plan, plan->model->model, plan->graph->graph, given,
                                              clv__context_cache(plan->devices->context, &reason), &plan->partitioned, m->error);
  clv__membership_finish(plan->allocator, &beside);
  plan->cut_ns = (double)(clv__clock_ns() - begin_ns);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(m->error, status, "%s", path);
}

/* ---- Both ---- */

static clv_status begin(making *m, const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                        const clv_gnn_plan_options *options) {
  m->options = (clv_gnn_plan_options)CLV_GNN_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__argument_check(model, "model", m->error));
  CLV__TRY(clv__argument_check(graph, "graph", m->error));
  CLV__TRY(clv__argument_check(devices, "devices", m->error));
  CLV__TRY(clv__options_read(&m->options, sizeof m->options, options, "CLV_GNN_PLAN_OPTIONS_INIT", m->error));
  CLV__TRY(clv__options_list(m->options.ks, m->options.k_count, "numbers of subgraphs", m->error));
  CLV__TRY(clv__options_list(m->options.parts, m->options.part_count, "parts", m->error));
  if (m->options.k_count > 0 && m->options.part_count > 0)
    return clv__error_set(m->error, CLV_INVALID_ARGUMENT, "give either ks or parts: the parts have their numbers of subgraphs");
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv_gnn_plan *plan = clv__allocate_zero(allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(m->error, sizeof *plan);
  plan->allocator = allocator;
  plan->devices = devices;
  plan->model = model;
  plan->graph = clv__gnn_graph_use(graph);
  clv__arena_init(&plan->arena, allocator);
  pthread_mutex_init(&plan->lock, NULL);
  m->plan = plan;
  return find_parts(m);
}

/* Gives the plan to the caller, or destroys it. */
static clv_status end(making *m, clv_status status, clv_gnn_plan **out) {
  clv_gnn_plan *plan = m->plan;
  if (status == CLV_OK)
    status = clv__gnn_account_make(&plan->arena, plan->plan, plan->model->stages, NULL, &plan->account, m->error);
  if (status == CLV_OK)
    *out = plan;
  else
    clv_gnn_plan_destroy(plan);
  return status;
}

clv_status clv_gnn_plan_make(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                             const clv_gnn_plan_options *options, clv_gnn_plan **plan, clv_error *error) {
  making m = {.error = error};
  CLV__TRY(clv__argument_check(plan, "plan", error));
  *plan = NULL;
  clv_status status = begin(&m, model, graph, devices, options);
  if (status == CLV_OK && m.parts == NULL) status = find_ks(&m);
  if (status == CLV_OK) status = cut(&m);
  if (status == CLV_OK) status = choose(&m);
  return end(&m, status, plan);
}

clv_status clv__gnn_plan_cut(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                             const clv_gnn_plan_options *options, clv_gnn_plan **plan, clv_error *error) {
  making m = {.error = error};
  *plan = NULL;
  clv_status status = begin(&m, model, graph, devices, options);
  if (status == CLV_OK && m.parts == NULL) status = find_ks(&m);
  if (status == CLV_OK) status = cut(&m);
  if (status == CLV_OK)
    *plan = m.plan;
  else
    clv_gnn_plan_destroy(m.plan);
  return status;
}

clv_status clv_gnn_plan_read(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices, const char *path,
                             const clv_gnn_plan_options *options, clv_gnn_plan **plan, clv_error *error) {
  making m = {.error = error};
  CLV__TRY(clv__argument_check(plan, "plan", error));
  *plan = NULL;
  CLV__TRY(clv__argument_check(path, "path", error));
  clv_status status = begin(&m, model, graph, devices, options);
  if (status == CLV_OK) status = read_plan(&m, path);
  return end(&m, status, plan);
}

void clv_gnn_plan_destroy(clv_gnn_plan *plan) {
  if (plan == NULL) return;
  if (plan->partitioned.subgraphs != NULL) clv__partitioned_finish(&plan->partitioned);
  clv__gnn_plan_destroy(plan->plan);
  clv__gnn_planning_finish(&plan->planning);
  if (plan->tables.arena.allocator != NULL) clv__tables_finish(&plan->tables);
  clv__arena_finish(&plan->arena);
  pthread_mutex_destroy(&plan->lock);
  clv__gnn_graph_unuse(plan->graph);
  clv__release(plan->allocator, plan);
}
