/* Checks that the computing families share: dtypes that must agree, ranks, and dims that must match. Unknown passes. */
#ifndef CLEAVE_OPERATORS_COMMON_CHECKS_H
#define CLEAVE_OPERATORS_COMMON_CHECKS_H

#include "operators/infer.h"

/* Inputs `a` and `b`, where present, have one dtype. */
clv_status clv__check_same_dtype(clv__infer *infer, uint32_t a, uint32_t b);
/* Input `input` has a rank in [low, high]. */
clv_status clv__check_rank(clv__infer *infer, uint32_t input, int32_t low, int32_t high);
/* Input `input`, where present, is a vector of `size` elements. */
clv_status clv__check_vector(clv__infer *infer, uint32_t input, int64_t size);
/* Input `input`, where present, broadcasts to `target` without changing it. */
clv_status clv__check_broadcasts_to(clv__infer *infer, uint32_t input, const clv_tensor *target);
/* Dims `a` and `b` can be the same; `what` names them in the error. */
clv_status clv__check_same_dim(clv__infer *infer, int64_t a, int64_t b, const char *what);
/* Elements of an input or output; 0 where they are not known. */
double clv__known_count(const clv_tensor *tensor);

#endif
