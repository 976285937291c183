/* Memory of boundary values: what passes between partitions, in and out. (What lives inside a partition is its backend's
 * business.) Each value in each memory space is a slot with a life in steps; arrange.c says where it lies. */
#include <string.h>

#include "execute/internal.h"

static void touch(clv_session *session, clv_value_id value, uint32_t space, uint32_t step) {
  uint32_t *index = &session->slot_of[(size_t)value * session->plan->devices->space_count + space];
  if (*index == CLV__NO_ID) {
    *index = session->slot_count;
    session->slots[session->slot_count++] = (clv__slot){.value = value, .space = space, .first = step};
  }
  clv__slot *slot = &session->slots[*index];
  if (step > slot->last) slot->last = step;
}

static void collect(clv_session *session) {
  const clv_plan *plan = session->plan;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      if (transfer->boundary != CLV__BOUNDARY_WEIGHT) touch(session, transfer->value, transfer->from, s);
      touch(session, transfer->value, transfer->to, s);
      continue;
    }
    const clv__partition *partition = &plan->partitions[step->index];
    const clv_graph_view *view = partition->view;
    uint32_t space = plan->devices->items[partition->device].space;
    for (uint32_t i = 0; i < view->input_count; ++i) {
      touch(session, view->values[view->inputs[i]], space, s);
    }
    for (uint32_t i = 0; i < view->output_count; ++i) {
      touch(session, view->values[view->outputs[i]], space, s);
    }
  }
  for (uint32_t i = 0; i < plan->graph->output_count + plan->kept_count; ++i) {
    clv_value_id value = i < plan->graph->output_count ? plan->graph->outputs[i] : plan->kept[i - plan->graph->output_count];
    clv__slot *slot = clv__session_slot(session, value, CLV__SPACE_HOST);
    if (slot != NULL) slot->last = UINT32_MAX; /* read by the caller after the run */
  }
}

static clv_status plan_space(clv_session *session, uint32_t space, clv_error *error) {
  clv__slot **slots = clv__allocate(session->allocator, (size_t)session->slot_count * sizeof *slots);
  if (slots == NULL) return clv__error_memory(error, session->slot_count * sizeof *slots);
  size_t count = 0, total = 0;
  for (uint32_t i = 0; i < session->slot_count; ++i) {
    clv__slot *slot = &session->slots[i];
    if (slot->space == space && slot->size_known && !slot->is_external) slots[count++] = slot;
  }
  clv_status arranged = clv__slots_arrange(slots, count, session->allocator, &total, error);
  clv__release(session->allocator, slots);
  if (arranged != CLV_OK) return arranged;
  clv__space_memory *memory = &session->memory[space];
  memory->size_bytes = total;
  session->boundary_bytes += total;
  if (total == 0) return CLV_OK;
  if (space == CLV__SPACE_HOST) {
    memory->host = clv__allocate(session->allocator, total);
    return memory->host == NULL ? clv__error_memory(error, total) : CLV_OK;
  }
  for (uint32_t d = 0; d < session->plan->devices->count; ++d) {
    const clv__device *device = &session->plan->devices->items[d];
    if (device->space != space) continue;
    clv__error_clear(error);
    clv_status status = device->backend->buffer_alloc(device->handle, total, &memory->buffer, error);
    return status == CLV_OK ? status : clv__error_prefix(error, status, "%s: memory of boundary values", device->name);
  }
  return CLV_OK;
}

/* The most that is alive at one step: a bound on any plan of this memory. `change[s]` is what step s adds to what was alive. */
static clv_status bound_memory(clv_session *session, clv_error *error) {
  uint32_t steps = session->plan->step_count;
  int64_t *change = clv__allocate_zero(session->allocator, ((size_t)steps + 1) * sizeof *change);
  if (change == NULL) return clv__error_memory(error, steps * sizeof *change);
  for (uint32_t i = 0; i < session->slot_count; ++i) {
    const clv__slot *slot = &session->slots[i];
    if (!slot->size_known || slot->is_external) continue;
    change[slot->first] += (int64_t)slot->size_bytes;
    if (slot->last < steps) change[slot->last + 1] -= (int64_t)slot->size_bytes;
  }
  int64_t alive = 0, worst = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    alive += change[s];
    if (alive > worst) worst = alive;
  }
  clv__release(session->allocator, change);
  session->boundary_bound_bytes = (uint64_t)worst;
  return CLV_OK;
}

