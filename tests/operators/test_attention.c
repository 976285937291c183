/* Tests Attention, RotaryEmbedding, LinearAttention, CausalConvWithState, TensorScatter and SwiGLU against their definitions in
 * f64, with random shapes, dtypes, masks, caches and attributes. Similar calls with invalid shapes, dtypes or values must be
 * rejected or at least not crash. */
#include "node_case.h"

static size_t dims_count(const int64_t *dims, int32_t rank) {
  size_t count = 1;
  for (int32_t i = 0; i < rank; ++i) count *= (size_t)dims[i];
  return count;
}

/* ---- Attention ---- */

typedef struct sizes {
  bool inside; /* Q, K and V have three dims, the last of which contains all heads */
  int64_t batch, heads, group, queries, past, keys, size, width;
  int32_t mask_rank;
  int64_t mask_dims[4];
  bool is_causal, valid;
  int64_t left, right, mode;
  float scale, cap;
} sizes;

static sizes random_sizes(uint64_t *seed, int32_t opset) {
  sizes s = {.inside = random_in(seed, 0, 2) == 0,
             .batch = random_in(seed, 1, 2),
             .heads = random_in(seed, 1, 3),
             .group = random_in(seed, 1, 3),
             .queries = random_in(seed, 0, 3) != 0 ? random_in(seed, 1, 6) : random_in(seed, 1, 70),
             .keys = random_in(seed, 0, 3) != 0 ? random_in(seed, 1, 12) : random_in(seed, 1, 600),
             .size = random_in(seed, 1, 40),
             .width = random_in(seed, 1, 40),
             .mask_rank = -1,
             .left = -1,
             .right = -1};
  s.valid = opset >= 24 && random_in(seed, 0, 2) == 0;
  s.past = !s.valid && random_in(seed, 0, 1) != 0 ? random_in(seed, 0, 9) : -1;
  s.is_causal = random_in(seed, 0, 2) == 0;
  s.mode = random_in(seed, 0, 3);
  s.scale = random_in(seed, 0, 1) != 0 ? 0.4f : 0;
  s.cap = random_in(seed, 0, 2) == 0 ? 1.5f : 0;
  if (opset >= 25 && random_in(seed, 0, 1) != 0) s.left = random_in(seed, -1, 5), s.right = random_in(seed, -1, 5);
  if (random_in(seed, 0, 1) == 0) return s;
  const int64_t total = s.keys + (s.past > 0 ? s.past : 0), whole[4] = {s.batch, s.heads * s.group, s.queries, total};
  s.mask_rank = (int32_t)random_in(seed, 1, 4);
  for (int32_t i = 0; i < s.mask_rank; ++i) {
    const int64_t dim = whole[4 - s.mask_rank + i];
    s.mask_dims[i] = random_in(seed, 0, 2) == 0 ? 1 : dim;
    if (i == s.mask_rank - 1 && opset >= 24) s.mask_dims[i] = random_in(seed, 1, dim);
  }
  return s;
}

static void input_of(node_case *c, uint64_t *seed, clv_dtype dtype, const sizes *s, int64_t heads, int64_t length, int64_t size) {
  const int64_t four[4] = {s->batch, heads, length, size}, three[3] = {s->batch, length, heads * size};
  case_input(c, seed, dtype, s->inside ? 3 : 4, s->inside ? three : four);
}

