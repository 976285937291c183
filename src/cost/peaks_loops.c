/* Loops of pure register arithmetic, by dtype and instruction set, and one loop that reads memory. */
#include <stdatomic.h>
#include <string.h>

#include "base/isa.h"
#include "cost/peaks.h"

#ifdef CLEAVE_ISA_LEVELS
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Each loop keeps 12 independent sums: at least the latency of a multiply-add in cycles times the number of units for it. */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { SUMS = 12 };

static atomic_uint_fast64_t sink; /* receives the results; without it the compiler would remove the loops */

static void keep_result(uint64_t result) {
  atomic_store_explicit(&sink, result, memory_order_relaxed);
}

#define SUM_BITS(i)                      \
  {                                      \
    uint64_t part;                       \
    memcpy(&part, &sum##i, sizeof part); \
    bits ^= part;                        \
  }
/* Defines a function of `rounds`. BEGIN(i) initializes each sum, every round does one STEP(i) per sum, and at the end the
 * function passes all sums to keep_result(), so that the compiler keeps them. The macros may read x and y. */
#define LOOP(name, instructions, type, first, second, BEGIN, STEP) \
  instructions static void name(uint64_t rounds) {                 \
    const type x = first, y = second;                              \
    EACH(BEGIN)                                                    \
    for (uint64_t r = 0; r < rounds; ++r) {                        \
      EACH(STEP)                                                   \
    }                                                              \
    uint64_t bits = 0;                                             \
    EACH(SUM_BITS)                                                 \
    keep_result(bits);                                             \
  }

/* Loops for any processor: 16 bytes at a time, with the compiler's vector types. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
#define BEGIN_F32X4(i) f32x4 sum##i = {(float)(i), 1.0f, 2.0f, 3.0f};
#define BEGIN_F64X2(i) f64x2 sum##i = {(double)(i), 1.0};
#define STEP_PLAIN(i) sum##i = sum##i * x + y;
#define F32X4(number) ((f32x4){number, number, number, number})
#define F64X2(number) ((f64x2){number, number})
LOOP(f32_plain, , f32x4, F32X4(0.999f), F32X4(0.001f), BEGIN_F32X4, STEP_PLAIN)
LOOP(f64_plain, , f64x2, F64X2(0.999), F64X2(0.001), BEGIN_F64X2, STEP_PLAIN)

#ifdef CLEAVE_ISA_LEVELS
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
#define AVX512_BF16 __attribute__((target("avx512f,avx512bf16")))
#define AVX512_VNNI __attribute__((target("avx512f,avx512vnni")))
#define BEGIN_F32X8(i) __m256 sum##i = _mm256_set1_ps((float)(i));
#define BEGIN_F64X4(i) __m256d sum##i = _mm256_set1_pd((double)(i));
#define BEGIN_F32X16(i) __m512 sum##i = _mm512_set1_ps((float)(i));
#define BEGIN_F64X8(i) __m512d sum##i = _mm512_set1_pd((double)(i));
#define BEGIN_I32X16(i) __m512i sum##i = _mm512_set1_epi32(i);
#define STEP_F32X8(i) sum##i = _mm256_fmadd_ps(sum##i, x, y);
#define STEP_F64X4(i) sum##i = _mm256_fmadd_pd(sum##i, x, y);
#define STEP_F32X16(i) sum##i = _mm512_fmadd_ps(sum##i, x, y);
#define STEP_F64X8(i) sum##i = _mm512_fmadd_pd(sum##i, x, y);
#define STEP_BF16(i) sum##i = _mm512_dpbf16_ps(sum##i, (__m512bh)x, (__m512bh)y);
#define STEP_INT8(i) sum##i = _mm512_dpbusd_epi32(sum##i, x, y);
LOOP(f32_avx2, AVX2, __m256, _mm256_set1_ps(0.999f), _mm256_set1_ps(0.001f), BEGIN_F32X8, STEP_F32X8)
LOOP(f64_avx2, AVX2, __m256d, _mm256_set1_pd(0.999), _mm256_set1_pd(0.001), BEGIN_F64X4, STEP_F64X4)
LOOP(f32_avx512, AVX512, __m512, _mm512_set1_ps(0.999f), _mm512_set1_ps(0.001f), BEGIN_F32X16, STEP_F32X16)
LOOP(f64_avx512, AVX512, __m512d, _mm512_set1_pd(0.999), _mm512_set1_pd(0.001), BEGIN_F64X8, STEP_F64X8)
LOOP(bf16_avx512, AVX512_BF16, __m512i, _mm512_set1_epi16(0x3c00), _mm512_set1_epi16(0x3c00), BEGIN_F32X16, STEP_BF16)
LOOP(int8_avx512, AVX512_VNNI, __m512i, _mm512_set1_epi8(1), _mm512_set1_epi8(2), BEGIN_I32X16, STEP_INT8)

/* Bits of CPUID leaf 7, EDX: tiles and half-precision arithmetic, which are faster than the loops here. */
enum { AMX_BF16 = 1 << 22, AVX512_FP16 = 1 << 23, AMX_INT8 = 1 << 25 };
/* Whether instructions beyond x86-64-v4 may be used. False if CLEAVE_ISA limits the level. */
static bool is_beyond_v4(void) {
  clv__isa limit;
  return !clv__isa_limit(&limit) && clv__isa_used() == CLV__ISA_V4;
}

static bool has_bit(unsigned bit) {
  if (!is_beyond_v4()) return false;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bit) != 0;
}

