/* How kernels use threads. The number of threads depends on the work, and each thread has its own part of the call's scratch.
 * Scratch is sized from shapes alone, and a later call may run on more threads, so the largest number of threads is a constant.
 */
#ifndef CLEAVE_OPERATORS_COMMON_THREADS_H
#define CLEAVE_OPERATORS_COMMON_THREADS_H

#include <stdint.h>

#include "base/threads.h"
#ifdef _OPENMP
#include <omp.h>
#endif

#define CLV__KERNEL_MAX_THREADS 16
#define CLV__KERNEL_PARALLEL_WORK 50000.0 /* least number of elementary operations for which several threads are used */

/* The maximum number of threads for `tasks` tasks, on any machine. */
static inline int clv__kernel_thread_limit(int64_t tasks) {
  if (tasks < 1) return 1;
  return tasks < CLV__KERNEL_MAX_THREADS ? (int)tasks : CLV__KERNEL_MAX_THREADS;
}

/* The number of threads for `tasks` tasks with `work` elementary operations in total; never above clv__kernel_thread_limit(). */
static inline int clv__kernel_threads(int64_t tasks, double work) {
#ifdef _OPENMP
  if (work < CLV__KERNEL_PARALLEL_WORK) return 1;
  int limit = clv__kernel_thread_limit(tasks);
  int available = clv__threads_available();
  return available < limit ? available : limit;
#else
  (void)tasks;
  (void)work;
  return 1;
#endif
}

static inline int clv__kernel_thread_index(void) {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

#endif
