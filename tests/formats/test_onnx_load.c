/* Tests the ONNX reader and writer on models of onnx_models.h: the content of the graph, and that a written model is read back
 * unchanged. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/onnx/onnx.h"
#include "onnx_models.h"

typedef void (*maker)(clv__text *out);

static clv_graph *load(const clv__text *model) {
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv__onnx_load_memory(clv__allocator_default(), model->data, model->size_bytes, true, &graph, &error), error);
  return graph;
}

static clv_graph *make(maker fill) {
  clv__text model;
  clv__text_init(&model, clv__allocator_default());
  fill(&model);
  clv_graph *graph = load(&model);
  clv__text_finish(&model);
  return graph;
}

static const clv__node *node_of(const clv_graph *graph, const char *name) {
  clv_node_id node = clv__graph_find_node(graph, name);
  if (node == CLV__NO_ID) fail_msg("there is no node '%s'", name);
  return &graph->nodes[node];
}

static const clv__value *value_of(const clv_graph *graph, const char *name) {
  clv_value_id value = clv__graph_find_value(graph, name);
  if (value == CLV__NO_ID) fail_msg("there is no value '%s'", name);
  return &graph->values[value];
}

static void graph_has_what_the_model_has(void **state) {
  (void)state;
  clv_graph *graph = make(model_everything);
  assert_string_equal(graph->name, "everything");
  assert_int_equal(graph->ir_version, 10);
  assert_int_equal(graph->metadata_count, 1);
  assert_string_equal(graph->metadata[0], "author");
  assert_int_equal(graph->input_count, 4);
  const clv__value *x = value_of(graph, "X");
  assert_int_equal(x->type.rank, 2);
  assert_int_equal(x->type.dims[1], 3);
  assert_string_equal(graph->symbols[-2 - x->type.dims[0]], "N");
  const clv__value *w = value_of(graph, "w");
  assert_true(w->is_input && w->type.data != NULL); /* an input with a default value */
  assert_int_equal(value_of(graph, "small")->type.dtype, CLV_DTYPE_NONE);
  const int8_t *typed = value_of(graph, "typed")->type.data;
  assert_int_equal(typed[0], -3);
  assert_int_equal(typed[1], 100);
  const clv_string *text = value_of(graph, "text")->type.data;
  assert_int_equal(text[0].size_bytes, 3);
  assert_memory_equal(text[0].data, "one", 3);
  assert_int_equal(text[1].size_bytes, 0);
  const uint8_t *booleans = value_of(graph, "rg")->type.data;
  assert_int_equal(booleans[0] + booleans[1] * 2 + booleans[2] * 4, 5);

  const clv__node *lists = node_of(graph, "lists");
  assert_string_equal(lists->domain, "custom");
  assert_int_equal(lists->opset, 3);
  assert_int_equal(lists->output_count, 3);
  assert_int_equal(lists->outputs[1], CLV__NO_ID);
  size_t count;
  const int64_t *ints = clv__attribute_ints(lists->attributes, "ints", &count);
  assert_int_equal(count, 4);
  assert_true(ints[0] == -1 && ints[1] == 0 && ints[2] == 1LL << 62 && ints[3] == 5);
  const float *floats = clv__attribute_floats(lists->attributes, "floats", &count);
  assert_int_equal(count, 3);
  assert_true(floats[1] == -2.5f);
  const clv_attribute *strings = clv__attribute_find(lists->attributes, "strings");
  assert_int_equal(strings->count, 2);
  assert_int_equal(strings->strings[0].size_bytes, 3);
  assert_memory_equal(strings->strings[0].data, "a\0b", 3);
  const clv_attribute *constant = clv__attribute_find(node_of(graph, "constant")->attributes, "value");
  assert_int_equal(constant->kind, CLV_ATTRIBUTE_TENSOR);
  assert_int_equal(constant->tensor->dims[0], 3);
  clv__graph_destroy(graph);
}

