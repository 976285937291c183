/* See capture.h, and graph_cache.h for which graphs are kept.
 *
 * An entry is all captured partitions of a prepared set of shapes on one device. It belongs to the set, whose instances and
 * memory its graphs refer to; it is entered from the beginning of a run to its end. */
#include "execute/capture.h"

#include <string.h>

#include "execute/phase.h"
#include "execute/recorded.h"

/* ---- The caches of a set of devices ---- */

typedef struct caches {
  const clv_allocator *allocator;
  clv__graph_cache *by_device[CLV__MAX_DEVICES];
} caches;

static void finish_caches(void *self) {
  caches *c = self;
  for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__graph_cache_destroy(c->by_device[d]);
  clv__release(c->allocator, c);
}

static clv_status get_cache(clv_session *session, uint32_t device, clv__graph_cache **cache, clv_error *error) {
  clv_devices *devices = session->devices;
  clv__attachment *attached = &devices->attachments[CLV__ATTACHED_GRAPHS];
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
    status = clv__graph_cache_create(all->allocator, settings->graph_cache_entries, settings->graph_cache_bytes,
                                     settings->graph == CLV_GRAPH_ON, &all->by_device[device], error);
  }
  *cache = status == CLV_OK ? all->by_device[device] : NULL;
  clv__devices_unlock(devices);
  return status;
}

/* ---- The state of one prepared set on one device ---- */

struct clv__capture {
  clv__graph_cache *cache;
  clv__graph_key key;
  clv__graph_entry *entry; /* NULL: none */
  clv__recorded *recorded; /* of this run: the entry's, or in the making */
  clv__issue issue;        /* of this run, from here on */
  const char *why;
  bool is_over;      /* in this run: its graphs are not to be kept */
  bool has_failed;   /* in this run */
  bool is_used;      /* in this run: a graph was launched */
  uint64_t eager_ns; /* of the host, to issue all partitions one by one, without waiting; 0: not known */
  uint64_t run_ns;   /* so far in this run */
};

static bool can_capture(const clv__device *device) {
  const clv_backend *backend = device->backend;
  return backend->capture_begin != NULL && backend->capture_end != NULL && backend->captured_launch != NULL &&
         backend->captured_destroy != NULL;
}

/* Launches are the same every run: no size of the partition's follows from data. */
static bool is_fixed(const clv__prepared *prepared, uint32_t index) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__partition *partition = &plan->partitions[index];
  const clv_graph_view *view = partition->view;
  /* A set that serves a whole bucket has the same sizes every run for bucketed partitions, and for those without open sizes. */
  const clv_tensor *types = partition->is_bucketed                       ? prepared->placed
                            : prepared->request->engine->buckets != NULL ? plan->shapes->types
                                                                         : prepared->types;
  if (prepared->partitions[index].instance == NULL) return false;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&types[view->values[view->inputs[i]]])) return false;
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    if (!clv__tensor_is_static(&types[view->values[view->outputs[i]]])) return false;
  }
  return true;
}

static clv_status prepare_device(clv__prepared *prepared, uint32_t device, bool *captured, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  bool any = false;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    captured[p] = plan->partitions[p].device == device && is_fixed(prepared, p);
    any |= captured[p];
    if (captured[p]) prepared->partitions[p].is_fixed = true;
  }
  if (!any) return CLV_OK;
  clv__capture *capture = clv__arena_allocate_zero(&prepared->arena, 1, sizeof *capture);
  if (capture == NULL) return clv__error_memory(error, sizeof *capture);
  CLV__TRY(get_cache(prepared->request->session, device, &capture->cache, error));
  CLV__TRY(clv__graph_key_make(plan, device, captured, prepared->placed, NULL, &prepared->arena, &capture->key, error));
  prepared->captures[device] = capture;
  return CLV_OK;
}

/* Nothing is captured with these settings, on any device. */
static const char *turned_off(const clv__settings *settings) {
  if (settings->graph == CLV_GRAPH_OFF) return "capture is off";
  return settings->graph_cache_entries == 0 ? "the cache of captured graphs has no entries" : NULL;
}

