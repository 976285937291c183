/* Definitions shared by the kernels of RNN, GRU and LSTM: the recurrence read from a call, its memory, the gate functions, and
 * the product computed in each step. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_RECURRENT_RECURRENT_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_RECURRENT_RECURRENT_H

#include "backends/common/kernels/elementwise.h"
#include "operators/run.h"

enum {
  CLV__RECURRENT_PANEL = 16,  /* hidden units computed together */
  CLV__RECURRENT_COLUMNS = 4, /* panels of R or W multiplied together */
  CLV__RECURRENT_ROWS = 7     /* maximum number of sequences computed together */
};

typedef enum clv__recurrent_kind { CLV__RNN, CLV__GRU, CLV__LSTM } clv__recurrent_kind;

/* A gate function: one of the elementwise operators, or one that ONNX defines only for recurrences. */
typedef struct clv__gate_function {
  enum { CLV__GATE_ROWS, CLV__GATE_AFFINE, CLV__GATE_SCALED_TANH } kind;
  clv__elementwise rows; /* the row function of the elementwise operator; for CLV__GATE_SCALED_TANH, that of Tanh */
  clv__elementwise_params params;
  double alpha, beta;
} clv__gate_function;

/* sums[r * sums_step + j * PANEL + unit] = the sum over k of rows[r][k] * columns[j][k][unit], added in the order of k whatever
 * the other sizes are. All arrays are f32, or all are f64. */
typedef struct clv__recurrent_product {
  const void *rows[CLV__RECURRENT_ROWS], *columns[CLV__RECURRENT_COLUMNS];
  int row_count, column_count;
  int64_t depth, sums_step;
  void *sums;
} clv__recurrent_product;

typedef struct clv__recurrent_tile {
  void (*run)(const clv__recurrent_product *product);
  int rows; /* maximum number of rows that run() accepts */
} clv__recurrent_tile;

clv__recurrent_tile clv__recurrent_tile_of(bool is_double); /* the tile for this CPU (sums.c) */

typedef struct clv__recurrent {
  clv__recurrent_kind kind;
  clv_dtype dtype;
  bool wide; /* compute in f64 */
  bool batch_first, resets_after, couples;
  bool is_prepared; /* the caller has packed W and R */
  bool is_plain;    /* ONNX's default functions, no clip, no input_forget */
  double clip;      /* infinite: no clip */
  int64_t steps, batch, inputs, hidden;
  int64_t panels, units; /* panels of hidden units, and the number of units including the last panel's padding */
  int64_t chunk;         /* steps whose inputs are multiplied by W in one product */
  int directions, gates;
  bool reversed[2];
  clv__recurrent_tile tile;
  const clv_tensor *x, *w, *r, *bias, *lengths, *first_h, *first_c, *peephole; /* NULL: absent */
  const clv_tensor *y, *last_h, *last_c;
  clv__gate_function functions[2][3];
  /* Arrays of f64 if `wide`, else f32. All are in the scratch, except X if it needs no conversion, and W and R if the caller has
   * packed them. */
  const void *x_real;        /* X: [steps, batch, inputs], or [batch, steps, inputs] if batch_first */
  void *wide_x;              /* X converted; NULL if it needs no conversion */
  void *packed_w, *packed_r; /* [directions, gates, panels, inputs or hidden, PANEL] */
  void *projected;           /* X W^T of a chunk: [directions, chunk, batch, panels, gates, PANEL] */
  void *h[2];                /* [directions, batch, units]: the states before and after a step */
  void *c;                   /* LSTM: [directions, batch, units], cell states */
  void *update;              /* GRU: [directions, batch, units], z */
  void *reset;               /* GRU: [directions, batch, units], r * h */
  void *peepholes;           /* LSTM with peepholes: [directions, 3, units] */
  void *late_bias;           /* GRU: [directions, units], biases added before the reset gate is applied */
  void *bias_sums;           /* [directions, panels, gates, PANEL] */
  size_t scratch_bytes;
} clv__recurrent;

/* RNN, GRU and LSTM in f32, with W and R packed by the caller as [directions * gates, panels, depth, PANEL]. The last panel of
 * each gate is padded with zeros. */
extern const clv__kernel clv__kernel_recurrent_prepared;

/* Reads everything except the functions, and divides `scratch` into the arrays of `out`. If `scratch` is NULL, the addresses in
 * `out` are invalid; scratch_bytes is then the size to allocate. If a shape is unknown, all sizes stay 0. Returns false if a
 * size overflows. */
bool clv__recurrent_read(const clv__kernel_call *call, bool is_prepared, void *scratch, clv__recurrent *out);

/* Reads the functions with their alphas and betas. Returns false and sets `reason` if a function is not supported or the number
 * of functions is wrong. */
bool clv__recurrent_functions(const clv__kernel_call *call, clv__recurrent *out, char reason[160]);

#endif
