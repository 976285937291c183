/* Tests the rules that decide whether a node is independent along padded axes (operators/common/padding.h). Every case is one
 * node whose dims are letters. For every set of letters, the dims in the set are left open, and the rule must say whether the
 * node is independent along them. If it is, the node runs twice: with exact inputs, and with inputs padded along the open axes
 * with random numbers, NaNs and infinities. The results of the padded run must begin with those of the exact run, bit for bit.
 * Only matrix products may round differently, because their kernels use another loop for few rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "analysis/open.h"
#include "models.h"
#include "support.h"

enum { MOST_INPUTS = 6, MOST_LETTERS = 26 };

/* Inputs, separated by spaces: a dtype (f: f32, h: f16, i: i64, b: bool, u: u8, p: i64 indices), then a letter or digit per axis.
 * "p<c" is followed by the axes of a tensor of indices below the size of letter c. "=1,2" is a constant vector of i64, "=.5,1"
 * one of f32, "-" an absent input. Attributes are written as "axis=1 perm=0,2,1". The node must be independent along the letters
 * in `open` and along no others; "-" in `open`: along none. */
typedef struct node_case {
  const char *op;
  int32_t opset;
  const char *inputs, *attributes;
  uint32_t outputs;
  const char *open;
} node_case;

static const node_case cases[] = {
    {"Relu", 21, "fabc", "", 1, "abc"},
    {"Neg", 21, "ha", "", 1, "a"},
    {"Log", 21, "fab", "", 1, "ab"},
    {"Reciprocal", 21, "fab", "", 1, "ab"},
    {"Clip", 21, "fab f f", "", 1, "ab"},
    {"Gelu", 21, "fab", "approximate=\"tanh\"", 1, "ab"},
    {"Add", 21, "fabc fbc", "", 1, "abc"},
    {"Add", 21, "fabc fc", "", 1, "abc"},
    {"Mul", 21, "fa1c f1bc", "", 1, "abc"},
    {"Add", 21, "fab f3b", "", 1, "b"},
    {"Div", 21, "fab fb", "", 1, "ab"},
    {"Div", 21, "iab ib", "", 1, "a"},
    {"Mod", 21, "iab i1", "", 1, "ab"},
    {"Pow", 21, "fab f", "", 1, "ab"},
    {"PRelu", 21, "fabc f1b1", "", 1, "abc"},
    {"Where", 21, "bab fab fb", "", 1, "ab"},
    {"Max", 21, "fab fab fb", "", 1, "ab"},
    {"Mean", 21, "fab fab", "", 1, "ab"},
    {"Equal", 21, "iab ia1", "", 1, "ab"},
    {"Cast", 21, "fab", "to=7", 1, "ab"},
    {"CastLike", 21, "fab ic", "", 1, "abc"},
    {"Identity", 21, "fabc", "", 1, "abc"},
    {"Dropout", 21, "fabc", "", 2, "abc"},
    {"Trilu", 21, "fabc", "upper=0", 1, "abc"},
    {"EyeLike", 21, "fab", "", 1, "ab"},
    {"ReduceSum", 21, "fabc =1", "keepdims=0", 1, "ac"},
    {"ReduceMean", 21, "fabc =-1", "", 1, "ab"},
    {"ReduceMax", 13, "fabcd", "axes=0,2 keepdims=0", 1, "bd"},
    {"ReduceL2", 21, "fabc", "", 1, ""},
    {"ReduceSum", 21, "fabc", "noop_with_empty_axes=1", 1, "abc"},
    {"ReduceLogSumExp", 21, "fabc =1", "", 1, "ac"},
    {"ReduceMin", 21, "fabc =0", "", 1, "bc"},
    {"ReduceProd", 21, "fabc =2", "", 1, "ab"},
    {"ReduceL1", 21, "fabc =2", "", 1, "ab"},
    {"ReduceLogSum", 21, "fabc =2", "", 1, "ab"},
    {"ReduceSumSquare", 21, "fabc =2", "", 1, "ab"},
    {"ArgMax", 21, "fabc", "axis=1 keepdims=0", 1, "ac"},
    {"ArgMin", 21, "fabc", "axis=-1", 1, "ab"},
    {"CumSum", 21, "fabc =1", "", 1, "ac"},
    {"Softmax", 21, "fabc", "", 1, "ab"},
    {"Softmax", 21, "fabc", "axis=1", 1, "ac"},
    {"Softmax", 11, "fabc", "axis=1", 1, "a"},
    {"LogSoftmax", 21, "fabc", "axis=0", 1, "bc"},
    {"Hardmax", 21, "fab", "", 1, "a"},
    {"QuantizeLinear", 21, "fab f u", "", 1, "ab"},
    {"DequantizeLinear", 21, "uabc f4 u4", "axis=2", 1, "ab"},
    {"DequantizeLinear", 21, "ua4c f4 u4", "axis=1", 1, "ac"},
    {"DynamicQuantizeLinear", 21, "fab", "", 3, ""},
    {"MatMul", 21, "fab fbc", "", 1, "ac"},
    {"MatMul", 21, "fdab fbc", "", 1, "acd"},
    {"MatMul", 21, "fdab fdbc", "", 1, "acd"},
    {"MatMul", 21, "feab fd1bc", "", 1, "acde"},
    {"MatMul", 21, "fb fbc", "", 1, "c"},
    {"MatMul", 21, "fdab fb", "", 1, "ad"},
    {"Gemm", 21, "fab fbc fc", "", 1, "ac"},
    {"Gemm", 21, "fba fcb fac", "transA=1 transB=1", 1, "ac"},
    {"Gemm", 21, "fab fbc", "", 1, "ac"},
    {"Einsum", 21, "fabc fbcd", "equation=\"abc,bcd->abd\"", 1, "abd"},
    {"Einsum", 21, "fxyab fxybc", "equation=\"...ab,...bc->...ac\"", 1, "acxy"},
    {"Einsum", 21, "faab", "equation=\"aab->ab\"", 1, "ab"},
    {"Conv", 21, "fa366 f43kk f4", "pads=1,1,1,1", 1, "a"},
    {"ConvTranspose", 21, "fa366 f34kk", "", 1, "a"},
    {"InstanceNormalization", 21, "fa3b f3 f3", "", 1, "a"},
    {"GroupNormalization", 21, "fa4b f4 f4", "num_groups=2", 1, "a"},
    {"DepthToSpace", 21, "fa4bc", "blocksize=2", 1, "a"},
    {"SpaceToDepth", 21, "fa344", "blocksize=2", 1, "a"},
    {"Resize", 21, "fab44 - =.1,1,2,1.5", "mode=\"linear\"", 1, "a"},
    {"Resize", 21, "fa344 - =.1,1,2,2", "mode=\"cubic\"", 1, "a"},
    {"Upsample", 9, "fa344 =.1,1,2,2", "mode=\"nearest\"", 1, "a"},
    {"MaxPool", 21, "fab66", "kernel_shape=2,2", 1, "ab"},
    {"MaxPool", 21, "fab66", "kernel_shape=2,2", 2, "a"},
    {"AveragePool", 21, "fab66", "kernel_shape=3,3 pads=1,1,1,1", 1, "ab"},
    {"LpPool", 21, "fab66", "kernel_shape=2,2", 1, "ab"},
    {"GlobalAveragePool", 21, "fabcd", "", 1, "ab"},
    {"GlobalMaxPool", 21, "fabcd", "", 1, "ab"},
    {"GlobalLpPool", 21, "fabcd", "", 1, "ab"},
    {"BatchNormalization", 21, "fa4b f4 f4 f4 f4", "", 1, "ab"},
    {"LayerNormalization", 21, "fabc fc fc", "", 3, "ab"},
    {"LayerNormalization", 21, "fabc fbc", "axis=1", 1, "a"},
    {"RMSNormalization", 23, "fabc fc", "", 1, "ab"},
    {"MeanVarianceNormalization", 21, "fabcd", "", 1, "b"},
    {"LpNormalization", 21, "fabc", "axis=1", 1, "ac"},
    {"LRN", 21, "fabcd", "size=3", 1, "acd"},
    {"Reshape", 21, "fab6 =0,0,2,3", "", 1, "ab"},
    {"Reshape", 21, "fab6 =0,-1,2,3", "", 1, "ab"},
    {"Reshape", 21, "fab6 =0,0,-1", "", 1, "ab"},
    {"Reshape", 21, "f1b6 =-1,3,2", "", 1, "b"},
    {"Reshape", 21, "fb6 =-1", "", 1, "b"},
    {"Reshape", 21, "fa3b =0,-1", "", 1, "a"},
    {"Reshape", 21, "fa =-1,4", "", 1, ""}, /* the padded size may not be a multiple of 4 */
    {"Reshape", 21, "f6b =-1,3", "", 1, ""},
    {"Reshape", 21, "fb6 =1,1,-1,6", "", 1, "b"},
    {"Reshape", 21, "fa2c6 =0,-1,6", "", 1, "a"},
    {"Reshape", 21, "fab26 =0,-1,6", "", 1, "ab"},
    {"Flatten", 21, "fa34", "", 1, "a"},
    {"Flatten", 21, "fa34", "axis=2", 1, "a"},
    {"Flatten", 21, "f3a4", "axis=1", 1, "a"},
    {"Squeeze", 21, "fa1b1 =1,3", "", 1, "ab"},
    {"Unsqueeze", 21, "fab =0,2", "", 1, "ab"},
    {"Transpose", 21, "fabc", "perm=2,0,1", 1, "abc"},
    {"Transpose", 21, "fabc", "", 1, "abc"},
    {"Concat", 21, "fa3c fa2c", "axis=1", 1, "ac"},
    {"Concat", 21, "fab fcb", "axis=0", 1, "b"},
    {"Split", 21, "fa6c =2,4", "axis=1", 2, "ac"},
    {"Split", 21, "fabc", "axis=0 num_outputs=2", 2, "bc"},
    {"Slice", 21, "fa6c =1 =5 =1 =2", "", 1, "ac"},
    {"Slice", 21, "fabc =0 =2", "", 1, "bc"},
    {"Slice", 21, "fabc =-1 =9 =-1", "", 1, "ab"},
    {"Slice", 9, "fabc", "starts=0 ends=2 axes=2", 1, "ab"},
    {"Pad", 21, "fab =0,1,0,2", "", 1, "a"},
    {"Pad", 21, "fab4 =1,2 - =-1", "mode=\"edge\"", 1, "ab"},
    {"Expand", 21, "fa1 =3,1,4", "", 1, "a"},
    {"Expand", 21, "fab =1,1", "", 1, "ab"},
    {"Tile", 21, "fabc =1,2,1", "", 1, "ac"},
    {"Gather", 21, "fabc p<bde", "axis=1", 1, "acde"},
    {"Gather", 21, "f8c p<8ab", "", 1, "abc"},
    {"GatherElements", 21, "fab p<bac", "axis=1", 1, "ac"},
    {"GatherND", 21, "fabc p<ad1", "", 1, "bcd"},
    {"GatherND", 21, "fabc p<bad1", "batch_dims=1", 1, "acd"},
    {"ScatterElements", 21, "fabc p<ba2c fa2c", "axis=1", 1, "ac"},
    {"ScatterElements", 21, "fab p<bab fab", "axis=1 reduction=\"add\"", 1, "a"},
    {"ScatterND", 21, "fabc p<ad1 fdbc", "", 1, "bc"},
    {"OneHot", 21, "iab =5 f2", "axis=0", 1, "ab"},
    {"TopK", 21, "fa6 =3", "", 2, "a"},
    {"Shape", 21, "fab", "", 1, ""},
    {"NonZero", 21, "fab", "", 1, ""},
    {"Unique", 21, "fab", "", 1, ""},
    {"Compress", 21, "fab ba", "axis=0", 1, "b-"}, /* the output's size depends on data */
};

