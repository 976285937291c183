/* See compile.h. */
#include "compile/compile.h"
#include "base/clock.h"

#include <string.h>

static double now_ms(void) {
  return (double)clv__clock_ns() / 1e6;
}

const char *clv__source_word(clv__source source) {
  static const char *const words[] = {"memory", "folder", "disk", "compiled", "not kept", "hosted"};
  return words[source];
}

static clv_status get_weights(clv__executables *all, uint32_t device, const clv_graph_view *view, clv__arena *arena,
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
    bool uploaded, by_device;
    clv_status status =
        clv__share_weight(all->share, device, view->graph, name, data, &compiled->weight_uses[i], &uploaded, &by_device, error);
    if (status != CLV_OK) {
      if (by_device) all->failed_device = device;
      return status;
    }
    compiled->weights[i] = compiled->weight_uses[i].of->weight;
    (void)clv__tensor_size_bytes(data, &size_bytes);
    if (uploaded) {
      all->counters.uploaded_bytes += size_bytes;
      clv__context_host(all->plan->devices->context)->constant_copied(view, value);
    } else {
      all->counters.shared_bytes += size_bytes;
    }
  }
  return CLV_OK;
}

static void count_source(clv__executables_counters *counters, const clv__origin *origin) {
  uint32_t *const by_source[] = {&counters->from_memory, &counters->from_folder, &counters->from_disk, &counters->compiled,
                                 &counters->not_kept};
  ++*by_source[origin->source];
  counters->executables_ms += origin->ms;
}

/* A partition in progress. Its executable is obtained, perhaps finished together with others, and cached; then its weights are
 * uploaded. */
typedef struct work {
  uint32_t partition, device;
  const clv_graph_view *view;
  clv__compiled *compiled;
} work;

static clv_status add_context(const clv__executables *all, const work *w, clv_status status, clv_error *error) {
  return clv__error_prefix(error, status, "partition %u on %s", w->partition, all->plan->devices->items[w->device].name);
}

static clv_status obtain(clv__executables *all, work *w, clv__arena *arena, clv_error *error) {
  clv_devices *devices = all->plan->devices;
  clv__compiled *compiled = w->compiled;
  double start = now_ms();
  clv_status status = clv__device_check(&devices->items[w->device], error); /* else cached files would seem to be rejected */
  bool by_device = status != CLV_OK;
  if (status == CLV_OK) {
    status = clv__executable_obtain(all, w->partition, w->view, arena, &compiled->use, &compiled->origin, &by_device, error);
  }
  if (by_device) all->failed_device = w->device, all->failed_partition = w->partition;
  if (status != CLV_OK) return add_context(all, w, status, error);
  compiled->origin.ms = now_ms() - start;
  compiled->view = w->view;
  compiled->executable = compiled->use->of->executable;
  compiled->info = compiled->use->of->info;
  return CLV_OK;
}

/* Caches and counts the executable, and uploads its weights. */
static clv_status keep_and_upload(clv__executables *all, work *w, clv__arena *arena, clv_error *error) {
  clv_devices *devices = all->plan->devices;
  clv__compiled *compiled = w->compiled;
  double start = now_ms();
  CLV__TRY(clv__graph_check_files(w->view->graph, error)); /* the executable must not be kept under the key of other weights */
  if (compiled->origin.is_to_be_kept) {
    clv__executable_keep(devices, w->view, compiled->use->of, &compiled->origin);
    if (compiled->origin.source != CLV__SOURCE_COMPILED)
      clv__context_log(devices->context, 1, "cache: partition %u on %s: %s", w->partition, devices->items[w->device].name,
                       compiled->origin.reason);
  }
  double kept = now_ms();
  compiled->origin.ms += kept - start;
  count_source(&all->counters, &compiled->origin);
  static const char *const ways[] = {"found in memory", "loaded from the compiled directory", "loaded from disk",
                                     "compiled and kept", "compiled"};
  clv__context_log(devices->context, 3, "partition %u on %s: %s, %.1f ms%s%s", w->partition, devices->items[w->device].name,
                   ways[compiled->origin.source], compiled->origin.ms, compiled->origin.reason[0] != '\0' ? ": " : "",
                   compiled->origin.reason);
  clv_status status = get_weights(all, w->device, w->view, arena, compiled, error);
  all->uploaded_bytes = all->counters.uploaded_bytes;
  all->counters.weights_ms += now_ms() - kept;
  return status == CLV_OK ? CLV_OK : add_context(all, w, status, error);
}

