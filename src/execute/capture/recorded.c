/* See recorded.h. */
#include "execute/capture/recorded.h"
#include "base/clock.h"

/* If a recording's memory moves on a device that cannot patch recordings, the recording is captured again only after this many
 * runs. If memory moves in every run, capturing would cost more than it saves. */
enum { RUNS_A_CAPTURE = 8 };

/* The location of a binding. A generation distinguishes a buffer from a later one at the same address. The caller's memory has
 * generation 0: only its address matters. */
typedef struct location {
  const clv_buffer *buffer;
  uint64_t offset_bytes, generation;
  const void *host;
} location;

/* Identifies a binding of a partition. `index` counts the inputs, then the outputs. */
typedef struct operand {
  uint32_t partition, index;
} operand;

typedef struct recording {
  location *locations; /* of the partition's bindings; the fields below describe the recording that starts with this partition */
  clv_captured *captured; /* NULL: none */
  uint64_t bytes;
  uint32_t age; /* runs since the capture, counted up to RUNS_A_CAPTURE */
  /* Nothing has moved if `arena_generation` and `moves` are still those of the request, and the operands in `loose`, which the
   * caller may move, still have their recorded locations. */
  uint64_t arena_generation, moves;
  operand *loose;
  size_t loose_count, loose_capacity;
} recording;

struct clv__recorded {
  const clv__device *device;
  const clv_allocator *allocator;
  uint32_t count; /* partitions of the plan */
  recording recordings[];
};

clv_status clv__recorded_create(const clv__request *request, uint32_t device, clv__recorded **out, clv_error *error) {
  uint32_t count = clv__request_plan(request)->partition_count;
  size_t size_bytes = sizeof(clv__recorded) + (size_t)count * sizeof(recording);
  clv__recorded *r = clv__allocate_zero(request->session->allocator, size_bytes);
  if (r == NULL) return clv__error_memory(error, size_bytes);
  r->device = clv__request_device(request, device);
  r->allocator = request->session->allocator;
  r->count = count;
  *out = r;
  return CLV_OK;
}

void clv__recorded_drop(clv__recorded *r, uint32_t first) {
  recording *one = &r->recordings[first];
  if (one->captured != NULL) r->device->backend->capture->destroy(r->device->handle, one->captured);
  one->captured = NULL;
  one->bytes = 0;
}

void clv__recorded_destroy(void *self) {
  clv__recorded *r = self;
  if (r == NULL) return;
  for (uint32_t p = 0; p < r->count; ++p) {
    clv__recorded_drop(r, p);
    clv__release(r->allocator, r->recordings[p].locations);
    clv__release(r->allocator, r->recordings[p].loose);
  }
  clv__release(r->allocator, r);
}

uint64_t clv__recorded_bytes(const clv__recorded *r) {
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < r->count; ++p) bytes += r->recordings[p].bytes;
  return bytes;
}

/* ---- Locations of bindings ---- */

static location location_of(const clv__prepared *prepared, uint32_t space, clv_value_id value, const clv_binding *binding) {
  const clv__slot *slot = clv__prepared_slot(prepared, value, space);
  uint64_t generation = slot->bound != NULL         ? 0
                        : slot->own.generation != 0 ? slot->own.generation
                                                    : prepared->request->arenas[space].generation;
  return (location){binding->buffer, binding->offset_bytes, generation, binding->type.data};
}

static bool same_location(const location *a, const location *b) {
  return a->buffer == b->buffer && a->offset_bytes == b->offset_bytes && a->generation == b->generation && a->host == b->host;
}

static clv_value_id value_of(const clv_graph_view *view, uint32_t index) {
  return view->values[index < view->input_count ? view->inputs[index] : view->outputs[index - view->input_count]];
}

