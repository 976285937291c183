/* The operators and dtypes that OpenVINO's CPU device computes correctly. They were found by running every operator with every
 * dtype against the reference kernels. OpenVINO's other devices use the same table. On every device the node is also compiled
 * before the verdict is yes.
 *
 * size-ok: operator table */
#include "table.h"

#include <stddef.h>

#define F CLV__DTYPE_BIT(CLV_F32)
#define H (CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))
#define B CLV__DTYPE_BIT(CLV_BOOL)
#define I8 (CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_U8))
#define I16 (CLV__DTYPE_BIT(CLV_I16) | CLV__DTYPE_BIT(CLV_U16))
#define I32 CLV__DTYPE_BIT(CLV_I32)
#define U32 CLV__DTYPE_BIT(CLV_U32)
#define U8 CLV__DTYPE_BIT(CLV_U8)
#define MOVED (F | H | B | I8 | I16 | I32 | U32) /* for operators that only move elements */
#define ANY (MOVED | CLV__DTYPE_BIT(CLV_F64) | CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPE_BIT(CLV_U64))

#define IN(i) (1u << (i))
#define INDEX(...) .index_inputs = (__VA_ARGS__)
#define INDEX_OUT(...) .index_outputs = (__VA_ARGS__)
#define CONSTANT(...) .constants = (__VA_ARGS__)

