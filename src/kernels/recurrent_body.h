/* Template of a recurrence in one type. Included by recurrent.c with
 *   NAME(x)   the function's name for this type
 *   REAL      float or double
 *   TO_ROW, FROM_ROW   clv__row_to_f32 and clv__row_from_f32, or those of f64 */

typedef REAL NAME(vector) __attribute__((vector_size(PANEL * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

/* `count` elements of `tensor` from `first` on into `to`; zeros without a tensor. */
static void NAME(fetch)(const clv_tensor *tensor, int64_t first, int64_t count, REAL *to) {
  if (tensor != NULL)
    TO_ROW(tensor->dtype, tensor->data, first, count, to);
  else
    memset(to, 0, (size_t)count * sizeof *to);
}

/* R's rows of `gates` gates from `first_gate` on, so that a panel of units is read in one run: [hidden, gates, PANEL]. */
static void NAME(pack)(const clv__recurrent *p, int64_t direction, int64_t panel, int first_gate, int gates, REAL *packed) {
  const int64_t depth = p->hidden, width = gates * PANEL;
  packed += (direction * p->panels + panel) * depth * width;
  const int64_t first = panel * PANEL, units = p->hidden - first < PANEL ? p->hidden - first : PANEL;
  for (int64_t gate = 0; gate < gates; ++gate) {
    const int64_t row = ((direction * p->gates + first_gate + gate) * p->hidden + first) * depth;
    REAL *to = packed + gate * PANEL, lines[PANEL * PACK_LINE];
    for (int64_t k = 0; k < depth; k += PACK_LINE) { /* short lines, so that what is written across them stays in the cache */
      const int64_t count = depth - k < PACK_LINE ? depth - k : PACK_LINE;
      for (int64_t unit = 0; unit < PANEL; ++unit) {
        NAME(fetch)(unit < units ? p->r : NULL, row + unit * depth + k, count, lines + unit * PACK_LINE);
      }
      NAME(clv__turn)(lines, PACK_LINE, to + k * width, width, PANEL, count);
    }
  }
}

/* States, biases and peepholes of a direction; what ONNX has as [batch, direction, …] becomes [direction, batch, …]. */
static void NAME(prepare)(const clv__recurrent *p, int64_t direction) {
  const int64_t n = p->hidden, columns = p->gates * n;
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t from = (p->batch_first ? b * p->directions + direction : direction * p->batch + b) * n;
    const int64_t to = (direction * p->batch + b) * n;
    NAME(fetch)(p->first_h, from, n, (REAL *)p->h[0] + to);
    if (p->c != NULL) NAME(fetch)(p->first_c, from, n, (REAL *)p->c + to);
  }
  if (p->peepholes != NULL) NAME(fetch)(p->peephole, direction * 3 * n, 3 * n, (REAL *)p->peepholes + direction * 3 * n);
  REAL *sums = (REAL *)p->bias_sums + direction * columns, line[LINE];
  NAME(fetch)(p->bias, direction * 2 * columns, columns, sums);
  for (int64_t k = 0; k < columns; k += LINE) { /* GRU's last one is added before the reset gate, where that comes last */
    const int64_t count = columns - k < LINE ? columns - k : LINE;
    NAME(fetch)(p->bias, (direction * 2 + 1) * columns + k, count, line);
    for (int64_t i = 0; i < count; ++i) {
      if (p->late_bias != NULL && p->resets_after && k + i >= 2 * n)
        ((REAL *)p->late_bias)[direction * n + k + i - 2 * n] = line[i];
      else
        sums[k + i] += line[i];
    }
  }
}

/* The biases, on what a row of the inputs contributes. */
static void NAME(add_biases)(const clv__recurrent *p, int64_t direction, int64_t row) {
  const int64_t columns = p->gates * p->hidden;
  const REAL *sums = (const REAL *)p->bias_sums + direction * columns;
  REAL *to = (REAL *)p->projected + (direction * p->steps * p->batch + row) * columns;
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) to[i] += sums[i];
}

/* sums[row][gate][unit] = the sum over k of h[row][k] * panel[k][gate][unit], for a number of rows and gates known here. */
static inline __attribute__((always_inline)) void NAME(sums_of)(const REAL *const *h, const int rows, const int gates,
                                                                int64_t depth, const REAL *panel, REAL *out) {
  NAME(vector) sums[ROWS][GATES];
#pragma GCC unroll 2
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) sums[r][g] = (NAME(vector)){0};
  }
  for (int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) {
      const NAME(vector) weights = *(const NAME(vector) *)(panel + (k * gates + g) * PANEL);
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r) sums[r][g] += h[r][k] * weights;
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) *(NAME(vector) *)(out + (r * GATES + g) * PANEL) = sums[r][g];
  }
}

