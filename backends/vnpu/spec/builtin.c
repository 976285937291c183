/* The built-in descriptions "default" and "all". They are written here as JSON, which a macro turns into strings. */
#include <string.h>

#include "spec.h"

#define JSON_TEXT(...) #__VA_ARGS__

// clang-format off

/* A small NPU for vision models and transformers, with typical limits: no f64, integers only as indices, rank at most 4, no
 * control flow. */
static const char default_text[] = JSON_TEXT({
  "description": "virtual NPU, 55 operators",
  "memory": "1G",
  "alignment": 64,
  "dtypes": ["f32", "f16", "bf16"],
  "max_rank": 4,
  "static_shapes": true,
  "control_flow": false,
  "operators": {
    "Conv": {}, "ConvTranspose": {}, "MatMul": {}, "Gemm": {},
    "BatchNormalization": {"attributes": {"training_mode": {"max": 0}}},
    "InstanceNormalization": {}, "LayerNormalization": {}, "LRN": {},
    "MaxPool": {}, "AveragePool": {}, "GlobalAveragePool": {}, "GlobalMaxPool": {},
    "Softmax": {}, "LogSoftmax": {},
    "Relu": {}, "LeakyRelu": {}, "PRelu": {}, "Elu": {}, "Sigmoid": {}, "HardSigmoid": {}, "HardSwish": {}, "Tanh": {}, "Gelu": {},
    "Erf": {}, "Clip": {}, "Add": {}, "Sub": {}, "Mul": {}, "Div": {}, "Pow": {}, "Sqrt": {}, "Exp": {}, "Log": {}, "Abs": {},
    "Neg": {}, "Reciprocal": {}, "Min": {}, "Max": {}, "Sum": {},
    "Identity": {}, "Dropout": {"outputs": {"1": ["bool"]}}, "Reshape": {}, "Flatten": {}, "Squeeze": {}, "Unsqueeze": {},
    "Transpose": {}, "Concat": {}, "Split": {}, "Slice": {}, "Gather": {"inputs": {"1": ["i32", "i64"]}},
    "Pad": {"attributes": {"mode": {"in": ["constant", "reflect", "edge"]}}},
    "Resize": {"attributes": {"mode": {"in": ["nearest", "linear"]}}},
    "ReduceMean": {}, "ReduceSum": {}, "ReduceMax": {}
  }
});

static const char all_text[] = JSON_TEXT({
  "description": "virtual NPU, every operator",
  "static_shapes": false,
  "control_flow": true,
  "operators": "all"
});

// clang-format on

const char *clv__vnpu_builtin(const char *name) {
  if (strcmp(name, "default") == 0) return default_text;
  if (strcmp(name, "all") == 0) return all_text;
  return NULL;
}
