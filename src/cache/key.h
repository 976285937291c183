/* What an executable is of, in five hashes. Apart, they tell why a partition misses one that is nearly its own. */
#ifndef CLEAVE_CACHE_KEY_H
#define CLEAVE_CACHE_KEY_H

#include "base/hash.h"

typedef enum clv__key_part {
  CLV__KEY_STRUCTURE, /* operators, versions, attributes, bodies, edges by index, inputs and outputs */
  CLV__KEY_TYPES,     /* dtypes and shapes; which values are constants */
  CLV__KEY_CONSTANTS, /* their bytes */
  CLV__KEY_DEVICE,    /* the backend, its version, the device's fingerprint */
  CLV__KEY_OPTIONS,   /* of compiling */
  CLV__KEY_PARTS
} clv__key_part;

typedef struct clv__key {
  clv__hash parts[CLV__KEY_PARTS];
} clv__key;

/* Bits of the parts in which two keys differ. */
#define CLV__KEY_ALL ((1u << CLV__KEY_PARTS) - 1)
uint32_t clv__key_differences(const clv__key *a, const clv__key *b);
/* Such bits in words, of a key and the nearest that is kept: "other weights than the nearest that is kept". */
void clv__key_explain(uint32_t parts, char *text, size_t size_bytes);

#endif
