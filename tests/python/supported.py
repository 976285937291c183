"""The operators and dtypes that Cleave promises to support.

A test of the onnx package that uses only these must pass; other tests may be reported as unsupported."""

OPERATORS = set("""
Abs Add AffineGrid And ArgMax ArgMin Attention AveragePool BatchNormalization BitCast BlackmanWindow Cast CastLike CausalConvWithState Ceil
Celu CenterCropPad Clip Col2Im Concat Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos CumSum DFT DeformConv DepthToSpace
DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand Flatten Floor GRU Gather GatherElements GatherND Gelu
Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish
Identity If InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual LinearAttention Log LogSoftmax Loop
MatMul MatMulInteger Max MaxPool MaxUnpool Mean MelWeightMatrix Min Mish Mod Mul Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not
OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RoiAlign RotaryEmbedding Round STFT Scan
ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt
Squeeze Sub Sum SwiGLU Tanh TensorScatter Tile TopK Transpose Trilu Unsqueeze Where Xor ai.onnx.preview.FlexAttention
""".split())

DTYPES = {"float", "double", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
          "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int4", "uint4", "int2", "uint2"}
