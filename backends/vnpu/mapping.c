/* See mapping.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "mapping.h"

#include <sys/mman.h>
#include <unistd.h>

bool clv__vnpu_mapping_open(size_t size_bytes, size_t alignment_bytes, clv__vnpu_mapping *mapping) {
  *mapping = (clv__vnpu_mapping){0};
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), align = alignment_bytes > page ? alignment_bytes : page;
  if (size_bytes > SIZE_MAX / 2) return false;
  const size_t inner = (size_bytes + page - 1) / page * page, all = inner + align + page;
  void *made = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return false;
  /* `align` bytes in front hold at least the guard page, and `align` is a multiple of a page. */
  uint8_t *memory = (uint8_t *)(((uintptr_t)made + align) / align * align);
  if (mprotect(memory, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(made, all);
    return false;
  }
  *mapping = (clv__vnpu_mapping){memory, inner, made, all};
  return true;
}

void clv__vnpu_mapping_close(clv__vnpu_mapping *mapping) {
  if (mapping->all != NULL) munmap(mapping->all, mapping->all_bytes);
  *mapping = (clv__vnpu_mapping){0};
}

void clv__vnpu_mapping_shut(const clv__vnpu_mapping *mapping, bool shut) {
  (void)mprotect(mapping->memory, mapping->size_bytes, shut ? PROT_NONE : PROT_READ | PROT_WRITE);
}
