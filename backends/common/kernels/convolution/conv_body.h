/* Template of the functions of a convolution that access elements, for one dtype. conv.c includes it with these macros defined:
 *   NAME(x)            the function's name for this dtype
 *   STORED, REAL       the type of an element in memory, and the type for computing
 *   LOAD(e), SAVE(r)   convert from STORED to REAL and back
 *   SPREAD             clv__gemm_spread_f32 or clv__gemm_spread_f64 */

/* Packs the weights of a block of output channels. */
static void NAME(pack_rows)(const void *cookie, const clv__gemm_block *block) {
  const conv *c = cookie;
  const STORED *weights = c->weight;
  REAL *panels = block->panels;
  int64_t group = block->batch % c->groups;
  for (int64_t r = 0; r < block->count; ++r) {
    tap at = tap_decode(c, block->depth_first);
    REAL *panel = panels + r / block->width * block->width * block->depth_count + r % block->width;
    if (!c->transposed) { /* the weights of an output channel are contiguous, in the order of the taps */
      const STORED *run = weights + weight_index(c, group, block->first + r, &at);
      for (int64_t k = 0; k < block->depth_count; ++k) panel[k * block->width] = LOAD(run[k]);
      continue;
    }
    for (int64_t k = 0; k < block->depth_count; ++k, tap_next(c, &at)) {
      panel[k * block->width] = LOAD(weights[weight_index(c, group, block->first + r, &at)]);
    }
  }
  for (int64_t r = block->count; r % block->width != 0; ++r) {
    REAL *panel = panels + r / block->width * block->width * block->depth_count + r % block->width;
    for (int64_t k = 0; k < block->depth_count; ++k) panel[k * block->width] = 0;
  }
}

/* Gathers the inputs of one tap for the output positions [first, first + count), with 0 where the tap is outside the input. */
static void NAME(gather)(const conv *c, const STORED *plane, const tap *at, int64_t first, int64_t count, REAL *line) {
  const axis *a = c->axes;
  int64_t q2 = first % a[2].count, q1 = first / a[2].count % a[1].count, q0 = first / a[2].count / a[1].count;
  int64_t offset = a[2].offset_first + at->t[2] * a[2].offset_step, step = a[2].input_step;
  int64_t low, high;
  positions_of(offset, step, a[2].input, &low, &high);
  while (count > 0) {
    int64_t run = a[2].count - q2 < count ? a[2].count - q2 : count;
    int64_t i0 = q0 * a[0].input_step + a[0].offset_first + at->t[0] * a[0].offset_step;
    int64_t i1 = q1 * a[1].input_step + a[1].offset_first + at->t[1] * a[1].offset_step;
    int64_t from = low < q2 ? q2 : low, to = high > q2 + run ? q2 + run : high;
    if (i0 < 0 || i0 >= a[0].input || i1 < 0 || i1 >= a[1].input || from >= to) {
      for (int64_t q = 0; q < run; ++q) line[q] = 0;
    } else {
      const STORED *row = plane + (i0 * a[1].input + i1) * a[2].input + offset;
      REAL *out = line - q2;
      for (int64_t q = q2; q < from; ++q) out[q] = 0;
      if (step == 1) {
        for (int64_t q = from; q < to; ++q) out[q] = LOAD(row[q]);
      } else {
        for (int64_t q = from; q < to; ++q) out[q] = LOAD(row[q * step]);
      }
      for (int64_t q = to; q < q2 + run; ++q) out[q] = 0;
    }
    line += run;
    count -= run;
    q2 = 0;
    if (++q1 == a[1].count) q1 = 0, ++q0;
  }
}

/* Packs the input pixels of a block of output positions: im2col, for this block alone. */
static void NAME(pack_columns)(const void *cookie, const clv__gemm_block *block) {
  const conv *c = cookie;
  const STORED *planes = (const STORED *)c->input + block->batch * c->in_channels * c->input_plane;
  tap at = tap_decode(c, block->depth_first);
  for (int64_t k = 0; k < block->depth_count; ++k, tap_next(c, &at)) {
    NAME(gather)(c, planes + at.channel * c->input_plane, &at, block->first, block->count, block->line);
    SPREAD(block, k, block->line);
  }
}

