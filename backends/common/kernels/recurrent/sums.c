/* The products of a recurrence's steps, for three instruction sets: see recurrent.h. */
#include "backends/common/kernels/recurrent/recurrent.h"

enum { PANEL = CLV__RECURRENT_PANEL, COLUMNS = CLV__RECURRENT_COLUMNS };

/* Row counts for which the sums of two columns fit in the registers: 7 with 32 registers of 16 lanes (with 8, the addresses would
 * not fit), and 3 with 16 registers half as wide. */
#define TILE_NAME(x) x##_f32_base
#define TILE_TARGET
#define TILE_REAL float
#define TILE_ROWS 1
#include "backends/common/kernels/recurrent/tile.h"
#define TILE_NAME(x) x##_f64_base
#define TILE_TARGET
#define TILE_REAL double
#define TILE_ROWS 1
#include "backends/common/kernels/recurrent/tile.h"
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_X86
#define TILE_NAME(x) x##_f32_avx2
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_REAL float
#define TILE_ROWS 3
#include "backends/common/kernels/recurrent/tile.h"
#define TILE_NAME(x) x##_f64_avx2
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_REAL double
#define TILE_ROWS 1
#include "backends/common/kernels/recurrent/tile.h"
#define TILE_NAME(x) x##_f32_avx512
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_REAL float
#define TILE_ROWS 7
#include "backends/common/kernels/recurrent/tile.h"
#define TILE_NAME(x) x##_f64_avx512
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_REAL double
#define TILE_ROWS 3
#include "backends/common/kernels/recurrent/tile.h"
#endif

clv__recurrent_tile clv__recurrent_tile_of(bool is_double) {
#ifdef HAS_X86
  if (__builtin_cpu_supports("avx512f")) {
    return is_double ? (clv__recurrent_tile){run_f64_avx512, 3} : (clv__recurrent_tile){run_f32_avx512, 7};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return is_double ? (clv__recurrent_tile){run_f64_avx2, 1} : (clv__recurrent_tile){run_f32_avx2, 3};
  }
#endif
  return is_double ? (clv__recurrent_tile){run_f64_base, 1} : (clv__recurrent_tile){run_f32_base, 1};
}
