/* Prepares a request for a set of input shapes: types, memory, schedule, instances. The most recently used sets are kept.
 *
 * If devices need fixed shapes, a set serves all shapes of one bucket (compile/bucket.h). Memory is as large as the bucket needs.
 * When the shapes change within the bucket, only types and whatever else depends on exact sizes are updated. */
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"

bool clv__same_dims(const clv_tensor *a, const clv_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* ---- One set of shapes ---- */

static bool inputs_are_static(const clv__prepared *prepared, uint32_t partition) {
  const clv_graph_view *view = clv__request_plan(prepared->request)->partitions[partition].view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&prepared->types[view->values[view->inputs[i]]])) return false;
  }
  return true;
}

static clv_status allocate_bindings(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  prepared->partitions = clv__arena_allocate_zero(&prepared->arena, plan->partition_count, sizeof *prepared->partitions);
  if (prepared->partitions == NULL) return clv__error_memory(error, plan->partition_count * sizeof *prepared->partitions);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    prepared->partitions[p] = (clv__partition_state){.prepared = prepared, .index = p};
    clv__arena_init(&prepared->partitions[p].own_arena, prepared->arena.allocator);
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__partition_state *state = &prepared->partitions[p];
    const clv_graph_view *view = plan->partitions[p].view;
    state->inputs = clv__arena_allocate_zero(&prepared->arena, view->input_count, sizeof *state->inputs);
    state->outputs = clv__arena_allocate_zero(&prepared->arena, view->output_count, sizeof *state->outputs);
    state->instance_inputs = clv__arena_allocate_zero(&prepared->arena, view->input_count, sizeof *state->instance_inputs);
    if (state->inputs == NULL || state->outputs == NULL || state->instance_inputs == NULL) {
      return clv__error_memory(error, view->input_count * sizeof *state->inputs);
    }
  }
  return CLV_OK;
}

/* If the plan left sizes open, infers all shapes from the actual inputs. Otherwise, or without inputs, sets `shapes` to NULL. */
static clv_status infer_actual(const clv__request *request, const clv_tensor *inputs, clv__shapes **shapes, clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const clv_graph *graph = plan->graph;
  const clv_allocator *allocator = request->session->allocator;
  *shapes = NULL;
  if (inputs == NULL || !clv__plan_has_open_inputs(plan)) return CLV_OK;
  size_t most = (size_t)plan->size_count + graph->input_count;
  clv__shape_given *given = clv__allocate_zero(allocator, most * sizeof *given);
  if (given == NULL) return clv__error_memory(error, most * sizeof *given);
  uint32_t count = 0; /* begin with the sizes that the plan was given, because their symbols need not occur in an input */
  for (uint32_t i = 0; i < plan->size_count; ++i) given[count++] = plan->sizes[i];
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (inputs[i].dtype == CLV_DTYPE_NONE) continue;
    given[count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = inputs[i].rank};
    memcpy(given[count++].dims, inputs[i].dims, sizeof given->dims);
  }
  clv_status status = clv__shapes_infer(graph, given, count, 1u << 16, shapes, error);
  clv__release(allocator, given);
  return status;
}

/* Sets the types of this run and those of its bucket. Constants stay those of the plan. */
static void set_types(clv__prepared *prepared, const clv_tensor *inputs, const clv__shapes *shapes) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv_graph *graph = plan->graph;
  for (uint32_t v = 0; v < graph->value_count && shapes != NULL; ++v) {
    prepared->types[v] = shapes->types[v];
    prepared->types[v].data = plan->shapes->types[v].data;
  }
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    bool is_given = inputs != NULL && inputs[i].dtype != CLV_DTYPE_NONE;
    prepared->inputs[i] = is_given ? inputs[i] : prepared->types[graph->inputs[i]];
  }
  const clv__bucket_rule *rule = prepared->request->engine->buckets;
  for (uint32_t v = 0; v < graph->value_count && rule != NULL; ++v) {
    prepared->placed[v] = clv__bucket_type(rule, v, &prepared->types[v]);
  }
}

