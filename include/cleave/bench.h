/* Measuring the time of sessions: their runs, their steps and their operators. Unstable: may change until 1.0.
 *
 *   clv_bench_create(context, &options, &bench, &error)
 *   clv_bench_measure(bench, &(clv_bench_subject){.struct_size = ..., .session = session, .inputs = ..., ...}, &error)
 *   clv_bench_row(bench, 0, &figures)
 *   clv_bench_details(bench, CLV_BENCH_USUAL, CLV_FORM_TEXT, &text, &error)
 *   clv_bench_destroy(bench)
 *
 * A bench makes a row of results for each configuration that it measures. A configuration is a session with inputs. Measure while
 * nothing else runs on the machine. Functions that fill a struct copy as many bytes as its struct_size says, which the caller
 * sets first. A bench must not be used by two threads at a time, and its sessions must not run elsewhere meanwhile. */
#ifndef CLEAVE_BENCH_H
#define CLEAVE_BENCH_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_bench clv_bench;

/* What a bench does now. */
typedef enum clv_bench_phase {
  CLV_BENCH_FIRST_RUN = 0, /* the first run, and runs to warm up: go_on() is not called */
  CLV_BENCH_RUNS = 1,      /* measured runs */
  CLV_BENCH_OPERATORS = 2, /* runs in which devices time their operators */
  CLV_BENCH_PEAKS = 3      /* the peak speed of the machine's arithmetic and memory */
} clv_bench_phase;

typedef struct clv_bench_progress {
  uint32_t struct_size;
  clv_bench_phase phase;
  const char *label;          /* of the configuration */
  uint64_t done, of;          /* runs; `of` is 0 if only the duration is limited */
  double seconds, of_seconds; /* of the measured runs; `of_seconds` is 0 if the duration is not limited */
} clv_bench_progress;

typedef struct clv_bench_options {
  uint32_t struct_size;
  uint32_t runs; /* measured runs per configuration; 0: no limit or, if the duration is not limited either, 50 */
  double
      duration_s;  /* measure for this long; 0: no limit. If both limits are given, the first one reached ends the measurement */
  uint32_t warmup; /* runs after the first one that are not measured */
  uint32_t percentile_count; /* percentiles of the run times in tables, from 0 to 100; at most 14 */
  const double *percentiles; /* NULL: 90 and 99 */
  /* The following apply to clv_bench_measure(), after the measured runs. Each takes runs of its own, because it slows them down.
   */
  bool steps;             /* measure each partition and transfer, with a wait after each */
  bool operators;         /* measure each operator on devices that report operator times, and the machine's peaks */
  const char *trace_path; /* write a timeline of three runs to this file, as clv_session_trace_write() does; NULL: none */
  /* The number of configurations that will be measured, for the text of an interrupted bench; 0: unknown. */
  uint32_t configuration_count;
  bool show_model;                /* tables have a column with the model, also if it is always the same */
  bool (*go_on)(void *user_data); /* called between runs; return false to end the measurement: see clv_bench_measure(). May be
                                     NULL */
  void (*progress)(void *user_data, const clv_bench_progress *progress); /* called between runs; may be NULL */
  void *user_data;
} clv_bench_options;
#define CLV_BENCH_OPTIONS_INIT \
  { sizeof(clv_bench_options), 0, 0, 5, 0, NULL, false, false, NULL, 0, false, NULL, NULL, NULL }

/* Creates a bench without results. `options` may be NULL. The context must outlive the bench.
 * Errors: CLV_INVALID_ARGUMENT for a percentile outside 0 to 100, or too many; for a negative duration; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_bench_create(clv_context *context, const clv_bench_options *options, clv_bench **bench,
                                                 clv_error *error);
CLV_API void clv_bench_destroy(clv_bench *bench); /* accepts NULL; does not need the sessions */

/* A configuration. All but the session and its inputs is only reported. Texts and numbers are copied. */
typedef struct clv_bench_subject {
  uint32_t struct_size;
  uint32_t input_count;
  clv_session *session;     /* NULL: the configuration could not be made: see `failure` */
  const clv_tensor *inputs; /* as for clv_session_run() */
  const char *failure;      /* without a session: why there is none */
  const char *label;        /* for progress; NULL: "" */
  const char *model;        /* a name for the model; NULL: "" */
  const char *model_path;   /* the model's file, if `model` is a plan file or a directory; NULL: `model` */
  const char *devices;      /* without a session: the list of its devices; with a session, the devices in use are reported */
  uint32_t thread_count;    /* of the cpu device; 0: not given. Peaks are measured with as many threads; 0: all cores */
  uint32_t batch;           /* inferences per run; 0: not given, so 1 */
  uint32_t in_flight;       /* of the session; 0: not given */
  double load_ms, plan_ms, compile_ms; /* how long these steps took */
} clv_bench_subject;
#define CLV_BENCH_SUBJECT_INIT \
  { sizeof(clv_bench_subject), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 }

