/* Content hashes: BLAKE2b (libb2), for names that an attacker must not be able to forge. */
#ifndef CLEAVE_BASE_HASH_H
#define CLEAVE_BASE_HASH_H

#include "cleave/types.h"

#define CLV__HASH_BYTES 32

typedef struct clv__hash {
  uint8_t bytes[CLV__HASH_BYTES];
} clv__hash;

/* An incremental hash. */
typedef struct clv__hasher {
  uint64_t state[64]; /* libb2's state, hidden from this header; hash.c checks its size */
} clv__hasher;

void clv__hasher_init(clv__hasher *hasher);
void clv__hasher_update(clv__hasher *hasher, const void *data, size_t size_bytes);
void clv__hasher_string(clv__hasher *hasher, const char *text); /* hashes the length too: ("ab", "c") and ("a", "bc") differ */
void clv__hasher_u64(clv__hasher *hasher, uint64_t number);
void clv__hasher_finish(clv__hasher *hasher, clv__hash *hash);

/* Hashes large blocks in pieces on several threads. The result differs from clv__hasher over the same bytes. It does not
 * depend on the number of threads. */
void clv__hash_bytes(const void *data, size_t size_bytes, clv__hash *hash);

enum { CLV__HASH_LANES = 16 };

/* One of several blocks hashed together, so that many small blocks also keep all threads busy. */
typedef struct clv__hash_block {
  const void *data;
  size_t size_bytes;
  clv__hash hash;                   /* equals the result of clv__hash_bytes() */
  clv__hash lanes[CLV__HASH_LANES]; /* intermediate: the hashes of the block's pieces */
} clv__hash_block;
void clv__hash_blocks(clv__hash_block *blocks, size_t count);
/* Writes the hash as 64 hexadecimal digits and a terminator. */
void clv__hash_text(const clv__hash *hash, char text[2 * CLV__HASH_BYTES + 1]);

#endif
