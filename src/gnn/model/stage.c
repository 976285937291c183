/* Defines what each stage reads and computes, by layer type and by whether the transform comes first. The inputs, outputs and
 * sizes of blocks follow from these definitions. See stage.h. */
#include "gnn/model/stage.h"

#define BIT(name) CLV__VALUE_BIT(CLV__VALUE_##name)

const char *clv__stage_name(clv__stage stage) {
  static const char *const names[CLV__STAGE_KINDS] = {
      [CLV__STAGE_NORMALISE_DEGREE] = "normalise-degree",
      [CLV__STAGE_GATHER] = "gather",
      [CLV__STAGE_GATHER_BOTH] = "gather-both",
      [CLV__STAGE_MESSAGE] = "message",
      [CLV__STAGE_SCORE] = "score",
      [CLV__STAGE_SOFTMAX] = "softmax",
      [CLV__STAGE_WEIGHTED_MESSAGE] = "weighted-message",
      [CLV__STAGE_REDUCE_SUM] = "reduce-sum",
      [CLV__STAGE_REDUCE_COUNT] = "reduce-count",
      [CLV__STAGE_NORMALIZE] = "normalize",
      [CLV__STAGE_TRANSFORM] = "transform",
      [CLV__STAGE_ACTIVATE] = "activate",
  };
  return (unsigned)stage < CLV__STAGE_KINDS ? names[stage] : "?";
}

const char *clv__layer_value_name(clv__layer_value value) {
  static const char *const names[CLV__LAYER_VALUES] = {
      [CLV__VALUE_ROWS] = "rows",
      [CLV__VALUE_OWN] = "own",
      [CLV__VALUE_DEGREES] = "degrees",
      [CLV__VALUE_OWN_DEGREES] = "own_degrees",
      [CLV__VALUE_OFFSETS] = "offsets",
      [CLV__VALUE_SOURCES] = "sources",
      [CLV__VALUE_DESTINATIONS] = "destinations",
      [CLV__VALUE_POSITIONS] = "positions",
      [CLV__VALUE_SCALE] = "scale",
      [CLV__VALUE_OWN_SCALE] = "own_scale",
      [CLV__VALUE_PROJECTED] = "projected",
      [CLV__VALUE_OWN_PROJECTED] = "own_projected",
      [CLV__VALUE_SOURCE_SCORE] = "source_score",
      [CLV__VALUE_TARGET_SCORE] = "target_score",
      [CLV__VALUE_GATHERED] = "gathered",
      [CLV__VALUE_GATHERED_SCALE] = "gathered_scale",
      [CLV__VALUE_EDGE_SOURCE_SCORE] = "edge_source_score",
      [CLV__VALUE_EDGE_TARGET_SCORE] = "edge_target_score",
      [CLV__VALUE_SCORES] = "scores",
      [CLV__VALUE_SHARES] = "shares",
      [CLV__VALUE_MESSAGES] = "messages",
      [CLV__VALUE_SUM] = "sum",
      [CLV__VALUE_COUNT] = "count",
      [CLV__VALUE_MEAN] = "mean",
      [CLV__VALUE_TRANSFORMED] = "transformed",
      [CLV__VALUE_RESULT] = "result",
  };
  return (unsigned)value < CLV__LAYER_VALUES ? names[value] : "?";
}

void clv__stages_of(clv__gnn_type type, const clv__gnn_layer *layer, clv_dtype storage, clv__stages *stages) {
  static const clv__stage sage[] = {CLV__STAGE_GATHER,    CLV__STAGE_MESSAGE,   CLV__STAGE_REDUCE_SUM, CLV__STAGE_REDUCE_COUNT,
                                    CLV__STAGE_NORMALIZE, CLV__STAGE_TRANSFORM, CLV__STAGE_ACTIVATE};
  static const clv__stage gcn[] = {CLV__STAGE_NORMALISE_DEGREE, CLV__STAGE_GATHER,    CLV__STAGE_MESSAGE,
                                   CLV__STAGE_REDUCE_SUM,       CLV__STAGE_TRANSFORM, CLV__STAGE_ACTIVATE};
  static const clv__stage gat[] = {CLV__STAGE_TRANSFORM,        CLV__STAGE_GATHER_BOTH, CLV__STAGE_SCORE,   CLV__STAGE_SOFTMAX,
                                   CLV__STAGE_WEIGHTED_MESSAGE, CLV__STAGE_REDUCE_SUM,  CLV__STAGE_ACTIVATE};
  const clv__stage *order = type == CLV__GNN_SAGE ? sage : type == CLV__GNN_GCN ? gcn : gat;
  *stages = (clv__stages){.layer = layer,
                          .type = type,
                          .storage = storage,
                          .transform_first = type == CLV__GNN_GAT || clv__gnn_layer_width(layer) < layer->in,
                          .count = type == CLV__GNN_GCN ? sizeof gcn / sizeof *gcn : CLV__MOST_STAGES};
  uint32_t count = 0;
  if (stages->transform_first) stages->items[count++] = CLV__STAGE_TRANSFORM;
  for (uint32_t s = 0; s < stages->count; ++s) {
    if (order[s] != CLV__STAGE_TRANSFORM || !stages->transform_first) stages->items[count++] = order[s];
  }
}

