/* See interrupt.h. The handler only writes the number of the signal to a pipe. A thread reads it and does the rest, because
 * removing files is not safe in a handler. The handler runs on that thread alone: the signals are blocked on all others,
 * because generated code of oneDNN (2.6, sgemm for AVX2) keeps data so far below the stack pointer that a handler on the same
 * thread would overwrite it. */
#define _GNU_SOURCE /* pipe2 */
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/program.h"
#include "cli/support.h"

enum { GRACE_MS = 100 };

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals };

static int pipe_ends[2] = {-1, -1};
static sem_t started; /* posted by the thread */
static atomic_bool is_interrupted;
static atomic_bool is_kept;
static atomic_int caught; /* the first signal; 0: none */

static void fill_set(sigset_t *set) {
  sigemptyset(set);
  for (int i = 0; i < SIGNAL_COUNT; ++i) sigaddset(set, signals[i]);
}

static void on_signal(int number) {
  int code = errno;
  uint8_t byte = (uint8_t)number;
  ssize_t written = write(pipe_ends[1], &byte, 1);
  (void)written; /* if writing failed, the pipe is full of earlier signals, which suffice */
  errno = code;
}

/* Waits for the next signal, up to `timeout_ms` (-1: for ever). Returns its number, or 0. */
static int next_signal(int timeout_ms) {
  struct pollfd end = {.fd = pipe_ends[0], .events = POLLIN};
  uint8_t byte;
  if (poll(&end, 1, timeout_ms) <= 0 || read(pipe_ends[0], &byte, 1) != 1) return 0;
  return byte;
}

void cli_interrupt_exit(const char *message, int status) {
  char line[1200];
  clv_temporaries_remove();
  const int length = snprintf(line, sizeof line, "%scleave: %s\n", isatty(STDERR_FILENO) != 0 ? "\n" : "", message);
  ssize_t written = write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
  (void)written;
  _exit(status);
}

/* After the first signal, gives the command GRACE_MS to end by itself, and then ends the process. A command that saves its
 * results (cli_interrupt_keep()) may take longer. A second signal ends the process at once in both cases. */
static void *watch(void *unused) {
  (void)unused;
  sem_post(&started);
  int number, again = 0;
  sigset_t ours;
  fill_set(&ours);
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
  while ((number = next_signal(-1)) == 0) continue;
  atomic_store(&caught, number);
  atomic_store(&is_interrupted, true);
  uint64_t end_ns = cli_now_ns() + GRACE_MS * UINT64_C(1000000);
  for (uint64_t now_ns = cli_now_ns(); now_ns < end_ns && again == 0; now_ns = cli_now_ns()) {
    again = next_signal((int)((end_ns - now_ns) / 1000000) + 1);
  }
  while (again == 0 && atomic_load(&is_kept)) again = next_signal(GRACE_MS);
  cli_interrupt_exit("interrupted", cli_interrupt_status()); /* on a terminal, the line already shows ^C */
}

static void leave_to_system(void) {
  sigset_t ours;
  fill_set(&ours);
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
  for (int i = 0; i < SIGNAL_COUNT; ++i) {
    struct sigaction now;
    if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == on_signal) signal(signals[i], SIG_DFL);
  }
}

void cli_interrupt_begin(void) {
  struct sigaction action, before;
  pthread_t thread;
  sigset_t all, old, ours;
  if (pipe2(pipe_ends, O_CLOEXEC) != 0 || sem_init(&started, 0, 0) != 0) return;
  if (fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK) != 0) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* the new thread inherits this mask */
  int code = pthread_create(&thread, NULL, watch, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (code != 0 || pthread_atfork(NULL, NULL, leave_to_system) != 0) return;
  pthread_detach(thread);
  /* From here on, the thread allocates nothing before a signal comes. The process may fork: a child in which this thread held a
   * lock of an allocator, such as the one of gcc 12's address sanitizer, would wait for it for ever. */
  while (sem_wait(&started) != 0 && errno == EINTR) continue;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < SIGNAL_COUNT; ++i) {
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
  }
  fill_set(&ours);
  pthread_sigmask(SIG_BLOCK, &ours, NULL); /* all threads created later inherit this mask */
}

void cli_interrupt_keep(void) {
  atomic_store(&is_kept, true);
}

void cli_interrupt_keep_end(void) {
  atomic_store(&is_kept, false);
}

bool cli_is_interrupted(void) {
  return atomic_load(&is_interrupted);
}

int cli_interrupt_status(void) {
  return 128 + atomic_load(&caught);
}
