/* Runs tests of kernels twice: with the reference kernels, and with the fast kernels that backends use instead. Both must give
 * the results that the test computes. */
#ifndef CLEAVE_TESTS_BOTH_KERNELS_H
#define CLEAVE_TESTS_BOTH_KERNELS_H

#include "backends/common/kernels.h"
#include "support.h"

static const clv__kernel *(*find_kernel)(const char *domain, const char *op) = clv__kernel_find;

static inline int use_fast_kernels(void **state) {
  (void)state;
  find_kernel = clv__fast_kernel_find;
  return 0;
}

/* Runs the array `tests` with the reference kernels, then with the fast kernels. The value of the macro is the number of failed
 * tests, for use as the exit status of the program. */
#define RUN_BOTH_KERNELS(tests)                                        \
  (cmocka_run_group_tests_name("reference loops", tests, NULL, NULL) + \
   cmocka_run_group_tests_name("fast kernels", tests, use_fast_kernels, NULL))

#endif
