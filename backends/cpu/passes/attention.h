/* Attention as one step: how it was matched in the graph (attention.c), and how it runs (lower/attention.c). */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_ATTENTION_H
#define CLEAVE_BACKENDS_CPU_PASSES_ATTENTION_H

#include "backends/common/kernels/attention/attention.h"
#include "variant.h"

/* The inputs of a node of kind ATTENTION. Its one output is the merged result, in any order of axes. */
enum {
  CLV__CPU_ATTENTION_QUERY,
  CLV__CPU_ATTENTION_KEY,
  CLV__CPU_ATTENTION_VALUE,
  CLV__CPU_ATTENTION_MASK,
  CLV__CPU_ATTENTION_INPUTS = CLV__CPU_ATTENTION_MASK + CLV__ATTENTION_MASKS
};

/* The sizes, strides and masks of the call. Its tensors are filled in when the step runs. */
struct clv__cpu_attention {
  clv__attention call;
};

#endif
