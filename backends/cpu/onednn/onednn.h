/* oneDNN behind a small C interface. Only the C++ files of this folder include its headers. Exceptions and differences between
 * oneDNN versions do not leave those files.
 *
 * A layout describes how a tensor is stored in memory (row-major, blocked by 16 channels, …). Layouts and primitive records live
 * in the arena they are created in. The handles of primitives, memories and the engine must be released explicitly. A create
 * function returns CLV_NOT_SUPPORTED if oneDNN has no good implementation; the caller then falls back. */
#ifndef CLEAVE_BACKENDS_CPU_ONEDNN_ONEDNN_H
#define CLEAVE_BACKENDS_CPU_ONEDNN_ONEDNN_H

#include "cleave/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "base/memory.h"

typedef struct clv__dnn clv__dnn;               /* the engine and its stream; any thread may execute on it */
typedef struct clv__dnn_layout clv__dnn_layout; /* an immutable value */
typedef struct clv__dnn_memory clv__dnn_memory; /* a layout and an address */

typedef struct clv__dnn_primitive {
  void *handle;
  /* The layouts that the primitive expects; NULL for an argument that it does not have. */
  const clv__dnn_layout *source, *weights, *destination;
  size_t scratch_bytes;
  const char *implementation; /* oneDNN's name for the implementation */
  bool *has_run;              /* whether the primitive has run; accessed atomically */
} clv__dnn_primitive;

/* Ids of a primitive's arguments. */
enum {
  CLV__DNN_SOURCE = 1,
  CLV__DNN_SOURCE_1 = 2,
  CLV__DNN_DESTINATION = 17,
  CLV__DNN_WEIGHTS = 33,
  CLV__DNN_BIAS = 41,
  CLV__DNN_MEAN = 49,
  CLV__DNN_VARIANCE = 50,
  CLV__DNN_SCRATCH = 80,
  CLV__DNN_MANY_SOURCES = 1024 /* the id of source number i is this plus i */
};
int clv__dnn_post_argument(uint32_t post); /* id of the argument that is the second operand of the binary post number `post` */

typedef struct clv__dnn_argument {
  int id;
  clv__dnn_memory *memory;
} clv__dnn_argument;

typedef enum clv__dnn_unary {
  CLV__DNN_RELU, /* alpha: slope below zero */
  CLV__DNN_ELU,
  CLV__DNN_TANH,
  CLV__DNN_SIGMOID,
  CLV__DNN_GELU_ERF,
  CLV__DNN_GELU_TANH,
  CLV__DNN_CLIP, /* alpha: lower bound, beta: upper bound */
  CLV__DNN_HARDSWISH,
  CLV__DNN_SWISH, /* x * sigmoid(alpha * x) */
  CLV__DNN_MISH,
  CLV__DNN_ABS,
  CLV__DNN_SQRT,
  CLV__DNN_LINEAR, /* alpha * x + beta */
  CLV__DNN_ROUND   /* half to even */
} clv__dnn_unary;

typedef enum clv__dnn_binary { CLV__DNN_ADD, CLV__DNN_SUB, CLV__DNN_MUL, CLV__DNN_DIV } clv__dnn_binary;

#define CLV__DNN_MAX_POSTS 12
typedef struct clv__dnn_post {
  enum { CLV__DNN_POST_SUM, CLV__DNN_POST_UNARY, CLV__DNN_POST_BINARY } kind;
  int algorithm;
  float alpha, beta;
  float factor;                  /* multiplies a unary's result; 0: none. Unaries of one algorithm must have equal parameters */
  const clv__dnn_layout *layout; /* for POST_BINARY: layout of the second operand */
} clv__dnn_post;

#define CLV__DNN_MAX_SPATIAL 3

typedef struct clv__dnn_window { /* window of a convolution or pool, spatial axes only */
  int32_t count;
  int64_t kernel[CLV__DNN_MAX_SPATIAL], stride[CLV__DNN_MAX_SPATIAL],
      dilation[CLV__DNN_MAX_SPATIAL];                             /* as in ONNX: 1 means no dilation */
  int64_t begin[CLV__DNN_MAX_SPATIAL], end[CLV__DNN_MAX_SPATIAL]; /* padding before and after the input */
} clv__dnn_window;

