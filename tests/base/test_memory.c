/* Large blocks of memory are marked for huge pages, with three exceptions: the largest blocks (300 MiB here), blocks that are
 * needed soon, and blocks below 32 MiB that are marked as sparse. The test reads the marks from VmFlags in /proc/self/smaps. */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

typedef enum pages { UNKNOWN, UNSAID, HUGE, SMALL } pages;

/* Returns which page size the process requested for the mapping that contains `address`: HUGE for MADV_HUGEPAGE, SMALL for
 * MADV_NOHUGEPAGE, UNSAID for neither. */
static pages said_of(const void *address) {
  char line[4400];
  bool inside = false;
  pages found = UNKNOWN;
  FILE *file = fopen("/proc/self/smaps", "r");
  while (file != NULL && found == UNKNOWN && fgets(line, sizeof line, file) != NULL) {
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) inside = begin <= (uintptr_t)address && (uintptr_t)address < end;
    if (inside && strncmp(line, "VmFlags:", 8) == 0) {
      found = strstr(line, " hg") != NULL ? HUGE : strstr(line, " nh") != NULL ? SMALL : UNSAID;
    }
  }
  if (file != NULL) fclose(file);
  return found;
}

static void check(size_t mebibytes, void (*say)(void *pointer, size_t size_bytes), pages wanted) {
  const clv_allocator *allocator = clv__allocator_default();
  const size_t size_bytes = mebibytes << 20;
  uint8_t *block = clv__allocate(allocator, size_bytes);
  assert_non_null(block);
  if (say != NULL) say(block, size_bytes);
  const pages said = said_of(block + size_bytes / 2);
  if (said != wanted)
    fail_msg("%zu MiB: the requested page size is %d, expected %d (see enum pages)", mebibytes, (int)said, (int)wanted);
  block[0] = block[size_bytes - 1] = 1; /* the memory can be written */
  clv__release(allocator, block);
}

static void test_pages(void **state) {
  (void)state;
  uint8_t *probe = clv__allocate(clv__allocator_default(), 8 << 20);
  assert_non_null(probe);
  const bool tells = said_of(probe + (4 << 20)) == HUGE;
  clv__release(clv__allocator_default(), probe);
  if (!tells) skip(); /* the system has no huge pages, or does not report VmFlags */
  check(8, NULL, HUGE);
  check(200, NULL, HUGE);
  check(300, NULL, UNSAID);
  check(8, clv__memory_soon, SMALL);
  check(200, clv__memory_soon, SMALL);
  check(8, clv__memory_sparse, SMALL);
  check(200, clv__memory_sparse, HUGE);
}

static void test_small(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  for (size_t size_bytes = 1; size_bytes < 1 << 22; size_bytes = size_bytes * 3 + 1) {
    uint8_t *block = clv__allocate(allocator, size_bytes);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % CLV__ALIGNMENT, 0);
    memset(block, 5, size_bytes);
    clv__memory_soon(block, size_bytes);
    clv__memory_sparse(block, size_bytes);
    for (size_t i = 0; i < size_bytes; i += 97) assert_int_equal(block[i], 5);
    clv__release(allocator, block);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages), cmocka_unit_test(test_small)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
