/* Builds the decoders: see decoder.h. */
#include "decoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models.h"
#include "support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define DEPTH (DECODER_WIDTH / DECODER_HEADS)

typedef struct decoder {
  test_graph g;
  bool grows;
  int layer;
  char outputs[128];
} decoder;

static void constant(decoder *d, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims, const void *data) {
  clv_error error = {0};
  clv_value_id id;
  clv_tensor type = clv__tensor_make(dtype, rank, dims, NULL);
  size_t size_bytes;
  assert_true(clv__tensor_size_bytes(&type, &size_bytes));
  type.data = clv__arena_allocate_data(clv__builder_arena(d->g.builder), size_bytes);
  assert_non_null(type.data);
  memcpy(type.data, data, size_bytes);
  assert_ok(clv__builder_value(d->g.builder, name, &id, &error), error);
  clv__builder_type(d->g.builder, id, &type);
}

/* Adds the scale, about 1, and the bias, about 0, of a layer normalisation, with small random differences. */
static void norm_weights(decoder *d, const char *scale, const char *bias) {
  float ones[DECODER_WIDTH], shifts[DECODER_WIDTH];
  for (int i = 0; i < DECODER_WIDTH; ++i) {
    ones[i] = 1 + 0.1f * test_random_float(&d->g.seed);
    shifts[i] = 0.1f * test_random_float(&d->g.seed);
  }
  constant(d, scale, CLV_F32, 1, DIMS(DECODER_WIDTH), ones);
  constant(d, bias, CLV_F32, 1, DIMS(DECODER_WIDTH), shifts);
}

/* Adds a node of the current layer. Its output is called `output` with the layer's number appended, such as "q1". In `inputs`,
 * '#' is replaced by the layer's number. */
static void node(decoder *d, const char *op, const char *inputs, const char *output) {
  char in[128], out[32];
  snprintf(out, sizeof out, "%s%d", output, d->layer);
  size_t used = 0;
  for (const char *at = inputs; *at != '\0' && used + 4 < sizeof in; ++at) {
    if (*at == '#')
      used += (size_t)snprintf(in + used, sizeof in - used, "%d", d->layer);
    else
      in[used++] = *at;
  }
  in[used] = '\0';
  bool heads = strcmp(op, "Transpose") == 0, last = strcmp(op, "TransposeLast") == 0, softmax = strcmp(op, "Softmax") == 0,
       joins = strcmp(op, "Concat") == 0;
  char name[40];
  snprintf(name, sizeof name, "/%s", out);
  if (heads || last)
    test_graph_node_ints(&d->g, name, "Transpose", in, out, "perm", true, 4, last ? DIMS(0, 1, 3, 2) : DIMS(0, 2, 1, 3));
  else if (softmax || joins)
    test_graph_node_ints(&d->g, name, op, in, out, "axis", false, 1, softmax ? DIMS(-1) : DIMS(2));
  else
    test_graph_node(&d->g, name, op, in, out);
}

static void linear(decoder *d, const char *input, const char *output, int64_t from, int64_t to) {
  char weight[32], bias[32], both[80], product[32];
  float zeros[4 * DECODER_WIDTH];
  for (int64_t i = 0; i < to; ++i) zeros[i] = 0.02f * test_random_float(&d->g.seed);
  snprintf(weight, sizeof weight, "w_%s%d", output, d->layer);
  snprintf(bias, sizeof bias, "b_%s%d", output, d->layer);
  snprintf(product, sizeof product, "p_%s", output);
  test_graph_weight(&d->g, weight, 2, DIMS(from, to));
  constant(d, bias, CLV_F32, 1, DIMS(to), zeros);
  snprintf(both, sizeof both, "%s#,%s", input, weight);
  node(d, "MatMul", both, product);
  snprintf(both, sizeof both, "%s#,%s", product, bias);
  node(d, "Add", both, output);
}

/* Adds a key or value cache of the current layer: the input `name`, and the output "new_" + `name`, both with the layer's
 * number appended. The output is the input with new rows: appended at the end if the caches grow, otherwise written at the
 * positions. `rows` is the name, without the layer's number, of the value with the new rows. */