static void bodies_keep_their_captures(void **state) {
  (void)state;
  clv_graph *graph = make(model_everything);
  const clv__node *node = node_of(graph, "if");
  assert_int_equal(node->input_count, 4); /* the condition, then the captures a, c and w */
  assert_int_equal(node->capture_count, 3);
  const clv_attribute *branch = clv__attribute_find(node->attributes, "else_branch");
  assert_int_equal(branch->kind, CLV_ATTRIBUTE_GRAPH);
  const clv_graph *body = branch->graph->graph;
  assert_int_equal(body->node_count, 1);
  assert_int_equal(body->capture_count, 2);
  assert_int_equal(body->nodes[0].opset, 17);
  for (uint32_t i = 0; i < body->capture_count; ++i) {
    clv_value_id outer = node->inputs[1 + body->capture_index[i]];
    assert_string_equal(graph->values[outer].name, body->values[body->captures[i]].name);
  }
  clv__graph_destroy(graph);
}

static void functions_are_inlined(void **state) {
  (void)state;
  clv_graph *graph = make(model_everything);
  const clv__node *soft = node_of(graph, "call/soft");
  assert_int_equal(clv__attribute_int(soft->attributes, "axis", -1), 1);
  assert_true(clv__attribute_float(soft->attributes, "epsilon", 0) == 0.5f); /* the function's default */
  assert_null(clv__attribute_find(soft->attributes, "absent"));
  assert_string_equal(graph->values[soft->inputs[0]].name, "branch");
  const clv__node *negate = node_of(graph, "call/twice/Neg");
  assert_string_equal(negate->domain, "");
  assert_string_equal(graph->values[negate->outputs[0]].name, "Y");
  const clv__node *add = node_of(graph, "call/twice/Add");
  assert_int_equal(add->inputs[0], soft->outputs[0]);
  assert_int_equal(add->inputs[1], soft->outputs[0]);
  assert_int_equal(clv__graph_find_value(graph, "t"),
                   CLV__NO_ID); /* names inside the function do not become names of the model */
  clv__graph_destroy(graph);
}

static void pass_through_call(clv__text *out) {
  static const int64_t dims[] = {2};
  size_t graph = model_open(out, 9);
  clv__proto_end(out, model_node(out, GRAPH_NODE, "p", "local", "same", "X", "Y,Z"), 0);
  model_value(out, GRAPH_INPUT, "X", CLV_F32, dims, 1);
  model_value(out, GRAPH_OUTPUT, "Y", CLV_F32, dims, 1);
  model_value(out, GRAPH_OUTPUT, "Z", CLV_F32, dims, 1);
  model_close(out, graph);
  size_t function = clv__proto_begin(out, MODEL_FUNCTIONS, 0);
  clv__proto_write_string(out, FUNCTION_NAME, "same");
  clv__proto_write_string(out, FUNCTION_DOMAIN, "local");
  clv__proto_write_string(out, FUNCTION_INPUT, "A");
  clv__proto_write_string(out, FUNCTION_OUTPUT, "A");
  clv__proto_write_string(out, FUNCTION_OUTPUT, "A");
  clv__proto_end(out, function, 0);
}

static void outputs_that_are_inputs_are_copied(void **state) {
  (void)state;
  clv_graph *graph = make(pass_through_call);
  assert_int_equal(graph->node_count, 2);
  for (uint32_t i = 0; i < 2; ++i) {
    assert_string_equal(graph->nodes[i].op, "Identity");
    assert_string_equal(graph->values[graph->nodes[i].inputs[0]].name, "X");
  }
  clv__graph_destroy(graph);
}

static void placeholder_sizes(clv__text *out) {
  static const int64_t dims[] = {-2, 3, -2, -1};
  size_t graph = model_open(out, 9);
  model_plain_node(out, "Relu", "X", "Y");
  model_value(out, GRAPH_INPUT, "X", CLV_F32, dims, 4);
  model_value(out, GRAPH_OUTPUT, "Y", CLV_F32, dims, 4);
  model_close(out, graph);
}

static void placeholders_are_not_one_size(void **state) {
  (void)state;
  clv_graph *graph = make(placeholder_sizes);
  const int64_t *dims = value_of(graph, "X")->type.dims;
  assert_int_equal(dims[0], CLV_DIM_UNKNOWN);
  assert_int_equal(dims[1], 3);
  assert_int_equal(dims[2], CLV_DIM_UNKNOWN);
  assert_string_equal(graph->symbols[-2 - dims[3]], "N");
  clv__graph_destroy(graph);
}

