/* Tests models in IR JSON (docs/ir-json.md) through the public functions: loading from a file and from memory, pins by the
 * names of the file, sessions with and without weights, and the number of partitions of a real decoder. */
#include "../formats/irjson_text.h"
#include "machine.h"

static const char *const all_spec[] = {"all"};

static clv_graph *load(machine *m, const char *text) {
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv_graph_load_memory(m->context, text, strlen(text), CLV_COPY, &graph, &error), error);
  return graph;
}

static void from_file(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  char path[64];
  snprintf(path, sizeof path, "/tmp/cleave-irjson-%d.json", (int)getpid());
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputs("  \n\t", file);
  fputs(IR_LAYER, file);
  fclose(file);
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv_graph_load(m.context, path, &graph, &error), error);
  assert_int_equal(clv_graph_input_count(graph), 1);
  assert_string_equal(clv_graph_output_name(graph, 0), "relu");
  clv_graph_destroy(graph);
  file = fopen(path, "wb");
  assert_non_null(file);
  fputs("{\"nodes\": 1", file);
  fclose(file);
  assert_int_equal(clv_graph_load(m.context, path, &graph, &error), CLV_INVALID_MODEL);
  assert_memory_equal(error.message, path, strlen(path));
  unlink(path);
  assert_int_equal(clv_graph_load(m.context, path, &graph, &error), CLV_NOT_FOUND);
  machine_close(&m);
}

static uint32_t nodes_on(const clv_plan *plan, const char *source, uint32_t device) {
  uint32_t count = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    for (uint32_t i = 0; plan->partitions[p].device == device && i < plan->partitions[p].node_count; ++i) {
      count += strcmp(plan->graph->nodes[plan->partitions[p].nodes[i]].source_name, source) == 0;
    }
  }
  return count;
}

