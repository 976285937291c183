/* Template of the second method of attention (see body.h). Matrix products (product.h) combine panels of adjacent queries with
 * blocks of keys. Exponentials are computed relative to the largest score of the query so far. When the largest score grows,
 * the earlier sums are scaled down (Dao and others 2022; Milakov, Gimelshein 2018). The scratch size does not depend on the
 * number of keys. */

typedef struct NAME(tiles) {
  const clv__attention *a;
  int64_t batch, head, row, count; /* the query rows of this task */
  clv__attention_product narrow, wide;
  REAL *queries, *keys, *values, *scores, *sums, *most, *total, *line;
  int64_t *first, *end; /* per row: the range of keys that it may attend to */
} NAME(tiles);

/* A panel: query rows [row, row + product.columns) of the task. They attend only to keys in [first, end). */
typedef struct NAME(panel) {
  clv__attention_product product;
  int64_t row, first, end;
  REAL *queries, *sums; /* queries: [size, columns]; sums: [width, columns] */
} NAME(panel);

/* Divides a thread's slice of the scratch into the arrays of `t`, unless `t` is NULL. Returns the size of the slice in bytes. */
static size_t NAME(tiles_layout)(const clv__attention *a, int64_t task_rows, char *slice, NAME(tiles) * t) {
  const int64_t size = a->query.size, width = a->value.size, longest = size > width ? size : width;
  const size_t real = sizeof(REAL), index = sizeof(int64_t), rows = (size_t)task_rows;
  if (size > INT64_MAX / 65536 || width > INT64_MAX / 65536) return SIZE_MAX;
  const size_t bytes[] = {rows * (size_t)size * real,
                          KEYS * (size_t)size * real,
                          KEYS * (size_t)width * real,
                          (size_t)KEYS * 2 * LANES * real,
                          rows * (size_t)width * real,
                          rows * real,
                          rows * real,
                          (size_t)longest * LANES * real,
                          rows * index,
                          rows * index};
  size_t at[sizeof bytes / sizeof *bytes], next = 0;
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; ++i) {
    at[i] = next;
    next += clv__align_up(bytes[i], 64);
  }
  if (t == NULL) return next;
  REAL **parts[] = {&t->queries, &t->keys, &t->values, &t->scores, &t->sums, &t->most, &t->total, &t->line};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) *parts[i] = (REAL *)(slice + at[i]);
  t->first = (int64_t *)(slice + at[8]);
  t->end = (int64_t *)(slice + at[9]);
  return next;
}

static NAME(panel) NAME(panel_at)(const NAME(tiles) * t, int64_t row) {
  NAME(panel) p = {.product = t->count - row > LANES ? t->wide : t->narrow, .row = row, .first = t->first[row], .end = 0};
  p.queries = t->queries + row * t->a->query.size;
  p.sums = t->sums + row * t->a->value.size;
  p.first = t->a->total;
  for (int64_t l = row; l < row + p.product.columns; ++l) {
    if (t->end[l] == t->first[l]) continue;
    p.first = t->first[l] < p.first ? t->first[l] : p.first;
    p.end = t->end[l] > p.end ? t->end[l] : p.end;
  }
  return p;
}

/* Loads the queries into panels. Lanes after the last row are queries of zeros, with the key range of the last row. */
static void NAME(begin)(const NAME(tiles) * t) {
  const clv__attention *a = t->a;
  const int64_t size = a->query.size;
  for (int64_t row = 0; row < t->count;) {
    const int64_t columns = t->count - row > LANES ? t->wide.columns : t->narrow.columns;
    for (int64_t part = 0; part < columns; part += LANES) {
      const int64_t left = t->count - row - part, real = left < 0 ? 0 : left < LANES ? left : LANES;
      if (real > 0) NAME(load_queries)(a, t->batch, t->head, t->row + row + part, real, t->line);
      for (int64_t i = real * size; i < LANES * size; ++i) t->line[i] = 0;
      NAME(clv__turn)(t->line, size, t->queries + row * size + part, columns, LANES, size);
    }
    for (int64_t l = row; l < row + columns; ++l) {
      const int64_t like = l < t->count ? l : t->count - 1;
      clv__attention_range(a, t->batch, (t->row + like) % a->queries, &t->first[l], &t->end[l]);
      t->most[l] = -(REAL)INFINITY, t->total[l] = 0;
    }
    row += columns;
  }
}