static void old_inputs_with_initializers_are_constants(void **state) {
  (void)state;
  static const int64_t dims[] = {1};
  static const float one = 1;
  for (int ir_version = 3; ir_version <= 4; ++ir_version) {
    clv__text model;
    clv__text_init(&model, clv__allocator_default());
    size_t mark = model_open(&model, ir_version);
    model_plain_node(&model, "Add", "X,w", "Y");
    model_tensor(&model, GRAPH_INITIALIZER, "w", CLV_F32, dims, 1, &one, sizeof one);
    model_value(&model, GRAPH_INPUT, "X", CLV_F32, dims, 1);
    model_value(&model, GRAPH_INPUT, "w", CLV_F32, dims, 1);
    model_value(&model, GRAPH_OUTPUT, "Y", CLV_F32, dims, 1);
    model_close(&model, mark);
    clv_graph *graph = load(&model);
    assert_int_equal(graph->input_count, ir_version < 4 ? 1 : 2);
    clv__graph_destroy(graph);
    clv__text_finish(&model);
  }
}

static void borrowed_data_stays_where_it_is(void **state) {
  (void)state;
  static const int64_t dims[] = {3};
  static const float floats[] = {1, 2, 3};
  for (unsigned shift = 0; shift < 4; ++shift) { /* raw data at every alignment */
    clv__text model;
    clv__text_init(&model, clv__allocator_default());
    char name[] = "wwww";
    name[1 + shift] = '\0';
    size_t mark = model_open(&model, 8);
    model_tensor(&model, GRAPH_INITIALIZER, name, CLV_F32, dims, 1, floats, sizeof floats);
    model_value(&model, GRAPH_OUTPUT, name, CLV_F32, dims, 1);
    model_close(&model, mark);
    clv_graph *graph;
    clv_error error = {0};
    assert_ok(clv__onnx_load_memory(clv__allocator_default(), model.data, model.size_bytes, false, &graph, &error), error);
    const char *data = value_of(graph, name)->type.data;
    assert_true(data >= model.data && data < model.data + model.size_bytes);
    assert_memory_equal(data, floats, sizeof floats);
    clv__graph_destroy(graph);
    clv__text_finish(&model);
  }
}

static void file_is_mapped(void **state) {
  (void)state;
  char path[] = "/tmp/cleave-test-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  clv__text model;
  clv__text_init(&model, clv__allocator_default());
  model_everything(&model);
  clv_error error = {0};
  assert_ok(clv__file_write(path, model.data, model.size_bytes, &error), error);
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph;
  assert_ok(clv__onnx_load_file(&counting.allocator, path, &graph, &error), error);
  assert_string_equal(graph->path, path);
  assert_memory_equal(value_of(graph, "w")->type.data, ((const float[]){1.0f, -2.5f, 3.25f}), 12);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
  clv__text_finish(&model);
  unlink(path);
}

/* ---- Writing ---- */

static void assert_same_tensor(const clv_tensor *a, const clv_tensor *b) {
  assert_int_equal(a->dtype, b->dtype);
  assert_int_equal(a->rank, b->rank);
  for (int32_t i = 0; i < a->rank; ++i) assert_int_equal(a->dims[i], b->dims[i]);
  assert_int_equal(a->data == NULL, b->data == NULL);
  size_t size_bytes;
  if (a->data == NULL || a->dtype == CLV_STRING || !clv__tensor_size_bytes(a, &size_bytes)) return;
  assert_memory_equal(a->data, b->data, size_bytes);
}

