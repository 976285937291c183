/* Tests Conv and ConvTranspose against loops in f64, with random shapes, attributes and dtypes. The number of threads must not
 * change the result. */
#include "node_case.h"

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct geometry {
  int32_t spatial;
  int64_t input[3], kernel[3], stride[3], dilation[3], begin[3], end[3], extra[3], output[3];
  const char *auto_pad;
} geometry;

static void halves(geometry *g, int i, int64_t total, bool upper) {
  int64_t half = total >= 0 ? total / 2 : -((1 - total) / 2);
  g->begin[i] = upper ? half : total - half;
  g->end[i] = total - g->begin[i];
}

/* Draws the geometry of a Conv whose output is not empty. */
static void geometry_random(uint64_t *seed, geometry *g) {
  static const char *const pads[] = {NULL, NULL, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"};
  memset(g, 0, sizeof *g);
  g->spatial = (int32_t)random_in(seed, 1, 3);
  g->auto_pad = pads[random_in(seed, 0, 5)];
  bool same = g->auto_pad != NULL && g->auto_pad[0] == 'S';
  for (int i = 0; i < g->spatial; ++i) {
    g->kernel[i] = random_in(seed, 1, 4);
    g->stride[i] = random_in(seed, 1, 3);
    g->dilation[i] = random_in(seed, 1, 2);
    int64_t extent = (g->kernel[i] - 1) * g->dilation[i] + 1;
    g->input[i] = extent + random_in(seed, 0, g->spatial == 3 ? 4 : 12);
    if (same) {
      g->output[i] = (g->input[i] + g->stride[i] - 1) / g->stride[i];
      int64_t total = (g->output[i] - 1) * g->stride[i] + extent - g->input[i];
      halves(g, i, total > 0 ? total : 0, strcmp(g->auto_pad, "SAME_UPPER") == 0);
      continue;
    }
    if (g->auto_pad == NULL || g->auto_pad[0] == 'N') {
      g->begin[i] = random_in(seed, 0, 2);
      g->end[i] = random_in(seed, 0, 2);
    }
    g->output[i] = (g->input[i] + g->begin[i] + g->end[i] - extent) / g->stride[i] + 1;
  }
}

/* Draws the geometry of a ConvTranspose, with output_padding. */
static void geometry_random_transposed(uint64_t *seed, geometry *g) {
  static const char *const pads[] = {NULL, NULL, "SAME_UPPER", "SAME_LOWER", "VALID"};
  memset(g, 0, sizeof *g);
  g->spatial = (int32_t)random_in(seed, 1, 3);
  g->auto_pad = pads[random_in(seed, 0, 4)];
  for (int i = 0; i < g->spatial; ++i) {
    g->kernel[i] = random_in(seed, 1, 4);
    g->stride[i] = random_in(seed, 1, 3);
    g->dilation[i] = random_in(seed, 1, 3);
    g->extra[i] = random_in(seed, 0, g->stride[i] - 1);
    g->input[i] = random_in(seed, 1, g->spatial == 3 ? 4 : 8);
    int64_t natural = g->stride[i] * (g->input[i] - 1) + g->extra[i] + (g->kernel[i] - 1) * g->dilation[i] + 1;
    if (g->auto_pad != NULL && g->auto_pad[0] == 'S') {
      g->output[i] = g->input[i] * g->stride[i];
      halves(g, i, natural - g->output[i], strcmp(g->auto_pad, "SAME_UPPER") == 0);
      continue;
    }
    if (g->auto_pad == NULL) {
      g->begin[i] = random_in(seed, 0, natural > 2 ? 1 : 0);
      g->end[i] = random_in(seed, 0, natural > 2 ? 1 : 0);
    }
    g->output[i] = natural - g->begin[i] - g->end[i];
  }
}

static void geometry_attributes(node_case *c, const geometry *g, bool transposed) {
  int64_t pads[6];
  for (int i = 0; i < g->spatial; ++i) pads[i] = g->begin[i], pads[g->spatial + i] = g->end[i];
  case_ints(c, "kernel_shape", (size_t)g->spatial, g->kernel);
  case_ints(c, "strides", (size_t)g->spatial, g->stride);
  case_ints(c, "dilations", (size_t)g->spatial, g->dilation);
  if (g->auto_pad != NULL) case_string(c, "auto_pad", g->auto_pad);
  if (g->auto_pad == NULL || g->auto_pad[0] == 'N') case_ints(c, "pads", (size_t)(2 * g->spatial), pads);
  if (transposed) case_ints(c, "output_padding", (size_t)g->spatial, g->extra);
}

/* Advances `index` to the next one below `limits`. Returns false after the last. */
static bool advance(int32_t rank, const int64_t *limits, int64_t *index) {
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (++index[i] < limits[i]) return true;
    index[i] = 0;
  }
  return false;
}

