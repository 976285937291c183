/* The speed model: see speed.h. A node's time is the longer of its arithmetic and its memory traffic (a roofline). For operators
 * with their own parameters it is a linear function of rows and edges. */
#include "speed.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

#define SPIN_NS UINT64_C(60000) /* a sleeping thread may wake this much too late, so the end of a wait is spent spinning */
#define LOOK_EVERY_NS UINT64_C(2000000) /* how often a wait looks at its stop flag */

uint64_t clv__vnpu_wait_until(uint64_t start_ns, double seconds, const clv__stop *stop) {
  uint64_t now = clv__clock_ns();
  if (!(seconds > 0)) return now;
  if (seconds > 1e8) seconds = 1e8;
  uint64_t end = start_ns + (uint64_t)(seconds * 1e9);
  if (end <= now) return now;
  for (; now < end; now = clv__clock_ns()) {
    if (end - now <= SPIN_NS) continue;
    if (clv__is_stopped(stop)) return 0;
    uint64_t wake = end - SPIN_NS;
    if (stop != NULL && wake - now > LOOK_EVERY_NS) wake = now + LOOK_EVERY_NS;
    struct timespec until = {(time_t)(wake / UINT64_C(1000000000)), (long)(wake % UINT64_C(1000000000))};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  return end;
}

/* Time for `amount` at `rate` per second; 0 if the rate is not given. */
static double at_rate(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}

double clv__vnpu_copy_seconds(const clv__vnpu_speed *speed, uint64_t size_bytes) {
  if (!speed->given) return 0;
  return (speed->copy_latency_us * 1e-6 + at_rate((double)size_bytes, speed->copy_bytes_per_second)) * speed->time_scale;
}

double clv__vnpu_launch_seconds(const clv__vnpu_speed *speed) {
  return speed->given ? speed->launch_overhead_us * 1e-6 * speed->time_scale : 0;
}

static double count_of(const clv_tensor *tensor) {
  double count = tensor->dtype == CLV_DTYPE_NONE ? 0 : 1;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= (double)tensor->dims[i];
  return count;
}

static double product_of_ints(const clv_node_info *node, const char *name) {
  clv__attributes attributes = {node->attributes, node->attribute_count};
  size_t count;
  const int64_t *values = clv__attribute_ints(attributes, name, &count);
  double product = 1;
  for (size_t i = 0; i < count; ++i) product *= (double)values[i];
  return product;
}

/* The number of arithmetic operations of a node. A multiply-add counts as two. The number is exact for convolutions and matrix
 * products. Operators other than these and pooling count as one operation per element. */
static double flops_of(const clv_node_info *node, const clv_tensor *inputs, const clv_tensor *outputs) {
  double in = node->input_count > 0 ? count_of(&inputs[0]) : 0;
  double out = node->output_count > 0 ? count_of(&outputs[0]) : 0;
  bool two = node->input_count > 1 && inputs[1].dtype != CLV_DTYPE_NONE;
  clv__attributes attributes = {node->attributes, node->attribute_count};
  if (strcmp(node->op, "Conv") == 0 && two && inputs[1].rank > 0 && inputs[1].dims[0] > 0) {
    return 2 * out * count_of(&inputs[1]) / (double)inputs[1].dims[0];
  }
  if (strcmp(node->op, "ConvTranspose") == 0 && two && inputs[1].rank > 0 && inputs[1].dims[0] > 0) {
    return 2 * in * count_of(&inputs[1]) / (double)inputs[1].dims[0];
  }
  if (strcmp(node->op, "MatMul") == 0 && inputs[0].rank > 0) return 2 * out * (double)inputs[0].dims[inputs[0].rank - 1];
  if (strcmp(node->op, "Gemm") == 0 && inputs[0].rank == 2) {
    return 2 * out * (double)inputs[0].dims[clv__attribute_int(attributes, "transA", 0) != 0 ? 0 : 1];
  }
  if (strcmp(node->op, "MaxPool") == 0 || strcmp(node->op, "AveragePool") == 0)
    return out * product_of_ints(node, "kernel_shape");
  return in > out ? in : out;
}

/* Whether the node's output is its first input with another shape. Hardware copies no data for such a node. */
static bool is_view(const clv_node_info *node) {
  static const char *const views[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
  for (size_t i = 0; i < sizeof views / sizeof *views; ++i) {
    if (node->domain[0] == '\0' && strcmp(node->op, views[i]) == 0) return true;
  }
  return false;
}

/* ---- Operators with their own parameters ---- */

static bool is_called(const char *name, const clv_node_info *node) {
  size_t length = strlen(node->domain);
  if (length == 0) return strcmp(name, node->op) == 0;
  return strncmp(name, node->domain, length) == 0 && name[length] == ':' && strcmp(name + length + 1, node->op) == 0;
}

static const clv__vnpu_operator_speed *find_operator(const clv__vnpu_speed *speed, const clv_node_info *node) {
  for (uint32_t i = 0; i < speed->operator_count; ++i) {
    if (is_called(speed->operators[i].name, node)) return &speed->operators[i];
  }
  return NULL;
}

/* The number of edges: the elements of the operand that selects rows. For ai.cleave's graph operators this is the last input. */
static double edges_of(const clv_node_info *node, const clv_tensor *inputs) {
  bool is_ours = strcmp(node->domain, "ai.cleave") == 0 && strncmp(node->op, "Sparse", 6) == 0;
  if (is_ours && node->input_count > 0) return count_of(&inputs[node->input_count - 1]);
  bool has_indices = node->domain[0] == '\0' && (strncmp(node->op, "Gather", 6) == 0 || strncmp(node->op, "Scatter", 7) == 0);
  return has_indices && node->input_count > 1 ? count_of(&inputs[1]) : 0;
}

static double operator_seconds(const clv__vnpu_operator_speed *figures, const clv_node_info *node, const clv_tensor *inputs) {
  double rows = 0;
  if (node->input_count > 0 && inputs[0].dtype != CLV_DTYPE_NONE) rows = inputs[0].rank > 0 ? (double)inputs[0].dims[0] : 1;
  return 1e-6 * figures->us + 1e-9 * (figures->ns_per_row * rows + figures->ns_per_edge * edges_of(node, inputs));
}

double clv__vnpu_node_seconds(const clv__vnpu_speed *speed, const clv_node_info *node, const clv_tensor *inputs,
                              const clv_tensor *outputs) {
  if (!speed->given || is_view(node)) return 0;
  const clv__vnpu_operator_speed *own = find_operator(speed, node);
  if (own != NULL) return operator_seconds(own, node, inputs) / speed->frequency * speed->time_scale;
  double bytes = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) bytes += count_of(&inputs[i]) * (double)clv_dtype_size_bytes(inputs[i].dtype);
  for (uint32_t i = 0; i < node->output_count; ++i)
    bytes += count_of(&outputs[i]) * (double)clv_dtype_size_bytes(outputs[i].dtype);
  double arithmetic = at_rate(flops_of(node, inputs, outputs), speed->flops_per_second);
  double traffic = at_rate(bytes, speed->bytes_per_second);
  return (arithmetic > traffic ? arithmetic : traffic) / speed->frequency * speed->time_scale;
}
