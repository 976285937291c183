/* Test cases of operators of one operand. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

/* One shape has more elements than vector and block loops process at once, one leaves a remainder, and some are empty or a
 * scalar. */
#define SHAPES(fill)                                                                                                       \
  "x[3,5,7,11]" fill " | x[1]" fill " | x" fill " | x[0]" fill " | x[2,0,3]" fill " | x[4099]" fill " | x[2,3,1,5,2]" fill \
  " | x[1,1]" fill

const clv__case_row clv__cases_unary[] = {
    {"Sigmoid Tanh", "22 13 6", CASE_FLOATS, SHAPES("") " | x[33,35]~-30:30", NULL, NULL},
    {"Relu", "22 14 13 6", CASE_FLOATS " i32 i64 i8 i16", SHAPES("") " | x[33,35]~inf | x[33,35]~max | x[7]&", NULL, NULL},
    {"Abs", "22 13 6", CASE_NUMBERS, SHAPES("") " | x[33,35]~nan | x[33,35]~max", NULL, NULL},
    {"Neg", "22 13 6", CASE_FLOATS " " CASE_SIGNED, SHAPES("") " | x[33,35]~nan | x[33,35]~max", NULL, NULL},
    {"Sign", "22 13 9", CASE_NUMBERS, SHAPES("") " | x[33,35]~inf", NULL, NULL},
    {"Floor Ceil", "22 13 6", CASE_FLOATS, SHAPES("~-9:9") " | x[33,35]~half | x[33,35]~nan", NULL, NULL},
    {"Round", "22 11", CASE_FLOATS, SHAPES("~-9:9") " | x[33,35]~half | x[33,35]~nan", NULL, NULL},
    {"IsNaN", "20 13 9", CASE_FLOATS, SHAPES("~nan") " | x[5,7]", NULL, NULL},
    {"IsInf", "20 10", CASE_FLOATS, SHAPES("~nan"),
     " | detect_positive=0 | detect_negative=0 | detect_positive=0 detect_negative=0", NULL},
    {"Not", "22 1", "bool", SHAPES(""), NULL, NULL},
    {"BitwiseNot", "18", CASE_INTEGERS, SHAPES("~any"), NULL, NULL},
    {"Exp", "22 13 6", CASE_FLOATS, SHAPES("~-4:4") " | x[33,35]~-80:80", NULL, NULL},
    {"Log", "22 13 6", CASE_FLOATS, SHAPES("~0.01:9"), NULL, NULL},
    {"Sqrt", "22 13 6", CASE_FLOATS, SHAPES("~0:99"), NULL, NULL},
    {"Reciprocal", "22 13 6", CASE_FLOATS, SHAPES("~0.1:5") " | x[33,35]~-5:-0.1", NULL, NULL},
    {"Erf", "22 13 9", CASE_FLOATS, SHAPES("") " | x[33,35]~-9:9", NULL, NULL},
    {"Softplus", "22 1", CASE_FLOATS, SHAPES("") " | x[33,35]~-30:30", NULL, NULL},
    {"Softsign", "22 1", CASE_FLOATS, SHAPES("") " | x[33,35]~-99:99", NULL, NULL},
    {"Sin Cos", "22 7", CASE_FLOATS, SHAPES("") " | x[33,35]~-40:40", NULL, NULL},
    {"Tan", "22 7", CASE_FLOATS, SHAPES("~-1.3:1.3"), NULL, NULL},
    {"Asin Acos Atanh", "22 9", CASE_FLOATS, SHAPES("~-0.97:0.97"), NULL, NULL},
    {"Atan Sinh Cosh Asinh", "22 9", CASE_FLOATS, SHAPES("") " | x[33,35]~-5:5", NULL, NULL},
    {"Acosh", "22 9", CASE_FLOATS, SHAPES("~1:9"), NULL, NULL},
    {"LeakyRelu", "22 16 6", CASE_FLOATS, SHAPES(""), " | alpha=0.3 | alpha=-0.5 | alpha=0.0 | alpha=2.5", NULL},
    {"ThresholdedRelu", "22 10", CASE_FLOATS, SHAPES(""), " | alpha=0.25 | alpha=-0.5", NULL},
    {"Elu", "22 7", CASE_FLOATS, SHAPES(""), " | alpha=0.4 | alpha=3.0", NULL},
    {"Celu", "12", "f32", SHAPES(""), " | alpha=0.4 | alpha=3.0", NULL},
    {"Selu", "22 7", CASE_FLOATS, SHAPES(""), " | alpha=0.7 gamma=1.5 | alpha=2.0 | gamma=0.5", NULL},
    {"HardSigmoid", "22 7", CASE_FLOATS, SHAPES("~-4:4"), " | alpha=0.4 | beta=0.25 | alpha=0.1 beta=0.9", NULL},
    {"HardSwish", "22 14", CASE_FLOATS, SHAPES("~-5:5"), NULL, NULL},
    {"Swish", "24", CASE_FLOATS, SHAPES("~-5:5"), " | alpha=0.5 | alpha=1.702", NULL},
    {"Mish", "22 18", CASE_FLOATS, SHAPES("~-5:5"), NULL, NULL},
    {"Gelu", "20", CASE_FLOATS, SHAPES("~-4:4"), " | approximate=none | approximate=tanh", NULL},
    {"Shrink", "9", "f32 f16 f64 " CASE_INTEGERS, SHAPES(""), " | lambd=0.75 | bias=0.25 | lambd=1.0 bias=0.5", NULL},
    {"ai.onnx.ml.Binarizer", "1", "f32 f64 i32 i64", SHAPES("") " | x[33,35]~nan", " | threshold=0.5 | threshold=-1.0", NULL},
    {"Clip", "22 13 12", CASE_NUMBERS,
     "x[3,5,7,11]~-9:9 lo=(2) hi=(4) | x[4099] lo=(0) hi=(1) | x[1] lo=(0) hi=(6) | x lo=(0) hi=(1) | x[0,3] lo=(0) hi=(1)"
     " | x[5,7] lo=(1) | x[5,7] - hi=(1) | x[5,7] | x[5,7] - - | x[33,35]~inf lo=(0) hi=(6) | x[33,35]~inf"
     " | x[5,7] lo=(3) hi=(1) | x[5,7] lo?(0) hi?(1) | x[5,7] lo=(0) hi?(1) | x[5,7] lo?(1) | x[5,7] lo=(1) hi=(1)",
     NULL, NULL},
    {"Clip", "11", "f32", "x[5,7] lo=(0) hi=(1) | x[5,7] lo=(0) | x[4099]~-9:9 lo=(-3) hi=(3.5)", NULL, NULL},
    {"Clip", "6", "f32 f16 f64", "x[5,7] | x[0] | x[4099]", "min=0.0 max=1.0 | min=-0.5 | max=0.5 | ", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
