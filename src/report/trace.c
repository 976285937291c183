/* See trace.h. The format is Google's "Trace Event Format": "X" events have a start and a duration in microseconds, and "M"
 * events name rows. The rows of devices come first, in the order of the device list. */
#include "report/trace.h"

#include <inttypes.h>
#include <string.h>

#include "execute/schedule.h"
#include "report/label.h"
#include "report/page/html_json.h"

enum { DRIVER_ROWS = 2 * CLV__MAX_DEVICES }; /* the first row of the threads that drive requests, after all device rows */

typedef struct writer {
  const clv_plan *plan;
  clv__text *text;
  uint64_t origin_ns;
  bool is_first;
} writer;

static void begin_event(writer *w) {
  clv__text_append(w->text, w->is_first ? "\n" : ",\n");
  w->is_first = false;
}

static void name_row(writer *w, uint32_t row, const char *name, const char *suffix, uint32_t number) {
  clv__text title;
  clv__text_init(&title, w->text->allocator);
  clv__text_append(&title, "%s%s", name, suffix);
  if (number != CLV__NO_ID) clv__text_append(&title, " %u", number);
  begin_event(w);
  clv__text_append(w->text, "{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", row);
  clv__html_json_string(w->text, title.data);
  clv__text_append(w->text, "}}");
  begin_event(w);
  clv__text_append(w->text, "{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
                   row, row);
  clv__text_finish(&title);
}

static void append_name(const writer *w, const clv__trace_event *event, clv__text *name) {
  static const char *const words[] = {[CLV__TRACE_RUN] = "run",   [CLV__TRACE_PREPARE] = "prepare for shapes",
                                      [CLV__TRACE_STEP] = "",     [CLV__TRACE_ISSUE] = "issue ",
                                      [CLV__TRACE_WAIT] = "wait", [CLV__TRACE_CAPTURE] = "capture "};
  clv__text_append(name, "%s", words[event->kind]);
  if (event->step == CLV__NO_ID) return;
  const clv__step *step = &w->plan->steps[event->step];
  if (step->is_transfer) {
    const clv__transfer *transfer = &w->plan->transfers[step->index];
    clv__text_append(name, "copy %s", w->plan->graph->values[transfer->value].name);
    return;
  }
  const clv__partition *partition = &w->plan->partitions[step->index];
  clv__text_append(name, "partition %u: ", step->index);
  clv__label_operators(name, w->plan->graph, partition->nodes, partition->node_count, 3);
}

static void append_arguments(const writer *w, const clv__trace_event *event) {
  const clv_plan *plan = w->plan;
  clv__text_append(w->text, "\"request\":%u", event->request);
  if (event->kind != CLV__TRACE_STEP) return;
  const clv__step *step = &plan->steps[event->step];
  uint64_t predicted_ns = step->is_transfer ? plan->price.copy_ns[step->index] : plan->price.partition_ns[step->index];
  clv__text_append(w->text, ",\"step\":%u,\"predicted_ms\":%.6f", event->step, (double)predicted_ns / 1e6);
  clv__text_append(w->text, ",\"measured_ms\":%.6f", (double)(event->end_ns - event->begin_ns) / 1e6);
  if (step->is_transfer) {
    const clv__transfer *transfer = &plan->transfers[step->index];
    if (transfer->size_known) clv__text_append(w->text, ",\"bytes\":%" PRIu64, transfer->size_bytes);
    clv__text_append(w->text, ",\"from\":");
    clv__html_json_string(w->text, clv__label_space(plan, transfer->from, transfer->boundary));
    clv__text_append(w->text, ",\"to\":");
    clv__html_json_string(w->text, clv__label_space(plan, transfer->to, transfer->boundary));
  } else {
    clv__text_append(w->text, ",\"nodes\":%u", plan->partitions[step->index].node_count);
    if (event->is_replay) clv__text_append(w->text, ",\"replayed\":true");
  }
}

static void append_event(writer *w, const clv__trace_event *event) {
  clv__text name;
  clv__text_init(&name, w->text->allocator);
  append_name(w, event, &name);
  uint32_t row = event->kind == CLV__TRACE_STEP ? event->lane : DRIVER_ROWS + event->request;
  begin_event(w);
  clv__text_append(w->text, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":", row,
                   (double)(event->begin_ns - w->origin_ns) / 1e3, (double)(event->end_ns - event->begin_ns) / 1e3);
  clv__html_json_string(w->text, name.data);
  clv__text_append(w->text, ",\"args\":{");
  append_arguments(w, event);
  clv__text_append(w->text, "}}");
  clv__text_finish(&name);
}

/* ---- Operators inside partitions ---- */

