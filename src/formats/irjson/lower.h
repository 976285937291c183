/* Functions for the lowerings of ATen operators: they read the arguments of an ATen node and emit ONNX nodes for it.
 *
 * The first error is stored in the node's `status`, and all functions called after it do nothing. If ONNX cannot express the
 * operator, the lowering calls clv__aten_keep(), even after it has emitted nodes: these are discarded, and the ATen node is kept.
 */
#ifndef CLEAVE_FORMATS_IRJSON_LOWER_H
#define CLEAVE_FORMATS_IRJSON_LOWER_H

#include <jansson.h>

#include "graph/graph.h"

typedef struct clv__irjson clv__irjson;

/* A value with its type, as far as the lowering knows it. Most intermediate values have rank CLV_RANK_UNKNOWN. */
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
  bool has_arguments;           /* `arguments` is known for all inputs */
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

/* The families, one per line: X(name) is the file <name>.c with its table clv__aten_<name>, which ends with a NULL stem. */
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

/* ---- Arguments (argument.c). An argument that is null counts as absent. ---- */

typedef struct clv__aten_scalar {
  clv_dtype dtype; /* its category in type promotion: BOOL, I64 or F32; NONE if the number is absent */
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
/* Read a list of at most CLV__ATEN_MAX_LIST numbers into `values` and return its length. A single number is a list of one; an
 * absent list is empty. */
uint32_t clv__aten_ints(clv__aten_node *node, const char *name, int64_t *values);
uint32_t clv__aten_reals(clv__aten_node *node, const char *name, double *values);
/* Reads a list with a number for each of `count` axes. A single number applies to all axes. If the list is absent or empty,
 * `fallback` applies to all. */
void clv__aten_per_axis(clv__aten_node *node, const char *name, int64_t fallback, uint32_t count, int64_t *values);
/* Reads an axis. A negative axis counts from the end; the result counts from 0. */
int64_t clv__aten_axis(clv__aten_node *node, const char *name, int64_t fallback, int32_t rank);
/* Reads the list of axes `name` into `axes`, counted from 0, and returns their number. An absent or empty list means all
 * axes. */
uint32_t clv__aten_axes(clv__aten_node *node, const char *name, int32_t rank, int64_t *axes);
/* Reads the mask for the node's first list of optional tensors: none[i] is true if element i is None. Returns false if the file
 * has no mask. */
bool clv__aten_none_mask(clv__aten_node *node, bool *none, uint32_t *count);
void clv__aten_fail(clv__aten_node *node, const char *format, ...) CLV_PRINTF(2, 3);
void clv__aten_keep(clv__aten_node *node);

/* ---- Emitting (emit.c) ---- */

clv__aten_value clv__aten_input(clv__aten_node *node, uint32_t index); /* fails if the node has fewer inputs */
clv__aten_value clv__aten_absent(void);
/* Returns the tensor for the argument `name`, or the absent value if it is None. If the file does not name the arguments, returns
 * input `position`, which is the right one if all optional tensors before it are given. */
clv__aten_value clv__aten_optional(const clv__aten_node *node, const char *name, uint32_t position);
/* Set an attribute of the node that is emitted next. Call them only after the nodes that compute its inputs have been emitted. */
void clv__aten_set_int(clv__aten_node *node, const char *name, int64_t value);
void clv__aten_set_ints(clv__aten_node *node, const char *name, const int64_t *values, uint32_t count);
void clv__aten_set_float(clv__aten_node *node, const char *name, double value);
void clv__aten_set_string(clv__aten_node *node, const char *name, const char *value);
void clv__aten_set_number(clv__aten_node *node, const char *name, clv_dtype dtype, clv__aten_scalar value);
clv__aten_value clv__aten_op(clv__aten_node *node, const char *op, clv_dtype dtype, const clv__aten_value *inputs, size_t count);
void clv__aten_ops(clv__aten_node *node, const char *op, const clv__aten_value *inputs, size_t count, clv__aten_value *outputs,
                   uint32_t output_count); /* the caller sets the dtypes of `outputs` before */
#define clv__aten_call(node, op, dtype, ...)                            \
  clv__aten_op(node, op, dtype, (const clv__aten_value[]){__VA_ARGS__}, \
               sizeof((const clv__aten_value[]){__VA_ARGS__}) / sizeof(clv__aten_value))

/* Constants. Equal constants are created once per model. */
clv__aten_value clv__aten_vector(clv__aten_node *node, const int64_t *values, uint32_t count);
clv__aten_value clv__aten_number(clv__aten_node *node, clv_dtype dtype, double value);
clv__aten_value clv__aten_constant(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value);
/* Returns a tensor in which all elements are `value`. The number is stored only once, so the tensor may be large. */
clv__aten_value clv__aten_filled(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value, const clv_tensor *shape);

clv__aten_value clv__aten_cast(clv__aten_node *node, clv__aten_value value, clv_dtype dtype);
clv__aten_value clv__aten_reshape(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_expand(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_unsqueeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_squeeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_transpose(clv__aten_node *node, clv__aten_value value, const int64_t *order);
/* Returns the elements of one axis from `from` up to but excluding `to`, in steps of `step`. */
clv__aten_value clv__aten_slice(clv__aten_node *node, clv__aten_value value, int64_t axis, int64_t from, int64_t to,
                                int64_t step);
/* Makes `value` the ATen node's output number `output`, cast to the dtype that the file declares. */
void clv__aten_return(clv__aten_node *node, uint32_t output, clv__aten_value value);

/* ---- Types ---- */

static inline bool clv__aten_is_float(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
}
/* ATen's type promotion of two dtypes. */
clv_dtype clv__aten_promote(clv_dtype a, clv_dtype b);
/* The common dtype of operands by ATen's rules. Tensors of rank 1 or more take precedence over tensors of rank 0, and these over
 * scalars. */
clv_dtype clv__aten_common(const clv__aten_value *values, size_t count, clv__aten_scalar scalar);
/* Returns an input of an operator on real numbers, cast to f32 if it is an integer or a bool. */
clv__aten_value clv__aten_real_input(clv__aten_node *node, uint32_t index);
/* Returns the dtype for operators that are lowered to several nodes. Instead of f16 and bf16 it is f32, so that only the final
 * result is rounded, as in ATen (clv__aten_return() casts back). All other dtypes stay the same. */
static inline clv_dtype clv__aten_wide(clv_dtype dtype) {
  return dtype == CLV_F16 || dtype == CLV_BF16 ? CLV_F32 : dtype;
}
/* Returns an input as clv__aten_real_input() does, cast to clv__aten_wide() of its dtype. */
clv__aten_value clv__aten_wide_input(clv__aten_node *node, uint32_t index);

#endif
