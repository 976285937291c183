/* Keys of captures: a random plan and the same plan with one change have different keys, and the first difference is reported.
 * The same plan with other addresses and names has an equal key. */
#include "execute/capture/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/shapes.h"
#include "models.h"
#include "support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { MOST_NODES = 40, INPUTS = 3, DEVICES = 2 };

typedef enum node_kind { UNARY, BINARY, CLIP, SOFTMAX, TRANSPOSE, RESHAPE, IF, KINDS } node_kind;
static const char *const unary_ops[] = {"Relu", "Tanh", "Sigmoid", "Abs"};
static const char *const binary_ops[] = {"Add", "Mul", "Sub", "Max"};

typedef struct node_spec {
  node_kind kind;
  uint32_t op;        /* index in the list of operators of this kind */
  uint32_t inputs[2]; /* values: first the graph's inputs, then the outputs of nodes */
  uint32_t number;    /* a parameter: the limit of Clip, the axis, the operator inside the body */
  bool is_output;
} node_spec;

/* Describes a graph and the partitions of its plan. */
typedef struct spec {
  uint32_t count;
  node_spec nodes[MOST_NODES];
  uint32_t partition_count;
  uint32_t ends[4], devices[4];
  bool captured[4];
} spec;

static spec random_spec(uint64_t seed) {
  spec s = {.count = 4 + (uint32_t)(test_random(&seed) % (MOST_NODES - 4))};
  for (uint32_t i = 0; i < s.count; ++i) {
    s.nodes[i] =
        (node_spec){.kind = (node_kind)(test_random(&seed) % KINDS),
                    .op = (uint32_t)(test_random(&seed) % 4),
                    .inputs = {(uint32_t)(test_random(&seed) % (INPUTS + i)), (uint32_t)(test_random(&seed) % (INPUTS + i))},
                    .number = (uint32_t)(test_random(&seed) % 2),
                    .is_output = i + 1 == s.count || test_random(&seed) % 8 == 0};
  }
  s.partition_count = 1 + (uint32_t)(test_random(&seed) % 4);
  for (uint32_t p = 0; p < s.partition_count; ++p) {
    s.ends[p] = p + 1 == s.partition_count ? s.count : s.count * (p + 1) / s.partition_count;
    s.devices[p] = p == 0 ? 0 : (uint32_t)(test_random(&seed) % DEVICES);
    s.captured[p] = p == 0 || test_random(&seed) % 3 != 0;
  }
  return s;
}

/* The graph, types and plan built from a spec. */
typedef struct built {
  clv_graph *graph;
  clv__shapes *shapes;
  clv_tensor *types;
  clv_value_id *aliases; /* indexed by value */
  clv_devices devices;
  clv__partition partitions[4];
  bool captured[4];
  clv_plan plan;
  clv__arena arena;
  clv__capture_key key;
} built;

static const clv_graph_view *body(test_graph *graph, const char *prefix, const char *op) {
  clv_error error = {0};
  test_graph inner;
  clv_value_id output;
  const clv_graph_view *view;
  char captured[32];
  snprintf(captured, sizeof captured, "%si0", prefix);
  test_graph_begin(&inner, clv__allocator_default(), 1);
  test_graph_node(&inner, "inner", op, captured, "inner_out");
  assert_ok(clv__builder_value(inner.builder, "inner_out", &output, &error), error);
  assert_ok(clv__builder_output(inner.builder, output, &error), error);
  assert_ok(clv__builder_finish_body(inner.builder, graph->builder, &view, &error), error);
  return view;
}