static node_case *attention_case(uint64_t *seed, sizes *s) {
  const int32_t opset = (int32_t)random_in(seed, 23, 25);
  const clv_dtype dtype = random_float_dtype(seed);
  node_case *c = case_begin("Attention", opset);
  *s = random_sizes(seed, opset);
  input_of(c, seed, dtype, s, s->heads * s->group, s->queries, s->size);
  input_of(c, seed, dtype, s, s->heads, s->keys, s->size);
  input_of(c, seed, dtype, s, s->heads, s->keys, s->width);
  const bool truth = random_in(seed, 0, 1) != 0;
  clv_tensor *mask = case_input(c, seed,
                                s->mask_rank < 0 ? CLV_DTYPE_NONE
                                : truth          ? CLV_U8
                                                 : dtype,
                                s->mask_rank < 0 ? 0 : s->mask_rank, s->mask_dims);
  for (size_t i = 0; mask->data != NULL && i < count_of(mask); ++i) {
    const bool hidden = random_in(seed, 0, 2) == 0;
    if (truth)
      ((uint8_t *)mask->data)[i] = !hidden;
    else if (hidden)
      element_set(mask, i, -INFINITY);
  }
  if (mask->data != NULL && truth) mask->dtype = CLV_BOOL;
  const int64_t past[4] = {s->batch, s->heads, s->past, s->size}, past_values[4] = {s->batch, s->heads, s->past, s->width};
  case_input(c, seed, s->past >= 0 ? dtype : CLV_DTYPE_NONE, s->past >= 0 ? 4 : 0, past);
  case_input(c, seed, s->past >= 0 ? dtype : CLV_DTYPE_NONE, s->past >= 0 ? 4 : 0, past_values);
  clv_tensor *valid = case_input(c, seed, s->valid ? CLV_I64 : CLV_DTYPE_NONE, s->valid ? 1 : 0, &s->batch);
  for (int64_t b = 0; s->valid && b < s->batch; ++b) {
    const int64_t most = s->keys;
    ((int64_t *)valid->data)[b] = random_in(seed, 0, most);
  }
  if (s->inside) case_int(c, "q_num_heads", s->heads * s->group), case_int(c, "kv_num_heads", s->heads);
  if (s->is_causal) case_int(c, "is_causal", 1);
  if (s->left >= 0) case_int(c, "left_window_size", s->left);
  if (s->right >= 0) case_int(c, "right_window_size", s->right);
  if (s->scale > 0) case_float(c, "scale", s->scale);
  if (s->cap > 0) case_float(c, "softcap", s->cap);
  case_int(c, "qk_matmul_output_mode", s->mode);
  static const uint32_t counts[] = {1, 1, 3, 4};
  c->output_count = counts[random_in(seed, 0, 3)];
  return c;
}

/* Returns element `i` of token `at` of a head of input `input`. If the node has a past, token 0 is the first token of the
 * past. */
static double attention_value(const node_case *c, const sizes *s, uint32_t input, int64_t b, int64_t h, int64_t at, int64_t i) {
  const clv_tensor *t = &c->inputs[input];
  const int64_t size = input == 2 ? s->width : s->size;
  const int64_t heads = input == 0 ? s->heads * s->group : s->heads, length = input == 0 ? s->queries : s->keys;
  if (input > 0 && s->past > 0) {
    if (at < s->past) return clv__tensor_get(&c->inputs[input + 3], (size_t)(((b * heads + h) * s->past + at) * size + i));
    at -= s->past;
  }
  const int64_t four = ((b * heads + h) * length + at) * size + i, three = ((b * length + at) * heads + h) * size + i;
  return clv__tensor_get(t, (size_t)(s->inside ? three : four));
}

/* Returns the number that the masks add to a score; -inf if the key is masked. */
static double attention_bias(const node_case *c, const sizes *s, int64_t b, int64_t h, int64_t query, int64_t key) {
  const int64_t valid = s->valid ? ((const int64_t *)c->inputs[6].data)[b] : INT64_MAX;
  const int64_t place = query + (s->valid ? valid - s->queries : s->past > 0 ? s->past : 0);
  bool hidden = key >= valid || (s->is_causal && key > place) || (s->left >= 0 && key < place - s->left) ||
                (s->right >= 0 && key > place + s->right);
  double number = 0;
  if (s->mask_rank > 0) {
    const int64_t index[4] = {b, h, query, key};
    int64_t at = 0;
    for (int32_t i = 0; i < s->mask_rank; ++i) {
      const bool last = i == s->mask_rank - 1;
      const int64_t dim = s->mask_dims[i];
      int64_t k = index[4 - s->mask_rank + i];
      if (last && c->opset >= 24 && k >= dim) return -INFINITY;
      if (dim == 1) k = 0;
      at = at * dim + k;
    }
    number = clv__tensor_get(&c->inputs[3], (size_t)at);
    if (c->inputs[3].dtype == CLV_BOOL) hidden = hidden || number == 0, number = 0;
  }
  return hidden ? -INFINITY : number;
}

