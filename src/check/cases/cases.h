/* Cases of operators as tables of text: one file a family, a few lines an operator. cases.c expands rows to cases, text.c
 * reads the text, data.c makes the numbers.
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
#ifndef CLEAVE_CHECK_CASES_CASES_H
#define CLEAVE_CHECK_CASES_CASES_H

#include "graph/graph.h"

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

#define CLV__CASE_FAMILIES(X) \
  X(unary)                    \
  X(binary)                   \
  X(cast)                     \
  X(reduce)                   \
  X(axis)                     \
  X(matrix)                   \
  X(conv)                     \
  X(pool)                     \
  X(normalize)                \
  X(shape)                    \
  X(join)                     \
  X(gather)                   \
  X(generate)                 \
  X(select)                   \
  X(quantize)                 \
  X(integer)                  \
  X(recurrent)                \
  X(loss)                     \
  X(resize)                   \
  X(attention)                \
  X(picture)                  \
  X(signal)                   \
  X(sparse)                   \
  X(fused)

#define CLV__DECLARE_CASES(family) extern const clv__case_row clv__cases_##family[];
CLV__CASE_FAMILIES(CLV__DECLARE_CASES)
#undef CLV__DECLARE_CASES

/* Cases of nodes with bodies, which no row can tell (control/infer.c). */
typedef struct clv__case_built {
  const char *what;
  clv_status (*build)(clv__builder *builder, clv_error *error);
} clv__case_built;
extern const clv__case_built clv__cases_built[];
extern const uint32_t clv__case_built_count;

/* Lists of dtypes for rows. */
#define CASE_FLOATS "f32 f16 bf16 f64"
#define CASE_SIGNED "i32 i64 i8 i16"
#define CASE_UNSIGNED "u8 u16 u32 u64"
#define CASE_INTEGERS CASE_SIGNED " " CASE_UNSIGNED
#define CASE_NUMBERS CASE_FLOATS " " CASE_INTEGERS
#define CASE_ANY CASE_NUMBERS " bool"
#define CASE_OLD "f32 f16 f64 " CASE_INTEGERS " bool" /* what operators take that never got bf16 */

/* ---- Text (text.c) ---- */

typedef enum clv__case_fill {
  CLV__FILL_RANGE,
  CLV__FILL_HALF,
  CLV__FILL_MAX,
  CLV__FILL_INF,
  CLV__FILL_NAN,
  CLV__FILL_ANY,
  CLV__FILL_TURN
} clv__case_fill;

enum { CLV__CASE_MAX_OPERANDS = 16, CLV__CASE_MAX_ATTRIBUTES = 16, CLV__CASE_MAX_NAME = 24 };

typedef struct clv__case_operand {
  bool absent, constant, computed, later; /* later: for a node after the first */
  char name[CLV__CASE_MAX_NAME];
  clv_tensor type;
  clv__case_fill fill;
  double low, high;   /* RANGE; TURN: `high` is n */
  const char *values; /* behind the bracket; NULL: seeded */
} clv__case_operand;

/* One operand; *text moves behind it. `dtype` stands for T. */
clv_status clv__case_read_operand(const char **text, const char *end, clv_dtype dtype, clv__case_operand *operand,
                                  clv_error *error);
/* One attribute, its parts in `arena`; or the outputs wanted (`attribute->name` is then NULL): bit i of *outputs for output i. */
clv_status clv__case_read_attribute(const char **text, const char *end, clv_dtype dtype, clv__arena *arena,
                                    clv_attribute *attribute, uint32_t *outputs, uint32_t *output_count, clv_error *error);
/* A dtype by name, NONE where there is none. */
clv_dtype clv__case_dtype(const char *text, size_t length);
/* Numbers up to a closing bracket into the elements of `tensor`, whose data has room for them. */
clv_status clv__case_read_values(const char *text, const clv_tensor *tensor, clv_error *error);

/* ---- Data (data.c) ---- */

/* `operand->type.data` in `arena`, filled. */
clv_status clv__case_fill_data(clv__case_operand *operand, clv__arena *arena, uint64_t *random, clv_error *error);

#endif