static void assert_same_graph(const clv_graph *a, const clv_graph *b) {
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->input_count, b->input_count);
  assert_int_equal(a->output_count, b->output_count);
  for (uint32_t n = 0; n < a->node_count; ++n) {
    const clv__node *x = &a->nodes[n], *y = &b->nodes[n];
    assert_string_equal(x->op, y->op);
    assert_string_equal(x->name, y->name);
    assert_int_equal(x->opset, y->opset);
    assert_int_equal(x->input_count, y->input_count);
    assert_int_equal(x->capture_count, y->capture_count);
    assert_int_equal(x->output_count, y->output_count);
    for (uint32_t i = 0; i < x->input_count; ++i) {
      if (x->inputs[i] == CLV__NO_ID)
        assert_int_equal(y->inputs[i], CLV__NO_ID);
      else
        assert_string_equal(a->values[x->inputs[i]].name, b->values[y->inputs[i]].name);
    }
    assert_int_equal(x->attributes.count, y->attributes.count);
    for (uint32_t i = 0; i < x->attributes.count; ++i) {
      const clv_attribute *p = &x->attributes.items[i], *q = &y->attributes.items[i];
      assert_string_equal(p->name, q->name);
      assert_int_equal(p->kind, q->kind);
      assert_int_equal(p->count, q->count);
      assert_int_equal(p->is_list, q->is_list);
      if (p->kind == CLV_ATTRIBUTE_INTS) assert_memory_equal(p->ints, q->ints, p->count * sizeof *p->ints);
      if (p->kind == CLV_ATTRIBUTE_FLOATS) assert_memory_equal(p->floats, q->floats, p->count * sizeof *p->floats);
      if (p->kind == CLV_ATTRIBUTE_TENSOR) assert_same_tensor(p->tensor, q->tensor);
      if (p->kind == CLV_ATTRIBUTE_GRAPH) assert_same_graph(p->graph->graph, q->graph->graph);
    }
  }
  for (uint32_t v = 0; v < a->value_count; ++v) {
    if (a->values[v].type.dtype != CLV_DTYPE_NONE) {
      const clv__value *other = value_of(b, a->values[v].name);
      assert_same_tensor(&a->values[v].type, &other->type);
      assert_int_equal(a->values[v].is_input, other->is_input);
    }
  }
}

static void written_models_read_the_same(void **state) {
  (void)state;
  static const maker makers[] = {model_everything, pass_through_call};
  for (size_t i = 0; i < sizeof makers / sizeof *makers; ++i) {
    clv_graph *graph = make(makers[i]);
    void *data;
    size_t size_bytes;
    clv_error error = {0};
    assert_ok(clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error), error);
    clv_graph *again;
    assert_ok(clv__onnx_load_memory(clv__allocator_default(), data, size_bytes, false, &again, &error), error);
    assert_same_graph(graph, again);
    clv__graph_destroy(again);
    clv__graph_destroy(graph);
    clv__release(clv__allocator_default(), data);
  }
}

static void large_constants_become_inputs(void **state) {
  (void)state;
  clv_graph *graph = make(model_everything);
  clv__arena arena;
  clv__arena_init(&arena, clv__allocator_default());
  clv_node_id nodes[] = {clv__graph_find_node(graph, "constant"), clv__graph_find_node(graph, "if")};
  clv_graph_view *view;
  clv_error error = {0};
  clv_tensor *types = clv__arena_allocate_zero(&arena, graph->value_count, sizeof *types);
  for (uint32_t v = 0; v < graph->value_count; ++v) types[v] = graph->values[v].type;
  assert_ok(clv__view_create(graph, types, nodes, 2, NULL, &arena, &view, &error), error);
  for (size_t limit = 11; limit <= 12; ++limit) { /* w has 12 bytes */
    void *data;
    size_t size_bytes;
    assert_ok(clv__onnx_write(view, limit, clv__allocator_default(), &data, &size_bytes, &error), error);
    clv_graph *part;
    assert_ok(clv__onnx_load_memory(clv__allocator_default(), data, size_bytes, true, &part, &error), error);
    clv__release(clv__allocator_default(), data);
    assert_int_equal(part->node_count, 2);
    assert_int_equal(part->input_count, limit < 12 ? 3 : 2);
    assert_string_equal(part->values[part->inputs[0]].name, "flag");
    if (limit < 12) assert_string_equal(part->values[part->inputs[2]].name, "w");
    assert_int_equal(value_of(part, "w")->type.data != NULL, limit >= 12);
    assert_int_equal(part->output_count, 1);
    clv__graph_destroy(part);
  }
  clv__arena_finish(&arena);
  clv__graph_destroy(graph);
}

