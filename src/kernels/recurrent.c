/* RNN, GRU and LSTM. What the inputs contribute to all gates of all steps is one matrix product; then a step is a product of the
 * states with R, packed once, and the functions of the gates, by panels of hidden units: they are what threads share out, so that
 * the result is the same on any number of them. f16 and bf16 are computed in f32, states between steps included. */
#include <math.h>

#include "kernels/multiversion.h"
#include "kernels/product.h"
#include "kernels/recurrent.h"
#include "kernels/rows.h"
#include "kernels/threads.h"
#include "kernels/turn.h"

enum { PANEL = CLV__RECURRENT_PANEL, GATES = CLV__RECURRENT_GATES, ROWS = CLV__RECURRENT_ROWS, LINE = 256, PACK_LINE = 64 };

/* Where a sequence's units of a panel are. */
typedef struct place {
  int64_t direction, unit, count; /* the first unit, and how many */
  int64_t state;                  /* index in [directions, batch, hidden] */
  int64_t projected;              /* index of the first gate */
  int from;                       /* which of h[] is the state before the step */
} place;

/* The time that step `step` of a sequence is about; false once it has ended. */
static bool time_of(const clv__recurrent *p, int direction, int64_t sequence, int64_t step, int64_t *t) {
  const int64_t length = p->lengths != NULL ? ((const int32_t *)p->lengths->data)[sequence] : p->steps;
  *t = p->reversed[direction] ? length - 1 - step : step;
  return step < length;
}

/* Index in Y of the first unit. */
static int64_t output_at(const clv__recurrent *p, int direction, int64_t sequence, int64_t t) {
  const int64_t row = p->batch_first ? (sequence * p->steps + t) * p->directions + direction
                                     : (t * p->directions + direction) * p->batch + sequence;
  return row * p->hidden;
}

#define NAME(x) x##_f32
#define REAL float
#define TO_ROW clv__row_to_f32
#define FROM_ROW clv__row_from_f32
#include "kernels/recurrent_body.h"
#define NAME(x) x##_f64
#define REAL double
#define TO_ROW clv__row_to_f64
#define FROM_ROW clv__row_from_f64
#include "kernels/recurrent_body.h"

static void pack(const clv__recurrent *p, int phase, int first_gate, int gates) {
  const int64_t tasks = p->directions * p->panels;
  const int threads = clv__kernel_threads(tasks, (double)tasks * PANEL * gates * (double)p->hidden);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (p->wide)
      pack_f64(p, task / p->panels, task % p->panels, first_gate, gates, p->packed[phase]);
    else
      pack_f32(p, task / p->panels, task % p->panels, first_gate, gates, p->packed[phase]);
  }
}

/* projected = X W^T + the biases, rows in the order of steps whatever the order of X. */
static void project(const clv__recurrent *p, int64_t direction) {
  const size_t real_bytes = p->wide ? sizeof(double) : sizeof(float);
  const int64_t columns = p->gates * p->hidden, rows = p->steps * p->batch;
  clv__product product = {
      .a_dtype = p->dtype,
      .b_dtype = p->dtype,
      .c_dtype = p->wide ? CLV_F64 : CLV_F32,
      .a = p->x->data,
      .b = (const char *)p->w->data + (size_t)(direction * columns * p->inputs) * clv_dtype_size_bytes(p->dtype),
      .c = (char *)p->projected + (size_t)(direction * rows * columns) * real_bytes,
      .batches = 1,
      .rows = rows,
      .columns = columns,
      .depth = p->inputs,
      .alpha = 1};
  if (rows == 0 || columns == 0) return;
  clv__product_bind(&product, p->product);
  product.a_batch[0] = product.b_batch[0] = product.c_batch[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t t = i / p->batch, b = i % p->batch;
    product.a_row[i] = (p->batch_first ? b * p->steps + t : i) * p->inputs;
    product.c_row[i] = i * columns;
  }
  for (int64_t k = 0; k < p->inputs; ++k) product.a_depth[k] = product.b_depth[k] = k;
  for (int64_t j = 0; j < columns; ++j) {
    product.b_column[j] = j * p->inputs;
    product.c_column[j] = j;
  }
  clv__product_run(&product);
  for (int64_t row = 0; p->bias != NULL && row < rows; ++row) {
    if (p->wide)
      add_biases_f64(p, direction, row);
    else
      add_biases_f32(p, direction, row);
  }
}

static void run_phase(const clv__recurrent *p, int phase, int gates, int64_t step) {
  const int64_t tasks = p->directions * p->panels;
  const int threads = clv__kernel_threads(tasks, (double)tasks * PANEL * gates * (double)p->hidden * (double)p->batch);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (p->wide)
      run_panel_f64(p, phase, gates, step, task);
    else
      run_panel_f32(p, phase, gates, step, task);
  }
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
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "sequence_lens[%lld] is %d where there are %lld steps", (long long)i,
                          (int)length, (long long)p->steps);
  }
  return CLV_OK;
}

static clv_status run_recurrent(const clv__kernel_call *call) {
  clv__recurrent p;
  char reason[160];
  if (!clv__recurrent_read(call, call->scratch, &p)) return clv__error_memory(call->error, SIZE_MAX);
  if (!clv__recurrent_functions(call, &p, reason)) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "%s not supported", reason);
  }
  CLV__TRY(check_lengths(&p, call->error));
  const bool two_phases = p.update != NULL;
  for (int direction = 0; direction < p.directions; ++direction) {
    if (p.wide)
      prepare_f64(&p, direction);
    else
      prepare_f32(&p, direction);
    project(&p, direction);
  }
  pack(&p, 0, 0, two_phases ? 2 : p.gates);
  if (two_phases) pack(&p, 1, 2, 1);
  if (p.y != NULL && p.lengths != NULL) { /* zeros behind the end of a sequence */
    memset(p.y->data, 0, (size_t)clv__dims_count(p.y, 0, 4) * clv_dtype_size_bytes(p.dtype));
  }
  for (int64_t step = 0; step < p.steps; ++step) {
    run_phase(&p, 0, two_phases ? 2 : p.gates, step);
    if (two_phases) run_phase(&p, 1, 1, step);
  }
  write_last(&p, p.last_h, p.h[p.steps & 1]);
  write_last(&p, p.last_c, p.c);
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  clv__recurrent p;
  return clv__recurrent_read(call, NULL, &p) ? p.scratch_bytes : SIZE_MAX;
}

static bool accepts(const clv__kernel_call *call, char reason[160]) {
  clv__recurrent p;
  if (clv__recurrent_read(call, NULL, &p)) return clv__recurrent_functions(call, &p, reason);
  memcpy(reason, "beyond any memory", sizeof "beyond any memory");
  return false;
}

const clv__kernel clv__kernels_recurrent[] = {
    {"", "RNN", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {"", "GRU", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {"", "LSTM", CLV__DTYPES_FLOAT, run_recurrent, scratch_bytes, accepts},
    {.op = NULL},
};
