/* Shared by all tests: cmocka with the headers it needs, a counting and failing allocator, seeded random numbers. */
#ifndef CLEAVE_TESTS_SUPPORT_H
#define CLEAVE_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"

/* An allocator that counts, and fails on request. */
typedef struct test_allocator {
  clv_allocator allocator; /* pass a pointer to this member to the tested functions */
  size_t calls;            /* allocations so far */
  size_t live;             /* allocated and not released */
  size_t fail_at;          /* the call (from 1) that fails; 0: none */
} test_allocator;
void test_allocator_init(test_allocator *counting);

/* Seeded random numbers (SplitMix64). The caller sets *state to the seed before the first call. */
uint64_t test_random(uint64_t *state);
float test_random_float(uint64_t *state); /* in [-1, 1) */

/* Returns how many of `count` random cases a test runs, at least one. That is all of them, but a quarter under the address
 * sanitizer and a seventh under the thread sanitizer, because they are slower. CLEAVE_TEST_PERCENT=N sets N percent instead. */
uint32_t test_some(uint32_t count);

/* Fails the test with the error's message unless status is CLV_OK. */
#define assert_ok(call, error)                                                                              \
  do {                                                                                                      \
    clv_status assert_ok_status = (call);                                                                   \
    if (assert_ok_status != CLV_OK) fail_msg("%s: %s", clv_status_name(assert_ok_status), (error).message); \
  } while (0)

#endif
