/* Memory of boundary values: values between partitions, inputs and outputs. (Values inside a partition are the backend's
 * responsibility.) Each value in each memory space is a slot with a lifetime in steps. arrange.c places the slots. The schedule
 * makes a writer of bytes wait for all earlier users of those bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/arrange.h"
#include "execute/session_own.h"

uint32_t clv__space_owner(const clv_plan *plan, uint32_t space) {
  const clv_devices *devices = plan->devices;
  uint32_t owner = CLV__NO_ID;
  for (uint32_t d = 0; d < devices->count && space != CLV__SPACE_HOST; ++d) {
    if (devices->items[d].space != space) continue;
    if ((plan->gone >> d & 1u) == 0 && !clv__device_is_lost(&devices->items[d])) return d;
    if (owner == CLV__NO_ID) owner = d; /* used if all are lost: then the pool's allocation fails */
  }
  return owner;
}

static void touch(clv__prepared *prepared, clv_value_id value, uint32_t space, uint32_t step) {
  value = clv__plan_storage(clv__request_plan(prepared->request), value, space);
  uint32_t *index = &prepared->slot_of[(size_t)value * prepared->request->session->devices->space_count + space];
  if (*index == CLV__NO_ID) {
    *index = prepared->slot_count;
    prepared->slots[prepared->slot_count++] = (clv__slot){.value = value, .space = space, .first = step};
  }
  clv__slot *slot = &prepared->slots[*index];
  if (step > slot->last) slot->last = step;
}

/* Calls `visit` for every value that a step reads or writes, with the memory space in which it does. */
static void visit_step(clv__prepared *prepared, uint32_t s, void (*visit)(clv__prepared *, clv_value_id, uint32_t, uint32_t)) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__step *step = &plan->steps[s];
  if (step->is_transfer) {
    const clv__transfer *transfer = &plan->transfers[step->index];
    if (transfer->boundary != CLV__BOUNDARY_WEIGHT) visit(prepared, transfer->value, transfer->from, s);
    visit(prepared, transfer->value, transfer->to, s);
    return;
  }
  const clv__partition *partition = &plan->partitions[step->index];
  const clv_graph_view *view = partition->view;
  uint32_t space = plan->devices->items[partition->device].space;
  for (uint32_t i = 0; i < view->input_count; ++i) visit(prepared, view->values[view->inputs[i]], space, s);
  for (uint32_t i = 0; i < view->output_count; ++i) visit(prepared, view->values[view->outputs[i]], space, s);
}

static void collect(clv__prepared *prepared) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  for (uint32_t s = 0; s < plan->step_count; ++s) visit_step(prepared, s, touch);
  for (uint32_t t = 0; t < plan->transfer_count; ++t) {
    if (plan->transfers[t].boundary != CLV__BOUNDARY_WEIGHT) continue;
    clv__prepared_slot(prepared, plan->transfers[t].value, plan->transfers[t].to)->is_streamed = true;
  }
  for (uint32_t i = 0; i < plan->graph->output_count + plan->kept_count; ++i) {
    clv_value_id value = i < plan->graph->output_count ? plan->graph->outputs[i] : plan->kept[i - plan->graph->output_count];
    clv__slot *slot = clv__prepared_slot(prepared, value, CLV__SPACE_HOST);
    if (slot != NULL) slot->last = UINT32_MAX; /* read by the caller after the run */
  }
}

/* Records that the step must complete before another slot may reuse the bytes of the value's slot. */
static void mark_touch(clv__prepared *prepared, clv_value_id value, uint32_t space, uint32_t step) {
  const clv__schedule *schedule = &prepared->schedule;
  const clv__track *track = &schedule->tracks[step];
  clv__prepared_slot(prepared, value, space)->touched[schedule->lane_index[track->lane]] = track->position + 1;
}

static clv_status mark_touches(clv__prepared *prepared, clv_error *error) {
  uint32_t lanes = prepared->schedule.lane_count;
  uint32_t *all = clv__arena_allocate_zero(&prepared->arena, (size_t)prepared->slot_count * lanes, sizeof *all);
  if (all == NULL) return clv__error_memory(error, (size_t)prepared->slot_count * lanes * sizeof *all);
  for (uint32_t i = 0; i < prepared->slot_count; ++i) prepared->slots[i].touched = &all[(size_t)i * lanes];
  for (uint32_t s = 0; s < prepared->schedule.step_count; ++s) visit_step(prepared, s, mark_touch);
  return CLV_OK;
}

