/* Template of a recurrence in one type. recurrent.c includes it with these macros defined:
 *   NAME(x)            the function's name for this type
 *   REAL               float or double
 *   TO_ROW, FROM_ROW   clv__row_to_f32 and clv__row_from_f32, or those of f64
 *   SIGMOID, TANH      of one number; GATED_TANH(x, y): the tanh of x times the sigmoid of y
 *
 * Hidden units are computed one panel at a time, including the padding of the last panel. Rows of states and sums have room for
 * the padding. The padding is never written to an output. */

/* The arguments of a step for the units of one panel, for one or several sequences. */
typedef struct NAME(units) {
  int rows; /* number of sequences; the next three members are the distances between sequences, in elements */
  int64_t sums_step, x_step, state_step;
  REAL *sums;           /* [gates, PANEL]: the products of R with the states; may be overwritten */
  const REAL *x, *bias; /* [gates, PANEL], for all gates. x: W times the inputs; bias: the same for all sequences */
  const REAL *peephole; /* weights of the input, output and forget gates, peephole_step elements apart; NULL: none */
  int64_t peephole_step;
  const REAL *late;   /* GRU: the bias that is added before the reset gate is applied */
  const REAL *before; /* the state before the step */
  REAL *h, *c, *update, *reset;
} NAME(units);

/* Copies `count` elements of `tensor` from `first` on into `to`, followed by zeros up to `room`. Writes only zeros if there is no
 * tensor. */
static void NAME(fetch)(const clv_tensor *tensor, int64_t first, int64_t count, REAL *to, int64_t room) {
  if (tensor == NULL) count = 0;
  if (count > 0) TO_ROW(tensor->dtype, tensor->data, first, count, to);
  memset(to + count, 0, (size_t)(room - count) * sizeof *to);
}

/* Packs the rows of W or R for a panel of a gate's units, so that they are read contiguously: [depth, PANEL]. */
static void NAME(pack)(const clv__recurrent *p, const clv_tensor *tensor, int64_t depth, int64_t gate, int64_t panel, REAL *to) {
  const int64_t first = panel * PANEL, units = p->hidden - first < PANEL ? p->hidden - first : PANEL;
  const int64_t row = (gate * p->hidden + first) * depth;
  REAL lines[PANEL * PACK_LINE];
  to += (gate * p->panels + panel) * depth * PANEL;
  for (int64_t k = 0; k < depth; k += PACK_LINE) { /* short lines, so that their transpose stays in the cache */
    const int64_t count = depth - k < PACK_LINE ? depth - k : PACK_LINE;
    for (int64_t unit = 0; unit < PANEL; ++unit) {
      NAME(fetch)(unit < units ? tensor : NULL, row + unit * depth + k, count, lines + unit * PACK_LINE, count);
    }
    NAME(clv__turn)(lines, PACK_LINE, to + k * PANEL, PANEL, PANEL, count);
  }
}

/* Adds up the two biases of a panel of a gate's units. If GRU applies the reset gate after the product, the second bias of the
 * hidden gate is stored in `late_bias`, because it is added before the reset gate is applied. */
static void NAME(add_biases)(const clv__recurrent *p, int64_t direction, int64_t gate, int64_t panel) {
  const int64_t unit = panel * PANEL, count = p->hidden - unit < PANEL ? p->hidden - unit : PANEL;
  const int64_t from = (direction * 2 * p->gates + gate) * p->hidden + unit;
  REAL *sums = (REAL *)p->bias_sums + ((direction * p->panels + panel) * p->gates + gate) * PANEL, second[PANEL];
  NAME(fetch)(p->bias, from, count, sums, PANEL);
  NAME(fetch)(p->bias, from + p->gates * p->hidden, count, second, PANEL);
  if (p->late_bias != NULL && p->resets_after && gate == 2) {
    memcpy((REAL *)p->late_bias + direction * p->units + unit, second, sizeof second);
    return;
  }
  for (int i = 0; i < PANEL; ++i) sums[i] += second[i];
}

