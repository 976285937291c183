/* Tests operators that move data, with random shapes, dtypes and attributes. Every output element is compared with the input
 * element that the operator's definition gives for its index. */
#include "node_case.h"

#include "operators/common/move.h"

enum { ROUNDS = 150 };

static clv_dtype any_dtype(uint64_t *seed) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16, CLV_I8, CLV_U8, CLV_I32, CLV_I64, CLV_U32, CLV_U64};
  return dtypes[test_random(seed) % 10];
}

static void random_dims(uint64_t *seed, int32_t rank, int64_t low, int64_t high, int64_t *dims) {
  for (int32_t d = 0; d < rank; ++d) dims[d] = random_in(seed, low, high);
}

/* unravel() converts the number of an element to its indices; ravel() converts indices to the number. */
static void unravel(const clv_tensor *t, size_t linear, int64_t *at) {
  for (int32_t d = t->rank - 1; d >= 0; --d) {
    at[d] = (int64_t)(linear % (size_t)t->dims[d]);
    linear /= (size_t)t->dims[d];
  }
}

static size_t ravel(const clv_tensor *t, const int64_t *at) {
  int64_t linear = 0;
  for (int32_t d = 0; d < t->rank; ++d) linear = linear * t->dims[d] + at[d];
  return (size_t)linear;
}

static clv_tensor *index_input(node_case *c, uint64_t *seed, int32_t rank, const int64_t *dims) {
  return case_input(c, seed, test_random(seed) % 2 ? CLV_I64 : CLV_I32, rank, dims);
}

static clv_tensor *vector_input(node_case *c, uint64_t *seed, int64_t count, const int64_t *values) {
  clv_tensor *t = case_input(c, seed, CLV_I64, 1, &count);
  for (int64_t i = 0; i < count; ++i) ((int64_t *)t->data)[i] = values[i];
  return t;
}

static void expect_element(const node_case *c, uint32_t output, size_t i, double expected) {
  double value = clv__tensor_get(&c->outputs[output], i);
  if (value == expected || (isnan(value) && isnan(expected))) return;
  char text[96];
  clv__tensor_text(&c->outputs[output], text, sizeof text);
  fail_msg("%s: output %u %s: element %zu is %.9g; expected %.9g", c->op, output, text, i, value, expected);
}

/* ---- Strided reads, copies and fills (operators/common/move.h) ----------------------------------------------------------- */

static void strided_reads(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int round = 0; round < 400; ++round) {
    size_t bytes = (size_t)1 << test_random(&seed) % 4;
    clv__strided shape = {.rank = (int32_t)(test_random(&seed) % 6)};
    int64_t low = 0, high = 0, total = 1;
    for (int32_t d = 0; d < shape.rank; ++d) {
      shape.dims[d] = random_in(&seed, test_random(&seed) % 20 == 0 ? 0 : 1, round % 8 == 0 ? 41 : 6);
      shape.strides[d] = test_random(&seed) % 3 == 0 ? 1 : random_in(&seed, -40, 40);
      if (total > 100000) shape.dims[d] = 2;
      total *= shape.dims[d];
      int64_t reach = shape.strides[d] * (shape.dims[d] - 1);
      if (reach < 0)
        low += reach;
      else
        high += reach;
    }
    size_t elements = (size_t)(high - low + 1);
    uint8_t *source = malloc(elements * bytes), *target = malloc((size_t)total * bytes + 1);
    for (size_t i = 0; i < elements * bytes; ++i) source[i] = (uint8_t)test_random(&seed);
    target[(size_t)total * bytes] = 0x5a;
    clv__strided_read(source + (size_t)-low * bytes, target, &shape, bytes, NULL);
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i, offset = -low;
      for (int32_t d = shape.rank - 1; d >= 0; --d) {
        offset += rest % shape.dims[d] * shape.strides[d];
        rest /= shape.dims[d];
      }
      assert_memory_equal(target + (size_t)i * bytes, source + (size_t)offset * bytes, bytes);
    }
    assert_int_equal(target[(size_t)total * bytes], 0x5a);
    free(source);
    free(target);
  }
}

