/* Creates a launch list from a plan: the calls of its steps. calls.c defines the calls of each kind. */
#include "list.h"

static void describe_bound(clv__cpu_bound *bound, const clv_tensor *type) {
  bound->type = type;
  bound->element_bytes = clv_dtype_size_bytes(type->dtype);
  (void)clv__tensor_size_bytes(type, &bound->size_bytes);
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
  for (uint32_t s = 0; s < plan->step_count; ++s) CLV__TRY(clv__cpu_calls_add(list, s, error));
  return clv__cpu_list_seal(list, error);
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
