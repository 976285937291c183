/* The conformance kit: whether a backend keeps the plugin ABI's promises. It sees a backend as the host does, through its slots,
 * and judges results by src/kernels. A section is one kind of promise; each is one file, and counts what it looked at.
 *
 * What a backend may leave out (optional slots, operators it does not take) is skipped with a reason, never failed. */
#ifndef CLEAVE_CHECK_CHECK_H
#define CLEAVE_CHECK_CHECK_H

#include "base/text.h"
#include "cleave/check.h"
#include "device/device.h"

typedef struct clv__check clv__check; /* one check of one device under way */

/* What a section may use; see check.c for how a device is opened anew. */
struct clv__check {
  clv_context *context;
  clv_devices *devices; /* the device alone, opened */
  const clv__device *device;
  const clv_check_options *options;
  uint64_t seed;
  clv_check_report *report;
  uint32_t section; /* of the report, under way */
  clv__arena arena; /* of one section */
};

/* One thing looked at. `what` says which, with its values ("Conv, f32, 1x3x8x8, stride 2"); a failure also what came and what was
 * expected. */
void clv__check_pass(clv__check *check);
void clv__check_fail(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);
void clv__check_skip(clv__check *check, const char *what, const char *format, ...) CLV_PRINTF(3, 4);

typedef void (*clv__check_section_fn)(clv__check *check);

typedef struct clv__check_section {
  const char *name; /* "operators" */
  const char *help; /* one line: what it looks at */
  clv__check_section_fn run;
} clv__check_section;

/* All, in the order in which they run (sections.c). */
extern const clv__check_section clv__check_sections[];
extern const uint32_t clv__check_section_count;

/* ---- Cases of operators (cases.c and its kin): small graphs that together cover what src/ops knows ---- */

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

/* ---- Running (run.c) ---- */

/* Compiles the whole of `graph` on the device and runs it once, as the host would: weights uploaded, an instance, bindings in the
 * device's memory, outputs copied back. `outputs` get data in the arena of the section. */
clv_status clv__check_run(clv__check *check, const clv_graph *graph, const clv_tensor *inputs, clv_tensor *outputs,
                          clv_error *error);
/* Compares with the reference evaluator's outputs within the dtype's tolerance; on a difference the worst element is in `text`.
 */
bool clv__check_same(const clv_tensor *actual, const clv_tensor *expected, const clv_graph *graph, char *text, size_t text_bytes);

#endif