/* Returns keys or values [first, first + count) as rows of REALs that are *step elements apart: in the tensor if its layout and
 * dtype allow that, otherwise copied to `room`. */
static const REAL *NAME(block_of)(const NAME(tiles) * t, const clv__attention_rows *rows, int64_t first, int64_t count,
                                  REAL *room, int64_t *step) {
  const clv_tensor *tensor, *last;
  const int64_t from = clv__attention_row(rows, t->batch, t->head, first, &tensor);
  (void)clv__attention_row(rows, t->batch, t->head, first + count - 1, &last);
  *step = rows->size;
  if (tensor == last && tensor->dtype == REAL_DTYPE && (tensor == rows->past || rows->row_step == rows->size)) {
    return (const REAL *)tensor->data + from;
  }
  for (int64_t j = 0; j < count; ++j) {
    const REAL *row = NAME(row)(rows, t->batch, t->head, first + j, room + j * rows->size);
    if (row != room + j * rows->size) memcpy(room + j * rows->size, row, (size_t)rows->size * sizeof *row);
  }
  return room;
}

/* Applies a mask to the scores of one vector of queries and `count` keys. From key to key, `values` advances by LANES elements
 * and `scores` by `columns`. */
static void NAME(mask_vector)(const clv__attention_mask *mask, const REAL *values, int64_t count, REAL *scores, int64_t columns) {
  const NAME(lanes) fill = (REAL)mask->fill - (NAME(lanes)){0};
  const bool adds = mask->kind == CLV__ATTENTION_ADDS;
  for (int64_t j = 0; j < count; ++j) {
    const NAME(lanes) value = *(const NAME(lanes) *)(values + j * LANES);
    NAME(lanes) kept = *(const NAME(lanes) *)(scores + j * columns), set = fill;
    NAME(lane_bits) sets = value == (REAL)0;
    if (adds) {
      sets = value == -(REAL)INFINITY;
      set = value;
      kept += value;
    }
    *(NAME(lanes) *)(scores + j * columns) = (NAME(lanes))((sets & (NAME(lane_bits))set) | (~sets & (NAME(lane_bits))kept));
  }
}

/* Applies mask values [count, LANES] to the scores of LANES queries and `count` keys. Scores have `columns` elements per key. */
static void NAME(mask_lanes)(const clv__attention_mask *mask, const REAL *values, int64_t count, REAL *scores, int64_t columns) {
  for (size_t l = 0; l < LANES; l += sizeof(NAME(lanes)) / sizeof(REAL)) {
    NAME(mask_vector)(mask, values + l, count, scores + l, columns);
  }
}

/* Applies a mask that is the same for all queries, with one value per key. Skips values that leave scores unchanged, because most
 * values of such a mask do. */
static void NAME(mask_keys)(const clv__attention_mask *mask, const REAL *values, int64_t count, REAL *scores, int64_t columns) {
  const bool adds = mask->kind == CLV__ATTENTION_ADDS;
  for (int64_t j = 0; j < count; ++j) {
    if (values[j] == (adds ? 0 : 1)) continue;
    const bool sets = !adds || values[j] == -(REAL)INFINITY;
    const REAL value = adds ? values[j] : (REAL)mask->fill;
    REAL *line = scores + j * columns;
    for (int64_t l = 0; l < columns; ++l) line[l] = sets ? value : line[l] + value;
  }
}

