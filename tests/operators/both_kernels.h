/* Tests of kernels run twice: on the reference loops, then on what backends run instead of them. Both must give the numbers that
 * the test computed. */
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

/* The status of the whole program. */
#define RUN_BOTH_KERNELS(tests)                                        \
  (cmocka_run_group_tests_name("reference loops", tests, NULL, NULL) + \
   cmocka_run_group_tests_name("fast kernels", tests, use_fast_kernels, NULL))

#endif
