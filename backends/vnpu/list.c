/* Command lists: see list.h. */
#include "list.h"

#include "base/error.h"

clv_status clv__vnpu_operand_reach(const clv_executable *program, uint32_t value, uint64_t address, uint64_t size_bytes,
                                   void **data, clv_error *error) {
  clv_status status = clv__vnpu_space_reach(program->device->space, address, size_bytes, data, error);
  if (status == CLV_OK) return status;
  if (value == CLV_NO_VALUE) return clv__error_prefix(error, status, "scratch of the kernel");
  return clv__error_prefix(error, status, "'%s'", clv__vnpu_value_name(program, value));
}

/* ---- Bindings ---- */

static clv_status refuse_room(const clv_executable *program, const clv_binding *binding, uint32_t value, uint64_t size_bytes,
                              clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s': %llu bytes at offset %llu do not fit its buffer of %llu bytes",
                        clv__vnpu_value_name(program, value), (unsigned long long)size_bytes,
                        (unsigned long long)binding->offset_bytes, (unsigned long long)binding->buffer->size_bytes);
}

clv_status clv__vnpu_binding_resolve(const clv__vnpu_list *list, const clv_binding *binding, uint32_t value,
                                     clv__vnpu_operand_at *at, clv_error *error) {
  const clv_executable *p = list->program;
  size_t size_bytes;
  *at = (clv__vnpu_operand_at){.type = binding->type};
  at->type.data = NULL;
  if (!clv__tensor_size_bytes(&binding->type, &size_bytes)) {
    char text[100];
    clv__tensor_text(&binding->type, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound as %s, whose size is unknown or too large",
                          clv__vnpu_value_name(p, value), text);
  }
  at->size_bytes = size_bytes;
  if (binding->buffer != NULL) {
    uint64_t there = binding->buffer->size_bytes;
    if (binding->offset_bytes > there || size_bytes > there - binding->offset_bytes)
      return refuse_room(p, binding, value, size_bytes, error);
    at->address = binding->buffer->address + binding->offset_bytes;
  } else if (size_bytes > 0) {
    if (!clv__vnpu_space_is_host(list->space) || binding->type.data == NULL) {
      return clv__error_set(
          error, CLV_INVALID_ARGUMENT,
          "'%s' is bound to no memory that the device can reach: copy the data to a buffer of the device, and bind that",
          clv__vnpu_value_name(p, value));
    }
    at->address = (uint64_t)(uintptr_t)binding->type.data;
  }
  size_t element = clv_dtype_size_bytes(binding->type.dtype);
  void *data; /* ignored: the call only checks the address */
  CLV__TRY(clv__vnpu_operand_reach(p, value, at->address, size_bytes, &data, error));
  /* The call above checks the alignment of device addresses, but not of host addresses. */
  if (element > 0 && at->address % element != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "'%s' is bound at address 0x%llx, which is not a multiple of its element size of %zu bytes",
                          clv__vnpu_value_name(p, value), (unsigned long long)at->address, element);
  }
  return CLV_OK;
}

static clv_status check_type(const clv_executable *p, uint32_t value, bool output, const clv_tensor *given, clv_error *error) {
  const clv_tensor *compiled = &p->types[value];
  bool fits = p->is_static ? clv__tensor_same_type(given, compiled) : output || given->dtype == compiled->dtype;
  if (fits) return CLV_OK;
  char a[100], b[100];
  clv__tensor_text(given, a, sizeof a);
  clv__tensor_text(compiled, b, sizeof b);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound as %s, but the program was compiled for %s",
                        clv__vnpu_value_name(p, value), a, b);
}

clv_status clv__vnpu_output_allocate(const clv_execute_args *args, uint32_t index, const clv_tensor *type, clv_error *error) {
  clv_binding *binding = &args->outputs[index];
  CLV__TRY(args->allocate_output(args->cookie, index, type, binding, error));
  void *data = binding->type.data;
  binding->type = *type;
  binding->type.data = data;
  return CLV_OK;
}

/* Finds the memory of binding `index` of an execution. Inputs come first, then outputs. */
static clv_status resolve(const clv__vnpu_list *list, const clv_execute_args *args, uint32_t index, clv__vnpu_operand_at *at,
                          clv_error *error) {
  const clv_executable *p = list->program;
  bool output = index >= p->input_count;
  const clv_binding *binding = output ? &args->outputs[index - p->input_count] : &args->inputs[index];
  uint32_t value = output ? p->outputs[index - p->input_count] : p->inputs[index];
  if (output && binding->type.rank < 0) {
    if (args->allocate_output == NULL) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' has no memory, and there is no allocate_output()",
                            clv__vnpu_value_name(p, value));
    }
    if (!p->is_static) {
      *at = (clv__vnpu_operand_at){.type = binding->type, .waits = true};
      at->type.data = NULL;
      return CLV_OK;
    }
    CLV__TRY(clv__vnpu_output_allocate(args, index - p->input_count, &p->types[value], error));
  }
  CLV__TRY(clv__vnpu_binding_resolve(list, binding, value, at, error));
  return check_type(p, value, output, &binding->type, error);
}

