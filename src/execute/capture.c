/* See capture.h, and graph_cache.h for which graphs are kept.
 *
 * An entry is all captured partitions of a prepared set of shapes on one device. It belongs to the set, whose instances and
 * memory its graphs refer to; it is entered from the beginning of a run to its end. */
#include "execute/capture.h"

#include <string.h>

#include "execute/internal.h"
#include "execute/phase.h"

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

/* ---- What is kept: the graphs of one set of shapes on one device ---- */

/* Where a binding was when it was recorded. */
typedef struct place {
  const clv_buffer *buffer;
  uint64_t offset_bytes, generation;
  const void *host;
} place;

typedef struct graph {
  clv_captured *captured; /* NULL: this partition is not in it */
  place *places;          /* of inputs, then outputs */
} graph;

typedef struct content {
  const clv__device *device;
  const clv_allocator *allocator;
  uint64_t bytes;
  uint32_t count; /* partitions of the plan */
  graph graphs[];
} content;

static void destroy_content(void *self) {
  content *c = self;
  for (uint32_t p = 0; p < c->count; ++p) {
    if (c->graphs[p].captured != NULL && !c->device->is_lost) {
      c->device->backend->captured_destroy(c->device->handle, c->graphs[p].captured);
    }
    clv__release(c->allocator, c->graphs[p].places);
  }
  clv__release(c->allocator, c);
}

static clv_status create_content(const clv__request *request, uint32_t device, content **out, clv_error *error) {
  uint32_t count = clv__request_plan(request)->partition_count;
  size_t size_bytes = sizeof(content) + (size_t)count * sizeof(graph);
  content *c = clv__allocate_zero(request->session->allocator, size_bytes);
  if (c == NULL) return clv__error_memory(error, size_bytes);
  c->device = clv__request_device(request, device);
  c->allocator = request->session->allocator;
  c->count = count;
  *out = c;
  return CLV_OK;
}

/* ---- The state of one prepared set on one device ---- */

struct clv__capture {
  clv__graph_cache *cache;
  clv__graph_key key;
  clv__graph_entry *entry; /* NULL: none */
  content *content;        /* of this run: entered, or in the making */
  clv__issue issue;        /* of this run */
  const char *why;
  bool is_failed;    /* in this run */
  uint64_t eager_ns; /* of the host, to issue all partitions one by one; 0: not known */
  uint64_t run_ns;   /* so far in this run */
};

static bool can_capture(const clv__device *device) {
  const clv_backend *backend = device->backend;
  return backend->capture_begin != NULL && backend->capture_end != NULL && backend->captured_launch != NULL &&
         backend->captured_destroy != NULL;
}

/* Launches are the same every run: no size of the partition's follows from data. */
static bool is_fixed(const clv__prepared *prepared, uint32_t partition) {
  const clv_graph_view *view = clv__request_plan(prepared->request)->partitions[partition].view;
  if (prepared->partitions[partition].instance == NULL) return false;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&prepared->types[view->values[view->inputs[i]]])) return false;
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    if (!clv__tensor_is_static(&prepared->types[view->values[view->outputs[i]]])) return false;
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
  CLV__TRY(clv__graph_key_make(plan, device, captured, prepared->types, NULL, &prepared->arena, &capture->key, error));
  prepared->captures[device] = capture;
  return CLV_OK;
}

clv_status clv__capture_prepare(clv__prepared *prepared, clv_error *error) {
  clv_session *session = prepared->request->session;
  const clv_plan *plan = clv__request_plan(prepared->request);
  if (!prepared->is_whole || clv__context_settings(session->devices->context)->graph == CLV_GRAPH_OFF) return CLV_OK;
  bool *captured = clv__allocate(session->allocator, plan->partition_count * sizeof *captured);
  if (captured == NULL) return clv__error_memory(error, plan->partition_count * sizeof *captured);
  clv_status status = CLV_OK;
  for (uint32_t d = 0; d < session->devices->count && status == CLV_OK; ++d) {
    if (can_capture(&session->devices->items[d])) status = prepare_device(prepared, d, captured, error);
  }
  clv__release(session->allocator, captured);
  clv__phase phase;
  clv__phase_read(plan->graph, prepared->types, &phase);
  prepared->is_prefill = phase.kind == CLV__PHASE_PREFILL;
  return status;
}

