/* Definitions of Cleave's own operators in standard operators. Files contain them as ONNX functions, so that other runtimes can
 * run the operators; frameworks get the operators of the body instead of the call. */
#ifndef CLEAVE_OPERATORS_BODY_H
#define CLEAVE_OPERATORS_BODY_H

#include "base/tensor/attribute.h"

enum { CLV__BODY_OPSET = 18 }; /* the oldest opset of ai.onnx with all operators of the bodies */

/* A node of a body. Names are separated by spaces. Attributes are written as "axis=0 reduction=add": an integer; a list of
 * integers in brackets, without spaces; a float, if it has a point or is infinite; a string; or @NAME, the float attribute NAME
 * of the call. */
typedef struct clv__body_line {
  const char *op, *inputs, *output, *attributes;
} clv__body_line;

typedef struct clv__body {
  const char *function; /* the name of its ONNX function in files: `op`, followed by `value` if the body is for one value only */
  const char *domain, *op;
  /* The body is for nodes whose string attribute `attribute` has the value `value`; NULL: for all nodes of `op`. */
  const char *attribute, *value;
  bool is_default;    /* the body is also for nodes without the attribute */
  const char *number; /* the float attribute of the call that lines refer to as @NAME; NULL: none */
  float number_default;
  const char *inputs, *output;
  const clv__body_line *const *parts; /* lists of lines, each ends with an `op` of NULL; the last part is NULL */
} clv__body;

/* Returns the body of a node, or NULL if its operator has none: it is a standard operator, or of another domain. */
const clv__body *clv__body_find(const char *domain, const char *op, clv__attributes attributes);
/* Returns a body by number, or NULL after the last one. */
const clv__body *clv__body_at(uint32_t index);
/* Returns the operator that the function of this name defines, or NULL if it defines none of Cleave's. */
const char *clv__body_operator(const char *domain, const char *function);

#endif
