/* The step that multiplies one row with a packed constant matrix. lower/row_product.c makes the step. */
#ifndef CLEAVE_BACKENDS_CPU_KERNELS_ROW_H
#define CLEAVE_BACKENDS_CPU_KERNELS_ROW_H

#include "backends/cpu/passes/variant.h"

#define CLV__CPU_ROW_PANEL 64 /* columns per panel */

/* sums[j] = the product of the row with column j of an f16 panel. */
void clv__cpu_panel_f16(const float *row, int64_t depth, const uint16_t *panel, float *sums);

struct clv__cpu_row {
  int64_t depth, columns, panel_elements;
  /* Indices of operands; 0: none. Operand 0 is the row, operand 1 the matrix. */
  uint32_t bias_operand, addend_operand, target_operand;
  bool relu;
  clv_dtype dtype; /* of the matrix: f32, bf16 or f16 */
};

void clv__cpu_row_run(const clv__cpu_row *row, const clv_tensor *operands, const clv__stop *stop);

#endif