static clv_status arrange_space(clv__prepared *prepared, uint32_t space, clv_error *error) {
  const clv_allocator *allocator = prepared->request->session->allocator;
  clv__slot **slots = clv__allocate(allocator, (size_t)prepared->slot_count * sizeof *slots);
  if (slots == NULL) return clv__error_memory(error, prepared->slot_count * sizeof *slots);
  size_t count = 0, total = 0;
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    clv__slot *slot = &prepared->slots[i];
    if (slot->space == space && slot->size_known && !slot->is_external) slots[count++] = slot;
  }
  bool by_schedule = !prepared->is_tight && prepared->slot_count <= CLV__ARRANGE_PAIRS;
  clv_status arranged = clv__slots_arrange(slots, count, by_schedule ? &prepared->schedule : NULL, allocator, &total, error);
  clv__release(allocator, slots);
  prepared->space_bytes[space] = total;
  return arranged;
}

/* Returns the most bytes in the space that are alive at the same step if steps run one after the other: a lower bound on the
 * memory of such a run. `change[s]` is the change of the live bytes at step s. */
static uint64_t bound_space(const clv__prepared *prepared, uint32_t space, int64_t *change) {
  uint32_t steps = prepared->schedule.step_count;
  memset(change, 0, ((size_t)steps + 1) * sizeof *change);
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    const clv__slot *slot = &prepared->slots[i];
    if (slot->space != space || !slot->size_known || slot->is_external) continue;
    change[slot->first] += (int64_t)slot->size_bytes;
    if (slot->last < steps) change[slot->last + 1] -= (int64_t)slot->size_bytes;
  }
  int64_t alive = 0, worst = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    alive += change[s];
    if (alive > worst) worst = alive;
  }
  return (uint64_t)worst;
}

static clv_status bound_memory(clv__prepared *prepared, clv_error *error) {
  const clv_allocator *allocator = prepared->request->session->allocator;
  size_t size_bytes = ((size_t)prepared->schedule.step_count + 1) * sizeof(int64_t);
  int64_t *change = clv__allocate(allocator, size_bytes);
  if (change == NULL) return clv__error_memory(error, size_bytes);
  for (uint32_t space = 0; space < prepared->request->session->devices->space_count; ++space) {
    prepared->space_bound_bytes[space] = bound_space(prepared, space, change);
  }
  clv__release(allocator, change);
  return CLV_OK;
}

/* ---- Edges that the schedule needs for shared memory ---- */

typedef struct edges {
  const clv_allocator *allocator;
  clv__edge *items;
  size_t count, capacity;
} edges;

static clv_status add_edge(edges *list, uint32_t before, uint32_t after, clv_error *error) {
  if (!clv__array_reserve(list->allocator, (void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items,
                          list->count)) {
    return clv__error_memory(error, sizeof *list->items);
  }
  list->items[list->count++] = (clv__edge){before, after};
  return CLV_OK;
}

/* Makes step `after` wait for all earlier steps that use the slot. */
static clv_status add_edges(edges *list, const clv__schedule *schedule, const clv__slot *slot, uint32_t after, clv_error *error) {
  for (uint32_t i = 0; i < schedule->lane_count; ++i) {
    const uint32_t *steps = schedule->lane_steps[schedule->lanes[i]];
    for (uint32_t k = slot->touched[i]; k-- > 0;) {
      if (steps[k] >= after) continue;
      CLV__TRY(add_edge(list, steps[k], after, error));
      break;
    }
  }
  return CLV_OK;
}

static bool share_bytes(const clv__slot *a, const clv__slot *b) {
  return a->space == b->space && a->size_known && b->size_known && !a->is_external && !b->is_external &&
         a->offset < b->offset + b->size_bytes && b->offset < a->offset + a->size_bytes;
}

static int by_after(const void *a, const void *b) {
  const clv__edge *x = a, *y = b;
  if (x->after != y->after) return x->after < y->after ? -1 : 1;
  return (x->before > y->before) - (x->before < y->before);
}

static clv_status collect_edges(clv__prepared *prepared, edges *list, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  for (uint32_t s = 0; s < plan->step_count; ++s) { /* a weight that is copied again overwrites its previous copy */
    if (!plan->steps[s].is_transfer) continue;
    const clv__transfer *transfer = &plan->transfers[plan->steps[s].index];
    if (transfer->boundary != CLV__BOUNDARY_WEIGHT) continue;
    const clv__slot *slot = clv__prepared_slot(prepared, transfer->value, transfer->to);
    if (slot->first < s) CLV__TRY(add_edges(list, &prepared->schedule, slot, s, error));
  }
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    const clv__slot *a = &prepared->slots[i];
    for (uint32_t k = 0; k < i; ++k) {
      const clv__slot *b = &prepared->slots[k];
      if (!(prepared->is_tight || a->is_streamed || b->is_streamed) || !share_bytes(a, b)) continue;
      const clv__slot *before = a->last < b->first ? a : b, *after = before == a ? b : a;
      CLV__TRY(add_edges(list, &prepared->schedule, before, after->first, error));
    }
  }
  if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, by_after);
  return CLV_OK;
}

