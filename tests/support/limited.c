/* Draws models and limits: see limited.h. */
#include "limited.h"

#include <stdio.h>
#include <string.h>

#include "backends/common/kernels.h"
#include "models.h"
#include "support.h"

enum { MATMUL, GEMM, ADD, SUB, MUL, MAX, CONCAT, TANH, RELU, ABS, NEG, IDENTITY, FLATTEN, CAST, OPERATORS };
const char *const limited_operators[] = {"MatMul", "Gemm", "Add", "Sub",      "Mul",     "Max",  "Concat", "Tanh",
                                         "Relu",   "Abs",  "Neg", "Identity", "Flatten", "Cast", NULL};

enum { MOST_VALUES = LIMITED_MOST_NODES + 3, MOST_OPERANDS = 5 };
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct matrix {
  clv_dtype dtype;
  int64_t rows, width;
} matrix;

typedef struct drawing {
  uint64_t state;
  limited_case *drawn;
  test_graph graph;
  matrix values[MOST_VALUES], weights[2 * LIMITED_MOST_NODES];
  uint32_t value_count, weight_count, node_count;
  uint64_t value_bytes, weight_bytes;
} drawing;

static uint32_t below(drawing *d, uint32_t count) {
  return (uint32_t)(test_random(&d->state) % count);
}

static uint64_t size_of(const matrix *m) {
  return clv__align_up((uint64_t)(m->rows * m->width) * clv_dtype_size_bits(m->dtype) / 8, 64);
}

static clv_tensor type_of(const matrix *m) {
  return clv__tensor_make(m->dtype, m->rows == 1 ? 1 : 2, m->rows == 1 ? &m->width : DIMS(m->rows, m->width), NULL);
}

/* ---- The model ---- */

static void add_input(drawing *d, clv_dtype dtype, int64_t width) {
  char name[16];
  snprintf(name, sizeof name, "v%u", d->value_count);
  test_graph_input(&d->graph, name, dtype, 2, DIMS(LIMITED_ROWS, width));
  d->values[d->value_count] = (matrix){dtype, LIMITED_ROWS, width};
  d->value_bytes += size_of(&d->values[d->value_count++]);
}

static void store_weight(drawing *d, const char *name, const matrix *m) {
  float data[LIMITED_MOST_WIDTH * 64];
  uint16_t halves[LIMITED_MOST_WIDTH * 64];
  size_t count = (size_t)(m->rows * m->width);
  for (size_t i = 0; i < count; ++i) {
    data[i] = test_random_float(&d->state) / 8;
    halves[i] = clv__f32_to_f16(data[i]);
  }
  clv_tensor tensor = type_of(m);
  tensor.data = m->dtype == CLV_F16 ? (void *)halves : data;
  test_graph_constant(&d->graph, name, &tensor);
}

/* Draws a weight of `rows` rows and writes its name to `name`: a new weight, or sometimes one that other nodes read too. Its
 * width is `width`, or random if `width` is 0. */
static matrix draw_weight(drawing *d, clv_dtype dtype, int64_t rows, int64_t width, char name[16]) {
  static const int64_t widths[] = {8, 16, 24, 48, 64};
  matrix m = {dtype, rows, width != 0 ? width : widths[below(d, 5)]};
  for (uint32_t w = 0; w < d->weight_count && below(d, 3) == 0; ++w) {
    const matrix *old = &d->weights[w];
    if (old->dtype != dtype || old->rows != rows || (width != 0 && old->width != width)) continue;
    snprintf(name, 16, "w%u", w);
    return *old;
  }
  snprintf(name, 16, "w%u", d->weight_count);
  store_weight(d, name, &m);
  d->weights[d->weight_count++] = m;
  d->weight_bytes += size_of(&m);
  return m;
}

/* Returns the number of a value of the unfinished model, often one of the last three. */
static uint32_t draw_value(drawing *d) {
  uint32_t near = below(d, 3);
  return below(d, 2) == 0 && near < d->value_count ? d->value_count - 1 - near : below(d, d->value_count);
}

/* Returns the number of a value with the type of value number `value`: sometimes another value, otherwise `value` itself. */
static uint32_t draw_like(drawing *d, uint32_t value) {
  uint32_t other = draw_value(d);
  const matrix *a = &d->values[value], *b = &d->values[other];
  return a->dtype == b->dtype && a->width == b->width ? other : value;
}

static uint32_t draw_op(drawing *d, clv_dtype dtype) {
  static const uint32_t of_floats[] = {MATMUL, MATMUL, MATMUL, MATMUL, GEMM, GEMM, ADD,      SUB,     MUL,
                                       MAX,    CONCAT, TANH,   RELU,   ABS,  NEG,  IDENTITY, FLATTEN, CAST};
  static const uint32_t of_integers[] = {ADD, SUB, MAX, CONCAT, ABS, NEG, IDENTITY, CAST, CAST};
  return dtype == CLV_I64 ? of_integers[below(d, 9)] : of_floats[below(d, 18)];
}

/* The operands of the node under construction. */
typedef struct operands {
  char text[128];
  uint32_t count, dtypes;
  clv_tensor types[MOST_OPERANDS + 1];
  uint64_t size_bytes;
} operands;

