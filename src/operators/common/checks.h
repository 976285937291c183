/* Checks for infer functions: dtypes that must be equal, ranks, and dims that must match. Unknown dtypes, ranks and dims pass. */
#ifndef CLEAVE_OPERATORS_COMMON_CHECKS_H
#define CLEAVE_OPERATORS_COMMON_CHECKS_H

#include "operators/infer.h"

/* Checks that inputs `a` and `b` have the same dtype, if both are present. */
clv_status clv__check_same_dtype(clv__infer *infer, uint32_t a, uint32_t b);
/* Checks that input `input` has a rank in [low, high]. */
clv_status clv__check_rank(clv__infer *infer, uint32_t input, int32_t low, int32_t high);
/* Checks that input `input` is a vector of `size` elements, if it is present. */
clv_status clv__check_vector(clv__infer *infer, uint32_t input, int64_t size);
/* Checks that input `input`, if it is present, can be broadcast to the shape of `target`. */
clv_status clv__check_broadcasts_to(clv__infer *infer, uint32_t input, const clv_tensor *target);
/* Checks that dims `a` and `b` can be equal. `what` names them in the error. */
clv_status clv__check_same_dim(clv__infer *infer, int64_t a, int64_t b, const char *what);
/* The number of elements of an input or output; 0 if it is not known. */
double clv__known_count(const clv_tensor *tensor);

#endif