/* ---- Inputs and outputs of stages and steps ---- */

static clv__value_set transform_reads(const clv__stages *stages) {
  if (stages->type == CLV__GNN_GAT) return BIT(ROWS) | BIT(OWN);
  if (stages->type == CLV__GNN_GCN) return stages->transform_first ? BIT(ROWS) : BIT(SUM);
  return stages->transform_first ? BIT(ROWS) | BIT(OWN) : BIT(MEAN) | BIT(OWN);
}

static clv__value_set transform_makes(const clv__stages *stages) {
  if (stages->type == CLV__GNN_GAT) return BIT(PROJECTED) | BIT(SOURCE_SCORE) | BIT(TARGET_SCORE);
  if (!stages->transform_first) return BIT(TRANSFORMED);
  return BIT(PROJECTED) | (stages->type == CLV__GNN_SAGE ? BIT(OWN_PROJECTED) : 0);
}

static clv__value_set activate_reads(const clv__stages *stages) {
  if (!stages->transform_first) return BIT(TRANSFORMED);
  return stages->type == CLV__GNN_SAGE ? BIT(MEAN) | BIT(OWN_PROJECTED) : BIT(SUM);
}

static void single_step(const clv__stages *stages, clv__stage stage, clv__layer_step *step) {
  bool is_gcn = stages->type == CLV__GNN_GCN;
  switch (stage) {
    case CLV__STAGE_NORMALISE_DEGREE:
      step->reads = BIT(DEGREES) | BIT(OWN_DEGREES);
      step->makes = BIT(SCALE) | BIT(OWN_SCALE);
      break;
    case CLV__STAGE_GATHER:
      step->reads = (stages->transform_first ? BIT(PROJECTED) : BIT(ROWS)) | BIT(SOURCES) | (is_gcn ? BIT(SCALE) : 0);
      step->makes = BIT(GATHERED) | (is_gcn ? BIT(GATHERED_SCALE) : 0);
      break;
    case CLV__STAGE_GATHER_BOTH:
      step->reads = BIT(SOURCE_SCORE) | BIT(TARGET_SCORE) | BIT(SOURCES) | BIT(DESTINATIONS);
      step->makes = BIT(EDGE_SOURCE_SCORE) | BIT(EDGE_TARGET_SCORE);
      break;
    case CLV__STAGE_MESSAGE:
      step->reads = BIT(GATHERED) | (is_gcn ? BIT(GATHERED_SCALE) : 0);
      step->makes = BIT(MESSAGES);
      break;
    case CLV__STAGE_SCORE:
      step->reads = BIT(EDGE_SOURCE_SCORE) | BIT(EDGE_TARGET_SCORE);
      step->makes = BIT(SCORES);
      break;
    case CLV__STAGE_SOFTMAX:
      step->reads = BIT(SCORES) | BIT(OFFSETS) | BIT(POSITIONS) | BIT(DESTINATIONS);
      step->makes = BIT(SHARES);
      break;
    case CLV__STAGE_WEIGHTED_MESSAGE:
      step->reads = BIT(PROJECTED) | BIT(SOURCES) | BIT(SHARES);
      step->makes = BIT(MESSAGES);
      break;
    case CLV__STAGE_REDUCE_SUM:
      step->reads = BIT(MESSAGES) | BIT(OFFSETS) | BIT(POSITIONS) | (is_gcn ? BIT(OWN_SCALE) : 0);
      step->makes = BIT(SUM);
      break;
    case CLV__STAGE_REDUCE_COUNT:
      step->reads = BIT(OFFSETS);
      step->makes = BIT(COUNT);
      break;
    case CLV__STAGE_NORMALIZE:
      step->reads = BIT(SUM) | BIT(COUNT);
      step->makes = BIT(MEAN);
      break;
    case CLV__STAGE_TRANSFORM:
      step->reads = transform_reads(stages);
      step->makes = transform_makes(stages);
      break;
    default:
      step->reads = activate_reads(stages);
      step->makes = BIT(RESULT);
      break;
  }
}

