/* See winograd.h. Winograd's minimal filtering F(m x m, 3 x 3) (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks,
 * 2015), with m = 2 at the points 0, 1, -1 and infinity, and m = 4 at 0, 5/8, -5/8, 3/2, -3/2 and infinity. The row of G for a
 * finite point p is, up to its sign, (1, p, p^2) divided by the product of the differences between p and the other finite points.
 * The row for infinity is (0, 0, 1). */
#include "winograd.h"

#include "base/threads.h"

#include <string.h>

enum { LANES = 16, TAPS = 9, MOST_POINTS = 6 };

/* A vector holds the weights of one tap, or of one point, for LANES output channels. */
typedef float vector[LANES];

#define SMALL 0.625f
#define LARGE 1.5f
#define GAP (LARGE * LARGE - SMALL * SMALL)
static const float at_zero = 1.0f / (SMALL * SMALL * LARGE * LARGE);
static const float at_small = -1.0f / (2.0f * SMALL * SMALL * GAP);
static const float at_large = 1.0f / (2.0f * LARGE * LARGE * GAP);

/* Multiplies G by three vectors that are `step` apart. The results are `to_step` apart. */
static inline void transform4(const vector *from, int step, vector *to, int to_step) {
  const float *a = from[0], *b = from[step], *c = from[2 * step];
  for (int i = 0; i < LANES; ++i) {
    const float middle = 0.5f * (a[i] + c[i]), half = 0.5f * b[i];
    to[0][i] = a[i];
    to[to_step][i] = middle + half;
    to[2 * to_step][i] = middle - half;
    to[3 * to_step][i] = c[i];
  }
}

static inline void transform6(const vector *from, int step, vector *to, int to_step) {
  const float *a = from[0], *b = from[step], *c = from[2 * step];
  for (int i = 0; i < LANES; ++i) {
    const float small = at_small * (a[i] + SMALL * SMALL * c[i]), small_odd = at_small * SMALL * b[i];
    const float large = at_large * (a[i] + LARGE * LARGE * c[i]), large_odd = at_large * LARGE * b[i];
    to[0][i] = at_zero * a[i];
    to[to_step][i] = small + small_odd;
    to[2 * to_step][i] = small - small_odd;
    to[3 * to_step][i] = large + large_odd;
    to[4 * to_step][i] = large - large_odd;
    to[5 * to_step][i] = c[i];
  }
}

/* Where the packed weights of one block of output channels and one block of input channels begin, and their strides, in
 * floats. */
typedef struct place {
  size_t begin, point_stride, input_stride;
} place;

static place place_of(const clv__dnn_winograd *winograd, size_t output_block, size_t input_block) {
  const size_t block = (size_t)LANES * LANES, points = (size_t)(winograd->points * winograd->points);
  const size_t output_group = (size_t)winograd->output_group, input_group = (size_t)winograd->input_group;
  const size_t group = output_block / output_group, member = output_block % output_group;
  const size_t inputs = (size_t)winograd->inputs, outputs = (size_t)winograd->outputs;
  switch (winograd->order) {
    case CLV__DNN_WINOGRAD_POINTS_OUTPUTS: /* [points][output blocks][inputs][lanes] */
      return (place){output_block * inputs * LANES + input_block * block, outputs * inputs, LANES};
    case CLV__DNN_WINOGRAD_POINTS_GROUPS: /* [points][groups of output blocks][inputs][the group's blocks][lanes] */
      return (place){(group * inputs * LANES + input_block * block) * output_group + member * LANES, outputs * inputs,
                     output_group * LANES};
    default: /* [groups of output blocks][points][groups of input blocks][output group][input group][input lanes][lanes] */
      return (place){group * points * inputs * output_group * LANES +
                         (input_block / input_group * output_group + member) * input_group * block +
                         input_block % input_group * block,
                     inputs * output_group * LANES, LANES};
  }
}

/* The weights to transform: `outputs` rows, `row` floats apart, of `inputs` times nine floats. */
typedef struct source {
  const uint8_t *weights;
  size_t outputs, inputs, row;
  const float *scale;
} source;

/* Gathers the taps of a block, input channel by input channel, with zeros for missing channels. */
static void gather(const source *from, size_t output_block, size_t input_block, vector taps[LANES * TAPS]) {
  float row[LANES * TAPS];
  const size_t first = input_block * LANES;
  const size_t channels = first >= from->inputs ? 0 : from->inputs - first < LANES ? from->inputs - first : LANES;
  for (size_t o = 0; o < LANES; ++o) {
    const size_t output = output_block * LANES + o, count = output < from->outputs ? channels * TAPS : 0;
    if (count < LANES * TAPS) memset(row + count, 0, (LANES * TAPS - count) * sizeof *row);
    if (count > 0) memcpy(row, from->weights + (output * from->row + first * TAPS) * sizeof *row, count * sizeof *row);
    const float factor = from->scale != NULL && count > 0 ? from->scale[output] : 1.0f;
    for (size_t i = 0; i < LANES * TAPS; ++i) taps[i][o] = row[i] * factor;
  }
}

static void write_block(const clv__dnn_winograd *winograd, const source *from, size_t output_block, size_t input_block,
                        float *packed) {
  vector taps[LANES * TAPS], rows[MOST_POINTS * 3], made[MOST_POINTS * MOST_POINTS];
  const place at = place_of(winograd, output_block, input_block);
  const int points = winograd->points;
  gather(from, output_block, input_block, taps);
  for (size_t i = 0; i < LANES; ++i) {
    const vector *nine = taps + i * TAPS;
    if (points == 4) {
      for (int x = 0; x < 3; ++x) transform4(nine + x, 3, rows + x, 3);
      for (int y = 0; y < 4; ++y) transform4(rows + 3 * y, 1, made + 4 * y, 1);
    } else {
      for (int x = 0; x < 3; ++x) transform6(nine + x, 3, rows + x, 3);
      for (int y = 0; y < 6; ++y) transform6(rows + 3 * y, 1, made + 6 * y, 1);
    }
    float *to = packed + at.begin + i * at.input_stride;
    for (int p = 0; p < points * points; ++p) memcpy(to + (size_t)p * at.point_stride, made[p], sizeof made[p]);
  }
}

bool clv__cpu_winograd_pack(const clv__dnn_layout *layout, const clv__cpu_filters *filters, void *packed) {
  clv__dnn_winograd winograd;
  int64_t dims[CLV_MAX_RANK];
  if (!clv__dnn_layout_winograd(layout, &winograd) || winograd.lanes != LANES) return false;
  (void)clv__dnn_layout_dims(layout, dims);
  const size_t row = (size_t)filters->inputs * TAPS, first = (size_t)filters->first_input * TAPS * sizeof(float);
  const source from = {(const uint8_t *)filters->weights + first, (size_t)dims[0], (size_t)dims[1], row, filters->scale};
  const int64_t output_blocks = winograd.outputs / LANES, input_blocks = winograd.inputs / LANES;
#pragma omp parallel for num_threads(clv__threads_available()) collapse(2) schedule(static)
  for (int64_t o = 0; o < output_blocks; ++o) {
    for (int64_t i = 0; i < input_blocks; ++i) write_block(&winograd, &from, (size_t)o, (size_t)i, packed);
  }
  return true;
}
