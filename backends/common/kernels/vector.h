/* The width of the vector registers of the instruction set that is compiled for. Compilers spill a vector type that is wider than
 * a register to the stack. Loops over vectors therefore derive their width from CLV__VECTOR_BYTES. */
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
