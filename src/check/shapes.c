/* The section `shapes` of the conformance kit (check.h): one executable compiled for open sizes, with instances for odd,
 * single, empty and large sizes. If a device needs fixed sizes or rejects an instance, the graph is compiled for each size.
 * Scalars and high ranks are also checked. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

/* Compiles the graph for exactly the sizes of the scene's inputs. Returns whether its results agree with the reference. Sets
 * *is_refused if the device does not support one of the nodes, and writes the reason to `text`. */
static bool agrees_exactly(clv__check_scene *scene, char *text, size_t text_bytes, bool *is_refused) {
  clv_error error = {0};
  clv__check_program program = {0};
  clv_status status = clv__check_program_view(scene->check, scene->graph, scene->inputs, NULL, 0, &program, &error);
  *is_refused = status == CLV_OK && clv__check_program_refused(&program, text) != NULL;
  bool agrees = status == CLV_OK && !*is_refused && clv__check_view_agrees(&program, scene->truth.values, text, text_bytes);
  if (status != CLV_OK) clv__check_call_text("creating the graph view", status, &error, text, text_bytes);
  clv__check_program_finish(&program);
  return agrees;
}

static void check_sizes(clv__check *check, clv__check_scene *scene, bool is_open, const int64_t *sizes, uint64_t seed) {
  clv_error error = {0};
  char text[1024], what[256], type[96];
  bool is_refused = false;
  clv_status status = clv__scene_feed(scene, sizes, seed, &error);
  if (status != CLV_OK) {
    clv__check_failed_call(check, scene->what, "computing the expected results", status, &error);
    return;
  }
  clv__tensor_text(&scene->inputs[0], type, sizeof type);
  char operators[96];
  clv__menu_text(scene->graph, operators, sizeof operators);
  snprintf(what, sizeof what, "%s%s: %s", type, is_open ? " in an executable compiled for any size" : "", operators);
  clv__check_at(check, "%s", what);
  if (is_open) {
    clv__check_job job = {0};
    status = clv__check_job_open(&scene->program, scene->truth.values, &job, &error);
    bool agrees = status == CLV_OK && clv__check_job_run(&job, scene->truth.values, text, sizeof text);
    if (status != CLV_OK) clv__check_call_text("", status, &error, text, sizeof text);
    clv__check_job_finish(&job);
    if (agrees || status != CLV_NOT_SUPPORTED) { /* otherwise the code below compiles for each size, as the host does */
      clv__check_that(check, agrees, what, "%s", text);
      return;
    }
  }
  bool agrees = agrees_exactly(scene, text, sizeof text, &is_refused);
  if (is_refused)
    clv__check_skip(check, what, "%s", text);
  else
    clv__check_that(check, agrees, what, "%s", text);
}

/* One kind of random graph. `dims` are the dimensions of its inputs; those below 0 are open. The graph is created with the sizes
 * `first`, indexed like `dims`, and runs with each of the `size_count` rows of `open_count` sizes in `sizes`. */
typedef struct drawn {
  const char *what;
  bool is_image;
  const int64_t *dims, *first, *sizes;
  size_t size_count, open_count;
  uint32_t graphs;
  uint64_t stride; /* distance between the seeds of graphs */
} drawn;

static void check_drawn(clv__check *check, const drawn *d) {
  clv__menu menu;
  if (!clv__menu_find(check, d->is_image, false, &menu)) {
    clv__check_skip(check, d->what, "the device supports none of the operators of the kit's random graphs");
    return;
  }
  for (uint32_t i = 0; i < clv__check_thin(check, d->graphs); ++i) {
    clv__check_scene scene;
    clv_error error = {0};
    bool is_open = !check->device->info.static_shapes_only;
    if (!clv__scene_draw(check, &menu, 4, d->dims, d->first, !is_open, 40, check->seed + d->stride * i, &scene)) continue;
    clv_status status = is_open ? clv__check_program_compile(&scene.program, &error) : CLV_OK;
    if (status != CLV_OK) clv__scene_failed(&scene, "compiling for any size", status, &error);
    for (size_t k = 0; status == CLV_OK && k < d->size_count; ++k) {
      check_sizes(check, &scene, is_open, d->sizes + k * d->open_count, check->seed + k);
    }
    clv__scene_finish(&scene);
  }
}

