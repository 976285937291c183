/* Prints a plan as text. See steps.h. */
#include "report/steps.h"

#include <stdio.h>
#include <string.h>

#include "report/label.h"

enum {
  NAMED_NODES = 6,
  NAMED_COLUMNS = 72,
  SHOWN_OPERATORS = 4,
  LONG_PLAN = 60,
  HEAD_STEPS = 40,
  TAIL_STEPS = 8,
  TIME_COLUMNS = 8
};

void clv__plan_totals_get(const clv_plan *plan, clv__plan_totals *totals) {
  *totals = (clv__plan_totals){.steps = plan->partition_count - plan->hosted_count, .bytes_known = true};
  for (uint32_t i = 0; i < plan->transfer_count; ++i) {
    const clv__transfer *transfer = &plan->transfers[i];
    bool inner = transfer->boundary == CLV__BOUNDARY_INNER, streamed = transfer->boundary == CLV__BOUNDARY_WEIGHT;
    totals->bytes_known = totals->bytes_known && transfer->size_known;
    ++*(inner ? &totals->inner_transfers : streamed ? &totals->streamed_transfers : &totals->own_transfers);
    *(inner ? &totals->inner_bytes : streamed ? &totals->streamed_bytes : &totals->own_bytes) += transfer->size_bytes;
  }
  totals->steps += totals->inner_transfers + totals->streamed_transfers;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) totals->folded_nodes += plan->placement.devices[n] == CLV__NO_ID;
}

/* Appends the names of the nodes if they are few and short, otherwise the operators. */
static void append_content(const clv_plan *plan, const clv__partition *partition, clv__text *text) {
  if (partition->node_count <= NAMED_NODES) {
    clv__text names;
    clv__text_init(&names, text->allocator);
    for (uint32_t i = 0; i < partition->node_count; ++i) {
      if (i > 0) clv__text_append(&names, ", ");
      clv__label_name(&names, plan->graph->nodes[partition->nodes[i]].name);
    }
    bool fits = !names.failed && clv__label_columns(names.data) <= NAMED_COLUMNS;
    if (fits) clv__text_append(text, "%s", names.data);
    text->failed = text->failed || names.failed;
    clv__text_finish(&names);
    if (fits) return;
  }
  clv__label_operators(text, plan->graph, partition->nodes, partition->node_count, SHOWN_OPERATORS);
}

static void append_transfer(const clv_plan *plan, const clv__transfer *transfer, clv__text *text) {
  char size[CLV__LABEL_BYTES];
  clv__text_append(text, "transfer '");
  clv__label_short(text, plan->graph->values[transfer->value].name, NAMED_COLUMNS);
  clv__text_append(text, "' %s → %s, %s", clv__label_space(plan, transfer->from, transfer->boundary),
                   clv__label_space(plan, transfer->to, transfer->boundary),
                   transfer->size_known ? clv__label_size(transfer->size_bytes, size) : "size known only at run time");
}

static void append_step(const clv_plan *plan, const clv__step *step, size_t width, clv__text *text) {
  char time[CLV__LABEL_BYTES];
  uint64_t time_ns = step->is_transfer ? plan->price.copy_ns[step->index] : plan->price.partition_ns[step->index];
  clv__label_time(time_ns, time);
  /* Pads by hand, because printf() counts bytes, and µ has two. */
  clv__text_append(text, "%*s%s  ", (int)(TIME_COLUMNS - clv__label_columns(time)), "", time);
  if (step->is_transfer) {
    append_transfer(plan, &plan->transfers[step->index], text);
  } else {
    const clv__partition *partition = &plan->partitions[step->index];
    char head[128];
    snprintf(head, sizeof head, "partition %u on %s [%u node%s]", step->index, plan->devices->items[partition->device].name,
             partition->node_count, partition->node_count == 1 ? "" : "s");
    clv__text_append(text, "%-*s  ", (int)width, head);
    append_content(plan, partition, text);
  }
  clv__text_append(text, "\n");
}

