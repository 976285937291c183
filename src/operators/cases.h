/* Test cases of operators for the conformance kit, as tables of text: one table per family, a few lines per operator.
 * src/check/cases expands them into graphs and data.
 *
 * Operands, separated by spaces ("-": absent):   name [:dtype] [dims] [~fill] [role] [values]
 *   dtype    default T, the case's own dtype         dims   default: a scalar, or as many as there are values
 *   fill     ~lo:hi    evenly distributed between the two; default -2:2, for integers -9:9 (0:9 if unsigned)
 *            ~half     multiples of 1/2 between -8 and 8
 *            ~inf      ordinary numbers, both zeros, both infinities; for integers the whole range
 *            ~nan      as ~inf, and NaN
 *            ~any      as ~nan, and denormals: for operators that only copy elements
 *            ~max      ordinary numbers, both zeros, the largest number and its negative. These two are so large that adding an
 *                      ordinary number does not change them
 *            ~turn:n   indices: element [i, j, …] is (i + j + … + a random start) mod |n|, so that |n| neighbours differ;
 *                      if n is negative, minus |n|: indices counted from the end
 *   role     =  a constant    ?  an input (the default; needed in front of values)    &  the output of another node
 *   values   {1,2} a vector (or of the given dims), (1) a scalar
 *   A name that begins with + is an operand of a later node, not of the first. It is omitted if no node reads it.
 * Attributes:   name=1  name=[1,2]  name=0.5  name=[0.5,1]  name=text  name=$f16 (a dtype)  name=#f16{1}  name=#T(1) (a tensor)
 *   >101     three outputs, of which the second is omitted; default: one output
 * Then (nodes after the first; each reads the one before, and operands by name):   Add(r) Relu
 *   !        after a node: its output is also an output of the graph. */
#ifndef CLEAVE_OPERATORS_CASES_H
#define CLEAVE_OPERATORS_CASES_H

#include <stddef.h>

#include "operators/families.h"

/* Each list contains alternatives; the first is the default. The first case of a row uses the default of every list. Each further
 * case uses another alternative of one list and the defaults of the other lists. A list that begins with * multiplies the cases
 * instead: every case of the other lists is made once with each of its alternatives. `ops` always multiplies the cases. */
typedef struct clv__case_row {
  const char *ops;        /* separated by spaces: "Sin Cos"; a case has one of them; with a domain: "ai.cleave.SparseAggregate" */
  const char *opsets;     /* "22 13"; separated by spaces */
  const char *dtypes;     /* T: "f32 f16"; separated by spaces */
  const char *operands;   /* separated by " | " */
  const char *attributes; /* separated by " | "; NULL: none */
  const char *then;       /* separated by " | "; NULL: none */
} clv__case_row;

#define CLV__DECLARE_CASES(family) extern const clv__case_row clv__cases_##family[];
CLV__TENSOR_FAMILIES(CLV__DECLARE_CASES)
#undef CLV__DECLARE_CASES

/* Lists of dtypes for the rows. */
#define CASE_FLOATS "f32 f16 bf16 f64"
#define CASE_SIGNED "i32 i64 i8 i16"
#define CASE_UNSIGNED "u8 u16 u32 u64"
#define CASE_INTEGERS CASE_SIGNED " " CASE_UNSIGNED
#define CASE_NUMBERS CASE_FLOATS " " CASE_INTEGERS
#define CASE_ANY CASE_NUMBERS " bool"
#define CASE_OLD "f32 f16 f64 " CASE_INTEGERS " bool" /* for operators and opsets that do not support bf16 */

#endif