/* ---- Inputs ---- */

typedef struct test_input {
  clv_dtype dtype;
  int32_t rank;
  char axes[CLV_MAX_RANK];
  char limit_axis; /* the letter after '<'; 0: none */
} test_input;

typedef struct setting {
  const node_case *what;
  uint32_t input_count;
  test_input inputs[MOST_INPUTS];
  uint32_t open; /* bit mask of the letters whose axes are open */
  int64_t exact[MOST_LETTERS], padded[MOST_LETTERS];
  uint64_t seed;
} setting;

static int64_t size_of(char axis, const int64_t *letters) {
  return axis >= 'a' && axis <= 'z' ? letters[axis - 'a'] : axis - '0';
}

static clv_dtype dtype_of(char letter) {
  return letter == 'f' ? CLV_F32 : letter == 'h' ? CLV_F16 : letter == 'b' ? CLV_BOOL : letter == 'u' ? CLV_U8 : CLV_I64;
}

static void add_numbers(test_graph *g, const char *name, const char *text) {
  bool real = strchr(text, '.') != NULL;
  int64_t whole[8], count = 0;
  float *reals = clv__arena_allocate(clv__builder_arena(g->builder), 8 * sizeof *reals);
  for (const char *at = text[0] == '.' ? text + 1 : text; *at != '\0' && count < 8;) {
    char *end;
    double number = strtod(at, &end);
    whole[count] = (int64_t)number;
    reals[count++] = (float)number;
    at = *end == ',' ? end + 1 : end;
  }
  clv_error error = {0};
  clv_value_id id;
  if (!real) {
    test_graph_ints(g, name, (int32_t)count, whole);
    return;
  }
  clv_tensor type = clv__tensor_make(CLV_F32, 1, &count, reals);
  assert_ok(clv__builder_value(g->builder, name, &id, &error), error);
  clv__builder_type(g->builder, id, &type);
}

