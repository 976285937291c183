/* Cases of If, Loop and Scan, whose bodies a row cannot express. */
#include "check/cases/cases.h"

/* Adds a value with a type and, unless `data` is NULL, with constant data, which is copied. */
static clv_status declare(clv__builder *builder, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims,
                          const void *data, clv_value_id *value, clv_error *error) {
  clv_tensor type = clv__tensor_make(dtype, rank, dims, NULL);
  size_t size_bytes;
  CLV__TRY(clv__builder_value(builder, name, value, error));
  if (data != NULL && clv__tensor_size_bytes(&type, &size_bytes)) {
    type.data = clv__arena_copy(clv__builder_arena(builder), data, size_bytes);
    if (type.data == NULL) return clv__error_memory(error, size_bytes);
  }
  clv__builder_type(builder, *value, &type);
  return CLV_OK;
}

static clv_status declare_input(clv__builder *builder, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims,
                                clv_value_id *value, clv_error *error) {
  CLV__TRY(declare(builder, name, dtype, rank, dims, NULL, value, error));
  return clv__builder_input(builder, *value, error);
}

static clv_status add_node(clv__builder *builder, const char *op, const char *a, const char *b, const char *y, bool is_output,
                           clv_error *error) {
  clv_value_id inputs[2], output;
  CLV__TRY(clv__builder_value(builder, a, &inputs[0], error));
  if (b != NULL) CLV__TRY(clv__builder_value(builder, b, &inputs[1], error));
  CLV__TRY(clv__builder_value(builder, y, &output, error));
  CLV__TRY(clv__builder_node(builder, "", "", op, inputs, b != NULL ? 2 : 1, &output, 1, NULL, 0, error));
  return is_output ? clv__builder_output(builder, output, error) : CLV_OK;
}

/* Builds a branch of If that computes op(x, w). It captures x and w from the enclosing graph. */
static clv_status branch(clv__builder *parent, const char *op, const clv_graph_view **body, clv_error *error) {
  clv__builder *builder;
  CLV__TRY(clv__builder_create(clv__builder_arena(parent)->allocator, &builder, error));
  clv_status status = add_node(builder, op, "x", "w", "inner", true, error);
  if (status == CLV_OK) return clv__builder_finish_body(builder, parent, body, error);
  clv__builder_destroy(builder);
  return status;
}

