/* A scene: a small graph that the device takes, data for it, and what the reference makes of it. Most sections play in one. */
#ifndef CLEAVE_CHECK_SCENE_H
#define CLEAVE_CHECK_SCENE_H

#include "check/sketch.h"

typedef struct clv__check_scene {
  clv__check *check;
  clv_graph *graph; /* its own */
  clv__arena arena;
  clv_tensor *inputs;
  clv__check_truth truth;
  clv__check_program program; /* of all nodes, not compiled yet */
  char what[200];             /* "f32 [4,8]: Conv, Relu, Add" */
} clv__check_scene;

/* The scene of a graph, which becomes its own (also where this fails). `sizes`: of symbols, may be NULL; `exact`: the view has
 * these sizes, else the symbols stay open. False where the device refuses a node or the reference fails; the latter is told. */
bool clv__scene_open(clv__check *check, clv_graph *graph, const int64_t *sizes, bool exact, uint64_t seed,
                     clv__check_scene *scene);
/* A random graph of the menu; false, and told as a skip, where the device takes none of several. Negative dims are symbols, which
 * are `sizes` (by dim). */
bool clv__scene_draw(clv__check *check, const clv__menu *menu, uint32_t node_count, const int64_t *dims, const int64_t *sizes,
                     bool exact, uint32_t share, uint64_t seed, clv__check_scene *scene);
/* Other data and truth, for the same graph; `sizes` as above. */
clv_status clv__scene_feed(clv__check_scene *scene, const int64_t *sizes, uint64_t seed, clv_error *error);
void clv__scene_finish(clv__check_scene *scene); /* accepts a zeroed one */
/* Tells of a call that failed: as a skip where the device wants the several nodes in smaller partitions. */
void clv__scene_failed(clv__check_scene *scene, const char *call, clv_status status, const clv_error *error);
/* Compiles, and opens a job: false, and told, where that fails. */
bool clv__scene_start(clv__check_scene *scene, clv__check_job *job);

/* A plain scene of four nodes for sections that look at something else than values: rows, else images. False, and told as a skip,
 * where the device takes nothing that the kit could draw. */
bool clv__scene_plain(clv__check *check, uint64_t seed, clv__check_scene *scene);

#endif
