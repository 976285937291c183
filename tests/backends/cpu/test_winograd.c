/* Weights transformed for Winograd's algorithm: every order that oneDNN asks for, element by element against its own reorder; at
 * odd addresses, scaled, with channels that fill no block. Where the processor has no such convolution, there is nothing to hold
 * them against, and that is said. And the choice between this algorithm and the direct one. */
#include "backends/cpu/constants/winograd.h"

#include "backends/cpu/constants/winograd_cost.h"
#include "backends/cpu/device.h"
#include "base/random.h"
#include "cpu_host.h"

static void describe(clv__dnn_convolution *spec, int64_t outputs, int64_t inputs, int64_t extent) {
  *spec = (clv__dnn_convolution){.winograd = true, .window = {.count = 2}};
  for (int i = 0; i < 2; ++i) {
    spec->window.kernel[i] = 3;
    spec->window.stride[i] = spec->window.dilation[i] = spec->window.begin[i] = spec->window.end[i] = 1;
  }
  spec->source = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {1, inputs, extent, extent}};
  spec->weights = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {outputs, inputs, 3, 3}};
  spec->destination = (clv_tensor){.dtype = CLV_F32, .rank = 4, .dims = {1, outputs, extent, extent}};
}

static float *numbers(uint64_t *seed, int64_t count) {
  const int64_t dims[1] = {count};
  return random_tensor(clv__allocator_default(), seed, 1, dims).data;
}

/* The layout that a convolution wants, NULL where there is none; 1 + order, or 0. */
static int check(clv__dnn *dnn, int64_t outputs, int64_t inputs, int64_t extent, bool scaled, size_t shift_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv__arena arena;
  clv__dnn_convolution spec;
  clv__dnn_primitive *primitive = NULL;
  clv__dnn_winograd winograd;
  clv_error error = {0};
  int order = 0;
  clv__arena_init(&arena, allocator);
  describe(&spec, outputs, inputs, extent);
  if (clv__dnn_convolution_create(dnn, &spec, &arena, &primitive, &error) == CLV_OK &&
      clv__dnn_layout_is_opaque(primitive->weights)) { /* nothing but Winograd's weights is */
    assert_true(clv__dnn_layout_winograd(primitive->weights, &winograd));
    uint64_t seed = (uint64_t)(outputs * 1000 + inputs);
    const int64_t count = outputs * inputs * 9;
    const size_t size_bytes = clv__dnn_layout_size_bytes(primitive->weights), floats = size_bytes / sizeof(float);
    float *weights = numbers(&seed, count), *scale = numbers(&seed, outputs);
    uint8_t *shifted = clv__allocate(allocator, (size_t)count * sizeof(float) + shift_bytes);
    memcpy(shifted + shift_bytes, weights, (size_t)count * sizeof(float));
    float *wanted = clv__allocate_zero(allocator, size_bytes), *made = clv__allocate(allocator, size_bytes);
    memset(made, 0xff, size_bytes);
    const clv__cpu_filters filters = {shifted + shift_bytes, inputs, 0, scaled ? scale : NULL};
    assert_true(clv__cpu_winograd_pack(primitive->weights, &filters, made));
    for (int64_t i = 0; i < count && scaled; ++i) weights[i] *= scale[i / (inputs * 9)];
    const clv__dnn_layout *from = clv__dnn_layout_dense(&arena, CLV_F32, 4, spec.weights.dims);
    assert_ok(clv__dnn_reorder_now(dnn, from, weights, primitive->weights, wanted, &error), error);
    for (size_t i = 0; i < floats; ++i) {
      if (!(fabsf(made[i] - wanted[i]) <= 2e-6f)) { /* NaN: not written */
        fail_msg("%lldx%lld at %lld (order %d): element %zu of %zu is %g, oneDNN has %g", (long long)outputs, (long long)inputs,
                 (long long)extent, (int)winograd.order, i, floats, (double)made[i], (double)wanted[i]);
      }
    }
    order = 1 + (int)winograd.order;
    clv__release(allocator, made);
    clv__release(allocator, wanted);
    clv__release(allocator, shifted);
    clv__release(allocator, scale);
    clv__release(allocator, weights);
  }
  clv__dnn_primitive_release(primitive);
  clv__arena_finish(&arena);
  return order;
}

