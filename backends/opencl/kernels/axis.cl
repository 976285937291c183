/* Operators on the lines along an axis of [outer, length, inner]: ArgMax, ArgMin, CumSum, CumProd, TopK. Defines: T; GROUP, the
 * size of a work group, for arg_group. */
typedef REAL(T) real;

#if IS_FLOAT(T)
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif

/* Whether `value` replaces `best`, the smallest or largest value so far. With `last`, an equal value replaces it, too. NaN
 * replaces every number, and nothing replaces the first NaN, as in numpy. */
FUNCTION int clv_beats(real value, real best, int smallest, int last) {
  if (IS_NAN(best)) return 0;
  return (smallest ? value < best : value > best) || (last && value == best) || IS_NAN(value);
}

KERNEL(arg)
(GLOBAL LONG *y, GLOBAL const STORAGE(T) * x, index_t lines, index_t length, index_t inner, int smallest, int last) {
  const index_t line = GLOBAL_ID(0);
  if (line >= lines) return;
  const index_t first = line / inner * length * inner + line % inner;
  real best = LOAD(T, x, first);
  index_t where = 0;
  for (index_t i = 1; i < length; ++i) {
    const real value = LOAD(T, x, first + i * inner);
    if (clv_beats(value, best, smallest, last)) best = value, where = i;
  }
  y[line] = where;
}

#ifdef GROUP
/* Like `arg`, but with one work group per line. Used for a few long lines. */
KERNEL_SIZED(arg_group, GROUP, 1, 1)
(GLOBAL LONG *y, GLOBAL const STORAGE(T) * x, index_t length, index_t inner, int smallest, int last) {
  LOCAL_ARRAY(real, values, GROUP);
  LOCAL_ARRAY(index_t, places, GROUP);
  const index_t line = GROUP_ID(0), lane = LOCAL_ID(0);
  const index_t first = line / inner * length * inner + line % inner;
  index_t where = lane < length ? lane : 0;
  real best = LOAD(T, x, first + where * inner);
  for (index_t i = lane + GROUP; i < length; i += GROUP) {
    const real value = LOAD(T, x, first + i * inner);
    if (clv_beats(value, best, smallest, last)) best = value, where = i;
  }
  values[lane] = best;
  places[lane] = where;
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) {
      const real other = values[lane + half_count], own = values[lane];
      const index_t place = places[lane + half_count];
      const int equal = other == own || (IS_NAN(other) && IS_NAN(own));
      const int later_wins = last && !IS_NAN(own);
      if (equal ? (later_wins ? place > places[lane] : place < places[lane]) : clv_beats(other, own, smallest, 0)) {
        values[lane] = other;
        places[lane] = place;
      }
    }
    BARRIER();
  }
  if (lane == 0) y[line] = places[0];
}
#endif

/* CumSum (`kind` 0) and CumProd (`kind` 1): each result combines the elements of its line up to its own position. With
 * `exclusive`, it leaves out the element at that position; with `reverse`, it starts at the end of the line. */
KERNEL(cumulate)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t lines, index_t length, index_t inner, int kind, int exclusive,
 int reverse) {
  const index_t line = GLOBAL_ID(0);
  if (line >= lines) return;
  const index_t first = line / inner * length * inner + line % inner;
  real total = kind == 0 ? 0 : 1;
  for (index_t step = 0; step < length; ++step) {
    const index_t at = first + (reverse ? length - 1 - step : step) * inner;
    const real before = total, value = LOAD(T, x, at);
    total = (real)(kind == 0 ? before + value : before * value);
    STORE(T, y, at, exclusive ? before : total);
  }
}

/* Whether element i of a line, of value a, comes before element j, of value b. Of equal elements, the one with the lower index
 * comes first. NaN comes last. */
FUNCTION int clv_precedes(real a, index_t i, real b, index_t j, int largest) {
  if (IS_NAN(a) || IS_NAN(b)) return IS_NAN(a) && IS_NAN(b) ? i < j : IS_NAN(b);
  if (a == b) return i < j;
  return largest ? a > b : a < b;
}

/* TopK: a work item counts the elements of its line that come before its own element. That count is the element's output
 * position. */
KERNEL(top)
(GLOBAL STORAGE(T) * values, GLOBAL LONG *places, GLOBAL const STORAGE(T) * x, index_t count, index_t length, index_t inner,
 index_t k, int largest, int has_values, int has_places) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t outer = at / inner / length, i = at / inner % length, column = at % inner;
  const index_t first = outer * length * inner + column;
  const real own = LOAD(T, x, at);
  index_t rank = 0;
  for (index_t j = 0; j < length; ++j) rank += clv_precedes(LOAD(T, x, first + j * inner), j, own, i, largest);
  if (rank >= k) return;
  const index_t to = (outer * k + rank) * inner + column;
  if (has_values) STORE(T, values, to, own);
  if (has_places) places[to] = i;
}
