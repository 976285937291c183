/* RNN, GRU and LSTM. The contribution of the inputs to all gates is computed for many steps at once, as one matrix product. A
 * step then multiplies the states by R and applies the gate functions, one panel of hidden units at a time. The panels are
 * divided among threads, so the result is the same for any number of threads. W and R are packed into panels first. A caller with
 * constant W and R can pack them once for all runs. f16 and bf16 are computed in f32, including the states between steps. */
#include <math.h>

#include "backends/common/kernels/families.h"
#include "backends/common/kernels/recurrent/recurrent.h"
#include "operators/common/exponential.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/turn.h"

enum { PANEL = CLV__RECURRENT_PANEL, COLUMNS = CLV__RECURRENT_COLUMNS, PACK_LINE = 64, LINE_BYTES = 64 };

/* A step of the recurrence, or half a step if GRU applies the reset gate before the product with R. A phase begins after the
 * previous phase has ended for all units. */
typedef struct phase {
  int64_t step, in_chunk;
  int first_gate, gates;
  bool is_first, of_reset; /* is_first: it is the first half of a step; of_reset: R is multiplied by r * h, not by h */
  int from;                /* index in h[] of the state before the step */
} phase;

/* For functions with a UNIT_LOOP (body.h): disables two passes of gcc that copy a computation into both sides of a branch.
 * After these passes, gcc 12 does not vectorise the loop. */
#if defined(__GNUC__) && !defined(__clang__)
#define PLAIN __attribute__((optimize("no-tree-pre", "no-thread-jumps")))
#else
#define PLAIN
#endif

/* Sets *t to the time index of step `step` of a sequence. Returns false if the sequence ends before that step. */
static bool time_of(const clv__recurrent *p, int direction, int64_t sequence, int64_t step, int64_t *t) {
  const int64_t length = p->lengths != NULL ? ((const int32_t *)p->lengths->data)[sequence] : p->steps;
  *t = p->reversed[direction] ? length - 1 - step : step;
  return step < length;
}

/* The index in Y of the first unit of a sequence at time t. */
static int64_t output_at(const clv__recurrent *p, int direction, int64_t sequence, int64_t t) {
  const int64_t row = p->batch_first ? (sequence * p->steps + t) * p->directions + direction
                                     : (t * p->directions + direction) * p->batch + sequence;
  return row * p->hidden;
}

#define NAME(x) x##_f32
#define REAL float
#define TO_ROW clv__row_to_f32
#define FROM_ROW clv__row_from_f32
#define SIGMOID clv__gate_f32
#define TANH clv__tanh_f32
#define GATED_TANH clv__gated_tanh_f32
#include "backends/common/kernels/recurrent/body.h"
#define NAME(x) x##_f64
#define REAL double
#define TO_ROW clv__row_to_f64
#define FROM_ROW clv__row_from_f64
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define TANH tanh
#define GATED_TANH(x, y) (tanh(x) / (1 + exp(-(y))))
#include "backends/common/kernels/recurrent/body.h"

static void pack(const clv__recurrent *p, const clv_tensor *tensor, int64_t depth, void *to) {
  const int64_t tasks = p->directions * p->gates * p->panels;
  const int threads = clv__kernel_threads(tasks, (double)tasks * PANEL * (double)depth);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (p->wide)
      pack_f64(p, tensor, depth, task / p->panels, task % p->panels, to);
    else
      pack_f32(p, tensor, depth, task / p->panels, task % p->panels, to);
  }
}

/* Computes X W^T for `count` steps from `step` on. */
static void project(const clv__recurrent *p, int64_t step, int64_t count) {
  const int64_t all = p->panels * p->gates, groups = (all + COLUMNS - 1) / COLUMNS, tasks = p->directions * groups;
  const int threads = clv__kernel_threads(
      tasks, (double)p->directions * (double)all * PANEL * (double)p->inputs * (double)count * (double)p->batch);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    const int64_t direction = task / groups, first = task % groups * COLUMNS;
    const int64_t columns = all - first < COLUMNS ? all - first : COLUMNS;
    if (p->wide)
      project_f64(p, step, count, direction, first, columns);
    else
      project_f32(p, step, count, direction, first, columns);
  }
}

/* Runs groups [first, end). A group is a few panels of one direction, computed together. A thread runs the same groups in every
 * step, forwards and backwards in turn. So the weights of the last groups of a step are still in the nearer caches when the next
 * step begins. */
static void run_groups(const clv__recurrent *p, const phase *ph, int64_t first, int64_t end) {
  const int64_t each = COLUMNS / ph->gates, groups = (p->panels + each - 1) / each;
  for (int64_t i = first; i < end; ++i) {
    const int64_t group = (ph->step & 1) != 0 ? end - 1 - (i - first) : i;
    const int64_t direction = group / groups, panel = group % groups * each;
    const int64_t count = p->panels - panel < each ? p->panels - panel : each;
    if (p->wide)
      run_panels_f64(p, ph, direction, panel, count);
    else
      run_panels_f32(p, ph, direction, panel, count);
  }
}

