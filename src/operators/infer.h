/* The operator table: the arity, shape inference and work of every operator. families.h lists the families.
 *
 * Inference is a pure function of the node and the known facts about its inputs. The same function serves three callers: the
 * symbolic pass over a loaded graph, the pass for given sizes, and a device that learns shapes at run time. */
#ifndef CLEAVE_OPERATORS_INFER_H
#define CLEAVE_OPERATORS_INFER_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "operators/families.h"

/* The contents of a small integer tensor (such as the shape for a Reshape) in which some elements are symbols. An element is an
 * ordinary number, CLV__ELEMENT_SYMBOL(k), or CLV__ELEMENT_UNKNOWN. */
#define CLV__ELEMENT_UNKNOWN INT64_MIN
#define CLV__ELEMENT_SYMBOL(index) (INT64_MIN + 1 + (int64_t)(index))
#define CLV__ELEMENT_LAST_SYMBOL (INT64_MIN + 1 + (int64_t)UINT32_MAX)
static inline bool clv__element_is_number(int64_t element) {
  return element > CLV__ELEMENT_LAST_SYMBOL;
}
static inline int64_t clv__element_from_dim(int64_t dim) {
  return dim >= 0 ? dim : dim == CLV_DIM_UNKNOWN ? CLV__ELEMENT_UNKNOWN : CLV__ELEMENT_SYMBOL(-2 - dim);
}
/* Converts an element that is the size of a dimension to a dim. A negative number gives CLV_DIM_UNKNOWN. */
static inline int64_t clv__dim_from_element(int64_t element) {
  if (clv__element_is_number(element)) return element < 0 ? CLV_DIM_UNKNOWN : element;
  return element == CLV__ELEMENT_UNKNOWN ? CLV_DIM_UNKNOWN : -2 - (element - (INT64_MIN + 1));
}

#define CLV__MAX_CONTENT 64

typedef struct clv__content {
  bool known; /* false: nothing is known of the elements */
  uint32_t count;
  int64_t elements[CLV__MAX_CONTENT];
} clv__content;

/* The arguments and results of an infer function. If inputs[i].data is not NULL, the input's value is known; the data is aligned.
 * Rules for an infer function:
 *  - On entry, outputs are {CLV_DTYPE_NONE, CLV_RANK_UNKNOWN}. Leave unknown what cannot be inferred; never guess.
 *  - If the data of every input is known, the outputs must be static (NonZero, for example, counts its elements), except for
 *    If and Loop.
 *  - An input of unknown rank or dims is not an error. A contradiction is an error, whose message states the operator's rule and
 *    the values ("axis 5 is out of range for rank 3"); the caller prepends the node.
 *  - Shapes come from untrusted files: compute sizes with checked arithmetic. */
typedef struct clv__infer {
  const char *op;
  int32_t opset;
  clv__attributes attributes;
  const clv_tensor *inputs;
  const clv__content *const *contents; /* per input: NULL, or the partly known content; read it when inputs[i].data is NULL */
  uint32_t input_count;
  clv_tensor *outputs;
  clv__content *output_content; /* the known elements of output 0, set by operators that compute shapes; `known` is false on
                                   entry; may be NULL */
  uint32_t output_count;
  const clv_allocator *allocator;  /* for temporary memory of an infer function */
  clv__symbol_name_fn symbol_name; /* for messages; NULL: symbols print as s0, s1, … */
  const void *symbol_cookie;
  clv_error *error;
  /* For If, Loop and Scan: infers a body. `inputs` are the types of the body's declared inputs; the caller of the infer function
   * resolves values of the outer graph. NULL if the caller cannot infer bodies; outputs then stay unknown. */
  clv_status (*infer_body)(struct clv__infer *infer, const clv_graph_view *body, const clv_tensor *inputs, uint32_t input_count,
                           clv_tensor *outputs, uint32_t output_count);
  void *body_cookie;
} clv__infer;

/* The work of a node at known shapes. A multiply-add is two FLOPs. */
typedef struct clv__work {
  double flops;
  /* Bytes read and written. Each input and output counts once; of input 0 of a CLV__OP_PICKS node, only the part that is read
   * counts. */
  double bytes;
} clv__work;

