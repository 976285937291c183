/* Tests clv__channels_join(), which concatenates pieces along their channels, against its definition. Inputs and result have
 * channels last or in blocks of 8 or 16, also with partly filled blocks; there are several images, NaNs and zeros, with and
 * without scale, shift and lower bound. Nothing next to the result may be written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/kernels.h"
#include "support.h"

#define MOST_PIECES 5
#define GUARD 16

static int64_t pick(uint64_t *seed, int64_t count) {
  return (int64_t)(test_random(seed) % (uint64_t)count);
}

static clv__channels_form form_of(uint64_t *seed, int64_t channels) {
  const int64_t blocks[] = {channels, 8, 16};
  return (clv__channels_form){channels, blocks[pick(seed, 3)]};
}

static int64_t image_of(clv__channels_form form, int64_t pixels) {
  return (form.channels + form.block - 1) / form.block * form.block * pixels;
}

static int64_t place(clv__channels_form form, int64_t pixels, int64_t image, int64_t c, int64_t pixel) {
  return image * image_of(form, pixels) + c / form.block * form.block * pixels + pixel * form.block + c % form.block;
}

static float any_number(uint64_t *seed) {
  static const float others[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
  return pick(seed, 20) == 0 ? others[pick(seed, 5)] : (float)pick(seed, 2001) / 100.0f - 10.0f;
}

static float *numbers(uint64_t *seed, int64_t count) {
  float *made = malloc((size_t)count * sizeof *made);
  assert_non_null(made);
  for (int64_t i = 0; i < count; ++i) made[i] = any_number(seed);
  return made;
}

typedef struct joined {
  clv__channels walk;
  clv__channels_form forms[MOST_PIECES + 1]; /* the layouts of the pieces, followed by that of the result */
  clv_tensor pieces[MOST_PIECES];
} joined;

static float expected(const joined *j, int64_t image, int64_t c, int64_t pixel) {
  int64_t at = c;
  uint32_t p = 0;
  for (; at >= j->forms[p].channels; ++p) at -= j->forms[p].channels;
  const float x = ((const float *)j->pieces[p].data)[place(j->forms[p], j->walk.pixels, image, at, pixel)];
  if (j->walk.scale == NULL) return x;
  const float y = fmaf(x, j->walk.scale[c], j->walk.shift[c]);
  return y < j->walk.least ? j->walk.least : y;
}

/* Whether two numbers are equal except for rounding: the kernel may or may not round between product and sum. */
static bool is_close(float a, float b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabsf(a - b) <= 1e-5f * (1.0f + fabsf(b));
}

static void check(const joined *j, const float *result) {
  const clv__channels_form form = j->forms[j->walk.piece_count];
  const int64_t whole = image_of(form, 1);
  for (int64_t n = 0; n < j->walk.images; ++n) {
    for (int64_t c = 0; c < whole; ++c) {
      for (int64_t i = 0; i < j->walk.pixels; ++i) {
        const float y = result[place(form, j->walk.pixels, n, c, i)];
        const float wanted = c < form.channels ? expected(j, n, c, i) : 0.0f;
        if (j->walk.scale != NULL)
          assert_true(is_close(y, wanted));
        else
          assert_memory_equal(&y, &wanted, sizeof y);
      }
    }
  }
}

static void round_of(uint64_t *seed) {
  static const int64_t channels[] = {1, 3, 8, 15, 16, 17, 24, 32, 40, 64, 100};
  joined j = {.walk = {0}};
  clv__arena arena;
  clv_error error = {0};
  const uint32_t count = 1 + (uint32_t)pick(seed, MOST_PIECES);
  const int64_t images = 1 + pick(seed, 3), pixels = pick(seed, 8) == 0 ? 700 : 1 + pick(seed, 60);
  int64_t sum = 0;
  for (uint32_t p = 0; p < count; ++p) {
    j.forms[p] = form_of(seed, channels[pick(seed, 11)]);
    j.pieces[p].data = numbers(seed, images * image_of(j.forms[p], pixels));
    sum += j.forms[p].channels;
  }
  j.forms[count] = form_of(seed, sum);
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__kernels()->channels_plan(&j.walk, &arena, images, pixels, j.forms, count, j.forms[count], &error), error);
  float *scale = numbers(seed, sum), *shift = numbers(seed, sum);
  if (pick(seed, 3) > 0) {
    j.walk.scale = scale;
    j.walk.shift = shift;
    j.walk.least = pick(seed, 2) == 0 ? 0.0f : -INFINITY;
  }
  const int64_t size = images * image_of(j.forms[count], pixels);
  float *result = malloc((size_t)(size + GUARD) * sizeof *result);
  assert_non_null(result);
  memset(result, 0x5a, (size_t)(size + GUARD) * sizeof *result);
  clv__kernels()->channels_join(&j.walk, j.pieces, result, NULL);
  check(&j, result);
  for (size_t i = 0; i < GUARD * sizeof *result; ++i) assert_int_equal(((const uint8_t *)(result + size))[i], 0x5a);
  if (count == 1 && j.forms[0].block == j.forms[1].block) { /* also test a result that overwrites the only piece */
    clv__kernels()->channels_join(&j.walk, j.pieces, j.pieces[0].data, NULL);
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t c = 0; c < sum; ++c) {
        const int64_t at = place(j.forms[0], pixels, n, c, pixels - 1);
        assert_memory_equal((const float *)j.pieces[0].data + at, result + at, sizeof *result);
      }
    }
  }
  for (uint32_t p = 0; p < count; ++p) free(j.pieces[p].data);
  free(scale);
  free(shift);
  free(result);
  clv__arena_finish(&arena);
}

static void test_join(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int round = 0; round < 600; ++round) round_of(&seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_join)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
