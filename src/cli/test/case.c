/* See case.h. */
#include "cli/test/case.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/graph_contents.h"
#include "cleave/session.h"
#include "cleave/tensors.h"
#include "cli/console.h"
#include "cli/options/options.h"
#include "cli/test/data.h"
#include "cli/test/placements.h"

typedef struct test {
  const cli_tester *tester;
  const char *path;
  cli_test_result *result;
  cli_arena arena;
  clv_graph *graph;
  clv_plan_options plan; /* the tester's options, without pins and forces that match no node of this graph */
  cli_data_set *sets;
  uint32_t set_count;
  clv_plan *base; /* the strategy's plan for the shapes of data set `base_set` */
  clv_session *base_session;
  uint32_t base_set;
  clv_size *sizes;
  clv_tensor *outputs;
} test;

/* Ends the case with a status, and with the text `before` followed by `reason`. Removes the path from the reason, because the
 * output line already has it. Returns false. */
static bool end(test *t, cli_test_status status, const char *before, const char *reason) {
  size_t length = strlen(t->path);
  if (strncmp(reason, t->path, length) == 0 && reason[length] == ':')
    reason += length + 1;
  else if (strncmp(reason, t->path, length) == 0 && strncmp(reason + length, "/model.onnx: ", 13) == 0)
    reason += length + 12;
  while (*reason == ' ') ++reason;
  t->result->status = status;
  snprintf(t->result->reason, sizeof t->result->reason, "%s%s", before, reason);
  return false;
}

/* Keeps those of the user's pins or forces that match a node of this graph. The planner would reject all others as typos, but
 * they may be meant for other test directories of the same command. */
static clv_status keep_matching(test *t, const clv_assignment **items, uint32_t *count, bool by_operator, clv_error *error) {
  clv_assignment *kept = cli_arena_allocate_zero(&t->arena, *count, sizeof *kept);
  uint32_t kept_count = 0;
  if (kept == NULL) return cli_error_memory(error, *count * sizeof *kept);
  for (uint32_t i = 0; i < *count; ++i) {
    if (clv_graph_count_matches(t->graph, (*items)[i].pattern, by_operator) > 0) kept[kept_count++] = (*items)[i];
  }
  *items = kept;
  *count = kept_count;
  return CLV_OK;
}

static bool load(test *t) {
  clv_error error = {0};
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/model.onnx", t->path);
  if (length < 0 || (size_t)length >= sizeof path) return end(t, CLI_TEST_ERROR, "", "the path is too long");
  if (access(path, F_OK) != 0) {
    bool is_there = access(t->path, F_OK) == 0;
    return end(t, CLI_TEST_ERROR, "", is_there ? "neither this folder nor one below it contains a model.onnx" : "does not exist");
  }
  clv_status status = clv_graph_load(t->tester->cli->context, path, &t->graph, &error);
  if (status != CLV_OK) return end(t, status == CLV_NOT_SUPPORTED ? CLI_TEST_UNSUPPORTED : CLI_TEST_ERROR, "", error.message);
  const uint32_t input_count = clv_graph_input_count(t->graph), output_count = clv_graph_output_count(t->graph);
  for (uint32_t i = 0; i < input_count; ++i) {
    if (clv_graph_input_type(t->graph, i)->dtype != CLV_DTYPE_NONE) continue;
    snprintf(error.message, sizeof error.message, "input '%s' is not a tensor, or has an unsupported element type",
             clv_graph_input_name(t->graph, i));
    return end(t, CLI_TEST_UNSUPPORTED, "", error.message);
  }
  status = cli_test_read(t->tester->cli->context, &t->arena, t->path, t->graph, &t->sets, &t->set_count, &error);
  if (status != CLV_OK) return end(t, status == CLV_NOT_SUPPORTED ? CLI_TEST_UNSUPPORTED : CLI_TEST_ERROR, "", error.message);
  t->sizes = cli_arena_allocate_zero(&t->arena, input_count, sizeof *t->sizes);
  t->outputs = cli_arena_allocate_zero(&t->arena, output_count, sizeof *t->outputs);
  t->plan = t->tester->plan;
  status = t->sizes == NULL || t->outputs == NULL ? cli_error_memory(&error, input_count * sizeof *t->sizes) : CLV_OK;
  if (status == CLV_OK) status = keep_matching(t, &t->plan.pins, &t->plan.pin_count, false, &error);
  if (status == CLV_OK) status = keep_matching(t, &t->plan.forces, &t->plan.force_count, true, &error);
  return status == CLV_OK || end(t, CLI_TEST_ERROR, "", error.message);
}

/* Plan options for the shapes of a data set, or, with --bucket, for any shapes. */
static clv_plan_options options_for(test *t, const cli_data_set *set) {
  clv_plan_options options = t->plan;
  bool is_open = cli_is_given(t->tester->cli, OPTION_BUCKET);
  for (uint32_t i = 0; i < set->input_count && !is_open; ++i) {
    if (set->inputs[i].dtype == CLV_DTYPE_NONE) continue;
    clv_size *size = &t->sizes[options.size_count++];
    *size = (clv_size){.name = clv_graph_input_name(t->graph, i), .rank = set->inputs[i].rank};
    memcpy(size->dims, set->inputs[i].dims, sizeof size->dims);
  }
  options.sizes = t->sizes;
  return options;
}