clv_status clv__session_plan_memory(clv_session *session, clv_error *error) {
  const clv_plan *plan = session->plan;
  uint32_t spaces = plan->devices->space_count;
  size_t cells = (size_t)plan->graph->value_count * spaces, most = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    most += plan->partitions[p].view->input_count + plan->partitions[p].view->output_count;
  }
  most += 2 * (size_t)plan->transfer_count;
  session->slot_of = clv__arena_allocate(&session->prepared, cells * sizeof *session->slot_of);
  session->slots = clv__arena_allocate_zero(&session->prepared, most, sizeof *session->slots);
  if (session->slot_of == NULL || session->slots == NULL) return clv__error_memory(error, cells * sizeof *session->slot_of);
  memset(session->slot_of, 0xff, cells * sizeof *session->slot_of); /* CLV__NO_ID */
  session->slot_count = 0;
  session->boundary_bytes = 0;
  collect(session);
  for (uint32_t i = 0; i < session->slot_count; ++i) {
    clv__slot *slot = &session->slots[i];
    slot->is_external = slot->space == CLV__SPACE_HOST && plan->graph->values[slot->value].is_input;
    size_t size_bytes;
    slot->size_known = clv__tensor_size_bytes(&session->types[slot->value], &size_bytes);
    if (slot->size_known) slot->size_bytes = clv__align_up(size_bytes == 0 ? 1 : size_bytes, CLV__ALIGNMENT);
  }
  for (uint32_t space = 0; space < spaces; ++space) CLV__TRY(plan_space(session, space, error));
  return bound_memory(session, error);
}

static const clv__device *device_of(const clv_session *session, uint32_t space) {
  for (uint32_t d = 0; d < session->plan->devices->count; ++d) {
    if (session->plan->devices->items[d].space == space) return &session->plan->devices->items[d];
  }
  return NULL;
}

static void release_slot(clv_session *session, clv__slot *slot) {
  clv__release(session->allocator, slot->own_host);
  const clv__device *device = slot->own == NULL ? NULL : device_of(session, slot->space);
  if (device != NULL) device->backend->buffer_free(device->handle, slot->own);
  slot->own = NULL;
  slot->own_host = NULL;
  slot->own_capacity = 0;
}

void clv__session_release_memory(clv_session *session) {
  for (uint32_t i = 0; i < session->slot_count; ++i) release_slot(session, &session->slots[i]);
  for (uint32_t space = 0; space < session->plan->devices->space_count; ++space) {
    clv__space_memory *memory = &session->memory[space];
    clv__release(session->allocator, memory->host);
    const clv__device *device = memory->buffer == NULL ? NULL : device_of(session, space);
    if (device != NULL) device->backend->buffer_free(device->handle, memory->buffer);
    *memory = (clv__space_memory){0};
  }
  session->slot_count = 0;
  session->slots = NULL;
  session->slot_of = NULL;
}

clv_status clv__session_grow_slot(clv_session *session, clv__slot *slot, size_t size_bytes, clv_error *error) {
  if (slot->own_capacity >= size_bytes && slot->own_capacity > 0) return CLV_OK;
  release_slot(session, slot);
  size_t capacity = clv__align_up(size_bytes == 0 ? 1 : size_bytes, CLV__ALIGNMENT);
  if (slot->space == CLV__SPACE_HOST) {
    slot->own_host = clv__allocate(session->allocator, capacity);
    if (slot->own_host == NULL) return clv__error_memory(error, capacity);
  } else {
    const clv__device *device = device_of(session, slot->space);
    clv__error_clear(error);
    clv_status status = device->backend->buffer_alloc(device->handle, capacity, &slot->own, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "%s: memory of a boundary value", device->name);
  }
  slot->own_capacity = capacity;
  return CLV_OK;
}

clv_binding clv__session_binding(clv_session *session, const clv__slot *slot) {
  clv_binding binding = {.type = session->types[slot->value]};
  binding.type.data = NULL;
  if (slot->space == CLV__SPACE_HOST) {
    if (slot->bound != NULL)
      binding.type.data = slot->bound;
    else if (slot->own_host != NULL)
      binding.type.data = slot->own_host;
    else if (slot->size_known && !slot->is_external)
      binding.type.data = (char *)session->memory[CLV__SPACE_HOST].host + slot->offset;
    return binding;
  }
  if (slot->own != NULL) {
    binding.buffer = slot->own;
  } else if (slot->size_known) {
    binding.buffer = session->memory[slot->space].buffer;
    binding.offset_bytes = slot->offset;
  }
  return binding;
}
