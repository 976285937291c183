/* The instruction sets that Cleave's kernels are compiled for, and the one that this process uses. On x86-64: the baseline, and
 * the levels v3 (AVX2, FMA, F16C) and v4 (AVX-512 F, BW, CD, DQ and VL) of its ABI. Elsewhere: the baseline alone. */
#ifndef CLEAVE_BASE_ISA_H
#define CLEAVE_BASE_ISA_H

#include <stdbool.h>

typedef enum clv__isa { CLV__ISA_BASE, CLV__ISA_V3, CLV__ISA_V4 } clv__isa;

/* The best instruction set that this processor has, the build contains and CLEAVE_ISA allows. Determined once per process. */
clv__isa clv__isa_used(void);
const char *clv__isa_name(clv__isa isa); /* "baseline", "x86-64-v3" or "x86-64-v4" */

/* Reads a value of CLEAVE_ISA: v2 (kernels for the baseline), v3 or v4. Returns false if the text is none of them. */
bool clv__isa_read(const char *text, clv__isa *limit);
/* Sets `limit` to the value of CLEAVE_ISA. False if the variable is unset, empty or invalid. */
bool clv__isa_limit(clv__isa *limit);

/* CLV__FOR_ISA(name): the address of name_base, name_v3 or name_v4, whichever was compiled for the instruction set used. */
#ifdef CLEAVE_ISA_LEVELS
#define CLV__FOR_ISA(name) \
  (clv__isa_used() == CLV__ISA_V4 ? &name##_v4 : clv__isa_used() == CLV__ISA_V3 ? &name##_v3 : &name##_base)
#else
#define CLV__FOR_ISA(name) (&name##_base)
#endif

#endif