static void cache(decoder *d, const char *name, const char *rows) {
  char input[16], output[16], list[64];
  snprintf(input, sizeof input, "%s%d", name, d->layer);
  snprintf(output, sizeof output, "new_%s", name);
  if (d->grows) {
    int64_t length = test_graph_symbol(&d->g, "T");
    test_graph_input(&d->g, input, CLV_F32, 4, DIMS(1, DECODER_HEADS, length, DEPTH));
    snprintf(list, sizeof list, "%s,%s#", input, rows);
    node(d, "Concat", list, output);
  } else {
    test_graph_input(&d->g, input, CLV_F32, 2, DIMS(DECODER_LONGEST, DECODER_WIDTH));
    snprintf(list, sizeof list, "%s,places,%s#", input, rows);
    node(d, "ScatterND", list, output);
  }
  snprintf(d->outputs + strlen(d->outputs), sizeof d->outputs - strlen(d->outputs), ",%s%d", output, d->layer);
}

/* Adds y = x + attention(norm(x)). */
static void attention(decoder *d) {
  char scale[16], bias[16], list[64];
  snprintf(scale, sizeof scale, "g_a%d", d->layer);
  snprintf(bias, sizeof bias, "h_a%d", d->layer);
  norm_weights(d, scale, bias);
  snprintf(list, sizeof list, "x#,%s,%s", scale, bias);
  node(d, "LayerNormalization", list, "a");
  linear(d, "a", "q", DECODER_WIDTH, DECODER_WIDTH);
  linear(d, "a", "k_row", DECODER_WIDTH, DECODER_WIDTH);
  linear(d, "a", "v_row", DECODER_WIDTH, DECODER_WIDTH);
  node(d, "Reshape", "q#,to_heads", "q_parts");
  node(d, "Transpose", "q_parts#", "q_heads");
  static const char *const kinds[] = {"k", "v"};
  for (int i = 0; i < 2; ++i) {
    char row[16], one[32], parts[16], heads[16];
    snprintf(row, sizeof row, "%s_row", kinds[i]);
    snprintf(parts, sizeof parts, "%s_parts", kinds[i]);
    snprintf(heads, sizeof heads, "%s_heads", kinds[i]);
    if (d->grows) {
      snprintf(one, sizeof one, "%s#,to_heads", row);
      node(d, "Reshape", one, parts);
      snprintf(one, sizeof one, "%s#", parts);
      char turned[24];
      snprintf(turned, sizeof turned, "%s_turned", kinds[i]);
      node(d, "Transpose", one, turned);
      cache(d, kinds[i], turned);
      snprintf(one, sizeof one, "new_%s#", kinds[i]);
      node(d, "Identity", one, heads);
    } else {
      char flat[24];
      snprintf(flat, sizeof flat, "%s_flat", kinds[i]);
      snprintf(one, sizeof one, "%s#,to_rows", row);
      node(d, "Reshape", one, flat);
      cache(d, kinds[i], flat);
      snprintf(one, sizeof one, "new_%s#,to_heads", kinds[i]);
      node(d, "Reshape", one, parts);
      snprintf(one, sizeof one, "%s#", parts);
      node(d, "Transpose", one, heads);
    }
  }
  node(d, "TransposeLast", "k_heads#", "k_turned_last");
  node(d, "MatMul", "q_heads#,k_turned_last#", "s");
  node(d, "Mul", "s#,scale", "s_scaled");
  node(d, "Where", "seen,s_scaled#,never", "s_seen");
  node(d, "Softmax", "s_seen#", "p");
  node(d, "MatMul", "p#,v_heads#", "c");
  node(d, "Transpose", "c#", "c_parts");
  node(d, "Reshape", "c_parts#,to_width", "c_flat");
  linear(d, "c_flat", "o", DECODER_WIDTH, DECODER_WIDTH);
  node(d, "Add", "x#,o#", "y");
}

/* Adds y + mlp(norm(y)), which is the x of the next layer. */
static void mlp(decoder *d) {
  char scale[16], bias[16], list[64];
  snprintf(scale, sizeof scale, "g_m%d", d->layer);
  snprintf(bias, sizeof bias, "h_m%d", d->layer);
  norm_weights(d, scale, bias);
  snprintf(list, sizeof list, "y#,%s,%s", scale, bias);
  node(d, "LayerNormalization", list, "m");
  linear(d, "m", "up", DECODER_WIDTH, 4 * DECODER_WIDTH);
  node(d, "Gelu", "up#", "act");
  linear(d, "act", "down", 4 * DECODER_WIDTH, DECODER_WIDTH);
  snprintf(list, sizeof list, "y#,down#");
  node(d, "Add", list, "z");
  char from[16], to[16];
  snprintf(from, sizeof from, "z%d", d->layer);
  snprintf(to, sizeof to, "x%d", ++d->layer);
  test_graph_node(&d->g, "", "Identity", from, to);
}