static void check_rows(clv__check *check) {
  static const int64_t rows[] = {3, 1, 2, 5, 7, 13, 17, 31, 33, 64, 0, 100, 1000}, dims[] = {-1, 8};
  check_drawn(check, &(drawn){.what = "rows",
                              .dims = dims,
                              .first = rows,
                              .sizes = rows,
                              .size_count = sizeof rows / sizeof *rows,
                              .open_count = 1,
                              .graphs = 4,
                              .stride = 101});
}

static void check_images(clv__check *check) {
  static const int64_t sizes[][3] = {{1, 6, 6}, {1, 1, 1}, {2, 3, 5}, {1, 7, 1}, {3, 1, 9}, {0, 4, 4}, {1, 17, 13}, {4, 8, 8}};
  static const int64_t dims[] = {-1, 4, -1, -1}, first[] = {1, 4, 6, 6};
  check_drawn(check, &(drawn){.what = "images",
                              .is_image = true,
                              .dims = dims,
                              .first = first,
                              .sizes = sizes[0],
                              .size_count = sizeof sizes / sizeof *sizes,
                              .open_count = 3,
                              .graphs = 3,
                              .stride = 211});
}

/* Checks values of one rank. The random graphs have only ranks 2 and 4. */
static void check_rank(clv__check *check, clv_dtype dtype, const char *op, int32_t rank, const int64_t *dims) {
  clv_error error = {0};
  clv__sketch sketch;
  clv_graph *graph;
  clv__check_scene scene;
  clv__check_job job = {0};
  char text[1024], what[128];
  clv__sketch_begin(&sketch, check, dtype, 1, &error);
  clv__sketch_input(&sketch, "a", rank, dims);
  clv__sketch_input(&sketch, "b", rank, dims);
  clv__sketch_node(&sketch, op, "a,b", "v");
  clv__sketch_node(&sketch, op, "v,a", "y");
  snprintf(what, sizeof what, "rank %d, %s", rank, op);
  clv_status status = clv__sketch_end(&sketch, "v,y", &graph);
  if (status != CLV_OK) {
    clv__check_failed_call(check, what, "building the graph", status, &error);
    return;
  }
  if (!clv__scene_open(check, graph, NULL, true, check->seed + (uint64_t)rank, &scene)) {
    clv__check_skip(check, what, "the device does not support rank %d", rank);
    return;
  }
  if (clv__scene_start(&scene, &job)) {
    clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), scene.what, "%s", text);
    clv__check_job_finish(&job);
  }
  clv__scene_finish(&scene);
}

void clv__check_shapes(clv__check *check) {
  static const char *const operators[] = {"Add", "Mul", "Max"};
  static const int64_t odd[] = {3, 1, 5, 2, 1, 3, 1, 1}, with_zero[] = {3, 0, 5, 2, 1, 1, 1, 1}, long_one[] = {4099};
  clv__menu menu;
  check_rows(check);
  check_images(check);
  if (!clv__menu_find(check, false, true, &menu)) return;
  for (size_t k = 0; k < sizeof operators / sizeof *operators; ++k) {
    for (int32_t rank = 0; rank <= CLV_MAX_RANK; ++rank) check_rank(check, menu.dtype, operators[k], rank, odd);
    for (int32_t rank = 2; rank <= 4; ++rank) check_rank(check, menu.dtype, operators[k], rank, with_zero);
    check_rank(check, menu.dtype, operators[k], 1, long_one);
  }
}
