/* Elementwise operators with one to three operands that broadcast.
 *
 * Defines: OPERANDS (how many), X, Y, Z (their dtypes), T (the result's dtype), and EXPRESSION. EXPRESSION uses x, y, z, the
 * constants P and Q, `real` (the type in which x is computed) and N(0.5) (a constant of that type). RANK is 0 if the operands
 * advance by the constants X_STEP, Y_STEP and Z_STEP (1 or 0) per element. Otherwise it is the number of dimensions, and each
 * operand has a step per dimension. With ROWS, RANK excludes the last dimension, along which the operands advance by X_STEP,
 * Y_STEP and Z_STEP. */
typedef REAL(X) real;
#define N(constant) NUMBER(X, constant)

#ifdef ROWS
/* A work item computes `each` elements of a row of `width` elements. */
KERNEL(rows)
(GLOBAL const STORAGE(X) * px
#if OPERANDS > 1
 ,
 GLOBAL const STORAGE(Y) * py
#endif
#if OPERANDS > 2
 ,
 GLOBAL const STORAGE(Z) * pz
#endif
 ,
 GLOBAL STORAGE(T) * out, index_t count, index_t width, index_t each, dims_t dims, dims_t x_steps
#if OPERANDS > 1
 ,
 dims_t y_steps
#endif
#if OPERANDS > 2
 ,
 dims_t z_steps
#endif
     POST_PARAMETERS) {
  const index_t begin = GLOBAL_ID(0) * each, row = GLOBAL_ID(1);
  const index_t x_first = clv_place(row, RANK, dims, x_steps);
#if OPERANDS > 1
  const index_t y_first = clv_place(row, RANK, dims, y_steps);
#endif
#if OPERANDS > 2
  const index_t z_first = clv_place(row, RANK, dims, z_steps);
#endif
  if (begin >= width || row >= count) return;
  const index_t end = begin + each < width ? begin + each : width;
  for (index_t i = begin; i < end; ++i) {
    const index_t at = row * width + i;
    const REAL(X) x = LOAD(X, px, x_first + i * X_STEP);
#if OPERANDS > 1
    const REAL(Y) y = LOAD(Y, py, y_first + i * Y_STEP);
#endif
#if OPERANDS > 2
    const REAL(Z) z = LOAD(Z, pz, z_first + i * Z_STEP);
#endif
    const REAL(T) value = (REAL(T))(EXPRESSION);
    STORE(T, out, at, POST(value, at));
  }
}

#else
KERNEL(elementwise)
(GLOBAL const STORAGE(X) * px
#if OPERANDS > 1
 ,
 GLOBAL const STORAGE(Y) * py
#endif
#if OPERANDS > 2
 ,
 GLOBAL const STORAGE(Z) * pz
#endif
 ,
 GLOBAL STORAGE(T) * out, index_t count
#if RANK > 0
 ,
 dims_t dims, dims_t x_steps
#if OPERANDS > 1
 ,
 dims_t y_steps
#endif
#if OPERANDS > 2
 ,
 dims_t z_steps
#endif
#endif
     POST_PARAMETERS) {
  const index_t at = GLOBAL_ID(0);
  if (at >= count) return;
#if RANK > 0
  index_t rest = at, x_at = 0, y_at = 0, z_at = 0;
  for (int d = RANK - 1; d >= 0; --d) {
    const index_t i = d > 0 ? rest % dims.at[d] : rest;
    rest = d > 0 ? rest / dims.at[d] : 0;
    x_at += i * x_steps.at[d];
#if OPERANDS > 1
    y_at += i * y_steps.at[d];
#endif
#if OPERANDS > 2
    z_at += i * z_steps.at[d];
#endif
  }
#else
  const index_t x_at = at * X_STEP;
#if OPERANDS > 1
  const index_t y_at = at * Y_STEP;
#endif
#if OPERANDS > 2
  const index_t z_at = at * Z_STEP;
#endif
#endif
  const REAL(X) x = LOAD(X, px, x_at);
#if OPERANDS > 1
  const REAL(Y) y = LOAD(Y, py, y_at);
#endif
#if OPERANDS > 2
  const REAL(Z) z = LOAD(Z, pz, z_at);
#endif
  const REAL(T) value = (REAL(T))(EXPRESSION);
  STORE(T, out, at, POST(value, at));
}
#endif
