/* clv_plan_make(): verdicts, prices, placement, split, steps. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "place/list_cut.h"
#include "plan/make.h"

static double now_ms(void) {
  return (double)clv__clock_ns() / 1e6;
}

static clv_status check_assignments(const clv_assignment *items, uint32_t count, const char *what, clv_error *error) {
  CLV__TRY(clv__options_list(items, count, what, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].pattern != NULL && items[i].device != NULL) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "options: entry %u of the %s has no pattern or no device", i, what);
  }
  return CLV_OK;
}

/* The options, with their texts converted to values. */
typedef struct chosen {
  const clv__strategy *strategy;
  clv__split_mode split;
  clv__objective objective;
  clv__offload offload;
} chosen;

/* Finds the index of `word` in a NULL-terminated list. The error lists the known words. */
static clv_status choose(const char *what, const char *word, const char *const *words, uint32_t *index, clv_error *error) {
  char known[256] = "";
  size_t used = 0;
  for (*index = 0; words[*index] != NULL; ++*index) {
    if (strcmp(words[*index], word) == 0) return CLV_OK;
    if (used >= sizeof known) continue;
    int written = snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", words[*index]);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s '%s' is unknown; expected one of: %s", what, word, known);
}

static clv_status choose_all(const clv_plan_options *options, chosen *is, clv_error *error) {
  const char *const splits[] = {clv__split_name(CLV__SPLIT_LINEAR), clv__split_name(CLV__SPLIT_CONVEX),
                                clv__split_name(CLV__SPLIT_FEWEST), NULL};
  const char *const objectives[] = {clv__objective_name(CLV__LATENCY), clv__objective_name(CLV__OVERLAP),
                                    clv__objective_name(CLV__THROUGHPUT), NULL};
  static const char *const offloads[] = {"auto", "on", "off", NULL};
  const char *names[32] = {NULL};
  uint32_t index = 0;
  for (; clv__strategies[index] != NULL && index < 31; ++index) names[index] = clv__strategies[index]->name;
  CLV__TRY(choose("strategy", options->strategy == NULL ? "optimal" : options->strategy, names, &index, error));
  is->strategy = clv__strategies[index];
  is->split = is->strategy->split;
  if (options->split != NULL) {
    CLV__TRY(choose("split", options->split, splits, &index, error));
    is->split = (clv__split_mode)index;
  }
  CLV__TRY(
      choose("objective", options->objective == NULL ? objectives[CLV__LATENCY] : options->objective, objectives, &index, error));
  is->objective = (clv__objective)index;
  CLV__TRY(choose("offload", options->offload == NULL ? "auto" : options->offload, offloads, &index, error));
  is->offload = (clv__offload)index;
  return CLV_OK;
}

static clv_status check_options(const clv_graph *graph, const clv_devices *devices, const clv_plan_options *options, chosen *is,
                                clv_error *error) {
  if (graph == NULL || devices == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices must not be NULL");
  CLV__TRY(clv__options_texts(options->keeps, options->keep_count, "values to keep", error));
  CLV__TRY(check_assignments(options->pins, options->pin_count, "pins", error));
  CLV__TRY(check_assignments(options->forces, options->force_count, "forces", error));
  CLV__TRY(check_assignments(options->weights, options->weight_count, "weights", error));
  CLV__TRY(check_assignments(options->values, options->value_count, "values", error));
  CLV__TRY(check_assignments(options->supposes, options->suppose_count, "supposed operators", error));
  CLV__TRY(clv__options_list(options->sizes, options->size_count, "sizes", error));
  for (uint32_t i = 0; i < options->size_count; ++i) {
    if (options->sizes[i].name == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "size %u has no name", i);
  }
  return choose_all(options, is, error);
}

/* ---- The plan ---- */

/* Copies the strategy's causes from the problem's nodes to the graph's nodes. */
static void keep_causes(clv_plan *plan, const clv__placing *placing) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    uint32_t at = plan->problem_nodes[n];
    plan->placement.devices[n] = at == CLV__NONE ? CLV__NO_ID : placing->devices[at];
    plan->placement.causes[n] = at == CLV__NONE ? "const" : placing->causes[at];
  }
  if (placing->note != NULL) plan->note = placing->note;
  plan->pass_count = placing->pass_count;
  plan->passes = placing->passes;
}

typedef struct cutting {
  const clv_plan *plan;
  const clv__strategy *strategy;
} cutting;

/* Cuts a placement that was changed to fit into memory. */
static clv_status cut_again(void *cookie, clv__placing *placing, clv__arena *arena, clv_error *error) {
  const cutting *c = cookie;
  if (c->plan->split == CLV__SPLIT_LINEAR && c->strategy->split == CLV__SPLIT_LINEAR) {
    const clv__list_cut options = {.copy_limit = c->strategy->copy_limit, .joined = "view"};
    return clv__place_cut_list(c->plan->problem, &options, arena, placing, error);
  }
  return clv__split(c->plan->problem, placing->devices, placing->groups, c->plan->split, arena, &placing->cut, error);
}

