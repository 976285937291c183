/* OpenMP's threads. If OpenMP cannot create a thread, it ends the process, so threads are tried before OpenMP needs them. */
#ifndef CLEAVE_BASE_THREADS_H
#define CLEAVE_BASE_THREADS_H

/* The most threads of a parallel region on the calling thread: omp_get_max_threads(), or fewer if the system refuses to create
 * that many. Each calling thread has a team of OpenMP threads of its own. The first call on a thread, and the first call after
 * omp_get_max_threads() has grown, create that many threads as a trial and then start the team. OpenMP ends members of a team
 * when a region needs fewer, and creates them again later. If a limit is exhausted in between, OpenMP still ends the
 * process. */
int clv__threads_available(void);

/* The same number, for work that fixes its number of threads now and runs later. Starts the team only if the system is so close
 * to its limit that the threads might be refused later. */
int clv__threads_available_later(void);

/* Why the calling thread cannot have `wanted` threads, as an errno; 0: it can, or it never tried to. */
int clv__threads_refused(int wanted);

#endif
