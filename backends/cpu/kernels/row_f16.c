/* The row step's innermost loop over f16 panels. Widens in registers if the CPU has an instruction for it. */
#include "operators/common/multiversion.h"
#include "operators/common/rows.h"
#include "row.h"

#define PANEL CLV__CPU_ROW_PANEL

CLV__MULTIVERSION static void sums_portable(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
  float total[PANEL] = {0};
  for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
    for (int j = 0; j < PANEL; ++j) total[j] += row[k] * clv__f16_widen(panel[j]);
  }
  memcpy(sums, total, sizeof total);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("avx512f"))) static void sums_avx512(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
  __m512 total[PANEL / 16];
  for (int j = 0; j < PANEL / 16; ++j) total[j] = _mm512_setzero_ps();
  for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
    const __m512 x = _mm512_set1_ps(row[k]);
    for (int j = 0; j < PANEL / 16; ++j) {
      const __m256i narrow = _mm256_loadu_si256((const __m256i *)(const void *)(panel + 16 * j));
      total[j] = _mm512_fmadd_ps(x, _mm512_cvtph_ps(narrow), total[j]);
    }
  }
  for (int j = 0; j < PANEL / 16; ++j) _mm512_storeu_ps(sums + 16 * j, total[j]);
}

__attribute__((target("avx2,fma,f16c"))) static void sums_avx2(const float *row, int64_t depth, const uint16_t *panel,
                                                               float *sums) {
  __m256 total[PANEL / 8];
  for (int j = 0; j < PANEL / 8; ++j) total[j] = _mm256_setzero_ps();
  for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
    const __m256 x = _mm256_set1_ps(row[k]);
    for (int j = 0; j < PANEL / 8; ++j) {
      const __m128i narrow = _mm_loadu_si128((const __m128i *)(const void *)(panel + 8 * j));
      total[j] = _mm256_fmadd_ps(x, _mm256_cvtph_ps(narrow), total[j]);
    }
  }
  for (int j = 0; j < PANEL / 8; ++j) _mm256_storeu_ps(sums + 8 * j, total[j]);
}
#endif

clv__cpu_panel_f16_fn clv__cpu_panel_f16(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) return sums_avx512;
  unsigned a, b, c = 0, d;
  const bool has_f16c =
      __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0; /* not every compiler has a name for this feature */
  if (has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return sums_avx2;
#endif
  return sums_portable;
}