static clv_status fill_types(clv__prepared *prepared, const clv_tensor *inputs, const clv__shapes *shapes, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv_graph *graph = plan->graph;
  size_t size_bytes = graph->value_count * sizeof *prepared->types;
  prepared->types = clv__arena_copy(&prepared->arena, plan->shapes->types, size_bytes);
  prepared->placed = prepared->types;
  if (prepared->request->engine->buckets != NULL) {
    prepared->placed = clv__arena_copy(&prepared->arena, plan->shapes->types, size_bytes);
  }
  prepared->inputs = clv__arena_allocate_zero(&prepared->arena, graph->input_count, sizeof *prepared->inputs);
  if (prepared->types == NULL || prepared->placed == NULL || prepared->inputs == NULL)
    return clv__error_memory(error, size_bytes);
  prepared->is_whole = !clv__plan_has_open_inputs(plan) || inputs != NULL;
  set_types(prepared, inputs, shapes);
  return CLV_OK;
}

static clv_status make(clv__prepared *prepared, const clv_tensor *inputs, const clv__shapes *shapes, clv__prepared *from,
                       clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  CLV__TRY(allocate_bindings(prepared, error));
  CLV__TRY(fill_types(prepared, inputs, shapes, error));
  CLV__TRY(clv__prepared_plan_memory(prepared, error));
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (!plan->partitions[p].is_hosted && inputs_are_static(prepared, p))
      CLV__TRY(clv__instance_make(&prepared->partitions[p], from, error));
  }
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (!plan->steps[s].is_transfer) prepared->partitions[plan->steps[s].index].step = s;
  }
  return clv__capture_prepare(prepared, error);
}

void clv__prepared_close(clv__prepared *prepared) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__capture_finish(prepared, d);
  for (uint32_t p = 0; prepared->partitions != NULL && p < plan->partition_count; ++p) {
    clv__instance_drop(&prepared->partitions[p]);
  }
  if (prepared->slots != NULL) clv__prepared_release_memory(prepared);
}

void clv__prepared_free(clv__prepared *prepared) {
  const clv_allocator *allocator = prepared->arena.allocator;
  clv__arena_finish(&prepared->arena);
  clv__release(allocator, prepared);
}

void clv__prepared_destroy(clv__prepared *prepared) {
  clv__prepared_close(prepared);
  clv__prepared_free(prepared);
}

/* ---- Choosing the set ---- */

static bool is_exactly_for(const clv__prepared *prepared, const clv_tensor *inputs) {
  const clv_graph *graph = clv__request_plan(prepared->request)->graph;
  if (!prepared->is_whole) return false;
  for (uint32_t i = 0; inputs != NULL && i < graph->input_count; ++i) {
    const clv_tensor *given = inputs[i].dtype != CLV_DTYPE_NONE ? &inputs[i] : &graph->values[graph->inputs[i]].type;
    if (!clv__same_dims(given, &prepared->inputs[i])) return false;
  }
  return true;
}

/* Returns whether bucketed partitions have the same sizes at these shapes as in the set. Inputs alone do not determine this: for
 * a growing cache, [T] and [T + 1] are in two buckets if T is the largest size of its bucket. */
static bool is_of_bucket(const clv__prepared *prepared, const clv__shapes *shapes) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__bucket_rule *rule = prepared->request->engine->buckets;
  if (!prepared->is_whole || rule == NULL || shapes == NULL) return false;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    for (uint32_t i = 0; plan->partitions[p].is_bucketed && i < view->input_count + view->output_count; ++i) {
      clv_value_id value = view->values[i < view->input_count ? view->inputs[i] : view->outputs[i - view->input_count]];
      clv_tensor placed = clv__bucket_type(rule, value, &shapes->types[value]);
      if (!clv__same_dims(&placed, &prepared->placed[value])) return false;
    }
  }
  for (uint32_t i = 0; i < prepared->slot_count; ++i) { /* memory and schedule depend on which sizes are known */
    const clv__slot *slot = &prepared->slots[i];
    if (clv__tensor_is_static(&shapes->types[slot->value]) != slot->size_known) return false;
  }
  return true;
}

