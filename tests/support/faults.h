/* Fault schedules: which calls of which devices fail, hang or are slow, drawn from a seed. The seed also draws the world in which
 * that happens: the devices, a small random graph, and which device runs which nodes.
 *
 * Each fault has a number, which is part of its error: "made to fail #3". Wherever this text appears, in an error, in the log or
 * in a fallback's report, the text before it must name the device, the partition and the call of that fault. */
#ifndef CLEAVE_TESTS_FAULTS_H
#define CLEAVE_TESTS_FAULTS_H

#include "../cache/folder.h"
#include "machine.h"

#include <pthread.h>

enum { FAULTY_DEVICES = 3, FAULT_SLOTS = 13, MOST_FAULTS = 512, MOST_OUTPUTS = 16, SHAPES = 3 };

typedef enum fault_kind {
  FAULT_AT_CALL, /* one call fails */
  FAULT_RANDOM,  /* each call may fail */
  FAULT_SLOT,    /* from some stage on, all calls of a slot fail */
  FAULT_SLOT_AT, /* one call of a slot fails */
  FAULT_HANG,    /* the device hangs at a call */
  FAULT_DELAY,   /* some calls are slow */
  FAULT_KINDS
} fault_kind;

/* The stage from which on calls may fail. */
typedef enum fault_stage {
  STAGE_OPEN,
  STAGE_PLAN,
  STAGE_SESSION,
  STAGE_FIRST_RUN,
  STAGE_LATER_RUN,
  STAGE_COUNT /* faults never begin */
} fault_stage;

/* One fault that occurred. */
typedef struct fault {
  uint32_t device; /* index into fault_devices */
  interposer_slot slot;
  bool is_later; /* the call enqueued work and succeeded; the work failed */
  bool is_reported;
  char text[32]; /* the message of its error */
} fault;

struct schedule;
typedef struct striker { /* the user data of one device's hook, schedule_strike() */
  struct schedule *schedule;
  uint32_t device;
} striker;

typedef struct schedule {
  uint64_t seed, random;
  fault_kind kind;
  fault_stage from;
  bool no_fallback;
  const char *list;     /* the devices, separated by commas */
  uint32_t struck;      /* bit k: device k of fault_devices has faults */
  bool is_asynchronous; /* the devices work asynchronously; otherwise in the thread of the caller */
  bool is_open;         /* the graph's sizes are open, and differ from run to run */
  bool is_cached;       /* executables are in a cache before the first fault */
  bool claims, finishes;
  uint64_t left;        /* which of the calls that `kind` is about fails or hangs, counted from now on; 1 is the next one */
  interposer_slot slot; /* the slot that fails, for FAULT_SLOT and FAULT_SLOT_AT */
  interposer_action action;
  clv_status status;
  double time_limit_s;  /* for each answer of a device; 0: no limit */
  pthread_mutex_t lock; /* protects the members below and world.problem: calls come from several threads */
  bool is_armed;
  uint32_t fault_count;
  fault faults[MOST_FAULTS];
  striker strikers[FAULTY_DEVICES];
} schedule;

/* The names of the devices that may fail. The last one supports every node and can stand in for the CPU. */
extern const char *const fault_devices[FAULTY_DEVICES];

/* In a large set of schedules, at least one call of each of these slots must have failed. */
extern const interposer_slot fault_slots[FAULT_SLOTS];

/* Draws a schedule. Without fallback, the last device of the list may fail, too. */
void schedule_draw(schedule *s, uint64_t seed, bool no_fallback);
/* Changes a schedule so that only call number `at` of the slot gets the fate `action`. Calls are counted from the creation of
 * the first session on or, if the slot is called only before that, from an earlier stage on. */
void schedule_aim(schedule *s, interposer_slot slot, interposer_action action, uint64_t at);
interposer_fate schedule_strike(void *striker, const interposer_call *call); /* the hook of the devices that may fail */
void schedule_arm(schedule *s, bool is_armed);
void schedule_reach(schedule *s, fault_stage now); /* if the faults begin at the stage `now`: lets calls fail from now on */

typedef struct world {
  schedule *schedule;
  interposer *interposers[FAULTY_DEVICES]; /* NULL: not in the list */
  folder cache;
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
  uint32_t input_count, output_count;
  float data[SHAPES][2][32];
  clv_tensor inputs[SHAPES][2], expected[SHAPES][MOST_OUTPUTS]; /* by shape; runs use the shapes in turn */
  char problem[1600];                                           /* the first problem that was found; "": none */
} world;

/* Records the first problem. It is reported once the world is closed, if the schedule need not be repeated. */
CLV_PRINTF(2, 3) void world_complain(world *w, const char *format, ...);
/* Checks that a report names the device, the partition and the call of each fault that it mentions, and that it mentions one. */
void world_check_report(world *w, const char *report, const char *what);

/* Opens the devices, makes the graph, its inputs and expected outputs, and plans. Returns whether there is a plan. If there is
 * none, checks that the error reports a fault. The caller closes the world in both cases. */
bool world_open(world *w, schedule *s);
void world_close(world *w);
clv_status world_run(world *w, clv_session *session, uint32_t shape, clv_error *error);
uint32_t world_device(const world *w, uint32_t device); /* index in the set of open devices, or CLV__NO_ID */

/* Plays a schedule: creates a session, runs it with faults, and once more when the devices work again. Fails the test unless
 * all runs succeed (with fallback) or fail only with a report of the fault (without fallback), the last run succeeds (unless a
 * device was lost), all outputs are right, and nothing leaks. Returns whether a fault occurred. */
bool schedule_play(const schedule *drawn);
/* How many calls of the slot failed (not hung) on the device (index into fault_devices) in all schedules played so far. */
uint64_t schedules_struck(uint32_t device, interposer_slot slot);
/* Limits the time of a schedule, or ends that limit. The process is aborted if a schedule takes too long. */
void schedule_watch(uint64_t seed);
void schedule_unwatch(void);

#endif
