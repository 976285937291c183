/* The section `aliasing` of the conformance kit (check.h): operands that share memory. One buffer is bound to two inputs. An
 * output is a view of an input or of another output. All operands are in one buffer, each at its own offset, and the offsets
 * change between executions. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

/* ---- One buffer, two inputs ---- */

static void check_shared_input(clv__check *check, bool is_image) {
  static const int64_t rows[] = {4, 8}, image[] = {1, 4, 6, 6};
  for (uint32_t i = 0; i < 6; ++i) {
    clv__menu menu;
    clv__check_scene scene;
    clv__check_job job = {0};
    clv_error error = {0};
    char text[1024], what[256];
    if (!clv__menu_find(check, is_image, true, &menu)) {
      clv__check_skip(check, "one buffer as two inputs", "the device supports none of the kit's two-operand operators");
      return;
    }
    if (!clv__scene_draw(check, &menu, 1 + i, is_image ? image : rows, NULL, true, 30, check->seed + 31u * i, &scene)) continue;
    scene.inputs[1].data = scene.inputs[0].data;
    clv__check_truth_finish(&scene.truth);
    clv_status status = clv__check_truth_make(check, scene.graph, scene.inputs, &scene.truth, &error);
    snprintf(what, sizeof what, "one buffer as two inputs, %s", scene.what);
    if (status == CLV_OK && scene.program.view->input_count == 2 && clv__scene_start(&scene, &job)) {
      clv__check_operand_free(check, &job.operands[1]);
      job.operands[1] = job.operands[0];
      job.operands[1].is_borrowed = true;
      clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), what, "%s", text);
      clv__check_job_finish(&job);
    }
    clv__scene_finish(&scene);
  }
}

/* ---- Views ---- */

typedef enum view_kind { IDENTITY, RESHAPE, FLATTEN, UNSQUEEZE, VIEW_KINDS } view_kind;

static void draw_view(clv__sketch *sketch, view_kind kind, const char *from, const char *to) {
  static const int64_t other[] = {8, 4}, axis[] = {0};
  char inputs[64], shape[32];
  snprintf(shape, sizeof shape, "shape_%s", to);
  snprintf(inputs, sizeof inputs, "%s,%s", from, shape);
  switch (kind) {
    case IDENTITY:
      clv__sketch_node(sketch, "Identity", from, to);
      return;
    case RESHAPE:
      clv__sketch_ints(sketch, shape, 2, other);
      clv__sketch_node(sketch, "Reshape", inputs, to);
      return;
    case FLATTEN:
      clv__sketch_node_ints(sketch, "Flatten", from, to, "axis", false, 1, axis);
      return;
    default:
      clv__sketch_ints(sketch, shape, 1, axis);
      clv__sketch_node(sketch, "Unsqueeze", inputs, to);
  }
}

typedef enum pattern { OF_INPUT, OF_INNER, OF_VIEW, TWICE, PATTERNS } pattern;

/* Creates a graph that applies `op`, with two operands if `binary`, and with views as outputs. `p` selects the values of which
 * the outputs are views. */
static clv_status draw_pattern(clv__check *check, clv_dtype dtype, const char *op, bool binary, view_kind kind, pattern p,
                               clv_graph **graph, clv_error *error) {
  static const int64_t dims[] = {4, 8};
  clv__sketch sketch;
  clv__sketch_begin(&sketch, check, dtype, 1, error);
  clv__sketch_input(&sketch, "a", 2, dims);
  clv__sketch_input(&sketch, "b", 2, dims);
  clv__sketch_node(&sketch, op, binary ? "a,b" : "a", "v");
  draw_view(&sketch, kind, p == OF_INPUT ? "a" : "v", "y");
  if (p == OF_VIEW) draw_view(&sketch, IDENTITY, "y", "z");
  if (p == TWICE) draw_view(&sketch, kind, "v", "z");
  return clv__sketch_end(&sketch, p == OF_VIEW || p == TWICE ? "v,y,z" : "v,y", graph);
}

