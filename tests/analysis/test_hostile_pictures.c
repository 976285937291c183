/* Tests operators on images and signals, recurrent operators, 8-bit matrix products and losses. Calls them with cases of the
 * conformance kit that are changed at random. A change affects a dim, a rank, a dtype, an attribute, an element, or omits an
 * input. Each call must return an error with a message, or write only within its output. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/cases/cases.h"
#include "check/check.h"
#include "operators/infer.h"
#include "operators/run.h"
#include "support.h"

enum { CHANGES = 60, MAX_INPUTS = 9, MAX_ATTRIBUTES = 8, GUARD = 64, LIMIT = 1 << 16 };

static const char *const operators[] = {"GridSample",
                                        "AffineGrid",
                                        "NonMaxSuppression",
                                        "RoiAlign",
                                        "Col2Im",
                                        "MaxUnpool",
                                        "CenterCropPad",
                                        "DeformConv",
                                        "Det",
                                        "DFT",
                                        "STFT",
                                        "HannWindow",
                                        "HammingWindow",
                                        "BlackmanWindow",
                                        "MelWeightMatrix",
                                        "RNN",
                                        "GRU",
                                        "LSTM",
                                        "MatMulInteger",
                                        "QLinearMatMul",
                                        "ConvInteger",
                                        "QLinearConv",
                                        "NegativeLogLikelihoodLoss",
                                        "SoftmaxCrossEntropyLoss"};
static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16, CLV_I8, CLV_U8, CLV_I32, CLV_I64, CLV_U64, CLV_BOOL};

typedef struct victim {
  uint64_t seed;
  clv_attribute attributes[MAX_ATTRIBUTES];
  int64_t ints[MAX_ATTRIBUTES][16];
  float floats[MAX_ATTRIBUTES];
  uint32_t attribute_count, input_count;
  clv_tensor inputs[MAX_INPUTS];
  int32_t opset;
} victim;

static uint64_t below(victim *v, uint64_t limit) {
  return test_random(&v->seed) % limit;
}

static int64_t any_number(victim *v) {
  static const int64_t extremes[] = {INT64_MIN, INT64_MAX,        INT32_MAX,           INT32_MIN,
                                     -1,        INT64_C(1) << 40, -(INT64_C(1) << 40), 65536};
  return below(v, 3) == 0 ? extremes[below(v, 8)] : (int64_t)below(v, 12) - 3;
}

static double any_real(victim *v) {
  static const double extremes[] = {INFINITY, -INFINITY, NAN, 1e30, -1e30, 3e38, 1e9, -0.0};
  return below(v, 2) == 0 ? extremes[below(v, 8)] : (double)test_random_float(&v->seed) * 8;
}

static void put(const clv_tensor *t, size_t index, double real, int64_t whole) {
  if (t->dtype == CLV_BOOL) whole &= 1;
  clv__tensor_put(t, index, real, whole, whole != 0);
}

/* Copies an input of a case to memory of exactly its size. Returns false if a node produces the input. */
static bool copy_input(const clv__check_case *made, const clv__node *node, uint32_t i, clv_tensor *out) {
  const clv_value_id id = node->inputs[i];
  size_t size_bytes;
  *out = (clv_tensor){.dtype = CLV_DTYPE_NONE};
  if (id == CLV__NO_ID) return true;
  const clv_tensor *from = made->graph->values[id].type.data != NULL ? &made->graph->values[id].type : NULL;
  for (uint32_t k = 0; k < made->input_count; ++k) {
    if (made->graph->inputs[k] == id) from = &made->inputs[k];
  }
  if (from == NULL || !clv__tensor_size_bytes(from, &size_bytes)) return false;
  *out = *from;
  out->data = malloc(size_bytes > 0 ? size_bytes : 1);
  assert_non_null(out->data);
  if (size_bytes > 0) memcpy(out->data, from->data, size_bytes);
  return true;
}