/* ---- Devices that build all executables at once: those with finish() ---- */

static bool is_new(const work *w, uint32_t device) {
  return w->device == device && w->compiled->use != NULL && w->compiled->origin.source != CLV__SOURCE_MEMORY;
}

/* Asks for the executable's description again, because finish() may change how much memory the executable holds. finish() must
 * not change the number of weights. */
static clv_status ask_again(const clv__device *device, clv__compiled *compiled, clv_error *error) {
  clv__shared_executable *e = compiled->use->of;
  clv_executable_info info = {.struct_size = sizeof info};
  device->backend->executable_info(device->handle, e->executable, &info);
  if (info.weight_count != e->info.weight_count) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "finish() changed the number of weights of an executable, from %u to %u",
                          e->info.weight_count, info.weight_count);
  }
  e->info = info;
  return CLV_OK;
}

/* Adds the device and its new partitions, the first and the last of them, to an error of finish(). */
static clv_status finish_failed(const clv__executables *all, uint32_t d, const work *list, uint32_t count, clv_status status,
                                clv_error *error) {
  const char *device = all->plan->devices->items[d].name;
  uint32_t first = CLV__NO_ID, last = CLV__NO_ID;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_new(&list[i], d)) continue;
    if (first == CLV__NO_ID) first = list[i].partition;
    last = list[i].partition;
  }
  if (first == last) return clv__error_prefix(error, status, "partition %u on %s", first, device);
  return clv__error_prefix(error, status, "partitions %u to %u on %s", first, last, device);
}

static clv_status finish_once(clv__executables *all, uint32_t d, work *list, uint32_t count, clv_executable **executables,
                              clv_error *error) {
  const clv__device *device = &all->plan->devices->items[d];
  uint32_t new_count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_new(&list[i], d)) executables[new_count++] = list[i].compiled->executable;
  }
  if (new_count == 0) return CLV_OK;
  double start = now_ms();
  clv_status status = CLV__CALL(device, error, finish, executables, new_count);
  double each = (now_ms() - start) / new_count;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
    if (!is_new(&list[i], d)) continue;
    list[i].compiled->origin.ms += each;
    status = ask_again(device, list[i].compiled, error);
  }
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) { /* also for partitions that share a new executable */
    if (list[i].device == d) list[i].compiled->info = list[i].compiled->use->of->info;
  }
  return status == CLV_OK ? status : finish_failed(all, d, list, count, status, error);
}

/* Finishes the executables of a device. If this fails, executables that came from disk may be the cause: they are compiled
 * instead, and finish() is called once more. */
static clv_status finish_device(clv__executables *all, uint32_t d, work *list, uint32_t count, clv__arena *arena,
                                clv_error *error) {
  clv_devices *devices = all->plan->devices;
  clv_executable **executables = clv__arena_allocate_zero(arena, count, sizeof *executables);
  if (executables == NULL) return clv__error_memory(error, count * sizeof *executables);
  uint32_t from_disk = 0;
  clv_status status = finish_once(all, d, list, count, executables, error);
  bool is_refused = status != CLV_OK && !clv__device_is_lost(&devices->items[d]);
  for (uint32_t i = 0; is_refused && i < count; ++i) {
    clv__source source = list[i].compiled->origin.source;
    if (!is_new(&list[i], d) || (source != CLV__SOURCE_DISK && source != CLV__SOURCE_FOLDER)) continue;
    if (source == CLV__SOURCE_DISK) clv__executable_forget(devices, list[i].compiled->use->of);
    ++from_disk;
  }
  if (from_disk > 0) {
    clv__context_log(devices->context, 1, "cache: %u cached executables were rejected: %s", from_disk,
                     error != NULL ? error->message : clv_status_name(status));
    for (uint32_t i = count; i-- > 0;) {
      if (list[i].device == d) clv__executables_drop(all, list[i].partition, list[i].compiled);
    }
    const clv_compiled *folder = all->folder;
    all->folder = NULL;
    status = CLV_OK;
    for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
      if (list[i].device == d) status = obtain(all, &list[i], arena, error);
    }
    all->folder = folder;
    CLV__TRY(status);
    status = finish_once(all, d, list, count, executables, error);
  }
  if (status != CLV_OK) all->failed_device = d;
  return status;
}

