/* Test cases of Cleave's own operators over graphs in compressed rows. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

/* The offsets and sources of five rows, which have 2, 0, 3, 4 and 1 sources. The sources are random, so some repeat. Some cases
 * below have other offsets, which end below 10: the remaining sources are unused. */
#define EDGES "o:i64?{0,2,2,5,9,10} e:i64[10]~0:6"

const clv__case_row clv__cases_sparse[] = {
    {"ai.cleave.SparseAggregate", "1", "f32 f16 bf16",
     "x[7,33] " EDGES " | x[7,1] " EDGES " | x[7,33] o:i64?{0,2,2,5,7} e:i64[10]~0:6 | x[7,33] o:i64?{0,2,2,5,9,10} "
     "e:i32[10]~0:6 | x[3,5] o:i64?{0} e:i64[0] | x[3,5] o:i64?{0,0,0} e:i64[0]"
     " | x[9,130] o:i64={0,9,40} e:i64[40]~0:8= | x[7,0] " EDGES " | x[7,33]& " EDGES,
     " | reduce=sum | reduce=mean | reduce=max", NULL},
    {"ai.cleave.SparseAttention", "1", "f32 f16 bf16",
     "x[7,32] s[7,4] t[5,4] " EDGES " | x[7,5] s[7,1] t[5,1] " EDGES
     " | x[7,32] s[7,4] t[4,4] o:i64?{0,2,2,5,7} e:i32[10]~0:6 | x[3,4] s[3,2] t[2,2] o:i64?{0,0,0} e:i64[0]"
     " | x[9,130] s[9,2]~-20:20 t[2,2] o:i64={0,9,40} e:i64[40]~0:8=",
     " | negative_slope=0.5", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