/* Prepares the states, biases and peepholes of a direction. ONNX's [batch, direction, …] becomes [direction, batch, …]. */
static void NAME(prepare)(const clv__recurrent *p, int64_t direction) {
  const int64_t n = p->hidden;
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t from = (p->batch_first ? b * p->directions + direction : direction * p->batch + b) * n;
    const int64_t to = (direction * p->batch + b) * p->units;
    NAME(fetch)(p->first_h, from, n, (REAL *)p->h[0] + to, p->units);
    if (p->c != NULL) NAME(fetch)(p->first_c, from, n, (REAL *)p->c + to, p->units);
  }
  for (int64_t i = 0; p->peepholes != NULL && i < 3; ++i) {
    const int64_t at = direction * 3 + i;
    NAME(fetch)(p->peephole, at * n, n, (REAL *)p->peepholes + at * p->units, p->units);
  }
  for (int64_t i = 0; i < p->gates * p->panels; ++i) NAME(add_biases)(p, direction, i / p->panels, i % p->panels);
}

/* ---- Steps with ONNX's default gate functions ---- */

/* A vectorized loop over the units of a panel. An array that it writes must not partly overlap one that it reads: the two are
 * either disjoint or the same. */
#define UNIT_LOOP _Pragma("omp simd") for (int i = 0; i < PANEL; ++i)

PLAIN static void NAME(plain_rnn)(const NAME(units) * u) {
  const REAL *bias = u->bias;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *sums = u->sums + row * u->sums_step, *x = u->x + row * u->x_step;
    REAL *h = u->h + row * u->state_step;
    UNIT_LOOP h[i] = TANH(sums[i] + (x[i] + bias[i]));
  }
}

PLAIN static void NAME(plain_lstm)(const NAME(units) * u) {
  const REAL *bias = u->bias;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *in = u->sums + row * u->sums_step, *out = in + PANEL, *forget = in + 2 * PANEL, *cell = in + 3 * PANEL;
    const REAL *x = u->x + row * u->x_step;
    REAL *c = u->c + row * u->state_step, *h = u->h + row * u->state_step;
    UNIT_LOOP {
      const REAL keeps = SIGMOID(forget[i] + (x[2 * PANEL + i] + bias[2 * PANEL + i])) * c[i];
      c[i] = keeps + GATED_TANH(cell[i] + (x[3 * PANEL + i] + bias[3 * PANEL + i]), in[i] + (x[i] + bias[i]));
      h[i] = GATED_TANH(c[i], out[i] + (x[PANEL + i] + bias[PANEL + i]));
    }
  }
}

PLAIN static void NAME(plain_lstm_peepholes)(const NAME(units) * u) {
  const int64_t step = u->peephole_step;
  const REAL *bias = u->bias, *weights = u->peephole;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *in = u->sums + row * u->sums_step, *out = in + PANEL, *forget = in + 2 * PANEL, *cell = in + 3 * PANEL;
    const REAL *x = u->x + row * u->x_step;
    REAL *c = u->c + row * u->state_step, *h = u->h + row * u->state_step;
    UNIT_LOOP {
      const REAL before = c[i], takes = in[i] + (x[i] + bias[i] + weights[i] * before);
      const REAL keeps = SIGMOID(forget[i] + (x[2 * PANEL + i] + bias[2 * PANEL + i] + weights[2 * step + i] * before)) * before;
      c[i] = keeps + GATED_TANH(cell[i] + (x[3 * PANEL + i] + bias[3 * PANEL + i]), takes);
      h[i] = GATED_TANH(c[i], out[i] + (x[PANEL + i] + bias[PANEL + i]) + weights[step + i] * c[i]);
    }
  }
}

