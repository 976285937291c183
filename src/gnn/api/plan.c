/* Reads, writes and exports plans for programs: see cleave/gnn.h. */
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "gnn/api/handles.h"
#include "gnn/export.h"

static const clv__gnn_cut *find_cut(const clv_gnn_plan *plan) {
  for (uint32_t c = 0; c < plan->planning.cut_count; ++c) {
    if (plan->planning.cuts[c].membership.k == plan->plan->k) return &plan->planning.cuts[c];
  }
  return NULL;
}

clv_status clv__gnn_plan_partition(clv_gnn_plan *plan, const clv__partitioned **partitioned, clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&plan->lock);
  if (plan->partitioned.subgraphs == NULL) {
    clv__partitioned made = {0};
    status = clv__gnn_planning_subgraphs(&plan->planning, plan->plan->k, &made, error);
    if (status == CLV_OK) plan->partitioned = made;
  }
  pthread_mutex_unlock(&plan->lock);
  *partitioned = &plan->partitioned;
  return status;
}

/* Copies the part of each vertex. */
static clv_status copy_parts(const clv_gnn_plan *plan, uint32_t **parts, clv_error *error) {
  const clv__gnn_cut *cut = find_cut(plan);
  const size_t size_bytes = (size_t)plan->graph->graph->csr.vertex_count * sizeof **parts;
  *parts = clv__allocate_zero(plan->allocator, size_bytes);
  if (*parts == NULL) return clv__error_memory(error, size_bytes);
  if (cut != NULL) {
    memcpy(*parts, cut->membership.parts, size_bytes);
    return CLV_OK;
  }
  for (uint32_t p = 0; p < plan->plan->k && plan->plan->k > 1; ++p) { /* a plan from a file */
    const clv__subgraph *sub = &plan->partitioned.subgraphs[p];
    for (uint32_t i = 0; i < sub->owned_count; ++i) (*parts)[sub->vertices[i]] = p;
  }
  return CLV_OK;
}

clv_status clv_gnn_plan_parts(const clv_gnn_plan *plan, clv_gnn_parts **parts, clv_error *error) {
  uint32_t *own;
  CLV__TRY(clv__argument_check(parts, "parts", error));
  *parts = NULL;
  CLV__TRY(clv__argument_check(plan, "plan", error));
  CLV__TRY(copy_parts(plan, &own, error));
  clv_gnn_parts *made = clv__allocate(plan->allocator, sizeof *made);
  if (made == NULL) {
    clv__release(plan->allocator, own);
    return clv__error_memory(error, sizeof *made);
  }
  const clv__membership membership = {.k = plan->plan->k, .vertex_count = plan->graph->graph->csr.vertex_count, .parts = own};
  *made = (clv_gnn_parts){plan->allocator, membership};
  *parts = made;
  return CLV_OK;
}

/* ---- Files ---- */

