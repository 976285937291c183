/* States the memory that the plan needs on each device with a limit. Placing (memory.c) keeps it within the limit, and a session
 * takes at most what it states. Only the device's compiler knows the scratch of a partition. It is asked only if the memory would
 * not suffice with a generous guess. Its answers are kept, because placing counts many similar cuts. */
#include <string.h>

#include "base/map.h"
#include "plan/memory.h"

struct clv__scratch_answer {
  clv__scratch_answer *next;
  uint64_t hash;
  size_t key_count;
  uint32_t *key; /* the device, the nodes, CLV__NONE, and the streamed weights */
  uint64_t scratch_bytes, held_bytes;
  size_t weight_count;
  uint32_t *weights; /* those that the executable takes from outside; it may hold others itself, in `held_bytes` */
  bool is_too_large;
};

/* Lists what the answer depends on. Returns NULL if memory runs out. */
static uint32_t *key_of(const clv_plan *plan, uint32_t partition, size_t *count) {
  const clv__problem *problem = plan->problem;
  const clv__cut *cut = &plan->cut;
  uint32_t first = cut->offsets[partition], end = cut->offsets[partition + 1], device = cut->devices[partition];
  size_t most = (size_t)end - first + 2;
  for (uint32_t i = first; i < end; ++i) {
    most += problem->weight_offsets[cut->nodes[i] + 1] - problem->weight_offsets[cut->nodes[i]];
  }
  uint32_t *key = clv__allocate(plan->graph->allocator, most * sizeof *key);
  *count = 0;
  if (key == NULL) return NULL;
  key[(*count)++] = device;
  for (uint32_t i = first; i < end; ++i) key[(*count)++] = cut->nodes[i];
  key[(*count)++] = CLV__NONE;
  for (uint32_t i = first; plan->streamed != NULL && i < end; ++i) {
    for (uint32_t k = problem->weight_offsets[cut->nodes[i]]; k < problem->weight_offsets[cut->nodes[i] + 1]; ++k) {
      if ((plan->streamed[problem->weights[k]] >> device & 1u) != 0) key[(*count)++] = problem->weights[k];
    }
  }
  return key;
}

static uint64_t hash_of(const uint32_t *key, size_t count) {
  uint64_t hash = 1;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ key[i]) * 0x100000001b3u + (hash >> 29);
  return hash;
}

/* Lists, in the answer, the resident weights of the partition whose names the executable states, or all of its resident weights
 * if there is no executable (`info` is NULL). May list a weight several times. */
static clv_status list_weights(clv_plan *plan, uint32_t partition, const clv_executable_info *info, clv__scratch_answer *answer,
                               clv_error *error) {
  const clv__problem *problem = plan->problem;
  const clv__cut *cut = &plan->cut;
  const uint32_t first = cut->offsets[partition], end = cut->offsets[partition + 1], device = cut->devices[partition];
  size_t most = 0;
  bool is_made = true;
  clv__map names;
  for (uint32_t i = first; i < end; ++i) {
    most += problem->weight_offsets[cut->nodes[i] + 1] - problem->weight_offsets[cut->nodes[i]];
  }
  answer->weights = clv__arena_allocate(&plan->arena, most * sizeof *answer->weights);
  clv__map_init(&names, plan->graph->allocator);
  for (uint32_t i = 0; info != NULL && is_made && i < info->weight_count; ++i)
    is_made = clv__map_set(&names, info->weights[i], i);
  for (uint32_t i = first; is_made && answer->weights != NULL && i < end; ++i) {
    for (uint32_t k = problem->weight_offsets[cut->nodes[i]]; k < problem->weight_offsets[cut->nodes[i] + 1]; ++k) {
      const uint32_t weight = problem->weights[k];
      if (plan->streamed != NULL && (plan->streamed[weight] >> device & 1u) != 0) continue;
      if (info != NULL && clv__map_find(&names, problem->weight_names[weight]) == CLV__MAP_NONE) continue;
      answer->weights[answer->weight_count++] = weight;
    }
  }
  clv__map_finish(&names);
  return is_made && answer->weights != NULL ? CLV_OK : clv__error_memory(error, most * sizeof *answer->weights);
}

/* Asks the compiler. If it fails for another reason than that the partition is too large, counts no scratch; the session will
 * fail in the same way and report why. */
