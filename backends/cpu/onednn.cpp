// size-ok: the one C++ file of the backend: every call into oneDNN, and the end of its exceptions.
// Written for the descriptor interface of oneDNN 2 (dnnl_*_desc_init); what oneDNN 3 changes is confined to this file.
#include "onednn.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdio>
#include <cstring>
#include <new>

extern "C" {
#include "base/error.h"
}

struct clv__dnn {
  const clv_allocator *allocator;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
};

struct clv__dnn_layout {
  dnnl_memory_desc_t desc;
};

static_assert(CLV__DNN_SOURCE == DNNL_ARG_SRC && CLV__DNN_SOURCE_1 == DNNL_ARG_SRC_1 && CLV__DNN_DESTINATION == DNNL_ARG_DST &&
                  CLV__DNN_WEIGHTS == DNNL_ARG_WEIGHTS && CLV__DNN_BIAS == DNNL_ARG_BIAS && CLV__DNN_MEAN == DNNL_ARG_MEAN &&
                  CLV__DNN_VARIANCE == DNNL_ARG_VARIANCE && CLV__DNN_SCRATCH == DNNL_ARG_SCRATCHPAD &&
                  CLV__DNN_MANY_SOURCES == DNNL_ARG_MULTIPLE_SRC && CLV__DNN_WEIGHTS == DNNL_ARG_SCALE_SHIFT,
              "argument ids are oneDNN's");
static_assert(sizeof(clv__dnn_argument) == sizeof(dnnl_exec_arg_t), "arguments are passed as they are");

namespace {

clv_status failed(clv_error *error, dnnl_status_t status, const char *call) {
  switch (status) {
    case dnnl_out_of_memory:
      return clv__error_set(error, CLV_OUT_OF_MEMORY, "oneDNN: %s: out of memory", call);
    case dnnl_unimplemented:
    case dnnl_invalid_arguments:
      return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s: no implementation (status %d)", call, (int)status);
    default:
      return clv__error_set(error, CLV_DEVICE_ERROR, "oneDNN: %s failed with status %d", call, (int)status);
  }
}

// Runs `body`, which returns a clv_status, and turns what it throws into one.
template <typename Body>
clv_status guarded(clv_error *error, const char *call, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "oneDNN: %s: out of memory", call);
  } catch (...) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "oneDNN: %s threw an exception", call);
  }
}

const clv__dnn_layout *keep(clv__arena *arena, const dnnl_memory_desc_t &desc) {
  return static_cast<const clv__dnn_layout *>(clv__arena_copy(arena, &desc, sizeof desc));
}

// Of the dtypes that layouts may have; undef for others.
dnnl_data_type_t data_type(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F32:
      return dnnl_f32;
    case CLV_BF16:
      return dnnl_bf16;
    case CLV_F16:
      return dnnl_f16;
    case CLV_I32:
      return dnnl_s32;
    case CLV_I8:
      return dnnl_s8;
    case CLV_U8:
      return dnnl_u8;
    default:
      return dnnl_data_type_undef;
  }
}

bool any_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_dims_t copy;
  if (rank < 1 || rank > DNNL_MAX_NDIMS) return false;
  for (int32_t i = 0; i < rank; ++i) copy[i] = dims[i];
  return dnnl_memory_desc_init_by_tag(desc, rank, copy, data_type(dtype), dnnl_format_tag_any) == dnnl_success;
}

bool dense_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_dims_t copy, strides;
  if (rank < 1 || rank > DNNL_MAX_NDIMS) return false;
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    copy[i] = dims[i];
    strides[i] = stride;
    stride *= dims[i] > 0 ? dims[i] : 1;
  }
  return dnnl_memory_desc_init_by_strides(desc, rank, copy, data_type(dtype), strides) == dnnl_success;
}

const dnnl_alg_kind_t unary_kinds[] = {dnnl_eltwise_relu,     dnnl_eltwise_elu,       dnnl_eltwise_tanh,   dnnl_eltwise_logistic,
                                       dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_tanh, dnnl_eltwise_clip,   dnnl_eltwise_hardswish,
                                       dnnl_eltwise_swish,    dnnl_eltwise_mish,      dnnl_eltwise_abs,    dnnl_eltwise_sqrt,
                                       dnnl_eltwise_exp,      dnnl_eltwise_log,       dnnl_eltwise_linear, dnnl_eltwise_round};
const dnnl_alg_kind_t binary_kinds[] = {dnnl_binary_add, dnnl_binary_sub, dnnl_binary_mul,
                                        dnnl_binary_div, dnnl_binary_max, dnnl_binary_min};

