/* Template of the functions that pool one plane. pool.c includes it with these macros defined:
 *   NAME(x)   the function's name for this type
 *   REAL      float or double */

/* Accumulates one tap of the window into a row of results. Position q in [low, high) reads `x[q * step]`. */
static inline void NAME(fold)(pool_kind kind, double p, const REAL *x, int64_t step, int64_t low, int64_t high, REAL *row) {
  switch (kind) {
    case POOL_MAX:
      if (step == 1) {
        for (int64_t q = low; q < high; ++q) row[q] = x[q] > row[q] ? x[q] : row[q];
      } else {
        for (int64_t q = low; q < high; ++q) row[q] = x[q * step] > row[q] ? x[q * step] : row[q];
      }
      break;
    case POOL_AVERAGE:
      if (step == 1) {
        for (int64_t q = low; q < high; ++q) row[q] += x[q];
      } else {
        for (int64_t q = low; q < high; ++q) row[q] += x[q * step];
      }
      break;
    case POOL_LP:
      for (int64_t q = low; q < high; ++q) row[q] += NAME(power)(x[q * step], p);
      break;
  }
}

/* Computes a whole plane of results, row by row. For each tap of the window, updates all positions of the row. */
static void NAME(plane)(const pool *c, const REAL *x, REAL *y) {
  const axis *a = c->axes;
  for (int64_t o0 = 0; o0 < a[0].output; ++o0) {
    for (int64_t o1 = 0; o1 < a[1].output; ++o1) {
      REAL *row = y + (o0 * a[1].output + o1) * a[2].output;
      for (int64_t q = 0; q < a[2].output; ++q) row[q] = c->kind == POOL_MAX ? (REAL)c->lowest : 0;
      span s0 = span_of(&a[0], o0), s1 = span_of(&a[1], o1);
      for (int64_t k0 = s0.first; k0 < s0.end; ++k0) {
        for (int64_t k1 = s1.first; k1 < s1.end; ++k1) {
          int64_t i0 = o0 * a[0].stride - a[0].pad + k0 * a[0].dilation, i1 = o1 * a[1].stride - a[1].pad + k1 * a[1].dilation;
          for (int64_t k2 = 0; k2 < a[2].kernel; ++k2) {
            int64_t offset = k2 * a[2].dilation - a[2].pad, low, high;
            positions_of(&a[2], offset, &low, &high);
            NAME(fold)(c->kind, c->p, x + (i0 * a[1].input + i1) * a[2].input + offset, a[2].stride, low, high, row);
          }
        }
      }
      if (c->kind == POOL_MAX) continue;
      for (int64_t q = 0; q < a[2].output; ++q) {
        if (c->kind == POOL_LP) {
          row[q] = NAME(root)(row[q], c->p);
        } else {
          row[q] /= (REAL)(s0.counted * s1.counted * span_of(&a[2], q).counted);
        }
      }
    }
  }
}

/* Computes a whole plane of maxima and their positions. Of equal elements, the first in row-major order wins. */
static void NAME(plane_indices)(const pool *c, const REAL *x, REAL *y, int64_t *indices, int64_t base) {
  const axis *a = c->axes;
  for (int64_t o0 = 0; o0 < a[0].output; ++o0) {
    for (int64_t o1 = 0; o1 < a[1].output; ++o1) {
      for (int64_t o2 = 0; o2 < a[2].output; ++o2) {
        span s0 = span_of(&a[0], o0), s1 = span_of(&a[1], o1), s2 = span_of(&a[2], o2);
        REAL best = (REAL)c->lowest;
        int64_t where = -1;
        for (int64_t k0 = s0.first; k0 < s0.end; ++k0) {
          for (int64_t k1 = s1.first; k1 < s1.end; ++k1) {
            for (int64_t k2 = s2.first; k2 < s2.end; ++k2) {
              int64_t i0 = o0 * a[0].stride - a[0].pad + k0 * a[0].dilation;
              int64_t i1 = o1 * a[1].stride - a[1].pad + k1 * a[1].dilation;
              int64_t i2 = o2 * a[2].stride - a[2].pad + k2 * a[2].dilation;
              REAL value = x[(i0 * a[1].input + i1) * a[2].input + i2];
              if (where >= 0 && !(value > best)) continue;
              if (value > best) best = value;
              where = c->column_major ? (i2 * a[1].input + i1) * a[0].input + i0 : (i0 * a[1].input + i1) * a[2].input + i2;
            }
          }
        }
        int64_t at = (o0 * a[1].output + o1) * a[2].output + o2;
        if (y != NULL) y[at] = best;
        indices[at] = where < 0 ? -1 : base + where;
      }
    }
  }
}

/* Pools a whole plane into one result. An average is summed in LANES interleaved parts. The order of the additions depends only
 * on `count`. */
static REAL NAME(global)(const pool *c, const REAL *x, int64_t count) {
  if (c->kind == POOL_MAX) {
    REAL best = (REAL)c->lowest;
    for (int64_t i = 0; i < count; ++i) best = x[i] > best ? x[i] : best;
    return best;
  }
  double lanes[LANES] = {0}, sum = 0;
  int64_t i = 0;
  if (c->kind == POOL_AVERAGE) {
    for (; i + LANES <= count; i += LANES) {
      for (int l = 0; l < LANES; ++l) lanes[l] += (double)x[i + l];
    }
    for (; i < count; ++i) sum += (double)x[i];
    for (int l = 0; l < LANES; ++l) sum += lanes[l];
    return (REAL)(sum / (double)count);
  }
  for (; i < count; ++i) sum += power_f64((double)x[i], c->p);
  return (REAL)root_f64(sum, c->p);
}

#undef NAME
#undef REAL