static void count_operand(operands *o, const matrix *type) {
  o->types[o->count++] = type_of(type);
  o->dtypes |= 1u << type->dtype;
  o->size_bytes += size_of(type);
}

static void add_operand(operands *o, const char *name, const matrix *type) {
  snprintf(o->text + strlen(o->text), sizeof o->text - strlen(o->text), "%s%s", o->text[0] != '\0' ? "," : "", name);
  count_operand(o, type);
}

static void add_value(drawing *d, operands *o, uint32_t value) {
  char name[16];
  snprintf(name, sizeof name, "v%u", value);
  add_operand(o, name, &d->values[value]);
}

/* Adds operands after the first, which is `value`, and returns the type of the result. */
static matrix complete(drawing *d, uint32_t op, uint32_t value, operands *o) {
  matrix type = d->values[value], weight;
  char name[16];
  if (op == MATMUL || op == GEMM) {
    weight = draw_weight(d, type.dtype, type.width, 0, name);
    add_operand(o, name, &weight);
    type.width = weight.width;
    if (op == MATMUL) return type;
    weight = draw_weight(d, type.dtype, 1, type.width, name);
    add_operand(o, name, &weight);
  } else if (op == MUL || ((op == ADD || op == SUB) && type.dtype != CLV_I64 && below(d, 3) == 0)) {
    weight = draw_weight(d, type.dtype, 1, type.width, name);
    add_operand(o, name, &weight);
  } else if (op == ADD || op == SUB) {
    add_value(d, o, draw_like(d, value));
  } else if (op == MAX || op == CONCAT) {
    for (uint32_t more = 1 + below(d, MOST_OPERANDS - 1); more > 0; --more) {
      uint32_t other = draw_like(d, value);
      if (op == CONCAT && type.width + d->values[other].width > LIMITED_MOST_WIDTH) break;
      add_value(d, o, other);
      type.width += op == CONCAT ? d->values[other].width : 0;
    }
  } else if (op == CAST) {
    type.dtype = type.dtype == CLV_F32 ? CLV_F16 : CLV_F32;
  }
  return type;
}

/* Records the operator, the dtypes and the bytes of the node for the test. The bytes include the scratch of the node's
 * kernel. */
static void describe_node(drawing *d, uint32_t op, operands *o, const matrix *result) {
  const clv__kernel *kernel = clv__fast_kernel_find("", limited_operators[op]);
  count_operand(o, result);
  clv__kernel_call call = {.op = limited_operators[op],
                           .opset = 21,
                           .inputs = o->types,
                           .input_count = o->count - 1,
                           .outputs = &o->types[o->count - 1],
                           .output_count = 1};
  assert_non_null(kernel);
  uint64_t scratch = kernel->scratch_bytes != NULL ? kernel->scratch_bytes(&call) : 0;
  d->drawn->nodes[d->node_count++] = (limited_node){op, o->dtypes, o->size_bytes + clv__align_up(scratch, 64)};
}

static void add_node(drawing *d) {
  uint32_t value = draw_value(d), op = draw_op(d, d->values[value].dtype);
  char name[16], out[16];
  operands o = {.text = ""};
  add_value(d, &o, value);
  matrix result = complete(d, op, value, &o);
  const char *attribute = op == CAST ? "to" : op == CONCAT || op == FLATTEN ? "axis" : NULL;
  /* The value of `attribute`. For Cast it is ONNX's number of the dtype: 1 for f32, 10 for f16. */
  const int64_t setting = op != CAST ? 1 : result.dtype == CLV_F32 ? 1 : 10;
  snprintf(name, sizeof name, "n%u", d->node_count);
  snprintf(out, sizeof out, "v%u", d->value_count);
  test_graph_node_ints(&d->graph, name, limited_operators[op], o.text, out, attribute, false, attribute != NULL, &setting);
  d->values[d->value_count++] = result;
  d->value_bytes += size_of(&result);
  describe_node(d, op, &o, &result);
}

static void draw_model(drawing *d, const clv_allocator *allocator, uint64_t seed) {
  char outputs[96] = "";
  uint32_t nodes = 2 + below(d, below(d, 2) == 0 ? 6 : LIMITED_MOST_NODES - 1);
  test_graph_begin(&d->graph, allocator, seed);
  add_input(d, CLV_F32, 8 << below(d, 3));
  if (below(d, 2) == 0) add_input(d, CLV_F32, d->values[0].width);
  if (below(d, 3) == 0) add_input(d, CLV_I64, d->values[0].width);
  uint32_t inputs = d->value_count;
  for (uint32_t n = 0; n < nodes; ++n) add_node(d);
  for (uint32_t v = inputs; v < d->value_count; ++v) {
    bool is_output = v + 1 == d->value_count || below(d, 5) == 0;
    if (is_output) snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%sv%u", outputs[0] ? "," : "", v);
  }
  d->drawn->graph = test_graph_end(&d->graph, outputs);
}

/* ---- The devices ---- */