static void shared(decoder *d) {
  static const float scale = 0.25f, never = -1e9f; /* scale: 1 / sqrt(DEPTH) */
  int64_t queries = test_graph_symbol(&d->g, "Q");
  float words[DECODER_WORDS * DECODER_WIDTH], places[DECODER_LONGEST * DECODER_WIDTH];
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) words[i] = test_random_float(&d->g.seed);
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) places[i] = test_random_float(&d->g.seed);
  test_graph_input(&d->g, "ids", CLV_I64, 2, DIMS(1, queries));
  test_graph_input(&d->g, "positions", CLV_I64, 1, DIMS(queries));
  constant(d, "words", CLV_F32, 2, DIMS(DECODER_WORDS, DECODER_WIDTH), words);
  constant(d, "place_table", CLV_F32, 2, DIMS(DECODER_LONGEST, DECODER_WIDTH), places);
  constant(d, "scale", CLV_F32, 0, NULL, &scale);
  constant(d, "never", CLV_F32, 0, NULL, &never);
  test_graph_ints(&d->g, "to_heads", 4, DIMS(1, -1, DECODER_HEADS, DEPTH));
  if (!d->grows) test_graph_ints(&d->g, "to_rows", 2, DIMS(-1, DECODER_WIDTH));
  test_graph_ints(&d->g, "to_width", 3, DIMS(1, -1, DECODER_WIDTH));
  test_graph_ints(&d->g, "one", 1, DIMS(1));
  test_graph_node(&d->g, "/words", "Gather", "words,ids", "word_rows");
  test_graph_node(&d->g, "/places", "Gather", "place_table,positions", "place_rows");
  test_graph_node(&d->g, "/embedded", "Add", "word_rows,place_rows", "x0");
  test_graph_node(&d->g, "/places_turned", "Unsqueeze", "positions,one", "places"); /* [Q,1] */
}

/* Adds the attention mask: query i sees the tokens up to positions[i]. */
static void mask(decoder *d) {
  if (d->grows) { /* one column per cached and new token: T + Q */
    static const int64_t zero = 0, one = 1;
    constant(d, "zero", CLV_I64, 0, NULL, &zero);
    constant(d, "step", CLV_I64, 0, NULL, &one);
    test_graph_node(&d->g, "/sizes", "Shape", "new_k0", "sizes");
    constant(d, "third", CLV_I64, 0, NULL, (const int64_t[]){2});
    test_graph_node(&d->g, "/total", "Gather", "sizes,third", "total");
    test_graph_node(&d->g, "/columns", "Range", "zero,total,step", "columns");
  } else {
    int64_t columns[DECODER_LONGEST];
    for (int64_t i = 0; i < DECODER_LONGEST; ++i) columns[i] = i;
    constant(d, "columns", CLV_I64, 1, DIMS(DECODER_LONGEST), columns);
  }
  test_graph_node(&d->g, "/seen", "LessOrEqual", "columns,places", "seen");
}

static clv_graph *make(const clv_allocator *allocator, bool grows) {
  decoder d = {.grows = grows, .outputs = "logits"};
  test_graph_begin(&d.g, allocator, 20);
  shared(&d);
  mask(&d);
  for (int l = 0; l < DECODER_LAYERS; ++l) {
    attention(&d);
    mlp(&d);
  }
  norm_weights(&d, "g_end", "h_end");
  char list[64];
  snprintf(list, sizeof list, "x%d,g_end,h_end", DECODER_LAYERS);
  test_graph_node(&d.g, "/end", "LayerNormalization", list, "end");
  test_graph_weight(&d.g, "to_words", 2, DIMS(DECODER_WIDTH, DECODER_WORDS));
  test_graph_node(&d.g, "/logits", "MatMul", "end,to_words", "logits");
  return test_graph_end(&d.g, d.outputs);
}

clv_graph *test_decoder_fixed(const clv_allocator *allocator) {
  return make(allocator, false);
}
clv_graph *test_decoder_growing(const clv_allocator *allocator) {
  return make(allocator, true);
}
