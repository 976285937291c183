/* QuantizeLinear and DequantizeLinear. The scale of element e of [outer, length, inner] has index (e / inner % length) / block.
 * Blocked scales have the shape [outer, scales, inner]; for them, this is the index along the axis `scales`. Defines: the
 * dtypes X (input), S (scale) and T (output). The kernel `quantize` also needs LOW and HIGH, the limits of T; without them,
 * `dequantize` is compiled. */
FUNCTION index_t clv_scale_place(index_t at, index_t length, index_t inner, index_t block, index_t scales, int blocked, int whole) {
  if (whole) return 0;
  const index_t along = at / inner % length / block;
  return blocked ? (at / inner / length * scales + along) * inner + at % inner : along;
}

#ifdef LOW
KERNEL(quantize)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(X) * x, GLOBAL const STORAGE(S) * scale, GLOBAL const STORAGE(T) * zero, index_t count,
 index_t length, index_t inner, index_t block, index_t scales, int blocked, int whole, int has_zero) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t s = clv_scale_place(at, length, inner, block, scales, blocked, whole);
  const float point = has_zero ? (float)LOAD(T, zero, s) : 0.0f;
  float value = rint((float)LOAD(X, x, at) / (float)LOAD(S, scale, s));
  if (value != value) value = 0;
  value = value + point < LOW ? LOW : value + point > HIGH ? HIGH : value + point;
  STORE(T, y, at, (int)value);
}
#else
KERNEL(dequantize)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(X) * x, GLOBAL const STORAGE(S) * scale, GLOBAL const STORAGE(X) * zero, index_t count,
 index_t length, index_t inner, index_t block, index_t scales, int blocked, int whole, int has_zero) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t s = clv_scale_place(at, length, inner, block, scales, blocked, whole);
  const LONG away = (LONG)LOAD(X, x, at) - (has_zero ? (LONG)LOAD(X, zero, s) : 0);
  STORE(T, y, at, (float)away * (float)LOAD(S, scale, s));
}
#endif
