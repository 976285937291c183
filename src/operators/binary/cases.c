/* Test cases of element-wise operators of several operands, which broadcast. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

/* Operands of operators with two operands: broadcasting in every direction, constants on either side, empty tensors, scalars,
 * and rows long enough for vector loops. */
#define PAIRS(a, b)                                                                                                            \
  "a[3,5,7,11]" a " b[3,5,7,11]" b " | a[3,5,7,11]" a " b[7,11]" b " | a[5,7]" a " b[3,5,7]" b " | a[4,1,6]" a " b[3,1]" b     \
  " | a" a " b[3,5]" b " | a[3,5]" a " b" b " | a" a " b" b " | a[1]" a " b[1,1,1]" b " | a[0,3]" a " b[3]" b " | a[2,0]" a    \
  " b[1]" b " | a[4099]" a " b[4099]" b " | a[4099]" a " b[1]" b " | a[2,3,5,1,7]" a " b[3,1,4,7]" b " | a[8,33]" a " b[33]" b \
  "= | a[8,33]" a "= b[8,1]" b " | a[9,65]" a " b" b "= | a[2,3,4]" a " b[1,3,1]" b                                            \
  "="                                                                                                                          \
  " | a[1,64,5,5]" a " b[64,1,1]" b "= | a[3,70]" a "& b[3,1]" b "&"

