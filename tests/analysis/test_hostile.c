/* Tests the operators that move data. Calls their inference and their kernels with what an untrusted model may contain: random
 * counts, dtypes, ranks, dims, attributes and data, most of it invalid. Each call must return an error with a message, or write
 * only within its outputs. With sanitizers, the test also finds reads outside of inputs and outputs. */
#include <stdlib.h>
#include <string.h>

#include "base/tensor/small.h"
#include "operators/infer.h"
#include "operators/run.h"
#include "support.h"

enum { ROUNDS = 60000, MAX_INPUTS = 5, MAX_OUTPUTS = 4, GUARD = 64, LIMIT = 1 << 16 };

static const char *const int_names[] = {
    "axis",    "axes",  "perm", "starts",    "ends",  "pads",  "blocksize",  "split",     "num_outputs", "batch_dims", "k",
    "largest", "start", "end",  "allowzero", "dtype", "upper", "batch_axis", "time_axis", "sorted",      "value_ints"};
static const char *const texts[] = {"constant", "reflect", "edge", "wrap", "add", "mul", "min", "max", "CRD", "DCR", "none", "?"};
static const clv_dtype dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16, CLV_I8,  CLV_U8,  CLV_I16,
                                   CLV_U16, CLV_I32, CLV_I64, CLV_U32,  CLV_U64, CLV_BOOL};

typedef struct hostile {
  uint64_t seed;
  clv_attribute attributes[4];
  int64_t ints[4][6];
  clv_string string;
  clv_tensor value;
  uint64_t value_bits;
  uint32_t attribute_count, input_count, output_count;
  clv_tensor inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
  clv__content contents[MAX_INPUTS];
  const clv__content *content_list[MAX_INPUTS];
} hostile;

static uint64_t below(hostile *h, uint64_t limit) {
  return test_random(&h->seed) % limit;
}

static clv_dtype any_dtype(hostile *h) {
  return below(h, 8) != 0 ? dtypes[below(h, 13)] : (clv_dtype)(CLV_F8E4M3FN + below(h, CLV__DTYPE_COUNT - CLV_F8E4M3FN));
}

/* A random number, mostly small, sometimes enormous. */
static int64_t any_number(hostile *h) {
  static const int64_t extremes[] = {INT64_MIN, INT64_MAX, INT32_MAX, INT32_MIN, -1, 1ll << 40, -(1ll << 40), 65536};
  return below(h, 12) == 0 ? extremes[below(h, 8)] : (int64_t)below(h, 8) - 3;
}

static void make_attributes(hostile *h) {
  h->attribute_count = (uint32_t)below(h, 4);
  for (uint32_t i = 0; i < h->attribute_count; ++i) {
    clv_attribute *a = &h->attributes[i];
    uint64_t kind = below(h, 8);
    *a = (clv_attribute){
        .name = int_names[below(h, sizeof int_names / sizeof *int_names)], .kind = CLV_ATTRIBUTE_INTS, .is_list = true};
    a->count = below(h, 3) == 0 ? below(h, 7) : 1;
    for (int k = 0; k < 6; ++k) h->ints[i][k] = any_number(h);
    a->ints = h->ints[i];
    if (kind == 0) {
      h->string.data = texts[below(h, sizeof texts / sizeof *texts)];
      h->string.size_bytes = strlen(h->string.data);
      *a = (clv_attribute){
          .name = below(h, 2) ? "mode" : "reduction", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &h->string};
    } else if (kind == 1) {
      h->value_bits = test_random(&h->seed);
      h->value = clv__tensor_make(any_dtype(h), (int32_t)below(h, 2), (const int64_t[]){1}, &h->value_bits);
      *a = (clv_attribute){.name = "value", .kind = CLV_ATTRIBUTE_TENSOR, .count = 1, .tensor = &h->value};
    }
  }
}

