/* Cases of operators: cases.c expands the rows of text (operators/cases.h) into cases, text.c parses them, data.c generates the
 * numbers. */
#ifndef CLEAVE_CHECK_CASES_CASES_H
#define CLEAVE_CHECK_CASES_CASES_H

#include "graph/graph.h"
#include "operators/cases.h"

/* Cases of a few nodes that backends are likely to fuse (fused.c). */
extern const clv__case_row clv__cases_fused[];

/* Cases of nodes with bodies, which a row cannot express (control.c). */
typedef struct clv__case_built {
  const char *what;
  clv_status (*build)(clv__builder *builder, clv_error *error);
} clv__case_built;
extern const clv__case_built clv__cases_built[];
extern const uint32_t clv__case_built_count;

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
  bool absent, constant, computed, later; /* later: the operand belongs to a node after the first */
  char name[CLV__CASE_MAX_NAME];
  clv_tensor type;
  clv__case_fill fill;
  double low, high;   /* bounds for CLV__FILL_RANGE; for CLV__FILL_TURN, `high` is the n of ~turn:n (operators/cases.h) */
  const char *values; /* the text after the opening bracket; NULL: `fill` generates them */
} clv__case_operand;

/* Parses one operand and advances *text past it. `dtype` replaces T. */
clv_status clv__case_read_operand(const char **text, const char *end, clv_dtype dtype, clv__case_operand *operand,
                                  clv_error *error);
/* Parses one attribute, with its parts in `arena`, or the list of wanted outputs (">101"). For a list of outputs,
 * `attribute->name` is NULL and bit i of *outputs is set if output i is wanted. */
clv_status clv__case_read_attribute(const char **text, const char *end, clv_dtype dtype, clv__arena *arena,
                                    clv_attribute *attribute, uint32_t *outputs, uint32_t *output_count, clv_error *error);
/* The dtype with the given name, or CLV_DTYPE_NONE. */
clv_dtype clv__case_dtype(const char *text, size_t length);
/* Parses numbers up to a closing bracket into the elements of `tensor`, whose data has room for them. */
clv_status clv__case_read_values(const char *text, const clv_tensor *tensor, clv_error *error);

/* ---- Data (data.c) ---- */

/* Allocates `operand->type.data` in `arena` and fills it. */
clv_status clv__case_fill_data(clv__case_operand *operand, clv__arena *arena, uint64_t *random, clv_error *error);

#endif