static clv_status compile(clv_plan *plan, uint32_t index, clv__scratch_answer *answer, clv_error *error) {
  const clv__partition *partition = &plan->partitions[index];
  const clv__device *device = &plan->devices->items[partition->device];
  clv_compile_options options = {.struct_size = sizeof options};
  clv_executable *executable = NULL;
  clv_status status = device->backend->compile(device->handle, clv__partition_sized(partition), &options, &executable, NULL);
  answer->is_too_large = status == CLV_TOO_LARGE;
  if (status != CLV_OK) return list_weights(plan, index, NULL, answer, error);
  clv_executable_info info = {.struct_size = sizeof info};
  device->backend->executable_info(device->handle, executable, &info);
  answer->scratch_bytes = info.scratch_bytes;
  answer->held_bytes = info.resident_bytes;
  status = list_weights(plan, index, &info, answer, error);
  device->backend->executable_destroy(device->handle, executable);
  return status;
}

static clv_status ask(clv_plan *plan, uint32_t partition, const clv__scratch_answer **out, clv_error *error) {
  size_t count;
  uint32_t *key = key_of(plan, partition, &count);
  if (key == NULL) return clv__error_memory(error, count * sizeof *key);
  uint64_t hash = hash_of(key, count);
  clv__scratch_answer **first = &plan->answers[hash % CLV__ANSWER_SLOTS], *answer = *first;
  while (answer != NULL &&
         (answer->hash != hash || answer->key_count != count || memcmp(answer->key, key, count * sizeof *key) != 0))
    answer = answer->next;
  if (answer == NULL) {
    answer = clv__arena_allocate_zero(&plan->arena, 1, sizeof *answer);
    uint32_t *kept = clv__arena_copy(&plan->arena, key, count * sizeof *key);
    if (answer != NULL && kept != NULL) {
      *answer = (clv__scratch_answer){.next = *first, .hash = hash, .key_count = count, .key = kept};
      clv_status status = compile(plan, partition, answer, error);
      if (status != CLV_OK) {
        clv__release(plan->graph->allocator, key);
        return status;
      }
      *first = answer;
    } else {
      answer = NULL;
    }
  }
  clv__release(plan->graph->allocator, key);
  *out = answer;
  return answer != NULL ? CLV_OK : clv__error_memory(error, sizeof *answer);
}

/* Returns the bytes of the answer's weights that are not counted yet. `is_counted`: by weight. */
static uint64_t count_weights(const clv_plan *plan, const clv__scratch_answer *answer, uint64_t alignment, bool *is_counted) {
  uint64_t total = 0;
  for (size_t i = 0; i < answer->weight_count; ++i) {
    const uint64_t bytes = plan->problem->weight_bytes[answer->weights[i]];
    if (!is_counted[answer->weights[i]]) total += clv__align_up(bytes == 0 ? 1 : bytes, alignment);
    is_counted[answer->weights[i]] = true;
  }
  return total;
}

/* Asks the compiler about all partitions of the device. If the compiler rejects one as too large, the need is only a lower
 * bound. Weights that are part of executables no longer count as weights in `memory`. */
static clv_status ask_device(clv_plan *plan, uint32_t device, clv__memory *memory, clv__memory_need *need, clv_error *error) {
  const uint64_t alignment = plan->problem->alignments[plan->problem->spaces[device]], inner_bytes = memory->inner_bytes[device];
  uint64_t weight_bytes = 0;
  bool *is_counted = clv__allocate_zero(plan->graph->allocator, ((size_t)plan->problem->weight_count + 1) * sizeof *is_counted);
  clv_status status = is_counted != NULL ? CLV_OK : clv__error_memory(error, plan->problem->weight_count);
  need->scratch_bytes = 0;
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    const clv__scratch_answer *answer;
    if (plan->partitions[p].device != device || plan->partitions[p].is_hosted) continue;
    status = ask(plan, p, &answer, error);
    if (status != CLV_OK) break;
    if (answer->scratch_bytes > need->scratch_bytes) need->scratch_bytes = answer->scratch_bytes;
    if (answer->held_bytes > 0) need->held_bytes += clv__align_up(answer->held_bytes, alignment);
    if (answer->is_too_large && need->too_large == CLV__NONE) need->too_large = p;
    weight_bytes += count_weights(plan, answer, alignment, is_counted);
  }
  clv__release(plan->graph->allocator, is_counted);
  if (status != CLV_OK) return status;
  if (need->too_large != CLV__NONE && need->scratch_bytes < inner_bytes) need->scratch_bytes = inner_bytes;
  const uint64_t own = clv__sum_ns(clv__sum_ns(need->scratch_bytes, need->held_bytes), weight_bytes);
  const uint64_t known = clv__sum_ns(inner_bytes, memory->weight_bytes[device]);
  if (own > known && own - known > plan->unforeseen_bytes[device]) plan->unforeseen_bytes[device] = own - known;
  memory->weight_bytes[device] = weight_bytes;
  need->is_guessed = false;
  return CLV_OK;
}

