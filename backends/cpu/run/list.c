/* See list.h: making, binding and walking a list. What a call of each kind is stands in calls.c. */
#include "list.h"
#include "base/clock.h"

#include <stdlib.h>

#include "executable.h"
#include "stretch.h"

enum { MOST_STEPS = (1 << 25) - 1 };

/* ---- Making. ---- */

clv__cpu_call *clv__cpu_list_append(clv__cpu_list *list, uint32_t step, size_t argument_bytes) {
  const size_t size_bytes = clv__align_up(sizeof(clv__cpu_call) + argument_bytes, sizeof(uint64_t));
  if (size_bytes > UINT32_MAX / 2 || list->size_bytes > UINT32_MAX / 2 || step > MOST_STEPS) return NULL; /* places: 32 bits */
  void *block = list->block;
  const bool room =
      clv__array_reserve(list->allocator, &block, &list->capacity_bytes, list->size_bytes + size_bytes, 1, list->size_bytes);
  list->block = block;
  if (!room) return NULL;
  clv__cpu_call *call = (clv__cpu_call *)(void *)(list->block + list->size_bytes);
  memset(call, 0, size_bytes);
  call->size_bytes = (uint32_t)size_bytes;
  call->step = step & MOST_STEPS;
  call->lane = list->lane & (CLV__CPU_MAX_LANES - 1);
  list->size_bytes += size_bytes;
  return call;
}

static clv_status add_patch(clv__cpu_list *list, clv__cpu_patch patch, clv_error *error) {
  void *patches = list->patches;
  const bool room = clv__array_reserve(list->allocator, &patches, &list->patch_capacity, list->patch_count + 1, sizeof patch,
                                       list->patch_count);
  list->patches = patches;
  if (!room) return clv__error_memory(error, sizeof patch);
  list->patches[list->patch_count++] = patch;
  return CLV_OK;
}

clv_status clv__cpu_list_patch(clv__cpu_list *list, const void *place, uint32_t base, size_t addend, clv_error *error) {
  const uint32_t at = (uint32_t)((const uint8_t *)place - list->block);
  return add_patch(list, (clv__cpu_patch){.base = base, .place = at, .addend = addend}, error);
}

clv_status clv__cpu_list_memory(clv__cpu_list *list, const clv__dnn_layout *layout, size_t size_bytes, uint32_t base,
                                size_t addend, void *data, clv__dnn_memory **memory, clv_error *error) {
  void *memories = list->memories;
  const bool room = clv__array_reserve(list->allocator, &memories, &list->memory_capacity, list->memory_count + 1,
                                       sizeof *list->memories, list->memory_count);
  list->memories = memories;
  *memory = NULL;
  if (!room) return clv__error_memory(error, sizeof *list->memories);
  clv__dnn *dnn = list->plan->device->dnn;
  CLV__TRY(layout != NULL ? clv__dnn_memory_create(dnn, layout, data, memory, error)
                          : clv__dnn_memory_create_bytes(dnn, size_bytes, data, memory, error));
  list->memories[list->memory_count++] = *memory;
  if (data != NULL) return CLV_OK;
  return add_patch(list, (clv__cpu_patch){.base = base, .memory = *memory, .addend = addend}, error);
}

static int by_base(const void *a, const void *b) {
  const clv__cpu_patch *x = a, *y = b;
  if (x->base != y->base) return x->base < y->base ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static void describe_bound(clv__cpu_bound *bound, const clv_tensor *type) {
  bound->type = type;
  bound->element_bytes = clv_dtype_size_bytes(type->dtype);
  (void)clv__tensor_size_bytes(type, &bound->size_bytes);
}

static clv_status move(const clv__cpu_list *list, uint32_t first, uint32_t end, void *base, clv_error *error) {
  for (uint32_t i = first; i < end; ++i) {
    const clv__cpu_patch *patch = &list->patches[i];
    void *address = (uint8_t *)base + patch->addend;
    if (patch->memory != NULL) {
      CLV__TRY(clv__dnn_memory_move(patch->memory, address, error));
    } else {
      memcpy(list->block + patch->place, &address, sizeof address);
    }
  }
  return CLV_OK;
}

/* Sorts the patches and notes where those of each base are; the block does not move any more. */
static clv_status finish(clv__cpu_list *list, clv_error *error) {
  if (list->patch_count > 1) qsort(list->patches, list->patch_count, sizeof *list->patches, by_base);
  uint32_t at = 0;
  const uint32_t count = (uint32_t)list->patch_count;
  while (at < count && list->patches[at].base == CLV__CPU_BASE_MEMORY) ++at;
  list->memory_end = at;
  while (at < count && list->patches[at].base == CLV__CPU_BASE_LIST) ++at;
  list->own_end = at;
  CLV__TRY(move(list, list->memory_end, at, list->block, error));
  for (uint32_t i = 0; i < list->bound_count; ++i) {
    list->bound[i].first_patch = at;
    while (at < count && list->patches[at].base == CLV__CPU_BASE_BINDINGS + i) ++at;
    list->bound[i].end_patch = at;
  }
  return CLV_OK;
}

/* The calls of a stretch: a lane counts its steps by them, so that each is one. */
static clv_status add_stretch(clv__cpu_list *list, const clv__cpu_stretch *stretch, clv_error *error) {
  const size_t begun = list->size_bytes;
  if (clv__cpu_stretch_begin(list, stretch->first, stretch->lane_count) == NULL) return clv__error_memory(error, begun);
  for (uint32_t s = stretch->first; s < stretch->first + stretch->count; ++s) {
    const clv__cpu_step *step = &list->plan->steps[s];
    list->lane = step->lane;
    CLV__TRY(clv__cpu_stretch_wait(list, s, step->waits, step->wait_count, error));
    const size_t before = list->size_bytes;
    CLV__TRY(clv__cpu_calls_add(list, s, error));
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)(list->block + before);
    if (list->size_bytes == before || before + call->size_bytes != list->size_bytes) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "step %u (%s) of a stretch is not one call", s, step->what);
    }
  }
  list->lane = 0;
  clv__cpu_stretch_end(list, begun);
  return CLV_OK;
}