/* Adapts the set to other shapes of the same bucket. Executables, instances and captures of the bucket stay. Other partitions are
 * resized. Values that are not at a bucket's size, and that are longer now, get memory of their own. */
static clv_status refit(clv__prepared *prepared, const clv_tensor *inputs, const clv__shapes *shapes, clv_error *error) {
  prepared->is_whole = false; /* until everything fits the new shapes */
  set_types(prepared, inputs, shapes);
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    clv__slot *slot = &prepared->slots[i];
    size_t size_bytes;
    if (!slot->size_known || slot->is_external || !clv__tensor_size_bytes(&prepared->placed[slot->value], &size_bytes)) continue;
    if (size_bytes > slot->size_bytes) CLV__TRY(clv__prepared_grow_slot(prepared, slot, size_bytes, error));
  }
  for (uint32_t p = 0; p < clv__request_plan(prepared->request)->partition_count; ++p) {
    if (!inputs_are_static(prepared, p)) continue;
    clv_status status = clv__instance_fit(&prepared->partitions[p], error);
    if (status != CLV_OK) return clv__partition_failed(prepared->request, p, status, error);
  }
  CLV__TRY(clv__capture_refit(prepared, error));
  prepared->is_whole = true;
  return CLV_OK;
}

static bool has_graphs(const clv__prepared *prepared) {
  for (uint32_t d = 0; d < prepared->request->session->devices->count; ++d) {
    if (clv__capture_holds(prepared, d)) return true;
  }
  return false;
}

/* Returns whether the set stays. Sets beyond the number in options.prepared_shapes are evicted, the least recently used first,
 * except those whose captures are kept, because a capture keeps its memory. A set that only served to size the memory is
 * evicted at once. `kept` counts the sets before this one that stay; if this one stays, it is counted too. */
static bool stays(const clv__prepared *prepared, uint32_t *kept) {
  uint32_t limit = prepared->request->session->options.prepared_shapes;
  if (*kept > 0 && !(prepared->is_whole && (*kept < limit || has_graphs(prepared)))) return false;
  ++*kept;
  return true;
}

static void trim(clv__request *request) {
  uint32_t kept = 0;
  for (clv__prepared **link = &request->prepared; *link != NULL;) {
    clv__prepared *prepared = *link;
    if (stays(prepared, &kept)) {
      link = &prepared->next;
      continue;
    }
    *link = prepared->next;
    --request->prepared_count;
    clv__prepared_destroy(prepared);
  }
}

/* Returns the least recently used of the sets that will be evicted when there is a new one; NULL: none. */
static clv__prepared *find_evicted(const clv__request *request) {
  clv__prepared *found = NULL;
  uint32_t kept = 1; /* the new set */
  for (clv__prepared *prepared = request->prepared; prepared != NULL; prepared = prepared->next) {
    if (!stays(prepared, &kept)) found = prepared;
  }
  return found;
}

/* Makes a set, and evicts sets that need not stay (see stays()). `from` (may be NULL) is always evicted, and its instances are
 * resized for the new set if they can be. */
