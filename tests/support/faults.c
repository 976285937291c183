/* See faults.h: draws schedules, lets calls fail, and checks the reports of failures. */
#include "faults.h"

#include <signal.h>
#include <stdarg.h>

#include "execute/session.h"

const char *const fault_devices[FAULTY_DEVICES] = {"faulty", "broken", "wide"};

/* ---- Drawing ---- */

const interposer_slot fault_slots[FAULT_SLOTS] = {INTERPOSER_open,
                                                  INTERPOSER_claim,
                                                  INTERPOSER_compile,
                                                  INTERPOSER_finish,
                                                  INTERPOSER_executable_load,
                                                  INTERPOSER_instance_create,
                                                  INTERPOSER_instance_resize,
                                                  INTERPOSER_execute,
                                                  INTERPOSER_copy_in,
                                                  INTERPOSER_copy_out,
                                                  INTERPOSER_capture_begin,
                                                  INTERPOSER_capture_end,
                                                  INTERPOSER_captured_launch};

/* Draws a slot whose calls can fail. Draws the slots of fault_slots more often than other slots. */
static interposer_slot draw_slot(uint64_t *random) {
  if (test_random(random) % 3 != 0) return fault_slots[test_random(random) % FAULT_SLOTS];
  interposer_slot slot;
  do {
    slot = (interposer_slot)(test_random(random) % INTERPOSER_SLOT_COUNT);
  } while (!interposer_slot_fails(slot));
  return slot;
}

/* Draws the list of devices, and which of them fail. */
static void draw_devices(schedule *s) {
  static const char *const lists[] = {
      "faulty,cpu",        "faulty,npu,cpu",        "npu,faulty,cpu",        "faulty,broken,cpu",
      "broken,faulty,cpu", "broken,npu,faulty,cpu", "faulty,npu,broken,cpu", "npu,broken,faulty,cpu"};
  static const char *const lists_without_cpu[] = {"faulty,wide", "npu,wide", "broken,npu,faulty,wide"};
  uint64_t *r = &s->random;
  bool is_wide = s->no_fallback && test_random(r) % 3 == 0;
  s->list = is_wide ? lists_without_cpu[test_random(r) % (sizeof lists_without_cpu / sizeof *lists_without_cpu)]
                    : lists[test_random(r) % (sizeof lists / sizeof *lists)];
  uint32_t present = 0;
  for (uint32_t k = 0; k < FAULTY_DEVICES; ++k) present |= (uint32_t)(strstr(s->list, fault_devices[k]) != NULL) << k;
  do {
    s->struck = present & (uint32_t)test_random(r);
  } while (s->struck == 0);
}

/* Changes the schedule so that calls of the slot occur while the schedule is armed: its faults begin no later than the stage of
 * these calls, and the features that cause the calls are on. */
static void allow(schedule *s, interposer_slot slot) {
  fault_stage last = slot == INTERPOSER_open    ? STAGE_OPEN
                     : slot == INTERPOSER_claim ? STAGE_PLAN
                     : slot == INTERPOSER_compile || slot == INTERPOSER_finish || slot == INTERPOSER_executable_load
                         ? STAGE_SESSION
                         : STAGE_COUNT;
  if (s->from > last) s->from = (fault_stage)(test_random(&s->random) % (last + 1));
  s->claims = s->claims || slot == INTERPOSER_claim;
  s->finishes = s->finishes || slot == INTERPOSER_finish;
  s->is_cached = s->is_cached || slot == INTERPOSER_executable_load || slot == INTERPOSER_executable_save;
  s->is_open = s->is_open || slot == INTERPOSER_instance_resize;
}

static const clv_status statuses[] = {CLV_DEVICE_ERROR, CLV_OUT_OF_MEMORY, CLV_NOT_SUPPORTED, CLV_INTERNAL_ERROR, CLV_TOO_LARGE};