/* Draws the operators of some partitions from `begin_ns` on, at most up to `end_ns`. */
static void append_operators(writer *w, const clv__trace_operators *operators, const bool *is_drawn, uint32_t lane,
                             uint64_t begin_ns, uint64_t end_ns) {
  double sum_ns = 0, at_ns = (double)(begin_ns - w->origin_ns), length_ns = (double)(end_ns - begin_ns);
  for (size_t i = 0; i < operators->count; ++i) {
    if (is_drawn[operators->items[i].partition]) sum_ns += (double)operators->items[i].time_ns;
  }
  const double scale = sum_ns > length_ns ? length_ns / sum_ns : 1;
  for (size_t i = 0; i < operators->count; ++i) {
    const clv__trace_operator *o = &operators->items[i];
    if (!is_drawn[o->partition]) continue;
    begin_event(w);
    clv__text_append(w->text, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"operator\",\"name\":", lane,
                     at_ns / 1e3, scale * (double)o->time_ns / 1e3);
    clv__html_json_string(w->text, o->label);
    clv__text_append(w->text, ",\"args\":{\"partition\":%u,\"node\":", o->partition);
    clv__html_json_string(w->text, o->node);
    clv__text_append(w->text, ",\"implementation\":");
    clv__html_json_string(w->text, o->implementation);
    clv__text_append(w->text, ",\"own_run_ms\":%.6f}}", (double)o->time_ns / 1e6);
    at_ns += scale * (double)o->time_ns;
  }
}

/* Draws the operators of the partition of a step. If a capture was replayed, one event stands for several partitions of the
 * device: the event of the last one. */
static void append_inside(writer *w, const clv__trace_event *events, size_t count, const clv__trace_event *event,
                          const clv__trace_operators *operators, bool *is_drawn) {
  const clv_plan *plan = w->plan;
  if (event->kind != CLV__TRACE_STEP || plan->steps[event->step].is_transfer) return;
  memset(is_drawn, 0, plan->partition_count * sizeof *is_drawn);
  const uint32_t last = plan->steps[event->step].index;
  for (uint32_t s = 0; event->is_replay && s < event->step; ++s) {
    if (!plan->steps[s].is_transfer)
      is_drawn[plan->steps[s].index] = plan->partitions[plan->steps[s].index].device == plan->partitions[last].device;
  }
  for (size_t i = 0; event->is_replay && i < count; ++i) {
    if (events[i].kind == CLV__TRACE_STEP && events[i].request == event->request && !plan->steps[events[i].step].is_transfer)
      is_drawn[plan->steps[events[i].step].index] = false;
  }
  is_drawn[last] = true;
  append_operators(w, operators, is_drawn, event->lane, event->begin_ns, event->end_ns);
}

static void append_all(writer *w, const clv__trace_event *events, size_t count, const clv__trace_operators *operators) {
  bool *is_drawn = NULL;
  if (operators != NULL && operators->count > 0)
    is_drawn = clv__allocate_zero(w->text->allocator, w->plan->partition_count * sizeof *is_drawn);
  for (size_t i = 0; i < count; ++i) {
    append_event(w, &events[i]);
    if (is_drawn != NULL) append_inside(w, events, count, &events[i], operators, is_drawn);
  }
  clv__release(w->text->allocator, is_drawn);
}

static void name_rows(writer *w, const clv__trace_event *events, size_t count) {
  bool used[CLV__MAX_LANES] = {false}, driven[CLV_MAX_IN_FLIGHT] = {false};
  for (size_t i = 0; i < count; ++i) {
    if (events[i].kind == CLV__TRACE_STEP)
      used[events[i].lane] = true;
    else
      driven[events[i].request] = true;
  }
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) {
    if (!used[lane]) continue;
    name_row(w, lane, w->plan->devices->items[clv__lane_device(lane)].name, lane % 2 == 1 ? " copies" : "", CLV__NO_ID);
  }
  for (uint32_t r = 0; r < CLV_MAX_IN_FLIGHT; ++r) {
    if (driven[r]) name_row(w, DRIVER_ROWS + r, "driver of request", "", r);
  }
}

void clv__report_trace(const clv_plan *plan, const clv__trace_event *events, size_t count, const clv__trace_operators *operators,
                       clv__text *text) {
  writer w = {.plan = plan, .text = text, .is_first = true};
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || events[i].begin_ns < w.origin_ns) w.origin_ns = events[i].begin_ns;
  }
  clv__text_append(text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  begin_event(&w);
  clv__text_append(text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"cleave\"}}");
  name_rows(&w, events, count);
  append_all(&w, events, count, operators);
  clv__text_append(text, "\n]}\n");
}