static void large_copies(void **state) { /* large enough for several threads */
  (void)state;
  uint64_t seed = 5, element = 0x0102030405060708u;
  for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
    size_t count = 3000001 / bytes;
    uint8_t *from = malloc(count * bytes), *to = malloc(count * bytes);
    for (size_t i = 0; i < count * bytes; ++i) from[i] = (uint8_t)test_random(&seed);
    clv__copy_bytes(to, from, count * bytes, NULL);
    assert_memory_equal(to, from, count * bytes);
    clv__fill(to, &element, bytes, count, NULL);
    for (size_t i = 0; i < count; ++i) assert_memory_equal(to + i * bytes, &element, bytes);
    free(from);
    free(to);
  }
}

/* ---- Layout and joins ---------------------------------------------------------------------------------------------------- */

static void transposes(void **state) {
  (void)state;
  uint64_t seed = 21;
  for (int round = 0; round < ROUNDS; ++round) {
    node_case *c = case_begin("Transpose", 13);
    int32_t rank = (int32_t)(test_random(&seed) % 6);
    int64_t dims[8], perm[8], at[8], from[8];
    random_dims(&seed, rank, 1, round % 10 == 0 && rank < 4 ? 40 : 5, dims);
    for (int32_t d = 0; d < rank; ++d) perm[d] = d;
    for (int32_t d = rank - 1; d > 0; --d) {
      int64_t other = random_in(&seed, 0, d), kept = perm[d];
      perm[d] = perm[other];
      perm[other] = kept;
    }
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    bool reversed = test_random(&seed) % 4 == 0;
    if (!reversed) case_ints(c, "perm", (size_t)rank, perm);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < rank; ++d) from[reversed ? rank - 1 - d : perm[d]] = at[d];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, from)));
    }
    case_end(c);
  }
}

static void concat_and_split(void **state) {
  (void)state;
  uint64_t seed = 22;
  for (int round = 0; round < ROUNDS; ++round) {
    node_case *c = case_begin("Concat", 13);
    int32_t rank = (int32_t)random_in(&seed, 1, 4), axis = (int32_t)random_in(&seed, 0, rank - 1);
    uint32_t count = (uint32_t)random_in(&seed, 1, 4);
    clv_dtype dtype = any_dtype(&seed);
    int64_t dims[8], sizes[4], at[8];
    random_dims(&seed, rank, 1, 5, dims);
    for (uint32_t i = 0; i < count; ++i) {
      sizes[i] = dims[axis] = random_in(&seed, 0, 5);
      case_input(c, &seed, dtype, rank, dims);
    }
    case_int(c, "axis", test_random(&seed) % 2 ? axis : axis - rank);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      uint32_t part = 0;
      while (at[axis] >= c->inputs[part].dims[axis]) at[axis] -= c->inputs[part++].dims[axis];
      expect_element(c, 0, i, clv__tensor_get(&c->inputs[part], ravel(&c->inputs[part], at)));
    }
    int32_t opset = test_random(&seed) % 2 ? 11 : 13;
    node_case *s = case_begin("Split", opset);
    s->output_count = count;
    clv_tensor *whole = case_input(s, &seed, dtype, rank, c->outputs[0].dims);
    if (opset == 11)
      case_ints(s, "split", count, sizes);
    else
      vector_input(s, &seed, count, sizes);
    memcpy(whole->data, c->outputs[0].data, count_of(whole) * clv_dtype_size_bytes(dtype));
    case_int(s, "axis", axis);
    case_run(s);
    for (uint32_t p = 0; p < count; ++p) {
      assert_true(clv__tensor_same_type(&s->outputs[p], &c->inputs[p]));
      size_t bytes = count_of(&c->inputs[p]) * clv_dtype_size_bytes(dtype);
      if (bytes > 0) assert_memory_equal(s->outputs[p].data, c->inputs[p].data, bytes);
    }
    case_end(s);
    case_end(c);
  }
}

