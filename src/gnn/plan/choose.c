/* Plans all layers at every k and chooses the best k. See choose.h. */
#include "gnn/plan/choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/choose_own.h"

typedef struct asking {
  clv__arena *arena;
  const clv__costs *costs;
  uint32_t layer_count;
  const clv__choose_options *options;
  uint64_t reserve;
} asking;

/* Finds the least memory with which every subgraph and layer has a plan. */
static clv_status find_least(const asking *a, const clv__choose_cut *cut, clv__chosen_k *item, clv_error *error) {
  for (uint32_t l = 0; l < a->layer_count; ++l) {
    for (uint32_t i = 0; i < cut->k; ++i) {
      clv__arena arena;
      clv__pep_list list;
      clv_error why = {0};
      clv__arena_init(&arena, a->arena->allocator);
      clv_status status = clv__peps_make(&arena, &a->costs[l], &cut->subgraphs[i], &a->options->peps, &list, &why);
      clv__arena_finish(&arena);
      if (status == CLV_OUT_OF_MEMORY) return clv__error_set(error, status, "%s", why.message);
      if (status == CLV_TOO_LARGE && list.least.size_bytes > item->least.size_bytes) item->least = list.least;
    }
  }
  return CLV_OK;
}

/* Reports that no k has a plan: the least memory of every k that lacks memory, and the reasons of the others. */
static clv_status refuse(const clv__choice *choice, const clv__machine *machine, clv_error *error) {
  char text[sizeof error->message] = "no k has a plan: ";
  size_t used = strlen(text), room = sizeof text;
  const clv__machine_device *device = NULL;
  for (uint32_t c = 0; c < choice->k_count && used < room; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    int written;
    if (item->least.size_bytes == 0) {
      written = snprintf(text + used, room - used, "%sk = %u: %.150s", c > 0 ? "; " : "", item->k, item->reason);
    } else {
      device = &machine->devices[item->least.device];
      written = snprintf(text + used, room - used, "%sk = %u needs about %llu bytes of %s", c > 0 ? "; " : "", item->k,
                         (unsigned long long)item->least.size_bytes, device->name);
    }
    used += written > 0 ? (size_t)written : 0;
  }
  if (device == NULL) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", text);
  return clv__error_set(error, CLV_TOO_LARGE, "%.900s; %.60s has %llu", text, device->name,
                        (unsigned long long)device->memory_bytes);
}

/* Plans all layers for one k. If there is no plan, records the reason. Only running out of memory aborts the whole choice. */
static clv_status choose_cut(asking *a, const clv__choose_cut *cut, clv__chosen_k *item, clv_error *error) {
  const clv__machine *machine = a->costs->machine;
  *item = (clv__chosen_k){.k = cut->k, .has_plan = true};
  item->layers = clv__arena_allocate_zero(a->arena, a->layer_count, sizeof *item->layers);
  if (item->layers == NULL) return clv__error_memory(error, a->layer_count * sizeof *item->layers);
  for (uint32_t l = 0; l < a->layer_count; ++l) {
    clv_error why;
    clv__error_clear(&why);
    clv__chosen_layer *layer = &item->layers[l];
    clv_status status = clv__choose_layer(a->arena, &a->costs[l], l, cut, a->options, &a->reserve, layer, &why);
    if (status == CLV_OUT_OF_MEMORY) return clv__error_set(error, status, "%s", why.message);
    if (status != CLV_OK) {
      item->has_plan = false;
      snprintf(item->reason, sizeof item->reason, "layer %u: %.230s", l, why.message);
      return status == CLV_TOO_LARGE ? find_least(a, cut, item, error) : CLV_OK;
    }
    double exchange = l > 0 ? a->options->exchange_ns : 0;
    item->makespan_ns += layer->timeline.makespan_ns + exchange;
    item->bound_ns += layer->bound_ns + exchange;
    item->bound_all_ns += layer->bound_all_ns + exchange;
    item->switches += layer->timeline.switches;
    for (uint32_t d = 0; d < machine->device_count; ++d) {
      item->single_ns[d] += layer->single_ns[d] + exchange;
      item->busy_ns[d] += layer->timeline.busy_ns[d];
    }
  }
  for (uint32_t d = 0; d < machine->device_count; ++d) item->idle_ns[d] = item->makespan_ns - item->busy_ns[d];
  item->gap = item->bound_ns > 0 ? (item->makespan_ns - item->bound_ns) / item->bound_ns : 0;
  return CLV_OK;
}

static int compare_cuts(const void *a, const void *b) {
  const clv__choose_cut *x = *(const clv__choose_cut *const *)a, *y = *(const clv__choose_cut *const *)b;
  return (x->k > y->k) - (x->k < y->k);
}

