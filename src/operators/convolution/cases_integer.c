/* Cases of products and convolutions of 8-bit integers: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

/* Scales are no powers of two, so that no sum falls halfway between two whole numbers. */
const clv__case_row clv__cases_integer[] = {
    {"MatMulInteger", "10", "u8 i8",
     "a[5,7]~any b:u8[7,9]~any za=(3) zb:u8=(5) | a[5,7]~any b:i8[7,9]~any | a[5,7]~any b:i8[7,9]~any - zb:i8=(-4) | "
     "a[33,35]~any b:i8[35,300]~any za=(3) zb:i8[300]~any= | a[2,3,5]~any b:u8[5,4]~any za[2,3,1]~any= | a[4,3,5]~any "
     "b:i8[4,5,2]~any za=(7) zb:i8[4,1,2]~any | a[6,5]~any b:u8[5,4]~any za[6]~any | a[7]~any b:i8[7]~any za=(1) | a[0,3] "
     "b:u8[3,4] | a[3,0] b:i8[0,4]",
     NULL, NULL},
    {"QLinearMatMul", "21 10", "u8 i8",
     "a[5,7]~any sa:f32=(0.031) za=(3) b:u8[7,9]~any sb:f32=(0.023) zb:u8=(5) sy:f32=(0.71) zy:u8=(9) | a[5,7]~any "
     "sa:f32=(0.031) za=(3) b:i8[7,9]~any sb:f32=(0.023) zb:i8=(-5) sy:f32=(0.71) zy:i8=(-9) | a[5,7]~any sa:f32[5]~0.01:0.1= "
     "za[5]~any= b:i8[7,9]~any sb:f32[9]~0.01:0.1= zb:i8[9]~any= sy:f32=(0.71) zy:u8=(99) | a[2,3,5]~any "
     "sa:f32[2,3,1]~0.01:0.1 za[2,3,1]~any b:u8[5,300]~any sb:f32=(0.023) zb:u8=(5) sy:f32=(0.71) zy:i8=(9) | a[33,35]~any "
     "sa:f32?(0.031) za?(3) b:u8[35,7]~any sb:f32?(0.023) zb:u8?(5) sy:f32?(1.7) zy:u8?(200)",
     NULL, NULL},
    /* The factor is exact in the narrow floats, and the zero points are even: what falls halfway is the same either way. */
    {"QLinearMatMul", "21", "u8 i8",
     "a[5,7]~any sa:f16=(0.03125) za=(3) b:u8[7,9]~any sb:f16=(0.09375) zb:u8=(5) sy:f16=(1) zy:u8=(8) | a[5,7]~any "
     "sa:bf16=(0.03125) za=(3) b:i8[7,9]~any sb:bf16=(0.09375) zb:i8=(5) sy:bf16=(1) zy:i8=(8)",
     NULL, NULL},
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
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