static clv_status give_way(clv__prepared *prepared, clv__schedule_rules *rules, clv_error *error) {
  edges list = {.allocator = prepared->request->session->allocator};
  clv_status status = collect_edges(prepared, &list, error);
  rules->edges = list.items;
  rules->edge_count = list.count;
  if (status == CLV_OK && list.count > 0) {
    status = clv__schedule_make(clv__request_plan(prepared->request), rules, &prepared->arena, &prepared->schedule, error);
  }
  clv__release(list.allocator, list.items);
  return status;
}

/* ---- Planning ---- */

static clv_status make_slots(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  size_t cells = (size_t)plan->graph->value_count * plan->devices->space_count, most = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    most += plan->partitions[p].view->input_count + plan->partitions[p].view->output_count;
  }
  most += 2 * (size_t)plan->transfer_count;
  prepared->slot_of = clv__arena_allocate(&prepared->arena, cells * sizeof *prepared->slot_of);
  prepared->slots = clv__arena_allocate_zero(&prepared->arena, most, sizeof *prepared->slots);
  if (prepared->slot_of == NULL || prepared->slots == NULL) {
    prepared->slots = NULL;
    return clv__error_memory(error, cells * sizeof *prepared->slot_of);
  }
  memset(prepared->slot_of, 0xff, cells * sizeof *prepared->slot_of); /* all are CLV__NO_ID */
  collect(prepared);
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    clv__slot *slot = &prepared->slots[i];
    slot->is_external = slot->space == CLV__SPACE_HOST && plan->graph->values[slot->value].is_input;
    size_t size_bytes;
    slot->size_known = clv__tensor_size_bytes(&prepared->placed[slot->value], &size_bytes);
    uint32_t alignment = clv__devices_alignment(plan->devices, slot->space);
    if (slot->size_known) slot->size_bytes = clv__align_up(size_bytes == 0 ? 1 : size_bytes, alignment);
  }
  return CLV_OK;
}

/* Calls `visit` for every input and output whose size the plan leaves open: of all bucketed partitions, or of all others. */
static void visit_open(clv__prepared *prepared, bool bucketed, void (*visit)(clv__partition_state *, clv__slot *)) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    uint32_t space = plan->devices->items[plan->partitions[p].device].space;
    for (uint32_t i = 0; plan->partitions[p].is_bucketed == bucketed && i < view->input_count + view->output_count; ++i) {
      clv_value_id value = view->values[i < view->input_count ? view->inputs[i] : view->outputs[i - view->input_count]];
      if (clv__tensor_is_static(&plan->shapes->types[value])) continue;
      visit(&prepared->partitions[p], clv__prepared_slot(prepared, value, space));
    }
  }
}

static void mark_padded(clv__partition_state *state, clv__slot *slot) {
  (void)state;
  slot->is_padded = slot->space != CLV__SPACE_HOST;
}
static void mark_exact(clv__partition_state *state, clv__slot *slot) {
  (void)state;
  slot->is_padded = false;
}
static void mark_staged(clv__partition_state *state, clv__slot *slot) {
  state->is_staged = state->is_staged || !slot->is_padded;
}

