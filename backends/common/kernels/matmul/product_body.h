/* Template of the functions of a product that read elements, for one dtype. product.c includes it with these macros defined:
 *   NAME(x)        the function's name for this dtype
 *   STORED, REAL   the type of an element in memory, and the type for computing
 *   LOAD(e)        converts from STORED to REAL
 *   SPREAD         clv__gemm_spread_f32 or clv__gemm_spread_f64 */

/* Packs rows of A or columns of B. `across` contains the offsets of the rows or columns, `along` the offsets along the depth. */
static void NAME(pack)(const void *data, const int64_t *across, const int64_t *along, const clv__gemm_block *block) {
  const STORED *elements = data;
  REAL *panels = block->panels, *line = block->line;
  across += block->first;
  along += block->depth_first;
  if (is_run(across, block->count)) {
    for (int64_t k = 0; k < block->depth_count; ++k) {
      const STORED *run = elements + across[0] + along[k];
      for (int64_t i = 0; i < block->count; ++i) line[i] = LOAD(run[i]);
      SPREAD(block, k, line);
    }
    return;
  }
  bool deep_run = is_run(along, block->depth_count);
  int64_t padded = (block->count + block->width - 1) / block->width * block->width;
  for (int64_t i = 0; i < padded; ++i) {
    REAL *panel = panels + i / block->width * block->width * block->depth_count + i % block->width;
    if (i >= block->count) {
      for (int64_t k = 0; k < block->depth_count; ++k) panel[k * block->width] = 0;
    } else if (deep_run) {
      const STORED *run = elements + across[i] + along[0];
      for (int64_t k = 0; k < block->depth_count; ++k) panel[k * block->width] = LOAD(run[k]);
    } else {
      const STORED *start = elements + across[i];
      for (int64_t k = 0; k < block->depth_count; ++k) panel[k * block->width] = LOAD(start[along[k]]);
    }
  }
}

/* Multiplies a few rows of A by a chunk of columns of B. B is read once and not packed, because with few rows, memory bandwidth
 * is the limit. */
static void NAME(thin)(const clv__product *p, int64_t batch, int64_t column, int64_t count, bool columns_run, REAL *sums) {
  const STORED *a = (const STORED *)p->a + p->a_batch[batch], *b = (const STORED *)p->b + p->b_batch[batch];
  for (int64_t i = 0; i < p->rows * THIN_COLUMNS; ++i) sums[i] = 0;
  if (columns_run) {
    for (int64_t k = 0; k < p->depth; ++k) {
      const STORED *run = b + p->b_depth[k] + p->b_column[column];
      for (int64_t i = 0; i < p->rows; ++i) {
        REAL left = LOAD(a[p->a_row[i] + p->a_depth[k]]), *out = sums + i * THIN_COLUMNS;
        for (int64_t j = 0; j < count; ++j) out[j] += left * LOAD(run[j]);
      }
    }
    return;
  }
  /* Both operands are contiguous along the depth: dot products in THIN_LANES partial sums. */
  for (int64_t j = 0; j < count; ++j) {
    const STORED *right = b + p->b_column[column + j] + p->b_depth[0];
    for (int64_t i = 0; i < p->rows; ++i) {
      const STORED *left = a + p->a_row[i] + p->a_depth[0];
      REAL lanes[THIN_LANES] = {0}, sum = 0;
      int64_t k = 0;
      for (; k + THIN_LANES <= p->depth; k += THIN_LANES) {
        for (int l = 0; l < THIN_LANES; ++l) lanes[l] += LOAD(left[k + l]) * LOAD(right[k + l]);
      }
      for (; k < p->depth; ++k) sum += LOAD(left[k]) * LOAD(right[k]);
      for (int l = 0; l < THIN_LANES; ++l) sum += lanes[l];
      sums[i * THIN_COLUMNS + j] = sum;
    }
  }
}

#undef NAME
#undef STORED
#undef REAL
#undef LOAD
#undef SPREAD
