/* The functions of cleave/tensors.h, cleave/label.h, cleave/graph_contents.h, and those of cleave/plan_contents.h about values.
 */
#include <jansson.h>

#include "machine.h"

static clv_context *new_context(test_allocator *counting) {
  clv_error error = {0};
  clv_context *context;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  test_allocator_init(counting);
  options.allocator = &counting->allocator;
  assert_ok(clv_context_create(&options, &context, &error), error);
  return context;
}

/* ---- Elements ---- */

static void sizes_and_elements(void **state) {
  (void)state;
  const int16_t data[6] = {-3, 7, 0, 1, 2, 300};
  clv_tensor tensor = {CLV_I16, 2, {2, 3}, (void *)data}, other = tensor;
  size_t number = 99;
  char text[32];
  assert_true(clv_tensor_count(&tensor, &number) && number == 6);
  assert_true(clv_tensor_size_bytes(&tensor, &number) && number == 12);
  assert_true(clv_tensor_element(&tensor, 0) == -3 && clv_tensor_element(&tensor, 5) == 300);
  assert_true(clv_tensor_same_type(&tensor, &other));
  other.dims[1] = CLV_DIM_UNKNOWN;
  assert_false(clv_tensor_same_type(&tensor, &other));
  number = 99;
  assert_true(!clv_tensor_count(&other, &number) && !clv_tensor_size_bytes(&other, &number) && number == 99);
  assert_int_equal(clv_tensor_type_text(NULL, &other, text, sizeof text), 8);
  assert_string_equal(text, "i16[2,?]");
  assert_int_equal(clv_tensor_type_text(NULL, &other, text, 4), 8);
  assert_string_equal(text, "i16");
  assert_int_equal(clv_tensor_type_text(NULL, &other, NULL, 0), 8);
}