static bool has_bf16(void) {
  return is_beyond_v4() && __builtin_cpu_supports("avx512bf16");
}

/* A multiply-add counts as two operations. */
static double flops(uint32_t lanes) {
  return 2.0 * SUMS * lanes;
}

clv__peak_loop clv__peak_loop_find(clv__peak peak) {
  const bool wide = clv__isa_used() >= CLV__ISA_V4, fma = clv__isa_used() >= CLV__ISA_V3;
  switch (peak) {
    case CLV__PEAK_F64:
      if (wide) return (clv__peak_loop){f64_avx512, flops(8)};
      return fma ? (clv__peak_loop){f64_avx2, flops(4)} : (clv__peak_loop){f64_plain, flops(2)};
    case CLV__PEAK_F32:
      if (wide) return (clv__peak_loop){f32_avx512, flops(16)};
      return fma ? (clv__peak_loop){f32_avx2, flops(8)} : (clv__peak_loop){f32_plain, flops(4)};
    case CLV__PEAK_BF16:
      if (!has_bit(AMX_BF16) && has_bf16()) return (clv__peak_loop){bf16_avx512, flops(32)};
      break;
    case CLV__PEAK_INT8:
      if (!has_bit(AMX_INT8) && is_beyond_v4() && __builtin_cpu_supports("avx512vnni"))
        return (clv__peak_loop){int8_avx512, flops(64)};
      break;
    default:
      break;
  }
  return (clv__peak_loop){NULL, 0};
}

bool clv__peak_is_f32(clv__peak peak) {
  if (peak == CLV__PEAK_F16) return !has_bit(AVX512_FP16);
  return peak == CLV__PEAK_BF16 && !has_bit(AMX_BF16) && !has_bf16();
}
#else
clv__peak_loop clv__peak_loop_find(clv__peak peak) {
  if (peak == CLV__PEAK_F32) return (clv__peak_loop){f32_plain, 2.0 * SUMS * 4};
  if (peak == CLV__PEAK_F64) return (clv__peak_loop){f64_plain, 2.0 * SUMS * 2};
  return (clv__peak_loop){NULL, 0};
}

bool clv__peak_is_f32(clv__peak peak) {
  (void)peak; /* there is no table for this kind of processor */
  return false;
}
#endif

/* Sums vectors of 64 bytes as 64-bit integers, whatever the data means. */
#define SUM_WORDS(name, instructions)                                          \
  instructions static uint64_t name(const words *data, size_t count) {         \
    words a = {0}, b = {0};                                                    \
    for (size_t i = 0; i + 2 <= count; i += 2) a += data[i], b += data[i + 1]; \
    a += b;                                                                    \
    return a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];              \
  }
typedef uint64_t words __attribute__((vector_size(64), aligned(8), may_alias));
SUM_WORDS(sum_plain, )
#ifdef CLEAVE_ISA_LEVELS
SUM_WORDS(sum_avx2, AVX2)
SUM_WORDS(sum_avx512, AVX512)
#endif

void clv__peak_read(const void *data, size_t size_bytes) {
  uint64_t (*sum)(const words *data, size_t count) = sum_plain;
#ifdef CLEAVE_ISA_LEVELS
  if (clv__isa_used() >= CLV__ISA_V3) sum = clv__isa_used() >= CLV__ISA_V4 ? sum_avx512 : sum_avx2;
#endif
  keep_result(sum(data, size_bytes / sizeof(words)));
}