/* ---- All executables of a plan ---- */

/* If a device has no finish(), completes its partitions one after the other, so that no weight is in memory for longer than
 * necessary. */
static clv_status compile_list(clv__executables *all, work *list, uint32_t count, clv__arena *arena, clv_error *error) {
  clv_devices *devices = all->plan->devices;
  for (uint32_t i = 0; i < count; ++i) {
    CLV__TRY(obtain(all, &list[i], arena, error));
    if (devices->items[list[i].device].backend->finish == NULL) CLV__TRY(keep_and_upload(all, &list[i], arena, error));
  }
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (devices->items[d].backend->finish == NULL) continue;
    CLV__TRY(finish_device(all, d, list, count, arena, error));
    for (uint32_t i = 0; i < count; ++i) {
      if (list[i].device == d) CLV__TRY(keep_and_upload(all, &list[i], arena, error));
    }
  }
  return CLV_OK;
}

/* If a file of the graph changed meanwhile, reports that instead of any other error, because the change may have caused the
 * other error. Then no device is to blame. */
static clv_status compile_all(clv__executables *all, work *list, uint32_t count, clv__arena *arena, clv_error *error) {
  CLV__TRY(clv__graph_check_files(all->plan->graph, error));
  clv_status status = compile_list(all, list, count, arena, error);
  clv_status changed = clv__graph_check_files(all->plan->graph, error);
  if (changed == CLV_OK) return status;
  all->failed_device = CLV__NO_ID;
  return changed;
}

clv_status clv__executables_compile(clv__executables *all, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                    clv__compiled *compiled, clv_error *error) {
  *compiled = (clv__compiled){0};
  clv_devices *devices = all->plan->devices;
  work only = {partition, all->plan->partitions[partition].device, view, compiled};
  clv__devices_lock(devices);
  clv_status status = compile_all(all, &only, 1, arena, error);
  if (status != CLV_OK) clv__executables_drop(all, partition, compiled);
  clv__devices_unlock(devices);
  return status;
}

void clv__executables_drop(clv__executables *all, uint32_t partition, clv__compiled *compiled) {
  (void)partition;
  if (all->plan == NULL) return;
  clv__devices_lock(all->plan->devices);
  for (uint32_t i = 0; compiled->weight_uses != NULL && i < compiled->info.weight_count; ++i) {
    clv__share_drop_weight(all->share, &compiled->weight_uses[i]);
  }
  clv__share_drop(all->share, compiled->use);
  clv__devices_unlock(all->plan->devices);
  *compiled = (clv__compiled){0};
}

clv_status clv__executables_init(const clv_plan *plan, const clv_compile_options *options, const clv_compiled *folder,
                                 clv__executables *all, clv_error *error) {
  *all = (clv__executables){
      .plan = plan, .folder = folder, .options = *options, .failed_device = CLV__NO_ID, .failed_partition = CLV__NO_ID};
  clv__arena_init(&all->arena, plan->graph->allocator);
  work *list = NULL;
  clv__devices_lock(plan->devices);
  clv_status status = clv__share_get(plan->devices, &all->share, error);
  if (status == CLV_OK) {
    all->partitions = clv__arena_allocate_zero(&all->arena, plan->partition_count, sizeof *all->partitions);
    list = clv__arena_allocate_zero(&all->arena, plan->partition_count, sizeof *list);
    if (all->partitions == NULL || list == NULL) {
      status = clv__error_memory(error, plan->partition_count * (sizeof *all->partitions + sizeof *list));
    }
  }
  uint32_t count = 0;
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    all->partitions[p].origin.source = CLV__SOURCE_HOSTED;
    if (!partition->is_hosted) list[count++] = (work){p, partition->device, clv__partition_sized(partition), &all->partitions[p]};
  }
  if (status == CLV_OK) status = compile_all(all, list, count, &all->arena, error);
  clv__devices_unlock(plan->devices);
  if (status != CLV_OK) clv__executables_finish(all);
  return status;
}

void clv__executables_finish(clv__executables *all) {
  if (all->plan == NULL) return;
  for (uint32_t p = all->plan->partition_count; all->partitions != NULL && p-- > 0;) {
    clv__executables_drop(all, p, &all->partitions[p]);
  }
  clv__arena_finish(&all->arena);
  *all = (clv__executables){.failed_device = all->failed_device, .failed_partition = all->failed_partition};
}
