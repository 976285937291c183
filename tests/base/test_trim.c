/* clv__memory_trim() drops pages of mapped files, which are read again with the same bytes. It keeps pages that were written,
 * even if the mapping is read-only now. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/trim.h"
#include "support.h"

enum { PAGE = 4096, PAGES = 64 };

static uint8_t byte_at(size_t i) {
  return (uint8_t)(i * 31 + i / PAGE);
}

/* Maps a file of PAGES pages privately. */
static uint8_t *map_file(int access) {
  char path[] = "/tmp/cleave-trim-XXXXXX";
  uint8_t page[PAGE];
  const int file = mkstemp(path);
  assert_true(file >= 0);
  for (size_t p = 0; p < PAGES; ++p) {
    for (size_t i = 0; i < PAGE; ++i) page[i] = byte_at(p * PAGE + i);
    assert_int_equal(write(file, page, PAGE), PAGE);
  }
  uint8_t *bytes = mmap(NULL, (size_t)PAGES * PAGE, access, MAP_PRIVATE, file, 0);
  assert_true(bytes != MAP_FAILED);
  unlink(path);
  close(file);
  return bytes;
}

static size_t resident_pages(const uint8_t *bytes) {
  size_t count = 0;
  FILE *file = fopen("/proc/self/pagemap", "rb");
  if (file == NULL) return SIZE_MAX;
  uint64_t entries[PAGES] = {0};
  if (fseek(file, (long)((uintptr_t)bytes / PAGE * sizeof *entries), SEEK_SET) != 0 ||
      fread(entries, sizeof *entries, PAGES, file) != PAGES) {
    fclose(file);
    return SIZE_MAX;
  }
  fclose(file);
  for (size_t p = 0; p < PAGES; ++p) count += entries[p] >> 63;
  return count;
}

static void check_bytes(const uint8_t *bytes, size_t changed) {
  for (size_t i = 0; i < (size_t)PAGES * PAGE; ++i) {
    if (bytes[i] != (i == changed ? 77 : byte_at(i))) fail_msg("byte %zu has the wrong value %d", i, bytes[i]);
  }
}

static void test_unwritten(void **state) {
  (void)state;
  uint8_t *bytes = map_file(PROT_READ);
  check_bytes(bytes, SIZE_MAX);
  if (resident_pages(bytes) == SIZE_MAX) skip();
  assert_int_equal(resident_pages(bytes), PAGES);
  assert_true(clv__memory_trim() >= (size_t)PAGES * PAGE);
  assert_int_equal(resident_pages(bytes), 0);
  check_bytes(bytes, SIZE_MAX);
  munmap(bytes, (size_t)PAGES * PAGE);
}

/* Written pages keep their bytes, whether they are still writable or were made read-only since, like a library's tables after
 * relocation. */
static void test_written(void **state) {
  (void)state;
  const size_t changed = (size_t)PAGE * 7 + 5;
  for (int sealed = 0; sealed < 2; ++sealed) {
    uint8_t *bytes = map_file(PROT_READ | PROT_WRITE);
    bytes[changed] = 77;
    check_bytes(bytes, changed);
    if (sealed) assert_int_equal(mprotect(bytes, (size_t)PAGES * PAGE, PROT_READ), 0);
    (void)clv__memory_trim();
    check_bytes(bytes, changed);
    munmap(bytes, (size_t)PAGES * PAGE);
  }
}

static void test_heap(void **state) {
  (void)state;
  uint8_t *blocks[200];
  for (size_t i = 0; i < 200; ++i) {
    blocks[i] = malloc(10000);
    assert_non_null(blocks[i]);
    memset(blocks[i], (int)i, 10000);
  }
  for (size_t i = 0; i < 200; i += 2) free(blocks[i]);
  (void)clv__memory_trim();
  for (size_t i = 1; i < 200; i += 2) {
    for (size_t k = 0; k < 10000; ++k) assert_int_equal(blocks[i][k], (uint8_t)i);
    free(blocks[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_unwritten), cmocka_unit_test(test_written),
                                     cmocka_unit_test(test_heap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