void schedule_draw(schedule *s, uint64_t seed, bool no_fallback) {
  *s = (schedule){.seed = seed, .random = seed * 7919, .no_fallback = no_fallback};
  uint64_t *r = &s->random;
  s->kind = (fault_kind)(test_random(r) % FAULT_KINDS);
  if (s->kind == FAULT_DELAY && test_random(r) % 8 != 0) s->kind = FAULT_SLOT_AT; /* delays prove little and take time */
  s->from = (fault_stage)(test_random(r) % STAGE_COUNT);
  draw_devices(s);
  s->is_asynchronous = s->kind == FAULT_HANG || test_random(r) % 4 != 0;
  s->is_open = test_random(r) % 4 == 0;
  s->is_cached = test_random(r) % 16 == 0;
  s->claims = test_random(r) % 8 == 0;
  s->finishes = test_random(r) % 4 == 0;
  s->left = 1 + test_random(r) % (s->kind == FAULT_HANG        ? 8
                                  : s->kind == FAULT_SLOT_AT   ? 3
                                  : s->from >= STAGE_FIRST_RUN ? 10
                                                               : 40);
  s->slot = draw_slot(r);
  s->status = statuses[test_random(r) % (sizeof statuses / sizeof *statuses)];
  s->action = s->kind == FAULT_HANG     ? INTERPOSER_HANG
              : s->kind == FAULT_DELAY  ? INTERPOSER_PASS
              : test_random(r) % 3 == 0 ? INTERPOSER_FAIL_LATER
                                        : INTERPOSER_FAIL;
  if (s->kind == FAULT_SLOT || s->kind == FAULT_SLOT_AT) allow(s, s->slot);
}

void schedule_aim(schedule *s, interposer_slot slot, interposer_action action, uint64_t at) {
  s->kind = FAULT_SLOT_AT;
  s->from = STAGE_SESSION;
  s->slot = slot, s->action = action, s->left = at, s->status = statuses[at % 2];
  allow(s, slot);
}

/* ---- Striking ---- */

static bool is_hit(schedule *s, const interposer_call *call) {
  switch (s->kind) {
    case FAULT_AT_CALL:
      return s->left > 0 && --s->left == 0;
    case FAULT_RANDOM:
      return test_random(&s->random) % 12 == 0;
    case FAULT_SLOT:
      return call->slot == s->slot;
    case FAULT_SLOT_AT:
      return call->slot == s->slot && s->left > 0 && --s->left == 0;
    case FAULT_HANG:
      return interposer_slot_enqueues(call->slot) && s->left > 0 && --s->left == 0;
    default:
      return test_random(&s->random) % 16 == 0;
  }
}

/* Whether a call of the slot can fail on this device. supports() fails by rejecting a node, except on the last of
 * fault_devices, which must support every node. */
static bool can_fail(const striker *by, interposer_slot slot) {
  return interposer_slot_fails(slot) || (slot == INTERPOSER_supports && by->device != FAULTY_DEVICES - 1);
}

interposer_fate schedule_strike(void *user_data, const interposer_call *call) {
  const striker *by = user_data;
  schedule *s = by->schedule;
  interposer_fate fate = {.status = s->status};
  pthread_mutex_lock(&s->lock);
  bool is_struck = s->is_armed && (s->struck >> by->device & 1u) != 0 && s->fault_count < MOST_FAULTS;
  if (is_struck && can_fail(by, call->slot) && is_hit(s, call)) {
    fault *f = &s->faults[s->fault_count++];
    *f = (fault){.device = by->device, .slot = call->slot};
    f->is_later = s->action == INTERPOSER_FAIL_LATER && s->is_asynchronous && interposer_slot_enqueues(call->slot);
    snprintf(f->text, sizeof f->text, "made to fail #%u", s->fault_count);
    fate.action = s->action;
    fate.message = f->text;
    if (s->kind == FAULT_DELAY) fate.delay_s = 1e-4;
  }
  pthread_mutex_unlock(&s->lock);
  return fate;
}

void schedule_arm(schedule *s, bool is_armed) {
  pthread_mutex_lock(&s->lock);
  s->is_armed = is_armed;
  pthread_mutex_unlock(&s->lock);
}

void schedule_reach(schedule *s, fault_stage now) {
  if (s->from == now) schedule_arm(s, true);
}

/* ---- Reports ---- */

void world_complain(world *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&w->schedule->lock);
  if (w->problem[0] == '\0') vsnprintf(w->problem, sizeof w->problem, format, arguments);
  pthread_mutex_unlock(&w->schedule->lock);
  va_end(arguments);
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '>';
}

