/* Lowers nodes to steps: one function per kind of node, and helpers that they share in addition to forms.h. */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_LOWER_H
#define CLEAVE_BACKENDS_CPU_LOWER_LOWER_H

#include "forms.h"

/* Lowers one node: emits the steps that compute it. If the function cannot lower the node, it sets *taken to false and emits
 * nothing; the node then runs as a portable kernel. */
typedef clv_status (*clv__cpu_lower_fn)(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);

clv_status clv__cpu_lower_convolution(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_matrix(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
/* Lowers products of one row with a constant matrix of 64 columns or more. */
clv_status clv__cpu_lower_row(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_affine(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_pool(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_unary(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_binary(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_concat(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_lrn(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_softmax(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_transpose(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_shuffle(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_deconvolution(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_instance(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_resize(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_layer_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);

clv_status clv__cpu_lower_attention(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
/* Lowers recurrences with constant weights. `node` may be any node: *taken is false if it is not such a recurrence. */
clv_status clv__cpu_lower_recurrent(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
/* Lowers Split of a value that is not row-major. `node` may be any node: *taken is false if it is not such a Split. */
clv_status clv__cpu_lower_split(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_grid(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
clv_status clv__cpu_lower_integers(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);

/* Describes source, weights and destination as oneDNN's convolution expects them. `expand`: merge the groups into one, with zeros
 * between. */
void clv__cpu_convolution_describe(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, bool expand,
                                   clv__dnn_convolution *spec);

/* Sets the size of the scratch that a kernel's step needs for the types of its operands, which must be set. The size may depend
 * on the values of constant operands. */
clv_status clv__cpu_kernel_scratch(clv__cpu_variant *variant, clv__cpu_step *step, clv_error *error);

/* Elementwise steps and normalisations of up to this many elements run on one thread. */
#define CLV__CPU_SERIAL_COUNT 1024

/* Whether channels_join() can read the value in place: f32, with the channels last or in blocks (concat.c). */
bool clv__cpu_can_join(clv__cpu_variant *variant, uint32_t value);
/* Lowers a Concat over channels, or a per-channel scale and shift, to channels_join(). */
clv_status clv__cpu_lower_join(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv_error *error);

/* Lowers a post (a fused function or sum) to a separate step, because the node's own step could not apply it. The new step
 * works in place on `slot`, which holds the node's output in `layout`. */
clv_status clv__cpu_lower_post(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_post *post,
                               const clv__dnn_layout *layout, uint32_t slot, clv_error *error);

/* The layout of a row-major or transposed matrix. NULL if memory runs out. */
static inline const clv__dnn_layout *clv__cpu_matrix_layout(clv__cpu_variant *variant, clv_dtype dtype, int64_t rows,
                                                            int64_t columns, bool transposed) {
  const int64_t dims[2] = {rows, columns}, strides[2] = {transposed ? 1 : columns, transposed ? rows : 1};
  return clv__dnn_layout_strided(&variant->arena, dtype, 2, dims, strides);
}

/* For a node that was not lowered: sets *taken to false. Returns CLV_OK instead of CLV_NOT_SUPPORTED, and any other status
 * unchanged. */
static inline clv_status clv__cpu_refused(clv_status status, bool *taken) {
  *taken = false;
  return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
}

#endif
