/* Descriptions of virtual NPUs: valid ones are read, and every error names its line and the allowed values. */
#include "backends/vnpu/spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/vnpu/vnpu.h"
#include "support.h"

static clv__vnpu_spec open_spec(const char *text) {
  clv__vnpu_spec spec;
  clv_error error = {0};
  assert_ok(clv__vnpu_spec_open(clv__allocator_default(), text, NULL, 0, &spec, &error), error);
  return spec;
}

static void default_is_as_promised(void **state) {
  (void)state;
  clv__vnpu_spec spec = open_spec("default");
  assert_true(spec.operator_count >= 45 && spec.operator_count <= 60);
  char count[32];
  snprintf(count, sizeof count, "%u operators", spec.operator_count);
  assert_non_null(strstr(spec.description, count));
  assert_int_equal(spec.max_rank, 4);
  assert_true(spec.static_shapes && !spec.control_flow);
  assert_int_equal(spec.memory_bytes, UINT64_C(1) << 30);
  assert_int_equal(spec.dtypes, CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16));
  assert_non_null(clv__vnpu_spec_find(&spec, "", "Conv"));
  assert_null(clv__vnpu_spec_find(&spec, "", "Einsum"));
  assert_null(clv__vnpu_spec_find(&spec, "com.other", "Conv"));
  clv__vnpu_spec_finish(&spec);
  spec = open_spec(NULL);
  assert_int_equal(spec.memory_bytes, UINT64_C(1) << 30);
  clv__vnpu_spec_finish(&spec);
}

static void all_has_no_limits(void **state) {
  (void)state;
  clv__vnpu_spec spec = open_spec("all");
  assert_true(!spec.static_shapes && spec.control_flow && spec.any_operator);
  assert_int_equal(spec.memory_bytes, 0);
  const clv__vnpu_operator *any = clv__vnpu_spec_find(&spec, "ai.cleave", "Whatever");
  assert_non_null(any);
  assert_int_equal(any->dtypes, CLV__DTYPES_ANY);
  assert_int_equal(any->max_rank, CLV_MAX_RANK);
  clv__vnpu_spec_finish(&spec);
}

static void limits_are_read(void **state) {
  (void)state;
  clv__vnpu_spec spec = open_spec(
      "{\"name\": \"chip\", \"memory\": \"64M\", \"alignment\": 256, \"memory_space\": \"host\", \"dtypes\": [\"f16\"],"
      " \"compute_dtype\": \"bf16\", \"max_rank\": 3, \"static_shapes\": true, \"max_partition_inputs\": 7,"
      " \"speed\": {\"launch_overhead_us\": 20, \"flops_per_second\": 1e12, \"time_scale\": 2.5,"
      "  \"operators\": {\"ai.cleave:Sum\": {\"us\": 3, \"ns_per_edge\": 0.5}, \"Conv\": {\"ns_per_row\": 7}}},"
      " \"operators\": {\"Conv\": {\"dtypes\": [\"f32\", \"i8\"], \"max_rank\": 5, \"max_kernel\": 7, \"inputs\": {\"2\": "
      "[\"i32\"]},"
      "   \"constant_inputs\": [1], \"max_inputs\": 3,"
      "   \"attributes\": {\"group\": {\"max\": 1}, \"auto_pad\": {\"in\": [\"NOTSET\"], \"default\": \"NOTSET\"}}},"
      "  \"ai.cleave:Sum\": {}}}");
  assert_string_equal(spec.name, "chip");
  assert_string_equal(spec.memory_space, "host");
  assert_int_equal(spec.memory_bytes, 64 << 20);
  assert_int_equal(spec.alignment_bytes, 256);
  assert_int_equal(spec.compute_dtype, CLV_BF16);
  assert_int_equal(spec.max_partition_inputs, 7);
  assert_true(spec.speed.given && spec.speed.launch_overhead_us == 20 && spec.speed.time_scale == 2.5);
  assert_int_equal(spec.speed.operator_count, 2);
  const clv__vnpu_operator_speed *first = &spec.speed.operators[0], *second = first + 1;
  assert_string_equal(first->name, "ai.cleave:Sum");
  assert_true(first->us == 3 && first->ns_per_row == 0 && first->ns_per_edge == 0.5 && second->ns_per_row == 7);
  const clv__vnpu_operator *conv = clv__vnpu_spec_find(&spec, "", "Conv");
  assert_int_equal(conv->dtypes, CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_I8));
  assert_int_equal(conv->max_rank, 5);
  assert_int_equal(conv->max_kernel, 7);
  assert_int_equal(conv->inputs[0].index, 2);
  assert_int_equal(conv->constants[0], 1);
  assert_int_equal(conv->attribute_count, 2);
  const clv__vnpu_operator *sum = clv__vnpu_spec_find(&spec, "ai.cleave", "Sum");
  assert_int_equal(sum->dtypes, CLV__DTYPE_BIT(CLV_F16));
  assert_int_equal(sum->max_rank, 3);
  clv__vnpu_spec_finish(&spec);
}

