/* Attention over queries, keys and values with any strides. clv__attention describes where their rows are and which keys each
 * query may attend to. The kernel of the Attention operator fills a clv__attention from its call (attention.c). The CPU backend
 * fills one for each subgraph that computes attention. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H

#include "operators/run.h"

/* A row of `size` elements for each batch, head and position. The rows of the first `past_length` positions are in `past`, the
 * others in `tensor`. */
typedef struct clv__attention_rows {
  const clv_tensor *tensor, *past;
  int64_t size, heads, past_length;
  int64_t first;                           /* offset of the first row in `tensor`, in elements */
  int64_t batch_step, head_step, row_step; /* strides of `tensor`, in elements */
} clv__attention_rows;

typedef enum clv__attention_mask_kind {
  CLV__ATTENTION_ADDS,    /* numbers to add; where the mask is -inf, the score becomes -inf even if it was NaN */
  CLV__ATTENTION_KEEPS,   /* bool: the score becomes `fill` where the mask is false */
  CLV__ATTENTION_REPLACES /* bool: the score becomes `fill` where the mask is true */
} clv__attention_mask_kind;

/* A mask over [batch, head, query, key]. steps[i] is its stride along axis i, in elements; 0 if the mask is broadcast along
 * that axis. */
typedef struct clv__attention_mask {
  const clv_tensor *tensor; /* NULL: absent */
  clv__attention_mask_kind kind;
  double fill;
  int64_t steps[4];
} clv__attention_mask;

#define CLV__ATTENTION_MASKS 2

typedef struct clv__attention {
  clv__attention_rows query, key, value;
  clv__attention_mask masks[CLV__ATTENTION_MASKS]; /* applied in order */
  const clv_tensor *scores;                        /* output tensor for the scores; NULL: not requested */
  clv__attention_rows output;
  int64_t mask_keys;             /* keys from this index on are masked out */
  const int64_t *valid;          /* number of valid keys per batch; NULL: all */
  int64_t batches, heads, group; /* `heads`: of K and V; `group`: heads of Q per head of K and V */
  int64_t queries, total;
  int64_t left, right; /* window: how many keys before and after its own position a query attends to; INT64_MAX / 4: all */
  double scale, cap;
  int mode;           /* which stage of the scores `scores` receives (qk_matmul_output_mode) */
  clv_dtype rounding; /* dtype to which scores are rounded before and after the softmax; NONE: they are not rounded */
  bool is_wide;       /* compute in f64, which is also the dtype of queries, keys, values and output */
  bool empty_is_nan;  /* if all scores of a query are -inf, its result is NaN, as in Softmax; false: it is 0 */
} clv__attention;

/* Returns the bytes of scratch that clv__attention_run() needs; SIZE_MAX if the size overflows. The size depends only on
 * shapes. */
size_t clv__attention_scratch_bytes(const clv__attention *attention);
/* Computes the output and `scores`; either may be absent. All present tensors must have data. `stop` may be NULL. Once it is
 * set, the rest of the results is not computed. */
void clv__attention_run(const clv__attention *attention, void *scratch, const clv__stop *stop);

/* Sets *tensor to the tensor that contains the row of position `at`, and returns the offset of the row in that tensor, in
 * elements. */
static inline int64_t clv__attention_row(const clv__attention_rows *rows, int64_t batch, int64_t head, int64_t at,
                                         const clv_tensor **tensor) {
  if (at < rows->past_length) {
    *tensor = rows->past;
    return ((batch * rows->heads + head) * rows->past_length + at) * rows->size;
  }
  *tensor = rows->tensor;
  return rows->first + batch * rows->batch_step + head * rows->head_step + (at - rows->past_length) * rows->row_step;
}

/* Sets *first and *end so that the query may attend only to keys [*first, *end). Sets both to 0 if it may attend to none. */
static inline void clv__attention_range(const clv__attention *a, int64_t batch, int64_t query, int64_t *first, int64_t *end) {
  const int64_t past = a->key.past_length;
  const int64_t place = query + (a->valid != NULL ? a->valid[batch] - a->queries : past);
  int64_t low = place - a->left, high = place + a->right + 1;
  const int64_t most = a->valid != NULL && a->valid[batch] < a->mask_keys ? a->valid[batch] : a->mask_keys;
  if (low < 0) low = 0;
  if (high > most) high = most;
  if (high < low) low = high = 0;
  *first = low;
  *end = high;
}

#endif