static void expect_attention(const node_case *c, const sizes *s) {
  const int64_t total = s->keys + (s->past > 0 ? s->past : 0), heads = s->heads * s->group;
  double *y = calloc((size_t)(s->batch * heads * s->queries * s->width), sizeof *y);
  double *shown = calloc((size_t)(s->batch * heads * s->queries * total), sizeof *shown);
  double *scores = calloc((size_t)total, sizeof *scores);
  const double scale = s->scale > 0 ? (double)s->scale : 1 / sqrt((double)s->size);
  for (int64_t row = 0; row < s->batch * heads * s->queries; ++row) {
    const int64_t b = row / s->queries / heads, h = row / s->queries % heads, query = row % s->queries;
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < total; ++k) {
      double score = 0;
      for (int64_t i = 0; i < s->size; ++i) {
        score += attention_value(c, s, 0, b, h, query, i) * attention_value(c, s, 1, b, h / s->group, k, i) * scale;
      }
      if (s->mode == 0) shown[row * total + k] = score;
      if (s->cap > 0) score = (double)s->cap * tanh(score / (double)s->cap);
      if (s->mode == 1) shown[row * total + k] = score;
      scores[k] = score + attention_bias(c, s, b, h, query, k);
      if (s->mode == 2) shown[row * total + k] = scores[k];
      most = fmax(most, scores[k]);
    }
    for (int64_t k = 0; k < total; ++k) sum += scores[k] = most == -INFINITY ? 0 : exp(scores[k] - most);
    for (int64_t k = 0; k < total && sum > 0; ++k) scores[k] /= sum;
    for (int64_t k = 0; k < total && s->mode == 3; ++k) shown[row * total + k] = scores[k];
    for (int64_t i = 0; i < s->width; ++i) {
      double value = 0;
      for (int64_t k = 0; k < total; ++k) value += scores[k] * attention_value(c, s, 2, b, h / s->group, k, i);
      y[s->inside ? ((b * s->queries + query) * heads + h) * s->width + i : row * s->width + i] = value;
    }
  }
  case_expect(c, 0, y);
  if (c->output_count > 3) case_expect(c, 3, shown);
  free(y);
  free(shown);
  free(scores);
}

static void expect_cache(const node_case *c, const sizes *s, uint32_t output) {
  const int64_t total = s->keys + (s->past > 0 ? s->past : 0), size = output == 1 ? s->size : s->width;
  const int64_t dims[4] = {s->batch, s->heads, total, size};
  assert_memory_equal(c->outputs[output].dims, dims, sizeof dims);
  double *expected = calloc(dims_count(dims, 4), sizeof *expected);
  for (int64_t e = 0; e < (int64_t)dims_count(dims, 4); ++e) {
    const int64_t at = e / size % total, pair = e / size / total;
    expected[e] = attention_value(c, s, output, pair / s->heads, pair % s->heads, at, e % size);
  }
  case_expect(c, output, expected);
  free(expected);
}

static void test_attention(void **state) {
  (void)state;
  uint64_t seed = 61;
  for (int i = 0; i < 600; ++i) {
    sizes s;
    node_case *c = attention_case(&seed, &s);
    case_run(c);
    expect_attention(c, &s);
    for (uint32_t output = 1; output < 3 && output < c->output_count; ++output) expect_cache(c, &s, output);
    case_end(c);
  }
}

/* NaNs in keys and values that are masked for every query must not change the result, because the unused end of a cache may
 * contain anything. */
