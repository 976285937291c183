/* Attention over rows that may lie anywhere: the operator reads its call into this (attention.c), and the CPU backend what it
 * finds of it in graphs. Which rows of which tensors meet, and which keys a query may look at. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_ATTENTION_H

#include "operators/run.h"

/* Rows of `size` elements for each batch, head and position; the first `past_length` positions lie in `past`. */
typedef struct clv__attention_rows {
  const clv_tensor *tensor, *past;
  int64_t size, heads, past_length;
  int64_t first;                           /* where the first row begins in `tensor` */
  int64_t batch_step, head_step, row_step; /* of `tensor` */
} clv__attention_rows;

typedef enum clv__attention_mask_kind {
  CLV__ATTENTION_ADDS,    /* numbers to be added; what is -inf is set */
  CLV__ATTENTION_KEEPS,   /* bool: `fill` where it is false */
  CLV__ATTENTION_REPLACES /* bool: `fill` where it is true */
} clv__attention_mask_kind;

/* Over [batch, head, query, key]; a step is 0 where the mask is broadcast. */
typedef struct clv__attention_mask {
  const clv_tensor *tensor; /* NULL: absent */
  clv__attention_mask_kind kind;
  double fill;
  int64_t steps[4];
} clv__attention_mask;

#define CLV__ATTENTION_MASKS 2

typedef struct clv__attention {
  clv__attention_rows query, key, value;
  clv__attention_mask masks[CLV__ATTENTION_MASKS]; /* one after the other */
  const clv_tensor *scores;                        /* NULL: not wanted */
  clv__attention_rows output;
  int64_t mask_keys;             /* what lies behind is masked */
  const int64_t *valid;          /* keys of each batch that hold tokens; NULL: all */
  int64_t batches, heads, group; /* heads of K and V; heads of Q to each of them */
  int64_t queries, total;
  int64_t left, right; /* of the window; INT64_MAX / 4: no bound */
  double scale, cap;
  int mode;           /* what `scores` shows */
  clv_dtype rounding; /* of the softmax, where it is coarser than what is computed in; NONE: not so */
  bool is_wide;       /* computed in f64, which queries, keys, values and output then are */
  bool empty_is_nan;  /* the result for a query whose scores are all -inf: NaN, as of Softmax, else 0 */
} clv__attention;

/* Scratch that clv__attention_run() needs: a function of shapes alone. SIZE_MAX: beyond any memory. */
size_t clv__attention_scratch_bytes(const clv__attention *attention);
/* Fills the output and `scores`. Tensors' data must be there. */
void clv__attention_run(const clv__attention *attention, void *scratch);

/* Where a row begins, in elements of *tensor. */
static inline int64_t clv__attention_row(const clv__attention_rows *rows, int64_t batch, int64_t head, int64_t at,
                                         const clv_tensor **tensor) {
  if (at < rows->past_length) {
    *tensor = rows->past;
    return ((batch * rows->heads + head) * rows->past_length + at) * rows->size;
  }
  *tensor = rows->tensor;
  return rows->first + batch * rows->batch_step + head * rows->head_step + (at - rows->past_length) * rows->row_step;
}

/* Keys [*first, *end) are all that a query may look at; 0 and 0 where there is none. */
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
