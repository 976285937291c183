/* Measures the nodes of a graph on one device: first one node per signature alone, then blocks of nodes that are consecutive
 * in topological order. The first blocks are runs: the longest sequences of nodes that the device supports. A block whose time
 * equals the sum of its nodes' times gives no new information and is not cut further. Any other block is cut in halves, down to
 * pairs. Only one of several equal blocks is measured. Afterwards profile_solve.c computes prices from the times. */
#include <string.h>

#include "base/clock.h"

#include "cost/cost.h"
#include "cost/signature.h"
#include "cost/survey.h"

void clv__survey_report(clv__survey *s, const char *what, uint32_t total) {
  if (s->options->progress != NULL) s->options->progress(s->options->user_data, s->device->name, what, s->done, total);
}

bool clv__measure_is_over(const clv__measure_options *options) {
  return clv__is_stopped(options->stop) || (options->end_ns > 0 && clv__clock_ns() >= options->end_ns);
}

clv_status clv__survey_check(const clv__survey *s, clv_error *error) {
  if (!clv__measure_is_over(s->options)) return CLV_OK;
  return clv__error_set(error, CLV_CANCELLED, "not everything was measured");
}

/* ---- Measurable nodes ---- */

static bool is_fixed(const clv__survey *s, clv_node_id node) {
  return s->shapes->node_folded != NULL && s->shapes->node_folded[node];
}

static clv_status take_node(clv__survey *s, clv_node_id node, clv__text *text, clv_error *error) {
  clv__work work;
  clv__signature_write(s->whole, node, text);
  if (text->failed || !clv__node_work(s->whole, node, &work)) return clv__error_memory(error, text->size_bytes);
  uint32_t index;
  CLV__TRY(clv__profile_find_or_add_operator(s->profile, s->tables, text->data, &index, error));
  s->tables->operators[index].flops = work.flops;
  s->tables->operators[index].bytes = work.bytes;
  s->operators[node] = index;
  return CLV_OK;
}

clv_status clv__survey_measure(clv__survey *s, const clv_node_id *nodes, uint32_t count, clv__measure *measure,
                               uint64_t *scratch_bytes, clv_error *error) {
  clv__arena arena;
  clv_graph_view *view;
  clv__arena_init(&arena, s->arena.allocator);
  clv_status status = clv__view_create(s->graph, s->shapes->types, nodes, count, NULL, &arena, &view, error);
  if (status == CLV_OK) status = clv__measure_view(s->device, view, s->options->runs, measure, scratch_bytes, error);
  clv__arena_finish(&arena);
  return status;
}

/* Measures one node per signature alone. A node that cannot run alone is not measured in blocks either, so it ends a run. */
static clv_status measure_singles(clv__survey *s, uint32_t total, clv_error *error) {
  s->told_count = s->tables->operator_count;
  s->is_told = clv__arena_allocate_zero(&s->arena, s->told_count, sizeof *s->is_told);
  if (s->is_told == NULL) return clv__error_memory(error, s->told_count);
  for (clv_node_id node = 0; node < s->graph->node_count; ++node) {
    uint32_t index = s->operators[node];
    if (index == CLV__NO_ID) continue;
    ++s->done;
    clv__profile_operator *entry = &s->tables->operators[index];
    if (s->options->goes_on && (entry->alone.runs > 0 || entry->infeasible)) s->is_told[index] = true;
    if (!s->is_told[index]) {
      CLV__TRY(clv__survey_check(s, error));
      clv__survey_report(s, "nodes", total);
      s->is_told[index] = true;
      clv_error reason = {0};
      entry->alone = (clv__measure){0};
      clv_status status = clv__survey_measure(s, &node, 1, &entry->alone, &entry->scratch_bytes, &reason);
      entry->infeasible = status == CLV_TOO_LARGE || status == CLV_OUT_OF_MEMORY;
      if (status != CLV_OK) {
        clv__context_log(s->devices->context, 1, "%s: node '%s' (%s) was not measured: %s", s->device->name,
                         s->graph->nodes[node].name, s->graph->nodes[node].op, reason.message);
      }
    }
    if (entry->alone.runs == 0) s->operators[node] = CLV__NO_ID;
  }
  return CLV_OK;
}

/* Finds the runs: sequences of measurable nodes and views that are consecutive in topological order. Folded nodes do not end a
 * run. */
