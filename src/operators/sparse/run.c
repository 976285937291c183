/* SparseAggregate and SparseAttention over a graph in compressed rows. The edges of row v are [offsets[v], offsets[v + 1]);
 * `sources` names the data row that each edge reads. */
#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

typedef struct graph {
  const clv_tensor *data, *offsets, *sources;
  int64_t rows, columns;
} graph;

static graph graph_of(const clv_tensor *data, const clv_tensor *offsets, const clv_tensor *sources) {
  return (graph){data, offsets, sources, offsets->dims[0] - 1, data->dims[1]};
}

static int64_t edge_of(const graph *g, int64_t row) {
  return clv__element_load_int(g->offsets, row);
}
static int64_t source_of(const graph *g, int64_t edge) {
  return clv__element_load_int(g->sources, edge);
}

static clv_status check_graph(const graph *g, clv_error *error) {
  if (g->rows >= 0 && edge_of(g, 0) != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "offsets begin with %lld, not 0", (long long)edge_of(g, 0));
  }
  for (int64_t v = 0; v < g->rows; ++v) {
    if (edge_of(g, v) <= edge_of(g, v + 1) && edge_of(g, v + 1) <= g->sources->dims[0]) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "offsets[%lld] is %lld: offsets must not decrease and must be at most %lld, the number of edges",
                          (long long)v + 1, (long long)edge_of(g, v + 1), (long long)g->sources->dims[0]);
  }
  if (g->rows <= 0 || g->columns == 0) return CLV_OK;
  for (int64_t e = 0; e < edge_of(g, g->rows); ++e) {
    if (source_of(g, e) >= 0 && source_of(g, e) < g->data->dims[0]) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "sources[%lld] is %lld: data has %lld rows", (long long)e,
                          (long long)source_of(g, e), (long long)g->data->dims[0]);
  }
  return CLV_OK;
}

/* The result of a row without edges is 0. If an element is a NaN, so is the maximum. */
static clv_status run_aggregate(const clv__kernel_call *call) {
  const graph g = graph_of(&call->inputs[0], &call->inputs[1], &call->inputs[2]);
  const bool mean = clv__attribute_is(call->attributes, "reduce", "mean", false);
  const bool max = clv__attribute_is(call->attributes, "reduce", "max", false);
  CLV__TRY(check_graph(&g, call->error));
  for (int64_t v = 0; v < g.rows; ++v) {
    const int64_t first = edge_of(&g, v), end = edge_of(&g, v + 1);
    for (int64_t c = 0; c < g.columns; ++c) {
      double total = 0;
      for (int64_t e = first; e < end; ++e) {
        const double value = clv__element_load(g.data, source_of(&g, e) * g.columns + c);
        if (!max)
          total += value;
        else if (e == first || value > total || value != value)
          total = value;
      }
      clv__element_store(&call->outputs[0], v * g.columns + c, mean && end > first ? total / (double)(end - first) : total);
    }
  }
  return CLV_OK;
}

/* The attention weights of row v's edges for one head: the softmax of leaky_relu(source score + target score). `shares` has room
 * for all edges. */
static void make_shares(const clv__kernel_call *call, const graph *g, int64_t v, int64_t head, int64_t heads, double *shares) {
  const clv_tensor *of_source = &call->inputs[1], *of_target = &call->inputs[2];
  const double slope = (double)clv__attribute_float(call->attributes, "negative_slope", 0.2f);
  const int64_t first = edge_of(g, v), end = edge_of(g, v + 1);
  double largest = -INFINITY, sum = 0;
  for (int64_t e = first; e < end; ++e) {
    const double score =
        clv__element_load(of_source, source_of(g, e) * heads + head) + clv__element_load(of_target, v * heads + head);
    shares[e] = score >= 0 ? score : score * slope;
    if (shares[e] > largest) largest = shares[e];
  }
  for (int64_t e = first; e < end; ++e) sum += shares[e] = exp(shares[e] - largest);
  for (int64_t e = first; e < end; ++e) shares[e] /= sum;
}

static clv_status run_attention(const clv__kernel_call *call) {
  const graph g = graph_of(&call->inputs[0], &call->inputs[3], &call->inputs[4]);
  const int64_t heads = call->inputs[1].dims[1], width = heads > 0 ? g.columns / heads : 0; /* columns per head */
  double *shares = call->scratch;
  CLV__TRY(check_graph(&g, call->error));
  for (int64_t v = 0; width > 0 && v < g.rows; ++v) {
    for (int64_t h = 0; h < heads; ++h) {
      make_shares(call, &g, v, h, heads, shares);
      for (int64_t c = h * width; c < (h + 1) * width; ++c) {
        double sum = 0;
        for (int64_t e = edge_of(&g, v); e < edge_of(&g, v + 1); ++e) {
          sum += shares[e] * clv__element_load(g.data, source_of(&g, e) * g.columns + c);
        }
        clv__element_store(&call->outputs[0], v * g.columns + c, sum);
      }
    }
  }
  return CLV_OK;
}

static size_t attention_scratch(const clv__kernel_call *call) {
  const int64_t edges = call->inputs[4].rank == 1 ? call->inputs[4].dims[0] : -1;
  return edges < 0 || edges > INT64_MAX / 16 ? SIZE_MAX : (size_t)edges * sizeof(double);
}

#define DTYPES (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))

const clv__kernel clv__kernels_sparse[] = {
    {"ai.cleave", "SparseAggregate", DTYPES, run_aggregate, NULL, NULL},
    {"ai.cleave", "SparseAttention", DTYPES, run_attention, attention_scratch, NULL},
    {.op = NULL},
};
