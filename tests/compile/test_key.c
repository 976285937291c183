/* Keys of executables: a graph with every kind of attribute, a body, symbols and constants is varied in one property at a time.
 * Each variation must change exactly the parts of the key that VARIATIONS states for it. Names of nodes and values must change
 * no part. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "compile/key.h"
#include "graph/graph.h"
#include "graph/view.h"

/* Everything that a key depends on. */
typedef struct description {
  const char *graph_name, *node_name, *value_name, *symbol_name; /* the key does not depend on these */
  const char *op, *domain, *attribute_name;
  int32_t opset;
  int64_t ints[3];
  size_t int_count;
  bool int_is_list;
  float floats[2];
  const char *string;
  clv_dtype tensor_dtype;
  int64_t tensor_dims[2];
  int32_t tensor_data[4];
  const char *text_data; /* the element of a string tensor */
  bool has_body;
  const char *body_op;
  const char *body_symbol;
  float body_constant;
  int64_t body_dim;
  bool body_reads_outside;
  bool swaps_operands, leaves_out_operand, leaves_out_output, has_more_outputs;
  clv_dtype dtype;
  int64_t dim;
  bool has_symbol, has_one_symbol;
  float constant;
  bool constant_is_input;
  clv_compile_options options;
  const char *backend, *version, *fingerprint;
} description;

static const description usual = {
    .graph_name = "g",
    .node_name = "n",
    .value_name = "v",
    .symbol_name = "N",
    .op = "Op",
    .domain = "test",
    .attribute_name = "ints",
    .opset = 3,
    .ints = {1, 2, 3},
    .int_count = 2,
    .int_is_list = true,
    .floats = {0.5f, -2.0f},
    .string = "text",
    .tensor_dtype = CLV_I32,
    .tensor_dims = {2, 2},
    .tensor_data = {4, 5, 6, 7},
    .text_data = "word",
    .has_body = true,
    .body_op = "Relu",
    .body_symbol = "M",
    .body_constant = 1.5f,
    .body_dim = 4,
    .dtype = CLV_F32,
    .dim = 8,
    .has_symbol = true,
    .constant = 2.5f,
    .backend = "cpu",
    .version = "1",
    .fingerprint = "this one",
};

/* ---- From a description to a key ---- */

static clv_value_id value(clv__builder *builder, const char *prefix, const char *name) {
  char text[32];
  clv_error error = {0};
  clv_value_id id;
  snprintf(text, sizeof text, "%s%s", prefix, name);
  assert_ok(clv__builder_value(builder, text, &id, &error), error);
  return id;
}

static void *copy(clv__builder *builder, const void *data, size_t size_bytes) {
  void *kept = clv__arena_allocate(clv__builder_arena(builder), size_bytes);
  assert_non_null(kept);
  return memcpy(kept, data, size_bytes);
}

static const clv_graph_view *make_body(const description *d, clv__builder *parent) {
  clv_error error = {0};
  clv__builder *builder;
  uint32_t symbol;
  const clv_graph_view *body;
  assert_ok(clv__builder_create(clv__allocator_default(), &builder, &error), error);
  assert_ok(clv__builder_symbol(builder, d->body_symbol, &symbol, &error), error);
  const clv_value_id in = value(builder, d->value_name, "in"), constant = value(builder, d->value_name, "k");
  const clv_value_id read[2] = {d->body_reads_outside ? value(builder, d->value_name, "x") : in, constant};
  const clv_value_id out = value(builder, d->value_name, "out");
  clv_tensor type = clv__tensor_make(CLV_F32, 2, (const int64_t[]){CLV_DIM_SYMBOL(symbol), d->body_dim}, NULL);
  clv__builder_type(builder, in, &type);
  assert_ok(clv__builder_input(builder, in, &error), error);
  type = clv__tensor_make(CLV_F32, 0, NULL, copy(builder, &d->body_constant, sizeof d->body_constant));
  clv__builder_type(builder, constant, &type);
  assert_ok(clv__builder_node(builder, "inner", "test", d->body_op, read, 2, &out, 1, NULL, 0, &error), error);
  assert_ok(clv__builder_output(builder, out, &error), error);
  assert_ok(clv__builder_finish_body(builder, parent, &body, &error), error);
  return body;
}

