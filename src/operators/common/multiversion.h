/* CLV__MULTIVERSION compiles a function for several instruction sets; the loader selects one when the library is loaded. Only gcc
 * on x86 supports the form used here, and sanitizers do not follow the dispatch. Elsewhere the macro is empty. */
#ifndef CLEAVE_OPERATORS_COMMON_MULTIVERSION_H
#define CLEAVE_OPERATORS_COMMON_MULTIVERSION_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLV__MULTIVERSION __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define CLV__MULTIVERSION
#endif

#endif