const clv__case_row clv__cases_binary[] = {
    {"Add", "22 14 13 7", CASE_NUMBERS, PAIRS("", ""), NULL, NULL},
    {"Sub", "22 14 13 7", CASE_NUMBERS, PAIRS("~10:90", "~0:9"), NULL, NULL},
    {"Mul", "22 14 13 7", CASE_NUMBERS, PAIRS("", ""), NULL, NULL},
    {"Div", "22 14 13 7", CASE_NUMBERS, PAIRS("~-90:90", "~1:9"), NULL, NULL},
    {"Div", "14", CASE_FLOATS " " CASE_SIGNED, "a[33,35]~-90:90 b[33,35]~-9:-1 | a[5]~-1:90 b[1]~-9:-1 | a[5] b[5]~2:3=", NULL,
     NULL},
    {"Add Sub Mul", "14", "f32", "a[33,35]~-1000:1000 b[33,35]~-0.001:0.001 | a[7]~half b[7]~half", NULL, NULL},
    {"Pow", "22 15 13", CASE_FLOATS, PAIRS("~0.3:3", "~-2:3"), NULL, NULL},
    {"Pow", "15", CASE_FLOATS,
     "a[5,7]~-3:3 b=(2) | a[5,7]~-3:3 b=(3) | a[5,7]~0.2:3 b=(0.5) | a[5,7]~0.2:3 b=(-0.5)"
     " | a[5,7]~0.5:3 b=(-1) | a[5,7]~-3:3 b=(0) | a[5,7]~-3:3 b=(1) | a[4099]~-3:3 b=(2) | a[5,7]~-3:3 b={2}"
     " | a[5,7]~-3:3 b?(2) | a=(2) b[5,7]~-3:3",
     NULL, NULL},
    {"Pow", "15", "i32 i64", "a[5,7]~-5:5 b[5,7]~0:4 | a[5,7]~-9:9 b=(2) | a[4099]~-3:3 b[1]~0:5", NULL, NULL},
    {"Pow", "15", "f32 f16 f64",
     "a[5,7]~0.3:3 b:i32[7]~0:4 | a[5,7]~0.3:3 b:i64=(3) | a[5,7]~0.3:3 b:f64[7] | a[5,7]~0.3:3 b:f32=(2)", NULL, NULL},
    {"Pow", "15", "i32 i64", "a[5,7]~1:9 b:f32[7]~0:2 | a[5,7]~1:9 b:i64=(2)", NULL, NULL},
    {"Mod", "22 13 10", CASE_INTEGERS, PAIRS("~-90:90", "~1:9"), NULL, NULL},
    {"Mod", "13", CASE_SIGNED, "a[33,35]~-90:90 b[33,35]~-9:-1", " | fmod=1", NULL},
    {"Mod", "13 10", CASE_NUMBERS, "a[3,5,7]~-90:90 b[3,5,7]~1:9 | a[3,5,7]~-90:90 b[7]~1:9 | a[4099]~0:90 b[1]~2:9", "fmod=1",
     NULL},
    {"BitShift", "11", CASE_UNSIGNED,
     "*a[3,5,7]~any b[3,5,7]~0:7 | a[3,5,7]~any b~0:7 | a[4099]~any b[1]~0:7= | a b[3,5]~0:7 | a[0] b[1]",
     "*direction=LEFT | direction=RIGHT", NULL},
    {"BitwiseAnd BitwiseOr BitwiseXor", "18", CASE_INTEGERS, PAIRS("~any", "~any"), NULL, NULL},
    {"And Or Xor", "22 7", "bool", PAIRS("", ""), NULL, NULL},
    {"Equal", "22 19 13 11", CASE_ANY,
     PAIRS("", "") " | a[33,35]~nan b[33,35]~nan | a[33,35]~half b[33,35]~half | a:i64[9]~any b:i64[1]~any", NULL, NULL},
    {"Equal", "13 7", "i32 i64 i8 i16 u8 u16 u32 u64", "a[33,35]~0:3 b[33,35]~0:3 | a[33,35]~any b[33,35]~any", NULL, NULL},
    {"Greater Less", "22 13 9", CASE_NUMBERS, PAIRS("~half", "~half") " | a[33,35]~nan b[33,35]~nan | a[33,35]~max b[33,35]~max",
     NULL, NULL},
    {"GreaterOrEqual LessOrEqual", "22 16 12", CASE_NUMBERS,
     PAIRS("~half", "~half") " | a[33,35]~nan b[33,35]~nan | a[33,35]~max b[33,35]~max", NULL, NULL},
    {"Greater Less GreaterOrEqual LessOrEqual", "16", "*" CASE_INTEGERS, "a[33,35]~any b[33,35]~any", NULL, NULL},
    {"PRelu", "22 16 9 7", "f32 f16 bf16 f64 i32 i64 u32 u64",
     "x[2,5,7,3] s[5,1,1]= | x[2,5,7,3] s[2,5,7,3] | x[2,5,7,3] s[1]= | x[2,5,7,3] s= | x[2,5] s[5]= | x[4099] s[1] | x[0,3] "
     "s[3]="
     " | x[1,64,5,5] s[64,1,1]= | x[2,5,7] s[5,1]&",
     NULL, NULL},
    {"Min Max", "22 13 12 8", CASE_NUMBERS,
     PAIRS("", "") " | a[33,35]~inf b[33,35]~inf | a[33,35]~max b[33,35]~max"
                   " | a[5,7] | a[5,7] b[7] c[5,1] | a[5,7] b c[3,1,1] d[7]= | a[4099] b[4099] c[4099] | a= b[5,7] c[7]=",
     NULL, NULL},
    {"Min Max", "13", CASE_INTEGERS, "a[33,35]~any b[33,35]~any", NULL, NULL},
    {"Sum Mean", "22 13 8", CASE_FLOATS,
     PAIRS("",
           "") " | a[5,7] | a[5,7] b[7] c[5,1] | a[5,7] b c[3,1,1] d[7]= | a[4099] b[4099] c[4099] | a[5] b[5] c[5] d[5] e[5]",
     NULL, NULL},
    {"Where", "22 16 9", CASE_ANY,
     "c:bool[3,5,7,11] a[3,5,7,11]~any b[3,5,7,11]~any | c:bool[7] a[5,7] b[5,7] | c:bool[5,7] a b | c:bool a[5,7] b[5,7]"
     " | c:bool[4,1] a[1,6] b[3,1,1] | c:bool[0,3] a[3] b | c:bool[4099] a[4099] b= | c:bool[4099] a= b[4099] | c:bool a b"
     " | c:bool[1,1,8,9]= a[2,3,8,9] b= | c:bool[5,7]& a[5,7] b[7]= | c:bool[2,3,1,5,2] a[3,4,1,1] b[2]",
     NULL, NULL},
    {"SwiGLU", "28", CASE_FLOATS,
     "a[5,7] b[5,7] | a b | a[3,515] b[3,515]= | a[0,3] b[0,3] | a[2,3,9]~-90:90 b[2,3,9] | a[9]& b[9]",
     " | alpha=1.702 | alpha=-0.5", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