/* Whether the text contains `word` as a whole word. */
static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)) != NULL; ++at) {
    if ((at == text || !is_word(at[-1])) && !is_word(at[length])) return true;
  }
  return false;
}

/* The library's name of a slot. */
static const char *slot_text(interposer_slot slot) {
  switch (slot) {
    case INTERPOSER_capture_begin:
      return "capture->begin";
    case INTERPOSER_capture_end:
      return "capture->end";
    case INTERPOSER_captured_launch:
      return "capture->launch";
    case INTERPOSER_captured_bind:
      return "capture->bind";
    case INTERPOSER_executable_save:
      return "save->save";
    case INTERPOSER_executable_load:
      return "save->load";
    case INTERPOSER_instance_bind_scratch:
      return "scratch->bind";
    default:
      return interposer_slot_name(slot);
  }
}

static bool has_work(const char *text) {
  return has_word(text, "execute") || has_word(text, "copy_in") || has_word(text, "copy_out") ||
         has_word(text, "capture->launch");
}

/* Whether the text names the failed call. The failure of work that a call only enqueued is reported by a later call that waits.
 * The text must then name that waiting call, and also a call that enqueues work, or "copies to and from" a device. */
static bool names_call(const char *text, const fault *f) {
  if (has_word(text, slot_text(f->slot))) return true;
  bool is_waiting = has_word(text, "event_synchronize") || has_word(text, "stream_synchronize");
  return f->is_later && is_waiting && (has_work(text) || strstr(text, "copies to and from") != NULL);
}

/* Whether the text names the place of the failed call: a partition or a transfer between partitions. Before there are
 * partitions, when devices are opened or choose groups of nodes, it must name that step instead. The memory of values between
 * partitions belongs to no single partition. */
static bool names_place(const char *text, interposer_slot slot) {
  if (slot == INTERPOSER_open) return strstr(text, "device '") != NULL;
  if (slot == INTERPOSER_claim) return strstr(text, "node groups") != NULL;
  if (slot == INTERPOSER_buffer_alloc && strstr(text, "values between partitions") != NULL) return true;
  return strstr(text, "partition ") != NULL || strstr(text, "partitions ") != NULL || strstr(text, "transfer of '") != NULL ||
         strstr(text, "copies to and from") != NULL;
}

/* Whether the partition that the text names runs on the device; true if the text names none. The number in the text is that of
 * a partition of the plan only if there is no fallback and no partition was divided. Otherwise nothing is checked, and the
 * result is true. */
static bool is_partition_of(const world *w, const char *text, uint32_t device) {
  const char *at = strstr(text, "partition ");
  unsigned p;
  if (at == NULL || w->plan == NULL || !w->schedule->no_fallback || w->schedule->status == CLV_TOO_LARGE) return true;
  if (sscanf(at, "partition %u on", &p) != 1) return true;
  return p < w->plan->partition_count && w->plan->partitions[p].device == world_device(w, device);
}

/* Checks the report of a hang, which must name the call that enqueued the work. The library makes no further calls to a device
 * that it has lost; later reports name only the partition or transfer that needs the device. */
static void check_hang(world *w, const char *report, const char *what) {
  bool is_named = false, is_gone = strstr(report, "it did not answer in time") != NULL;
  for (uint32_t k = 0; k < FAULTY_DEVICES; ++k)
    is_named |= (w->schedule->struck >> k & 1u) != 0 && has_word(report, fault_devices[k]);
  bool is_hang = strstr(report, "it did not answer within") != NULL || strstr(report, "it did not finish within") != NULL;
  if (!is_named || !(is_gone || (is_hang && has_work(report))) ||
      !names_place(report, is_gone ? INTERPOSER_buffer_alloc : INTERPOSER_execute))
    world_complain(w, "%s does not report the hang with its device, partition and call: %s", what, report);
}

