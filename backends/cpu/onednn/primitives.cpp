// Creates primitives: an operation, its fused posts, and oneDNN's implementation of it. Written for the descriptor interface of
// oneDNN 2 (dnnl_*_desc_init), which oneDNN 3 changes.
#include <cmath>
#include <cstring>

#include "own.h"

namespace {

const dnnl_alg_kind_t unary_kinds[] = {dnnl_eltwise_relu,     dnnl_eltwise_elu,       dnnl_eltwise_tanh, dnnl_eltwise_logistic,
                                       dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_tanh, dnnl_eltwise_clip, dnnl_eltwise_hardswish,
                                       dnnl_eltwise_swish,    dnnl_eltwise_mish,      dnnl_eltwise_abs,  dnnl_eltwise_sqrt,
                                       dnnl_eltwise_linear,   dnnl_eltwise_round};
const dnnl_alg_kind_t binary_kinds[] = {dnnl_binary_add, dnnl_binary_sub, dnnl_binary_mul, dnnl_binary_div};

// Owns the attributes while a primitive is created.
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
        // oneDNN's Relu for SSE4.1 multiplies negative numbers by alpha, so minus infinity would become NaN. Use a clip instead.
        const bool bounds =
            post.algorithm == CLV__DNN_RELU && post.alpha == 0.0f && dnnl_get_effective_cpu_isa() <= dnnl_cpu_isa_sse41;
        const dnnl_alg_kind_t kind = bounds ? dnnl_eltwise_clip : unary_kinds[post.algorithm];
        status = dnnl_post_ops_append_eltwise(list, factor, kind, post.alpha, bounds ? INFINITY : post.beta);
      } else {
        status = dnnl_post_ops_append_binary(list, binary_kinds[post.algorithm], &post.layout->desc);
      }
    }
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(handle, list);
    if (list != nullptr) dnnl_post_ops_destroy(list);
    return status;
  }
  // Sets the factors and zero points of a product of integers. Several factors apply along `axis` of the destination.
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

// Reads the name of the chosen implementation; rejects a reference implementation.
clv_status chosen(dnnl_primitive_desc_t desc, const char *call, const char **name, clv_error *error) {
  *name = "";
  (void)dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, name);
  if (std::strncmp(*name, "ref", 3) != 0) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: %s has only a slow reference implementation (%s)", call, *name);
}

const dnnl_memory_desc_t *wanted(dnnl_primitive_desc_t desc, dnnl_query_t what, int index) {
  const dnnl_memory_desc_t *layout = dnnl_primitive_desc_query_md(desc, what, index);
  return layout != nullptr && layout->ndims > 0 ? layout : nullptr;
}

// Creates the primitive and its record; always destroys `desc`.
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
  made->has_run = static_cast<bool *>(clv__arena_allocate_zero(arena, 1, sizeof(bool)));
  made->implementation = clv__arena_string(arena, name, std::strlen(name));
  const dnnl_memory_desc_t *source = wanted(desc, dnnl_query_src_md, 0);
  const dnnl_memory_desc_t *weights = wanted(desc, dnnl_query_weights_md, 0);
  const dnnl_memory_desc_t *destination = wanted(desc, dnnl_query_dst_md, 0);
  if (source != nullptr) made->source = clv__dnn_layout_keep(arena, *source);
  if (weights != nullptr) made->weights = clv__dnn_layout_keep(arena, *weights);
  if (destination != nullptr) made->destination = clv__dnn_layout_keep(arena, *destination);
  if (made->has_run == nullptr || made->implementation == nullptr || (source != nullptr && made->source == nullptr) ||
      (weights != nullptr && made->weights == nullptr) || (destination != nullptr && made->destination == nullptr)) {
    return clv__error_memory(error, sizeof(clv__dnn_layout));
  }
  const dnnl_memory_desc_t *scratch = wanted(desc, dnnl_query_scratchpad_md, 0);
  made->scratch_bytes = scratch != nullptr ? dnnl_memory_desc_get_size(scratch) : 0;
  dnnl_primitive_t handle = nullptr;
  CLV__TRY(clv__dnn_check_headroom(error));
  dnnl_status_t status = dnnl_primitive_create(&handle, desc);
  if (status != dnnl_success) return clv__dnn_failed(error, status, call);
  made->handle = handle;
  *primitive = made;
  return CLV_OK;
}

