/* Reports an instance's steps to the host: their times, and the nodes that each of them computes. Passes may have moved work from
 * one node to another. */
#include "executable.h"

/* ---- Timing. ---- */

clv_status clv__cpu_instance_walk(clv_instance *instance, clv_execute_args *args, const clv__stop *stop, clv_error *error) {
  uint64_t *node_ns = instance->is_timed ? instance->node_ns : NULL;
  CLV__TRY(clv__cpu_dynamic_execute(instance->executable, args, node_ns, stop, error));
  if (node_ns != NULL) node_ns[instance->executable->program.node_count]++;
  return CLV_OK;
}

clv_status clv__cpu_instance_time_steps(clv_device *device, clv_instance *instance, bool on, clv_error *error) {
  if (instance->run != NULL) return clv__cpu_run_time(instance->run, on, error);
  const size_t size_bytes = ((size_t)instance->executable->program.node_count + 1) * sizeof *instance->node_ns;
  if (on && instance->node_ns == NULL) instance->node_ns = clv__allocate(device->allocator, size_bytes);
  if (on && instance->node_ns == NULL) return clv__error_memory(error, size_bytes);
  if (on) memset(instance->node_ns, 0, size_bytes);
  instance->is_timed = on;
  return CLV_OK;
}

/* ---- Which nodes a step computes. ---- */

typedef struct survey {
  const clv__cpu_variant *variant;
  uint32_t *home;  /* indexed by node: the variant node that computes it, or NONE */
  uint32_t *main;  /* indexed by variant node: its main step, which computes the result, or NONE */
  uint32_t *owner; /* indexed by step: the variant node whose main step it is, or NONE */
  uint32_t *nodes; /* room for the indices of the nodes of one step */
} survey;

static uint32_t node_index(const clv__cpu_variant *variant, const clv__cpu_node *node) {
  return (uint32_t)(node - variant->program->nodes);
}

/* Whether every used output is known in advance, so that nothing runs for the node. */
static bool is_known(const clv__cpu_variant *variant, const clv__cpu_node *node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV__CPU_NONE && !variant->values[node->outputs[i]].is_constant) return false;
  }
  return true;
}

/* Returns of[v] for the first output v of the node for which of[v] is not CLV__CPU_NONE; CLV__CPU_NONE if there is none. */
static uint32_t first_of(const clv__cpu_node *node, const uint32_t *of) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV__CPU_NONE && of[node->outputs[i]] != CLV__CPU_NONE) return of[node->outputs[i]];
  }
  return CLV__CPU_NONE;
}

/* Assigns each node to a variant node, the first of these three that exists: the variant node that computes the node's output
 * now; the variant node whose source is the node; the variant node of the first reader of the node's output. The last rule
 * holds because passes move work forward, from makers to readers. `makers` and `readers` have room for one number per value. */
static void find_homes(survey *s, uint32_t *makers, uint32_t *readers) {
  const clv__cpu_program *program = s->variant->program;
  for (uint32_t n = 0; n < program->node_count; ++n) s->home[n] = CLV__CPU_NONE;
  for (uint32_t v = 0; v < s->variant->value_count; ++v) makers[v] = readers[v] = CLV__CPU_NONE;
  for (uint32_t p = 0; p < s->variant->node_count; ++p) {
    const clv__cpu_variant_node *node = &s->variant->nodes[p];
    if (node->dead) continue;
    s->home[node_index(s->variant, node->source)] = p;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != CLV__CPU_NONE) makers[node->outputs[i]] = p;
    }
  }
  for (uint32_t n = program->node_count; n-- > 0;) {
    const clv__cpu_node *node = &program->nodes[n];
    if (is_known(s->variant, node)) continue;
    const uint32_t maker = first_of(node, makers);
    if (maker != CLV__CPU_NONE) s->home[n] = maker;
    if (s->home[n] == CLV__CPU_NONE) s->home[n] = first_of(node, readers);
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV__CPU_NONE) readers[node->inputs[i]] = s->home[n];
    }
  }
}

/* Whether the step only prepares operands for the node's main step. */
static bool is_mover(const clv__cpu_step *step) {
  static const char *const words[] = {"reorder", "copy", "frame", "windows"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    if (strcmp(step->what, words[i]) == 0) return true;
  }
  return false;
}

static void find_steps(survey *s) {
  for (uint32_t p = 0; p < s->variant->node_count; ++p) s->main[p] = CLV__CPU_NONE;
  for (uint32_t i = 0; i < s->variant->step_count; ++i) {
    const clv__cpu_step *step = &s->variant->steps[i];
    s->owner[i] = CLV__CPU_NONE;
    if (step->node == NULL || is_mover(step)) continue;
    const uint32_t p = s->home[node_index(s->variant, step->node)];
    if (p == CLV__CPU_NONE || s->main[p] != CLV__CPU_NONE) continue; /* an additional step of the node */
    s->main[p] = i;
    s->owner[i] = p;
  }
}