void clv__capture_drop(clv__prepared *prepared, uint32_t device) {
  clv__capture *capture = prepared->captures[device];
  if (capture == NULL) return;
  clv__graph_entry_remove(capture->cache, capture->entry);
  capture->entry = NULL;
}

/* ---- A run ---- */

/* What to do in this run when there is no graph. */
static clv_status decide(clv__request *request, uint32_t device, clv__capture *capture, clv_error *error) {
  char difference[256];
  clv__graph_verdict verdict = clv__graph_cache_ask(capture->cache, &capture->key, difference, sizeof difference);
  capture->issue = CLV__ISSUE_EAGER;
  capture->why = clv__graph_verdict_text(verdict);
  if (verdict != CLV__GRAPH_CAPTURE) return CLV_OK;
  clv__context_log(request->session->devices->context, 3, "%s: captured: %s", clv__request_device(request, device)->name,
                   difference);
  CLV__TRY(create_content(request, device, &capture->content, error));
  capture->issue = CLV__ISSUE_CAPTURED;
  return CLV_OK;
}

clv_status clv__capture_begin_run(clv__request *request, clv_error *error) {
  clv__prepared *prepared = request->prepared;
  bool prefill_too = clv__context_settings(request->session->devices->context)->prefill_graph;
  for (uint32_t d = 0; d < request->session->devices->count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    capture->content = NULL;
    capture->run_ns = 0;
    if (prepared->is_prefill && !prefill_too) {
      capture->issue = CLV__ISSUE_EAGER;
      capture->why = "prefill";
      continue;
    }
    if (capture->entry != NULL) capture->content = clv__graph_entry_enter(capture->cache, capture->entry);
    if (capture->content != NULL) {
      capture->issue = CLV__ISSUE_REPLAYED;
      continue;
    }
    clv__graph_entry_remove(capture->cache, capture->entry); /* it went for another */
    capture->entry = NULL;
    CLV__TRY(decide(request, d, capture, error));
  }
  return CLV_OK;
}

/* Gives up on this run's recording: what is left runs eagerly, and the key is not tried again. */
static void give_up(clv__capture *capture, const char *why) {
  clv__graph_cache_fail(capture->cache, &capture->key);
  capture->is_failed = true;
  capture->issue = CLV__ISSUE_EAGER;
  capture->why = why;
}

static place place_of(const clv__prepared *prepared, const clv__partition *partition, clv_value_id value,
                      const clv_binding *binding) {
  uint32_t space = clv__request_device(prepared->request, partition->device)->space;
  const clv__slot *slot = clv__prepared_slot(prepared, value, space);
  uint64_t generation = slot->bound != NULL         ? 0
                        : slot->own.generation != 0 ? slot->own.generation
                                                    : prepared->request->arenas[space].generation;
  return (place){binding->buffer, binding->offset_bytes, generation, binding->type.data};
}

static bool same_place(const place *a, const place *b) {
  return a->buffer == b->buffer && a->offset_bytes == b->offset_bytes && a->generation == b->generation && a->host == b->host;
}

/* Notes where all bindings are; true when one is elsewhere than before. */
static bool note_places(const clv__prepared *prepared, uint32_t index, const clv_execute_args *args, place *places) {
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[index];
  const clv_graph_view *view = partition->view;
  bool moved = false;
  for (uint32_t i = 0; i < args->input_count + args->output_count; ++i) {
    bool is_input = i < args->input_count;
    uint32_t k = is_input ? i : i - args->input_count;
    clv_value_id value = view->values[is_input ? view->inputs[k] : view->outputs[k]];
    place now = place_of(prepared, partition, value, is_input ? &args->inputs[k] : &args->outputs[k]);
    moved |= !same_place(&now, &places[i]);
    places[i] = now;
  }
  return moved;
}