/* If a body is written as a model, its captures become inputs. */
static void bodies_can_be_written_alone(void **state) {
  (void)state;
  clv_graph *graph = make(model_everything);
  const clv_attribute *branch = clv__attribute_find(node_of(graph, "if")->attributes, "then_branch");
  void *data;
  size_t size_bytes;
  clv_error error = {0};
  assert_ok(clv__onnx_write(branch->graph, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error), error);
  clv_graph *alone;
  assert_ok(clv__onnx_load_memory(clv__allocator_default(), data, size_bytes, true, &alone, &error), error);
  assert_int_equal(alone->input_count, 2);
  clv__graph_destroy(alone);
  clv__release(clv__allocator_default(), data);
  clv__graph_destroy(graph);
}

/* ---- Tensors ---- */

/* For dtypes whose elements share bytes, each number of the typed field is one byte with several elements. */
static void packed_elements_are_read(void **state) {
  (void)state;
  static const struct {
    clv_dtype dtype;
    int64_t count, values[5];
    size_t numbers;
    int64_t field[3];
  } cases[] = {{CLV_I4, 5, {-8, 7, -1, 0, 3}, 3, {0x78, 0x0f, 0x03}},
               {CLV_U4, 3, {15, 1, 9}, 2, {0x1f, 0x09}},
               {CLV_I2, 5, {-2, 1, -1, 0, 1}, 2, {0x36, 0x01}},
               {CLV_U2, 4, {3, 0, 1, 2}, 1, {0x93}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (int raw = 0; raw < 2; ++raw) {
      clv__text message;
      clv__text_init(&message, clv__allocator_default());
      clv__proto_write_varint(&message, TENSOR_DIMS, (uint64_t)cases[c].count);
      clv__proto_write_varint(&message, TENSOR_DATA_TYPE, cases[c].dtype);
      uint8_t bytes[3];
      for (size_t i = 0; i < cases[c].numbers; ++i) bytes[i] = (uint8_t)cases[c].field[i];
      if (raw)
        clv__proto_write_bytes(&message, TENSOR_RAW_DATA, bytes, cases[c].numbers);
      else
        clv__proto_write_ints(&message, TENSOR_INT32_DATA, cases[c].field, cases[c].numbers);
      clv_tensor tensor;
      clv_error error = {0};
      assert_ok(clv__onnx_tensor_read(clv__allocator_default(), message.data, message.size_bytes, &tensor, NULL, &error), error);
      assert_int_equal(tensor.dtype, cases[c].dtype);
      for (int64_t i = 0; i < cases[c].count; ++i) {
        assert_int_equal(clv__tensor_get_int(&tensor, (size_t)i), cases[c].values[i]);
      }
      clv__release(clv__allocator_default(), tensor.data);
      clv__text_finish(&message);
    }
  }
}

static void tensors_of_every_dtype_go_round(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_F32,  CLV_U8,       CLV_I8,         CLV_U16,    CLV_I16,        CLV_I32,
                                     CLV_I64,  CLV_BOOL,     CLV_F16,        CLV_F64,    CLV_U32,        CLV_U64,
                                     CLV_BF16, CLV_F8E4M3FN, CLV_F8E4M3FNUZ, CLV_F8E5M2, CLV_F8E5M2FNUZ, CLV_F8E8M0,
                                     CLV_U4,   CLV_I4,       CLV_F4E2M1,     CLV_U2,     CLV_I2};
  static const int64_t dims[] = {2, 3};
  uint64_t seed = 7;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
    uint8_t bytes[48];
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (uint8_t)test_random(&seed) & (dtypes[d] == CLV_BOOL ? 1 : 255);
    clv_tensor tensor = clv__tensor_make(dtypes[d], 2, dims, bytes), again;
    void *data;
    size_t size_bytes, tensor_bytes;
    char *name;
    clv_error error = {0};
    test_allocator counting;
    test_allocator_init(&counting);
    assert_ok(clv__onnx_tensor_write(&tensor, "the name", &counting.allocator, &data, &size_bytes, &error), error);
    assert_ok(clv__onnx_tensor_read(&counting.allocator, data, size_bytes, &again, &name, &error), error);
    assert_string_equal(name, "the name");
    assert_true(clv__tensor_same_type(&tensor, &again));
    assert_true(clv__tensor_size_bytes(&tensor, &tensor_bytes));
    assert_memory_equal(again.data, bytes, tensor_bytes);
    assert_int_equal((uintptr_t)again.data % CLV__ALIGNMENT, 0);
    clv__release(&counting.allocator, name);
    clv__release(&counting.allocator, again.data);
    clv__release(&counting.allocator, data);
    assert_int_equal(counting.live, 0);
  }
}

