/* Softmax, LogSoftmax, Hardmax: the type of the input. */
#include "operators/infer.h"

static clv_status infer_softmax(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  bool flattens = infer->opset < 13;
  int64_t axis = clv__attribute_int(infer->attributes, "axis", flattens ? 1 : -1);
  /* Flattened, an axis of the rank itself leaves lines of one element; a scalar is one line. */
  bool scalar = input->rank == 0 && (axis == 0 || axis == -1);
  int32_t unused;
  if (input->rank >= 0 && !scalar && !(flattens && axis == input->rank)) {
    CLV__TRY(clv__infer_axis(infer, axis, input->rank, &unused));
  }
  return clv__infer_same(infer);
}

/* An exponential, a sum, a scale. */
static void work_softmax(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->outputs[0], &count)) work->flops = 15.0 * (double)count;
}

const clv__op clv__ops_softmax[] = {
    {"", "Softmax", 1, 1, 1, 1, 0, infer_softmax, work_softmax},
    {"", "LogSoftmax", 1, 1, 1, 1, 0, infer_softmax, work_softmax},
    {"", "Hardmax", 1, 1, 1, 1, 0, infer_softmax, NULL},
    {NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL},
};