/* Measures one configuration: one first run, options.warmup runs, the measured runs on the same inputs, and what else the options
 * ask for. If the session's in_flight is above 1, as many measured runs proceed at a time.
 *
 * If go_on() returns false, the measurement ends, and the row has the runs until then. Errors, after which there is no row:
 * CLV_CANCELLED if go_on() returned false before the first measured run ended; those of clv_session_run(). A subject without a
 * session makes a row with its failure, and is not an error. */
CLV_API CLV_MUST_USE clv_status clv_bench_measure(clv_bench *bench, const clv_bench_subject *subject, clv_error *error);

/* Measures configurations of one model by turns, so that other work of the machine affects all of them alike: ten rounds, in each
 * of which every configuration makes a tenth of its runs. Makes a row for each. Compares the outputs and the times of each with
 * those of the first. A configuration that cannot run has a row that says why. go_on() is as in clv_bench_measure(); an
 * interrupted configuration without a run has no row. `count` may be 1.
 * Errors: CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_bench_compare(clv_bench *bench, const clv_bench_subject *subjects, uint32_t count,
                                                  clv_error *error);

/* The results of one configuration. Strings and arrays are valid as long as the bench. */
typedef struct clv_bench_figures {
  uint32_t struct_size;
  bool is_measured;      /* false: it could not run, and all numbers are NaN or 0 */
  bool is_compared;      /* compared with the first configuration of clv_bench_compare() */
  bool outputs_agree;    /* its outputs agree with those of the first within the tolerance of their dtype */
  uint64_t run_count;    /* measured runs */
  const double *runs_ms; /* their times, in their order */
  double median_ms, mean_ms, min_ms, max_ms;
  double deviation_ms; /* the standard deviation; NaN for a single run */
  double runs_per_second, inferences_per_second;
  double predicted_ms; /* by the plan, with devices at the same time */
  double first_run_ms, load_ms;
  double ratio, ratio_low, ratio_high; /* the time of a run divided by that of the first configuration: the median of the rounds,
                                          and their quartiles; NaN: unknown, or the outputs differ */
  const char *model;
  const char *devices;
  const char *outputs; /* what the comparison of the outputs found; NULL: not compared */
  const char *failure; /* why it was not measured, or the first device that was removed while it was; NULL: neither */
} clv_bench_figures;
/* Returns false, and fills the struct with zeros, for an index beyond the rows. */
CLV_API bool clv_bench_row(const clv_bench *bench, uint32_t index, clv_bench_figures *figures);
/* The nearest-rank percentile of a row's times, in milliseconds: the least time that at least `percent` % of all runs do not
 * exceed. NaN if the row does not exist or was not measured, and for a percentage outside 0 to 100. */
CLV_API double clv_bench_percentile(const clv_bench *bench, uint32_t row, double percent);

/* How a table of all rows is written. The first three are those of clv_form. */
typedef enum clv_bench_form {
  CLV_BENCH_TEXT = 0,
  CLV_BENCH_JSON = 1,
  CLV_BENCH_TERMINAL = 2,
  CLV_BENCH_CSV = 3,     /* RFC 4180, with all columns */
  CLV_BENCH_MARKDOWN = 4 /* a table of GitHub's Markdown */
} clv_bench_form;
/* Makes a table of all rows, as `cleave bench` prints it for several configurations. JSON has every sample. Free it with
 * clv_text_free(). Errors: CLV_INVALID_ARGUMENT for an unknown form; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_bench_table(const clv_bench *bench, clv_bench_form form, char **text, clv_error *error);

typedef enum clv_bench_level {
  CLV_BENCH_BRIEF = 0, /* no tables of memory and steps */
  CLV_BENCH_USUAL = 1, /* the first 30 steps */
  CLV_BENCH_ALL = 2    /* all steps, and each step of the operators' devices */
} clv_bench_level;
/* Makes a document of the last configuration that clv_bench_measure() measured, whose session must still exist: as `cleave bench`
 * prints it for a single configuration. `level` applies to texts; JSON has everything. Free it with clv_text_free(). Errors:
 * CLV_INVALID_ARGUMENT for an unknown form or level, and if nothing was measured; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_bench_details(clv_bench *bench, clv_bench_level level, clv_form form, char **text,
                                                  clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
