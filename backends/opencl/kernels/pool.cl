/* Pools over up to three spatial axes. A work item computes one output element. Defines: T; KIND (0 maximum, 1 average, 2 Lp). */
#define KIND_MAX 0
#define KIND_AVERAGE 1
#define KIND_LP 2
typedef REAL(T) real;

/* The taps [first, end) of an axis that fall inside the input, for a window that begins at `start`. */
#define FIRST_TAP(start, dilation) ((start) < 0 ? (-(start) + (dilation)-1) / (dilation) : 0)
#define END_TAP(start, dilation, kernel_size, input) \
  ((input) <= (start) ? 0 : ((input) - (start) + (dilation)-1) / (dilation) < (kernel_size) ? ((input) - (start) + (dilation)-1) / (dilation) : (kernel_size))

#if IS_FLOAT(T)
FUNCTION real clv_power(real x, int p) {
  return p == 2 ? x * x : p == 1 ? fabs(x) : pow(fabs(x), (real)p);
}
FUNCTION real clv_root(real x, int p) {
  return p == 2 ? sqrt(x) : p == 1 ? x : pow(x, 1 / (real)p);
}
#else
#define clv_power(x, p) (x)
#define clv_root(x, p) (x)
#endif

/* Arguments per axis, as triples: input, output, kernel, stride, dilation, pad at the beginning, and `counted_end`, the
 * position where the padding that an average counts ends. */
KERNEL(pool)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL LONG *indices, index_t count, dims_t input, dims_t output,
 dims_t kernel_size, dims_t stride, dims_t dilation, dims_t pad, dims_t counted_end, int count_padding, int p, int has_indices,
 int column_major POST_PARAMETERS) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  index_t rest = at, start[3], first[3], end[3], divisor = 1;
  for (int d = 2; d >= 0; --d) {
    start[d] = rest % output.at[d] * stride.at[d] - pad.at[d];
    rest /= output.at[d];
    first[d] = FIRST_TAP(start[d], dilation.at[d]);
    end[d] = END_TAP(start[d], dilation.at[d], kernel_size.at[d], input.at[d]);
    if (end[d] < first[d]) end[d] = first[d];
    index_t taps = end[d] - first[d];
    if (count_padding) taps = END_TAP(start[d], dilation.at[d], kernel_size.at[d], counted_end.at[d]);
    divisor *= taps;
  }
  const index_t plane = rest * input.at[0] * input.at[1] * input.at[2];
#if KIND == KIND_MAX
  real total = LOWEST;
#else
  real total = 0;
#endif
  index_t where = -1;
  for (index_t a = first[0]; a < end[0]; ++a) {
    for (index_t b = first[1]; b < end[1]; ++b) {
      const index_t i0 = start[0] + a * dilation.at[0], i1 = start[1] + b * dilation.at[1];
      const index_t row = (i0 * input.at[1] + i1) * input.at[2];
      for (index_t c = first[2]; c < end[2]; ++c) {
        const index_t i2 = start[2] + c * dilation.at[2];
        const real value = LOAD(T, x, plane + row + i2);
#if KIND == KIND_MAX
        if (value > total || where < 0) where = column_major ? (i2 * input.at[1] + i1) * input.at[0] + i0 : row + i2;
        if (value > total) total = value;
#elif KIND == KIND_AVERAGE
        total += value;
#else
        total += clv_power(value, p);
#endif
      }
    }
  }
#if KIND == KIND_AVERAGE
  total /= (real)divisor;
#elif KIND == KIND_LP
  total = clv_root(total, p);
#endif
  STORE(T, y, at, POST(total, at));
#if KIND == KIND_MAX
  if (has_indices) indices[at] = where < 0 ? -1 : (LONG)plane + where;
#endif
}
