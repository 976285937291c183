/* See parts.h. Winograd's algorithm needs 36 floats of scratch for every 16 floats of the source and the destination. For a
 * convolution of many channels over a large image, the scratch exceeds all other memory of a partition. The sum over input
 * channels can be split into parts: in a single image with blocked channels, the channels of a part are contiguous. The parts
 * take no more arithmetic than the whole, but each part after the first reads and writes the destination once more. */
#include "parts.h"

enum {
  LARGE_BYTES = 20 << 20,    /* divide only if the scratch is larger; this is an f32 image of 80 channels, 256 by 256 */
  CONSTANTS_PER_SCRATCH = 8, /* if constants are this many times larger, scratch does not dominate memory */
  LEAST_CHANNELS = 64        /* channels per part: with fewer, accessing the destination takes most of the time */
};

/* Total bytes of the program's constants. */
static size_t constant_bytes(const clv__cpu_program *program) {
  size_t total = 0, size_bytes;
  for (uint32_t i = 0; i < program->value_count; ++i) {
    const clv__cpu_value *value = &program->values[i];
    if (value->is_constant && clv__tensor_size_bytes(&value->type, &size_bytes) && total < SIZE_MAX - size_bytes)
      total += size_bytes;
  }
  return total;
}

static bool may_part(const clv__cpu_variant *variant, const clv__dnn_convolution *spec, const clv__dnn_primitive *whole) {
  clv__dnn_winograd winograd;
  if (!spec->winograd || whole->scratch_bytes <= LARGE_BYTES || spec->source.dims[0] != 1) return false;
  if (spec->source.dims[1] != spec->weights.dims[1] || clv__dnn_layout_is_plain(whole->source)) return false;
  for (uint32_t i = 0; i < spec->post_count; ++i) {
    if (spec->posts[i].kind != CLV__DNN_POST_UNARY) return false;
  }
  return clv__dnn_layout_winograd(whole->weights, &winograd) &&
         constant_bytes(variant->program) / CONSTANTS_PER_SCRATCH < whole->scratch_bytes;
}

/* Whether the primitive of a part uses the layouts of the whole convolution. In these, the channels of the part are
 * contiguous. */
static bool fits(const clv__dnn_convolution *spec, const clv__dnn_primitive *whole, const clv__dnn_primitive *part,
                 clv__arena *arena) {
  clv__dnn_winograd winograd;
  const clv__dnn_layout *source = clv__dnn_layout_rechannel(arena, whole->source, spec->source.dims);
  return source != NULL && clv__dnn_layout_equal(source, part->source) &&
         clv__dnn_layout_equal(whole->destination, part->destination) && clv__dnn_layout_winograd(part->weights, &winograd);
}

/* Creates part `index` of `count`. */
static clv_status create_part(clv__cpu_variant *variant, const clv__dnn_convolution *spec, uint32_t index, uint32_t count,
                              clv__dnn_primitive **primitive, clv_error *error) {
  clv__dnn_convolution own = *spec;
  clv__dnn_post posts[CLV__CPU_MAX_POSTS + 1] = {{.kind = CLV__DNN_POST_SUM}};
  own.source.dims[1] = own.weights.dims[1] = spec->source.dims[1] / count;
  own.posts = posts;
  own.post_count = 0;
  if (index > 0) own.bias_count = 0;
  if (index > 0) own.post_count = 1;
  if (index + 1 == count) {
    for (uint32_t i = 0; i < spec->post_count; ++i) posts[own.post_count++] = spec->posts[i];
  }
  return clv__dnn_convolution_create(variant->device->dnn, &own, &variant->arena, primitive, error);
}

void clv__cpu_parts_release(clv__cpu_parts *parts) {
  for (uint32_t i = 0; i < parts->count; ++i) clv__dnn_primitive_release(parts->primitives[i]);
  *parts = (clv__cpu_parts){0};
}

/* Creates all `count` parts. If oneDNN does not support one of them, or uses other layouts for it, releases all, sets
 * parts->count to 0 and returns CLV_OK. */
static clv_status create_parts(clv__cpu_variant *variant, const clv__dnn_convolution *spec, const clv__dnn_primitive *whole,
                               uint32_t count, clv__cpu_parts *parts, clv_error *error) {
  clv__dnn_convolution piece = *spec;
  *parts = (clv__cpu_parts){.channels = spec->source.dims[1] / count};
  piece.source.dims[1] = parts->channels;
  while (parts->count < count) {
    clv__dnn_primitive *made = NULL;
    const clv_status status = create_part(variant, spec, parts->count, count, &made, error);
    if (status == CLV_OK) parts->primitives[parts->count++] = made;
    if (status == CLV_OK && fits(&piece, whole, made, &variant->arena)) continue;
    clv__cpu_parts_release(parts);
    return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
  }
  return CLV_OK;
}

static size_t scratch_of(const clv__cpu_parts *parts) {
  size_t most = 0;
  for (uint32_t i = 0; i < parts->count; ++i) {
    if (parts->primitives[i]->scratch_bytes > most) most = parts->primitives[i]->scratch_bytes;
  }
  return most;
}

clv_status clv__cpu_parts_choose(clv__cpu_variant *variant, const clv__dnn_convolution *spec, const clv__dnn_primitive *whole,
                                 clv__cpu_parts *parts, clv_error *error) {
  size_t best = whole->scratch_bytes;
  *parts = (clv__cpu_parts){0};
  if (!may_part(variant, spec, whole)) return CLV_OK;
  for (uint32_t count = 2; count <= CLV__CPU_MOST_PARTS && best > LARGE_BYTES; count *= 2) {
    const int64_t channels = spec->source.dims[1] / count;
    clv__cpu_parts tried;
    if (channels < LEAST_CHANNELS || spec->source.dims[1] % (16 * (int64_t)count) != 0) break;
    const clv_status status = create_parts(variant, spec, whole, count, &tried, error);
    const size_t scratch = scratch_of(&tried);
    if (status != CLV_OK || tried.count == 0 || scratch > best / 4 * 3) {
      clv__cpu_parts_release(&tried);
      if (status == CLV_OK) break;
      clv__cpu_parts_release(parts);
      return status;
    }
    clv__cpu_parts_release(parts);
    *parts = tried;
    best = scratch;
  }
  return CLV_OK;
}
