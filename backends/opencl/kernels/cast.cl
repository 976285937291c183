/* Casts, and elementwise operators that only integers or mixed dtypes have. Defines: X, T, and for `cast` TO (below), for others
 * EXPRESSION of x and y. */

/* What the specification leaves open as in src/kernels/cast.c: floats saturate, a NaN becomes 0, integers keep their low bits. */
#define SATURATE(x, low, high, lowest, highest, type) \
  ((x) != (x) ? (type)0 : (x) <= (low) ? (type)(lowest) : (x) >= (high) ? (type)(highest) : (type)(x))

#ifdef TO
KERNEL(cast)(GLOBAL const STORAGE(X) * px, GLOBAL STORAGE(T) * out, index_t count POST_PARAMETERS) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const REAL(X) x = LOAD(X, px, at);
  const REAL(T) value = (REAL(T))(TO(x));
  STORE(T, out, at, POST(value, at));
}
#else
KERNEL(pair)
(GLOBAL const STORAGE(X) * px, GLOBAL const STORAGE(Y) * py, GLOBAL STORAGE(T) * out, index_t count, int rank, dims_t dims,
 dims_t x_steps, dims_t y_steps) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const REAL(X) x = LOAD(X, px, clv_place(at, rank, dims, x_steps));
  const REAL(Y) y = LOAD(Y, py, clv_place(at, rank, dims, y_steps));
  STORE(T, out, at, EXPRESSION);
}

/* Bounds of a Clip that are tensors of one element, or are not there. */
KERNEL(clip)
(GLOBAL const STORAGE(X) * px, GLOBAL const STORAGE(X) * low, GLOBAL const STORAGE(X) * high, GLOBAL STORAGE(X) * out,
 index_t count, int has_low, int has_high) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  REAL(X) x = LOAD(X, px, at);
  if (has_low && x < LOAD(X, low, 0)) x = LOAD(X, low, 0);
  if (has_high && x > LOAD(X, high, 0)) x = LOAD(X, high, 0);
  STORE(X, out, at, x);
}
#endif
