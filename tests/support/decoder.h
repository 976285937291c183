/* Two small GPT-like decoders with seeded random weights, which store keys and values differently. Both take
 * "ids" [1,Q] and "positions" [Q], i64, and give "logits" [1,Q,97] first. */
#ifndef CLEAVE_TESTS_DECODER_H
#define CLEAVE_TESTS_DECODER_H

#include "graph/graph.h"

enum {
  DECODER_LAYERS = 2,
  DECODER_WIDTH = 64,
  DECODER_HEADS = 4,
  DECODER_WORDS = 97,
  DECODER_LONGEST = 96, /* tokens */
  DECODER_CACHES = 2 * DECODER_LAYERS
};

/* Caches of the greatest length: inputs and outputs "k0", "v0", "k1", … ("new_k0", …) of [96,64], one row per token, written at
 * `positions`; later rows are masked. Only Q is open. */
clv_graph *test_decoder_fixed(const clv_allocator *allocator);

/* Caches that grow: inputs "k0", … of [1,4,T,16], outputs "new_k0", … of [1,4,T+Q,16]. */
clv_graph *test_decoder_growing(const clv_allocator *allocator);

#endif
