/* The dialect of the kernels: the same source compiles as OpenCL C 1.2 and as CUDA C++ (NVRTC). This header precedes every kernel
 * source, after the defines of the launch.
 *
 *   KERNEL(name)(PARAMETERS) { ... }        a kernel
 *   FUNCTION                              a function that kernels call
 *   INLINED                               a function that is always inlined, so that constant arguments can be loop bounds
 *   GLOBAL, LOCAL, CONSTANT               address spaces of pointers
 *   LOCAL_ARRAY(type, name, count)        local memory, declared at a kernel's top level
 *   BARRIER()                             of the work group, for local memory
 *   GLOBAL_ID(i) LOCAL_ID(i) GROUP_ID(i)  i in 0..2, as index_t; and GLOBAL_SIZE LOCAL_SIZE GROUP_COUNT
 *   index_t, dims_t                       int, or long if a tensor is huge; dims_t.at[8]
 *
 * Elements by dtype name (f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool), usually a define such as T:
 *   STORAGE(T)                            the type in memory; REAL(T): the type for computing (f16, bf16: float; bool: uchar)
 *   LOAD(T, pointer, i) STORE(T, pointer, i, value)    f16 and bf16 are rounded to nearest even
 *   IS_f32(T) IS_FLOAT(T)                 1 or 0, for #if
 *   NUMBER(T, 0.5)                        a constant of the type REAL(T) of a float dtype
 *   POST_PARAMETERS, POST(value, at)      see clv__opencl_pass_posts() in lower.h
 *   clv_say(&faults[fault], kind, ...)    reports an input error, see clv__opencl_pass_fault() in lower.h
 *
 * Pointers are aligned only to their element. Kernels must check their bounds, because global sizes are rounded up. */
#ifdef __OPENCL_VERSION__

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define KERNEL(name) __kernel void name
#define KERNEL_SIZED(name, x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z))) void name
#define FUNCTION static inline
#define INLINED static inline __attribute__((always_inline))
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define RESTRICT restrict
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_ID(i) ((index_t)get_global_id(i))
#define LOCAL_ID(i) ((index_t)get_local_id(i))
#define GROUP_ID(i) ((index_t)get_group_id(i))
#define GLOBAL_SIZE(i) ((index_t)get_global_size(i))
#define LOCAL_SIZE(i) ((index_t)get_local_size(i))
#define GROUP_COUNT(i) ((index_t)get_num_groups(i))
#define LONG long
#define ULONG ulong
#define CLAIM(word) (atomic_cmpxchg(word, 0, 1) == 0)
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#define AS_FLOAT(bits) as_float(bits)
#define AS_UINT(value) as_uint(value)
#define LOAD_f16(p, i) vload_half((size_t)(i), p)
#define STORE_f16(p, i, v) vstore_half_rte((float)(v), (size_t)(i), p)

#else /* CUDA */

#include <cuda_fp16.h>
#define KERNEL(name) extern "C" __global__ void name
#define KERNEL_SIZED(name, x, y, z) extern "C" __global__ __launch_bounds__((x) * (y) * (z)) void name
#define FUNCTION static __device__ __forceinline__
#define INLINED FUNCTION
#define GLOBAL
#define LOCAL
#define CONSTANT __constant__
#define RESTRICT __restrict__
#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define BARRIER() __syncthreads()
#define CLV_AXIS_0 x
#define CLV_AXIS_1 y
#define CLV_AXIS_2 z
#define CLV_AXIS(i) CLV_PASTE(CLV_AXIS_, i)
#define LOCAL_ID(i) ((index_t)threadIdx.CLV_AXIS(i))
#define GROUP_ID(i) ((index_t)blockIdx.CLV_AXIS(i))
#define LOCAL_SIZE(i) ((index_t)blockDim.CLV_AXIS(i))
#define GROUP_COUNT(i) ((index_t)gridDim.CLV_AXIS(i))
#define GLOBAL_ID(i) (GROUP_ID(i) * LOCAL_SIZE(i) + LOCAL_ID(i))
#define GLOBAL_SIZE(i) (GROUP_COUNT(i) * LOCAL_SIZE(i))
#define LONG long long
#define ULONG unsigned long long
#define CLAIM(word) (atomicCAS(word, 0, 1) == 0)
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#define AS_FLOAT(bits) __uint_as_float(bits)
#define AS_UINT(value) __float_as_uint(value)
#define LOAD_f16(p, i) __half2float((p)[i])
#define STORE_f16(p, i, v) ((p)[i] = __float2half_rn((float)(v)))
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

#endif

#define CLV_PASTE(a, b) CLV_PASTE_(a, b)
#define CLV_PASTE_(a, b) a##b

#ifdef CLV_WIDE
typedef LONG index_t;
#else
typedef int index_t;
#endif
typedef struct {
  index_t at[8];
} dims_t;

/* An error in a launch's input (clv__opencl_fault in lower/operator.h). Only the first report is kept. */
typedef struct {
  int said, kind;
  LONG at, value, limit;
} fault_t;
FUNCTION void clv_say(GLOBAL fault_t *fault, int kind, LONG at, LONG value, LONG limit) {
  if (!CLAIM(&fault->said)) return;
  fault->kind = kind;
  fault->at = at;
  fault->value = value;
  fault->limit = limit;
}

/* ---- Elements ---- */
#define STORAGE(T) CLV_PASTE(STORAGE_, T)
#define REAL(T) CLV_PASTE(REAL_, T)
#define LOAD(T, p, i) CLV_PASTE(LOAD_, T)(p, i)
#define STORE(T, p, i, v) CLV_PASTE(STORE_, T)(p, i, v)