clv_status create(clv__dnn *dnn, const_dnnl_op_desc_t op, const clv__dnn_post *posts, uint32_t post_count, const char *call,
                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error, bool allow_reference = false) {
  attributes attr;
  dnnl_status_t status = attr.make(posts, post_count);
  if (status != dnnl_success) return clv__dnn_failed(error, status, call);
  dnnl_primitive_desc_t desc = nullptr;
  status = dnnl_primitive_desc_create(&desc, op, attr.handle, dnn->engine, nullptr);
  if (status != dnnl_success) return clv__dnn_failed(error, status, call);
  return finish(desc, call, allow_reference, arena, primitive, error);
}

// Creates a primitive on integers, or only checks whether it is usable; always destroys `desc`.
clv_status finish_integers(dnnl_primitive_desc_t desc, const char *call, bool is_probe, clv__arena *arena,
                           clv__dnn_primitive **primitive, clv_error *error) {
  if (!is_probe) return finish(desc, call, false, arena, primitive, error);
  const char *name;
  const clv_status usable = chosen(desc, call, &name, error);
  dnnl_primitive_desc_destroy(desc);
  return usable;
}

// `weights_any`: the primitive chooses the layout of `b`.
clv_status describe_matmul(const clv__dnn_layout *a, const clv__dnn_layout *b, bool weights_any, const clv__dnn_layout *bias,
                           const clv__dnn_layout *destination, dnnl_matmul_desc_t *desc, clv_error *error) {
  dnnl_memory_desc_t weights = b->desc;
  if (weights_any && !clv__dnn_any_desc(&weights, clv__dnn_layout_dtype(b), b->desc.ndims, b->desc.dims)) {
    return clv__dnn_failed(error, dnnl_invalid_arguments, "matmul weights");
  }
  const dnnl_status_t status =
      dnnl_matmul_desc_init(desc, &a->desc, &weights, bias != nullptr ? &bias->desc : nullptr, &destination->desc);
  return status == dnnl_success ? CLV_OK : clv__dnn_failed(error, status, "matmul");
}

}  // namespace

clv_status clv__dnn_convolution_create(clv__dnn *dnn, const clv__dnn_convolution *spec, clv__arena *arena,
                                       clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "convolution", [&]() -> clv_status {
    dnnl_memory_desc_t source, weights, destination, bias;
    if (spec->source_layout != nullptr) {
      source = spec->source_layout->desc;
    } else if (!clv__dnn_any_desc(&source, spec->source.dtype, spec->source.rank, spec->source.dims)) {
      return clv__dnn_failed(error, dnnl_invalid_arguments, "convolution source");
    }
    if (spec->destination_layout != nullptr) {
      destination = spec->destination_layout->desc;
    } else if (!clv__dnn_any_desc(&destination, spec->destination.dtype, spec->destination.rank, spec->destination.dims)) {
      return clv__dnn_failed(error, dnnl_invalid_arguments, "convolution destination");
    }
    if (!clv__dnn_any_desc(&weights, spec->weights.dtype, spec->weights.rank, spec->weights.dims) ||
        (spec->bias_count > 0 && !clv__dnn_dense_desc(&bias, CLV_F32, 1, &spec->bias_count))) {
      return clv__dnn_failed(error, dnnl_invalid_arguments, "convolution weights");
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
      if (status != dnnl_success) return clv__dnn_failed(error, status, "deconvolution");
      return create(dnn, &desc, spec->posts, spec->post_count, "deconvolution", arena, primitive, error);
    }
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, inference, spec->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, &source, &weights, bias_desc,
        &destination, strides, dilates, begin, end);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "convolution");
    const char *call = spec->scales != nullptr ? "convolution of integers" : "convolution";
    attributes attr;
    dnnl_primitive_desc_t made = nullptr;
    status = attr.make(spec->posts, spec->post_count);
    if (status == dnnl_success && spec->scales != nullptr)
      status = attr.scale(spec->scales, spec->scale_count, 1, spec->source_zero, spec->destination_zero);
    if (status == dnnl_success) status = clv__dnn_convolution_choose(dnn, desc, attr.handle, &made);
    if (status != dnnl_success) return clv__dnn_failed(error, status, call);
    if (spec->scales != nullptr) return finish_integers(made, call, spec->is_probe, arena, primitive, error);
    return finish(made, call, false, arena, primitive, error);
  });
}