// Owns the attributes while a primitive is made.
struct attributes {
  dnnl_primitive_attr_t handle = nullptr;
  attributes() = default;
  attributes(const attributes &) = delete;
  attributes &operator=(const attributes &) = delete;
  ~attributes() {
    if (handle != nullptr) dnnl_primitive_attr_destroy(handle);
  }
  dnnl_status_t make(const clv__dnn_post *posts, uint32_t post_count) {
    dnnl_status_t status = dnnl_primitive_attr_create(&handle);
    if (status != dnnl_success) return status;
    status = dnnl_primitive_attr_set_scratchpad_mode(handle, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || post_count == 0) return status;
    dnnl_post_ops_t list = nullptr;
    status = dnnl_post_ops_create(&list);
    for (uint32_t i = 0; i < post_count && status == dnnl_success; ++i) {
      const clv__dnn_post &post = posts[i];
      if (post.kind == clv__dnn_post::CLV__DNN_POST_SUM) {
        status = dnnl_post_ops_append_sum(list, 1.0f);
      } else if (post.kind == clv__dnn_post::CLV__DNN_POST_UNARY) {
        const float factor = post.factor != 0.0f ? post.factor : 1.0f;
        status = dnnl_post_ops_append_eltwise(list, factor, unary_kinds[post.algorithm], post.alpha, post.beta);
      } else {
        status = dnnl_post_ops_append_binary(list, binary_kinds[post.algorithm], &post.layout->desc);
      }
    }
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(handle, list);
    if (list != nullptr) dnnl_post_ops_destroy(list);
    return status;
  }
  // Of integers; `axis` of the destination is the one that several factors run along.
  dnnl_status_t scale(const float *scales, int64_t count, int axis, int32_t source_zero, int32_t destination_zero) {
    dnnl_status_t status = dnnl_primitive_attr_set_output_scales(handle, count, count > 1 ? 1 << axis : 0, scales);
    if (status == dnnl_success && source_zero != 0) {
      status = dnnl_primitive_attr_set_zero_points(handle, DNNL_ARG_SRC, 1, 0, &source_zero);
    }
    if (status == dnnl_success && destination_zero != 0) {
      status = dnnl_primitive_attr_set_zero_points(handle, DNNL_ARG_DST, 1, 0, &destination_zero);
    }
    return status;
  }
};

// The name of the implementation that was chosen; a reference is none.
clv_status chosen(dnnl_primitive_desc_t desc, const char *call, const char **name, clv_error *error) {
  *name = "";
  (void)dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, name);
  if (std::strncmp(*name, "ref", 3) != 0) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s: only a reference implementation (%s)", call, *name);
}

const dnnl_memory_desc_t *wanted(dnnl_primitive_desc_t desc, dnnl_query_t what, int index) {
  const dnnl_memory_desc_t *layout = dnnl_primitive_desc_query_md(desc, what, index);
  return layout != nullptr && layout->ndims > 0 ? layout : nullptr;
}

// Makes the primitive and its record; destroys `desc` in every case.
clv_status finish(dnnl_primitive_desc_t desc, const char *call, bool allow_reference, clv__arena *arena,
                  clv__dnn_primitive **primitive, clv_error *error) {
  struct owner {
    dnnl_primitive_desc_t desc;
    ~owner() { dnnl_primitive_desc_destroy(desc); }
  } owned{desc};
  const char *name;
  const clv_status usable = chosen(desc, call, &name, allow_reference ? nullptr : error);
  if (usable != CLV_OK && !allow_reference) return usable;
  auto *made = static_cast<clv__dnn_primitive *>(clv__arena_allocate_zero(arena, 1, sizeof(clv__dnn_primitive)));
  if (made == nullptr) return clv__error_memory(error, sizeof *made);
  made->implementation = clv__arena_string(arena, name, std::strlen(name));
  const dnnl_memory_desc_t *source = wanted(desc, dnnl_query_src_md, 0);
  const dnnl_memory_desc_t *weights = wanted(desc, dnnl_query_weights_md, 0);
  const dnnl_memory_desc_t *destination = wanted(desc, dnnl_query_dst_md, 0);
  if (source != nullptr) made->source = keep(arena, *source);
  if (weights != nullptr) made->weights = keep(arena, *weights);
  if (destination != nullptr) made->destination = keep(arena, *destination);
  if (made->implementation == nullptr || (source != nullptr && made->source == nullptr) ||
      (weights != nullptr && made->weights == nullptr) || (destination != nullptr && made->destination == nullptr)) {
    return clv__error_memory(error, sizeof(clv__dnn_layout));
  }
  const dnnl_memory_desc_t *scratch = wanted(desc, dnnl_query_scratchpad_md, 0);
  made->scratch_bytes = scratch != nullptr ? dnnl_memory_desc_get_size(scratch) : 0;
  dnnl_primitive_t handle = nullptr;
  dnnl_status_t status = dnnl_primitive_create(&handle, desc);
  if (status != dnnl_success) return failed(error, status, call);
  made->handle = handle;
  *primitive = made;
  return CLV_OK;
}

clv_status create(clv__dnn *dnn, const_dnnl_op_desc_t op, const clv__dnn_post *posts, uint32_t post_count, const char *call,
                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error, bool allow_reference = false) {
  attributes attr;
  dnnl_status_t status = attr.make(posts, post_count);
  if (status != dnnl_success) return failed(error, status, call);
  dnnl_primitive_desc_t desc = nullptr;
  status = dnnl_primitive_desc_create(&desc, op, attr.handle, dnn->engine, nullptr);
  if (status != dnnl_success) return failed(error, status, call);
  return finish(desc, call, allow_reference, arena, primitive, error);
}

// A primitive of integers, or whether there is one.
clv_status create_integers(clv__dnn *dnn, const_dnnl_op_desc_t op, const attributes &attr, const char *call, bool is_probe,
                           clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = dnnl_primitive_desc_create(&desc, op, attr.handle, dnn->engine, nullptr);
  if (status != dnnl_success) return failed(error, status, call);
  if (!is_probe) return finish(desc, call, false, arena, primitive, error);
  const char *name;
  const clv_status usable = chosen(desc, call, &name, error);
  dnnl_primitive_desc_destroy(desc);
  return usable;
}

}  // namespace

