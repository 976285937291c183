/* The operators of random graphs. They keep the shape of their input, so that any of them may follow any other. The kit asks the
 * device which of them it supports. See sketch.h. */
#include <stdio.h>
#include <string.h>

#include "check/sketch.h"

/* The constants that an operator reads besides its operands. */
typedef enum item_kind { PLAIN, POOL, FULL, VECTOR, CHANNEL, MATRIX, CONV, NORM_LAYER, NORM_BATCH } item_kind;

struct clv__menu_item {
  const char *op;
  uint8_t operands; /* number of computed operands: 1 or 2 */
  item_kind kind;
  int32_t rank;   /* rank of its values: 2 (rows) or 4 (images); 0: any */
  bool any_dtype; /* accepts integers too, not only floats */
};

/* clang-format off */
static const clv__menu_item all_items[] = {
    {"Add", 2, PLAIN, 0, true},         {"Sub", 2, PLAIN, 0, true},        {"Mul", 2, PLAIN, 0, false},
    {"Max", 2, PLAIN, 0, true},         {"Min", 2, PLAIN, 0, true},        {"Relu", 1, PLAIN, 0, false},
    {"Sigmoid", 1, PLAIN, 0, false},    {"Tanh", 1, PLAIN, 0, false},      {"Abs", 1, PLAIN, 0, true},
    {"Neg", 1, PLAIN, 0, false},        {"HardSwish", 1, PLAIN, 0, false}, {"LeakyRelu", 1, PLAIN, 0, false},
    {"Elu", 1, PLAIN, 0, false},        {"Softplus", 1, PLAIN, 0, false},  {"Erf", 1, PLAIN, 0, false},
    {"Gelu", 1, PLAIN, 0, false},       {"HardSigmoid", 1, PLAIN, 0, false}, {"Softmax", 1, PLAIN, 0, false},
    {"Identity", 1, PLAIN, 0, true},    {"Add", 1, VECTOR, 0, true},       {"Mul", 1, VECTOR, 0, false},
    {"Add", 1, FULL, 0, true},          {"MatMul", 1, MATRIX, 2, false},   {"Gemm", 1, MATRIX, 2, false},
    {"Conv", 1, CONV, 4, false},        {"MaxPool", 1, POOL, 4, false},    {"AveragePool", 1, POOL, 4, false},
    {"PRelu", 1, CHANNEL, 4, false},    {"BatchNormalization", 1, NORM_BATCH, 4, false},
    {"LayerNormalization", 1, NORM_LAYER, 2, false},
};
/* clang-format on */

enum { ITEM_COUNT = sizeof all_items / sizeof *all_items, MOST_NODES = 40 };

static const clv_dtype dtypes[] = {CLV_F32, CLV_F16, CLV_BF16, CLV_F64, CLV_I32, CLV_I64};

/* Adds the item's constants and writes their names to `names` as ",w3_0,w3_1". Their dimensions are never symbolic, because
 * dims[1] (the channels of an image, the columns of a matrix) is never a symbol. */
static void draw_constants(clv__sketch *sketch, const clv__menu_item *item, bool is_image, const int64_t *dims, uint32_t index,
                           char *names, size_t names_bytes) {
  char name[4][24];
  const int64_t width = dims[1], vector[1] = {width}, channel[3] = {width, 1, 1}, square[2] = {width, width},
                kernel[4] = {width, width, 3, 3}, full[4] = {dims[0] < 0 ? 1 : dims[0], width, 1, 1};
  for (int i = 0; i < 4; ++i) snprintf(name[i], sizeof name[i], "w%u_%d", index, i);
  snprintf(names, names_bytes, ",%s", name[0]);
  switch (item->kind) {
    case PLAIN:
    case POOL:
      names[0] = '\0';
      return;
    case FULL:
      clv__sketch_weight(sketch, name[0], is_image ? 4 : 2, full, 1, false);
      return;
    case VECTOR:
    case CHANNEL:
      clv__sketch_weight(sketch, name[0], is_image ? 3 : 1, is_image ? channel : vector, 0.5, false);
      return;
    case MATRIX:
      clv__sketch_weight(sketch, name[0], 2, square, 1.0 / (double)width, false);
      return;
    case CONV:
      clv__sketch_weight(sketch, name[0], 4, kernel, 1.0 / (double)(3 * width), false);
      return;
    case NORM_LAYER:
      clv__sketch_weight(sketch, name[0], 1, vector, 0.5, true);
      return;
    case NORM_BATCH:
      for (int i = 0; i < 4; ++i) clv__sketch_weight(sketch, name[i], 1, vector, 0.5, i == 0 || i == 3);
      snprintf(names, names_bytes, ",%s,%s,%s,%s", name[0], name[1], name[2], name[3]);
  }
}

