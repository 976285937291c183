/* Tests the lowerings of ATen operators. Every line of irjson_cases.jsonl (written by tools/irjson_cases.py with numpy) has a
 * model of one operator, inputs, and the outputs of ATen. The lowered graph must compute these outputs, or the operator must be
 * kept if the line says so. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "base/files/file.h"
#include "formats/irjson/irjson.h"
#include "support.h"

typedef struct reader {
  clv__arena arena;
  const char *op;
  size_t line;
  size_t wrong; /* number of lines that failed; each failure is printed before the test fails */
} reader;

static void complain(reader *r, const char *format, ...) CLV_PRINTF(2, 3);
static void complain(reader *r, const char *format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  print_error("line %zu (%s): %s\n", r->line, r->op, text);
  ++r->wrong;
}

static double number_of(const json_t *json) {
  const char *text = json_string_value(json);
  if (text != NULL) return text[0] == '-' ? -INFINITY : INFINITY;
  if (json_is_boolean(json)) return json_is_true(json);
  return json_number_value(json);
}

/* Reads nested lists into `numbers` and returns how many numbers there are. */
static size_t read_numbers(const json_t *json, double *numbers, size_t room) {
  if (!json_is_array(json)) {
    assert_true(room > 0);
    numbers[0] = number_of(json);
    return 1;
  }
  size_t count = 0;
  for (size_t i = 0; i < json_array_size(json); ++i)
    count += read_numbers(json_array_get(json, i), numbers + count, room - count);
  return count;
}

static void put(clv_tensor *tensor, size_t index, double number) {
  switch (tensor->dtype) {
    case CLV_F32:
      ((float *)tensor->data)[index] = (float)number;
      break;
    case CLV_F64:
      ((double *)tensor->data)[index] = number;
      break;
    case CLV_BF16:
      ((uint16_t *)tensor->data)[index] = clv__f32_to_bf16((float)number);
      break;
    case CLV_I64:
      ((int64_t *)tensor->data)[index] = (int64_t)number;
      break;
    case CLV_I32:
      ((int32_t *)tensor->data)[index] = (int32_t)number;
      break;
    case CLV_U8:
    case CLV_BOOL:
      ((uint8_t *)tensor->data)[index] = (uint8_t)number;
      break;
    default:
      fail_msg("cannot write dtype %s", clv_dtype_name(tensor->dtype));
  }
}

static clv_tensor make_tensor(reader *r, const clv_tensor *type, const json_t *json) {
  static double numbers[4096];
  clv_tensor tensor = *type;
  size_t count, size_bytes;
  assert_true(clv__tensor_count(type, &count) && clv__tensor_size_bytes(type, &size_bytes));
  assert_int_equal(read_numbers(json, numbers, sizeof numbers / sizeof *numbers), count);
  tensor.data = clv__arena_allocate_data(&r->arena, size_bytes);
  assert_non_null(tensor.data);
  for (size_t i = 0; i < count; ++i) put(&tensor, i, numbers[i]);
  return tensor;
}

/* Reports the element with the largest difference if it exceeds the tolerance. */
static void compare(reader *r, const clv_tensor *got, const clv_tensor *wanted, const char *name, double tolerance) {
  char got_text[128], wanted_text[128];
  clv__tensor_text(got, got_text, sizeof got_text);
  clv__tensor_text(wanted, wanted_text, sizeof wanted_text);
  if (!clv__tensor_same_type(got, wanted)) {
    complain(r, "'%s' is %s, not %s", name, got_text, wanted_text);
    return;
  }
  size_t count, worst = 0;
  double most = 0;
  assert_true(clv__tensor_count(wanted, &count));
  for (size_t i = 0; i < count; ++i) {
    double a = clv__tensor_get(got, i), b = clv__tensor_get(wanted, i), off = fabs(a - b) / (1 + fabs(b));
    if (a == b) continue;
    if (!(off <= most)) most = isnan(off) ? INFINITY : off, worst = i;
  }
  if (most <= tolerance) return;
  complain(r, "'%s' %s element %zu is %.9g, not %.9g", name, got_text, worst, clv__tensor_get(got, worst),
           clv__tensor_get(wanted, worst));
}

static bool is_kept(const clv_graph *graph) {
  return graph->node_count == 1 && strcmp(graph->nodes[0].domain, "aten") == 0;
}

