/* Cases of operators that join, cut, surround, repeat and turn: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

#define PAD_LISTS                                                                                                   \
  "x[3,5,7]~any p:i64={0,1,2,1,0,3} | x[5,7] p:i64={1,1,1,1} | x[7] p:i64={3,2} | x[5,7] p:i64={0,0,0,0} | x[5,7] " \
  "p:i64={-1,1,1,-2}"                                                                                               \
  " | x[2,3,9,8] p:i64={0,0,1,1,0,0,1,1} | x[33,35] p:i64={2,1,3,4} | x[1,2,3,2,4] p:i64={0,1,1,0,2,0,0,1,1,1}"

const clv__case_row clv__cases_join[] = {
    {"Concat", "22 13 11 7", CASE_ANY,
     "x[3,5,7]~any y[3,2,7]~any | x[3,5,7] y[3,1,7] z[3,4,7] | x[3,5,7] | x[3,0,7] y[3,2,7] | x[3,2] y[3,1]= z[3,4]& | x[4,1025] "
     "y[4,3]"
     " | x[2,3] y[2,3] z[2,1] u[2,5] v[2,2] w[2,7] | x[2,8,5,5] y[2,8,5,5] | x[1,2,2,3,2] y[1,1,2,3,2] | x[0,3] y[0,2]",
     "axis=1", NULL},
    {"Concat", "13", "f32 i64 f16", "x[3,5] y[3,5] | x[1,1] y[1,1] | x[33,35] y[33,35]=", "axis=0 | axis=-1 | axis=-2 | axis=1",
     NULL},
    {"Concat", "13", "f32 i64", "x[5] y[1] | x[0] y[3] | x[4099] y[7]= z[1]", "axis=0 | axis=-1", NULL},
    {"Split", "22 18", CASE_ANY, "x[6,5]~any | x[7,5] | x[2,5] | x[0,5] | x[6,4,3,2] | x[3000] | x[6,2]&", ">111 num_outputs=3",
     NULL},
    {"Split", "18 13", "f32 i64 f16 bool",
     "x[3,7] s:i64={2,4,1} | x[3,7] s:i64={0,7,0} | x[3,7] s:i64?{2,4,1} | x[2,7,5] s:i64={1,1,5} | x[40,7,3] s:i64={3,3,1}",
     ">111 axis=1", NULL},
    {"Split", "13", "f32 i32", "x[4,6] | x[1,6,3] | x[2,8,5,5]", ">11 axis=1", NULL},
    {"Split", "13", "f32", "x[4,6] s:i64={2,4}", ">11 axis=-1", NULL},
    {"Split", "11 7", "f32 i32 f64", "x[4,6] | x[9,6,2]", ">11 axis=1 | >11 axis=1 split=[2,4] | >111 axis=1 split=[1,5,0]",
     NULL},
    {"Slice", "22 13 11 10", CASE_ANY,
     "x[3,5,7,11]~any s:i64={1,2} e:i64={3,9} a:i64={0,3} t:i64={1,3} | x[3,5,7] s:i64={1,1,2} e:i64={3,4,7} | x[3,5,7] "
     "s:i64={2} e:i64={-1} a:i64={-1} | x[9,8] s:i64={-1,-2} e:i64={-100,-7} a:i64={0,1} t:i64={-1,-2}"
     " | x[9,8] s:i64={2} e:i64={2} a:i64={1} | x[9,8] s:i64={0} e:i64={9223372036854775807} a:i64={1} t:i64={2} | x[9,8] "
     "s:i32={-3} e:i32={100} a:i32={0} | x[0,8] s:i64={0} e:i64={5} a:i64={0}"
     " | x[4099] s:i64={3} e:i64={4000} | x[4099] s:i64={4098} e:i64={-9223372036854775807} a:i64={0} t:i64={-3} | x[2,3,4,2,3] "
     "s:i64={1,0} e:i64={3,2} a:i64={2,4} | x[9,8]& s:i64={1} e:i64={5}"
     " | x[9,8] s:i64?{1} e:i64?{5} | x[1,8,6,6] s:i64={2} e:i64={6} a:i64={1} | x[4,5] s:i64={1} e:i64={4} - t:i64={2}",
     NULL, NULL},
    {"Slice", "9 1", "f32 i32 bool", "x[3,5,7] | x[33,35,4]",
     "starts=[1,2] ends=[3,5] axes=[0,2] | starts=[0,1] ends=[2,-1] | starts=[-2] ends=[9] axes=[1]", NULL},
    {"Pad", "22 21 18 13 11", CASE_ANY, PAD_LISTS " | x[0,3] p:i64={1,1,0,2} | x[5,7] p:i64?{1,0,2,1} | x[5,7]& p:i64={0,1,0,1}",
     " | mode=constant", NULL},
    {"Pad", "18 13 11", CASE_ANY, "x[5,7]~any p:i64={1,1,1,1} v=(1) | x[4099] p:i64={3,2} v=(0) | x[5,7] p:i64={0,2,1,0} v?(1)",
     NULL, NULL},
    {"Pad", "19 11", "f32 i32 f16 f64", PAD_LISTS, "mode=edge | mode=reflect", NULL},
    {"Pad", "19", "f32 i32 i64", PAD_LISTS, "mode=wrap", NULL},
    {"Pad", "18", "f32 i64",
     "x[3,5,7] p:i64={1,2} - a:i64={1} | x[3,5,7] p:i64={1,0,2,3} v=(3) a:i64={-1,0} | x[3,5,7] p:i64={2,1} v=(2) a:i32={-2}",
     " | mode=edge", NULL},
    {"Pad", "10", "f32 f16 f64", "x[5,7] | x[33,35]",
     "pads=[1,0,2,1] | pads=[1,1,1,1] value=1.5 | pads=[1,2,0,1] mode=reflect | pads=[0,2,1,1] mode=edge", NULL},
    {"Expand", "22 13 8", CASE_ANY,
     "x[3,1,7]~any s:i64={5,7} | x[3,1] s:i64={2,1,6} | x s:i64={3,4} | x[1] s:i64={0} | x[5] s:i64={1} | x[3,4] s:i64={3,4} | "
     "x[1,1] s:i64={33,35} | x[3,1] s:i64?{3,4} | x[2,1,3,1] s:i64={2,2,4,3,5} | x[0,1] s:i64={0,5} | x[3,1]& s:i64={1,3}",
     NULL, NULL},
    {"Tile", "22 13 7", CASE_ANY,
     "x[3,5,7]~any r:i64={1,2,3} | x[5] r:i64={4} | x[2,3] r:i64={0,2} | x[2,3] r:i64={1,1} | x[0,3] r:i64={2,2} | x[33,35] "
     "r:i64={2,1} | x[3,5] r:i64?{2,2} | x[1,2,3,1,2] r:i64={2,1,1,3,2} | x[2,3]& r:i64={2,3}",
     NULL, NULL},
    {"Transpose", "22 21 13 1", CASE_ANY,
     "x[3,5,7,11]~any | x[5,7] | x[4] | x | x[2,0,3] | x[1,5,1] | x[65,67] | x[2,3,4,2,5] | x[5,7]&", NULL, NULL},
    {"Transpose", "13", "f32 f16 f64 i8 bool", "x[3,5,7,11] | x[2,64,9,9] | x[1,1,4,6] | x[2,0,3,4]",
     "perm=[0,2,3,1] | perm=[0,3,1,2] | perm=[0,2,1,3] | perm=[3,2,1,0] | perm=[0,1,3,2] | perm=[0,1,2,3] | perm=[1,0,2,3] | "
     "perm=[2,3,0,1]",
     NULL},
    {"Transpose", "13", "f32 u8 f64", "x[9,35,33] | x[1,7,3] | x[4,2,130]",
     "perm=[0,2,1] | perm=[1,0,2] | perm=[2,0,1] | perm=[1,2,0]", NULL},
    {"DepthToSpace", "22 13 11 1", CASE_ANY, "x[1,8,3,5]~any | x[2,12,1,4] | x[0,4,2,2] | x[1,64,7,7] | x[1,4,33,3]&",
     "blocksize=2", NULL},
    {"DepthToSpace", "13 11", "f32 f16 i32", "x[1,8,3,5] | x[2,16,9,4]",
     "blocksize=2 mode=CRD | blocksize=2 mode=DCR | blocksize=1", NULL},
    {"DepthToSpace", "13", "f32", "x[1,18,3,5]", "blocksize=3 | blocksize=3 mode=CRD", NULL},
    {"SpaceToDepth", "22 13 1", CASE_ANY, "x[1,2,4,6]~any | x[2,3,2,2] | x[0,3,4,4] | x[1,16,14,14] | x[1,1,34,2]&",
     "blocksize=2 | blocksize=1", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
