/* NonMaxSuppression. The candidates of a class form a heap, so that only those that are examined need to be sorted. */
#include "operators/region/run_suppress.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "operators/run.h"

static const clv_tensor *given(const clv_tensor *inputs, uint32_t input_count, uint32_t input) {
  size_t count;
  if (input >= input_count || inputs[input].dtype == CLV_DTYPE_NONE || inputs[input].data == NULL) return NULL;
  return clv__tensor_count(&inputs[input], &count) && count > 0 ? &inputs[input] : NULL;
}

void clv__suppression_read(clv__attributes attributes, const clv_tensor *inputs, uint32_t input_count,
                           clv__suppression *suppression) {
  const clv_tensor *most = given(inputs, input_count, 2), *overlap = given(inputs, input_count, 3),
                   *least = given(inputs, input_count, 4);
  *suppression = (clv__suppression){.boxes = inputs[0].data,
                                    .scores = inputs[1].data,
                                    .batches = inputs[0].dims[0],
                                    .classes = inputs[1].dims[1],
                                    .count = inputs[0].dims[1],
                                    .most = most != NULL ? clv__tensor_get_int(most, 0) : 0,
                                    .overlap = overlap != NULL ? (float)clv__tensor_get(overlap, 0) : 0,
                                    .least = least != NULL ? (float)clv__tensor_get(least, 0) : 0,
                                    .bounded = least != NULL,
                                    .centered = clv__attribute_int(attributes, "center_point_box", 0) != 0};
}

size_t clv__suppression_room(const clv__suppression *suppression) {
  size_t count;
  return clv__multiply((size_t)suppression->count, 2, &count) ? count : SIZE_MAX;
}

/* ---- The heap of candidates, with the best at its root ---- */

/* Whether box a is better than box b. If their scores are equal, the one with the lower index is better. A NaN counts as
 * minus infinity. */
static bool better(const float *scores, int64_t a, int64_t b) {
  float x = isnan(scores[a]) ? -INFINITY : scores[a], y = isnan(scores[b]) ? -INFINITY : scores[b];
  return x != y ? x > y : a < b;
}

static void sift_down(const float *scores, int64_t *heap, int64_t count, int64_t at) {
  const int64_t moved = heap[at];
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && better(scores, heap[child + 1], heap[child])) child++;
    if (!better(scores, heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

/* ---- Overlap ---- */

typedef struct extent {
  float top, left, bottom, right;
} extent;

static extent extent_of(const clv__suppression *s, int64_t box) {
  const float *b = s->boxes + 4 * box;
  if (s->centered) { /* center x, center y, width, height */
    float width = b[2] / 2, height = b[3] / 2;
    return (extent){b[1] - height, b[0] - width, b[1] + height, b[0] + width};
  }
  /* two opposite corners, in any order */
  return (extent){b[0] >= b[2] ? b[2] : b[0], b[1] >= b[3] ? b[3] : b[1], b[0] >= b[2] ? b[0] : b[2], b[1] >= b[3] ? b[1] : b[3]};
}

static bool overlaps(const extent *a, const extent *b, float limit) {
  float left = a->left > b->left ? a->left : b->left, right = a->right < b->right ? a->right : b->right;
  float top = a->top > b->top ? a->top : b->top, bottom = a->bottom < b->bottom ? a->bottom : b->bottom;
  if (right <= left || bottom <= top) return false;
  float common = (right - left) * (bottom - top);
  float first = (a->right - a->left) * (a->bottom - a->top), second = (b->right - b->left) * (b->bottom - b->top);
  float all = first + second - common;
  return common > 0 && first > 0 && second > 0 && all > 0 && common / all > limit;
}

/* Writes the selected boxes of one class to `chosen`. Returns their number. */
static int64_t select_class(const clv__suppression *s, int64_t batch, const float *scores, int64_t *heap, int64_t *chosen) {
  int64_t candidates = 0, found = 0;
  for (int64_t i = 0; i < s->count; ++i) {
    if (!s->bounded || scores[i] > s->least) heap[candidates++] = i;
  }
  for (int64_t root = candidates / 2 - 1; root >= 0; --root) sift_down(scores, heap, candidates, root);
  while (candidates > 0 && found < s->most && !clv__is_stopped(s->stop)) {
    const int64_t best = heap[0];
    heap[0] = heap[--candidates];
    if (candidates > 0) sift_down(scores, heap, candidates, 0);
    const extent own = extent_of(s, batch * s->count + best);
    bool apart = true;
    for (int64_t i = 0; apart && i < found; ++i) {
      const extent other = extent_of(s, batch * s->count + chosen[i]);
      apart = !overlaps(&own, &other, s->overlap);
    }
    if (apart) chosen[found++] = best;
  }
  return found;
}

int64_t clv__suppression_run(const clv__suppression *s, int64_t *room, int64_t limit, int64_t *out) {
  int64_t total = 0, *chosen = room + s->count;
  if (s->count == 0 || s->most <= 0) return 0;
  for (int64_t batch = 0; batch < s->batches; ++batch) {
    for (int64_t class = 0; class < s->classes && !clv__is_stopped(s->stop); ++class) {
      int64_t found = select_class(s, batch, s->scores + (batch * s->classes + class) * s->count, room, chosen);
      for (int64_t i = 0; out != NULL && i < found && total + i < limit; ++i) {
        int64_t *row = out + 3 * (total + i);
        row[0] = batch;
        row[1] = class;
        row[2] = chosen[i];
      }
      total += found;
    }
  }
  return total;
}

size_t clv__kernel_suppression_scratch_bytes(const clv__kernel_call *call) {
  clv__suppression suppression;
  size_t size_bytes;
  if (!clv__tensor_is_static(&call->inputs[0]) || !clv__tensor_is_static(&call->inputs[1])) return 0;
  clv__suppression_read(call->attributes, call->inputs, call->input_count, &suppression);
  return clv__multiply(clv__suppression_room(&suppression), sizeof(int64_t), &size_bytes) ? size_bytes : SIZE_MAX;
}

clv_status clv__kernel_suppression(const clv__kernel_call *call) {
  clv__suppression suppression;
  clv__suppression_read(call->attributes, call->inputs, call->input_count, &suppression);
  suppression.stop = call->stop;
  const int64_t rows = call->outputs[0].dims[0];
  int64_t found = clv__suppression_run(&suppression, call->scratch, rows, call->outputs[0].data);
  if (found == rows || clv__is_stopped(call->stop)) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "%lld boxes are selected, but the output has room for %lld",
                        (long long)found, (long long)rows);
}

bool clv__kernel_suppression_accepts(const clv__kernel_call *call, char reason[160]) {
  static const clv_dtype wanted[] = {CLV_F32, CLV_F32, CLV_I64, CLV_F32, CLV_F32};
  for (uint32_t i = 1; i < call->input_count && i < 5; ++i) {
    clv_dtype dtype = call->inputs[i].dtype;
    if (dtype == wanted[i] || dtype == CLV_DTYPE_NONE) continue;
    snprintf(reason, 160, "input %u of dtype %s is not supported", (unsigned)i, clv_dtype_name(dtype));
    return false;
  }
  return true;
}
