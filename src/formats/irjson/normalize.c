/* ATen's normalisations and softmax. See lower.h. */
#include <math.h>

#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static const clv__aten_scalar zero = {CLV_F32, 0, 0}, one = {CLV_F32, 1, 1};

/* Returns an optional scale or shift, `given`, cast to `dtype`. If it is absent, returns ones or zeros of the given shape. */
static value affine(aten *n, value given, clv_dtype dtype, bool is_scale, const clv_tensor *shape) {
  if (given.id != CLV__NO_ID) return clv__aten_cast(n, given, dtype);
  return clv__aten_filled(n, dtype, is_scale ? one : zero, shape);
}

static bool later_outputs_read(const aten *n) {
  for (uint32_t i = 1; i < n->output_count; ++i) {
    if (n->output_read[i]) return true;
  }
  return false;
}

/* Lowers batch_norm(x, weight?, bias?, mean, var). If the file does not name the arguments, three inputs are x, mean and var. A
 * node in training mode is kept. */
static void lower_batch_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  bool training = strstr(n->stem, "no_training") == NULL && clv__aten_bool(n, "training", clv__aten_bool(n, "train", false));
  bool plain = !n->has_arguments && n->input_count == 3;
  value scale = plain ? clv__aten_absent() : clv__aten_optional(n, "weight", 1);
  value shift = plain ? clv__aten_absent() : clv__aten_optional(n, "bias", 2);
  value mean = clv__aten_optional(n, "running_mean", plain ? 1 : 3),
        variance = clv__aten_optional(n, "running_var", plain ? 2 : 4);
  if (training || later_outputs_read(n) || x.type.rank < 2 || mean.id == CLV__NO_ID || variance.id == CLV__NO_ID)
    clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  clv_tensor channels = {.rank = 1, .dims = {x.type.dims[1]}};
  clv_dtype dtype = x.type.dtype, own = scale.id != CLV__NO_ID   ? scale.type.dtype
                                        : shift.id != CLV__NO_ID ? shift.type.dtype
                                                                 : dtype;
  scale = affine(n, scale, own, true, &channels);
  shift = affine(n, shift, own, false, &channels);
  variance = clv__aten_cast(n, variance, mean.type.dtype);
  double eps = clv__aten_real(n, "eps", 1e-5), rest = eps - (double)(float)eps;
  if (mean.type.dtype == CLV_F64 && rest != 0) { /* the attribute is f32, so add the rest of eps to the variance */
    variance = clv__aten_call(n, "Add", CLV_F64, variance, clv__aten_number(n, CLV_F64, rest));
  }
  clv__aten_set_float(n, "epsilon", eps);
  clv__aten_return(n, 0, clv__aten_call(n, "BatchNormalization", dtype, x, scale, shift, mean, variance));
}

/* Returns the number of trailing axes that attrs.normalized_shape names. `shape` receives their dims. */
static int32_t normalized(aten *n, const value *x, clv_tensor *shape) {
  int64_t dims[CLV__ATEN_MAX_LIST];
  int32_t count = (int32_t)clv__aten_ints(n, "normalized_shape", dims);
  if (n->status == CLV_OK && (count < 1 || count > x->type.rank)) {
    clv__aten_fail(n, "attrs.normalized_shape has %d entries; expected 1 to %d, the rank of its input", (int)count,
                   (int)x->type.rank);
  }
  if (n->status != CLV_OK) return 0;
  *shape = (clv_tensor){.rank = count};
  for (int32_t i = 0; i < count; ++i) {
    shape->dims[i] = dims[i];
    if (dims[i] != x->type.dims[x->type.rank - count + i]) {
      clv__aten_fail(n, "attrs.normalized_shape[%d] is %lld, but the axis has size %lld", (int)i, (long long)dims[i],
                     (long long)x->type.dims[x->type.rank - count + i]);
    }
  }
  return count;
}

static void lower_layer_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  clv_tensor shape = {0};
  int32_t count = normalized(n, &x, &shape);
  clv_dtype dtype = x.type.dtype;
  value scale = affine(n, clv__aten_optional(n, "weight", 1), dtype, true, &shape);
  value shift = clv__aten_cast(n, clv__aten_optional(n, "bias", 2), dtype);
  clv__aten_set_int(n, "axis", -count);
  clv__aten_set_float(n, "epsilon", clv__aten_real(n, "eps", 1e-5));
  value outputs[3] = {{.type.dtype = dtype}, {.type.dtype = CLV_F32}, {.type.dtype = CLV_F32}}, inputs[3] = {x, scale, shift};
  uint32_t made = n->output_count > 1 ? 3 : 1;
  clv__aten_ops(n, "LayerNormalization", inputs, 3, outputs, made);
  for (uint32_t i = 0; i < made && i < n->output_count; ++i) {
    if (i == 0 || n->output_read[i]) clv__aten_return(n, i, outputs[i]);
  }
}

