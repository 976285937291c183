/* Template of the second way through attention (see attention_body.h): blocks of rows meet blocks of keys in matrix products; the
 * largest score of a row so far is the exponent's origin, and what was summed up before shrinks when it grows (Dao and others
 * 2022; Milakov, Gimelshein 2018). Scratch does not grow with the number of keys. */

typedef struct NAME(tiles) {
  const clv__attention *a;
  clv__gemm_tile tile;
  int64_t batch, head, row, count; /* the rows of this task */
  int64_t width;                   /* columns of V, rounded up */
  REAL *queries, *keys, *values, *scores, *shares, *sums, *most, *total, *line;
  int64_t *first, *end; /* by row: the keys that it may look at */
} NAME(tiles);

/* Where the parts of a slice lie; returns its bytes. `t` may be NULL. */
static size_t NAME(tiles_layout)(const clv__attention *a, int64_t task_rows, char *slice, NAME(tiles) * t) {
  const int64_t size = a->query.size, width = (a->value.size + 31) / 32 * 32;
  const int64_t longest = size > a->value.size ? size : a->value.size;
  const size_t real = sizeof(REAL), index = sizeof(int64_t);
  const size_t rows = (size_t)task_rows, block = BLOCK_ROWS * KEYS;
  if (size > INT64_MAX / 65536 || a->value.size > INT64_MAX / 65536) return SIZE_MAX;
  const size_t bytes[] = {rows * (size_t)size * real,
                          KEYS * (size_t)size * real,
                          KEYS * (size_t)width * real,
                          block * real,
                          block * real,
                          rows * (size_t)width * real,
                          rows * real,
                          rows * real,
                          (size_t)longest * real,
                          rows * index,
                          rows * index};
  size_t at[sizeof bytes / sizeof *bytes], next = 0;
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; ++i) {
    at[i] = next;
    next += clv__align_up(bytes[i], 64);
  }
  if (t == NULL) return next;
  REAL **parts[] = {&t->queries, &t->keys, &t->values, &t->scores, &t->shares, &t->sums, &t->most, &t->total, &t->line};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) *parts[i] = (REAL *)(slice + at[i]);
  t->first = (int64_t *)(slice + at[9]);
  t->end = (int64_t *)(slice + at[10]);
  t->width = width;
  return next;
}

/* Rows into panels of `lanes` rows each, `depth` runs of them; rows behind `count` are 0. */
static void NAME(pack)(const REAL *row, int64_t at, int64_t lanes, int64_t depth, REAL *panels) {
  REAL *to = panels + at / lanes * lanes * depth + at % lanes;
  for (int64_t i = 0; i < depth; ++i) to[i * lanes] = row != NULL ? row[i] : 0;
}

static void NAME(pack_queries)(const NAME(tiles) * t, int64_t task_rows) {
  const clv__attention *a = t->a;
  for (int64_t r = 0; r < task_rows; ++r) {
    if (r < t->count) NAME(load_queries)(a, t->batch, t->head, t->row + r, 1, t->line);
    NAME(pack)(r < t->count ? t->line : NULL, r, t->tile.rows, a->query.size, t->queries);
  }
}

static void NAME(pack_keys)(const NAME(tiles) * t, int64_t first, int64_t count) {
  const clv__attention *a = t->a;
  const int64_t lanes = t->tile.columns;
  for (int64_t j = 0; j < (count + lanes - 1) / lanes * lanes; ++j) {
    const REAL *row = j < count ? NAME(row)(&a->key, t->batch, t->head, first + j, t->line) : NULL;
    NAME(pack)(row, j, lanes, a->key.size, t->keys);
  }
  for (int64_t j = 0; j < count; ++j) { /* values lie the other way round: runs of columns, one a key */
    const REAL *row = NAME(row)(&a->value, t->batch, t->head, first + j, t->line);
    for (int64_t c = 0; c < t->width; c += lanes) {
      REAL *to = t->values + c * count + j * lanes;
      for (int64_t i = 0; i < lanes; ++i) to[i] = c + i < a->value.size ? row[c + i] : 0;
    }
  }
}

