/* The section `operators` of the conformance kit (check.h): runs every case of cases/cases.c. If supports() accepts a node, the
 * node alone must compile and agree with the reference. If it rejects a node, it must state a reason. A second call of
 * supports() must give the same answer. */
#include <stdio.h>
#include <string.h>

#include "check/run.h"
#include "check/sections.h"
#include "operators/infer.h"

typedef struct asked {
  clv__check *check;
  const clv__check_case *made;
  clv__check_truth truth;
  const clv__node *refused; /* the first node that the device does not support */
  char reason[160];
} asked;

/* Calls supports() twice for one node. If an answer is invalid or the answers differ, reports a failure and returns false. */
static bool ask(asked *a, const clv__check_program *program, uint32_t node) {
  clv__check *check = a->check;
  clv_verdict one, two;
  memset(&one, 0, sizeof one);
  memset(&two, 0, sizeof two);
  check->backend->supports(check->handle, program->view, node, &one);
  check->backend->supports(check->handle, program->view, node, &two);
  const char *op = clv__view_node(program->view, node)->op;
  if (memchr(one.reason, '\0', sizeof one.reason) == NULL || memchr(two.reason, '\0', sizeof two.reason) == NULL) {
    clv__check_fail(check, a->made->what, "supports (%s): the reason has no terminating zero", op);
    return false;
  }
  if (one.supported != two.supported || (!one.supported && strcmp(one.reason, two.reason) != 0)) {
    clv__check_fail(check, a->made->what, "supports (%s), called twice, gave two different verdicts: '%s' and '%s'", op,
                    one.supported ? "yes" : one.reason, two.supported ? "yes" : two.reason);
    return false;
  }
  if (!one.supported && one.reason[0] == '\0') {
    clv__check_fail(check, a->made->what, "supports (%s) rejected the node without a reason", op);
    return false;
  }
  if (!one.supported && a->refused == NULL) {
    a->refused = clv__view_node(program->view, node);
    memcpy(a->reason, one.reason, sizeof a->reason);
  }
  return true;
}

/* Whether the graph has a node whose results are random, or whose operator is unknown. Its results cannot be compared. */
static bool is_drawn(const clv_graph *graph) {
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const clv__op *op = clv__op_find(graph->nodes[n].domain, graph->nodes[n].op);
    if (op == NULL || (op->flags & CLV__OP_NO_FOLD) != 0) return true;
  }
  return false;
}

static bool has_strings(const clv__check_program *program) {
  for (uint32_t v = 0; v < program->view->value_count; ++v) {
    if (clv__view_type(program->view, v)->dtype == CLV_STRING) return true;
  }
  return false;
}

/* Runs the node alone, on inputs that the reference computed. */
static void check_alone(asked *a, clv_node_id node) {
  clv__check *check = a->check;
  clv_error error = {0};
  clv__check_program program = {0};
  char text[1024], reason[160];
  clv_status status = clv__check_program_view(check, a->made->graph, a->made->inputs, &node, 1, &program, &error);
  if (status != CLV_OK)
    clv__check_failed_call(check, a->made->what, "creating the graph view", status, &error);
  else if (clv__check_program_refused(&program, reason) != NULL)
    clv__check_fail(check, a->made->what, "node %s is supported in its graph, but not alone: %s", a->made->graph->nodes[node].op,
                    reason);
  else if (clv__check_view_agrees(&program, a->truth.values, text, sizeof text))
    clv__check_pass(check);
  else
    clv__check_fail(check, a->made->what, "node %s alone: %s", a->made->graph->nodes[node].op, text);
  clv__check_program_finish(&program);
}

/* Compiles the program. Returns whether the device rejects it as too large for one partition, although it has several nodes. */
static bool is_too_large(clv__check_program *program) {
  clv_error error = {0};
  return clv__check_program_compile(program, &error) == CLV_TOO_LARGE && program->view->node_count > 1;
}

static void check_case(clv__check *check, const clv__check_case *made) {
  clv_error error = {0};
  clv__check_program program = {0};
  asked a = {.check = check, .made = made};
  char text[1024];
  clv_status status = clv__check_truth_make(check, made->graph, made->inputs, &a.truth, &error);
  if (status == CLV_OK) status = clv__check_program_view(check, made->graph, made->inputs, NULL, 0, &program, &error);
  bool is_sound = true;
  for (uint32_t n = 0; status == CLV_OK && is_sound && n < program.view->node_count; ++n) is_sound = ask(&a, &program, n);
  if (status != CLV_OK) {
    clv__check_failed_call(check, made->what, "computing the expected results", status, &error);
  } else if (!is_sound) {
    /* already reported */
  } else if (program.view->node_count == 0) {
    clv__check_skip(check, made->what, "computed at plan time, so no device runs it");
  } else if (a.refused != NULL) {
    clv__check_skip(check, made->what, "%s: %s", a.refused->op, a.reason);
  } else if (has_strings(&program)) {
    clv__check_skip(check, made->what, "the kit does not pass strings to devices");
  } else if (is_drawn(made->graph)) {
    clv__check_skip(check, made->what, "its result is random");
  } else {
    if (is_too_large(&program))
      clv__check_skip(check, made->what, "the device needs smaller partitions");
    else if (clv__check_view_agrees(&program, a.truth.values, text, sizeof text))
      clv__check_pass(check);
    else
      clv__check_fail(check, made->what, "%s", text);
    for (uint32_t n = 0; program.view->node_count > 1 && n < program.view->node_count; ++n)
      check_alone(&a, program.view->nodes[n]);
  }
  clv__check_program_finish(&program);
  clv__check_truth_finish(&a.truth);
}

void clv__check_operators(clv__check *check) {
  const uint32_t count = clv__check_case_count(), every = check->options->every > 1 ? check->options->every : 1;
  for (uint32_t i = (uint32_t)(check->seed % every); i < count; i += every) {
    clv__check_case made = {0};
    clv_error error = {0};
    clv__check_progress(check, i, count);
    clv_status status = clv__check_case_make(check->allocator, i, check->seed, &made, &error);
    if (status == CLV_OK) {
      clv__check_at(check, "%s", made.what);
      check_case(check, &made);
    } else {
      clv__check_failed_call(check, made.what, "creating the case", status, &error);
    }
    clv__check_case_finish(&made);
  }
}