clv_status clv_gnn_plan_write(clv_gnn_plan *plan, const char *path, clv_error *error) {
  uint32_t *parts;
  CLV__TRY(clv__argument_check(plan, "plan", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(copy_parts(plan, &parts, error));
  const clv__membership membership = {.k = plan->plan->k, .vertex_count = plan->graph->graph->csr.vertex_count, .parts = parts};
  pthread_mutex_lock(&plan->lock); /* the plan notes the name of the file beside it */
  clv_status status = clv__gnn_plan_write_with(plan->plan, &membership, path, error);
  pthread_mutex_unlock(&plan->lock);
  clv__release(plan->allocator, parts);
  return status;
}

clv_status clv_gnn_plan_export(const clv_gnn_plan *plan, const char *folder, bool inlines, uint32_t *count, clv_error *error) {
  clv__arena arena;
  clv__gnn_schedule schedule;
  uint32_t written = 0;
  CLV__TRY(clv__argument_check(plan, "plan", error));
  CLV__TRY(clv__argument_check(folder, "folder", error));
  clv__arena_init(&arena, plan->allocator);
  clv_status status = clv__gnn_schedule_of(&arena, plan->plan, &schedule, error);
  if (status == CLV_OK)
    status = clv__gnn_export(plan->allocator, plan->model->stages, &schedule, folder, inlines, &written, error);
  clv__arena_finish(&arena);
  if (status == CLV_OK && count != NULL) *count = written;
  return status;
}

/* ---- Reading ---- */

void clv_gnn_plan_get_info(const clv_gnn_plan *plan, clv_gnn_plan_info *info) {
  const clv__gnn_plan *p = plan->plan;
  const clv_gnn_plan_info filled = {.k = p->k,
                                    .layer_count = p->layer_count,
                                    .device_count = p->machine.device_count,
                                    .k_count = p->per_k_count,
                                    .task_count = plan->account.span_count,
                                    .predicted_ns = p->makespan_ns,
                                    .bound_ns = p->bound_ns,
                                    .gap = clv__gnn_plan_gap(p),
                                    .best_single_ns = p->best_single_ns,
                                    .best_single_device = p->best_single_device,
                                    .best_single_k = p->best_single_k,
                                    .prices = clv__table_origin_name(p->origin),
                                    .why = p->why,
                                    .cut_ns = plan->cut_ns,
                                    .plan_ns = plan->plan_ns};
  clv__info_fill(info, &filled, sizeof filled);
}

const char *clv_gnn_plan_device(const clv_gnn_plan *plan, uint32_t index) {
  return index < plan->plan->machine.device_count ? plan->plan->machine.devices[index].name : NULL;
}

bool clv_gnn_plan_k(const clv_gnn_plan *plan, uint32_t index, clv_gnn_k_info *info) {
  clv_gnn_k_info filled = {0};
  bool exists = index < plan->plan->per_k_count;
  if (exists) {
    const clv__gnn_plan_k *item = &plan->plan->per_k[index];
    filled = (clv_gnn_k_info){.k = item->k, .reason = item->reason};
    if (item->reason == NULL) {
      filled.predicted_ns = item->makespan_ns;
      filled.bound_ns = item->bound_ns;
      filled.gap = clv__gnn_plan_k_gap(item);
      filled.switches = item->switches;
      filled.halo_rows = item->overhead.halo_rows;
      filled.padding_rows = item->overhead.padding_rows;
      filled.padding_edges = item->overhead.padding_edges;
    }
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_gnn_plan_subgraph(const clv_gnn_plan *plan, uint32_t index, clv_gnn_subgraph_info *info) {
  clv_gnn_subgraph_info filled = {0};
  const clv__gnn_cut *cut = find_cut(plan);
  bool exists = index < plan->plan->k;
  if (exists && cut != NULL) {
    const clv__subgraph_sizes *sizes = &cut->subgraphs[index];
    filled = (clv_gnn_subgraph_info){.owned_count = (uint32_t)sizes->owned,
                                     .halo_count = (uint32_t)sizes->halo,
                                     .edge_count = sizes->edges,
                                     .cut_edge_count = cut->subgraph_cut_edges[index]};
  } else if (exists) {
    const clv__subgraph *sub = &plan->partitioned.subgraphs[index];
    filled = (clv_gnn_subgraph_info){.owned_count = sub->owned_count,
                                     .halo_count = sub->halo_count,
                                     .edge_count = sub->edge_count,
                                     .cut_edge_count = sub->cut_edge_count};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv__gnn_task_fill(const clv__gnn_account *account, uint32_t index, clv_gnn_task_info *info) {
  clv_gnn_task_info filled = {0};
  bool exists = index < account->span_count;
  if (exists) {
    const clv__gnn_span *span = &account->spans[index];
    filled = (clv_gnn_task_info){.layer = span->layer,
                                 .subgraph = span->subgraph,
                                 .device = span->device,
                                 .turn = span->turn,
                                 .cluster = span->cluster,
                                 .block = span->block,
                                 .part = span->part,
                                 .first_stage = span->first,
                                 .end_stage = span->last,
                                 .targets = span->sizes.targets,
                                 .rows = span->sizes.rows,
                                 .edges = span->sizes.edges,
                                 .padded_rows = span->padded.rows,
                                 .padded_edges = span->padded.edges,
                                 .start_ns = span->start_ns,
                                 .end_ns = span->end_ns,
                                 .has_run = span->has_run};
    if (span->has_run) {
      filled.begin_ns = span->begin_ns, filled.packed_ns = span->packed_ns;
      filled.computed_ns = span->computed_ns, filled.done_ns = span->done_ns;
    }
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_gnn_plan_task(const clv_gnn_plan *plan, uint32_t index, clv_gnn_task_info *info) {
  return clv__gnn_task_fill(&plan->account, index, info);
}
