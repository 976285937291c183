/* Adds the measurements of one profile to another, and updates a profile file that other processes may write at the same time. */
#define _GNU_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files/file.h"
#include "cost/profile.h"

/* Two devices with the same fingerprint. `operators` and `savings`: for each entry of `from`, its index in `into`. */
typedef struct merging {
  clv__profile *profile;
  clv__profile_device *into;
  const clv__profile_device *from;
  uint32_t *operators, *savings;
  clv__profile_term *terms; /* room for the terms of one block */
  clv_error *error;
} merging;

static clv_status merge_operators(merging *m) {
  for (uint32_t i = 0; i < m->from->operator_count; ++i) {
    const clv__profile_operator *from = &m->from->operators[i];
    CLV__TRY(clv__profile_find_or_add_operator(m->profile, m->into, from->signature, &m->operators[i], m->error));
    clv__profile_operator *into = &m->into->operators[m->operators[i]];
    if (into->alone.runs > 0 || into->infeasible) continue;
    const char *signature = into->signature;
    *into = *from;
    into->signature = signature;
  }
  return CLV_OK;
}

static clv_status merge_savings(merging *m) {
  for (uint32_t i = 0; i < m->from->saving_count; ++i) {
    const clv__profile_saving *from = &m->from->savings[i];
    CLV__TRY(clv__profile_find_or_add_saving(m->profile, m->into, m->operators[from->producer], m->operators[from->consumer],
                                             from->bytes, &m->savings[i], m->error));
  }
  return CLV_OK;
}

static clv_status merge_blocks(merging *m) {
  for (uint32_t i = 0; i < m->from->block_count; ++i) {
    clv__profile_block block = m->from->blocks[i];
    if (clv__map_find(&m->into->block_index, block.key) != CLV__MAP_NONE) continue;
    for (uint32_t k = 0; k < block.node_count; ++k)
      m->terms[k] = (clv__profile_term){m->operators[block.nodes[k].index], block.nodes[k].count};
    for (uint32_t k = 0; k < block.edge_count; ++k)
      m->terms[block.node_count + k] = (clv__profile_term){m->savings[block.edges[k].index], block.edges[k].count};
    block.nodes = m->terms;
    block.edges = m->terms + block.node_count;
    CLV__TRY(clv__profile_put_block(m->profile, m->into, &block, m->error));
  }
  return CLV_OK;
}

static clv_status merge_text(clv__profile *profile, const char **into, const char *from, clv_error *error) {
  if ((*into)[0] != '\0') return CLV_OK;
  *into = clv__arena_string(&profile->arena, from, strlen(from));
  if (*into != NULL) return CLV_OK;
  *into = "";
  return clv__error_memory(error, strlen(from));
}

static clv_status merge_device(merging *m) {
  clv__profile_device *into = m->into;
  const clv__profile_device *from = m->from;
  CLV__TRY(merge_text(m->profile, &into->name, from->name, m->error));
  CLV__TRY(merge_text(m->profile, &into->kind, from->kind, m->error));
  CLV__TRY(merge_text(m->profile, &into->description, from->description, m->error));
  CLV__TRY(merge_text(m->profile, &into->measured, from->measured, m->error));
  if (into->launch.runs == 0) into->launch = from->launch;
  if (into->flops_per_second == 0) into->flops_per_second = from->flops_per_second;
  if (into->bytes_per_second == 0) into->bytes_per_second = from->bytes_per_second;
  for (clv__copy_kind kind = 0; kind < CLV__COPY_KINDS; ++kind) {
    if (into->copy_counts[kind] > 0 || from->copy_counts[kind] == 0) continue;
    CLV__TRY(clv__profile_put_copies(m->profile, into, kind, from->copies[kind], from->copy_counts[kind], m->error));
  }
  CLV__TRY(merge_operators(m));
  CLV__TRY(merge_savings(m));
  CLV__TRY(merge_blocks(m));
  return clv__profile_solve(into, m->profile->arena.allocator, m->error);
}

clv_status clv__profile_merge(clv__profile *into, const clv__profile *from, clv_error *error) {
  clv_status status = CLV_OK;
  for (uint32_t d = 0; d < from->device_count && status == CLV_OK; ++d) {
    merging m = {.profile = into, .from = from->devices[d], .error = error};
    size_t most = 0;
    for (uint32_t i = 0; i < m.from->block_count; ++i) {
      size_t terms = (size_t)m.from->blocks[i].node_count + m.from->blocks[i].edge_count;
      if (terms > most) most = terms;
    }
    clv__arena arena;
    clv__arena_init(&arena, into->arena.allocator);
    m.operators = clv__arena_allocate(&arena, m.from->operator_count * sizeof *m.operators);
    m.savings = clv__arena_allocate(&arena, m.from->saving_count * sizeof *m.savings);
    m.terms = clv__arena_allocate(&arena, most * sizeof *m.terms);
    if (m.operators == NULL || m.savings == NULL || m.terms == NULL)
      status = clv__error_memory(error, most * sizeof *m.terms);
    else
      status = clv__profile_find_or_add_device(into, m.from->fingerprint, &m.into, error);
    if (status == CLV_OK) status = merge_device(&m);
    clv__arena_finish(&arena);
  }
  return status;
}

/* Opens and locks the folder of the file. A lock on the file itself would be lost when the file is replaced. Returns -1 if the
 * system refuses the lock; the file is then written without one. */
static int lock_folder(const char *path, const clv_allocator *allocator) {
  char *folder = clv__path_beside(allocator, path, "");
  int lock = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  clv__release(allocator, folder);
  while (lock >= 0 && flock(lock, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    close(lock);
    lock = -1;
  }
  return lock;
}

clv_status clv__profile_update(clv__profile *profile, const char *path, clv_error *error) {
  clv__profile *there = NULL;
  clv_error ignored;
  const clv_allocator *allocator = profile->arena.allocator;
  int lock = lock_folder(path, allocator);
  clv_status status = CLV_OK;
  if (access(path, F_OK) == 0 && clv__profile_read(path, allocator, &there, &ignored) == CLV_OK)
    status = clv__profile_merge(profile, there, error);
  clv__profile_destroy(there);
  if (status == CLV_OK) status = clv__profile_write(profile, path, error);
  if (lock >= 0) close(lock);
  return status;
}