/* Makes a random input. Most inputs have the type `likely`, so that some calls succeed. */
static void make_input(hostile *h, uint32_t index, const clv_tensor *likely, bool with_data) {
  clv_tensor *t = &h->inputs[index];
  *t = *likely;
  t->data = NULL;
  h->content_list[index] = NULL;
  if (index > 0 && below(h, 12) == 0) {
    *t = (clv_tensor){.dtype = CLV_DTYPE_NONE};
    return;
  }
  if (index > 0 && below(h, 3) != 0) { /* inputs after the first are often indices, axes or sizes */
    t->dtype = below(h, 4) ? CLV_I64 : CLV_I32;
    if (below(h, 2)) t->rank = (int32_t)below(h, 2);
  }
  if (below(h, 10) == 0) t->dtype = any_dtype(h);
  if (below(h, 10) == 0) t->rank = (int32_t)below(h, CLV_MAX_RANK + 1);
  for (int32_t d = 0; d < t->rank; ++d) {
    if (d >= likely->rank || below(h, 5) == 0) t->dims[d] = (int64_t)below(h, 5);
  }
  if (!with_data) {
    for (int32_t d = 0; d < t->rank; ++d) {
      if (below(h, 4) == 0) t->dims[d] = below(h, 4) == 0 ? 1ll << (20 + below(h, 43)) : -1 - (int64_t)below(h, 4);
    }
    if (below(h, 10) == 0) t->rank = CLV_RANK_UNKNOWN;
    clv__content *c = &h->contents[index];
    c->known = true;
    c->count = t->rank == 1 && t->dims[0] >= 0 && t->dims[0] < CLV__MAX_CONTENT ? (uint32_t)t->dims[0] : 1;
    for (uint32_t i = 0; i < c->count; ++i) {
      uint64_t what = below(h, 4);
      int64_t number = any_number(h);
      c->elements[i] = what == 0                                      ? CLV__ELEMENT_UNKNOWN
                       : what == 1 || !clv__element_is_number(number) ? CLV__ELEMENT_SYMBOL(below(h, 3))
                                                                      : number;
    }
    if ((t->dtype == CLV_I64 || t->dtype == CLV_I32) && t->rank >= 0 && t->rank < 2 && below(h, 2)) h->content_list[index] = c;
    return;
  }
  size_t count;
  if (!clv__tensor_count(t, &count) || count > LIMIT) {
    t->rank = 0;
    count = 1;
  }
  size_t bytes = clv_dtype_size_bytes(t->dtype);
  t->data = calloc(count * (bytes > 0 ? bytes : 1) + 1, 1);
  for (size_t i = 0; i < count; ++i) {
    int64_t number = any_number(h);
    if (t->dtype == CLV_BOOL) number &= 1;
    if (t->dtype == CLV_F32)
      ((float *)t->data)[i] = (float)number;
    else if (t->dtype == CLV_F64)
      ((double *)t->data)[i] = (double)number;
    else if (bytes > 0)
      memcpy((char *)t->data + i * bytes, &number, bytes);
    else
      clv__small_store(t->dtype, t->data, i, (uint8_t)number);
  }
}

static void check_outputs(const hostile *h) {
  for (uint32_t i = 0; i < h->output_count; ++i) {
    assert_true(h->outputs[i].rank >= CLV_RANK_UNKNOWN && h->outputs[i].rank <= CLV_MAX_RANK);
  }
}

/* Runs the kernel if the output shapes are known and small. Returns 1 if it succeeded. */
static int run_kernel(hostile *h, const clv__op *op, int32_t opset) {
  const clv__kernel *kernel = clv__kernel_find(op->domain, op->name);
  assert_non_null(kernel);
  clv_error error = {0};
  char reason[160] = "", *memory[MAX_OUTPUTS] = {NULL};
  size_t bytes[MAX_OUTPUTS];
  clv__kernel_call call = {.op = op->name,
                           .opset = opset,
                           .attributes = {h->attributes, h->attribute_count},
                           .inputs = h->inputs,
                           .input_count = h->input_count,
                           .outputs = h->outputs,
                           .output_count = h->output_count,
                           .error = &error};
  for (uint32_t i = 0; i < h->output_count; ++i) {
    /* If the shape depends on an input that is not a vector of integers, the evaluator rejects the node before it runs the
     * kernel. */
    if (!clv__tensor_is_static(&h->outputs[i])) return 0;
    if (!clv__tensor_size_bytes(&h->outputs[i], &bytes[i]) || bytes[i] > LIMIT) return 0;
  }
  if (!clv__kernel_accepts(kernel, &call, reason)) {
    assert_true(reason[0] != '\0');
    return 0;
  }
  for (uint32_t i = 0; i < h->output_count; ++i) {
    memory[i] = malloc(bytes[i] + 2 * GUARD);
    memset(memory[i], 0x5a, bytes[i] + 2 * GUARD);
    h->outputs[i].data = memory[i] + GUARD;
  }
  clv_status status = clv__kernel_run(kernel, &call, clv__allocator_default());
  if (status != CLV_OK) assert_true(error.message[0] != '\0');
  for (uint32_t i = 0; i < h->output_count; ++i) {
    for (size_t g = 0; g < GUARD; ++g) {
      if (memory[i][g] != 0x5a || memory[i][GUARD + bytes[i] + g] != 0x5a) fail_msg("%s writes outside output %u", op->name, i);
    }
    free(memory[i]);
  }
  return status == CLV_OK;
}

