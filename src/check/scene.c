/* See scene.h. */
#include "check/scene.h"

#include <stdio.h>
#include <string.h>

static void describe(clv__check_scene *scene) {
  char type[96], operators[96];
  clv__menu_text(scene->graph, operators, sizeof operators);
  clv__tensor_text(&scene->inputs[0], type, sizeof type);
  snprintf(scene->what, sizeof scene->what, "%s: %s", type, operators);
}

/* Whether the view has more inputs than the device allows. The planner never creates such a partition. */
static bool has_too_many_inputs(const clv__check_scene *scene) {
  uint32_t limit = scene->check->device->info.max_partition_inputs;
  return limit > 0 && clv__view_limited_inputs(scene->program.view) > limit && scene->program.view->node_count > 1;
}

clv_status clv__scene_feed(clv__check_scene *scene, const int64_t *sizes, uint64_t seed, clv_error *error) {
  clv__check_truth_finish(&scene->truth);
  CLV__TRY(clv__sketch_data(scene->graph, sizes, seed, &scene->arena, &scene->inputs, error));
  return clv__check_truth_make(scene->check, scene->graph, scene->inputs, &scene->truth, error);
}

bool clv__scene_open(clv__check *check, clv_graph *graph, const int64_t *sizes, bool exact, uint64_t seed,
                     clv__check_scene *scene) {
  clv_error error = {0};
  char reason[160];
  *scene = (clv__check_scene){.check = check, .graph = graph};
  clv__arena_init(&scene->arena, check->allocator);
  clv_status status = clv__scene_feed(scene, sizes, seed, &error);
  if (status == CLV_OK) {
    describe(scene);
    status = clv__check_program_view(check, graph, exact ? scene->inputs : NULL, NULL, 0, &scene->program, &error);
  }
  if (status != CLV_OK) {
    clv__check_failed_call(check, "a graph of the kit", "computing the expected results", status, &error);
  } else if (!has_too_many_inputs(scene) && clv__check_program_refused(&scene->program, reason) == NULL) {
    clv__check_at(check, "%s", scene->what);
    return true;
  }
  clv__scene_finish(scene);
  return false;
}

bool clv__scene_draw(clv__check *check, const clv__menu *menu, uint32_t node_count, const int64_t *dims, const int64_t *sizes,
                     bool exact, uint32_t share, uint64_t seed, clv__check_scene *scene) {
  int64_t of_symbols[4];
  uint32_t symbols = 0;
  for (int32_t d = 0; d < (menu->is_image ? 4 : 2); ++d) {
    if (dims[d] < 0) of_symbols[symbols++] = sizes[d];
  }
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    clv_error error = {0};
    clv_graph *graph;
    clv_status status = clv__menu_graph(check, menu, node_count, dims, share, seed + attempt * 1000003u, &graph, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, "a graph of the kit", "building the graph", status, &error);
      return false;
    }
    if (clv__scene_open(check, graph, of_symbols, exact, seed, scene)) return true;
  }
  clv__check_skip(check, "a random graph", "the device supports none of the random graphs that were built");
  return false;
}

void clv__scene_finish(clv__check_scene *scene) {
  if (scene->check == NULL) return;
  clv__check_program_finish(&scene->program);
  clv__check_truth_finish(&scene->truth);
  clv__graph_destroy(scene->graph);
  clv__arena_finish(&scene->arena);
  *scene = (clv__check_scene){0};
}

void clv__scene_failed(clv__check_scene *scene, const char *call, clv_status status, const clv_error *error) {
  char text[1024];
  clv__check_call_text(call, status, error, text, sizeof text);
  if (status == CLV_TOO_LARGE && scene->program.view->node_count > 1)
    clv__check_skip(scene->check, scene->what, "the device needs smaller partitions: %s", text);
  else
    clv__check_fail(scene->check, scene->what, "%s", text);
}

bool clv__scene_start(clv__check_scene *scene, clv__check_job *job) {
  clv_error error = {0};
  clv_status status = scene->program.executable != NULL ? CLV_OK : clv__check_program_compile(&scene->program, &error);
  *job = (clv__check_job){0};
  if (status == CLV_OK) status = clv__check_job_open(&scene->program, scene->truth.values, job, &error);
  if (status == CLV_OK) return true;
  clv__scene_failed(scene, "", status, &error);
  clv__check_job_finish(job);
  return false;
}

bool clv__scene_plain(clv__check *check, uint64_t seed, clv__check_scene *scene) {
  static const int64_t rows[] = {6, 8}, image[] = {1, 4, 6, 6};
  clv__menu menu;
  if (clv__menu_find(check, false, true, &menu) || clv__menu_find(check, false, false, &menu)) {
    return clv__scene_draw(check, &menu, 4, rows, NULL, true, 40, seed, scene);
  }
  if (clv__menu_find(check, true, false, &menu)) return clv__scene_draw(check, &menu, 4, image, NULL, true, 40, seed, scene);
  clv__check_skip(check, "a small graph", "the device supports none of the operators of the kit's random graphs");
  return false;
}
