// Replaces the first implementation of a convolution that oneDNN 2.6 offers, on the same layouts, if another one is faster or if
// the first one is known to be wrong.
#include <cstring>

#include "own.h"

namespace {

bool is_named(const_dnnl_primitive_desc_t desc, const char *begin) {
  const char *name = "";
  (void)dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
  return std::strncmp(name, begin, std::strlen(begin)) == 0;
}

// Whether the CPU executes 512-bit operations in two halves, so that shorter vectors lose nothing: Zen 4.
bool computes_in_halves() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam19h") != 0;
#else
  return false;
#endif
}

// The name of the implementation to use instead of that of `desc`; null: keep that of `desc`.
const char *preferred(const dnnl_convolution_desc_t &operation, const_dnnl_primitive_desc_t desc) {
  const dnnl_memory_desc_t &to = operation.dst_desc;
  const int64_t width = to.dims[to.ndims - 1], channels = to.dims[1];
  if (operation.src_desc.data_type != dnnl_f32) return nullptr;
  // One channel per group. With jit_dw, 3x3 windows over 112x112 with 32 channels take 74 us instead of 107, and 7x7 windows over
  // 28x28 with 192 channels take 158 us instead of 174. On small images, jit_dw is no faster, or a tenth slower.
  if (is_named(desc, "brdgmm_dw")) return width >= 8 ? "jit_dw" : nullptr;
  // With blocks of 16 channels that are largely padding, use blocks of 8 (144 to 24 channels at 56x56: 191 us instead of 251).
  const int64_t by_16 = (channels + 15) / 16 * 16, by_8 = (channels + 7) / 8 * 8;
  if (is_named(desc, "brgconv_1x1:avx512_core") && by_16 * 16 > by_8 * 17 && computes_in_halves()) return "jit_1x1:avx2";
  return nullptr;
}

const char *const wrong_in_padding = "jit:avx512_core_amx_int8";

// Whether `desc` computes wrong sums where its windows reach into the padding: 3-D images whose zero point is not 0, on AMX.
bool is_wrong(const dnnl_convolution_desc_t &operation, const_dnnl_primitive_attr_t attributes,
              const_dnnl_primitive_desc_t desc) {
  dnnl_dim_t count = 0;
  int mask = 0;
  const int32_t *zeros = nullptr;
  if (operation.src_desc.ndims != 5 || !is_named(desc, wrong_in_padding)) return false;
  (void)dnnl_primitive_attr_get_zero_points(attributes, DNNL_ARG_SRC, &count, &mask, &zeros);
  bool is_padded = false;
  for (int side = 0; side < 2; ++side)
    for (int axis = 0; axis < 3; ++axis) is_padded = is_padded || operation.padding[side][axis] != 0;
  return is_padded && zeros != nullptr && zeros[0] != 0;
}

// Finds oneDNN's first implementation for the layouts of `before` that has the name `begin`. If `begin` is null, finds the
// first whose name is not `wrong_in_padding`. Returns null if there is none.
dnnl_primitive_desc_t find(dnnl_convolution_desc_t operation, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                           const_dnnl_primitive_desc_t before, const char *begin) {
  const dnnl_memory_desc_t *source = dnnl_primitive_desc_query_md(before, dnnl_query_src_md, 0);
  const dnnl_memory_desc_t *destination = dnnl_primitive_desc_query_md(before, dnnl_query_dst_md, 0);
  dnnl_primitive_desc_iterator_t all = nullptr;
  dnnl_primitive_desc_t found = nullptr;
  if (source == nullptr || destination == nullptr) return nullptr;
  operation.src_desc = *source;
  operation.dst_desc = *destination;
  if (dnnl_primitive_desc_iterator_create(&all, &operation, attributes, engine, nullptr) != dnnl_success) return nullptr;
  do {
    dnnl_primitive_desc_t desc = dnnl_primitive_desc_iterator_fetch(all);
    if (desc == nullptr) break;
    if (begin != nullptr ? is_named(desc, begin) : !is_named(desc, wrong_in_padding)) {
      found = desc;
    } else {
      dnnl_primitive_desc_destroy(desc);
    }
  } while (found == nullptr && dnnl_primitive_desc_iterator_next(all) == dnnl_success);
  dnnl_primitive_desc_iterator_destroy(all);
  return found;
}

}  // namespace

dnnl_status_t clv__dnn_convolution_choose(clv__dnn *dnn, const dnnl_convolution_desc_t &operation,
                                          const_dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *desc) {
  *desc = nullptr;
  const dnnl_status_t status = dnnl_primitive_desc_create(desc, &operation, attributes, dnn->engine, nullptr);
  if (status != dnnl_success) return status;
  const char *name = preferred(operation, *desc);
  const bool wrong = is_wrong(operation, attributes, *desc);
  if (name == nullptr && !wrong) return dnnl_success;
  dnnl_primitive_desc_t other = find(operation, attributes, dnn->engine, *desc, name);
  if (other == nullptr && !wrong) return dnnl_success;
  dnnl_primitive_desc_destroy(*desc);
  *desc = other;
  return other != nullptr ? dnnl_success : dnnl_unimplemented;
}