static void test_attention_hidden_garbage(void **state) {
  (void)state;
  uint64_t seed = 62;
  for (int i = 0; i < 20; ++i) {
    const int64_t queries = i % 2 == 0 ? 2 : 20, keys = 30, used = 17;
    double *clean = NULL;
    node_case *c = case_begin("Attention", 24);
    case_input(c, &seed, CLV_F32, 4, (int64_t[]){1, 2, queries, 8});
    for (int k = 0; k < 2; ++k) case_input(c, &seed, CLV_F32, 4, (int64_t[]){1, 2, keys, 8});
    for (int k = 0; k < 3; ++k) case_input(c, &seed, CLV_DTYPE_NONE, 0, NULL);
    *(int64_t *)case_input(c, &seed, CLV_I64, 1, (int64_t[]){1})->data = used;
    for (int round = 0; round < 2; ++round) {
      case_run(c);
      if (clean != NULL) case_expect(c, 0, clean);
      if (clean == NULL) clean = values_of(&c->outputs[0]);
      for (uint32_t k = 1; k < 3; ++k) {
        for (int64_t e = 0; e < 2 * keys * 8; ++e) {
          if (e / 8 % keys >= used) element_set(&c->inputs[k], (size_t)e, NAN);
        }
      }
    }
    free(clean);
    case_end(c);
  }
}

/* ---- RotaryEmbedding ---- */

static void test_rotary(void **state) {
  (void)state;
  uint64_t seed = 63;
  for (int round = 0; round < 120; ++round) {
    const bool inside = round % 3 == 0, by_position = random_in(&seed, 0, 1) != 0, interleaved = random_in(&seed, 0, 1) != 0;
    const int64_t batch = random_in(&seed, 1, 3), heads = random_in(&seed, 1, 4), length = random_in(&seed, 1, 9);
    const int64_t half = random_in(&seed, 1, 9), size = 2 * half + (round % 2 == 0 ? random_in(&seed, 0, 5) : 0), places = 7;
    static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16};
    const clv_dtype dtype = dtypes[round % 3];
    node_case *c = case_begin("RotaryEmbedding", 23);
    const int64_t four[4] = {batch, heads, length, size}, three[3] = {batch, length, heads * size};
    clv_tensor *x = case_input(c, &seed, dtype, inside ? 3 : 4, inside ? three : four);
    for (int i = 0; i < 2; ++i) {
      case_input(c, &seed, dtype, by_position ? 2 : 3,
                 by_position ? (int64_t[]){places, half} : (int64_t[]){batch, length, half});
    }
    if (by_position) {
      clv_tensor *ids = case_input(c, &seed, CLV_I64, 2, (int64_t[]){batch, length});
      for (int64_t i = 0; i < batch * length; ++i) ((int64_t *)ids->data)[i] = random_in(&seed, -places, places - 1);
    }
    if (inside) case_int(c, "num_heads", heads);
    if (interleaved) case_int(c, "interleaved", 1);
    if (size != 2 * half) case_int(c, "rotary_embedding_dim", 2 * half);
    case_run(c);
    double *y = values_of(x);
    for (int64_t row = 0; row < batch * heads * length; ++row) {
      const int64_t token = inside ? row / heads : row / (heads * length) * length + row % length;
      int64_t at = by_position ? ((const int64_t *)c->inputs[3].data)[token] : token;
      if (at < 0) at += places;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = row * size + (interleaved ? 2 * i : i), b = row * size + (interleaved ? 2 * i + 1 : i + half);
        const double cosine = clv__tensor_get(&c->inputs[1], (size_t)(at * half + i));
        const double sine = clv__tensor_get(&c->inputs[2], (size_t)(at * half + i));
        const double left = clv__tensor_get(x, (size_t)a), right = clv__tensor_get(x, (size_t)b);
        y[a] = cosine * left - sine * right;
        y[b] = sine * left + cosine * right;
      }
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

/* ---- LinearAttention ---- */

typedef struct linear {
  int64_t batch, length, heads, group, size, width, decay, beta; /* decay, beta: number of columns; 0: the input is absent */
  bool past;
} linear;

static node_case *linear_case(uint64_t *seed, linear *l) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
  const int64_t rule = random_in(seed, 0, 3);
  node_case *c = case_begin("LinearAttention", 27);
  *l = (linear){.batch = random_in(seed, 1, 2),
                .length = random_in(seed, 1, 6),
                .heads = random_in(seed, 1, 3),
                .group = random_in(seed, 1, 2),
                .size = random_in(seed, 2, 9),
                .width = random_in(seed, 1, 150),
                .past = random_in(seed, 0, 1) != 0};
  if (rule % 2 == 1) l->decay = l->heads * (random_in(seed, 0, 1) != 0 ? l->size : 1);
  if (rule >= 2) l->beta = random_in(seed, 0, 1) != 0 ? l->heads : 1;
  case_int(c, "q_num_heads", l->heads * l->group);
  case_int(c, "kv_num_heads", l->heads);
  case_string(c, "update_rule", rules[rule]);
  case_input(c, seed, CLV_F32, 3, (int64_t[]){l->batch, l->length, l->heads * l->group * l->size});
  case_input(c, seed, CLV_F32, 3, (int64_t[]){l->batch, l->length, l->heads * l->size});
  case_input(c, seed, CLV_F32, 3, (int64_t[]){l->batch, l->length, l->heads * l->width});
  case_input(c, seed, l->past ? CLV_F32 : CLV_DTYPE_NONE, l->past ? 4 : 0, (int64_t[]){l->batch, l->heads, l->size, l->width});
  case_input(c, seed, l->decay ? CLV_F32 : CLV_DTYPE_NONE, l->decay ? 3 : 0, (int64_t[]){l->batch, l->length, l->decay});
  case_input(c, seed, l->beta ? CLV_F32 : CLV_DTYPE_NONE, l->beta ? 3 : 0, (int64_t[]){l->batch, l->length, l->beta});
  c->output_count = 2;
  return c;
}

