/* See isa.h. */
#include "base/isa.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/environment.h"

#ifdef CLEAVE_ISA_LEVELS
#include <cpuid.h>

/* Bits of CPUID, named as in Intel's manual. They do not say whether the operating system saves the AVX registers;
 * __builtin_cpu_supports() tests that too. */
enum {
  LEAF_1_ECX = 1 << 12 | 1 << 22 | 1 << 29, /* FMA, MOVBE, F16C */
  LEAF_7_EBX = 1 << 3 | 1 << 8,             /* BMI1, BMI2 */
  EXTENDED_ECX = 1 << 5                     /* LZCNT */
};

static bool has_bits(unsigned leaf, unsigned bits) {
  unsigned a, b = 0, c = 0, d;
  if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0) return false;
  return ((leaf == 7 ? b : c) & bits) == bits;
}

static clv__isa processor_isa(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !has_bits(1, LEAF_1_ECX) || !has_bits(7, LEAF_7_EBX) ||
      !has_bits(0x80000001u, EXTENDED_ECX)) {
    return CLV__ISA_BASE;
  }
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  return wide ? CLV__ISA_V4 : CLV__ISA_V3;
}
#else
static clv__isa processor_isa(void) {
  return CLV__ISA_BASE;
}
#endif

bool clv__isa_read(const char *text, clv__isa *limit) {
  static const char *const names[] = {"v2", "v3", "v4"};
  for (int i = 0; i < 3; ++i) {
    if (strcmp(text, names[i]) != 0) continue;
    *limit = (clv__isa)i;
    return true;
  }
  return false;
}

bool clv__isa_limit(clv__isa *limit) {
  const char *text = clv__environment_get(CLV__VARIABLE_ISA);
  return text != NULL && *text != '\0' && clv__isa_read(text, limit);
}

clv__isa clv__isa_used(void) {
  static atomic_int found; /* the instruction set + 1; 0: not determined yet */
  int known = atomic_load_explicit(&found, memory_order_relaxed);
  if (known == 0) {
    const clv__isa has = processor_isa();
    clv__isa limit;
    known = 1 + (int)(clv__isa_limit(&limit) && limit < has ? limit : has);
    int none = 0; /* if another thread was first, use its answer, so that all kernels agree */
    if (!atomic_compare_exchange_strong(&found, &none, known)) known = none;
  }
  return (clv__isa)(known - 1);
}

const char *clv__isa_name(clv__isa isa) {
  return isa == CLV__ISA_V4 ? "x86-64-v4" : isa == CLV__ISA_V3 ? "x86-64-v3" : "baseline";
}
