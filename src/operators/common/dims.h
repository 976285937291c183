/* Arithmetic on dims that may be symbols, and access to lists of sizes or axes. Used mostly by operators that only move data. */
#ifndef CLEAVE_OPERATORS_COMMON_DIMS_H
#define CLEAVE_OPERATORS_COMMON_DIMS_H

#include "operators/infer.h"

/* Returns an error if `rank` is above CLV_MAX_RANK. */
clv_status clv__infer_rank(clv__infer *infer, int64_t rank);

/* The product of `count` dims: a number, a symbol (if all other dims are 1), or CLV_DIM_UNKNOWN. Returns an error if it
 * overflows. */
clv_status clv__infer_product(clv__infer *infer, const int64_t *dims, int32_t count, int64_t *product);

/* The product of `above` divided by the product of `below`, after cancelling the symbols that occur in both. Returns false if the
 * division has a remainder. */
bool clv__dims_quotient(const int64_t *above, int32_t above_count, const int64_t *below, int32_t below_count, int64_t *quotient);

/* a + b; either may be a symbol or unknown. A symbol plus zero is itself. Any other sum with a symbol, and one that
 * overflows, is unknown. */
int64_t clv__dim_add(int64_t a, int64_t b);

/* Sets `content` to the elements of input `input`. Returns false if its rank is not known to be 0 or 1, or if none of its
 * elements is known. */
bool clv__infer_vector(const clv__infer *infer, uint32_t input, clv__content *content);

/* Whether the content is known and all its elements are numbers: no symbol, none unknown. */
bool clv__content_is_numbers(const clv__content *content);

/* Returns an error unless input `input` is absent or can be a list of sizes or axes (i32 or i64, rank 0 or 1). */
clv_status clv__infer_check_list(clv__infer *infer, uint32_t input);

/* Returns an error unless input `input` is absent or can have `count` elements (rank 0 or 1). */
clv_status clv__infer_check_count(clv__infer *infer, uint32_t input, int64_t count);

/* Gives output 0 the elements of input 0 in the same order. */
void clv__infer_pass_content(clv__infer *infer);

/* A list of ints: from the attribute, if `name` is not NULL and the node has it, otherwise from the input. *given is false if
 * there is neither. content->known is false if the input's elements are not known. Attributes longer than CLV__MAX_CONTENT are an
 * error. */
clv_status clv__infer_list(clv__infer *infer, const char *name, uint32_t input, bool *given, clv__content *content);

/* Sets output `output` to `rank` unknown dims (or to unknown rank). */
void clv__infer_set_unknown(clv__infer *infer, uint32_t output, clv_dtype dtype, int32_t rank);

/* The work of an operator that only moves data: no FLOPs. */
void clv__work_none(const clv__infer *infer, clv__work *work);

#endif