static uint64_t total_of(const clv_plan *plan, uint32_t device, const clv__memory *memory) {
  uint64_t scratch[CLV__MOST_DEVICES];
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    scratch[d] = clv__sum_ns(plan->needs[d].scratch_bytes, plan->needs[d].held_bytes);
  }
  return clv__memory_needed(plan->problem, memory, scratch, device);
}

static uint64_t limit_of(const clv_plan *plan, uint32_t device) {
  return plan->problem->limits[device].memory_bytes;
}

/* Sets the totals of all devices, which may share a memory. Where the limit leaves room, counts values as if no two of them
 * shared bytes. */
static void set_totals(clv_plan *plan, clv__memory *memory) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    uint32_t space = plan->problem->spaces[d];
    if (limit_of(plan, d) == 0 || space == 0) continue;
    clv__memory apart = *memory;
    apart.value_bytes[space] = memory->apart_bytes[space];
    if (total_of(plan, d, &apart) <= limit_of(plan, d)) memory->value_bytes[space] = memory->apart_bytes[space];
  }
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    clv__memory_need *need = &plan->needs[d];
    if (limit_of(plan, d) == 0) continue;
    need->weight_bytes = memory->weight_bytes[d];
    need->value_bytes = plan->problem->spaces[d] == 0 ? 0 : memory->value_bytes[plan->problem->spaces[d]];
    need->total_bytes = total_of(plan, d, memory);
  }
}

clv_status clv__plan_memory_need(clv_plan *plan, clv_error *error) {
  const clv__problem *problem = plan->problem;
  clv__memory memory;
  clv__copies copies;
  clv__arena work;
  bool has_limit = false;
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    plan->needs[d] = (clv__memory_need){.too_large = CLV__NONE};
    has_limit = has_limit || limit_of(plan, d) > 0;
  }
  if (!has_limit) return CLV_OK;
  clv__arena_init(&work, plan->graph->allocator);
  clv_status status = clv__split_copies(problem, &plan->cut, plan->streamed, &work, &copies, error);
  if (status == CLV_OK)
    status = clv__memory_count(problem, &plan->cut, &copies, plan->streamed, true, plan->graph->allocator, &memory, error);
  clv__arena_finish(&work);
  if (status != CLV_OK) return status;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    uint32_t d = plan->partitions[p].device;
    if (plan->partitions[p].is_hosted) continue;
    if (limit_of(plan, d) == 0 || plan->needs[d].is_guessed) continue;
    plan->needs[d].is_guessed = true;
    plan->needs[d].scratch_bytes = clv__sum_ns(memory.inner_bytes[d], CLV__SCRATCH_GUESS_BYTES);
  }
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (!plan->needs[d].is_guessed || total_of(plan, d, &memory) <= limit_of(plan, d)) continue;
    for (uint32_t e = 0; e < plan->devices->count; ++e) { /* all devices that share this memory */
      if (problem->spaces[e] == problem->spaces[d] && plan->needs[e].is_guessed) {
        CLV__TRY(ask_device(plan, e, &memory, &plan->needs[e], error));
      }
    }
  }
  set_totals(plan, &memory);
  return CLV_OK;
}

bool clv__plan_fits(const clv_plan *plan, uint32_t device) {
  const clv__memory_need *need = &plan->needs[device];
  return limit_of(plan, device) == 0 || (need->too_large == CLV__NONE && need->total_bytes <= limit_of(plan, device));
}
