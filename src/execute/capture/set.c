/* Determines the captures of a prepared set on each device: which partitions they contain, their key, and the cache that keeps
 * them. */
#include "execute/capture/own.h"
#include "execute/capture/phase.h"

/* ---- The caches of a set of devices ---- */

typedef struct caches {
  const clv_allocator *allocator;
  clv__capture_cache *by_device[CLV__MAX_DEVICES];
} caches;

static void finish_caches(void *self) {
  caches *c = self;
  for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__capture_cache_destroy(c->by_device[d]);
  clv__release(c->allocator, c);
}

static clv_status get_cache(clv_session *session, uint32_t device, clv__capture_cache **cache, clv_error *error) {
  clv_devices *devices = session->devices;
  clv__attachment *attached = &devices->attachments[CLV__ATTACHED_CAPTURES];
  const clv__settings *settings = clv__context_settings(devices->context);
  clv__devices_lock(devices);
  clv_status status = CLV_OK;
  if (attached->self == NULL) {
    const clv_allocator *allocator = clv__context_allocator(devices->context);
    caches *made = clv__allocate_zero(allocator, sizeof *made);
    if (made == NULL) status = clv__error_memory(error, sizeof *made);
    if (made != NULL) {
      made->allocator = allocator;
      *attached = (clv__attachment){made, finish_caches};
    }
  }
  caches *all = attached->self;
  if (status == CLV_OK && all->by_device[device] == NULL) {
    status = clv__capture_cache_create(all->allocator, settings->capture_cache_entries, settings->capture_cache_bytes,
                                       settings->capture == CLV_CAPTURE_ON, &all->by_device[device], error);
  }
  *cache = status == CLV_OK ? all->by_device[device] : NULL;
  clv__devices_unlock(devices);
  return status;
}

clv__capture_cache *clv__capture_cache_of(const clv_session *session, uint32_t device) {
  clv__devices_lock(session->devices);
  const caches *all = session->devices->attachments[CLV__ATTACHED_CAPTURES].self;
  clv__capture_cache *cache = all == NULL ? NULL : all->by_device[device];
  clv__devices_unlock(session->devices);
  return cache;
}

/* ---- Partitions that can be captured ---- */

bool clv__capture_is_possible(const clv__device *device) {
  return device->backend->capture != NULL;
}

const char *clv__capture_is_off(const clv__settings *settings) {
  if (settings->capture == CLV_CAPTURE_OFF) return "capture is off";
  return settings->capture_cache_entries == 0 ? "the cache of captures has no entries" : NULL;
}

static bool all_static(const clv_graph_view *view, const clv_tensor *types) {
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&types[view->values[view->inputs[i]]])) return false;
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    if (!clv__tensor_is_static(&types[view->values[view->outputs[i]]])) return false;
  }
  return true;
}

/* Returns whether the partition's launches are the same in every run with the same shapes: no size in it depends on data. */
static bool is_fixed(const clv__prepared *prepared, uint32_t index) {
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[index];
  if (prepared->partitions[index].instance == NULL) return false;
  return all_static(partition->view, partition->is_bucketed ? prepared->placed : prepared->types);
}

/* Returns whether the partition's launches differ for other shapes of the set's bucket. */
static bool follows_shapes(const clv__prepared *prepared, uint32_t index) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__partition *partition = &plan->partitions[index];
  if (prepared->request->engine->buckets == NULL || partition->is_bucketed) return false;
  return !all_static(partition->view, plan->shapes->types);
}

/* Returns whether two consecutive steps of a lane can be issued as one: the second waits for no step of another lane, and no
 * other step waits for the first alone. */
static bool belong_together(const clv__prepared *prepared, uint32_t before, uint32_t after) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__track *tracks = prepared->schedule.tracks;
  if (plan->steps[before].is_transfer || plan->steps[after].is_transfer) return false;
  const clv__partition_state *a = &prepared->partitions[plan->steps[before].index];
  const clv__partition_state *b = &prepared->partitions[plan->steps[after].index];
  if (!a->is_fixed || !b->is_fixed || a->staged != NULL || b->staged != NULL) return false;
  return !tracks[before].is_recorded && !tracks[before].is_watched && tracks[after].wait_count == 0;
}

void clv__capture_join(clv__prepared *prepared, uint32_t device) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__schedule *schedule = &prepared->schedule;
  const uint32_t *steps = schedule->lane_steps[2 * device];
  for (uint32_t i = 0; i < schedule->lane_ends[2 * device]; ++i) {
    if (plan->steps[steps[i]].is_transfer) continue;
    clv__partition_state *state = &prepared->partitions[plan->steps[steps[i]].index];
    state->first = state->index;
    state->next = CLV__NO_ID;
    if (i == 0 || !belong_together(prepared, steps[i - 1], steps[i])) continue;
    clv__partition_state *before = &prepared->partitions[plan->steps[steps[i - 1]].index];
    state->first = before->first;
    before->next = state->index;
  }
}