static void run_phase(const clv__recurrent *p, const phase *ph) {
  const int64_t each = COLUMNS / ph->gates, tasks = p->directions * ((p->panels + each - 1) / each);
  const int threads = clv__kernel_threads(
      tasks, (double)p->directions * (double)p->hidden * (double)ph->gates * (double)p->hidden * (double)p->batch);
  if (threads < 2) { /* avoids OpenMP, whose call takes as long as a small step */
    run_groups(p, ph, 0, tasks);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < threads; ++i) run_groups(p, ph, i * tasks / threads, (i + 1) * tasks / threads);
}

static void run_step(const clv__recurrent *p, int64_t step, int64_t in_chunk) {
  const bool two_phases = p->update != NULL;
  const int from = (int)(step & 1);
  const phase first = {step, in_chunk, .gates = two_phases ? 2 : p->gates, .is_first = two_phases, .from = from};
  const phase second = {step, in_chunk, .first_gate = 2, .gates = 1, .of_reset = true, .from = from};
  run_phase(p, &first);
  if (two_phases) run_phase(p, &second);
}

static void write_last(const clv__recurrent *p, const clv_tensor *to, const void *from) {
  if (p->wide)
    write_last_f64(p, to, from);
  else
    write_last_f32(p, to, from);
}

static clv_status check_lengths(const clv__recurrent *p, clv_error *error) {
  for (int64_t i = 0; p->lengths != NULL && i < p->batch; ++i) {
    const int32_t length = ((const int32_t *)p->lengths->data)[i];
    if (length >= 0 && length <= p->steps) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "sequence_lens[%lld] is %d; it must be from 0 to %lld, the number of steps", (long long)i, (int)length,
                          (long long)p->steps);
  }
  return CLV_OK;
}

static clv_status run(const clv__kernel_call *call, bool is_prepared) {
  clv__recurrent p;
  char reason[160];
  if (!clv__recurrent_read(call, is_prepared, call->scratch, &p)) return clv__error_memory(call->error, SIZE_MAX);
  if (!clv__recurrent_functions(call, &p, reason)) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "%s", reason);
  }
  CLV__TRY(check_lengths(&p, call->error));
  p.tile = clv__recurrent_tile_of(p.wide);
  for (int direction = 0; direction < p.directions; ++direction) {
    if (p.wide)
      prepare_f64(&p, direction);
    else
      prepare_f32(&p, direction);
  }
  if (!is_prepared) {
    pack(&p, p.w, p.inputs, p.packed_w);
    pack(&p, p.r, p.hidden, p.packed_r);
  }
  if (p.wide_x != NULL) clv__row_to_f32(p.dtype, p.x->data, 0, p.steps * p.batch * p.inputs, p.wide_x);
  if (p.y != NULL && p.lengths != NULL) { /* Y is 0 after the end of a sequence */
    memset(p.y->data, 0, (size_t)clv__dims_count(p.y, 0, 4) * clv_dtype_size_bytes(p.dtype));
  }
  for (int64_t first = 0; first < p.steps && !clv__is_stopped(call->stop); first += p.chunk) {
    const int64_t count = p.steps - first < p.chunk ? p.steps - first : p.chunk;
    project(&p, first, count);
    for (int64_t i = 0; i < count && !clv__is_stopped(call->stop); ++i) run_step(&p, first + i, i);
  }
  write_last(&p, p.last_h, p.h[p.steps & 1]);
  write_last(&p, p.last_c, p.c);
  return CLV_OK;
}

static size_t bytes_of(const clv__kernel_call *call, bool is_prepared) {
  clv__recurrent p;
  return clv__recurrent_read(call, is_prepared, NULL, &p) ? p.scratch_bytes : SIZE_MAX;
}

static clv_status run_raw(const clv__kernel_call *call) {
  return run(call, false);
}

static size_t raw_bytes(const clv__kernel_call *call) {
  return bytes_of(call, false);
}

const clv__fast_kernel clv__fast_recurrent[] = {
    {"", "RNN", run_raw, raw_bytes},
    {"", "GRU", run_raw, raw_bytes},
    {"", "LSTM", run_raw, raw_bytes},
    {.op = NULL},
};

static clv_status run_prepared(const clv__kernel_call *call) {
  return run(call, true);
}

static size_t prepared_bytes(const clv__kernel_call *call) {
  return bytes_of(call, true);
}

const clv__kernel clv__kernel_recurrent_prepared = {"", NULL, CLV__DTYPE_BIT(CLV_F32), run_prepared, prepared_bytes, NULL};