CLV__MULTIVERSION static void NAME(sums)(const REAL *const *h, int rows, int gates, int64_t depth, const REAL *panel, REAL *out) {
  switch (gates * 2 + rows) { /* the order of each sum is the same in all */
    case 3:
      NAME(sums_of)(h, 1, 1, depth, panel, out);
      break;
    case 4:
      NAME(sums_of)(h, 2, 1, depth, panel, out);
      break;
    case 5:
      NAME(sums_of)(h, 1, 2, depth, panel, out);
      break;
    case 6:
      NAME(sums_of)(h, 2, 2, depth, panel, out);
      break;
    case 7:
      NAME(sums_of)(h, 1, 3, depth, panel, out);
      break;
    case 8:
      NAME(sums_of)(h, 2, 3, depth, panel, out);
      break;
    case 9:
      NAME(sums_of)(h, 1, 4, depth, panel, out);
      break;
    default:
      NAME(sums_of)(h, 2, 4, depth, panel, out);
      break;
  }
}

static void NAME(clip)(const clv__recurrent *p, REAL *values, int64_t count) {
  const REAL most = (REAL)p->clip;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = values[i] > most ? most : values[i];
    values[i] = values[i] < -most ? -most : values[i];
  }
}

static void NAME(apply)(const clv__gate_function *f, REAL *values, int64_t count) {
  const REAL alpha = (REAL)f->alpha, beta = (REAL)f->beta;
  if (f->kind == CLV__GATE_AFFINE) {
    for (int64_t i = 0; i < count; ++i) values[i] = alpha * values[i] + beta;
    return;
  }
  if (f->kind == CLV__GATE_SCALED_TANH) {
    for (int64_t i = 0; i < count; ++i) values[i] *= beta;
  }
  const clv__row row = {.count = count, .out = values, .in = {values}, .step = {1}, .params = f->rows.params};
  f->rows.run(&row);
  if (f->kind == CLV__GATE_SCALED_TANH) {
    for (int64_t i = 0; i < count; ++i) values[i] *= alpha;
  }
}

/* A function of a gate, after the clip. */
static void NAME(gate)(const clv__recurrent *p, int64_t direction, int which, REAL *values, int64_t count) {
  if (!isinf(p->clip)) NAME(clip)(p, values, count);
  NAME(apply)(&p->functions[direction][which], values, count);
}

/* RNN: `sums` become the new state. */
static void NAME(finish_rnn)(const clv__recurrent *p, const place *at, REAL *sums, REAL *h) {
  const REAL *x = (const REAL *)p->projected + at->projected;
  for (int64_t i = 0; i < at->count; ++i) h[i] = sums[i] + x[i];
  NAME(gate)(p, at->direction, 0, h, at->count);
}

static void NAME(finish_lstm)(const clv__recurrent *p, const place *at, REAL *sums, REAL *h) {
  const int64_t n = p->hidden, count = at->count;
  const REAL *x = (const REAL *)p->projected + at->projected;
  const REAL *weights = (const REAL *)p->peepholes + at->direction * 3 * n + at->unit;
  REAL *c = (REAL *)p->c + at->state, *in = sums, *out = sums + PANEL, *forget = sums + 2 * PANEL, *cell = sums + 3 * PANEL;
  for (int64_t i = 0; i < count; ++i) {
    in[i] += x[i] + weights[i] * c[i];
    out[i] += x[n + i];
    forget[i] += x[2 * n + i] + weights[2 * n + i] * c[i];
    cell[i] += x[3 * n + i];
  }
  NAME(gate)(p, at->direction, 0, in, count);
  if (p->couples) {
    for (int64_t i = 0; i < count; ++i) forget[i] = 1 - in[i];
  } else {
    NAME(gate)(p, at->direction, 0, forget, count);
  }
  NAME(gate)(p, at->direction, 1, cell, count);
  for (int64_t i = 0; i < count; ++i) {
    c[i] = forget[i] * c[i] + in[i] * cell[i];
    out[i] += weights[n + i] * c[i];
    h[i] = c[i];
  }
  NAME(gate)(p, at->direction, 0, out, count);
  NAME(apply)(&p->functions[at->direction][2], h, count);
  for (int64_t i = 0; i < count; ++i) h[i] *= out[i];
}

/* GRU whose reset gate is applied to a product already made: all three gates at once. */
static void NAME(finish_gru_after)(const clv__recurrent *p, const place *at, REAL *sums, REAL *h) {
  const int64_t n = p->hidden, count = at->count;
  const REAL *x = (const REAL *)p->projected + at->projected, *before = (const REAL *)p->h[at->from] + at->state;
  const REAL *late = (const REAL *)p->late_bias + at->direction * n + at->unit;
  REAL *z = sums, *r = sums + PANEL, *own = sums + 2 * PANEL;
  for (int64_t i = 0; i < count; ++i) {
    z[i] += x[i];
    r[i] += x[n + i];
  }
  NAME(gate)(p, at->direction, 0, z, count);
  NAME(gate)(p, at->direction, 0, r, count);
  for (int64_t i = 0; i < count; ++i) own[i] = x[2 * n + i] + r[i] * (own[i] + late[i]);
  NAME(gate)(p, at->direction, 1, own, count);
  for (int64_t i = 0; i < count; ++i) h[i] = (1 - z[i]) * own[i] + z[i] * before[i];
}