static void lower_rms_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  clv_tensor shape = {0};
  int32_t count = normalized(n, &x, &shape);
  clv_dtype dtype = x.type.dtype;
  double least = dtype == CLV_F64 ? 0x1p-52 : 0x1p-23; /* the machine epsilon of the dtype used for computing */
  if (later_outputs_read(n)) clv__aten_keep(n);
  value scale = affine(n, clv__aten_optional(n, "weight", 1), dtype, true, &shape);
  clv__aten_set_int(n, "axis", -count);
  clv__aten_set_float(n, "epsilon", clv__aten_real(n, "eps", least));
  clv__aten_return(n, 0, clv__aten_call(n, "RMSNormalization", dtype, x, scale));
}

static void lower_group_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  bool native = strcmp(n->stem, "native_group_norm") == 0;
  int64_t groups = clv__aten_int(n, native ? "group" : "num_groups", 0);
  if (x.type.rank < 2 || later_outputs_read(n)) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  clv_tensor channels = {.rank = 1, .dims = {x.type.dims[1]}};
  value scale = affine(n, clv__aten_optional(n, "weight", 1), x.type.dtype, true, &channels);
  value shift = affine(n, clv__aten_optional(n, "bias", 2), x.type.dtype, false, &channels);
  clv__aten_set_int(n, "num_groups", groups);
  clv__aten_set_float(n, "epsilon", clv__aten_real(n, "eps", 1e-5));
  clv__aten_return(n, 0, clv__aten_call(n, "GroupNormalization", x.type.dtype, x, scale, shift));
}

/* Lowers instance_norm with the statistics of its input. A node that uses stored statistics is kept. */
static void lower_instance_norm(aten *n) {
  value x = clv__aten_real_input(n, 0);
  if (x.type.rank < 3 || !clv__aten_bool(n, "use_input_stats", true) || (!n->has_arguments && n->input_count == 2) ||
      n->input_count > 3)
    clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  clv_tensor channels = {.rank = 1, .dims = {x.type.dims[1]}};
  value scale = affine(n, clv__aten_optional(n, "weight", 1), x.type.dtype, true, &channels);
  value shift = affine(n, clv__aten_optional(n, "bias", 2), x.type.dtype, false, &channels);
  clv__aten_set_float(n, "epsilon", clv__aten_real(n, "eps", 1e-5));
  clv__aten_return(n, 0, clv__aten_call(n, "InstanceNormalization", x.type.dtype, x, scale, shift));
}

/* attrs.dtype is the dtype to compute in. */
static void lower_softmax(aten *n) {
  value x = clv__aten_real_input(n, 0);
  clv_dtype dtype = clv__aten_dtype(n, "dtype", x.type.dtype);
  if (clv__aten_bool(n, "half_to_float", false)) dtype = CLV_F32;
  int64_t axis = clv__aten_axis(n, "dim", -1, x.type.rank);
  int32_t rank = x.type.rank;
  x = clv__aten_cast(n, x, dtype);
  if (rank == 0) x = clv__aten_reshape(n, x, 1, (int64_t[]){1});
  clv__aten_set_int(n, "axis", axis);
  value made = clv__aten_call(n, strstr(n->stem, "log") != NULL ? "LogSoftmax" : "Softmax", dtype, x);
  if (strcmp(n->stem, "_safe_softmax") == 0) { /* returns zeros where all inputs along the axis are minus infinity */
    value least = clv__aten_number(n, dtype, -INFINITY);
    clv__aten_set_int(n, "keepdims", 1);
    value most = clv__aten_call(n, "ReduceMax", dtype, x, clv__aten_vector(n, &axis, 1));
    made =
        clv__aten_call(n, "Where", dtype, clv__aten_call(n, "Equal", CLV_BOOL, most, least), clv__aten_number(n, dtype, 0), made);
  }
  clv__aten_return(n, 0, rank == 0 ? clv__aten_reshape(n, made, 0, NULL) : made);
}

const clv__aten_lowering clv__aten_normalize[] = {
    {"batch_norm", lower_batch_norm},
    {"native_batch_norm", lower_batch_norm},
    {"cudnn_batch_norm", lower_batch_norm},
    {"_native_batch_norm_legit_no_training", lower_batch_norm},
    {"layer_norm", lower_layer_norm},
    {"native_layer_norm", lower_layer_norm},
    {"rms_norm", lower_rms_norm},
    {"_fused_rms_norm", lower_rms_norm},
    {"group_norm", lower_group_norm},
    {"native_group_norm", lower_group_norm},
    {"instance_norm", lower_instance_norm},
    {"softmax", lower_softmax},
    {"_softmax", lower_softmax},
    {"_safe_softmax", lower_softmax},
    {"log_softmax", lower_softmax},
    {"_log_softmax", lower_softmax},
    {NULL, NULL},
};