static clv_status fill(clv__cpu_list *list, clv_error *error) {
  const clv__cpu_plan *plan = list->plan;
  const clv__cpu_program *program = plan->program;
  list->bound_count = program->input_count + program->output_count;
  list->bound = clv__allocate_zero(plan->device->allocator, list->bound_count * sizeof *list->bound);
  if (list->bound == NULL) return clv__error_memory(error, list->bound_count * sizeof *list->bound);
  for (uint32_t i = 0; i < program->input_count; ++i) describe_bound(&list->bound[i], &plan->input_types[i]);
  for (uint32_t i = 0; i < program->output_count; ++i) {
    describe_bound(&list->bound[program->input_count + i], &plan->output_types[i]);
  }
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].lane == CLV__CPU_NO_LANE) {
      CLV__TRY(clv__cpu_calls_add(list, s, error));
      continue;
    }
    const clv__cpu_stretch *stretch = &plan->stretches[plan->steps[s].stretch];
    CLV__TRY(add_stretch(list, stretch, error));
    s += stretch->count - 1;
  }
  return finish(list, error);
}

clv_status clv__cpu_list_create(const clv__cpu_plan *plan, const clv__cpu_list *like, clv__cpu_list **list, clv_error *error) {
  const clv_allocator *allocator = plan->device->allocator;
  *list = NULL;
  clv__cpu_list *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  made->plan = plan;
  made->like = like;
  const clv_status status = fill(made, error);
  if (status != CLV_OK) {
    clv__cpu_list_destroy(made);
    return status;
  }
  *list = made;
  return CLV_OK;
}

void clv__cpu_list_destroy(clv__cpu_list *list) {
  if (list == NULL) return;
  const clv_allocator *allocator = list->allocator;
  for (size_t i = 0; i < list->memory_count; ++i) clv__dnn_memory_release(list->memories[i]);
  for (uint32_t i = 0; list->bound != NULL && i < list->bound_count; ++i) clv__release(allocator, list->bound[i].staging);
  clv__release(allocator, list->memories);
  clv__release(allocator, list->bound);
  clv__release(allocator, list->patches);
  if (!list->is_lodger) clv__release(allocator, list->block);
  clv__release(allocator, list);
}

clv_status clv__cpu_list_lodge(clv__cpu_list *list, void *block, clv_error *error) {
  if (list->size_bytes > 0) memcpy(block, list->block, list->size_bytes);
  if (!list->is_lodger) clv__release(list->allocator, list->block);
  list->block = block;
  list->is_lodger = true;
  list->capacity_bytes = 0;
  return move(list, list->memory_end, list->own_end, block, error);
}

size_t clv__cpu_list_bytes(const clv__cpu_list *list) {
  enum { MEMORY_BYTES = 1024 }; /* of one of oneDNN's, about */
  size_t total = sizeof *list + list->capacity_bytes + list->patch_capacity * sizeof *list->patches;
  total += list->bound_count * sizeof *list->bound + list->memory_count * MEMORY_BYTES;
  for (uint32_t i = 0; i < list->bound_count; ++i) total += list->bound[i].staging != NULL ? list->bound[i].size_bytes : 0;
  return total;
}

/* ---- Binding. ---- */

clv_status clv__cpu_list_place(clv__cpu_list *list, void *memory, clv_error *error) {
  if (memory != list->memory) CLV__TRY(move(list, 0, list->memory_end, memory, error));
  list->memory = memory;
  return CLV_OK;
}