static clv_status build_if(clv__builder *builder, const uint8_t *condition, clv_error *error) {
  static const float weights[] = {0.5f, -1, 2, 0.25f, 3, -0.5f, 1.5f};
  static const int64_t dims[] = {5, 7};
  clv_value_id flag, x, w, y;
  clv_attribute attributes[] = {{.name = "then_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1},
                                {.name = "else_branch", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1}};
  CLV__TRY(clv__builder_import(builder, "", 16, error));
  CLV__TRY(declare(builder, "flag", CLV_BOOL, 0, NULL, condition, &flag, error));
  if (condition == NULL) CLV__TRY(clv__builder_input(builder, flag, error));
  CLV__TRY(declare_input(builder, "x", CLV_F32, 2, dims, &x, error));
  CLV__TRY(declare(builder, "w", CLV_F32, 1, dims + 1, weights, &w, error));
  CLV__TRY(branch(builder, "Add", &attributes[0].graph, error));
  CLV__TRY(branch(builder, "Mul", &attributes[1].graph, error));
  CLV__TRY(clv__builder_value(builder, "y", &y, error));
  CLV__TRY(clv__builder_node(builder, "node", "", "If", &flag, 1, &y, 1, attributes, 2, error));
  return clv__builder_output(builder, y, error);
}
static clv_status build_if_input(clv__builder *builder, clv_error *error) {
  return build_if(builder, NULL, error);
}
static clv_status build_if_true(clv__builder *builder, clv_error *error) {
  return build_if(builder, &(uint8_t){1}, error);
}
static clv_status build_if_false(clv__builder *builder, clv_error *error) {
  return build_if(builder, &(uint8_t){0}, error);
}

/* Builds a Loop body: the next state is state + x, and the scan output is -state. */
static clv_status loop_body(clv__builder *parent, const clv_graph_view **body, clv_error *error) {
  static const int64_t dims[] = {3};
  clv__builder *builder;
  clv_value_id value;
  CLV__TRY(clv__builder_create(clv__builder_arena(parent)->allocator, &builder, error));
  clv_status status = declare_input(builder, "i", CLV_I64, 0, NULL, &value, error);
  if (status == CLV_OK) status = declare_input(builder, "go", CLV_BOOL, 0, NULL, &value, error);
  if (status == CLV_OK) status = declare_input(builder, "state", CLV_F32, 1, dims, &value, error);
  if (status == CLV_OK) status = add_node(builder, "Identity", "go", NULL, "go_on", true, error);
  if (status == CLV_OK) status = add_node(builder, "Add", "state", "x", "next", true, error);
  if (status == CLV_OK) status = add_node(builder, "Neg", "state", NULL, "seen", true, error);
  if (status == CLV_OK) return clv__builder_finish_body(builder, parent, body, error);
  clv__builder_destroy(builder);
  return status;
}

static clv_status build_loop(clv__builder *builder, const int64_t *trips, clv_error *error) {
  static const int64_t dims[] = {3};
  clv_value_id inputs[3], x, outputs[2];
  clv_attribute attribute = {.name = "body", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1};
  CLV__TRY(clv__builder_import(builder, "", 16, error));
  CLV__TRY(declare(builder, "trips", CLV_I64, 0, NULL, trips, &inputs[0], error));
  if (trips == NULL) CLV__TRY(clv__builder_input(builder, inputs[0], error));
  inputs[1] = CLV__NO_ID;
  CLV__TRY(declare_input(builder, "start", CLV_F32, 1, dims, &inputs[2], error));
  CLV__TRY(declare_input(builder, "x", CLV_F32, 1, dims, &x, error));
  CLV__TRY(loop_body(builder, &attribute.graph, error));
  CLV__TRY(clv__builder_value(builder, "last", &outputs[0], error));
  CLV__TRY(clv__builder_value(builder, "all", &outputs[1], error));
  CLV__TRY(clv__builder_node(builder, "node", "", "Loop", inputs, 3, outputs, 2, &attribute, 1, error));
  CLV__TRY(clv__builder_output(builder, outputs[0], error));
  return clv__builder_output(builder, outputs[1], error);
}
static clv_status build_loop_constant(clv__builder *builder, clv_error *error) {
  return build_loop(builder, &(int64_t){4}, error);
}
static clv_status build_loop_none(clv__builder *builder, clv_error *error) {
  return build_loop(builder, &(int64_t){0}, error);
}
static clv_status build_loop_input(clv__builder *builder, clv_error *error) {
  return build_loop(builder, NULL, error);
}

/* Builds a Scan body that adds a row to the running sum, and outputs the new sum both as state and as scan output. */
static clv_status scan_body(clv__builder *parent, const clv_graph_view **body, clv_error *error) {
  static const int64_t dims[] = {4};
  clv__builder *builder;
  clv_value_id value;
  CLV__TRY(clv__builder_create(clv__builder_arena(parent)->allocator, &builder, error));
  clv_status status = declare_input(builder, "sum", CLV_F32, 1, dims, &value, error);
  if (status == CLV_OK) status = declare_input(builder, "row", CLV_F32, 1, dims, &value, error);
  if (status == CLV_OK) status = add_node(builder, "Add", "sum", "row", "next", true, error);
  if (status == CLV_OK) status = add_node(builder, "Identity", "next", NULL, "seen", true, error);
  if (status == CLV_OK) return clv__builder_finish_body(builder, parent, body, error);
  clv__builder_destroy(builder);
  return status;
}

static clv_status build_scan(clv__builder *builder, int64_t backwards, clv_error *error) {
  static const int64_t dims[] = {5, 4};
  clv_value_id inputs[2], outputs[2];
  int64_t *numbers = clv__arena_allocate(clv__builder_arena(builder), 2 * sizeof *numbers);
  if (numbers == NULL) return clv__error_memory(error, 2 * sizeof *numbers);
  numbers[0] = 1;
  numbers[1] = backwards;
  clv_attribute attributes[] = {
      {.name = "body", .kind = CLV_ATTRIBUTE_GRAPH, .count = 1},
      {.name = "num_scan_inputs", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = numbers},
      {.name = "scan_input_directions", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 1, .ints = numbers + 1}};
  CLV__TRY(clv__builder_import(builder, "", 16, error));
  CLV__TRY(declare_input(builder, "start", CLV_F32, 1, dims + 1, &inputs[0], error));
  CLV__TRY(declare_input(builder, "rows", CLV_F32, 2, dims, &inputs[1], error));
  CLV__TRY(scan_body(builder, &attributes[0].graph, error));
  CLV__TRY(clv__builder_value(builder, "last", &outputs[0], error));
  CLV__TRY(clv__builder_value(builder, "all", &outputs[1], error));
  CLV__TRY(clv__builder_node(builder, "node", "", "Scan", inputs, 2, outputs, 2, attributes, 3, error));
  CLV__TRY(clv__builder_output(builder, outputs[0], error));
  return clv__builder_output(builder, outputs[1], error);
}
static clv_status build_scan_forwards(clv__builder *builder, clv_error *error) {
  return build_scan(builder, 0, error);
}
static clv_status build_scan_backwards(clv__builder *builder, clv_error *error) {
  return build_scan(builder, 1, error);
}

const clv__case_built clv__cases_built[] = {
    {"If 16, f32: flag x[5,7] w[7]=", build_if_input},
    {"If 16, f32: flag=(1) x[5,7] w[7]=", build_if_true},
    {"If 16, f32: flag=(0) x[5,7] w[7]=", build_if_false},
    {"Loop 16, f32: trips=(4) - start[3] x[3]", build_loop_constant},
    {"Loop 16, f32: trips=(0) - start[3] x[3]", build_loop_none},
    {"Loop 16, f32: trips - start[3] x[3]", build_loop_input},
    {"Scan 16, f32: start[4] rows[5,4]", build_scan_forwards},
    {"Scan 16, f32: start[4] rows[5,4]; backwards", build_scan_backwards},
};
const uint32_t clv__case_built_count = sizeof clv__cases_built / sizeof *clv__cases_built;
