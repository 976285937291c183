/* Attention as one step: what was found in the graph (attention.c), and how it is run (lower/attention.c). */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_ATTENTION_H
#define CLEAVE_BACKENDS_CPU_PASSES_ATTENTION_H

#include "backends/common/kernels/attention/attention.h"
#include "plan.h"

/* What a node of kind ATTENTION reads. Its one output is the merged result, in whatever order of axes. */
enum {
  CLV__CPU_ATTENTION_QUERY,
  CLV__CPU_ATTENTION_KEY,
  CLV__CPU_ATTENTION_VALUE,
  CLV__CPU_ATTENTION_MASK,
  CLV__CPU_ATTENTION_INPUTS = CLV__CPU_ATTENTION_MASK + CLV__ATTENTION_MASKS
};

/* Sizes, places and masks; its tensors are put in when the step runs. */
struct clv__cpu_attention {
  clv__attention call;
};

#endif
