/* Reads the file from which a run of GNN inference resumes. The model has layers of 3, 2 and 4 columns and the graph 5 vertices.
 * The first byte of an input is its kind. FUZZ_STATE_FILE: a complete file follows. FUZZ_STATE_SEALED: the number of finished
 * layers (one byte) and the rows follow; the header is added here, because a reader would reject every mutated file with the
 * wrong hash. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_STATE_H
#define CLEAVE_FUZZ_TARGET_GNN_STATE_H

#include <stdlib.h>
#include <string.h>

#include "gnn/run/own.h"

enum { FUZZ_STATE_FILE, FUZZ_STATE_SEALED, FUZZ_STATE_KINDS };
enum { FUZZ_STATE_VERTICES = 5, FUZZ_STATE_LAYERS = 3, FUZZ_STATE_WIDEST = 4, FUZZ_STATE_HEAD = 8 + 32 + 8 + 8 + 32 };

/* Writes a file in the format of run/state.c: magic, key, number of finished layers, a reserved word, count of numbers, their
 * hash, the numbers. */
static inline void fuzz_gnn_state_file(const clv__hash *key, uint32_t layers_done, const void *rows, size_t rows_bytes,
                                       clv__text *file) {
  const uint32_t layers[2] = {layers_done, 0};
  uint64_t count = rows_bytes / sizeof(float);
  clv__hash content;
  clv__hash_bytes(rows, rows_bytes, &content);
  clv__text_append_bytes(file, "CLVGNNS1", 8);
  clv__text_append_bytes(file, key, sizeof *key);
  clv__text_append_bytes(file, layers, sizeof layers);
  clv__text_append_bytes(file, &count, sizeof count);
  clv__text_append_bytes(file, &content, sizeof content);
  clv__text_append_bytes(file, rows, rows_bytes);
}

static inline clv_status fuzz_gnn_state_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  clv__gnn_layer layers[FUZZ_STATE_LAYERS] = {{.in = 6, .out = 3, .heads = 1, .concat = true},
                                              {.in = 3, .out = 2, .heads = 1, .concat = true},
                                              {.in = 2, .out = 4, .heads = 1, .concat = true}};
  const clv__gnn_model model = {.type = CLV__GNN_SAGE, .layer_count = FUZZ_STATE_LAYERS, .layers = layers};
  const clv__gnn_schedule schedule = {.layer_count = FUZZ_STATE_LAYERS, .k = 1};
  const clv__gnn_run run = {.model = &model, .schedule = &schedule, .vertex_count = FUZZ_STATE_VERTICES};
  float rows[FUZZ_STATE_VERTICES * FUZZ_STATE_WIDEST];
  clv__text file;
  clv__hash key;
  uint32_t layers_done = 77;
  clv__hash_bytes("key", 3, &key);
  clv__text_init(&file, clv__allocator_default());
  if (size_bytes > 1 && data[0] % FUZZ_STATE_KINDS == FUZZ_STATE_SEALED)
    fuzz_gnn_state_file(&key, data[1], data + 2, size_bytes - 2, &file);
  else if (size_bytes > 1)
    clv__text_append_bytes(&file, data + 1, size_bytes - 1);
  memset(rows, 'r', sizeof rows);
  clv_status status = clv__run_state_parse(&run, "fuzz.state", file.data, file.size_bytes, &key, &layers_done, rows, error);
  if (status == CLV_OK) { /* the state must be of a layer before the last, with all of its rows */
    if (layers_done < 1 || layers_done >= FUZZ_STATE_LAYERS) abort();
    size_t rows_bytes = sizeof(float) * FUZZ_STATE_VERTICES * clv__gnn_layer_width(&layers[layers_done - 1]);
    if (file.size_bytes != FUZZ_STATE_HEAD + rows_bytes || memcmp(rows, file.data + FUZZ_STATE_HEAD, rows_bytes) != 0) abort();
  } else if (layers_done != 0 || error->message[0] == '\0') {
    abort();
  }
  clv__text_finish(&file);
  return status;
}

static inline void fuzz_gnn_state(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_gnn_state_status(data, size_bytes, &error);
}

#endif
