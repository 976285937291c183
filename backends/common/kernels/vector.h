/* The width of the vector registers of the instruction set that is compiled for. Compilers spill a vector type that is wider than
 * a register to the stack. Loops over vectors therefore derive their width from CLV__VECTOR_BYTES. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_VECTOR_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_VECTOR_H

#if defined(__AVX512F__)
#define CLV__VECTOR_BYTES 64 /* such processors have 32 vector registers */
#elif defined(__AVX2__)
#define CLV__VECTOR_BYTES 32 /* such processors have 16 vector registers */
#else
#define CLV__VECTOR_BYTES 16 /* such processors have 16 or 32 vector registers */
#endif

#endif
