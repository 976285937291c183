// Creates a primitive again for the calling thread's number of threads: the same operation on the same layouts by the same
// implementation, or none. oneDNN divides work, scratch and blocks by the number of threads a primitive is created for.
#include <cstring>

#include "own.h"

namespace {

struct described {
  dnnl_primitive_desc_t desc = nullptr;
  described() = default;
  described(const described &) = delete;
  described &operator=(const described &) = delete;
  ~described() {
    if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
  }
};

const char *name_of(const_dnnl_primitive_desc_t desc) {
  const char *name = "";
  (void)dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
  return name;
}

const dnnl_memory_desc_t *layout_of(const_dnnl_primitive_desc_t desc, dnnl_query_t what) {
  return dnnl_primitive_desc_query_md(desc, what, 0);
}

bool is_same(const_dnnl_primitive_desc_t a, const_dnnl_primitive_desc_t b) {
  static const dnnl_query_t tensors[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
  for (const dnnl_query_t what : tensors) {
    const dnnl_memory_desc_t *x = layout_of(a, what), *y = layout_of(b, what);
    if ((x == nullptr) != (y == nullptr) || (x != nullptr && dnnl_memory_desc_equal(x, y) == 0)) return false;
  }
  return std::strcmp(name_of(a), name_of(b)) == 0;
}

// The operation, with open layouts replaced by the chosen ones.
template <typename Operation>
dnnl_status_t describe_fixed(Operation operation, dnnl_memory_desc_t Operation::*weights, const_dnnl_primitive_desc_t before,
                             const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine, dnnl_primitive_desc_t *desc) {
  const dnnl_memory_desc_t *layouts[] = {layout_of(before, dnnl_query_src_md), layout_of(before, dnnl_query_weights_md),
                                         layout_of(before, dnnl_query_dst_md)};
  for (const dnnl_memory_desc_t *layout : layouts) {
    if (layout == nullptr) return dnnl_unimplemented;
  }
  operation.src_desc = *layouts[0];
  operation.*weights = *layouts[1];
  operation.dst_desc = *layouts[2];
  return dnnl_primitive_desc_create(desc, &operation, attributes, engine, nullptr);
}

dnnl_status_t describe(const_dnnl_primitive_desc_t before, dnnl_primitive_kind_t kind, dnnl_engine_t engine,
                       dnnl_primitive_desc_t *desc) {
  const_dnnl_op_desc_t operation = nullptr;
  const_dnnl_primitive_attr_t attributes = nullptr;
  dnnl_status_t status = dnnl_primitive_desc_query(before, dnnl_query_op_d, 0, static_cast<void *>(&operation));
  if (status == dnnl_success) status = dnnl_primitive_desc_get_attr(before, &attributes);
  if (status != dnnl_success) return status;
  switch (kind) {
    case dnnl_convolution:
    case dnnl_deconvolution:
      return describe_fixed(*static_cast<const dnnl_convolution_desc_t *>(operation), &dnnl_convolution_desc_t::weights_desc,
                            before, attributes, engine, desc);
    case dnnl_matmul:
      return describe_fixed(*static_cast<const dnnl_matmul_desc_t *>(operation), &dnnl_matmul_desc_t::weights_desc, before,
                            attributes, engine, desc);
    case dnnl_inner_product:
      return describe_fixed(*static_cast<const dnnl_inner_product_desc_t *>(operation), &dnnl_inner_product_desc_t::weights_desc,
                            before, attributes, engine, desc);
    default:
      return dnnl_primitive_desc_create(desc, operation, attributes, engine, nullptr);
  }
}

// Whether it is a normalisation that computes its own statistics. Its threads wait for each other at an OpenMP barrier, even if
// there is only one thread. Inside a lane, that barrier would be the one of the lanes' team.
bool waits_for_team(const_dnnl_primitive_desc_t desc, dnnl_primitive_kind_t kind) {
  const_dnnl_op_desc_t operation = nullptr;
  if (kind != dnnl_batch_normalization) return false;
  if (dnnl_primitive_desc_query(desc, dnnl_query_op_d, 0, static_cast<void *>(&operation)) != dnnl_success) return true;
  return (static_cast<const dnnl_batch_normalization_desc_t *>(operation)->flags & dnnl_use_global_stats) == 0;
}

}  // namespace

clv_status clv__dnn_primitive_again(clv__dnn *dnn, const clv__dnn_primitive *primitive, clv__arena *arena,
                                    clv__dnn_primitive **again, clv_error *error) {
  *again = nullptr;
  return clv__dnn_guarded(error, "primitive", [&]() -> clv_status {
    const_dnnl_primitive_desc_t before = nullptr;
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    dnnl_status_t status = dnnl_primitive_get_primitive_desc(static_cast<const_dnnl_primitive_t>(primitive->handle), &before);
    if (status == dnnl_success) status = dnnl_primitive_desc_query(before, dnnl_query_primitive_kind, 0, &kind);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "primitive");
    if (kind == dnnl_reorder || kind == dnnl_concat) return CLV_OK;
    if (waits_for_team(before, kind)) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s waits for all threads", name_of(before));
    }
    described made;
    status = describe(before, kind, dnn->engine, &made.desc);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "primitive");
    if (!is_same(before, made.desc)) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s for another number of threads is %s", name_of(before),
                            name_of(made.desc));
    }
    auto *record = static_cast<clv__dnn_primitive *>(clv__arena_copy(arena, primitive, sizeof *primitive));
    if (record == nullptr) return clv__error_memory(error, sizeof *record);
    const dnnl_memory_desc_t *scratch = layout_of(made.desc, dnnl_query_scratchpad_md);
    record->scratch_bytes = scratch != nullptr && scratch->ndims > 0 ? dnnl_memory_desc_get_size(scratch) : 0;
    record->handle = nullptr;
    dnnl_primitive_t handle = nullptr;
    status = dnnl_primitive_create(&handle, made.desc);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "primitive");
    record->handle = handle;
    *again = record;
    return CLV_OK;
  });
}