static void random_contents(void **state) {
  (void)state;
  float x[64], y[64];
  int64_t whole[64];
  uint8_t truth[64];
  clv_error error = {0};
  clv_tensor a = {CLV_F32, 1, {64}, x}, b = {CLV_F32, 1, {64}, y}, c = {CLV_I64, 1, {64}, whole}, d = {CLV_BOOL, 1, {64}, truth};
  clv_tensor text = {CLV_STRING, 1, {1}, x}, open = {CLV_F32, 1, {CLV_DIM_UNKNOWN}, x}, empty = {CLV_F32, 1, {64}, NULL};
  assert_ok(clv_tensor_fill_random(&a, 5, &error), error);
  assert_ok(clv_tensor_fill_random(&b, 5, &error), error);
  assert_memory_equal(x, y, sizeof x);
  assert_ok(clv_tensor_fill_random(&b, 6, &error), error);
  assert_true(memcmp(x, y, sizeof x) != 0);
  assert_ok(clv_tensor_fill_random(&c, 5, &error), error);
  assert_ok(clv_tensor_fill_random(&d, 5, &error), error);
  uint32_t nines = 0, truths = 0;
  for (int i = 0; i < 64; ++i) {
    assert_true(x[i] >= -1 && x[i] < 1 && whole[i] >= 0 && whole[i] <= 9 && truth[i] <= 1);
    nines += whole[i] == 9;
    truths += truth[i];
  }
  assert_true(nines > 0 && truths > 10 && truths < 54);
  assert_int_equal(clv_tensor_fill_random(&text, 5, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "string[1] cannot be filled with random numbers");
  assert_int_equal(clv_tensor_fill_random(&open, 5, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_tensor_fill_random(&empty, 5, &error), CLV_INVALID_ARGUMENT);
}

static void comparisons(void **state) {
  (void)state;
  float expected[4] = {1, -100, NAN, INFINITY}, actual[4] = {1.001f, -100, NAN, INFINITY};
  clv_tensor a = {CLV_F32, 1, {4}, expected}, b = {CLV_F32, 1, {4}, actual};
  clv_tensor_difference d = {.struct_size = sizeof d};
  assert_true(clv_tensor_compare(&a, &b, 0.01, 0, &d));
  assert_true(d.same_type && d.count == 4 && d.beyond == 0);
  assert_false(clv_tensor_compare(&a, &b, 0, 1e-4, &d));
  assert_true(d.beyond == 1 && d.worst == 0 && d.expected == 1 && fabs(d.actual - 1.001) < 1e-6);
  actual[3] = -INFINITY;
  assert_false(clv_tensor_compare(&a, &b, 0.01, 0, &d));
  assert_true(d.beyond == 1 && d.worst == 3);
  b.rank = 0;
  assert_false(clv_tensor_compare(&a, &b, 0.01, 0, &d));
  assert_false(d.same_type);
  clv_string s[2] = {{"one", 3}, {"two", 3}}, t[2] = {{"one", 3}, {"too", 3}};
  clv_tensor words = {CLV_STRING, 1, {2}, s}, others = {CLV_STRING, 1, {2}, t};
  assert_true(clv_tensor_compare(&words, &words, 0, 0, NULL));
  assert_false(clv_tensor_compare(&words, &others, 0, 0, &d));
  assert_true(d.beyond == 1 && d.worst == 1 && d.count == 2);
}

/* ---- Files ---- */

static void write_bytes(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

static void files_keep_tensors(void **state) {
  (void)state;
  static const char *const endings[] = {"npy", "npz", "pb"};
  static const char *const names[] = {"first", "second"};
  test_allocator counting;
  clv_context *context = new_context(&counting);
  float x[6] = {1, 2.5f, -3, 4, 5, 6};
  clv_string words[2] = {{"one", 3}, {"zwei", 4}};
  const clv_tensor tensors[] = {{CLV_F32, 2, {2, 3}, x}, {CLV_STRING, 1, {2}, words}};
  for (int k = 0; k < 3; ++k) {
    clv_error error = {0};
    clv_arrays *arrays;
    clv_tensor tensor;
    char path[64];
    const uint32_t count = k == 1 ? 2 : 1;
    snprintf(path, sizeof path, "/tmp/cleave-arrays-%d.%s", (int)getpid(), endings[k]);
    assert_ok(clv_arrays_write(context, path, names, tensors, count, &error), error);
    assert_int_equal(clv_arrays_recognise(path), CLV_ARRAYS_NPY + k);
    assert_ok(clv_arrays_open(context, path, CLV_ARRAYS_UNKNOWN, &arrays, &error), error);
    assert_int_equal(clv_arrays_count(arrays), count);
    for (uint32_t i = 0; i < count; ++i) {
      assert_string_equal(clv_arrays_name(arrays, i), k == 0 ? "" : names[i]);
      for (int again = 0; again < 2; ++again) assert_ok(clv_arrays_tensor(arrays, i, &tensor, &error), error);
      assert_true(clv_tensor_compare(&tensors[i], &tensor, 0, 0, NULL));
    }
    assert_null(clv_arrays_name(arrays, count));
    assert_int_equal(clv_arrays_tensor(arrays, count, &tensor, &error), CLV_NOT_FOUND);
    clv_arrays_close(arrays);
    unlink(path);
  }
  clv_context_destroy(context);
  assert_int_equal(counting.live, 0);
}

static void bad_files(void **state) {
  (void)state;
  test_allocator counting;
  clv_context *context = new_context(&counting);
  clv_error error = {0};
  clv_arrays *arrays = (clv_arrays *)&error;
  float x[2] = {1, 2};
  const clv_tensor tensor = {CLV_F32, 1, {2}, x}, empty = {CLV_F32, 1, {2}, NULL}, two[] = {tensor, tensor};
  const char *const one[] = {"a", "a"};
  char path[64];
  snprintf(path, sizeof path, "/tmp/cleave-arrays-%d.npy", (int)getpid());
  assert_int_equal(clv_arrays_open(context, path, CLV_ARRAYS_UNKNOWN, &arrays, &error), CLV_NOT_FOUND);
  assert_null(arrays);
  write_bytes(path, "nothing of NumPy", 16);
  assert_int_equal(clv_arrays_recognise(path), CLV_ARRAYS_NPY);
  assert_int_equal(clv_arrays_open(context, path, CLV_ARRAYS_UNKNOWN, &arrays, &error), CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, path));
  assert_int_equal(clv_arrays_open(context, path, CLV_ARRAYS_NPZ, &arrays, &error), CLV_INVALID_MODEL);
  assert_int_equal(clv_arrays_open(context, path, CLV_ARRAYS_PB, &arrays, &error), CLV_INVALID_MODEL);
  unlink(path);
  assert_int_equal(clv_arrays_open(context, "/tmp/cleave.txt", CLV_ARRAYS_UNKNOWN, &arrays, &error), CLV_NOT_SUPPORTED);
  assert_string_equal(error.message, "/tmp/cleave.txt: not a .npy, .npz or .pb file");
  assert_int_equal(clv_arrays_write(context, "/tmp/cleave.txt", one, &tensor, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_arrays_write(context, path, NULL, two, 2, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_arrays_write(context, path, NULL, &empty, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(clv_arrays_write(context, "/tmp/cleave-arrays.npz", one, two, 2, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "tensors 0 and 1 are both named 'a'");
  assert_int_equal(clv_arrays_write(context, "/tmp/cleave-arrays.npz", NULL, &tensor, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_arrays_write(context, "/no/such/folder/a.npy", NULL, &tensor, 1, &error), CLV_IO_ERROR);
  clv_arrays_close(NULL);
  clv_context_destroy(context);
  assert_int_equal(counting.live, 0);
}

/* ---- Reports and names ---- */

static void reports_of_values(void **state) {
  (void)state;
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  float x[6] = {1, 2, -3, NAN, 5, 6};
  clv_error error = {0};
  char *text;
  clv_named_tensor values[] = {{"y", {CLV_F32, 2, {2, 3}, x}, "out/y.npy"}};
  assert_ok(clv_tensors_report(graph, values, 1, CLV_FORM_TEXT, &text, &error), error);
  assert_string_equal(text,
                      "output  type      min  max  mean  first elements                    file\n"
                      "y       f32[2,3]   -3    6   2.2  1 2 -3 nan …  (1 are not finite)  out/y.npy\n");
  clv_text_free(text);
  assert_ok(clv_tensors_report(graph, values, 1, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL), *one = json_array_get(root, 0);
  assert_string_equal(json_string_value(json_object_get(one, "name")), "y");
  assert_float_equal(json_number_value(json_object_get(one, "mean")), 2.2, 1e-6);
  assert_int_equal(json_integer_value(json_object_get(one, "not_finite")), 1);
  json_decref(root);
  clv_text_free(text);
  values[0].tensor.data = NULL;
  assert_int_equal(clv_tensors_report(graph, values, 1, CLV_FORM_JSON, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_tensors_report(NULL, values, 1, CLV_FORM_JSON, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_tensors_report(graph, values, 1, (clv_form)8, &text, &error), CLV_INVALID_ARGUMENT);
  clv_graph_destroy(graph);
}

static void names_are_safe(void **state) {
  (void)state;
  char text[32];
  assert_int_equal(clv_label_name("a\033[1m\nb", 0, text, sizeof text), 11);
  assert_string_equal(text, "a\\x1b[1m\\nb");
  assert_int_equal(clv_label_name("abcdefghijk", 5, text, sizeof text), 7);
  assert_string_equal(text, "ab…jk");
  assert_int_equal(clv_label_name("größer", 0, text, 4), 8); /* is cut before the second byte of a character */
  assert_string_equal(text, "gr");
  assert_int_equal(clv_label_name("größer", 0, NULL, 0), 8);
}

/* ---- Sizes ---- */

static void sizes_of_graphs_and_plans(void **state) {
  (void)state;
  static const char *const spec = "{\"static_shapes\": true, \"operators\": \"all\"}";
  machine m;
  clv_error error = {0};
  bool pads = true;
  machine_open(&m, "npu,cpu", 1, &spec);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 17);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "N"), 4));
  test_graph_node(&g, "relu", "Relu", "x", "y");
  test_graph_node(&g, "exp", "Exp", "y", "z");
  clv_graph *graph = test_graph_end(&g, "z");
  const char *keeps[] = {"y"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.keeps = keeps;
  options.keep_count = 1;
  clv_plan *plan = machine_plan(&m, graph, "relu=npu,exp=cpu", options);
  assert_int_equal(clv_graph_count_matches(graph, "*", false), 2);
  assert_int_equal(clv_graph_count_matches(graph, "Ex?", true), 1);
  assert_int_equal(clv_graph_count_matches(graph, "exp", true), 0);
  assert_int_equal(clv_plan_output_count(plan), 2);
  assert_string_equal(clv_plan_output_name(plan, 1), "y");
  assert_int_equal(clv_plan_output_type(plan, 1)->dims[1], 4);
  assert_int_equal(clv_plan_input_type(plan, 0)->dims[0], CLV_DIM_SYMBOL(0));
  assert_true(clv_plan_output_name(plan, 2) == NULL && clv_plan_output_type(plan, 2) == NULL &&
              clv_plan_input_type(plan, 1) == NULL);
  int64_t sizes[1] = {13};
  assert_ok(clv_plan_pad_sizes(plan, 8, sizes, 1, &pads, &error), error);
  assert_true(pads && sizes[0] == 16);
  sizes[0] = -1;
  assert_ok(clv_plan_pad_sizes(plan, 8, sizes, 1, &pads, &error), error);
  assert_int_equal(sizes[0], -1);
  assert_int_equal(clv_plan_pad_sizes(plan, 8, sizes, 2, &pads, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_plan_pad_sizes(NULL, 8, sizes, 1, &pads, &error), CLV_INVALID_ARGUMENT);
  const clv_size good[] = {{"N", true, 1, {3}}, {"x", false, 2, {3, 4}}}, bad[] = {{"N", true, 1, {3}}, {"x", false, 2, {5, 4}}};
  const clv_size unknown = {"M", true, 1, {3}}, nameless = {NULL, true, 1, {3}};
  assert_ok(clv_graph_check_sizes(graph, good, 2, &error), error);
  assert_int_equal(clv_graph_check_sizes(graph, bad, 2, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_check_sizes(graph, &unknown, 1, &error), CLV_NOT_FOUND);
  assert_int_equal(clv_graph_check_sizes(graph, &nameless, 1, &error), CLV_INVALID_ARGUMENT);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_and_elements), cmocka_unit_test(random_contents),
      cmocka_unit_test(comparisons),        cmocka_unit_test(files_keep_tensors),
      cmocka_unit_test(bad_files),          cmocka_unit_test(reports_of_values),
      cmocka_unit_test(names_are_safe),     cmocka_unit_test(sizes_of_graphs_and_plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