/* Scores of one row with keys [first, first + count) to what they add to its sums. */
static void NAME(absorb)(const NAME(tiles) * t, int64_t r, int64_t first, int64_t count, REAL *scores) {
  const clv__attention *a = t->a;
  const int64_t row = t->row + r, low = t->first[r] > first ? t->first[r] - first : 0;
  int64_t high = t->end[r] - first < count ? t->end[r] - first : count;
  if (high < low) high = low;
  if (low < count && high > low) {
    NAME(cap)(a, scores + low, high - low);
    NAME(mask)(a, t->batch, t->head * a->group + row / a->queries, row % a->queries, first + low, high - low, scores + low);
  }
  const REAL before = t->most[r], here = high > low ? NAME(largest)(scores + low, high - low) : -(REAL)INFINITY;
  if (here == -(REAL)INFINITY) {
    for (int64_t j = 0; j < count; ++j) scores[j] = 0;
    return;
  }
  const REAL most = here > before || isnan(here) ? here : before;
  const REAL shrink = before == -(REAL)INFINITY ? 0 : before == most ? 1 : (REAL)exp((double)(before - most));
  for (int64_t j = 0; j < low; ++j) scores[j] = 0;
  for (int64_t j = high; j < count; ++j) scores[j] = 0;
  t->total[r] = t->total[r] * shrink + (REAL)NAME(exponentials)(scores + low, high - low, most);
  t->most[r] = most;
  REAL *sum = t->sums + r * t->width;
  for (int64_t i = 0; shrink != 1 && i < t->width; ++i) sum[i] *= shrink;
}

/* Rows [row, row + count) of the task, at most BLOCK_ROWS, with the first `key_count` of the `packed` keys from `first` on. */
static void NAME(meet)(const NAME(tiles) * t, int64_t row, int64_t count, int64_t first, int64_t key_count, int64_t packed) {
  const clv__attention *a = t->a;
  const int64_t tall = t->tile.rows, wide = t->tile.columns, padded = (count + tall - 1) / tall * tall;
  for (int64_t i = 0; i < padded * KEYS; ++i) t->scores[i] = 0;
  for (int64_t j = 0; j < key_count; j += wide) {
    for (int64_t i = 0; i < count; i += tall) {
      t->tile.run(a->query.size, t->queries + (row + i) * a->query.size, t->keys + j * a->key.size, t->scores + i * KEYS + j,
                  KEYS);
    }
  }
  for (int64_t i = 0; i < count; ++i) NAME(absorb)(t, row + i, first, key_count, t->scores + i * KEYS);
  for (int64_t i = 0; i < padded; ++i) NAME(pack)(t->scores + i * KEYS, i, tall, key_count, t->shares);
  for (int64_t c = 0; c < t->width; c += wide) {
    for (int64_t i = 0; i < count; i += tall) {
      t->tile.run(key_count, t->shares + i * key_count, t->values + c * packed, t->sums + (row + i) * t->width + c, t->width);
    }
  }
}

static void NAME(begin)(NAME(tiles) * t, int64_t task_rows, int64_t *low, int64_t *high) {
  *low = t->a->total, *high = 0;
  NAME(pack_queries)(t, task_rows);
  for (int64_t i = 0; i < task_rows * t->width; ++i) t->sums[i] = 0;
  for (int64_t r = 0; r < task_rows; ++r) {
    t->most[r] = -(REAL)INFINITY, t->total[r] = 0;
    if (r >= t->count) continue;
    clv__attention_range(t->a, t->batch, (t->row + r) % t->a->queries, &t->first[r], &t->end[r]);
    if (t->first[r] < *low && t->end[r] > t->first[r]) *low = t->first[r];
    if (t->end[r] > *high) *high = t->end[r];
  }
}

/* How many of the `count` keys from `first` on there are up to the last that one of these rows looks at. */
static int64_t NAME(reach)(const NAME(tiles) * t, int64_t row, int64_t rows, int64_t first, int64_t count) {
  int64_t end = first;
  for (int64_t r = row; r < row + rows; ++r) {
    if (t->first[r] < first + count && t->end[r] > end) end = t->end[r];
  }
  return end - first < count ? end - first : count;
}

/* Rows [row, row + count) of one head of K and V, at most `task_rows`, a multiple of every tile's rows. */
static void NAME(run_tiles)(const clv__attention *a, int64_t batch, int64_t head, int64_t row, int64_t count, int64_t task_rows,
                            char *slice) {
  NAME(tiles) t = {.a = a, .tile = clv__gemm_tile_choose(sizeof(REAL) == 8), .batch = batch, .head = head};
  int64_t low, high;
  t.row = row, t.count = count;
  NAME(tiles_layout)(a, task_rows, slice, &t);
  NAME(begin)(&t, task_rows, &low, &high);
  for (int64_t first = low; first < high; first += KEYS) {
    const int64_t keys = high - first < KEYS ? high - first : KEYS;
    NAME(pack_keys)(&t, first, keys);
    for (int64_t r = 0; r < count; r += BLOCK_ROWS) {
      const int64_t rows = count - r < BLOCK_ROWS ? count - r : BLOCK_ROWS;
      const int64_t met = NAME(reach)(&t, r, rows, first, keys);
      if (met > 0) NAME(meet)(&t, r, rows, first, met, keys);
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    REAL *sum = t.sums + r * t.width;
    const REAL factor = t.total[r] == 0 ? 0 : 1 / t.total[r];
    for (int64_t i = 0; i < a->value.size; ++i) sum[i] *= factor;
    NAME(store_output)(a, batch, head, row + r, sum);
  }
}