static void add_input(setting *s, test_graph *g, const char *name, const char *text) {
  clv_error error = {0};
  test_input *input = &s->inputs[s->input_count++];
  *input = (test_input){.dtype = dtype_of(text[0])};
  const char *at = text + 1;
  if (*at == '<') input->limit_axis = at[1], at += 2;
  for (; *at != '\0'; ++at) input->axes[input->rank++] = *at;
  int64_t dims[CLV_MAX_RANK];
  for (int32_t d = 0; d < input->rank; ++d) {
    char axis = input->axes[d], symbol[2] = {axis, '\0'};
    uint32_t index;
    dims[d] = size_of(axis, s->exact);
    if (axis < 'a' || (s->open >> (axis - 'a') & 1u) == 0) continue;
    assert_ok(clv__builder_symbol(g->builder, symbol, &index, &error), error);
    dims[d] = CLV_DIM_SYMBOL(index);
  }
  test_graph_input(g, name, input->dtype, input->rank, dims);
}

/* ---- Attributes ---- */

static uint32_t read_attributes(const char *text, clv__arena *arena, clv_attribute *out) {
  uint32_t count = 0;
  char copy[200];
  snprintf(copy, sizeof copy, "%s", text);
  for (char *save = NULL, *item = strtok_r(copy, " ", &save); item != NULL; item = strtok_r(NULL, " ", &save)) {
    char *value = strchr(item, '=');
    assert_non_null(value);
    *value++ = '\0';
    clv_attribute *a = &out[count++];
    *a = (clv_attribute){.name = clv__arena_string(arena, item, strlen(item)), .kind = CLV_ATTRIBUTE_INTS};
    if (value[0] == '"') {
      clv_string *string = clv__arena_allocate(arena, sizeof *string);
      string->size_bytes = strlen(value) - 2;
      string->data = clv__arena_string(arena, value + 1, string->size_bytes);
      a->kind = CLV_ATTRIBUTE_STRINGS, a->count = 1, a->strings = string;
      continue;
    }
    int64_t *ints = clv__arena_allocate(arena, 8 * sizeof *ints);
    for (char *inner = NULL, *n = strtok_r(value, ",", &inner); n != NULL; n = strtok_r(NULL, ",", &inner))
      ints[a->count++] = strtoll(n, NULL, 10);
    static const char *const scalars[] = {"axis",   "keepdims", "noop_with_empty_axes", "to",        "upper",      "transA",
                                          "transB", "size",     "num_groups",           "blocksize", "batch_dims", "num_outputs"};
    a->is_list = true;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; ++i) a->is_list = a->is_list && strcmp(scalars[i], a->name) != 0;
    a->ints = ints;
  }
  return count;
}