/* Places with `strategy`, splits, and changes the result until it fits into memory. `memory_changed`: the first result did not
 * fit. */
static clv_status place_and_split(clv_plan *plan, const clv__strategy *strategy, const clv__place_input *input,
                                  bool *memory_changed, clv_error *error) {
  double start = now_ms();
  clv__placing placing = {0};
  CLV__TRY(strategy->place(input, &plan->arena, &placing, error));
  plan->placement.strategy = strategy->name;
  plan->time_place_ms = now_ms() - start;
  start = now_ms();
  keep_causes(plan, &placing);
  memset(plan->placement.notes, 0, plan->graph->node_count * sizeof *plan->placement.notes);
  if (!placing.has_cut) {
    CLV__TRY(clv__split(plan->problem, placing.devices, placing.groups, plan->split, &plan->arena, &placing.cut, error));
  }
  CLV__TRY(clv__plan_set_cut(plan, &placing.cut, placing.streamed, error));
  clv__cutter cutter = {cut_again, &(cutting){plan, strategy}};
  CLV__TRY(clv__place_within_memory(plan, &placing, &cutter, memory_changed, error));
  if (*memory_changed) keep_causes(plan, &placing);
  CLV__TRY(clv__plan_set_steps(plan, error));
  plan->time_split_ms = now_ms() - start;
  return CLV_OK;
}

/* Copies the problem and reduces each memory limit by the bytes that the device's compiler needs beyond what strategies count
 * (plan->unforeseen_bytes). Sets `is_less` to whether a limit changed. */
static clv_status lessen_memory(clv_plan *plan, clv__problem *lessened, bool *is_less, clv_error *error) {
  *lessened = *plan->problem;
  *is_less = false;
  clv__limits *limits = clv__arena_copy(&plan->arena, lessened->limits, lessened->device_count * sizeof *limits);
  if (limits == NULL) return clv__error_memory(error, lessened->device_count * sizeof *limits);
  for (uint32_t d = 0; d < lessened->device_count; ++d) {
    uint64_t bytes = plan->unforeseen_bytes[d];
    if (limits[d].memory_bytes == 0 || bytes == 0) continue;
    limits[d].memory_bytes = bytes < limits[d].memory_bytes ? limits[d].memory_bytes - bytes : 1;
    *is_less = true;
  }
  lessened->limits = limits;
  return CLV_OK;
}

/* One way to make the plan: a strategy, and the problem that it gets. */
typedef struct attempt {
  const clv__strategy *strategy;
  const clv__problem *problem;
  bool is_linear; /* uses the linear split: partitions in the order of the list may need less memory than in an order in which
                     devices overlap */
} attempt;

static clv_status try_attempt(clv_plan *plan, const attempt *a, const clv__place_input *given, bool *memory_changed,
                              clv_error *error) {
  clv__place_input input = *given;
  if (a->strategy->place != clv__place_optimal) input.split = given->split_is_given ? given->split : a->strategy->split;
  if (a->is_linear) input.split = CLV__SPLIT_LINEAR, input.split_is_given = true;
  plan->split = input.split;
  input.problem = a->problem;
  return place_and_split(plan, a->strategy, &input, memory_changed, error);
}

/* Adds advice to the error of a strategy other than `optimal`. Such a strategy only moves parts of its own placement until it
 * fits into memory, so its failure does not mean that no plan fits. */
static clv_status suggest_optimal(clv_error *error) {
  const clv_error why = error == NULL ? (clv_error){0} : *error;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "%s; the strategy 'optimal' may find a plan", why.message);
}

/* The result of `optimal` is at least as good as that of every other strategy under its own model of memory. If a device's
 * compiler needs more memory, this may no longer hold. Then `optimal` runs again with the scratch of each node, and once more
 * with memory limits that are smaller by what compilers need beyond that. Plans are also made with the other strategies, and
 * the best plan is kept. If none fits, `optimal` is tried with the linear split. */