PLAIN static void NAME(plain_gru)(const NAME(units) * u) {
  const REAL *bias = u->bias, *late = u->late;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *z = u->sums + row * u->sums_step, *r = z + PANEL, *own = z + 2 * PANEL, *x = u->x + row * u->x_step;
    const REAL *before = u->before + row * u->state_step;
    REAL *h = u->h + row * u->state_step;
    UNIT_LOOP {
      const REAL keeps = SIGMOID(z[i] + (x[i] + bias[i])), resets = SIGMOID(r[i] + (x[PANEL + i] + bias[PANEL + i]));
      const REAL now = TANH(x[2 * PANEL + i] + bias[2 * PANEL + i] + resets * (own[i] + late[i]));
      h[i] = (1 - keeps) * now + keeps * before[i];
    }
  }
}

PLAIN static void NAME(plain_gru_first)(const NAME(units) * u) {
  const REAL *bias = u->bias;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *z = u->sums + row * u->sums_step, *r = z + PANEL, *x = u->x + row * u->x_step;
    const REAL *before = u->before + row * u->state_step;
    REAL *update = u->update + row * u->state_step, *reset = u->reset + row * u->state_step;
    UNIT_LOOP {
      update[i] = SIGMOID(z[i] + (x[i] + bias[i]));
      reset[i] = SIGMOID(r[i] + (x[PANEL + i] + bias[PANEL + i])) * before[i];
    }
  }
}

PLAIN static void NAME(plain_gru_second)(const NAME(units) * u) {
  const REAL *bias = u->bias + 2 * PANEL;
  for (int64_t row = 0; row < u->rows; ++row) {
    const REAL *own = u->sums + row * u->sums_step, *x = u->x + row * u->x_step + 2 * PANEL;
    const REAL *before = u->before + row * u->state_step, *update = u->update + row * u->state_step;
    REAL *h = u->h + row * u->state_step;
    UNIT_LOOP h[i] = (1 - update[i]) * TANH(own[i] + (x[i] + bias[i])) + update[i] * before[i];
  }
}

/* ---- Steps with any gate functions, for one sequence at a time ---- */
static void NAME(clip)(const clv__recurrent *p, REAL *values) {
  const REAL most = (REAL)p->clip;
  for (int i = 0; i < PANEL; ++i) {
    values[i] = values[i] > most ? most : values[i];
    values[i] = values[i] < -most ? -most : values[i];
  }
}

static void NAME(apply)(const clv__gate_function *f, REAL *values) {
  const REAL alpha = (REAL)f->alpha, beta = (REAL)f->beta;
  if (f->kind == CLV__GATE_AFFINE) {
    for (int i = 0; i < PANEL; ++i) values[i] = alpha * values[i] + beta;
    return;
  }
  if (f->kind == CLV__GATE_SCALED_TANH) {
    for (int i = 0; i < PANEL; ++i) values[i] *= beta;
  }
  const clv__row row = {.count = PANEL, .out = values, .in = {values}, .step = {1}, .params = f->rows.params};
  f->rows.run(&row);
  if (f->kind == CLV__GATE_SCALED_TANH) {
    for (int i = 0; i < PANEL; ++i) values[i] *= alpha;
  }
}

/* Clips the values, and then applies a gate's function to them. */
static void NAME(gate)(const clv__recurrent *p, const clv__gate_function *f, REAL *values) {
  if (!isinf(p->clip)) NAME(clip)(p, values);
  NAME(apply)(f, values);
}

static void NAME(add_inputs)(const NAME(units) * u, int gates) {
  for (int g = 0; g < gates; ++g) {
    for (int i = 0; i < PANEL; ++i) u->sums[g * PANEL + i] += u->x[g * PANEL + i] + u->bias[g * PANEL + i];
  }
}

static void NAME(finish_rnn)(const clv__recurrent *p, const clv__gate_function *f, const NAME(units) * u) {
  NAME(add_inputs)(u, 1);
  memcpy(u->h, u->sums, PANEL * sizeof *u->h);
  NAME(gate)(p, &f[0], u->h);
}

