/* See cores.h. */
#define _GNU_SOURCE
#include "cores.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/error.h"
#include "base/memory.h"

struct clv__cpu_cores {
  cpu_set_t set;
};

/* ---- Lists ---- */

static void append_core(char *text, size_t size_bytes, size_t *at, const char *format, int a, int b) {
  const int added = *at < size_bytes ? snprintf(text + *at, size_bytes - *at, format, a, b) : 0;
  if (added > 0) *at += (size_t)added;
}

static void set_text(const cpu_set_t *set, char *text, size_t size_bytes) {
  size_t at = 0;
  text[0] = '\0';
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, set)) continue;
    int last = core;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set)) ++last;
    if (at > 0) append_core(text, size_bytes, &at, ",", 0, 0);
    append_core(text, size_bytes, &at, last > core ? "%d-%d" : "%d", core, last);
    core = last;
  }
}

/* Reads one number and moves *text past it. */
static bool read_number(const char **text, int *number) {
  char *end;
  if (**text < '0' || **text > '9') return false;
  errno = 0;
  const long value = strtol(*text, &end, 10);
  if (errno != 0 || value >= CPU_SETSIZE) return false;
  *number = (int)value;
  *text = end;
  return true;
}

/* Reads "0-3,8", up to the end or a line break. */
static bool read_list(const char *text, cpu_set_t *set) {
  CPU_ZERO(set);
  for (;; ++text) {
    int first, last;
    if (!read_number(&text, &first)) return false;
    last = first;
    if (*text == '-') {
      ++text;
      if (!read_number(&text, &last) || last < first) return false;
    }
    for (int core = first; core <= last; ++core) CPU_SET(core, set);
    if (*text == '\0' || *text == '\n') return true;
    if (*text != ',') return false;
  }
}

static clv_status read_file(const char *path, cpu_set_t *set) {
  char line[4096];
  FILE *file = fopen(path, "r");
  if (file == NULL) return CLV_NOT_FOUND;
  const bool done = fgets(line, sizeof line, file) != NULL && read_list(line, set);
  (void)fclose(file);
  return done ? CLV_OK : CLV_IO_ERROR;
}

static clv_status read_node(const char *text, cpu_set_t *set, clv_error *error) {
  const char *end = text;
  char path[96], there[256] = "0";
  int node;
  cpu_set_t nodes;
  if (!read_number(&end, &node) || *end != '\0') {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "option node=%.80s: expected the number of a NUMA node", text);
  }
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
  if (read_file(path, set) == CLV_OK) return CLV_OK;
  if (read_file("/sys/devices/system/node/has_cpu", &nodes) == CLV_OK) set_text(&nodes, there, sizeof there);
  return clv__error_set(error, CLV_INVALID_ARGUMENT,
                        "option node=%d: this NUMA node does not exist or has no cores; nodes with cores: %s", node, there);
}

/* ---- The cores of a device ---- */

static clv_status read_cores(const char *list, const char *node, cpu_set_t *set, clv_error *error) {
  cpu_set_t allowed, both;
  char given[256], may[256];
  if (list != NULL && node != NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "options cores and node: give only one of them");
  }
  if (list != NULL && !read_list(list, set)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "option cores=%.80s: expected numbers below %d and ranges, such as 0-3,8",
                          list, CPU_SETSIZE);
  }
  if (node != NULL) CLV__TRY(read_node(node, set, error));
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "options cores and node: cannot find out which cores this process may use: %s", strerror(errno));
  }
  CPU_AND(&both, set, &allowed);
  set_text(&allowed, may, sizeof may);
  if (node != NULL && CPU_COUNT(&both) > 0) {
    *set = both; /* the cores of the node that this process may use */
    return CLV_OK;
  }
  if (node == NULL && CPU_EQUAL(&both, set)) return CLV_OK;
  if (node != NULL) {
    set_text(set, given, sizeof given);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "option node=%.20s: its cores are %s, but this process may use only %s",
                          node, given, may);
  }
  CPU_XOR(&both, set, &both);
  set_text(&both, given, sizeof given);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "option cores=%.80s: this process may use only %s, not %s", list, may,
                        given);
}

clv_status clv__cpu_cores_create(const clv_allocator *allocator, const char *list, const char *node, clv__cpu_cores **cores,
                                 clv_error *error) {
  cpu_set_t set;
  *cores = NULL;
  CLV__TRY(read_cores(list, node, &set, error));
  clv__cpu_cores *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->set = set;
  *cores = made;
  return CLV_OK;
}

void clv__cpu_cores_destroy(const clv_allocator *allocator, clv__cpu_cores *cores) {
  clv__release(allocator, cores);
}

int clv__cpu_cores_count(const clv__cpu_cores *cores) {
  return CPU_COUNT(&cores->set);
}

void clv__cpu_cores_text(const clv__cpu_cores *cores, char *text, size_t size_bytes) {
  set_text(&cores->set, text, size_bytes);
}

/* ---- Binding ---- */

/* The cores that the calling thread was bound to before, and the binding of its OpenMP threads (its team). OpenMP creates a
 * separate team for each calling thread. */
static _Thread_local struct {
  bool is_inside, is_bound;
  int team;         /* number of threads that were bound */
  cpu_set_t before; /* the calling thread's cores before enter() */
  cpu_set_t bound;  /* the team's cores, if is_bound */
} here;

static void bind_team(const cpu_set_t *set) {
  int team = 1;
#ifdef _OPENMP
  team = omp_get_max_threads();
#pragma omp parallel num_threads(team)
  (void)sched_setaffinity(0, sizeof *set, set);
#endif
  here.bound = *set;
  here.is_bound = true;
  here.team = team;
}

#ifdef _OPENMP
static bool is_team_bound(const cpu_set_t *set) {
  return here.is_bound && omp_get_max_threads() <= here.team && CPU_EQUAL(&here.bound, set);
}
#else
static bool is_team_bound(const cpu_set_t *set) {
  return here.is_bound && CPU_EQUAL(&here.bound, set);
}
#endif

void clv__cpu_cores_enter(const clv__cpu_cores *cores) {
  if (cores == NULL && !here.is_bound) return;
  if (sched_getaffinity(0, sizeof here.before, &here.before) != 0) return;
  if (cores == NULL) { /* this device may use any core: bind the team to the calling thread's cores again */
    if (is_team_bound(&here.before)) return;
    bind_team(&here.before);
    here.is_bound = false;
    return;
  }
  here.is_inside = true;
  (void)sched_setaffinity(0, sizeof cores->set, &cores->set);
  if (!is_team_bound(&cores->set)) bind_team(&cores->set);
}

void clv__cpu_cores_leave(void) {
  if (!here.is_inside) return;
  here.is_inside = false;
  (void)sched_setaffinity(0, sizeof here.before, &here.before);
}

/* ---- The model ---- */

void clv__cpu_model(char *text, size_t size_bytes) {
  char line[256];
  struct utsname system;
  snprintf(text, size_bytes, "%s", uname(&system) == 0 ? system.machine : "unknown");
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    const char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
    value += 1 + (value[1] == ' ');
    snprintf(text, size_bytes, "%.*s", (int)strcspn(value, "\n"), value);
    break;
  }
  (void)fclose(file);
}