typedef struct clv__dnn_convolution {
  clv_tensor source, weights, destination; /* types; the weights have a leading group axis if there are groups */
  int64_t bias_count;                      /* number of elements of the bias; 0: no bias */
  clv__dnn_window window;
  bool transposed; /* a deconvolution; its weights are in oneDNN's order: [group], output, input, spatial axes */
  bool winograd;
  const clv__dnn_layout *source_layout; /* NULL: oneDNN chooses the layout */
  const clv__dnn_layout *destination_layout;
  const clv__dnn_post *posts;
  uint32_t post_count;
  /* For integers: factors applied to the sum and its bias before the posts, either one factor or one per channel. NULL: a
   * convolution of floats. */
  const float *scales;
  int64_t scale_count;
  int32_t source_zero;      /* subtracted from every source element; also the value of the padding */
  int32_t destination_zero; /* added last, before the final rounding */
  bool is_probe;            /* only query whether there is an implementation; the primitive stays NULL */
} clv__dnn_convolution;

/* Engine. */
clv_status clv__dnn_open(const clv_allocator *allocator, clv__dnn **dnn, clv_error *error);
void clv__dnn_close(clv__dnn *dnn);
void clv__dnn_describe(char *text, size_t size_bytes); /* writes, for example, "oneDNN 2.6.3 avx512_core" */
/* Whether the CPU multiplies bf16. If not, oneDNN would emulate it, slower than f32. */
bool clv__dnn_has_bf16(void);
/* Whether oneDNN has no primitives for the dtype on this CPU. Such values are row-major and are converted through f32. */
static inline bool clv__dnn_is_foreign(clv_dtype dtype) {
  return dtype == CLV_F16 || (dtype == CLV_BF16 && !clv__dnn_has_bf16());
}
/* Whether products of integers are summed exactly. Without VNNI, oneDNN adds pairs of products in 16 bits, which saturate. */
bool clv__dnn_sums_integers(void);

/* Layouts of tensors in f32, bf16, f16, i32, i8 or u8. NULL if the dtype is another one, oneDNN rejects the layout, or memory
 * runs out. */
const clv__dnn_layout *clv__dnn_layout_dense(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims);
const clv__dnn_layout *clv__dnn_layout_strided(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims,
                                               const int64_t *strides);
const clv__dnn_layout *clv__dnn_layout_channels_last(clv__arena *arena, clv_dtype dtype, int32_t rank, const int64_t *dims);
/* A matrix in panels of 64 columns. Each panel stores row after row of 64 elements. The number of rows is padded to a multiple
 * of 16. */
const clv__dnn_layout *clv__dnn_layout_panels(clv__arena *arena, clv_dtype dtype, const int64_t dims[2]);
bool clv__dnn_layout_is_panels(const clv__dnn_layout *layout);
/* A tensor [a, b, c] in panels of 16 along b: [a, b / 16 rounded up, c, 16], the last panel padded with zeros. */
const clv__dnn_layout *clv__dnn_layout_units(clv__arena *arena, clv_dtype dtype, const int64_t dims[3]);
/* The layout of a tensor with the dims `dims` whose channels (axis 1) are stored as in `layout`: last, or in blocks of 8 or 16.
 * NULL if `layout` stores them otherwise. */
const clv__dnn_layout *clv__dnn_layout_rechannel(clv__arena *arena, const clv__dnn_layout *layout, const int64_t *dims);
/* The number of adjacent channels (axis 1) per pixel in a layout that clv__dnn_layout_rechannel() accepts: 8, 16 or all. 0 for
 * other layouts. */