static void NAME(finish_lstm)(const clv__recurrent *p, const clv__gate_function *f, const NAME(units) * u) {
  REAL *c = u->c, *h = u->h, *in = u->sums, *out = in + PANEL, *forget = in + 2 * PANEL, *cell = in + 3 * PANEL;
  const REAL *weights = u->peephole;
  NAME(add_inputs)(u, 4);
  for (int i = 0; weights != NULL && i < PANEL; ++i) {
    in[i] += weights[i] * c[i];
    forget[i] += weights[2 * u->peephole_step + i] * c[i];
  }
  NAME(gate)(p, &f[0], in);
  if (p->couples) {
    for (int i = 0; i < PANEL; ++i) forget[i] = 1 - in[i];
  } else {
    NAME(gate)(p, &f[0], forget);
  }
  NAME(gate)(p, &f[1], cell);
  for (int i = 0; i < PANEL; ++i) h[i] = c[i] = forget[i] * c[i] + in[i] * cell[i];
  for (int i = 0; weights != NULL && i < PANEL; ++i) out[i] += weights[u->peephole_step + i] * c[i];
  NAME(gate)(p, &f[0], out);
  NAME(apply)(&f[2], h);
  for (int i = 0; i < PANEL; ++i) h[i] *= out[i];
}

/* A step of GRU with the reset gate applied after the product: computes all three gates at once. */
static void NAME(finish_gru)(const clv__recurrent *p, const clv__gate_function *f, const NAME(units) * u) {
  REAL *z = u->sums, *r = z + PANEL, *own = z + 2 * PANEL;
  const REAL *x = u->x + 2 * PANEL, *bias = u->bias + 2 * PANEL;
  NAME(add_inputs)(u, 2);
  NAME(gate)(p, &f[0], z);
  NAME(gate)(p, &f[0], r);
  for (int i = 0; i < PANEL; ++i) own[i] = x[i] + bias[i] + r[i] * (own[i] + u->late[i]);
  NAME(gate)(p, &f[1], own);
  for (int i = 0; i < PANEL; ++i) u->h[i] = (1 - z[i]) * own[i] + z[i] * u->before[i];
}

/* The first half of a step of GRU with the reset gate applied before the product: computes z and r * h. */
static void NAME(finish_gru_first)(const clv__recurrent *p, const clv__gate_function *f, const NAME(units) * u) {
  REAL *r = u->sums + PANEL;
  NAME(add_inputs)(u, 2);
  memcpy(u->update, u->sums, PANEL * sizeof *u->sums);
  NAME(gate)(p, &f[0], u->update);
  NAME(gate)(p, &f[0], r);
  for (int i = 0; i < PANEL; ++i) u->reset[i] = r[i] * u->before[i];
}

/* The second half of a step of GRU with the reset gate applied before the product: computes the new state. u->sums holds the
 * product of R with r * h. */
static void NAME(finish_gru_second)(const clv__recurrent *p, const clv__gate_function *f, const NAME(units) * u) {
  const REAL *x = u->x + 2 * PANEL, *bias = u->bias + 2 * PANEL;
  for (int i = 0; i < PANEL; ++i) u->sums[i] += x[i] + bias[i];
  NAME(gate)(p, &f[1], u->sums);
  for (int i = 0; i < PANEL; ++i) u->h[i] = (1 - u->update[i]) * u->sums[i] + u->update[i] * u->before[i];
}

/* ---- Steps with the default functions (finish_plain) and with any functions (finish_any) ---- */
static void NAME(finish_plain)(const clv__recurrent *p, const phase *ph, const NAME(units) * u) {
  if (p->kind == CLV__RNN)
    NAME(plain_rnn)(u);
  else if (p->kind == CLV__LSTM)
    (u->peephole != NULL ? NAME(plain_lstm_peepholes) : NAME(plain_lstm))(u);
  else if (ph->is_first)
    NAME(plain_gru_first)(u);
  else if (p->update != NULL)
    NAME(plain_gru_second)(u);
  else
    NAME(plain_gru)(u);
}