static int64_t flat(int32_t rank, const int64_t *dims, const int64_t *index) {
  int64_t at = 0;
  for (int32_t i = 0; i < rank; ++i) at = at * dims[i] + index[i];
  return at;
}

static int64_t volume(int32_t rank, const int64_t *dims) {
  int64_t size = 1;
  for (int32_t i = 0; i < rank; ++i) size *= dims[i];
  return size;
}

/* Adds the contribution of one input channel to one output channel, with stride s and dilation d: Conv reads input[o * s + k * d
 * - pad], ConvTranspose adds to output[i * s + k * d - pad]. */
static void pair_add(const geometry *g, bool transposed, const clv_tensor *x, int64_t x_base, const clv_tensor *w, int64_t w_base,
                     double *y) {
  const int64_t *walked = transposed ? g->input : g->output, *hit = transposed ? g->output : g->input;
  int64_t at[3] = {0};
  do {
    int64_t k[3] = {0};
    do {
      int64_t other[3];
      bool inside = true;
      for (int i = 0; i < g->spatial; ++i) {
        other[i] = at[i] * g->stride[i] + k[i] * g->dilation[i] - g->begin[i];
        inside = inside && other[i] >= 0 && other[i] < hit[i];
      }
      if (!inside) continue;
      int64_t in = transposed ? flat(g->spatial, g->input, at) : flat(g->spatial, g->input, other);
      int64_t out = transposed ? flat(g->spatial, g->output, other) : flat(g->spatial, g->output, at);
      y[out] += clv__tensor_get(x, (size_t)(x_base + in)) * clv__tensor_get(w, (size_t)(w_base + flat(g->spatial, g->kernel, k)));
    } while (advance(g->spatial, g->kernel, k));
  } while (advance(g->spatial, walked, at));
}

static void one_case(uint64_t *seed, bool transposed, int64_t in_channels, int64_t out_channels, int64_t groups,
                     clv_dtype dtype) {
  geometry g;
  node_case *c = case_begin(transposed ? "ConvTranspose" : "Conv", 22);
  if (transposed) {
    geometry_random_transposed(seed, &g);
  } else {
    geometry_random(seed, &g);
  }
  geometry_attributes(c, &g, transposed);
  case_int(c, "group", groups);
  int64_t x_dims[5] = {random_in(seed, 1, 2), groups * in_channels}, w_dims[5] = {groups * out_channels, in_channels};
  if (transposed) w_dims[0] = groups * in_channels, w_dims[1] = out_channels;
  for (int i = 0; i < g.spatial; ++i) x_dims[2 + i] = g.input[i], w_dims[2 + i] = g.kernel[i];
  clv_tensor *x = case_input(c, seed, dtype, 2 + g.spatial, x_dims), *w = case_input(c, seed, dtype, 2 + g.spatial, w_dims);
  clv_tensor *b = random_in(seed, 0, 1) != 0 ? case_input(c, seed, dtype, 1, (int64_t[]){groups * out_channels}) : NULL;
  int64_t in_plane = volume(g.spatial, g.input), out_plane = volume(g.spatial, g.output), taps = volume(g.spatial, g.kernel);
  case_run(c);
  assert_int_equal(count_of(&c->outputs[0]), x_dims[0] * groups * out_channels * out_plane);
  double *y = calloc(count_of(&c->outputs[0]) + 1, sizeof *y);
  for (int64_t n = 0; n < x_dims[0]; ++n) {
    for (int64_t o = 0; o < groups * out_channels; ++o) {
      double *plane = y + (n * groups * out_channels + o) * out_plane;
      int64_t group = o / out_channels;
      for (int64_t i = 0; i < in_channels; ++i) {
        int64_t matrix = transposed ? (group * in_channels + i) * out_channels + o % out_channels : o * in_channels + i;
        pair_add(&g, transposed, x, ((n * groups + group) * in_channels + i) * in_plane, w, matrix * taps, plane);
      }
      for (int64_t p = 0; p < out_plane && b != NULL; ++p) plane[p] += clv__tensor_get(b, (size_t)o);
    }
  }
  case_expect(c, 0, y);
  free(y);
  case_end(c);
}