static clv_status find_runs(clv__survey *s, const clv__capability *capability, uint32_t device, clv_error *error) {
  uint32_t count = s->graph->node_count;
  s->list = clv__arena_allocate_zero(&s->arena, count, sizeof *s->list);
  s->run_ends = clv__arena_allocate_zero(&s->arena, count, sizeof *s->run_ends);
  if (s->list == NULL || s->run_ends == NULL) return clv__error_memory(error, count * sizeof *s->list);
  uint32_t begin = 0;
  for (clv_node_id node = 0; node <= count; ++node) {
    if (node < count && is_fixed(s, node)) continue;
    bool runs = node < count && clv__capability_reason(capability, node, device) == NULL &&
                (s->operators[node] != CLV__NO_ID || (s->is_view[node] && clv__signature_is_static(s->whole, node)));
    if (runs) {
      s->positions[node] = s->list_count;
      s->list[s->list_count++] = node;
    } else if (s->list_count > begin) {
      s->run_ends[s->run_count++] = begin = s->list_count;
    }
  }
  return CLV_OK;
}

/* ---- The survey ---- */

static clv_status prepare(clv__survey *s, const clv__capability *capability, uint32_t device, uint32_t *total, clv_error *error) {
  uint32_t count = s->graph->node_count;
  s->operators = clv__arena_allocate(&s->arena, count * sizeof *s->operators);
  s->positions = clv__arena_allocate(&s->arena, count * sizeof *s->positions);
  s->is_view = clv__arena_allocate_zero(&s->arena, count, sizeof *s->is_view);
  if (s->operators == NULL || s->positions == NULL || s->is_view == NULL) return clv__error_memory(error, count);
  memset(s->operators, 0xff, count * sizeof *s->operators); /* all CLV__NO_ID */
  memset(s->positions, 0xff, count * sizeof *s->positions);
  clv__text text;
  clv__text_init(&text, s->arena.allocator);
  clv_status status = CLV_OK;
  for (clv_node_id node = 0; status == CLV_OK && node < count; ++node) {
    s->is_view[node] = clv__node_is_view(&s->graph->nodes[node]);
    if (is_fixed(s, node) || s->is_view[node] || clv__capability_reason(capability, node, device) != NULL) continue;
    if (!clv__signature_is_static(s->whole, node)) continue;
    status = take_node(s, node, &text, error);
    ++*total;
  }
  clv__text_finish(&text);
  return status;
}

/* ---- What is to be expected ---- */

void clv__survey_expect(const clv__survey *s, uint64_t time_ns, clv__expectation *expected) {
  static const double compile_s = 3e-3, warm_s = 2e-3, repeated = 1.3; /* some measurements are repeated */
  const double once_s = 1e-9 * (double)time_ns, runs = clv__measure_runs(s->options->runs, time_ns);
  expected->seconds += compile_s + (once_s > warm_s ? once_s : warm_s) + repeated * runs * once_s;
}

/* The prices of all nodes, from the profile so far. */
static clv_status price_nodes(clv__survey *s, uint32_t device, clv_error *error) {
  clv__cost_model *model;
  uint64_t *prices_ns = clv__arena_allocate_zero(&s->arena, s->graph->node_count, sizeof *prices_ns);
  if (prices_ns == NULL) return clv__error_memory(error, s->graph->node_count * sizeof *prices_ns);
  CLV__TRY(clv__cost_model_create(s->devices, s->whole, s->shapes->node_folded, s->profile, &model, error));
  for (clv_node_id node = 0; node < s->graph->node_count; ++node) {
    if (!is_fixed(s, node)) prices_ns[node] = clv__cost_node(model, node, device).time_ns;
  }
  clv__cost_model_destroy(model);
  s->prices_ns = prices_ns;
  return CLV_OK;
}

