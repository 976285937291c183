/* Makes files for the fuzz targets that read compiled programs (base/files/sealed.h). A target's input is one byte with the
 * mode, then the payload of a file, which begins with types and a graph, without the fingerprint. Header, checksum and
 * fingerprint are added here, because a reader would reject every mutated file for its wrong checksum. */
#ifndef CLEAVE_FUZZ_SEALED_H
#define CLEAVE_FUZZ_SEALED_H

#include <stdlib.h>
#include <string.h>

#include "base/files/sealed.h"

static inline uint64_t fuzz_sealed_number(const uint8_t *data, size_t size_bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < size_bytes; ++i) number |= (uint64_t)data[i] << (8 * i);
  return number;
}

/* The offset of the graph (after its size); 0 if there is none. */
static inline size_t fuzz_sealed_graph(const uint8_t *data, size_t size_bytes) {
  if (size_bytes < 4) return 0;
  size_t at = 4;
  for (uint64_t inputs = fuzz_sealed_number(data, 4); inputs > 0; --inputs) {
    if (size_bytes - at < 8) return 0;
    uint64_t rank = fuzz_sealed_number(data + at + 4, 4);
    at += 8;
    if (rank == UINT32_MAX) continue;
    if (rank > CLV_MAX_RANK || (size_bytes - at) / 8 < rank) return 0;
    at += 8 * rank;
  }
  return size_bytes - at < 8 ? 0 : at + 8;
}

/* A clv_write_fn that appends to a text, the `cookie`. */
static inline clv_status fuzz_sealed_append(void *cookie, const void *data, size_t size_bytes) {
  clv__text_append_bytes(cookie, data, size_bytes);
  return CLV_OK;
}

/* Makes a complete file from a payload without fingerprint. */
static inline void fuzz_sealed_wrap(const clv__sealed_kind *kind, const char *fingerprint, const void *data, size_t size_bytes,
                                    clv__text *file) {
  clv__text payload;
  clv__text_init(&payload, clv__allocator_default());
  clv__sealed_put_text(&payload, fingerprint);
  clv__text_append_bytes(&payload, data, size_bytes);
  if (clv__sealed_write(kind, &payload, fuzz_sealed_append, file, NULL) != CLV_OK) abort();
  clv__text_finish(&payload);
}

typedef size_t (*fuzz_sealed_change)(uint8_t *data, size_t size_bytes, size_t max_bytes); /* libFuzzer's LLVMFuzzerMutate() */

/* Mutates an input but keeps its parts in place. Most mutations change only the graph and correct its size; some change the
 * bytes after it, or set the mode in the first byte to one of `modes`; some change any bytes. */
static inline size_t fuzz_sealed_mutate(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed, unsigned modes,
                                        fuzz_sealed_change change) {
  size_t at = size_bytes > 0 ? fuzz_sealed_graph(data + 1, size_bytes - 1) + 1 : 1;
  uint64_t graph_bytes = at > 1 ? fuzz_sealed_number(data + at - 8, 8) : UINT64_MAX;
  if (seed % 8 == 0 || graph_bytes > size_bytes - at) return change(data, size_bytes, max_bytes);
  if (seed % 8 == 1) {
    data[0] = (uint8_t)((seed >> 8) & modes);
    return size_bytes;
  }
  size_t rest = size_bytes - at - graph_bytes;
  if (seed % 8 == 2) {
    return at + graph_bytes + change(data + at + graph_bytes, rest, max_bytes - (size_bytes - rest));
  }
  uint8_t *tail = malloc(rest + 1);
  if (tail == NULL) return size_bytes;
  memcpy(tail, data + at + graph_bytes, rest);
  graph_bytes = change(data + at, graph_bytes, max_bytes - at - rest);
  for (size_t i = 0; i < 8; ++i) data[at - 8 + i] = (uint8_t)(graph_bytes >> (8 * i));
  memcpy(data + at + graph_bytes, tail, rest);
  free(tail);
  return at + graph_bytes + rest;
}

#endif