/* Returns whether a binding of the partition differs from `locations`. If `note`, also updates `locations`. */
static bool have_moved(const clv__request *request, uint32_t partition, location *locations, bool note) {
  const clv__partition_state *state = &request->prepared->partitions[partition];
  const clv__partition *p = &clv__request_plan(request)->partitions[partition];
  const clv_graph_view *view = p->view;
  uint32_t space = clv__request_device(request, p->device)->space;
  bool moved = false;
  for (uint32_t i = 0; i < view->input_count + view->output_count; ++i) {
    const clv_binding *binding = i < view->input_count ? &state->inputs[i] : &state->outputs[i - view->input_count];
    location now = location_of(request->prepared, space, value_of(view, i), binding);
    if (state->staged != NULL && state->staged[i].is_used) now.generation = state->staged[i].device.generation;
    moved = moved || !same_location(&now, &locations[i]);
    if (note) locations[i] = now;
  }
  return moved;
}

/* Returns whether the value may be in memory of the caller, which may be different in each run. With hosted views, every value
 * in host memory may be: it may be a view of an input, or have one as an output. */
static bool is_loose(const clv__prepared *prepared, uint32_t space, clv_value_id value) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__value *v = &plan->graph->values[value];
  bool is_kept = plan->is_kept != NULL && plan->is_kept[value];
  return space == CLV__SPACE_HOST && (v->is_input || v->is_output || is_kept || plan->sources != NULL);
}

/* Returns whether no binding has moved since the capture. Looks up only the bindings of the loose operands. In a staged
 * partition, compares all bindings instead, which are already known. */
static bool have_not_moved(const clv__recorded *r, const clv__request *request, uint32_t first) {
  const recording *one = &r->recordings[first];
  const clv__prepared *prepared = request->prepared;
  uint32_t space = r->device->space;
  if (prepared->partitions[first].staged != NULL) return !have_moved(request, first, one->locations, false);
  if (one->arena_generation != request->arenas[space].generation || one->moves != prepared->moves) return false;
  for (size_t i = 0; i < one->loose_count; ++i) {
    const operand *at = &one->loose[i];
    clv_value_id value = value_of(clv__request_plan(request)->partitions[at->partition].view, at->index);
    clv_binding binding = clv__prepared_operand(prepared, value, space);
    location now = location_of(prepared, space, value, &binding);
    if (!same_location(&now, &r->recordings[at->partition].locations[at->index])) return false;
  }
  return true;
}

static void note_arenas(recording *one, const clv__request *request, uint32_t space) {
  one->arena_generation = request->arenas[space].generation;
  one->moves = request->prepared->moves;
}

/* Records the locations of all bindings of the recording. */
static clv_status note_locations(clv__recorded *r, clv__request *request, uint32_t first, clv_error *error) {
  recording *one = &r->recordings[first];
  one->loose_count = 0;
  note_arenas(one, request, r->device->space);
  for (uint32_t p = first; p != CLV__NO_ID; p = request->prepared->partitions[p].next) {
    const clv_graph_view *view = clv__request_plan(request)->partitions[p].view;
    size_t count = (size_t)view->input_count + view->output_count;
    location **locations = &r->recordings[p].locations;
    if (*locations == NULL) *locations = clv__allocate_zero(r->allocator, count * sizeof **locations);
    if (*locations == NULL) return clv__error_memory(error, count * sizeof **locations);
    (void)have_moved(request, p, *locations, true);
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_loose(request->prepared, r->device->space, value_of(view, i))) continue;
      if (!clv__array_reserve(r->allocator, (void **)&one->loose, &one->loose_capacity, one->loose_count + 1, sizeof *one->loose,
                              one->loose_count)) {
        return clv__error_memory(error, (one->loose_count + 1) * sizeof *one->loose);
      }
      one->loose[one->loose_count++] = (operand){p, i};
    }
  }
  return CLV_OK;
}

/* ---- Capturing ---- */

static clv_status execute_all(const clv__recorded *r, clv__request *request, uint32_t first, clv_stream *stream,
                              clv_error *error) {
  for (uint32_t p = first; p != CLV__NO_ID; p = request->prepared->partitions[p].next) {
    clv_execute_args args = clv__request_args(request, p);
    clv_instance *instance = request->prepared->partitions[p].instance;
    CLV__TRY(CLV__CALL(r->device, error, execute, instance, stream, &args));
  }
  return CLV_OK;
}

