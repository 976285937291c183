/* Template of attention computed in the type REAL. run.c includes it with these macros defined: NAME(x) names the functions,
 * REAL_DTYPE is the dtype of REAL, and TO_REAL and FROM_REAL convert rows to and from REAL. There are two methods. The first,
 * in this file, processes a few query rows at a time with all their scores. It is used if there are fewer than MANY query rows,
 * as in decoding, or if the scores are an output or are rounded. The second, in tiles.h, processes blocks of queries and keys
 * as matrix products. */

/* Returns the address of a row of REALs: in the tensor if the tensor has the dtype of REAL, otherwise `line`, to which the row is
 * converted. */
static const REAL *NAME(row)(const clv__attention_rows *rows, int64_t batch, int64_t head, int64_t at, REAL *line) {
  const clv_tensor *tensor;
  const int64_t first = clv__attention_row(rows, batch, head, at, &tensor);
  if (tensor->dtype == REAL_DTYPE) return (const REAL *)tensor->data + first;
  TO_REAL(tensor->dtype, tensor->data, first, rows->size, line);
  return line;
}

/* Loads query rows [first, first + count) into `rows`, multiplied by the scale. The heads of Q that share one head of K and V
 * form a group, and their rows are numbered together: row r is query r % queries of the group's head r / queries. */
static void NAME(load_queries)(const clv__attention *a, int64_t batch, int64_t head, int64_t first, int64_t count, REAL *rows) {
  const int64_t size = a->query.size;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t of_group = (first + r) / a->queries, query = (first + r) % a->queries;
    const REAL *row = NAME(row)(&a->query, batch, head * a->group + of_group, query, rows + r * size);
    for (int64_t i = 0; i < size; ++i) rows[r * size + i] = row[i] * (REAL)a->scale;
  }
}

static void NAME(store_output)(const clv__attention *a, int64_t batch, int64_t head, int64_t row, const REAL *values) {
  const clv_tensor *tensor;
  if (a->output.tensor == NULL) return; /* only the scores are requested */
  const int64_t of_group = row / a->queries, query = row % a->queries;
  const int64_t first = clv__attention_row(&a->output, batch, head * a->group + of_group, query, &tensor);
  FROM_REAL(tensor->dtype, tensor->data, first, a->output.size, values);
}

static void NAME(cap)(const clv__attention *a, REAL *scores, int64_t count) {
  if (a->cap <= 0) return;
  const REAL cap = (REAL)a->cap;
  for (int64_t j = 0; j < count; ++j) scores[j] = cap * (REAL)tanh(scores[j] / cap);
}

/* Reads the mask of one query and keys [from, from + n) into `line`: the numbers to add or, for a mask of bools, 1 where the
 * score is kept and 0 where it is replaced. */
static void NAME(mask_line)(const clv__attention_mask *mask, int64_t batch, int64_t head, int64_t query, int64_t from, int64_t n,
                            REAL *line) {
  const int64_t *steps = mask->steps;
  const int64_t base = batch * steps[0] + head * steps[1] + query * steps[2] + from * steps[3];
  if (mask->tensor->dtype == CLV_BOOL) {
    const bool *bits = (const bool *)mask->tensor->data + base, kept = mask->kind == CLV__ATTENTION_KEEPS;
    for (int64_t j = 0; j < n; ++j) line[j] = bits[j * steps[3]] == kept;
    return;
  }
  TO_REAL(mask->tensor->dtype, mask->tensor->data, base, steps[3] == 0 ? 1 : n, line);
  for (int64_t j = 1; steps[3] == 0 && j < n; ++j) line[j] = line[0];
}

/* Applies `n` mask values, as read by mask_line(), to `n` scores. Where the mask is -inf, the score is overwritten, because
 * adding would keep a NaN. */
static void NAME(mask_some)(const clv__attention_mask *mask, const REAL *values, int64_t n, REAL *scores) {
  const REAL fill = (REAL)mask->fill;
  if (mask->kind == CLV__ATTENTION_ADDS) {
    for (int64_t j = 0; j < n; ++j) {
      const REAL sum = scores[j] + values[j];
      scores[j] = values[j] == -(REAL)INFINITY ? values[j] : sum;
    }
  } else {
    for (int64_t j = 0; j < n; ++j) scores[j] = values[j] == 0 ? fill : scores[j];
  }
}