static void draw(clv__sketch *sketch, const clv__menu_item *item, bool is_image, const int64_t *dims, uint32_t index,
                 const char *first, const char *second, const char *output) {
  static const int64_t pads[] = {1, 1, 1, 1};
  char constants[128], inputs[256];
  draw_constants(sketch, item, is_image, dims, index, constants, sizeof constants);
  snprintf(inputs, sizeof inputs, "%s%s%s%s", first, item->operands == 2 ? "," : "", item->operands == 2 ? second : "",
           constants);
  if (item->kind == CONV)
    clv__sketch_node_ints(sketch, item->op, inputs, output, "pads", true, 4, pads);
  else if (item->kind == POOL)
    clv__sketch_pool(sketch, item->op, inputs, output);
  else
    clv__sketch_node(sketch, item->op, inputs, output);
}

static bool takes(clv__check *check, const clv__menu_item *item, clv_dtype dtype, bool is_image) {
  static const int64_t rows[] = {4, 8}, image[] = {1, 4, 6, 6};
  const int64_t *dims = is_image ? image : rows;
  clv_error error = {0};
  clv__sketch sketch;
  clv_graph *graph;
  clv__check_program program = {0};
  char reason[160];
  clv__sketch_begin(&sketch, check, dtype, 1, &error);
  clv__sketch_input(&sketch, "a", is_image ? 4 : 2, dims);
  clv__sketch_input(&sketch, "b", is_image ? 4 : 2, dims);
  draw(&sketch, item, is_image, dims, 0, "a", "b", "y");
  if (clv__sketch_end(&sketch, "y", &graph) != CLV_OK) return false;
  bool is_taken = clv__check_program_view(check, graph, NULL, NULL, 0, &program, &error) == CLV_OK &&
                  program.view->node_count == 1 && clv__check_program_refused(&program, reason) == NULL;
  clv__check_program_finish(&program);
  clv__graph_destroy(graph);
  return is_taken;
}

bool clv__menu_read(clv__check *check, clv_dtype dtype, bool is_image, clv__menu *menu) {
  bool is_float = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0, any_work = false;
  *menu = (clv__menu){.dtype = dtype, .is_image = is_image};
  clv__check_at(check, "asking which operators the device supports for %s", clv_dtype_name(dtype));
  for (uint32_t i = 0; i < ITEM_COUNT; ++i) {
    const clv__menu_item *item = &all_items[i];
    if (item->rank != 0 && item->rank != (is_image ? 4 : 2)) continue;
    if ((!is_float && !item->any_dtype) || !takes(check, item, dtype, is_image)) continue;
    menu->items[menu->count++] = item;
    any_work = any_work || strcmp(item->op, "Identity") != 0;
    menu->is_binary = menu->is_binary || item->operands == 2;
  }
  return any_work;
}

bool clv__menu_find(clv__check *check, bool is_image, bool binary, clv__menu *menu) {
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    if (clv__menu_read(check, dtypes[i], is_image, menu) && (!binary || menu->is_binary)) return true;
  }
  return false;
}