clv_status clv__dnn_matmul_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b, bool weights_any,
                                  const clv__dnn_layout *bias, const clv__dnn_layout *destination, float scale,
                                  const clv__dnn_post *posts, uint32_t post_count, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "matmul", [&]() -> clv_status {
    dnnl_matmul_desc_t desc;
    CLV__TRY(describe_matmul(a, b, weights_any, bias, destination, &desc, error));
    attributes attr;
    dnnl_status_t status = attr.make(posts, post_count);
    if (status == dnnl_success && scale != 1.0f) {
      status = dnnl_primitive_attr_set_output_scales(attr.handle, 1, 0, &scale);
    }
    if (status != dnnl_success) return clv__dnn_failed(error, status, "matmul attributes");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_primitive_desc_create(&made, &desc, attr.handle, dnn->engine, nullptr);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "matmul");
    return finish(made, "matmul", false, arena, primitive, error);
  });
}

clv_status clv__dnn_matmul_integers_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                           const clv__dnn_layout *bias, const clv__dnn_layout *destination, const float *scales,
                                           int64_t scale_count, int32_t destination_zero, const clv__dnn_post *posts,
                                           uint32_t post_count, bool is_probe, clv__arena *arena, clv__dnn_primitive **primitive,
                                           clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "matmul of integers", [&]() -> clv_status {
    dnnl_matmul_desc_t desc;
    CLV__TRY(describe_matmul(a, b, true, bias, destination, &desc, error));
    attributes attr;
    dnnl_status_t status = attr.make(posts, post_count);
    if (status == dnnl_success) status = attr.scale(scales, scale_count, destination->desc.ndims - 1, 0, destination_zero);
    dnnl_primitive_desc_t made = nullptr;
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &desc, attr.handle, dnn->engine, nullptr);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "matmul of integers");
    return finish_integers(made, "matmul of integers", is_probe, arena, primitive, error);
  });
}

clv_status clv__dnn_pool_create(clv__dnn *dnn, clv__dnn_pool kind, const clv__dnn_layout *source, int32_t rank,
                                const int64_t *destination_dims, const clv__dnn_window *window, clv__arena *arena,
                                clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "pooling", [&]() -> clv_status {
    static const dnnl_alg_kind_t kinds[] = {dnnl_pooling_max, dnnl_pooling_avg_exclude_padding, dnnl_pooling_avg_include_padding};
    dnnl_memory_desc_t destination;
    if (!clv__dnn_any_desc(&destination, clv__dnn_layout_dtype(source), rank, destination_dims))
      return clv__dnn_failed(error, dnnl_invalid_arguments, "pooling");
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
    if (status != dnnl_success) return clv__dnn_failed(error, status, "pooling");
    return create(dnn, &desc, nullptr, 0, "pooling", arena, primitive, error);
  });
}

clv_status clv__dnn_unary_create(clv__dnn *dnn, clv__dnn_unary algorithm, float alpha, float beta, const clv__dnn_layout *layout,
                                 clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "eltwise", [&]() -> clv_status {
    dnnl_eltwise_desc_t desc;
    dnnl_status_t status =
        dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, unary_kinds[algorithm], &layout->desc, alpha, beta);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "eltwise");
    return create(dnn, &desc, nullptr, 0, "eltwise", arena, primitive, error);
  });
}

clv_status clv__dnn_binary_create(clv__dnn *dnn, clv__dnn_binary algorithm, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                  const clv__dnn_layout *destination, const clv__dnn_post *posts, uint32_t post_count,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "binary", [&]() -> clv_status {
    dnnl_binary_desc_t desc;
    dnnl_status_t status = dnnl_binary_desc_init(&desc, binary_kinds[algorithm], &a->desc, &b->desc, &destination->desc);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "binary");
    return create(dnn, &desc, posts, post_count, "binary", arena, primitive, error);
  });
}

clv_status clv__dnn_affine_create(clv__dnn *dnn, const clv__dnn_layout *layout, bool relu, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "scale and shift", [&]() -> clv_status {
    dnnl_batch_normalization_desc_t desc;
    const unsigned flags = dnnl_use_global_stats | dnnl_use_scaleshift | (relu ? (unsigned)dnnl_fuse_norm_relu : 0u);
    // oneDNN divides by the root of variance + epsilon. The variance is 0, so epsilon is 1. With an epsilon of 0, padding
    // channels would compute 0 / 0, a NaN.
    dnnl_status_t status = dnnl_batch_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, 1.0f, flags);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "batch normalization");
    return create(dnn, &desc, nullptr, 0, "batch normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_instance_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, bool relu,
                                         clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "instance normalization", [&]() -> clv_status {
    dnnl_batch_normalization_desc_t desc;
    const unsigned flags = dnnl_use_scaleshift | (relu ? (unsigned)dnnl_fuse_norm_relu : 0u);
    dnnl_status_t status =
        dnnl_batch_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, epsilon, flags);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "instance normalization");
    return create(dnn, &desc, nullptr, 0, "instance normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_resize_create(clv__dnn *dnn, const clv__dnn_layout *source, bool linear, int32_t rank, const int64_t *dims,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "resampling", [&]() -> clv_status {
    dnnl_memory_desc_t destination;
    if (!clv__dnn_any_desc(&destination, clv__dnn_layout_dtype(source), rank, dims))
      return clv__dnn_failed(error, dnnl_invalid_arguments, "resampling");
    dnnl_resampling_desc_t desc;
    dnnl_status_t status = dnnl_resampling_forward_desc_init(&desc, dnnl_forward_inference,
                                                             linear ? dnnl_resampling_linear : dnnl_resampling_nearest, nullptr,
                                                             &source->desc, &destination);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "resampling");
    return create(dnn, &desc, nullptr, 0, "resampling", arena, primitive, error);
  });
}

