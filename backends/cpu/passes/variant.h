/* A variant: a program prepared for given input shapes. Passes rewrite its nodes (fold, fuse). Lowering turns the nodes into
 * steps over memory slots. Memory planning assigns the slots their offsets. A finished variant is immutable. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_VARIANT_H
#define CLEAVE_BACKENDS_CPU_PASSES_VARIANT_H

#include "backends/cpu/constants/constants.h"

/* How the passes classify a node. Every CLV__CPU_KERNEL node runs as a portable kernel on row-major tensors. */
typedef enum clv__cpu_kind {
  CLV__CPU_KERNEL,
  CLV__CPU_VIEW,        /* output 0 has input 0's bytes */
  CLV__CPU_CONVOLUTION, /* `scale`, `bias` and `posts` are applied to its result */
  CLV__CPU_MATRIX,      /* Gemm or MatMul; `scale`, `bias` and `posts` are applied to its result */
  CLV__CPU_AFFINE,      /* x * scale[c] + bias[c], where c is the index on axis 1; at most one post: relu */
  CLV__CPU_POOL,
  CLV__CPU_UNARY,  /* posts[0] is the function, with its alpha and beta */
  CLV__CPU_BINARY, /* posts[0] is the operation; a later post is a unary */
  CLV__CPU_CONCAT, /* with scale and bias: on axis 1, whatever the axis of its source node; at most one post: relu */
  CLV__CPU_LRN,
  CLV__CPU_SOFTMAX,
  CLV__CPU_TRANSPOSE,
  CLV__CPU_SHUFFLE, /* shuffles channels; node->groups is the number of groups */
  CLV__CPU_LAYER_NORM,
  CLV__CPU_INSTANCE_NORM, /* normalises one image; at most one post: relu */
  CLV__CPU_DECONVOLUTION,
  CLV__CPU_RESIZE,              /* node->groups: 1 linear, 0 nearest */
  CLV__CPU_INTEGER_CONVOLUTION, /* lower/integer_posts.h */
  CLV__CPU_INTEGER_MATRIX,
  CLV__CPU_GRID,      /* quantises or dequantises with one scale for the whole tensor */
  CLV__CPU_SUMS,      /* sums of products of integers whose zero points and scales are known only at run time: sums.h */
  CLV__CPU_ATTENTION, /* attention.h */
  CLV__CPU_KIND_COUNT
} clv__cpu_kind;

typedef struct clv__cpu_post {
  enum { CLV__CPU_POST_UNARY, CLV__CPU_POST_ADD } kind;
  int algorithm; /* clv__dnn_unary or, for posts[0] of a BINARY node, clv__dnn_binary */
  float alpha, beta;
  uint32_t value; /* for ADD: the other addend */
} clv__cpu_post;

#define CLV__CPU_MAX_POSTS 4

typedef struct clv__cpu_integers clv__cpu_integers; /* lower/integer_posts.h */

typedef struct clv__cpu_attention clv__cpu_attention; /* attention.h */

typedef struct clv__cpu_variant_node {
  const clv__cpu_node *source; /* supplies the attributes */
  clv__cpu_kind kind;
  bool dead;
  bool composed; /* merged from several operators, so no kernel computes it */
  uint32_t input_count, output_count;
  uint32_t *inputs, *outputs;
  float *scale, *bias; /* per channel; NULL: none */
  clv_dtype product;   /* dtype of the factors of a CONVOLUTION, DECONVOLUTION or MATRIX: CLV_F32 or CLV_BF16 */
  int64_t groups;
  const clv__cpu_integers *integers; /* for a product of integers; NULL for other nodes */
  const clv__cpu_attention *attention;
  uint32_t post_count;
  clv__cpu_post posts[CLV__CPU_MAX_POSTS];
} clv__cpu_variant_node;

#define CLV__CPU_MAX_FORMS 4

typedef struct clv__cpu_form {
  const clv__dnn_layout *layout; /* NULL: row-major */
  uint32_t slot;
} clv__cpu_form;

