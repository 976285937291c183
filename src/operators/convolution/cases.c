/* Test cases of the convolutions. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define PLAIN "x[1,3,9,8] w[4,3,3,3]= b[4]="

const clv__case_row clv__cases_convolution[] = {
    /* Rows that vary the operands. */
    {"Conv", "22 11 1", CASE_FLOATS,
     PLAIN
     " | x[1,3,9,8] w[4,3,3,3]= | x[1,3,9,8] w[4,3,3,3] b[4] | x[1,3,9,8] w[4,3,3,3]= b[4] | x[2,5,7,7] w[7,5,1,1]= b[7]="
     " | x[3,1,11,5] w[2,1,3,2]= b[2]= | x[1,17,13,13] w[33,17,3,3]= b[33]= | x[1,64,8,8] w[64,64,1,1]= b[64]= | x[1,1,3,3] "
     "w[1,1,3,3]="
     " | x[0,3,9,8] w[4,3,3,3]= b[4]= | x[1,3,9,8]& w[4,3,3,3]& | x[1,16,20,20] w[16,16,5,5]= | x[2,3,32,32] w[16,3,7,7]= b[16]="
     " | x[1,3,9,8]= w[4,3,3,3] b[4]=",
     NULL, NULL},
    /* Rows with one and with three spatial axes. */
    {"Conv", "22 11", CASE_FLOATS, "x[2,3,17] w[4,3,3]= b[4]= | x[1,8,100] w[9,8,5]= | x[1,1,5] w[1,1,5]",
     " | strides=[2] | pads=[1,1] | pads=[2,0] | dilations=[2] | kernel_shape=[3] pads=[1,1] strides=[3]", NULL},
    {"Conv", "22 11", "f32 f16 f64", "x[1,2,5,6,7] w[3,2,3,3,3]= b[3]= | x[2,4,4,4,9] w[5,4,2,3,1]=",
     " | strides=[1,2,2] | pads=[1,1,1,1,1,1] | pads=[0,1,2,1,0,1] | dilations=[1,1,2]", NULL},
    /* Rows that vary the attributes. */
    {"Conv", "22 11 1", CASE_FLOATS, PLAIN " | x[2,3,17,19] w[8,3,3,3]= | x[1,16,12,12] w[24,16,3,3]= b[24]=",
     "pads=[1,1,1,1] | strides=[2,2] | strides=[1,2] | strides=[3,2] pads=[1,1,1,1] | pads=[0,1,2,0] | pads=[2,2,2,2] | "
     "dilations=[2,2]"
     " | dilations=[1,3] | dilations=[2,1] pads=[2,1,2,1] strides=[2,1] | auto_pad=SAME_UPPER | auto_pad=SAME_LOWER | "
     "auto_pad=VALID"
     " | auto_pad=SAME_UPPER strides=[2,2] | auto_pad=SAME_LOWER strides=[2,3] | kernel_shape=[3,3] | auto_pad=NOTSET group=1",
     NULL},
    {"Conv", "22 11", "f32 f16 f64",
     "x[1,4,9,8] w[6,2,3,3]= b[6]= | x[2,8,7,7] w[8,4,1,1]=", "group=2 | group=2 strides=[2,2] | group=2 pads=[1,1,1,1]", NULL},
    {"Conv", "22 11", CASE_FLOATS,
     "x[1,6,9,8] w[6,1,3,3]= b[6]= | x[2,6,13,11] w[12,1,3,3]= | x[1,6,9,8] w[6,1,3,3] | x[1,6,9,8] w[6,1,5,5]=",
     "group=6 | group=6 pads=[1,1,1,1] | group=6 strides=[2,2] pads=[1,1,1,1] | group=6 dilations=[2,1] pads=[2,1,2,1] | group=6 "
     "auto_pad=SAME_UPPER strides=[2,2]",
     NULL},
    {"Conv", "11", "f32", "x[1,32,15,15] w[32,1,3,3]= b[32]= | x[1,32,4,50] w[64,1,3,3]=", "group=32 pads=[1,1,1,1]", NULL},
    {"Conv", "11", "f32", "x[1,4,30] w[6,2,3]= b[6]= | x[3,4,5] w[4,2,2]", "group=2", NULL},
    {"ConvTranspose", "22 11 1", CASE_FLOATS,
     "x[1,3,5,4] w[3,4,3,3]= b[4]= | x[1,3,5,4] w[3,4,3,3]= | x[1,3,5,4] w[3,4,3,3] b[4] | x[2,5,4,4] w[5,7,1,1]= b[7]= | "
     "x[1,16,9,9] w[16,17,2,2]="
     " | x[0,3,5,4] w[3,4,3,3]= | x[1,1,1,1] w[1,1,3,3]= | x[1,32,8,8] w[32,16,4,4]= b[16]= | x[1,3,5,4]& w[3,4,3,3]&",
     " | strides=[2,2] | strides=[2,1] | pads=[1,1,1,1] | pads=[0,1,1,0] | strides=[2,2] pads=[1,1,1,1] | dilations=[2,2] | "
     "dilations=[1,2] strides=[2,1]"
     " | strides=[2,2] output_padding=[1,1] | strides=[3,2] output_padding=[1,0] pads=[1,0,0,1] | auto_pad=VALID | "
     "auto_pad=SAME_UPPER strides=[2,2]"
     " | auto_pad=SAME_LOWER strides=[2,2] | strides=[2,2] output_shape=[10,9] | kernel_shape=[3,3] strides=[1,3]",
     NULL},
    {"ConvTranspose", "22 11", "f32 f16 f64",
     "x[1,4,5,4] w[4,3,3,3]= b[6]= | x[2,4,3,7] w[4,1,2,2]=", "group=2 | group=2 strides=[2,2]", NULL},
    {"ConvTranspose", "11", "f32 f64",
     "x[1,6,5,4] w[6,1,3,3]= b[6]= | x[2,6,9,9] w[6,1,4,4]=", "group=6 | group=6 strides=[2,2] pads=[1,1,1,1]", NULL},
    {"ConvTranspose", "22 11", "f32 f64",
     "x[1,3,7] w[3,2,3]= b[2]= | x[2,1,20] w[1,4,4]=", " | strides=[2] | strides=[3] pads=[1,1] output_padding=[1]", NULL},
    {"ConvTranspose", "11", "f32 f64",
     "x[1,2,3,4,3] w[2,3,2,3,2]= b[3]= | x[1,1,2,2,2] w[1,1,3,3,3]=", " | strides=[2,1,2] | pads=[0,1,0,1,0,1]", NULL},
    {"CausalConvWithState", "27", "f32 f16 bf16",
     "x[2,5,9] w[5,1,4]= b[5]= p[2,5,3] | x[2,5,9] w[5,1,4] | x[2,5,1] w[5,1,4] - p[2,5,3] | x[2,5,2] w[5,1,4] b[5] | x[2,5,9] "
     "w[5,1,1] | x[1,70,33] w[70,1,3]= b[70]= p[1,70,2] | x[0,5,9] w[5,1,4]",
     ">11 | >11 activation=silu | >11 activation=swish", NULL},
    /* Scales are not powers of two, so that no scaled sum is halfway between two whole numbers. */
    {"ConvInteger", "10", "u8 i8",
     "x[2,3,7,9]~any w:u8[4,3,3,3]~any zx=(3) zw:u8=(5) | x[2,3,7,9]~any w:i8[4,3,3,3]~any | x[1,3,7,9]~any "
     "w:i8[4,3,1,2]~any - zw:i8={1,-2,3,0}",
     " | pads=[1,1,1,1] | pads=[0,1,2,1] strides=[2,3] | dilations=[2,3] auto_pad=SAME_UPPER", NULL},
    {"ConvInteger", "10", "u8 i8",
     "x[2,4,9]~any w:u8[6,2,3]~any zx=(3) | x[2,4,5,6,7]~any w:i8[2,2,2,1,3]~any zx=(3) | x[1,8,5,5]~any w:i8[8,4,1,1]~any "
     "zx=(7) zw:i8=(2) | x[0,4,9] w:u8[6,2,3]",
     "group=2", NULL},
    {"QLinearConv", "10", "u8 i8",
     "x[2,3,7,9]~any sx:f32=(0.031) zx=(3) w:u8[4,3,3,3]~any sw:f32=(0.023) zw:u8=(5) sy:f32=(1.7) zy:u8=(9) | x[2,3,7,9]~any "
     "sx:f32=(0.031) zx=(3) w:i8[4,3,3,3]~any sw:f32[4]~0.01:0.03= zw:i8=(0) sy:f32=(0.91) zy:i8=(-9) b:i32[4]~-999:999= | "
     "x[2,3,7,9]~any sx:f32?(0.031) zx?(3) w:i8[4,3,3,3]~any sw:f32?(0.023) zw:i8[4]~any sy:f32?(1.7) zy:u8?(99) "
     "b:i32[4]~-999:999",
     " | pads=[1,1,1,1] | auto_pad=SAME_LOWER | dilations=[2,3]", NULL},
    {"QLinearConv", "10", "u8 i8",
     "x[2,4,9]~any sx:f32=(0.031) zx=(3) w:i8[6,2,3]~any sw:f32=(0.023) zw:i8=(0) sy:f32=(0.91) zy:u8=(9) | x[1,8,5,5]~any "
     "sx:f32=(0.031) zx=(3) w:i8[8,4,1,1]~any sw:f32=(0.023) zw:i8=(0) sy:f32=(0.91) zy:i8=(9) b:i32[8]~-999:999=",
     "group=2", NULL},
    {"QLinearConv", "10", "u8 i8",
     "x[1,16,5,6,7]~any sx:f32=(.03) zx=(95) w:i8[8,16,3,3,3]~any= sw:f32=(.7) zw:i8=(0) sy:f32=(97) zy=(9)",
     "pads=[0,0,0,1,1,1] strides=[2,2,1] | pads=[1,1,1,1,1,1]", NULL},
    {"DeformConv", "22 19", "f32 f64 f16",
     "x[2,2,5,6] w[4,2,3,3]= o[2,18,3,4]~-1:1 | x[2,2,5,6] w[4,2,3,3] o[2,18,3,4] b[4] m[2,9,3,4]~0:1 | x[1,2,5,6] w[4,2,2,1]= "
     "o[1,4,4,6] - m[1,2,4,6] | x[1,2,7] w[3,2,3] o[1,3,5] | x[0,2,5,6] w[4,2,3,3] o[0,18,3,4]",
     NULL, NULL},
    {"DeformConv", "22", "bf16 f32", "x[1,4,5,6] w[4,2,3,3] o[1,36,3,3] b[4]",
     "group=2 offset_group=2 strides=[2,2] pads=[1,1,1,1] | group=2 offset_group=2 strides=[2,1] pads=[1,0,1,1] dilations=[1,2]",
     NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
