/* A plan: a program made ready for given input shapes. Passes rewrite its nodes (fold, fuse), lowering turns them into steps over
 * slots of memory, memory planning gives the slots their places. Immutable once made. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_PLAN_H
#define CLEAVE_BACKENDS_CPU_PASSES_PLAN_H

#include "backends/cpu/constants/constants.h"

/* What a node is to the passes. Everything that is CLV__CPU_KERNEL runs as a portable kernel on row-major tensors. */
typedef enum clv__cpu_kind {
  CLV__CPU_KERNEL,
  CLV__CPU_VIEW,        /* output 0 has input 0's bytes */
  CLV__CPU_CONVOLUTION, /* scale, bias and posts apply */
  CLV__CPU_MATRIX,      /* Gemm and MatMul: the same */
  CLV__CPU_AFFINE,      /* x * scale[c] + bias[c], c along axis 1; one post: relu */
  CLV__CPU_POOL,
  CLV__CPU_UNARY,  /* unary: alpha, beta in posts[0] */
  CLV__CPU_BINARY, /* posts[0].algorithm; a later post: a unary */
  CLV__CPU_CONCAT, /* with a scale and bias, over axis 1 whatever its node says; then one post: relu */
  CLV__CPU_LRN,
  CLV__CPU_SOFTMAX,
  CLV__CPU_TRANSPOSE,
  CLV__CPU_SHUFFLE, /* channels, in `groups` */
  CLV__CPU_LAYER_NORM,
  CLV__CPU_INSTANCE_NORM, /* of one image; one post: relu */
  CLV__CPU_DECONVOLUTION,
  CLV__CPU_RESIZE,              /* groups: 1 linear, 0 nearest */
  CLV__CPU_INTEGER_CONVOLUTION, /* lower/integer_posts.h */
  CLV__CPU_INTEGER_MATRIX,
  CLV__CPU_GRID,      /* to integers or back, with one scale for all */
  CLV__CPU_SUMS,      /* of products of integers whose zero points and scales are known at run time: sums.h */
  CLV__CPU_ATTENTION, /* attention.h */
  CLV__CPU_KIND_COUNT
} clv__cpu_kind;

typedef struct clv__cpu_post {
  enum { CLV__CPU_POST_UNARY, CLV__CPU_POST_ADD } kind;
  int algorithm; /* clv__dnn_unary or, for the first of a BINARY, clv__dnn_binary */
  float alpha, beta;
  uint32_t value; /* of ADD */
} clv__cpu_post;

#define CLV__CPU_MAX_POSTS 4

typedef struct clv__cpu_integers clv__cpu_integers; /* lower/integer_posts.h */

typedef struct clv__cpu_attention clv__cpu_attention; /* attention.h */

typedef struct clv__cpu_plan_node {
  const clv__cpu_node *source; /* whose attributes apply */
  clv__cpu_kind kind;
  bool dead;
  bool composed; /* of several operators: no kernel computes it */
  uint32_t input_count, output_count;
  uint32_t *inputs, *outputs;
  float *scale, *bias; /* per channel; NULL: none */
  clv_dtype product;   /* of the factors of a CONVOLUTION, DECONVOLUTION or MATRIX: CLV_F32 or CLV_BF16 */
  int64_t groups;
  const clv__cpu_integers *integers; /* of a product of integers */
  const clv__cpu_attention *attention;
  uint32_t post_count;
  clv__cpu_post posts[CLV__CPU_MAX_POSTS];
} clv__cpu_plan_node;

#define CLV__CPU_MAX_FORMS 4

typedef struct clv__cpu_form {
  const clv__dnn_layout *layout; /* NULL: row-major */
  uint32_t slot;
} clv__cpu_form;

typedef struct clv__cpu_plan_value {
  clv_tensor type;    /* static; `data`: known at plan time and at hand */
  clv_dtype outer;    /* the model's dtype where steps see the value as f32 (widen.c); NONE: type.dtype */
  clv_dtype made;     /* what an f32 value is made in by oneDNN's steps: CLV_F32 or CLV_BF16 (precision.c) */
  bool is_constant;   /* of the program or folded: always there */
  uint32_t producer;  /* plan node, or NONE */
  uint32_t readers;   /* live nodes that read it, each counted once an operand; an output of the plan counts one more */
  uint32_t reader;    /* where it is one: the node, or NONE when it reads the value in a post */
  uint32_t last_read; /* the last plan node that reads it or a view of it; NONE - 1 where it leaves the plan */
  uint32_t output;    /* index among the plan's outputs, or NONE */
  uint32_t form_count;
  clv__cpu_form forms[CLV__CPU_MAX_FORMS]; /* where it is, the first being the one it was made in */
} clv__cpu_plan_value;

