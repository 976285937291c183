/* Measures the steps inside partitions for a trace: see trace.h. */
#include <string.h>

#include "base/text.h"
#include "report/label.h"
#include "report/trace.h"

typedef struct collecting {
  clv__trace_operators *operators;
  const clv_plan *plan;
  uint32_t partition;
  clv_error *error;
} collecting;

static const char *keep(collecting *c, const char *text) {
  return clv__arena_string(&c->operators->arena, text, strlen(text));
}

/* The operators of the step's nodes, such as "Conv, Relu"; the device's name for a step without nodes. */
static const char *label_of(collecting *c, const clv_step_info *info, const char **node) {
  enum { MOST_NAMED = 3, MOST_NODES = 64 };
  const clv__partition *partition = &c->plan->partitions[c->partition];
  const clv_graph *graph = c->plan->graph;
  clv_node_id nodes[MOST_NODES];
  uint32_t count = 0;
  clv__text text;
  for (uint32_t i = 0; i < info->node_count && count < MOST_NODES; ++i) {
    if (info->nodes[i] < partition->node_count) nodes[count++] = partition->nodes[info->nodes[i]];
  }
  *node = keep(c, count > 0 ? graph->nodes[nodes[0]].name : "");
  if (count == 0) return keep(c, info->what);
  clv__text_init(&text, c->operators->arena.allocator);
  clv__label_operators(&text, graph, nodes, count, MOST_NAMED);
  const char *kept = text.failed ? NULL : keep(c, text.data);
  clv__text_finish(&text);
  return kept;
}

static clv_status take_step(void *cookie, const clv_step_info *info) {
  collecting *c = cookie;
  clv__trace_operators *o = c->operators;
  if (info->executions == 0 || info->time_ns == 0) return CLV_OK;
  clv__trace_operator made = {.partition = c->partition, .time_ns = info->time_ns / info->executions};
  made.label = label_of(c, info, &made.node);
  made.implementation = keep(c, info->implementation);
  if (made.label == NULL || made.node == NULL || made.implementation == NULL ||
      !clv__array_reserve(o->arena.allocator, (void **)&o->items, &o->capacity, o->count + 1, sizeof *o->items, o->count))
    return clv__error_memory(c->error, sizeof made);
  o->items[o->count++] = made;
  return CLV_OK;
}

static clv_status collect(clv_session *session, clv__trace_operators *operators, clv_error *error) {
  collecting c = {.operators = operators, .plan = clv__session_plan(session), .error = error};
  for (c.partition = 0; c.partition < c.plan->partition_count; ++c.partition) {
    const clv_status status = clv__session_operators(session, c.partition, take_step, &c, error);
    if (status != CLV_OK && status != CLV_NOT_SUPPORTED) return status; /* not supported: a device that reports no steps */
  }
  clv__error_clear(error);
  return CLV_OK;
}

clv_status clv__trace_operators_measure(clv_session *session, clv_status (*run)(void *user_data, clv_error *error),
                                        void *user_data, clv__trace_operators *operators, clv_error *error) {
  *operators = (clv__trace_operators){0};
  clv__arena_init(&operators->arena, clv__session_plan(session)->graph->allocator);
  CLV__TRY(clv__session_time_operators(session, true, error));
  clv__session_time_steps(session, true);
  clv_status status = run(user_data, error);
  clv__session_time_steps(session, false);
  if (status == CLV_OK) status = collect(session, operators, error);
  clv_error ignored = {0};
  const clv_status off = clv__session_time_operators(session, false, status == CLV_OK ? error : &ignored);
  return status == CLV_OK ? off : status;
}

void clv__trace_operators_finish(clv__trace_operators *operators) {
  if (operators->arena.allocator == NULL) return;
  clv__release(operators->arena.allocator, operators->items);
  clv__arena_finish(&operators->arena);
  *operators = (clv__trace_operators){0};
}