int clv__dnn_post_argument(uint32_t post) {
  return DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)post) | DNNL_ARG_SRC_1;
}

clv_status clv__dnn_open(const clv_allocator *allocator, clv__dnn **dnn, clv_error *error) {
  *dnn = nullptr;
  return guarded(error, "engine", [&]() -> clv_status {
    auto *made = static_cast<clv__dnn *>(clv__allocate_zero(allocator, sizeof(clv__dnn)));
    if (made == nullptr) return clv__error_memory(error, sizeof(clv__dnn));
    made->allocator = allocator;
    dnnl_status_t status = dnnl_engine_create(&made->engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
      clv__dnn_close(made);
      return failed(error, status, "dnnl_engine_create");
    }
    *dnn = made;
    return CLV_OK;
  });
}

void clv__dnn_close(clv__dnn *dnn) {
  if (dnn == nullptr) return;
  if (dnn->stream != nullptr) dnnl_stream_destroy(dnn->stream);
  if (dnn->engine != nullptr) dnnl_engine_destroy(dnn->engine);
  clv__release(dnn->allocator, dnn);
}

void clv__dnn_describe(char *text, size_t size_bytes) {
  const dnnl_version_t *version = dnnl_version();
  const char *isa = "baseline";
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      isa = "sse41";
      break;
    case dnnl_cpu_isa_avx:
      isa = "avx";
      break;
    case dnnl_cpu_isa_avx2:
      isa = "avx2";
      break;
    case dnnl_cpu_isa_avx2_vnni:
      isa = "avx2_vnni";
      break;
    case dnnl_cpu_isa_avx512_core:
      isa = "avx512_core";
      break;
    case dnnl_cpu_isa_avx512_core_vnni:
      isa = "avx512_core_vnni";
      break;
    case dnnl_cpu_isa_avx512_core_bf16:
      isa = "avx512_core_bf16";
      break;
    case dnnl_cpu_isa_avx512_core_amx:
      isa = "avx512_core_amx";
      break;
    default:
      break;
  }
  std::snprintf(text, size_bytes, "oneDNN %d.%d.%d %s", version->major, version->minor, version->patch, isa);
}

bool clv__dnn_has_bf16(void) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