/* Returns the width, in columns, of the widest text "partition … on … [… nodes]", but at most 60. */
static size_t partition_width(const clv_plan *plan) {
  size_t width = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    int length = snprintf(NULL, 0, "partition %u on %s [%u node%s]", p, plan->devices->items[partition->device].name,
                          partition->node_count, partition->node_count == 1 ? "" : "s");
    if (length > 0 && (size_t)length > width) width = (size_t)length;
  }
  return width < 60 ? width : 60;
}

static void append_own(const clv_plan *plan, clv__boundary boundary, const char *title, clv__text *text) {
  bool first = true;
  for (uint32_t i = 0; i < plan->transfer_count; ++i) {
    if (plan->transfers[i].boundary != boundary) continue;
    if (first) clv__text_append(text, "%s\n", title);
    first = false;
    clv__text_append(text, "  ");
    append_transfer(plan, &plan->transfers[i], text);
    clv__text_append(text, "\n");
  }
}

void clv__report_steps(const clv_plan *plan, bool all, clv__text *text) {
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  bool abbreviate = !all && totals.steps > LONG_PLAN;
  int digits = snprintf(NULL, 0, "%u", totals.steps > 0 ? totals.steps - 1 : 0);
  size_t width = partition_width(plan);
  if (all) append_own(plan, CLV__BOUNDARY_INPUT, "Inputs of the graph", text);
  uint32_t number = 0;
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    if (clv__step_is_own(plan, &plan->steps[i])) continue;
    uint32_t at = number++;
    if (abbreviate && at >= HEAD_STEPS && at < totals.steps - TAIL_STEPS) {
      if (at == HEAD_STEPS) clv__text_append(text, "… %u more steps (-v lists them) …\n", totals.steps - HEAD_STEPS - TAIL_STEPS);
      continue;
    }
    clv__text_append(text, "Step %*u: ", digits, at);
    append_step(plan, &plan->steps[i], width, text);
  }
  if (all) append_own(plan, CLV__BOUNDARY_OUTPUT, "Outputs of the graph", text);
}

static void append_bytes(const clv__plan_totals *totals, uint64_t size_bytes, clv__text *text) {
  char size[CLV__LABEL_BYTES];
  clv__text_append(text, "%s%s", totals->bytes_known ? "" : "at least ", clv__label_size(size_bytes, size));
}

/* Appends a time such as "12.3 ms one step after the other (bound 12.1 ms, gap 1.7 %)". Omits the gap if the bound is 0. */
static void append_time(const clv_plan *plan, clv__objective objective, clv__text *text) {
  static const char *const words[] = {
      [CLV__LATENCY] = "one step after the other",
      [CLV__OVERLAP] = "with devices at the same time",
      [CLV__THROUGHPUT] = "per run with many runs in flight, the time of the busiest device",
  };
  uint64_t time_ns = clv__price_of(&plan->price, objective), bound_ns = clv__bound_of(&plan->bounds, objective);
  char label[CLV__LABEL_BYTES];
  clv__text_append(text, "%s %s", clv__label_time(time_ns, label), words[objective]);
  clv__text_append(text, " (bound %s", clv__label_time(bound_ns, label));
  if (bound_ns > 0) clv__text_append(text, ", gap %s", clv__label_gap((double)time_ns / (double)bound_ns - 1, label));
  clv__text_append(text, ")\n");
}

/* Appends the predicted time for the plan's objective. If there are several devices, also appends those for latency and overlap.
 */
static void append_times(const clv_plan *plan, clv__text *text) {
  clv__text_append(text, "predicted ");
  append_time(plan, plan->objective, text);
  for (clv__objective o = CLV__LATENCY; o <= CLV__OVERLAP; ++o) {
    if (o == plan->objective || plan->devices->count == 1) continue;
    clv__text_append(text, "          ");
    append_time(plan, o, text);
  }
}