static clv_status check_counts(const clv_executable *p, const clv_execute_args *args, clv_error *error) {
  if (args->input_count == p->input_count && args->output_count == p->output_count) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the program has %u and %u",
                        args->input_count, args->output_count, p->input_count, p->output_count);
}

clv_status clv__vnpu_list_bind(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error) {
  const clv_executable *p = list->program;
  CLV__TRY(check_counts(p, args, error));
  for (uint32_t i = 0; i < p->input_count + p->output_count; ++i) CLV__TRY(resolve(list, args, i, &list->bindings[i], error));
  return CLV_OK;
}

/* ---- Writing ---- */

clv_status clv__vnpu_list_init(clv__vnpu_list *list, clv__arena *arena, clv_error *error) {
  const clv_executable *p = list->program;
  size_t bindings = (size_t)p->input_count + p->output_count;
  list->bindings = clv__arena_allocate_zero(arena, bindings, sizeof *list->bindings);
  list->addresses = clv__arena_allocate_zero(arena, p->operand_count, sizeof *list->addresses);
  if (list->bindings != NULL && list->addresses != NULL) return CLV_OK;
  return clv__error_memory(error, bindings * sizeof *list->bindings + p->operand_count * sizeof *list->addresses);
}

static uint64_t address_of(const clv__vnpu_list *list, uint32_t value) {
  const clv_executable *p = list->program;
  const clv__vnpu_location *at = &p->locations[value];
  switch (at->kind) {
    case CLV__VNPU_INPUT:
      return list->bindings[at->index].address;
    case CLV__VNPU_OUTPUT:
      return list->bindings[p->input_count + at->index].address;
    case CLV__VNPU_WEIGHT:
      return list->weights[at->index];
    case CLV__VNPU_CONSTANT:
      return p->constants + at->offset;
    case CLV__VNPU_SCRATCH:
      return list->scratch + at->offset;
    case CLV__VNPU_NOWHERE:
      break;
  }
  return 0;
}

/* Writes the address of `value` at `position` of the list, and checks it. If `value` is CLV_NO_VALUE, it is the address of a
 * kernel's scratch. */
static clv_status set_address(clv__vnpu_list *list, uint32_t position, uint32_t value, uint64_t address, uint64_t size_bytes,
                              clv_error *error) {
  list->addresses[position] = address;
  void *data; /* ignored: the call only checks the address */
  return clv__vnpu_operand_reach(list->program, value, address, size_bytes, &data, error);
}

static clv_status write_instruction(clv__vnpu_list *list, const clv__vnpu_instruction *instruction, clv_error *error) {
  const clv_executable *p = list->program;
  const clv_node_info *node = &instruction->node;
  uint32_t at = instruction->first_operand;
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i, ++at) {
    uint32_t v = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (v == CLV_NO_VALUE)
      list->addresses[at] = 0;
    else
      CLV__TRY(set_address(list, at, v, address_of(list, v), p->sizes[v], error));
  }
  if (instruction->scratch_bytes == 0) return CLV_OK;
  const uint64_t scratch = list->scratch + instruction->scratch_offset;
  return set_address(list, at, CLV_NO_VALUE, scratch, instruction->scratch_bytes, error);
}

clv_status clv__vnpu_list_write(clv__vnpu_list *list, uint64_t scratch, clv_error *error) {
  const clv_executable *p = list->program;
  list->scratch = scratch;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv_status status = write_instruction(list, &p->instructions[n], error);
    if (status == CLV_OK) continue;
    const clv_node_info *node = &p->instructions[n].node;
    return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  }
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    uint32_t v = p->copies[c].value, position = p->first_copy + 2 * c;
    uint64_t to = list->bindings[p->input_count + p->copies[c].output].address;
    CLV__TRY(set_address(list, position, v, address_of(list, v), p->sizes[v], error));
    CLV__TRY(set_address(list, position + 1, v, to, p->sizes[v], error));
  }
  return CLV_OK;
}

clv_status clv__vnpu_list_patch(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error) {
  const clv_executable *p = list->program;
  CLV__TRY(check_counts(p, args, error));
  for (uint32_t b = 0; b < p->input_count + p->output_count; ++b) {
    clv__vnpu_operand_at at;
    CLV__TRY(resolve(list, args, b, &at, error));
  }
  for (uint32_t b = 0; b < p->input_count + p->output_count; ++b) {
    clv__vnpu_operand_at at;
    CLV__TRY(resolve(list, args, b, &at, error)); /* cannot fail: the same call succeeded above */
    if (at.address == list->bindings[b].address) continue;
    list->bindings[b] = at;
    for (uint32_t u = p->use_starts[b]; u < p->use_starts[b + 1]; ++u) list->addresses[p->uses[u]] = at.address;
  }
  return CLV_OK;
}