static void slices(void **state) {
  (void)state;
  uint64_t seed = 23;
  for (int round = 0; round < 3 * ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 4), opset = test_random(&seed) % 3 == 0 ? 9 : 13;
    int64_t dims[8], axes[8], starts[8], ends[8], steps[8], at[8], first[8], stride[8], size[8];
    uint32_t count = 0;
    random_dims(&seed, rank, 0, 7, dims);
    for (int32_t d = 0; d < rank; ++d) {
      first[d] = 0;
      stride[d] = 1;
      size[d] = dims[d];
      if (test_random(&seed) % 3 == 0) continue;
      int64_t step = opset == 9 ? 1 : random_in(&seed, -3, 3), start = random_in(&seed, -9, 9), end = random_in(&seed, -9, 9);
      if (step == 0) step = INT64_MAX;
      if (test_random(&seed) % 6 == 0) end = step < 0 ? INT64_MIN : INT64_MAX;
      axes[count] = test_random(&seed) % 2 ? d : d - rank;
      starts[count] = start;
      ends[count] = end;
      steps[count++] = step;
      /* Clamp both ends as the specification requires, then count the elements one by one. */
      if (start < 0) start += dims[d];
      if (end < 0 && end != INT64_MIN) end += dims[d];
      int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? dims[d] : dims[d] - 1;
      start = start < (step > 0 ? 0 : -1) ? lowest : start > highest ? highest : start;
      end = end < lowest ? lowest : end > highest ? highest : end;
      first[d] = start;
      stride[d] = step;
      size[d] = 0;
      for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
        size[d]++;
        if (step == INT64_MAX) break;
      }
    }
    if (count == 0) continue;
    node_case *c = case_begin("Slice", opset);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    if (opset == 9) {
      case_ints(c, "starts", count, starts);
      case_ints(c, "ends", count, ends);
      case_ints(c, "axes", count, axes);
    } else {
      vector_input(c, &seed, count, starts);
      vector_input(c, &seed, count, ends);
      vector_input(c, &seed, count, axes);
      vector_input(c, &seed, count, steps);
    }
    case_run(c);
    for (int32_t d = 0; d < rank; ++d) assert_int_equal(c->outputs[0].dims[d], size[d]);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < rank; ++d) at[d] = first[d] + (at[d] > 0 ? at[d] * stride[d] : 0);
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, at)));
    }
    case_end(c);
  }
}

/* The source index of output index `o` along a padded axis; -1: the constant. Follows the definition step by step. */
static int64_t pad_source(int64_t dim, int64_t before, int64_t after, const char *mode, int64_t o) {
  int64_t cut = before < 0 ? -before : 0, length = dim - cut - (after < 0 ? -after : 0), i = o - (before > 0 ? before : 0);
  if (i < 0 || i >= length) {
    if (strcmp(mode, "constant") == 0) return -1;
    if (strcmp(mode, "edge") == 0 || length == 1) i = i < 0 ? 0 : length - 1;
    while (strcmp(mode, "wrap") == 0 && i < 0) i += length;
    while (strcmp(mode, "wrap") == 0 && i >= length) i -= length;
    while (i < 0 || i >= length) i = i < 0 ? -i : 2 * (length - 1) - i;
  }
  return i + cut;
}

