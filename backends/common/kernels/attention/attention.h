/* Attention over rows anywhere in memory. The operator reads its call into this structure (attention.c). The CPU backend fills it
 * from attention matched in graphs. The structure states where the rows of queries, keys and values are, and which keys each
 * query may attend to. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H

#include "operators/run.h"

/* Rows of `size` elements for each batch, head and position. The first `past_length` positions are in `past`. */
typedef struct clv__attention_rows {
  const clv_tensor *tensor, *past;
  int64_t size, heads, past_length;
  int64_t first;                           /* offset of the first row in `tensor` */
  int64_t batch_step, head_step, row_step; /* of `tensor` */
} clv__attention_rows;

typedef enum clv__attention_mask_kind {
  CLV__ATTENTION_ADDS,    /* numbers to add; where the mask is -inf, the score becomes -inf whatever it was */
  CLV__ATTENTION_KEEPS,   /* bool: the score becomes `fill` where it is false */
  CLV__ATTENTION_REPLACES /* bool: the score becomes `fill` where it is true */
} clv__attention_mask_kind;

/* A mask over [batch, head, query, key]. A step is 0 if the mask is broadcast along that axis. */
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
  const clv_tensor *scores;                        /* NULL: not requested */
  clv__attention_rows output;
  int64_t mask_keys;             /* keys from this one on are masked */
  const int64_t *valid;          /* number of valid keys per batch; NULL: all */
  int64_t batches, heads, group; /* heads of K and V; heads of Q per head of K and V */
  int64_t queries, total;
  int64_t left, right; /* window; INT64_MAX / 4: unbounded */
  double scale, cap;
  int mode;           /* what `scores` outputs */
  clv_dtype rounding; /* dtype the softmax rounds to, if coarser than the computing type; NONE: no rounding */
  bool is_wide;       /* compute in f64, which is also the dtype of queries, keys, values and output */
  bool empty_is_nan;  /* result for a query whose scores are all -inf: NaN, as in Softmax, else 0 */
} clv__attention;

/* Scratch that clv__attention_run() needs. Depends on shapes alone. SIZE_MAX: more than any memory holds. */
size_t clv__attention_scratch_bytes(const clv__attention *attention);
/* Fills the output and `scores`. All tensors must have data. */
void clv__attention_run(const clv__attention *attention, void *scratch);

/* The offset of a row, in elements of *tensor. */
static inline int64_t clv__attention_row(const clv__attention_rows *rows, int64_t batch, int64_t head, int64_t at,
                                         const clv_tensor **tensor) {
  if (at < rows->past_length) {
    *tensor = rows->past;
    return ((batch * rows->heads + head) * rows->past_length + at) * rows->size;
  }
  *tensor = rows->tensor;
  return rows->first + batch * rows->batch_step + head * rows->head_step + (at - rows->past_length) * rows->row_step;
}

/* A query may attend only to keys [*first, *end). Both are 0 if there are none. */
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
