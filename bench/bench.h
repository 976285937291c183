/* Shared by the benchmarks in C. Define BENCH, the benchmark's name, before including this. */
#ifndef CLEAVE_BENCH_BENCH_H
#define CLEAVE_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph.h"

/* Ends the program with a message if `status` is not CLV_OK. */
static inline void check(clv_status status, const clv_error *error, const char *what) {
  if (status == CLV_OK) return;
  fprintf(stderr, BENCH ": %s: %s: %s\n", what, clv_status_name(status), error->message);
  exit(1);
}

/* The value called `name` in the graph under construction. */
static inline clv_value_id value(clv__builder *builder, const char *name) {
  clv_error error = {0};
  clv_value_id id;
  check(clv__builder_value(builder, name, &id, &error), &error, name);
  return id;
}

/* Compares two times, for qsort(). */
static inline int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

#endif