static void pads(void **state) {
  (void)state;
  static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
  uint64_t seed = 24;
  for (int round = 0; round < 3 * ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 4);
    const char *mode = modes[test_random(&seed) % 4];
    int64_t dims[8], pads_of[16] = {0}, listed[16], axes[8], at[8];
    random_dims(&seed, rank, 3, 6, dims);
    bool some = test_random(&seed) % 2;
    uint32_t count = 0;
    for (int32_t d = 0; d < rank; ++d) {
      if (some && test_random(&seed) % 2) continue;
      pads_of[d] = random_in(&seed, -1, 7);
      pads_of[rank + d] = random_in(&seed, -1, 7);
      axes[count++] = d;
    }
    for (uint32_t i = 0; i < count; ++i) {
      listed[i] = pads_of[axes[i]];
      listed[count + i] = pads_of[rank + axes[i]];
      if (test_random(&seed) % 2) axes[i] -= rank;
    }
    node_case *c = case_begin("Pad", 19);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    case_string(c, "mode", mode);
    vector_input(c, &seed, 2 * count, listed);
    bool with_value = test_random(&seed) % 2;
    if (with_value)
      element_set(case_input(c, &seed, x->dtype, 0, NULL), 0, 3);
    else
      case_input(c, &seed, CLV_DTYPE_NONE, 0, NULL);
    if (some) vector_input(c, &seed, count, axes);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      bool outside = false;
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < rank; ++d) {
        at[d] = pad_source(dims[d], pads_of[d], pads_of[rank + d], mode, at[d]);
        outside = outside || at[d] < 0;
      }
      expect_element(c, 0, i, outside ? (with_value ? 3 : 0) : clv__tensor_get(x, ravel(x, at)));
    }
    case_end(c);
  }
}

static void expand_and_tile(void **state) {
  (void)state;
  uint64_t seed = 25;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 0, 4), wide = (int32_t)random_in(&seed, 0, 5);
    int64_t dims[8], want[8], repeats[8], at[8], from[8];
    random_dims(&seed, rank, 1, 4, dims);
    random_dims(&seed, wide, 1, 4, want);
    for (int32_t d = 1; d <= rank && d <= wide; ++d) { /* from the last axis backwards: the dims are equal, or one of them is 1 */
      if (test_random(&seed) % 2)
        dims[rank - d] = 1;
      else if (test_random(&seed) % 2)
        want[wide - d] = 1;
      else
        want[wide - d] = dims[rank - d];
    }
    node_case *c = case_begin("Expand", 13);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    vector_input(c, &seed, wide, want);
    case_run(c);
    int32_t lead = c->outputs[0].rank - rank;
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < rank; ++d) from[d] = dims[d] == 1 ? 0 : at[lead + d];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, from)));
    }
    case_end(c);
    c = case_begin("Tile", 13);
    x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    random_dims(&seed, rank, 0, 3, repeats);
    vector_input(c, &seed, rank, repeats);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < rank; ++d) at[d] %= dims[d];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, at)));
    }
    case_end(c);
  }
}

static void depth_and_space(void **state) {
  (void)state;
  uint64_t seed = 26;
  for (int round = 0; round < 40; ++round) {
    int64_t b = random_in(&seed, 1, 3), n = random_in(&seed, 1, 2), ch = random_in(&seed, 1, 3), h = random_in(&seed, 1, 4);
    int64_t w = random_in(&seed, 1, 4), at[8];
    bool crd = test_random(&seed) % 2;
    node_case *c = case_begin("DepthToSpace", 13);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), 4, (const int64_t[]){n, ch * b * b, h, w});
    case_int(c, "blocksize", b);
    case_string(c, "mode", crd ? "CRD" : "DCR");
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      int64_t block = at[2] % b * b + at[3] % b;
      int64_t from[4] = {at[0], crd ? at[1] * b * b + block : block * ch + at[1], at[2] / b, at[3] / b};
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, from)));
    }
    node_case *s = case_begin("SpaceToDepth", 13); /* the inverse of DepthToSpace in mode DCR */
    clv_tensor *y = case_input(s, &seed, x->dtype, 4, c->outputs[0].dims);
    memcpy(y->data, c->outputs[0].data, count_of(y) * clv_dtype_size_bytes(x->dtype));
    case_int(s, "blocksize", b);
    if (!crd) {
      case_run(s);
      assert_memory_equal(s->outputs[0].data, x->data, count_of(x) * clv_dtype_size_bytes(x->dtype));
    }
    case_end(s);
    case_end(c);
  }
}