static void test_random_shapes(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int i = 0; i < 250; ++i) {
    int64_t groups = random_in(&seed, 0, 2) == 0 ? random_in(&seed, 2, 4) : 1;
    one_case(&seed, i % 2 == 1, random_in(&seed, 1, 6), random_in(&seed, 1, 9), groups, random_float_dtype(&seed));
  }
}

/* Tests more input and output channels than fit one block of the matrix product. */
static void test_large_depth(void **state) {
  (void)state;
  uint64_t seed = 12;
  for (int i = 0; i < 6; ++i) one_case(&seed, i % 2 == 1, random_in(&seed, 90, 130), random_in(&seed, 95, 110), 1, CLV_F32);
}

static void test_depthwise(void **state) {
  (void)state;
  uint64_t seed = 13;
  for (int i = 0; i < 40; ++i)
    one_case(&seed, i % 4 == 3, 1, random_in(&seed, 1, 2), random_in(&seed, 2, 9), random_float_dtype(&seed));
}

/* Output channels with equal weights must have equal bits, at any position within a block and on any number of threads. */
static void test_same_channels_same_bits(void **state) {
  (void)state;
  uint64_t seed = 14;
  const int64_t channels = 1003, depth = 300, side = 9;
  node_case *c = case_begin("Conv", 11);
  case_ints(c, "pads", 4, (int64_t[]){1, 1, 1, 1});
  case_input(c, &seed, CLV_F32, 4, (int64_t[]){1, depth, side, side});
  clv_tensor *w = case_input(c, &seed, CLV_F32, 4, (int64_t[]){channels, depth, 3, 3});
  size_t row = (size_t)(depth * 9) * sizeof(float), plane = (size_t)(side * side) * sizeof(float);
  for (int64_t o = 1; o < channels; ++o) memcpy((char *)w->data + (size_t)o * row, w->data, row);
  char *first = malloc(plane);
  for (int threads = 1; threads <= 4; ++threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
    case_run(c);
    const char *y = c->outputs[0].data;
    if (threads == 1) memcpy(first, y, plane);
    for (int64_t o = 0; o < channels; ++o) assert_memory_equal(y + (size_t)o * plane, first, plane);
  }
  free(first);
  case_end(c);
}

/* Tests attribute output_shape, which determines the pads by the specification's formula, with an output larger than the taps
 * reach. */
static void test_output_shape(void **state) {
  (void)state;
  uint64_t seed = 15;
  node_case *c = case_begin("ConvTranspose", 11);
  case_ints(c, "strides", 1, (int64_t[]){3});
  case_ints(c, "output_shape", 1, (int64_t[]){10});
  clv_tensor *x = case_input(c, &seed, CLV_F32, 3, (int64_t[]){1, 1, 3}),
             *w = case_input(c, &seed, CLV_F32, 3, (int64_t[]){1, 1, 3});
  case_run(c);
  double y[10] = {0};
  for (size_t i = 0; i < 9; ++i) y[i] = clv__tensor_get(x, i / 3) * clv__tensor_get(w, i % 3);
  case_expect(c, 0, y);
  case_end(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_shapes),           cmocka_unit_test(test_large_depth),  cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_same_channels_same_bits), cmocka_unit_test(test_output_shape),
  };
  return RUN_BOTH_KERNELS(tests);
}
