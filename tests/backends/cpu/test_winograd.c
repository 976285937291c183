/* Tests the packing of weights for Winograd's algorithm. Compares every order that oneDNN requests with oneDNN's own reorder,
 * element by element: at unaligned addresses, with scales, with channels that do not fill the last block. The test is skipped if
 * oneDNN has no such convolution on this CPU. Also tests the choice between this algorithm and the direct one. */
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

/* Packs the weights of a convolution and compares them with oneDNN's. Returns 1 + the order of the layout; 0 if oneDNN does not
 * use Winograd's algorithm for the convolution. */
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
      clv__dnn_layout_is_opaque(primitive->weights)) { /* only Winograd weights are opaque */
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
      if (!(fabsf(made[i] - wanted[i]) <= 2e-6f)) { /* NaN: the element was not written */
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
  print_message(
      "%d convolutions do not use Winograd's algorithm; loop orders of the others: points and outputs %d, points and groups %d, "
      "groups and points %d\n",
      seen[0], seen[1], seen[2], seen[3]);
  if (seen[0] == count + 25) skip();
}

/* Layouts that are not for Winograd's algorithm are rejected, and nothing is written. */
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

/* A convolution primitive whose tiles have 4x4 points; NULL if oneDNN has none on this CPU. */
static clv__dnn_primitive *over_four_points(clv__dnn *dnn, clv__arena *arena) {
  static const int64_t shapes[][3] = {{64, 64, 56}, {48, 48, 112}, {224, 224, 14}, {192, 192, 14}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    clv__dnn_convolution spec;
    clv__dnn_primitive *primitive = NULL;
    clv__dnn_winograd winograd;
    clv_error error = {0};
    describe(&spec, shapes[i][0], shapes[i][1], shapes[i][2]);
    if (clv__dnn_convolution_create(dnn, &spec, arena, &primitive, &error) == CLV_OK &&
        clv__dnn_layout_winograd(primitive->weights, &winograd) && winograd.points == 4) {
      return primitive;
    }
    clv__dnn_primitive_release(primitive);
  }
  return NULL;
}

/* The choice on one thread: for tiles and weights that stay in the cache, for tiles that do not, for weights that are read again
 * for every few tiles, and for unsuitable windows and sizes. oneDNN processes `batch` tiles at a time. It derives that number
 * from the caches of the CPU (224 channels at 14x14: all 49 tiles on a Zen 4, fewer on a Cascade Lake), so each case sets its
 * own. */
static void test_choice(void **state) {
  (void)state;
  static const struct {
    int64_t outputs, inputs, extent, batch;
    bool pays;
  } cases[] = {{64, 64, 56, 29, true},    {48, 48, 112, 33, true},   {32, 128, 56, 784, false},
               {32, 128, 56, 56, true},   {32, 256, 28, 196, false}, {32, 256, 28, 40, true},
               {224, 224, 14, 16, false}, {224, 224, 14, 49, true},  {192, 192, 14, 8, false}};
  clv_error error = {0};
  clv__dnn_convolution spec;
  clv__arena arena;
  clv__dnn *dnn;
  const int before = clv__cpu_threads_enter_one();
  assert_ok(clv__dnn_open(clv__allocator_default(), &dnn, &error), error);
  clv__arena_init(&arena, clv__allocator_default());
  clv__dnn_primitive *primitive = over_four_points(dnn, &arena);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    describe(&spec, cases[i].outputs, cases[i].inputs, cases[i].extent);
    assert_true(clv__cpu_winograd_fits(&spec));
    assert_true(clv__cpu_winograd_may_pay(&spec));
    if (primitive == NULL) continue;
    clv__dnn_primitive sized = *primitive;
    sized.scratch_bytes = (size_t)(cases[i].batch * (cases[i].outputs + cases[i].inputs) * 16) * sizeof(float);
    assert_int_equal(clv__cpu_winograd_pays(&spec, &sized), cases[i].pays);
  }
  describe(&spec, 64, 64, 8);
  assert_false(clv__cpu_winograd_may_pay(&spec));
  spec.window.stride[1] = 2;
  assert_false(clv__cpu_winograd_fits(&spec));
  const bool seen = primitive != NULL;
  clv__dnn_primitive_release(primitive);
  clv__arena_finish(&arena);
  clv__dnn_close(dnn);
  clv__cpu_threads_leave_one(before);
  if (!seen) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_others), cmocka_unit_test(test_choice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
