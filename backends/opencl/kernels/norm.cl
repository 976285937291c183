/* Normalisations. Defines: T, GROUP (the size of a work group), TS (the dtype of scale and bias) and TM (the dtype of
 * statistics). */
typedef REAL(T) real;
#define PART 128

/* BatchNormalization: a work item computes `each` elements of a plane, on a CPU enough to fill a vector. Plane p belongs to
 * channel p % channels. */
KERNEL(batch)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(TS) * scale, GLOBAL const STORAGE(TS) * bias,
 GLOBAL const STORAGE(TM) * mean, GLOBAL const STORAGE(TM) * variance, float epsilon, index_t planes, index_t plane,
 index_t channels, index_t each POST_PARAMETERS) {
  const index_t from = GLOBAL_ID(0) * each, p = GLOBAL_ID(1), c = p % channels;
  if (from >= plane || p >= planes) return;
  const index_t to = from + each < plane ? from + each : plane;
  const real middle = (real)LOAD(TM, mean, c), shift = (real)LOAD(TS, bias, c);
  const real factor = (real)LOAD(TS, scale, c) / sqrt((real)LOAD(TM, variance, c) + (real)epsilon);
  for (index_t i = from; i < to; ++i) {
    const index_t at = p * plane + i;
    const real value = (LOAD(T, x, at) - middle) * factor + shift;
    STORE(T, y, at, POST(value, at));
  }
}

/* Sums `value` over the lanes of a work group. All lanes can read the result in lanes[0]. */
#define ADD_LANES(value)                                                       \
  lanes[lane] = (value);                                                       \
  BARRIER();                                                                   \
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {          \
    if (lane < half_count) lanes[lane] += lanes[lane + half_count];            \
    BARRIER();                                                                 \
  }

/* Sums EXPRESSION (of `value`) over elements lane, lane + GROUP, …, in parts of PART elements, which limits rounding errors. */
#define SUM_LANE(total, EXPRESSION)                         \
  {                                                         \
    real part = 0;                                          \
    int pending = 0;                                        \
    total = 0;                                              \
    for (index_t i = lane; i < count; i += GROUP) {         \
      const real value = LOAD(T, x, first + i);             \
      part += (EXPRESSION);                                 \
      if (++pending == PART) {                              \
        total += part;                                      \
        part = 0;                                           \
        pending = 0;                                        \
      }                                                     \
    }                                                       \
    total += part;                                          \
  }

/* LayerNormalization (centred) and RMSNormalization: one work group per row of `count` elements. Element e of the tensor uses
 * element e % scale_size of scale, and e % bias_size of bias. */
KERNEL_SIZED(layer, GROUP, 1, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(TS) * scale, GLOBAL const STORAGE(TS) * bias,
 GLOBAL STORAGE(TM) * means, GLOBAL STORAGE(TM) * inverses, index_t count, index_t scale_size, index_t bias_size, float epsilon,
 int centred, int has_bias, int has_means, int has_inverses POST_PARAMETERS) {
  LOCAL_ARRAY(real, lanes, GROUP);
  const index_t row = GROUP_ID(0), lane = LOCAL_ID(0), first = row * count;
  real mean = 0, total;
  if (centred) {
    SUM_LANE(total, value)
    ADD_LANES(total)
    mean = lanes[0] / (real)count;
    BARRIER();
  }
  SUM_LANE(total, (value - mean) * (value - mean))
  ADD_LANES(total)
  const real inverse = 1 / sqrt(lanes[0] / (real)count + (real)epsilon);
  for (index_t i = lane; i < count; i += GROUP) {
    const index_t at = first + i;
    real value = (LOAD(T, x, at) - mean) * inverse * (real)LOAD(TS, scale, at % scale_size);
    if (has_bias) value += (real)LOAD(TS, bias, at % bias_size);
    STORE(T, y, at, POST(value, at));
  }
  if (lane == 0 && has_means) STORE(TM, means, row, mean);
  if (lane == 0 && has_inverses) STORE(TM, inverses, row, inverse);
}

/* InstanceNormalization and GroupNormalization: one work group per group of `members` channels of an image. Scale and bias have
 * one element per channel or, with `scale_by_group`, one per group. */
KERNEL_SIZED(groups, GROUP, 1, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(TS) * scale, GLOBAL const STORAGE(TS) * bias,
 float epsilon, index_t group_count, index_t members, index_t plane, int scale_by_group POST_PARAMETERS) {
  LOCAL_ARRAY(real, lanes, GROUP);
  const index_t part_index = GROUP_ID(0), lane = LOCAL_ID(0), count = members * plane, first = part_index * count;
  const index_t group = part_index % group_count;
  real total;
  SUM_LANE(total, value)
  ADD_LANES(total)
  const real mean = lanes[0] / (real)count;
  BARRIER();
  SUM_LANE(total, (value - mean) * (value - mean))
  ADD_LANES(total)
  const real inverse = 1 / sqrt(lanes[0] / (real)count + (real)epsilon);
  for (index_t i = lane; i < count; i += GROUP) {
    const index_t at = first + i, c = scale_by_group ? group : group * members + i / plane;
    const real value = (LOAD(T, x, at) - mean) * (inverse * (real)LOAD(TS, scale, c)) + (real)LOAD(TS, bias, c);
    STORE(T, y, at, POST(value, at));
  }
}

/* MeanVarianceNormalization: one work group per position along the kept axes, those that are not averaged. See reduce.cl for the
 * arguments. */