/* ---- Gather and scatter -------------------------------------------------------------------------------------------------- */

static void fill_indices(uint64_t *seed, clv_tensor *indices, int64_t size) {
  for (size_t i = 0; i < count_of(indices); ++i) element_set(indices, i, (double)random_in(seed, -size, size - 1));
}

static int64_t index_at(const clv_tensor *indices, size_t i, int64_t size) {
  int64_t index = clv__tensor_get_int(indices, i);
  return index < 0 ? index + size : index;
}

static void gathers(void **state) {
  (void)state;
  uint64_t seed = 27;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 4), axis = (int32_t)random_in(&seed, 0, rank - 1);
    int32_t index_rank = (int32_t)random_in(&seed, 0, 3);
    int64_t dims[8], index_dims[8], at[16], from[8];
    random_dims(&seed, rank, 1, 5, dims);
    random_dims(&seed, index_rank, 0, 4, index_dims);
    node_case *c = case_begin("Gather", 13);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims), *indices = index_input(c, &seed, index_rank, index_dims);
    fill_indices(&seed, indices, dims[axis]);
    case_int(c, "axis", test_random(&seed) % 2 ? axis : axis - rank);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      for (int32_t d = 0; d < axis; ++d) from[d] = at[d];
      from[axis] = index_at(indices, ravel(indices, at + axis), dims[axis]);
      for (int32_t d = axis + 1; d < rank; ++d) from[d] = at[d - 1 + index_rank];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, from)));
    }
    case_end(c);
    c = case_begin("GatherElements", 13);
    x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    for (int32_t d = 0; d < rank; ++d) index_dims[d] = d == axis ? random_in(&seed, 0, 6) : random_in(&seed, 1, dims[d]);
    indices = index_input(c, &seed, rank, index_dims);
    fill_indices(&seed, indices, dims[axis]);
    case_int(c, "axis", axis);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      at[axis] = index_at(indices, i, dims[axis]);
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, at)));
    }
    case_end(c);
  }
}

/* Adds an input of indices of shape [batch dims…, more…, depth]. Each row of `depth` indices addresses the data axes after the
 * batch dims. */
static clv_tensor *nd_indices(node_case *c, uint64_t *seed, const int64_t *dims, int32_t batch, int32_t more, int64_t depth) {
  int64_t index_dims[8];
  random_dims(seed, more, 1, 4, index_dims + batch);
  for (int32_t d = 0; d < batch; ++d) index_dims[d] = dims[d];
  index_dims[batch + more] = depth;
  clv_tensor *indices = index_input(c, seed, batch + more + 1, index_dims);
  for (size_t i = 0; i < count_of(indices); ++i) {
    int64_t size = dims[batch + (int64_t)i % depth];
    element_set(indices, i, (double)random_in(seed, -size, size - 1));
  }
  return indices;
}

static void gathers_nd(void **state) {
  (void)state;
  uint64_t seed = 28;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 4), batch = (int32_t)random_in(&seed, 0, rank - 1),
            more = (int32_t)random_in(&seed, 0, 2);
    int64_t dims[8], depth = random_in(&seed, 1, rank - batch), at[16], from[8];
    random_dims(&seed, rank, 1, 4, dims);
    node_case *c = case_begin("GatherND", 13);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    clv_tensor *indices = nd_indices(c, &seed, dims, batch, more, depth);
    if (batch > 0 || test_random(&seed) % 2) case_int(c, "batch_dims", batch);
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      size_t row = 0;
      for (int32_t d = 0; d < batch + more; ++d) row = row * (size_t)indices->dims[d] + (size_t)at[d];
      for (int32_t d = 0; d < batch; ++d) from[d] = at[d];
      for (int64_t k = 0; k < depth; ++k) from[batch + k] = index_at(indices, row * (size_t)depth + (size_t)k, dims[batch + k]);
      for (int32_t d = batch + (int32_t)depth; d < rank; ++d) from[d] = at[d - depth + more];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, from)));
    }
    case_end(c);
  }
}

