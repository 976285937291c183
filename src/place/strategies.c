/* The table of strategies. */
#include <string.h>

#include "place/place.h"

const clv__strategy clv__strategies[] = {
    {"contiguous", "each node on the first device of the list that supports it; runs of one device are partitions",
     clv__place_contiguous},
    {NULL, NULL, NULL},
};

const clv__strategy *clv__strategy_find(const char *name) {
  for (const clv__strategy *strategy = clv__strategies; strategy->name != NULL; ++strategy) {
    if (strcmp(strategy->name, name) == 0) return strategy;
  }
  return NULL;
}
