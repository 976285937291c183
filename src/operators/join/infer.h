/* The operator of the join family that has its own infer file. infer.c has the table. */
#ifndef CLEAVE_OPERATORS_JOIN_INFER_H
#define CLEAVE_OPERATORS_JOIN_INFER_H

#include "operators/infer.h"

clv_status clv__infer_slice(clv__infer *infer); /* infer_slice.c: Slice */

#endif
