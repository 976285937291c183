/* The operator table: for every operator its arity, shape inference, and work. families.h lists the families.
 *
 * Inference is a pure function of the node and what is known of its inputs. The same function serves three callers: the symbolic
 * pass over a loaded graph, the pass for given sizes, and a device that meets shapes at run time. */
#ifndef CLEAVE_OPERATORS_INFER_H
#define CLEAVE_OPERATORS_INFER_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "operators/families.h"

/* The contents of a small integer tensor (a shape on its way to Reshape) of which some elements are symbols.
 * An element is an ordinary number, CLV__ELEMENT_SYMBOL(k), or CLV__ELEMENT_UNKNOWN. */
#define CLV__ELEMENT_UNKNOWN INT64_MIN
#define CLV__ELEMENT_SYMBOL(index) (INT64_MIN + 1 + (int64_t)(index))
#define CLV__ELEMENT_LAST_SYMBOL (INT64_MIN + 1 + (int64_t)UINT32_MAX)
static inline bool clv__element_is_number(int64_t element) {
  return element > CLV__ELEMENT_LAST_SYMBOL;
}
static inline int64_t clv__element_from_dim(int64_t dim) {
  return dim >= 0 ? dim : dim == CLV_DIM_UNKNOWN ? CLV__ELEMENT_UNKNOWN : CLV__ELEMENT_SYMBOL(-2 - dim);
}
/* Only for elements that mean a dimension; a negative number gives CLV_DIM_UNKNOWN. */
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

/* What inference sees and fills. `inputs[i].data` not NULL means that the value is known (it may be unaligned only if the caller
 * says so; callers give aligned data). Rules for an infer function:
 *  - outputs come in as {CLV_DTYPE_NONE, CLV_RANK_UNKNOWN}; leave what cannot be told unknown; never guess;
 *  - with the data of every input known, the outputs must be static (NonZero counts; If and Loop are the exceptions);
 *  - an input of unknown rank or dims is no error; a contradiction is: name the operator's rule and the values
 *    ("axis 5 out of range for rank 3"); the caller puts the node in front;
 *  - shapes come from strangers: sizes are computed with checked arithmetic. */
typedef struct clv__infer {
  const char *op;
  int32_t opset;
  clv__attributes attributes;
  const clv_tensor *inputs;
  const clv__content *const *contents; /* per input, NULL or what is known in part; consult it when inputs[i].data is NULL */
  uint32_t input_count;
  clv_tensor *outputs;
  clv__content *output_content; /* of output 0; `known` is false on entry; ops that pass shapes along fill it */
  uint32_t output_count;
  const clv_allocator *allocator; /* for what an infer function needs in passing */
  clv_error *error;
  /* For If, Loop and Scan: infers a body. `inputs` are the body's own; captures are resolved by the driver. NULL in callers that
   * cannot look into bodies: outputs stay unknown. */
  clv_status (*infer_body)(struct clv__infer *infer, const clv_graph_view *body, const clv_tensor *inputs, uint32_t input_count,
                           clv_tensor *outputs, uint32_t output_count);
  void *body_cookie;
} clv__infer;

/* What a node costs, at known shapes. A multiply-add is two FLOPs. */
typedef struct clv__work {
  double flops;
  double bytes; /* read and written, each input and output once; of what is picked from, what is picked */
} clv__work;

enum {
  CLV__OP_VIEW = 1u << 0,        /* output 0 has the bytes of input 0, in the same order: no work, no copy */
  CLV__OP_ELEMENTWISE = 1u << 1, /* independent along every axis (with broadcasting) */
  CLV__OP_NO_FOLD = 1u << 2,     /* not a function of its inputs (random numbers) */
  CLV__OP_HAS_BODY = 1u << 3,    /* If, Loop, Scan */
  CLV__OP_PICKS = 1u << 4,       /* reads no more of input 0 than it writes: rows of a table */
  CLV__OP_KEEPS_ZERO = 1u << 5   /* makes zeros where its inputs are padded with zeros */
};

#define CLV__ANY_COUNT 255

struct clv__padding; /* common/padding.h */

typedef struct clv__op {
  const char *domain; /* "" is ONNX's */
  const char *name;
  uint8_t min_inputs, max_inputs, min_outputs, max_outputs; /* CLV__ANY_COUNT: no limit */
  uint32_t flags;
  clv_status (*infer)(clv__infer *infer);
  void (*work)(const clv__infer *infer, clv__work *work); /* NULL: one FLOP an output element; bytes always by the default rule */
  bool (*independent)(struct clv__padding *padding);      /* along which axes; NULL: all where it is element-wise, else none */
} clv__op;

#define CLV__DECLARE_OPS(family) extern const clv__op clv__ops_##family[];
CLV__FAMILIES(CLV__DECLARE_OPS)
#undef CLV__DECLARE_OPS

/* NULL when the table has none. Any thread. */
const clv__op *clv__op_find(const char *domain, const char *name);

/* Work of a node whose shapes are in `infer`; zero FLOPs and bytes where they are not known, or for views. */
void clv__op_work(const clv__op *op, const clv__infer *infer, clv__work *work);

/* ---- Shared by the families (common/infer.c) ---- */

/* Numpy's broadcasting of `count` inputs' shapes into `out` (rank and dims; its dtype is untouched). Unknown dims meet known ones
 * above 1 as the known one, otherwise unknown stays. Two different symbols give unknown. */
clv_status clv__infer_broadcast(clv__infer *infer, const clv_tensor *inputs, uint32_t count, clv_tensor *out);
/* Axis in [-rank, rank) to [0, rank); an error that names the attribute when it is outside. */
clv_status clv__infer_axis(clv__infer *infer, int64_t axis, int32_t rank, int32_t *out);
/* Elements of an integer input (1-D or scalar), from its data or its content. False: not known at all. i32, i64 and bool. */
bool clv__infer_elements(const clv__infer *infer, uint32_t input, clv__content *content);
/* True, with `dim`, where two dims agree or one is unknown; false for a contradiction. */
bool clv__dim_merge(int64_t a, int64_t b, int64_t *dim);
static inline bool clv__infer_has(const clv__infer *infer, uint32_t input) {
  return input < infer->input_count && infer->inputs[input].dtype != CLV_DTYPE_NONE;
}
/* output 0 = type of input 0. */
clv_status clv__infer_same(clv__infer *infer);
/* Sets an output's type; `dims` may be NULL for rank 0 or unknown rank. */
void clv__infer_set(clv__infer *infer, uint32_t output, clv_dtype dtype, int32_t rank, const int64_t *dims);

#endif
