/* See probe.h. */
#include "report/devices/probe.h"

#include <string.h>

#include "analysis/shapes.h"
#include "graph/view.h"
#include "operators/infer.h"

enum { OPSET = 21, MAX_OPERANDS = 8 };

/* Lists of operands to try: one string per list, one letter per operand. If an operator needs more operands than the list has,
 * the last one is repeated. An operator counts as supported if the device accepts it with at least one of the lists. The letters:
 * - f, h, b, u, i: an input of type f32, f16, bool, u8 or i64; its rank is the digit that follows
 * - w: constant f32 [4,4,1,1]
 * - c: constant f32 [4]
 * - o, s, m: constant i64 [1] with the element 0, 1 or -1
 * - r: constant i64 [4] of ones
 * - p: constant i64 [8] of zeros
 * - z: constant i64 scalar 4
 * - g: constant f32 [2]
 * - t: constant f32 scalar
 * - q: constant f32 [4] of ones
 * - j: input i64 [4,1]
 * - e: input i64 [5]
 * - n: absent */
static const char *const trials[] = {
    "f4",     "f2",       "f1",
    "f0",     "f3",       "i2",
    "i1",     "i0",       "b2",
    "u2",     "f4 w",     "f4 c",
    "f4 s",   "f4 m",     "f4 r",
    "f4 p",   "f4 i4 f4", "f4 i2",
    "b2 f2",  "i1 z g",   "f2 t",
    "u2 t",   "f4 n q",   "f1 j f1",
    "f1 s",   "f2 s",     "f2 m",
    "f2 f2 ", "s",        "f3 c",
    "f2 c",   "f2 z",     "f1 z",
    "f4 f0",  "f4 t",     "h4",
    "f4 o s", "f1 b1",    "f2 f2 f2 e1 i1",
};

typedef struct builder {
  clv__builder *graph;
  clv_error error;
  clv_value_id ids[MAX_OPERANDS];
  uint32_t count;
  bool failed;
} builder;

static void add_operand(builder *b, char kind, int32_t rank) {
  static const int64_t dims[] = {1, 4, 4, 4}, weight[] = {4, 4, 1, 1}, column[] = {4, 1};
  static int64_t one[] = {1}, minus[] = {-1}, ones[] = {1, 1, 1, 1}, zeros[8], four[] = {4};
  static float reals[64] = {1, 1, 1, 1};
  clv_tensor type = clv__tensor_make(CLV_F32, rank, dims + 4 - rank, NULL);
  switch (kind) {
    case 'h':
      type.dtype = CLV_F16;
      break;
    case 'b':
      type.dtype = CLV_BOOL;
      break;
    case 'u':
      type.dtype = CLV_U8;
      break;
    case 'i':
      type.dtype = CLV_I64;
      break;
    case 'w':
      type = clv__tensor_make(CLV_F32, 4, weight, reals);
      break;
    case 'c':
    case 'q':
      type = clv__tensor_make(CLV_F32, 1, four, reals);
      break;
    case 'o':
      type = clv__tensor_make(CLV_I64, 1, one, zeros);
      break;
    case 's':
      type = clv__tensor_make(CLV_I64, 1, one, one);
      break;
    case 'm':
      type = clv__tensor_make(CLV_I64, 1, one, minus);
      break;
    case 'r':
      type = clv__tensor_make(CLV_I64, 1, four, ones);
      break;
    case 'p':
      type = clv__tensor_make(CLV_I64, 1, (const int64_t[]){8}, zeros);
      break;
    case 'z':
      type = clv__tensor_make(CLV_I64, 0, one, four);
      break;
    case 'g':
      type = clv__tensor_make(CLV_F32, 1, (const int64_t[]){2}, reals);
      break;
    case 't':
      type = clv__tensor_make(CLV_F32, 0, one, reals);
      break;
    case 'j':
      type = clv__tensor_make(CLV_I64, 2, column, NULL);
      break;
    case 'e':
      type = clv__tensor_make(CLV_I64, 1, (const int64_t[]){5}, NULL);
      break;
    default:
      break;
  }
  char name[8] = {'x', (char)('0' + b->count)};
  b->ids[b->count] = CLV__NO_ID;
  if (kind != 'n') {
    b->failed = b->failed || clv__builder_value(b->graph, name, &b->ids[b->count], &b->error) != CLV_OK;
    if (b->failed) return;
    clv__builder_type(b->graph, b->ids[b->count], &type);
    if (type.data == NULL) b->failed = clv__builder_input(b->graph, b->ids[b->count], &b->error) != CLV_OK;
  }
  ++b->count;
}