typedef enum clv__cpu_slot_kind {
  CLV__CPU_SLOT_ARENA,
  CLV__CPU_SLOT_INPUT,
  CLV__CPU_SLOT_OUTPUT,
  CLV__CPU_SLOT_CONSTANT
} clv__cpu_slot_kind;

typedef struct clv__cpu_slot {
  clv__cpu_slot_kind kind;
  uint32_t index;     /* of the binding */
  uint32_t root;      /* the slot whose memory it is; itself where it has its own */
  size_t inner_bytes; /* from the root's begin, of a part of it */
  void *data;         /* CONSTANT */
  size_t size_bytes;
  size_t offset_bytes;  /* ARENA: in the instance's memory */
  uint32_t first, last; /* steps, of a root */
} clv__cpu_slot;

typedef struct clv__cpu_operand {
  int id;                        /* of a primitive's argument */
  uint32_t slot;                 /* NONE: absent (kernels only) */
  const clv__dnn_layout *layout; /* primitives */
  clv_tensor type;               /* kernels and copies; data NULL */
} clv__cpu_operand;

typedef enum clv__cpu_step_kind {
  CLV__CPU_STEP_KERNEL,
  CLV__CPU_STEP_PRIMITIVE,
  CLV__CPU_STEP_COPY,
  CLV__CPU_STEP_CONVERT, /* row-major, between f32 and a dtype that oneDNN has not */
  CLV__CPU_STEP_ROW,
  CLV__CPU_STEP_SMALL,
  CLV__CPU_STEP_ELEMENTWISE,
  CLV__CPU_STEP_OWN
} clv__cpu_step_kind;

typedef struct clv__cpu_row clv__cpu_row;                 /* row.h */
typedef struct clv__cpu_small clv__cpu_small;             /* small.h */
typedef struct clv__cpu_elementwise clv__cpu_elementwise; /* small.h */

/* A function over tensors, the first member of a record that it knows. */
typedef struct clv__cpu_own {
  void (*run)(const struct clv__cpu_own *own, const clv_tensor *operands);
  bool may_lane; /* beside others, on one thread */
} clv__cpu_own;

/* Steps may run in lanes, side by side (lanes.h). */
#define CLV__CPU_MAX_LANES 16
#define CLV__CPU_NO_LANE UINT8_MAX

typedef struct clv__cpu_wait {
  uint32_t lane, done; /* until that lane has done so many of its steps */
} clv__cpu_wait;

typedef struct clv__cpu_step {
  clv__cpu_step_kind kind;
  const clv__cpu_node *node; /* for messages, and the kernel's call */
  const char *what;          /* "Conv", "reorder", … */
  const clv__kernel *kernel; /* KERNEL: another than the node's; NULL: that */
  clv__dnn_primitive *primitive;
  const clv__cpu_row *row;
  const clv__cpu_small *small;
  const clv__cpu_elementwise *elementwise;
  const clv__cpu_own *own;
  uint32_t input_count, operand_count, operand_room; /* inputs first, then outputs */
  clv__cpu_operand *operands;
  size_t scratch_bytes, scratch_offset_bytes; /* in the instance's memory */
  bool serial;                                /* so small that waking other threads takes longer */
  bool may_overlap;                           /* its first output may take the memory of its first input */
  uint8_t lane;                               /* of its stretch, or NO_LANE: on all threads */
  uint32_t stretch;                           /* where it has a lane */
  uint32_t wait_count;
  const clv__cpu_wait *waits;
} clv__cpu_step;

/* Steps in lanes (lanes.h): what is known of their order. */
typedef struct clv__cpu_stretch {
  uint32_t first, count, lane_count;
  uint32_t *clocks;    /* by step and lane: how many steps of the lane are over when the step begins */
  double *begin, *end; /* by step, as estimated: microseconds */
  double span;         /* all of it */
  uint32_t *origins;   /* by step: its index as it was lowered */
} clv__cpu_stretch;

typedef struct clv__cpu_plan {
  clv_device *device;
  clv__cpu_program *program;
  clv__cpu_constants *constants;
  clv__arena arena;
  bool fuse, onednn;
  uint32_t node_count, value_count;
  clv__cpu_plan_node *nodes;
  clv__cpu_plan_value *values;
  const clv_tensor *given; /* the input types that it is made for; valid while it is made */
  clv_tensor *input_types; /* a copy that stays */
  clv_tensor *output_types;
  clv__cpu_slot *slots;
  size_t slot_count, slot_capacity;
  clv__cpu_step *steps;
  size_t step_count, step_capacity;
  size_t memory_bytes;       /* of an instance: values between steps, and the steps' scratch; a multiple of CLV__ALIGNMENT */
  size_t least_memory_bytes; /* that any places in this order of steps take */
  uint32_t peak_step;        /* where that much is alive */
  clv__cpu_stretch *stretches;
  size_t stretch_count;
} clv__cpu_plan;