/* Applies all masks to the scores of one query and keys [first, first + count). */
static void NAME(mask)(const clv__attention *a, int64_t batch, int64_t head, int64_t query, int64_t first, int64_t count,
                       REAL *scores) {
  REAL values[MASK_CHUNK];
  for (int m = 0; m < CLV__ATTENTION_MASKS && a->masks[m].tensor != NULL; ++m) {
    for (int64_t from = 0; from < count; from += MASK_CHUNK) {
      const int64_t n = count - from < MASK_CHUNK ? count - from : MASK_CHUNK;
      NAME(mask_line)(&a->masks[m], batch, head, query, first + from, n, values);
      NAME(mask_some)(&a->masks[m], values, n, scores + from);
    }
  }
}

/* The maximum of the scores that are not NaN. If all of these are -inf, returns NaN if any score is NaN, otherwise -inf. LANES
 * separate maxima let the loop vectorise. */
static REAL NAME(largest)(const REAL *scores, int64_t count) {
  REAL lanes[LANES], most = -(REAL)INFINITY;
  bool all = true;
  int64_t j = 0;
  for (int l = 0; l < LANES; ++l) lanes[l] = most;
  for (; j + LANES <= count; j += LANES) {
    for (int l = 0; l < LANES; ++l) lanes[l] = scores[j + l] > lanes[l] ? scores[j + l] : lanes[l];
  }
  for (; j < count; ++j) most = scores[j] > most ? scores[j] : most;
  for (int l = 0; l < LANES; ++l) most = lanes[l] > most ? lanes[l] : most;
  if (most != -(REAL)INFINITY) return most;
  for (j = 0; j < count; ++j) all = all && scores[j] == most;
  return all ? most : (REAL)NAN;
}

static REAL NAME(round)(clv_dtype dtype, REAL value) {
  uint64_t bits = 0;
  FROM_REAL(dtype, &bits, 0, 1, &value);
  TO_REAL(dtype, &bits, 0, 1, &value);
  return value;
}

/* Turns scores into weights that sum to 1. If every score is -inf, all weights are 0, or NaN if `empty_is_nan`. */
static void NAME(softmax)(const clv__attention *a, REAL *scores, int64_t count) {
  const bool rounds = a->rounding != CLV_DTYPE_NONE;
  for (int64_t j = 0; rounds && j < count; ++j) scores[j] = NAME(round)(a->rounding, scores[j]);
  const REAL most = NAME(largest)(scores, count);
  if (most == -(REAL)INFINITY) {
    for (int64_t j = 0; j < count; ++j) scores[j] = a->empty_is_nan ? (REAL)NAN : 0;
    return;
  }
  const REAL factor = (REAL)(1 / NAME(exponentials)(scores, count, most));
  for (int64_t j = 0; j < count; ++j) scores[j] *= factor;
  for (int64_t j = 0; rounds && j < count; ++j) scores[j] = NAME(round)(a->rounding, scores[j]);
}

/* ---- A few rows with all their scores ---- */

/* scores[r * stride] = dot product of query row r and the key. LANES separate sums let the loop vectorise. */
static void NAME(products)(const REAL *queries, int64_t count, int64_t size, const REAL *key, REAL *scores, int64_t stride) {
  for (int64_t r = 0; r < count; ++r) {
    const REAL *query = queries + r * size;
    REAL lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) {
      for (int l = 0; l < LANES; ++l) lanes[l] += query[i + l] * key[i + l];
    }
    for (; i < size; ++i) sum += query[i] * key[i];
    for (int half = LANES / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    scores[r * stride] = sum + lanes[0];
  }
}

static void NAME(add_share)(REAL *restrict sum, const REAL *restrict row, REAL share, int64_t size) {
  for (int64_t i = 0; i < size; ++i) sum[i] += share * row[i];
}

static void NAME(show)(const clv__attention *a, int64_t batch, int64_t head, int64_t query, const REAL *scores) {
  const int64_t row = (batch * a->heads * a->group + head) * a->queries + query;
  FROM_REAL(a->scores->dtype, a->scores->data, row * a->total, a->total, scores);
}

