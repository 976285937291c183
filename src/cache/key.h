/* The identity of an executable as five hashes. A comparison of the five shows how a key differs from that of a cached file. */
#ifndef CLEAVE_CACHE_KEY_H
#define CLEAVE_CACHE_KEY_H

#include "base/hash.h"

typedef enum clv__key_part {
  CLV__KEY_STRUCTURE, /* operators, opsets, attributes, bodies, operands of nodes, inputs and outputs */
  CLV__KEY_TYPES,     /* dtypes and shapes; which values are constants */
  CLV__KEY_CONSTANTS, /* the bytes of the constants */
  CLV__KEY_DEVICE,    /* the backend, its version, the fingerprint of the device */
  CLV__KEY_OPTIONS,   /* options for compiling */
  CLV__KEY_PARTS
} clv__key_part;

typedef struct clv__key {
  clv__hash parts[CLV__KEY_PARTS];
} clv__key;

/* Bit masks of the parts of a key: all parts, and the parts in which two keys differ. */
#define CLV__KEY_ALL ((1u << CLV__KEY_PARTS) - 1)
uint32_t clv__key_differences(const clv__key *a, const clv__key *b);
/* Describes a mask of the differences between a key and the most similar cached key: "other weights than the most similar cached
 * executable". */
void clv__key_explain(uint32_t parts, char *text, size_t size_bytes);

#endif
