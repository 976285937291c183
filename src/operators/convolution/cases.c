/* Cases of Conv and ConvTranspose: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

#define PLAIN "x[1,3,9,8] w[4,3,3,3]= b[4]="

const clv__case_row clv__cases_conv[] = {
    /* Operands. */
    {"Conv", "22 11 1", CASE_FLOATS,
     PLAIN
     " | x[1,3,9,8] w[4,3,3,3]= | x[1,3,9,8] w[4,3,3,3] b[4] | x[1,3,9,8] w[4,3,3,3]= b[4] | x[2,5,7,7] w[7,5,1,1]= b[7]="
     " | x[3,1,11,5] w[2,1,3,2]= b[2]= | x[1,17,13,13] w[33,17,3,3]= b[33]= | x[1,64,8,8] w[64,64,1,1]= b[64]= | x[1,1,3,3] "
     "w[1,1,3,3]="
     " | x[0,3,9,8] w[4,3,3,3]= b[4]= | x[1,3,9,8]& w[4,3,3,3]& | x[1,16,20,20] w[16,16,5,5]= | x[2,3,32,32] w[16,3,7,7]= b[16]="
     " | x[1,3,9,8]= w[4,3,3,3] b[4]=",
     NULL, NULL},
    /* Of rank 1 and 3. */
    {"Conv", "22 11", CASE_FLOATS, "x[2,3,17] w[4,3,3]= b[4]= | x[1,8,100] w[9,8,5]= | x[1,1,5] w[1,1,5]",
     " | strides=[2] | pads=[1,1] | pads=[2,0] | dilations=[2] | kernel_shape=[3] pads=[1,1] strides=[3]", NULL},
    {"Conv", "22 11", "f32 f16 f64", "x[1,2,5,6,7] w[3,2,3,3,3]= b[3]= | x[2,4,4,4,9] w[5,4,2,3,1]=",
     " | strides=[1,2,2] | pads=[1,1,1,1,1,1] | pads=[0,1,2,1,0,1] | dilations=[1,1,2]", NULL},
    /* Attributes. */
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
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
