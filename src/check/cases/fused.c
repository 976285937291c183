/* Cases of a few nodes that backends are likely to fuse, with intermediate values that are read elsewhere. See operators/cases.h
 * for the syntax of the rows. */
#include "check/cases/cases.h"

#define BEHIND                                                                                                             \
  "Relu | Sigmoid | Tanh | Elu | HardSwish | Clip(lo,hi) | Add(r) | Add(r) Relu | Relu Add(r) | Mul(r) | Mul(s) Add(t) | " \
  "Mul(s) Add(t) Relu"
#define READ_BETWEEN " | ! Relu | Add(r)! Relu | Relu! Add(r) | ! Add(r)! Relu | Relu Abs! Neg"

const clv__case_row clv__cases_fused[] = {
    {"Conv", "22", "f32 f16 f64",
     "x[1,8,9,7] w[16,8,3,3]= b[16]= +lo=(-0.5) +hi=(1) +r[1,16,7,5] +s[1,16,1,1]= +t[16,1,1]= +m[16]= +v[16]~0.5:2= +g[16]= "
     "+h[16]="
     " | x[2,8,9,7] w[16,8,3,3]= +lo=(-0.5) +hi=(1) +r[2,16,7,5] +s[1,16,1,1]= +t[16,1,1]= +m[16]= +v[16]~0.5:2= +g[16]= +h[16]=",
     NULL,
     BEHIND " | BatchNormalization(g,h,m,v) | BatchNormalization(g,h,m,v) Relu | BatchNormalization(g,h,m,v) Add(r) Relu | "
            "BatchNormalization(g,h,m,v)! Relu" READ_BETWEEN},
    {"Conv", "22", "f32", "x[1,8,9,7] w[16,4,3,3]= b[16]= +r[1,16,9,7] | x[1,8,9,7] w[8,4,3,3]= +r[8,1,1]=",
     "group=2 pads=[1,1,1,1]", "Relu | Add(r) Relu | ! Relu"},
    {"ConvTranspose", "22", "f32", "x[1,8,5,4] w[8,6,3,3]= b[6]= +r[1,6,7,6] +m[6]= +v[6]~0.5:2= +g[6]= +h[6]=", NULL,
     "Relu | Add(r) | BatchNormalization(g,h,m,v) Relu | ! Relu"},
    {"MatMul", "22", "f32 f16 bf16 f64",
     "a[7,33] b[33,17]= +c[17]= +lo=(-0.5) +hi=(1) +r[7,17] +s[17]= +t[17]= | a[2,3,5,8] b[8,17]= +c[17]= +lo=(-0.5) +hi=(1) "
     "+r[2,3,5,17] +s= +t[1,17]="
     " | a[7,33] b[33,17] +c[17] +lo=(-0.5) +hi=(1) +r[7,17] +s[7,1] +t[17]",
     NULL, BEHIND " | Add(c) | Add(c) Relu | Add(c) Gelu | Add(c) Add(r) | Add(c) Add(r) Relu | Add(c)! Relu" READ_BETWEEN},
    {"MatMul", "20", "f32 f16", "q[2,3,9,8] k[2,3,8,9] +s=(0.35) +m[2,1,9,9] +v[2,3,9,8]", NULL,
     "Mul(s) Softmax MatMul(v) | Mul(s) Add(m) Softmax MatMul(v) | Mul(s) Add(m) Softmax! MatMul(v) | Div(s) Softmax MatMul(v)"},
    {"Gemm", "22", "f32 f16 f64", "a[7,33] b[33,17]= c[17]= +lo=(-0.5) +hi=(1) +r[7,17] +s[17]= +t[17]=", NULL,
     BEHIND READ_BETWEEN},
    {"Add", "22", "f32 f16 i32", "a[5,7] b[5,7] +c[7] +d[5,1]", NULL,
     "Mul(c) | Mul(c) Sub(d) | Mul(c)! Sub(d) | ! Mul(c)! Sub(d)! Abs | Mul(c) Mul(c) Add(d) Relu | Abs Neg Abs Neg Abs Neg"},
    {"Sigmoid", "22", "f32 f16 f64", "x[5,70] | x[2,3,9,8] | x[0,3]", NULL, "Mul(x) | Mul(x)! Tanh | Neg Exp Add(x)"},
    {"ReduceMean", "13", "f32 f64", "x[5,70] | x[2,3,33]", "axes=[-1]", "Sub(x) | Sub(x) Abs Sqrt | Neg Add(x)! Mul(x)"},
    {"Transpose", "22", "f32 f16", "x[5,7] +b[5,3]= | x[33,35] +b[33,9]=", NULL, "MatMul(b) | Relu MatMul(b) | ! MatMul(b)"},
    {"Softmax", "22", "f32 f16 f64", "x[5,70] +b[70,3]= | x[2,9,33] +b[33,9]=", NULL, "MatMul(b) | Log | ! Neg"},
    {"Reshape", "22", "f32 i32", "x[6,4] s:i64={3,8} +r[3,8]", NULL, "Add(r) | ! Add(r) | Identity Identity | ! Identity!"},
    {"Identity", "22", "f32 i64 bool", "x[5,7] | x | x[0]", NULL, "! Identity | Identity Identity | ! Identity! Identity"},
    {"MaxPool", "22", "f32", "x[1,8,9,7] +r[8,1,1]=", "kernel_shape=[3,3] strides=[2,2]", "Relu | Add(r) Relu | ! Relu"},
    {"GlobalAveragePool", "22", "f32", "x[2,8,9,7] +r[8,1,1]= +q[2,8,9,7]", NULL,
     "Flatten | Relu Mul(q) | Sigmoid Mul(x) | Add(r) HardSigmoid Mul(x)"},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