int64_t clv__dnn_layout_channels(const clv__dnn_layout *layout);
/* The layout, over the same memory, of the tensor whose axis i is axis perm[i] of this one. NULL if oneDNN has none. */
const clv__dnn_layout *clv__dnn_layout_permuted(clv__arena *arena, const clv__dnn_layout *layout, const int32_t *perm);
/* The layout of the part of `layout` that begins at `offsets` and has the dims `dims`; NULL if it would cut a block. */
const clv__dnn_layout *clv__dnn_layout_part(clv__arena *arena, const clv__dnn_layout *layout, const int64_t *dims,
                                            const int64_t *offsets);
/* A copy on the heap; free it with clv__release(). */
clv__dnn_layout *clv__dnn_layout_clone(const clv_allocator *allocator, const clv__dnn_layout *layout);
bool clv__dnn_layout_equal(const clv__dnn_layout *a, const clv__dnn_layout *b);
/* Whether the memory has the same bytes in the same order as in the row-major layout. */
bool clv__dnn_layout_is_dense(const clv__dnn_layout *layout);
bool clv__dnn_layout_is_plain(const clv__dnn_layout *layout); /* whether strides alone describe the layout, without blocks */
clv_dtype clv__dnn_layout_dtype(const clv__dnn_layout *layout);
/* Fills `dims` and returns the rank. */
int32_t clv__dnn_layout_dims(const clv__dnn_layout *layout, int64_t dims[CLV_MAX_RANK]);
/* The strides of a plain layout, in elements. */
void clv__dnn_layout_strides(const clv__dnn_layout *layout, int64_t strides[CLV_MAX_RANK]);
/* Whether oneDNN cannot convert the layout to another one (Winograd weights). */
bool clv__dnn_layout_is_opaque(const clv__dnn_layout *layout);
size_t clv__dnn_layout_size_bytes(const clv__dnn_layout *layout);
/* The number of contiguous elements in the memory of the layout, including padding; 0 if there are gaps. */
int64_t clv__dnn_layout_memory_count(const clv__dnn_layout *layout);
/* The order of 3x3 weights once they are transformed for Winograd's algorithm; winograd.c describes it in full. */
typedef struct clv__dnn_winograd {
  enum { CLV__DNN_WINOGRAD_POINTS_OUTPUTS, CLV__DNN_WINOGRAD_POINTS_GROUPS, CLV__DNN_WINOGRAD_GROUPS_POINTS } order;
  int points;                    /* number of points per axis of a tile: 4 or 6 */
  int64_t outputs, inputs;       /* numbers of channels, padded to whole blocks and groups */
  int lanes;                     /* input and output channels per block */
  int output_group, input_group; /* numbers of blocks per group of output and of input blocks */
} clv__dnn_winograd;
/* Returns false if the layout is not one of Winograd weights, or its order was not verified against this oneDNN version. */
bool clv__dnn_layout_winograd(const clv__dnn_layout *layout, clv__dnn_winograd *winograd);

/* Primitives. */
clv_status clv__dnn_convolution_create(clv__dnn *dnn, const clv__dnn_convolution *spec, clv__arena *arena,
                                       clv__dnn_primitive **primitive, clv_error *error);
/* Creates a matrix product of floats. `weights_any`: oneDNN chooses the layout of b. `bias` may be NULL. */
clv_status clv__dnn_matmul_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b, bool weights_any,
                                  const clv__dnn_layout *bias, const clv__dnn_layout *destination, float scale,
                                  const clv__dnn_post *posts, uint32_t post_count, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error);
/* Creates a matrix product of integers. oneDNN chooses the layout of b. The sum and its bias (f32) are multiplied by one factor
 * or by one per column. */
clv_status clv__dnn_matmul_integers_create(clv__dnn *dnn, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                           const clv__dnn_layout *bias, const clv__dnn_layout *destination, const float *scales,
                                           int64_t scale_count, int32_t destination_zero, const clv__dnn_post *posts,
                                           uint32_t post_count, bool is_probe, clv__arena *arena, clv__dnn_primitive **primitive,
                                           clv_error *error);
