/* See block.h. */
#include "block.h"

#include "list.h"

/* If rows have at least this many elements, the launch has two dimensions: elements of a row, and rows. */
#define ROW 32

void clv__opencl_strides(const clv_tensor *tensor, int64_t strides[CLV_MAX_RANK]) {
  int64_t step = 1;
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    strides[d] = step;
    step *= tensor->dims[d];
  }
}

void clv__opencl_block_dense(clv__opencl_block *block) {
  int64_t step = 1;
  for (int32_t d = block->rank - 1; d >= 0; --d) {
    block->to[d] = step;
    step *= block->dims[d];
  }
}

/* Drops dims of 1, and joins neighbouring dims that are contiguous in both layouts. */
static void merge(clv__opencl_block *b) {
  int32_t rank = 0;
  for (int32_t d = 0; d < b->rank; ++d) {
    if (b->dims[d] == 1) continue;
    const bool joins = rank > 0 && b->to[rank - 1] == b->to[d] * b->dims[d] && b->from[rank - 1] == b->from[d] * b->dims[d];
    const int32_t at = joins ? rank - 1 : rank++;
    b->dims[at] = (joins ? b->dims[at] : 1) * b->dims[d];
    b->to[at] = b->to[d];
    b->from[at] = b->from[d];
  }
  b->rank = rank;
}

/* Whether the block transposes matrices of at least 8x8: it reads [matrices, rows, columns] and writes [matrices, columns,
 * rows]. */
static bool is_transpose(const clv__opencl_block *b) {
  const int32_t r = b->rank;
  if ((r != 2 && r != 3) || b->to_first != 0 || b->from_first != 0) return false;
  const int64_t rows = b->dims[r - 1], columns = b->dims[r - 2];
  const bool turned = b->to[r - 1] == 1 && b->to[r - 2] == rows && b->from[r - 1] == columns && b->from[r - 2] == 1;
  const bool apart = r == 2 || (b->to[0] == rows * columns && b->from[0] == rows * columns);
  return turned && apart && rows >= 8 && columns >= 8;
}

static clv_status launch_turn(clv__opencl_lowering *l, clv_dtype bits, uint32_t output, uint32_t input,
                              const clv__opencl_block *b) {
  const int64_t rows = b->dims[b->rank - 1], columns = b->dims[b->rank - 2];
  clv__opencl_launch(l, "move", "turn");
  clv__opencl_define_dtype(l, "T", bits);
  clv__opencl_pass_output(l, output);
  clv__opencl_pass_input(l, input);
  clv__opencl_pass_index(l, rows);
  clv__opencl_pass_index(l, columns);
  return clv__opencl_enqueue(l, 3, (int64_t[]){columns, rows, b->rank == 3 ? b->dims[0] : 1}, (int64_t[]){16, 16, 1});
}

static clv_status launch_places(clv__opencl_lowering *l, clv_dtype bits, uint32_t output, uint32_t input,
                                const clv__opencl_block *b) {
  const bool by_rows = b->dims[b->rank - 1] >= ROW;
  const int32_t rank = by_rows ? b->rank - 1 : b->rank;
  int64_t count = 1;
  for (int32_t d = 0; d < rank; ++d) count *= b->dims[d];
  clv__opencl_launch(l, "move", by_rows ? "rows" : "places");
  clv__opencl_define_dtype(l, "T", bits);
  clv__opencl_pass_output(l, output);
  clv__opencl_pass_input(l, input);
  if (by_rows) clv__opencl_pass_index(l, b->dims[rank]);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_int(l, rank);
  clv__opencl_pass_dims(l, b->dims, (uint32_t)rank);
  clv__opencl_pass_dims(l, b->to, (uint32_t)rank);
  clv__opencl_pass_index(l, b->to_first);
  if (by_rows) clv__opencl_pass_index(l, b->to[rank]);
  clv__opencl_pass_dims(l, b->from, (uint32_t)rank);
  clv__opencl_pass_index(l, b->from_first);
  if (!by_rows) return clv__opencl_enqueue_1d(l, count);
  const int64_t each = clv__opencl_each(l);
  clv__opencl_pass_index(l, b->from[rank]);
  clv__opencl_pass_index(l, each);
  return clv__opencl_enqueue(l, 2, (int64_t[]){(b->dims[rank] + each - 1) / each, count}, (int64_t[]){each > 1 ? 1 : 64, 1});
}

/* Adds the launches for a merged block. If it has more dims than a kernel handles, adds one launch for each index of the first
 * dim. */
static clv_status move_merged(clv__opencl_lowering *l, clv_dtype bits, uint32_t output, uint32_t input,
                              const clv__opencl_block *b) {
  const uint64_t bytes = clv_dtype_size_bytes(bits);
  if (b->rank == 0 || (b->rank == 1 && b->to[0] == 1 && b->from[0] == 1)) {
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, output, (uint64_t)b->to_first * bytes, CLV__OPENCL_INPUT, input,
                            (uint64_t)b->from_first * bytes, (uint64_t)(b->rank == 0 ? 1 : b->dims[0]) * bytes);
  }
  if (is_transpose(b)) return launch_turn(l, bits, output, input, b);
  if (b->rank <= CLV_MAX_RANK) return launch_places(l, bits, output, input, b);
  for (int64_t i = 0; i < b->dims[0]; ++i) {
    clv__opencl_block part = {
        .rank = b->rank - 1, .to_first = b->to_first + i * b->to[0], .from_first = b->from_first + i * b->from[0]};
    memcpy(part.dims, b->dims + 1, (size_t)part.rank * sizeof *part.dims);
    memcpy(part.to, b->to + 1, (size_t)part.rank * sizeof *part.to);
    memcpy(part.from, b->from + 1, (size_t)part.rank * sizeof *part.from);
    CLV__TRY(move_merged(l, bits, output, input, &part));
  }
  return CLV_OK;
}

clv_status clv__opencl_block_move(clv__opencl_lowering *l, const clv__opencl_node *node, uint32_t output, uint32_t input,
                                  const clv__opencl_block *block) {
  clv__opencl_block merged = *block;
  for (int32_t d = 0; d < block->rank; ++d) {
    if (block->dims[d] == 0) return CLV_OK;
  }
  merge(&merged);
  return move_merged(l, clv__opencl_bits(node->outputs[output].dtype), output, input, &merged);
}
