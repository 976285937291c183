/* Tests Resize and Upsample against the specification's formulas, evaluated position by position in f64 over two axes at
 * once. */
#include "node_case.h"

typedef struct resize_case {
  const char *mode, *transform, *nearest;
  bool antialias, exclude;
  double scale[2], roi[4], width[2];
  int64_t in[2], out[2];
} resize_case;

static double coordinate(const resize_case *r, int i, int64_t o) {
  double x = (double)o, scale = r->scale[i], last = (double)r->in[i] - 1;
  if (strcmp(r->transform, "half_pixel") == 0) return (x + 0.5) / scale - 0.5;
  if (strcmp(r->transform, "asymmetric") == 0) return x / scale;
  if (strcmp(r->transform, "pytorch_half_pixel") == 0) return r->out[i] > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (strcmp(r->transform, "align_corners") == 0) return r->width[i] == 1 ? 0 : x * last / (r->width[i] - 1);
  if (strcmp(r->transform, "half_pixel_symmetric") == 0) {
    return (double)r->in[i] / 2 * (1 - (double)r->out[i] / r->width[i]) + (x + 0.5) / scale - 0.5;
  }
  double start = r->roi[i], end = r->roi[2 + i];
  return r->out[i] > 1 ? start * last + x * (end - start) * last / (r->width[i] - 1) : 0.5 * (start + end) * last;
}

