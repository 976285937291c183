/* Test cases of operators on regions of images: NonMaxSuppression selects boxes, RoiAlign pools regions. See operators/cases.h
 * for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_region[] = {
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
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
