/* See list.h: the block of calls, its patches and its bindings. list_run.c runs a list. */
#include "list.h"

#include <stdlib.h>

#include "executable.h"

enum { MOST_STEPS = (1 << 25) - 1 };

/* ---- Adding calls. ---- */

clv__cpu_call *clv__cpu_list_append(clv__cpu_list *list, uint32_t step, size_t argument_bytes) {
  const size_t size_bytes = clv__align_up(sizeof(clv__cpu_call) + argument_bytes, sizeof(uint64_t));
  if (size_bytes > UINT32_MAX / 2 || list->size_bytes > UINT32_MAX / 2 || step > MOST_STEPS)
    return NULL; /* offsets in the block have 32 bits */
  void *block = list->block;
  const bool room =
      clv__array_reserve(list->allocator, &block, &list->capacity_bytes, list->size_bytes + size_bytes, 1, list->size_bytes);
  list->block = block;
  if (!room) return NULL;
  clv__cpu_call *call = (clv__cpu_call *)(void *)(list->block + list->size_bytes);
  memset(call, 0, size_bytes);
  call->size_bytes = (uint32_t)size_bytes;
  call->step = step & MOST_STEPS;
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
  clv__dnn *dnn = list->variant->device->dnn;
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

clv_status clv__cpu_list_seal(clv__cpu_list *list, clv_error *error) {
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
  enum { MEMORY_BYTES = 1024 }; /* approximate size of a oneDNN memory */
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
    if (bound->size_bytes > 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "an input or output is bound without memory");
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
  const clv__cpu_program *program = list->variant->program;
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the partition has %u and %u",
                          args->input_count, args->output_count, program->input_count, program->output_count);
  }
  for (uint32_t i = 0; i < args->input_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (clv__tensor_same_type(&args->inputs[i].type, bound->type)) continue;
    char given[96], wanted[96];
    clv__tensor_text(&args->inputs[i].type, given, sizeof given);
    clv__tensor_text(bound->type, wanted, sizeof wanted);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is %s, but the instance was created for %s",
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

bool clv__cpu_list_is_plain(const clv__cpu_list *list) {
  for (uint32_t i = 0; i < list->bound_count; ++i) {
    if (list->bound[i].unaligned != NULL) return false;
  }
  return list->step_ns == NULL;
}

/* ---- A complete list. ---- */

static void describe_bound(clv__cpu_bound *bound, const clv_tensor *type) {
  bound->type = type;
  bound->element_bytes = clv_dtype_size_bytes(type->dtype);
  (void)clv__tensor_size_bytes(type, &bound->size_bytes);
}

static clv_status fill(clv__cpu_list *list, clv_error *error) {
  const clv__cpu_variant *variant = list->variant;
  const clv__cpu_program *program = variant->program;
  list->bound_count = program->input_count + program->output_count;
  list->bound = clv__allocate_zero(variant->device->allocator, list->bound_count * sizeof *list->bound);
  if (list->bound == NULL) return clv__error_memory(error, list->bound_count * sizeof *list->bound);
  for (uint32_t i = 0; i < program->input_count; ++i) describe_bound(&list->bound[i], &variant->input_types[i]);
  for (uint32_t i = 0; i < program->output_count; ++i) {
    describe_bound(&list->bound[program->input_count + i], &variant->output_types[i]);
  }
  for (uint32_t s = 0; s < variant->step_count; ++s) CLV__TRY(clv__cpu_calls_add(list, s, error));
  return clv__cpu_list_seal(list, error);
}

clv_status clv__cpu_list_create(const clv__cpu_variant *variant, const clv__cpu_list *like, clv__cpu_list **list,
                                clv_error *error) {
  const clv_allocator *allocator = variant->device->allocator;
  *list = NULL;
  clv__cpu_list *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  made->variant = variant;
  made->like = like;
  const clv_status status = fill(made, error);
  if (status != CLV_OK) {
    clv__cpu_list_destroy(made);
    return status;
  }
  *list = made;
  return CLV_OK;
}