/* Computes one token of one head by the specification's formulas. `s` is the state. */
static void linear_token(const node_case *c, const linear *l, int64_t token, int64_t head, double *s, double *y) {
  const clv_tensor *in = c->inputs;
  const int64_t row = token * l->heads + head;
  for (int64_t m = 0; m < l->width; ++m) {
    double seen = 0, value = clv__tensor_get(&in[2], (size_t)(row * l->width + m));
    for (int64_t d = 0; d < l->size; ++d) {
      double *cell = &s[d * l->width + m];
      const bool by_key = l->decay > l->heads;
      if (l->decay) *cell *= exp(clv__tensor_get(&in[4], (size_t)(by_key ? row * l->size + d : row)));
      seen += *cell * clv__tensor_get(&in[1], (size_t)(row * l->size + d));
    }
    if (l->beta) value = clv__tensor_get(&in[5], (size_t)(l->beta > 1 ? row : token)) * (value - seen);
    if (l->beta == 1 && l->heads == 1) assert_int_equal(row, token);
    for (int64_t d = 0; d < l->size; ++d) s[d * l->width + m] += clv__tensor_get(&in[1], (size_t)(row * l->size + d)) * value;
  }
  for (int64_t g = 0; g < l->group; ++g) {
    const int64_t reader = (token * l->heads + head) * l->group + g;
    for (int64_t m = 0; m < l->width; ++m) {
      double sum = 0;
      for (int64_t d = 0; d < l->size; ++d) sum += clv__tensor_get(&in[0], (size_t)(reader * l->size + d)) * s[d * l->width + m];
      y[reader * l->width + m] = sum / sqrt((double)l->size);
    }
  }
}

static void test_linear_attention(void **state) {
  (void)state;
  uint64_t seed = 64;
  for (int i = 0; i < 80; ++i) {
    linear l;
    node_case *c = linear_case(&seed, &l);
    case_run(c);
    const size_t cells = (size_t)(l.size * l.width);
    double *y = calloc(count_of(&c->outputs[0]), sizeof *y), *s = calloc(count_of(&c->outputs[1]), sizeof *s);
    for (size_t e = 0; l.past && e < count_of(&c->outputs[1]); ++e) s[e] = clv__tensor_get(&c->inputs[3], e);
    for (int64_t pair = 0; pair < l.batch * l.heads; ++pair) {
      for (int64_t t = 0; t < l.length; ++t) {
        linear_token(c, &l, pair / l.heads * l.length + t, pair % l.heads, s + (size_t)pair * cells, y);
      }
    }
    case_expect(c, 0, y);
    case_expect(c, 1, s);
    free(y);
    free(s);
    case_end(c);
  }
}

/* ---- CausalConvWithState, TensorScatter, SwiGLU ---- */

