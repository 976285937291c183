/* RNN, GRU and LSTM: runs one sequence of one direction at a time, step by step, in double. Formulas and the order of gates
 * follow the specification. */
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "operators/common/element.h"
#include "operators/run.h"

typedef enum kind { RNN, GRU, LSTM } kind;

/* ---- Activation functions ---- */

typedef double gate_fn(double x, double alpha, double beta);

#define GATE(name, expression)                              \
  static double name(double x, double alpha, double beta) { \
    (void)alpha;                                            \
    (void)beta;                                             \
    return expression;                                      \
  }
GATE(relu, x < 0 ? 0 : x)
GATE(hyperbolic, tanh(x))
GATE(sigmoid, 1 / (1 + exp(-x)))
GATE(affine, alpha *x + beta)
GATE(leaky_relu, x < 0 ? alpha * x : x)
GATE(thresholded_relu, x > alpha ? x : 0)
GATE(scaled_tanh, alpha *tanh(beta *x))
GATE(hard_sigmoid, alpha *x + beta < 0 ? 0 : alpha * x + beta > 1 ? 1 : alpha * x + beta)
GATE(elu, x < 0 ? alpha * expm1(x) : x)
GATE(softsign, x / (1 + fabs(x)))
GATE(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))

/* An activation function: its ONNX name (case-insensitive), whether it takes values from activation_alpha and activation_beta,
 * and its default values. */
typedef struct function {
  const char *name;
  gate_fn *run;
  bool takes_alpha, takes_beta;
  float alpha, beta;
} function;

static const function functions[] = {
    {"Relu", relu, false, false, 0, 0},
    {"Tanh", hyperbolic, false, false, 0, 0},
    {"Sigmoid", sigmoid, false, false, 0, 0},
    {"Affine", affine, true, true, 1, 0},
    {"LeakyRelu", leaky_relu, true, false, 0.01f, 0},
    {"ThresholdedRelu", thresholded_relu, true, false, 1, 0},
    {"ScaledTanh", scaled_tanh, true, true, 1, 1},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2f, 0.5f},
    {"Elu", elu, true, false, 1, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
};

static const function *function_find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    if (strlen(functions[i].name) == length && strncasecmp(functions[i].name, name, length) == 0) return &functions[i];
  }
  return NULL;
}

/* ---- The node ---- */

typedef struct recurrence {
  kind kind;
  int gates, directions;
  bool batch_first, resets_after, couples;
  double clip;       /* infinite: values are not clipped */
  function of[2][3]; /* the functions of each direction, with their alpha and beta */
  const clv_tensor *x, *w, *r, *bias, *lengths, *first_h, *first_c, *peephole, *y, *last_h, *last_c; /* NULL: absent */
  int64_t steps, batch, inputs, hidden;
} recurrence;

/* Reads the activation functions. Each function that uses alpha or beta takes the next value in that attribute's list. Returns
 * false, with the reason, if a function is unknown or their number is wrong. */
