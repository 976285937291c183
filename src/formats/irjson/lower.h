/* Shared by the lowerings of ATen operators: reads the arguments of a node and emits ONNX nodes for it.
 *
 * Errors are sticky: after the first error all functions do nothing, and the node's `status` holds it. A lowering calls
 * clv__aten_keep() if ONNX cannot express the operator. It may do so at any time: the emitted nodes are discarded and the node
 * stays unchanged. */
#ifndef CLEAVE_FORMATS_IRJSON_LOWER_H
#define CLEAVE_FORMATS_IRJSON_LOWER_H

#include <jansson.h>

#include "graph/graph.h"

typedef struct clv__irjson clv__irjson;

/* A value with its type as known to the lowering; most intermediate values have rank CLV_RANK_UNKNOWN. */
typedef struct clv__aten_value {
  clv_value_id id; /* CLV__NO_ID: absent */
  clv_tensor type; /* without data */
} clv__aten_value;

typedef struct clv__aten_emitted {
  const char *op;
  uint32_t input_count, output_count, attribute_count;
  clv_value_id *inputs, *outputs;
  clv_attribute *attributes;
} clv__aten_emitted;

enum { CLV__ATEN_MAX_ATTRIBUTES = 8, CLV__ATEN_MAX_LIST = 64, CLV__ATEN_OPSET = 23 };

typedef struct clv__aten_node {
  clv__irjson *file;
  clv__arena *arena; /* lives until the model is loaded */
  const char *name;
  const char *op_type;  /* "aten.add.Tensor" */
  const char *stem;     /* "add" */
  const char *overload; /* "Tensor"; "" if there is none */
  const json_t *attrs;
  uint32_t input_count, output_count;
  const clv__aten_value *inputs, *outputs;
  const bool *output_read;      /* per output: whether anything reads it */
  const char *const *arguments; /* per input: the name of its argument, which may be a list of tensors; NULL: unknown */
  bool has_arguments;           /* known for all inputs */
  clv_status status;
  clv_error *error;
  clv__aten_emitted *emitted;
  size_t emitted_count, emitted_capacity;
  clv_attribute next[CLV__ATEN_MAX_ATTRIBUTES]; /* attributes of the node emitted next */
  uint32_t next_count;
} clv__aten_node;

typedef struct clv__aten_lowering {
  const char *stem;
  void (*lower)(clv__aten_node *node);
} clv__aten_lowering;

/* The families, one per line: `X(name)` stands for <name>.c and its table clv__aten_<name>, terminated by a NULL stem. */
#define CLV__ATEN_FAMILIES(X) \
  X(unary)                    \
  X(binary)                   \
  X(view)                     \
  X(move)                     \
  X(join)                     \
  X(matrix)                   \
  X(window)                   \
  X(normalize)                \
  X(reduce)                   \
  X(index)                    \
  X(list)                     \
  X(create)                   \
  X(attention)
#define CLV__DECLARE_ATEN(family) extern const clv__aten_lowering clv__aten_##family[];
CLV__ATEN_FAMILIES(CLV__DECLARE_ATEN)
#undef CLV__DECLARE_ATEN

/* ---- Arguments (argument.c). `null` means absent. ---- */

typedef struct clv__aten_scalar {
  clv_dtype dtype; /* its category in type promotion: BOOL, I64 or F32; NONE: absent */
  int64_t integer;
  double real;
} clv__aten_scalar;

bool clv__aten_has(const clv__aten_node *node, const char *name);
int64_t clv__aten_int(clv__aten_node *node, const char *name, int64_t fallback);
bool clv__aten_bool(clv__aten_node *node, const char *name, bool fallback);
clv__aten_scalar clv__aten_scalar_of(clv__aten_node *node, const char *name);
double clv__aten_real(clv__aten_node *node, const char *name, double fallback);
const char *clv__aten_text(clv__aten_node *node, const char *name, const char *fallback);
clv_dtype clv__aten_dtype(clv__aten_node *node, const char *name, clv_dtype fallback);
/* A list of at most CLV__ATEN_MAX_LIST; a single number is a list of one. Returns 0 if absent. */
uint32_t clv__aten_ints(clv__aten_node *node, const char *name, int64_t *values);
uint32_t clv__aten_reals(clv__aten_node *node, const char *name, double *values);
/* A list for `count` axes: a single number applies to all axes; `fallback` if absent. */
void clv__aten_per_axis(clv__aten_node *node, const char *name, int64_t fallback, uint32_t count, int64_t *values);
/* An axis, normalised to count from 0. */
int64_t clv__aten_axis(clv__aten_node *node, const char *name, int64_t fallback, int32_t rank);
/* The axes in `name`, normalised to count from 0; all axes if the list is absent or empty. */
uint32_t clv__aten_axes(clv__aten_node *node, const char *name, int32_t rank, int64_t *axes);
/* Reads the mask of the first list of optional tensors: none[i] is true if element i is None. False if there is no mask. */
bool clv__aten_none_mask(clv__aten_node *node, bool *none, uint32_t *count);
void clv__aten_fail(clv__aten_node *node, const char *format, ...) CLV_PRINTF(2, 3);
void clv__aten_keep(clv__aten_node *node);