bool clv__dnn_sums_integers(void) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx2_vnni || (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

const clv__dnn_layout *clv__dnn_layout_dense(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_memory_desc_t desc;
  const int64_t one = 1;
  if (rank == 0) return clv__dnn_layout_dense(arena, dtype, 1, &one);
  return dense_desc(&desc, dtype, rank, dims) ? keep(arena, desc) : nullptr;
}

const clv__dnn_layout *clv__dnn_layout_strided(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims,
                                               const int64_t *strides) {
  dnnl_memory_desc_t desc;
  dnnl_dims_t dims_copy, strides_copy;
  if (rank < 1 || rank > DNNL_MAX_NDIMS) return nullptr;
  for (int32_t i = 0; i < rank; ++i) {
    dims_copy[i] = dims[i];
    strides_copy[i] = strides[i];
  }
  if (dnnl_memory_desc_init_by_strides(&desc, rank, dims_copy, data_type(dtype), strides_copy) != dnnl_success) return nullptr;
  return keep(arena, desc);
}

const clv__dnn_layout *clv__dnn_layout_channels_last(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  int64_t strides[DNNL_MAX_NDIMS];
  if (rank < 3 || rank > DNNL_MAX_NDIMS) return nullptr;
  int64_t stride = dims[1];
  strides[1] = 1;
  for (int32_t i = rank - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[0] = stride;
  return clv__dnn_layout_strided(arena, dtype, rank, dims, strides);
}

const clv__dnn_layout *clv__dnn_layout_panels(clv__arena *arena, clv_dtype dtype, const int64_t dims[2]) {
  dnnl_memory_desc_t desc;
  const dnnl_dims_t copy = {dims[0], dims[1]};
  return dnnl_memory_desc_init_by_tag(&desc, 2, copy, data_type(dtype), dnnl_BA16a64b) == dnnl_success ? keep(arena, desc)
                                                                                                       : nullptr;
}

bool clv__dnn_layout_is_panels(const clv__dnn_layout *layout) {
  dnnl_memory_desc_t desc;
  if (layout->desc.ndims != 2 || layout->desc.data_type != dnnl_f32) return false;
  return dnnl_memory_desc_init_by_tag(&desc, 2, layout->desc.dims, dnnl_f32, dnnl_BA16a64b) == dnnl_success &&
         dnnl_memory_desc_equal(&desc, &layout->desc) != 0;
}

const clv__dnn_layout *clv__dnn_layout_rechannel(clv__arena *arena, const clv__dnn_layout *layout, const int64_t *dims) {
  const dnnl_memory_desc_t &from = layout->desc;
  if (from.format_kind != dnnl_blocked || from.ndims < 3 || from.ndims > 5) return nullptr;
  const dnnl_blocking_desc_t &blocking = from.format_desc.blocking;
  const clv_dtype dtype = clv__dnn_layout_dtype(layout);
  if (blocking.inner_nblks == 0) {
    const clv__dnn_layout *last = clv__dnn_layout_channels_last(arena, dtype, from.ndims, from.dims);
    if (last == nullptr || !clv__dnn_layout_equal(last, layout)) return nullptr;
    return clv__dnn_layout_channels_last(arena, dtype, from.ndims, dims);
  }
  if (blocking.inner_nblks != 1 || blocking.inner_idxs[0] != 1) return nullptr;
  static const dnnl_format_tag_t by16[] = {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c};
  static const dnnl_format_tag_t by8[] = {dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c};
  const dnnl_format_tag_t *tags = blocking.inner_blks[0] == 16 ? by16 : blocking.inner_blks[0] == 8 ? by8 : nullptr;
  if (tags == nullptr) return nullptr;
  dnnl_memory_desc_t same, made;
  if (dnnl_memory_desc_init_by_tag(&same, from.ndims, from.dims, from.data_type, tags[from.ndims - 3]) != dnnl_success ||
      !dnnl_memory_desc_equal(&same, &from)) {
    return nullptr;
  }
  dnnl_dims_t copy;
  for (int i = 0; i < from.ndims; ++i) copy[i] = dims[i];
  if (dnnl_memory_desc_init_by_tag(&made, from.ndims, copy, from.data_type, tags[from.ndims - 3]) != dnnl_success) return nullptr;
  return keep(arena, made);
}

const clv__dnn_layout *clv__dnn_layout_part(clv__arena *arena, const clv__dnn_layout *layout, const int64_t *dims,
                                            const int64_t *offsets) {
  dnnl_memory_desc_t desc;
  dnnl_dims_t dims_copy, offsets_copy;
  for (int i = 0; i < layout->desc.ndims; ++i) {
    dims_copy[i] = dims[i];
    offsets_copy[i] = offsets[i];
  }
  if (dnnl_memory_desc_init_submemory(&desc, &layout->desc, dims_copy, offsets_copy) != dnnl_success) return nullptr;
  return keep(arena, desc);
}

clv__dnn_layout *clv__dnn_layout_clone(const clv_allocator *allocator, const clv__dnn_layout *layout) {
  void *copy = clv__allocate(allocator, sizeof *layout);
  if (copy != nullptr) std::memcpy(copy, layout, sizeof *layout);
  return static_cast<clv__dnn_layout *>(copy);
}

bool clv__dnn_layout_equal(const clv__dnn_layout *a, const clv__dnn_layout *b) {
  return a == b || (a != nullptr && b != nullptr && dnnl_memory_desc_equal(&a->desc, &b->desc) != 0);
}

bool clv__dnn_layout_is_dense(const clv__dnn_layout *layout) {
  const dnnl_memory_desc_t &desc = layout->desc;
  if (desc.format_kind != dnnl_blocked || desc.offset0 != 0 || desc.extra.flags != 0) return false;
  const dnnl_blocking_desc_t &blocking = desc.format_desc.blocking;
  if (blocking.inner_nblks > 1) return false;
  int64_t expected = 1;
  const int blocked_axis = blocking.inner_nblks == 1 ? (int)blocking.inner_idxs[0] : -1;
  const int64_t block = blocking.inner_nblks == 1 ? blocking.inner_blks[0] : 1;
  // One block over an axis is row-major when it is not cut and every axis behind it has extent 1.
  for (int i = desc.ndims - 1; i >= 0; --i) {
    if (desc.dims[i] != desc.padded_dims[i]) return false;
    if (i > blocked_axis && blocked_axis >= 0 && desc.dims[i] != 1) return false;
    if (i == blocked_axis) {
      if (desc.dims[i] / block != 1 && blocking.strides[i] != block * expected) return false;
    } else if (desc.dims[i] != 1 && blocking.strides[i] != expected) {
      return false;
    }
    expected *= desc.dims[i];
  }
  return true;
}

bool clv__dnn_layout_is_plain(const clv__dnn_layout *layout) {
  return layout->desc.format_kind == dnnl_blocked && layout->desc.format_desc.blocking.inner_nblks == 0;
}

clv_dtype clv__dnn_layout_dtype(const clv__dnn_layout *layout) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_BF16, CLV_F16, CLV_I32, CLV_I8, CLV_U8};
  for (const clv_dtype dtype : dtypes) {
    if (data_type(dtype) == layout->desc.data_type) return dtype;
  }
  return CLV_DTYPE_NONE;
}

int32_t clv__dnn_layout_dims(const clv__dnn_layout *layout, int64_t dims[CLV_MAX_RANK]) {
  for (int i = 0; i < layout->desc.ndims && i < CLV_MAX_RANK; ++i) dims[i] = layout->desc.dims[i];
  return layout->desc.ndims;
}

void clv__dnn_layout_strides(const clv__dnn_layout *layout, int64_t strides[CLV_MAX_RANK]) {
  for (int i = 0; i < layout->desc.ndims && i < CLV_MAX_RANK; ++i) strides[i] = layout->desc.format_desc.blocking.strides[i];
}

bool clv__dnn_layout_is_opaque(const clv__dnn_layout *layout) {
  return layout->desc.format_kind != dnnl_blocked;
}

size_t clv__dnn_layout_size_bytes(const clv__dnn_layout *layout) {
  return dnnl_memory_desc_get_size(&layout->desc);
}

