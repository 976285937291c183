/* The stages of a layer: their order, and what each one reads and computes. This determines which values cross block
 * boundaries if a layer is divided into blocks, contiguous runs of stages.
 *
 *   GraphSAGE  gather, message, reduce-sum, reduce-count, normalize, transform, activate
 *   GCN        normalise-degree, gather, message, reduce-sum, transform, activate
 *   GAT        transform, gather-both, score, softmax, weighted-message, reduce-sum, activate
 *
 * A GraphSAGE or GCN layer whose output is narrower than its input runs the transform before the gather. The transform is
 * linear, so only the rounding changes, and fewer columns move along the edges. This depends on the layer alone: all plans of
 * a layer use the same order.
 *
 * A layer works on a subgraph in local ids. `rows` are the vertices that it reads; `targets` are those whose results it
 * computes, and come first among the rows. Offsets and sources give the source rows of each target's in-edges. For GCN and
 * GAT, the edges include the self loops (clv__gnn_graph_with_loops()). */
#ifndef CLEAVE_GNN_MODEL_STAGE_H
#define CLEAVE_GNN_MODEL_STAGE_H

#include "gnn/model/model.h"

typedef enum clv__stage {
  CLV__STAGE_NORMALISE_DEGREE,
  CLV__STAGE_GATHER,
  CLV__STAGE_GATHER_BOTH,
  CLV__STAGE_MESSAGE,
  CLV__STAGE_SCORE,
  CLV__STAGE_SOFTMAX,
  CLV__STAGE_WEIGHTED_MESSAGE,
  CLV__STAGE_REDUCE_SUM,
  CLV__STAGE_REDUCE_COUNT,
  CLV__STAGE_NORMALIZE,
  CLV__STAGE_TRANSFORM,
  CLV__STAGE_ACTIVATE,
  CLV__STAGE_KINDS
} clv__stage;

enum { CLV__MOST_STAGES = 7 };

/* The values of a layer. `in` and `out` are the layer's widths. `width` is the width of the aggregated rows: `in`, or the
 * transform's output width if the transform comes first. Values are f32 unless stated otherwise. */
typedef enum clv__layer_value {
  /* Inputs from the subgraph and the previous layer. */
  CLV__VALUE_ROWS,    /* [rows, in]; of the storage dtype */
  CLV__VALUE_OWN,     /* [targets, in]; of the storage dtype: the first `targets` rows of ROWS, for blocks that read no others */
  CLV__VALUE_DEGREES, /* GCN: [rows, 1]: in-edges per row, counting self loops and sources outside the subgraph; 1 in padding */
  CLV__VALUE_OWN_DEGREES,  /* GCN: [targets, 1]: the first `targets` rows of DEGREES */
  CLV__VALUE_OFFSETS,      /* i64 [targets + 1] */
  CLV__VALUE_SOURCES,      /* i32 [edges]: each edge's source, as a row */
  CLV__VALUE_DESTINATIONS, /* i32 [edges]: each edge's target; read by gather-both and softmax unless fused with reduce-sum */
  CLV__VALUE_POSITIONS,    /* i32 [edges]: 0, 1, 2, …; read by softmax and reduce-sum unless fused with the gather */
  /* Values that stages compute. */
  CLV__VALUE_SCALE,             /* GCN: [rows, 1]: 1 / sqrt(degree) */
  CLV__VALUE_OWN_SCALE,         /* GCN: [targets, 1] */
  CLV__VALUE_PROJECTED,         /* transform first, or GAT: [rows, width]; of the storage dtype */
  CLV__VALUE_OWN_PROJECTED,     /* GraphSAGE, transform first: [targets, width]: the vertex's own part, and the bias */
  CLV__VALUE_SOURCE_SCORE,      /* GAT: [rows, heads] */
  CLV__VALUE_TARGET_SCORE,      /* GAT: [targets, heads] */
  CLV__VALUE_GATHERED,          /* [edges, width]; of the storage dtype */
  CLV__VALUE_GATHERED_SCALE,    /* GCN: [edges, 1] */
  CLV__VALUE_EDGE_SOURCE_SCORE, /* GAT: [edges, heads] */
  CLV__VALUE_EDGE_TARGET_SCORE, /* GAT: [edges, heads] */
  CLV__VALUE_SCORES,            /* GAT: [edges, heads] */
  CLV__VALUE_SHARES,            /* GAT: [edges, heads]: after softmax */
  CLV__VALUE_MESSAGES,          /* [edges, width]; of the storage dtype */
  CLV__VALUE_SUM,               /* [targets, width] */
  CLV__VALUE_COUNT,             /* GraphSAGE: [targets, 1] */
  CLV__VALUE_MEAN,              /* GraphSAGE: [targets, width] */
  CLV__VALUE_TRANSFORMED,       /* [targets, out] */
  CLV__VALUE_RESULT,            /* [targets, out] */
  CLV__LAYER_VALUES
} clv__layer_value;

