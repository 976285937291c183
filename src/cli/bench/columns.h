/* The results of a bench as rows. One list of columns describes them: tables, CSV and JSON are written from it. */
#ifndef CLEAVE_CLI_BENCH_COLUMNS_H
#define CLEAVE_CLI_BENCH_COLUMNS_H

#include "cli/command.h"
#include "cli/json.h"

enum { BENCH_MOST_PERCENTILES = 16, BENCH_MOST_COLUMNS = 40 };

typedef struct bench bench;
typedef struct bench_setting bench_setting;
typedef struct bench_report bench_report;

/* The result of comparing a configuration with the first one, with which it took turns. */
typedef struct bench_comparison {
  double ratio, low, high; /* its time divided by that of the first: the median over all rounds, and the quartiles */
  const char *text;        /* what the comparison of the outputs found */
  bool agrees;             /* whether the outputs agree; otherwise there is no ratio */
} bench_comparison;

/* The measurements and settings from which the row of one configuration is written. */
typedef struct bench_result {
  cli_invocation *cli; /* its arena holds the texts of the row */
  const bench_setting *setting;
  bench *measured;                    /* NULL: the configuration could not be measured */
  const bench_comparison *comparison; /* NULL: the first configuration, or not compared with it */
  const clv_error *failure;           /* why the configuration could not be measured; NULL: it was measured */
} bench_result;

typedef enum bench_kind {
  BENCH_TEXT,
  BENCH_LIST, /* a text with commas; an array in JSON */
  BENCH_COUNT,
  BENCH_REAL
} bench_kind;

typedef struct bench_field {
  const char *text; /* NULL: unknown */
  double number;    /* NaN: unknown */
} bench_field;

typedef struct bench_column {
  char key[40];   /* the column of CSV and the member of JSON; "latency_ms.p90" is a member of an object */
  char title[32]; /* in tables */
  bench_kind kind;
  int decimals;  /* how many decimals tables show of a BENCH_REAL */
  bool is_shown; /* in tables; CSV and JSON have all columns */
  double percent;
  bench_field (*get)(const bench_result *result, double percent);
} bench_column;

typedef struct bench_row {
  bench_field fields[BENCH_MOST_COLUMNS];
  bool is_measured;
  double *samples_ms; /* in the arena of the invocation */
  size_t sample_count;
} bench_row;

struct bench_report {
  cli_invocation *cli;
  bench_column columns[BENCH_MOST_COLUMNS];
  uint32_t column_count;
  bench_row *rows; /* in the arena of `cli` */
  uint32_t row_count, row_capacity;
  bool interrupted;
  bool differs;     /* outputs of --compare-with differ */
  const char *base; /* with --compare-with: the devices of --devices, which all others are compared with; NULL: several lists */
};

/* Which optional columns tables have: those of settings that vary, or that the user asked for. */
typedef struct bench_shown {
  bool model, threads, batch, in_flight, comparison;
} bench_shown;

/* Reads --percentiles. `capacity` is the largest number of rows. */
clv_status bench_report_init(bench_report *report, cli_invocation *cli, const bench_shown *shown, uint32_t capacity,
                             clv_error *error);
clv_status bench_report_add(bench_report *report, const bench_result *result, clv_error *error);
/* Returns whether any configuration was measured. */
bool bench_report_has_results(const bench_report *report);
/* If no configuration was measured, and all for the same reason, returns this reason, otherwise NULL. */
const char *bench_report_common_failure(const bench_report *report);
/* Adds the members of a row to an object. */
void bench_row_json(const bench_report *report, uint32_t row, json_t *object);
/* Prints the rows, as the options say: a table in text or Markdown, CSV, or JSON. */
clv_status bench_report_print(const bench_report *report, clv_error *error);

#endif
