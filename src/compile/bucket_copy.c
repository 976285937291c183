/* Copies between a tensor and the corner of a larger one: see bucket.h. Axes with equal sizes are merged, so that each copy is as
 * long as possible. */
#include <string.h>

#include "compile/bucket.h"

/* Two shapes with as few axes as possible: an axis of the same size in both is merged into the previous one. */
typedef struct corner {
  int32_t rank;
  size_t exact[CLV_MAX_RANK], padded[CLV_MAX_RANK]; /* the last axis is in bytes */
} corner;

static corner make_corner(const clv_tensor *exact, const clv_tensor *padded) {
  corner c = {.rank = 1, .exact = {clv_dtype_size_bytes(exact->dtype)}, .padded = {clv_dtype_size_bytes(exact->dtype)}};
  size_t sizes[2][CLV_MAX_RANK];
  for (int32_t d = exact->rank; d-- > 0;) { /* backwards: the innermost first */
    size_t own = (size_t)exact->dims[d], longer = (size_t)padded->dims[d];
    c.exact[c.rank - 1] *= own;
    c.padded[c.rank - 1] *= longer;
    bool is_outer = true; /* all axes before it have size 1, so no further axis is needed */
    for (int32_t e = 0; e < d; ++e) is_outer = is_outer && padded->dims[e] == 1;
    if (own == longer || is_outer) continue;
    c.exact[c.rank] = c.padded[c.rank] = 1;
    ++c.rank;
  }
  for (int32_t i = 0; i < c.rank; ++i) sizes[0][i] = c.exact[c.rank - 1 - i], sizes[1][i] = c.padded[c.rank - 1 - i];
  memcpy(c.exact, sizes[0], (size_t)c.rank * sizeof(size_t));
  memcpy(c.padded, sizes[1], (size_t)c.rank * sizeof(size_t));
  return c;
}

bool clv__bucket_is_prefix(const clv_tensor *exact, const clv_tensor *padded) {
  return make_corner(exact, padded).rank == 1;
}

/* Returns the number of bytes from one index to the next along axis `axis`. */
static size_t stride(const size_t *sizes, int32_t axis, int32_t rank) {
  size_t bytes = 1;
  for (int32_t i = axis + 1; i < rank; ++i) bytes *= sizes[i];
  return bytes;
}

static void pad(const corner *c, int32_t axis, const char *from, char *to) {
  size_t exact = stride(c->exact, axis, c->rank), padded = stride(c->padded, axis, c->rank);
  if (axis == c->rank - 1) {
    if (c->exact[axis] > 0) memcpy(to, from, c->exact[axis]);
  } else {
    for (size_t i = 0; i < c->exact[axis]; ++i) pad(c, axis + 1, from + i * exact, to + i * padded);
  }
  memset(to + c->exact[axis] * padded, 0, (c->padded[axis] - c->exact[axis]) * padded);
}

static void cut(const corner *c, int32_t axis, const char *from, char *to) {
  size_t exact = stride(c->exact, axis, c->rank), padded = stride(c->padded, axis, c->rank);
  if (axis == c->rank - 1) {
    if (c->exact[axis] > 0) memcpy(to, from, c->exact[axis]);
    return;
  }
  for (size_t i = 0; i < c->exact[axis]; ++i) cut(c, axis + 1, from + i * padded, to + i * exact);
}

static bool is_empty(const clv_tensor *tensor) {
  size_t size_bytes;
  return !clv__tensor_size_bytes(tensor, &size_bytes) || size_bytes == 0;
}

void clv__bucket_pad(const clv_tensor *exact, const clv_tensor *padded) {
  size_t size_bytes;
  if (is_empty(exact)) {
    if (clv__tensor_size_bytes(padded, &size_bytes) && size_bytes > 0) memset(padded->data, 0, size_bytes);
    return;
  }
  corner c = make_corner(exact, padded);
  pad(&c, 0, exact->data, padded->data);
}

void clv__bucket_cut(const clv_tensor *padded, const clv_tensor *exact) {
  if (is_empty(exact)) return;
  corner c = make_corner(exact, padded);
  cut(&c, 0, padded->data, exact->data);
}
