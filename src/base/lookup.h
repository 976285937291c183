/* A fixed index from (domain, name) to the entries of constant tables. It is built once, without allocation, and then only
 * read. The operator table and the kernel registry use it. */
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

/* Adds an entry. If two entries have the same names, the first one stays. Strings are borrowed. Adds nothing and returns false
 * if half of the slots are taken already. */
bool clv__lookup_add(clv__lookup *lookup, const char *domain, const char *name, const void *entry);
/* Returns NULL if there is no entry with these names. */
const void *clv__lookup_find(const clv__lookup *lookup, const char *domain, const char *name);

#endif
