/* One row times a constant matrix. The time is dominated by reading the matrix. A loop over panels of columns reads it faster
 * than oneDNN's product does. */
#include "row.h"
#include "backends/common/kernels/vector.h"
#include "operators/common/threads.h"

#define PANEL CLV__CPU_ROW_PANEL

/* A panel is summed in vectors: in one pass, or in two if they would not fit in 16 registers. */
enum { LANES = CLV__VECTOR_BYTES / sizeof(float), VECTORS = PANEL / LANES < 8 ? PANEL / LANES : 8, COLUMNS = VECTORS * LANES };

typedef float lanes __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(float)), may_alias));
typedef uint16_t narrow_lanes __attribute__((vector_size(CLV__VECTOR_BYTES / 2), aligned(sizeof(uint16_t)), may_alias));
typedef uint32_t wide_lanes __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(uint32_t))));

/* How far ahead to prefetch the next lines of a panel. The hardware prefetcher stops at each page. A panel in a near cache is
 * read faster without prefetching. */
enum { AHEAD_BYTES = 8192, LINE_BYTES = 64, NEAR_BYTES = 1 << 20 };

static inline __attribute__((always_inline)) void ask_ahead(const void *panel, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes; at += LINE_BYTES) __builtin_prefetch((const char *)panel + AHEAD_BYTES + at);
}

/* sums[j] = the product of the row with column j of a panel. */
static inline __attribute__((always_inline)) void sum_panel(const float *row, int64_t depth, const float *panel, float *sums,
                                                            bool far) {
  for (int column = 0; column < PANEL; column += COLUMNS) {
    lanes total[VECTORS] = {{0}};
    const float *at = panel + column;
    for (int64_t k = 0; k < depth; ++k, at += PANEL) {
      if (far) ask_ahead(at, COLUMNS * sizeof *at);
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) total[v] += row[k] * *(const lanes *)(at + v * LANES);
    }
    memcpy(sums + column, total, sizeof total);
  }
}

static void panel_sums(const float *row, int64_t depth, const float *panel, float *sums) {
  sum_panel(row, depth, panel, sums, false);
}

static void panel_sums_far(const float *row, int64_t depth, const float *panel, float *sums) {
  sum_panel(row, depth, panel, sums, true);
}

/* Like sum_panel(), for a panel of bf16. The bits of a bf16 are the upper half of an f32's. */
static void panel_sums_bf16(const float *row, int64_t depth, const uint16_t *panel, float *sums) {
  for (int column = 0; column < PANEL; column += COLUMNS) {
    lanes total[VECTORS] = {{0}};
    const uint16_t *at = panel + column;
    for (int64_t k = 0; k < depth; ++k, at += PANEL) {
      ask_ahead(at, COLUMNS * sizeof *at);
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) {
        const wide_lanes bits = __builtin_convertvector(*(const narrow_lanes *)(at + v * LANES), wide_lanes) << 16;
        total[v] += row[k] * (lanes)bits;
      }
    }
    memcpy(sums + column, total, sizeof total);
  }
}

void clv__cpu_row_run(const clv__cpu_row *row, const clv_tensor *operands, const clv__stop *stop) {
  const float *source = operands[0].data;
  const void *weights = operands[1].data;
  const float *bias = row->bias_operand > 0 ? operands[row->bias_operand].data : NULL;
  const float *addend = row->addend_operand > 0 ? operands[row->addend_operand].data : NULL;
  float *target = operands[row->target_operand].data;
  const int64_t panels = (row->columns + PANEL - 1) / PANEL;
  const bool far = (double)panels * (double)row->panel_elements * (double)sizeof(float) > NEAR_BYTES;
  const int threads = clv__kernel_threads(panels, (double)row->depth * (double)row->columns);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t p = 0; p < panels; ++p) {
    if (clv__is_stopped(stop)) continue;
    float sums[PANEL];
    const int64_t first = p * PANEL, left = row->columns - first, count = left < PANEL ? left : PANEL;
    if (row->dtype == CLV_F16) {
      clv__cpu_panel_f16(source, row->depth, (const uint16_t *)weights + p * row->panel_elements, sums);
    } else if (row->dtype == CLV_BF16) {
      panel_sums_bf16(source, row->depth, (const uint16_t *)weights + p * row->panel_elements, sums);
    } else {
      (far ? panel_sums_far : panel_sums)(source, row->depth, (const float *)weights + p * row->panel_elements, sums);
    }
    for (int64_t j = 0; j < count && bias != NULL; ++j) sums[j] += bias[first + j];
    for (int64_t j = 0; j < count && addend != NULL; ++j) sums[j] += addend[first + j];
    for (int64_t j = 0; j < count && row->relu; ++j) sums[j] = sums[j] < 0.0f ? 0.0f : sums[j];
    memcpy(target + first, sums, (size_t)count * sizeof *sums);
  }
}
