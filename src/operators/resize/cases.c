/* Test cases of operators that interpolate between the elements of an image. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define UP "x[1,2,4,5] - s:f32={1,1,2,3}"
#define MODES(mode)                                                                                                      \
  "mode=" mode " | mode=" mode " coordinate_transformation_mode=half_pixel | mode=" mode                                 \
  " coordinate_transformation_mode=align_corners | mode=" mode " coordinate_transformation_mode=asymmetric | mode=" mode \
  " coordinate_transformation_mode=pytorch_half_pixel"

const clv__case_row clv__cases_resize[] = {
    {"Resize", "22 19 18 13 11", CASE_ANY,
     UP " | x[1,2,4,5] - s:f32={1,1,0.5,0.6} | x[2,3,7,9] - s:f32={1,1,1.5,0.75} | x[1,2,4,5] - - z:i64={1,2,7,11} | x[1,2,4,5] "
        "- - z:i64={1,2,3,2}"
        " | x[1,2,4,5] - s:f32={1,1,1,1} | x[1,8,16,16] - s:f32={1,1,2,2} | x[1,2,9] - s:f32={1,1,2} | x[1,2,3,4,3] - "
        "s:f32={1,1,2,1,2} | x[4,5] - s:f32={2,2} | x[0,2,4,4] - s:f32={1,1,2,2} | x[1,2,1,1] - s:f32={1,1,3,3}"
        " | x[1,2,4,5]& - s:f32={1,1,2,2}",
     MODES("nearest") " | nearest_mode=floor | nearest_mode=ceil | nearest_mode=round_prefer_ceil | mode=nearest "
                      "coordinate_transformation_mode=asymmetric nearest_mode=floor",
     NULL},
    {"Resize", "22 19 18 13 11", CASE_FLOATS,
     UP " | x[1,2,4,5] - s:f32={1,1,0.5,0.6} | x[2,3,7,9] - s:f32={1,1,1.5,0.75} | x[1,2,4,5] - - z:i64={1,2,7,11} | x[1,2,4,5] "
        "- - z:i64={1,2,3,2}"
        " | x[1,8,16,16] - s:f32={1,1,2,2} | x[1,2,9] - s:f32={1,1,2} | x[4,5] - s:f32={2,2} | x[0,2,4,4] - s:f32={1,1,2,2} | "
        "x[1,2,1,1] - s:f32={1,1,3,3} | x[1,2,5,5]& - - z:i64={1,2,10,10}",
     MODES("linear"), NULL},
    {"Resize", "19 11", "f32 f64 f16",
     UP " | x[1,2,6,5] - s:f32={1,1,0.5,0.6} | x[1,2,4,5] - - z:i64={1,2,9,8} | x[4,5] - s:f32={2,2.5}",
     MODES("cubic") " | mode=cubic cubic_coeff_a=-0.5 | mode=cubic exclude_outside=1", NULL},
    {"Resize", "13 11", "f32",
     "x[1,2,6,5] r:f32={0,0,0.2,0.1,1,1,0.8,0.9} s:f32={1,1,1.5,2} | x[1,1,4,4] r:f32={0,0,-0.5,0.1,1,1,0.8,1.5} - "
     "z:i64={1,1,5,6}",
     "mode=linear coordinate_transformation_mode=tf_crop_and_resize", NULL},
    {"Resize", "13", "f32", "x[1,1,4] r:f32={0,0,-0.5,1,1,1.5} - z:i64={1,1,5}",
     "mode=linear coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=1.5", NULL},
    {"Resize", "18 19", "f32", "x[1,2,4,5] - s:f32={2,3} | x[1,2,4,5] - - z:i64={7,9}",
     "axes=[2,3] | axes=[-2,-1] mode=linear | axes=[3,2] mode=linear", NULL},
    {"Resize", "18", "f32", "x[1,2,8,6] - - z:i64={7,9} | x[1,2,8,6] - - z:i64={13,9}",
     "axes=[2,3] keep_aspect_ratio_policy=not_larger | axes=[2,3] keep_aspect_ratio_policy=not_smaller mode=linear", NULL},
    {"Resize", "18", "f32 f64", "x[1,2,12,10] - s:f32={1,1,0.5,0.4} | x[1,2,9,9] - - z:i64={1,2,4,5}",
     "mode=linear antialias=1 | mode=cubic antialias=1", NULL},
    {"Resize", "19", "f32", UP " | x[1,2,4,5] - - z:i64={1,2,7,11}",
     "mode=linear coordinate_transformation_mode=half_pixel_symmetric | mode=nearest "
     "coordinate_transformation_mode=half_pixel_symmetric",
     NULL},
    {"Resize", "10", "f32 f16", "x[1,2,4,5] s:f32={1,1,2,3} | x[1,2,4,6] s:f32={1,1,0.5,0.5}", "mode=nearest | mode=linear",
     NULL},
    {"Upsample", "9", CASE_OLD, "x[1,2,4,5] s:f32={1,1,2,3} | x[2,3,7,9] s:f32={1,1,1,2} | x[1,8,16,16] s:f32={1,1,2,2}",
     "mode=nearest | mode=linear", NULL},
    {"Upsample", "7", "f32 f16 f64", "x[1,2,4,5] | x[2,3,7,9]",
     "mode=nearest scales=[1.0,1.0,2.0,3.0] | mode=linear scales=[1.0,1.0,2.0,2.0]", NULL},
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
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
