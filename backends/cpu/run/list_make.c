/* Creates a launch list from a plan: the calls of its steps, and one call per stretch. calls.c defines the calls of each kind. */
#include "stretch.h"

static void describe_bound(clv__cpu_bound *bound, const clv_tensor *type) {
  bound->type = type;
  bound->element_bytes = clv_dtype_size_bytes(type->dtype);
  (void)clv__tensor_size_bytes(type, &bound->size_bytes);
}

/* Adds the calls of a stretch. A lane counts completed steps by calls, so each step must be exactly one call. */
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
