/* Template of the loops of a reduction, for one accumulator type. reduce.c includes it with these macros defined:
 *   NAME(x)                  the function's name for this type
 *   T                        double, int64_t or uint64_t
 *   ADD(a, b), MUL(a, b)     without undefined overflow
 *   ABSOLUTE(a), MEAN(a, count)
 *   EXP, ROOT, LOGARITHM, FINITE_OR_ZERO   functions of doubles; integer reductions never use them
 *   LOAD, STORE(dtype, data, first, count, row)   convert elements to T and from T */

/* Folds `count` elements into `total`, the total of one output, and returns it. FOLD_EXP subtracts `shift` from each
 * element. */
static T NAME(fold_row)(fold what, T total, T shift, const T *row, int64_t count) {
  (void)shift;
#define EXTREME(beats) /* LANES separate extremes let the loop vectorise */                                  \
  {                                                                                                          \
    T lanes[LANES];                                                                                          \
    int64_t i = 0;                                                                                           \
    for (int k = 0; k < LANES; ++k) lanes[k] = total;                                                        \
    for (; i + LANES <= count; i += LANES) {                                                                 \
      for (int k = 0; k < LANES; ++k)                                                                        \
        lanes[k] = ((row[i + k] beats lanes[k]) | (row[i + k] != row[i + k])) ? row[i + k] : lanes[k];       \
    }                                                                                                        \
    for (int k = 0; k < LANES; ++k) total = lanes[k] beats total || lanes[k] != lanes[k] ? lanes[k] : total; \
    for (; i < count; ++i) total = row[i] beats total || row[i] != row[i] ? row[i] : total;                  \
    return total;                                                                                            \
  }
  switch (what) {
    case FOLD_SUM: {
      T sum = 0;
      _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < count; ++i) sum = ADD(sum, row[i]);
      return ADD(total, sum);
    }
    case FOLD_ABSOLUTE: {
      T sum = 0;
      _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < count; ++i) sum = ADD(sum, ABSOLUTE(row[i]));
      return ADD(total, sum);
    }
    case FOLD_SQUARE: {
      T sum = 0;
      _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < count; ++i) sum = ADD(sum, MUL(row[i], row[i]));
      return ADD(total, sum);
    }
    case FOLD_EXP:
      for (int64_t i = 0; i < count; ++i) total = ADD(total, EXP(row[i] - shift));
      return total;
    case FOLD_PRODUCT:
      for (int64_t i = 0; i < count; ++i) total = MUL(total, row[i]);
      return total;
    case FOLD_MAX: /* a total that is a NaN stays one */
      EXTREME(>)
    case FOLD_MIN:
      EXTREME(<)
  }
  return total;
#undef EXTREME
}

/* Folds one element into each of `count` neighbouring outputs. FOLD_EXP subtracts the output's shift from the element. */
static void NAME(fold_columns)(fold what, T *totals, const T *shifts, const T *row, int64_t count) {
  (void)shifts;
#define COLUMNS(expression)                                   \
  for (int64_t i = 0; i < count; ++i) totals[i] = expression; \
  break
  switch (what) {
    case FOLD_SUM:
      COLUMNS(ADD(totals[i], row[i]));
    case FOLD_ABSOLUTE:
      COLUMNS(ADD(totals[i], ABSOLUTE(row[i])));
    case FOLD_SQUARE:
      COLUMNS(ADD(totals[i], MUL(row[i], row[i])));
    case FOLD_EXP:
      COLUMNS(ADD(totals[i], EXP(row[i] - shifts[i])));
    case FOLD_PRODUCT:
      COLUMNS(MUL(totals[i], row[i]));
    case FOLD_MAX:
      COLUMNS(row[i] > totals[i] || row[i] != row[i] ? row[i] : totals[i]);
    case FOLD_MIN:
      COLUMNS(row[i] < totals[i] || row[i] != row[i] ? row[i] : totals[i]);
  }
#undef COLUMNS
}

/* Merges two totals of one output. */
static T NAME(merge)(fold what, T a, T b) {
  return NAME(fold_row)(what == FOLD_PRODUCT || what >= FOLD_MAX ? what : FOLD_SUM, a, 0, &b, 1);
}

/* Used if the innermost axis is reduced. Folds elements [from, to) of those that output `index` reduces. */
static T NAME(fold_range)(const plan *p, const clv_tensor *input, fold what, T start, T shift, int64_t index, int64_t from,
                          int64_t to) {
  T row[BLOCK], total = start;
  int64_t base = offset_of(p->kept_rank, p->kept_dims, p->kept_strides, index);
  while (from < to && !clv__is_stopped(p->stop)) {
    int64_t column = from % p->inner, count = p->inner - column < to - from ? p->inner - column : to - from;
    int64_t at = base + column + offset_of(p->reduced_rank, p->reduced_dims, p->reduced_strides, from / p->inner);
    if (count > BLOCK) count = BLOCK;
    LOAD(input->dtype, input->data, at, count, row);
    total = NAME(fold_row)(what, total, shift, row, count);
    from += count;
  }
  return total;
}