typedef uint32_t clv__value_set; /* one bit per value */
#define CLV__VALUE_BIT(value) (UINT32_C(1) << (value))
#define CLV__VALUES_GIVEN \
  (CLV__VALUE_BIT(CLV__VALUE_SCALE) - 1) /* from the subgraph and the previous layer; stages compute the others */

typedef enum clv__layer_dimension {
  CLV__DIMENSION_ROWS,
  CLV__DIMENSION_TARGETS,
  CLV__DIMENSION_OFFSETS, /* targets + 1 */
  CLV__DIMENSION_EDGES,
  CLV__LAYER_DIMENSIONS
} clv__layer_dimension;

typedef struct clv__value_shape {
  clv__layer_dimension dimension;
  uint32_t columns; /* 0: rank 1 */
  clv_dtype dtype;
} clv__value_shape;

/* The stages of one layer. Plain data; the layer must outlive it. */
typedef struct clv__stages {
  const clv__gnn_layer *layer;
  clv__gnn_type type;
  clv_dtype storage; /* the dtype in which gathered rows are stored: CLV_F32 or CLV_BF16 */
  bool transform_first;
  uint32_t count;
  clv__stage items[CLV__MOST_STAGES];
} clv__stages;

void clv__stages_of(clv__gnn_type type, const clv__gnn_layer *layer, clv_dtype storage, clv__stages *stages);

const char *clv__stage_name(clv__stage stage);             /* "reduce-sum" */
const char *clv__layer_value_name(clv__layer_value value); /* "rows"; also names graph inputs and outputs */

/* A block is stages [first, last). */

/* The values that the block reads: inputs of the layer, and values from earlier blocks. The block fuses stages if it can: with
 * gather, message and reduce-sum inside (GraphSAGE: through normalize; GAT: gather-both through reduce-sum), it makes one pass
 * over the edges and materialises no value with a row per edge. With `same_rows`, the targets are the rows (a whole graph, or
 * the padded form). A block that reads ROWS then does not read OWN, and a block that reads DEGREES does not read OWN_DEGREES. */
clv__value_set clv__block_reads(const clv__stages *stages, uint32_t first, uint32_t last, bool same_rows);
/* The values that the block computes and a later stage reads, or RESULT. */
clv__value_set clv__block_makes(const clv__stages *stages, uint32_t first, uint32_t last);
/* The values that cross from one block of a layer to a later one, not necessarily the next. */
static inline clv__value_set clv__block_crossing(const clv__stages *stages, const uint32_t from[2], const uint32_t to[2]) {
  return clv__block_makes(stages, from[0], from[1]) & clv__block_reads(stages, to[0], to[1], false);
}
/* Returns whether a block computes nothing (GraphSAGE's message alone) and therefore does not justify a device of its own. */
bool clv__block_is_empty(const clv__stages *stages, uint32_t first, uint32_t last);

/* The shape and dtype of a value; dtype CLV_DTYPE_NONE: the layer has no such value. */
clv__value_shape clv__layer_value_shape(const clv__stages *stages, clv__layer_value value);

/* The sizes that a block is built for or works on. */
typedef struct clv__layer_sizes {
  uint64_t rows, targets, edges;
} clv__layer_sizes;

uint64_t clv__layer_dimension_size(clv__layer_dimension dimension, clv__layer_sizes sizes);
/* The bytes of a value, or of all values of a set. */
uint64_t clv__layer_value_bytes(const clv__stages *stages, clv__layer_value value, clv__layer_sizes sizes);
uint64_t clv__layer_set_bytes(const clv__stages *stages, clv__value_set set, clv__layer_sizes sizes);

/* Stages [first, last) that execute as one step. block.c builds a block from steps. */
typedef struct clv__layer_step {
  uint32_t first, last;
  bool is_fused; /* several stages in one pass over the edges; otherwise a single stage */
  clv__value_set reads, makes;
} clv__layer_step;
/* The step that starts at stage `first` in a block that ends before `last`. */
clv__layer_step clv__layer_step_at(const clv__stages *stages, uint32_t first, uint32_t last);

#endif
