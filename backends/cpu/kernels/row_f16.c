/* The row step's innermost loop over f16 panels. Converts f16 to f32 in registers if the instruction set allows it. */
#include "operators/common/rows.h"
#include "row.h"

#define PANEL CLV__CPU_ROW_PANEL

#if defined(__AVX512F__)
#include <immintrin.h>

void clv__cpu_panel_f16(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
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
#elif defined(__F16C__) && defined(__FMA__)
#include <immintrin.h>

void clv__cpu_panel_f16(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
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
#else
void clv__cpu_panel_f16(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
  float total[PANEL] = {0};
  for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
    for (int j = 0; j < PANEL; ++j) total[j] += row[k] * clv__f16_widen(panel[j]);
  }
  memcpy(sums, total, sizeof total);
}
#endif
