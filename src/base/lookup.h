/* A fixed index from (domain, name) to the entries of tables that are constants of the program: built once, without allocation,
 * then only read. The operator table and the kernel registry are such tables. */
#ifndef CLEAVE_BASE_LOOKUP_H
#define CLEAVE_BASE_LOOKUP_H

#include "cleave/types.h"

enum { CLV__LOOKUP_SLOTS = 1024 }; /* a power of two, at least twice the entries */

typedef struct clv__lookup_slot {
  const char *domain;
  const char *name;
  const void *entry;
} clv__lookup_slot;

typedef struct clv__lookup {
  uint32_t count;
  clv__lookup_slot slots[CLV__LOOKUP_SLOTS];
} clv__lookup;

/* Adds an entry; the first of two with the same names stays. Strings are borrowed. False when the index is more than half full.
 */
bool clv__lookup_add(clv__lookup *lookup, const char *domain, const char *name, const void *entry);
/* NULL when absent. */
const void *clv__lookup_find(const clv__lookup *lookup, const char *domain, const char *name);

#endif