typedef struct clv__cpu_variant_value {
  clv_tensor type;    /* static; `data` is set if the value is a constant whose bytes are available */
  clv_dtype outer;    /* the model's dtype if steps see the value as f32 (widen.c); NONE: type.dtype */
  clv_dtype made;     /* dtype in which oneDNN's steps compute an f32 value: CLV_F32 or CLV_BF16 (precision.c) */
  bool is_constant;   /* from the program or folded: always available */
  uint32_t producer;  /* index of the variant node that computes it, or NONE */
  uint32_t readers;   /* number of operands of live nodes that read it, plus one for an output of the variant */
  uint32_t reader;    /* if there is only one reader: its node; NONE if the node reads the value in a post */
  uint32_t last_read; /* the last variant node that reads it or a view of it; CLV__CPU_NONE - 1 for outputs of the variant */
  uint32_t output;    /* index among the variant's outputs, or NONE */
  uint32_t form_count;
  clv__cpu_form forms[CLV__CPU_MAX_FORMS]; /* where it is stored; the first form is the one it was computed in */
} clv__cpu_variant_value;

typedef enum clv__cpu_slot_kind {
  CLV__CPU_SLOT_ARENA,
  CLV__CPU_SLOT_INPUT,
  CLV__CPU_SLOT_OUTPUT,
  CLV__CPU_SLOT_CONSTANT
} clv__cpu_slot_kind;

typedef struct clv__cpu_slot {
  clv__cpu_slot_kind kind;
  uint32_t index;     /* for INPUT and OUTPUT: index of the variant's input or output */
  uint32_t root;      /* the slot that owns its memory; itself if it has its own */
  size_t inner_bytes; /* offset of a part from the start of its root */
  void *data;         /* for CONSTANT: the bytes */
  size_t size_bytes;
  size_t offset_bytes;  /* for ARENA: offset in the instance's memory */
  uint32_t first, last; /* for a root: the first and last step that use it */
} clv__cpu_slot;

typedef struct clv__cpu_operand {
  int id;                        /* id of a primitive's argument */
  uint32_t slot;                 /* index of the slot; NONE: the operand is absent (only for kernels) */
  const clv__dnn_layout *layout; /* for operands of primitives */
  clv_tensor type;               /* for operands of kernels and copies; its `data` is NULL */
} clv__cpu_operand;

typedef enum clv__cpu_step_kind {
  CLV__CPU_STEP_KERNEL,
  CLV__CPU_STEP_PRIMITIVE,
  CLV__CPU_STEP_COPY,
  CLV__CPU_STEP_CONVERT, /* row-major, between f32 and a dtype that oneDNN does not support */
  CLV__CPU_STEP_ROW,
  CLV__CPU_STEP_SMALL,
  CLV__CPU_STEP_ELEMENTWISE,
  CLV__CPU_STEP_OWN
} clv__cpu_step_kind;

typedef struct clv__cpu_row clv__cpu_row;                 /* row.h */
typedef struct clv__cpu_small clv__cpu_small;             /* small.h */
typedef struct clv__cpu_elementwise clv__cpu_elementwise; /* small.h */

/* A function over tensors. It is the first member of a struct that holds the function's parameters. */
typedef struct clv__cpu_own {
  void (*run)(const struct clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop);
} clv__cpu_own;

typedef struct clv__cpu_step {
  clv__cpu_step_kind kind;
  const clv__cpu_node *node; /* for messages and for the kernel's call */
  const char *what;          /* what the step does, for logs and times: "Conv", "reorder", … */
  const clv__kernel *kernel; /* for KERNEL: runs instead of the node's kernel; NULL: the node's kernel runs */
  clv__dnn_primitive *primitive;
  const clv__cpu_row *row;
  const clv__cpu_small *small;
  const clv__cpu_elementwise *elementwise;
  const clv__cpu_own *own;
  uint32_t input_count, operand_count, operand_room; /* operands are inputs, then outputs; operand_room: capacity */
  clv__cpu_operand *operands;
  size_t scratch_bytes, scratch_offset_bytes; /* size of the step's scratch, and its offset in the instance's memory */
  bool serial;                                /* the step is too small to be worth waking other threads */
  bool may_overlap;                           /* its first output may reuse the memory of its first input */
} clv__cpu_step;

typedef struct clv__cpu_variant {
  clv_device *device;
  clv__cpu_program *program;
  clv__cpu_constants *constants;
  clv__arena arena;
  bool fuse, onednn;
  uint32_t node_count, value_count;
  clv__cpu_variant_node *nodes;
  clv__cpu_variant_value *values;
  const clv_tensor *given; /* the types of the inputs; belongs to the caller and is valid only in clv__cpu_variant_make() */
  clv_tensor *input_types; /* a copy of `given` that stays valid */
  clv_tensor *output_types;
  clv__cpu_slot *slots;
  size_t slot_count, slot_capacity;
  clv__cpu_step *steps;
  size_t step_count, step_capacity;
  size_t memory_bytes;       /* per instance: values between steps, and the steps' scratch; a multiple of CLV__ALIGNMENT */
  size_t least_memory_bytes; /* lower bound for any assignment of offsets with this order of steps */
} clv__cpu_variant;

