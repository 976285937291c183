/* Tensors whose elements depend on their positions. Defines: T; I (the dtype of OneHot's indices). */

KERNEL(fill)(GLOBAL STORAGE(T) * y, index_t count, LONG bits) {
  const index_t at = GLOBAL_ID(0);
  if (at < count) y[at] = (STORAGE(T))bits;
}

/* Trilu: row r keeps the columns from r % rows + k on (upper) or up to that column (lower). All other elements become 0. */
KERNEL(trilu)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t count, index_t rows, index_t columns, index_t k, int upper) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t away = at % columns - at / columns % rows;
  y[at] = (upper ? away >= k : away <= k) ? x[at] : (STORAGE(T))0;
}

/* EyeLike: ones on diagonal k, zeros elsewhere. */
KERNEL(eye)(GLOBAL STORAGE(T) * y, index_t count, index_t columns, index_t k, LONG one) {
  const index_t at = GLOBAL_ID(0);
  if (at < count) y[at] = at % columns - at / columns == k ? (STORAGE(T))one : (STORAGE(T))0;
}

#ifdef I
/* y is [outer, depth, inner], and `indices` is [outer, inner]. `values` contains the off value and the on value. */
KERNEL(one_hot)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(I) * indices, GLOBAL const STORAGE(T) * values, index_t count, index_t depth,
 index_t inner) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t place = at / inner % depth;
  LONG index = (LONG)LOAD(I, indices, at / inner / depth * inner + at % inner);
  if (index < 0) index += depth;
  y[at] = values[index == place ? 1 : 0];
}
#endif
