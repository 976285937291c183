/* Reductions over any axes. The output has the `kept` axes of the input. Each output element reduces ("folds") the elements along
 * the `folded` axes. Neighbouring axes of the same kind are merged, so there are at most four of each.
 *
 * Defines: T (input), R (result), ACCUMULATOR (a type), START, FOLD(total, x), MERGE(total, other), GROUP; IN_FLOAT (1 if T is
 * a float, otherwise 0); SHIFTED for the logarithm of a sum of exponentials. Long sums are computed in parts of PART elements,
 * which limits rounding errors. */
#define PART 128
typedef ACCUMULATOR accumulator;

typedef enum { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG } finish_t;

FUNCTION accumulator finish(accumulator total, accumulator shift, index_t folded, int last) {
#if IN_FLOAT
  if (last == FINISH_MEAN) return total / (accumulator)folded;
  if (last == FINISH_ROOT) return sqrt(total);
  if (last == FINISH_LOG) return log(total) + shift;
#else
  if (last == FINISH_MEAN) return folded > 0 ? total / (accumulator)folded : 0;
#endif
  return total;
}

#ifdef SHIFTED
#define LARGER(total, x) ((x) > (total) || (x) != (x) ? (x) : (total))
#define LOWEST (-(accumulator)INFINITY)
/* The value to subtract from exponents: the largest, or 0 if it is not finite. */
FUNCTION accumulator usable(accumulator largest) {
  return largest - largest == 0 ? largest : 0;
}
#endif

/* One work item per output, for adjacent outputs that read adjacent elements. */
KERNEL(columns)
(GLOBAL STORAGE(R) * y, GLOBAL const STORAGE(T) * x, index_t outputs, int kept_rank, dims_t kept, dims_t kept_strides,
 index_t folded_count, int folded_rank, dims_t folded, dims_t folded_strides, int last) {
  const index_t at = GLOBAL_ID(0);
  if (at >= outputs) return;
  const index_t first = clv_place(at, kept_rank, kept, kept_strides);
  accumulator shift = 0;
#ifdef SHIFTED
  shift = LOWEST;
  for (index_t i = 0; i < folded_count; ++i) {
    const accumulator value = (accumulator)LOAD(T, x, first + clv_place(i, folded_rank, folded, folded_strides));
    shift = LARGER(shift, value);
  }
  shift = usable(shift);
#endif
  accumulator total = START;
  for (index_t from = 0; from < folded_count; from += PART) {
    const index_t to = from + PART < folded_count ? from + PART : folded_count;
    accumulator part = START;
    for (index_t i = from; i < to; ++i) {
      const accumulator value = (accumulator)LOAD(T, x, first + clv_place(i, folded_rank, folded, folded_strides));
      part = FOLD(part, value);
    }
    total = MERGE(total, part);
  }
  STORE(R, y, at, finish(total, shift, folded_count, last));
}

/* One work group per output, for outputs that fold many contiguous elements. */
KERNEL_SIZED(rows, GROUP, 1, 1)
(GLOBAL STORAGE(R) * y, GLOBAL const STORAGE(T) * x, index_t outputs, int kept_rank, dims_t kept, dims_t kept_strides,
 index_t folded_count, int folded_rank, dims_t folded, dims_t folded_strides, int last) {
  LOCAL_ARRAY(accumulator, lanes, GROUP);
  const index_t at = GROUP_ID(0), lane = LOCAL_ID(0);
  const index_t first = clv_place(at, kept_rank, kept, kept_strides);
  accumulator shift = 0;
#ifdef SHIFTED
  accumulator largest = LOWEST;
  for (index_t i = lane; i < folded_count; i += GROUP) {
    const accumulator value = (accumulator)LOAD(T, x, first + clv_place(i, folded_rank, folded, folded_strides));
    largest = LARGER(largest, value);
  }
  lanes[lane] = largest;
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) lanes[lane] = LARGER(lanes[lane], lanes[lane + half_count]);
    BARRIER();
  }
  shift = usable(lanes[0]);
  BARRIER();
#endif
  accumulator total = START, part = START;
  int pending = 0;
  for (index_t i = lane; i < folded_count; i += GROUP) {
    const accumulator value =
        (accumulator)LOAD(T, x, first + (folded_rank == 1 ? i * folded_strides.at[0] : clv_place(i, folded_rank, folded, folded_strides)));
    part = FOLD(part, value);
    if (++pending == PART) {
      total = MERGE(total, part);
      part = START;
      pending = 0;
    }
  }
  lanes[lane] = MERGE(total, part);
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) lanes[lane] = MERGE(lanes[lane], lanes[lane + half_count]);
    BARRIER();
  }
  if (lane == 0) STORE(R, y, at, finish(lanes[0], shift, folded_count, last));
}
