/* Casts. Defines: X (the input's dtype), T (the output's), and TO(x), the conversion. Cases that the specification leaves open
 * follow src/operators/cast/run.c: floats saturate, NaN becomes 0, and integers keep their low bits. */
#define SATURATE(x, low, high, lowest, highest, type) \
  ((x) != (x) ? (type)0 : (x) <= (low) ? (type)(lowest) : (x) >= (high) ? (type)(highest) : (type)(x))

KERNEL(cast)(GLOBAL const STORAGE(X) * px, GLOBAL STORAGE(T) * out, index_t count) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const REAL(X) x = LOAD(X, px, at);
  const REAL(T) value = (REAL(T))(TO(x));
  STORE(T, out, at, value);
}
