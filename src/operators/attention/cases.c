/* Test cases of the attention operators. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define PAST "q[2,4,3,8] k[2,2,5,8] v[2,2,5,6] - pk[2,2,4,8] pv[2,2,4,6]"
#define SMALL_FLOATS "f32 f16 bf16"

const clv__case_row clv__cases_attention[] = {
    {"Attention", "23 24", CASE_FLOATS,
     "q[2,3,5,8] k[2,3,7,8] v[2,3,7,6] | q[1,4,1,64] k[1,2,33,64] v[1,2,33,64] | q[2,6,9,5] k[2,2,9,5] v[2,2,9,3] | "
     "q[1,2,70,16] k[1,2,300,16] v[1,2,300,40] | q[1,1,500,8] k[1,1,500,8] v[1,1,500,8] | q[2,3,0,8] k[2,3,7,8] v[2,3,7,6] | "
     "q[2,3,5,8] k[2,3,7,8] v[2,3,7,6] m:bool[5,7] | q[2,3,5,8] k[2,3,7,8] v[2,3,7,6] m[3,1,7] | q[2,3,9,8] k[2,3,7,8] "
     "v[2,3,7,6] m[2,1,1,7] | q[2,3,9,8] k[2,3,7,8] v[2,3,7,6] m:bool[2,3,9,7] | q[2,3,5,8] k[2,3,7,8] v[2,3,7,6] "
     "m:f32[7] | " PAST " | q[2,4,3,8] k[2,2,5,8] v[2,2,5,6] m[3,9] pk[2,2,4,8] pv[2,2,4,6]",
     " | is_causal=1 | scale=0.25 | softcap=2.0 | is_causal=1 softcap=3.0 scale=0.5", NULL},
    {"Attention", "23 24", "f32 f16 f64", PAST " | q[2,4,3,8] k[2,2,5,8] v[2,2,5,6] m:bool[4,3,9] pk[2,2,4,8] pv[2,2,4,6]",
     "*>1111 | >1111 qk_matmul_output_mode=1 softcap=2.0 | >1111 qk_matmul_output_mode=3 is_causal=1 | >111 is_causal=1 | >101",
     NULL},
    {"Attention", "23 24", "f32 f16 bf16", "q[2,4,3,8] k[2,2,5,8] v[2,2,5,6] m[5] | q[2,2,9,8] k[2,2,5,8] v[2,2,5,6]",
     "*>1001 qk_matmul_output_mode=3 softmax_precision=$f32 | softmax_precision=$f32", NULL},
    {"Attention", "23", CASE_FLOATS, "q[2,5,24] k[2,7,24] v[2,7,18] | q[1,33,24] k[1,40,24] v[1,40,12] m[3,33,40]",
     "*q_num_heads=3 kv_num_heads=3 | q_num_heads=3 kv_num_heads=3 is_causal=1", NULL},
    {"Attention", "24", "f32 f16", "q[2,3,16] k[2,5,8] v[2,5,6] - pk[2,2,4,4] pv[2,2,4,3]",
     "*>1111 q_num_heads=4 kv_num_heads=2 | >111 q_num_heads=4 kv_num_heads=2 is_causal=1", NULL},
    {"Attention", "24", CASE_FLOATS,
     "q[2,4,1,8] k[2,2,9,8] v[2,2,9,6] - - - n:i64?{9,4} | q[2,3,5,8] k[2,3,9,8] v[2,3,9,6] m:bool[5,7] - - n:i64?{7,3} | "
     "q[2,3,5,8] k[2,3,9,8] v[2,3,9,6] m[1,8] - - n:i64={8,0} | q[3,2,12,8] k[3,2,20,8] v[3,2,20,8] - - - n:i64?{20,3,12}",
     " | is_causal=1", NULL},
    {"ai.onnx.preview.FlexAttention", "1", CASE_FLOATS,
     "q[2,4,5,8] k[2,2,7,8] v[2,2,7,6] | q[1,1,33,8] k[1,1,40,8]= v[1,1,40,8]=", " | scale=0.25 | softmax_precision=$f32", NULL},
    {"RotaryEmbedding", "23", SMALL_FLOATS,
     "x[2,3,5,8] c[9,4] s[9,4] p:i64[2,5]~-9:8 | x[2,3,5,8] c[2,5,4] s[2,5,4] | x[1,1,1,2] c[1,1,1] s[1,1,1] | x[2,0,5,8] "
     "c[2,5,4] "
     "s[2,5,4] | x[1,9,40,64] c[50,32]= s[50,32]= p:i64[1,40]~0:49=",
     " | interleaved=1", NULL},
    {"RotaryEmbedding", "23", SMALL_FLOATS, "x[2,3,5,8] c[9,3] s[9,3] p:i64[2,5]~-9:8 | x[2,3,5,8] c[2,5,3] s[2,5,3]",
     "*rotary_embedding_dim=6 | rotary_embedding_dim=6 interleaved=1", NULL},
    {"RotaryEmbedding", "23", SMALL_FLOATS, "x[2,5,24] c[9,4] s[9,4] p:i64[2,5]~-9:8 | x[2,5,24] c[2,5,4] s[2,5,4]",
     "*num_heads=3 | num_heads=3 interleaved=1", NULL},
    {"LinearAttention", "27", SMALL_FLOATS, "q[2,5,12]~-1:1 k[2,5,6]~-1:1 v[2,5,10] | q[1,1,12] k[1,1,6] v[1,1,10] p[1,2,3,5]",
     "*q_num_heads=4 kv_num_heads=2 update_rule=linear >11 | q_num_heads=4 kv_num_heads=2 update_rule=linear scale=0.5 >11",
     NULL},
    {"LinearAttention", "27", SMALL_FLOATS,
     "q[2,5,12] k[2,5,6]~-1:1 v[2,5,10] - d[2,5,2]~-2:0 | q[2,5,12] k[2,5,6]~-1:1 v[2,5,10] p[2,2,3,5] d[2,5,6]~-2:0 | "
     "q[1,9,128] k[1,9,64]~-1:1 v[1,9,300] p:f32[1,2,32,150] d[1,9,2]~-2:0",
     "q_num_heads=4 kv_num_heads=2 update_rule=gated >11", NULL},
    {"LinearAttention", "27", SMALL_FLOATS,
     "q[2,5,6] k[2,5,6]~-0.6:0.6 v[2,5,10] - - b[2,5,2]~0:1 | q[2,5,6] k[2,5,6]~-0.6:0.6 v[2,5,10] p[2,2,3,5] - b[2,5,1]~0:1",
     "q_num_heads=2 kv_num_heads=2 update_rule=delta >11", NULL},
    {"LinearAttention", "27", SMALL_FLOATS,
     "q[2,5,12] k[2,5,6]~-0.6:0.6 v[2,5,10] p[2,2,3,5] d[2,5,6]~-2:0 b[2,5,2]~0:1 | q[1,1,12] k[1,1,6]~-0.6:0.6 v[1,1,10] "
     "p[1,2,3,5] d[1,1,2]~-2:0 b[1,1,1]~0:1",
     "q_num_heads=4 kv_num_heads=2 >11", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
