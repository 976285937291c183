/* Test cases of the quantizations. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

/* Cases whose elements are multiples of 1/2 have scales that are powers of two. Then quotients are exact, also on a device that
 * multiplies by the inverse of the scale, and every device rounds those halfway between two whole numbers equally. */

const clv__case_row clv__cases_quantize[] = {
    {"QuantizeLinear", "22 21 19 13 10", "f32",
     "x[3,5,7,11]~-9:9 s=(0.07) z:u8=(120) | x[3,5]~-9:9 s=(0.07) z:i8=(-5) | x[3,5]~-9:9 s=(0.07) | x[4099]~-9:9 s=(0.03) "
     "z:u8=(100) | x[33,35]~half s=(0.5) z:i8=(3) | x s=(0.1) z:u8=(9)"
     " | x[0,3] s=(0.1) z:u8=(9) | x[3,5]~-99:99 s=(0.1) z:i8=(0) | x[3,5]~-9:9 s?(0.07) z:u8?(120) | x[3,5]~-9:9 s={0.07} "
     "z:u8={3}",
     NULL, NULL},
    {"QuantizeLinear", "21", "f32 f16 bf16",
     "x[3,5]~-9:9 s=(0.0625) z:i8=(-5) | x[3,5]~-9:9 s=(0.0625) z:u8=(50) | x[3,5]~-9:9 s=(0.0078125) z:u16=(3000) | x[3,5]~-9:9 "
     "s=(0.0078125) z:i16=(7)",
     NULL, NULL},
    {"QuantizeLinear", "21 19 13", "f32",
     "x[4,3,6]~-9:9 s={0.05,0.07,0.2} z:i8={1,-2,3} | x[2,3,9,8]~-9:9 s={0.05,0.07,0.2} z:u8={128,0,255} | x[4,3]~-9:9 "
     "s={0.05,0.07,0.2} z:i8={0,0,0}",
     " | axis=1", NULL},
    {"QuantizeLinear", "13", "f32",
     "x[3,6]~-9:9 s={0.05,0.07,0.2} z:u8={1,2,3} | x[3,35]~-9:9 s={0.05,0.07,0.2} | x[3,0] s={0.05,0.07,0.2}", "axis=0 | axis=-2",
     NULL},
    {"QuantizeLinear", "21", "f32", "x[2,6]~-9:9 s[2,3]~0.05:0.2= z:i8[2,3]= | x[5,6]~-9:9 s[5,3]~0.05:0.2= z:u8[5,3]=",
     "axis=1 block_size=2 | axis=-1 block_size=2", NULL},
    {"QuantizeLinear", "21", "f32", "x[3,5]~-9:9 s=(0.07)", "output_dtype=$i8 | output_dtype=$u16", NULL},
    {"QuantizeLinear", "25", "f32 f16", "x[3,5]~-9:9 s=(0.5) | x[33,35]~-9:9 s=(0.5)",
     "output_dtype=$f8e4m3fn | output_dtype=$f8e5m2 | output_dtype=$f4e2m1 | output_dtype=$u4 | output_dtype=$i4 | "
     "output_dtype=$i2",
     NULL},
    {"QuantizeLinear", "13", "i32", "x[3,5]~-900:900 s:f32=(7.5) z:i8=(3)", NULL, NULL},
    {"DequantizeLinear", "22 21 19 13 10", "u8 i8 i32",
     "x[3,5,7,11]~0:99 s:f32=(0.07) z=(0) | x[3,5]~0:99 s:f32=(0.07) | x[4099]~0:99 s:f32=(0.03) | x s:f32=(0.1) | x[0,3] "
     "s:f32=(0.1) | x[3,5]~0:99 s:f32?(0.07) | x[3,5]~0:99 s:f32={0.07}",
     NULL, NULL},
    {"DequantizeLinear", "21", "u8 i8 u16 i16",
     "x[33,35]~any s:f32=(0.07) z=(13) | x[5,7]~any s:f16=(0.0625) z=(13) | x[5,7]~any s:bf16=(0.5) z=(13)", NULL, NULL},
    {"DequantizeLinear", "21 13", "i8 u8",
     "x[4,3,6]~any s:f32={0.05,0.07,0.2} z={1,2,3} | x[2,3,9,8]~any s:f32={0.05,0.07,0.2} z={0,0,0} | x[4,3]~any "
     "s:f32={0.05,0.07,0.2} | x[8,3,5]~any= s:f32={0.05,0.07,0.2} z={1,2,3}",
     " | axis=1", NULL},
    {"DequantizeLinear", "13", "i8 i32",
     "x[3,6]~0:99 s:f32={0.05,0.07,0.2} | x[3,35]~0:99= s:f32={0.05,0.07,0.2} | x[3,0] s:f32={0.05,0.07,0.2}", "axis=0 | axis=-2",
     NULL},
    {"DequantizeLinear", "21", "i8 u8",
     "x[2,6]~any s:f32[2,3]~0.05:0.2= z[2,3]= | x[4,6]~any= s:f32[4,3]~0.05:0.2= z[4,3]=", "axis=1 block_size=2", NULL},
    {"DynamicQuantizeLinear", "22 11", "f32", "x[3,5,7] | x[4099]~-9:9 | x[33,35]~1:9 | x[33,35]~-9:-1 | x[1]", ">111", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