static void test_causal_convolution(void **state) {
  (void)state;
  uint64_t seed = 65;
  for (int round = 0; round < 60; ++round) {
    const int64_t batch = random_in(&seed, 1, 3), channels = random_in(&seed, 1, 5), length = random_in(&seed, 0, 9);
    const int64_t taps = random_in(&seed, 1, 5), kept = taps - 1;
    const bool past = random_in(&seed, 0, 1) != 0, bias = random_in(&seed, 0, 1) != 0, silu = round % 3 == 0;
    node_case *c = case_begin("CausalConvWithState", 27);
    clv_tensor *x = case_input(c, &seed, CLV_F32, 3, (int64_t[]){batch, channels, length});
    clv_tensor *w = case_input(c, &seed, CLV_F32, 3, (int64_t[]){channels, 1, taps});
    clv_tensor *b = case_input(c, &seed, bias ? CLV_F32 : CLV_DTYPE_NONE, bias ? 1 : 0, &channels);
    clv_tensor *p = case_input(c, &seed, past ? CLV_F32 : CLV_DTYPE_NONE, past ? 3 : 0, (int64_t[]){batch, channels, kept});
    if (silu) case_string(c, "activation", "silu");
    c->output_count = 2;
    case_run(c);
    double *y = calloc(count_of(x) + 1, sizeof *y), *rest = calloc(count_of(&c->outputs[1]) + 1, sizeof *rest), line[16];
    for (int64_t row = 0; row < batch * channels; ++row) {
      for (int64_t i = 0; i < kept; ++i) line[i] = past ? clv__tensor_get(p, (size_t)(row * kept + i)) : 0;
      for (int64_t i = 0; i < length; ++i) line[kept + i] = clv__tensor_get(x, (size_t)(row * length + i));
      for (int64_t i = 0; i < length; ++i) {
        double sum = bias ? clv__tensor_get(b, (size_t)(row % channels)) : 0;
        for (int64_t k = 0; k < taps; ++k) sum += clv__tensor_get(w, (size_t)(row % channels * taps + k)) * line[i + k];
        y[row * length + i] = silu ? sum / (1 + exp(-sum)) : sum;
      }
      for (int64_t i = 0; i < kept; ++i) rest[row * kept + i] = line[length + i];
    }
    case_expect(c, 0, y);
    case_expect(c, 1, rest);
    free(y);
    free(rest);
    case_end(c);
  }
}

