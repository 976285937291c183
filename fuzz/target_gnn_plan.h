/* Reads a plan of GNN inference, writes it, and reads the result. */
#ifndef CLEAVE_FUZZ_TARGET_GNN_PLAN_H
#define CLEAVE_FUZZ_TARGET_GNN_PLAN_H

#include <stdlib.h>
#include <string.h>

#include "gnn/plan/plan.h"

static inline clv_status fuzz_gnn_plan_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  clv__gnn_plan *plan;
  clv_status status = clv__gnn_plan_parse(clv__allocator_default(), (const char *)data, size_bytes, "fuzz", &plan, error);
  clv__gnn_plan_destroy(plan);
  return status;
}

static inline void fuzz_gnn_plan(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__gnn_plan *plan, *again;
  clv__text text, second;
  if (clv__gnn_plan_parse(allocator, (const char *)data, size_bytes, "fuzz", &plan, &error) != CLV_OK) return;
  clv__text_init(&text, allocator);
  clv__text_init(&second, allocator);
  if (clv__gnn_plan_print(plan, &text, &error) == CLV_OK) { /* the printed plan must be readable and print the same */
    if (clv__gnn_plan_parse(allocator, text.data, text.size_bytes, "again", &again, &error) != CLV_OK) abort();
    if (clv__gnn_plan_print(again, &second, &error) == CLV_OK && strcmp(text.data, second.data) != 0) abort();
    clv__gnn_plan_destroy(again);
  }
  clv__text_finish(&second);
  clv__text_finish(&text);
  clv__gnn_plan_destroy(plan);
}

#endif