static void check_source(const reader *r, const clv_graph *graph) {
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    assert_string_equal(graph->nodes[n].source_op, r->op);
    assert_string_equal(graph->nodes[n].source_name, "node");
  }
}

static void evaluate(reader *r, const clv_graph *graph, const json_t *line) {
  clv_tensor inputs[8] = {0}, outputs[8];
  const json_t *given = json_object_get(line, "inputs"), *wanted = json_object_get(line, "outputs");
  const json_t *tolerance = json_object_get(line, "tolerance");
  clv_error error = {0};
  assert_true(graph->input_count <= 8 && graph->output_count <= 8);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv__value *value = &graph->values[graph->inputs[i]];
    inputs[i] = make_tensor(r, &value->type, json_object_get(given, value->name));
  }
  clv_status status = clv__graph_evaluate(graph, inputs, NULL, outputs, NULL, NULL, clv__allocator_default(), &error);
  if (status != CLV_OK) {
    complain(r, "%s", error.message);
    return;
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    const clv__value *value = &graph->values[graph->outputs[i]];
    clv_tensor expected = make_tensor(r, &value->type, json_object_get(wanted, value->name));
    compare(r, &outputs[i], &expected, value->name, tolerance != NULL ? json_number_value(tolerance) : 1e-5);
    clv__release(clv__allocator_default(), outputs[i].data);
  }
}

static void run_line(reader *r, json_t *line) {
  clv_error error = {0};
  clv_graph *graph = NULL;
  json_t *model = json_object_get(line, "model");
  char *text = json_dumps(model, JSON_COMPACT);
  r->op = json_string_value(json_object_get(model, "model_name"));
  clv_status status = clv__irjson_load(clv__allocator_default(), NULL, text, strlen(text), NULL, &graph, &error);
  free(text);
  if (status != CLV_OK) {
    complain(r, "%s", error.message);
    return;
  }
  check_source(r, graph);
  bool keep = json_is_true(json_object_get(line, "keep"));
  if (is_kept(graph) != keep)
    complain(r, keep ? "the node is lowered, but must not be" : "the node is not lowered to ONNX operators");
  else if (!keep)
    evaluate(r, graph, line);
  clv__graph_destroy(graph);
}

/* Loads the model with single characters changed, mostly digits. It must be loaded or rejected, without a crash. */
static void damage(reader *r, json_t *line) {
  enum { TIMES = 12 };
  uint64_t seed = r->line;
  char *text = json_dumps(json_object_get(line, "model"), JSON_COMPACT);
  size_t size_bytes = strlen(text);
  for (uint32_t i = 0; i < TIMES; ++i) {
    size_t at = test_random(&seed) % size_bytes;
    while (i % 4 != 0 && (text[at] < '0' || text[at] > '9')) at = (at + 1) % size_bytes;
    char was = text[at];
    text[at] = i % 4 == 0 ? "{}[]\",:-x"[test_random(&seed) % 9] : (char)('0' + test_random(&seed) % 10);
    clv_error error = {0};
    clv_graph *graph = NULL;
    clv_status status = clv__irjson_load(clv__allocator_default(), NULL, text, size_bytes, NULL, &graph, &error);
    if (status != CLV_OK && error.message[0] == '\0') complain(r, "a changed model is rejected without an error message");
    clv__graph_destroy(graph);
    text[at] = was;
  }
  free(text);
}

static void operators(void **state) {
  (void)state;
  clv__file_map map;
  clv_error error = {0};
  assert_ok(clv__file_map_open(CLEAVE_SOURCE_DIR "/tests/formats/irjson_cases.jsonl", &map, &error), error);
  reader r = {.line = 0};
  const char *at = (const char *)map.data, *end = at + map.size_bytes;
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    ++r.line;
    clv__arena_init(&r.arena, clv__allocator_default());
    json_error_t where;
    json_t *line = json_loadb(at, (size_t)(stop - at), 0, &where);
    if (line == NULL) fail_msg("irjson_cases.jsonl, line %zu: %s", r.line, where.text);
    run_line(&r, line);
    damage(&r, line);
    json_decref(line);
    clv__arena_finish(&r.arena);
    at = stop + 1;
  }
  clv__file_map_close(&map);
  assert_true(r.line > 250);
  assert_int_equal(r.wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operators)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