/* Builds a graph with one node. Returns NULL if the operator does not accept these operands. */
static clv_graph *make_graph(const clv_allocator *allocator, const clv__op *op, const char *trial) {
  /* Attributes that some operators require. Other operators do not get them, because devices of frameworks, such as ONNX
   * Runtime, reject a node with an unknown attribute. */
  static const int64_t number[] = {1}, two[] = {2}, window[] = {1, 1};
  static const clv_string equation = {"ij,jk->ik", 9};
  static float zero;
  static clv_tensor value = {.dtype = CLV_F32, .rank = 0, .data = &zero};
  static const struct {
    const char *op;
    clv_attribute attribute;
  } needed[] = {
      {"Cast", {.name = "to", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = number}},
      {"GroupNormalization", {.name = "num_groups", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = number}},
      {"LRN", {.name = "size", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = number}},
      {"SpaceToDepth", {.name = "blocksize", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = two}},
      {"DepthToSpace", {.name = "blocksize", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = two}},
      {"AveragePool", {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = window}},
      {"MaxPool", {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = window}},
      {"LpPool", {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = window}},
      {"MaxUnpool", {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = window}},
      {"Einsum", {.name = "equation", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &equation}},
      {"Constant", {.name = "value", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = &value}},
  };
  const clv_attribute *attribute = NULL;
  for (size_t i = 0; i < sizeof needed / sizeof *needed && attribute == NULL; ++i) {
    if (strcmp(op->name, needed[i].op) == 0) attribute = &needed[i].attribute;
  }
  builder b = {0};
  if (clv__builder_create(allocator, &b.graph, &b.error) != CLV_OK) return NULL;
  clv_graph *graph = NULL;
  b.failed = clv__builder_import(b.graph, op->domain, OPSET, &b.error) != CLV_OK;
  char kind = 0;
  int32_t rank = 0;
  for (const char *at = trial; !b.failed && (*at != '\0' || b.count < op->min_inputs) && b.count < MAX_OPERANDS;) {
    if (*at == '\0' && b.count >= op->min_inputs) break;
    if (*at != '\0') {
      kind = *at++;
      rank = *at >= '0' && *at <= '4' ? *at++ - '0' : 0;
      if (*at == ' ') ++at;
    }
    if (op->max_inputs == 0) break;
    add_operand(&b, kind, rank);
  }
  bool fits = b.count >= op->min_inputs && (op->max_inputs == CLV__ANY_COUNT || b.count <= op->max_inputs);
  clv_value_id outputs[MAX_OPERANDS] = {0};
  uint32_t output_count = op->min_outputs == 0 ? 1 : op->min_outputs;
  for (uint32_t i = 0; !b.failed && fits && i < output_count && i < MAX_OPERANDS; ++i) {
    char name[8] = {'y', (char)('0' + i)};
    b.failed = clv__builder_value(b.graph, name, &outputs[i], &b.error) != CLV_OK ||
               clv__builder_output(b.graph, outputs[i], &b.error) != CLV_OK;
  }
  if (!b.failed && fits && output_count <= MAX_OPERANDS &&
      clv__builder_node(b.graph, "node", op->domain, op->name, b.ids, b.count, outputs, output_count, attribute,
                        attribute != NULL, &b.error) == CLV_OK) {
    if (clv__builder_finish(b.graph, &graph, &b.error) != CLV_OK) graph = NULL;
  } else {
    clv__builder_destroy(b.graph);
  }
  return graph;
}

static void ask(const clv_devices *devices, const clv_graph *graph, bool *supported) {
  clv__shapes *shapes = NULL;
  clv__arena arena;
  clv_graph_view *whole;
  clv__arena_init(&arena, graph->allocator);
  if (clv__shapes_infer(graph, NULL, 0, 0, &shapes, NULL) == CLV_OK &&
      clv__view_create_whole(graph, shapes->types, &arena, &whole, NULL) == CLV_OK) {
    for (uint32_t d = 0; d < devices->count; ++d) {
      clv_verdict verdict = {0};
      if (supported[d]) continue;
      devices->items[d].backend->supports(devices->items[d].handle, whole, 0, &verdict);
      supported[d] = verdict.supported;
    }
  }
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
}

/* Lists all operators except those with a body, because a device's support for them depends on the body. */
static uint32_t list_ops(const clv__op **ops) {
#define FAMILY(name) clv__ops_##name,
  static const clv__op *const families[] = {CLV__FAMILIES(FAMILY)};
#undef FAMILY
  uint32_t count = 0;
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__op *op = families[i]; op->name != NULL; ++op) {
      if ((op->flags & CLV__OP_HAS_BODY) != 0) continue;
      if (ops != NULL) ops[count] = op;
      ++count;
    }
  }
  return count;
}

clv_status clv__probe_run(const clv_allocator *allocator, const clv_devices *devices, clv__probe *probe, clv_error *error) {
  *probe = (clv__probe){.count = list_ops(NULL), .device_count = devices->count};
  probe->ops = clv__allocate(allocator, probe->count * sizeof *probe->ops);
  probe->supported = clv__allocate_zero(allocator, (size_t)probe->count * devices->count);
  if (probe->ops == NULL || probe->supported == NULL) return clv__error_memory(error, probe->count * sizeof *probe->ops);
  list_ops(probe->ops);
  for (uint32_t i = 0; i < probe->count; ++i) {
    for (size_t k = 0; k < sizeof trials / sizeof *trials; ++k) {
      clv_graph *graph = make_graph(allocator, probe->ops[i], trials[k]);
      if (graph == NULL) continue;
      ask(devices, graph, probe->supported + (size_t)i * devices->count);
      clv_graph_destroy(graph);
    }
  }
  return CLV_OK;
}

void clv__probe_finish(const clv_allocator *allocator, clv__probe *probe) {
  clv__release(allocator, probe->supported);
  clv__release(allocator, (void *)probe->ops);
  *probe = (clv__probe){0};
}

uint32_t clv__probe_count(const clv__probe *probe, uint32_t device) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < probe->count; ++i) count += probe->supported[(size_t)i * probe->device_count + device];
  return count;
}
