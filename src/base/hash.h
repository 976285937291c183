/* Content hashes: BLAKE2b (libb2), for names that a stranger must not be able to forge. */
#ifndef CLEAVE_BASE_HASH_H
#define CLEAVE_BASE_HASH_H

#include "cleave/types.h"

#define CLV__HASH_BYTES 32

typedef struct clv__hash {
  uint8_t bytes[CLV__HASH_BYTES];
} clv__hash;

/* An incremental hash. */
typedef struct clv__hasher {
  uint64_t state[64]; /* libb2's state, kept out of this header; its size is checked in hash.c */
} clv__hasher;

void clv__hasher_init(clv__hasher *hasher);
void clv__hasher_update(clv__hasher *hasher, const void *data, size_t size_bytes);
void clv__hasher_string(clv__hasher *hasher, const char *text); /* with its length, so that strings do not run together */
void clv__hasher_u64(clv__hasher *hasher, uint64_t number);
void clv__hasher_finish(clv__hasher *hasher, clv__hash *hash);

/* Large blocks are hashed in pieces, by several threads: the result is not that of clv__hasher over the same bytes, and does not
 * depend on how many threads there are. */
void clv__hash_bytes(const void *data, size_t size_bytes, clv__hash *hash);

enum { CLV__HASH_LANES = 16 };

/* One of several blocks that are hashed together, so that many small ones keep all threads busy as well. */
typedef struct clv__hash_block {
  const void *data;
  size_t size_bytes;
  clv__hash hash;                   /* what clv__hash_bytes() gives */
  clv__hash lanes[CLV__HASH_LANES]; /* of its pieces, on the way there */
} clv__hash_block;
void clv__hash_blocks(clv__hash_block *blocks, size_t count);
/* 64 hexadecimal digits and a terminator. */
void clv__hash_text(const clv__hash *hash, char text[2 * CLV__HASH_BYTES + 1]);

#endif