clv_status clv__capture_prepare(clv__prepared *prepared, clv_error *error) {
  clv_session *session = prepared->request->session;
  const clv_plan *plan = clv__request_plan(prepared->request);
  if (!prepared->is_whole || turned_off(clv__context_settings(session->devices->context)) != NULL) return CLV_OK;
  bool *captured = clv__allocate(session->allocator, plan->partition_count * sizeof *captured);
  if (captured == NULL) return clv__error_memory(error, plan->partition_count * sizeof *captured);
  clv_status status = CLV_OK;
  for (uint32_t d = 0; d < session->devices->count && status == CLV_OK; ++d) {
    if (can_capture(&session->devices->items[d])) status = prepare_device(prepared, d, captured, error);
  }
  clv__release(session->allocator, captured);
  clv__capture_refit(prepared);
  return status;
}

void clv__capture_drop(clv__prepared *prepared, uint32_t device) {
  clv__capture *capture = prepared->captures[device];
  if (capture == NULL) return;
  clv__graph_entry_remove(capture->cache, capture->entry);
  capture->entry = NULL;
}

bool clv__capture_holds(const clv__prepared *prepared, uint32_t device) {
  const clv__capture *capture = prepared->captures[device];
  if (capture == NULL || capture->entry == NULL) return false;
  return capture->recorded != NULL || clv__graph_entry_is_kept(capture->entry); /* in a run it is there whatever happens */
}

void clv__capture_refit(clv__prepared *prepared) {
  clv__phase phase;
  if (turned_off(clv__context_settings(prepared->request->session->devices->context)) != NULL) return;
  clv__phase_read(clv__request_plan(prepared->request)->graph, prepared->types, &phase);
  prepared->is_prefill = phase.kind == CLV__PHASE_PREFILL;
}

/* ---- A run ---- */

/* What is left of this run is issued launch by launch, and what was captured is let go of when it is over. */
static void stop(clv__capture *capture, const char *why) {
  capture->is_over = true;
  capture->issue = CLV__ISSUE_EAGER;
  capture->why = why;
}

/* The same, and this key is not tried again. */
static void give_up(clv__capture *capture) {
  if (!capture->has_failed) clv__graph_cache_fail(capture->cache, &capture->key);
  capture->has_failed = true;
  stop(capture, clv__graph_verdict_text(CLV__GRAPH_EAGER_FAILED));
}

void clv__capture_forget(clv__prepared *prepared, uint32_t partition) {
  uint32_t device = clv__request_plan(prepared->request)->partitions[partition].device;
  clv__capture *capture = prepared->captures[device];
  if (capture == NULL) return;
  if (capture->recorded == NULL) {
    clv__capture_drop(prepared, device);
    return;
  }
  clv__recorded_drop(capture->recorded, partition);
  stop(capture, "its memory changed during the run");
}

/* What to do in this run when there is no graph. */
static void decide(clv__request *request, uint32_t device, clv__capture *capture) {
  const clv_context *context = request->session->devices->context;
  bool is_logged = clv__context_is_logged(context); /* telling a difference costs what comparing keys does */
  char difference[256] = "";
  clv__graph_verdict verdict =
      clv__graph_cache_ask(capture->cache, &capture->key, is_logged ? difference : NULL, sizeof difference);
  capture->issue = CLV__ISSUE_EAGER;
  capture->why = clv__graph_verdict_text(verdict);
  if (verdict != CLV__GRAPH_CAPTURE) return;
  clv__context_log(context, 3, "%s: captured: %s", clv__request_device(request, device)->name, difference);
  if (clv__recorded_create(request, device, &capture->recorded, NULL) == CLV_OK)
    capture->issue = CLV__ISSUE_CAPTURED;
  else
    capture->why = "memory is out";
}

