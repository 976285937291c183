/* Test cases of operators that select or reorder elements. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_select[] = {
    {"NonZero", "22 13 9", CASE_ANY,
     "x[5,7]~0:1 | x[3,4,5]~0:1 | x[9]~0:1 | x[0,3] | "
     "x[5,7]={0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0} | x[33,35]~half | x[5]~0:1&",
     NULL, NULL},
    {"NonZero", "13", "bool i32 f32", "x[3,4,5]~half | x[4099]~half | x[2,3,2,2,3]~half", NULL, NULL},
    {"TopK", "22 11", "f32 f16 f64 " CASE_INTEGERS,
     "x[5,9] k:i64={3} | x[5,9] k:i64={9} | x[5,9] k:i64={1} | x[9] k:i64={4} | x[3,2,7] k:i64={2} | x[0,5] k:i64={2} | x[5,9] "
     "k:i64={0} | x[5,9]~half k:i64={5} | x[3,1000] k:i64={7} | x[5,9] k:i64?{3}",
     ">11 | >11 largest=0 | >11 sorted=1", NULL},
    {"TopK", "11", "f32 i32", "x[5,6,7] k:i64={3} | x[33,9,5] k:i64={5}", ">11 axis=0 | >11 axis=1 | >11 axis=-2 largest=0",
     NULL},
    {"TopK", "10", "f32 f64", "x[5,9] k:i64={3} | x[7,3] k:i64={2}", ">11 | >11 axis=0", NULL},
    {"TopK", "1", "f32 f64", "x[5,9] | x[33,3]", ">11 k=3 | >11 k=2 axis=0", NULL},
    {"Compress", "22 11 9", CASE_OLD,
     "x[5,7]~any c:bool[5] | x[9] c:bool[9] | x[5,7] c:bool={1,0,1} | x[5,7] c:bool={0,0,0} | x[0,3] c:bool[0] | x[33,35] "
     "c:bool[33] | x[5,7]& c:bool={1,1,0,0,1}",
     "axis=0", NULL},
    {"Compress", "11", "f32 i64", "x[5,7] c:bool[5] | x[5,7,3] c:bool={0,1,1}", "axis=1 | axis=-1 | ", NULL},
    {"Unique", "22 11", "f32 f16 f64 " CASE_INTEGERS, "x[15]~0:5 | x[5,7]~half | x[33]~0:9 | x[1] | x[3,4]~0:3&",
     ">1111 | >1111 sorted=0 | >1000 | >1010", NULL},
    {"Unique", "11", "f32 i64", "x[4,3]~0:1 | x[5,2,2]~0:1 | x[2,9]~0:1", ">1111 axis=0 | >1111 axis=1 | >1001 axis=-1", NULL},
    {"ReverseSequence", "22 10", CASE_OLD,
     "x[4,5]~any l:i64={4,2,1,3,4} | x[6,3,2] l:i64={1,6,3} | x[1,1] l:i64={1} | x[4,0] l:i64={} | x[33,2] l:i64={33,17} | "
     "x[3,2,2,2] l:i64?{3,2} | x[4,2]& l:i64={0,3}",
     NULL, NULL},
    {"ReverseSequence", "10", "f32 i64", "x[4,5] l:i64={4,2,1,3} | x[4,6,3] l:i64={6,1,2,5}", "batch_axis=0 time_axis=1", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
