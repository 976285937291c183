/* A scene is a small graph that the device supports, with data for it and the reference's results. Most sections of the
 * conformance kit (check.h) use a scene. */
#ifndef CLEAVE_CHECK_SCENE_H
#define CLEAVE_CHECK_SCENE_H

#include "check/sketch.h"

typedef struct clv__check_scene {
  clv__check *check;
  clv_graph *graph; /* owned by the scene */
  clv__arena arena;
  clv_tensor *inputs;
  clv__check_truth truth;
  clv__check_program program; /* all nodes; not compiled yet */
  char what[200];             /* "f32 [4,8]: Conv, Relu, Add" */
} clv__check_scene;

/* Creates the scene of a graph. The scene owns the graph, even on failure. `sizes` has the size of each symbolic dimension,
 * indexed by its symbol; NULL: the graph has none. If `exact`, the view has these sizes; otherwise its symbolic dims stay open.
 * Returns false if the device does not support a node or allows fewer inputs, which is not reported. Also returns false if the
 * reference fails, which is reported as a failure. */
bool clv__scene_open(clv__check *check, clv_graph *graph, const int64_t *sizes, bool exact, uint64_t seed,
                     clv__check_scene *scene);
/* Creates a scene with a random graph (clv__menu_graph()). Returns false, and reports a skip, if the device supports none of
 * several graphs. `dims` and `share` are those of clv__menu_graph(). Negative `dims` are symbols; `sizes` has their sizes,
 * indexed like `dims`. */
bool clv__scene_draw(clv__check *check, const clv__menu *menu, uint32_t node_count, const int64_t *dims, const int64_t *sizes,
                     bool exact, uint32_t share, uint64_t seed, clv__check_scene *scene);
/* Replaces the data and the expected results, for the same graph. `sizes` as in clv__scene_open(). */
clv_status clv__scene_feed(clv__check_scene *scene, const int64_t *sizes, uint64_t seed, clv_error *error);
void clv__scene_finish(clv__check_scene *scene); /* accepts a zeroed one */
/* Reports a failed call: as a skip if the device needs smaller partitions, otherwise as a failure. */
void clv__scene_failed(clv__check_scene *scene, const char *call, clv_status status, const clv_error *error);
/* Compiles the scene's program and opens a job. If that fails, reports the failure and returns false. */
bool clv__scene_start(clv__check_scene *scene, clv__check_job *job);

/* Creates a scene of four nodes, for sections that need no particular graph. Its values are rows or, if the device supports no
 * operator for rows, images. Returns false, and reports a skip, if the device supports no such graph. */
bool clv__scene_plain(clv__check *check, uint64_t seed, clv__check_scene *scene);

#endif