typedef struct typed_case {
  clv_dtype dtype;
  uint32_t field;
  int64_t numbers[3];
  uint8_t bytes[24];
} typed_case;

static void typed_fields_are_decoded(void **state) {
  (void)state;
  static const typed_case cases[] = {
      {CLV_I8, TENSOR_INT32_DATA, {-1, 127, -128}, {0xff, 0x7f, 0x80}},
      {CLV_U8, TENSOR_INT32_DATA, {0, 255, 7}, {0, 0xff, 7}},
      {CLV_I16, TENSOR_INT32_DATA, {-2, 300, 0}, {0xfe, 0xff, 0x2c, 1, 0, 0}},
      {CLV_U16, TENSOR_INT32_DATA, {65535, 1, 0}, {0xff, 0xff, 1, 0, 0, 0}},
      {CLV_I32, TENSOR_INT32_DATA, {-1, 2, 3}, {0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 3}},
      {CLV_BOOL, TENSOR_INT32_DATA, {0, 1, 5}, {0, 1, 1}},
      {CLV_F16, TENSOR_INT32_DATA, {0x3c00, 0xfc00, 0}, {0, 0x3c, 0, 0xfc, 0, 0}},
      {CLV_BF16, TENSOR_INT32_DATA, {0x3f80, 0xff80, 0}, {0x80, 0x3f, 0x80, 0xff, 0, 0}},
      {CLV_F8E5M2, TENSOR_INT32_DATA, {0, 0x7c, 0xff}, {0, 0x7c, 0xff}},
      {CLV_I64, TENSOR_INT64_DATA, {-1, 1, 0}, {255, 255, 255, 255, 255, 255, 255, 255, 1}},
      {CLV_U32, TENSOR_UINT64_DATA, {4294967295, 1, 0}, {255, 255, 255, 255, 1}},
      {CLV_U64, TENSOR_UINT64_DATA, {-1, 1, 0}, {255, 255, 255, 255, 255, 255, 255, 255, 1}},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; ++i) {
    const typed_case *item = &cases[i / 2];
    clv__text message;
    clv__text_init(&message, clv__allocator_default());
    clv__proto_write_varint(&message, TENSOR_DIMS, 3);
    clv__proto_write_varint(&message, TENSOR_DATA_TYPE, item->dtype);
    if (i % 2 == 0)
      clv__proto_write_ints(&message, item->field, item->numbers, 3);
    else
      for (size_t k = 0; k < 3; ++k) clv__proto_write_varint(&message, item->field, (uint64_t)item->numbers[k]);
    clv_tensor tensor;
    clv_error error = {0};
    assert_ok(clv__onnx_tensor_read(clv__allocator_default(), message.data, message.size_bytes, &tensor, NULL, &error), error);
    assert_memory_equal(tensor.data, item->bytes, 3 * clv_dtype_size_bytes(item->dtype));
    clv__release(clv__allocator_default(), tensor.data);
    clv__text_finish(&message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graph_has_what_the_model_has),    cmocka_unit_test(bodies_keep_their_captures),
      cmocka_unit_test(functions_are_inlined),           cmocka_unit_test(outputs_that_are_inputs_are_copied),
      cmocka_unit_test(placeholders_are_not_one_size),   cmocka_unit_test(old_inputs_with_initializers_are_constants),
      cmocka_unit_test(borrowed_data_stays_where_it_is), cmocka_unit_test(file_is_mapped),
      cmocka_unit_test(written_models_read_the_same),    cmocka_unit_test(large_constants_become_inputs),
      cmocka_unit_test(bodies_can_be_written_alone),     cmocka_unit_test(tensors_of_every_dtype_go_round),
      cmocka_unit_test(packed_elements_are_read),        cmocka_unit_test(typed_fields_are_decoded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
