/* The operators: shape inference, number of operations, and kernels. The kernels are plain loops; a real device would have its
 * own. */
#include "template.h"

/* ---- Elementwise operators, with broadcasting ---- */

static int64_t dim_from_end(const clv_tensor *tensor, int32_t axis) {
  return axis < tensor->rank ? tensor->dims[tensor->rank - 1 - axis] : 1;
}

/* Broadcasts the shapes of `a` and `b` without their last `skipped` axes, and stores the result as the shape of `output`.
 * Returns false if the shapes do not match. */
static bool broadcast(const clv_tensor *a, const clv_tensor *b, int32_t skipped, clv_tensor *output) {
  const int32_t rank_a = a->rank - skipped, rank_b = b->rank - skipped, rank = rank_a > rank_b ? rank_a : rank_b;
  for (int32_t axis = 0; axis < rank; ++axis) {
    const int64_t of_a = dim_from_end(a, axis + skipped), of_b = dim_from_end(b, axis + skipped);
    if (of_a != of_b && of_a != 1 && of_b != 1) return false;
    output->dims[rank - 1 - axis] = of_a == 1 ? of_b : of_a;
  }
  output->rank = rank;
  return true;
}

static bool shape_binary(const clv_tensor *inputs, clv_tensor *output) {
  return broadcast(&inputs[0], &inputs[1], 0, output);
}

static bool shape_unary(const clv_tensor *inputs, clv_tensor *output) {
  output->rank = inputs[0].rank;
  memcpy(output->dims, inputs[0].dims, sizeof output->dims);
  return true;
}

/* Returns the offset, in elements, of the part of `tensor` that is broadcast to position `index` in the first `rank` axes of
 * `shape`. The last `skipped` axes of `tensor` are not part of `shape`; the offset is that of their first element. */
static int64_t locate(int64_t index, const clv_tensor *shape, int32_t rank, const clv_tensor *tensor, int32_t skipped) {
  int64_t offset = 0, stride = 1;
  for (int32_t i = 0; i < skipped; ++i) stride *= dim_from_end(tensor, i);
  for (int32_t axis = 0; axis < rank; ++axis) {
    const int64_t size = shape->dims[rank - 1 - axis], of = dim_from_end(tensor, axis + skipped);
    if (of != 1) offset += index % size * stride;
    stride *= of;
    index /= size;
  }
  return offset;
}

static void run_add(const clv_tensor *inputs, const clv_tensor *output) {
  const float *a = inputs[0].data, *b = inputs[1].data;
  float *y = output->data;
  const int64_t count = clv_host_count(output);
  for (int64_t i = 0; i < count; ++i) {
    y[i] = a[locate(i, output, output->rank, &inputs[0], 0)] + b[locate(i, output, output->rank, &inputs[1], 0)];
  }
}

static void run_mul(const clv_tensor *inputs, const clv_tensor *output) {
  const float *a = inputs[0].data, *b = inputs[1].data;
  float *y = output->data;
  const int64_t count = clv_host_count(output);
  for (int64_t i = 0; i < count; ++i) {
    y[i] = a[locate(i, output, output->rank, &inputs[0], 0)] * b[locate(i, output, output->rank, &inputs[1], 0)];
  }
}

/* NaN stays NaN. */
static void run_relu(const clv_tensor *inputs, const clv_tensor *output) {
  const float *x = inputs[0].data;
  float *y = output->data;
  const int64_t count = clv_host_count(output);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

static double flops_elements(const clv_tensor *inputs, const clv_tensor *output) {
  (void)inputs;
  return (double)clv_host_count(output);
}

/* ---- Products ---- */

/* Turns a vector into a matrix: a row on the left, a column on the right. shape_matmul() leaves the added axis out of the
 * product. */
static void as_matrices(const clv_tensor *inputs, clv_tensor *a, clv_tensor *b) {
  *a = inputs[0];
  *b = inputs[1];
  if (a->rank == 1) {
    a->rank = 2;
    a->dims[1] = a->dims[0];
    a->dims[0] = 1;
  }
  if (b->rank == 1) {
    b->rank = 2;
    b->dims[1] = 1;
  }
}

static bool shape_matmul(const clv_tensor *inputs, clv_tensor *output) {
  clv_tensor a, b;
  if (inputs[0].rank < 1 || inputs[1].rank < 1) return false;
  as_matrices(inputs, &a, &b);
  if (dim_from_end(&a, 0) != dim_from_end(&b, 1) || !broadcast(&a, &b, 2, output)) return false;
  if (inputs[0].rank > 1) output->dims[output->rank++] = dim_from_end(&a, 1);
  if (inputs[1].rank > 1) output->dims[output->rank++] = dim_from_end(&b, 0);
  return true;
}

static void run_matmul(const clv_tensor *inputs, const clv_tensor *output) {
  clv_tensor a, b, batch = {.rank = 0};
  as_matrices(inputs, &a, &b);
  broadcast(&a, &b, 2, &batch);
  const int64_t rows = dim_from_end(&a, 1), depth = dim_from_end(&a, 0), columns = dim_from_end(&b, 0);
  const int64_t batches = clv_host_count(&batch);
  for (int64_t n = 0; n < batches; ++n) {
    const float *left = (const float *)a.data + locate(n, &batch, batch.rank, &a, 2);
    const float *right = (const float *)b.data + locate(n, &batch, batch.rank, &b, 2);
    float *y = (float *)output->data + n * rows * columns;
    for (int64_t i = 0; i < rows * columns; ++i) y[i] = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] += left[i * depth + k] * right[k * columns + j];
      }
    }
  }
}

static double flops_matmul(const clv_tensor *inputs, const clv_tensor *output) {
  return 2.0 * (double)clv_host_count(output) * (double)dim_from_end(&inputs[0], 0);
}

/* ---- The table ---- */

const template_operator template_operators[] = {
    {"Add", 2, 7, shape_binary, run_add, flops_elements},
    {"Mul", 2, 7, shape_binary, run_mul, flops_elements},
    {"Relu", 1, 6, shape_unary, run_relu, flops_elements},
    {"MatMul", 2, 1, shape_matmul, run_matmul, flops_matmul},
};
const uint32_t template_operator_count = sizeof template_operators / sizeof *template_operators;

uint32_t template_find_operator(const clv_node_info *node) {
  uint32_t i = 0;
  if (node->domain[0] != '\0') return template_operator_count; /* "" is the ONNX domain */
  while (i < template_operator_count && strcmp(template_operators[i].name, node->op) != 0) ++i;
  return i;
}