void clv__capture_begin_run(clv__request *request) {
  clv__prepared *prepared = request->prepared;
  bool prefill_too = clv__context_settings(request->session->devices->context)->prefill_graph;
  for (uint32_t d = 0; d < request->session->devices->count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    capture->recorded = NULL;
    capture->is_over = capture->has_failed = capture->is_used = false;
    capture->run_ns = 0;
    if (prepared->is_prefill && !prefill_too) {
      capture->issue = CLV__ISSUE_EAGER;
      capture->why = "prefill";
      continue;
    }
    if (capture->entry != NULL) capture->recorded = clv__graph_entry_enter(capture->cache, capture->entry);
    if (capture->recorded != NULL) {
      capture->issue = CLV__ISSUE_REPLAYED;
      continue;
    }
    clv__capture_drop(prepared, d); /* it went for another */
    decide(request, d, capture);
  }
}

/* ---- One partition ---- */

/* Sees to it that the graph is there and refers to where everything is now. `issue` says how this partition is then issued. */
static clv_status ready(clv__request *request, clv__capture *capture, uint32_t index, clv_stream *stream, clv_execute_args *args,
                        clv__issue *issue, clv_error *error) {
  uint64_t execute_ns = 0;
  *issue = capture->issue;
  if (capture->issue == CLV__ISSUE_CAPTURED) {
    CLV__TRY(clv__recorded_capture(capture->recorded, request, index, stream, args, &execute_ns, error));
    capture->run_ns += execute_ns;
    return CLV_OK;
  }
  clv__follow how;
  CLV__TRY(clv__recorded_follow(capture->recorded, request, index, args, &how, error));
  if (how == CLV__FOLLOW_PATCHED) clv__graph_cache_add(capture->cache, 1, 0, 0);
  if (how == CLV__FOLLOW_NEITHER) *issue = CLV__ISSUE_EAGER;
  if (how != CLV__FOLLOW_RECAPTURE) return CLV_OK;
  clv__graph_cache_add(capture->cache, 0, 1, 0);
  *issue = CLV__ISSUE_CAPTURED;
  return clv__recorded_capture(capture->recorded, request, index, stream, args, &execute_ns, error);
}

/* CLV_OK with `state->issue` EAGER: not launched, by choice. */
static clv_status replay(clv__request *request, clv__capture *capture, uint32_t index, clv_stream *stream, clv_execute_args *args,
                         clv_error *error) {
  clv__partition_state *state = &request->prepared->partitions[index];
  clv__issue issue;
  CLV__TRY(ready(request, capture, index, stream, args, &issue, error));
  state->why = "its memory moved, and the device cannot follow";
  if (issue == CLV__ISSUE_EAGER) return CLV_OK;
  CLV__TRY(clv__recorded_launch(capture->recorded, index, stream, error));
  capture->is_used = true;
  state->issue = issue;
  return CLV_OK;
}

clv_status clv__capture_execute(clv__request *request, uint32_t index, clv_stream *stream, clv_execute_args *args,
                                clv_error *error) {
  clv__prepared *prepared = request->prepared;
  clv__partition_state *state = &prepared->partitions[index];
  uint32_t d = clv__request_plan(request)->partitions[index].device;
  const clv__device *device = clv__request_device(request, d);
  clv__capture *capture = state->is_fixed ? prepared->captures[d] : NULL;
  if (!request->is_driven) return device->backend->execute(device->handle, state->instance, stream, args, error);
  state->issue = CLV__ISSUE_EAGER;
  state->why = NULL;
  if (capture == NULL) return device->backend->execute(device->handle, state->instance, stream, args, error);
  bool is_timed = !device->info.is_synchronous && capture->issue != CLV__ISSUE_CAPTURED; /* else it is the time of kernels */
  uint64_t begin_ns = is_timed ? clv__now_ns() : 0;
  clv_status status = CLV_OK;
  if (capture->issue != CLV__ISSUE_EAGER) {
    status = replay(request, capture, index, stream, args, error);
    if (status != CLV_OK) { /* the run goes on launch by launch */
      clv__context_log(request->session->devices->context, 2, "partition %u on %s: not captured: %s", index, device->name,
                       error != NULL ? error->message : "");
      give_up(capture);
    }
  }
  if (state->issue == CLV__ISSUE_EAGER) {
    if (capture->issue == CLV__ISSUE_EAGER) state->why = capture->why;
    clv__error_clear(error);
    status = device->backend->execute(device->handle, state->instance, stream, args, error);
  }
  if (is_timed) capture->run_ns += clv__now_ns() - begin_ns;
  return status;
}

