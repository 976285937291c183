/* Parses Einsum's equation, for inference and the kernel. Nothing is allocated: terms are parsed from the text when needed. */
#ifndef CLEAVE_OPERATORS_COMMON_EINSUM_H
#define CLEAVE_OPERATORS_COMMON_EINSUM_H

#include "base/error.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

/* A label is the number of a letter, 0 to 51 in ASCII order, or of an axis of the ellipsis. The last axis of every ellipsis has
 * the last label, so ellipses of different ranks are aligned at their ends. */
#define CLV__EINSUM_LETTERS 52
#define CLV__EINSUM_LABELS (CLV__EINSUM_LETTERS + CLV_MAX_RANK)

typedef struct clv__einsum_term {
  int32_t count; /* number of letters */
  int8_t letters[CLV__EINSUM_LETTERS];
  bool has_ellipsis;
  int32_t ellipsis_at; /* number of letters before the ellipsis */
} clv__einsum_term;

/* Reads the term of input `index` from the equation. */
clv_status clv__einsum_read_input(clv__attributes attributes, uint32_t index, clv__einsum_term *term, clv_error *error);
/* Reads the output's term. If the equation has no arrow, this term is the ellipsis followed by the letters that occur once, in
 * ASCII order. Checks the number of terms. */
clv_status clv__einsum_read_output(clv__attributes attributes, uint32_t input_count, clv__einsum_term *term, clv_error *error);
/* Writes the labels of a term's axes, given that an ellipsis has `ellipsis_rank` axes. There are term->count + ellipsis_rank
 * labels. */
void clv__einsum_labels(const clv__einsum_term *term, int32_t ellipsis_rank, int8_t labels[CLV__EINSUM_LABELS]);

#endif