static void add_if(test_graph *graph, const char *prefix, const char *name, const char *out, const node_spec *n) {
  clv_error error = {0};
  clv_value_id condition, output;
  char text[32];
  snprintf(text, sizeof text, "%sflag", prefix);
  assert_ok(clv__builder_value(graph->builder, text, &condition, &error), error);
  assert_ok(clv__builder_value(graph->builder, out, &output, &error), error);
  clv_attribute attributes[2] = {{.name = "then_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1},
                                 {.name = "else_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1}};
  attributes[0].graph = body(graph, prefix, unary_ops[n->number]);
  attributes[1].graph = body(graph, prefix, unary_ops[2]);
  assert_ok(clv__builder_node(graph->builder, name, "", "If", &condition, 1, &output, 1, attributes, 2, &error), error);
}

static void value_name(const char *prefix, uint32_t value, char name[32]) {
  snprintf(name, 32, value < INPUTS ? "%si%u" : "%sv%u", prefix, value < INPUTS ? value : value - INPUTS);
}

static void add_constant(test_graph *graph, const char *name, float number) {
  clv_error error = {0};
  clv_value_id id;
  float *data = clv__arena_allocate_data(clv__builder_arena(graph->builder), sizeof *data);
  *data = number;
  clv_tensor type = clv__tensor_make(CLV_F32, 0, NULL, data);
  assert_ok(clv__builder_value(graph->builder, name, &id, &error), error);
  clv__builder_type(graph->builder, id, &type);
}

static void add_node(test_graph *graph, const char *prefix, uint32_t index, const node_spec *n) {
  char name[32], out[32], inputs[4][32], list[160], parameter[32];
  snprintf(name, sizeof name, "%sn%u", prefix, index);
  value_name(prefix, INPUTS + index, out);
  for (int i = 0; i < 2; ++i) value_name(prefix, n->inputs[i], inputs[i]);
  snprintf(parameter, sizeof parameter, "%sp%u", prefix, index);
  switch (n->kind) {
    case UNARY:
      test_graph_node(graph, name, unary_ops[n->op], inputs[0], out);
      break;
    case BINARY:
      snprintf(list, sizeof list, "%s,%s", inputs[0], inputs[1]);
      test_graph_node(graph, name, binary_ops[n->op], list, out);
      break;
    case CLIP:
      add_constant(graph, parameter, (float)n->number);
      snprintf(list, sizeof list, "%s,%s", inputs[0], parameter);
      test_graph_node(graph, name, "Clip", list, out);
      break;
    case SOFTMAX:
      test_graph_node_ints(graph, name, "Softmax", inputs[0], out, "axis", false, 1, DIMS(n->number));
      break;
    case TRANSPOSE:
      test_graph_node_ints(graph, name, "Transpose", inputs[0], out, "perm", true, 2, DIMS(n->number, 1 - n->number));
      break;
    case RESHAPE:
      test_graph_ints(graph, parameter, 2, DIMS(8, n->number == 0 ? 8 : -1));
      snprintf(list, sizeof list, "%s,%s", inputs[0], parameter);
      test_graph_node(graph, name, "Reshape", list, out);
      break;
    default:
      add_if(graph, prefix, name, out, n);
      break;
  }
}

static void build(built *b, const spec *s, const char *prefix, const char *device) {
  clv_error error = {0};
  test_graph g;
  char name[32], outputs[16 * 32] = "";
  memset(b, 0, sizeof *b);
  test_graph_begin(&g, clv__allocator_default(), 1);
  snprintf(name, sizeof name, "%sflag", prefix);
  test_graph_input(&g, name, CLV_BOOL, 0, NULL);
  for (uint32_t i = 0; i < INPUTS; ++i) {
    value_name(prefix, i, name);
    test_graph_input(&g, name, CLV_F32, 2, DIMS(8, 8));
  }
  uint32_t output_count = 0;
  for (uint32_t i = 0; i < s->count; ++i) {
    add_node(&g, prefix, i, &s->nodes[i]);
    if (!s->nodes[i].is_output || (output_count == 15 && i + 1 < s->count)) continue;
    value_name(prefix, INPUTS + i, name);
    snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", output_count++ > 0 ? "," : "", name);
  }
  b->graph = test_graph_end(&g, outputs);
  assert_ok(clv__shapes_infer(b->graph, NULL, 0, 0, &b->shapes, &error), error);
  clv__arena_init(&b->arena, clv__allocator_default());
  b->types = clv__arena_copy(&b->arena, b->shapes->types, b->graph->value_count * sizeof *b->types);
  b->aliases = clv__arena_allocate(&b->arena, b->graph->value_count * sizeof *b->aliases);
  for (uint32_t i = 0; i < b->graph->value_count; ++i) b->aliases[i] = CLV__NO_ID;
  b->devices.count = DEVICES;
  b->devices.items[0] = (clv__device){.name = device, .info = {.fingerprint = "chip 1"}};
  b->devices.items[1] = (clv__device){.name = "other"};
  b->plan =
      (clv_plan){.graph = b->graph, .devices = &b->devices, .partition_count = s->partition_count, .partitions = b->partitions};
  clv_node_id nodes[MOST_NODES];
  for (uint32_t i = 0; i < s->count; ++i) nodes[i] = i;
  for (uint32_t p = 0, from = 0; p < s->partition_count; from = s->ends[p++]) {
    clv_graph_view *view;
    assert_ok(clv__view_create(b->graph, b->types, nodes + from, s->ends[p] - from, NULL, &b->arena, &view, &error), error);
    b->partitions[p] =
        (clv__partition){.device = s->devices[p], .node_count = view->node_count, .nodes = view->nodes, .view = view};
    b->captured[p] = s->captured[p];
  }
}

static void make(built *b) {
  clv_error error = {0};
  assert_ok(clv__capture_key_make(&b->plan, 0, b->captured, b->types, b->aliases, &b->arena, &b->key, &error), error);
}

static void release(built *b) {
  clv__arena_finish(&b->arena);
  clv__shapes_destroy(b->shapes);
  clv__graph_destroy(b->graph);
}

static bool is_taken(const spec *s, uint32_t node, uint32_t *number) {
  *number = 0;
  for (uint32_t p = 0, from = 0; p < s->partition_count; from = s->ends[p++]) {
    bool taken = s->devices[p] == 0 && s->captured[p];
    if (node < s->ends[p]) {
      *number += taken ? node - from : 0;
      return taken;
    }
    *number += taken ? s->ends[p] - from : 0;
  }
  return false;
}

/* Returns the value with the given number in the spec. */
static clv_value_id value_of(const built *b, uint32_t value) {
  char name[32];
  value_name("", value, name);
  return clv__graph_find_value(b->graph, name);
}

static void expect(uint64_t seed, const built *now, const built *before, const char *text) {
  char is[300];
  clv__capture_key_difference(&now->key, &before->key, is, sizeof is);
  bool same = text == NULL;
  if (clv__capture_key_equal(&now->key, &before->key) != same ||
      (memcmp(&now->key.hash, &before->key.hash, sizeof now->key.hash) == 0) != same) {
    fail_msg("seed %llu: the keys and their hashes must %s; the reported difference is: %s", (unsigned long long)seed,
             same ? "be equal" : "differ", is);
  }
  if (strcmp(is, same ? "no difference" : text) != 0) {
    fail_msg("seed %llu: the difference is described as '%s', expected '%s'", (unsigned long long)seed, is,
             same ? "no difference" : text);
  }
}

/* Changes one node of the spec, and writes the expected difference into `text`. Returns false if nothing of the node can
 * change. */
static bool change_node(spec *s, uint32_t node, uint32_t number, char *text, size_t size_bytes) {
  node_spec *n = &s->nodes[node];
  uint32_t old_number = n->number, old_op = n->op;
  char head[64];
  n->number = 1 - n->number;
  n->op = (n->op + 1) % 4;
  snprintf(head, sizeof head, "node %u 'n%u'", number, node);
  switch (n->kind) {
    case UNARY:
      snprintf(text, size_bytes, "%s: %s, was %s", head, unary_ops[n->op], unary_ops[old_op]);
      break;
    case BINARY:
      snprintf(text, size_bytes, "%s: %s, was %s", head, binary_ops[n->op], binary_ops[old_op]);
      break;
    case CLIP:
      snprintf(text, size_bytes, "value 'p%u': [%u], was [%u]", node, n->number, old_number);
      break;
    case SOFTMAX:
      snprintf(text, size_bytes, "%s (Softmax): attribute 'axis': [%u], was [%u]", head, n->number, old_number);
      break;
    case TRANSPOSE:
      snprintf(text, size_bytes, "%s (Transpose): attribute 'perm': [%u,%u], was [%u,%u]", head, n->number, 1 - n->number,
               old_number, 1 - old_number);
      break;
    case RESHAPE:
      snprintf(text, size_bytes, "value 'p%u': [8,%d], was [8,%d]", node, n->number == 0 ? 8 : -1, old_number == 0 ? 8 : -1);
      break;
    default:
      snprintf(text, size_bytes, "%s (If): attribute 'then_branch': node 0: %s, was %s", head, unary_ops[n->number],
               unary_ops[old_number]);
      break;
  }
  return true;
}

static void one_node_changes(void **state) {
  (void)state;
  uint32_t unseen = 0, seen[KINDS] = {0};
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    uint64_t random = seed * 77;
    spec s = random_spec(seed), other = s;
    built before, again, now;
    char text[300];
    uint32_t node = (uint32_t)(test_random(&random) % s.count), number;
    build(&before, &s, "", "npu");
    build(&again, &s, "x_", "npu"); /* the same graph with other names and in other memory */
    change_node(&other, node, (is_taken(&s, node, &number), number), text, sizeof text);
    build(&now, &other, "", "npu");
    make(&before);
    make(&again);
    make(&now);
    expect(seed, &again, &before, NULL);
    bool taken = is_taken(&s, node, &number);
    expect(seed, &now, &before, taken ? text : NULL);
    unseen += !taken;
    seen[s.nodes[node].kind] += taken;
    release(&before);
    release(&again);
    release(&now);
  }
  assert_true(unseen > 20);
  for (uint32_t i = 0; i < KINDS; ++i) assert_true(seen[i] > 10);
}

/* Picks a value that is in the key: an input or the output of a random node. Returns false if that node is not in the key. */
static bool pick_value(const spec *s, uint64_t *random, uint32_t *value) {
  uint32_t node = (uint32_t)(test_random(random) % s->count), number;
  *value = test_random(random) % 2 == 0 || s->nodes[node].kind == IF ? INPUTS + node : s->nodes[node].inputs[0];
  return is_taken(s, node, &number);
}

static void one_value_changes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    uint64_t random = seed * 78;
    spec s = random_spec(seed);
    built before, now;
    char text[300], name[32];
    uint32_t value;
    if (!pick_value(&s, &random, &value)) continue;
    value_name("", value, name);
    build(&before, &s, "", "npu");
    build(&now, &s, "", "npu");
    make(&before);
    clv_tensor *type = &now.types[value_of(&now, value)];
    switch (test_random(&random) % 4) {
      case 0:
        type->dims[1] = 4;
        snprintf(text, sizeof text, "value '%s': f32[8,4], was f32[8,8]", name);
        break;
      case 1:
        type->dtype = CLV_F16;
        snprintf(text, sizeof text, "value '%s': f16[8,8], was f32[8,8]", name);
        break;
      case 2:
        type->rank = 3;
        type->dims[2] = 1;
        snprintf(text, sizeof text, "value '%s': f32[8,8,1], was f32[8,8]", name);
        break;
      default:
        type->dims[0] = CLV_DIM_UNKNOWN;
        snprintf(text, sizeof text, "value '%s': f32[?,8], was f32[8,8]", name);
        break;
    }
    make(&now);
    expect(seed, &now, &before, text);
    release(&before);
    release(&now);
  }
}

