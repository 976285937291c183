/* Bodies of the operators over graphs: see operators/body.h, and infer.c for what the operators compute. Sums are made with
 * ScatterElements, because ScatterND adds to the same row from several threads in ONNX Runtime 1.31 and loses terms. */
#include "operators/body.h"

#include <string.h>

/* Lines that compute `kept`, the sources without padding, and `target`, the row of each edge. An edge's row is the number of
 * rows that end at or before the edge: a running sum over the number of rows that end at each edge. */
static const clv__body_line edges[] = {
    {"Constant", "", "zero", "value_ints=[0]"},
    {"Constant", "", "one", "value_ints=[1]"},
    {"Constant", "", "minus", "value_ints=[-1]"},
    {"Constant", "", "far", "value_ints=[9223372036854775807]"},
    {"Constant", "", "axis", "value_int=0"},
    {"Slice", "offsets one far", "ends", NULL},
    {"Gather", "offsets minus", "count", "axis=0"},
    {"Slice", "sources zero count", "kept", NULL},
    {"Add", "count one", "count_and_one", NULL},
    {"Expand", "zero count_and_one", "unmarked", NULL},
    {"Shape", "ends", "rows", NULL},
    {"Expand", "one rows", "marks", NULL},
    {"ScatterElements", "unmarked ends marks", "marked", "axis=0 reduction=add"},
    {"CumSum", "marked axis", "passed", NULL},
    {"Slice", "passed zero count", "target", NULL},
    {"Unsqueeze", "target one", "target_column", NULL},
    {NULL, NULL, NULL, NULL},
};

/* Lines that compute `term`: a row of the data for each edge. */
static const clv__body_line terms[] = {
    {"Gather", "data kept", "gathered", "axis=0"},
    {"Cast", "gathered", "term", "to=1"},
    {NULL, NULL, NULL, NULL},
};

/* Lines that compute `index`, where ScatterElements puts the terms, and `shape`, the shape of its result. */
static const clv__body_line places[] = {
    {"Shape", "term", "term_shape", NULL},
    {"Shape", "term", "columns", "start=1"},
    {"Expand", "target_column term_shape", "index", NULL},
    {"Concat", "rows columns", "shape", "axis=0"},
    {"ConstantOfShape", "shape", "zeros", NULL},
    {NULL, NULL, NULL, NULL},
};

static const clv__body_line sum[] = {
    {"ScatterElements", "zeros index term", "total", "axis=0 reduction=add"},
    {NULL, NULL, NULL, NULL},
};

/* Lines that compute `length`: the number of edges of each row. */
static const clv__body_line lengths[] = {
    {"Slice", "offsets zero minus", "begins", NULL},
    {"Sub", "ends begins", "differences", NULL},
    {"Unsqueeze", "differences one", "length", NULL},
    {NULL, NULL, NULL, NULL},
};

static const clv__body_line mean[] = {
    {"Max", "length one", "least_one", NULL},
    {"Cast", "least_one", "divisor", "to=1"},
    {"Div", "total divisor", "result", NULL},
    {NULL, NULL, NULL, NULL},
};

/* Lines that compute `largest`: the maximum of each row, -inf if the row has no edges. */
static const clv__body_line largest[] = {
    {"Constant", "", "lowest", "value_float=-inf"},
    {"Expand", "lowest shape", "floor", NULL},
    {"ScatterElements", "floor index term", "largest", "axis=0 reduction=max"},
    {NULL, NULL, NULL, NULL},
};

/* A NaN among the terms of a row makes its result a NaN. The lines add the NaNs up separately, because runtimes differ in
 * whether the maximum of ScatterElements keeps a NaN. */
static const clv__body_line max[] = {
    {"Constant", "", "nothing", "value_float=0.0"},
    {"Equal", "length zero", "is_empty", NULL},
    {"Where", "is_empty nothing largest", "found", NULL},
    {"IsNaN", "term", "is_nan", NULL},
    {"Where", "is_nan term nothing", "nans", NULL},
    {"ScatterElements", "zeros index nans", "spread", "axis=0 reduction=add"},
    {"Add", "found spread", "result", NULL},
    {NULL, NULL, NULL, NULL},
};

static const clv__body_line finish_sum[] = {{"CastLike", "total data", "aggregated", NULL}, {NULL, NULL, NULL, NULL}};
static const clv__body_line finish[] = {{"CastLike", "result data", "aggregated", NULL}, {NULL, NULL, NULL, NULL}};

/* Lines for SparseAttention, in which `term` is the score of each edge and head. PRelu with one slope is LeakyRelu; the
 * reference evaluator of onnx does not pass attributes of the call to LeakyRelu. */