/* Sorts the cuts by k. If the whole graph (k = 1) is missing, adds it: the vertices that the parts own, without a halo. */
static clv_status all_cuts(clv__arena *arena, const clv__choose_cut *cuts, uint32_t cut_count, const clv__choose_cut ***sorted,
                           uint32_t *count, clv_error *error) {
  clv__choose_cut *whole = clv__arena_allocate_zero(arena, 1, sizeof *whole);
  clv__subgraph_sizes *sizes = clv__arena_allocate_zero(arena, 1, sizeof *sizes);
  *sorted = clv__arena_allocate_zero(arena, cut_count + 1u, sizeof **sorted);
  if (whole == NULL || sizes == NULL || *sorted == NULL) return clv__error_memory(error, sizeof *whole);
  bool found = false;
  for (uint32_t c = 0; c < cut_count; ++c) {
    if (cuts[c].k == 0 || cuts[c].subgraphs == NULL)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "a partition has k = 0, or no subgraphs");
    (*sorted)[c] = &cuts[c];
    found = found || cuts[c].k == 1;
  }
  *count = cut_count;
  if (!found && cut_count > 0) {
    for (uint32_t i = 0; i < cuts[0].k; ++i)
      sizes->owned += cuts[0].subgraphs[i].owned, sizes->edges += cuts[0].subgraphs[i].edges;
    *whole = (clv__choose_cut){1, sizes};
    (*sorted)[(*count)++] = whole;
  }
  if (*count > 1) qsort(*sorted, *count, sizeof **sorted, compare_cuts);
  for (uint32_t c = 1; c < *count; ++c) {
    if ((*sorted)[c]->k == (*sorted)[c - 1]->k)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "k = %u appears twice", (*sorted)[c]->k);
  }
  return CLV_OK;
}

static void find_best_single(clv__choice *choice, uint32_t devices) {
  choice->best_single_ns = INFINITY;
  choice->best_single_device = choice->best_single_k = CLV__NO_ID;
  for (uint32_t c = 0; c < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    for (uint32_t d = 0; d < devices && item->has_plan; ++d) {
      if (!(item->single_ns[d] < choice->best_single_ns)) continue;
      choice->best_single_ns = item->single_ns[d];
      choice->best_single_device = d, choice->best_single_k = item->k;
    }
  }
}

/* Explains the choice of k: the next best k, and the gain over it and over a single device. */
static void explain(clv__choice *choice, const clv__machine *machine) {
  const clv__chosen_k *best = &choice->items[choice->chosen], *next = NULL;
  for (uint32_t c = 0; c < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    if (item == best || !item->has_plan) continue;
    if (next == NULL || item->makespan_ns < next->makespan_ns) next = item;
  }
  char other[160] = "no other k has a plan", single[160] = "no device can run the whole model alone";
  if (next != NULL)
    snprintf(other, sizeof other, "next best k = %u with %.3f ms (%+.1f %%)", next->k, next->makespan_ns / 1e6,
             best->makespan_ns > 0 ? 100 * (next->makespan_ns / best->makespan_ns - 1) : 0.0);
  if (choice->gain > 1)
    snprintf(single, sizeof single, "%.2f times as fast as %s alone with its best k (k = %u, %.3f ms)", choice->gain,
             machine->devices[choice->best_single_device].name, choice->best_single_k, choice->best_single_ns / 1e6);
  else if (isfinite(choice->best_single_ns))
    snprintf(single, sizeof single, "no faster than %s alone (k = %u)", machine->devices[choice->best_single_device].name,
             choice->best_single_k);
  snprintf(choice->why, sizeof choice->why, "k = %u has the shortest predicted time, %.3f ms; %s; %s", best->k,
           best->makespan_ns / 1e6, other, single);
}

clv_status clv__choose(clv__arena *arena, const clv__costs *costs, uint32_t layer_count, const clv__choose_cut *cuts,
                       uint32_t cut_count, const clv__choose_options *options, clv__choice *choice, clv_error *error) {
  const clv__choose_cut **sorted;
  asking a = {arena, costs, layer_count, options, CLV__CHOOSE_RESERVE};
  *choice = (clv__choice){.layer_count = layer_count, .chosen = CLV__NO_ID};
  if (layer_count == 0 || cut_count == 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "there are no layers, or no k, to plan for");
  CLV__TRY(all_cuts(arena, cuts, cut_count, &sorted, &choice->k_count, error));
  choice->items = clv__arena_allocate_zero(arena, choice->k_count, sizeof *choice->items);
  if (choice->items == NULL) return clv__error_memory(error, choice->k_count * sizeof *choice->items);
  for (uint32_t l = 0; l < layer_count; ++l) choice->origin = costs[l].origin > choice->origin ? costs[l].origin : choice->origin;
  for (uint32_t c = 0; c < choice->k_count; ++c) {
    clv__chosen_k *item = &choice->items[c];
    CLV__TRY(choose_cut(&a, sorted[c], item, error));
    if (!item->has_plan) continue;
    if (choice->chosen == CLV__NO_ID || item->makespan_ns < choice->items[choice->chosen].makespan_ns) choice->chosen = c;
  }
  if (choice->chosen == CLV__NO_ID) return refuse(choice, costs->machine, error);
  find_best_single(choice, costs->machine->device_count);
  double makespan = choice->items[choice->chosen].makespan_ns;
  if (isfinite(choice->best_single_ns) && makespan > 0) choice->gain = choice->best_single_ns / makespan;
  explain(choice, costs->machine);
  return CLV_OK;
}
