/* clv__threads_available(): the number of threads that OpenMP can use, also if the system refuses to create any: in a child
 * process whose user may have no more processes. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/threads.h"
#include "support.h"

enum { WANTED = 4, SOME_USER = 54321 };

#ifdef _OPENMP
/* Counts the threads of a region with as many threads as are available. */
static int count_team(void) {
  int count = 0;
#pragma omp parallel num_threads(clv__threads_available()) reduction(+ : count)
  count += 1;
  return count;
}

/* Forbids the user of this process to create processes or threads. The limit does not apply to root, so a root process becomes
 * another user first. Returns false if this is not possible. */
static bool forbid_threads(void) {
  const struct rlimit none = {1, 1};
  return (geteuid() != 0 || setuid(SOME_USER) == 0) && setrlimit(RLIMIT_NPROC, &none) == 0;
}

/* Returns the exit status of the child: 0: passed; 1: failed; 77: the limit cannot be set. */
static int run_child(void) {
  if (!forbid_threads()) return 77;
  omp_set_num_threads(WANTED);
  if (clv__threads_available_later() != 1 || clv__threads_available() != 1 || clv__threads_refused(WANTED) != EAGAIN) return 1;
  if (count_team() != 1) return 1; /* if OpenMP tried to create more threads, the process would end */
  omp_set_num_threads(1);
  return clv__threads_available() == 1 && clv__threads_refused(1) == 0 ? 0 : 1;
}

static void refused_threads(void **state) {
  (void)state;
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(run_child());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void allowed_threads(void **state) {
  (void)state;
  const int before = omp_get_max_threads();
  omp_set_num_threads(WANTED);
  assert_int_equal(clv__threads_available_later(), WANTED);
  assert_int_equal(clv__threads_available(), WANTED);
  assert_int_equal(clv__threads_refused(WANTED), 0);
  assert_int_equal(count_team(), WANTED);
  omp_set_num_threads(before);
}
#else
static void refused_threads(void **state) {
  (void)state;
  assert_int_equal(clv__threads_available(), 1);
}

static void allowed_threads(void **state) {
  (void)state;
  assert_int_equal(clv__threads_refused(WANTED), 0);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused_threads), cmocka_unit_test(allowed_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