/* ---- One node ---- */

static clv_graph *make_graph(setting *s) {
  clv_error error = {0};
  test_graph g = {.seed = 1};
  assert_ok(clv__builder_create(clv__allocator_default(), &g.builder, &error), error);
  clv__builder_info(g.builder, "test", "", 10);
  assert_ok(clv__builder_import(g.builder, "", s->what->opset, &error), error);
  clv_value_id inputs[MOST_INPUTS], outputs[4];
  uint32_t count = 0;
  char copy[200];
  snprintf(copy, sizeof copy, "%s", s->what->inputs);
  for (char *save = NULL, *item = strtok_r(copy, " ", &save); item != NULL; item = strtok_r(NULL, " ", &save)) {
    char name[16];
    snprintf(name, sizeof name, "i%u", count);
    inputs[count] = CLV__NO_ID;
    if (item[0] == '=')
      add_numbers(&g, name, item + 1);
    else if (item[0] != '-')
      add_input(s, &g, name, item);
    if (item[0] != '-') assert_ok(clv__builder_value(g.builder, name, &inputs[count], &error), error);
    ++count;
  }
  clv_attribute attributes[8];
  uint32_t attribute_count = read_attributes(s->what->attributes, clv__builder_arena(g.builder), attributes);
  for (uint32_t o = 0; o < s->what->outputs; ++o) {
    char name[16];
    snprintf(name, sizeof name, "o%u", o);
    assert_ok(clv__builder_value(g.builder, name, &outputs[o], &error), error);
  }
  assert_ok(clv__builder_node(g.builder, "n", "", s->what->op, inputs, count, outputs, s->what->outputs, attributes,
                              attribute_count, &error),
            error);
  return test_graph_end(&g, s->what->outputs == 1 ? "o0" : s->what->outputs == 2 ? "o0,o1" : "o0,o1,o2");
}

