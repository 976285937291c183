/* The cost model of a plan. It prices every node on every device once, when it is created; placing and splitting look the
 * prices up. */
#include "cost/cost.h"

#include <stdio.h>

#include "cost/cost_own.h"

const char *clv__cost_source_name(clv__cost_source source) {
  static const char *const names[] = {"measured", "fitted", "stated", "roofline", "nominal", "sizes unknown"};
  return (size_t)source < sizeof names / sizeof *names ? names[source] : "?";
}

void *clv__making_allocate(clv__making *m, clv__arena *arena, size_t count, size_t element_bytes, clv_status *status) {
  void *made = clv__arena_allocate_zero(arena, count, element_bytes);
  if (made == NULL) *status = clv__error_memory(m->error, count * element_bytes);
  return made;
}

/* ---- Devices ---- */

static double stated_copy(const clv__device *device, uint64_t size_bytes) {
  double (*slot)(clv_device *, uint64_t) = device->backend->copy_seconds;
  return slot == NULL ? -1 : slot(device->handle, size_bytes);
}
static double stated_launch(const clv__device *device) {
  double (*slot)(clv_device *) = device->backend->launch_seconds;
  return slot == NULL ? -1 : slot(device->handle);
}

static void describe_origin(clv__model_device *d, bool has_profile) {
  if (d->tables != NULL) {
    snprintf(d->origin, sizeof d->origin, "profile of %.40s", d->tables->measured);
  } else {
    snprintf(d->origin, sizeof d->origin, "%s%s", stated_launch(d->device) >= 0 ? "stated by the device" : "nominal figures",
             has_profile                     ? ", because the profile is for other devices"
             : stated_launch(d->device) >= 0 ? ""
                                             : ", because no profile is given");
  }
}

static clv_status keep_copies(clv__making *m, clv__model_device *d) {
  for (uint32_t way = 0; way < 2; ++way) {
    d->copy_counts[way] = d->tables->copy_counts[CLV__COPY_IN + way];
    size_t size_bytes = d->copy_counts[way] * sizeof *d->copies[way];
    d->copies[way] = clv__arena_copy(&m->model->arena, d->tables->copies[CLV__COPY_IN + way], size_bytes);
    if (d->copies[way] == NULL) return clv__error_memory(m->error, size_bytes);
  }
  return CLV_OK;
}

static clv_status prepare_device(clv__making *m, clv__model_device *d, const clv__device *device, const clv__profile *profile) {
  uint32_t found = profile == NULL ? CLV__NO_ID : clv__profile_find_device(profile, device->info.fingerprint);
  d->device = device;
  d->nominal = clv__nominal_find(device->info.kind);
  d->tables = found == CLV__NO_ID ? NULL : profile->devices[found];
  if (d->tables != NULL) {
    CLV__TRY(clv__fits_create(d->tables, m->arena.allocator, &d->fits, m->error));
    CLV__TRY(keep_copies(m, d));
  }
  bool measured = d->tables != NULL && d->tables->flops_per_second > 0 && d->tables->bytes_per_second > 0;
  d->flops_per_second = measured ? d->tables->flops_per_second : d->nominal->flops_per_second;
  d->bytes_per_second = measured ? d->tables->bytes_per_second : d->nominal->bytes_per_second;
  d->peak_source = measured ? CLV__COST_ROOFLINE : CLV__COST_NOMINAL;
  double stated = stated_launch(device);
  d->launch_ns = d->tables != NULL && d->tables->launch.runs > 0 ? d->tables->launch.time_ns
                 : stated >= 0                                   ? clv__cost_ns(stated * 1e9)
                                                                 : d->nominal->launch_ns;
  describe_origin(d, profile != NULL);
  return CLV_OK;
}

/* ---- The model ---- */

clv_status clv__cost_model_create(const clv_devices *devices, const clv_graph_view *whole, const bool *folded,
                                  const clv__profile *profile, clv__cost_model **out, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  *out = NULL;
  clv__cost_model *model = clv__allocate_zero(allocator, sizeof *model);
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  model->node_count = whole->node_count;
  model->device_count = devices->count;
  clv__arena_init(&model->arena, allocator);
  clv__making m = {.model = model, .whole = whole, .folded = folded, .error = error};
  clv__arena_init(&m.arena, allocator);
  clv_status status = CLV_OK;
  bool any_tables = false;
  for (uint32_t d = 0; status == CLV_OK && d < devices->count; ++d) {
    status = prepare_device(&m, &model->devices[d], &devices->items[d], profile);
    any_tables = any_tables || model->devices[d].tables != NULL;
    if (status == CLV_OK && profile != NULL && model->devices[d].tables == NULL) {
      clv__context_log(devices->context, 1, "%s: not in the profile; measure it with 'cleave profile'; its prices are %s",
                       devices->items[d].name, model->devices[d].origin);
    }
  }
  if (status == CLV_OK) status = clv__making_read(&m, any_tables);
  if (status == CLV_OK) status = clv__making_price(&m);
  clv__arena_finish(&m.arena);
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv__fits_destroy(model->devices[d].fits); /* not needed once everything has a price */
    model->devices[d].fits = NULL;
    model->devices[d].operators = NULL;
    model->devices[d].tables = NULL;
  }
  if (status == CLV_OK)
    *out = model;
  else
    clv__cost_model_destroy(model);
  return status;
}

void clv__cost_model_destroy(clv__cost_model *model) {
  if (model == NULL) return;
  const clv_allocator *allocator = model->arena.allocator;
  clv__arena_finish(&model->arena);
  clv__release(allocator, model);
}

/* ---- Looking up ---- */

clv__cost clv__cost_node(const clv__cost_model *model, uint32_t node, uint32_t device) {
  clv__model_price p = model->prices[(size_t)node * model->device_count + device];
  return (clv__cost){p.time_ns, (clv__cost_source)p.source, p.infeasible};
}

uint64_t clv__cost_saving(const clv__cost_model *model, uint32_t producer, uint32_t consumer, uint32_t device) {
  uint32_t low = model->edge_offsets[consumer], high = model->edge_offsets[consumer + 1], end = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (model->edges[middle].producer < producer) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == end || model->edges[low].producer != producer) return 0;
  return model->savings[(size_t)low * model->device_count + device];
}

uint64_t clv__cost_launch(const clv__cost_model *model, uint32_t device) {
  return model->devices[device].launch_ns;
}

uint64_t clv__cost_copy(const clv__cost_model *model, uint32_t device, bool to_device, uint64_t size_bytes) {
  const clv__model_device *d = &model->devices[device];
  uint32_t way = to_device ? 0 : 1;
  if (d->device->space == CLV__SPACE_HOST) return 0;
  if (d->copy_counts[way] > 0) return clv__cost_ns(clv__copy_time(d->copies[way], d->copy_counts[way], size_bytes));
  double stated = stated_copy(d->device, size_bytes);
  if (stated >= 0) return clv__cost_ns(stated * 1e9);
  return d->nominal->copy_latency_ns + clv__cost_ns((double)size_bytes / d->nominal->copy_bytes_per_second * 1e9);
}

const char *clv__cost_origin(const clv__cost_model *model, uint32_t device) {
  return model->devices[device].origin;
}