/* Draws the memory size of a device: the bytes that the largest node needs, plus a random part of `slack` sixteenths of the
 * bytes of all weights and values. If `slack` is 0, hardly anything is added, so that weights must be streamed, and the values
 * between partitions decide whether a plan fits. One size in 16 is reduced, and then often too small for the largest node. */
static uint64_t draw_memory(drawing *d, uint32_t slack) {
  uint64_t largest = 0, spread = d->weight_bytes + d->value_bytes;
  for (uint32_t n = 0; n < d->node_count; ++n) {
    if (d->drawn->nodes[n].size_bytes > largest) largest = d->drawn->nodes[n].size_bytes;
  }
  spread = spread * slack * below(d, 1000) / 16000 + 64 * (uint64_t)below(d, 32);
  return (largest + spread) / 64 * 64 - (below(d, 16) == 0 ? largest / 2 : 0);
}

static void draw_limits(drawing *d, uint32_t slack, limited_npu *npu) {
  static const uint32_t dtypes[] = {1u << CLV_F32, 1u << CLV_F32 | 1u << CLV_F16, 1u << CLV_F32 | 1u << CLV_I64};
  *npu = (limited_npu){.operators = (1u << OPERATORS) - 1, .dtypes = 1u << CLV_F32 | 1u << CLV_F16 | 1u << CLV_I64};
  if (below(d, 6) == 0) npu->dtypes = dtypes[below(d, 3)];
  if (npu != d->drawn->npus && below(d, 2) == 0) npu->operators &= ~(1u << below(d, OPERATORS) | 1u << below(d, OPERATORS));
  if (below(d, 4) == 0) npu->max_inputs = 1 + below(d, 5);
  if (below(d, 3) == 0) npu->max_nodes = 1 + below(d, 4);
  if (slack == 0 || below(d, 8) != 0) npu->memory_bytes = draw_memory(d, slack);
}

static void append(char *text, size_t room, const char *format, uint64_t number) {
  size_t used = strlen(text);
  snprintf(text + used, room - used, format, (unsigned long long)number);
}

static void append_names(char *text, size_t room, const limited_npu *npu) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_I64};
  bool is_first = true;
  size_t used;
  append(text, room, ", \"dtypes\": [", 0);
  for (uint32_t i = 0; i < 3; ++i) {
    if ((npu->dtypes >> dtypes[i] & 1u) == 0) continue;
    used = strlen(text);
    snprintf(text + used, room - used, "%s\"%s\"", is_first ? "" : ", ", clv_dtype_name(dtypes[i]));
    is_first = false;
  }
  append(text, room, "], \"operators\": {", 0);
  is_first = true;
  for (uint32_t i = 0; i < OPERATORS; ++i) {
    if ((npu->operators >> i & 1u) == 0) continue;
    used = strlen(text);
    snprintf(text + used, room - used, "%s\"%s\": {}", is_first ? "" : ", ", limited_operators[i]);
    is_first = false;
  }
  append(text, room, "}", 0);
}

static void describe(drawing *d, const limited_npu *npu, const char *space, char text[640]) {
  const size_t room = 640;
  snprintf(text, room, "{\"max_partition_inputs\": %u, \"max_partition_nodes\": %u", npu->max_inputs, npu->max_nodes);
  if (npu->memory_bytes > 0) append(text, room, ", \"memory\": %llu", npu->memory_bytes);
  if (space != NULL) snprintf(text + strlen(text), room - strlen(text), ", \"memory_space\": \"%s\"", space);
  append_names(text, room, npu);
  if (below(d, 2) == 0) {
    append(text, room, ", \"speed\": {\"launch_overhead_us\": %llu", below(d, 8));
    append(text, room, ", \"bytes_per_second\": %llue9", 1 + below(d, 8));
    append(text, room, ", \"copy_latency_us\": %llu", below(d, 4));
    append(text, room, ", \"copy_bytes_per_second\": %llue9}", 1 + below(d, 8));
  }
  append(text, room, "}", 0);
}

void limited_draw(const clv_allocator *allocator, uint64_t seed, limited_case *drawn) {
  static const char *const lists[] = {"npu,npu1", "npu,npu1,npu2"};
  drawing d = {.state = seed * 0xd1342543de82ef95u + 11, .drawn = drawn};
  *drawn = (limited_case){.npu_count = 2};
  draw_model(&d, allocator, seed);
  drawn->npu_count += below(&d, 3) == 0;
  drawn->has_cpu = below(&d, 3) == 0;
  bool is_shared = below(&d, 6) == 0;
  const uint32_t slack = below(&d, 3) == 0 ? 1 + below(&d, 16) : 0;
  for (uint32_t i = 0; i < drawn->npu_count; ++i) {
    draw_limits(&d, slack, &drawn->npus[i]);
    if (is_shared && i == 1) drawn->npus[1].memory_bytes = drawn->npus[0].memory_bytes;
    describe(&d, &drawn->npus[i], is_shared && i < 2 ? "shared" : NULL, drawn->specs[i]);
  }
  snprintf(drawn->list, sizeof drawn->list, "%s%s", lists[drawn->npu_count - 2], drawn->has_cpu ? ",cpu" : "");
}