/* `of` is the corner of `in` at index 0 of every axis. Returns the number of the element of `of` that is element `index` of `in`;
 * -1 if it is outside the corner. */
static int64_t corner_index(const clv_tensor *in, const clv_tensor *of, size_t index) {
  int64_t at = 0, place[CLV_MAX_RANK];
  for (int32_t d = in->rank; d-- > 0;) {
    place[d] = (int64_t)(index % (size_t)in->dims[d]);
    index /= (size_t)in->dims[d];
  }
  for (int32_t d = 0; d < in->rank; ++d) {
    if (place[d] >= of->dims[d]) return -1;
    at = at * of->dims[d] + place[d];
  }
  return at;
}

static void fill_garbage(const clv_tensor *tensor, size_t index, uint64_t *seed) {
  static const double wild[] = {NAN, INFINITY, -INFINITY, 1e30, -3, 0, 77};
  uint64_t draw = test_random(seed);
  clv__tensor_put(tensor, index, wild[draw % 7], (int64_t)(draw % 1000) - 500, draw % 2 == 0);
}

/* Creates an exact input and its padded copy. Indices are padded with zeros, as graph inputs are. */
static void make_input(setting *s, const test_input *input, clv_tensor *exact, clv_tensor *padded) {
  int64_t dims[2][CLV_MAX_RANK];
  size_t counts[2], bytes = clv_dtype_size_bytes(input->dtype);
  for (int32_t d = 0; d < input->rank; ++d) {
    dims[0][d] = dims[1][d] = size_of(input->axes[d], s->exact);
    if (input->axes[d] >= 'a' && (s->open >> (input->axes[d] - 'a') & 1u) != 0) dims[1][d] = s->padded[input->axes[d] - 'a'];
  }
  *exact = clv__tensor_make(input->dtype, input->rank, dims[0], NULL);
  *padded = clv__tensor_make(input->dtype, input->rank, dims[1], NULL);
  assert_true(clv__tensor_count(exact, &counts[0]) && clv__tensor_count(padded, &counts[1]));
  exact->data = calloc(counts[0] + 1, bytes);
  padded->data = calloc(counts[1] + 1, bytes);
  int64_t limit = input->limit_axis != 0 ? size_of(input->limit_axis, s->exact) : 9;
  for (size_t i = 0; i < counts[0]; ++i) {
    uint64_t draw = test_random(&s->seed);
    int64_t whole = input->limit_axis != 0 ? (int64_t)(draw % (uint64_t)limit) : 1 + (int64_t)(draw % 8);
    clv__tensor_put(exact, i, (double)test_random_float(&s->seed), whole, draw % 2 == 0);
  }
  for (size_t i = 0; i < counts[1]; ++i) {
    int64_t from = corner_index(padded, exact, i);
    if (from >= 0)
      memcpy((char *)padded->data + i * bytes, (char *)exact->data + (size_t)from * bytes, bytes);
    else if (input->limit_axis == 0)
      fill_garbage(padded, i, &s->seed);
  }
}

static bool rounds_by_size(const char *op) {
  return strcmp(op, "MatMul") == 0 || strcmp(op, "Gemm") == 0 || strcmp(op, "Einsum") == 0;
}

