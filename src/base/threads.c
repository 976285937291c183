/* See threads.h. */
#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>

enum { MOST_TRIED = 4096 };

/* The team of this thread. */
static _Thread_local struct {
  int tried; /* its size, or the size that was tried and refused */
  int most;  /* limit, if `refused` is not 0 */
  int refused;
} here;

static void *wait_for_end(void *argument) {
  pthread_mutex_t *held = argument;
  pthread_mutex_lock(held);
  pthread_mutex_unlock(held);
  return NULL;
}

/* Creates up to `count` threads that exist at the same time, and ends them. Returns how many there were; if fewer, sets *code. */
static int try_threads(int count, int *code) {
  pthread_t threads[MOST_TRIED];
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  int made = 0;
  pthread_mutex_lock(&held);
  while (made < count && (*code = pthread_create(&threads[made], NULL, wait_for_end, &held)) == 0) ++made;
  pthread_mutex_unlock(&held);
  for (int i = 0; i < made; ++i) pthread_join(threads[i], NULL);
  pthread_mutex_destroy(&held);
  return made;
}

static void start_team(int wanted) {
  int code = 0;
  const int more = wanted - 1 < MOST_TRIED ? wanted - 1 : MOST_TRIED;
  const int made = try_threads(more, &code);
  here.tried = wanted;
  here.most = 1 + made;
  here.refused = code;
#pragma omp parallel num_threads(1 + made)
  (void)omp_get_thread_num();
}

int clv__threads_available(void) {
  const int wanted = omp_get_max_threads();
  if (wanted <= 1 || omp_in_parallel()) return wanted;
  if (wanted > here.tried) start_team(wanted);
  return here.refused != 0 && here.most < wanted ? here.most : wanted;
}

int clv__threads_refused(void) {
  return clv__threads_available() < omp_get_max_threads() ? here.refused : 0;
}
#else
int clv__threads_available(void) {
  return 1;
}

int clv__threads_refused(void) {
  return 0;
}
#endif