static bool functions_read(const clv__kernel_call *call, recurrence *p, char reason[160]) {
  static const char *const defaults[3][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  const int each = p->kind == RNN ? 1 : p->kind == GRU ? 2 : 3, count = each * p->directions;
  const clv_attribute *names = clv__attribute_find(call->attributes, "activations");
  const bool given = names != NULL && names->kind == CLV_ATTRIBUTE_STRINGS && names->count > 0;
  size_t alphas, betas;
  const float *alpha = clv__attribute_floats(call->attributes, "activation_alpha", &alphas);
  const float *beta = clv__attribute_floats(call->attributes, "activation_beta", &betas);
  if (given && names->count != (size_t)count) {
    snprintf(reason, 160, "attribute activations has %zu entries; expected %d", (size_t)names->count, count);
    return false;
  }
  for (int i = 0; i < count; ++i) {
    const char *name = given ? names->strings[i].data : defaults[p->kind][i % each];
    const size_t length = given ? names->strings[i].size_bytes : strlen(name);
    const function *found = function_find(name, length);
    function *f = &p->of[i / each][i % each];
    if (found == NULL) {
      snprintf(reason, 160, "activation %.*s not supported", length > 60 ? 60 : (int)length, name);
      return false;
    }
    *f = *found;
    if (f->takes_alpha && alphas > 0) f->alpha = *alpha++, --alphas;
    if (f->takes_beta && betas > 0) f->beta = *beta++, --betas;
  }
  return true;
}

static bool recurrence_read(const clv__kernel_call *call, recurrence *p, char reason[160]) {
  const clv_tensor *x = &call->inputs[0], *r = &call->inputs[2];
  *p = (recurrence){.x = x, .w = &call->inputs[1], .r = r};
  p->kind = strcmp(call->op, "LSTM") == 0 ? LSTM : strcmp(call->op, "GRU") == 0 ? GRU : RNN;
  p->gates = p->kind == LSTM ? 4 : p->kind == GRU ? 3 : 1;
  p->directions = clv__attribute_is(call->attributes, "direction", "bidirectional", false) ? 2 : 1;
  p->batch_first = clv__attribute_int(call->attributes, "layout", 0) != 0;
  p->resets_after = clv__attribute_int(call->attributes, "linear_before_reset", 0) != 0;
  p->couples = clv__attribute_int(call->attributes, "input_forget", 0) != 0;
  p->clip = (double)clv__attribute_float(call->attributes, "clip", INFINITY);
  p->bias = clv__call_input(call, 3);
  p->lengths = clv__call_input(call, 4);
  p->first_h = clv__call_input(call, 5);
  p->first_c = clv__call_input(call, 6);
  p->peephole = clv__call_input(call, 7);
  p->y = clv__call_output(call, 0);
  p->last_h = clv__call_output(call, 1);
  p->last_c = clv__call_output(call, 2);
  /* If the shapes are unknown, the caller only asks which functions are supported. */
  if (x->rank == 3 && r->rank == 3) {
    p->steps = x->dims[p->batch_first ? 1 : 0];
    p->batch = x->dims[p->batch_first ? 0 : 1];
    p->inputs = x->dims[2];
    p->hidden = r->dims[2];
  }
  return functions_read(call, p, reason);
}

/* ---- A step of a sequence ---- */

/* A sequence in one direction: its states, and memory for its gates. */
typedef struct sequence {
  const recurrence *p;
  int64_t direction, batch;
  double *h, *c, *before; /* [hidden]; `before`: h at the start of the step, or h after GRU's reset gate */
  double *gates;          /* [gates, hidden] */
} sequence;

static double apply(const sequence *s, int which, double value) {
  const function *f = &s->p->of[s->direction][which];
  return f->run(value, (double)f->alpha, (double)f->beta);
}

/* Clips the value, then applies the gate's function. */
static double gate(const sequence *s, int which, double value) {
  const double most = s->p->clip;
  return apply(s, which, value > most ? most : value < -most ? -most : value);
}

/* The product of the input at time t and row `row` of W. Rows are counted over all gates. */
static double of_input(const sequence *s, int64_t row, int64_t t) {
  const recurrence *p = s->p;
  const int64_t x = (p->batch_first ? s->batch * p->steps + t : t * p->batch + s->batch) * p->inputs;
  const int64_t w = (s->direction * p->gates * p->hidden + row) * p->inputs;
  double sum = 0;
  for (int64_t k = 0; k < p->inputs; ++k) sum += clv__element_load(p->w, w + k) * clv__element_load(p->x, x + k);
  return sum;
}

/* The product of a state and row `row` of R. Rows are counted over all gates. */
static double of_state(const sequence *s, int64_t row, const double *state) {
  const recurrence *p = s->p;
  const int64_t r = (s->direction * p->gates * p->hidden + row) * p->hidden;
  double sum = 0;
  for (int64_t k = 0; k < p->hidden; ++k) sum += clv__element_load(p->r, r + k) * state[k];
  return sum;
}

/* Element `row` of the bias Wb (`which` 0) or Rb (1). */
static double bias_of(const sequence *s, int64_t row, int which) {
  const recurrence *p = s->p;
  return p->bias != NULL ? clv__element_load(p->bias, ((s->direction * 2 + which) * p->gates * p->hidden) + row) : 0;
}

/* The peephole weight of unit `unit` for the input gate (`which` 0), output gate (1) or forget gate (2); 0 if the node has
 * none. */
static double peephole_of(const sequence *s, int which, int64_t unit) {
  const recurrence *p = s->p;
  return p->peephole != NULL ? clv__element_load(p->peephole, (s->direction * 3 + which) * p->hidden + unit) : 0;
}

static void step_rnn(const sequence *s) {
  for (int64_t i = 0; i < s->p->hidden; ++i) s->h[i] = gate(s, 0, s->gates[i]);
}

/* One step of GRU. The gates are z, r, h, in this order. */
static void step_gru(const sequence *s, int64_t t) {
  const recurrence *p = s->p;
  const int64_t n = p->hidden;
  double *z = s->gates, *r = s->gates + n, *own = s->gates + 2 * n;
  for (int64_t i = 0; i < n; ++i) z[i] = gate(s, 0, z[i]), r[i] = gate(s, 0, r[i]);
  if (p->resets_after) {
    for (int64_t i = 0; i < n; ++i) {
      const double late = of_state(s, 2 * n + i, s->h) + bias_of(s, 2 * n + i, 1);
      own[i] = of_input(s, 2 * n + i, t) + bias_of(s, 2 * n + i, 0) + r[i] * late;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) s->before[i] = r[i] * s->h[i];
    for (int64_t i = 0; i < n; ++i) {
      own[i] =
          of_input(s, 2 * n + i, t) + of_state(s, 2 * n + i, s->before) + bias_of(s, 2 * n + i, 0) + bias_of(s, 2 * n + i, 1);
    }
  }
  for (int64_t i = 0; i < n; ++i) s->h[i] = (1 - z[i]) * gate(s, 1, own[i]) + z[i] * s->h[i];
}

/* One step of LSTM. The gates are i, o, f, c, in this order. */
static void step_lstm(const sequence *s) {
  const recurrence *p = s->p;
  const int64_t n = p->hidden;
  for (int64_t i = 0; i < n; ++i) {
    const double *g = s->gates + i, c = s->c[i];
    const double in = gate(s, 0, g[0] + peephole_of(s, 0, i) * c);
    const double forget = p->couples ? 1 - in : gate(s, 0, g[2 * n] + peephole_of(s, 2, i) * c);
    s->c[i] = forget * c + in * gate(s, 1, g[3 * n]);
    const double out = gate(s, 0, g[n] + peephole_of(s, 1, i) * s->c[i]);
    s->h[i] = out * apply(s, 2, s->c[i]);
  }
}

static void step(const sequence *s, int64_t t) {
  const recurrence *p = s->p;
  const int64_t rows = (p->kind == GRU ? 2 : p->gates) * p->hidden; /* step_gru() computes GRU's third gate */
  for (int64_t row = 0; row < rows; ++row) {
    s->gates[row] = of_input(s, row, t) + of_state(s, row, s->h) + bias_of(s, row, 0) + bias_of(s, row, 1);
  }
  if (p->kind == RNN) step_rnn(s);
  if (p->kind == GRU) step_gru(s, t);
  if (p->kind == LSTM) step_lstm(s);
}

/* ---- Whole sequences ---- */

/* The offset of a sequence's state in [directions, batch, hidden], or with batch_first in [batch, directions, hidden]. */
static int64_t state_at(const sequence *s) {
  const recurrence *p = s->p;
  return (p->batch_first ? s->batch * p->directions + s->direction : s->direction * p->batch + s->batch) * p->hidden;
}

/* The offset of a sequence's output in [steps, directions, batch, hidden], or with batch_first in [batch, steps, directions,
 * hidden]. */
static int64_t output_at(const sequence *s, int64_t t) {
  const recurrence *p = s->p;
  return (p->batch_first ? (s->batch * p->steps + t) * p->directions + s->direction
                         : (t * p->directions + s->direction) * p->batch + s->batch) *
         p->hidden;
}

static void store(const clv_tensor *to, int64_t first, const double *values, int64_t count) {
  for (int64_t i = 0; to != NULL && i < count; ++i) clv__element_store(to, first + i, values[i]);
}

/* Outputs beyond the end of a sequence are 0. Y_h and Y_c are the states after the sequence's own last step. */
static void run_sequence(const sequence *s, bool reversed) {
  static const double zero = 0;
  const recurrence *p = s->p;
  const int64_t length = p->lengths != NULL ? clv__element_load_int(p->lengths, s->batch) : p->steps, n = p->hidden;
  for (int64_t i = 0; i < n; ++i) {
    s->h[i] = p->first_h != NULL ? clv__element_load(p->first_h, state_at(s) + i) : 0;
    s->c[i] = p->first_c != NULL ? clv__element_load(p->first_c, state_at(s) + i) : 0;
  }
  for (int64_t k = 0; k < length; ++k) {
    const int64_t t = reversed ? length - 1 - k : k;
    step(s, t);
    store(p->y, output_at(s, t), s->h, n);
  }
  for (int64_t t = length; t < p->steps; ++t) {
    for (int64_t i = 0; i < n; ++i) store(p->y, output_at(s, t) + i, &zero, 1);
  }
  store(p->last_h, state_at(s), s->h, n);
  store(p->last_c, state_at(s), s->c, n);
}

static clv_status run_recurrent(const clv__kernel_call *call) {
  const bool reversed = clv__attribute_is(call->attributes, "direction", "reverse", false);
  recurrence p;
  char reason[160];
  if (!recurrence_read(call, &p, reason)) return clv__error_set(call->error, CLV_NOT_SUPPORTED, "%s", reason);
  for (int64_t b = 0; p.lengths != NULL && b < p.batch; ++b) {
    const int64_t length = clv__element_load_int(p.lengths, b);
    if (length >= 0 && length <= p.steps) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "sequence_lens[%lld] is %d; it must be from 0 to %lld, the number of steps", (long long)b, (int)length,
                          (long long)p.steps);
  }
  if (p.hidden == 0) return CLV_OK;
  double *room = call->scratch;
  sequence s = {.p = &p, .h = room, .c = room + p.hidden, .before = room + 2 * p.hidden, .gates = room + 3 * p.hidden};
  for (s.direction = 0; s.direction < p.directions; ++s.direction) {
    for (s.batch = 0; s.batch < p.batch; ++s.batch) run_sequence(&s, reversed || s.direction == 1);
  }
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  const clv_tensor *r = &call->inputs[2];
  const int64_t hidden = r->rank == 3 ? r->dims[2] : 0;
  return hidden < 0 ? 0 : hidden > INT64_MAX / 128 ? SIZE_MAX : (size_t)hidden * (3 + 4) * sizeof(double);
}

static bool accepts(const clv__kernel_call *call, char reason[160]) {
  recurrence p;
  return recurrence_read(call, &p, reason);
}

const clv__kernel clv__kernels_recurrent[] = {
    {"", "RNN", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {"", "GRU", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {"", "LSTM", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {.op = NULL},
};
