/* See trim.h. /proc/self/smaps describes each mapping. Only private, read-only mappings whose pages all equal those of the
 * file are dropped, so relocated tables and a debugger's breakpoints survive. */
#include "base/trim.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct mapping {
  unsigned long begin, end;
  size_t resident_kib;
  bool is_plain; /* it maps a file privately, and the process can read the mapping but not write to it */
} mapping;

/* Parses the first line of a mapping: "begin-end rwxp offset device inode path". Returns false if the line is another one. */
static bool read_head(const char *line, mapping *found) {
  char access[5] = "";
  unsigned long begin, end, inode;
  if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &begin, &end, access, &inode) != 4) return false;
  *found = (mapping){.begin = begin, .end = end};
  found->is_plain = strlen(access) == 4 && access[0] == 'r' && access[1] == '-' && access[3] == 'p' && inode != 0;
  return true;
}

size_t clv__memory_trim(void) {
  size_t dropped = 0, kib;
  char line[4400]; /* room for a path and the fields before it */
  mapping current = {0};
  (void)malloc_trim(0);
  FILE *file = fopen("/proc/self/smaps", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (read_head(line, &current)) continue;
    if (sscanf(line, "Rss: %zu kB", &kib) == 1) current.resident_kib = kib;
    if (sscanf(line, "Anonymous: %zu kB", &kib) != 1) continue;
    if (!current.is_plain || current.resident_kib == 0 || kib != 0) continue;
    if (madvise((void *)current.begin, current.end - current.begin, MADV_DONTNEED) == 0) dropped += current.resident_kib * 1024;
  }
  if (file != NULL) fclose(file);
  return dropped;
}