static uint32_t make_attributes(const description *d, clv__builder *builder, clv_attribute attributes[6]) {
  const clv_string string = {copy(builder, d->string, strlen(d->string)), strlen(d->string)};
  const clv_string word = {copy(builder, d->text_data, strlen(d->text_data)), strlen(d->text_data)};
  clv_tensor numbers = clv__tensor_make(d->tensor_dtype, 2, d->tensor_dims, copy(builder, d->tensor_data, sizeof d->tensor_data));
  clv_tensor words = clv__tensor_make(CLV_STRING, 1, (const int64_t[]){1}, copy(builder, &word, sizeof word));
  uint32_t count = 0;
  attributes[count++] = (clv_attribute){.name = d->attribute_name,
                                        .kind = CLV_ATTRIBUTE_INTS,
                                        .is_list = d->int_is_list,
                                        .count = d->int_count,
                                        .ints = copy(builder, d->ints, sizeof d->ints)};
  attributes[count++] = (clv_attribute){.name = "floats",
                                        .kind = CLV_ATTRIBUTE_FLOATS,
                                        .is_list = true,
                                        .count = 2,
                                        .floats = copy(builder, d->floats, sizeof d->floats)};
  attributes[count++] = (clv_attribute){
      .name = "string", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = copy(builder, &string, sizeof string)};
  attributes[count++] = (clv_attribute){
      .name = "tensor", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = copy(builder, &numbers, sizeof numbers)};
  attributes[count++] =
      (clv_attribute){.name = "words", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = copy(builder, &words, sizeof words)};
  if (d->has_body) {
    attributes[count++] =
        (clv_attribute){.name = "body", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1, .graph = make_body(d, builder)};
  }
  return count;
}

static clv_graph *make_graph(const description *d) {
  clv_error error = {0};
  clv__builder *builder;
  clv_graph *graph;
  uint32_t first, second;
  clv_attribute attributes[6];
  assert_ok(clv__builder_create(clv__allocator_default(), &builder, &error), error);
  clv__builder_info(builder, d->graph_name, "", 8);
  assert_ok(clv__builder_import(builder, "test", d->opset, &error), error);
  assert_ok(clv__builder_import(builder, "other", d->opset, &error), error);
  assert_ok(clv__builder_symbol(builder, d->symbol_name, &first, &error), error);
  assert_ok(clv__builder_symbol(builder, "second", &second, &error), error);
  const clv_value_id x = value(builder, d->value_name, "x"), y = value(builder, d->value_name, "y"),
                     w = value(builder, d->value_name, "w");
  const int64_t open = d->has_symbol ? CLV_DIM_SYMBOL(first) : 16;
  clv_tensor type = clv__tensor_make(d->dtype, 2, (const int64_t[]){open, d->dim}, NULL);
  clv__builder_type(builder, x, &type);
  assert_ok(clv__builder_input(builder, x, &error), error);
  type = clv__tensor_make(CLV_F32, 2, (const int64_t[]){d->has_one_symbol ? open : CLV_DIM_SYMBOL(second), 8}, NULL);
  clv__builder_type(builder, y, &type);
  assert_ok(clv__builder_input(builder, y, &error), error);
  type = clv__tensor_make(CLV_F32, 0, NULL, d->constant_is_input ? NULL : copy(builder, &d->constant, sizeof d->constant));
  clv__builder_type(builder, w, &type);
  if (d->constant_is_input) assert_ok(clv__builder_input(builder, w, &error), error);
  const clv_value_id inputs[3] = {d->swaps_operands ? y : x, d->leaves_out_operand ? CLV__NO_ID : d->swaps_operands ? x : y, w};
  const clv_value_id z = value(builder, d->value_name, "z"), other = value(builder, d->value_name, "other");
  const clv_value_id outputs[2] = {z, d->leaves_out_output ? CLV__NO_ID : other};
  const uint32_t count = make_attributes(d, builder, attributes);
  assert_ok(clv__builder_node(builder, d->node_name, d->domain, d->op, inputs, 3, outputs, 2, attributes, count, &error), error);
  assert_ok(clv__builder_output(builder, z, &error), error);
  if (d->has_more_outputs) assert_ok(clv__builder_output(builder, other, &error), error);
  assert_ok(clv__builder_finish(builder, &graph, &error), error);
  return graph;
}

