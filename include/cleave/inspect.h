/* Inspecting a graph: its operators, inputs, outputs, parameters and FLOPs, and which devices support its nodes.
 *
 * Unstable: may change until 1.0. */
#ifndef CLEAVE_INSPECT_H
#define CLEAVE_INSPECT_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_inspection clv_inspection;

/* Infers the types of all values with the sizes of `options`, and asks every device of `devices` for its verdict on every node.
 * Other fields of `options` are ignored; it may be NULL. The graph and the devices must outlive the inspection. Any thread may
 * call it. Errors: CLV_INVALID_ARGUMENT for a NULL and for contradictory sizes; CLV_NOT_FOUND for sizes of an unknown symbol or
 * input; CLV_INVALID_MODEL if the sizes do not fit the graph's nodes; CLV_CANCELLED by options->go_on(); CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_graph_inspect(const clv_graph *graph, clv_devices *devices, const clv_plan_options *options,
                                                  clv_inspection **inspection, clv_error *error);
/* Accepts NULL. */
CLV_API void clv_inspection_destroy(clv_inspection *inspection);

typedef struct clv_inspection_options {
  uint32_t struct_size;
  const char *name; /* of the model, for the first line; NULL: the path of its file */
  bool nodes;       /* lists every node */
  bool all_reasons; /* lists all reasons why devices cannot run nodes, not only the first six of a device; JSON has them with
                       `nodes` */
} clv_inspection_options;
#define CLV_INSPECTION_OPTIONS_INIT \
  { sizeof(clv_inspection_options), NULL, false, false }

/* Describes the graph: figures, inputs, outputs, a table of operators with how many of their nodes each device can run, and the
 * reasons why devices cannot run the others. `options` may be NULL. Free the text with clv_text_free().
 * Errors: CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_inspection_text(const clv_inspection *inspection, const clv_inspection_options *options,
                                                    clv_form form, char **text, clv_error *error);

/* Draws the graph as an HTML page that needs nothing else. Reads every weight once, for its statistics. Writes the page to the
 * file `path`, completely or not at all, or, if `path` is NULL, passes it to `emit`.
 * Errors: CLV_INVALID_ARGUMENT unless exactly one of `path` and `emit` is given; CLV_IO_ERROR if the file cannot be written, or
 * if the model's file changed after it was loaded; CLV_CANCELLED if emit() returned false; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_inspection_draw(const clv_inspection *inspection, const char *path, clv_emit_fn emit,
                                                    void *user_data, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
