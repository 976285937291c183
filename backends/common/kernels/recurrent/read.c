/* See recurrent.h. */
#include "backends/common/kernels/recurrent/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/memory.h"
#include "operators/common/requantize.h"

enum { CHUNK_BYTES = 256 << 10, LEAST_ROWS = 28, LEAST_STEPS = 8 };

/* The gate functions: their names in ONNX (upper and lower case are not distinguished, as in other runtimes), and the default
 * values of alpha and beta. */
static const struct {
  const char *name;
  int values; /* bit 0: has an alpha, from activation_alpha; bit 1: has a beta, from activation_beta */
  float alpha, beta;
} known[] = {
    {"Relu", 0, 0, 0},          {"Tanh", 0, 0, 0},
    {"Sigmoid", 0, 0, 0},       {"Affine", 3, 1, 0},
    {"LeakyRelu", 1, 0.01f, 0}, {"ThresholdedRelu", 1, 1, 0},
    {"ScaledTanh", 3, 1, 1},    {"HardSigmoid", 3, 0.2f, 0.5f},
    {"Elu", 1, 1, 0},           {"Softsign", 0, 0, 0},
    {"Softplus", 0, 0, 0},
};

static bool function_make(const char *name, size_t length, clv_dtype dtype, const float *alpha, const float *beta,
                          clv__gate_function *out) {
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strlen(known[i].name) != length || strncasecmp(known[i].name, name, length) != 0) continue;
    const float values[2] = {alpha != NULL ? *alpha : known[i].alpha, beta != NULL ? *beta : known[i].beta};
    const clv_attribute attributes[] = {{.name = "alpha", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &values[0]},
                                        {.name = "beta", .kind = CLV_ATTRIBUTE_FLOATS, .count = 1, .floats = &values[1]}};
    const char *op = known[i].name;
    *out = (clv__gate_function){.kind = CLV__GATE_ROWS, .alpha = (double)values[0], .beta = (double)values[1]};
    if (strcmp(op, "Affine") == 0) {
      out->kind = CLV__GATE_AFFINE;
      return true;
    }
    if (strcmp(op, "ScaledTanh") == 0) {
      out->kind = CLV__GATE_SCALED_TANH;
      op = "Tanh";
    }
    clv_tensor in = clv__tensor_make(dtype, 0, NULL, NULL), result = in;
    const clv__kernel_call call = {.op = op,
                                   .opset = 22,
                                   .attributes = {attributes, known[i].values == 0   ? 0
                                                              : known[i].values == 1 ? 1
                                                                                     : 2},
                                   .inputs = &in,
                                   .input_count = 1,
                                   .outputs = &result,
                                   .output_count = 1};
    return clv__elementwise_find_unary(&call, &out->rows, &out->params);
  }
  return false;
}

static int values_of(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strlen(known[i].name) == length && strncasecmp(known[i].name, name, length) == 0) return known[i].values;
  }
  return 0;
}

