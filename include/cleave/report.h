/* Documents and pictures about plans and devices, for people and for programs that pass them on. Programs that compute with the
 * parts of a plan read it with plan_contents.h instead.
 *
 * Unstable: may change until 1.0.
 *
 * A function with a parameter `form` sets `text` to a new document, terminated by a zero byte, which the caller frees with
 * clv_text_free(). Documents hold nothing of the plan or the devices. Any thread may call these functions while no other thread
 * destroys the plan or the devices. Unless stated otherwise, errors are CLV_INVALID_ARGUMENT for a NULL argument or an unknown
 * form, and CLV_OUT_OF_MEMORY. */
#ifndef CLEAVE_REPORT_H
#define CLEAVE_REPORT_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A plan ---- */

typedef enum clv_steps_shown {
  CLV_STEPS_SOME = 0, /* partitions and the transfers between them; a long plan without its middle */
  CLV_STEPS_ALL = 1,  /* every step, and the transfers of the graph's inputs and outputs */
  CLV_STEPS_NONE = 2  /* only the totals */
} clv_steps_shown;

/* Describes a plan. As text: a line for each step in execution order, as `steps` says, then the totals with the predicted times,
 * the lower bounds and the source of the prices. As JSON, `steps` does not matter: the object of docs/plan-file.md with the
 * additional members "timings_ms" (how long planning took) and "totals".
 * Errors: also CLV_IO_ERROR, for JSON, if the model's file changed after it was loaded. */
CLV_API CLV_MUST_USE clv_status clv_plan_report(const clv_plan *plan, clv_steps_shown steps, clv_form form, char **text,
                                                clv_error *error);

/* Explains the placement of every node whose name or operator matches `pattern`, where `*` matches any run of characters and `?`
 * any one character; NULL explains all nodes. For each node: its device and the rule that chose it (docs/placement.md), its
 * inputs and outputs, and for each device either why the device cannot run it or what it would cost there. As JSON: an array with
 * an object for each node.
 * Errors: also CLV_NOT_FOUND if no node matches. */
CLV_API CLV_MUST_USE clv_status clv_plan_explain(const clv_plan *plan, const char *pattern, clv_form form, char **text,
                                                 clv_error *error);

/* Lists the devices and causes of all values, weights and nodes after each pass of the strategy `propagate`, for a plan that was
 * made with `record_passes`. As JSON: an array with an object for each pass.
 * Errors: also CLV_INVALID_ARGUMENT if the plan has no record of its passes. */
CLV_API CLV_MUST_USE clv_status clv_plan_passes(const clv_plan *plan, clv_form form, char **text, clv_error *error);

/* Counts the nodes that a device cannot run because it needs fixed shapes and sizes of the model are open. 0 for an index beyond
 * the count of devices. */
CLV_API uint32_t clv_plan_open_nodes(const clv_plan *plan, uint32_t device);

/* Returns whether the plan leaves sizes of the graph's inputs open, so that it serves runs of different sizes. */
CLV_API bool clv_plan_has_open_inputs(const clv_plan *plan);

/* ---- Its alternatives ---- */

/* The plans of all strategies, and of each device alone, for the same model, devices, prices, pins and limits. */
typedef struct clv_comparison clv_comparison;

typedef struct clv_compare_options {
  uint32_t struct_size;
  bool (*go_on)(void *user_data); /* called often; return false to stop: clv_plan_compare() then returns CLV_CANCELLED. NULL: the
                                     comparison cannot be stopped */
  void *go_on_user_data;
} clv_compare_options;
#define CLV_COMPARE_OPTIONS_INIT \
  { sizeof(clv_compare_options), NULL, NULL }

/* Makes the plan again with each strategy, and with all nodes on each device. This takes about as long as making as many plans. A
 * strategy or a device that cannot run the model is no error; the comparison has the reason. `options` may be NULL. The plan must
 * outlive the comparison.
 * Errors: CLV_CANCELLED by go_on(); CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_plan_compare(const clv_plan *plan, const clv_compare_options *options,
                                                 clv_comparison **comparison, clv_error *error);
/* As text: a table with a row for each strategy and each device. As JSON: an array of objects. */
CLV_API CLV_MUST_USE clv_status clv_comparison_text(const clv_comparison *comparison, clv_form form, char **text,
                                                    clv_error *error);
/* Accepts NULL. */
CLV_API void clv_comparison_destroy(clv_comparison *comparison);

/* Predicts how the plan would change if devices ran more operators. Each of `supposes` names an operator by a pattern, and the
 * device that is supposed to run it. Each gives a row, and several give one more row for all of them together. With
 * `suppose_count` 0, each pair of an operator and a device that cannot run it gives a row, sorted by the time saved. `options`
 * are those that the plan was made with (NULL: the defaults); their go_on() is called often. As JSON: an array of objects.
 * Errors: also CLV_CANCELLED by go_on(); CLV_INVALID_ARGUMENT for an operator that the model does not have, or an unknown device;
 * and the errors of clv_plan_make(). */
CLV_API CLV_MUST_USE clv_status clv_plan_what_if(const clv_plan *plan, const clv_plan_options *options,
                                                 const clv_assignment *supposes, uint32_t suppose_count, clv_form form,
                                                 char **text, clv_error *error);

/* ---- Pictures ---- */

typedef enum clv_picture {
  CLV_PICTURE_SVG = 0, /* a lane for each device, partitions as boxes, transfers as arrows */
  CLV_PICTURE_DOT = 1, /* the same graph for Graphviz */
  CLV_PICTURE_PAGE = 2 /* an HTML page that needs nothing else: the picture, the timeline, an explanation of every node */
} clv_picture;

/* Draws a plan. Writes the picture to the file `path`, completely or not at all, or, if `path` is NULL, passes it to `emit`.
 * `comparison` is a table for the page; NULL: none. Other pictures do not use it.
 * Errors: also CLV_IO_ERROR if the file cannot be written; CLV_CANCELLED if emit() returned false; CLV_INVALID_ARGUMENT unless
 * exactly one of `path` and `emit` is given, or if the comparison is of another plan. */
CLV_API CLV_MUST_USE clv_status clv_plan_draw(const clv_plan *plan, clv_picture picture, const clv_comparison *comparison,
                                              const char *path, clv_emit_fn emit, void *user_data, clv_error *error);

/* ---- Devices ---- */

/* Lists open devices, with their memory, and how many operators each runs for some types and shapes, which it finds by asking for
 * small graphs. Devices that were left out are listed with the reason. With `details`, also lists the operators and the options
 * of each device. As JSON, an object with all of it whether or not `details` is set. */
CLV_API CLV_MUST_USE clv_status clv_devices_report(clv_devices *devices, bool details, clv_form form, char **text,
                                                   clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