static int attack(hostile *h, const clv__op *op) {
  static const int32_t opsets[] = {7, 9, 10, 11, 12, 13, 14, 18, 21};
  uint32_t most = op->max_inputs < MAX_INPUTS ? op->max_inputs : MAX_INPUTS;
  uint32_t most_out = op->max_outputs < MAX_OUTPUTS ? op->max_outputs : MAX_OUTPUTS;
  int32_t opset = opsets[below(h, 9)];
  bool with_data = below(h, 3) != 0;
  clv_tensor likely = {.dtype = any_dtype(h), .rank = (int32_t)below(h, 5)};
  for (int32_t d = 0; d < CLV_MAX_RANK; ++d) likely.dims[d] = (int64_t)below(h, 5);
  make_attributes(h);
  if (h->attribute_count > 0 && below(h, 2)) h->attributes[0].name = strstr(op->name, "Depth") != NULL ? "blocksize" : "axis";
  h->input_count = op->min_inputs + (uint32_t)below(h, most - op->min_inputs + 1);
  h->output_count = op->min_outputs + (uint32_t)below(h, most_out - op->min_outputs + 1);
  for (uint32_t i = 0; i < h->input_count; ++i) {
    make_input(h, i, &likely, with_data);
    if (i < op->min_inputs && h->inputs[i].dtype == CLV_DTYPE_NONE) make_input(h, i, &likely, with_data);
    if (i < op->min_inputs && h->inputs[i].dtype == CLV_DTYPE_NONE) h->inputs[i] = h->inputs[0], h->inputs[i].data = NULL;
  }
  bool known = true;
  for (uint32_t i = 0; i < h->input_count; ++i)
    known = known && (h->inputs[i].dtype == CLV_DTYPE_NONE || h->inputs[i].data != NULL);
  for (uint32_t i = 0; i < h->output_count; ++i) h->outputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
  clv_error error = {0};
  clv__content content = {.known = false};
  clv__infer infer = {.op = op->name,
                      .opset = opset,
                      .attributes = {h->attributes, h->attribute_count},
                      .inputs = h->inputs,
                      .contents = h->content_list,
                      .input_count = h->input_count,
                      .outputs = h->outputs,
                      .output_content = &content,
                      .output_count = h->output_count,
                      .allocator = clv__allocator_default(),
                      .error = &error};
  clv_status status = op->infer(&infer);
  int ran = 0;
  if (status != CLV_OK) {
    assert_true(error.message[0] != '\0');
  } else {
    clv__work work;
    check_outputs(h);
    assert_true(!content.known || content.count <= CLV__MAX_CONTENT);
    clv__op_work(op, &infer, &work);
    if (known) ran = run_kernel(h, op, opset);
  }
  for (uint32_t i = 0; i < h->input_count; ++i) free(h->inputs[i].data);
  return ran;
}

static void nonsense(void **state) {
  (void)state;
  static const clv__op *const families[] = {clv__ops_view,   clv__ops_layout,   clv__ops_join,
                                            clv__ops_gather, clv__ops_generate, clv__ops_select};
  hostile *h = calloc(1, sizeof *h);
  h->seed = 2024;
  int per_op = ROUNDS / 32;
  for (size_t f = 0; f < sizeof families / sizeof *families; ++f) {
    for (const clv__op *op = families[f]; op->name != NULL; ++op) {
      int ran = 0;
      for (int i = 0; i < per_op; ++i) ran += attack(h, op);
      if (ran == 0) fail_msg("%s: none of %d random calls succeeded, so the kernel is not tested", op->name, per_op);
    }
  }
  free(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nonsense)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