static const char *const reductions[] = {"none", "add", "mul", "min", "max"};

/* Combines an element `a` of the data with an update `b`, by the reduction `reductions[how]`. The result is exact in every
 * dtype tested, because the data are small whole numbers. */
static double reduce(size_t how, double a, double b) {
  return how == 0 ? b : how == 1 ? a + b : how == 2 ? a * b : how == 3 ? fmin(a, b) : fmax(a, b);
}

static void small_numbers(uint64_t *seed, clv_tensor *t) {
  for (size_t i = 0; i < count_of(t); ++i) element_set(t, i, (double)random_in(seed, 0, 2));
}

static clv_dtype reducible_dtype(uint64_t *seed) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_I32, CLV_I64, CLV_U32, CLV_U64};
  return dtypes[test_random(seed) % 7];
}

static void scatters(void **state) {
  (void)state;
  uint64_t seed = 29;
  for (int round = 0; round < 2 * ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 4), axis = (int32_t)random_in(&seed, 0, rank - 1);
    size_t how = test_random(&seed) % 5;
    int64_t dims[8], index_dims[8], at[16];
    double expected[2048];
    random_dims(&seed, rank, 1, 4, dims);
    for (int32_t d = 0; d < rank; ++d) index_dims[d] = random_in(&seed, 1, dims[d]);
    node_case *c = case_begin("ScatterElements", 18);
    clv_tensor *x = case_input(c, &seed, reducible_dtype(&seed), rank, dims), *indices = index_input(c, &seed, rank, index_dims);
    fill_indices(&seed, indices, dims[axis]);
    clv_tensor *updates = case_input(c, &seed, x->dtype, rank, index_dims);
    small_numbers(&seed, x);
    small_numbers(&seed, updates);
    case_int(c, "axis", axis - (test_random(&seed) % 2 ? rank : 0));
    if (how > 0) case_string(c, "reduction", reductions[how]);
    case_run(c);
    for (size_t i = 0; i < count_of(x); ++i) expected[i] = clv__tensor_get(x, i);
    for (size_t i = 0; i < count_of(updates); ++i) {
      unravel(updates, i, at);
      at[axis] = index_at(indices, i, dims[axis]);
      expected[ravel(x, at)] = reduce(how, expected[ravel(x, at)], clv__tensor_get(updates, i));
    }
    case_expect(c, 0, expected);
    case_end(c);

    int64_t depth = random_in(&seed, 1, rank);
    int32_t more = (int32_t)random_in(&seed, 0, 2);
    c = case_begin("ScatterND", 18);
    x = case_input(c, &seed, reducible_dtype(&seed), rank, dims);
    indices = nd_indices(c, &seed, dims, 0, more, depth);
    int64_t update_dims[16];
    for (int32_t d = 0; d < more; ++d) update_dims[d] = indices->dims[d];
    for (int32_t d = (int32_t)depth; d < rank; ++d) update_dims[more + d - depth] = dims[d];
    updates = case_input(c, &seed, x->dtype, more + rank - (int32_t)depth, update_dims);
    small_numbers(&seed, x);
    small_numbers(&seed, updates);
    if (how > 0) case_string(c, "reduction", reductions[how]);
    case_run(c);
    for (size_t i = 0; i < count_of(x); ++i) expected[i] = clv__tensor_get(x, i);
    for (size_t i = 0; i < count_of(updates); ++i) {
      int64_t to[8];
      unravel(updates, i, at);
      size_t row = 0;
      for (int32_t d = 0; d < more; ++d) row = row * (size_t)indices->dims[d] + (size_t)at[d];
      for (int64_t k = 0; k < depth; ++k) to[k] = index_at(indices, row * (size_t)depth + (size_t)k, dims[k]);
      for (int32_t d = (int32_t)depth; d < rank; ++d) to[d] = at[more + d - depth];
      expected[ravel(x, to)] = reduce(how, expected[ravel(x, to)], clv__tensor_get(updates, i));
    }
    case_expect(c, 0, expected);
    case_end(c);
  }
}

