/* Lists the ways to divide each subgraph among the devices that planning considered. They are made again, from the prices of the
 * plan. */
#include "base/error.h"
#include "report/gnn/own.h"
#include "report/json.h"

typedef clv_status (*pep_teller)(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error);

static clv_status each_list(const clv_gnn_plan *handle, pep_teller teller, void *user, clv_error *error) {
  const clv__subgraph_sizes *subgraphs = NULL;
  clv__pep_options kept = CLV__PEP_OPTIONS_INIT;
  kept.top_k = handle->top_k;
  for (uint32_t c = 0; c < handle->planning.cut_count; ++c) {
    if (handle->planning.cuts[c].membership.k == handle->plan->k) subgraphs = handle->planning.cuts[c].subgraphs;
  }
  if (subgraphs == NULL)
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "a plan from a file has no prices: make the plan again to list its candidates");
  for (uint32_t l = 0; l < handle->plan->layer_count; ++l) {
    for (uint32_t i = 0; i < handle->plan->k; ++i) {
      clv__arena arena;
      clv__pep_list list;
      if (subgraphs[i].owned == 0) continue;
      clv__arena_init(&arena, handle->allocator);
      clv_status status = clv__peps_make(&arena, &handle->planning.costs[l], &subgraphs[i], &kept, &list, error);
      if (status == CLV_OK) status = teller(user, l, i, &list, error);
      clv__arena_finish(&arena);
      CLV__TRY(status);
    }
  }
  return CLV_OK;
}

typedef struct telling {
  const clv_gnn_plan *handle;
  clv__text *text;
  json_t *list;
} telling;

static clv_status tell_text(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error) {
  const telling *t = user;
  const clv__pep *chosen = t->handle->choice.items[t->handle->choice.chosen].layers[layer].peps[subgraph];
  (void)error;
  clv__text_append(t->text,
                   "layer %u, subgraph %u: %u ways to assign its stages, %u priced, %u outside the measured sizes, %u too large "
                   "for a device\n",
                   layer, subgraph, list->structures, list->priced, list->unknown, list->infeasible);
  for (uint32_t i = 0; i < list->count; ++i) {
    clv__text_append(t->text, "%s %12.3f ms  ", clv__pep_same(&list->items[i], chosen) ? "*" : " ",
                     1e-6 * list->items[i].time_ns);
    clv__pep_describe(&list->items[i], &t->handle->planning.machine, t->text);
    clv__text_append(t->text, "\n");
  }
  return CLV_OK;
}

static clv_status tell_json(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error) {
  const telling *t = user;
  json_t *object = json_object(), *peps = json_array();
  json_object_set_new(object, "layer", json_integer(layer));
  json_object_set_new(object, "subgraph", json_integer(subgraph));
  json_object_set_new(object, "structures", json_integer(list->structures));
  json_object_set_new(object, "priced", json_integer(list->priced));
  json_object_set_new(object, "unknown", json_integer(list->unknown));
  json_object_set_new(object, "infeasible", json_integer(list->infeasible));
  for (uint32_t i = 0; i < list->count; ++i) {
    clv__text text;
    json_t *pep = json_object();
    clv__text_init(&text, t->handle->allocator);
    clv__pep_describe(&list->items[i], &t->handle->planning.machine, &text);
    json_object_set_new(pep, "pep", clv__json_text(text.failed ? NULL : text.data));
    json_object_set_new(pep, "ms", clv__json_real(1e-6 * list->items[i].time_ns));
    json_array_append_new(peps, pep);
    clv__text_finish(&text);
  }
  json_object_set_new(object, "peps", peps);
  return json_array_append_new(t->list, object) == 0 ? CLV_OK : clv__error_memory(error, sizeof(json_t));
}

clv_status clv__report_gnn_candidates(const clv_gnn_plan *handle, clv__text *text, clv_error *error) {
  telling t = {handle, text, NULL};
  return each_list(handle, tell_text, &t, error);
}

clv_status clv__report_gnn_candidates_json(const clv_gnn_plan *handle, json_t *list, clv_error *error) {
  telling t = {handle, NULL, list};
  return each_list(handle, tell_json, &t, error);
}