/* Compares the key of a graph in which two inputs of a node share memory with the key of one in which they do not. */
static void memory_is_shared(void **state) {
  (void)state;
  uint32_t checked = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    spec s = random_spec(seed);
    built before, now;
    uint32_t number, node = 0;
    while (node < s.count &&
           (s.nodes[node].kind != BINARY || s.nodes[node].inputs[0] == s.nodes[node].inputs[1] || !is_taken(&s, node, &number))) {
      ++node;
    }
    if (node == s.count) continue;
    ++checked;
    build(&before, &s, "", "npu");
    build(&now, &s, "", "npu");
    clv_value_id a = value_of(&now, s.nodes[node].inputs[0]), b = value_of(&now, s.nodes[node].inputs[1]);
    before.aliases[a] = a; /* its own id: the value shares memory with no other */
    make(&before);
    now.aliases[a] = now.aliases[b] = b;
    make(&now);
    char text[300], back[300], first[32], second[32];
    clv__capture_key_difference(&now.key, &before.key, text, sizeof text);
    clv__capture_key_difference(&before.key, &now.key, back, sizeof back);
    value_name("", s.nodes[node].inputs[0], first);
    value_name("", s.nodes[node].inputs[1], second);
    char one[128], other[128]; /* the value that comes later in the key is reported */
    snprintf(one, sizeof one, "value '%s': shares memory with '%s', previously with none", first, second);
    snprintf(other, sizeof other, "value '%s': shares memory with '%s', previously with none", second, first);
    if (strcmp(text, one) != 0 && strcmp(text, other) != 0)
      fail_msg("seed %llu: the difference is described as '%s', expected '%s' or '%s'", (unsigned long long)seed, text, one,
               other);
    assert_non_null(strstr(back, "shares memory with no earlier value, previously with '"));
    before.aliases[a] = before.aliases[b] = a; /* any id that both values share gives the same key */
    make(&before);
    expect(seed, &now, &before, NULL);
    release(&before);
    release(&now);
  }
  assert_true(checked > 50);
}