/* For an index out of range, the error must state the index and the size of the axis, and nothing may be read or written at
 * this index. */
static void bad_indices(void **state) {
  (void)state;
  static const char *const ops[] = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"};
  uint64_t seed = 30;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    for (int side = 0; side < 2; ++side) {
      node_case *c = case_begin(ops[i], 18);
      bool scatter = ops[i][0] == 'S';
      case_input(c, &seed, CLV_F32, 1, (const int64_t[]){3});
      bool rows = strstr(ops[i], "ND") != NULL;
      clv_tensor *indices = case_input(c, &seed, CLV_I64, rows ? 2 : 1, (const int64_t[]){1, 1});
      ((int64_t *)indices->data)[0] = side == 0 ? 3 : -4;
      if (scatter) case_input(c, &seed, CLV_F32, 1, (const int64_t[]){1});
      assert_ok(case_infer(c), c->error);
      float room[4] = {0};
      c->outputs[0].data = room;
      clv__kernel_call call = {.op = c->op,
                               .opset = 18,
                               .inputs = c->inputs,
                               .input_count = c->input_count,
                               .outputs = c->outputs,
                               .output_count = 1,
                               .error = &c->error};
      assert_int_equal(clv__kernel_run(find_kernel("", c->op), &call, clv__allocator_default()), CLV_INVALID_ARGUMENT);
      assert_non_null(strstr(c->error.message, side == 0 ? "index 3 " : "index -4 "));
      assert_non_null(strstr(c->error.message, "size 3"));
      c->outputs[0].data = NULL;
      case_end(c);
    }
  }
}

/* ---- TopK, Compress, Unique and others that select elements -------------------------------------------------------------- */

static void topk(void **state) {
  (void)state;
  uint64_t seed = 31;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 1, 3), axis = (int32_t)random_in(&seed, 0, rank - 1);
    int64_t dims[8], at[8];
    bool largest = test_random(&seed) % 2;
    random_dims(&seed, rank, 1, 8, dims);
    int64_t k = random_in(&seed, 0, dims[axis]);
    node_case *c = case_begin("TopK", 11);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    if (test_random(&seed) % 2) small_numbers(&seed, x); /* so that many elements are equal */
    if (x->dtype == CLV_F32 && test_random(&seed) % 3 == 0) element_set(x, 0, NAN);
    vector_input(c, &seed, 1, &k);
    case_int(c, "axis", axis);
    case_int(c, "largest", largest);
    c->output_count = 2;
    case_run(c);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      int64_t place = at[axis], chosen = -1;
      /* Find the element that is at `place` in the sorted order. */
      for (int64_t candidate = 0; candidate < dims[axis]; ++candidate) {
        int64_t before = 0;
        at[axis] = candidate;
        double value = clv__tensor_get(x, ravel(x, at));
        for (int64_t other = 0; other < dims[axis]; ++other) {
          at[axis] = other;
          double rival = clv__tensor_get(x, ravel(x, at));
          bool first = isnan(value) != isnan(rival) ? isnan(value) : largest ? rival > value : rival < value;
          bool tie = rival == value || (isnan(rival) && isnan(value));
          before += first || (tie && other < candidate);
        }
        if (before == place) chosen = candidate;
      }
      at[axis] = chosen;
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, at)));
      expect_element(c, 1, i, (double)chosen);
    }
    case_end(c);
  }
}

