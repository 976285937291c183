"""What Cleave promises to run: a node test whose operators and dtypes are all of these must pass; the others may be unsupported."""

OPERATORS = set("""
Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Ceil Celu Clip Concat Constant ConstantOfShape Conv ConvTranspose Cos CumSum
DepthToSpace DequantizeLinear Div Dropout Einsum Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm
GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity If InstanceNormalization IsInf IsNaN
LRN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop MatMul Max MaxPool Mean Min Mish Mod Mul Neg NonZero Not OneHot Or PRelu
Pad Pow QuantizeLinear Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Relu Reshape Resize Round ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Size Slice Softmax Softplus Softsign
SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh Tile TopK Transpose Trilu Unsqueeze Where Xor
""".split())

DTYPES = {"float", "double", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"}