typedef enum clv__dnn_pool { CLV__DNN_POOL_MAX, CLV__DNN_POOL_AVERAGE, CLV__DNN_POOL_AVERAGE_PADDED } clv__dnn_pool;
clv_status clv__dnn_pool_create(clv__dnn *dnn, clv__dnn_pool kind, const clv__dnn_layout *source, int32_t rank,
                                const int64_t *destination_dims, const clv__dnn_window *window, clv__arena *arena,
                                clv__dnn_primitive **primitive, clv_error *error);
clv_status clv__dnn_unary_create(clv__dnn *dnn, clv__dnn_unary algorithm, float alpha, float beta, const clv__dnn_layout *layout,
                                 clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
clv_status clv__dnn_binary_create(clv__dnn *dnn, clv__dnn_binary algorithm, const clv__dnn_layout *a, const clv__dnn_layout *b,
                                  const clv__dnn_layout *destination, const clv__dnn_post *posts, uint32_t post_count,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
/* Scales and shifts each channel. The argument WEIGHTS holds scale and shift: [2, channels]. The arguments MEAN and VARIANCE must
 * be zeros. */
clv_status clv__dnn_affine_create(clv__dnn *dnn, const clv__dnn_layout *layout, bool relu, clv__arena *arena,
                                  clv__dnn_primitive **primitive, clv_error *error);
/* Like clv__dnn_affine_create(), for one image, whose channels are first normalised to zero mean and unit variance. */
clv_status clv__dnn_instance_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, bool relu,
                                         clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
/* Resizes linearly between pixel centres, or to the nearest pixel. `dims` are those of the result. */
clv_status clv__dnn_resize_create(clv__dnn *dnn, const clv__dnn_layout *source, bool linear, int32_t rank, const int64_t *dims,
                                  clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
/* Layer normalisation over the last axis. The argument WEIGHTS holds scale and shift: [2, extent]. */
clv_status clv__dnn_layer_norm_create(clv__dnn *dnn, const clv__dnn_layout *layout, float epsilon, clv__arena *arena,
                                      clv__dnn_primitive **primitive, clv_error *error);
clv_status clv__dnn_lrn_create(clv__dnn *dnn, const clv__dnn_layout *layout, int64_t size, float alpha, float beta, float k,
                               clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
clv_status clv__dnn_shuffle_create(clv__dnn *dnn, const clv__dnn_layout *layout, int32_t axis, int64_t group_size,
                                   clv__arena *arena, clv__dnn_primitive **primitive, clv_error *error);
clv_status clv__dnn_concat_create(clv__dnn *dnn, const clv__dnn_layout *const *sources, uint32_t count, int32_t axis,
                                  const clv__dnn_layout *destination, clv__arena *arena, clv__dnn_primitive **primitive,
                                  clv_error *error);
clv_status clv__dnn_reorder_create(clv__dnn *dnn, const clv__dnn_layout *from, const clv__dnn_layout *to, clv__arena *arena,
                                   clv__dnn_primitive **primitive, clv_error *error);
void clv__dnn_primitive_release(clv__dnn_primitive *primitive); /* accepts NULL; the record stays in its arena */

/* Execution. */
clv_status clv__dnn_memory_create(clv__dnn *dnn, const clv__dnn_layout *layout, void *data, clv__dnn_memory **memory,
                                  clv_error *error);
clv_status clv__dnn_memory_create_bytes(clv__dnn *dnn, size_t size_bytes, void *data, clv__dnn_memory **memory, clv_error *error);
void clv__dnn_memory_release(clv__dnn_memory *memory); /* accepts NULL */
clv_status clv__dnn_memory_move(clv__dnn_memory *memory, void *data, clv_error *error);
clv_status clv__dnn_execute(clv__dnn *dnn, const clv__dnn_primitive *primitive, const clv__dnn_argument *arguments,
                            uint32_t count, clv_error *error);
/* Copies between layouts immediately; used to pack weights. `to_data` must have room for the layout's size. */
clv_status clv__dnn_reorder_now(clv__dnn *dnn, const clv__dnn_layout *from, void *from_data, const clv__dnn_layout *to,
                                void *to_data, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