clv_status clv__plan_place(clv_plan *plan, const clv__strategy *strategy, const clv__place_input *given, clv_error *error) {
  bool memory_changed, is_less;
  attempt attempts[36] = {{strategy, given->problem, false}};
  clv_status first = try_attempt(plan, &attempts[0], given, &memory_changed, error), status = first;
  if (strategy->place != clv__place_optimal) return first == CLV_NOT_SUPPORTED ? suggest_optimal(error) : first;
  if (first == CLV_OK && !memory_changed) return first;
  if (first != CLV_OK && first != CLV_NOT_SUPPORTED) return first;
  uint32_t count = 1, best = first == CLV_OK ? 0 : CLV__NONE, last = 0;
  uint64_t least = first == CLV_OK ? plan->predicted_ns : UINT64_MAX;
  clv__problem lessened;
  CLV__TRY(lessen_memory(plan, &lessened, &is_less, error));
  attempts[count++] = (attempt){strategy, plan->problem, false};
  if (is_less) attempts[count++] = (attempt){strategy, &lessened, false};
  for (uint32_t i = 0; clv__strategies[i] != NULL && count < 35; ++i) {
    if (clv__strategies[i] != strategy) attempts[count++] = (attempt){clv__strategies[i], plan->problem, false};
  }
  if (given->split != CLV__SPLIT_LINEAR) attempts[count++] = (attempt){strategy, plan->problem, true};
  for (uint32_t i = 1; i < count && status != CLV_OUT_OF_MEMORY; ++i) {
    clv_error why;
    if (attempts[i].is_linear && best != CLV__NONE) break;
    last = i;
    status = try_attempt(plan, &attempts[i], given, &memory_changed, &why); /* leave out a strategy that fails */
    if (status == CLV_OK && plan->predicted_ns < least) best = i, least = plan->predicted_ns;
  }
  if (status == CLV_OUT_OF_MEMORY) return clv__error_memory(error, sizeof *plan);
  if (best == CLV__NONE) return first;
  if (best != last || status != CLV_OK) CLV__TRY(try_attempt(plan, &attempts[best], given, &memory_changed, error));
  plan->placement.strategy = strategy->name;
  return CLV_OK;
}

static clv_status set_problem(clv_plan *plan, const clv_plan_options *options, clv_error *error) {
  double start = now_ms();
  clv__fixed fixed;
  clv__profile *profile = NULL;
  clv__cost_model_destroy(plan->costs); /* of the previous attempt */
  plan->costs = NULL;
  CLV__TRY(clv__fixed_resolve(plan, options, &fixed, error));
  if (options->profile != NULL) CLV__TRY(clv__profile_read(options->profile, plan->graph->allocator, &profile, error));
  clv_status status = clv__plan_set_problem(plan, &fixed, profile, error);
  clv__profile_destroy(profile);
  if (status == CLV_OK && options->profile != NULL) {
    plan->profile_path = clv__arena_string(&plan->arena, options->profile, strlen(options->profile));
    if (plan->profile_path == NULL) status = clv__error_memory(error, strlen(options->profile));
  }
  plan->time_cost_ms = now_ms() - start;
  return status;
}

clv_status clv_plan_make(const clv_graph *graph, clv_devices *devices, const clv_plan_options *given, clv_plan **out,
                         clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the pointer that receives the plan must not be NULL");
  *out = NULL;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_PLAN_OPTIONS_INIT", error));
  chosen is;
  CLV__TRY(check_options(graph, devices, &options, &is, error));
  clv_plan *plan = NULL;
  double start = now_ms();
  CLV__TRY(clv__plan_create(graph, devices, options.sizes, options.size_count, options.keeps, options.keep_count, &plan, error));
  plan->time_load_ms = now_ms() - start;
  plan->objective = is.objective;
  plan->offload = is.offload;
  plan->split = is.split;
  plan->split_is_given = options.split != NULL;
  clv_status status;
  clv_graph_view *whole;
  clv__poll poll = {options.go_on, options.go_on_user_data, false};
  start = now_ms();
  clv__devices_lock(devices);
  CLV__TRY_GOTO(clv__view_create_whole(graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY_GOTO(clv__capability_ask(devices, whole, plan->shapes->node_folded, plan->open, options.support,
                                    options.support_user_data, &poll, &plan->capability, error));
  plan->time_capability_ms = now_ms() - start;
  CLV__TRY_GOTO(clv__suppose(plan, options.supposes, options.suppose_count, error));
  CLV__TRY_GOTO(clv__plan_host_views(plan, error));
  bool is_complete;
  do { /* again without each device that fails to choose its groups */
    CLV__TRY_GOTO(clv__plan_check_supported(plan, options.name_others ? whole : NULL, error));
    CLV__TRY_GOTO(set_problem(plan, &options, error));
    plan->problem->poll = &poll;
    CLV__TRY_GOTO(clv__plan_ask_claims(plan, whole, &is_complete, error));
  } while (!is_complete);
  clv__place_input input = {.problem = plan->problem,
                            .objective = is.objective,
                            .split = is.split,
                            .split_is_given = plan->split_is_given,
                            .record_passes = options.record_passes,
                            .claims = plan->claims};
  status = clv__plan_place(plan, is.strategy, &input, error);
  plan->problem->poll = NULL;
  if (poll.is_stopped) status = clv__error_set(error, CLV_CANCELLED, "planning was cancelled"); /* even if a plan was found */
  CLV__TRY_GOTO(status);
  CLV__TRY_GOTO(clv__graph_check_files(graph, error));
cleanup:
  clv__devices_unlock(devices);
  if (status != CLV_OK)
    clv_plan_destroy(plan);
  else
    *out = plan;
  return status;
}
