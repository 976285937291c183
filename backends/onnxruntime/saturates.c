/* The processors on which ONNX Runtime computes products of u8 and s8 wrongly. With AVX2 and without VNNI its kernels add two
 * products in 16 bits, and the sum saturates. Observed with ONNX Runtime 1.31, whose documentation calls this an overflow of U8S8
 * products. */
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

/* Returns whether ONNX Runtime uses the kernels that saturate on this processor. Makes the same checks as ONNX Runtime does when
 * it chooses its kernels. The kernels for processors without AVX2 are exact. */
bool clv__ort_saturates(void) {
#if defined(__x86_64__) || defined(__i386__)
  enum { AVX_VNNI = 1 << 4 }; /* in eax of CPUID leaf 7, subleaf 1; some compilers have no name for it */
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx2")) return false;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    return false;
  }
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & AVX_VNNI) == 0;
#else
  return false;
#endif
}

bool clv__ort_may_saturate(const clv_value_info *value) {
  enum { EXACT = 64 }; /* 2 * 255 * 64 fits in 16 bits */
  size_t count;
  if (value->type.dtype != CLV_I8) return false;
  if (value->type.data == NULL || !clv__tensor_count(&value->type, &count)) return true;
  const int8_t *numbers = value->type.data;
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] < -EXACT || numbers[i] > EXACT) return true;
  }
  return false;
}

static bool is_one_of(const char *op, const char *const *ops) {
  while (*ops != NULL && strcmp(*ops, op) != 0) ++ops;
  return *ops != NULL;
}

/* Whether a float product has a second operand that was dequantised from numbers that may saturate. `marks` has a flag per value,
 * set while walking the nodes in order: 1 if the value was dequantised from such numbers. */
static bool has_products(const clv_host *host, const clv_graph_view *graph, uint8_t *marks) {
  static const char *const products[] = {"Conv", "Gemm", "MatMul", NULL};
  static const char *const moves[] = {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze", NULL};
  clv_node_info node = {.struct_size = sizeof node};
  clv_value_info value = {.struct_size = sizeof value};
  for (uint32_t n = 0; n < host->graph_node_count(graph); ++n) {
    host->graph_node(graph, n, &node);
    for (uint32_t i = 0; i < node.attribute_count; ++i) {
      const clv_attribute *attribute = &node.attributes[i];
      if (attribute->kind == CLV_ATTRIBUTE_GRAPH && clv__ort_dequantises_widely(host, attribute->graph)) return true;
    }
    if (node.input_count == 0 || node.inputs[0] == CLV_NO_VALUE || node.outputs[0] == CLV_NO_VALUE) continue;
    if (strcmp(node.op, "DequantizeLinear") == 0) {
      host->graph_value(graph, node.inputs[0], &value);
      marks[node.outputs[0]] = clv__ort_may_saturate(&value);
    } else if (is_one_of(node.op, moves)) {
      marks[node.outputs[0]] = marks[node.inputs[0]];
    } else if (is_one_of(node.op, products) && marks[node.inputs[1]] != 0) {
      return true;
    }
  }
  return false;
}

bool clv__ort_dequantises_widely(const clv_host *host, const clv_graph_view *graph) {
  uint8_t *marks = clv__allocate_zero(host->allocator, (size_t)host->graph_value_count(graph) + 1);
  const bool found = marks == NULL || has_products(host, graph, marks); /* without memory, assume the worst */
  clv__release(host->allocator, marks);
  return found;
}