enum {
  CLV__OP_VIEW = 1u << 0,        /* output 0 has the bytes of input 0 in the same order: no work, no copy */
  CLV__OP_ELEMENTWISE = 1u << 1, /* independent along every axis (with broadcasting) */
  CLV__OP_NO_FOLD = 1u << 2,     /* not a function of its inputs (random numbers), so never folded to a constant */
  CLV__OP_HAS_BODY = 1u << 3,    /* If, Loop, Scan */
  CLV__OP_PICKS = 1u << 4,       /* reads only part of input 0, as many bytes as it writes: for example, some rows of a table */
  CLV__OP_KEEPS_ZERO = 1u << 5,  /* writes zeros at positions where its inputs are padded with zeros */
  CLV__OP_ROUNDS = 1u << 6,      /* rounds numbers to integers: a quantised output 0 */
  CLV__OP_KEEPS_STEPS = 1u << 7  /* if an input element moves by one quantisation step, no output element moves by more */
};

#define CLV__ANY_COUNT 255

struct clv__padding; /* common/padding.h */

typedef struct clv__op {
  const char *domain; /* "" is ONNX's */
  const char *name;
  uint8_t min_inputs, max_inputs, min_outputs, max_outputs; /* CLV__ANY_COUNT: no limit */
  uint32_t flags;
  clv_status (*infer)(clv__infer *infer);
  void (*work)(const clv__infer *infer, clv__work *work); /* Sets the FLOPs. NULL: one per output element. A common rule sets the
                                                           * bytes of every operator. */
  /* Whether the operator is independent along the padded axes. NULL: always if it is element-wise, else never. */
  bool (*independent)(struct clv__padding *padding);
} clv__op;

#define CLV__DECLARE_OPS(family) extern const clv__op clv__ops_##family[];
CLV__FAMILIES(CLV__DECLARE_OPS)
#undef CLV__DECLARE_OPS

/* Finds an operator. Returns NULL if it is unknown. Any thread may call this function. */
const clv__op *clv__op_find(const char *domain, const char *name);

/* The work of a node whose shapes are in `infer`. Zero FLOPs and bytes if the shapes are not known, and for views. */
void clv__op_work(const clv__op *op, const clv__infer *infer, clv__work *work);

/* ---- Shared by the families (common/infer.c) ---- */

/* "f32[1,3,batch,?]": a type, for messages. Always terminated. */
static inline void clv__infer_text(const clv__infer *infer, const clv_tensor *type, char *text, size_t size_bytes) {
  clv__tensor_text_named(type, infer->symbol_name, infer->symbol_cookie, text, size_bytes);
}
/* Broadcasts the shapes of `count` inputs into `out` by numpy's rules (rank and dims; the dtype is untouched). An unknown dim
 * and a number above 1 give that number. An unknown dim and anything else give an unknown dim, and so do two different
 * symbols. */
clv_status clv__infer_broadcast(clv__infer *infer, const clv_tensor *inputs, uint32_t count, clv_tensor *out);
/* Maps an axis in [-rank, rank) to [0, rank). If it is outside, returns an error that states the axis and the rank. */
clv_status clv__infer_axis(clv__infer *infer, int64_t axis, int32_t rank, int32_t *out);
/* The elements of an integer input (1-D or scalar; i32, i64 or bool), from its data or its content. False if nothing is known. */
bool clv__infer_elements(const clv__infer *infer, uint32_t input, clv__content *content);
/* Sets `dim` to the more specific of two dims: a number before a symbol, a symbol before unknown. Returns false if they are two
 * different numbers. */
bool clv__dim_merge(int64_t a, int64_t b, int64_t *dim);
static inline bool clv__infer_has(const clv__infer *infer, uint32_t input) {
  return input < infer->input_count && infer->inputs[input].dtype != CLV_DTYPE_NONE;
}
/* Gives output 0 the type of input 0. */
clv_status clv__infer_same(clv__infer *infer);
/* Sets an output's type; `dims` may be NULL for rank 0 or unknown rank. */
void clv__infer_set(clv__infer *infer, uint32_t output, clv_dtype dtype, int32_t rank, const int64_t *dims);

#endif
