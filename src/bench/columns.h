/* The results of a bench as rows. One list of columns describes them: tables, CSV and JSON are written from it. */
#ifndef CLEAVE_BENCH_COLUMNS_H
#define CLEAVE_BENCH_COLUMNS_H

#include "bench/runner.h"

enum { CLV__MOST_PERCENTILES = 16, CLV__MOST_COLUMNS = 40 };

/* The result of comparing a configuration with the first one, with which it took turns. */
typedef struct clv__comparison_of_runs {
  double ratio, low, high; /* its time divided by that of the first: the median over all rounds, and the quartiles */
  const char *text;        /* what the comparison of the outputs found */
  bool agrees;             /* whether the outputs agree; otherwise there is no ratio */
} clv__comparison_of_runs;

/* The measurements from which the row of one configuration is written. */
typedef struct clv__result {
  clv_bench *bench; /* its arena holds the texts of the row */
  const clv_bench_subject *subject;
  const clv__runner *measured;               /* NULL: the configuration could not be measured */
  const clv__comparison_of_runs *comparison; /* NULL: the first configuration, or not compared with it */
  const char *failure;                       /* why the configuration could not be measured; NULL: it was measured */
} clv__result;

typedef enum clv__column_kind {
  CLV__COLUMN_TEXT,
  CLV__COLUMN_LIST, /* a text with commas; an array in JSON */
  CLV__COLUMN_COUNT,
  CLV__COLUMN_REAL
} clv__column_kind;

/* Whether tables for people have a column. CSV and JSON have all columns, except those of comparisons if nothing was compared. */
typedef enum clv__column_shown {
  CLV__SHOWN_NEVER,
  CLV__SHOWN_ALWAYS,
  CLV__SHOWN_MODEL,   /* if the options ask for it, or if there are several models */
  CLV__SHOWN_THREADS, /* if it is given for a configuration, and likewise: */
  CLV__SHOWN_BATCH,
  CLV__SHOWN_IN_FLIGHT,
  CLV__SHOWN_COMPARISON, /* if configurations were compared */
  CLV__SHOWN_FAILURES    /* if there are any */
} clv__column_shown;

typedef struct clv__field {
  const char *text; /* NULL: unknown */
  double number;    /* NaN: unknown */
} clv__field;

typedef struct clv__column {
  char key[40];   /* the column of CSV and the member of JSON; "latency_ms.p90" is a member of an object */
  char title[32]; /* in tables */
  clv__column_kind kind;
  int decimals; /* how many decimals tables show of a CLV__COLUMN_REAL */
  clv__column_shown shown;
  double percent; /* of a percentile; otherwise negative */
  clv__field (*get)(const clv__result *result, double percent);
} clv__column;

typedef struct clv__row {
  clv__field fields[CLV__MOST_COLUMNS];
  clv_bench_figures figures;
  double *sorted_ms; /* figures.run_count of them */
} clv__row;

struct clv_bench {
  const clv_allocator *allocator;
  clv__arena arena;
  clv_bench_options options; /* its texts and lists are in the arena or have been read */
  clv__bench_extent extent;
  clv__poll poll;
  clv__column columns[CLV__MOST_COLUMNS];
  uint32_t column_count;
  clv__row **rows;
  size_t row_count, row_capacity;
  bool has_models, has_threads, has_batch, has_in_flight, is_compared; /* whether tables have these optional columns */
  uint32_t compare_count;                                              /* calls of clv_bench_compare() */
  const char *base; /* the devices of the first configuration, if there was one comparison */
  clv__runner last; /* the last configuration that clv_bench_measure() measured; all zero: none */
  uint32_t last_row;
};

/* Lists the columns. `percents` are the percentiles that the user asked for. */
clv_status clv__bench_columns(clv_bench *bench, const double *percents, uint32_t count, clv_error *error);
/* Returns whether a table has the column. Tables for programs (`is_exact`) have more. */
bool clv__bench_has_column(const clv_bench *bench, uint32_t column, bool is_exact);
clv_status clv__bench_add_row(clv_bench *bench, const clv__result *result, clv_error *error);
/* Adds the members of a row to an object. */
void clv__bench_row_json(const clv_bench *bench, uint32_t row, json_t *object);

#endif
