/* See account.h. Simulates the plan again, because a plan does not contain its tasks. A task in the record of a run is the same
 * as a simulated one if layer, turn, block and device are equal. */
#include "gnn/run/account.h"

#include <stdio.h>

#include "base/error.h"

void clv__gnn_block_name(const clv__stages *stages, uint32_t first, uint32_t last, char *name, size_t room) {
  if (last > first + 1)
    snprintf(name, room, "%s to %s", clv__stage_name(stages->items[first]), clv__stage_name(stages->items[last - 1]));
  else
    snprintf(name, room, "%s", clv__stage_name(stages->items[first]));
}

/* ---- Spans ---- */

static void add_span(clv__gnn_account *account, uint32_t layer, uint32_t cluster, const clv__task_time *task, double start_ns) {
  const clv__gnn_plan_layer *planned = &account->plan->layers[layer];
  const clv__pep_block *block = &planned->peps[planned->sequence[task->turn]].blocks[task->block];
  uint32_t part = 0;
  while (part + 1 < block->part_count && block->parts[part].device != task->device) ++part;
  account->spans[account->span_count++] = (clv__gnn_span){.layer = layer,
                                                          .turn = task->turn,
                                                          .cluster = cluster,
                                                          .subgraph = planned->sequence[task->turn],
                                                          .block = task->block,
                                                          .part = part,
                                                          .first = block->first,
                                                          .last = block->last,
                                                          .device = task->device,
                                                          .sizes = block->parts[part].sizes,
                                                          .padded = block->parts[part].padded,
                                                          .start_ns = start_ns + task->start_ns,
                                                          .end_ns = start_ns + task->end_ns};
}

static clv_status simulate_layer(clv__gnn_account *account, uint32_t layer, double start_ns, clv_error *error) {
  const clv__gnn_plan *plan = account->plan;
  const clv__gnn_plan_layer *planned = &plan->layers[layer];
  const clv_allocator *allocator = plan->arena.allocator;
  size_t k = plan->k;
  clv__pep_work *works = clv__allocate(allocator, k * sizeof *works);
  const clv__pep_work **sequence = clv__allocate(allocator, k * sizeof *sequence);
  clv__task_time *tasks = clv__allocate(allocator, k * CLV__PEP_DEVICES * sizeof *tasks);
  bool good = works != NULL && sequence != NULL && tasks != NULL;
  if (good) {
    clv__timeline timeline;
    uint32_t count, cluster = 0;
    for (uint32_t at = 0; at < plan->k; ++at) {
      clv__pep_work_of(&planned->peps[planned->sequence[at]], &works[at]);
      sequence[at] = &works[at];
    }
    clv__simulate(&plan->machine, sequence, plan->k, &timeline, tasks, &count);
    for (uint32_t t = 0; t < count; ++t) {
      while (tasks[t].turn >= planned->clusters[cluster].first + planned->clusters[cluster].count) ++cluster;
      add_span(account, layer, cluster, &tasks[t], start_ns);
    }
  }
  clv__release(allocator, tasks);
  clv__release(allocator, sequence);
  clv__release(allocator, works);
  return good ? CLV_OK : clv__error_memory(error, k * CLV__PEP_DEVICES * sizeof *tasks);
}

static bool is_same(const clv__gnn_span *span, const clv__gnn_task *task) {
  return span->layer == task->layer && span->turn == task->turn && span->block == task->block && span->device == task->device;
}

/* Copies the times of the run into the spans. Both the spans and the record's tasks are sorted by layer and turn. */
static void take_record(clv__gnn_account *account) {
  const clv__gnn_record *record = account->record;
  for (uint32_t s = 0, from = 0; s < account->span_count; ++s) {
    clv__gnn_span *span = &account->spans[s];
    while (from < record->task_count && (record->tasks[from].layer < span->layer ||
                                         (record->tasks[from].layer == span->layer && record->tasks[from].turn < span->turn)))
      ++from;
    for (uint32_t t = from; t < record->task_count && record->tasks[t].turn == span->turn; ++t) {
      const clv__gnn_task *task = &record->tasks[t];
      if (!is_same(span, task)) continue;
      span->sizes = task->sizes, span->padded = task->padded;
      span->has_run = task->end_ns > 0;
      span->begin_ns = (double)task->begin_ns, span->packed_ns = (double)task->packed_ns;
      span->computed_ns = (double)task->computed_ns, span->done_ns = (double)task->end_ns;
      break;
    }
  }
}

