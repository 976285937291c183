/* The step that multiplies one row with a packed constant matrix (lower_row.c). */
#ifndef CLEAVE_BACKENDS_CPU_ROW_H
#define CLEAVE_BACKENDS_CPU_ROW_H

#include "lower.h"

struct clv__cpu_row {
  int64_t depth, columns, panel_elements;
  uint32_t bias_operand, addend_operand, target_operand; /* 0: none */
  bool relu, is_bf16;                                    /* the matrix */
};

/* Takes products of one row with a constant matrix of 64 columns or more. */
clv_status clv__cpu_lower_row(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error);
void clv__cpu_row_run(const clv__cpu_row *row, const clv_tensor *operands);

#endif
