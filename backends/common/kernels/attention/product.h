/* The two matrix products of attention for a panel of adjacent queries: scores = K Q, and sums += V^T scores. Each lane of a
 * vector belongs to a different query, so the softmax between the products needs no sums across the lanes of a vector. Keys and
 * values are read in place. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_PRODUCT_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_ATTENTION_PRODUCT_H

#include "cleave/types.h"

#define CLV__ATTENTION_LANES 16 /* number of queries of the narrow panel */

/* All arrays are floats, or all are doubles. `queries` [depth, columns], `scores` [keys, columns] and `sums` [width, columns]
 * are aligned to 64 bytes. `columns` is the number of queries. The steps are the distances from key to key and from value to
 * value, in elements. */
typedef struct clv__attention_product {
  int64_t columns;
  void (*scores)(int64_t depth, const void *queries, int64_t key_count, const void *keys, int64_t key_step, void *scores);
  void (*sums)(int64_t key_count, const void *scores, int64_t width, const void *values, int64_t value_step, void *sums);
} clv__attention_product;

/* Returns the products for panels of CLV__ATTENTION_LANES queries, or of twice as many if `wide` is set and the CPU has enough
 * registers. */
clv__attention_product clv__attention_product_choose(bool is_double, bool wide);

#endif