/* Applies the masks to scores [count, columns] of keys [first, first + count). */
static void NAME(mask_panel)(const NAME(tiles) * t, const NAME(panel) * p, int64_t first, int64_t count, REAL *scores) {
  const clv__attention *a = t->a;
  const int64_t columns = p->product.columns;
  REAL lines[LANES * MASK_LINE], turned[MASK_LINE * LANES];
  for (int m = 0; m < CLV__ATTENTION_MASKS && a->masks[m].tensor != NULL; ++m) {
    const clv__attention_mask *mask = &a->masks[m];
    const bool same = mask->steps[1] == 0 && mask->steps[2] == 0; /* the mask is the same for all query rows */
    for (int64_t from = 0; from < count; from += MASK_LINE) {
      const int64_t n = count - from < MASK_LINE ? count - from : MASK_LINE;
      if (same) {
        NAME(mask_line)(mask, t->batch, 0, 0, first + from, n, lines);
        NAME(mask_keys)(mask, lines, n, scores + from * columns, columns);
      }
      for (int64_t part = 0; part < columns && !same; part += LANES) {
        for (int64_t l = 0; l < LANES; ++l) {
          const int64_t at = p->row + part + l, row = t->row + (at < t->count ? at : t->count - 1);
          NAME(mask_line)
          (mask, t->batch, t->head * a->group + row / a->queries, row % a->queries, first + from, n, lines + l * MASK_LINE);
        }
        NAME(clv__turn)(lines, MASK_LINE, turned, LANES, LANES, n);
        NAME(mask_lanes)(mask, turned, n, scores + from * columns + part, columns);
      }
    }
  }
}

/* Sets scores to -inf where a query may not attend to a key of [first, first + count). */
static void NAME(limit_panel)(const NAME(tiles) * t, const NAME(panel) * p, int64_t first, int64_t count, REAL *scores) {
  const int64_t columns = p->product.columns;
  for (int64_t l = 0; l < columns; ++l) {
    const int64_t low = t->first[p->row + l] - first, high = t->end[p->row + l] - first;
    for (int64_t j = 0; j < low && j < count; ++j) scores[j * columns + l] = -(REAL)INFINITY;
    for (int64_t j = high < 0 ? 0 : high; j < count; ++j) scores[j * columns + l] = -(REAL)INFINITY;
  }
}

/* Replaces the scores of one vector of queries by e to (score - the query's largest score so far), and updates `most` and
 * `total`. Returns whether the earlier sums must be multiplied by `shrink`. */
static bool NAME(absorb_vector)(REAL *scores, int64_t count, int64_t columns, REAL *most, REAL *total, REAL *shrink) {
  const NAME(lanes) before = *(const NAME(lanes) *)most;
  NAME(lanes) top = before, sum = {0}, less;
  for (int64_t j = 0; j < count; ++j) { /* a NaN never becomes the largest, but makes the sum NaN */
    const NAME(lanes) line = *(const NAME(lanes) *)(scores + j * columns);
    const NAME(lane_bits) above = line > top;
    top = (NAME(lanes))((above & (NAME(lane_bits))line) | (~above & (NAME(lane_bits))top));
  }
  const NAME(lane_bits) some = top > -(REAL)INFINITY;
  const NAME(lanes) origin = (NAME(lanes))(some & (NAME(lane_bits))top); /* 0 if every score so far is -inf */
  for (int64_t j = 0; j < count; ++j) {
    NAME(lanes) line = *(const NAME(lanes) *)(scores + j * columns) - origin;
    NAME(exponential_lanes)(&line);
    *(NAME(lanes) *)(scores + j * columns) = line;
    sum += line;
  }
  less = before - origin;
  NAME(exponential_lanes)(&less);
  *(NAME(lanes) *)total = *(const NAME(lanes) *)total * less + sum;
  *(NAME(lanes) *)most = top;
  *(NAME(lanes) *)shrink = less;
  bool shrinks = false;
  for (size_t l = 0; l < sizeof less / sizeof(REAL); ++l) shrinks |= shrink[l] != 1;
  return shrinks;
}

/* Like absorb_vector(), for LANES queries. */
static bool NAME(absorb)(REAL *scores, int64_t count, int64_t columns, REAL *most, REAL *total, REAL *shrink) {
  bool shrinks = false;
  for (size_t l = 0; l < LANES; l += sizeof(NAME(lanes)) / sizeof(REAL)) {
    shrinks |= NAME(absorb_vector)(scores + l, count, columns, most + l, total + l, shrink + l);
  }
  return shrinks;
}

/* Multiplies numbers [count, columns] of LANES queries by one factor per query. */
static void NAME(scale)(REAL *numbers, int64_t count, int64_t columns, const REAL *factors) {
  for (int64_t j = 0; j < count; ++j) {
    for (int l = 0; l < LANES; ++l) numbers[j * columns + l] *= factors[l];
  }
}