/* One ATen node becomes three nodes. A pin or a forced operator applies to all three. */
static void source_names(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all_spec);
  clv_graph *graph = load(&m, IR_LAYER);
  static const clv_assignment pins[] = {{"linear", "cpu"}, {"aten.linear", "cpu"}, {"aten.linear.default", "cpu"}};
  for (uint32_t i = 0; i < 3; ++i) {
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = "contiguous";
    if (i == 0) {
      options.pin_count = 1;
      options.pins = &pins[i];
    } else {
      options.force_count = 1;
      options.forces = &pins[i];
    }
    clv_error error = {0};
    clv_plan *plan = NULL;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    assert_int_equal(nodes_on(plan, "linear", 1), 3);
    assert_int_equal(nodes_on(plan, "relu", 0), 1);
    for (uint32_t p = 0; p < plan->partition_count;
         ++p) { /* the weight is not an input of a partition; its bytes count for the partition that reads it */
      const clv__partition *partition = &plan->partitions[p];
      assert_int_equal(partition->view->input_count, 1);
      assert_int_equal(partition->weight_bytes > 0, partition->device == 1);
    }
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void no_session_without_weights(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = load(&m, IR_LAYER);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = NULL;
  clv_error error = {0};
  assert_int_equal(clv_session_create(plan, NULL, &session, &error), CLV_NOT_SUPPORTED);
  assert_null(session);
  assert_non_null(strstr(error.message, "weight 'fc.weight' has no data"));
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Runs IR_LAYER with its weight and checks the result. */
static void check_layer(clv_session *session) {
  clv_error error = {0};
  float x[6] = {1, -2, 3, -4, 5, -6}, y[8] = {0}, wanted[8] = {1, 0, 3, 2, 0, 5, 0, 0};
  clv_tensor input = clv__tensor_make(CLV_F32, 3, DIMS(1, 2, 3), x), output = clv__tensor_make(CLV_F32, 3, DIMS(1, 2, 4), y);
  assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  for (uint32_t i = 0; i < 8; ++i) assert_true(y[i] == wanted[i]);
  clv_session_destroy(session);
}

/* Weights in memory are borrowed or copied. A wrong one is an error that names it. */
static void runs_with_tensors_in_memory(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all_spec);
  float weight[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, other[1] = {0};
  const char *const names[] = {"unused", "fc.weight", "fc.weight"};
  clv_tensor tensors[] = {clv__tensor_make(CLV_F32, 1, DIMS(1), other), clv__tensor_make(CLV_F32, 2, DIMS(4, 3), weight),
                          clv__tensor_make(CLV_F64, 0, NULL, NULL)};
  clv_graph *graph = NULL;
  clv_error error = {0};
  for (clv_ownership ownership = CLV_COPY; ownership <= CLV_BORROW; ++ownership) {
    assert_ok(clv_graph_load_memory_params(m.context, IR_LAYER, strlen(IR_LAYER), names, tensors, 3, ownership, &graph, &error),
              error);
    if (ownership == CLV_COPY) memset(weight, 0, sizeof weight); /* the graph has its own copy */
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = NULL;
    assert_ok(clv_session_create(plan, NULL, &session, &error), error);
    check_layer(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    memcpy(weight, (float[]){1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, sizeof weight);
  }
  static const char onnx[] = "\x08\x07";
  assert_int_equal(clv_graph_load_memory_params(m.context, onnx, 2, names, tensors, 3, CLV_COPY, &graph, &error),
                   CLV_INVALID_ARGUMENT);
  assert_int_equal(
      clv_graph_load_memory_params(m.context, IR_LAYER, strlen(IR_LAYER), names, tensors, 1, CLV_COPY, &graph, &error),
      CLV_NOT_FOUND);
  assert_null(graph);
  assert_non_null(strstr(error.message, "no tensor 'fc.weight'"));
  assert_int_equal(
      clv_graph_load_memory_params(m.context, IR_LAYER, strlen(IR_LAYER), names + 2, tensors + 2, 1, CLV_COPY, &graph, &error),
      CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "the model needs"));
  tensors[1].data = NULL;
  assert_int_equal(
      clv_graph_load_memory_params(m.context, IR_LAYER, strlen(IR_LAYER), names, tensors, 2, CLV_BORROW, &graph, &error),
      CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "has no data"));
  machine_close(&m);
}

/* The JSON file itself contains the weight. */
static void runs_with_constants(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all_spec);
  char text[sizeof(IR_LAYER) + 120];
  snprintf(text, sizeof text,
           "%.*s,\"constants\":{\"fc.weight\":{\"data\":[[1,0,0],[0,1,0],[0,0,1],[1,1,1]],\"dtype\":\"float32\"}}}",
           (int)strlen(IR_LAYER) - 1, IR_LAYER);
  clv_graph *graph = load(&m, text);
  clv_plan *plan = machine_plan(&m, graph, "relu=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 2);
  clv_session *session = NULL;
  clv_error error = {0};
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  check_layer(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Weights come from a separate file, on two devices. The files may be deleted after loading. */
static void runs_with_params(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all_spec);
  char model[64], params[64];
  snprintf(model, sizeof model, "/tmp/cleave-params-%d.json", (int)getpid());
  snprintf(params, sizeof params, "/tmp/cleave-params-%d.safetensors", (int)getpid());
  static const char header[] = "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4,3],\"data_offsets\":[0,48]}} ";
  static const float weight[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
  const uint64_t header_bytes = sizeof header - 1;
  FILE *file = fopen(params, "wb");
  assert_non_null(file);
  fwrite(&header_bytes, sizeof header_bytes, 1, file);
  fwrite(header, sizeof header - 1, 1, file);
  fwrite(weight, sizeof weight, 1, file);
  fclose(file);
  file = fopen(model, "wb");
  assert_non_null(file);
  fputs(IR_LAYER, file);
  fclose(file);
  const char *const paths[] = {params, NULL};
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_int_equal(clv_graph_load_params(m.context, model, paths, 2, &graph, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_graph_load_params(m.context, model, NULL, 1, &graph, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv_graph_load_params(m.context, model, paths, 1, &graph, &error), error);
  unlink(params);
  unlink(model);
  clv_plan *plan = machine_plan(&m, graph, "relu=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = NULL;
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  check_layer(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* If no device supports a node, the error has the node's name, its ATen call, and every device's reason. */
static void refuses_unknown_operators(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 0, NULL);
  clv_graph *graph = load(
      &m,
      IR_MODEL(
          IR_TENSOR("x", "2,2", "float32"), IR_FROM("inv", "2,2", "float32", "inv", "0"), "", "",
          "{\"name\":\"inv\",\"op_type\":\"aten.linalg_inv.default\",\"inputs\":[" IR_FROM(
              "x", "2,2", "float32", "x",
              "0") "],\"outputs\":[" IR_TENSOR("inv", "2,2",
                                               "float32") "],\"attrs\":{},\"call\":[\"Tensor A=%0\"],\"returns\":[\"Tensor\"]}"));
  clv_plan *plan = NULL;
  clv_error error = {0};
  assert_int_equal(clv_plan_make(graph, m.devices, NULL, &plan, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "node 'inv' (linalg_inv.default: Tensor A=%0): no device can run it: npu: "));
  assert_non_null(strstr(error.message, "; cpu: "));
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* The number of partitions if one ATen operator is forced to the CPU. The expected numbers were derived from the nodes in the
 * file. */
static void decoder(void **state) {
  (void)state;
  const char *path = CLEAVE_SOURCE_DIR "/../shared/data/irjson/qwen2_decode_ir.json";
  if (access(path, R_OK) != 0) {
    print_message("skipped: %s does not exist\n", path);
    skip();
  }
  static const struct {
    clv_assignment force;
    const char *split;
    uint32_t partitions;
  } cases[] = {
      {{"aten.cat", "cpu"}, "fewest", 57},          {{"aten.cat", "cpu"}, "linear", 113},
      {{"aten.linear", "cpu"}, "fewest", 226},      {{"aten.linear", "cpu"}, "linear", 394},
      {{"aten.silu.default", "cpu"}, "fewest", 57},
  };
  machine m;
  machine_open(&m, "npu,cpu", 1, all_spec);
  clv_error error = {0};
  clv_graph *graph = NULL;
  assert_ok(clv_graph_load(m.context, path, &graph, &error), error);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = "contiguous";
    options.split = cases[i].split;
    options.force_count = 1;
    options.forces = &cases[i].force;
    clv_plan *plan = NULL;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    if (plan->partition_count != cases[i].partitions) {
      fail_msg("%s, %s: the plan has %u partitions, expected %u", cases[i].force.pattern, cases[i].split, plan->partition_count,
               cases[i].partitions);
    }
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(from_file),
      cmocka_unit_test(source_names),
      cmocka_unit_test(no_session_without_weights),
      cmocka_unit_test(runs_with_tensors_in_memory),
      cmocka_unit_test(runs_with_constants),
      cmocka_unit_test(runs_with_params),
      cmocka_unit_test(refuses_unknown_operators),
      cmocka_unit_test(decoder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