/* The weight of input position `p`, which may be outside the input, for coordinate x. */
static double weight(const resize_case *r, int i, double x, double p) {
  double squeeze = r->antialias && r->scale[i] < 1 ? r->scale[i] : 1, d = fabs(x - p) * squeeze, a = -0.75;
  if (strcmp(r->mode, "linear") == 0) return d < 1 ? 1 - d : 0;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* Computes the normalized weights of all input positions for one output position. A position outside adds to the weight at the
 * edge, or with exclude_outside is left out. */
static void weights_of(const resize_case *r, int i, int64_t o, double *weights) {
  double x = coordinate(r, i, o), sum = 0;
  for (int64_t k = 0; k < r->in[i]; ++k) weights[k] = 0;
  if (strcmp(r->mode, "nearest") == 0) {
    double p = strcmp(r->nearest, "floor") == 0               ? floor(x)
               : strcmp(r->nearest, "ceil") == 0              ? ceil(x)
               : strcmp(r->nearest, "round_prefer_ceil") == 0 ? floor(x + 0.5)
                                                              : ceil(x - 0.5);
    weights[(int64_t)fmin(fmax(p, 0), (double)r->in[i] - 1)] = 1;
    return;
  }
  for (int64_t p = -200; p < r->in[i] + 200; ++p) {
    bool outside = p < 0 || p >= r->in[i];
    double w = outside && r->exclude ? 0 : weight(r, i, x, (double)p);
    weights[p < 0 ? 0 : p >= r->in[i] ? r->in[i] - 1 : p] += w;
    sum += w;
  }
  for (int64_t k = 0; k < r->in[i]; ++k) weights[k] /= sum;
}

static void expect(const resize_case *r, node_case *c) {
  const clv_tensor *x = &c->inputs[0];
  assert_int_equal(c->outputs[0].dims[2], r->out[0]);
  assert_int_equal(c->outputs[0].dims[3], r->out[1]);
  size_t count = count_of(&c->outputs[0]), at = 0;
  double *y = calloc(count + 1, sizeof *y), rows[64], columns[64];
  for (int64_t plane = 0; plane < x->dims[0] * x->dims[1]; ++plane) {
    for (int64_t i = 0; i < r->out[0]; ++i) {
      weights_of(r, 0, i, rows);
      for (int64_t j = 0; j < r->out[1]; ++j, ++at) {
        bool cropped = strcmp(r->transform, "tf_crop_and_resize") == 0;
        double p = coordinate(r, 0, i), q = coordinate(r, 1, j);
        if (cropped && (p < 0 || p > (double)r->in[0] - 1 || q < 0 || q > (double)r->in[1] - 1)) {
          y[at] = 7;
          continue;
        }
        weights_of(r, 1, j, columns);
        for (int64_t k = 0; k < r->in[0] * r->in[1]; ++k) {
          double w = rows[k / r->in[1]] * columns[k % r->in[1]];
          if (w != 0) y[at] += w * clv__tensor_get(x, (size_t)(plane * r->in[0] * r->in[1] + k));
        }
      }
    }
  }
  case_expect(c, 0, y);
  free(y);
}

static void one_case(uint64_t *seed) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const transforms[] = {"half_pixel",    "asymmetric",           "pytorch_half_pixel",
                                           "align_corners", "half_pixel_symmetric", "tf_crop_and_resize"};
  static const char *const rounds[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
  static const double scales[] = {0.5, 0.75, 1, 1.5, 2, 2.25, 3};
  resize_case r = {.mode = modes[random_in(seed, 0, 2)],
                   .transform = transforms[random_in(seed, 0, 5)],
                   .nearest = rounds[random_in(seed, 0, 3)],
                   .roi = {0, 0, 1, 1}};
  bool is_nearest = strcmp(r.mode, "nearest") == 0, by_sizes = random_in(seed, 0, 1) != 0, some_axes = random_in(seed, 0, 1) != 0;
  r.antialias = !is_nearest && random_in(seed, 0, 2) == 0;
  r.exclude = !is_nearest && random_in(seed, 0, 2) == 0;
  node_case *c = case_begin("Resize", 19);
  case_string(c, "mode", r.mode);
  case_string(c, "coordinate_transformation_mode", r.transform);
  case_string(c, "nearest_mode", r.nearest);
  case_int(c, "antialias", r.antialias);
  case_int(c, "exclude_outside", r.exclude);
  case_float(c, "extrapolation_value", 7.0f);
  if (some_axes) case_ints(c, "axes", 2, (int64_t[]){-1, 2});
  for (int i = 0; i < 2; ++i) {
    r.in[i] = random_in(seed, 2, 9);
    r.scale[i] = scales[random_in(seed, 0, 6)];
    r.out[i] = by_sizes ? random_in(seed, 1, 15) : (int64_t)floor((double)r.in[i] * r.scale[i]);
    if (by_sizes) r.scale[i] = (double)r.out[i] / (double)r.in[i];
    r.width[i] = by_sizes ? (double)r.out[i] : (double)r.in[i] * r.scale[i];
  }
  clv_dtype dtype = is_nearest && random_in(seed, 0, 2) == 0 ? CLV_U8 : random_float_dtype(seed);
  case_input(c, seed, dtype, 4, (int64_t[]){2, 3, r.in[0], r.in[1]});
  /* axes, if given, is [-1, 2], which lists the second spatial axis first */
  int64_t n = some_axes ? 2 : 4, first = some_axes ? 1 : 2, second = some_axes ? 0 : 3;
  bool crop = strcmp(r.transform, "tf_crop_and_resize") == 0;
  clv_tensor *roi = case_input(c, seed, crop ? CLV_F32 : CLV_DTYPE_NONE, 1, (int64_t[]){2 * n});
  for (int64_t i = 0; i < n && crop; ++i) element_set(roi, (size_t)i, 0), element_set(roi, (size_t)(n + i), 1);
  for (int i = 0; i < 2 && crop; ++i) {
    r.roi[i] = 0.125 * (double)random_in(seed, -1, 3);
    r.roi[2 + i] = 0.125 * (double)random_in(seed, 5, 9);
    element_set(roi, (size_t)(i == 0 ? first : second), r.roi[i]);
    element_set(roi, (size_t)(n + (i == 0 ? first : second)), r.roi[2 + i]);
  }
  clv_tensor *factors = case_input(c, seed, by_sizes ? CLV_DTYPE_NONE : CLV_F32, 1, &n);
  clv_tensor *sizes = case_input(c, seed, by_sizes ? CLV_I64 : CLV_DTYPE_NONE, 1, &n);
  for (int64_t i = 0; i < n; ++i) {
    bool is_first = i == first, is_second = i == second;
    if (!by_sizes) element_set(factors, (size_t)i, is_first ? r.scale[0] : is_second ? r.scale[1] : 1);
    if (by_sizes) element_set(sizes, (size_t)i, is_first ? (double)r.out[0] : is_second ? (double)r.out[1] : i == 0 ? 2 : 3);
  }
  case_run(c);
  expect(&r, c);
  case_end(c);
}

static void test_modes(void **state) {
  (void)state;
  uint64_t seed = 51;
  for (int i = 0; i < 600; ++i) one_case(&seed);
}

/* Tests keep_aspect_ratio_policy: both axes get the smaller or the larger of the two scales; sizes are rounded half up. */
static void test_aspect_ratio(void **state) {
  (void)state;
  uint64_t seed = 52;
  for (int larger = 0; larger < 2; ++larger) {
    node_case *c = case_begin("Resize", 18);
    resize_case r = {.mode = "linear", .transform = "half_pixel", .in = {4, 6}, .out = {larger ? 9 : 7, larger ? 14 : 10}};
    double scale = larger ? 9.0 / 4 : 10.0 / 6;
    for (int i = 0; i < 2; ++i) r.scale[i] = scale, r.width[i] = scale * (double)r.in[i];
    case_string(c, "mode", r.mode);
    case_string(c, "keep_aspect_ratio_policy", larger ? "not_smaller" : "not_larger");
    case_ints(c, "axes", 2, (int64_t[]){2, 3});
    case_input(c, &seed, CLV_F32, 4, (int64_t[]){1, 1, 4, 6});
    case_input(c, &seed, CLV_DTYPE_NONE, 0, NULL);
    case_input(c, &seed, CLV_DTYPE_NONE, 0, NULL);
    clv_tensor *sizes = case_input(c, &seed, CLV_I64, 1, (int64_t[]){2});
    element_set(sizes, 0, 9);
    element_set(sizes, 1, 10);
    case_run(c);
    expect(&r, c);
    case_end(c);
  }
}

/* Tests older opsets, in which scales are an attribute (Upsample 7) or input 1 (Upsample 9, Resize 10); coordinates are
 * asymmetric and rounded down. */
static void test_older_versions(void **state) {
  (void)state;
  uint64_t seed = 53;
  static const struct {
    const char *op;
    int32_t opset;
  } forms[] = {{"Upsample", 7}, {"Upsample", 9}, {"Resize", 10}};
  for (int i = 0; i < 6; ++i) {
    node_case *c = case_begin(forms[i % 3].op, forms[i % 3].opset);
    resize_case r = {.mode = i < 3 ? "nearest" : "linear",
                     .transform = "asymmetric",
                     .nearest = "floor",
                     .scale = {2, 1.5},
                     .in = {3, 5},
                     .out = {6, 7},
                     .width = {6, 7.5}};
    float scales[4] = {1, 1, 2, 1.5f};
    case_string(c, "mode", r.mode);
    case_input(c, &seed, CLV_F32, 4, (int64_t[]){2, 1, 3, 5});
    if (i % 3 == 0) {
      clv_attribute *a = case_attribute(c, "scales", CLV_ATTRIBUTE_FLOATS);
      a->is_list = true;
      a->count = 4;
      a->floats = scales;
    } else {
      clv_tensor *t = case_input(c, &seed, CLV_F32, 1, (int64_t[]){4});
      memcpy(t->data, scales, sizeof scales);
    }
    case_run(c);
    expect(&r, c);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_modes),
      cmocka_unit_test(test_aspect_ratio),
      cmocka_unit_test(test_older_versions),
  };
  return RUN_BOTH_KERNELS(tests);
}
