/* Test cases of signal transforms and related operators. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_signal[] = {
    {"DFT", "20", CASE_FLOATS,
     "x[3,8,1] | x[3,15,2] | x[3,40,2] | x[3,8,1] l:i64=(12) | x[3,8,2] l:i32=(5) | x[8,3,1] - a:i64=(0) | x[2,7,3,2] l:i64=(8) "
     "a:i64=(-3) | "
     "x[2,100,1] | x[1,1,1] | x[0,8,2] | x[3,8,1] l:i64?(9) a:i64?(1) | x[3,64,2]&",
     "inverse=0 | inverse=1 | onesided=1", NULL},
    {"DFT", "20", "f32 f64", "x[3,9,2] | x[3,9,2] l:i64=(15) | x[3,9,2] l:i64=(80)", "inverse=1 onesided=1", NULL},
    {"DFT", "17", CASE_FLOATS, "x[3,8,1] | x[3,15,2,2] | x[3,37,1] l:i64=(12)", "axis=1 | inverse=1 | onesided=1", NULL},
    {"DFT", "17", "f32", "x[8,3,1] | x[6,3,2]", "axis=0 | axis=-2 inverse=1", NULL},
    {"STFT", "17", CASE_FLOATS,
     "x[2,40,1] s:i64=(5) w[16]= | x[2,40,1] s:i64=(8) - l:i64=(16) | x[2,40,1] s:i32=(3) w[7] l:i32=(7) | x[1,40,1] s:i64=(7) | "
     "x[2,40,1] s:i64?(5) - l:i64?(10) | x[0,40,1] s:i64=(5) w[16] | x[2,40,1]& s:i64=(40) w[33]&",
     "onesided=1 | onesided=0", NULL},
    {"STFT", "17", "f32 f64", "x[2,40,2] s:i64=(5) w[16]= | x[1,99,2] s:i64=(9) - l:i64=(45)", "onesided=0", NULL},
    {"HannWindow HammingWindow BlackmanWindow", "17", "i64 i32", "n=(10) | n=(1) | n=(0) | n=(33) | n={16} | n?(12)",
     "periodic=1 | periodic=0 | output_datatype=$f64 | output_datatype=$f16 periodic=0 | output_datatype=$bf16 | "
     "output_datatype=$i32",
     NULL},
    {"MelWeightMatrix", "17", "i64 i32",
     "m=(8) d:i64=(16) r:i64=(8192) l:f32=(0) u:f32=(4096) | m=(5) d:i64=(255) r:i32=(16000) l:f32=(50) u:f32=(7000) | m?(3) "
     "d:i64?(64) "
     "r:i64?(8000) l:f64?(10) u:f64?(3000)",
     "output_datatype=$f32 | output_datatype=$f64", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
