/* See product.h. Tiles are compiled for three instruction sets and chosen at run time. */
#include "backends/common/kernels/attention/product.h"

/* The sums fill the registers but leave some for the operands: of 16 registers, or of AVX-512's 32. */
#define TILE_REAL float
#define TILE_NAME(x) base_f32_##x
#define TILE_TARGET
#define TILE_LANES 4
#define TILE_VECTORS 4
#define TILE_ROWS 2
#include "backends/common/kernels/attention/tile.h"
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_X86
#define TILE_NAME(x) avx2_f32_##x
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_LANES 8
#define TILE_VECTORS 2
#define TILE_ROWS 6
#include "backends/common/kernels/attention/tile.h"
#define TILE_NAME(x) avx512_f32_##x
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_LANES 16
#define TILE_VECTORS 1
#define TILE_ROWS 12
#include "backends/common/kernels/attention/tile.h"
#define TILE_NAME(x) avx512_f32_wide_##x
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_LANES 16
#define TILE_VECTORS 2
#define TILE_ROWS 12
#include "backends/common/kernels/attention/tile.h"
#endif
#undef TILE_REAL

#define TILE_REAL double
#define TILE_NAME(x) base_f64_##x
#define TILE_TARGET
#define TILE_LANES 2
#define TILE_VECTORS 8
#define TILE_ROWS 1
#include "backends/common/kernels/attention/tile.h"
#ifdef HAS_X86
#define TILE_NAME(x) avx2_f64_##x
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_LANES 4
#define TILE_VECTORS 4
#define TILE_ROWS 2
#include "backends/common/kernels/attention/tile.h"
#define TILE_NAME(x) avx512_f64_##x
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_LANES 8
#define TILE_VECTORS 2
#define TILE_ROWS 12
#include "backends/common/kernels/attention/tile.h"
#endif
#undef TILE_REAL

clv__attention_product clv__attention_product_choose(bool is_double, bool wide) {
  (void)wide; /* on CPUs other than x86 */
#ifdef HAS_X86
  if (__builtin_cpu_supports("avx512f")) {
    if (is_double) return (clv__attention_product){CLV__ATTENTION_LANES, avx512_f64_scores, avx512_f64_sums};
    if (!wide) return (clv__attention_product){CLV__ATTENTION_LANES, avx512_f32_scores, avx512_f32_sums};
    return (clv__attention_product){2 * CLV__ATTENTION_LANES, avx512_f32_wide_scores, avx512_f32_wide_sums};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return is_double ? (clv__attention_product){CLV__ATTENTION_LANES, avx2_f64_scores, avx2_f64_sums}
                     : (clv__attention_product){CLV__ATTENTION_LANES, avx2_f32_scores, avx2_f32_sums};
  }
#endif
  return is_double ? (clv__attention_product){CLV__ATTENTION_LANES, base_f64_scores, base_f64_sums}
                   : (clv__attention_product){CLV__ATTENTION_LANES, base_f32_scores, base_f32_sums};
}