static const clv__body_line scores[] = {
    {"Gather", "source_score kept", "source_gathered", "axis=0"},
    {"Gather", "target_score target", "target_gathered", "axis=0"},
    {"Cast", "source_gathered", "source_wide", "to=1"},
    {"Cast", "target_gathered", "target_wide", "to=1"},
    {"Add", "source_wide target_wide", "both", NULL},
    {"Constant", "", "slope", "value_float=@negative_slope"},
    {"PRelu", "both slope", "term", NULL},
    {NULL, NULL, NULL, NULL},
};

/* Lines that compute `share`: the softmax of the scores over the edges of a row. */
static const clv__body_line softmax[] = {
    {"Gather", "largest target", "largest_gathered", "axis=0"},
    {"Sub", "term largest_gathered", "below", NULL},
    {"Exp", "below", "power", NULL},
    {"ScatterElements", "zeros index power", "powers", "axis=0 reduction=add"},
    {"Gather", "powers target", "powers_gathered", "axis=0"},
    {"Div", "power powers_gathered", "share", NULL},
    {NULL, NULL, NULL, NULL},
};

/* Lines that multiply the row of each edge, split into heads, by the shares, and add up the products of each output row. This
 * sum has the columns of `data`, and the sums above have one column per head. */
static const clv__body_line weighted[] = {
    {"Constant", "", "two", "value_ints=[2]"},
    {"Shape", "data", "data_columns", "start=1"},
    {"Shape", "source_score", "heads", "start=1"},
    {"Max", "heads one", "divisor", NULL},
    {"Div", "data_columns divisor", "width", NULL},
    {"Concat", "count heads width", "apart", "axis=0"},
    {"Concat", "count data_columns", "together", "axis=0"},
    {"Concat", "rows data_columns", "data_shape", "axis=0"},
    {"Gather", "data kept", "data_gathered", "axis=0"},
    {"Cast", "data_gathered", "data_wide", "to=1"},
    {"Reshape", "data_wide apart", "data_apart", "allowzero=1"},
    {"Unsqueeze", "share two", "share_apart", NULL},
    {"Mul", "data_apart share_apart", "weighted_apart", NULL},
    {"Reshape", "weighted_apart together", "weighted", "allowzero=1"},
    {"Expand", "target_column together", "data_index", NULL},
    {"ConstantOfShape", "data_shape", "data_zeros", NULL},
    {"ScatterElements", "data_zeros data_index weighted", "result", "axis=0 reduction=add"},
    {NULL, NULL, NULL, NULL},
};

static const clv__body_line *const sum_parts[] = {edges, terms, places, sum, finish_sum, NULL};
static const clv__body_line *const mean_parts[] = {edges, terms, places, sum, lengths, mean, finish, NULL};
static const clv__body_line *const max_parts[] = {edges, terms, places, lengths, largest, max, finish, NULL};
static const clv__body_line *const attention_parts[] = {edges, scores, places, largest, softmax, weighted, finish, NULL};

#define AGGREGATE(how)                                                                                                     \
  .function = "SparseAggregate." how, .domain = "ai.cleave", .op = "SparseAggregate", .attribute = "reduce", .value = how, \
  .inputs = "data offsets sources", .output = "aggregated"

static const clv__body bodies[] = {
    {AGGREGATE("sum"), .is_default = true, .parts = sum_parts},
    {AGGREGATE("mean"), .parts = mean_parts},
    {AGGREGATE("max"), .parts = max_parts},
    {.function = "SparseAttention",
     .domain = "ai.cleave",
     .op = "SparseAttention",
     .number = "negative_slope",
     .number_default = 0.2f,
     .inputs = "data source_score target_score offsets sources",
     .output = "aggregated",
     .parts = attention_parts},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

const clv__body *clv__body_find(const char *domain, const char *op, clv__attributes attributes) {
  for (size_t i = 0; i < BODIES; ++i) {
    const clv__body *body = &bodies[i];
    if (strcmp(body->op, op) != 0 || strcmp(body->domain, domain) != 0) continue;
    if (body->attribute == NULL || clv__attribute_is(attributes, body->attribute, body->value, body->is_default)) return body;
  }
  return NULL;
}

const clv__body *clv__body_at(uint32_t index) {
  return index < BODIES ? &bodies[index] : NULL;
}

const char *clv__body_operator(const char *domain, const char *function) {
  for (size_t i = 0; i < BODIES; ++i) {
    if (strcmp(bodies[i].function, function) == 0 && strcmp(bodies[i].domain, domain) == 0) return bodies[i].op;
  }
  return NULL;
}