#define STORAGE_f32 float
#define STORAGE_f16 half
#define STORAGE_bf16 ushort
#define STORAGE_f64 double
#define STORAGE_i8 signed char
#define STORAGE_u8 uchar
#define STORAGE_i16 short
#define STORAGE_u16 ushort
#define STORAGE_i32 int
#define STORAGE_u32 uint
#define STORAGE_i64 LONG
#define STORAGE_u64 ULONG
#define STORAGE_bool uchar

#define REAL_f32 float
#define REAL_f16 float
#define REAL_bf16 float
#define REAL_f64 double
#define REAL_i8 signed char
#define REAL_u8 uchar
#define REAL_i16 short
#define REAL_u16 ushort
#define REAL_i32 int
#define REAL_u32 uint
#define REAL_i64 LONG
#define REAL_u64 ULONG
#define REAL_bool uchar

#define LOAD_f32(p, i) ((p)[i])
#define LOAD_bf16(p, i) AS_FLOAT((uint)(p)[i] << 16)
#define LOAD_f64(p, i) ((p)[i])
#define LOAD_i8(p, i) ((p)[i])
#define LOAD_u8(p, i) ((p)[i])
#define LOAD_i16(p, i) ((p)[i])
#define LOAD_u16(p, i) ((p)[i])
#define LOAD_i32(p, i) ((p)[i])
#define LOAD_u32(p, i) ((p)[i])
#define LOAD_i64(p, i) ((p)[i])
#define LOAD_u64(p, i) ((p)[i])
#define LOAD_bool(p, i) ((p)[i])

#define STORE_f32(p, i, v) ((p)[i] = (v))
#define STORE_bf16(p, i, v) ((p)[i] = clv_to_bf16(v))
#define STORE_f64(p, i, v) ((p)[i] = (v))
#define STORE_i8(p, i, v) ((p)[i] = (signed char)(v))
#define STORE_u8(p, i, v) ((p)[i] = (uchar)(v))
#define STORE_i16(p, i, v) ((p)[i] = (short)(v))
#define STORE_u16(p, i, v) ((p)[i] = (ushort)(v))
#define STORE_i32(p, i, v) ((p)[i] = (int)(v))
#define STORE_u32(p, i, v) ((p)[i] = (uint)(v))
#define STORE_i64(p, i, v) ((p)[i] = (LONG)(v))
#define STORE_u64(p, i, v) ((p)[i] = (ULONG)(v))
#define STORE_bool(p, i, v) ((p)[i] = (uchar)((v) ? 1 : 0))

FUNCTION ushort clv_to_bf16(float value) {
  uint wide = AS_UINT(value);
  if ((wide & 0x7fffffffu) > 0x7f800000u) return (ushort)((wide >> 16) | 0x0040u);
  return (ushort)((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
}

/* For #if: IS_f32(T) is 1 if T is f32, otherwise 0. IS_f16(T) and IS_f64(T) test for f16 and for f64. */
#define IS_f32(T) CLV_PASTE(CLV_F32_IS_, T)
#define CLV_F32_IS_f32 1
#define IS_f16(T) CLV_PASTE(CLV_F16_IS_, T)
#define CLV_F16_IS_f16 1
#define IS_f64(T) CLV_PASTE(CLV_F64_IS_, T)
#define CLV_F64_IS_f64 1
/* 1 for f32, f16, bf16 and f64. */
#define IS_FLOAT(T) CLV_PASTE(CLV_FLOAT_IS_, T)
#define CLV_FLOAT_IS_f32 1
#define CLV_FLOAT_IS_f16 1
#define CLV_FLOAT_IS_bf16 1
#define CLV_FLOAT_IS_f64 1

/* A constant of the type REAL(T): NUMBER(T, 0.5). */
#define NUMBER(T, constant) CLV_PASTE(NUMBER_, T)(constant)
#define NUMBER_f64(constant) constant
#define NUMBER_f32(constant) constant##f
#define NUMBER_f16(constant) constant##f
#define NUMBER_bf16(constant) constant##f

/* The error function, accurate to 2e-7 and free of branches, so that compilers for CPUs can vectorize it. Where |x| is below 1
 * it is an odd polynomial in x; elsewhere it is, up to the sign, one minus the exponential of another polynomial. Both are
 * fitted at Chebyshev's points. */
FUNCTION float clv_erf(float x) {
  const float a = fabs(x) > 4.0f ? 4.0f : fabs(x), b = a * a;
  float below = -9.67359028e-6f, above = -1.6140616e-6f;
  below = below * b + 1.12682509e-4f;
  below = below * b - 8.48439639e-4f;
  below = below * b + 5.22105349e-3f;
  below = below * b - 2.68654376e-2f;
  below = below * b + 1.12837829e-1f;
  below = below * b - 3.76126379e-1f;
  below = below * b + 1.12837923f;
  above = above * a + 4.55906229e-5f;
  above = above * a - 5.92769531e-4f;
  above = above * a + 4.74022236e-3f;
  above = above * a - 2.63647176e-2f;
  above = above * a + 1.09978244e-1f;
  above = above * a + 6.31937087e-1f;
  above = above * a + 1.13016665f;
  above = above * a - 3.03212990e-4f;
  return copysign(a < 1.0f ? a * below : 1.0f - exp(-above), x);
}

/* Maps element `i` of a dense block to its offset in another layout. The block has `rank` dims, `dims`, with the last innermost;
 * the layout is given by `strides`. */
FUNCTION index_t clv_place(index_t i, int rank, dims_t dims, dims_t strides) {
  index_t place = 0;
  for (int d = rank - 1; d > 0; --d) {
    place += i % dims.at[d] * strides.at[d];
    i /= dims.at[d];
  }
  return rank > 0 ? place + i * strides.at[0] : place;
}

#ifndef POST
#define POST(value, at) (value)
#define POST_PARAMETERS
#endif