/* Records one execution; nothing of it is left where that fails. */
static clv_status record(const clv__device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                         clv_captured **captured, clv_error *error) {
  CLV__TRY(device->backend->capture_begin(device->handle, stream, error));
  clv_status status = device->backend->execute(device->handle, instance, stream, args, error);
  if (status == CLV_OK) return device->backend->capture_end(device->handle, stream, captured, error);
  (void)device->backend->capture_end(device->handle, stream, NULL, NULL);
  return status;
}

static clv_status capture_partition(clv__request *request, clv__capture *capture, uint32_t index, clv_stream *stream,
                                    clv_execute_args *args, clv_error *error) {
  content *c = capture->content;
  graph *g = &c->graphs[index];
  uint64_t begin_ns = request->session->is_traced ? clv__now_ns() : 0;
  size_t count = (size_t)args->input_count + args->output_count;
  if (g->places == NULL) g->places = clv__allocate_zero(c->allocator, count * sizeof *g->places);
  if (g->places == NULL) return clv__error_memory(error, count * sizeof *g->places);
  (void)note_places(request->prepared, index, args, g->places);
  CLV__TRY(record(c->device, request->prepared->partitions[index].instance, stream, args, &g->captured, error));
  if (c->device->backend->captured_bytes != NULL) {
    c->bytes += c->device->backend->captured_bytes(c->device->handle, g->captured);
  }
  if (begin_ns != 0) {
    clv__trace_add(request, (clv__trace_event){.kind = CLV__TRACE_CAPTURE,
                                               .step = request->prepared->partitions[index].step,
                                               .begin_ns = begin_ns,
                                               .end_ns = clv__now_ns()});
  }
  return CLV_OK;
}

/* Moves the graph's bindings to where they are now, or captures it again where it cannot follow. */
static clv_status follow(clv__request *request, clv__capture *capture, uint32_t index, clv_stream *stream, clv_execute_args *args,
                         clv_error *error) {
  content *c = capture->content;
  graph *g = &c->graphs[index];
  if (!note_places(request->prepared, index, args, g->places)) return CLV_OK;
  clv_status status = CLV_NOT_SUPPORTED;
  clv__error_clear(error);
  if (c->device->backend->captured_bind != NULL) {
    status = c->device->backend->captured_bind(c->device->handle, g->captured, 0, args, error);
  }
  if (status == CLV_OK) clv__graph_cache_add(capture->cache, 1, 0, 0);
  if (status != CLV_NOT_SUPPORTED) return status;
  c->device->backend->captured_destroy(c->device->handle, g->captured);
  g->captured = NULL;
  clv__error_clear(error);
  clv__graph_cache_add(capture->cache, 0, 1, 0);
  return capture_partition(request, capture, index, stream, args, error);
}

static clv_status launch(clv__request *request, clv__capture *capture, uint32_t index, clv_stream *stream, clv_execute_args *args,
                         clv_error *error) {
  const content *c = capture->content;
  const graph *g = &c->graphs[index];
  clv_status status = capture->issue == CLV__ISSUE_CAPTURED ? capture_partition(request, capture, index, stream, args, error)
                                                            : follow(request, capture, index, stream, args, error);
  if (status == CLV_OK) status = c->device->backend->captured_launch(c->device->handle, g->captured, stream, error);
  return status;
}

