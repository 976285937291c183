/* The two matrix products of attention for a panel of queries that lie side by side, so that a vector holds the same number of
 * many queries: scores = K Q, and sums += V^T scores. Keys and values are read where they lie; the softmax between them runs
 * along the vectors' depth, without sums across them. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_PRODUCT_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_PRODUCT_H

#include "cleave/types.h"

#define CLV__ATTENTION_LANES 16 /* queries of the narrow panel */

/* All arrays of floats or doubles. `queries` [depth, columns], `scores` [keys, columns] and `sums` [width, columns] are aligned
 * to 64 bytes. */
typedef struct clv__attention_product {
  int64_t columns;
  void (*scores)(int64_t depth, const void *queries, int64_t key_count, const void *keys, int64_t key_step, void *scores);
  void (*sums)(int64_t key_count, const void *scores, int64_t width, const void *values, int64_t value_step, void *sums);
} clv__attention_product;

/* For panels of CLV__ATTENTION_LANES queries, or, where this CPU has registers for it, of twice as many when `wide`. */
clv__attention_product clv__attention_product_choose(bool is_double, bool wide);

#endif