static clv_status bind(const clv__cpu_list *list, clv__cpu_bound *bound, void *address, clv_error *error) {
  static uint64_t nothing;
  void *unaligned = NULL;
  if (address == NULL) {
    if (bound->size_bytes > 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "a binding has no memory");
    address = &nothing;
  } else if (bound->element_bytes > 1 && bound->element_bytes <= 8 && (uintptr_t)address % bound->element_bytes != 0) {
    if (bound->staging == NULL) bound->staging = clv__allocate(list->allocator, bound->size_bytes);
    if (bound->staging == NULL) return clv__error_memory(error, bound->size_bytes);
    unaligned = address;
    address = bound->staging;
  }
  bound->unaligned = unaligned;
  if (bound->address == address) return CLV_OK;
  bound->address = NULL;
  CLV__TRY(move(list, bound->first_patch, bound->end_patch, address, error));
  bound->address = address;
  return CLV_OK;
}

clv_status clv__cpu_list_bind(clv__cpu_list *list, clv_execute_args *args, clv_error *error) {
  const clv__cpu_program *program = list->plan->program;
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, the partition has %u and %u",
                          args->input_count, args->output_count, program->input_count, program->output_count);
  }
  for (uint32_t i = 0; i < args->input_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (clv__tensor_same_type(&args->inputs[i].type, bound->type)) continue;
    char given[96], wanted[96];
    clv__tensor_text(&args->inputs[i].type, given, sizeof given);
    clv__tensor_text(bound->type, wanted, sizeof wanted);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is %s, the instance was made for %s",
                          program->values[program->inputs[i]].name, given, wanted);
  }
  for (uint32_t i = 0; i < args->input_count; ++i) {
    CLV__TRY(bind(list, &list->bound[i], clv__cpu_address(&args->inputs[i]), error));
  }
  for (uint32_t i = 0; i < args->output_count; ++i) {
    clv__cpu_bound *bound = &list->bound[args->input_count + i];
    CLV__TRY(clv__cpu_output_place(args, i, bound->type, error));
    CLV__TRY(bind(list, bound, clv__cpu_address(&args->outputs[i]), error));
  }
  return CLV_OK;
}

/* ---- Running. ---- */

clv_status clv__cpu_list_explain(const clv__cpu_list *list, const clv__cpu_call *failed, clv_status status, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[failed->step];
  return clv__error_prefix(error, status, "node '%s' (%s)", step->node != NULL ? step->node->name : "", step->what);
}

clv_status clv__cpu_calls_run(const void *block, size_t size_bytes, const clv__cpu_call **failed, clv_error *error) {
  if (size_bytes == 0) return CLV_OK;
  const uint8_t *at = block, *end = at + size_bytes;
  while (at != end) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)at;
    at += call->size_bytes;
    if (call->is_row) {
      call->function.row((const clv__row *)(const void *)call->arguments);
      continue;
    }
    if (call->is_stretch) {
      CLV__TRY(clv__cpu_stretch_run(call, NULL, NULL, failed, error));
      continue;
    }
    const clv_status status = call->function.run(call, error);
    if (status != CLV_OK) {
      *failed = call;
      return status;
    }
  }
  return CLV_OK;
}

static clv_status run_calls(const clv__cpu_list *list, clv_error *error) {
  const clv__cpu_call *failed;
  const clv_status status = clv__cpu_calls_run(list->block, list->size_bytes, &failed, error);
  return status == CLV_OK ? CLV_OK : clv__cpu_list_explain(list, failed, status, error);
}

static clv_status run_timed(const clv__cpu_list *list, clv_error *error) {
  for (size_t at = 0; at < list->size_bytes;) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)(list->block + at);
    clv_status status = CLV_OK;
    at += call->size_bytes;
    if (call->is_stretch) {
      const clv__cpu_call *failed;
      status = clv__cpu_stretch_run(call, list->step_ns, list->step_ns + list->plan->step_count + 1, &failed, error);
      if (status != CLV_OK) return clv__cpu_list_explain(list, failed, status, error);
      continue;
    }
    const uint64_t begin = clv__clock_ns();
    if (call->is_row)
      call->function.row((const clv__row *)(const void *)call->arguments);
    else
      status = call->function.run(call, error);
    list->step_ns[call->step] += clv__clock_ns() - begin;
    if (status != CLV_OK) return clv__cpu_list_explain(list, call, status, error);
  }
  return CLV_OK;
}

bool clv__cpu_list_is_plain(const clv__cpu_list *list) {
  for (uint32_t i = 0; i < list->bound_count; ++i) {
    if (list->bound[i].unaligned != NULL) return false;
  }
  return list->step_ns == NULL;
}

clv_status clv__cpu_list_run(clv__cpu_list *list, clv_error *error) {
  const uint32_t input_count = list->plan->program->input_count;
  for (uint32_t i = 0; i < input_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (bound->unaligned != NULL) memcpy(bound->staging, bound->unaligned, bound->size_bytes);
  }
  CLV__TRY(list->step_ns != NULL ? run_timed(list, error) : run_calls(list, error));
  for (uint32_t i = input_count; i < list->bound_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (bound->unaligned != NULL) memcpy(bound->unaligned, bound->staging, bound->size_bytes);
  }
  return CLV_OK;
}