static void the_rest_changes(void **state) {
  (void)state;
  spec s = {.count = 3,
            .nodes = {{.kind = UNARY, .inputs = {0}},
                      {.kind = BINARY, .inputs = {INPUTS, 1}},
                      {.kind = SOFTMAX, .inputs = {INPUTS + 1}, .is_output = true}},
            .partition_count = 2,
            .ends = {2, 3},
            .captured = {true, true}};
  built before, now;
  build(&before, &s, "", "npu");
  make(&before);

  build(&now, &s, "", "npu1");
  make(&now);
  expect(1, &now, &before, "device 'npu1', was 'npu'");
  release(&now);

  build(&now, &s, "", "npu");
  now.devices.items[0].info.fingerprint = "chip 2";
  make(&now);
  expect(2, &now, &before, "device 'npu': chip 2, was chip 1");
  now.devices.items[0].info.fingerprint = NULL;
  make(&now);
  expect(2, &now, &before, "device 'npu': , was chip 1");
  release(&now);

  build(&now, &s, "", "npu");
  now.captured[1] = false;
  make(&now);
  expect(3, &now, &before, "1 partition, was 2");
  release(&now);

  spec other = s;
  other.partition_count = 1;
  other.ends[0] = 3;
  build(&now, &other, "", "npu");
  make(&now);
  expect(4, &now, &before, "1 partition, was 2");
  other = s;
  other.ends[0] = 1;
  release(&now);
  build(&now, &other, "", "npu");
  make(&now);
  expect(5, &now, &before, "partition 0: 1 node, was 2");
  release(&now);

  other = s;
  other.count = 4;
  other.ends[1] = 4;
  other.nodes[3] = (node_spec){.kind = UNARY, .inputs = {INPUTS}, .is_output = true};
  build(&now, &other, "", "npu");
  make(&now);
  expect(6, &now, &before, "4 nodes, was 3");
  release(&now);

  other = s;
  other.nodes[1].inputs[1] = 2; /* reading another graph input only changes a name, which is not in the key */
  build(&now, &other, "", "npu");
  make(&now);
  expect(7, &now, &before, NULL);
  release(&now);

  other = s;
  other.nodes[1].inputs[1] = 0;
  build(&now, &other, "", "npu");
  make(&now);
  expect(8, &now, &before, "node 1 'n1' (Add): input 1 is 'i0', was another value");
  expect(9, &before, &now, "node 1 'n1' (Add): input 1 is another value, was 'i0'");
  release(&now);

  other = s;
  other.nodes[0].is_output = true;
  build(&now, &other, "", "npu");
  make(&now);
  expect(10, &now, &before, "value 'v0': is an output, was internal");
  release(&now);

  /* A key without names, like the keys that the cache keeps. */
  other = s;
  other.nodes[0].op = 1;
  build(&now, &other, "", "npu");
  make(&now);
  now.key.nodes = now.key.values = NULL;
  expect(11, &now, &before, "node 0: Tanh, was Relu");
  now.types[value_of(&now, 0)].dims[0] = 2;
  char small[12];
  clv__capture_key_difference(&now.key, &before.key, small, sizeof small);
  assert_string_equal(small, "node 0: Tan");
  release(&now);
  release(&before);
}

