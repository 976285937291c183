/* What the kernels of RNN, GRU and LSTM share: the recurrence read from a call, its memory, and the functions of its gates. */
#ifndef CLEAVE_KERNELS_RECURRENT_H
#define CLEAVE_KERNELS_RECURRENT_H

#include "kernels/elementwise.h"
#include "kernels/kernels.h"

enum {
  CLV__RECURRENT_PANEL = 16, /* hidden units that are computed together */
  CLV__RECURRENT_GATES = 4,
  CLV__RECURRENT_ROWS = 2 /* sequences that are computed together */
};

typedef enum clv__recurrent_kind { CLV__RNN, CLV__GRU, CLV__LSTM } clv__recurrent_kind;

/* A function of a gate: one of the elementwise operators, or one that ONNX has here alone. */
typedef struct clv__gate_function {
  enum { CLV__GATE_ROWS, CLV__GATE_AFFINE, CLV__GATE_SCALED_TANH } kind;
  clv__elementwise rows; /* Tanh's for SCALED_TANH */
  clv__elementwise_params params;
  double alpha, beta;
} clv__gate_function;

typedef struct clv__recurrent {
  clv__recurrent_kind kind;
  clv_dtype dtype;
  bool wide; /* computed in f64 */
  bool batch_first, resets_after, couples;
  double clip; /* infinite: none */
  int64_t steps, batch, inputs, hidden, panels;
  int directions, gates;
  bool reversed[2];
  const clv_tensor *x, *w, *r, *bias, *lengths, *first_h, *first_c, *peephole; /* NULL: absent */
  const clv_tensor *y, *last_h, *last_c;
  clv__gate_function functions[2][3];
  /* Scratch, of `wide` elements or f32; a direction after the other. */
  void *projected; /* [steps, batch, gates, hidden]: what the inputs contribute, biases included */
  void *packed[2]; /* R for each phase: [panels, hidden, gates of the phase, PANEL] */
  void *h[2];      /* [batch, hidden]: before the step, after it */
  void *c;         /* LSTM: [batch, hidden] */
  void *update;    /* GRU: [batch, hidden], z */
  void *reset;     /* GRU: [batch, hidden], r * h */
  void *peepholes; /* LSTM: [3, hidden] */
  void *late_bias; /* GRU: [hidden], added before the reset gate */
  void *bias_sums; /* [gates, hidden] */
  void *product;   /* scratch of the matrix product */
  size_t scratch_bytes;
} clv__recurrent;

/* Reads everything but the functions, and lays `scratch` out (NULL: only scratch_bytes counts). False: beyond any memory. */
bool clv__recurrent_read(const clv__kernel_call *call, void *scratch, clv__recurrent *out);

/* Functions with their alphas and betas. On failure `reason` says why. */
bool clv__recurrent_functions(const clv__kernel_call *call, clv__recurrent *out, char reason[160]);

#endif
