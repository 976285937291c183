/* Moves elements bit for bit: T is the unsigned dtype of their size, u8 to u64. */

/* Copies `count` rows of `width` elements from x to y. The rows form a block with the dims `dims`, in row-major order. For x
 * and for y, the arguments are the offset of the first row, the strides of `dims`, and the step between the elements of a row.
 * A work item copies `each` elements of a row, on a CPU enough for an efficient loop. */
KERNEL(rows)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t width, index_t count, int rank, dims_t dims, dims_t y_strides,
 index_t y_first, index_t y_step, dims_t x_strides, index_t x_first, index_t x_step, index_t each) {
  const index_t begin = GLOBAL_ID(0) * each, row = GLOBAL_ID(1);
  const index_t to = y_first + clv_place(row, rank, dims, y_strides), from = x_first + clv_place(row, rank, dims, x_strides);
  if (begin >= width || row >= count) return;
  const index_t end = begin + each < width ? begin + each : width;
  if (y_step == 1 && x_step == 1) {
    for (index_t i = begin; i < end; ++i) y[to + i] = x[from + i];
  } else {
    for (index_t i = begin; i < end; ++i) y[to + i * y_step] = x[from + i * x_step];
  }
}

/* Copies `count` elements from x to y, like the kernel `rows` but for short rows: a work item copies one element, and `dims`
 * include the last axis. */
KERNEL(places)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t count, int rank, dims_t dims, dims_t y_strides, index_t y_first,
 dims_t x_strides, index_t x_first) {
  const index_t i = GLOBAL_ID(0);
  if (i >= count) return;
  y[y_first + clv_place(i, rank, dims, y_strides)] = x[x_first + clv_place(i, rank, dims, x_strides)];
}

/* Transposes matrices [rows, columns] by tiles in local memory, so that reads and writes are both contiguous. */
#define TILE 16
KERNEL_SIZED(turn, TILE, TILE, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t rows, index_t columns) {
  LOCAL_ARRAY(STORAGE(T), tile, TILE * (TILE + 1));
  const index_t matrix = GROUP_ID(2) * rows * columns, lx = LOCAL_ID(0), ly = LOCAL_ID(1);
  const index_t column = GROUP_ID(0) * TILE + lx, row = GROUP_ID(1) * TILE + ly;
  if (row < rows && column < columns) tile[ly * (TILE + 1) + lx] = x[matrix + row * columns + column];
  BARRIER();
  const index_t to_column = GROUP_ID(1) * TILE + lx, to_row = GROUP_ID(0) * TILE + ly;
  if (to_row < columns && to_column < rows) y[matrix + to_row * rows + to_column] = tile[lx * (TILE + 1) + ly];
}

/* Pad: y[o] = x[o - lead + cut] if that is inside x, otherwise the constant or the element that `mode` selects. mode: 0 constant,
 * 1 reflect, 2 edge, 3 wrap. Negative pads cut off elements: `length` elements of an axis remain, from `cut` on. */
KERNEL(pad)
(GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, index_t count, int rank, dims_t dims, dims_t x_strides, dims_t lead,
 dims_t cut, dims_t length, int mode, LONG constant_bits) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
  index_t rest = at, from = 0;
  int outside = 0;
  for (int d = rank - 1; d >= 0; --d) {
    index_t i = rest % dims.at[d] - lead.at[d];
    const index_t size = length.at[d];
    rest /= dims.at[d];
    if (i < 0 || i >= size) {
      const index_t period = mode == 3 ? size : 2 * (size - 1);
      if (mode == 0) {
        outside = 1;
        i = 0;
      } else if (mode == 2 || period <= 0) {
        i = i < 0 ? 0 : size - 1;
      } else {
        i %= period;
        if (i < 0) i += period;
        if (mode == 1 && i >= size) i = period - i;
      }
    }
    from += (i + cut.at[d]) * x_strides.at[d];
  }
  y[at] = outside ? (STORAGE(T))constant_bits : x[from];
}