static void check_view(clv__check *check, const clv__menu *menu, view_kind kind, pattern p) {
  static const char *const kinds[] = {"Identity", "Reshape", "Flatten", "Unsqueeze"};
  static const char *const patterns[] = {"of an input", "of an intermediate value", "of a view", "of one value, twice,"};
  static const char *const unary[] = {"Relu", "Sigmoid", "Tanh", "Abs"};
  char text[1024], what[128];
  snprintf(what, sizeof what, "%s %s as an output", kinds[kind], patterns[p]);
  for (size_t i = 0; i <= sizeof unary / sizeof *unary; ++i) {
    bool binary = i == sizeof unary / sizeof *unary;
    clv_error error = {0};
    clv_graph *graph;
    clv__check_scene scene;
    clv__check_job job = {0};
    if (draw_pattern(check, menu->dtype, binary ? "Add" : unary[i], binary, kind, p, &graph, &error) != CLV_OK) continue;
    if (!clv__scene_open(check, graph, NULL, true, check->seed + kind, &scene)) continue;
    if (clv__scene_start(&scene, &job)) {
      clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), what, "%s", text);
      clv__check_job_finish(&job);
    }
    clv__scene_finish(&scene);
    return;
  }
  clv__check_skip(check, what, "the device does not support %s in a graph with one of the operators that the kit tried",
                  kinds[kind]);
}

/* ---- Offsets ---- */

typedef struct shelf {
  clv_buffer *buffer;
  void *memory;
  size_t size_bytes, alignment;
} shelf;

/* Puts all operands into one buffer, or into one block of host memory if not `in_buffer`. Leaves `gap` times the alignment unused
 * between two operands. If `order` is 1, the operands are in reverse order. */
static clv_status lay_out(clv__check_job *job, shelf *s, bool in_buffer, uint32_t order, uint32_t gap, clv_error *error) {
  clv__check *check = job->check;
  uint32_t count = job->input_count + job->output_count;
  size_t at = gap * s->alignment;
  for (uint32_t k = 0; k < count; ++k) {
    clv__check_operand *operand = &job->operands[order == 0 ? k : count - 1 - k];
    const clv_tensor type = operand->type;
    const size_t size_bytes = operand->size_bytes;
    clv__check_operand_free(check, operand);
    *operand = (clv__check_operand){.type = type, .size_bytes = size_bytes, .offset_bytes = at, .is_borrowed = true};
    at += clv__align_up(size_bytes + 1, s->alignment) + gap * s->alignment;
  }
  if (s->size_bytes < at) {
    check->backend->buffer_free(check->handle, s->buffer);
    clv__release(check->allocator, s->memory);
    s->buffer = NULL;
    s->memory = NULL;
    s->size_bytes = at;
    if (in_buffer)
      CLV__TRY(check->backend->buffer_alloc(check->handle, at, &s->buffer, error));
    else if ((s->memory = clv__allocate(check->allocator, at)) == NULL)
      return clv__error_memory(error, at);
  }
  for (uint32_t k = 0; k < count; ++k) {
    job->operands[k].buffer = s->buffer;
    job->operands[k].memory = s->memory;
  }
  return CLV_OK;
}

/* Executes one instance several times, with its operands in a different place each time. */
static void check_offsets(clv__check *check, clv__check_scene *scene, bool in_buffer) {
  clv__check_job job = {0};
  clv_error error = {0};
  shelf s = {.alignment = clv__devices_alignment(check->devices, check->device->space)};
  char text[1024], what[320];
  if (!clv__scene_start(scene, &job)) return;
  for (uint32_t i = 0; i < 6; ++i) {
    uint32_t gap = 1 + i % 3, order = i / 3 % 2;
    snprintf(what, sizeof what, "operands in one %s, %s first, with gaps of %u times the alignment, %s",
             in_buffer ? "buffer" : "block", order == 0 ? "inputs" : "outputs", gap, scene->what);
    clv__error_clear(&error);
    clv_status status = lay_out(&job, &s, in_buffer, order, gap, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, what, "allocating memory", status, &error);
      break;
    }
    clv__check_that(check, clv__check_job_run(&job, scene->truth.values, text, sizeof text), what, "%s", text);
  }
  clv__check_job_finish(&job);
  check->backend->buffer_free(check->handle, s.buffer);
  clv__release(check->allocator, s.memory);
}

void clv__check_aliasing(clv__check *check) {
  clv__menu menu;
  check_shared_input(check, false);
  check_shared_input(check, true);
  if (clv__menu_find(check, false, false, &menu)) {
    for (uint32_t k = 0; k < VIEW_KINDS; ++k) {
      for (uint32_t p = 0; p < PATTERNS; ++p) check_view(check, &menu, (view_kind)k, (pattern)p);
    }
  } else {
    clv__check_skip(check, "views as outputs", "the device supports none of the operators of the kit's random graphs");
  }
  for (uint32_t i = 0; i < 4; ++i) {
    clv__check_scene scene;
    if (!clv__scene_plain(check, check->seed + 17u * i, &scene)) return;
    check_offsets(check, &scene, i % 2 == 0 || check->device->space != CLV__SPACE_HOST);
    clv__scene_finish(&scene);
  }
}