bool clv__dnn_layout_winograd(const clv__dnn_layout *layout, clv__dnn_winograd *winograd) {
  const dnnl_memory_desc_t &desc = layout->desc;
  // The orders have no specification. Those of the version that this was built with are held against its own reorder by a test.
  const dnnl_version_t *version = dnnl_version();
  if (version->major != DNNL_VERSION_MAJOR || version->minor != DNNL_VERSION_MINOR) return false;
  if (desc.format_kind != dnnl_format_kind_wino || desc.data_type != dnnl_f32 || desc.ndims != 4 || desc.offset0 != 0 ||
      desc.dims[2] != 3 || desc.dims[3] != 3) {
    return false;
  }
  const dnnl_wino_desc_t &wino = desc.format_desc.wino_desc;
  const int points = wino.wino_format == dnnl_wino_wei_OBaaIBOIio ? 6 : 4;
  if (wino.r != 3 || wino.alpha != points || wino.adj_scale != 1.0f) return false;
  if (wino.ic_block < 1 || wino.ic_block != wino.oc_block || wino.ic2_block < 1 || wino.oc2_block < 1) return false;
  if (wino.ic % (wino.ic_block * wino.ic2_block) != 0 || wino.oc % (wino.oc_block * wino.oc2_block) != 0) return false;
  if (wino.oc < desc.dims[0] || wino.ic < desc.dims[1] ||
      wino.size != (size_t)points * points * wino.ic * wino.oc * sizeof(float))
    return false;
  *winograd = {};
  switch (wino.wino_format) {
    case dnnl_wino_wei_aaOio:
      winograd->order = clv__dnn_winograd::CLV__DNN_WINOGRAD_POINTS_OUTPUTS;
      break;
    case dnnl_wino_wei_aaOBiOo:
      winograd->order = clv__dnn_winograd::CLV__DNN_WINOGRAD_POINTS_GROUPS;
      break;
    case dnnl_wino_wei_OBaaIBOIio:
      winograd->order = clv__dnn_winograd::CLV__DNN_WINOGRAD_GROUPS_POINTS;
      break;
    default:
      return false;
  }
  winograd->points = points;
  winograd->outputs = wino.oc;
  winograd->inputs = wino.ic;
  winograd->lanes = wino.oc_block;
  winograd->output_group = wino.oc2_block;
  winograd->input_group = wino.ic2_block;
  return true;
}

clv_status clv__dnn_convolution_create(clv__dnn *dnn, const clv__dnn_convolution *spec, clv__arena *arena,
                                       clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "convolution", [&]() -> clv_status {
    dnnl_memory_desc_t source, weights, destination, bias;
    if (spec->source_layout != nullptr) {
      source = spec->source_layout->desc;
    } else if (!any_desc(&source, spec->source.dtype, spec->source.rank, spec->source.dims)) {
      return failed(error, dnnl_invalid_arguments, "convolution source");
    }
    if (spec->destination_layout != nullptr) {
      destination = spec->destination_layout->desc;
    } else if (!any_desc(&destination, spec->destination.dtype, spec->destination.rank, spec->destination.dims)) {
      return failed(error, dnnl_invalid_arguments, "convolution destination");
    }
    if (!any_desc(&weights, spec->weights.dtype, spec->weights.rank, spec->weights.dims) ||
        (spec->bias_count > 0 && !dense_desc(&bias, CLV_F32, 1, &spec->bias_count))) {
      return failed(error, dnnl_invalid_arguments, "convolution weights");
    }
    dnnl_dims_t strides, dilates, begin, end;
    for (int32_t i = 0; i < spec->window.count; ++i) {
      strides[i] = spec->window.stride[i];
      dilates[i] = spec->window.dilation[i] - 1;
      begin[i] = spec->window.begin[i];
      end[i] = spec->window.end[i];
    }
    const dnnl_memory_desc_t *bias_desc = spec->bias_count > 0 ? &bias : nullptr;
    const dnnl_prop_kind_t inference = dnnl_forward_inference;
    if (spec->transposed) {
      dnnl_deconvolution_desc_t desc;
      dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
          &desc, inference, dnnl_deconvolution_direct, &source, &weights, bias_desc, &destination, strides, dilates, begin, end);
      if (status != dnnl_success) return failed(error, status, "deconvolution");
      return create(dnn, &desc, spec->posts, spec->post_count, "deconvolution", arena, primitive, error);
    }
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, inference, spec->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, &source, &weights, bias_desc,
        &destination, strides, dilates, begin, end);
    if (status != dnnl_success) return failed(error, status, "convolution");
    if (spec->scales != nullptr) {
      attributes attr;
      status = attr.make(spec->posts, spec->post_count);
      if (status == dnnl_success)
        status = attr.scale(spec->scales, spec->scale_count, 1, spec->source_zero, spec->destination_zero);
      if (status != dnnl_success) return failed(error, status, "convolution of integers");
      return create_integers(dnn, &desc, attr, "convolution of integers", spec->is_probe, arena, primitive, error);
    }
    return create(dnn, &desc, spec->posts, spec->post_count, "convolution", arena, primitive, error);
  });
}

