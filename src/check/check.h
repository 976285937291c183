/* The conformance kit: it checks that a backend keeps the promises of the plugin ABI. It calls the backend's slots (the
 * function pointers of its clv_backend) as the host does, and compares results with those of the reference evaluator. A section
 * covers one kind of promise. Each section is one file and counts the items that it checks.
 *
 * Optional parts that a backend lacks (optional slots, unsupported operators) are skipped with a reason; they are not failures.
 */
#ifndef CLEAVE_CHECK_CHECK_H
#define CLEAVE_CHECK_CHECK_H

#include "base/text.h"
#include "check/report.h"
#include "device/device.h"

typedef struct clv__check clv__check; /* one check of one device, while it runs */

/* The current position of a check, in memory that outlives the check. If the check runs in a child process, the parent reads
 * the position from this memory. */
typedef struct clv__check_sign {
  uint64_t beats; /* grows after every item checked */
  uint32_t done, of;
  char what[200]; /* the item being checked */
} clv__check_sign;

/* The state available to a section. */
struct clv__check {
  clv_context *context;
  const clv_allocator *allocator;
  const clv_devices_options *devices_options; /* the options that the device was opened with */
  clv_devices *devices;                       /* contains only the device being checked; opened again for each section */
  const clv__device *device;
  const clv_backend *backend;
  clv_device *handle;
  const clv_check_options *options;
  uint64_t seed;
  clv_check_report *report;
  uint32_t section;             /* index of the running section in the report */
  clv__arena arena;             /* lives for one section */
  clv__check_listener listener; /* may be NULL */
  void *cookie;
  clv__check_sign *sign;
};

/* Records one checked item. `what` names it with its values ("Conv, f32, 1x3x8x8, stride 2"). The text of a failure also gives
 * the actual and the expected result. Call from the section's own thread. */
void clv__check_pass(clv__check *check);
void clv__check_fail(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);
void clv__check_skip(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);
/* Records a pass if `holds`, otherwise a failure with the text. Returns `holds`. */
bool clv__check_that(clv__check *check, bool holds, const char *what, const char *format, ...) CLV_PRINTF(4, 5);
/* Signals that the section is making progress. Any thread may call it. */
void clv__check_beat(clv__check *check);
/* clv__check_at() states the next item to be checked, in case the backend does not return from it. clv__check_progress() states
 * how many items are done. */
void clv__check_at(clv__check *check, const char *format, ...) CLV_PRINTF(2, 3);
void clv__check_progress(clv__check *check, uint32_t done, uint32_t of);
/* Returns how many of `count` similar items to check: one in every options->every, but at least 1 in all. */
uint32_t clv__check_thin(const clv__check *check, uint32_t count);
/* Records a failure: the call named `call` returned `status` and the text in `error`. */
void clv__check_failed_call(clv__check *check, const char *what, const char *call, clv_status status, const clv_error *error);

typedef void (*clv__check_section_fn)(clv__check *check);

typedef struct clv__check_section {
  const char *name; /* "operators" */
  const char *help; /* one line: what it checks */
  clv__check_section_fn run;
} clv__check_section;

/* All sections, in the order in which they run (sections.c). */
extern const clv__check_section clv__check_sections[];
extern const uint32_t clv__check_section_count;

/* Opens the device: sets `devices`, `device`, `backend` and `handle`. */
clv_status clv__check_open(clv__check *check, clv_error *error);
/* Closes the device and opens it again. The caller must first destroy all objects of the device. If this fails, `devices` is NULL
 * and the section must end. */
clv_status clv__check_reopen(clv__check *check, clv_error *error);

/* Seeded random numbers (SplitMix64): the next one; one below `limit`; one in [-1, 1). */
uint64_t clv__check_random(uint64_t *state);
uint32_t clv__check_below(uint64_t *state, uint32_t limit);
double clv__check_real(uint64_t *state);

/* ---- Cases of operators (cases/): small graphs that together cover the operators ---- */

typedef struct clv__check_case {
  char what[160];     /* "Conv 22, f32, x[1,3,8,8], stride 2, pads 1" */
  clv_graph *graph;   /* one node, or a few; destroyed by clv__check_case_finish() */
  clv_tensor *inputs; /* inputs of the graph, with seeded data in the graph's arena */
  uint32_t input_count;
} clv__check_case;

/* Return the number of cases, and create one of them. For every operator there are a few shapes (odd sizes, 1, 0, large), every
 * dtype that it accepts, its attributes one at a time, and constant and computed operands. The same seed and index give the same
 * case. */
uint32_t clv__check_case_count(void);
clv_status clv__check_case_make(const clv_allocator *allocator, uint32_t index, uint64_t seed, clv__check_case *made,
                                clv_error *error);
void clv__check_case_finish(clv__check_case *made); /* accepts a zeroed one */

#endif