static void test_orders(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{32, 32, 256},  {64, 64, 56},   {128, 128, 28}, {256, 256, 14}, {64, 64, 8},
                                      {224, 112, 14}, {80, 64, 14},   {33, 40, 20},   {32, 128, 7},   {192, 48, 28},
                                      {96, 64, 56},   {288, 144, 14}, {128, 96, 56},  {100, 50, 30},  {48, 130, 60}};
  const int count = (int)(sizeof shapes / sizeof *shapes);
  clv_error error = {0};
  clv__dnn *dnn;
  assert_ok(clv__dnn_open(clv__allocator_default(), &dnn, &error), error);
  int seen[4] = {0};
  for (int i = 0; i < count; ++i) seen[check(dnn, shapes[i][0], shapes[i][1], shapes[i][2], i % 2 == 1, (size_t)(i % 3))]++;
  uint64_t seed = 71;
  for (int i = 0; i < 25; ++i) {
    const int64_t outputs = 32 + (int64_t)clv__random_below(&seed, 120), inputs = 32 + (int64_t)clv__random_below(&seed, 120);
    seen[check(dnn, outputs, inputs, 7 + (int64_t)clv__random_below(&seed, 60), i % 2 == 0, (size_t)(i % 5))]++;
  }
  clv__dnn_close(dnn);
  print_message("no Winograd %d, by points and outputs %d, by points and groups %d, by groups %d\n", seen[0], seen[1], seen[2],
                seen[3]);
  if (seen[0] == count + 25) skip();
}

/* What is no such layout stays untouched. */
static void test_others(void **state) {
  (void)state;
  const int64_t dims[4] = {32, 32, 3, 3};
  clv__arena arena;
  float weights[9] = {0}, untouched = 7;
  clv__arena_init(&arena, clv__allocator_default());
  const clv__dnn_layout *dense = clv__dnn_layout_dense(&arena, CLV_F32, 4, dims);
  assert_non_null(dense);
  assert_false(clv__cpu_winograd_pack(dense, &(clv__cpu_filters){weights, 32, 0, NULL}, &untouched));
  assert_true(untouched == 7);
  clv__arena_finish(&arena);
}

/* On one thread: tiles and weights that stay in the cache, tiles that do not, weights that are read for every few tiles; windows
 * and sizes that are nothing for it. */
static void test_choice(void **state) {
  (void)state;
  static const struct {
    int64_t outputs, inputs, extent;
    bool pays;
  } cases[] = {{64, 64, 56, true},   {48, 48, 112, true},   {32, 128, 56, false},
               {32, 256, 28, false}, {224, 224, 14, false}, {192, 192, 14, false}};
  clv_error error = {0};
  clv__dnn_convolution spec;
  clv__arena arena;
  clv__dnn *dnn;
  int seen = 0;
  const int before = clv__cpu_threads_enter_one();
  assert_ok(clv__dnn_open(clv__allocator_default(), &dnn, &error), error);
  clv__arena_init(&arena, clv__allocator_default());
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv__dnn_primitive *primitive = NULL;
    clv__dnn_winograd winograd;
    describe(&spec, cases[i].outputs, cases[i].inputs, cases[i].extent);
    assert_true(clv__cpu_winograd_fits(&spec));
    assert_true(clv__cpu_winograd_may_pay(&spec));
    if (clv__dnn_convolution_create(dnn, &spec, &arena, &primitive, &error) == CLV_OK &&
        clv__dnn_layout_winograd(primitive->weights, &winograd) && winograd.points == 4) {
      assert_int_equal(clv__cpu_winograd_pays(&spec, primitive), cases[i].pays);
      ++seen;
    }
    clv__dnn_primitive_release(primitive);
  }
  describe(&spec, 64, 64, 8);
  assert_false(clv__cpu_winograd_may_pay(&spec));
  spec.window.stride[1] = 2;
  assert_false(clv__cpu_winograd_fits(&spec));
  clv__arena_finish(&arena);
  clv__dnn_close(dnn);
  clv__cpu_threads_leave_one(before);
  if (seen == 0) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_others), cmocka_unit_test(test_choice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