static bool same_shapes(const cli_data_set *a, const cli_data_set *b) {
  for (uint32_t i = 0; i < a->input_count; ++i) {
    bool both_absent = a->inputs[i].dtype == CLV_DTYPE_NONE && b->inputs[i].dtype == CLV_DTYPE_NONE;
    if (!both_absent && !clv_tensor_same_type(&a->inputs[i], &b->inputs[i])) return false;
  }
  return true;
}

static clv_status make_session(test *t, const clv_plan *plan, clv_session **session, clv_error *error) {
  clv_session_options options;
  cli_session_options(t->tester->cli, &options);
  options.no_fallback = true; /* a device that fails must fail the test */
  return clv_session_create(plan, &options, session, error);
}

/* Makes the strategy's plan for the shapes of a data set. Reuses the current plan if the shapes are the same. */
static bool make_base(test *t, uint32_t set) {
  bool is_open = cli_is_given(t->tester->cli, OPTION_BUCKET);
  if (t->base != NULL && (is_open || same_shapes(&t->sets[set], &t->sets[t->base_set]))) return true;
  clv_session_destroy(t->base_session);
  clv_plan_destroy(t->base);
  t->base_session = NULL;
  t->base = NULL;
  clv_error error = {0};
  clv_plan_options options = options_for(t, &t->sets[set]);
  clv_status status = clv_plan_make(t->graph, t->tester->devices, &options, &t->base, &error);
  t->base_set = set;
  if (status == CLV_OK) return true;
  return end(t, status == CLV_NOT_SUPPORTED ? CLI_TEST_UNSUPPORTED : CLI_TEST_ERROR, "", error.message);
}

/* Runs a session on a data set and compares the outputs. */
static bool check(test *t, clv_session *session, const cli_data_set *set, const char *before) {
  clv_error error = {0};
  memset(t->outputs, 0, set->output_count * sizeof *t->outputs);
  clv_status status = clv_session_run(session, set->inputs, set->input_count, t->outputs, set->output_count, &error);
  if (status != CLV_OK) return end(t, CLI_TEST_ERROR, before, error.message);
  bool equal = true;
  for (uint32_t i = 0; equal && i < set->output_count; ++i) {
    char difference[CLI_COMPARE_BYTES], why[CLI_COMPARE_BYTES + 700];
    if (set->outputs[i].dtype == CLV_DTYPE_NONE) continue;
    equal = cli_compare(&set->outputs[i], &t->outputs[i], &t->tester->tolerance, difference);
    if (equal) continue;
    snprintf(why, sizeof why, "%s%soutput '%.500s' %s", t->set_count > 1 ? set->name : "", t->set_count > 1 ? ": " : "",
             clv_graph_output_name(t->graph, i), difference);
    end(t, CLI_TEST_FAIL, before, why);
  }
  return equal;
}

static bool run_as_planned(test *t) {
  clv_error error = {0};
  for (uint32_t s = 0; s < t->set_count; ++s) {
    if (!make_base(t, s)) return false;
    if (t->base_session == NULL && make_session(t, t->base, &t->base_session, &error) != CLV_OK) {
      return end(t, CLI_TEST_ERROR, "", error.message);
    }
    if (!check(t, t->base_session, &t->sets[s], "")) return false;
  }
  return true;
}

static bool run_placement(test *t, uint32_t number) {
  uint64_t seed = t->tester->seed + number;
  uint32_t set = number % t->set_count;
  char before[64];
  clv_error error = {0};
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  cli_arena arena;
  arena = (cli_arena){NULL};
  snprintf(before, sizeof before, "placement seed %llu: ", (unsigned long long)seed);
  bool fine = make_base(t, set);
  clv_plan_options options = options_for(t, &t->sets[set]);
  clv_assignment *pins;
  if (fine && cli_placement_pins(t->base, t->tester->devices, seed, &arena, &pins, &options.pin_count, &error) == CLV_OK) {
    options.pins = pins;
    options.force_count = 0; /* the pins already include the forced nodes */
    clv_status status = clv_plan_make(t->graph, t->tester->devices, &options, &plan, &error);
    ++t->result->placements;
    if (status == CLV_NOT_SUPPORTED)
      ++t->result->refused; /* the only possible reason is too little memory, because every node is pinned to a device that
                               supports it */
    else if (status != CLV_OK)
      fine = end(t, CLI_TEST_ERROR, before, error.message);
    else if (make_session(t, plan, &session, &error) != CLV_OK)
      fine = end(t, CLI_TEST_ERROR, before, error.message);
    else
      fine = check(t, session, &t->sets[set], before);
  } else if (fine) {
    fine = end(t, CLI_TEST_ERROR, before, error.message);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  cli_arena_finish(&arena);
  return fine;
}

void cli_test_run(const cli_tester *tester, const char *path, cli_test_result *result) {
  *result = (cli_test_result){.status = CLI_TEST_PASS};
  test t = {.tester = tester, .path = path, .result = result};
  t.arena = (cli_arena){NULL};
  bool fine = load(&t) && run_as_planned(&t);
  for (uint32_t p = 0; fine && p < tester->placements; ++p) {
    cli_progress(tester->cli, "%s, placement %u of %u", path, p + 1, tester->placements);
    fine = run_placement(&t, p);
  }
  if (fine && result->refused > 0) {
    snprintf(result->reason, sizeof result->reason, "%u of %u placements were rejected because a device has too little memory",
             result->refused, result->placements);
  }
  clv_session_destroy(t.base_session);
  clv_plan_destroy(t.base);
  cli_test_release(t.sets, t.set_count);
  clv_graph_destroy(t.graph);
  cli_arena_finish(&t.arena);
}
