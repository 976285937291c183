/* Softmax, LogSoftmax, Hardmax: the output has the type of the input. */
#include "operators/infer.h"
#include "operators/common/padding.h"

static clv_status infer_softmax(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  bool flattens = infer->opset < 13;
  int64_t axis = clv__attribute_int(infer->attributes, "axis", flattens ? 1 : -1);
  /* Before opset 13, the axis may equal the rank: then each element is a line. A scalar is one line. */
  bool scalar = input->rank == 0 && (axis == 0 || axis == -1);
  int32_t unused;
  if (input->rank >= 0 && !scalar && !(flattens && axis == input->rank)) {
    CLV__TRY(clv__infer_axis(infer, axis, input->rank, &unused));
  }
  return clv__infer_same(infer);
}

/* Counts 15 FLOPs per element: an exponential, a sum and a division. */
static void work_softmax(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->outputs[0], &count)) work->flops = 15.0 * (double)count;
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* Before opset 13 all axes from the given one on form one line. */
static bool independent_softmax(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis, rank = node->inputs[0].rank;
  bool flattens = node->opset < 13;
  int64_t given = clv__attribute_int(node->attributes, "axis", flattens ? 1 : -1);
  if (flattens && given == rank) return clv__padding_pass(padding);
  if (!clv__padding_axis(padding, given, rank, &axis)) return false;
  uint32_t along = flattens ? clv__axes_between(axis, rank) : clv__axis_bit(axis);
  return clv__padding_avoids(padding, 0, along) && clv__padding_pass(padding);
}

const clv__op clv__ops_softmax[] = {
    {"", "Softmax", 1, 1, 1, 1, 0, infer_softmax, work_softmax, independent_softmax},
    {"", "LogSoftmax", 1, 1, 1, 1, 0, infer_softmax, work_softmax, independent_softmax},
    {"", "Hardmax", 1, 1, 1, 1, 0, infer_softmax, NULL, independent_softmax},
    {.name = NULL},
};
