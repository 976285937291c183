/* Tests of one node: a test adds attributes and random inputs; case_run() then calls inference, accepts() and the kernel as the
 * library does; case_expect() compares the outputs with results that the test computed in f64. The tolerance depends on the
 * dtype. */
#ifndef CLEAVE_TESTS_NODE_CASE_H
#define CLEAVE_TESTS_NODE_CASE_H

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "both_kernels.h"
#include "operators/infer.h"

#define CASE_MAX 12
#define CASE_GUARD 64

typedef struct node_case {
  const char *op;
  int32_t opset;
  clv_attribute attributes[CASE_MAX];
  int64_t ints[CASE_MAX][16];
  float floats[CASE_MAX];
  clv_string strings[CASE_MAX];
  size_t attribute_count;
  clv_tensor inputs[CASE_MAX];
  uint32_t input_count;
  clv_tensor outputs[4];
  uint32_t output_count; /* 1 by default */
  clv_error error;
  const clv__stop *stop; /* the flag that stops kernels; NULL: none */
} node_case;

static inline node_case *case_begin(const char *op, int32_t opset) {
  node_case *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->op = op;
  c->opset = opset;
  c->output_count = 1;
  return c;
}

static inline void case_outputs_free(node_case *c) {
  for (uint32_t i = 0; i < 4; ++i) {
    if (c->outputs[i].data != NULL) free((char *)c->outputs[i].data - CASE_GUARD);
    c->outputs[i].data = NULL;
  }
}

static inline void case_end(node_case *c) {
  case_outputs_free(c);
  for (uint32_t i = 0; i < c->input_count; ++i) free(c->inputs[i].data);
  free(c);
}

static inline clv_attribute *case_attribute(node_case *c, const char *name, clv_attribute_kind kind) {
  clv_attribute *a = &c->attributes[c->attribute_count++];
  a->name = name;
  a->kind = kind;
  a->count = 1;
  return a;
}

static inline void case_ints(node_case *c, const char *name, size_t count, const int64_t *values) {
  int64_t *copy = c->ints[c->attribute_count];
  for (size_t i = 0; i < count; ++i) copy[i] = values[i];
  clv_attribute *a = case_attribute(c, name, CLV_ATTRIBUTE_INTS);
  a->is_list = true;
  a->count = count;
  a->ints = copy;
}

static inline void case_int(node_case *c, const char *name, int64_t value) {
  case_ints(c, name, 1, &value);
  c->attributes[c->attribute_count - 1].is_list = false;
}

static inline void case_float(node_case *c, const char *name, float value) {
  float *copy = &c->floats[c->attribute_count];
  *copy = value;
  case_attribute(c, name, CLV_ATTRIBUTE_FLOATS)->floats = copy;
}

static inline void case_string(node_case *c, const char *name, const char *value) {
  clv_string *copy = &c->strings[c->attribute_count];
  *copy = (clv_string){value, strlen(value)};
  case_attribute(c, name, CLV_ATTRIBUTE_STRINGS)->strings = copy;
}

static inline void element_set(clv_tensor *t, size_t i, double value) {
  switch (t->dtype) {
    case CLV_F32:
      ((float *)t->data)[i] = (float)value;
      break;
    case CLV_F64:
      ((double *)t->data)[i] = value;
      break;
    case CLV_F16:
      ((uint16_t *)t->data)[i] = clv__f64_to_f16(value);
      break;
    case CLV_BF16:
      ((uint16_t *)t->data)[i] = clv__f64_to_bf16(value);
      break;
    case CLV_I8:
      ((int8_t *)t->data)[i] = (int8_t)value;
      break;
    case CLV_U8:
      ((uint8_t *)t->data)[i] = (uint8_t)value;
      break;
    case CLV_I32:
      ((int32_t *)t->data)[i] = (int32_t)value;
      break;
    case CLV_U32:
      ((uint32_t *)t->data)[i] = (uint32_t)value;
      break;
    case CLV_I64:
      ((int64_t *)t->data)[i] = (int64_t)value;
      break;
    case CLV_U64:
      ((uint64_t *)t->data)[i] = (uint64_t)value;
      break;
    default:
      fail();
  }
}

static inline size_t count_of(const clv_tensor *t) {
  size_t count;
  assert_true(clv__tensor_count(t, &count));
  return count;
}

/* Adds an input with random data: floats in [-1, 1), signed integers in [-20, 20), unsigned integers in [0, 20). With dtype
 * CLV_DTYPE_NONE the input is absent. */
static inline clv_tensor *case_input(node_case *c, uint64_t *seed, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_tensor *t = &c->inputs[c->input_count++];
  *t = clv__tensor_make(dtype, rank, dims, NULL);
  if (dtype == CLV_DTYPE_NONE) return t;
  size_t count = count_of(t);
  t->data = malloc(count * clv_dtype_size_bytes(dtype) + 1);
  bool is_float = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0, is_signed = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_SIGNED) != 0;
  for (size_t i = 0; i < count; ++i) {
    double value = (double)test_random_float(seed);
    element_set(t, i, is_float ? value : floor((is_signed ? value : (value + 1) / 2) * 20));
  }
  return t;
}