/* Turns scores [first, end) of one row into weights. If the scores are an output, writes the stage of the scores that `mode`
 * selects: 0 the products, 1 after the cap, 2 after the masks, 3 the weights. Outside [first, end), this output has the scores
 * of the stage in stages 0 and 1, -inf in stage 2 and 0 in stage 3. */
static void NAME(finish_row)(const clv__attention *a, int64_t batch, int64_t head, int64_t query, int64_t first, int64_t end,
                             REAL *scores) {
  const int shown = a->scores != NULL ? a->mode : -1;
  const bool whole = shown == 1 || shown == 2;
  if (shown == 0) NAME(show)(a, batch, head, query, scores);
  if (whole)
    NAME(cap)(a, scores, a->total);
  else
    NAME(cap)(a, scores + first, end - first);
  if (shown == 1) NAME(show)(a, batch, head, query, scores);
  NAME(mask)(a, batch, head, query, first, end - first, scores + first);
  if (shown == 2 || shown == 3) {
    const REAL outside = shown == 2 ? -(REAL)INFINITY : 0;
    for (int64_t j = 0; j < first; ++j) scores[j] = outside;
    for (int64_t j = end; j < a->total; ++j) scores[j] = outside;
  }
  if (shown == 2) NAME(show)(a, batch, head, query, scores);
  NAME(softmax)(a, scores + first, end - first);
  if (shown == 3) NAME(show)(a, batch, head, query, scores);
}

static size_t NAME(rows_scratch)(const clv__attention *a) {
  const int64_t longest = a->key.size > a->value.size ? a->key.size : a->value.size;
  size_t count = 0;
  const int64_t parts[] = {a->total, a->query.size, a->value.size, longest};
  for (int i = 0; i < 4; ++i) {
    if (parts[i] > INT64_MAX / 4096 || __builtin_add_overflow(count, (size_t)(parts[i] + 16) * FEW, &count)) return SIZE_MAX;
  }
  return count > SIZE_MAX / 64 / sizeof(REAL) ? SIZE_MAX : clv__align_up(count * sizeof(REAL), 64);
}

/* Computes query rows [row, row + count) of the group of one head of K and V, numbered as in load_queries(). `count` is at most
 * FEW. */
static void NAME(rows)(const clv__attention *a, int64_t batch, int64_t head, int64_t row, int64_t count, void *slice) {
  REAL *scores = slice, *queries = scores + FEW * a->total, *sums = queries + FEW * a->query.size;
  REAL *line = sums + FEW * a->value.size;
  int64_t first[FEW], end[FEW], low = a->total, high = 0;
  NAME(load_queries)(a, batch, head, row, count, queries);
  for (int64_t r = 0; r < count; ++r) {
    clv__attention_range(a, batch, (row + r) % a->queries, &first[r], &end[r]);
    if (first[r] < low && end[r] > first[r]) low = first[r];
    if (end[r] > high) high = end[r];
  }
  const bool whole = a->scores != NULL && a->mode < 3;
  for (int64_t j = whole ? 0 : low; j < (whole ? a->total : high); ++j) {
    NAME(products)(queries, count, a->key.size, NAME(row)(&a->key, batch, head, j, line), scores + j, a->total);
  }
  for (int64_t r = 0; r < count; ++r) {
    NAME(finish_row)
    (a, batch, head * a->group + (row + r) / a->queries, (row + r) % a->queries, first[r], end[r], scores + r * a->total);
  }
  for (int64_t i = 0; i < count * a->value.size; ++i) sums[i] = 0;
  for (int64_t j = low; j < high; ++j) {
    const REAL *value = NAME(row)(&a->value, batch, head, j, line);
    for (int64_t r = 0; r < count; ++r) {
      if (j >= first[r] && j < end[r]) NAME(add_share)(sums + r * a->value.size, value, scores[r * a->total + j], a->value.size);
    }
  }
  for (int64_t r = 0; r < count; ++r) NAME(store_output)(a, batch, head, row + r, sums + r * a->value.size);
}