clv_status clv__dnn_layer_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, clv__arena *arena,
                                      clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "layer normalization", [&]() -> clv_status {
    dnnl_layer_normalization_desc_t desc;
    dnnl_status_t status = dnnl_layer_normalization_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, nullptr,
                                                                      epsilon, dnnl_use_scaleshift);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "layer normalization");
    return create(dnn, &desc, nullptr, 0, "layer normalization", arena, primitive, error);
  });
}

clv_status clv__dnn_lrn_create(clv__dnn *dnn, const clv__dnn_layout *layout, int64_t size, float alpha, float beta, float k,
                               clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "lrn", [&]() -> clv_status {
    dnnl_lrn_desc_t desc;
    dnnl_status_t status =
        dnnl_lrn_forward_desc_init(&desc, dnnl_forward_inference, dnnl_lrn_across_channels, &layout->desc, size, alpha, beta, k);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "lrn");
    return create(dnn, &desc, nullptr, 0, "lrn", arena, primitive, error);
  });
}

clv_status clv__dnn_shuffle_create(clv__dnn *dnn, const clv__dnn_layout *layout, int32_t axis, int64_t group_size,
                                   clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "shuffle", [&]() -> clv_status {
    dnnl_shuffle_desc_t desc;
    dnnl_status_t status = dnnl_shuffle_forward_desc_init(&desc, dnnl_forward_inference, &layout->desc, axis, group_size);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "shuffle");
    return create(dnn, &desc, nullptr, 0, "shuffle", arena, primitive, error);
  });
}

clv_status clv__dnn_concat_create(clv__dnn *dnn, const clv__dnn_layout *const *sources, uint32_t count, int32_t axis,
                                  const clv__dnn_layout *destination, clv__arena *arena, clv__dnn_primitive **primitive,
                                  clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "concat", [&]() -> clv_status {
    auto *descs = static_cast<dnnl_memory_desc_t *>(clv__arena_allocate_zero(arena, count, sizeof(dnnl_memory_desc_t)));
    if (descs == nullptr) return clv__error_memory(error, count * sizeof(dnnl_memory_desc_t));
    for (uint32_t i = 0; i < count; ++i) descs[i] = sources[i]->desc;
    attributes attr;
    dnnl_status_t status = attr.make(nullptr, 0);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "concat");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_concat_primitive_desc_create(&made, &destination->desc, (int)count, axis, descs, attr.handle, dnn->engine);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "concat");
    return finish(made, "concat", false, arena, primitive, error);
  });
}

clv_status clv__dnn_reorder_create(clv__dnn *dnn, const clv__dnn_layout *from, const clv__dnn_layout *to, clv__arena *arena,
                                   clv__dnn_primitive **primitive, clv_error *error) {
  *primitive = nullptr;
  return clv__dnn_guarded(error, "reorder", [&]() -> clv_status {
    attributes attr;
    dnnl_status_t status = attr.make(nullptr, 0);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "reorder");
    dnnl_primitive_desc_t made = nullptr;
    status = dnnl_reorder_primitive_desc_create(&made, &from->desc, dnn->engine, &to->desc, dnn->engine, attr.handle);
    if (status != dnnl_success) return clv__dnn_failed(error, status, "reorder");
    return finish(made, "reorder", true, arena, primitive, error);
  });
}

void clv__dnn_primitive_release(clv__dnn_primitive *primitive) {
  if (primitive == nullptr || primitive->handle == nullptr) return;
  dnnl_primitive_destroy(static_cast<dnnl_primitive_t>(primitive->handle));
  primitive->handle = nullptr;
}