/* Gives the input another shape or dtype; its elements repeat the old ones. */
static void reshape_input(victim *v, clv_tensor *t) {
  clv_tensor old = *t;
  size_t count, old_count;
  assert_true(clv__tensor_count(&old, &old_count));
  switch (below(v, 3)) {
    case 0:
      t->dtype = dtypes[below(v, sizeof dtypes / sizeof *dtypes)];
      break;
    case 1:
      t->rank = (int32_t)below(v, CLV_MAX_RANK + 1);
      for (int32_t d = old.rank; d < t->rank; ++d) t->dims[d] = 1 + (int64_t)below(v, 2);
      break;
    default:
      if (t->rank > 0) t->dims[below(v, (uint64_t)t->rank)] = (int64_t)below(v, 9);
      break;
  }
  if (!clv__tensor_count(t, &count) || count > LIMIT) {
    *t = old;
    return;
  }
  t->data = malloc(count * clv_dtype_size_bytes(t->dtype) + 1);
  assert_non_null(t->data);
  for (size_t i = 0; i < count; ++i) {
    double value = old_count > 0 ? clv__tensor_get(&old, i % old_count) : 0;
    put(t, i, value, (int64_t)value);
  }
  free(old.data);
}

static void change(victim *v) {
  clv_tensor *t = &v->inputs[below(v, v->input_count)];
  size_t count;
  const uint64_t what = below(v, 8);
  if (what < 3 && t->dtype != CLV_DTYPE_NONE) {
    reshape_input(v, t);
  } else if (what < 5 && t->dtype != CLV_DTYPE_NONE && clv__tensor_count(t, &count) && count > 0) {
    for (uint64_t i = below(v, 3) + 1; i > 0; --i) put(t, below(v, count), any_real(v), any_number(v));
  } else if (what == 5 && v->input_count > 1) {
    t = &v->inputs[1 + below(v, v->input_count - 1)];
    free(t->data);
    *t = (clv_tensor){.dtype = CLV_DTYPE_NONE};
  } else if (v->attribute_count > 0) {
    clv_attribute *a = &v->attributes[below(v, v->attribute_count)];
    const size_t i = (size_t)(a - v->attributes);
    if (a->kind == CLV_ATTRIBUTE_INTS && a->count > 0) {
      v->ints[i][below(v, a->count)] = any_number(v);
      if (a->is_list && below(v, 4) == 0) a->count = below(v, 9);
    } else if (a->kind == CLV_ATTRIBUTE_FLOATS) {
      v->floats[i] = (float)any_real(v);
    }
  }
  if (below(v, 8) == 0) v->opset = 9 + (int32_t)below(v, 14);
}

/* Copies the node's attributes, so that they can be changed. */
static void copy_attributes(victim *v, const clv__node *node) {
  v->attribute_count = 0;
  for (uint32_t i = 0; i < node->attributes.count && i < MAX_ATTRIBUTES; ++i) {
    clv_attribute *a = &v->attributes[v->attribute_count];
    *a = node->attributes.items[i];
    if (a->kind == CLV_ATTRIBUTE_INTS) {
      assert_true(a->count <= 16);
      memset(v->ints[v->attribute_count], 0, sizeof v->ints[0]);
      if (a->count > 0) memcpy(v->ints[v->attribute_count], a->ints, a->count * sizeof *a->ints);
      a->ints = v->ints[v->attribute_count];
    } else if (a->kind == CLV_ATTRIBUTE_FLOATS && a->count == 1) {
      v->floats[v->attribute_count] = a->floats[0];
      a->floats = &v->floats[v->attribute_count];
    }
    v->attribute_count++;
  }
}

/* Runs the kernel if the output is small. Returns whether it succeeded. */
static bool run_kernel(victim *v, const char *op, clv_tensor *output, uint32_t required) {
  const clv__kernel *kernel = clv__kernel_find("", op);
  clv_error error = {0};
  char reason[160] = "";
  size_t size_bytes;
  assert_non_null(kernel);
  clv__kernel_call call = {.op = op,
                           .opset = v->opset,
                           .attributes = {v->attributes, v->attribute_count},
                           .inputs = v->inputs,
                           .input_count = v->input_count,
                           .outputs = output,
                           .output_count = 1,
                           .error = &error};
  for (uint32_t i = 0; i < required; ++i) {
    if (v->inputs[i].dtype == CLV_DTYPE_NONE) return false; /* a required input is absent: clv__node_check() rejects this */
  }
  if (!clv__tensor_is_static(output)) {
    char first[96], made[96];
    clv__tensor_text(&v->inputs[0], first, sizeof first);
    clv__tensor_text(output, made, sizeof made);
    fail_msg("%s of %s: all inputs are known, but the output is %s", op, first, made);
  }
  if (!clv__tensor_size_bytes(output, &size_bytes) || size_bytes > LIMIT) return false;
  if (!clv__kernel_accepts(kernel, &call, reason)) {
    assert_true(reason[0] != '\0');
    return false;
  }
  char *memory = malloc(size_bytes + 2 * GUARD);
  assert_non_null(memory);
  memset(memory, 0x5a, size_bytes + 2 * GUARD);
  output->data = memory + GUARD;
  const clv_status status = clv__kernel_run(kernel, &call, clv__allocator_default());
  if (status != CLV_OK) assert_true(error.message[0] != '\0');
  for (size_t g = 0; g < GUARD; ++g) {
    if (memory[g] != 0x5a || memory[GUARD + size_bytes + g] != 0x5a) fail_msg("%s writes outside its output", op);
  }
  free(memory);
  return status == CLV_OK;
}