static clv_tensor f32_vector(int64_t count, const float *data) {
  return (clv_tensor){.dtype = CLV_F32, .rank = 1, .dims = {count}, .data = (void *)data};
}

/* Makes the key of one node with an unknown operator and one attribute. */
static void make_with(built *b, const clv_attribute *attribute) {
  clv_error error = {0};
  test_graph g;
  clv_value_id in, out;
  memset(b, 0, sizeof *b);
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(4));
  assert_ok(clv__builder_import(g.builder, "own", 1, &error), error);
  assert_ok(clv__builder_value(g.builder, "x", &in, &error), error);
  assert_ok(clv__builder_value(g.builder, "y", &out, &error), error);
  assert_ok(clv__builder_node(g.builder, "n", "own", "Op", &in, 1, &out, 1, attribute, 1, &error), error);
  b->graph = test_graph_end(&g, "y");
  clv__arena_init(&b->arena, clv__allocator_default());
  b->types = clv__arena_allocate_zero(&b->arena, b->graph->value_count, sizeof *b->types);
  for (uint32_t i = 0; i < b->graph->value_count; ++i) b->types[i] = b->graph->values[i].type;
  b->devices = (clv_devices){.count = 1, .items = {{.name = "npu"}}};
  b->partitions[0] = (clv__partition){.node_count = 1, .nodes = b->graph->whole->nodes, .view = b->graph->whole};
  b->plan = (clv_plan){.graph = b->graph, .devices = &b->devices, .partition_count = 1, .partitions = b->partitions};
  b->captured[0] = true;
  make(b);
}

