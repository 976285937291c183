/* Runs sections in their own processes. A backend that crashes or hangs takes down only one section, and the report states the
 * item that this section was checking. The child reports its findings through a pipe. Its current position is in memory that it
 * shares with the parent. */
#include "check/apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

typedef enum message_kind { MESSAGE_FACT, MESSAGE_NAMES, MESSAGE_IDENTITY, MESSAGE_REFUSED, MESSAGE_END } message_kind;

/* The head of a message from the child to the parent. It is followed by two texts, whose sizes it gives. */
typedef struct message {
  uint32_t kind;
  uint32_t number; /* a clv__check_fact, or a clv_status */
  uint32_t first_bytes, second_bytes;
  double seconds;
} message;

enum { POLL_MS = 50, MOST_TEXT = 4096, TIME_LIMIT_S = 120 };

/* ---- The child ---- */

static bool write_all(int file, const void *data, size_t size_bytes) {
  for (const char *at = data; size_bytes > 0;) {
    ssize_t written = write(file, at, size_bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size_bytes -= (size_t)written;
  }
  return true;
}

static void send_message(int file, message_kind kind, uint32_t number, double seconds, const char *first, const char *second) {
  message head = {.kind = kind, .number = number, .seconds = seconds};
  char bytes[sizeof head + 2 * MOST_TEXT];
  head.first_bytes = first == NULL ? 0 : (uint32_t)strnlen(first, MOST_TEXT);
  head.second_bytes = second == NULL ? 0 : (uint32_t)strnlen(second, MOST_TEXT);
  memcpy(bytes, &head, sizeof head);
  if (head.first_bytes > 0) memcpy(bytes + sizeof head, first, head.first_bytes);
  if (head.second_bytes > 0) memcpy(bytes + sizeof head + head.first_bytes, second, head.second_bytes);
  if (!write_all(file, bytes, sizeof head + head.first_bytes + head.second_bytes)) _exit(1); /* the parent has stopped reading */
}

static void send_fact(void *cookie, clv__check_fact fact, const char *what, const char *text) {
  send_message(*(int *)cookie, MESSAGE_FACT, fact, 0, what, text);
}

static void run_child(const clv__check_request *request, clv_check_report *report, uint32_t index, clv__check_sign *sign,
                      int file) {
  static const int ends[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  clv__check_request mine = *request;
  clv_error error = {0};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) signal(ends[i], SIG_DFL); /* removes the program's handlers */
  snprintf(sign->what, sizeof sign->what, "loading the plugin");
  clv_status status = clv__check_resolve(&mine, &error);
  if (status == CLV_OK) status = clv__check_run_section(&mine, index, report, send_fact, &file, sign, &error);
  if (status != CLV_OK) {
    send_message(file, MESSAGE_REFUSED, status, 0, error.message, NULL);
  } else {
    send_message(file, MESSAGE_NAMES, 0, 0, report->device, report->backend);
    send_message(file, MESSAGE_IDENTITY, 0, 0, report->version, report->description);
    send_message(file, MESSAGE_END, 0, report->sections[index].seconds, NULL, NULL);
  }
  _exit(0); /* skips the parent's exit handlers and buffers */
}

/* ---- The parent ---- */

typedef struct watch {
  const clv__check_request *request;
  clv_check_report *report;
  uint32_t index, limit_s;
  const clv__check_sign *sign;
  int file;
  char *bytes; /* bytes read from the pipe that are not a complete message yet */
  size_t count, capacity;
  bool is_over, is_hung, is_refused;
  char names[2][256];
} watch;

static double now_s(void) {
  return (double)clv__clock_ns() * 1e-9;
}

static clv_status take_message(watch *w, const message *head, const char *first, const char *second, clv_error *error) {
  switch (head->kind) {
    case MESSAGE_FACT:
      clv__report_add(w->report, w->index, (clv__check_fact)head->number, first, second);
      return CLV_OK;
    case MESSAGE_NAMES:
      snprintf(w->names[0], sizeof w->names[0], "%.255s", first);
      snprintf(w->names[1], sizeof w->names[1], "%.255s", second);
      return CLV_OK;
    case MESSAGE_IDENTITY:
      return clv__report_identify(w->report, w->names[0], w->names[1], first, second, error);
    case MESSAGE_REFUSED:
      w->is_over = w->is_refused = true;
      return clv__error_set(error, (clv_status)head->number, "%s", first);
    default:
      clv__report_time(w->report, w->index, head->seconds);
      w->is_over = true;
      return CLV_OK;
  }
}

static clv_status take_messages(watch *w, clv_error *error) {
  size_t at = 0;
  clv_status status = CLV_OK;
  while (status == CLV_OK && w->count - at >= sizeof(message)) {
    message head;
    char first[MOST_TEXT + 1], second[MOST_TEXT + 1];
    memcpy(&head, w->bytes + at, sizeof head);
    if (head.first_bytes > MOST_TEXT || head.second_bytes > MOST_TEXT) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "the checking process wrote an invalid message");
    }
    size_t size_bytes = sizeof head + head.first_bytes + head.second_bytes;
    if (w->count - at < size_bytes) break;
    memcpy(first, w->bytes + at + sizeof head, head.first_bytes);
    memcpy(second, w->bytes + at + sizeof head + head.first_bytes, head.second_bytes);
    first[head.first_bytes] = second[head.second_bytes] = '\0';
    status = take_message(w, &head, first, second, error);
    at += size_bytes;
  }
  memmove(w->bytes, w->bytes + at, w->count - at);
  w->count -= at;
  return status;
}