static void NAME(finish_any)(const clv__recurrent *p, const phase *ph, int64_t direction, const NAME(units) * u) {
  const clv__gate_function *f = p->functions[direction];
  if (p->kind == CLV__RNN)
    NAME(finish_rnn)(p, f, u);
  else if (p->kind == CLV__LSTM)
    NAME(finish_lstm)(p, f, u);
  else if (ph->is_first)
    NAME(finish_gru_first)(p, f, u);
  else if (p->update != NULL)
    NAME(finish_gru_second)(p, f, u);
  else
    NAME(finish_gru)(p, f, u);
}

/* The products of W with the inputs, for one sequence and the units of one panel. */
static const REAL *NAME(inputs_of)(const clv__recurrent *p, const phase *ph, int64_t direction, int64_t sequence, int64_t panel) {
  const int64_t row = (direction * p->chunk + ph->in_chunk) * p->batch + sequence;
  return (const REAL *)p->projected + (row * p->panels + panel) * p->gates * PANEL;
}

/* For a sequence that has ended: copies its state unchanged or, in the first half of a step of GRU, sets r * h to 0. */
static void NAME(keep)(const clv__recurrent *p, const phase *ph, int64_t state) {
  if (ph->is_first)
    memset((REAL *)p->reset + state, 0, PANEL * sizeof(REAL));
  else
    memcpy((REAL *)p->h[!ph->from] + state, (const REAL *)p->h[ph->from] + state, PANEL * sizeof(REAL));
}

/* Computes a step for the units of a panel of `rows` sequences, given their sums. `rows` may exceed 1 only if no sequence ends
 * early and the functions are ONNX's defaults. */
static void NAME(advance)(const clv__recurrent *p, const phase *ph, int64_t direction, int64_t sequence, int rows, int64_t panel,
                          REAL *sums) {
  const int64_t unit = panel * PANEL, left = p->hidden - unit, count = left < PANEL ? left : PANEL;
  const int64_t state = (direction * p->batch + sequence) * p->units + unit;
  int64_t t;
  if (!time_of(p, (int)direction, sequence, ph->step, &t)) {
    NAME(keep)(p, ph, state);
    return;
  }
  NAME(units) u = {.rows = rows, .sums = sums, .peephole_step = p->units};
  u.sums_step = COLUMNS * PANEL, u.x_step = p->panels * p->gates * PANEL, u.state_step = p->units;
  u.before = (const REAL *)p->h[ph->from] + state;
  u.h = (REAL *)p->h[!ph->from] + state;
  if (p->update != NULL) u.update = (REAL *)p->update + state, u.reset = (REAL *)p->reset + state;
  u.x = NAME(inputs_of)(p, ph, direction, sequence, panel);
  u.bias = (const REAL *)p->bias_sums + (direction * p->panels + panel) * p->gates * PANEL;
  if (p->late_bias != NULL) u.late = (const REAL *)p->late_bias + direction * p->units + unit;
  if (p->peepholes != NULL) u.peephole = (const REAL *)p->peepholes + direction * 3 * p->units + unit;
  if (p->c != NULL) u.c = (REAL *)p->c + state;
  if (p->is_plain)
    NAME(finish_plain)(p, ph, &u);
  else
    NAME(finish_any)(p, ph, direction, &u);
  if (p->y == NULL || ph->is_first) return;
  for (int64_t i = 0; i < rows; ++i) {
    FROM_ROW(p->dtype, p->y->data, output_at(p, (int)direction, sequence + i, t) + unit, count, u.h + i * p->units);
  }
}