static void NAME(store)(const void *cookie, int64_t batch, int64_t row, int64_t row_count, int64_t column, int64_t column_count,
                        void *values, int64_t stride) {
  const conv *c = cookie;
  const axis *a = c->axes;
  int64_t group = batch % c->groups;
  for (int64_t r = 0; r < row_count; ++r) {
    const REAL *sums = (const REAL *)values + r * stride;
    REAL bias = c->bias != NULL ? LOAD(((const STORED *)c->bias)[group * c->out_channels + row + r]) : 0;
    STORED *plane = (STORED *)c->output + (batch * c->out_channels + row + r) * c->output_plane;
    if (!c->scattered) {
      for (int64_t j = 0; j < column_count; ++j) plane[column + j] = SAVE(sums[j] + bias);
      continue;
    }
    int64_t q2 = column % a[2].count, q1 = column / a[2].count % a[1].count, q0 = column / a[2].count / a[1].count;
    for (int64_t j = 0; j < column_count; ++j) {
      plane[output_index(c, q0, q1, q2)] = SAVE(sums[j] + bias);
      if (++q2 == a[2].count) {
        q2 = 0;
        if (++q1 == a[1].count) q1 = 0, ++q0;
      }
    }
  }
}

/* Computes one row of one output channel without a matrix product: adds the products of one tap after another to the whole row.
 * Used if groups have few output channels. */
static void NAME(direct_row)(const conv *c, int64_t row) {
  const axis *a = c->axes;
  int64_t q1 = row % a[1].count, q0 = row / a[1].count % a[0].count, plane = row / a[1].count / a[0].count;
  int64_t out_channel = plane % (c->groups * c->out_channels), image = plane / (c->groups * c->out_channels);
  int64_t group = out_channel / c->out_channels, step = a[2].input_step;
  const STORED *planes = (const STORED *)c->input + (image * c->groups + group) * c->in_channels * c->input_plane;
  const STORED *weights = c->weight;
  STORED *out = (STORED *)c->output + plane * c->output_plane;
  REAL bias = c->bias != NULL ? LOAD(((const STORED *)c->bias)[out_channel]) : 0;
  REAL sums[DIRECT_CHUNK];
  for (int64_t start = 0; start < a[2].count; start += DIRECT_CHUNK) {
    int64_t count = a[2].count - start < DIRECT_CHUNK ? a[2].count - start : DIRECT_CHUNK;
    for (int64_t q = 0; q < count; ++q) sums[q] = 0;
    tap at = {0};
    for (int64_t k = 0; k < c->depth; ++k, tap_next(c, &at)) {
      int64_t i0 = q0 * a[0].input_step + a[0].offset_first + at.t[0] * a[0].offset_step;
      int64_t i1 = q1 * a[1].input_step + a[1].offset_first + at.t[1] * a[1].offset_step;
      if (i0 < 0 || i0 >= a[0].input || i1 < 0 || i1 >= a[1].input) continue;
      int64_t offset = start * step + a[2].offset_first + at.t[2] * a[2].offset_step;
      int64_t low, high;
      positions_of(offset, step, a[2].input, &low, &high);
      if (high > count) high = count;
      const STORED *x = planes + at.channel * c->input_plane + (i0 * a[1].input + i1) * a[2].input + offset;
      REAL w = LOAD(weights[weight_index(c, group, out_channel % c->out_channels, &at)]);
      if (step == 1) {
        for (int64_t q = low; q < high; ++q) sums[q] += w * LOAD(x[q]);
      } else if (step == 2) {
        for (int64_t q = low; q < high; ++q) sums[q] += w * LOAD(x[2 * q]);
      } else {
        for (int64_t q = low; q < high; ++q) sums[q] += w * LOAD(x[q * step]);
      }
    }
    if (!c->scattered) {
      STORED *target = out + output_index(c, q0, q1, start);
      for (int64_t q = 0; q < count; ++q) target[q] = SAVE(sums[q] + bias);
    } else {
      for (int64_t q = 0; q < count; ++q) out[output_index(c, q0, q1, start + q)] = SAVE(sums[q] + bias);
    }
  }
}

#undef NAME
#undef STORED
#undef REAL
#undef LOAD
#undef SAVE
#undef SPREAD