static clv_status expect_graph(clv__survey *s, uint32_t device, clv__expectation *expected, clv_error *error) {
  clv_graph_view *whole;
  clv__capability capability;
  uint32_t total = 0;
  CLV__TRY(clv__view_create_whole(s->graph, s->shapes->types, &s->arena, &whole, error));
  s->whole = whole;
  CLV__TRY(clv__profile_find_or_add_device(s->profile, s->device->info.fingerprint, &s->tables, error));
  CLV__TRY(clv__capability_ask(s->devices, whole, s->shapes->node_folded, NULL, NULL, NULL, NULL, &capability, error));
  clv_status status = prepare(s, &capability, device, &total, error);
  if (status == CLV_OK) status = find_runs(s, &capability, device, error);
  clv__capability_finish(&capability);
  if (status == CLV_OK) status = price_nodes(s, device, error);
  bool *is_counted = clv__arena_allocate_zero(&s->arena, s->tables->operator_count + 1u, sizeof *is_counted);
  if (status == CLV_OK && is_counted == NULL) status = clv__error_memory(error, s->tables->operator_count);
  for (clv_node_id node = 0; status == CLV_OK && node < s->graph->node_count; ++node) {
    const uint32_t index = s->operators[node];
    if (index == CLV__NO_ID || is_counted[index]) continue;
    is_counted[index] = true;
    const clv__profile_operator *entry = &s->tables->operators[index];
    if (s->options->goes_on && (entry->alone.runs > 0 || entry->infeasible)) continue;
    ++expected->nodes;
    clv__survey_expect(s, s->prices_ns[node], expected);
  }
  return status == CLV_OK ? clv__survey_count_blocks(s, expected, error) : status;
}

static clv_status survey_graph(clv__survey *s, uint32_t device, uint32_t *measured, clv_error *error) {
  clv_graph_view *whole;
  clv__capability capability;
  uint32_t total = 0;
  CLV__TRY(clv__view_create_whole(s->graph, s->shapes->types, &s->arena, &whole, error));
  s->whole = whole;
  CLV__TRY(clv__profile_find_or_add_device(s->profile, s->device->info.fingerprint, &s->tables, error));
  CLV__TRY(clv__capability_ask(s->devices, whole, s->shapes->node_folded, NULL, NULL, NULL, NULL, &capability, error));
  clv_status status = prepare(s, &capability, device, &total, error);
  if (status == CLV_OK) status = measure_singles(s, total, error);
  if (status == CLV_OK) status = find_runs(s, &capability, device, error);
  clv__capability_finish(&capability);
  s->done = 0;
  if (status == CLV_OK) status = clv__survey_blocks(s, error);
  for (clv_node_id node = 0; status == CLV_OK && node < s->graph->node_count; ++node) {
    *measured += s->operators[node] != CLV__NO_ID;
  }
  if (status != CLV_OK && status != CLV_CANCELLED) return status;
  clv_status solved = clv__profile_solve(s->tables, s->arena.allocator, error);
  return solved == CLV_OK ? status : solved;
}

static clv__survey make_survey(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                               const clv__measure_options *options, clv__profile *profile) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv__survey s = {.devices = devices,
                   .device = &devices->items[device],
                   .graph = graph,
                   .shapes = shapes,
                   .options = options,
                   .profile = profile};
  clv__arena_init(&s.arena, allocator);
  clv__map_init(&s.seen, allocator);
  return s;
}

static void finish_survey(clv__survey *s) {
  const clv_allocator *allocator = s->arena.allocator;
  clv__release(allocator, s->measures);
  clv__release(allocator, s->indices);
  clv__release(allocator, s->terms);
  clv__map_finish(&s->seen);
  clv__arena_finish(&s->arena);
}

clv_status clv__measure_expect(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                               const clv__measure_options *options, clv__profile *profile, clv__expectation *expectation,
                               clv_error *error) {
  clv__survey s = make_survey(devices, device, graph, shapes, options, profile);
  clv__devices_lock(devices);
  const clv_status status = expect_graph(&s, device, expectation, error);
  clv__devices_unlock(devices);
  finish_survey(&s);
  return status;
}

clv_status clv__measure_graph(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                              const clv__measure_options *options, clv__profile *profile, uint32_t *measured, clv_error *error) {
  clv__survey s = make_survey(devices, device, graph, shapes, options, profile);
  *measured = 0;
  clv__devices_lock(devices);
  clv_status status = clv__graph_check_files(graph, error);
  if (status == CLV_OK) status = survey_graph(&s, device, measured, error);
  if (status == CLV_OK) status = clv__graph_check_files(graph, error);
  clv__devices_unlock(devices);
  finish_survey(&s);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "measuring %s", devices->items[device].name);
}
