/* Test cases of RNN, GRU and LSTM. See operators/cases.h for the syntax of the rows. The weights of the states are small, so that
 * rounding differences do not grow over the steps. */
#include "operators/cases.h"

const clv__case_row clv__cases_recurrent[] = {
    {"RNN", "22 14 7", "f32",
     "x[6,3,4] w[1,5,4] r[1,5,5]~-0.4:0.4 b[1,10] | x[6,1,4] w[1,5,4] r[1,5,5]~-0.4:0.4 | x[6,3,4] w[1,5,4]= r[1,5,5]~-0.4:0.4= "
     "b[1,10]= | x[6,3,4] w[1,5,4] r[1,5,5]~-0.4:0.4 - len:i32?{6,2,3} h0[1,3,5]",
     "hidden_size=5 >11 | hidden_size=5 >1 | hidden_size=5 >01 | direction=reverse hidden_size=5 >11 | hidden_size=5 clip=0.3 "
     ">11",
     NULL},
    {"RNN", "22 14", CASE_FLOATS, "x[4,3,6] w[2,19,6] r[2,19,19]~-0.2:0.2 b[2,38] - h0[2,3,19]",
     "direction=bidirectional hidden_size=19 >11", NULL},
    {"RNN", "22 14", "f32", "x[3,4,6] w[2,7,6] r[2,7,7]~-0.3:0.3 b[2,14] - h0[3,2,7]", "direction=bidirectional layout=1 >11",
     NULL},
    {"GRU", "22 14 7", "f32",
     "x[6,3,4] w[1,15,4] r[1,15,5]~-0.4:0.4 b[1,30] | x[6,1,4] w[1,15,4] r[1,15,5]~-0.4:0.4 | x[6,3,4] w[1,15,4]= "
     "r[1,15,5]~-0.4:0.4= b[1,30]= | x[6,3,4] w[1,15,4] r[1,15,5]~-0.4:0.4 - len:i32?{6,2,3} h0[1,3,5]",
     "hidden_size=5 >11 | hidden_size=5 linear_before_reset=1 >11 | direction=reverse hidden_size=5 >11 | hidden_size=5 clip=0.3 "
     ">01",
     NULL},
    {"GRU", "22 14", CASE_FLOATS, "x[4,3,6] w[2,57,6] r[2,57,19]~-0.2:0.2 b[2,114] - h0[2,3,19]",
     "direction=bidirectional hidden_size=19 >11 | direction=bidirectional linear_before_reset=1 >11", NULL},
    {"GRU", "22 14", "f32", "x[3,4,6] w[2,21,6] r[2,21,7]~-0.3:0.3 b[2,42] - h0[3,2,7]", "direction=bidirectional layout=1 >11",
     NULL},
    {"LSTM", "22 14 7", "f32",
     "x[6,3,4] w[1,20,4] r[1,20,5]~-0.4:0.4 b[1,40] | x[6,1,4] w[1,20,4] r[1,20,5]~-0.4:0.4 | x[6,3,4] w[1,20,4]= "
     "r[1,20,5]~-0.4:0.4= b[1,40]= | x[6,3,4] w[1,20,4] r[1,20,5]~-0.4:0.4 - len:i32?{6,2,3} h0[1,3,5] c0[1,3,5] p[1,15]",
     "hidden_size=5 >111 | hidden_size=5 input_forget=1 >111 | direction=reverse hidden_size=5 >011 | hidden_size=5 clip=0.3 "
     ">101",
     NULL},
    {"LSTM", "22 14", CASE_FLOATS, "x[4,3,6] w[2,76,6] r[2,76,19]~-0.2:0.2 b[2,152] - h0[2,3,19] c0[2,3,19] p[2,57]",
     "direction=bidirectional hidden_size=19 >111", NULL},
    {"LSTM", "22 14", "f32", "x[3,4,6] w[2,28,6] r[2,28,7]~-0.3:0.3 b[2,56] - h0[3,2,7] c0[3,2,7]",
     "direction=bidirectional layout=1 >111", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