static void mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *says[3];
  } cases[] = {
      {"{\n \"operatorz\": {}}", {"line 2", "operatorz", "known: name"}},
      {"{\"operators\":\n {\"Conv\":\n {\"attributes\":\n {\"group\": {\"mox\": 1}}}}}",
       {"line 4", "operators.Conv.attributes.group.mox", "min, max"}},
      {"{\"operators\": {},\n\n \"max_rank\": 9}", {"line 3", "max_rank", "0 to 8"}},
      {"{\"operators\": {},\n \"dtypes\": [\"f32\", \"q7\"]}", {"line 2", "'q7'", "bf16"}},
      {"{\"operators\": {},\n \"dtypes\": [\"string\"]}", {"line 2", "'string'", "bool"}},
      {"{\"operators\": {},\n \"memory\": \"12X\"}", {"line 2", "memory", "64M"}},
      {"{\"operators\": {},\n \"memory\": \"99999999999999999999\"}", {"line 2", "memory", "64M"}},
      {"{\"operators\": {}, \"alignment\": 48}", {"alignment", "power of two", ""}},
      {"{\"operators\": {}, \"compute_dtype\": \"f64\"}", {"compute_dtype", "f64", "bf16"}},
      {"{\"operators\": {}, \"speed\": {\"flops\": 1}}", {"speed.flops", "flops_per_second", ""}},
      {"{\"operators\": {}, \"speed\": {\"time_scale\": -1}}", {"speed.time_scale", "0 or more", ""}},
      {"{\"operators\": {}, \"speed\": {\"operators\": 3}}", {"speed.operators", "figures", ""}},
      {"{\"operators\": {}, \"speed\": {\"operators\": {\"Add\": {\"ms\": 1}}}}", {"speed.operators.Add.ms", "ns_per_row", ""}},
      {"{\"operators\": {}, \"speed\": {\"operators\": {\"Add\": {\"us\": -1}}}}", {"speed.operators.Add.us", "0 or more", ""}},
      {"{\"operators\": 7}", {"operators", "all", ""}},
      {"{}", {"'operators' is missing", "", ""}},
      {"{\"operators\": {\"Conv\": {}, \"Conv\": {}}}", {"line 1", "", ""}},
      {"{\"operators\": {\n\"Conv\": {} ", {"line 2", "", ""}},
      {"{\"operators\": {\"A\": {\"inputs\": {\"x\": [\"f32\"]}}}}", {"operators.A.inputs.x", "index", ""}},
      {"{\"operators\": {\"A\": {\"constant_inputs\": [-1]}}}", {"constant_inputs", "", ""}},
      {"{\"name\": 3, \"operators\": {}}", {"name", "string", ""}},
      {"{\"static_shapes\": 1, \"operators\": {}}", {"static_shapes", "true or false", ""}},
      {"/nowhere/npu.json", {"/nowhere/npu.json", "default, all, JSON or a file", ""}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv__vnpu_spec spec;
    clv_error error = {0};
    clv_status status = clv__vnpu_spec_open(clv__allocator_default(), cases[i].text, NULL, 0, &spec, &error);
    assert_true(status == CLV_INVALID_ARGUMENT || status == CLV_NOT_FOUND);
    for (int k = 0; k < 3; ++k) {
      if (strstr(error.message, cases[i].says[k]) == NULL) {
        fail_msg("case %zu: the error message '%s' does not contain '%s'", i, error.message, cases[i].says[k]);
      }
    }
  }
}

