/* See recorded.h. */
#include "execute/recorded.h"

/* A graph whose memory moves, on a device that cannot give it other memory, is captured again after so many runs at the
 * earliest: with memory that moves every run, capturing would cost more than it saves. */
enum { RUNS_A_CAPTURE = 8 };

/* Where a binding was. Generations tell a buffer from another one at its address; memory of the caller's has none: whatever is at
 * that address in a run is what the run is about. */
typedef struct place {
  const clv_buffer *buffer;
  uint64_t offset_bytes, generation;
  const void *host;
} place;

typedef struct graph {
  clv_captured *captured; /* NULL: none */
  uint64_t bytes;
  uint32_t age;  /* runs since it was captured */
  place *places; /* of inputs, then outputs */
} graph;

struct clv__recorded {
  const clv__device *device;
  const clv_allocator *allocator;
  uint32_t count; /* partitions of the plan */
  graph graphs[];
};

clv_status clv__recorded_create(const clv__request *request, uint32_t device, clv__recorded **out, clv_error *error) {
  uint32_t count = clv__request_plan(request)->partition_count;
  size_t size_bytes = sizeof(clv__recorded) + (size_t)count * sizeof(graph);
  clv__recorded *r = clv__allocate_zero(request->session->allocator, size_bytes);
  if (r == NULL) return clv__error_memory(error, size_bytes);
  r->device = clv__request_device(request, device);
  r->allocator = request->session->allocator;
  r->count = count;
  *out = r;
  return CLV_OK;
}

void clv__recorded_drop(clv__recorded *r, uint32_t partition) {
  graph *g = &r->graphs[partition];
  if (g->captured != NULL && !r->device->is_lost) r->device->backend->captured_destroy(r->device->handle, g->captured);
  g->captured = NULL;
  g->bytes = 0;
}

void clv__recorded_destroy(void *self) {
  clv__recorded *r = self;
  if (r == NULL) return;
  for (uint32_t p = 0; p < r->count; ++p) {
    clv__recorded_drop(r, p);
    clv__release(r->allocator, r->graphs[p].places);
  }
  clv__release(r->allocator, r);
}

uint64_t clv__recorded_bytes(const clv__recorded *r) {
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < r->count; ++p) bytes += r->graphs[p].bytes;
  return bytes;
}

/* ---- Where bindings are ---- */

static place place_of(const clv__prepared *prepared, uint32_t space, clv_value_id value, const clv_binding *binding) {
  const clv__slot *slot = clv__prepared_slot(prepared, value, space);
  uint64_t generation = slot->bound != NULL         ? 0
                        : slot->own.generation != 0 ? slot->own.generation
                                                    : prepared->request->arenas[space].generation;
  return (place){binding->buffer, binding->offset_bytes, generation, binding->type.data};
}

static bool same_place(const place *a, const place *b) {
  return a->buffer == b->buffer && a->offset_bytes == b->offset_bytes && a->generation == b->generation && a->host == b->host;
}

/* True when a binding is elsewhere than `places` say. With `note` they say so afterwards. */
static bool have_moved(const clv__request *request, uint32_t index, const clv_execute_args *args, place *places, bool note) {
  const clv__partition *partition = &clv__request_plan(request)->partitions[index];
  const clv_graph_view *view = partition->view;
  uint32_t space = clv__request_device(request, partition->device)->space;
  bool moved = false;
  for (uint32_t i = 0; i < args->input_count + args->output_count; ++i) {
    bool is_input = i < args->input_count;
    uint32_t k = is_input ? i : i - args->input_count;
    clv_value_id value = view->values[is_input ? view->inputs[k] : view->outputs[k]];
    place now = place_of(request->prepared, space, value, is_input ? &args->inputs[k] : &args->outputs[k]);
    const clv__staged *staged = request->prepared->partitions[index].staged;
    if (staged != NULL && staged[i].is_used) now.generation = staged[i].device.generation;
    moved = moved || !same_place(&now, &places[i]);
    if (note) places[i] = now;
  }
  return moved;
}

/* ---- Capturing ---- */

static clv_status capture(const clv__device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          uint64_t *execute_ns, clv_captured **captured, clv_error *error) {
  CLV__TRY(device->backend->capture_begin(device->handle, stream, error));
  uint64_t begin_ns = clv__now_ns();
  clv_status status = device->backend->execute(device->handle, instance, stream, args, error);
  *execute_ns += clv__now_ns() - begin_ns;
  if (status == CLV_OK) return device->backend->capture_end(device->handle, stream, captured, error);
  (void)device->backend->capture_end(device->handle, stream, NULL, NULL);
  return status;
}

clv_status clv__recorded_capture(clv__recorded *r, clv__request *request, uint32_t partition, clv_stream *stream,
                                 clv_execute_args *args, uint64_t *execute_ns, clv_error *error) {
  graph *g = &r->graphs[partition];
  const clv__partition_state *state = &request->prepared->partitions[partition];
  uint64_t begin_ns = request->session->is_traced ? clv__now_ns() : 0;
  size_t count = (size_t)args->input_count + args->output_count;
  clv__recorded_drop(r, partition);
  clv__error_clear(error);
  if (g->places == NULL) g->places = clv__allocate_zero(r->allocator, count * sizeof *g->places);
  if (g->places == NULL) return clv__error_memory(error, count * sizeof *g->places);
  clv_captured *captured = NULL;
  CLV__TRY(capture(r->device, state->instance, stream, args, execute_ns, &captured, error));
  g->captured = captured;
  g->age = 0;
  (void)have_moved(request, partition, args, g->places, true);
  const clv_backend *backend = r->device->backend;
  if (backend->captured_bytes != NULL) g->bytes = backend->captured_bytes(r->device->handle, captured);
  if (request->session->is_traced) {
    clv__trace_add(request, (clv__trace_event){
                                .kind = CLV__TRACE_CAPTURE, .step = state->step, .begin_ns = begin_ns, .end_ns = clv__now_ns()});
  }
  return CLV_OK;
}

clv_status clv__recorded_follow(clv__recorded *r, clv__request *request, uint32_t partition, const clv_execute_args *args,
                                clv__follow *how, clv_error *error) {
  graph *g = &r->graphs[partition];
  const clv_backend *backend = r->device->backend;
  if (g->age < RUNS_A_CAPTURE) ++g->age;
  *how = CLV__FOLLOW_AT_PLACE;
  if (!have_moved(request, partition, args, g->places, false)) return CLV_OK;
  clv_status status = CLV_NOT_SUPPORTED;
  clv__error_clear(error);
  if (backend->captured_bind != NULL) status = backend->captured_bind(r->device->handle, g->captured, 0, args, error);
  if (status == CLV_NOT_SUPPORTED) {
    *how = g->age < RUNS_A_CAPTURE ? CLV__FOLLOW_NEITHER : CLV__FOLLOW_RECAPTURE;
    return CLV_OK;
  }
  *how = CLV__FOLLOW_PATCHED;
  if (status == CLV_OK) (void)have_moved(request, partition, args, g->places, true);
  return status;
}

clv_status clv__recorded_launch(clv__recorded *r, uint32_t partition, clv_stream *stream, clv_error *error) {
  return r->device->backend->captured_launch(r->device->handle, r->graphs[partition].captured, stream, error);
}
