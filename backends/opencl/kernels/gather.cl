/* Reads and writes at indexed positions. Defines: T (the unsigned dtype of the elements' size, or their own dtype if UPDATE
 * computes with them), I (i32 or i64). An index out of range reads 0 and writes nothing. */

/* The offset that a row of `depth` indices selects, or -1 if an index is out of range. */
FUNCTION index_t clv_row_place(GLOBAL const STORAGE(I) * indices, index_t row, int depth, dims_t dims, dims_t strides) {
  index_t place = 0;
  for (int d = 0; d < depth; ++d) {
    LONG index = indices[row * depth + d];
    if (index < 0) index += dims.at[d];
    if (index < 0 || index >= dims.at[d]) return -1;
    place += (index_t)index * strides.at[d];
  }
  return place;
}

#ifndef UPDATE
/* Gather: x is [outer, size, inner], and y is [outer, n, inner]. There are `n` indices. */
KERNEL(gather)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(I) * indices, index_t count, index_t size, index_t n,
 index_t inner) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t row = at / inner, column = at % inner, outer = row / n;
  LONG index = indices[row % n];
  if (index < 0) index += size;
  y[at] = index >= 0 && index < size ? x[(outer * size + (index_t)index) * inner + column] : (STORAGE(T))0;
}

/* GatherElements: an element of y is the element of x at the same position, except that the index replaces the coordinate along
 * the axis. `dims` are those of y. `strides` are those of x, with 0 for the axis. */
KERNEL(gather_elements)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(I) * indices, index_t count, int rank, dims_t dims,
 dims_t strides, index_t size, index_t stride) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t base = clv_place(at, rank, dims, strides);
  LONG index = indices[at];
  if (index < 0) index += size;
  y[at] = index >= 0 && index < size ? x[base + (index_t)index * stride] : (STORAGE(T))0;
}

/* GatherND: each row of `depth` indices selects a slice of `inner` elements. There are `each` rows per batch. */
KERNEL(gather_rows)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(I) * indices, index_t count, index_t inner, index_t each,
 index_t batch_stride, int depth, dims_t dims, dims_t strides) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  const index_t row = at / inner, place = clv_row_place(indices, row, depth, dims, strides);
  y[at] = place >= 0 ? x[row / each * batch_stride + place + at % inner] : (STORAGE(T))0;
}
#else /* UPDATE: an expression of `to`, the element of y, and `by`, the update */

/* ScatterElements. Updates can collide only within one line along the axis, so a work item applies the updates of a line in
 * order. If there are few long lines and no updates can collide, lowering passes each update as a line of its own (`length` is
 * 1), so that more work items share the work. */
KERNEL(scatter_elements)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(I) * indices, GLOBAL const STORAGE(T) * updates, index_t count, index_t length,
 index_t inner, int rank, dims_t dims, dims_t strides, index_t size, index_t stride) {
  const index_t line = GLOBAL_ID(0);
  if (line >= count) return;
  const index_t first = line / inner * length * inner + line % inner;
  const index_t base = clv_place(first, rank, dims, strides);
  for (index_t i = 0; i < length; ++i) {
    LONG index = indices[first + i * inner];
    if (index < 0) index += size;
    if (index < 0 || index >= size) continue;
    const index_t at = base + (index_t)index * stride;
    const REAL(T) to = LOAD(T, y, at), by = LOAD(T, updates, first + i * inner);
    (void)to;
    STORE(T, y, at, UPDATE);
  }
}

/* ScatterND: a work item applies `each` rows of indices, from GLOBAL_ID(1) * each on, in order, for one column of the slice. */
KERNEL(scatter_rows)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(I) * indices, GLOBAL const STORAGE(T) * updates, index_t rows, index_t inner,
 index_t each, int depth, dims_t dims, dims_t strides) {
  const index_t column = GLOBAL_ID(0), from = GLOBAL_ID(1) * each;
  if (column >= inner) return;
  for (index_t row = from; row < from + each && row < rows; ++row) {
    const index_t place = clv_row_place(indices, row, depth, dims, strides);
    if (place < 0) continue;
    const REAL(T) to = LOAD(T, y, place + column), by = LOAD(T, updates, row * inner + column);
    (void)to;
    STORE(T, y, place + column, UPDATE);
  }
}
#endif