static void options_apply(void **state) {
  (void)state;
  clv__vnpu_spec spec;
  clv_error error = {0};
  clv_option good[] = {{"frequency", "3"}, {"memory", "2 MiB"}, {"time_scale", "0.5"}};
  assert_ok(clv__vnpu_spec_open(clv__allocator_default(), "default", good, 3, &spec, &error), error);
  assert_true(spec.speed.frequency == 3 && spec.speed.time_scale == 0.5);
  assert_int_equal(spec.memory_bytes, 2 << 20);
  char canonical[8192];
  snprintf(canonical, sizeof canonical, "%s", spec.canonical);
  clv__vnpu_spec_finish(&spec);
  spec = open_spec("default");
  assert_string_not_equal(spec.canonical, canonical);
  clv__vnpu_spec_finish(&spec);
  spec = open_spec("default");
  snprintf(canonical, sizeof canonical, "%s", spec.canonical);
  assert_true(spec.hang_at == 0 && spec.fail_at == 0);
  clv__vnpu_spec_finish(&spec);
  clv_option faults[] = {{"hang", "7"}, {"fail", "12"}};
  assert_ok(clv__vnpu_spec_open(clv__allocator_default(), "default", faults, 2, &spec, &error), error);
  assert_true(spec.hang_at == 7 && spec.fail_at == 12);
  assert_string_equal(spec.canonical, canonical); /* fault options do not change programs */
  clv__vnpu_spec_finish(&spec);
  clv_option bad[][1] = {{{"frequency", ""}},     {{"frequency", "fast"}}, {{"frequency", "0"}}, {{"memory", "-1"}},
                         {{"time_scale", "nan"}}, {{"hang", "-1"}},        {{"fail", "soon"}},   {{"fail", ""}}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    assert_int_equal(clv__vnpu_spec_open(clv__allocator_default(), "default", bad[i], 1, &spec, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, bad[i][0].key));
  }
}

static clv_status note_name(void *cookie, const char *name, const char *kind) {
  assert_string_equal(kind, "npu");
  snprintf(cookie, 16, "%s", name);
  return CLV_OK;
}

static void files_are_read(void **state) {
  (void)state;
  char path[] = "/tmp/cleave-spec-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  static const char text[] = "{\n  \"name\": \"npu7\",\n  \"operators\": {\"Relu\": {\"oops\": 1}}\n}\n";
  assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
  clv__vnpu_spec spec;
  clv_error error = {0};
  assert_int_equal(clv__vnpu_spec_open(clv__allocator_default(), path, NULL, 0, &spec, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, path));
  assert_non_null(strstr(error.message, "line 3: operators.Relu.oops"));
  assert_int_equal(ftruncate(file, 0), 0);
  assert_int_equal(lseek(file, 0, SEEK_SET), 0);
  assert_int_equal(clv__vnpu_spec_open(clv__allocator_default(), path, NULL, 0, &spec, &error), CLV_INVALID_ARGUMENT);
  static const char fixed[] = "{\"name\": \"npu7\", \"operators\": \"all\"}";
  assert_int_equal(write(file, fixed, sizeof fixed - 1), sizeof fixed - 1);
  const clv_host host = {.abi_version = CLV_ABI_VERSION, .struct_size = sizeof host, .allocator = clv__allocator_default()};
  const clv_backend *backend;
  assert_ok(clv__vnpu_backend_query(&host, NULL, &backend, &error), error);
  const clv_option options[] = {{"spec", "default"}, {"memory", "1M"}, {"spec", path}};
  char name[16] = "";
  assert_ok(backend->list(NULL, &host, options, 3, note_name, name, &error), error); /* the last `spec` option is used */
  assert_string_equal(name, "npu7");
  assert_ok(backend->list(NULL, &host, options, 1, note_name, name, &error), error);
  assert_string_equal(name, "");
  assert_int_equal(backend->list(NULL, &host, options + 1, 1, note_name, name, &error), CLV_NOT_SUPPORTED);
  close(file);
  unlink(path);
}

static void memory_failures_leave_nothing(void **state) {
  (void)state;
  static const char text[] =
      "{\"name\": \"chip\", \"speed\": {\"operators\": {\"Add\": {\"us\": 1}}}, \"operators\": {\"Conv\": {\"inputs\": {\"1\": "
      "[\"f32\"]}, \"constant_inputs\": [1],"
      " \"attributes\": {\"auto_pad\": {\"in\": [\"NOTSET\"]}}}}}";
  test_allocator counting;
  for (size_t fail_at = 1;; ++fail_at) {
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv__vnpu_spec spec;
    clv_error error = {0};
    clv_status status = clv__vnpu_spec_open(&counting.allocator, text, NULL, 0, &spec, &error);
    if (status == CLV_OK)
      clv__vnpu_spec_finish(&spec);
    else
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_int_equal(counting.live, 0);
    if (status == CLV_OK) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(default_is_as_promised),
      cmocka_unit_test(all_has_no_limits),
      cmocka_unit_test(limits_are_read),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(options_apply),
      cmocka_unit_test(files_are_read),
      cmocka_unit_test(memory_failures_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