static clv_status capture(clv__recorded *r, clv__request *request, uint32_t first, clv_stream *stream, uint64_t *execute_ns,
                          clv_error *error) {
  clv_captured *captured = NULL;
  CLV__TRY(CLV__CALL(r->device, error, capture->begin, stream, CLV_CAPTURE_THREAD));
  uint64_t begin_ns = clv__clock_ns();
  clv_status status = execute_all(r, request, first, stream, error);
  *execute_ns += clv__clock_ns() - begin_ns;
  if (status != CLV_OK) {
    (void)r->device->backend->capture->end(r->device->handle, stream, NULL, NULL);
    return status;
  }
  CLV__TRY(CLV__CALL(r->device, error, capture->end, stream, &captured));
  r->recordings[first].captured = captured;
  return CLV_OK;
}

clv_status clv__recorded_capture(clv__recorded *r, clv__request *request, uint32_t first, clv_stream *stream,
                                 uint64_t *execute_ns, clv_error *error) {
  recording *one = &r->recordings[first];
  const clv_backend *backend = r->device->backend;
  uint64_t begin_ns = request->session->is_traced ? clv__clock_ns() : 0;
  clv__recorded_drop(r, first);
  CLV__TRY(note_locations(r, request, first, error));
  CLV__TRY(capture(r, request, first, stream, execute_ns, error));
  one->age = 0;
  one->bytes = backend->capture->size_bytes(r->device->handle, one->captured);
  if (request->session->is_traced) {
    clv__trace_add(request, (clv__trace_event){.kind = CLV__TRACE_CAPTURE,
                                               .step = request->prepared->partitions[first].step,
                                               .begin_ns = begin_ns,
                                               .end_ns = clv__clock_ns()});
  }
  return CLV_OK;
}

/* ---- Following memory that moved ---- */

/* Patches the bindings that have moved, and records their new locations. CLV_NOT_SUPPORTED: the device cannot patch. */
static clv_status patch(clv__recorded *r, clv__request *request, uint32_t first, uint64_t *patches, clv_error *error) {
  uint32_t index = 0;
  for (uint32_t p = first; p != CLV__NO_ID; p = request->prepared->partitions[p].next, ++index) {
    if (!have_moved(request, p, r->recordings[p].locations, false)) continue;
    if (r->device->backend->capture->bind == NULL) return CLV_NOT_SUPPORTED;
    clv_execute_args args = clv__request_args(request, p);
    CLV__TRY(CLV__CALL(r->device, error, capture->bind, r->recordings[first].captured, index, &args));
    (void)have_moved(request, p, r->recordings[p].locations, true);
    ++*patches;
  }
  note_arenas(&r->recordings[first], request, r->device->space);
  return CLV_OK;
}

clv_status clv__recorded_follow(clv__recorded *r, clv__request *request, uint32_t first, clv__follow *how, uint64_t *patches,
                                clv_error *error) {
  recording *one = &r->recordings[first];
  if (one->age < RUNS_A_CAPTURE) ++one->age;
  *how = CLV__FOLLOW_AT_PLACE;
  if (have_not_moved(r, request, first)) return CLV_OK;
  for (uint32_t p = request->prepared->partitions[first].next; p != CLV__NO_ID; p = request->prepared->partitions[p].next) {
    CLV__TRY(clv__request_bind(request, p, error));
  }
  *how = CLV__FOLLOW_PATCHED;
  clv_status status = patch(r, request, first, patches, error);
  if (status != CLV_NOT_SUPPORTED) return status;
  *how = one->age < RUNS_A_CAPTURE ? CLV__FOLLOW_NEITHER : CLV__FOLLOW_RECAPTURE;
  return CLV_OK;
}

clv_status clv__recorded_launch(clv__recorded *r, uint32_t first, clv_stream *stream, clv_error *error) {
  return CLV__CALL(r->device, error, capture->launch, r->recordings[first].captured, stream);
}