/* Determines the size of each value. In memory that only bucketed partitions use, values have their bucket's size: transfers pad
 * and cut them. In memory shared with other partitions, values have their exact size, and each bucketed partition has padded
 * copies of its own. */
static clv_status share_with_buckets(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  if (prepared->request->engine->buckets == NULL) return CLV_OK;
  visit_open(prepared, true, mark_padded);
  visit_open(prepared, false, mark_exact);
  visit_open(prepared, true, mark_staged);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__partition_state *state = &prepared->partitions[p];
    size_t count = (size_t)plan->partitions[p].view->input_count + plan->partitions[p].view->output_count;
    if (!state->is_staged) continue;
    state->staged = clv__arena_allocate_zero(&prepared->arena, count, sizeof *state->staged);
    if (state->staged == NULL) return clv__error_memory(error, count * sizeof *state->staged);
  }
  return CLV_OK;
}

/* Returns the devices, as bits, whose partitions have padded copies of their own. The host pads the copies of inputs and cuts the
 * copies of outputs. */
static uint32_t staged_devices(const clv__prepared *prepared) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  uint32_t devices = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (prepared->partitions[p].staged != NULL) devices |= 1u << plan->partitions[p].device;
  }
  return devices;
}

/* Finds the steps whose completion the host must see, because the sizes of their outputs are known only then, or because the host
 * pads or cuts their values. */
static clv_status find_late(clv__prepared *prepared, const bool **late, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  uint32_t staged = staged_devices(prepared);
  bool *is_late = clv__arena_allocate_zero(&prepared->arena, plan->step_count, sizeof *is_late);
  if (is_late == NULL) return clv__error_memory(error, plan->step_count * sizeof *is_late);
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].is_transfer) continue;
    const clv__partition *partition = &plan->partitions[plan->steps[s].index];
    const clv_graph_view *view = partition->view;
    is_late[s] = (staged >> partition->device & 1u) != 0;
    for (uint32_t i = 0; i < view->output_count; ++i) {
      is_late[s] |= !clv__tensor_is_static(&prepared->types[view->values[view->outputs[i]]]);
    }
  }
  *late = is_late;
  return CLV_OK;
}

/* Returns the largest size of the space's arena with which its device stays within the memory that the plan states or, if the
 * plan knows only typical sizes, within the device's memory limit. Several requests in flight share this memory. */
static uint64_t allowed_bytes(const clv__request *request, uint32_t space) {
  const clv_plan *plan = clv__request_plan(request);
  uint64_t allowed = request->session->options.in_flight > 1 ? clv__request_value_room(request, space) : UINT64_MAX;
  for (uint32_t d = 0; d < plan->devices->count && space != CLV__SPACE_HOST; ++d) {
    const clv__memory_need *need = &plan->needs[d];
    uint64_t limit = plan->devices->items[d].info.memory_limit_bytes, others = need->total_bytes - need->value_bytes;
    if (plan->devices->items[d].space != space || limit == 0) continue;
    uint64_t its = !clv__plan_has_open_inputs(plan) ? need->value_bytes : limit > others ? limit - others : 0;
    if (its < allowed) allowed = its;
  }
  return allowed;
}

/* Arranges all spaces. If one would need more than the plan states, steps that could overlap run one after the other where they
 * share bytes. */
static clv_status arrange_spaces(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  for (uint32_t space = 0; space < plan->devices->space_count; ++space) {
    CLV__TRY(arrange_space(prepared, space, error));
    if (prepared->is_tight || prepared->space_bytes[space] <= allowed_bytes(prepared->request, space)) continue;
    prepared->is_tight = true;
    return arrange_spaces(prepared, error);
  }
  return CLV_OK;
}