/* CLV_OK with *plan NULL: some shape is only known at run time. `graph` is the view (or its copy) to ask for shapes. */
clv_status clv__cpu_plan_make(clv__cpu_program *program, clv__cpu_constants *constants, const clv_graph_view *graph,
                              const clv_tensor *inputs, clv__cpu_plan **plan, clv_error *error);
void clv__cpu_plan_destroy(clv__cpu_plan *plan); /* accepts NULL */

/* ---- The passes, in their order. ---- */
clv_status clv__cpu_pass_infer(clv__cpu_plan *plan, const clv_graph_view *graph, bool *complete, clv_error *error); /* infer.c */
clv_status clv__cpu_pass_widen(clv__cpu_plan *plan, clv_error *error);                                              /* widen.c */
void clv__cpu_pass_recognise(clv__cpu_plan *plan);                         /* recognise.c */
clv_status clv__cpu_pass_fold(clv__cpu_plan *plan, clv_error *error);      /* fold.c */
clv_status clv__cpu_pass_quantise(clv__cpu_plan *plan, clv_error *error);  /* quantise.c */
clv_status clv__cpu_pass_sums(clv__cpu_plan *plan, clv_error *error);      /* sums.c */
void clv__cpu_pass_gelu(clv__cpu_plan *plan);                              /* gelu.c */
clv_status clv__cpu_pass_attention(clv__cpu_plan *plan, clv_error *error); /* attention.c */
void clv__cpu_pass_shuffle(clv__cpu_plan *plan);                           /* fuse.c */
void clv__cpu_pass_fuse(clv__cpu_plan *plan);                              /* fuse.c */
clv_status clv__cpu_pass_join(clv__cpu_plan *plan, clv_error *error);      /* join.c */
void clv__cpu_pass_precision(clv__cpu_plan *plan);                         /* precision.c */
void clv__cpu_pass_count(clv__cpu_plan *plan); /* drops dead nodes; readers, producers, last reads: uses.c */
clv_status clv__cpu_pass_lower(clv__cpu_plan *plan, clv_error *error);  /* lower.c */
clv_status clv__cpu_pass_memory(clv__cpu_plan *plan, clv_error *error); /* memory.c; called by lanes.c */
/* Stretches of the plan's steps, which are put in another order, and then memory: lanes.c. */
clv_status clv__cpu_pass_lanes(clv__cpu_plan *plan, clv_error *error);

/* ---- Shared by the passes (uses.c). ---- */
static inline clv__cpu_plan_value *clv__cpu_input(clv__cpu_plan *plan, const clv__cpu_plan_node *node, uint32_t index) {
  return index < node->input_count && node->inputs[index] != CLV__CPU_NONE ? &plan->values[node->inputs[index]] : NULL;
}
static inline clv__cpu_plan_value *clv__cpu_output(clv__cpu_plan *plan, const clv__cpu_plan_node *node) {
  return &plan->values[node->outputs[0]];
}
/* The type that the value has outside of this backend: with its outer dtype. */
static inline clv_tensor clv__cpu_outer_type(const clv__cpu_plan *plan, uint32_t value) {
  clv_tensor type = plan->values[value].type;
  type.data = NULL;
  if (plan->values[value].outer != CLV_DTYPE_NONE) type.dtype = plan->values[value].outer;
  return type;
}
/* The slot whose memory a slot is in, through as many as there are between. */
static inline uint32_t clv__cpu_slot_root(const clv__cpu_plan *plan, uint32_t slot) {
  while (plan->slots[slot].root != slot) slot = plan->slots[slot].root;
  return slot;
}
/* The bytes of a constant value, row-major and aligned; NULL (with status CLV_OK) when the value is no constant. */
clv_status clv__cpu_known(clv__cpu_plan *plan, uint32_t value, void **data, clv_error *error);
/* Whether a kernel node runs in f32 where the model has less; else it runs in the model's dtypes. Asked when it is lowered, when
 * it is known how its inputs lie (widen.c). */
bool clv__cpu_runs_wide(clv__cpu_plan *plan, const clv__cpu_plan_node *node);
/* True when `type` is static f32 with at least one element. */
bool clv__cpu_is_f32(const clv_tensor *type);
/* The live node that alone reads `value`, when it is no output of the plan; NULL otherwise. */
clv__cpu_plan_node *clv__cpu_only_reader(clv__cpu_plan *plan, uint32_t value);

#endif
