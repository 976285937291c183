/* Conditions that the table cannot express as dtypes: attributes that OpenVINO computes wrongly or does not support. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

static bool refuse(char reason[160], const char *what) {
  snprintf(reason, 160, "%s", what);
  return false;
}

/* A cast from f32 is accepted only to f32, bool and i32, and with the option halves=wide also to f16 and bf16. Inside a partition
 * OpenVINO drops a cast to f16 and with it the rounding, and it does not round the results of f16 arithmetic. A cast to i64 is
 * accepted only from types whose values fit in 32 bits: see the table. */
bool clv__openvino_accepts_cast(const clv__openvino_node *node, char reason[160]) {
  clv_dtype to = node->outputs[0].dtype;
  if (node->halves_are_wide && (to == CLV_F16 || to == CLV_BF16)) return true;
  if (node->inputs[0].dtype != CLV_F32 || to == CLV_F32 || to == CLV_BOOL || to == CLV_I32) return true;
  snprintf(reason, 160, "a cast from f32 to %s", clv_dtype_name(to));
  return false;
}

bool clv__openvino_accepts_mod(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_int(node->attributes, "fmod", 0) != 0) return refuse(reason, "Mod with fmod");
  return true;
}

bool clv__openvino_accepts_max_pool(const clv__openvino_node *node, char reason[160]) {
  if (clv__openvino_has_output(node, 1)) return refuse(reason, "MaxPool with indices");
  if (clv__attribute_int(node->attributes, "ceil_mode", 0) != 0) return refuse(reason, "MaxPool with ceil_mode");
  return true;
}

bool clv__openvino_accepts_lp_pool(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_int(node->attributes, "ceil_mode", 0) != 0) return refuse(reason, "LpPool with ceil_mode");
  return true;
}

/* OpenVINO truncates the bias to an integer, and shifts a window of even size by one channel. */
bool clv__openvino_accepts_lrn(const clv__openvino_node *node, char reason[160]) {
  float bias = clv__attribute_float(node->attributes, "bias", 1.0f);
  if (bias != floorf(bias)) return refuse(reason, "LRN with a bias that is not a whole number");
  if (clv__attribute_int(node->attributes, "size", 1) % 2 == 0) return refuse(reason, "LRN over an even number of channels");
  return true;
}

/* Before opset 13 all axes from `axis` on are flattened into one. OpenVINO uses only the first of them. */
bool clv__openvino_accepts_softmax(const clv__openvino_node *node, char reason[160]) {
  if (node->opset >= 13) return true;
  const clv_tensor *input = &node->inputs[0];
  int64_t axis = clv__attribute_int(node->attributes, "axis", 1);
  if (input->rank == CLV_RANK_UNKNOWN) return refuse(reason, "softmax below opset 13 of an input of unknown rank");
  for (int64_t i = axis + (axis < 0 ? input->rank : 0) + 1; i < input->rank; ++i) {
    if (input->dims[i] != 1) return refuse(reason, "softmax below opset 13 over more axes than one, or of unknown size");
  }
  return true;
}

/* OpenVINO requires indices with the same size as the data along all other axes. */
bool clv__openvino_accepts_gather_elements(const clv__openvino_node *node, char reason[160]) {
  const clv_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
  int64_t axis = clv__attribute_int(node->attributes, "axis", 0);
  bool same = data->rank == indices->rank && data->rank != CLV_RANK_UNKNOWN;
  if (axis < 0) axis += data->rank;
  for (int32_t i = 0; same && i < data->rank; ++i) same = i == axis || (data->dims[i] >= 0 && data->dims[i] == indices->dims[i]);
  return same || refuse(reason, "indices not known to have the sizes of the data along all axes but 'axis'");
}

bool clv__openvino_accepts_resize(const clv__openvino_node *node, char reason[160]) {
  clv__attributes a = node->attributes;
  if (clv__attribute_is(a, "mode", "cubic", false)) return refuse(reason, "Resize with mode cubic");
  if (clv__attribute_int(a, "antialias", 0) != 0) return refuse(reason, "Resize with antialias");
  if (clv__attribute_int(a, "exclude_outside", 0) != 0) return refuse(reason, "Resize with exclude_outside");
  if (!clv__attribute_is(a, "keep_aspect_ratio_policy", "stretch", true)) {
    return refuse(reason, "Resize with keep_aspect_ratio_policy");
  }
  if (clv__attribute_is(a, "coordinate_transformation_mode", "tf_crop_and_resize", false)) {
    return refuse(reason, "Resize with tf_crop_and_resize");
  }
  if (clv__attribute_is(a, "coordinate_transformation_mode", "half_pixel_symmetric", false)) {
    return refuse(reason, "Resize with half_pixel_symmetric");
  }
  if (clv__attribute_is(a, "coordinate_transformation_mode", "align_corners", false) && !clv__openvino_has(node, 3)) {
    return refuse(reason, "Resize with align_corners and scales");
  }
  return true;
}

bool clv__openvino_accepts_recurrent(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_int(node->attributes, "layout", 0) != 0) return refuse(reason, "attribute layout is 1");
  if (strcmp(node->op, "LSTM") == 0 && clv__openvino_has(node, 7)) return refuse(reason, "LSTM with peepholes");
  if (clv__openvino_has(node, 4)) return refuse(reason, "input sequence_lens (sequences of different lengths)");
  if (clv__attribute_find(node->attributes, "activations") != NULL) return refuse(reason, "non-default activations");
  if (clv__attribute_find(node->attributes, "clip") != NULL) return refuse(reason, "attribute clip");
  if (clv__attribute_int(node->attributes, "input_forget", 0) != 0) return refuse(reason, "attribute input_forget");
  return true;
}

/* If the attribute `reduction` is set, OpenVINO saturates small integers instead of wrapping. */
bool clv__openvino_accepts_scatter(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_is(node->attributes, "reduction", "none", true) || node->inputs[0].dtype == CLV_F32) return true;
  return refuse(reason, "a reduction whose dtype is not f32");
}

bool clv__openvino_accepts_pad(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_is(node->attributes, "mode", "wrap", false)) return refuse(reason, "Pad with mode wrap");
  return true;
}

bool clv__openvino_accepts_space_to_depth(const clv__openvino_node *node, char reason[160]) {
  if (!clv__attribute_is(node->attributes, "mode", "DCR", true)) return refuse(reason, "SpaceToDepth with mode CRD");
  return true;
}

bool clv__openvino_accepts_first_output(const clv__openvino_node *node, char reason[160]) {
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (clv__openvino_has_output(node, i)) return refuse(reason, "outputs other than the first are not supported");
  }
  return true;
}

/* Accepts only inference, because training mode draws random numbers. */
bool clv__openvino_accepts_dropout(const clv__openvino_node *node, char reason[160]) {
  if (clv__openvino_has(node, 2)) {
    const clv_tensor *training = &node->inputs[2];
    if (training->data == NULL || *(const uint8_t *)training->data != 0)
      return refuse(reason, "Dropout not known to be outside training");
  }
  return true;
}

bool clv__openvino_accepts_batch_norm(const clv__openvino_node *node, char reason[160]) {
  if (clv__attribute_int(node->attributes, "training_mode", 0) != 0) return refuse(reason, "BatchNormalization in training");
  return clv__openvino_accepts_first_output(node, reason);
}
