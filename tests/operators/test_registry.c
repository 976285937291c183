/* Tests both tables of kernels. Every fast kernel must have a separate reference kernel for the same operator, and must use the
 * dtypes and the accepts() function of that kernel. */
#include "backends/common/kernels.h"
#include "support.h"

static void test_fast_has_reference(void **state) {
  (void)state;
  for (const clv__fast_kernel *const *family = clv__kernels()->families; *family != NULL; ++family) {
    for (const clv__fast_kernel *fast = *family; fast->op != NULL; ++fast) {
      const clv__kernel *reference = clv__kernel_find(fast->domain, fast->op);
      if (reference == NULL) fail_msg("%s has no reference kernel", fast->op);
      if (reference->run == fast->run) fail_msg("%s: the fast kernel and the reference kernel are the same function", fast->op);
      const clv__kernel *found = clv__fast_kernel_find(fast->domain, fast->op);
      assert_non_null(found);
      assert_ptr_equal(found->run, fast->run);
      assert_int_equal(found->dtypes, reference->dtypes);
      assert_ptr_equal(found->accepts, reference->accepts);
    }
  }
}

static void test_others_fall_back(void **state) {
  (void)state;
  assert_ptr_equal(clv__fast_kernel_find("", "Concat"), clv__kernel_find("", "Concat"));
  assert_null(clv__fast_kernel_find("", "NoSuchOperator"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fast_has_reference), cmocka_unit_test(test_others_fall_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
