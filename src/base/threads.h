/* OpenMP's threads. If OpenMP cannot create a thread, it ends the process, so threads are tried before OpenMP needs them. */
#ifndef CLEAVE_BASE_THREADS_H
#define CLEAVE_BASE_THREADS_H

/* The most threads of a parallel region on the calling thread: omp_get_max_threads(), or fewer if the system refuses to create
 * that many. Each calling thread has a team of its own. The first call on a thread, and the first with a larger number, try as
 * many threads and start the team. OpenMP ends members of a team when a region needs fewer, and creates them again later: if a
 * limit is exhausted in between, the process still ends. */
int clv__threads_available(void);

/* Why fewer threads than omp_get_max_threads() are available on the calling thread, as an errno; 0: they are not fewer. */
int clv__threads_refused(void);

#endif