static void compare(const setting *s, const clv_tensor *exact, const clv_tensor *padded, uint32_t output) {
  size_t count, bytes = clv_dtype_size_bytes(exact->dtype);
  assert_int_equal(exact->rank, padded->rank);
  for (int32_t d = 0; d < exact->rank; ++d) assert_true(exact->dims[d] <= padded->dims[d]);
  assert_true(clv__tensor_count(padded, &count));
  for (size_t i = 0; i < count; ++i) {
    int64_t from = corner_index(padded, exact, i);
    if (from < 0) continue;
    const char *is = (const char *)padded->data + i * bytes, *should = (const char *)exact->data + (size_t)from * bytes;
    if (memcmp(is, should, bytes) == 0) continue;
    double distance = fabs(clv__tensor_get(padded, i) - clv__tensor_get(exact, (size_t)from));
    if (rounds_by_size(s->what->op) && distance < 1e-6) continue; /* results are sums of few products of numbers below 1 */
    fail_msg("%s (%s) %s, open axes %#x: output %u, element %zu is %g with padding, %g without", s->what->op, s->what->inputs,
             s->what->attributes, s->open, output, i, clv__tensor_get(padded, i), clv__tensor_get(exact, (size_t)from));
  }
}

static void run_both(setting *s, const clv_graph *graph) {
  clv_error error = {0};
  clv_tensor exact[MOST_INPUTS], padded[MOST_INPUTS], of_exact[4], of_padded[4];
  const clv_allocator *allocator = clv__allocator_default();
  for (uint32_t i = 0; i < s->input_count; ++i) make_input(s, &s->inputs[i], &exact[i], &padded[i]);
  assert_ok(clv__graph_evaluate(graph, exact, NULL, of_exact, NULL, NULL, allocator, &error), error);
  clv_status status = clv__graph_evaluate(graph, padded, NULL, of_padded, NULL, NULL, allocator, &error);
  if (status != CLV_OK)
    fail_msg("%s (%s), open axes %#x: the run with padding fails: %s", s->what->op, s->what->inputs, s->open, error.message);
  for (uint32_t o = 0; o < graph->output_count; ++o) {
    compare(s, &of_exact[o], &of_padded[o], o);
    clv__release(allocator, of_exact[o].data);
    clv__release(allocator, of_padded[o].data);
  }
  for (uint32_t i = 0; i < s->input_count; ++i) free(exact[i].data), free(padded[i].data);
}

static uint32_t letters_of(const char *text, bool inputs) {
  uint32_t letters = 0;
  for (bool begins = inputs; *text != '\0'; ++text) {
    if (begins) { /* skips the dtype and the letter after '<' */
      begins = false;
      if (*text == '=' || *text == '-') {
        text += strcspn(text, " ");
        begins = *text == ' ';
        if (*text == '\0') break;
      } else if (text[1] == '<') {
        text += 2;
      }
      continue;
    }
    begins = inputs && *text == ' ';
    if (*text >= 'a' && *text <= 'z') letters |= 1u << (*text - 'a');
  }
  return letters;
}

/* Checks that the verdict on independence along the axes `open` is `expected`. If the node is independent, runs it with exact
 * and with padded inputs and compares the results. Returns whether it ran. It does not run if the random sizes are invalid for
 * the node. */
static bool try_open(const node_case *what, uint32_t open, uint64_t seed, bool expected) {
  setting s = {.what = what, .open = open, .seed = seed * 977 + open};
  clv_error error = {0};
  for (int i = 0; i < MOST_LETTERS; ++i) {
    s.exact[i] = 1 + (int64_t)(test_random(&s.seed) % 5);
    s.padded[i] = s.exact[i] + 1 + (int64_t)(test_random(&s.seed) % 6);
  }
  if (strcmp(what->op, "Slice") == 0 || strcmp(what->op, "Conv") == 0) s.exact['k' - 'a'] = 3;
  clv_graph *graph = make_graph(&s);
  clv__shapes *shapes;
  const clv__open *found;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv_status status = clv__shapes_infer(graph, NULL, 0, 1 << 16, &shapes, &error);
  if (status == CLV_INVALID_MODEL) {
    clv__graph_destroy(graph);
    return false;
  }
  assert_ok(status, error);
  assert_ok(clv__open_find(graph, shapes, NULL, 0, &arena, &found, &error), error);
  const char *reason = found == NULL ? NULL : found->reasons[0];
  if ((reason == NULL) != expected)
    fail_msg("%s (%s) %s, open axes %#x: must be %s padding, but the verdict is: %s", what->op, what->inputs, what->attributes,
             open, expected ? "independent of" : "dependent on", reason == NULL ? "independent" : reason);
  if (reason == NULL) run_both(&s, graph);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
  return reason == NULL;
}

