/* Cases of operators for the conformance kit, as tables of text: one table a family, a few lines an operator. src/check/cases
 * makes graphs and data of them.
 *
 * Operands, split by spaces ("-": absent):   name [:dtype] [dims] [~fill] [role] [values]
 *   dtype    T, the case's own, when not said        dims   none: a scalar, or as many as there are values
 *   fill     ~lo:hi    even between the two; what is not said is -2:2, of integers -9:9 (0:9 where unsigned)
 *            ~half     halves between -8 and 8
 *            ~inf      ordinary numbers, both zeros and infinities; of integers the whole range
 *            ~nan      the same and NaN           ~any   the same and denormals: for what moves bits
 *            ~max      ordinary numbers, both zeros, the largest; apart, as next to those no other number counts
 *            ~turn:n   indices below n: i + j + … mod n, so that no line holds one twice; a negative n: counted from the end
 *   role     =  a constant    ?  an input (what is not said too; needed in front of values)    &  made by a node
 *   values   {1,2} a vector (or of the dims given), (1) a scalar
 *   A name that begins with + is no operand of the first node but of one after it, and left out where none reads it.
 * Attributes:   name=1  name=[1,2]  name=0.5  name=[0.5,1]  name=text  name=$f16 (a dtype)  name=#f16{1} or #T(1) (a tensor)
 *   >101     three outputs of which the second is left out; not said: one
 * Then (nodes after the first, each reading the one before, and operands by name):   Add(r) Relu
 *   !        behind a node: its output is one of the graph too. */
#ifndef CLEAVE_OPERATORS_CASES_H
#define CLEAVE_OPERATORS_CASES_H

#include <stddef.h>

#include "operators/families.h"

/* Each list is of alternatives: the first is the usual one. The cases of a row are the usual one of each list, and then each
 * other alternative with the usual ones of the other lists. A list that begins with * is multiplied with the others instead;
 * `ops` always is. */
typedef struct clv__case_row {
  const char *ops;        /* "Sin Cos": one at a time; split by spaces; with a domain: "ai.cleave.SparseAggregate" */
  const char *opsets;     /* "22 13"; split by spaces */
  const char *dtypes;     /* T: "f32 f16"; split by spaces */
  const char *operands;   /* split by " | " */
  const char *attributes; /* split by " | "; NULL: none */
  const char *then;       /* split by " | "; NULL: none */
} clv__case_row;

#define CLV__DECLARE_CASES(family) extern const clv__case_row clv__cases_##family[];
CLV__TENSOR_FAMILIES(CLV__DECLARE_CASES)
#undef CLV__DECLARE_CASES

/* Lists of dtypes for rows. */
#define CASE_FLOATS "f32 f16 bf16 f64"
#define CASE_SIGNED "i32 i64 i8 i16"
#define CASE_UNSIGNED "u8 u16 u32 u64"
#define CASE_INTEGERS CASE_SIGNED " " CASE_UNSIGNED
#define CASE_NUMBERS CASE_FLOATS " " CASE_INTEGERS
#define CASE_ANY CASE_NUMBERS " bool"
#define CASE_OLD "f32 f16 f64 " CASE_INTEGERS " bool" /* what operators take that never got bf16 */

#endif
