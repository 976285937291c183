/* SparseAggregate and SparseAttention: reductions over the rows that the edges of a graph in CSR format select
 * (kernels/sparse.cl). The number of edges of each row is known only on the device. So the launches depend only on the total
 * numbers of rows, columns and edges. */
#include <stdio.h>

#include "list.h"

enum {
  LANES = 32,       /* maximum lanes per row */
  EACH = 4,         /* maximum columns per work item */
  VECTOR = 16,      /* columns per vector; with fewer columns, only attention uses the vector kernels */
  GPU_HUB = 512,    /* on a GPU, rows with more edges than this are split into parts of this many edges */
  CPU_HUB = 4096,   /* the same limit on a CPU, where fewer work items run at once */
  ROWS_EACH = 16,   /* maximum number of rows per work item of the vector kernels */
  ITEMS_A_UNIT = 16 /* target number of work items per compute unit */
};

typedef struct layout {
  bool attends;
  int64_t rows, columns, data_rows, edges, heads, width; /* width: columns per head */
  uint32_t offsets, sources;                             /* indices of the node's inputs with the offsets and the sources */
  int32_t reduce;                                        /* REDUCE of sparse.cl */
  bool wide;
  int64_t lanes, each, tiles; /* a row's columns are split into `tiles` groups, each with `lanes` lanes of `each` columns */
  int64_t hub;
} layout;

/* Shares columns among lanes as evenly as possible. Each combination of lanes and columns per lane needs a separate program. To
 * limit the number of programs, both numbers are powers of two. If the vector kernels are used, both have their maximum, because
 * lanes are then needed only to join the parts of split rows. */
static void share_columns(const clv__opencl_lowering *l, layout *g) {
  const int64_t group = clv__opencl_group(l), most = group < LANES ? group : LANES;
  g->lanes = g->each = 1;
  while (g->lanes < most && (g->lanes < g->columns || g->wide)) g->lanes *= 2;
  g->tiles = clv__opencl_divide_up(g->columns, g->lanes * EACH);
  while (g->each < EACH && (g->lanes * g->each * g->tiles < g->columns || g->wide)) g->each *= 2;
}

static layout layout_of(const clv__opencl_lowering *l, const clv__opencl_node *node, bool attends) {
  const clv_tensor *data = &node->inputs[0];
  const uint32_t offsets = attends ? 3 : 1;
  layout g = {.attends = attends,
              .rows = node->outputs[0].dims[0],
              .columns = data->dims[1],
              .data_rows = data->dims[0],
              .edges = node->inputs[offsets + 1].dims[0],
              .heads = attends ? node->inputs[1].dims[1] : 1,
              .offsets = offsets,
              .sources = offsets + 1};
  const bool is_cpu = clv__opencl_lowering_traits(l)->is_cpu;
  g.width = g.columns / g.heads;
  g.reduce = clv__attribute_is(node->attributes, "reduce", "mean", false)  ? 1
             : clv__attribute_is(node->attributes, "reduce", "max", false) ? 2
                                                                           : 0;
  g.wide = is_cpu && (attends || g.columns >= VECTOR); /* for few columns, vectors pay only for attention's exponentials */
  g.hub = is_cpu ? CPU_HUB : GPU_HUB;
  share_columns(l, &g);
  return g;
}

static void begin(clv__opencl_lowering *l, const char *kernel, const clv__opencl_node *node, const layout *g) {
  clv__opencl_launch(l, "sparse", kernel);
  clv__opencl_define_dtype(l, "T", node->inputs[0].dtype);
  clv__opencl_define_dtype(l, "I", node->inputs[g->sources].dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_define(l, "LANES", "%d", (int)g->lanes);
  clv__opencl_define(l, "EACH", "%d", (int)g->each);
  clv__opencl_define(l, "HUB", "%d", (int)g->hub);
  if (g->attends)
    clv__opencl_define(l, "ATTENTION", "1");
  else
    clv__opencl_define(l, "REDUCE", "%d", (int)g->reduce);
  if (g->wide) clv__opencl_define(l, "VECTORS", "1");
  if (g->wide && g->width < VECTOR) clv__opencl_define(l, "NARROW", "1");
  if (g->wide && g->columns < VECTOR) clv__opencl_define(l, "FEW", "1");
}

/* Passes the arguments that the macro INPUTS of sparse.cl declares. */
static void pass_inputs(clv__opencl_lowering *l, const clv__opencl_node *node, const layout *g) {
  for (uint32_t i = 0; i <= g->sources; ++i) clv__opencl_pass_input(l, i);
  clv__opencl_pass_index(l, g->rows);
  clv__opencl_pass_index(l, g->columns);
  clv__opencl_pass_index(l, g->data_rows);
  clv__opencl_pass_index(l, g->edges);
  if (!g->attends) return;
  clv__opencl_pass_index(l, g->heads);
  clv__opencl_pass_index(l, g->width);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "negative_slope", 0.2f));
}

/* Enqueues `g->lanes` work items for each of `count` rows, slots or chunks (see sparse.cl), per tile of columns. */
static clv_status enqueue_lanes(clv__opencl_lowering *l, const layout *g, int64_t count) {
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 2, (int64_t[]){clv__opencl_divide_up(count, group / g->lanes) * group, g->tiles},
                             (int64_t[]){group, 1});
}

