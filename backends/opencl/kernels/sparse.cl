/* Graphs in compressed rows. Row v of the result reduces the rows of x with the indices sources[offsets[v] .. offsets[v + 1]), by
 * sum, mean or maximum. With ATTENTION it is their sum weighted by the softmax of their scores. Rows are gathered and reduced in
 * one pass, with the columns in registers. Softmax also needs only one pass, because exponentials are computed relative to
 * the largest score so far (Milakov, Gimelshein 2018).
 *
 * A row with more than HUB edges is a hub, and its edges are split into parts.
 *   rows    LANES work items per row of up to HUB edges, each with EACH columns; writes 0 to the rows of hubs
 *   parts   reduces the parts of hubs, HUB edges per part, into `partial`
 *   hubs    joins a hub's parts in order, so that a result depends only on its row, not on the order of rows or of work items
 *   wide_rows, wide_parts   the same with vectors of columns, for CPUs (with VECTORS)
 *   check   reports offsets that do not ascend and sources outside the data (kinds 0 to 2), before they are used
 *
 * Only the offsets determine where a hub's parts begin. A chunk is the edges [HUB i, HUB (i + 1)). The parts of a hub begin HUB
 * edges apart, and a hub has more edges than a chunk. So at most two parts begin in a chunk: a later part of the hub that
 * contains the chunk's first edge, and the first part of the hub that contains the next chunk's first edge. The parts that begin
 * in chunk i use the slots 2i and 2i + 1 of `partial`. Their rows are found by bisection.
 *
 * The other kernels run even if the check finds errors. A source outside the data then counts as a row of zeros, and invalid
 * offsets never cause reads out of bounds. Defines: T, I (the dtype of sources), GROUP, LANES, EACH, HUB; REDUCE (0 sum, 1
 * mean, 2 maximum) or ATTENTION; VECTORS, NARROW, FEW. */
#ifdef ATTENTION
#define REDUCE 0
#define INPUTS                                                                                                           \
  GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(T) * from, GLOBAL const STORAGE(T) * to, GLOBAL const LONG *offsets, \
      GLOBAL const STORAGE(I) * sources, index_t rows, index_t columns, index_t data_rows, index_t edges, index_t heads, \
      index_t width, float slope
#define GRAPH \
  { x, from, to, offsets, sources, rows, columns, data_rows, edges, heads, width, slope }
#else
#define INPUTS                                                                                                               \
  GLOBAL const STORAGE(T) * x, GLOBAL const LONG *offsets, GLOBAL const STORAGE(I) * sources, index_t rows, index_t columns, \
      index_t data_rows, index_t edges
#define GRAPH \
  { x, offsets, sources, rows, columns, data_rows, edges }
#endif

typedef struct {
  GLOBAL const STORAGE(T) * x;
#ifdef ATTENTION
  GLOBAL const STORAGE(T) * from;
  GLOBAL const STORAGE(T) * to;
#endif
  GLOBAL const LONG *offsets;
  GLOBAL const STORAGE(I) * sources;
  index_t rows, columns, data_rows, edges;
#ifdef ATTENTION
  index_t heads, width; /* width: columns per head */
  float slope;
#endif
} graph_t;

/* The layout of a slot in `partial`: a sum per column, then each head's largest score, then each head's sum of weights. */
#ifdef ATTENTION
#define SLOT(slot) ((LONG)(slot) * (g.columns + 2 * g.heads))
#define LARGEST(slot, head) (SLOT(slot) + g.columns + (head))
#define WEIGHT(slot, head) (SLOT(slot) + g.columns + g.heads + (head))
#else
#define SLOT(slot) ((LONG)(slot)*g.columns)
#endif

#if REDUCE == 2
#define START (-INFINITY)
#define FOLD(total, value) ((value) > (total) || (value) != (value) ? (value) : (total))
#else
#define START 0.0f
#define FOLD(total, value) ((total) + (value))
#endif

/* ---- Rows and their edges ---- */

typedef struct {
  index_t begin, end;
} span_t;

FUNCTION span_t clv_span(const graph_t g, index_t row) {
  const LONG begin = g.offsets[row], end = g.offsets[row + 1];
  span_t span;
  span.begin = begin < 0 ? 0 : begin > g.edges ? g.edges : (index_t)begin;
  span.end = end < span.begin ? span.begin : end > g.edges ? g.edges : (index_t)end;
  return span;
}