/* Returns the index of `stage` among stages [first, last), or UINT32_MAX. */
static uint32_t find_stage(const clv__stages *stages, uint32_t first, uint32_t last, clv__stage stage) {
  for (uint32_t s = first; s < last; ++s) {
    if (stages->items[s] == stage) return s;
  }
  return UINT32_MAX;
}

clv__layer_step clv__layer_step_at(const clv__stages *stages, uint32_t first, uint32_t last) {
  clv__layer_step step = {.first = first, .last = first + 1};
  clv__stage stage = stages->items[first];
  uint32_t sum = find_stage(stages, first, last, CLV__STAGE_REDUCE_SUM);
  uint32_t normalize = find_stage(stages, first, last, CLV__STAGE_NORMALIZE);
  step.is_fused = sum != UINT32_MAX && (stage == CLV__STAGE_GATHER || stage == CLV__STAGE_GATHER_BOTH);
  if (!step.is_fused) {
    single_step(stages, stage, &step);
    return step;
  }
  step.last = (normalize != UINT32_MAX ? normalize : sum) + 1;
  step.makes = normalize != UINT32_MAX ? BIT(MEAN) : BIT(SUM);
  step.reads = (stages->transform_first ? BIT(PROJECTED) : BIT(ROWS)) | BIT(SOURCES) | BIT(OFFSETS);
  if (stages->type == CLV__GNN_GCN) step.reads |= BIT(SCALE) | BIT(OWN_SCALE);
  if (stages->type == CLV__GNN_GAT) step.reads |= BIT(SOURCE_SCORE) | BIT(TARGET_SCORE);
  return step;
}

/* ---- Blocks ---- */

clv__value_set clv__block_reads(const clv__stages *stages, uint32_t first, uint32_t last, bool same_rows) {
  clv__value_set reads = 0, made = 0;
  for (uint32_t s = first; s < last;) {
    clv__layer_step step = clv__layer_step_at(stages, s, last);
    reads |= step.reads & ~made;
    made |= step.makes;
    s = step.last;
  }
  if (same_rows && (reads & BIT(ROWS)) != 0) reads &= ~BIT(OWN);
  if (same_rows && (reads & BIT(DEGREES)) != 0) reads &= ~BIT(OWN_DEGREES);
  return reads;
}

clv__value_set clv__block_makes(const clv__stages *stages, uint32_t first, uint32_t last) {
  clv__value_set made = 0, wanted = BIT(RESULT);
  for (uint32_t s = first; s < last;) {
    clv__layer_step step = clv__layer_step_at(stages, s, last);
    made |= step.makes;
    s = step.last;
  }
  for (uint32_t s = last; s < stages->count; ++s) {
    clv__layer_step step;
    single_step(stages, stages->items[s], &step);
    wanted |= step.reads;
  }
  return made & wanted;
}

bool clv__block_is_empty(const clv__stages *stages, uint32_t first, uint32_t last) {
  return stages->type == CLV__GNN_SAGE && first + 1 == last && stages->items[first] == CLV__STAGE_MESSAGE;
}

/* ---- Shapes ---- */