static clv__key key_of(const description *d) {
  clv_graph *graph = make_graph(d);
  clv_backend backend = {.name = d->backend, .version = d->version};
  clv__device device = {.backend = &backend, .info = {.fingerprint = d->fingerprint}};
  clv__key key;
  clv_error error = {0};
  clv__key_make(graph->whole, &device, &d->options, &key);
  assert_ok(clv__key_add_constants(graph->whole, &key, &error), error);
  clv__graph_destroy(graph);
  return key;
}

/* ---- Variations ---- */

enum {
  STRUCTURE = 1u << CLV__KEY_STRUCTURE,
  TYPES = 1u << CLV__KEY_TYPES,
  CONSTANTS = 1u << CLV__KEY_CONSTANTS,
  DEVICE = 1u << CLV__KEY_DEVICE,
  OPTIONS = 1u << CLV__KEY_OPTIONS,
};

#define VARIATIONS(X)                                          \
  X(0, d.graph_name = "another")                               \
  X(0, d.node_name = "another")                                \
  X(0, d.value_name = "another")                               \
  X(0, d.symbol_name = "another")                              \
  X(STRUCTURE, d.op = "Another")                               \
  X(STRUCTURE, d.domain = "other")                             \
  X(STRUCTURE, d.opset = 4)                                    \
  X(STRUCTURE, d.attribute_name = "others")                    \
  X(STRUCTURE, d.has_body = false)                             \
  X(STRUCTURE, d.ints[1] = 9)                                  \
  X(STRUCTURE, d.int_count = 3)                                \
  X(STRUCTURE, d.int_is_list = false)                          \
  X(STRUCTURE, d.floats[1] = 2.0f)                             \
  X(STRUCTURE, d.string = "test")                              \
  X(STRUCTURE, d.tensor_dtype = CLV_F32)                       \
  X(STRUCTURE, (d.tensor_dims[0] = 1, d.tensor_dims[1] = 4))   \
  X(STRUCTURE, d.tensor_data[3] = 8)                           \
  X(STRUCTURE, d.text_data = "ward")                           \
  X(STRUCTURE, d.body_op = "Abs")                              \
  X(STRUCTURE, d.body_symbol = "another")                      \
  X(STRUCTURE, d.body_constant = 2.0f)                         \
  X(STRUCTURE, d.body_dim = 5)                                 \
  X(STRUCTURE, d.body_reads_outside = true)                    \
  X(STRUCTURE, d.swaps_operands = true)                        \
  X(STRUCTURE, d.leaves_out_operand = true)                    \
  X(STRUCTURE, d.leaves_out_output = true)                     \
  X(STRUCTURE, d.has_more_outputs = true)                      \
  X(TYPES, d.dtype = CLV_F16)                                  \
  X(TYPES, d.dim = 9)                                          \
  X(TYPES, d.has_symbol = false)                               \
  X(TYPES, d.has_one_symbol = true)                            \
  X(CONSTANTS, d.constant = 2.0f)                              \
  X(STRUCTURE | TYPES | CONSTANTS, d.constant_is_input = true) \
  X(DEVICE, d.backend = "npu")                                 \
  X(DEVICE, d.version = "2")                                   \
  X(DEVICE, d.fingerprint = "that one")                        \
  X(OPTIONS, d.options.deterministic = true)                   \
  X(OPTIONS, d.options.tune = true)                            \
  X(OPTIONS, d.options.precision = CLV_BF16)

static void one_thing_at_a_time(void **state) {
  (void)state;
  const clv__key first = key_of(&usual), again = key_of(&usual);
  assert_int_equal(clv__key_differences(&first, &again), 0);
#define CHECK(expected, change)                                                                                 \
  do {                                                                                                          \
    description d = usual;                                                                                      \
    change;                                                                                                     \
    const clv__key key = key_of(&d);                                                                            \
    const uint32_t parts = clv__key_differences(&first, &key);                                                  \
    if (parts != (uint32_t)(expected))                                                                          \
      fail_msg("%s: the bit mask of changed parts is %#x, expected %#x", #change, parts, (unsigned)(expected)); \
  } while (0);
  VARIATIONS(CHECK)
#undef CHECK
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_thing_at_a_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