/* ---- Emitting (emit.c) ---- */

clv__aten_value clv__aten_input(clv__aten_node *node, uint32_t index); /* fails if the node has fewer inputs */
clv__aten_value clv__aten_absent(void);
/* The tensor for the argument `name`, or absent if it is None. Uses the argument names in the file. Without them, uses input
 * `position`: its place if all optional tensors before it are given. */
clv__aten_value clv__aten_optional(const clv__aten_node *node, const char *name, uint32_t position);
/* Sets attributes of the next node emitted, whichever it is: create its inputs first. */
void clv__aten_set_int(clv__aten_node *node, const char *name, int64_t value);
void clv__aten_set_ints(clv__aten_node *node, const char *name, const int64_t *values, uint32_t count);
void clv__aten_set_float(clv__aten_node *node, const char *name, double value);
void clv__aten_set_string(clv__aten_node *node, const char *name, const char *value);
void clv__aten_set_number(clv__aten_node *node, const char *name, clv_dtype dtype, clv__aten_scalar value);
clv__aten_value clv__aten_op(clv__aten_node *node, const char *op, clv_dtype dtype, const clv__aten_value *inputs, size_t count);
void clv__aten_ops(clv__aten_node *node, const char *op, const clv__aten_value *inputs, size_t count, clv__aten_value *outputs,
                   uint32_t output_count); /* set the dtypes of `outputs` before */
#define clv__aten_call(node, op, dtype, ...)                            \
  clv__aten_op(node, op, dtype, (const clv__aten_value[]){__VA_ARGS__}, \
               sizeof((const clv__aten_value[]){__VA_ARGS__}) / sizeof(clv__aten_value))

/* Constants, each created once per model. */
clv__aten_value clv__aten_vector(clv__aten_node *node, const int64_t *values, uint32_t count);
clv__aten_value clv__aten_number(clv__aten_node *node, clv_dtype dtype, double value);
clv__aten_value clv__aten_constant(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value);
/* A tensor of one repeated number; may be large. */
clv__aten_value clv__aten_filled(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value, const clv_tensor *shape);

clv__aten_value clv__aten_cast(clv__aten_node *node, clv__aten_value value, clv_dtype dtype);
clv__aten_value clv__aten_reshape(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_expand(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_unsqueeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_squeeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_transpose(clv__aten_node *node, clv__aten_value value, const int64_t *order);
/* Elements `from` to `to` of one axis, every `step`. */
clv__aten_value clv__aten_slice(clv__aten_node *node, clv__aten_value value, int64_t axis, int64_t from, int64_t to,
                                int64_t step);
/* Makes `value` the node's output; casts it to the declared type if they differ. */
void clv__aten_return(clv__aten_node *node, uint32_t output, clv__aten_value value);

/* ---- Types ---- */

static inline bool clv__aten_is_float(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
}
/* ATen's type promotion of two dtypes. */
clv_dtype clv__aten_promote(clv_dtype a, clv_dtype b);
/* The common dtype of operands. Tensors take precedence over tensors of rank 0, and these over scalars. */
clv_dtype clv__aten_common(const clv__aten_value *values, size_t count, clv__aten_scalar scalar);
/* An input of an operator on real numbers: integers become f32. */
clv__aten_value clv__aten_real_input(clv__aten_node *node, uint32_t index);
/* The dtype in which ATen computes operators that take several steps here. f16 and bf16 are computed in f32, so there is a
 * single rounding at the end (clv__aten_return() casts back). All other dtypes stay the same. */
static inline clv_dtype clv__aten_wide(clv_dtype dtype) {
  return dtype == CLV_F16 || dtype == CLV_BF16 ? CLV_F32 : dtype;
}
/* The input in this dtype. */
clv__aten_value clv__aten_wide_input(clv__aten_node *node, uint32_t index);

#endif