static void test_scatter(void **state) {
  (void)state;
  uint64_t seed = 66;
  static const clv_dtype dtypes[] = {CLV_F32, CLV_I8, CLV_F16, CLV_I64};
  for (int round = 0; round < 100; ++round) {
    int64_t dims[4], shorter[4];
    const int32_t rank = (int32_t)random_in(&seed, 2, 4), axis = (int32_t)random_in(&seed, 1, rank - 1);
    const bool circular = random_in(&seed, 0, 1) != 0, given = random_in(&seed, 0, 3) != 0;
    for (int32_t i = 0; i < rank; ++i) shorter[i] = dims[i] = random_in(&seed, 1, 5);
    shorter[axis] = random_in(&seed, 0, dims[axis]);
    node_case *c = case_begin("TensorScatter", 24);
    clv_tensor *cache = case_input(c, &seed, dtypes[round % 4], rank, dims);
    clv_tensor *update = case_input(c, &seed, dtypes[round % 4], rank, shorter);
    clv_tensor *at = case_input(c, &seed, given ? CLV_I64 : CLV_DTYPE_NONE, given ? 1 : 0, dims);
    for (int64_t b = 0; given && b < dims[0]; ++b) {
      ((int64_t *)at->data)[b] = circular ? random_in(&seed, -9, 9) : random_in(&seed, 0, dims[axis] - shorter[axis]);
    }
    case_int(c, "axis", round % 2 == 0 ? axis : axis - rank);
    if (circular) case_string(c, "mode", "circular");
    case_run(c);
    double *y = values_of(cache);
    const size_t inner = dims_count(dims + axis + 1, rank - axis - 1), outer = dims_count(dims, axis);
    for (size_t e = 0; e < outer * (size_t)shorter[axis] * inner; ++e) {
      const size_t row = e / inner / (size_t)shorter[axis];
      int64_t place = (int64_t)(e / inner % (size_t)shorter[axis]);
      if (given) place += ((const int64_t *)at->data)[row / (outer / (size_t)dims[0])];
      place = (place % dims[axis] + dims[axis]) % dims[axis];
      y[(row * (size_t)dims[axis] + (size_t)place) * inner + e % inner] = clv__tensor_get(update, e);
    }
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

static void test_swiglu(void **state) {
  (void)state;
  uint64_t seed = 67;
  for (int round = 0; round < 40; ++round) {
    const int64_t dims[2] = {random_in(&seed, 1, 9), random_in(&seed, 0, 300)};
    const float alpha = round % 2 == 0 ? 1.0f : 1.702f;
    node_case *c = case_begin("SwiGLU", 28);
    const clv_dtype dtype = random_float_dtype(&seed);
    clv_tensor *a = case_input(c, &seed, dtype, 2, dims), *b = case_input(c, &seed, dtype, 2, dims);
    if (round % 2 != 0) case_float(c, "alpha", alpha);
    case_run(c);
    double *y = values_of(a);
    for (size_t e = 0; e < count_of(a); ++e) y[e] = y[e] / (1 + exp(-(double)alpha * y[e])) * clv__tensor_get(b, e);
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

/* ---- Invalid calls, which must be rejected or at least not crash ---- */

/* Runs inference and, if that succeeds, the kernel. A rejection must have an error message. Returns whether both succeeded;
 * false, too, if an output would exceed 1 MiB. Results are not checked. */
static bool answers(node_case *c) {
  if (case_infer(c) != CLV_OK) {
    assert_true(c->error.message[0] != '\0');
    return false;
  }
  for (uint32_t i = 0; i < c->output_count; ++i) {
    size_t bytes;
    if (!clv__tensor_size_bytes(&c->outputs[i], &bytes) || bytes > 1 << 20) return false;
    char *memory = malloc(bytes + 2 * CASE_GUARD);
    c->outputs[i].data = memory + CASE_GUARD;
  }
  const clv__kernel_call call = {.op = c->op,
                                 .opset = c->opset,
                                 .attributes = {c->attributes, (uint32_t)c->attribute_count},
                                 .inputs = c->inputs,
                                 .input_count = c->input_count,
                                 .outputs = c->outputs,
                                 .output_count = c->output_count,
                                 .error = &c->error};
  const clv__kernel *kernel = find_kernel("", c->op);
  char reason[160] = "";
  const bool runs = clv__kernel_accepts(kernel, &call, reason);
  const clv_status status = runs ? clv__kernel_run(kernel, &call, clv__allocator_default()) : CLV_NOT_SUPPORTED;
  if (!runs) assert_true(reason[0] != '\0');
  if (runs && status != CLV_OK) assert_true(c->error.message[0] != '\0');
  case_outputs_free(c);
  return status == CLV_OK;
}

/* Changes one dim, dtype, rank, attribute or index of a valid call, at random. If an input's size changes, it gets new data of
 * that size. */
static void spoil(node_case *c, uint64_t *seed) {
  static const int64_t numbers[] = {-1, 0, 1, 2, 3, 7, INT64_MAX, INT64_MIN, 1ll << 40};
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_I64, CLV_BOOL};
  clv_tensor *t = &c->inputs[random_in(seed, 0, (int64_t)c->input_count - 1)];
  const int64_t kind = random_in(seed, 0, 4), number = numbers[random_in(seed, 0, 8)];
  if (kind == 0 && c->attribute_count > 0) {
    c->ints[random_in(seed, 0, (int64_t)c->attribute_count - 1)][0] = number;
    return;
  }
  if (kind == 1 && t->dtype == CLV_I64 && t->data != NULL && count_of(t) > 0) {
    ((int64_t *)t->data)[0] = number;
    return;
  }
  if (t->dtype == CLV_DTYPE_NONE) return;
  if (kind == 2) t->dtype = dtypes[random_in(seed, 0, 4)];
  if (kind == 3) t->rank = (int32_t)random_in(seed, 0, 5);
  for (int32_t i = 0; i < t->rank; ++i) {
    if (t->dims[i] < 0 || t->dims[i] > 999) t->dims[i] = 1;
  }
  if (kind == 4 && t->rank > 0) t->dims[random_in(seed, 0, t->rank - 1)] = random_in(seed, 0, 4);
  free(t->data);
  t->data = calloc(count_of(t) + 1, clv_dtype_size_bytes(t->dtype));
}

static void test_hostile(void **state) {
  (void)state;
  uint64_t seed = 68;
  int ran = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    sizes s;
    linear l;
    const int kind = i % 6;
    node_case *c = kind == 0 ? attention_case(&seed, &s) : kind == 1 ? linear_case(&seed, &l) : NULL;
    if (kind == 2) {
      c = case_begin("RotaryEmbedding", 23);
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){2, 3, 8});
      for (int k = 0; k < 2; ++k) case_input(c, &seed, CLV_F32, 2, (int64_t[]){5, 2});
      memset(case_input(c, &seed, CLV_I64, 2, (int64_t[]){2, 3})->data, 0, 6 * sizeof(int64_t));
      case_int(c, "num_heads", 2);
      case_int(c, "rotary_embedding_dim", 4);
    } else if (kind == 3) {
      c = case_begin("CausalConvWithState", 27);
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){2, 3, 4});
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){3, 1, 3});
      case_input(c, &seed, CLV_F32, 1, (int64_t[]){3});
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){2, 3, 2});
      c->output_count = 2;
    } else if (kind == 4) {
      c = case_begin("TensorScatter", 24);
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){2, 5, 3});
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){2, 2, 3});
      memset(case_input(c, &seed, CLV_I64, 1, (int64_t[]){2})->data, 0, 2 * sizeof(int64_t));
      case_int(c, "axis", 1);
    } else if (kind == 5) {
      c = case_begin("SwiGLU", 28);
      for (int k = 0; k < 2; ++k) case_input(c, &seed, CLV_F32, 2, (int64_t[]){3, 4});
    }
    for (int64_t k = random_in(&seed, 1, 2); k > 0; --k) spoil(c, &seed);
    if (answers(c))
      ran++;
    else
      refused++;
    case_end(c);
  }
  assert_in_range(ran, 300, 2900); /* of 3,000 calls, enough must be accepted and enough rejected */
  assert_in_range(refused, 300, 2900);
}