static void marked_operators_are_independent(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    uint32_t letters = letters_of(cases[c].inputs, true), open = letters_of(cases[c].open, false);
    if (strchr(cases[c].open, '-') != NULL) open = 0;
    int ran = 0;
    for (uint32_t set = letters; set != 0; set = (set - 1) & letters) {
      for (uint64_t seed = 1; seed <= 5; ++seed) ran += try_open(&cases[c], set, seed, (set & ~open) == 0);
    }
    if (open != 0 && ran == 0) fail_msg("case %zu (%s) was not run with any seed", c, cases[c].op);
  }
}

/* ---- Several nodes ---- */

static const char *reason_of(const clv_graph *graph, const clv__open *open, const char *node) {
  clv_node_id id = clv__graph_find_node(graph, node);
  assert_true(id != CLV__NO_ID && open->is_open[id]);
  return open->reasons[id];
}

static void sizes_and_places_are_traced(void **state) {
  (void)state;
  clv_error error = {0};
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 1);
  int64_t rows = test_graph_symbol(&g, "N");
  test_graph_input(&g, "x", CLV_F32, 2, (const int64_t[]){rows, 6});
  test_graph_input(&g, "i", CLV_I64, 1, (const int64_t[]){rows});
  test_graph_weight(&g, "table", 2, (const int64_t[]){5, 3});
  test_graph_ints(&g, "line", 1, (const int64_t[]){-1});
  test_graph_ints(&g, "thirds", 2, (const int64_t[]){-1, 3});
  test_graph_ints(&g, "fifths", 2, (const int64_t[]){-1, 5});
  test_graph_ints(&g, "column", 2, (const int64_t[]){-1, 1});
  test_graph_ints(&g, "two", 1, (const int64_t[]){2});
  test_graph_node(&g, "to_line", "Reshape", "x,line", "l");     /* [6 N] */
  test_graph_node(&g, "to_thirds", "Reshape", "l,thirds", "t"); /* [2 N,3] */
  test_graph_node(&g, "to_fifths", "Reshape", "l,fifths", "f"); /* valid only for some N */
  test_graph_node(&g, "same", "Add", "t,t", "s");
  test_graph_node(&g, "line_of_x", "Reshape", "x,line", "l2");
  test_graph_node(&g, "both", "Add", "l,l2", "b"); /* both have the size 6 N, so they are padded alike */
  test_graph_node(&g, "moved", "Reshape", "i,column", "m");
  test_graph_node(&g, "given", "Gather", "table,m", "g1");
  test_graph_node(&g, "later", "Add", "i,two", "a"); /* `i` is padded with zeros, so `a` is padded with twos */
  test_graph_node(&g, "computed", "Gather", "table,a", "g2");
  test_graph_node(&g, "sums", "ReduceSum", "x", "r");
  clv_graph *graph = test_graph_end(&g, "s,f,b,g1,g2,r");
  clv__shapes *shapes;
  const clv__open *open;
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  assert_ok(clv__shapes_infer(graph, NULL, 0, 1 << 16, &shapes, &error), error);
  assert_ok(clv__open_find(graph, shapes, NULL, 0, &arena, &open, &error), error);
  static const char *const good[] = {"to_line", "to_thirds", "same", "line_of_x", "both", "moved", "given", "later"};
  for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
    const char *reason = reason_of(graph, open, good[i]);
    if (reason != NULL) fail_msg("%s is not independent of padding: %s", good[i], reason);
  }
  assert_non_null(strstr(reason_of(graph, open, "to_fifths"), "not a known multiple"));
  assert_non_null(strstr(reason_of(graph, open, "computed"), "contains indices"));
  assert_non_null(strstr(reason_of(graph, open, "sums"), "combines elements along axis 0"));
  int64_t *sizes = calloc(open->symbol_count, sizeof *sizes);
  sizes[0] = 7;
  const clv_tensor *types = shapes->types;
  assert_int_equal(clv__open_size(open, types[clv__graph_find_value(graph, "l")].dims[0], sizes), 42);
  assert_int_equal(clv__open_size(open, types[clv__graph_find_value(graph, "s")].dims[0], sizes), 14);
  /* The typical N must be a multiple of 5, because the node "to_fifths" is valid only then. */
  assert_int_equal(open->typical[clv__graph_find_value(graph, "x")].dims[0] % 5, 0);
  free(sizes);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(marked_operators_are_independent),
                                     cmocka_unit_test(sizes_and_places_are_traced)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
