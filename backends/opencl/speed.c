/* Estimates times with a roofline model, from what the driver reports about the device. Nothing is measured here. A measured
 * profile replaces these estimates. */
#include "device.h"

static double number(const clv_device *device, cl_device_info what) {
  cl_uint value = 0;
  return device->cl->clGetDeviceInfo(device->id, what, sizeof value, &value, NULL) == CL_SUCCESS ? (double)value : 0;
}

/* Drivers report compute units and clock, but rarely lanes or bandwidth. So these are assumed: 64 lanes per unit of a GPU (128 if
 * it is a large one, with more than 8 GiB of memory), one vector per core of a CPU, and a bandwidth that is typical for the kind
 * of device. Kernels are assumed to reach half of the peak. */
void clv__opencl_speed_init(clv_device *device) {
  const double units = number(device, CL_DEVICE_MAX_COMPUTE_UNITS), clock = number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY) * 1e6;
  const double vector = number(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  const bool discrete = !device->traits.is_cpu && !device->is_unified;
  const double lanes = device->traits.is_cpu ? (vector > 0 ? vector : 4) : device->memory_bytes > (UINT64_C(8) << 30) ? 128 : 64;
  device->flops_per_second = units * clock * lanes * 2 * 0.5;
  if (!(device->flops_per_second > 0)) device->flops_per_second = 1e10;
  device->bytes_per_second = device->traits.is_cpu ? 8e9 * (units < 4 ? units : 4) : discrete ? 3e11 : 4e10;
  device->launch_seconds = device->traits.is_cpu ? 20e-6 : 10e-6;
  device->copy_latency_seconds = device->shares_host ? 0 : 10e-6;
  device->copy_bytes_per_second = discrete ? 1e10 : 8e9;
}

double clv__opencl_copy_seconds(clv_device *device, uint64_t size_bytes) {
  if (device->shares_host) return 0;
  return device->copy_latency_seconds + (double)size_bytes / device->copy_bytes_per_second;
}

double clv__opencl_launch_seconds(clv_device *device) {
  return device->launch_seconds;
}

/* The number of elements. Sets `known` to false if a dim or the rank is unknown. */
static double count_of(const clv_tensor *tensor, bool *known) {
  if (tensor->dtype == CLV_DTYPE_NONE) return 0;
  if (tensor->rank < 0) *known = false;
  double count = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->dims[i] < 0) *known = false;
    count *= (double)tensor->dims[i];
  }
  return count;
}

static bool is(const clv_node_info *node, const char *op) {
  return node->domain[0] == '\0' && strcmp(node->op, op) == 0;
}

/* The number of operations of a node. In convolutions and matrix products, a multiply-add counts as two. Every other operator
 * counts as one operation per element of its input or output, whichever is larger. */
static double flops_of(const clv_node_info *node, const clv_tensor *in, const clv_tensor *weight, double in_count,
                       double out_count, double weight_count) {
  clv__attributes attributes = {node->attributes, node->attribute_count};
  if (is(node, "Conv") && weight->rank > 0 && weight->dims[0] > 0) return 2 * out_count * weight_count / (double)weight->dims[0];
  if (is(node, "ConvTranspose") && weight->rank > 0 && weight->dims[0] > 0) {
    return 2 * in_count * weight_count / (double)weight->dims[0];
  }
  if (is(node, "MatMul") && in->rank > 0) return 2 * out_count * (double)in->dims[in->rank - 1];
  if (is(node, "Gemm") && in->rank == 2) {
    return 2 * out_count * (double)in->dims[clv__attribute_int(attributes, "transA", 0) != 0 ? 0 : 1];
  }
  return in_count > out_count ? in_count : out_count;
}

/* The bytes that a graph operator gathers: one row of the data per edge. */
static double gathered_bytes(const clv_node_info *node, const clv_tensor *data, double edges) {
  if (strcmp(node->domain, "ai.cleave") != 0 || strncmp(node->op, "Sparse", 6) != 0 || data->rank != 2) return 0;
  return edges * (double)data->dims[1] * (double)clv_dtype_size_bytes(data->dtype);
}

static void type_of(const clv_device *device, const clv_graph_view *graph, uint32_t value, clv_tensor *type) {
  clv_value_info info = {.struct_size = sizeof info};
  *type = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
  if (value == CLV_NO_VALUE) return;
  device->host->graph_value(graph, value, &info);
  *type = info.type;
}

double clv__opencl_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t index) {
  clv_node_info node = {.struct_size = sizeof node};
  device->host->graph_node(graph, index, &node);
  if (clv__opencl_is_view(node.domain, node.op, node.opset)) return 0;
  clv_tensor first = {.rank = CLV_RANK_UNKNOWN}, second = first;
  double bytes = 0, in_count = 0, out_count = 0, weight_count = 0, last_count = 0;
  bool known = true;
  for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
    clv_tensor type;
    type_of(device, graph, i < node.input_count ? node.inputs[i] : node.outputs[i - node.input_count], &type);
    const double count = count_of(&type, &known);
    bytes += count * (double)clv_dtype_size_bytes(type.dtype);
    if (i == 0 && node.input_count > 0) first = type, in_count = count;
    if (i == 1 && node.input_count > 1) second = type, weight_count = count;
    if (i + 1 == node.input_count) last_count = count;
    if (i == node.input_count) out_count = count;
  }
  if (!known) return -1;
  const double arithmetic = flops_of(&node, &first, &second, in_count, out_count, weight_count) / device->flops_per_second;
  const double traffic = (bytes + gathered_bytes(&node, &first, last_count)) / device->bytes_per_second;
  return arithmetic > traffic ? arithmetic : traffic;
}