void clv__report_prices(const clv_plan *plan, clv__text *text) {
  const char *first = clv__cost_origin(plan->costs, 0);
  bool same = true;
  for (uint32_t d = 1; d < plan->devices->count; ++d) same = same && strcmp(clv__cost_origin(plan->costs, d), first) == 0;
  if (same) {
    clv__label_name(text, first);
    return;
  }
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    clv__text_append(text, "%s%s: ", d > 0 ? "; " : "", plan->devices->items[d].name);
    clv__label_name(text, clv__cost_origin(plan->costs, d));
  }
}

/* Appends a line such as "memory of npu: 18.2 MiB of 24.0 MiB (weights 2.9 MiB, values between partitions 10.2 MiB, scratch
 * 5.1 MiB)" for each device whose memory is so small that the plan had to ask its compiler for the memory need. */
static void append_memory(const clv_plan *plan, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const clv__memory_need *need = &plan->needs[d];
    if (need->total_bytes == 0 || need->is_guessed) continue;
    clv__text_append(text, "memory of %s: %s", plan->devices->items[d].name, clv__label_size(need->total_bytes, label));
    clv__text_append(text, " of %s (", clv__label_size(plan->devices->items[d].info.memory_limit_bytes, label));
    clv__text_append(text, "weights %s, ", clv__label_size(need->weight_bytes, label));
    clv__text_append(text, "values between partitions %s, ", clv__label_size(need->value_bytes, label));
    clv__text_append(text, "scratch %s)\n", clv__label_size(need->scratch_bytes + need->held_bytes, label));
  }
}

void clv__report_totals(const clv_plan *plan, clv__text *text) {
  clv__plan_totals totals;
  clv__plan_totals_get(plan, &totals);
  clv__label_plural(text, plan->partition_count - plan->hosted_count, "partition");
  clv__text_append(text, " (");
  uint32_t hosted = 0;
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    uint32_t partitions = 0, nodes = 0;
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      if (plan->partitions[p].device != d) continue;
      if (plan->partitions[p].is_hosted) {
        hosted += plan->partitions[p].node_count;
        continue;
      }
      ++partitions;
      nodes += plan->partitions[p].node_count;
    }
    clv__text_append(text, "%s%s: %u with ", d > 0 ? ", " : "", plan->devices->items[d].name, partitions);
    clv__label_plural(text, nodes, "node");
  }
  clv__text_append(text, ")");
  if (hosted > 0) {
    clv__text_append(text, "; ");
    clv__label_plural(text, hosted, "view");
    clv__text_append(text, " renamed by the host");
  }
  if (totals.folded_nodes > 0) {
    clv__text_append(text, "; ");
    clv__label_plural(text, totals.folded_nodes, "node");
    clv__text_append(text, " computed when planning");
  }
  clv__text_append(text, "\n");
  clv__label_plural(text, totals.inner_transfers, "transfer");
  clv__text_append(text, " between partitions");
  if (totals.inner_transfers > 0) {
    clv__text_append(text, ", ");
    append_bytes(&totals, totals.inner_bytes, text);
  }
  clv__text_append(text, "; ");
  clv__label_plural(text, totals.own_transfers, "transfer");
  clv__text_append(text, " of the model's inputs and outputs");
  if (totals.own_transfers > 0) {
    clv__text_append(text, ", ");
    append_bytes(&totals, totals.own_bytes, text);
  }
  clv__text_append(text, "\n");
  if (totals.streamed_transfers > 0) {
    clv__label_plural(text, totals.streamed_transfers, "weight");
    clv__text_append(text, " streamed in every run, ");
    append_bytes(&totals, totals.streamed_bytes, text);
    clv__text_append(text, "\n");
  }
  append_memory(plan, text);
  append_times(plan, text);
  clv__text_append(text, "prices from: ");
  clv__report_prices(plan, text);
  clv__text_append(text, "\n");
  if (plan->note == NULL) return;
  clv__text_append(text, "note: ");
  clv__label_name(text, plan->note);
  clv__text_append(text, "\n");
}
