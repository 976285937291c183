/* What the lowerings of ATen operators share: reading a node's arguments, and emitting ONNX nodes for it.
 *
 * Errors stick: after the first one everything does nothing, and the node's `status` tells. A lowering that finds that ONNX has
 * no form for what is asked calls clv__aten_keep(), at any time: what it emitted is dropped and the node stays as it is. */
#ifndef CLEAVE_FORMATS_IRJSON_LOWER_H
#define CLEAVE_FORMATS_IRJSON_LOWER_H

#include <jansson.h>

#include "graph/graph.h"

typedef struct clv__irjson clv__irjson;

/* A value with its type as far as the lowering knows it; rank CLV_RANK_UNKNOWN for most of what is made in between. */
typedef struct clv__aten_value {
  clv_value_id id; /* CLV__NO_ID: absent */
  clv_tensor type; /* no data */
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
  clv__arena *arena; /* until the model is loaded */
  const char *name;
  const char *op_type;  /* "aten.add.Tensor" */
  const char *stem;     /* "add" */
  const char *overload; /* "Tensor"; "" where there is none */
  const json_t *attrs;
  uint32_t input_count, output_count;
  const clv__aten_value *inputs, *outputs;
  const bool *output_read;      /* whether anybody reads it */
  const char *const *arguments; /* of the inputs: the operator's argument that each is, or is in the list of; NULL: not said */
  bool has_arguments;           /* it is said of all of them */
  clv_status status;
  clv_error *error;
  clv__aten_emitted *emitted;
  size_t emitted_count, emitted_capacity;
  clv_attribute next[CLV__ATEN_MAX_ATTRIBUTES]; /* of the node that is emitted next */
  uint32_t next_count;
} clv__aten_node;

typedef struct clv__aten_lowering {
  const char *stem;
  void (*lower)(clv__aten_node *node);
} clv__aten_lowering;

/* The families, one line a family: `X(name)` stands for irjson_<name>.c and its table clv__aten_<name>, ended by a NULL stem. */
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

/* ---- Arguments (argument.c). `null` is absent. ---- */

typedef struct clv__aten_scalar {
  clv_dtype dtype; /* BOOL, I64 or F32: what it counts as in type promotion; NONE: absent */
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
/* A list of at most CLV__ATEN_MAX_LIST; a single number is a list of one. 0 when absent. */
uint32_t clv__aten_ints(clv__aten_node *node, const char *name, int64_t *values);
uint32_t clv__aten_reals(clv__aten_node *node, const char *name, double *values);
/* A list for `count` axes: one number stands for all, absent gives the fallback. */
void clv__aten_per_axis(clv__aten_node *node, const char *name, int64_t fallback, uint32_t count, int64_t *values);
/* An axis, counted from 0. */
int64_t clv__aten_axis(clv__aten_node *node, const char *name, int64_t fallback, int32_t rank);
/* The axes in `name`, each counted from 0; all of them where absent or empty. */
uint32_t clv__aten_axes(clv__aten_node *node, const char *name, int32_t rank, int64_t *axes);
/* Of the first list of optional tensors: which elements are None; false where there is no such mask. */
bool clv__aten_none_mask(clv__aten_node *node, bool *none, uint32_t *count);
void clv__aten_fail(clv__aten_node *node, const char *format, ...) CLV_PRINTF(2, 3);
void clv__aten_keep(clv__aten_node *node);

/* ---- Emitting (emit.c) ---- */

clv__aten_value clv__aten_input(clv__aten_node *node, uint32_t index); /* fails where the node has fewer */
clv__aten_value clv__aten_absent(void);
/* The tensor that is the argument `name`, absent where it is None: as the file says it, or else input `position`, that being
 * where it is when all optional tensors before it are given. */
clv__aten_value clv__aten_optional(const clv__aten_node *node, const char *name, uint32_t position);
/* Attributes of the node that is emitted next, whichever that is: make its inputs before. */
void clv__aten_set_int(clv__aten_node *node, const char *name, int64_t value);
void clv__aten_set_ints(clv__aten_node *node, const char *name, const int64_t *values, uint32_t count);
void clv__aten_set_float(clv__aten_node *node, const char *name, double value);
void clv__aten_set_string(clv__aten_node *node, const char *name, const char *value);
void clv__aten_set_number(clv__aten_node *node, const char *name, clv_dtype dtype, clv__aten_scalar value);
clv__aten_value clv__aten_op(clv__aten_node *node, const char *op, clv_dtype dtype, const clv__aten_value *inputs, size_t count);
void clv__aten_ops(clv__aten_node *node, const char *op, const clv__aten_value *inputs, size_t count, clv__aten_value *outputs,
                   uint32_t output_count); /* outputs come with their dtypes */
#define clv__aten_call(node, op, dtype, ...)                            \
  clv__aten_op(node, op, dtype, (const clv__aten_value[]){__VA_ARGS__}, \
               sizeof((const clv__aten_value[]){__VA_ARGS__}) / sizeof(clv__aten_value))

/* Constants, each made once a model. */
clv__aten_value clv__aten_vector(clv__aten_node *node, const int64_t *values, uint32_t count);
clv__aten_value clv__aten_number(clv__aten_node *node, clv_dtype dtype, double value);
clv__aten_value clv__aten_constant(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value);
/* A tensor of one number, as large as it may be. */
clv__aten_value clv__aten_filled(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value, const clv_tensor *shape);

clv__aten_value clv__aten_cast(clv__aten_node *node, clv__aten_value value, clv_dtype dtype);
clv__aten_value clv__aten_reshape(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_expand(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims);
clv__aten_value clv__aten_unsqueeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_squeeze(clv__aten_node *node, clv__aten_value value, int64_t axis);
clv__aten_value clv__aten_transpose(clv__aten_node *node, clv__aten_value value, const int64_t *order);
/* Elements from, to, step of one axis. */
clv__aten_value clv__aten_slice(clv__aten_node *node, clv__aten_value value, int64_t axis, int64_t from, int64_t to,
                                int64_t step);
/* Makes `value` the node's output, cast to the type that the file declares where it differs. */
void clv__aten_return(clv__aten_node *node, uint32_t output, clv__aten_value value);

/* ---- Types ---- */

static inline bool clv__aten_is_float(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
}
/* ATen's type promotion of two dtypes. */
clv_dtype clv__aten_promote(clv_dtype a, clv_dtype b);
/* The dtype in which operands meet: tensors, tensors of rank 0 and scalars in this order of weight. */
clv_dtype clv__aten_common(const clv__aten_value *values, size_t count, clv__aten_scalar scalar);
/* An input of an operator of real numbers: integers become f32. */
clv__aten_value clv__aten_real_input(clv__aten_node *node, uint32_t index);
/* The dtype in which ATen computes what takes several steps here: f32 for f16 and bf16, so that there is one rounding, at the end
 * (clv__aten_return() casts back); every other dtype itself. */
static inline clv_dtype clv__aten_wide(clv_dtype dtype) {
  return dtype == CLV_F16 || dtype == CLV_BF16 ? CLV_F32 : dtype;
}
/* That input in this dtype. */
clv__aten_value clv__aten_wide_input(clv__aten_node *node, uint32_t index);

#endif