/* Tests tensors without elements, whose other dims and number of heads may be so large that their product overflows. */
static void test_huge_dims_of_nothing(void **state) {
  (void)state;
  uint64_t seed = 69;
  const int64_t huge = 1ll << 40;
  for (int kind = 0; kind < 4; ++kind) {
    node_case *c = case_begin(kind < 2 ? "Attention" : kind == 2 ? "LinearAttention" : "CausalConvWithState", 27);
    if (kind == 0) {
      for (int k = 0; k < 3; ++k) case_input(c, &seed, CLV_F32, 4, (int64_t[]){0, huge, huge, huge});
    } else if (kind < 3) {
      for (int k = 0; k < 3; ++k) case_input(c, &seed, CLV_F32, 3, (int64_t[]){3, 2, 0});
      case_int(c, "q_num_heads", INT64_MAX);
      case_int(c, "kv_num_heads", INT64_MAX);
    } else {
      case_input(c, &seed, CLV_F32, 3, (int64_t[]){0, huge, huge});
      memset(&c->inputs[c->input_count++], 0, sizeof *c->inputs);
      c->inputs[1] = clv__tensor_make(CLV_F32, 3, (int64_t[]){huge, 1, 2}, NULL); /* its data is never read */
    }
    if (kind == 2) case_string(c, "update_rule", "linear");
    c->output_count = kind < 2 ? 3 : 2;
    assert_true(answers(c));
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_attention),
      cmocka_unit_test(test_attention_hidden_garbage),
      cmocka_unit_test(test_rotary),
      cmocka_unit_test(test_linear_attention),
      cmocka_unit_test(test_causal_convolution),
      cmocka_unit_test(test_scatter),
      cmocka_unit_test(test_swiglu),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_huge_dims_of_nothing),
  };
  return RUN_BOTH_KERNELS(tests);
}
