/* See compile.h. */
#include "compile/compile.h"

#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

const char *clv__source_word(clv__source source) {
  static const char *const words[] = {"memory", "disk", "compiled", "not kept"};
  return words[source];
}

static clv_status get_weights(clv__program *program, uint32_t device, const clv_graph_view *view, clv__arena *arena,
                              clv__compiled *compiled, clv_error *error) {
  uint32_t count = compiled->info.weight_count;
  compiled->weights = clv__arena_allocate_zero(arena, count, sizeof *compiled->weights);
  compiled->weight_uses = clv__arena_allocate_zero(arena, count, sizeof *compiled->weight_uses);
  if (compiled->weights == NULL || compiled->weight_uses == NULL) {
    compiled->weight_uses = NULL;
    return clv__error_memory(error, count * sizeof *compiled->weight_uses);
  }
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value = compiled->use->of->weights[i];
    const clv_tensor *data = clv__view_type(view, value);
    const char *name = view->graph->values[view->values[value]].name;
    size_t size_bytes = 0;
    bool uploaded;
    clv_status status = clv__share_weight(program->share, device, name, data, &compiled->weight_uses[i], &uploaded, error);
    if (status != CLV_OK) {
      program->failed_device = device;
      return status;
    }
    compiled->weights[i] = compiled->weight_uses[i].of->weight;
    (void)clv__tensor_size_bytes(data, &size_bytes);
    if (uploaded) {
      program->counters.uploaded_bytes += size_bytes;
      clv__context_host(program->plan->devices->context)->constant_copied(view, value);
    } else {
      program->counters.shared_bytes += size_bytes;
    }
  }
  return CLV_OK;
}

static void count_source(clv__program_counters *counters, const clv__origin *origin) {
  uint32_t *const by_source[] = {&counters->from_memory, &counters->from_disk, &counters->compiled, &counters->not_kept};
  ++*by_source[origin->source];
  counters->executables_ms += origin->ms;
}

static clv_status compile_locked(clv__program *program, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                 clv__compiled *compiled, clv_error *error) {
  clv_devices *devices = program->plan->devices;
  uint32_t device = program->plan->partitions[partition].device;
  bool by_device = devices->items[device].is_lost;
  double start = now_ms();
  clv_status status = clv__device_check(&devices->items[device], error);
  if (status == CLV_OK) {
    status = clv__executable_obtain(program->share, devices, device, view, &program->options, arena, &compiled->use,
                                    &compiled->origin, &by_device, error);
  }
  if (by_device) program->failed_device = device;
  if (status != CLV_OK) return status;
  double obtained = now_ms();
  compiled->origin.ms = obtained - start;
  count_source(&program->counters, &compiled->origin);
  compiled->executable = compiled->use->of->executable;
  compiled->info = compiled->use->of->info;
  static const char *const ways[] = {"found in memory", "loaded from disk", "compiled and kept", "compiled"};
  clv__context_log(devices->context, 3, "partition %u on %s: %s, %.1f ms%s%s", partition, devices->items[device].name,
                   ways[compiled->origin.source], compiled->origin.ms, compiled->origin.reason[0] != '\0' ? ": " : "",
                   compiled->origin.reason);
  status = get_weights(program, device, view, arena, compiled, error);
  program->uploaded_bytes = program->counters.uploaded_bytes;
  program->counters.weights_ms += now_ms() - obtained;
  return status;
}

clv_status clv__program_compile(clv__program *program, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                clv__compiled *compiled, clv_error *error) {
  *compiled = (clv__compiled){0};
  clv_devices *devices = program->plan->devices;
  clv__devices_lock(devices);
  clv_status status = compile_locked(program, partition, view, arena, compiled, error);
  if (status != CLV_OK) {
    clv__program_drop(program, partition, compiled);
    clv__error_prefix(error, status, "partition %u on %s: compile", partition,
                      devices->items[program->plan->partitions[partition].device].name);
  }
  clv__devices_unlock(devices);
  return status;
}

void clv__program_drop(clv__program *program, uint32_t partition, clv__compiled *compiled) {
  (void)partition;
  if (program->plan == NULL) return;
  clv__devices_lock(program->plan->devices);
  for (uint32_t i = 0; compiled->weight_uses != NULL && i < compiled->info.weight_count; ++i) {
    clv__share_drop_weight(program->share, &compiled->weight_uses[i]);
  }
  clv__share_drop(program->share, compiled->use);
  clv__devices_unlock(program->plan->devices);
  *compiled = (clv__compiled){0};
}

clv_status clv__program_init(const clv_plan *plan, const clv_compile_options *options, clv__program *program, clv_error *error) {
  *program = (clv__program){.plan = plan, .options = *options, .failed_device = CLV__NO_ID};
  clv__arena_init(&program->arena, plan->graph->allocator);
  clv__devices_lock(plan->devices);
  clv_status status = clv__share_get(plan->devices, &program->share, error);
  if (status == CLV_OK) {
    program->partitions = clv__arena_allocate_zero(&program->arena, plan->partition_count, sizeof *program->partitions);
    if (program->partitions == NULL) status = clv__error_memory(error, plan->partition_count * sizeof *program->partitions);
  }
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    status = clv__program_compile(program, p, clv__partition_sized(&plan->partitions[p]), &program->arena,
                                  &program->partitions[p], error);
  }
  clv__devices_unlock(plan->devices);
  if (status != CLV_OK) clv__program_finish(program);
  return status;
}

void clv__program_finish(clv__program *program) {
  if (program->plan == NULL) return;
  for (uint32_t p = program->plan->partition_count; program->partitions != NULL && p-- > 0;) {
    clv__program_drop(program, p, &program->partitions[p]);
  }
  clv__arena_finish(&program->arena);
  *program = (clv__program){.failed_device = program->failed_device};
}
