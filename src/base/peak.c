/* See peak.h. */
#include "base/peak.h"

#include <stdio.h>

uint64_t clv__peak_rss_bytes(void) {
  FILE *file = fopen("/proc/self/status", "r");
  unsigned long long kibibytes = 0;
  char line[256];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmHWM: %llu", &kibibytes) == 1) break;
  }
  if (file != NULL) fclose(file);
  return kibibytes * 1024;
}