static void begin(clv__sketch *sketch, clv__check *check, const clv__menu *menu, const int64_t *dims, uint64_t seed,
                  int64_t *given, clv_error *error) {
  const int32_t rank = menu->is_image ? 4 : 2;
  clv__sketch_begin(sketch, check, menu->dtype, seed, error);
  memcpy(given, dims, (size_t)rank * sizeof *dims);
  for (int32_t d = 0; d < rank; ++d) {
    char name[16];
    snprintf(name, sizeof name, "D%d", d);
    if (dims[d] < 0) given[d] = clv__sketch_symbol(sketch, name);
  }
  clv__sketch_input(sketch, "a", rank, given);
  clv__sketch_input(sketch, "b", rank, given);
}

/* Limits the count to the most nodes that the device allows in a partition. */
static uint32_t at_most(const clv__check *check, uint32_t node_count) {
  uint32_t limit = check->device->info.max_partition_nodes;
  if (limit == 0 || limit > MOST_NODES) limit = MOST_NODES;
  return node_count < limit ? node_count : limit;
}

clv_status clv__menu_graph(clv__check *check, const clv__menu *menu, uint32_t node_count, const int64_t *dims, uint32_t share,
                           uint64_t seed, clv_graph **graph, clv_error *error) {
  clv__sketch sketch;
  int64_t given[4];
  char names[MOST_NODES + 2][16], outputs[512];
  uint64_t dice = seed;
  node_count = at_most(check, node_count);
  begin(&sketch, check, menu, dims, seed, given, error);
  strcpy(names[0], "a");
  strcpy(names[1], "b");
  outputs[0] = '\0';
  for (uint32_t n = 0; n < node_count; ++n) {
    const clv__menu_item *item = menu->items[clv__check_below(&dice, menu->count)];
    uint32_t known = n + 2, first = clv__check_below(&dice, known), second = clv__check_below(&dice, known);
    if (n > 0 && clv__check_below(&dice, 3) > 0) first = known - 1; /* prefers chains, because backends fuse them */
    snprintf(names[known], sizeof names[known], "v%u", n);
    draw(&sketch, item, menu->is_image, given, n, names[first], names[second], names[known]);
    bool is_output = n + 1 == node_count || clv__check_below(&dice, 100) < share;
    size_t used = strlen(outputs);
    if (is_output) snprintf(outputs + used, sizeof outputs - used, "%s%s", used > 0 ? "," : "", names[known]);
  }
  return clv__sketch_end(&sketch, outputs, graph);
}

clv_status clv__menu_chain(clv__check *check, const clv__menu *menu, uint32_t length, const int64_t *dims, uint64_t seed,
                           clv_graph **graph, clv_error *error) {
  static const char *const preferred[] = {"Conv", "MatMul", "Sigmoid", "Tanh", "Mul", "Add"};
  const clv__menu_item *item = menu->items[0];
  clv__sketch sketch;
  int64_t given[4];
  char from[16] = "a", to[16];
  for (size_t i = sizeof preferred / sizeof *preferred; i-- > 0;) {
    for (uint32_t k = 0; k < menu->count; ++k) {
      if (strcmp(menu->items[k]->op, preferred[i]) == 0) item = menu->items[k];
    }
  }
  length = at_most(check, length);
  begin(&sketch, check, menu, dims, seed, given, error);
  for (uint32_t n = 0; n < length; ++n) {
    snprintf(to, sizeof to, "v%u", n);
    draw(&sketch, item, menu->is_image, given, n, from, "b", to);
    memcpy(from, to, sizeof from);
  }
  return clv__sketch_end(&sketch, from, graph);
}

void clv__menu_text(const clv_graph *graph, char *text, size_t text_bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (clv_node_id n = 0; n < graph->node_count && used < text_bytes; ++n) {
    used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", n > 0 ? ", " : "", graph->nodes[n].op);
  }
}
