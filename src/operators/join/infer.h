/* The member of the join family that lives in a file of its own; infer.c holds the table. */
#ifndef CLEAVE_OPERATORS_JOIN_INFER_H
#define CLEAVE_OPERATORS_JOIN_INFER_H

#include "operators/infer.h"

clv_status clv__infer_slice(clv__infer *infer); /* infer_slice.c */

#endif