/* GRU whose reset gate comes before the product: first z and r * h, for all units; */
static void NAME(finish_gru_first)(const clv__recurrent *p, const place *at, REAL *sums) {
  const REAL *x = (const REAL *)p->projected + at->projected, *before = (const REAL *)p->h[at->from] + at->state;
  REAL *update = (REAL *)p->update + at->state, *reset = (REAL *)p->reset + at->state, *r = sums + PANEL;
  for (int64_t i = 0; i < at->count; ++i) {
    update[i] = sums[i] + x[i];
    r[i] += x[p->hidden + i];
  }
  NAME(gate)(p, at->direction, 0, update, at->count);
  NAME(gate)(p, at->direction, 0, r, at->count);
  for (int64_t i = 0; i < at->count; ++i) reset[i] = r[i] * before[i];
}

/* then the state. */
static void NAME(finish_gru_second)(const clv__recurrent *p, const place *at, REAL *sums, REAL *h) {
  const REAL *x = (const REAL *)p->projected + at->projected, *before = (const REAL *)p->h[at->from] + at->state;
  const REAL *update = (const REAL *)p->update + at->state;
  for (int64_t i = 0; i < at->count; ++i) sums[i] += x[2 * p->hidden + i];
  NAME(gate)(p, at->direction, 1, sums, at->count);
  for (int64_t i = 0; i < at->count; ++i) h[i] = (1 - update[i]) * sums[i] + update[i] * before[i];
}

/* One sequence's units of a panel, from their sums. A sequence that has ended keeps its state. */
static void NAME(finish)(const clv__recurrent *p, place *at, int phase, int64_t step, int64_t sequence, REAL *sums) {
  int64_t t;
  at->state = (at->direction * p->batch + sequence) * p->hidden + at->unit;
  const bool active = time_of(p, (int)at->direction, sequence, step, &t);
  const bool first = p->update != NULL && phase == 0;
  REAL *h = (REAL *)p->h[!at->from] + at->state;
  if (!active) {
    if (!first) memcpy(h, (const REAL *)p->h[at->from] + at->state, (size_t)at->count * sizeof *h);
    if (first) memset((REAL *)p->reset + at->state, 0, (size_t)at->count * sizeof *h);
    return;
  }
  at->projected = ((at->direction * p->steps + t) * p->batch + sequence) * p->gates * p->hidden + at->unit;
  if (p->kind == CLV__RNN)
    NAME(finish_rnn)(p, at, sums, h);
  else if (p->kind == CLV__LSTM)
    NAME(finish_lstm)(p, at, sums, h);
  else if (first)
    NAME(finish_gru_first)(p, at, sums);
  else if (p->update != NULL)
    NAME(finish_gru_second)(p, at, sums, h);
  else
    NAME(finish_gru_after)(p, at, sums, h);
  if (p->y != NULL && !first)
    FROM_ROW(p->dtype, p->y->data, output_at(p, (int)at->direction, sequence, t) + at->unit, at->count, h);
}

static void NAME(run_panel)(const clv__recurrent *p, int phase, int gates, int64_t step, int64_t task) {
  place at = {.direction = task / p->panels, .unit = task % p->panels * PANEL, .from = (int)(step & 1)};
  at.count = p->hidden - at.unit < PANEL ? p->hidden - at.unit : PANEL;
  const REAL *panel = (const REAL *)p->packed[phase] + task * p->hidden * gates * PANEL;
  const REAL *source = phase == 1 ? p->reset : p->h[at.from];
  for (int64_t b = 0; b < p->batch; b += ROWS) {
    const int rows = p->batch - b < ROWS ? (int)(p->batch - b) : ROWS;
    const REAL *h[ROWS];
    REAL sums[ROWS * GATES * PANEL];
    for (int r = 0; r < ROWS; ++r) h[r] = source + (at.direction * p->batch + b + (r < rows ? r : 0)) * p->hidden;
    NAME(sums)(h, rows, gates, p->hidden, panel, sums);
    for (int r = 0; r < rows; ++r) NAME(finish)(p, &at, phase, step, b + r, sums + r * GATES * PANEL);
  }
}

/* The states that remain, as ONNX orders them. */
static void NAME(write_last)(const clv__recurrent *p, const clv_tensor *to, const void *from) {
  const int64_t n = p->hidden;
  for (int64_t i = 0; to != NULL && i < p->directions * p->batch; ++i) {
    const int64_t direction = i / p->batch, b = i % p->batch;
    FROM_ROW(p->dtype, to->data, (p->batch_first ? b * p->directions + direction : i) * n, n, (const REAL *)from + i * n);
  }
}

#undef NAME
#undef REAL
#undef TO_ROW
#undef FROM_ROW