/* Runs `count` panels of a direction from `first` on, for all sequences. */
static void NAME(run_panels)(const clv__recurrent *p, const phase *ph, int64_t direction, int64_t first, int64_t count) {
  const REAL *states = (const REAL *)(ph->of_reset ? p->reset : p->h[ph->from]) + direction * p->batch * p->units;
  const int64_t tiles = (p->batch + p->tile.rows - 1) / p->tile.rows;
  const bool is_alike = p->is_plain && p->lengths == NULL;
  REAL sums[CLV__RECURRENT_ROWS * COLUMNS * PANEL] __attribute__((aligned(64)));
  clv__recurrent_product product = {
      .column_count = (int)count * ph->gates, .depth = p->hidden, .sums = sums, .sums_step = COLUMNS * PANEL};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t g = 0; g < ph->gates; ++g) {
      const int64_t gate = direction * p->gates + ph->first_gate + g;
      product.columns[i * ph->gates + g] = (const REAL *)p->packed_r + (gate * p->panels + first + i) * p->hidden * PANEL;
    }
  }
  for (int64_t i = 0, begin = 0, end; i < tiles; ++i, begin = end) { /* tile sizes differ by at most one */
    end = i + 1 < tiles ? (i + 1) * p->batch / tiles : p->batch;
    product.row_count = (int)(end - begin);
    for (int64_t b = begin; b < end; ++b) {
      product.rows[b - begin] = states + b * p->units;
      const REAL *x = NAME(inputs_of)(p, ph, direction, b, first); /* prefetched during the product */
      for (int64_t k = 0; k < count * p->gates * PANEL; k += LINE_BYTES / (int64_t)sizeof *x) __builtin_prefetch(x + k);
    }
    p->tile.run(&product);
    const int rows = is_alike ? product.row_count : 1;
    for (int64_t b = begin; b < end; b += rows) {
      for (int64_t j = 0; j < count; ++j) {
        NAME(advance)(p, ph, direction, b, rows, first + j, sums + ((b - begin) * COLUMNS + j * ph->gates) * PANEL);
      }
    }
  }
}

/* Multiplies the inputs of steps [step, step + count) by some columns of W of a direction. A column is one panel of a gate. */
static void NAME(project)(const clv__recurrent *p, int64_t step, int64_t count, int64_t direction, int64_t first,
                          int64_t columns) {
  const int64_t rows = count * p->batch, tiles = (rows + p->tile.rows - 1) / p->tile.rows, all = p->panels * p->gates;
  clv__recurrent_product product = {.column_count = (int)columns, .depth = p->inputs, .sums_step = all * PANEL};
  for (int64_t j = 0; j < columns; ++j) {
    const int64_t panel = (first + j) / p->gates, gate = direction * p->gates + (first + j) % p->gates;
    product.columns[j] = (const REAL *)p->packed_w + (gate * p->panels + panel) * p->inputs * PANEL;
  }
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t begin = i * rows / tiles, end = (i + 1) * rows / tiles;
    product.row_count = (int)(end - begin);
    product.sums = (REAL *)p->projected + ((direction * p->chunk * p->batch + begin) * all + first) * PANEL;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sequence = row % p->batch;
      int64_t t;
      if (!time_of(p, (int)direction, sequence, step + row / p->batch, &t)) t = 0; /* the result of this row is never read */
      const int64_t at = p->batch_first ? sequence * p->steps + t : t * p->batch + sequence;
      product.rows[row - begin] = (const REAL *)p->x_real + at * p->inputs;
    }
    p->tile.run(&product);
  }
}

/* Writes the final states to `to`, unless it is NULL, with the axes in ONNX's order. */
static void NAME(write_last)(const clv__recurrent *p, const clv_tensor *to, const void *from) {
  const int64_t n = p->hidden;
  for (int64_t i = 0; to != NULL && i < p->directions * p->batch; ++i) {
    const int64_t direction = i / p->batch, b = i % p->batch;
    FROM_ROW(p->dtype, to->data, (p->batch_first ? b * p->directions + direction : i) * n, n, (const REAL *)from + i * p->units);
  }
}

#undef UNIT_LOOP
#undef NAME
#undef REAL
#undef TO_ROW
#undef FROM_ROW
#undef SIGMOID
#undef TANH
#undef GATED_TANH
