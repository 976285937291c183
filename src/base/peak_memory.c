/* See peak_memory.h. */
#include "base/peak_memory.h"

#include <stdio.h>

/* Reads the peak from /proc, because getrusage() would report the peak of the parent process if it was higher. */
uint64_t clv__peak_memory_bytes(void) {
  FILE *file = fopen("/proc/self/status", "r");
  unsigned long long kibibytes = 0;
  char line[256];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmHWM: %llu", &kibibytes) == 1) break;
  }
  if (file != NULL) fclose(file);
  return kibibytes * 1024;
}