/* Adds the contribution of keys [first, first + count), stored at `keys` and `values`, to the sums of a panel. */
static void NAME(meet)(const NAME(tiles) * t, const NAME(panel) * p, int64_t first, int64_t count, const REAL *keys,
                       int64_t key_step, const REAL *values, int64_t value_step) {
  const clv__attention *a = t->a;
  const int64_t columns = p->product.columns;
  REAL *scores = t->scores, shrink[LANES];
  bool ragged = false;
  p->product.scores(a->query.size, p->queries, count, keys, key_step, scores);
  NAME(cap)(a, scores, count * columns);
  NAME(mask_panel)(t, p, first, count, scores);
  for (int64_t l = p->row; l < p->row + columns; ++l) ragged |= t->first[l] > first || t->end[l] < first + count;
  if (ragged) NAME(limit_panel)(t, p, first, count, scores);
  for (int64_t part = 0; part < columns; part += LANES) {
    const int64_t row = p->row + part;
    if (NAME(absorb)(scores + part, count, columns, t->most + row, t->total + row, shrink)) {
      NAME(scale)(p->sums + part, a->value.size, columns, shrink);
    }
  }
  p->product.sums(count, scores, a->value.size, values, value_step, p->sums);
}

static void NAME(finish_panel)(const NAME(tiles) * t, const NAME(panel) * p) {
  const clv__attention *a = t->a;
  const int64_t columns = p->product.columns, width = a->value.size;
  const REAL none = a->empty_is_nan ? (REAL)NAN : 0;
  for (int64_t part = 0; part < columns; part += LANES) {
    const int64_t row = p->row + part, left = t->count - row, count = left < LANES ? left : LANES;
    REAL factors[LANES];
    for (int l = 0; l < LANES; ++l) factors[l] = t->total[row + l] == 0 ? none : 1 / t->total[row + l];
    NAME(scale)(p->sums + part, width, columns, factors);
    NAME(clv__turn)(p->sums + part, columns, t->line, width, width, LANES);
    for (int64_t l = 0; l < count; ++l) NAME(store_output)(a, t->batch, t->head, t->row + row + l, t->line + l * width);
  }
}

/* Computes query rows [row, row + count) of the group of one head of K and V, numbered as in load_queries(). `count` is at most
 * `task_rows`. */
static void NAME(run_tiles)(const clv__attention *a, int64_t batch, int64_t head, int64_t row, int64_t count, int64_t task_rows,
                            char *slice) {
  const bool is_double = sizeof(REAL) == sizeof(double);
  NAME(tiles) t = {.a = a, .batch = batch, .head = head, .row = row, .count = count};
  t.narrow = clv__attention_product_choose(is_double, false);
  t.wide = clv__attention_product_choose(is_double, true);
  NAME(tiles_layout)(a, task_rows, slice, &t);
  NAME(begin)(&t);
  int64_t low = a->total, high = 0;
  NAME(panel) p;
  for (int64_t r = 0; r < count; r += p.product.columns) {
    p = NAME(panel_at)(&t, r);
    low = p.first < low ? p.first : low;
    high = p.end > high ? p.end : high;
    for (int64_t i = 0; i < a->value.size * p.product.columns; ++i) p.sums[i] = 0;
  }
  const int64_t blocks = high > low ? (high - low + KEYS - 1) / KEYS : 0,
                block = blocks > 0 ? (high - low + blocks - 1) / blocks : 0;
  for (int64_t first = low; first < high; first += block) {
    const int64_t end = high - first < block ? high : first + block;
    int64_t key_step, value_step;
    const REAL *keys = NAME(block_of)(&t, &a->key, first, end - first, t.keys, &key_step);
    const REAL *values = NAME(block_of)(&t, &a->value, first, end - first, t.values, &value_step);
    for (int64_t r = 0; r < count; r += p.product.columns) {
      p = NAME(panel_at)(&t, r);
      const int64_t from = p.first > first ? p.first : first, to = p.end < end ? p.end : end;
      if (to <= from) continue;
      NAME(meet)
      (&t, &p, from, to - from, keys + (from - first) * key_step, key_step, values + (from - first) * value_step, value_step);
    }
  }
  for (int64_t r = 0; r < count; r += p.product.columns) {
    p = NAME(panel_at)(&t, r);
    NAME(finish_panel)(&t, &p);
  }
}