static clv_status make_new(clv__request *request, const clv_tensor *inputs, const clv__shapes *shapes, clv__prepared *from,
                           bool is_tight, clv_error *error) {
  clv__prepared *prepared = clv__allocate_zero(request->session->allocator, sizeof *prepared);
  if (prepared == NULL) return clv__error_memory(error, sizeof *prepared);
  prepared->request = request;
  prepared->is_tight = is_tight;
  clv__arena_init(&prepared->arena, request->session->allocator);
  if (from != NULL) {
    from->is_whole = false; /* no run uses it any more */
    for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__capture_drop(from, d);
  }
  clv_status status = make(prepared, inputs, shapes, from, error);
  if (status != CLV_OK) {
    clv__prepared_destroy(prepared);
    return status;
  }
  prepared->next = request->prepared;
  request->prepared = prepared;
  ++request->prepared_count;
  trim(request);
  status = clv__scratch_follow(prepared, error); /* the new instances may have enlarged the scratch, which moves it */
  clv__scratch_sweep(request);
  return status;
}

static clv_status prepare(clv__request *request, const clv_tensor *inputs, const clv__shapes *shapes, bool is_resize,
                          clv_error *error) {
  uint64_t begin_ns = clv__clock_ns();
  clv__devices_lock(request->session->devices);
  clv__prepared *from = is_resize ? request->prepared : find_evicted(request);
  clv_status status = make_new(request, inputs, shapes, from, false, error);
  if (status == CLV_OUT_OF_MEMORY && request->failed_device != CLV__NO_ID) { /* try serial steps, which need less memory */
    clv__context_log(request->session->devices->context, 2, "%s; repeated with steps one after the other", error->message);
    clv__request_free_memory(request);
    clv__memory_pool_trim(request->session->devices); /* frees blocks that the pool keeps for reuse */
    request->failed_device = CLV__NO_ID;
    status = make_new(request, inputs, shapes, NULL, true, error);
  }
  clv__devices_unlock(request->session->devices);
  clv__trace_add(request, (clv__trace_event){
                              .kind = CLV__TRACE_PREPARE, .step = CLV__NO_ID, .begin_ns = begin_ns, .end_ns = clv__clock_ns()});
  return status;
}

/* Makes the set at `link` the current one. */
static clv_status bring_to_front(clv__request *request, clv__prepared **link, clv_error *error) {
  clv__prepared *prepared = *link;
  if (link == &request->prepared) return CLV_OK;
  *link = prepared->next;
  prepared->next = request->prepared;
  request->prepared = prepared;
  CLV__TRY(clv__scratch_follow(prepared, error));
  clv__scratch_sweep(request);
  return CLV_OK;
}

static clv_status prepare_for(clv__request *request, const clv_tensor *inputs, const clv__shapes *shapes, bool is_resize,
                              clv_error *error) {
  for (clv__prepared **link = &request->prepared; *link != NULL; link = &(*link)->next) {
    if (!is_of_bucket(*link, shapes)) continue;
    CLV__TRY(bring_to_front(request, link, error));
    clv_status status = refit(request->prepared, inputs, shapes, error);
    if (status != CLV_OUT_OF_MEMORY || request->failed_device == CLV__NO_ID) return status;
    clv__context_log(request->session->devices->context, 2, "%s; repeated with a new set for these shapes", error->message);
    request->failed_device = CLV__NO_ID; /* a new set needs less memory than one whose slots have grown */
    break;
  }
  return prepare(request, inputs, shapes, is_resize, error);
}

static clv_status find_or_make(clv__request *request, const clv_tensor *inputs, bool is_resize, clv_error *error) {
  clv__shapes *shapes;
  for (clv__prepared **link = &request->prepared; *link != NULL; link = &(*link)->next) {
    if (is_exactly_for(*link, inputs)) return bring_to_front(request, link, error);
  }
  CLV__TRY(infer_actual(request, inputs, &shapes, error));
  clv_status status = prepare_for(request, inputs, shapes, is_resize, error);
  clv__shapes_destroy(shapes);
  return status;
}

clv_status clv__request_prepare(clv__request *request, const clv_tensor *inputs, clv_error *error) {
  return find_or_make(request, inputs, false, error);
}

clv_status clv__request_resize(clv__request *request, const clv_tensor *inputs, clv_error *error) {
  return find_or_make(request, inputs, true, error);
}