/* Describes the error that the check found (sparse.cl), with the same text as the kernel for host memory. */
static void explain(const clv__opencl_fault *fault, char text[160]) {
  const long long at = fault->at, value = fault->value, limit = fault->limit;
  if (fault->kind == 0) snprintf(text, 160, "offsets begin with %lld, not 0", value);
  if (fault->kind == 1)
    snprintf(text, 160, "offsets[%lld] is %lld: offsets must not decrease and must be at most %lld, the number of edges", at,
             value, limit);
  if (fault->kind == 2) snprintf(text, 160, "sources[%lld] is %lld: data has %lld rows", at, value, limit);
}

static clv_status launch_check(clv__opencl_lowering *l, const clv__opencl_node *node, const layout *g) {
  const clv__opencl_traits *traits = clv__opencl_lowering_traits(l);
  const int64_t most = g->rows > g->edges ? g->rows : g->edges, group = traits->is_cpu ? 1 : clv__opencl_group(l);
  int64_t items = ITEMS_A_UNIT * (int64_t)traits->compute_units * group;
  if (items > most) items = clv__opencl_divide_up(most, group) * group;
  begin(l, "check", node, g);
  clv__opencl_pass_fault(l, explain);
  clv__opencl_pass_input(l, g->offsets);
  clv__opencl_pass_input(l, g->sources);
  clv__opencl_pass_index(l, g->rows);
  clv__opencl_pass_index(l, g->data_rows);
  clv__opencl_pass_index(l, g->edges);
  clv__opencl_pass_index(l, traits->is_cpu ? clv__opencl_divide_up(most, items) : 0);
  return clv__opencl_enqueue(l, 1, &items, &group);
}

static clv_status launch_rows(clv__opencl_lowering *l, const clv__opencl_node *node, const layout *g) {
  begin(l, g->wide ? "wide_rows" : "rows", node, g);
  clv__opencl_pass_output(l, 0);
  pass_inputs(l, node, g);
  if (!g->wide) {
    clv__opencl_pass_posts(l);
    return enqueue_lanes(l, g, g->rows);
  }
  int64_t each = g->rows / (ITEMS_A_UNIT * (int64_t)clv__opencl_lowering_traits(l)->compute_units);
  each = each < 1 ? 1 : each > ROWS_EACH ? ROWS_EACH : each;
  clv__opencl_pass_index(l, each);
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){clv__opencl_divide_up(g->rows, each)}, (int64_t[]){1});
}

/* Adds the launches for rows with more than `g->hub` edges. They are needed only if the graph has more edges than that. */
static clv_status launch_hubs(clv__opencl_lowering *l, const clv__opencl_node *node, const layout *g, clv_error *error) {
  const int64_t chunks = clv__opencl_divide_up(g->edges, g->hub), pitch = g->columns + (g->attends ? 2 * g->heads : 0);
  int64_t size_bytes;
  if (__builtin_mul_overflow(2 * chunks * (int64_t)sizeof(float), pitch, &size_bytes)) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY,
                          "rows with many edges need too much memory: %lld partial results of %lld numbers each",
                          (long long)(2 * chunks), (long long)pitch);
  }
  const uint32_t partial = clv__opencl_scratch(l, (uint64_t)size_bytes);
  begin(l, g->wide ? "wide_parts" : "parts", node, g);
  clv__opencl_pass_scratch(l, partial);
  pass_inputs(l, node, g);
  clv__opencl_pass_index(l, 2 * chunks);
  CLV__TRY(g->wide ? clv__opencl_enqueue(l, 1, (int64_t[]){2 * chunks}, (int64_t[]){1}) : enqueue_lanes(l, g, 2 * chunks));
  begin(l, "hubs", node, g);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_scratch(l, partial);
  pass_inputs(l, node, g);
  clv__opencl_pass_index(l, chunks);
  clv__opencl_pass_posts(l);
  return enqueue_lanes(l, g, chunks);
}

static clv_status lower(clv__opencl_lowering *l, const clv__opencl_node *node, bool attends, clv_error *error) {
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  const layout g = layout_of(l, node, attends);
  CLV__TRY(launch_check(l, node, &g));
  CLV__TRY(launch_rows(l, node, &g));
  return g.edges > g.hub ? launch_hubs(l, node, &g, error) : CLV_OK;
}

static clv_status lower_aggregate(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  return lower(l, node, false, error);
}

static clv_status lower_attention(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  return lower(l, node, true, error);
}

/* ---- Accepted nodes ---- */

#define SPARSE_DTYPES (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))

static bool accepts_graph(const clv__opencl_node *node, uint32_t offsets, char reason[160]) {
  return clv__opencl_accepts_dtype(node, offsets, CLV__DTYPE_BIT(CLV_I64), reason) &&
         clv__opencl_accepts_dtype(node, offsets + 1, CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64), reason);
}

static bool accepts_aggregate(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return accepts_graph(node, 1, reason);
}

static bool accepts_attention(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, CLV__DTYPE_BIT(node->inputs[0].dtype), reason) &&
         clv__opencl_accepts_dtype(node, 2, CLV__DTYPE_BIT(node->inputs[0].dtype), reason) && accepts_graph(node, 3, reason);
}

const clv__opencl_operator clv__opencl_family_sparse[] = {
    {"ai.cleave", "SparseAggregate", SPARSE_DTYPES, true, accepts_aggregate, lower_aggregate},
    {"ai.cleave", "SparseAttention", SPARSE_DTYPES, true, accepts_attention, lower_attention},
    {NULL, NULL, 0, false, NULL, NULL},
};
