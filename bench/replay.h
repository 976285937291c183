/* Shared by the files of bench_replay: sessions on a device that accepts a given number of nodes per partition, and the backend
 * calls of such a run, each as a subject to measure. */
#ifndef CLEAVE_BENCH_REPLAY_H
#define CLEAVE_BENCH_REPLAY_H

#define BENCH "replay"
#include "backends/vnpu/device.h"
#include "chain.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "turns.h"

/* ---- A session (replay_sessions.c) ---- */

typedef struct sessions {
  clv_context *context;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  clv_tensor inputs[3], output;
  uint32_t input_count;
  float in[2][ELEMENTS], out[ELEMENTS];
  int64_t dims[2];
} sessions;

/* Opens a session on `device`, with at most `part_nodes` nodes per partition (0: no limit). */
void session_open(sessions *s, const clv_graph *graph, const char *device, uint32_t part_nodes, clv_capture_policy mode);
void session_close(sessions *s);
cost session_run(void *sessions);
/* Returns the backend whose device the sessions use, with a changed table of functions. */
const clv_backend *session_backend(void);

/* ---- The backend calls of a session's run (replay_calls.c) ---- */

/* A launch that computes nothing but takes `ns` nanoseconds. */
typedef struct idle {
  clv__vnpu_launch launch;
  double ns;
} idle;

typedef struct calls {
  const clv_backend *b;
  clv_device *device;
  clv_stream *stream;
  clv_executable *executable;
  clv_instance *instance;
  clv_captured *captured;
  clv_binding bindings[3];
  clv_execute_args args;
  const float *in[2];
  float out[ELEMENTS];
  bool is_synchronous;
  idle idle;
} calls;

void calls_open(calls *c, const sessions *s, const clv_graph *graph);
void calls_close(calls *c);
/* Executes the instance or, if `captured`, launches the capture. Ends the program if the result differs from `wanted`. */
void calls_check(calls *c, bool captured, uint32_t nodes, const float *wanted);
/* Measure the time of execute() or of capture->launch() alone. */
cost call_execute(void *calls);
cost call_replay(void *calls);
/* Measure the time of all backend calls of a session's run: with execute(), with capture->launch(), and with an idle launch. */
cost chain_execute(void *calls);
cost chain_replay(void *calls);
cost chain_nothing(void *calls);
/* Ends the program if two results differ. */
void need_same(const float *a, const float *b, uint32_t nodes, const char *what);

/* ---- The lookup of a capture (replay_lookups.c) ---- */

/* Measures in ns a miss in the cache of captures (`asked`), and entering a capture after a hit (`entered`). */
void measure_lookups(const clv_plan *plan, int samples, double *asked, double *entered);

#endif