/* ---- Sums ---- */

static clv__gnn_block_sum *sum_of(clv__gnn_account *account, uint32_t first_sum, const clv__gnn_span *span) {
  for (uint32_t b = first_sum; b < account->block_count; ++b) {
    clv__gnn_block_sum *sum = &account->blocks[b];
    if (sum->layer == span->layer && sum->cluster == span->cluster && sum->block == span->block && sum->device == span->device)
      return sum;
  }
  clv__gnn_block_sum *sum = &account->blocks[account->block_count++];
  *sum = (clv__gnn_block_sum){.layer = span->layer,
                              .cluster = span->cluster,
                              .block = span->block,
                              .first = span->first,
                              .last = span->last,
                              .device = span->device};
  return sum;
}

static void add_up(clv__gnn_account *account) {
  uint32_t first_sum = 0;
  for (uint32_t s = 0; s < account->span_count; ++s) {
    const clv__gnn_span *span = &account->spans[s];
    clv__gnn_layer_sum *layer = &account->layers[span->layer];
    clv__gnn_device_sum *device = &account->devices[span->device];
    if (span->sizes.targets == 0) continue; /* the subgraph is empty */
    if (s > 0 && (span->layer != span[-1].layer || span->cluster != span[-1].cluster)) first_sum = account->block_count;
    clv__gnn_block_sum *sum = sum_of(account, first_sum, span);
    ++sum->tasks;
    sum->predicted_ns += span->end_ns - span->start_ns;
    clv__gnn_overhead_add(&account->overhead, span->sizes, span->padded);
    account->rows += span->sizes.targets;
    account->edges += span->sizes.edges;
    if (!span->has_run) continue;
    ++sum->has_run;
    sum->measured_ns += span->done_ns - span->begin_ns;
    sum->packing_ns += span->packed_ns - span->begin_ns + span->done_ns - span->computed_ns;
    device->measured_ns += span->done_ns - span->begin_ns;
    if (!layer->has_run || span->begin_ns < layer->begin_ns) layer->begin_ns = span->begin_ns;
    layer->has_run = true;
  }
}

clv_status clv__gnn_account_make(clv__arena *arena, const clv__gnn_plan *plan, const clv__stages *stages,
                                 const clv__gnn_record *record, clv__gnn_account *account, clv_error *error) {
  size_t room = (size_t)plan->layer_count * plan->k * CLV__PEP_DEVICES;
  *account = (clv__gnn_account){.plan = plan, .stages = stages, .record = record};
  account->spans = clv__arena_allocate_zero(arena, room, sizeof *account->spans);
  account->blocks = clv__arena_allocate_zero(arena, room, sizeof *account->blocks);
  account->layers = clv__arena_allocate_zero(arena, plan->layer_count, sizeof *account->layers);
  if (account->spans == NULL || account->blocks == NULL || account->layers == NULL)
    return clv__error_memory(error, room * sizeof *account->spans);
  double start_ns = 0;
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    const clv__timeline *timeline = &plan->layers[l].timeline;
    start_ns += l > 0 ? plan->exchange_ns : 0;
    account->layers[l].start_ns = start_ns;
    account->layers[l].predicted_ns = timeline->makespan_ns;
    CLV__TRY(simulate_layer(account, l, start_ns, error));
    start_ns += timeline->makespan_ns;
    account->cluster_count += plan->layers[l].cluster_count;
    account->switches += timeline->switches;
    for (uint32_t d = 0; d < plan->machine.device_count; ++d) account->devices[d].predicted_ns += timeline->busy_ns[d];
  }
  if (record != NULL) take_record(account);
  add_up(account);
  for (uint32_t l = 0; l < plan->layer_count && record != NULL; ++l) account->layers[l].measured_ns = record->layer_ns[l];
  return CLV_OK;
}
