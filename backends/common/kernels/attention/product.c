/* See product.h. */
#include "backends/common/kernels/attention/product.h"
#include "backends/common/kernels/vector.h"

/* A tile of TILE_ROWS x TILE_VECTORS vectors of sums is kept in registers, with some left for the operands. A panel has
 * CLV__ATTENTION_LANES queries. So the narrower the registers are, the more vectors a row needs and the fewer rows fit. */
#define TILE_REAL float
#define TILE_NAME(x) f32_##x
#define TILE_VECTORS (CLV__ATTENTION_LANES * 4 / CLV__VECTOR_BYTES)
#define TILE_ROWS (CLV__VECTOR_BYTES == 64 ? 12 : CLV__VECTOR_BYTES == 32 ? 6 : 2)
#include "backends/common/kernels/attention/tile.h"
#if CLV__VECTOR_BYTES == 64
#define TILE_REAL float
#define TILE_NAME(x) f32_wide_##x
#define TILE_VECTORS 2
#define TILE_ROWS 12
#include "backends/common/kernels/attention/tile.h"
#endif

#define TILE_REAL double
#define TILE_NAME(x) f64_##x
#define TILE_VECTORS (CLV__ATTENTION_LANES * 8 / CLV__VECTOR_BYTES)
#define TILE_ROWS (CLV__VECTOR_BYTES == 64 ? 12 : CLV__VECTOR_BYTES == 32 ? 2 : 1)
#include "backends/common/kernels/attention/tile.h"

clv__attention_product clv__attention_product_choose(bool is_double, bool wide) {
  (void)wide; /* used only with AVX-512, which has 32 registers; 16 are too few */
  if (is_double) return (clv__attention_product){CLV__ATTENTION_LANES, f64_scores, f64_sums};
#if CLV__VECTOR_BYTES == 64
  if (wide) return (clv__attention_product){2 * CLV__ATTENTION_LANES, f32_wide_scores, f32_wide_sums};
#endif
  return (clv__attention_product){CLV__ATTENTION_LANES, f32_scores, f32_sums};
}
