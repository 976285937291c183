/* Collects the times that devices report for their steps. See efficiency.h. */
#include "report/efficiency.h"

#include <stdio.h>
#include <string.h>

#include "report/label.h"

enum { LABEL_NODES = 4 };

const char *clv__step_kind_word(clv__step_kind kind) {
  static const char *const words[] = {"nodes", "device", "partition", "between", "transfer"};
  return words[kind];
}

/* ---- List of steps ---- */

typedef struct collecting {
  clv__efficiency *efficiency;
  const clv__partition *partition;
  bool *is_done; /* indexed by node of the graph: whether a step that does its work has been reported */
  clv__op_step *steps;
  uint32_t count; /* number of steps of the partition so far */
  clv_error *error;
} collecting;

static clv_status count_step(void *cookie, const clv_step_info *info) {
  (void)info;
  ++*(uint32_t *)cookie;
  return CLV_OK;
}

/* Names a step after its operators, in order: "Conv+Add+Relu". If there are many, only the first are named. */
static clv_status name_nodes(clv__efficiency *e, clv__op_step *step, clv_error *error) {
  const clv_graph *graph = clv__session_plan(e->session)->graph;
  clv__text text;
  clv__text_init(&text, graph->allocator);
  for (uint32_t i = 0; i < step->node_count && i < LABEL_NODES; ++i) {
    clv__text_append(&text, "%s%s", i > 0 ? "+" : "", clv__label_op(&graph->nodes[step->nodes[i]]));
  }
  if (step->node_count > LABEL_NODES) clv__text_append(&text, "+… (%u)", step->node_count);
  step->label = text.failed ? NULL : clv__arena_string(&e->arena, text.data, text.size_bytes);
  clv__text_finish(&text);
  return step->label != NULL ? CLV_OK : clv__error_memory(error, CLV__LABEL_BYTES);
}

static const char *keep(clv__efficiency *e, const char *text) {
  return text != NULL ? clv__arena_string(&e->arena, text, strlen(text)) : "";
}

static clv_status take_nodes(collecting *c, const clv_step_info *info, clv__op_step *step) {
  clv_node_id *nodes = clv__arena_allocate_zero(&c->efficiency->arena, info->node_count, sizeof *nodes);
  if (nodes == NULL) return clv__error_memory(c->error, info->node_count * sizeof *nodes);
  for (uint32_t i = 0; i < info->node_count; ++i) {
    const uint32_t index = info->nodes[i];
    if (index >= c->partition->node_count || c->is_done[c->partition->nodes[index]]) {
      return clv__error_set(c->error, CLV_DEVICE_ERROR, "step %u ('%.40s') names node %u, which %s", c->count, step->label, index,
                            index < c->partition->node_count ? "belongs to another step" : "is not in the partition");
    }
    nodes[i] = c->partition->nodes[index];
    c->is_done[nodes[i]] = true;
  }
  step->nodes = nodes;
  step->node_count = info->node_count;
  return name_nodes(c->efficiency, step, c->error);
}

static clv_status take_step(void *cookie, const clv_step_info *info) {
  collecting *c = cookie;
  clv__op_step *step = &c->steps[c->count];
  step->kind = info->node_count > 0 ? CLV__STEP_OF_NODES : CLV__STEP_OF_DEVICE;
  step->label = keep(c->efficiency, info->what);
  step->implementation = keep(c->efficiency, info->implementation);
  if (step->label == NULL || step->implementation == NULL) return clv__error_memory(c->error, 0);
  step->bytes = info->size_bytes > 0 ? (double)info->size_bytes : -1;
  step->beside = info->beside < c->partition->node_count ? c->partition->nodes[info->beside] : CLV__NO_ID;
  if (info->node_count > 0) CLV__TRY(take_nodes(c, info, step));
  ++c->count;
  return CLV_OK;
}

/* Sets `*count` to the number of steps of a partition, plus one for the time between them. If the device reports no steps, the
 * whole partition counts as one. */
static clv_status count_partition(clv__efficiency *e, uint32_t index, uint32_t *count, clv_error *error) {
  const clv__partition *partition = &clv__session_plan(e->session)->partitions[index];
  *count = 0;
  clv_status status = clv__session_operators(e->session, index, count_step, count, error);
  if (status == CLV_NOT_SUPPORTED) {
    e->silent |= 1u << partition->device;
    *count = 0;
    status = CLV_OK;
  }
  ++*count;
  return status;
}

static clv_status take_partition(collecting *c, uint32_t index, uint32_t count) {
  clv__efficiency *e = c->efficiency;
  c->partition = &clv__session_plan(e->session)->partitions[index];
  c->count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    c->steps[i] =
        (clv__op_step){.device = c->partition->device, .index = index, .implementation = "", .beside = CLV__NO_ID, .bytes = -1};
  }
  clv__op_step *last = &c->steps[count - 1];
  if (count > 1) {
    CLV__TRY(clv__session_operators(e->session, index, take_step, c, c->error));
    if (c->count + 1 != count)
      return clv__error_set(c->error, CLV_DEVICE_ERROR, "the device reported %u steps at first, then %u", count - 1, c->count);
    last->kind = CLV__STEP_BETWEEN;
    last->label = "between steps";
    return CLV_OK;
  }
  char label[CLV__LABEL_BYTES];
  snprintf(label, sizeof label, "partition %u", index);
  last->kind = CLV__STEP_PARTITION;
  last->label = keep(e, label);
  last->nodes = c->partition->nodes;
  last->node_count = c->partition->node_count;
  for (uint32_t i = 0; i < last->node_count; ++i) c->is_done[last->nodes[i]] = true;
  return last->label != NULL ? CLV_OK : clv__error_memory(c->error, sizeof label);
}