KERNEL_SIZED(deviations, GROUP, 1, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, int kept_rank, dims_t kept, dims_t kept_strides, index_t count,
 int folded_rank, dims_t folded, dims_t folded_strides) {
  LOCAL_ARRAY(real, lanes, GROUP);
  const index_t lane = LOCAL_ID(0), first = clv_place(GROUP_ID(0), kept_rank, kept, kept_strides);
  real total = 0;
  for (index_t i = lane; i < count; i += GROUP) total += LOAD(T, x, first + clv_place(i, folded_rank, folded, folded_strides));
  ADD_LANES(total)
  const real mean = lanes[0] / (real)count;
  BARRIER();
  total = 0;
  for (index_t i = lane; i < count; i += GROUP) {
    const real away = LOAD(T, x, first + clv_place(i, folded_rank, folded, folded_strides)) - mean;
    total += away * away;
  }
  ADD_LANES(total)
  const real deviation = sqrt(lanes[0] / (real)count) + (real)1e-9f;
  for (index_t i = lane; i < count; i += GROUP) {
    const index_t at = first + clv_place(i, folded_rank, folded, folded_strides);
    STORE(T, y, at, (LOAD(T, x, at) - mean) / deviation);
  }
}

/* LpNormalization along an axis of [outer, length, inner]; p is 1 or 2. */
KERNEL(lp)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t lines, index_t length, index_t inner, int p) {
  const index_t line = GLOBAL_ID(0);
  if (line >= lines) return;
  const index_t first = line / inner * length * inner + line % inner;
  real norm = 0;
  for (index_t i = 0; i < length; ++i) {
    const real value = LOAD(T, x, first + i * inner);
    norm += p == 1 ? fabs(value) : value * value;
  }
  if (p != 1) norm = sqrt(norm);
  for (index_t i = 0; i < length; ++i) {
    const index_t at = first + i * inner;
    STORE(T, y, at, norm == 0 ? (real)0 : LOAD(T, x, at) / norm);
  }
}

/* LRN over `size` neighbouring channels. */
KERNEL(lrn)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t count, index_t channels, index_t plane, int size, float alpha,
 float beta, float bias POST_PARAMETERS) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t c = at / plane % channels;
  index_t low = c - (size - 1) / 2, high = c + size / 2;
  if (low < 0) low = 0;
  if (high > channels - 1) high = channels - 1;
  real sum = 0;
  for (index_t j = low; j <= high; ++j) {
    const real value = LOAD(T, x, at + (j - c) * plane);
    sum += value * value;
  }
  const real value = LOAD(T, x, at) / pow((real)bias + (real)alpha / (real)size * sum, (real)beta);
  STORE(T, y, at, POST(value, at));
}

#ifdef VECTORS /* for CPUs: f32 and f16 */
#define WIDTH 16
#if IS_f32(T)
#define LOAD_WIDE(p, i) vload16(0, (p) + (i))
#else
#define LOAD_WIDE(p, i) vload_half16(0, (p) + (i))
#endif

/* Sums (x - mean)^power over elements [first, first + count), where `power` is 1 or 2. Adds up PART vectors at a time, which
 * limits rounding errors. */
FUNCTION float clv_deviation(GLOBAL const STORAGE(T) * x, index_t first, index_t count, float mean, int power) {
  float all[WIDTH], sum = 0;
  index_t i = 0;
  while (i + WIDTH <= count) {
    float16 part = (float16)(0);
    for (int n = 0; n < PART && i + WIDTH <= count; ++n, i += WIDTH) {
      const float16 away = LOAD_WIDE(x, first + i) - mean;
      part += power == 2 ? away * away : away;
    }
    vstore16(part, 0, all);
    for (int j = 0; j < WIDTH; ++j) sum += all[j];
  }
  for (; i < count; ++i) {
    const float away = LOAD(T, x, first + i) - mean;
    sum += power == 2 ? away * away : away;
  }
  return sum;
}

/* Like `layer`, but with one work item per row. Scale and bias have as many elements as a row. */
KERNEL(layer_wide)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(TS) * scale, GLOBAL const STORAGE(TS) * bias,
 index_t rows, index_t count, float epsilon, int centred, int has_bias POST_PARAMETERS) {
  const index_t row = GLOBAL_ID(0), first = row * count;
  if (row >= rows) return;
  const float mean = centred ? clv_deviation(x, first, count, 0, 1) / (float)count : 0;
  const float inverse = 1 / sqrt(clv_deviation(x, first, count, mean, 2) / (float)count + epsilon);
  for (index_t i = 0; i < count; ++i) {
    const index_t at = first + i;
    const float shift = has_bias ? (float)LOAD(TS, bias, i) : 0;
    const float value = (LOAD(T, x, at) - mean) * inverse * (float)LOAD(TS, scale, i) + shift;
    STORE(T, y, at, POST(value, at));
  }
}

/* Like `groups`, but with one work item per group of channels. */
KERNEL(groups_wide)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(TS) * scale, GLOBAL const STORAGE(TS) * bias,
 float epsilon, index_t parts, index_t group_count, index_t members, index_t plane, int scale_by_group POST_PARAMETERS) {
  const index_t part = GLOBAL_ID(0), count = members * plane, group = part % group_count;
  if (part >= parts) return;
  const float mean = clv_deviation(x, part * count, count, 0, 1) / (float)count;
  const float inverse = 1 / sqrt(clv_deviation(x, part * count, count, mean, 2) / (float)count + epsilon);
  for (index_t m = 0; m < members; ++m) {
    const index_t c = scale_by_group ? group : group * members + m, first = part * count + m * plane;
    const float factor = inverse * (float)LOAD(TS, scale, c), shift = (float)LOAD(TS, bias, c);
    for (index_t i = 0; i < plane; ++i) {
      const index_t at = first + i;
      const float value = (LOAD(T, x, at) - mean) * factor + shift;
      STORE(T, y, at, POST(value, at));
    }
  }
}
#endif