clv__value_shape clv__layer_value_shape(const clv__stages *stages, clv__layer_value value) {
  const clv__gnn_layer *layer = stages->layer;
  bool is_gat = stages->type == CLV__GNN_GAT;
  uint32_t heads = is_gat ? layer->heads : 1, out = clv__gnn_layer_width(layer);
  uint32_t projected = is_gat ? heads * layer->out : out, width = stages->transform_first ? projected : layer->in;
  clv_dtype storage = stages->storage;
  clv__value_set known = BIT(ROWS) | BIT(OWN) | BIT(OFFSETS) | BIT(SOURCES) | BIT(RESULT);
  for (uint32_t s = 0; s < stages->count; ++s) {
    clv__layer_step step;
    single_step(stages, stages->items[s], &step);
    known |= step.reads | step.makes;
  }
  if ((unsigned)value >= CLV__LAYER_VALUES || (known & CLV__VALUE_BIT(value)) == 0)
    return (clv__value_shape){.dtype = CLV_DTYPE_NONE};
  const clv__value_shape shapes[CLV__LAYER_VALUES] = {
      [CLV__VALUE_ROWS] = {CLV__DIMENSION_ROWS, layer->in, storage},
      [CLV__VALUE_OWN] = {CLV__DIMENSION_TARGETS, layer->in, storage},
      [CLV__VALUE_DEGREES] = {CLV__DIMENSION_ROWS, 1, CLV_F32},
      [CLV__VALUE_OWN_DEGREES] = {CLV__DIMENSION_TARGETS, 1, CLV_F32},
      [CLV__VALUE_OFFSETS] = {CLV__DIMENSION_OFFSETS, 0, CLV_I64},
      [CLV__VALUE_SOURCES] = {CLV__DIMENSION_EDGES, 0, CLV_I32},
      [CLV__VALUE_DESTINATIONS] = {CLV__DIMENSION_EDGES, 0, CLV_I32},
      [CLV__VALUE_POSITIONS] = {CLV__DIMENSION_EDGES, 0, CLV_I32},
      [CLV__VALUE_SCALE] = {CLV__DIMENSION_ROWS, 1, CLV_F32},
      [CLV__VALUE_OWN_SCALE] = {CLV__DIMENSION_TARGETS, 1, CLV_F32},
      [CLV__VALUE_PROJECTED] = {CLV__DIMENSION_ROWS, projected, storage},
      [CLV__VALUE_OWN_PROJECTED] = {CLV__DIMENSION_TARGETS, out, CLV_F32},
      [CLV__VALUE_SOURCE_SCORE] = {CLV__DIMENSION_ROWS, heads, CLV_F32},
      [CLV__VALUE_TARGET_SCORE] = {CLV__DIMENSION_TARGETS, heads, CLV_F32},
      [CLV__VALUE_GATHERED] = {CLV__DIMENSION_EDGES, width, storage},
      [CLV__VALUE_GATHERED_SCALE] = {CLV__DIMENSION_EDGES, 1, CLV_F32},
      [CLV__VALUE_EDGE_SOURCE_SCORE] = {CLV__DIMENSION_EDGES, heads, CLV_F32},
      [CLV__VALUE_EDGE_TARGET_SCORE] = {CLV__DIMENSION_EDGES, heads, CLV_F32},
      [CLV__VALUE_SCORES] = {CLV__DIMENSION_EDGES, heads, CLV_F32},
      [CLV__VALUE_SHARES] = {CLV__DIMENSION_EDGES, heads, CLV_F32},
      [CLV__VALUE_MESSAGES] = {CLV__DIMENSION_EDGES, width, storage},
      [CLV__VALUE_SUM] = {CLV__DIMENSION_TARGETS, width, CLV_F32},
      [CLV__VALUE_COUNT] = {CLV__DIMENSION_TARGETS, 1, CLV_F32},
      [CLV__VALUE_MEAN] = {CLV__DIMENSION_TARGETS, width, CLV_F32},
      [CLV__VALUE_TRANSFORMED] = {CLV__DIMENSION_TARGETS, out, CLV_F32},
      [CLV__VALUE_RESULT] = {CLV__DIMENSION_TARGETS, out, CLV_F32},
  };
  return shapes[value];
}

uint64_t clv__layer_dimension_size(clv__layer_dimension dimension, clv__layer_sizes sizes) {
  switch (dimension) {
    case CLV__DIMENSION_ROWS:
      return sizes.rows;
    case CLV__DIMENSION_TARGETS:
      return sizes.targets;
    case CLV__DIMENSION_OFFSETS:
      return sizes.targets + 1;
    default:
      return sizes.edges;
  }
}

uint64_t clv__layer_value_bytes(const clv__stages *stages, clv__layer_value value, clv__layer_sizes sizes) {
  clv__value_shape shape = clv__layer_value_shape(stages, value);
  uint64_t columns = shape.columns == 0 ? 1 : shape.columns;
  return clv__layer_dimension_size(shape.dimension, sizes) * columns * clv_dtype_size_bytes(shape.dtype);
}

uint64_t clv__layer_set_bytes(const clv__stages *stages, clv__value_set set, clv__layer_sizes sizes) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    if ((set & CLV__VALUE_BIT(v)) != 0) total += clv__layer_value_bytes(stages, (clv__layer_value)v, sizes);
  }
  return total;
}