clv_status clv__capture_execute(clv__request *request, uint32_t index, clv_stream *stream, clv_execute_args *args,
                                clv_error *error) {
  clv__prepared *prepared = request->prepared;
  clv__partition_state *state = &prepared->partitions[index];
  uint32_t d = clv__request_plan(request)->partitions[index].device;
  const clv__device *device = clv__request_device(request, d);
  clv__capture *capture = state->is_fixed && request->is_driven ? prepared->captures[d] : NULL;
  state->issue = CLV__ISSUE_EAGER;
  if (capture == NULL) return device->backend->execute(device->handle, state->instance, stream, args, error);
  uint64_t begin_ns = clv__now_ns();
  clv_status status = CLV_NOT_SUPPORTED;
  if (capture->issue == CLV__ISSUE_CAPTURED || capture->issue == CLV__ISSUE_REPLAYED) {
    status = launch(request, capture, index, stream, args, error);
    if (status == CLV_OK) {
      state->issue = capture->issue;
    } else { /* the run is repeated eagerly from here, and this key is not tried again */
      clv__context_log(request->session->devices->context, 2, "partition %u on %s: not captured: %s", index, device->name,
                       error != NULL ? error->message : "");
      give_up(capture, "its capture failed");
    }
  }
  if (status != CLV_OK) {
    clv__error_clear(error);
    status = device->backend->execute(device->handle, state->instance, stream, args, error);
  }
  capture->run_ns += clv__now_ns() - begin_ns;
  return status;
}

/* ---- Its end: everything enqueued is over. ---- */

static void keep(clv__capture *capture) {
  content *c = capture->content;
  if (clv__graph_cache_insert(capture->cache, &capture->key, c, c->bytes, destroy_content, &capture->entry, NULL) != CLV_OK ||
      capture->entry == NULL) {
    capture->entry = NULL;
    destroy_content(c);
    return;
  }
  clv__graph_entry_leave(capture->entry);
}

static void count_time(const clv__device *device, clv__capture *capture) {
  if (device->info.is_synchronous) return; /* its time is that of the kernels */
  if (capture->issue == CLV__ISSUE_EAGER && (capture->eager_ns == 0 || capture->run_ns < capture->eager_ns)) {
    capture->eager_ns = capture->run_ns;
  }
  if (capture->issue == CLV__ISSUE_REPLAYED && capture->run_ns < capture->eager_ns) {
    clv__graph_cache_add(capture->cache, 0, 0, capture->eager_ns - capture->run_ns);
  }
}

void clv__capture_end_run(clv__request *request, bool succeeded) {
  clv__prepared *prepared = request->prepared;
  for (uint32_t d = 0; d < request->session->devices->count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    content *c = capture->content;
    capture->content = NULL;
    if (succeeded) count_time(clv__request_device(request, d), capture);
    if (capture->entry != NULL && c != NULL) {
      clv__graph_entry_leave(capture->entry);
      if (capture->is_failed) clv__capture_drop(prepared, d);
    } else if (c != NULL) {
      if (succeeded && !capture->is_failed) {
        capture->content = c;
        keep(capture);
        capture->content = NULL;
      } else {
        destroy_content(c);
      }
    }
    capture->is_failed = false;
  }
}

/* ---- What reports see ---- */

void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info) {
  *info = (clv__issue_info){CLV__ISSUE_NONE, ""};
  pthread_mutex_lock(&session->lock);
  const clv__request *request = session->requests[session->last_request];
  if (request != NULL && request->prepared != NULL && index < clv__request_plan(request)->partition_count) {
    const clv__prepared *prepared = request->prepared;
    uint32_t device = clv__request_plan(request)->partitions[index].device;
    const clv__capture *capture = prepared->captures[device];
    info->issue = prepared->partitions[index].issue;
    if (info->issue == CLV__ISSUE_EAGER) {
      info->why = capture != NULL && prepared->partitions[index].is_fixed                    ? capture->why
                  : clv__context_settings(session->devices->context)->graph == CLV_GRAPH_OFF ? "capture is off"
                  : !can_capture(&session->devices->items[device])                           ? "the device does not capture"
                                                                                             : "sizes follow from data";
    }
  }
  pthread_mutex_unlock(&session->lock);
}

bool clv__session_graphs(const clv_session *session, uint32_t device, clv__graph_counters *counters) {
  const caches *all = session->devices->attachments[CLV__ATTACHED_GRAPHS].self;
  if (all == NULL || all->by_device[device] == NULL) return false;
  clv__graph_cache_counters(all->by_device[device], counters);
  return true;
}