clv_status clv__prepared_plan_memory(clv__prepared *prepared, clv_error *error) {
  clv__request *request = prepared->request;
  const clv_plan *plan = clv__request_plan(request);
  CLV__TRY(make_slots(prepared, error));
  CLV__TRY(share_with_buckets(prepared, error));
  clv__schedule_rules rules = {.is_serial = prepared->slot_count > CLV__ARRANGE_PAIRS};
  CLV__TRY(find_late(prepared, &rules.sized_late, error));
  CLV__TRY(clv__schedule_make(plan, &rules, &prepared->arena, &prepared->schedule, error));
  CLV__TRY(mark_touches(prepared, error));
  CLV__TRY(arrange_spaces(prepared, error));
  for (uint32_t space = 0; space < plan->devices->space_count; ++space) {
    CLV__TRY(clv__request_reserve(request, space, prepared->space_bytes[space], error));
  }
  if (!rules.is_serial) CLV__TRY(give_way(prepared, &rules, error));
  return bound_memory(prepared, error);
}

void clv__prepared_release_memory(clv__prepared *prepared) {
  for (uint32_t i = 0; i < prepared->slot_count; ++i) {
    clv__memory_pool_free(prepared->request->session->devices, &prepared->slots[i].own);
    clv__memory_pool_free(prepared->request->session->devices, &prepared->slots[i].staging);
  }
  for (uint32_t p = 0; p < clv__request_plan(prepared->request)->partition_count; ++p) {
    clv__stage_release(&prepared->partitions[p]);
  }
  prepared->slot_count = 0;
  prepared->slots = NULL;
}

static void discard(const clv__request *request, const clv__memory_block *block) {
  if (block->generation == 0 || block->device == CLV__NO_ID) return;
  const clv__device *device = clv__request_device(request, block->device);
  if (device->backend->buffer_discard != NULL) device->backend->buffer_discard(device->handle, block->buffer);
}

void clv__prepared_discard(const clv__prepared *prepared) {
  const clv__request *request = prepared->request;
  const clv_plan *plan = clv__request_plan(request);
  for (uint32_t space = 0; space < plan->devices->space_count; ++space) discard(request, &request->arenas[space]);
  for (uint32_t i = 0; i < prepared->slot_count; ++i) discard(request, &prepared->slots[i].own);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    const clv__staged *staged = prepared->partitions[p].staged;
    for (uint32_t i = 0; staged != NULL && i < view->input_count + view->output_count; ++i) discard(request, &staged[i].device);
  }
}

clv_status clv__prepared_grow_slot(clv__prepared *prepared, clv__slot *slot, size_t size_bytes, clv_error *error) {
  if (slot->own.generation != 0 && slot->own.size_bytes >= size_bytes) return CLV_OK;
  clv_devices *devices = prepared->request->session->devices;
  uint32_t device = clv__space_owner(clv__request_plan(prepared->request), slot->space);
  ++prepared->moves;
  clv__memory_pool_free(devices, &slot->own);
  clv_status status = clv__memory_pool_allocate(devices, device, size_bytes == 0 ? 1 : size_bytes, &slot->own, error);
  if (status == CLV_OK) return status;
  if (device != CLV__NO_ID) clv__request_blame(prepared->request, device, status);
  return clv__error_prefix(error, status, "memory for a value between partitions");
}

clv_binding clv__prepared_operand(const clv__prepared *prepared, clv_value_id value, uint32_t space) {
  const clv__slot *slot = clv__prepared_slot(prepared, value, space);
  clv_binding binding = clv__prepared_binding(prepared, slot);
  if (slot->value == value) return binding;
  void *data = (void *)binding.type.data;
  binding.type = prepared->types[value];
  binding.type.data = data;
  return binding;
}

clv_binding clv__prepared_binding(const clv__prepared *prepared, const clv__slot *slot) {
  clv_binding binding = {.type = slot->is_padded ? prepared->placed[slot->value] : prepared->types[slot->value]};
  const clv__memory_block *arena = &prepared->request->arenas[slot->space];
  binding.type.data = NULL;
  if (slot->space == CLV__SPACE_HOST) {
    if (slot->bound != NULL)
      binding.type.data = slot->bound;
    else if (slot->own.generation != 0)
      binding.type.data = slot->own.host;
    else if (slot->size_known && !slot->is_external)
      binding.type.data = (char *)arena->host + slot->offset;
    return binding;
  }
  if (slot->own.generation != 0) {
    binding.buffer = slot->own.buffer;
  } else if (slot->size_known) {
    binding.buffer = arena->buffer;
    binding.offset_bytes = slot->offset;
  }
  return binding;
}
