/* See threads.h. */
#define _GNU_SOURCE /* gettid, tgkill */
#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

enum {
  MOST_TRIED = 4096,
  SPARE = 16,        /* threads that the rest of the process may start before a parallel region does */
  MOST_YIELDS = 1000 /* the most calls of sched_yield() while waiting for the end of a thread */
};

/* The OpenMP team of the calling thread. */
static _Thread_local struct {
  int tried;    /* the last team size for which threads were created as a trial; 0: none */
  int most;     /* the largest team size that the system allows; valid if `refused` is not 0 */
  int refused;  /* why the last trial could not create all threads of the team, as an errno; 0: it could */
  int started;  /* the largest team size that was wanted when a team was started; 0: no team was started */
  bool is_near; /* the system is near its limit: the team and SPARE more threads cannot exist at the same time */
} here;

typedef struct trial {
  pthread_mutex_t *held;
  pthread_t thread;
  pid_t id;
} trial;

static void *wait_for_end(void *argument) {
  trial *one = argument;
  one->id = gettid();
  pthread_mutex_lock(one->held);
  pthread_mutex_unlock(one->held);
  return NULL;
}

/* Waits until the kernel no longer counts a thread that was joined. The kernel wakes the joining thread a little before
 * that. */
static void wait_until_gone(pid_t id) {
  for (int i = 0; i < MOST_YIELDS && tgkill(getpid(), id, 0) == 0; ++i) sched_yield();
}

/* Creates up to `count` threads that exist at the same time, and ends them. Returns how many the system allowed. If these are
 * fewer than `count`, *code is the errno of the refusal. */
static int try_threads(int count, int *code) {
  trial trials[MOST_TRIED + SPARE];
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  int made = 0;
  pthread_mutex_lock(&held);
  for (; made < count; ++made) {
    trials[made].held = &held;
    if ((*code = pthread_create(&trials[made].thread, NULL, wait_for_end, &trials[made])) != 0) break;
  }
  pthread_mutex_unlock(&held);
  for (int i = 0; i < made; ++i) pthread_join(trials[i].thread, NULL);
  for (int i = 0; i < made; ++i) wait_until_gone(trials[i].id);
  pthread_mutex_destroy(&held);
  return made;
}

static void try_team(int wanted) {
  int code = 0;
  const int more = wanted - 1 < MOST_TRIED ? wanted - 1 : MOST_TRIED;
  const int made = try_threads(more + SPARE, &code);
  here.tried = wanted;
  here.most = 1 + (made < more ? made : more);
  here.refused = made < more ? code : 0;
  here.is_near = made < more + SPARE;
}

static void start_team(int wanted, int count) {
  here.started = wanted;
#pragma omp parallel num_threads(count)
  (void)omp_get_thread_num();
}

static int available(bool starts) {
  const int wanted = omp_get_max_threads();
  if (wanted <= 1 || omp_in_parallel()) return wanted;
  if (wanted > here.tried || (starts && wanted > here.started)) try_team(wanted);
  const int count = here.refused != 0 && here.most < wanted ? here.most : wanted;
  if (wanted > here.started && (starts || here.is_near)) start_team(wanted, count);
  return count;
}

int clv__threads_available(void) {
  return available(true);
}

int clv__threads_available_later(void) {
  return available(false);
}

int clv__threads_refused(int wanted) {
  return here.refused != 0 && here.most < wanted ? here.refused : 0;
}
#else
int clv__threads_available(void) {
  return 1;
}

int clv__threads_available_later(void) {
  return 1;
}

int clv__threads_refused(int wanted) {
  (void)wanted;
  return 0;
}
#endif