/* Returns CLV_OK with *variant NULL if some shape is known only at run time. `graph` is the view passed to compile(), or a
 * reopened copy of it; the host infers shapes from it. */
clv_status clv__cpu_variant_make(clv__cpu_program *program, clv__cpu_constants *constants, const clv_graph_view *graph,
                                 const clv_tensor *inputs, clv__cpu_variant **variant, clv_error *error);
void clv__cpu_variant_destroy(clv__cpu_variant *variant); /* accepts NULL */

/* ---- The passes. variant.c determines their order. ---- */
clv_status clv__cpu_pass_infer(clv__cpu_variant *variant, const clv_graph_view *graph, bool *complete,
                               clv_error *error);                                /* infer.c */
clv_status clv__cpu_pass_widen(clv__cpu_variant *variant, clv_error *error);     /* widen.c */
void clv__cpu_pass_recognise(clv__cpu_variant *variant);                         /* recognise.c */
clv_status clv__cpu_pass_fold(clv__cpu_variant *variant, clv_error *error);      /* fold.c */
clv_status clv__cpu_pass_quantise(clv__cpu_variant *variant, clv_error *error);  /* quantise.c */
clv_status clv__cpu_pass_sums(clv__cpu_variant *variant, clv_error *error);      /* sums.c */
void clv__cpu_pass_gelu(clv__cpu_variant *variant);                              /* gelu.c */
clv_status clv__cpu_pass_attention(clv__cpu_variant *variant, clv_error *error); /* attention.c */
void clv__cpu_pass_shuffle(clv__cpu_variant *variant);                           /* fuse.c */
void clv__cpu_pass_fuse(clv__cpu_variant *variant);                              /* fuse.c */
clv_status clv__cpu_pass_join(clv__cpu_variant *variant, clv_error *error);      /* join.c */
void clv__cpu_pass_precision(clv__cpu_variant *variant);                         /* precision.c */
void clv__cpu_pass_count(clv__cpu_variant *variant); /* removes dead nodes; finds producers and readers of values: uses.c */
clv_status clv__cpu_pass_lower(clv__cpu_variant *variant, clv_error *error);  /* lower.c */
clv_status clv__cpu_pass_memory(clv__cpu_variant *variant, clv_error *error); /* run/memory.c */

/* ---- Shared by the passes (uses.c). ---- */
static inline clv__cpu_variant_value *clv__cpu_input(clv__cpu_variant *variant, const clv__cpu_variant_node *node,
                                                     uint32_t index) {
  return index < node->input_count && node->inputs[index] != CLV__CPU_NONE ? &variant->values[node->inputs[index]] : NULL;
}
static inline clv__cpu_variant_value *clv__cpu_output(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return &variant->values[node->outputs[0]];
}
/* The type of the value as seen from outside this backend, that is, with its outer dtype. */
static inline clv_tensor clv__cpu_outer_type(const clv__cpu_variant *variant, uint32_t value) {
  clv_tensor type = variant->values[value].type;
  type.data = NULL;
  if (variant->values[value].outer != CLV_DTYPE_NONE) type.dtype = variant->values[value].outer;
  return type;
}
/* The slot that owns a slot's memory, across any number of slots in between. */
static inline uint32_t clv__cpu_slot_root(const clv__cpu_variant *variant, uint32_t slot) {
  while (variant->slots[slot].root != slot) slot = variant->slots[slot].root;
  return slot;
}
/* Sets *data to the bytes of a constant value, row-major and aligned: in f32 if the variant widens the value (widen.c),
 * otherwise in the model's dtype. Sets *data to NULL and returns CLV_OK if the value is not a constant. */
clv_status clv__cpu_known(clv__cpu_variant *variant, uint32_t value, void **data, clv_error *error);
/* Whether a kernel node runs in f32 although the model has a narrower dtype. Otherwise it runs in the model's dtypes. Call this
 * only during lowering, when the layouts of its inputs are known (widen.c). */
bool clv__cpu_runs_wide(clv__cpu_variant *variant, const clv__cpu_variant_node *node);
/* Whether `type` is f32 with known dims and at least one element. */
bool clv__cpu_is_f32(const clv_tensor *type);
/* The only live node that reads `value`. NULL if there are several or none, or if `value` is an output of the variant. */
clv__cpu_variant_node *clv__cpu_only_reader(clv__cpu_variant *variant, uint32_t value);

#endif