clv_status clv__dnn_matmul_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b, bool weights_any,
                                  const clv__dnn_layout *bias, const clv__dnn_layout *destination, float scale,
                                  const clv__dnn_post *posts, uint32_t post_count, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "matmul", [&]() -> clv_status {
    dnnl_memory_desc_t weights = b->desc;
    if (weights_any && !any_desc(&weights, clv__dnn_layout_dtype(b), b->desc.ndims, b->desc.dims)) {
      return failed(error, dnnl_invalid_arguments, "matmul weights");
    }
    dnnl_matmul_desc_t desc;
    dnnl_status_t status =
        dnnl_matmul_desc_init(&desc, &a->desc, &weights, bias != nullptr ? &bias->desc : nullptr, &destination->desc);
    if (status != dnnl_success) return failed(error, status, "matmul");
    attributes attr;
    status = attr.make(posts, post_count);
    if (status == dnnl_success && scale != 1.0f) {
      status = dnnl_primitive_attr_set_output_scales(attr.handle, 1, 0, &scale);
    }
    if (status != dnnl_success) return failed(error, status, "matmul attributes");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_primitive_desc_create(&made, &desc, attr.handle, dnn->engine, nullptr);
    if (status != dnnl_success) return failed(error, status, "matmul");
    return finish(made, "matmul", false, arena, primitive, error);
  });
}

clv_status clv__dnn_matmul_integers_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                           const clv__dnn_layout *bias, const clv__dnn_layout *destination, const float *scales,
                                           int64_t scale_count, int32_t destination_zero, const clv__dnn_post *posts,
                                           uint32_t post_count, bool is_probe, clv__arena *arena, clv__dnn_primitive **primitive,
                                           clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "matmul of integers", [&]() -> clv_status {
    dnnl_memory_desc_t weights;
    if (!any_desc(&weights, clv__dnn_layout_dtype(b), b->desc.ndims, b->desc.dims)) {
      return failed(error, dnnl_invalid_arguments, "matmul weights");
    }
    dnnl_matmul_desc_t desc;
    dnnl_status_t status =
        dnnl_matmul_desc_init(&desc, &a->desc, &weights, bias != nullptr ? &bias->desc : nullptr, &destination->desc);
    if (status != dnnl_success) return failed(error, status, "matmul");
    attributes attr;
    status = attr.make(posts, post_count);
    if (status == dnnl_success) status = attr.scale(scales, scale_count, destination->desc.ndims - 1, 0, destination_zero);
    if (status != dnnl_success) return failed(error, status, "matmul of integers");
    return create_integers(dnn, &desc, attr, "matmul of integers", is_probe, arena, primitive, error);
  });
}

clv_status clv__dnn_inner_product_create(clv__dnn *dnn, int64_t rows, int64_t inputs, int64_t outputs, bool bias,
                                         const clv__dnn_post *posts, uint32_t post_count, clv__arena *arena,
                                         clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "inner product", [&]() -> clv_status {
    dnnl_memory_desc_t source, weights, shift, destination;
    const int64_t source_dims[2] = {rows, inputs}, weights_dims[2] = {outputs, inputs}, destination_dims[2] = {rows, outputs};
    if (!dense_desc(&source, CLV_F32, 2, source_dims) || !any_desc(&weights, CLV_F32, 2, weights_dims) ||
        !dense_desc(&shift, CLV_F32, 1, &outputs) || !dense_desc(&destination, CLV_F32, 2, destination_dims)) {
      return failed(error, dnnl_invalid_arguments, "inner product");
    }
    dnnl_inner_product_desc_t desc;
    dnnl_status_t status = dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, &source, &weights,
                                                                bias ? &shift : nullptr, &destination);
    if (status != dnnl_success) return failed(error, status, "inner product");
    return create(dnn, &desc, posts, post_count, "inner product", arena, primitive, error);
  });
}

clv_status clv__dnn_pool_create(clv__dnn *dnn, clv__dnn_pool kind, const clv__dnn_layout *source, int32_t rank,
                                const int64_t *destination_dims, const clv__dnn_window *window, clv__arena *arena,
                                clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "pooling", [&]() -> clv_status {
    static const dnnl_alg_kind_t kinds[] = {dnnl_pooling_max, dnnl_pooling_avg_exclude_padding, dnnl_pooling_avg_include_padding};
    dnnl_memory_desc_t destination;
    if (!any_desc(&destination, clv__dnn_layout_dtype(source), rank, destination_dims))
      return failed(error, dnnl_invalid_arguments, "pooling");
    dnnl_dims_t strides, kernel, dilation, begin, end;
    for (int32_t i = 0; i < window->count; ++i) {
      strides[i] = window->stride[i];
      kernel[i] = window->kernel[i];
      dilation[i] = window->dilation[i] - 1;
      begin[i] = window->begin[i];
      end[i] = window->end[i];
    }
    dnnl_pooling_v2_desc_t desc;
    dnnl_status_t status = dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference, kinds[kind], &source->desc,
                                                             &destination, strides, kernel, dilation, begin, end);
    if (status != dnnl_success) return failed(error, status, "pooling");
    return create(dnn, &desc, nullptr, 0, "pooling", arena, primitive, error);
  });
}

clv_status clv__dnn_unary_create(clv__dnn *dnn, clv__dnn_unary algorithm, float alpha, float beta, const clv__dnn_layout *layout,
                                 clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "eltwise", [&]() -> clv_status {
    dnnl_eltwise_desc_t desc;
    dnnl_status_t status =
        dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, unary_kinds[algorithm], &layout->desc, alpha, beta);
    if (status != dnnl_success) return failed(error, status, "eltwise");
    return create(dnn, &desc, nullptr, 0, "eltwise", arena, primitive, error);
  });
}

