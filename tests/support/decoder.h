/* Two small GPT-like decoders with seeded random weights, which store keys and values differently. Both have the i64 inputs
 * "ids" [1,Q] and "positions" [Q], where Q is the number of tokens of a run, and "logits" [1,Q,97] as their first output. */
#ifndef CLEAVE_TESTS_DECODER_H
#define CLEAVE_TESTS_DECODER_H

#include "graph/graph.h"

enum {
  DECODER_LAYERS = 2,
  DECODER_WIDTH = 64,
  DECODER_HEADS = 4,
  DECODER_WORDS = 97,
  DECODER_LONGEST = 96, /* the most tokens of a sequence */
  DECODER_CACHES = 2 * DECODER_LAYERS
};

/* The caches have their maximum length: inputs "k0", "v0", "k1", … and outputs "new_k0", … of shape [96,64], one row per token.
 * A run writes its rows at `positions`; each token sees only the rows up to its own position. Only Q is dynamic. */
clv_graph *test_decoder_fixed(const clv_allocator *allocator);

/* The caches grow: inputs "k0", … of shape [1,4,T,16], where T is the number of cached tokens, and outputs "new_k0", … of shape
 * [1,4,T+Q,16]. */
clv_graph *test_decoder_growing(const clv_allocator *allocator);

#endif
