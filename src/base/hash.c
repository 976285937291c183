/* See hash.h. */
#include "base/hash.h"

#include <blake2.h>
#include <string.h>

_Static_assert(sizeof(blake2b_state) <= sizeof(((clv__hasher *)0)->state), "clv__hasher must hold libb2's state");

static blake2b_state *state_of(clv__hasher *hasher) {
  /* libb2's state may want more alignment than uint64_t has; the spare room is there for that. */
  uintptr_t address = (uintptr_t)hasher->state;
  return (blake2b_state *)((address + _Alignof(blake2b_state) - 1) / _Alignof(blake2b_state) * _Alignof(blake2b_state));
}
_Static_assert(sizeof(blake2b_state) + _Alignof(blake2b_state) <= sizeof(((clv__hasher *)0)->state), "room to align");

void clv__hasher_init(clv__hasher *hasher) {
  blake2b_init(state_of(hasher), CLV__HASH_BYTES);
}

void clv__hasher_update(clv__hasher *hasher, const void *data, size_t size_bytes) {
  if (size_bytes > 0) blake2b_update(state_of(hasher), data, size_bytes);
}

void clv__hasher_u64(clv__hasher *hasher, uint64_t number) {
  clv__hasher_update(hasher, &number, sizeof number);
}

void clv__hasher_string(clv__hasher *hasher, const char *text) {
  size_t length = strlen(text);
  clv__hasher_u64(hasher, length);
  clv__hasher_update(hasher, text, length);
}

void clv__hasher_finish(clv__hasher *hasher, clv__hash *hash) {
  blake2b_final(state_of(hasher), hash->bytes, CLV__HASH_BYTES);
}

void clv__hash_bytes(const void *data, size_t size_bytes, clv__hash *hash) {
  blake2bp(hash->bytes, data == NULL ? "" : data, NULL, CLV__HASH_BYTES, size_bytes, 0);
}

void clv__hash_text(const clv__hash *hash, char text[2 * CLV__HASH_BYTES + 1]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < CLV__HASH_BYTES; ++i) {
    text[2 * i] = digits[hash->bytes[i] >> 4];
    text[2 * i + 1] = digits[hash->bytes[i] & 15];
  }
  text[2 * CLV__HASH_BYTES] = '\0';
}
