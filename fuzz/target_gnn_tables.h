/* Reads cost tables of GNNs as JSON and as CSV, looks up costs, writes the tables, and reads the result. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_TABLES_H
#define CLEAVE_FUZZ_TARGET_GNN_TABLES_H

#include <stdlib.h>
#include <string.h>

#include "gnn/tables/tables.h"

static inline void fuzz_gnn_tables_ask(const clv__tables *tables) {
  double time;
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    char reason[64];
    (void)clv__table_time(&tables->tables[t], 1000, 5000, 700, &time);
    (void)clv__table_peak(&tables->tables[t], 1000, 5000, 700);
    clv__table_reason(&tables->tables[t], UINT64_MAX, 0, reason, sizeof reason);
  }
  for (uint32_t c = 0; c < tables->copy_count; ++c) (void)clv__copy_table_time(&tables->copies[c], 4096, &time);
}

static const clv__import_column fuzz_gnn_columns[] = {{"cpu_ms", "cpu", 0, 4, true}, {"npu_ms", "npu", 4, 7, false}};

/* Reads the input as JSON if it begins with '{', otherwise as CSV, and returns the reader's status and error. */
static inline clv_status fuzz_gnn_tables_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  clv__tables tables;
  clv__tables_init(&tables, clv__allocator_default());
  clv_status status = size_bytes > 0 && data[0] == '{' ? clv__tables_parse(&tables, (const char *)data, size_bytes, "fuzz", error)
                                                       : clv__tables_import(&tables, "layer", fuzz_gnn_columns, 2,
                                                                            (const char *)data, size_bytes, "fuzz", error);
  clv__tables_finish(&tables);
  return status;
}

static inline void fuzz_gnn_tables(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__tables tables, again;
  clv__text text, second;
  clv__tables_init(&tables, allocator);
  clv__tables_init(&again, allocator);
  clv__text_init(&text, allocator);
  clv__text_init(&second, allocator);
  if (clv__tables_import(&tables, "layer", fuzz_gnn_columns, 2, (const char *)data, size_bytes, "fuzz", &error) == CLV_OK ||
      clv__tables_parse(&tables, (const char *)data, size_bytes, "fuzz", &error) == CLV_OK) {
    fuzz_gnn_tables_ask(&tables);
    if (clv__tables_print(&tables, &text, &error) == CLV_OK) { /* the printed tables must be readable and print the same */
      if (clv__tables_parse(&again, text.data, text.size_bytes, "again", &error) != CLV_OK ||
          clv__tables_print(&again, &second, &error) != CLV_OK || strcmp(text.data, second.data) != 0)
        abort();
    }
  }
  clv__text_finish(&second);
  clv__text_finish(&text);
  clv__tables_finish(&again);
  clv__tables_finish(&tables);
}

#endif
