/* clv__isa_used(): the instruction set does not exceed the limit in CLEAVE_ISA, and does not change while the process runs. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/isa.h"
#include "support.h"

/* Returns the instruction set that a process uses if it starts with CLEAVE_ISA=`limit` (NULL: unset). */
static clv__isa used_with(const char *limit) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (limit != NULL)
      setenv("CLEAVE_ISA", limit, 1);
    else
      unsetenv("CLEAVE_ISA");
    const clv__isa first = clv__isa_used();
    setenv("CLEAVE_ISA", "v2", 1); /* must have no effect after the first call of clv__isa_used() */
    _exit(clv__isa_used() == first ? (int)first : 100);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= CLV__ISA_V4);
  return (clv__isa)WEXITSTATUS(status);
}

static void test_limits(void **state) {
  (void)state;
  const clv__isa best = used_with(NULL);
  assert_int_equal(used_with("v2"), CLV__ISA_BASE);
  assert_int_equal(used_with("v3"), best < CLV__ISA_V3 ? best : CLV__ISA_V3);
  assert_int_equal(used_with("v4"), best); /* a limit above the processor's level has no effect */
  assert_int_equal(used_with(""), best);
#ifdef CLEAVE_ISA_LEVELS
  assert_int_equal(best >= CLV__ISA_V3, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"));
  assert_int_equal(best >= CLV__ISA_V4, __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
#endif
}

static void test_values(void **state) {
  (void)state;
  static const char *const wrong[] = {"", "v1", "v5", "V3", "v3 ", "avx2", "x86-64-v3"};
  clv__isa limit = CLV__ISA_V4;
  assert_true(clv__isa_read("v2", &limit) && limit == CLV__ISA_BASE);
  assert_true(clv__isa_read("v3", &limit) && limit == CLV__ISA_V3);
  assert_true(clv__isa_read("v4", &limit) && limit == CLV__ISA_V4);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) assert_false(clv__isa_read(wrong[i], &limit));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits), cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
