/* Estimates the time of a step on one thread and on all of them, from nominal rates of one core and the cost of cooperating
 * threads. The figures describe small steps of CNNs on x86-64 servers. Only their proportions matter. Nothing is measured here,
 * so that one graph always yields the same plan. */
#include "lanes.h"

#define FLOPS_PER_US 90e3      /* f32 products with 512-bit vectors; others run at half the rate */
#define BYTES_PER_US 20e3      /* to and from the caches of many cores */
#define KERNEL_PER_US 2e3      /* elements of a portable kernel */
#define START_US 0.5           /* for any step */
#define REGION_US 3.0          /* waking a waiting thread, and waiting for the last one … */
#define REGION_THREAD_US 0.3   /* … and the extra cost per thread */
#define UNEVEN_THREAD 0.04     /* relative excess of a thread's share over an even division */
#define KERNEL_THREADS 50000.0 /* approximate number of elements from which kernels use threads */

double clv__cpu_region_us(uint32_t threads) {
  return threads > 1 ? REGION_US + REGION_THREAD_US * threads : 0.0;
}

static size_t operand_bytes(const clv__cpu_operand *operand) {
  size_t size_bytes;
  if (operand->slot == CLV__CPU_NONE) return 0;
  if (operand->layout != NULL) return clv__dnn_layout_size_bytes(operand->layout);
  return clv__tensor_size_bytes(&operand->type, &size_bytes) ? size_bytes : 0;
}

static double dims_product(const int64_t *dims, int32_t rank) {
  double product = 1.0;
  for (int32_t i = 0; i < rank; ++i) product *= (double)dims[i];
  return product;
}

static const clv__cpu_operand *operand_of(const clv__cpu_step *step, int id) {
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    if (step->operands[i].id == id && step->operands[i].layout != NULL) return &step->operands[i];
  }
  return NULL;
}

static bool is_one_of(const char *op, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (strstr(op, names[i]) != NULL) return true;
  }
  return false;
}

/* Operators whose arithmetic grows faster than their tensors. */
static bool is_product(const char *op) {
  static const char *const names[] = {
      "Conv", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "Attention", "Einsum", "DFT", "STFT", "NonMaxSuppression", "Det"};
  return is_one_of(op, names, sizeof names / sizeof *names);
}

/* The operations of a product. 0: none, or not known. */
static double product_flops(const clv__cpu_step *step) {
  const clv__cpu_operand *source = operand_of(step, CLV__DNN_SOURCE), *weights = operand_of(step, CLV__DNN_WEIGHTS);
  const clv__cpu_operand *destination = operand_of(step, CLV__DNN_DESTINATION);
  if (source == NULL || weights == NULL || destination == NULL || !is_product(step->what)) return 0.0;
  int64_t from[CLV_MAX_RANK], by[CLV_MAX_RANK], to[CLV_MAX_RANK];
  const int32_t from_rank = clv__dnn_layout_dims(source->layout, from), by_rank = clv__dnn_layout_dims(weights->layout, by);
  const int32_t to_rank = clv__dnn_layout_dims(destination->layout, to);
  const double made = dims_product(to, to_rank);
  if (strstr(step->what, "Conv") == NULL) return 2.0 * made * (double)from[from_rank - 1];
  if (strstr(step->what, "Transpose") != NULL)
    return 2.0 * dims_product(from, from_rank) * dims_product(by, by_rank) / (double)from[1];
  return 2.0 * made * dims_product(by, by_rank) / (double)to[1];
}

static double product_rate(const clv__cpu_step *step) {
  const char *name = step->primitive->implementation;
  const clv_dtype dtype = clv__dnn_layout_dtype(operand_of(step, CLV__DNN_SOURCE)->layout);
  double rate = name != NULL && strstr(name, "avx512") == NULL ? FLOPS_PER_US / 2 : FLOPS_PER_US;
  if (name != NULL && strstr(name, "wino") != NULL) rate *= 2.2;
  if (dtype == CLV_BF16) rate *= 2.0;
  if (dtype == CLV_I8 || dtype == CLV_U8) rate *= 4.0;
  return rate;
}

static double step_bytes(const clv__cpu_step *step) {
  double total = 0.0;
  for (uint32_t i = 0; i < step->operand_count; ++i) total += (double)operand_bytes(&step->operands[i]);
  return total;
}

/* The elements of the largest operand. */
static double step_elements(const clv__cpu_step *step) {
  size_t most = 0, count;
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    if (step->operands[i].slot != CLV__CPU_NONE && clv__tensor_count(&step->operands[i].type, &count) && count > most)
      most = count;
  }
  return (double)most;
}

void clv__cpu_task_estimate(const clv__cpu_step *step, uint32_t threads, clv__cpu_task *task) {
  const double bytes = step_bytes(step);
  double work_us = bytes / BYTES_PER_US;
  bool shares = false; /* whether all threads share the work */
  task->may_lane = true;
  switch (step->kind) {
    case CLV__CPU_STEP_PRIMITIVE: {
      const double flops = product_flops(step);
      if (flops > 0.0 && flops / product_rate(step) > work_us) work_us = flops / product_rate(step);
      shares = !step->serial;
      break;
    }
    case CLV__CPU_STEP_KERNEL: {
      const double elements = step_elements(step);
      task->may_lane = !is_product(step->node->op);
      if (elements / KERNEL_PER_US > work_us) work_us = elements / KERNEL_PER_US;
      shares = elements >= KERNEL_THREADS;
      break;
    }
    case CLV__CPU_STEP_COPY:
      task->may_lane = bytes > 0.0; /* otherwise it is not a call */
      break;
    case CLV__CPU_STEP_CONVERT:
    case CLV__CPU_STEP_ROW:
      shares = bytes >= KERNEL_THREADS;
      break;
    case CLV__CPU_STEP_SMALL:
    case CLV__CPU_STEP_ELEMENTWISE:
      break;
    case CLV__CPU_STEP_OWN:
      task->may_lane = step->own->may_lane;
      shares = bytes >= KERNEL_THREADS;
      break;
  }
  task->alone_us = task->together_us = START_US + work_us;
  if (!shares || threads < 2) return;
  task->together_us = START_US + work_us / threads * (1.0 + UNEVEN_THREAD * (threads - 1)) + clv__cpu_region_us(threads);
}
