// Layouts: how oneDNN describes tensors in memory.
#include <cstring>

#include "own.h"

const clv__dnn_layout *clv__dnn_layout_keep(clv__arena *arena, const dnnl_memory_desc_t &desc) {
  return static_cast<const clv__dnn_layout *>(clv__arena_copy(arena, &desc, sizeof desc));
}

// oneDNN's data type for `dtype`; dnnl_data_type_undef if layouts do not support it.
dnnl_data_type_t clv__dnn_data_type(clv_dtype dtype) {
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

bool clv__dnn_any_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_dims_t copy;
  if (rank < 1 || rank > DNNL_MAX_NDIMS) return false;
  for (int32_t i = 0; i < rank; ++i) copy[i] = dims[i];
  return dnnl_memory_desc_init_by_tag(desc, rank, copy, clv__dnn_data_type(dtype), dnnl_format_tag_any) == dnnl_success;
}

bool clv__dnn_dense_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_dims_t copy, strides;
  if (rank < 1 || rank > DNNL_MAX_NDIMS) return false;
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    copy[i] = dims[i];
    strides[i] = stride;
    stride *= dims[i] > 0 ? dims[i] : 1;
  }
  return dnnl_memory_desc_init_by_strides(desc, rank, copy, clv__dnn_data_type(dtype), strides) == dnnl_success;
}

const clv__dnn_layout *clv__dnn_layout_dense(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  dnnl_memory_desc_t desc;
  const int64_t one = 1;
  if (rank == 0) return clv__dnn_layout_dense(arena, dtype, 1, &one);
  return clv__dnn_dense_desc(&desc, dtype, rank, dims) ? clv__dnn_layout_keep(arena, desc) : nullptr;
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
  if (dnnl_memory_desc_init_by_strides(&desc, rank, dims_copy, clv__dnn_data_type(dtype), strides_copy) != dnnl_success)
    return nullptr;
  return clv__dnn_layout_keep(arena, desc);
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
  return dnnl_memory_desc_init_by_tag(&desc, 2, copy, clv__dnn_data_type(dtype), dnnl_BA16a64b) == dnnl_success
             ? clv__dnn_layout_keep(arena, desc)
             : nullptr;
}

bool clv__dnn_layout_is_panels(const clv__dnn_layout *layout) {
  dnnl_memory_desc_t desc;
  if (layout->desc.ndims != 2) return false;
  return dnnl_memory_desc_init_by_tag(&desc, 2, layout->desc.dims, layout->desc.data_type, dnnl_BA16a64b) == dnnl_success &&
         dnnl_memory_desc_equal(&desc, &layout->desc) != 0;
}

const clv__dnn_layout *clv__dnn_layout_units(clv__arena *arena, clv_dtype dtype, const int64_t dims[3]) {
  dnnl_memory_desc_t desc;
  const dnnl_dims_t copy = {dims[0], dims[1], dims[2]};
  return dnnl_memory_desc_init_by_tag(&desc, 3, copy, clv__dnn_data_type(dtype), dnnl_aBc16b) == dnnl_success
             ? clv__dnn_layout_keep(arena, desc)
             : nullptr;
}

// Describes channels in blocks of `block`, or channels last if it is 0. Returns false if there is no such layout of this rank.
static bool channels_desc(dnnl_memory_desc_t *desc, const dnnl_memory_desc_t &like, int64_t block, const dnnl_dims_t dims) {
  static const dnnl_format_tag_t last[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  static const dnnl_format_tag_t by16[] = {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c};
  static const dnnl_format_tag_t by8[] = {dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c};
  const dnnl_format_tag_t *tags = block == 0 ? last : block == 16 ? by16 : block == 8 ? by8 : nullptr;
  if (tags == nullptr || like.ndims < 3 || like.ndims > 5) return false;
  return dnnl_memory_desc_init_by_tag(desc, like.ndims, dims, like.data_type, tags[like.ndims - 3]) == dnnl_success;
}

// The block for which channels_desc() yields this layout; -1: none.
static int64_t channels_blocked(const dnnl_memory_desc_t &desc) {
  if (desc.format_kind != dnnl_blocked) return -1;
  const dnnl_blocking_desc_t &blocking = desc.format_desc.blocking;
  const int64_t block = blocking.inner_nblks == 0 ? 0 : blocking.inner_nblks == 1 ? blocking.inner_blks[0] : -1;
  dnnl_memory_desc_t same;
  return channels_desc(&same, desc, block, desc.dims) && dnnl_memory_desc_equal(&same, &desc) != 0 ? block : -1;
}

const clv__dnn_layout *clv__dnn_layout_rechannel(clv__arena *arena, const clv__dnn_layout *layout, const int64_t *dims) {
  dnnl_memory_desc_t made;
  dnnl_dims_t copy;
  const int64_t block = channels_blocked(layout->desc);
  if (block < 0) return nullptr;
  for (int i = 0; i < layout->desc.ndims; ++i) copy[i] = dims[i];
  return channels_desc(&made, layout->desc, block, copy) ? clv__dnn_layout_keep(arena, made) : nullptr;
}

int64_t clv__dnn_layout_channels(const clv__dnn_layout *layout) {
  const int64_t block = channels_blocked(layout->desc);
  return block == 0 ? layout->desc.dims[1] : block > 0 ? block : 0;
}

const clv__dnn_layout *clv__dnn_layout_permuted(clv__arena *arena, const clv__dnn_layout *layout, const int32_t *perm) {
  dnnl_memory_desc_t desc;
  int places[DNNL_MAX_NDIMS];
  if (layout->desc.format_kind != dnnl_blocked) return nullptr;
  for (int i = 0; i < layout->desc.ndims; ++i) places[perm[i]] = i;
  if (dnnl_memory_desc_permute_axes(&desc, &layout->desc, places) != dnnl_success) return nullptr;
  return clv__dnn_layout_keep(arena, desc);
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
  return clv__dnn_layout_keep(arena, desc);
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
  // One block over an axis is row-major if it is not partial and every axis after it has extent 1.
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
    if (clv__dnn_data_type(dtype) == layout->desc.data_type) return dtype;
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

int64_t clv__dnn_layout_memory_count(const clv__dnn_layout *layout) {
  const dnnl_memory_desc_t &desc = layout->desc;
  if (desc.format_kind != dnnl_blocked || desc.offset0 != 0 || desc.extra.flags != 0) return 0;
  int64_t count = 1;
  for (int i = 0; i < desc.ndims; ++i) count *= desc.padded_dims[i];
  return (size_t)count * dnnl_data_type_size(desc.data_type) == dnnl_memory_desc_get_size(&desc) ? count : 0;
}

bool clv__dnn_layout_winograd(const clv__dnn_layout *layout, clv__dnn_winograd *winograd) {
  const dnnl_memory_desc_t &desc = layout->desc;
  // oneDNN does not document these orders. A test checks them against oneDNN's own reorder, in the version that this was built
  // with. Reject other versions.
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