static void attributes(void **state) {
  (void)state;
  static int64_t ints[2][20] = {{1, -2, 3}, {1, -2, 4}};
  static float floats[2][100] = {{0.5f, 1}, {0.5f, 2}};
  static const clv_string strings[2][2] = {{{"same", 4}, {"constant", 8}}, {{"same", 4}, {"edge", 4}}};
  ints[1][19] = -7;
  floats[1][99] = 1;
  clv_tensor tensors[] = {f32_vector(2, floats[0]),
                          f32_vector(2, floats[1]),
                          f32_vector(100, floats[0]),
                          f32_vector(100, floats[1]),
                          f32_vector(2, NULL),
                          {.dtype = CLV_STRING, .rank = 1, .dims = {2}, .data = (void *)strings[0]},
                          {.dtype = CLV_STRING, .rank = 1, .dims = {2}, .data = (void *)strings[1]},
                          {.dtype = CLV_I64, .rank = 1, .dims = {20}, .data = ints[0]},
                          {.dtype = CLV_I64, .rank = 1, .dims = {20}, .data = ints[1]}};
#define INTS(n, i, list) \
  { .name = "a", .kind = CLV_ATTRIBUTE_INTS, .is_list = list, .count = n, .ints = ints[i] }
#define FLOATS(n, i) \
  { .name = "a", .kind = CLV_ATTRIBUTE_FLOATS, .is_list = true, .count = n, .floats = floats[i] }
#define STRINGS(n, i) \
  { .name = "a", .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .count = n, .strings = strings[i] }
#define TENSOR(i) \
  { .name = "a", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = &tensors[i] }
  const struct {
    clv_attribute now, before;
    const char *text; /* NULL: equal */
  } cases[] = {
      {INTS(3, 0, true), INTS(3, 0, true), NULL},
      {INTS(2, 0, true), INTS(2, 1, true), NULL},
      {INTS(3, 0, true), INTS(3, 1, true), "attribute 'a': [1,-2,3], was [1,-2,4]"},
      {INTS(1, 0, true), INTS(3, 0, true), "attribute 'a': 1 element, was 3"},
      {INTS(1, 0, true), INTS(1, 0, false), "attribute 'a': of a different kind"},
      {INTS(1, 0, true), FLOATS(1, 0), "attribute 'a': of a different kind"},
      {FLOATS(2, 0), FLOATS(2, 0), NULL},
      {FLOATS(2, 0), FLOATS(2, 1), "attribute 'a': [0.5,1], was [0.5,2]"},
      {FLOATS(100, 0), FLOATS(100, 1), "attribute 'a': from element 1 on: [1,0,0,0,0,0,0,0,...], was [2,0,0,0,0,0,0,0,...]"},
      {STRINGS(1, 0), STRINGS(1, 1), NULL},
      {STRINGS(2, 0), STRINGS(2, 1), "attribute 'a': 'constant', was 'edge'"},
      {TENSOR(0), TENSOR(0), NULL},
      {TENSOR(0), TENSOR(1), "attribute 'a': [0.5,1], was [0.5,2]"},
      {TENSOR(0), TENSOR(2), "attribute 'a': f32[2], was f32[100]"},
      {TENSOR(2), TENSOR(3), "attribute 'a': different content"},
      {TENSOR(0), TENSOR(4), "attribute 'a': the size of the known content is 8, was 0"},
      {TENSOR(5), TENSOR(6), "attribute 'a': element 1 is 'constant', was 'edge'"},
      {TENSOR(7), TENSOR(8), "attribute 'a': from element 2 on: [3,0,0,0,0,0,0,0,...], was [4,0,0,0,0,0,0,0,...]"},
      {INTS(1, 0, true),
       {.name = "b", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 1, .ints = ints[0]},
       "attribute 'a', was 'b'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    built now, before;
    char text[300];
    make_with(&now, &cases[i].now);
    make_with(&before, &cases[i].before);
    snprintf(text, sizeof text, "node 0 'n' (Op): %s", cases[i].text == NULL ? "" : cases[i].text);
    expect(i, &now, &before, cases[i].text == NULL ? NULL : text);
    release(&now);
    release(&before);
  }
}

static void memory_fails(void **state) {
  (void)state;
  spec s = random_spec(5);
  built b;
  build(&b, &s, "", "npu");
  make(&b);
  for (size_t at = 1;; ++at) {
    test_allocator counting;
    clv_error error = {0};
    clv__arena arena;
    clv__capture_key key;
    test_allocator_init(&counting);
    counting.fail_at = at;
    clv__arena_init(&arena, &counting.allocator);
    clv_status status = clv__capture_key_make(&b.plan, 0, b.captured, b.types, NULL, &arena, &key, &error);
    if (status == CLV_OK) assert_true(clv__capture_key_equal(&key, &b.key));
    clv__arena_finish(&arena);
    assert_int_equal(counting.live, 0);
    if (status == CLV_OK) break;
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_true(at < 100);
  }
  release(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_node_changes), cmocka_unit_test(one_value_changes), cmocka_unit_test(memory_is_shared),
      cmocka_unit_test(the_rest_changes), cmocka_unit_test(attributes),        cmocka_unit_test(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