static void nonzero_and_compress(void **state) {
  (void)state;
  uint64_t seed = 32;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t rank = (int32_t)random_in(&seed, 0, 3);
    int64_t dims[8], at[8], found = 0;
    random_dims(&seed, rank, 0, 4, dims);
    node_case *c = case_begin("NonZero", 13);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    small_numbers(&seed, x);
    case_run(c);
    int64_t total = c->outputs[0].dims[1];
    for (size_t i = 0; i < count_of(x); ++i) {
      if (clv__tensor_get(x, i) == 0) continue;
      unravel(x, i, at);
      for (int32_t d = 0; d < rank; ++d) expect_element(c, 0, (size_t)(d * total + found), (double)at[d]);
      found++;
    }
    assert_int_equal(found, total);
    case_end(c);
    if (rank == 0) continue;
    int32_t axis = (int32_t)random_in(&seed, 0, rank - 1);
    int64_t length = random_in(&seed, 0, dims[axis]), kept = 0, which[8];
    c = case_begin("Compress", 11);
    x = case_input(c, &seed, any_dtype(&seed), rank, dims);
    clv_tensor *condition = case_input(c, &seed, CLV_U8, 1, &length);
    condition->dtype = CLV_BOOL;
    for (int64_t i = 0; i < length; ++i) {
      ((uint8_t *)condition->data)[i] = test_random(&seed) % 2;
      if (((uint8_t *)condition->data)[i]) which[kept++] = i;
    }
    case_int(c, "axis", axis);
    case_run(c);
    assert_int_equal(c->outputs[0].dims[axis], kept);
    for (size_t i = 0; i < count_of(&c->outputs[0]); ++i) {
      unravel(&c->outputs[0], i, at);
      at[axis] = which[at[axis]];
      expect_element(c, 0, i, clv__tensor_get(x, ravel(x, at)));
    }
    case_end(c);
  }
}

static void uniques(void **state) {
  (void)state;
  uint64_t seed = 33;
  for (int round = 0; round < ROUNDS; ++round) {
    int64_t count = random_in(&seed, 0, 12);
    bool sorted = test_random(&seed) % 2;
    node_case *c = case_begin("Unique", 11);
    clv_tensor *x = case_input(c, &seed, any_dtype(&seed), 1, &count);
    small_numbers(&seed, x);
    case_int(c, "sorted", sorted);
    c->output_count = 4;
    case_run(c);
    const clv_tensor *y = &c->outputs[0];
    for (int64_t i = 0; i < y->dims[0]; ++i) {
      int64_t first = -1, times = 0;
      for (int64_t k = 0; k < count; ++k) {
        if (clv__tensor_get(x, (size_t)k) != clv__tensor_get(y, (size_t)i)) continue;
        if (first < 0) first = k;
        times++;
        expect_element(c, 2, (size_t)k, (double)i);
      }
      expect_element(c, 1, (size_t)i, (double)first);
      expect_element(c, 3, (size_t)i, (double)times);
      if (i == 0) continue;
      if (sorted)
        assert_true(clv__tensor_get(y, (size_t)i - 1) < clv__tensor_get(y, (size_t)i));
      else
        assert_true(clv__tensor_get(&c->outputs[1], (size_t)i - 1) < first);
    }
    assert_true(count == 0 || y->dims[0] > 0);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strided_reads),
      cmocka_unit_test(large_copies),
      cmocka_unit_test(transposes),
      cmocka_unit_test(concat_and_split),
      cmocka_unit_test(slices),
      cmocka_unit_test(pads),
      cmocka_unit_test(expand_and_tile),
      cmocka_unit_test(depth_and_space),
      cmocka_unit_test(gathers),
      cmocka_unit_test(gathers_nd),
      cmocka_unit_test(scatters),
      cmocka_unit_test(bad_indices),
      cmocka_unit_test(topk),
      cmocka_unit_test(nonzero_and_compress),
      cmocka_unit_test(uniques),
  };
  return RUN_BOTH_KERNELS(tests);
}