static uint64_t step_bytes(const clv__cpu_variant *variant, const clv__cpu_step *step) {
  uint64_t size_bytes = 0;
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    if (step->operands[i].slot != CLV__CPU_NONE) size_bytes += variant->slots[step->operands[i].slot].size_bytes;
  }
  return size_bytes;
}

static const char *implementation(const clv__cpu_step *step) {
  static const char *const words[] = {[CLV__CPU_STEP_KERNEL] = "kernel",   [CLV__CPU_STEP_PRIMITIVE] = "primitive",
                                      [CLV__CPU_STEP_COPY] = "copy",       [CLV__CPU_STEP_ROW] = "row",
                                      [CLV__CPU_STEP_SMALL] = "small",     [CLV__CPU_STEP_ELEMENTWISE] = "elementwise",
                                      [CLV__CPU_STEP_CONVERT] = "convert", [CLV__CPU_STEP_OWN] = "own"};
  if (step->primitive != NULL && step->primitive->implementation != NULL) return step->primitive->implementation;
  return words[step->kind];
}

/* Groups the nodes by the variant node that computes them, ascending. The nodes of variant node p are the elements of `order`
 * from offsets[p + 1] up to, but not including, offsets[p + 2]. */
static void group(const survey *s, uint32_t *offsets, uint32_t *order) {
  const uint32_t node_count = s->variant->program->node_count;
  for (uint32_t n = 0; n < node_count; ++n) {
    if (s->home[n] != CLV__CPU_NONE) offsets[s->home[n] + 1]++;
  }
  for (uint32_t p = 0; p < s->variant->node_count; ++p) offsets[p + 1] += offsets[p];
  offsets[s->variant->node_count + 1] = offsets[s->variant->node_count];
  for (uint32_t n = node_count; n-- > 0;) {
    if (s->home[n] != CLV__CPU_NONE) order[--offsets[s->home[n] + 1]] = n;
  }
}

static clv_status tell_planned(const clv_instance *instance, clv__arena *arena, clv_step_fn found, void *cookie,
                               clv_error *error) {
  const clv__cpu_variant *variant = instance->run->variant;
  const clv__cpu_program *program = variant->program;
  survey s = {.variant = variant,
              .home = clv__arena_allocate_zero(arena, program->node_count, sizeof *s.home),
              .main = clv__arena_allocate_zero(arena, variant->node_count, sizeof *s.main),
              .owner = clv__arena_allocate_zero(arena, variant->step_count, sizeof *s.owner),
              .nodes = clv__arena_allocate_zero(arena, program->node_count, sizeof *s.nodes)};
  uint32_t *makers = clv__arena_allocate_zero(arena, variant->value_count, sizeof *makers);
  uint32_t *readers = clv__arena_allocate_zero(arena, variant->value_count, sizeof *readers);
  uint32_t *offsets = clv__arena_allocate_zero(arena, (size_t)variant->node_count + 2, sizeof *offsets);
  if (s.home == NULL || s.main == NULL || s.owner == NULL || s.nodes == NULL || makers == NULL || readers == NULL ||
      offsets == NULL) {
    return clv__error_memory(error, (size_t)program->node_count * sizeof *s.home);
  }
  find_homes(&s, makers, readers);
  find_steps(&s);
  group(&s, offsets, s.nodes);
  for (uint32_t i = 0; i < variant->step_count; ++i) {
    const clv__cpu_step *step = &variant->steps[i];
    const uint32_t p = s.owner[i];
    const clv_step_info info = {.struct_size = sizeof info,
                                .node_count = p != CLV__CPU_NONE ? offsets[p + 2] - offsets[p + 1] : 0,
                                .nodes = p != CLV__CPU_NONE ? s.nodes + offsets[p + 1] : NULL,
                                .beside = step->node != NULL ? node_index(variant, step->node) : CLV_NO_VALUE,
                                .what = step->what,
                                .implementation = implementation(step),
                                .size_bytes = step_bytes(variant, step),
                                .time_ns = instance->run->step_ns[i],
                                .executions = instance->run->executions};
    CLV__TRY(found(cookie, &info));
  }
  return CLV_OK;
}

static clv_status tell_walked(const clv_instance *instance, clv_step_fn found, void *cookie) {
  const clv__cpu_program *program = &instance->executable->program;
  for (uint32_t n = 0; n < program->node_count; ++n) {
    const clv_step_info info = {.struct_size = sizeof info,
                                .node_count = 1,
                                .nodes = &n,
                                .beside = n,
                                .what = program->nodes[n].op,
                                .implementation = "node by node",
                                .time_ns = instance->node_ns[n],
                                .executions = instance->node_ns[program->node_count]};
    CLV__TRY(found(cookie, &info));
  }
  return CLV_OK;
}

clv_status clv__cpu_instance_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie,
                                   clv_error *error) {
  if (instance->run != NULL ? instance->run->step_ns == NULL : instance->node_ns == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the instance was never timed: call instance_time_steps() first");
  }
  if (instance->run == NULL) return tell_walked(instance, found, cookie);
  clv__arena arena;
  clv__arena_init(&arena, device->allocator);
  const clv_status status = tell_planned(instance, &arena, found, cookie, error);
  clv__arena_finish(&arena);
  return status;
}