static void take_transfer(clv__efficiency *e, clv__op_step *step, uint32_t index) {
  const clv__transfer *transfer = &clv__session_plan(e->session)->transfers[index];
  *step = (clv__op_step){.kind = CLV__STEP_TRANSFER,
                         .device = transfer->device,
                         .index = index,
                         .label = "transfer",
                         .implementation = "",
                         .beside = CLV__NO_ID,
                         .bytes = transfer->size_known ? (double)transfer->size_bytes : -1};
}

static clv_status list_idle(clv__efficiency *e, const bool *is_done, clv_error *error) {
  const clv_graph *graph = clv__session_plan(e->session)->graph;
  e->idle = clv__arena_allocate_zero(&e->arena, graph->node_count, sizeof *e->idle);
  if (e->idle == NULL) return clv__error_memory(error, graph->node_count * sizeof *e->idle);
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    if (!is_done[n]) e->idle[e->idle_count++] = n;
  }
  return CLV_OK;
}

static clv_status collect(clv__efficiency *e, clv_error *error) {
  const clv_plan *plan = clv__session_plan(e->session);
  uint32_t *counts = clv__arena_allocate_zero(&e->arena, plan->step_count, sizeof *counts);
  collecting c = {.efficiency = e, .error = error};
  c.is_done = clv__arena_allocate_zero(&e->arena, plan->graph->node_count, sizeof *c.is_done);
  if (counts == NULL || c.is_done == NULL) return clv__error_memory(error, plan->step_count * sizeof *counts);
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    counts[s] = 1;
    if (!plan->steps[s].is_transfer) CLV__TRY(count_partition(e, plan->steps[s].index, &counts[s], error));
    e->step_count += counts[s];
  }
  e->steps = clv__arena_allocate_zero(&e->arena, e->step_count, sizeof *e->steps);
  e->seen_ns = clv__arena_allocate_zero(&e->arena, e->step_count, sizeof *e->seen_ns);
  e->samples_ms = clv__arena_allocate_zero(&e->arena, (size_t)e->step_count * e->most_runs, sizeof *e->samples_ms);
  if (e->steps == NULL || e->seen_ns == NULL || e->samples_ms == NULL) {
    return clv__error_memory(error, (size_t)e->step_count * e->most_runs * sizeof *e->samples_ms);
  }
  c.steps = e->steps;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].is_transfer)
      take_transfer(e, c.steps, plan->steps[s].index);
    else
      CLV__TRY(take_partition(&c, plan->steps[s].index, counts[s]));
    c.steps += counts[s];
  }
  return list_idle(e, c.is_done, error);
}

clv_status clv__efficiency_begin(clv__efficiency *e, clv_session *session, uint32_t threads, uint32_t most_runs,
                                 clv_error *error) {
  const clv_plan *plan = clv__session_plan(session);
  *e = (clv__efficiency){.session = session, .most_runs = most_runs, .thread_count = threads};
  clv__arena_init(&e->arena, plan->graph->allocator);
  CLV__TRY(clv__session_time_operators(session, true, error));
  return collect(e, error);
}

void clv__efficiency_finish(clv__efficiency *e) {
  if (e->session != NULL) clv__arena_finish(&e->arena);
  *e = (clv__efficiency){0};
}

/* ---- Times ---- */

typedef struct reading {
  clv__efficiency *efficiency;
  uint32_t step; /* index in `steps` of the next step to be reported */
  uint32_t end;  /* one past the last step of the partition */
  uint64_t sum_ns;
  clv_error *error;
} reading;

static void put_sample(clv__efficiency *e, uint32_t step, uint64_t time_ns) {
  e->samples_ms[(size_t)step * e->most_runs + e->run_count] = (double)time_ns / 1e6;
}

static clv_status read_step(void *cookie, const clv_step_info *info) {
  reading *r = cookie;
  if (r->step == r->end) return clv__error_set(r->error, CLV_DEVICE_ERROR, "the device reports more steps than before");
  const uint64_t taken_ns = info->time_ns - r->efficiency->seen_ns[r->step];
  r->efficiency->seen_ns[r->step] = info->time_ns;
  put_sample(r->efficiency, r->step++, taken_ns);
  r->sum_ns += taken_ns;
  return CLV_OK;
}

clv_status clv__efficiency_sample(clv__efficiency *e, clv_error *error) {
  const clv_plan *plan = clv__session_plan(e->session);
  reading r = {.efficiency = e, .error = error};
  if (e->run_count == e->most_runs) return CLV_OK;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const uint64_t all_ns = clv__session_step_time_ns(e->session, s);
    r.sum_ns = 0;
    r.end = r.step;
    while (r.end < e->step_count && e->steps[r.end].kind < CLV__STEP_PARTITION) ++r.end;
    if (r.end > r.step) CLV__TRY(clv__session_operators(e->session, plan->steps[s].index, read_step, &r, error));
    if (r.step != r.end) return clv__error_set(error, CLV_DEVICE_ERROR, "the device reports fewer steps than before");
    put_sample(
        e, r.step++,
        all_ns > r.sum_ns ? all_ns - r.sum_ns : 0); /* the time outside steps, or all of it if the device reports no steps */
  }
  ++e->run_count;
  return CLV_OK;
}