clv_status clv__dnn_binary_create(clv__dnn *dnn, clv__dnn_binary algorithm, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                  const clv__dnn_layout *destination, const clv__dnn_post *posts, uint32_t post_count,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "binary", [&]() -> clv_status {
    dnnl_binary_desc_t desc;
    dnnl_status_t status = dnnl_binary_desc_init(&desc, binary_kinds[algorithm], &a->desc, &b->desc, &destination->desc);
    if (status != dnnl_success) return failed(error, status, "binary");
    return create(dnn, &desc, posts, post_count, "binary", arena, primitive, error);
  });
}

clv_status clv__dnn_affine_create(clv__dnn *dnn, const clv__dnn_layout *layout, bool relu, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "scale and shift", [&]() -> clv_status {
    dnnl_batch_normalization_desc_t desc;
    const unsigned flags = dnnl_use_global_stats | dnnl_use_scaleshift | (relu ? (unsigned)dnnl_fuse_norm_relu : 0u);
    dnnl_status_t status = dnnl_batch_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, 0.0f, flags);
    if (status != dnnl_success) return failed(error, status, "batch normalization");
    return create(dnn, &desc, nullptr, 0, "batch normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_instance_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, bool relu,
                                         clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "instance normalization", [&]() -> clv_status {
    dnnl_batch_normalization_desc_t desc;
    const unsigned flags = dnnl_use_scaleshift | (relu ? (unsigned)dnnl_fuse_norm_relu : 0u);
    dnnl_status_t status =
        dnnl_batch_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, epsilon, flags);
    if (status != dnnl_success) return failed(error, status, "instance normalization");
    return create(dnn, &desc, nullptr, 0, "instance normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_resize_create(clv__dnn *dnn, const clv__dnn_layout *source, bool linear, int32_t rank, const int64_t *dims,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "resampling", [&]() -> clv_status {
    dnnl_memory_desc_t destination;
    if (!any_desc(&destination, clv__dnn_layout_dtype(source), rank, dims))
      return failed(error, dnnl_invalid_arguments, "resampling");
    dnnl_resampling_desc_t desc;
    dnnl_status_t status = dnnl_resampling_forward_desc_init(&desc, dnnl_forward_inference,
                                                             linear ? dnnl_resampling_linear : dnnl_resampling_nearest, nullptr,
                                                             &source->desc, &destination);
    if (status != dnnl_success) return failed(error, status, "resampling");
    return create(dnn, &desc, nullptr, 0, "resampling", arena, primitive, error);
  });
}

clv_status clv__dnn_layer_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, clv__arena *arena,
                                      clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "layer normalization", [&]() -> clv_status {
    dnnl_layer_normalization_desc_t desc;
    dnnl_status_t status = dnnl_layer_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, nullptr,
                                                                      epsilon, dnnl_use_scaleshift);
    if (status != dnnl_success) return failed(error, status, "layer normalization");
    return create(dnn, &desc, nullptr, 0, "layer normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_lrn_create(clv__dnn *dnn, const clv__dnn_layout *layout, int64_t size, float alpha, float beta, float k,
                               clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "lrn", [&]() -> clv_status {
    dnnl_lrn_desc_t desc;
    dnnl_status_t status =
        dnnl_lrn_forward_desc_init(&desc, dnnl_forward_inference, dnnl_lrn_across_channels, &layout->desc, size, alpha, beta, k);
    if (status != dnnl_success) return failed(error, status, "lrn");
    return create(dnn, &desc, nullptr, 0, "lrn", arena, primitive, error);
  });
}

clv_status clv__dnn_softmax_create(clv__dnn *dnn, const clv__dnn_layout *source, const clv__dnn_layout *destination, int32_t axis,
                                   bool logarithm, clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "softmax", [&]() -> clv_status {
    dnnl_softmax_v2_desc_t desc;
    dnnl_status_t status =
        dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference, logarithm ? dnnl_softmax_log : dnnl_softmax_accurate,
                                          &source->desc, &destination->desc, axis);
    if (status != dnnl_success) return failed(error, status, "softmax");
    return create(dnn, &desc, nullptr, 0, "softmax", arena, primitive, error);
  });
}

clv_status clv__dnn_shuffle_create(clv__dnn *dnn, const clv__dnn_layout *layout, int32_t axis, int64_t group_size,
                                   clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "shuffle", [&]() -> clv_status {
    dnnl_shuffle_desc_t desc;
    dnnl_status_t status = dnnl_shuffle_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, axis, group_size);
    if (status != dnnl_success) return failed(error, status, "shuffle");
    return create(dnn, &desc, nullptr, 0, "shuffle", arena, primitive, error);
  });
}

clv_status clv__dnn_concat_create(clv__dnn *dnn, const clv__dnn_layout *const *sources, uint32_t count, int32_t axis,
                                  const clv__dnn_layout *destination, clv__arena *arena, clv__dnn_primitive **primitive,
                                  clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "concat", [&]() -> clv_status {
    auto *descs = static_cast<dnnl_memory_desc_t *>(clv__arena_allocate_zero(arena, count, sizeof(dnnl_memory_desc_t)));
    if (descs == nullptr) return clv__error_memory(error, count * sizeof(dnnl_memory_desc_t));
    for (uint32_t i = 0; i < count; ++i) descs[i] = sources[i]->desc;
    attributes attr;
    dnnl_status_t status = attr.make(nullptr, 0);
    if (status != dnnl_success) return failed(error, status, "concat");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_concat_primitive_desc_create(&made, &destination->desc, (int)count, axis, descs, attr.handle, dnn->engine);
    if (status != dnnl_success) return failed(error, status, "concat");
    return finish(made, "concat", false, arena, primitive, error);
  });
}