/* Calls inference, and the kernel unless `blind`. If `blind`, the inputs have no data and some of their dims are unknown or
 * huge. Returns whether the kernel ran and succeeded. */
static bool attack(victim *v, const char *op, bool blind) {
  const clv__op *entry = clv__op_find("", op);
  clv_tensor output = {.rank = CLV_RANK_UNKNOWN}, shapes[MAX_INPUTS];
  clv_error error = {0};
  clv__content content = {.known = false};
  assert_non_null(entry);
  for (uint32_t i = 0; i < v->input_count; ++i) {
    shapes[i] = v->inputs[i];
    if (!blind) continue;
    shapes[i].data = NULL;
    for (int32_t d = 0; d < shapes[i].rank; ++d) {
      if (below(v, 3) == 0) shapes[i].dims[d] = below(v, 2) == 0 ? -1 - (int64_t)below(v, 4) : INT64_C(1) << (20 + below(v, 43));
    }
    if (below(v, 8) == 0 && shapes[i].dtype != CLV_DTYPE_NONE) shapes[i].rank = CLV_RANK_UNKNOWN;
  }
  for (uint32_t i = 0; i < entry->min_inputs; ++i) {
    if (shapes[i].dtype == CLV_DTYPE_NONE) return false; /* a required input is absent: clv__node_check() rejects this */
  }
  clv__infer infer = {.op = op,
                      .opset = v->opset,
                      .attributes = {v->attributes, v->attribute_count},
                      .inputs = shapes,
                      .input_count = v->input_count,
                      .outputs = &output,
                      .output_content = &content,
                      .output_count = 1,
                      .allocator = clv__allocator_default(),
                      .error = &error};
  if (entry->infer(&infer) != CLV_OK) {
    assert_true(error.message[0] != '\0');
    return false;
  }
  clv__work work;
  clv__op_work(entry, &infer, &work);
  assert_true(output.rank >= CLV_RANK_UNKNOWN && output.rank <= CLV_MAX_RANK);
  return !blind && run_kernel(v, op, &output, entry->min_inputs);
}

static bool is_ours(const char *op) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i) {
    if (strcmp(operators[i], op) == 0) return true;
  }
  return false;
}

static void changed_cases_get_an_answer(void **state) {
  (void)state;
  const uint32_t count = clv__check_case_count();
  uint32_t cases = 0, ran = 0, whole = 0;
  victim *v = calloc(1, sizeof *v);
  assert_non_null(v);
  v->seed = 20;
  for (uint32_t i = 0; i < count; ++i) {
    clv_error error = {0};
    clv__check_case made;
    assert_ok(clv__check_case_make(clv__allocator_default(), i, 7, &made, &error), error);
    const clv_node_id n = clv__graph_find_node(made.graph, "node");
    const clv__node *node = &made.graph->nodes[n];
    bool usable = is_ours(node->op) && node->input_count <= MAX_INPUTS;
    cases += usable;
    for (int round = 0; usable && round < CHANGES; ++round) {
      v->opset = node->opset;
      v->input_count = 0;
      copy_attributes(v, node);
      for (uint32_t k = 0; k < node->input_count; ++k)
        usable = copy_input(&made, node, v->input_count++, &v->inputs[k]) && usable;
      for (uint64_t k = round == 0 ? 0 : 1 + below(v, 2); usable && k > 0; --k) change(v);
      bool done = usable && attack(v, node->op, round > 0 && below(v, 4) == 0);
      ran += done;
      whole += done && round == 0;
      if (usable && round == 0 && !done) fail_msg("%s: the case fails before it is changed", made.what);
      for (uint32_t k = 0; k < v->input_count; ++k) free(v->inputs[k].data);
    }
    clv__check_case_finish(&made);
  }
  free(v);
  assert_true(cases > 150 && whole > 150);
  /* Per case, more than 20 of the 60 calls run the kernel. If nearly all were rejected, the kernels would not be tested. */
  assert_true(ran > 20 * whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changed_cases_get_an_answer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