/* Reads the bytes that are in the pipe and handles the complete messages. Returns false at the end of the pipe or on an error. */
static bool read_some(watch *w, clv_status *status, clv_error *error) {
  void *bytes = w->bytes;
  bool room = clv__array_reserve(clv__context_allocator(w->request->context), &bytes, &w->capacity, w->count + 4096, 1, w->count);
  w->bytes = bytes;
  if (!room) {
    *status = clv__error_memory(error, w->count + 4096);
    return false;
  }
  ssize_t got = read(w->file, w->bytes + w->count, w->capacity - w->count);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  w->count += (size_t)got;
  *status = take_messages(w, error);
  return *status == CLV_OK;
}

static clv_status listen_to(watch *w, pid_t child, clv_error *error) {
  const clv_check_options *options = w->request->options;
  uint64_t beats = 0;
  double last_s = now_s();
  clv_status status = CLV_OK;
  for (;;) {
    struct pollfd waiting = {.fd = w->file, .events = POLLIN};
    int ready = poll(&waiting, 1, POLL_MS);
    if (ready > 0 && !read_some(w, &status, error)) return status;
    if (options->progress != NULL) {
      options->progress(options->user_data, w->report->sections[w->index].name, w->sign->done, w->sign->of);
    }
    uint64_t now_beats = __atomic_load_n(&w->sign->beats, __ATOMIC_RELAXED);
    if (now_beats != beats || ready > 0) {
      beats = now_beats;
      last_s = now_s();
    } else if (now_s() - last_s > w->limit_s) {
      w->is_hung = true;
      kill(child, SIGKILL);
      return CLV_OK;
    }
  }
}

/* Reports the failure of a child that hung, crashed or exited early. */
static void report_end(watch *w, int how) {
  char text[512], what[sizeof w->sign->what];
  snprintf(what, sizeof what, "%.*s", (int)sizeof what - 1, w->sign->what);
  const char *name = w->report->sections[w->index].name;
  if (w->is_hung) {
    snprintf(text, sizeof text, "hung in section '%s': no answer for %u s", name, w->limit_s);
  } else if (WIFSIGNALED(how)) {
    snprintf(text, sizeof text, "crashed in section '%s' (signal %d, %s)", name, WTERMSIG(how), strsignal(WTERMSIG(how)));
  } else {
    snprintf(text, sizeof text, "exited in section '%s' (exit status %d)", name, WEXITSTATUS(how));
  }
  clv__report_add(w->report, w->index, CLV__CHECK_FAIL, what, text);
}

static clv_status watch_child(watch *w, pid_t child, clv_error *error) {
  int how = 0;
  double start_s = now_s();
  clv_status status = listen_to(w, child, error);
  close(w->file);
  if (status != CLV_OK && !w->is_refused) kill(child, SIGKILL);
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  clv__release(clv__context_allocator(w->request->context), w->bytes);
  if (status != CLV_OK) return status;
  if (!w->is_over || !WIFEXITED(how) || WEXITSTATUS(how) != 0) report_end(w, how);
  if (!w->is_over) clv__report_time(w->report, w->index, now_s() - start_s);
  return CLV_OK;
}

static clv_status run_one(const clv__check_request *request, clv_check_report *report, uint32_t index, clv__check_sign *sign,
                          clv_error *error) {
  int files[2];
  *sign = (clv__check_sign){0};
  if (pipe(files) != 0) return clv__error_set(error, CLV_IO_ERROR, "cannot create a pipe: %s", strerror(errno));
  fflush(NULL); /* otherwise the child would write buffered output a second time */
  pid_t child = fork();
  if (child == 0) {
    close(files[0]);
    run_child(request, report, index, sign, files[1]);
  }
  close(files[1]);
  if (child < 0) {
    close(files[0]);
    return clv__error_set(error, CLV_IO_ERROR, "cannot create a process: %s", strerror(errno));
  }
  watch w = {.request = request, .report = report, .index = index, .sign = sign, .file = files[0]};
  w.limit_s = request->options->time_limit_s == 0 ? TIME_LIMIT_S : request->options->time_limit_s;
  return watch_child(&w, child, error);
}

clv_status clv__check_run_apart(const clv__check_request *request, clv_check_report *report, clv_error *error) {
  clv__check_sign *sign = mmap(NULL, sizeof *sign, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sign == MAP_FAILED) return clv__error_memory(error, sizeof *sign);
  clv_status status = clv__report_identify(report, request->device, "", "", "", error);
  for (uint32_t i = 0; status == CLV_OK && i < report->section_count; ++i) status = run_one(request, report, i, sign, error);
  munmap(sign, sizeof *sign);
  return status;
}
