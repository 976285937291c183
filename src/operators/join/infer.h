/* The operator of the join family whose inference is in a file of its own. infer.c has the others and the family's table. */
#ifndef CLEAVE_OPERATORS_JOIN_INFER_H
#define CLEAVE_OPERATORS_JOIN_INFER_H

#include "operators/infer.h"

clv_status clv__infer_slice(clv__infer *infer); /* infer_slice.c: Slice */

#endif
