/* See nominal.h. While the same limit of the roofline (arithmetic or memory) holds, a price is linear in the rows, the edges and
 * the targets. So prices at the ends and in the middle of the range of sizes suffice. */
#include "gnn/measure/nominal.h"

#include "cost/cost.h"
#include "cost/nominal.h"

enum { ROW_STEPS = 5, EDGE_STEPS = 3 }; /* how many different numbers of rows, and of edges, are priced */
#define LEAST_COPIED (UINT64_C(1) << 10)
#define MOST_COPIED (UINT64_C(1) << 36)

typedef struct pricing {
  const clv__gnn_planning *planning;
  clv__tables *tables;
  uint32_t layer, device, first, last;
  uint64_t most_rows, most_edges;
} pricing;

/* Returns the time of one launch plus the times of all nodes, minus the savings of running neighbouring nodes together. */
static double price_of(const clv__cost_model *model, const clv_graph_view *view, uint32_t device) {
  double time_ns = (double)clv__cost_launch(model, device);
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const clv__node *node = clv__view_node(view, n);
    const uint32_t *operands = view->operands + view->operand_offsets[n];
    time_ns += (double)clv__cost_node(model, n, device).time_ns;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (operands[i] == CLV_NO_VALUE) continue;
      clv_node_id producer = view->graph->values[view->values[operands[i]]].producer;
      if (producer != CLV__NO_ID) time_ns -= (double)clv__cost_saving(model, producer, n, device);
    }
  }
  return time_ns;
}

static clv_status price_block(const pricing *p, const clv__block *block, double *time_ns, clv_error *error) {
  clv__block_view whole;
  clv__cost_model *model;
  CLV__TRY(clv__block_view_make(block, &whole, error));
  clv_status status = clv__cost_model_create(p->planning->devices, whole.view, whole.shapes->node_folded, NULL, &model, error);
  if (status == CLV_OK) *time_ns = price_of(model, whole.view, p->device);
  if (status == CLV_OK) clv__cost_model_destroy(model);
  clv__block_view_finish(&whole);
  return status;
}

static clv_status put_size(const pricing *p, clv__layer_sizes sizes, clv_error *error) {
  const clv__gnn_planning *planning = p->planning;
  const clv__block_form form = clv__block_form_fixed(sizes);
  clv__table_point point = {.n = sizes.rows, .m = sizes.edges, .targets = sizes.targets, .origin = CLV__NOMINAL};
  clv__block block;
  CLV__TRY(clv__block_make(planning->arena.allocator, &planning->stages[p->layer], p->first, p->last, &form, &block, error));
  clv_status status = price_block(p, &block, &point.time_ns, error);
  clv__block_finish(&block);
  CLV__TRY(status);
  return clv__tables_put(p->tables, planning->machine.devices[p->device].name, planning->chains[p->layer].layer, p->first,
                         p->last, &point, error);
}

/* Prices the block for combinations of few and many rows, edges and targets. */
static clv_status put_block(const pricing *p, clv_error *error) {
  const clv__chain_block *about = &p->planning->chains[p->layer].blocks[p->first][p->last];
  bool is_static = p->planning->machine.devices[p->device].is_static;
  for (uint64_t r = 0; r < ROW_STEPS; ++r) {
    uint64_t rows = r == 0 ? 1 : p->most_rows * r / (ROW_STEPS - 1);
    for (uint64_t m = 0; m < (about->reads_edges ? EDGE_STEPS : 1); ++m) {
      for (uint64_t t = 0; t < (is_static || !about->reads_rows || rows == 1 ? 1 : 2); ++t) {
        const clv__layer_sizes sizes = {rows, t == 0 ? rows : 1, p->most_edges * m / (EDGE_STEPS - 1)};
        CLV__TRY(put_size(p, sizes, error));
      }
    }
  }
  return CLV_OK;
}

static clv_status put_device(pricing *p, clv_error *error) {
  const clv__gnn_planning *planning = p->planning;
  const clv__machine_device *device = &planning->machine.devices[p->device];
  for (p->layer = 0; p->layer < planning->model->layer_count; ++p->layer) {
    const clv__chain *chain = &planning->chains[p->layer];
    for (p->first = 0; p->first < chain->stage_count; ++p->first) {
      uint32_t cannot = 0;
      for (p->last = p->first + 1; p->last <= chain->stage_count; ++p->last) {
        cannot |= device->cannot & 1u << chain->stages[p->last - 1];
        bool runs = cannot == 0 && planning->runs[p->layer]->runs[p->device][p->first][p->last];
        if (!runs || chain->blocks[p->first][p->last].is_empty) continue;
        clv_status status = put_block(p, error);
        if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u on %s", p->layer, device->name);
      }
    }
  }
  return CLV_OK;
}

static clv_status put_copy(const pricing *p, const char *from, const char *to, uint64_t bytes, double time_ns, clv_error *error) {
  const clv__copy_point point = {.size_bytes = bytes, .origin = CLV__NOMINAL, .time_ns = time_ns};
  return clv__tables_put_copy(p->tables, from, to, &point, error);
}

/* Prices packing in host memory, and copies of the devices that have memory of their own. The price of a copy does not depend on
 * a block, so the cost model of any block will do. */
static clv_status put_copies(const pricing *p, clv_error *error) {
  const clv__gnn_planning *planning = p->planning;
  const clv__machine *machine = &planning->machine;
  const clv__block_form form = clv__block_form_fixed((clv__layer_sizes){1, 1, 1});
  clv__block block;
  clv__block_view whole = {.shapes = NULL};
  clv__cost_model *model = NULL;
  clv_status status =
      clv__block_make(planning->arena.allocator, planning->stages, 0, planning->stages->count, &form, &block, error);
  if (status == CLV_OK) status = clv__block_view_make(&block, &whole, error);
  if (status == CLV_OK)
    status = clv__cost_model_create(planning->devices, whole.view, whole.shapes->node_folded, NULL, &model, error);
  for (uint64_t bytes = LEAST_COPIED; bytes <= MOST_COPIED && status == CLV_OK; bytes *= 4) {
    double packing_ns = 1e9 * (double)bytes / clv__nominal_find("cpu")->bytes_per_second;
    status = put_copy(p, CLV__TABLE_HOST, CLV__TABLE_HOST, bytes, packing_ns, error);
    for (uint32_t d = 0; d < machine->device_count && status == CLV_OK; ++d) {
      const char *name = machine->devices[d].name;
      if (machine->devices[d].space == 0) continue;
      status = put_copy(p, CLV__TABLE_HOST, name, bytes, (double)clv__cost_copy(model, d, true, bytes), error);
      if (status == CLV_OK)
        status = put_copy(p, name, CLV__TABLE_HOST, bytes, (double)clv__cost_copy(model, d, false, bytes), error);
    }
  }
  clv__cost_model_destroy(model);
  clv__block_view_finish(&whole);
  clv__block_finish(&block);
  return status;
}

clv_status clv__gnn_nominal(const clv__gnn_planning *planning, clv__tables *tables, clv_error *error) {
  const clv__csr *csr = planning->looped != NULL ? &planning->looped->csr : &planning->graph->csr;
  uint64_t step = planning->machine.pad_step;
  pricing p = {.planning = planning, .tables = tables};
  p.most_rows = clv__pad_up((uint64_t)csr->vertex_count + 1, step);
  p.most_edges = clv__pad_up(csr->edge_count + 1, step);
  for (p.device = 0; p.device < planning->machine.device_count; ++p.device) CLV__TRY(put_device(&p, error));
  CLV__TRY(put_copies(&p, error));
  return clv__tables_fit(tables, error);
}