const clv__openvino_rule clv__openvino_rules[] = {
    /* One operand. Discontinuous operators (Floor, Sign) exclude f16 and bf16, whose intermediate results stay f32. */
    {.op = "Abs", .dtypes = F | H | I16 | I32 | U8},
    {.op = "Neg", .dtypes = F | H | CLV__DTYPE_BIT(CLV_I16) | I32},
    {.op = "Sign", .dtypes = F | I8 | I16 | I32},
    {.op = "Ceil", .dtypes = F},
    {.op = "Floor", .dtypes = F},
    {.op = "Round", .dtypes = F},
    {.op = "IsNaN", .dtypes = F | B},
    {.op = "IsInf", .dtypes = F | B},
    {.op = "Not", .dtypes = B},
    {.op = "BitwiseNot", .dtypes = I8 | I16 | I32 | U32},
    {.op = "Relu", .dtypes = F | H | I8 | I16, .loses_nan = true},
    {.op = "Exp", .dtypes = F | H, .loses_nan = true},
    {.op = "HardSigmoid", .dtypes = F | H, .loses_nan = true},
    {.op = "Clip", .dtypes = F | H | I8 | I16 | I32, .loses_nan = true},
    {.op = "Celu", .dtypes = F, .loses_nan = true},
    {.op = "Sqrt", .dtypes = F | H},
    {.op = "Log", .dtypes = F | H},
    {.op = "Sigmoid", .dtypes = F | H},
    {.op = "Tanh", .dtypes = F | H},
    {.op = "Erf", .dtypes = F | H},
    {.op = "Reciprocal", .dtypes = F | H},
    {.op = "Softplus", .dtypes = F | H},
    {.op = "Softsign", .dtypes = F | H},
    {.op = "Elu", .dtypes = F | H},
    {.op = "Selu", .dtypes = F | H},
    {.op = "LeakyRelu", .dtypes = F | H},
    {.op = "HardSwish", .dtypes = F | H},
    {.op = "Mish", .dtypes = F | H},
    {.op = "Swish", .dtypes = F | H},
    {.op = "Gelu", .dtypes = F | H},
    {.op = "Sin", .dtypes = F | H},
    {.op = "Cos", .dtypes = F | H},
    {.op = "Tan", .dtypes = F | H},
    {.op = "Asin", .dtypes = F | H},
    {.op = "Acos", .dtypes = F | H},
    {.op = "Atan", .dtypes = F | H},
    {.op = "Sinh", .dtypes = F | H},
    {.op = "Cosh", .dtypes = F | H},
    {.op = "Asinh", .dtypes = F | H},
    {.op = "Acosh", .dtypes = F | H},
    {.op = "Atanh", .dtypes = F | H},
    {.op = "Identity", .dtypes = MOVED},
    {.op = "Cast", .dtypes = F | B | I8 | I16 | I32, INDEX_OUT(IN(0)), .accepts = clv__openvino_accepts_cast},
    {.op = "Dropout", .dtypes = F | H | B, .constants = IN(1) | IN(2), .accepts = clv__openvino_accepts_dropout},

    /* Two or more operands. 8-bit integers are excluded where they saturate instead of wrapping, and 32-bit integers from Div,
     * which computes them in f32. */
    {.op = "Add", .dtypes = F | H | I16 | I32 | U32},
    {.op = "Sub", .dtypes = F | H | I16 | I32 | U32},
    {.op = "Mul", .dtypes = F | H | I16 | I32 | U32},
    {.op = "Div", .dtypes = F | H | I8 | I16},
    {.op = "Mod", .dtypes = I8 | I16, .accepts = clv__openvino_accepts_mod},
    {.op = "Pow", .dtypes = F | H},
    {.op = "Max", .dtypes = F | H | I8 | I16 | I32, .loses_nan = true},
    {.op = "Min", .dtypes = F | H | I8 | I16 | I32, .loses_nan = true},
    {.op = "Sum", .dtypes = F | H | I16 | I32},
    {.op = "Mean", .dtypes = F | H},
    {.op = "PRelu", .dtypes = F | H, .loses_nan = true},
    {.op = "And", .dtypes = B},
    {.op = "Or", .dtypes = B},
    {.op = "Xor", .dtypes = B},
    {.op = "Equal", .dtypes = F | B | I8 | I16 | I32 | U32},
    {.op = "Less", .dtypes = F | B | I8 | I16 | I32},
    {.op = "LessOrEqual", .dtypes = F | B | I8 | I16 | I32},
    {.op = "Greater", .dtypes = B | I8 | I16 | I32}, /* not f32: OpenVINO compares NaN as greater than every number */
    {.op = "GreaterOrEqual", .dtypes = B | I8 | I16 | I32},
    {.op = "BitwiseAnd", .dtypes = I8 | I16 | I32 | U32},
    {.op = "BitwiseOr", .dtypes = I8 | I16 | I32 | U32},
    {.op = "BitwiseXor", .dtypes = I8 | I16 | I32 | U32},
    {.op = "Where", .dtypes = MOVED},

    /* Operators that only move data. */
    {.op = "Transpose", .dtypes = MOVED},
    {.op = "Reshape", .dtypes = MOVED, INDEX(IN(1))},
    {.op = "Flatten", .dtypes = MOVED},
    {.op = "Squeeze", .dtypes = MOVED, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "Unsqueeze", .dtypes = MOVED, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "Concat", .dtypes = MOVED},
    {.op = "Split", .dtypes = MOVED, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "Slice",
     .dtypes = MOVED,
     INDEX(IN(1) | IN(2) | IN(3) | IN(4)),
     CONSTANT(IN(1) | IN(2) | IN(3) | IN(4))}, /* OpenVINO reads a computed end of 2^63-1 as -1 */
    {.op = "Gather", .dtypes = MOVED, INDEX(IN(1))},
    {.op = "GatherElements", .dtypes = MOVED, INDEX(IN(1)), .accepts = clv__openvino_accepts_gather_elements},
    {.op = "GatherND", .dtypes = MOVED, INDEX(IN(1))},
    {.op = "ScatterElements", .dtypes = MOVED, INDEX(IN(1)), .accepts = clv__openvino_accepts_scatter},
    {.op = "ScatterND", .dtypes = MOVED, INDEX(IN(1)), .accepts = clv__openvino_accepts_scatter},
    {.op = "Expand", .dtypes = MOVED, INDEX(IN(1))},
    {.op = "Tile", .dtypes = MOVED, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "Pad", .dtypes = MOVED, INDEX(IN(1) | IN(3)), CONSTANT(IN(1) | IN(2) | IN(3)), .accepts = clv__openvino_accepts_pad},
    {.op = "Trilu", .dtypes = MOVED, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "DepthToSpace", .dtypes = MOVED},
    {.op = "SpaceToDepth", .dtypes = MOVED, .accepts = clv__openvino_accepts_space_to_depth},
    {.op = "ReverseSequence", .dtypes = F | H, INDEX(IN(1))}, /* not integers, which OpenVINO converts to f32 */
    {.op = "Compress", .dtypes = MOVED},

    /* Shapes and indices. */
    {.op = "Shape", .dtypes = ANY, INDEX_OUT(IN(0))},
    {.op = "Size", .dtypes = ANY, INDEX_OUT(IN(0))},
    {.op = "ConstantOfShape", .dtypes = MOVED, INDEX(IN(0))},
    {.op = "Range", .dtypes = F | I32},
    {.op = "NonZero", .dtypes = F | B | I8 | I16 | I32, INDEX_OUT(IN(0))},
    {.op = "ArgMax", .dtypes = F | I8 | I16 | I32, INDEX_OUT(IN(0))},
    {.op = "ArgMin", .dtypes = F | I8 | I16 | I32, INDEX_OUT(IN(0))},

    /* Reductions. */
    {.op = "ReduceSum", .dtypes = F | H | I32, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceMean", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceMax", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1)), .loses_nan = true},
    {.op = "ReduceMin", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1)), .loses_nan = true},
    {.op = "ReduceProd", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceL1", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceL2", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceSumSquare", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceLogSum", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1))},
    {.op = "ReduceLogSumExp", .dtypes = F | H, INDEX(IN(1)), CONSTANT(IN(1)), .loses_nan = true},
    {.op = "CumSum", .dtypes = F | I32, INDEX(IN(1)), CONSTANT(IN(1))},

    /* Products, windows, normalisation. */
    {.op = "MatMul", .dtypes = F | H},
    {.op = "Gemm", .dtypes = F | H},
    {.op = "Einsum", .dtypes = F | H},
    {.op = "MatMulInteger", .dtypes = I8 | I32},
    {.op = "ConvInteger", .dtypes = I8 | I32},
    {.op = "Conv", .dtypes = F | H},
    {.op = "ConvTranspose", .dtypes = F | H},
    {.op = "MaxPool", .dtypes = F | H | U8, .loses_nan = true, .accepts = clv__openvino_accepts_max_pool},
    {.op = "AveragePool", .dtypes = F | H},
    {.op = "LpPool", .dtypes = F | H, .accepts = clv__openvino_accepts_lp_pool},
    {.op = "GlobalAveragePool", .dtypes = F | H},
    {.op = "GlobalMaxPool", .dtypes = F | H, .loses_nan = true},
    {.op = "BatchNormalization", .dtypes = F | H, .accepts = clv__openvino_accepts_batch_norm},
    {.op = "InstanceNormalization", .dtypes = F | H},
    {.op = "GroupNormalization", .dtypes = F | H},
    {.op = "LayerNormalization", .dtypes = F | H, .accepts = clv__openvino_accepts_first_output},
    {.op = "RMSNormalization", .dtypes = F | H},
    {.op = "MeanVarianceNormalization", .dtypes = F | H},
    {.op = "LpNormalization", .dtypes = F | H},
    {.op = "LRN", .dtypes = F | H, .accepts = clv__openvino_accepts_lrn},
    {.op = "Softmax", .dtypes = F | H, .loses_nan = true, .accepts = clv__openvino_accepts_softmax},
    {.op = "LogSoftmax", .dtypes = F | H, .loses_nan = true, .accepts = clv__openvino_accepts_softmax},
    {.op = "Resize", .dtypes = F, INDEX(IN(3)), CONSTANT(IN(1) | IN(2) | IN(3)), .accepts = clv__openvino_accepts_resize},
    {.op = "Upsample", .dtypes = F, CONSTANT(IN(1))},
    {.op = "GridSample", .dtypes = F},
    {.op = "RNN", .dtypes = F | I32, .accepts = clv__openvino_accepts_recurrent},
    {.op = "GRU", .dtypes = F | I32, .accepts = clv__openvino_accepts_recurrent},
    {.op = "LSTM", .dtypes = F | I32, .accepts = clv__openvino_accepts_recurrent},
    {.op = "QuantizeLinear", .dtypes = F | I8, CONSTANT(IN(1) | IN(2))},
    {.op = "DequantizeLinear", .dtypes = F | I8 | I32, CONSTANT(IN(1) | IN(2))},

    /* Cleave's own operators. OpenVINO gets the standard operators that define them (src/operators/body.h). */
    {.domain = "ai.cleave", .op = "SparseAggregate", .dtypes = F | H, INDEX(IN(1) | IN(2))},
    {.domain = "ai.cleave", .op = "SparseAttention", .dtypes = F | H, INDEX(IN(3) | IN(4))},

    /* Operators that compile but give wrong results. */
    {.op = "Attention", .wrong = "results are wrong for windows, for causal masks with past keys, and for fully masked rows"},
    {.op = "BitShift", .wrong = "results are wrong for shifts by the full width and of negative numbers; 8-bit results saturate"},
    {.op = "DFT", .wrong = "axes and shapes of inverse and of real transforms are wrong"},
    {.op = "DynamicQuantizeLinear", .wrong = "values halfway between two integers are rounded differently"},
    {.op = "Hardmax", .wrong = "it does not choose the first of equal maxima"},
    {.op = "NonMaxSuppression", .wrong = "boxes at the threshold are dropped"},
    {.op = "OneHot", .wrong = "out-of-range indices wrap around"},
    {.op = "ThresholdedRelu", .wrong = "results are wrong for NaNs and for values equal to the threshold"},
    {.op = "Shrink", .wrong = "NaNs stay NaNs instead of becoming 0"},
    {.op = "TopK", .wrong = "equal values are in a different order"},
    {.op = "Unique", .wrong = "the order of its results may differ"},
    {.op = NULL},
};
