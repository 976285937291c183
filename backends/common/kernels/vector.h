/* The width of this version's vector registers. A vector type that is wider than a register is spilled to the stack by the
 * compiler; loops over vectors therefore take their width, and the number of sums that they keep in registers, from here. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_VECTOR_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_VECTOR_H

#if defined(__AVX512F__)
#define CLV__VECTOR_BYTES 64 /* and 32 registers */
#elif defined(__AVX2__)
#define CLV__VECTOR_BYTES 32 /* and 16 registers */
#else
#define CLV__VECTOR_BYTES 16 /* and 16 registers, or 32 */
#endif

#endif