/* Used if the innermost axis is kept. Computes the totals of `count` neighbouring outputs. */
static void NAME(fold_block)(const plan *p, const clv_tensor *input, fold what, T start, const T *shifts, int64_t index,
                             int64_t first, int64_t count, T *totals) {
  T row[BLOCK];
  int64_t base = offset_of(p->kept_rank, p->kept_dims, p->kept_strides, index) + first;
  for (int64_t i = 0; i < count; ++i) totals[i] = start;
  for (int64_t i = 0; i < p->reduced_count && !clv__is_stopped(p->stop); ++i) {
    int64_t at = base + offset_of(p->reduced_rank, p->reduced_dims, p->reduced_strides, i);
    LOAD(input->dtype, input->data, at, count, row);
    NAME(fold_columns)(what, totals, shifts, row, count);
  }
}

/* Turns totals into results. */
static void NAME(finish)(const plan *p, const reduction *entry, const T *totals, const T *shifts, int64_t count, T *results) {
  for (int64_t i = 0; i < count; ++i) {
    switch (entry->last) {
      case FINISH_NONE:
        results[i] = totals[i];
        break;
      case FINISH_MEAN:
        results[i] = MEAN(totals[i], p->reduced_total);
        break;
      case FINISH_ROOT:
        results[i] = ROOT(totals[i]);
        break;
      case FINISH_LOG:
        results[i] = LOGARITHM(totals[i]) + shifts[i];
        break;
    }
  }
}

/* Used for few outputs of very many elements each. Splits the elements of each output into shares and merges the shares' totals
 * in order. */
static void NAME(run_few)(const plan *p, const reduction *entry, const clv_tensor *input, const clv_tensor *output, T start,
                          T lowest, int64_t shares) {
  T totals[FEW_OUTPUTS], shifts[FEW_OUTPUTS] = {0}, partial[FEW_OUTPUTS * MAX_SHARES];
  int64_t share = (p->reduced_total + shares - 1) / shares;
  for (int phase = entry->what == FOLD_EXP ? 0 : 1; phase < 2; ++phase) {
    const fold what = phase == 0 ? FOLD_MAX : entry->what;
    const T first_total = phase == 0 ? lowest : start;
    int64_t tasks = p->kept_count * shares;
    const int threads = clv__kernel_threads(tasks, (double)p->reduced_total);
    (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < tasks; ++task) {
      int64_t index = task / shares, from = task % shares * share;
      int64_t to = from + share < p->reduced_total ? from + share : p->reduced_total;
      partial[task] = NAME(fold_range)(p, input, what, first_total, shifts[index], index, from < to ? from : to, to);
    }
    for (int64_t index = 0; index < p->kept_count; ++index) {
      totals[index] = partial[index * shares];
      for (int64_t i = 1; i < shares; ++i) totals[index] = NAME(merge)(what, totals[index], partial[index * shares + i]);
      if (phase == 0) shifts[index] = FINITE_OR_ZERO(totals[index]);
    }
  }
  NAME(finish)(p, entry, totals, shifts, p->kept_count, totals);
  STORE(output->dtype, output->data, 0, p->kept_count, totals);
}

static void NAME(run)(const plan *p, const reduction *entry, const clv_tensor *input, const clv_tensor *output, T start,
                      T lowest) {
  int64_t shares = p->reduced_total / SHARE < MAX_SHARES ? p->reduced_total / SHARE : MAX_SHARES;
  if (p->inner_reduced && p->kept_count <= FEW_OUTPUTS && shares > 1) {
    NAME(run_few)(p, entry, input, output, start, lowest, shares);
    return;
  }
  int64_t width = p->inner_reduced ? OUTPUT_GROUP : BLOCK; /* outputs per task */
  int64_t across = p->inner_reduced ? p->kept_count : p->inner;
  int64_t blocks = (across + width - 1) / width, tasks = p->inner_reduced ? blocks : p->kept_count * blocks;
  double work = (double)p->reduced_total * (double)across * (p->inner_reduced ? 1.0 : (double)p->kept_count);
  const int threads = clv__kernel_threads(tasks, entry->what == FOLD_EXP ? 20 * work : work);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    T totals[BLOCK] = {0}, shifts[BLOCK] = {0};
    if (clv__is_stopped(p->stop)) continue;
    int64_t first = task % blocks * width, count = across - first < width ? across - first : width;
    for (int phase = entry->what == FOLD_EXP ? 0 : 1; phase < 2; ++phase) {
      const fold what = phase == 0 ? FOLD_MAX : entry->what;
      const T first_total = phase == 0 ? lowest : start;
      if (p->inner_reduced) {
        for (int64_t i = 0; i < count; ++i) {
          totals[i] = NAME(fold_range)(p, input, what, first_total, shifts[i], first + i, 0, p->reduced_total);
        }
      } else {
        NAME(fold_block)(p, input, what, first_total, shifts, task / blocks, first, count, totals);
      }
      for (int64_t i = 0; phase == 0 && i < count; ++i) shifts[i] = FINITE_OR_ZERO(totals[i]);
    }
    NAME(finish)(p, entry, totals, shifts, count, totals);
    int64_t at = p->inner_reduced ? first : task / blocks * p->inner + first;
    STORE(output->dtype, output->data, at, count, totals);
  }
}