clv_status clv__dnn_reorder_create(clv__dnn *dnn, const clv__dnn_layout *from, const clv__dnn_layout *to, clv__arena *arena,
                                   clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return guarded(error, "reorder", [&]() -> clv_status {
    attributes attr;
    dnnl_status_t status = attr.make(nullptr, 0);
    if (status != dnnl_success) return failed(error, status, "reorder");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_reorder_primitive_desc_create(&made, &from->desc, dnn->engine, &to->desc, dnn->engine, attr.handle);
    if (status != dnnl_success) return failed(error, status, "reorder");
    return finish(made, "reorder", true, arena, primitive, error);
  });
}

void clv__dnn_primitive_release(clv__dnn_primitive *primitive) {
  if (primitive == nullptr || primitive->handle == nullptr) return;
  dnnl_primitive_destroy(static_cast<dnnl_primitive_t>(primitive->handle));
  primitive->handle = nullptr;
}

clv_status clv__dnn_memory_create(clv__dnn *dnn, const clv__dnn_layout *layout, void *data, clv__dnn_memory **memory,
                                  clv_error *error) {
  *memory = nullptr;
  return guarded(error, "memory", [&]() -> clv_status {
    dnnl_memory_t made = nullptr;
    dnnl_status_t status = dnnl_memory_create(&made, &layout->desc, dnn->engine, data);
    if (status != dnnl_success) return failed(error, status, "memory");
    *memory = reinterpret_cast<clv__dnn_memory *>(made);
    return CLV_OK;
  });
}

clv_status clv__dnn_memory_create_bytes(clv__dnn *dnn, size_t size_bytes, void *data, clv__dnn_memory **memory,
                                        clv_error *error) {
  *memory = nullptr;
  return guarded(error, "memory", [&]() -> clv_status {
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = {(dnnl_dim_t)size_bytes};
    dnnl_memory_t made = nullptr;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&desc, 1, dims, dnnl_u8, dnnl_a);
    if (status == dnnl_success) status = dnnl_memory_create(&made, &desc, dnn->engine, data);
    if (status != dnnl_success) return failed(error, status, "memory");
    *memory = reinterpret_cast<clv__dnn_memory *>(made);
    return CLV_OK;
  });
}

void clv__dnn_memory_release(clv__dnn_memory *memory) {
  if (memory != nullptr) dnnl_memory_destroy(reinterpret_cast<dnnl_memory_t>(memory));
}

clv_status clv__dnn_memory_move(clv__dnn_memory *memory, void *data, clv_error *error) {
  return guarded(error, "memory", [&]() -> clv_status {
    dnnl_status_t status = dnnl_memory_set_data_handle(reinterpret_cast<dnnl_memory_t>(memory), data);
    return status == dnnl_success ? CLV_OK : failed(error, status, "memory handle");
  });
}

clv_status clv__dnn_execute(clv__dnn *dnn, const clv__dnn_primitive *primitive, const clv__dnn_argument *arguments,
                            uint32_t count, clv_error *error) {
  return guarded(error, "execute", [&]() -> clv_status {
    dnnl_status_t status = dnnl_primitive_execute(static_cast<dnnl_primitive_t>(primitive->handle), dnn->stream, (int)count,
                                                  reinterpret_cast<const dnnl_exec_arg_t *>(arguments));
    return status == dnnl_success ? CLV_OK : failed(error, status, "execute");
  });
}

clv_status clv__dnn_reorder_now(clv__dnn *dnn, const clv__dnn_layout *from, void *from_data, const clv__dnn_layout *to,
                                void *to_data, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, dnn->allocator);
  clv__dnn_primitive *primitive = nullptr;
  clv__dnn_argument arguments[3] = {{CLV__DNN_SOURCE, nullptr}, {CLV__DNN_DESTINATION, nullptr}, {CLV__DNN_SCRATCH, nullptr}};
  void *scratch = nullptr;
  clv_status status = clv__dnn_reorder_create(dnn, from, to, &arena, &primitive, error);
  if (status == CLV_OK) status = clv__dnn_memory_create(dnn, from, from_data, &arguments[0].memory, error);
  if (status == CLV_OK) status = clv__dnn_memory_create(dnn, to, to_data, &arguments[1].memory, error);
  uint32_t count = 2;
  if (status == CLV_OK && primitive->scratch_bytes > 0) {
    scratch = clv__allocate(dnn->allocator, primitive->scratch_bytes);
    status = scratch == nullptr
                 ? clv__error_memory(error, primitive->scratch_bytes)
                 : clv__dnn_memory_create_bytes(dnn, primitive->scratch_bytes, scratch, &arguments[2].memory, error);
    count = 3;
  }
  if (status == CLV_OK) status = clv__dnn_execute(dnn, primitive, arguments, count, error);
  for (clv__dnn_argument &argument : arguments) clv__dnn_memory_release(argument.memory);
  clv__release(dnn->allocator, scratch);
  clv__dnn_primitive_release(primitive);
  clv__arena_finish(&arena);
  return status;
}
