/* See nominal.h. */
#include "cost/nominal.h"

#include <string.h>

static const clv__nominal table[] = {
    {"cpu", 100e9, 10e9, 5000, 0, 10e9, true},
    {"npu", 4e12, 50e9, 50000, 20000, 5e9, true},
    {"gpu", 8e12, 300e9, 15000, 15000, 10e9, true},
};

const clv__nominal *clv__nominal_find(const char *kind) {
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (strcmp(table[i].kind, kind) == 0) return &table[i];
  }
  return &table[0];
}