void world_check_report(world *w, const char *report, const char *what) {
  static const char mark[] = "made to fail #";
  const char *from = report;
  if (strstr(report, mark) == NULL) {
    if (w->schedule->kind == FAULT_HANG)
      check_hang(w, report, what);
    else
      world_complain(w, "%s reports no fault: %s", what, report);
    return;
  }
  for (const char *at = report; (at = strstr(at, mark)) != NULL; from = at) {
    char text[1200];
    /* A fault after "; not cached: " is of the partition that the beginning of the report names. */
    if (strncmp(from + strspn(from, "0123456789"), "; not cached: ", 14) == 0) from = report;
    snprintf(text, sizeof text, "%.*s", (int)(at - from), from);
    at += sizeof mark - 1;
    fault *f = &w->schedule->faults[strtoul(at, NULL, 10) - 1];
    f->is_reported = true;
    if (!has_word(text, fault_devices[f->device]) || !names_place(text, f->slot) || !names_call(text, f) ||
        !is_partition_of(w, text, f->device))
      world_complain(w, "%s does not name the device %s, its partition and the call %s%s: %s", what, fault_devices[f->device],
                     slot_text(f->slot), f->is_later ? ", whose work failed later" : "", report);
  }
}

/* ---- Playing ---- */

/* Time limits of devices in schedules that hang. On a loaded machine, devices that work may exceed a limit as well. If this
 * happens, the schedule is repeated with the next, longer limit. */
static const double time_limits_s[] = {0.004, 0.04, 0.4, 4};
enum { TIME_LIMITS = sizeof time_limits_s / sizeof *time_limits_s, SECONDS_EACH = 30, RUNS = 3 };

static uint64_t struck[FAULTY_DEVICES][INTERPOSER_SLOT_COUNT];

uint64_t schedules_struck(uint32_t device, interposer_slot slot) {
  return struck[device][slot];
}

static volatile uint64_t current_seed;
static void on_alarm(int number) {
  char text[64];
  (void)number;
  int size = snprintf(text, sizeof text, "seed %llu: the schedule hangs\n", (unsigned long long)current_seed);
  if (write(2, text, (size_t)size) < 0) _exit(2);
  abort();
}

void schedule_watch(uint64_t seed) {
  current_seed = seed;
  signal(SIGALRM, on_alarm);
  alarm(SECONDS_EACH);
}

void schedule_unwatch(void) {
  alarm(0);
}

static bool may_fail(const world *w, uint32_t open_device) {
  bool may = false;
  for (uint32_t k = 0; k < FAULTY_DEVICES; ++k) may |= (w->schedule->struck >> k & 1u) != 0 && world_device(w, k) == open_device;
  return may;
}

/* Whether a device to which the schedule gives no faults exceeded its time limit: it was lost, or stopped and removed from the
 * session. */
static bool is_slow(const world *w) {
  bool any = false, is_stopped = strstr(w->problem, "it did not finish within") != NULL;
  for (uint32_t d = 0; w->devices != NULL && d < w->devices->count; ++d) {
    char place[80];
    snprintf(place, sizeof place, " on %s: ", w->devices->items[d].name);
    if (!may_fail(w, d))
      any = any || clv__device_is_lost(&w->devices->items[d]) || (is_stopped && strstr(w->problem, place) != NULL);
  }
  return any;
}

static bool is_any_lost(const world *w) {
  bool any = false;
  for (uint32_t d = 0; d < w->devices->count; ++d) any = any || clv__device_is_lost(&w->devices->items[d]);
  return any;
}

static void check_failure(world *w, const clv_error *error, const char *what) {
  if (w->schedule->no_fallback)
    world_check_report(w, error->message, what);
  else
    world_complain(w, "%s fails: %s", what, error->message);
}

/* Checks that each fallback has a fault as its reason. */
static void check_fallbacks(world *w, clv_session *session) {
  clv__incident incident;
  for (uint32_t i = 0; clv__session_incident(session, i, &incident); ++i) {
    char text[640];
    clv__incident_text(w->devices, &incident, text, sizeof text);
    world_check_report(w, text, "a fallback");
    if (!may_fail(w, incident.device)) world_complain(w, "a device that works was removed: %s", text);
  }
}