/* Returns all elements in f64. The caller frees them. */
static inline double *values_of(const clv_tensor *t) {
  size_t count = count_of(t);
  double *values = malloc((count + 1) * sizeof *values);
  for (size_t i = 0; i < count; ++i) values[i] = clv__tensor_get(t, i);
  return values;
}

static inline clv_status case_infer(node_case *c) {
  const clv__op *op = clv__op_find("", c->op);
  clv__content content = {0};
  assert_non_null(op);
  for (uint32_t i = 0; i < 4; ++i) c->outputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
  clv__infer infer = {.op = c->op,
                      .opset = c->opset,
                      .attributes = {c->attributes, (uint32_t)c->attribute_count},
                      .inputs = c->inputs,
                      .input_count = c->input_count,
                      .outputs = c->outputs,
                      .output_content = &content,
                      .output_count = c->output_count,
                      .allocator = clv__allocator_default(),
                      .error = &c->error};
  return op->infer(&infer);
}

/* Infers the outputs, allocates them between guard bytes, runs the kernel, and checks the guard bytes. */
static inline void case_run(node_case *c) {
  case_outputs_free(c);
  assert_ok(case_infer(c), c->error);
  size_t bytes[4];
  for (uint32_t i = 0; i < c->output_count; ++i) {
    assert_true(clv__tensor_is_static(&c->outputs[i]));
    assert_true(clv__tensor_size_bytes(&c->outputs[i], &bytes[i]));
    char *memory = malloc(bytes[i] + 2 * CASE_GUARD);
    memset(memory, 0xa5, bytes[i] + 2 * CASE_GUARD);
    c->outputs[i].data = memory + CASE_GUARD;
  }
  const clv__kernel *kernel = find_kernel("", c->op);
  assert_non_null(kernel);
  test_allocator counting;
  test_allocator_init(&counting);
  char reason[160] = "";
  clv__kernel_call call = {.op = c->op,
                           .opset = c->opset,
                           .attributes = {c->attributes, (uint32_t)c->attribute_count},
                           .inputs = c->inputs,
                           .input_count = c->input_count,
                           .outputs = c->outputs,
                           .output_count = c->output_count,
                           .error = &c->error,
                           .stop = c->stop};
  if (!clv__kernel_accepts(kernel, &call, reason)) fail_msg("%s: the kernel rejects the call: %s", c->op, reason);
  assert_ok(clv__kernel_run(kernel, &call, &counting.allocator), c->error);
  assert_int_equal(counting.live, 0);
  for (uint32_t i = 0; i < c->output_count; ++i) {
    const unsigned char *memory = (const unsigned char *)c->outputs[i].data;
    for (int g = 0; g < CASE_GUARD; ++g) {
      assert_int_equal(memory[-1 - g], 0xa5);
      assert_int_equal(memory[bytes[i] + (size_t)g], 0xa5);
    }
  }
}

/* The tolerance, relative to the largest magnitude among the expected values. */
static inline double tolerance_of(clv_dtype dtype) {
  return dtype == CLV_F32 ? 2e-6 : dtype == CLV_F64 ? 1e-13 : dtype == CLV_F16 ? 1e-3 : dtype == CLV_BF16 ? 8e-3 : 0;
}

/* Compares output `index` with `expected`. A failure reports the worst element. */
static inline void case_expect(const node_case *c, uint32_t index, const double *expected) {
  const clv_tensor *y = &c->outputs[index];
  size_t worst = 0, count = count_of(y);
  double largest = 1e-30, difference = -1;
  for (size_t i = 0; i < count; ++i) {
    double value = clv__tensor_get(y, i), error = fabs(value - expected[i]);
    if (value == expected[i] || (isnan(value) && isnan(expected[i]))) error = 0;
    if (isnan(error)) error = INFINITY;
    if (error > difference) difference = error, worst = i;
    if (fabs(expected[i]) > largest && isfinite(expected[i])) largest = fabs(expected[i]);
  }
  if (difference <= tolerance_of(y->dtype) * fmax(largest, 1.0)) return;
  char text[128];
  clv__tensor_text(y, text, sizeof text);
  fail_msg("%s: output %u %s: element %zu is %.9g; expected %.9g", c->op, (unsigned)index, text, worst, clv__tensor_get(y, worst),
           expected[worst]);
}

static inline int64_t random_in(uint64_t *seed, int64_t low, int64_t high) {
  return low + (int64_t)(test_random(seed) % (uint64_t)(high - low + 1));
}

static inline clv_dtype random_float_dtype(uint64_t *seed) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_F32, CLV_F64, CLV_F16, CLV_BF16};
  return dtypes[test_random(seed) % 5];
}

#endif