/* Lists, for each value, the value in whose memory it is stored in the device's memory space: itself, or the source of a hosted
 * view. `out` is NULL if there are no hosted views. */
static clv_status list_aliases(const clv_plan *plan, uint32_t device, clv__arena *arena, const clv_value_id **out,
                               clv_error *error) {
  size_t count = plan->graph->value_count;
  *out = NULL;
  if (plan->sources == NULL) return CLV_OK;
  clv_value_id *aliases = clv__arena_allocate(arena, count * sizeof *aliases);
  if (aliases == NULL) return clv__error_memory(error, count * sizeof *aliases);
  for (clv_value_id v = 0; v < count; ++v) aliases[v] = clv__plan_storage(plan, v, plan->devices->items[device].space);
  *out = aliases;
  return CLV_OK;
}

clv_status clv__capture_make_key(const clv__prepared *prepared, uint32_t device, clv_error *error) {
  clv__capture *capture = prepared->captures[device];
  const clv_plan *plan = clv__request_plan(prepared->request);
  clv__arena_finish(&capture->key_arena);
  bool *captured = clv__arena_allocate_zero(&capture->key_arena, plan->partition_count, sizeof *captured);
  if (captured == NULL) return clv__error_memory(error, plan->partition_count * sizeof *captured);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    captured[p] = plan->partitions[p].device == device && prepared->partitions[p].is_fixed;
  }
  const clv_tensor *types = capture->follows_shapes ? prepared->types : prepared->placed;
  const clv_value_id *aliases;
  CLV__TRY(list_aliases(plan, device, &capture->key_arena, &aliases, error));
  CLV__TRY(clv__capture_key_make(plan, device, captured, types, aliases, &capture->key_arena, &capture->key, error));
  capture->is_key_stale = false;
  return CLV_OK;
}

static clv_status prepare_device(clv__prepared *prepared, uint32_t device, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  bool any = false, follows = false;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->partitions[p].device != device || !is_fixed(prepared, p)) continue;
    prepared->partitions[p].is_fixed = any = true;
    follows = follows || follows_shapes(prepared, p);
  }
  if (!any) return CLV_OK;
  clv__capture *capture = clv__arena_allocate_zero(&prepared->arena, 1, sizeof *capture);
  if (capture == NULL) return clv__error_memory(error, sizeof *capture);
  CLV__TRY(get_cache(prepared->request->session, device, &capture->cache, error));
  clv__arena_init(&capture->key_arena, prepared->arena.allocator);
  capture->follows_shapes = follows;
  prepared->captures[device] = capture;
  return clv__capture_make_key(prepared, device, error);
}

static void read_phase(clv__prepared *prepared) {
  clv__phase phase;
  clv__phase_read(clv__request_plan(prepared->request)->graph, prepared->types, &phase);
  prepared->is_prefill = phase.kind == CLV__PHASE_PREFILL;
}

clv_status clv__capture_prepare(clv__prepared *prepared, clv_error *error) {
  const clv_devices *devices = prepared->request->session->devices;
  if (!prepared->is_whole || clv__capture_is_off(clv__context_settings(devices->context)) != NULL) return CLV_OK;
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (clv__capture_is_possible(&devices->items[d])) CLV__TRY(prepare_device(prepared, d, error));
  }
  read_phase(prepared);
  return CLV_OK;
}

clv_status clv__capture_refit(clv__prepared *prepared, clv_error *error) {
  const clv_devices *devices = prepared->request->session->devices;
  const clv_plan *plan = clv__request_plan(prepared->request);
  (void)error; /* nothing here can fail: the key is made on first use */
  if (clv__capture_is_off(clv__context_settings(devices->context)) != NULL) return CLV_OK;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__capture *capture = prepared->captures[plan->partitions[p].device];
    if (capture == NULL || !capture->follows_shapes) continue;
    clv__capture_drop(prepared, plan->partitions[p].device);
    capture->is_key_stale = capture->is_unconfirmed = true;
    prepared->partitions[p].is_fixed = is_fixed(prepared, p);
  }
  read_phase(prepared);
  return CLV_OK;
}

void clv__capture_finish(clv__prepared *prepared, uint32_t device) {
  clv__capture_drop(prepared, device);
  if (prepared->captures[device] != NULL) clv__arena_finish(&prepared->captures[device]->key_arena);
}
