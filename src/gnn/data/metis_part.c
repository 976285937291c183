/* Runs METIS in a child process. If METIS ran in this process, it would catch SIGTERM and SIGABRT of the whole program, and
 * print messages when memory runs out or a bisection is empty. It also draws from the C library's rand(), so that draws by
 * other threads would change the partitioning. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <metis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "gnn/data/metis.h"

_Static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS with 32-bit indices");

/* A child hangs if it inherits a C library lock that another thread held at the fork, for example rand()'s. Such a child is
 * killed and another one started. The first waits for STARTED are short, because a hung child never sends it. Later waits are
 * long, because on a busy machine a child that does not hang may also be slow to send it. */
enum { STARTED = 'S', FIRST_WAIT_MS = 40, LONGEST_WAIT_MS = 10000, START_ATTEMPTS = 24 };

typedef struct child {
  pid_t id;
  int from; /* the child's output: STARTED, then METIS's code */
} child;

const char *clv__metis_identity(void) {
#define TEXT_OF(number) #number
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
  return VERSION(METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR) ", k-way by volume, weights 1 + in-edges";
#undef VERSION
#undef TEXT_OF
}

static int call_metis(const clv__metis_graph *graph, uint32_t k, uint64_t seed, idx_t *parts) {
  idx_t options[METIS_NOPTIONS], vertex_count = graph->vertex_count, constraints = 1, part_count = (idx_t)k, objective = 0;
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_VOL;
  options[METIS_OPTION_SEED] = (idx_t)((seed ^ seed >> 31 ^ seed >> 62) & INT32_MAX);
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_CONTIG] = 0;
  options[METIS_OPTION_DBGLVL] = 0;
  return METIS_PartGraphKway(&vertex_count, &constraints, graph->offsets, graph->neighbours, graph->weights, NULL, NULL,
                             &part_count, NULL, NULL, options, &objective, parts);
}

/* Everything the child process does. It exits through _exit() so that it does not run this process's exit handlers. */
static void run_child(const clv__metis_graph *graph, uint32_t k, uint64_t seed, idx_t *parts, int to, pid_t parent) {
  static const int defaults[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  sigset_t none;
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; ++i) signal(defaults[i], SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); /* the parent died before prctl() took effect */
  int nowhere = open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  srand(1); /* if rand()'s lock is held, hang here, before STARTED is sent: the parent then tries again */
  void *volatile probe = malloc(1 << 16);
  free(probe);
  const char started = STARTED;
  if (write(to, &started, 1) != 1) _exit(1);
  int32_t code = call_metis(graph, k, seed, parts);
  ssize_t written = write(to, &code, sizeof code);
  _exit(written == (ssize_t)sizeof code ? 0 : 1);
}

static clv_status start(const clv__metis_graph *graph, uint32_t k, uint64_t seed, idx_t *parts, child *c, clv_error *error) {
  int ends[2];
  pid_t parent = getpid();
  if (pipe2(ends, O_CLOEXEC) != 0) return clv__error_set(error, CLV_IO_ERROR, "METIS: cannot create a pipe: %s", strerror(errno));
  sigset_t all, before; /* the child must not run this program's signal handlers */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  c->id = fork();
  if (c->id == 0) run_child(graph, k, seed, parts, ends[1], parent);
  int code = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);
  c->from = ends[0];
  if (c->id > 0) return CLV_OK;
  close(ends[0]);
  return clv__error_set(error, CLV_IO_ERROR, "METIS: cannot create a process: %s", strerror(code));
}

/* Waits for the child to end. Returns false if its exit status is not available, because the program reaps its children
 * itself. */
static bool finish(child *c, bool kill_it, int *how) {
  close(c->from);
  if (kill_it) kill(c->id, SIGKILL);
  pid_t got;
  do got = waitpid(c->id, how, 0);
  while (got < 0 && errno == EINTR);
  return got == c->id;
}

static bool read_all(int file, void *to, size_t size_bytes) {
  for (size_t done = 0; done < size_bytes;) {
    ssize_t got = read(file, (uint8_t *)to + done, size_bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool has_started(const child *c, int wait_ms) {
  struct pollfd wait = {.fd = c->from, .events = POLLIN};
  int ready;
  char said = 0;
  do ready = poll(&wait, 1, wait_ms);
  while (ready < 0 && errno == EINTR);
  return ready == 1 && read_all(c->from, &said, 1) && said == STARTED;
}

static clv_status explain(int32_t code, clv_error *error) {
  if (code == METIS_OK) return CLV_OK;
  if (code == METIS_ERROR_MEMORY) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "METIS: out of memory (METIS_ERROR_MEMORY); a smaller k needs less");
  }
  return clv__error_set(error, CLV_DEVICE_ERROR, "METIS rejected the graph: code %d%s; try another k or seed", code,
                        code == METIS_ERROR_INPUT ? " (METIS_ERROR_INPUT)" : "");
}

static clv_status ask(const clv__metis_graph *graph, uint32_t k, uint64_t seed, idx_t *parts, clv_error *error) {
  child c = {0};
  int how = 0, wait_ms = FIRST_WAIT_MS;
  bool started = false;
  for (int attempt = 0; attempt < START_ATTEMPTS && !started; ++attempt) {
    CLV__TRY(start(graph, k, seed, parts, &c, error));
    started = has_started(&c, wait_ms);
    if (!started) (void)finish(&c, true, &how);
    wait_ms += wait_ms / 3;
    if (wait_ms > LONGEST_WAIT_MS) wait_ms = LONGEST_WAIT_MS;
  }
  if (!started) return clv__error_set(error, CLV_IO_ERROR, "METIS: its process did not start");
  int32_t code;
  bool answered = read_all(c.from, &code, sizeof code);
  bool told = finish(&c, false, &how);
  if (answered) return explain(code, error);
  if (told && WIFSIGNALED(how)) {
    bool killed = WTERMSIG(how) == SIGKILL;
    return clv__error_set(error, killed ? CLV_OUT_OF_MEMORY : CLV_DEVICE_ERROR,
                          "METIS was killed by signal %d (%s)%s; try another k or seed", WTERMSIG(how), strsignal(WTERMSIG(how)),
                          killed ? ", probably out of memory" : "");
  }
  return clv__error_set(error, CLV_DEVICE_ERROR, "METIS ended without a result; try another k or seed");
}

clv_status clv__metis_part(const clv__metis_graph *graph, uint32_t k, uint64_t seed, uint32_t *parts, clv_error *error) {
  /* Only one METIS process runs at a time, because several would take too much memory. */
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  size_t size_bytes = (size_t)graph->vertex_count * sizeof *parts;
  idx_t *shared = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return clv__error_memory(error, size_bytes);
  pthread_mutex_lock(&lock);
  clv_status status = ask(graph, k, seed, shared, error);
  pthread_mutex_unlock(&lock);
  for (int32_t v = 0; v < graph->vertex_count && status == CLV_OK; ++v) {
    if (shared[v] >= 0 && (uint32_t)shared[v] < k) {
      parts[v] = (uint32_t)shared[v];
      continue;
    }
    status = clv__error_set(error, CLV_DEVICE_ERROR, "METIS put vertex %d into part %d of %u", v, (int)shared[v], k);
  }
  munmap(shared, size_bytes);
  return status;
}