static clv_status make_session(world *w, clv_session **session, clv_error *error) {
  const schedule *s = w->schedule;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.device_time_limit_s = s->time_limit_s;
  options.in_flight = 1 + (uint32_t)(s->seed % 2);
  options.no_fallback = s->no_fallback;
  options.prepared_shapes = s->is_open ? 1 : 0;
  return clv_session_create(w->plan, &options, session, error);
}

/* Creates a session without faults, which fills the cache of executables. */
static void fill_cache(world *w) {
  clv_error error = {0};
  clv_session *session;
  bool was_armed = w->schedule->is_armed;
  schedule_arm(w->schedule, false);
  if (make_session(w, &session, &error) != CLV_OK) world_complain(w, "the first session fails: %s", error.message);
  clv_session_destroy(session);
  schedule_arm(w->schedule, was_armed);
}

static void run_once(world *w, clv_session *session, uint32_t i, const char *what) {
  clv_error error = {0};
  uint32_t shape = w->schedule->is_open ? i % SHAPES : 0;
  if (w->schedule->is_open && w->schedule->seed % 4 < 3 &&
      clv_session_resize(session, w->inputs[shape], w->input_count, &error) != CLV_OK)
    check_failure(w, &error, "resizing the session");
  if (world_run(w, session, shape, &error) != CLV_OK) check_failure(w, &error, what);
}

static void run_all(world *w) {
  clv_error error = {0};
  clv_session *session;
  schedule *s = w->schedule;
  if (s->is_cached) fill_cache(w);
  schedule_reach(s, STAGE_SESSION);
  if (make_session(w, &session, &error) != CLV_OK) {
    check_failure(w, &error, "creating the session");
    schedule_arm(s, false);
    if (make_session(w, &session, &error) != CLV_OK) {
      world_complain(w, "creating the session fails although the devices work again: %s", error.message);
      return;
    }
  }
  for (uint32_t i = 0; i < RUNS; ++i) {
    if (i < 2) schedule_reach(s, i == 0 ? STAGE_FIRST_RUN : STAGE_LATER_RUN);
    run_once(w, session, i, "a run");
  }
  schedule_arm(s, false);
  if (s->no_fallback && is_any_lost(w)) { /* a lost device never works again */
    if (world_run(w, session, 0, &error) != CLV_OK) check_failure(w, &error, "a run without the device");
  } else if (world_run(w, session, 0, &error) != CLV_OK) {
    world_complain(w, "a run fails although the devices work again: %s", error.message);
  }
  check_fallbacks(w, session);
  clv_session_destroy(session);
}

static bool must_report(interposer_slot slot) {
  bool must = false;
  for (size_t i = 0; i < FAULT_SLOTS; ++i) must = must || fault_slots[i] == slot;
  return must;
}

/* Checks that the failure of a slot of fault_slots is reported, even if every run succeeds despite it. Does nothing if several
 * calls failed, because the reports may name only the first. */
static void check_silence(world *w) {
  const schedule *s = w->schedule;
  bool has_failed = s->action == INTERPOSER_FAIL || s->action == INTERPOSER_FAIL_LATER;
  if (s->fault_count != 1 || !has_failed || s->faults[0].is_reported || !must_report(s->faults[0].slot)) return;
  world_complain(w, "the failure of %s (%s%s) is reported nowhere", interposer_slot_name(s->faults[0].slot),
                 clv_status_name(s->status), s->faults[0].is_later ? ", later" : "");
}

bool schedule_play(const schedule *drawn) {
  for (int limit = 0;; ++limit) {
    schedule s = *drawn;
    world w;
    schedule_watch(s.seed);
    if (s.kind == FAULT_HANG) s.time_limit_s = time_limits_s[limit];
    if (world_open(&w, &s)) run_all(&w);
    check_silence(&w);
    bool again = is_slow(&w) && limit + 1 < TIME_LIMITS;
    world_close(&w);
    if (again) continue;
    if (w.problem[0] != '\0') fail_msg("seed %llu: %s", (unsigned long long)s.seed, w.problem);
    bool has_failures = s.action == INTERPOSER_FAIL || s.action == INTERPOSER_FAIL_LATER;
    for (uint32_t i = 0; i < s.fault_count && has_failures; ++i) ++struck[s.faults[i].device][s.faults[i].slot];
    return s.fault_count > 0;
  }
}