/* The row of x that an edge refers to, or -1 if there is no such row. */
FUNCTION index_t clv_source(const graph_t g, index_t edge) {
  const LONG source = g.sources[edge];
  return (ULONG)source < (ULONG)g.data_rows ? (index_t)source : -1;
}

/* The row that contains an edge; `rows` if none does. */
FUNCTION index_t clv_row_of(const graph_t g, index_t edge) {
  index_t low = 0, high = g.rows;
  while (low < high) {
    const index_t middle = low + (high - low) / 2;
    if (g.offsets[middle + 1] <= edge)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

typedef struct {
  index_t row;
  span_t span; /* empty: no part begins in the slot */
} part_t;

FUNCTION part_t clv_part(const graph_t g, index_t slot) {
  const index_t first = slot / 2 * HUB, next = first + HUB;
  const int is_later = slot % 2 == 0; /* the slot is for a later part, not for a hub's first part */
  part_t part;
  part.span.begin = part.span.end = 0;
  part.row = clv_row_of(g, is_later ? first : next);
  if (part.row == g.rows) return part;
  const span_t row = clv_span(g, part.row);
  if (row.end - row.begin <= HUB) return part;
  if (is_later ? row.begin >= first : row.begin < first || row.begin >= next) return part;
  const index_t begin = is_later ? row.begin + (first - row.begin + HUB - 1) / HUB * HUB : row.begin;
  if (begin >= row.end || begin >= next) return part;
  part.span.begin = begin;
  part.span.end = row.end - begin < HUB ? row.end : begin + HUB;
  return part;
}

/* On CPUs, a work item checks `each` consecutive elements. Elsewhere, `each` is 0, and adjacent work items check adjacent
 * elements. */
KERNEL(check)
(GLOBAL fault_t *faults, int fault, GLOBAL const LONG *offsets, GLOBAL const STORAGE(I) * sources, index_t rows,
 index_t data_rows, index_t edges, index_t each) {
  const index_t item = GLOBAL_ID(0), first = each > 0 ? item * each : item, step = each > 0 ? 1 : GLOBAL_SIZE(0);
  const LONG last = offsets[rows];
  const index_t named = last < 0 ? 0 : last < edges ? (index_t)last : edges; /* sources from this index on belong to no row */
  const index_t row_end = each > 0 && first + each < rows ? first + each : rows;
  const index_t edge_end = each > 0 && first + each < named ? first + each : named;
  int is_bad = 0; /* plain loops, which compilers can vectorize; the invalid element is searched for only if there is one */
  if (item == 0 && offsets[0] != 0) clv_say(&faults[fault], 0, 0, offsets[0], 0);
  for (index_t v = first; v < row_end; v += step) is_bad |= offsets[v] > offsets[v + 1] || offsets[v + 1] > edges;
  for (index_t v = first; is_bad && v < row_end; v += step) {
    if (offsets[v] > offsets[v + 1] || offsets[v + 1] > edges) clv_say(&faults[fault], 1, v + 1, offsets[v + 1], edges);
  }
  is_bad = 0;
  for (index_t e = first; e < edge_end; e += step) is_bad |= (ULONG)(LONG)sources[e] >= (ULONG)data_rows;
  for (index_t e = first; is_bad && e < edge_end; e += step) {
    const LONG source = sources[e];
    if ((ULONG)source >= (ULONG)data_rows) clv_say(&faults[fault], 2, e, source, data_rows);
  }
}

/* ---- For GPUs: adjacent columns in adjacent lanes of a work group ---- */

#define AHEAD 4 /* edges whose rows are loaded before the first is used */

typedef struct {
  float total[EACH];
#ifdef ATTENTION
  float largest[EACH], weight[EACH];
#endif
} state_t;

FUNCTION void clv_begin(state_t *s) {
  for (int i = 0; i < EACH; ++i) {
    s->total[i] = START;
#ifdef ATTENTION
    s->largest[i] = -INFINITY;
    s->weight[i] = 0;
#endif
  }
}

/* Adds columns column, column + LANES, … of `count` edges from `edge` on; `count` is a constant of at most AHEAD. */
INLINED void clv_take(state_t *s, const graph_t g, index_t row, index_t edge, const int count, index_t column) {
  index_t source[AHEAD];
  float value[AHEAD][EACH];
  for (int a = 0; a < count; ++a) source[a] = clv_source(g, edge + a);
  for (int a = 0; a < count; ++a) {
    for (int i = 0; i < EACH; ++i) {
      const index_t c = column + i * LANES;
      value[a][i] = source[a] >= 0 && c < g.columns ? LOAD(T, g.x, source[a] * g.columns + c) : 0;
    }
  }
#ifdef ATTENTION
  for (int i = 0; i < EACH; ++i) {
    const index_t c = column + i * LANES, head = c < g.columns ? c / g.width : 0;
    const float target = LOAD(T, g.to, row * g.heads + head), before = s->largest[i];
    float score[AHEAD], most = before;
    for (int a = 0; a < count; ++a) {
      score[a] = (source[a] >= 0 ? LOAD(T, g.from, source[a] * g.heads + head) : 0) + target;
      score[a] = score[a] >= 0 ? score[a] : score[a] * g.slope;
      most = score[a] > most ? score[a] : most;
    }
    const float shrink = before == most ? 1 : exp(before - most);
    s->largest[i] = most;
    s->weight[i] *= shrink;
    s->total[i] *= shrink;
    for (int a = 0; a < count; ++a) {
      const float share = exp(score[a] - most);
      s->weight[i] += share;
      s->total[i] += share * value[a][i];
    }
  }
#else
  (void)row;
  for (int a = 0; a < count; ++a) {
    for (int i = 0; i < EACH; ++i) s->total[i] = FOLD(s->total[i], value[a][i]);
  }
#endif
}

INLINED void clv_take_all(state_t *s, const graph_t g, index_t row, span_t span, index_t column) {
  index_t edge = span.begin;
  clv_begin(s);
  for (; edge + AHEAD <= span.end; edge += AHEAD) clv_take(s, g, row, edge, AHEAD, column);
  for (; edge < span.end; ++edge) clv_take(s, g, row, edge, 1, column);
}

/* The result of a column in a row with `count` edges. */
FUNCTION float clv_finish(const state_t *s, int i, index_t count) {
  if (count == 0) return 0;
#ifdef ATTENTION
  return s->total[i] * (1 / s->weight[i]);
#elif REDUCE == 1
  return s->total[i] * (1 / (float)count);
#else
  return s->total[i];
#endif
}

#define FIRST_ITEM (GROUP_ID(0) * (GROUP / LANES) + LOCAL_ID(0) / LANES)
#define FIRST_COLUMN (GROUP_ID(1) * (LANES * EACH) + LOCAL_ID(0) % LANES)

KERNEL_SIZED(rows, GROUP, 1, 1)(GLOBAL STORAGE(T) * y, INPUTS POST_PARAMETERS) {
  const graph_t g = GRAPH;
  const index_t row = FIRST_ITEM, column = FIRST_COLUMN;
  state_t s;
  if (row >= rows) return;
  span_t span = clv_span(g, row);
  if (span.end - span.begin > HUB) span.end = span.begin;
  clv_take_all(&s, g, row, span, column);
  for (int i = 0; i < EACH; ++i) {
    const index_t c = column + i * LANES, at = row * columns + c;
    const float value = clv_finish(&s, i, span.end - span.begin);
    if (c < columns) STORE(T, y, at, POST(value, at));
  }
}

KERNEL_SIZED(parts, GROUP, 1, 1)(GLOBAL float *partial, INPUTS, index_t slots) {
  const graph_t g = GRAPH;
  const index_t slot = FIRST_ITEM, column = FIRST_COLUMN;
  state_t s;
  if (slot >= slots) return;
  const part_t part = clv_part(g, slot);
  if (part.span.begin == part.span.end) return;
  clv_take_all(&s, g, part.row, part.span, column);
  for (int i = 0; i < EACH; ++i) {
    const index_t c = column + i * LANES;
    if (c >= columns) continue;
    partial[SLOT(slot) + c] = s.total[i];
#ifdef ATTENTION
    if (c % width != 0) continue;
    partial[LARGEST(slot, c / width)] = s.largest[i];
    partial[WEIGHT(slot, c / width)] = s.weight[i];
#endif
  }
}

/* Merges a slot's values of column c into element i of `s`, which combines the earlier parts of the same hub. */
FUNCTION void clv_join(state_t *s, int i, const graph_t g, GLOBAL const float *partial, index_t slot, index_t c) {
#ifdef ATTENTION
  const index_t head = c / g.width;
  const float before = s->largest[i], own = partial[LARGEST(slot, head)], most = own > before ? own : before;
  const float shrink = before == most ? 1 : exp(before - most), share = own == most ? 1 : exp(own - most);
  s->largest[i] = most;
  s->weight[i] = s->weight[i] * shrink + partial[WEIGHT(slot, head)] * share;
  s->total[i] = s->total[i] * shrink + partial[SLOT(slot) + c] * share;
#else
  s->total[i] = FOLD(s->total[i], partial[SLOT(slot) + c]);
#endif
}

/* LANES work items per chunk of edges. They join the parts of the hub that begins in the chunk, if there is one. */
KERNEL_SIZED(hubs, GROUP, 1, 1)
(GLOBAL STORAGE(T) * y, GLOBAL const float *partial, INPUTS, index_t chunks POST_PARAMETERS) {
  const graph_t g = GRAPH;
  const index_t chunk = FIRST_ITEM, column = FIRST_COLUMN;
  state_t s;
  if (chunk >= chunks) return;
  const part_t part = clv_part(g, 2 * chunk + 1);
  if (part.span.begin == part.span.end) return;
  const span_t span = clv_span(g, part.row);
  clv_begin(&s);
  for (index_t edge = span.begin; edge < span.end; edge += HUB) {
    const index_t slot = edge / HUB * 2 + (edge == span.begin);
    for (int i = 0; i < EACH; ++i) {
      const index_t c = column + i * LANES;
      if (c < columns) clv_join(&s, i, g, partial, slot, c);
    }
  }
  for (int i = 0; i < EACH; ++i) {
    const index_t c = column + i * LANES, at = part.row * columns + c;
    const float value = clv_finish(&s, i, span.end - span.begin);
    if (c < columns) STORE(T, y, at, POST(value, at));
  }
}

#ifdef VECTORS /* for CPUs; FEW: rows of fewer than WIDTH columns, only for attention */

/* ---- For CPUs: columns as vectors ---- */

#define WIDTH 16
#define EDGES 16 /* scores exponentiated at a time */
#define EARLY 8  /* a row is prefetched this many edges in advance */
#ifdef NARROW    /* heads have fewer columns than a vector, so a vector holds columns of several heads */
#define BLOCKS 1 /* vectors held at a time */
#define HEADS WIDTH
#else
#define BLOCKS 8
#define HEADS 1
#endif

#if IS_f32(T)
#define LOAD_WIDE(p, i) vload16(0, (p) + (i))
#elif IS_f16(T)
#define LOAD_WIDE(p, i) vload_half16(0, (p) + (i))
#else
#define LOAD_WIDE(p, i) as_float16(convert_uint16(vload16(0, (p) + (i))) << 16)
#endif

/* Loads the vector of columns from `at` on, of row `row` of x. STORED is the number of valid columns. */
#ifdef FEW
#define STORED columns
INLINED float16 clv_load_wide(const graph_t g, index_t row, index_t at) {
  float all[WIDTH];
#pragma unroll
  for (int j = 0; j < WIDTH; ++j) all[j] = j < g.columns ? LOAD(T, g.x, row * g.columns + at + j) : 0;
  return vload16(0, all);
}
#else
#define STORED WIDTH
INLINED float16 clv_load_wide(const graph_t g, index_t row, index_t at) {
  return LOAD_WIDE(g.x, row * g.columns + at);
}
#endif

#if REDUCE == 2
#define FOLD_WIDE(total, value) select(total, value, (value) > (total) || (value) != (value))
#else
#define FOLD_WIDE(total, value) ((total) + (value))
#endif

typedef struct {
  float16 total[BLOCKS];
#ifdef ATTENTION
  float largest[HEADS], weight[HEADS];
  int of[WIDTH]; /* with NARROW: index of each column's head */
#endif
} wide_t;

/* If the edge is below `limit`, prefetches `count` vectors of the row that it refers to, from column `at` on. */
INLINED void clv_fetch(const graph_t g, index_t edge, index_t limit, const int count, index_t at) {
#ifdef __has_builtin
#if __has_builtin(__builtin_prefetch)
  const index_t source = edge < limit ? clv_source(g, edge) : -1;
  if (source < 0) return;
  GLOBAL const STORAGE(T) *first = g.x + source * g.columns + at;
#pragma unroll
  for (int b = 0; b < count; ++b) __builtin_prefetch((const void *)(size_t)(first + b * WIDTH));
#endif
#endif
}

#ifndef ATTENTION
/* Reduces columns [at, at + WIDTH * count) of a row; `count` is a constant. Edges below `limit` are prefetched. */
INLINED void clv_take_wide(wide_t *s, const graph_t g, index_t row, span_t span, index_t limit, const int count, index_t at) {
#pragma unroll
  for (int b = 0; b < count; ++b) s->total[b] = START;
  for (index_t e = span.begin; e < span.end; ++e) {
    const index_t source = clv_source(g, e);
    clv_fetch(g, e + EARLY, limit, count, at);
    if (source >= 0) {
#pragma unroll
      for (int b = 0; b < count; ++b) {
        const float16 value = clv_load_wide(g, source, at + b * WIDTH);
        s->total[b] = FOLD_WIDE(s->total[b], value);
      }
    } else {
#pragma unroll
      for (int b = 0; b < count; ++b) s->total[b] = FOLD_WIDE(s->total[b], (float16)(0));
    }
  }
}
#else
/* Returns the factor by which a vector is multiplied: one number or, with NARROW, a vector with the factor of each column's head.
 * The factors of two heads are `stride` apart. */
#ifdef NARROW
INLINED float16 clv_spread(const wide_t *s, const float *factors, int stride) {
  float all[WIDTH];
  for (int j = 0; j < WIDTH; ++j) all[j] = factors[s->of[j] * stride];
  return vload16(0, all);
}
#else
#define clv_spread(s, factors, stride) (*(factors))
#endif

/* Begins the sums of columns [at, at + WIDTH * count). Returns the number of heads in them. */
INLINED int clv_begin_wide(wide_t *s, const graph_t g, const int count, index_t at) {
#pragma unroll
  for (int b = 0; b < count; ++b) s->total[b] = 0;
  for (int h = 0; h < HEADS; ++h) {
    s->largest[h] = -INFINITY;
    s->weight[h] = 0;
  }
#ifdef NARROW
  for (int j = 0; j < WIDTH; ++j) {
    const index_t c = at + j < g.columns ? at + j : g.columns - 1;
    s->of[j] = (int)(c / g.width - at / g.width);
  }
  return s->of[WIDTH - 1] + 1;
#else
  return 1;
#endif
}

/* Computes the weights of up to EDGES edges for one head, relative to its largest score so far, in `shares`. The head is number
 * `head` of the graph and number `h` of `s`. Returns the factor by which the sums so far must be multiplied. */
FUNCTION float clv_share_out(wide_t *s, const graph_t g, int h, index_t head, index_t row, const index_t *source, int count,
                             float *shares) {
  const float target = LOAD(T, g.to, row * g.heads + head), before = s->largest[h];
  float most = before, sum = 0;
  for (int e = 0; e < EDGES; ++e) {
    float score = target;
    if (source[e] >= 0) score += LOAD(T, g.from, source[e] * g.heads + head);
    score = score >= 0 ? score : score * g.slope;
    shares[e] = e < count ? score : -INFINITY;
    most = shares[e] > most ? shares[e] : most;
  }
  vstore16(exp(vload16(0, shares) - most), 0, shares);
  for (int e = 0; e < count; ++e) sum += shares[e];
  const float shrink = before == most ? 1 : exp(before - most);
  s->largest[h] = most;
  s->weight[h] = s->weight[h] * shrink + sum;
  return shrink;
}

INLINED void clv_take_wide(wide_t *s, const graph_t g, index_t row, span_t span, index_t limit, const int count, index_t at) {
  const int heads = clv_begin_wide(s, g, count, at);
  for (index_t first = span.begin; first < span.end; first += EDGES) {
    const int edges = span.end - first < EDGES ? (int)(span.end - first) : EDGES;
    index_t source[EDGES];
    float shares[HEADS * EDGES], shrink[HEADS];
    for (int e = 0; e < EDGES; ++e) source[e] = e < edges ? clv_source(g, first + e) : -1;
    for (int h = 0; h < heads; ++h) shrink[h] = clv_share_out(s, g, h, at / g.width + h, row, source, edges, shares + h * EDGES);
#pragma unroll
    for (int b = 0; b < count; ++b) s->total[b] *= clv_spread(s, shrink, 1);
    for (int e = 0; e < edges; ++e) {
      clv_fetch(g, first + e + EARLY, limit, count, at);
      if (source[e] < 0) continue;
      for (int b = 0; b < count; ++b)
        s->total[b] += clv_spread(s, shares + e, EDGES) * clv_load_wide(g, source[e], at + b * WIDTH);
    }
  }
}
#endif

INLINED float16 clv_finish_wide(const wide_t *s, int b, index_t edges) {
  if (edges == 0) return (float16)(0);
#ifdef ATTENTION
  return s->total[b] * (1 / clv_spread(s, s->weight, 1));
#elif REDUCE == 1
  return s->total[b] * (1 / (float)edges);
#else
  return s->total[b];
#endif
}

/* Executes DO(count) for all columns of a row. `at` is the first of WIDTH * count columns, which lie in one head (with
 * NARROW, in any heads). The last vector of a head (with NARROW, of a row) ends where the head ends, so it may overlap the
 * vector before it. */
#if defined(ATTENTION) && !defined(NARROW)
#define HEAD_WIDTH width
#else
#define HEAD_WIDTH columns
#endif
#ifdef FEW
#define FOR_COLUMNS(DO)   \
  {                       \
    const index_t at = 0; \
    DO(1)                 \
  }
#else
#define FOR_COLUMNS(DO)                                                       \
  for (index_t last = HEAD_WIDTH, at = 0; at < columns; last += HEAD_WIDTH) { \
    while (at < last) {                                                       \
      if (last - at >= BLOCKS * WIDTH) {                                      \
        DO(BLOCKS)                                                            \
        at += BLOCKS * WIDTH;                                                 \
      } else if (BLOCKS > 1 && last - at >= BLOCKS / 2 * WIDTH) {             \
        DO(BLOCKS / 2)                                                        \
        at += BLOCKS / 2 * WIDTH;                                             \
      } else {                                                                \
        if (last - at < WIDTH) at = last - WIDTH;                             \
        DO(1)                                                                 \
        at += WIDTH;                                                          \
      }                                                                       \
    }                                                                         \
  }
#endif

/* A work item computes `each` rows. */
KERNEL(wide_rows)(GLOBAL STORAGE(T) * y, INPUTS, index_t each POST_PARAMETERS) {
  const graph_t g = GRAPH;
  const index_t first = GLOBAL_ID(0) * each, end = first + each < rows ? first + each : rows;
  wide_t s;
  if (first >= rows) return;
  const index_t limit = clv_span(g, end - 1).end;
  for (index_t row = first; row < end; ++row) {
    span_t span = clv_span(g, row);
    if (span.end - span.begin > HUB) span.end = span.begin;
#define STORE_ROW(count)                                                              \
  clv_take_wide(&s, g, row, span, limit, count, at);                                  \
  for (int b = 0; b < count; ++b) {                                                   \
    const index_t place = row * columns + at + b * WIDTH;                             \
    float all[WIDTH];                                                                 \
    vstore16(clv_finish_wide(&s, b, span.end - span.begin), 0, all);                  \
    for (int j = 0; j < STORED; ++j) STORE(T, y, place + j, POST(all[j], place + j)); \
  }
    FOR_COLUMNS(STORE_ROW)
  }
}

KERNEL(wide_parts)(GLOBAL float *partial, INPUTS, index_t slots) {
  const graph_t g = GRAPH;
  const index_t slot = GLOBAL_ID(0);
  wide_t s;
  if (slot >= slots) return;
  const part_t part = clv_part(g, slot);
  if (part.span.begin == part.span.end) return;
#define STORE_SUMS(count)                                                               \
  clv_take_wide(&s, g, part.row, part.span, part.span.end, count, at);                  \
  for (int b = 0; b < count; ++b) {                                                     \
    float all[WIDTH];                                                                   \
    vstore16(s.total[b], 0, all);                                                       \
    for (int j = 0; j < STORED; ++j) partial[SLOT(slot) + at + b * WIDTH + j] = all[j]; \
  }
#ifdef ATTENTION
#define STORE_PART(count)                                             \
  STORE_SUMS(count)                                                   \
  for (int h = 0; h <= (at + STORED - 1) / width - at / width; ++h) { \
    partial[LARGEST(slot, at / width + h)] = s.largest[h];            \
    partial[WEIGHT(slot, at / width + h)] = s.weight[h];              \
  }
#else
#define STORE_PART(count) STORE_SUMS(count)
#endif
  FOR_COLUMNS(STORE_PART)
}
#endif
