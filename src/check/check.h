/* The conformance kit: whether a backend keeps the plugin ABI's promises. It sees a backend as the host does, through its slots,
 * and judges results by the reference evaluator. A section is one kind of promise; each is one file, and counts what it looked
 * at.
 *
 * What a backend may leave out (optional slots, operators it does not take) is skipped with a reason, never failed. */
#ifndef CLEAVE_CHECK_CHECK_H
#define CLEAVE_CHECK_CHECK_H

#include "base/text.h"
#include "check/report.h"
#include "device/device.h"

typedef struct clv__check clv__check; /* one check of one device under way */

/* Where a check is, in memory that outlives it: whoever watches a check in another process reads it there. */
typedef struct clv__check_sign {
  uint64_t beats; /* grows whenever something was looked at */
  uint32_t done, of;
  char what[200]; /* what is being looked at */
} clv__check_sign;

/* What a section may use. */
struct clv__check {
  clv_context *context;
  const clv_allocator *allocator;
  const clv_devices_options *devices_options; /* as the device was opened with */
  clv_devices *devices;                       /* the device alone, opened anew for each section */
  const clv__device *device;
  const clv_backend *backend;
  clv_device *handle;
  const clv_check_options *options;
  uint64_t seed;
  clv_check_report *report;
  uint32_t section;             /* of the report, under way */
  clv__arena arena;             /* of one section */
  clv__check_listener listener; /* may be NULL */
  void *cookie;
  clv__check_sign *sign;
};

/* One thing looked at. `what` says which, with its values ("Conv, f32, 1x3x8x8, stride 2"); a failure also what came and what was
 * expected. From the section's own thread. */
void clv__check_pass(clv__check *check);
void clv__check_fail(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);
void clv__check_skip(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);
/* Passes where `holds`, fails with the text otherwise. Returns `holds`. */
bool clv__check_that(clv__check *check, bool holds, const char *what, const char *format, ...) CLV_PRINTF(4, 5);
/* A sign of life, from any thread. */
void clv__check_beat(clv__check *check);
/* What is looked at next, in case that the backend does not come back from it; and how far the section is. */
void clv__check_at(clv__check *check, const char *format, ...) CLV_PRINTF(2, 3);
void clv__check_progress(clv__check *check, uint32_t done, uint32_t of);
/* How many of `count` things that are much alike are to be looked at: 1 at least. */
uint32_t clv__check_thin(const clv__check *check, uint32_t count);
/* A failed call: its status and text. The text must not be empty, nor the status one that no call gives. */
void clv__check_failed_call(clv__check *check, const char *what, const char *call, clv_status status, const clv_error *error);

typedef void (*clv__check_section_fn)(clv__check *check);

typedef struct clv__check_section {
  const char *name; /* "operators" */
  const char *help; /* one line: what it looks at */
  clv__check_section_fn run;
} clv__check_section;

/* All, in the order in which they run (sections.c). */
extern const clv__check_section clv__check_sections[];
extern const uint32_t clv__check_section_count;

/* Opens the device: `devices` and what goes with it. */
clv_status clv__check_open(clv__check *check, clv_error *error);
/* Closes the device and opens it again: nothing of it may be left. Where that fails the section is over, and `devices` NULL. */
clv_status clv__check_reopen(clv__check *check, clv_error *error);

/* The next of seeded numbers (SplitMix64); below `limit`; in [-1, 1). */
uint64_t clv__check_random(uint64_t *state);
uint32_t clv__check_below(uint64_t *state, uint32_t limit);
double clv__check_real(uint64_t *state);

/* ---- Cases of operators (cases.c and its kin): small graphs that together cover the operators ---- */

typedef struct clv__check_case {
  char what[160];     /* "Conv 22, f32, x[1,3,8,8], stride 2, pads 1" */
  clv_graph *graph;   /* one node, or a few; destroyed by whoever asked for the case */
  clv_tensor *inputs; /* of the graph, with seeded data in the graph's arena */
  uint32_t input_count;
} clv__check_case;

/* How many cases there are, and one of them: for every operator of the table a few shapes (odd sizes, 1, 0, large), every dtype
 * that it takes, its attributes one by one, constant and computed operands. The same seed and index give the same case. */
uint32_t clv__check_case_count(void);
clv_status clv__check_case_make(const clv_allocator *allocator, uint32_t index, uint64_t seed, clv__check_case *made,
                                clv_error *error);
void clv__check_case_finish(clv__check_case *made); /* accepts a zeroed one */

#endif