/* ---- Its end: everything enqueued is over. ---- */

static void keep(clv__capture *capture) {
  clv_status status =
      clv__graph_cache_insert(capture->cache, &capture->key, capture->recorded, clv__recorded_bytes(capture->recorded),
                              clv__recorded_destroy, &capture->entry, NULL);
  if (status == CLV_OK && capture->entry != NULL) {
    clv__graph_entry_leave(capture->entry);
  } else {
    capture->entry = NULL;
    clv__recorded_destroy(capture->recorded);
  }
}

/* What issuing everything takes is known from a run that did so, else from the one that captured it: devices check and note what
 * is recorded as they do what is executed. */
static void count_time(const clv__device *device, clv__capture *capture) {
  if (device->info.is_synchronous || capture->is_over || capture->run_ns == 0) return;
  if (capture->issue != CLV__ISSUE_REPLAYED) {
    if (capture->eager_ns == 0 || capture->run_ns < capture->eager_ns) capture->eager_ns = capture->run_ns;
  } else if (capture->run_ns < capture->eager_ns) {
    clv__graph_cache_add(capture->cache, 0, 0, capture->eager_ns - capture->run_ns);
  }
}

/* The device's graphs may be what it failed with. */
static bool is_suspect(const clv__request *request, uint32_t device, clv_status status) {
  if (status == CLV_OK || request->failed_device != device || clv__request_device(request, device)->is_lost) return false;
  return request->prepared->captures[device]->is_used;
}

bool clv__capture_end_run(clv__request *request, clv_status status) {
  clv__prepared *prepared = request->prepared;
  bool again = false;
  for (uint32_t d = 0; d < request->session->devices->count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    const clv__device *device = clv__request_device(request, d);
    if (is_suspect(request, d, status)) {
      clv__context_log(request->session->devices->context, 2, "%s: a run with captured graphs failed: repeated without",
                       device->name);
      give_up(capture);
      again = true;
    }
    if (status == CLV_OK) count_time(device, capture);
    clv__recorded *recorded = capture->recorded;
    if (recorded != NULL && capture->entry != NULL) {
      clv__graph_entry_leave(capture->entry);
      if (capture->is_over) clv__capture_drop(prepared, d);
    } else if (recorded != NULL && status == CLV_OK && !capture->is_over) {
      keep(capture);
    } else {
      clv__recorded_destroy(recorded);
    }
    capture->recorded = NULL;
  }
  return again;
}

/* ---- What reports see ---- */

static const char *why_eager(const clv__prepared *prepared, const clv__partition_state *state) {
  const clv_session *session = prepared->request->session;
  uint32_t device = clv__request_plan(prepared->request)->partitions[state->index].device;
  const char *off = turned_off(clv__context_settings(session->devices->context));
  if (state->why != NULL) return state->why;
  if (off != NULL) return off;
  return can_capture(&session->devices->items[device]) ? "sizes follow from data" : "the device does not capture";
}

void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info) {
  *info = (clv__issue_info){CLV__ISSUE_NONE, ""};
  pthread_mutex_lock(&session->lock);
  const clv__request *request = session->requests[session->last_request];
  if (request != NULL && request->prepared != NULL && index < clv__request_plan(request)->partition_count) {
    const clv__partition_state *state = &request->prepared->partitions[index];
    info->issue = state->issue;
    if (info->issue == CLV__ISSUE_EAGER) info->why = why_eager(request->prepared, state);
  }
  pthread_mutex_unlock(&session->lock);
}

bool clv__session_graphs(const clv_session *session, uint32_t device, clv__graph_counters *counters) {
  clv__devices_lock(session->devices);
  const caches *all = session->devices->attachments[CLV__ATTACHED_GRAPHS].self;
  clv__graph_cache *cache = all == NULL ? NULL : all->by_device[device];
  clv__devices_unlock(session->devices);
  if (cache != NULL) clv__graph_cache_counters(cache, counters);
  return cache != NULL;
}
