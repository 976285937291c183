/* Cases of operators over pictures (grids, regions, patches) and of Det: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

#define PLACES "={5,0,7,46,20,33,10,11,25,30,41,2}" /* of the 48 elements that [1,2,2,3] unpools to */

const clv__case_row clv__cases_picture[] = {
    {"GridSample", "22", CASE_ANY,
     "x[2,3,4,5] g:f32[2,3,4,2] | x[1,2,7] g:f32[1,9,1] | x[2,1,3,4,5] g:f32[2,2,3,2,3] | x[1,2,4,5]& g:f32[1,1,1,2]&",
     "mode=nearest | mode=nearest padding_mode=border | mode=nearest padding_mode=reflection align_corners=1", NULL},
    {"GridSample", "22 20", CASE_FLOATS,
     "x[2,3,4,5] g[2,3,4,2] | x[1,2,7] g[1,9,1] | x[2,1,3,4,5] g[2,2,3,2,3] | x[0,3,4,5] g[0,3,4,2] | x[1,2,1,1] g[1,3,3,2] | "
     "x[1,9,33,35] g[1,17,9,2]~-1:1",
     "mode=linear | align_corners=1 | padding_mode=border | padding_mode=reflection | padding_mode=reflection align_corners=1 | "
     "mode=cubic",
     NULL},
    {"GridSample", "16", "f32 f64 f16", "x[2,3,4,5] g[2,3,4,2] | x[1,1,2,9] g:f32[1,5,1,2]",
     "mode=bilinear | mode=bicubic | mode=bicubic padding_mode=reflection", NULL},
    {"AffineGrid", "22 20", CASE_FLOATS,
     "t[2,2,3] s:i64={2,3,4,5} | t[1,3,4] s:i64={1,2,3,4,5} | t[1,2,3] s:i64?{1,1,6,2} | t[0,2,3] s:i64={0,1,2,2} | t[2,2,3]& "
     "s:i64={2,1,33,9}",
     "align_corners=0 | align_corners=1", NULL},
    {"NonMaxSuppression", "11 10", "f32",
     "b[2,9,4]~0:3 s[2,3,9]~0:1 m:i64=(4) i:f32=(0.2) t:f32=(0.1) | b[2,9,4]~0:3 s[2,3,9]~0:1 m:i64=(4) i:f32=(0.2) | "
     "b[1,40,4]~0:3 s[1,1,40]~0:1 m:i64?(40) i:f32?(0.1) t:f32?(0.3) | b[1,9,4]~0:3 s[1,1,9]~0:1 m:i64={0} i:f32={0.5} | "
     "b[1,9,4]~0:3 "
     "s[1,2,9]~0:1 | b[1,0,4] s[1,2,0] m:i64=(4) | b[1,9,4]~0:3& s[1,1,9]~0:1& m:i64={9}",
     "center_point_box=0 | center_point_box=1", NULL},
    {"RoiAlign", "22", CASE_FLOATS,
     "x[2,3,8,9] r[4,4]={1,1,6,7,0,2,8,5,3.5,0.25,4,8,-2,-1,12,10} b:i64={0,1,1,0} | x[1,9,4,3] r[2,4]={0,0,3,3,1,1,2,2.5} "
     "b:i64={0,0}",
     NULL, NULL},
    {"RoiAlign", "22 16", CASE_FLOATS,
     "x[2,3,8,9] r[4,4]~0:9 b:i64={0,1,1,0} | x[1,9,4,3] r[2,4]~0:4 b:i64?{0,0} | x[1,2,5,5] r[0,4] b:i64={}",
     "output_height=2 output_width=3 | output_height=2 output_width=3 mode=max | output_height=4 output_width=1 sampling_ratio=2 "
     "| "
     "coordinate_transformation_mode=output_half_pixel spatial_scale=0.5 output_width=2",
     NULL},
    {"RoiAlign", "10", "f32 f64 f16", "x[2,3,8,9] r[4,4]~0:9 b:i64={0,1,1,0}",
     "output_height=2 output_width=3 | output_height=2 output_width=3 mode=max sampling_ratio=2", NULL},
    {"Col2Im", "18", CASE_NUMBERS,
     "x[2,8,12] i:i64={4,5} b:i64={2,2} | x[1,3,7] i:i64={9} b:i64={3} | x[1,8,8] i:i64={3,3,3} b:i64={2,2,2} | x[1,8,4] "
     "i:i64?{3,3} b:i64?{2,2} | x[0,4,4] i:i64={3,3} b:i64={2,2}",
     NULL, NULL},
    {"Col2Im", "18", "f32 i32", "x[1,4,16] i:i64={5,5} b:i64={2,2}",
     "dilations=[2,2] pads=[1,0,0,1] | pads=[0,0,0,0] dilations=[1,1]", NULL},
    {"Col2Im", "18", "f32 f64", "x[1,9,9] i:i64={5,5} b:i64={3,3}", "strides=[2,2] pads=[1,1,1,1]", NULL},
    {"MaxUnpool", "22", CASE_FLOATS,
     "x[1,2,2,3] i:i64[1,2,2,3]" PLACES " | x[1,2,2,3] i:i64[1,2,2,3]" PLACES
     " s:i64={1,2,5,6} | x[1,2,2,3]& i:i64[1,2,2,3]?{5,0,7,46,20,33,10,11,25,30,41,2} | x[0,1,2,2] i:i64[0,1,2,2]",
     "kernel_shape=[2,2] strides=[2,2]", NULL},
    {"MaxUnpool", "11 9", "f32 f64 f16", "x[1,1,5] i:i64[1,1,5]={1,3,4,7,9}",
     "kernel_shape=[2] strides=[2] | kernel_shape=[4] strides=[2] pads=[1,1]", NULL},
    {"CenterCropPad", "18", CASE_ANY,
     "x[5,8]~any s:i64={3,11} | x[4,6,3] s:i64={7,3,3} | x[9]~any s:i32={4} | x[5,8] s:i64={0,3} | x[5,0] s:i64={5,3} | x[33,35] "
     "s:i64?{20,40} | x[5,8]& s:i64={6,7}",
     NULL, NULL},
    {"CenterCropPad", "18", "f32 i64", "x[5,8,3] s:i64={3,11} | x[2,9,4] s:i64={12,2}", "axes=[0,1] | axes=[-2,0]", NULL},
    {"DeformConv", "22 19", "f32 f64 f16",
     "x[2,2,5,6] w[4,2,3,3]= o[2,18,3,4]~-1:1 | x[2,2,5,6] w[4,2,3,3] o[2,18,3,4] b[4] m[2,9,3,4]~0:1 | x[1,2,5,6] w[4,2,2,1]= "
     "o[1,4,4,6] - m[1,2,4,6] | x[1,2,7] w[3,2,3] o[1,3,5] | x[0,2,5,6] w[4,2,3,3] o[0,18,3,4]",
     NULL, NULL},
    {"DeformConv", "22", "bf16 f32", "x[1,4,5,6] w[4,2,3,3] o[1,36,3,3] b[4]",
     "group=2 offset_group=2 strides=[2,2] pads=[1,1,1,1] | group=2 offset_group=2 strides=[2,1] pads=[1,0,1,1] dilations=[1,2]",
     NULL},
    {"Det", "22", CASE_FLOATS, "x[3,3] | x[2,4,4] | x[1,1] | x[2,3,2,2] | x[0,3,3] | x[2,0,0] | x[5,5]& | x[2,17,17]~-1:1", NULL,
     NULL},
    {"Det", "11", "f32 f64 f16", "x[3,3] | x[2,2,2]~half", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