bool clv__recurrent_functions(const clv__kernel_call *call, clv__recurrent *out, char reason[160]) {
  static const char *const defaults[3][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  const int each = out->kind == CLV__RNN ? 1 : out->kind == CLV__GRU ? 2 : 3;
  const clv_attribute *names = clv__attribute_find(call->attributes, "activations");
  const bool given = names != NULL && names->kind == CLV_ATTRIBUTE_STRINGS && names->count > 0;
  size_t alphas, betas, next_alpha = 0, next_beta = 0;
  const float *alpha = clv__attribute_floats(call->attributes, "activation_alpha", &alphas);
  const float *beta = clv__attribute_floats(call->attributes, "activation_beta", &betas);
  if (given && names->count != (size_t)(each * out->directions)) {
    snprintf(reason, 160, "attribute activations has %zu entries; expected %d", (size_t)names->count, each * out->directions);
    return false;
  }
  out->is_plain = isinf(out->clip) && !out->couples;
  for (int i = 0; i < each * out->directions; ++i) {
    const char *name = given ? names->strings[i].data : defaults[out->kind][i % each];
    const size_t length = given ? names->strings[i].size_bytes : strlen(name);
    const int takes = values_of(name, length); /* a function that has an alpha or beta consumes the next number of its list */
    const float *own_alpha = (takes & 1) != 0 && next_alpha < alphas ? &alpha[next_alpha++] : NULL;
    const float *own_beta = (takes & 2) != 0 && next_beta < betas ? &beta[next_beta++] : NULL;
    if (!function_make(name, length, out->wide ? CLV_F64 : CLV_F32, own_alpha, own_beta, &out->functions[i / each][i % each])) {
      snprintf(reason, 160, "activation %.*s not supported", length > 60 ? 60 : (int)length, name);
      return false;
    }
    const char *usual = defaults[out->kind][i % each];
    out->is_plain = out->is_plain && length == strlen(usual) && strncasecmp(usual, name, length) == 0;
  }
  return true;
}

/* Reserves a * b * c * d elements in the scratch, f64 if `wide`, else f32, and sets *place to their address. */
static bool reserve(clv__recurrent *r, char *scratch, size_t a, size_t b, size_t c, size_t d, void **place) {
  size_t bytes = r->wide ? sizeof(double) : sizeof(float);
  if (!clv__multiply(bytes, a, &bytes) || !clv__multiply(bytes, b, &bytes) || !clv__multiply(bytes, c, &bytes) ||
      !clv__multiply(bytes, d, &bytes) || bytes > SIZE_MAX / 2) {
    return false;
  }
  *place = scratch != NULL ? scratch + r->scratch_bytes : NULL;
  return clv__add(r->scratch_bytes, clv__align_up(bytes, 64), &r->scratch_bytes);
}

static bool lay_out(clv__recurrent *r, char *scratch) {
  const size_t directions = (size_t)r->directions, batch = (size_t)r->batch, units = (size_t)r->units;
  const size_t inputs = (size_t)r->inputs, gates = (size_t)r->gates, states = directions * batch;
  bool fits = reserve(r, scratch, states, units, 1, 1, &r->h[0]) && reserve(r, scratch, states, units, 1, 1, &r->h[1]) &&
              reserve(r, scratch, directions, gates, units, 1, &r->bias_sums) &&
              reserve(r, scratch, states, (size_t)r->chunk, gates, units, &r->projected);
  if (fits && r->kind == CLV__GRU && !r->resets_after) {
    fits = reserve(r, scratch, states, units, 1, 1, &r->update) && reserve(r, scratch, states, units, 1, 1, &r->reset);
  }
  if (fits && r->kind == CLV__GRU) fits = reserve(r, scratch, directions, units, 1, 1, &r->late_bias);
  if (fits && r->kind == CLV__LSTM) fits = reserve(r, scratch, states, units, 1, 1, &r->c);
  if (fits && r->peephole != NULL) fits = reserve(r, scratch, directions, 3, units, 1, &r->peepholes);
  if (fits && r->dtype != (r->wide ? CLV_F64 : CLV_F32)) {
    fits = reserve(r, scratch, (size_t)r->steps, batch, inputs, 1, &r->wide_x);
    r->x_real = r->wide_x;
  }
  if (!fits || r->is_prepared) return fits;
  return reserve(r, scratch, directions, gates, units, inputs, &r->packed_w) &&
         reserve(r, scratch, directions, gates, units, (size_t)r->hidden, &r->packed_r);
}

/* The number of steps whose inputs are multiplied by W at once. The products should stay in the second-level cache until they are
 * read. There must be enough rows for an efficient product. There must also be enough steps per chunk that reading W once per
 * chunk costs little compared with reading R in every step. */
static int64_t chunk_of(const clv__recurrent *r) {
  const int64_t row = r->directions * r->gates * r->units * (int64_t)sizeof(float);
  const int64_t by_cache = row > 0 ? CHUNK_BYTES / row : LEAST_ROWS, rows = by_cache > LEAST_ROWS ? by_cache : LEAST_ROWS;
  const int64_t by_rows = r->batch > 0 ? rows / r->batch : 0, steps = by_rows > LEAST_STEPS ? by_rows : LEAST_STEPS;
  return steps < r->steps ? steps : r->steps;
}

static const clv_tensor *output_of(const clv__kernel_call *call, uint32_t index) {
  return call->output_count > index && call->outputs[index].dtype != CLV_DTYPE_NONE ? &call->outputs[index] : NULL;
}

/* Whether an array for all steps has a size far below SIZE_MAX. An extent of 0 counts as 1, because the products of the other
 * extents are computed, too, and must not overflow. */
static bool is_addressable(const clv__recurrent *r) {
  const int64_t extents[] = {r->steps, r->batch, r->hidden, (int64_t)2 * CLV__RECURRENT_COLUMNS * CLV__RECURRENT_PANEL};
  size_t total = sizeof(double);
  for (size_t i = 0; i < sizeof extents / sizeof *extents; ++i) {
    if (!clv__multiply(total, (size_t)(extents[i] > 0 ? extents[i] : 1), &total)) return false;
  }
  return total <= SIZE_MAX / 4;
}

bool clv__recurrent_read(const clv__kernel_call *call, bool is_prepared, void *scratch, clv__recurrent *out) {
  const clv_tensor *x = &call->inputs[0];
  clv__recurrent *r = out;
  *r = (clv__recurrent){.dtype = x->dtype, .wide = x->dtype == CLV_F64, .x = x, .w = &call->inputs[1], .r = &call->inputs[2]};
  r->is_prepared = is_prepared;
  r->kind = strcmp(call->op, "LSTM") == 0 ? CLV__LSTM : strcmp(call->op, "GRU") == 0 ? CLV__GRU : CLV__RNN;
  r->gates = r->kind == CLV__LSTM ? 4 : r->kind == CLV__GRU ? 3 : 1;
  r->directions = clv__attribute_is(call->attributes, "direction", "bidirectional", false) ? 2 : 1;
  r->reversed[0] = clv__attribute_is(call->attributes, "direction", "reverse", false);
  r->reversed[1] = true;
  r->batch_first = clv__attribute_int(call->attributes, "layout", 0) != 0;
  r->resets_after = clv__attribute_int(call->attributes, "linear_before_reset", 0) != 0;
  r->couples = clv__attribute_int(call->attributes, "input_forget", 0) != 0;
  r->clip = (double)clv__attribute_float(call->attributes, "clip", INFINITY);
  r->bias = clv__call_input(call, 3);
  r->lengths = clv__call_input(call, 4);
  r->first_h = clv__call_input(call, 5);
  r->first_c = clv__call_input(call, 6);
  r->peephole = r->kind == CLV__LSTM ? clv__call_input(call, 7) : NULL;
  r->y = output_of(call, 0);
  r->last_h = output_of(call, 1);
  r->last_c = output_of(call, 2);
  if (x->rank != 3 || r->r->rank != (is_prepared ? 4 : 3)) return true; /* unknown shape: the caller needs only the functions */
  r->steps = x->dims[r->batch_first];
  r->batch = x->dims[!r->batch_first];
  r->inputs = x->dims[2];
  r->hidden = r->r->dims[2];
  if (r->steps < 0 || r->batch < 0 || r->inputs < 0 || r->hidden < 0) return true;
  if (!is_addressable(r)) return false;
  r->panels = (r->hidden + CLV__RECURRENT_PANEL - 1) / CLV__RECURRENT_PANEL;
  r->units = r->panels * CLV__RECURRENT_PANEL;
  r->chunk = chunk_of(r);
  r->x_real = x->data;
  if (is_prepared) r->packed_w = r->w->data, r->packed_r = r->r->data;
  return lay_out(r, scratch);
}
