/* Runs the alternative implementations of a step and chooses the fastest: see tune.h. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/clock.h"
#include "tune.h"

enum {
  MOST_WAYS = 4,
  ROUNDS = 7,
  LEAST_NS = 100000, /* minimum duration of a round of one trial, reached by repetition */
  MOST_REPEATS = 64
};
#define FILL 0x3c /* the byte with which all buffers are filled: it forms a small number in every floating-point dtype */

clv__cpu_trial_call *clv__cpu_trial_add(clv__cpu_trial *trial, clv__dnn_primitive *primitive) {
  clv__cpu_trial_call *call = &trial->calls[trial->count++];
  *call = (clv__cpu_trial_call){.primitive = primitive};
  return call;
}

void clv__cpu_trial_operand_add(clv__cpu_trial_call *call, int id, clv__cpu_trial_buffer buffer, const clv__dnn_layout *layout) {
  call->operands[call->count++] = (clv__cpu_trial_operand){id, buffer, layout};
}

void clv__cpu_trial_finish(clv__cpu_trial *trial) {
  for (uint32_t c = 0; c < trial->count; ++c) clv__dnn_primitive_release(trial->calls[c].primitive);
  *trial = (clv__cpu_trial){0};
}

/* ---- Preparing trials ---- */

typedef struct ready {
  const clv__cpu_trial *trial;
  clv__dnn_memory *memories[CLV__CPU_TRIAL_CALLS][CLV__CPU_TRIAL_OPERANDS + 1]; /* one per operand; the last one is scratch */
  uint32_t repeats;
  uint64_t times[ROUNDS];
} ready;

typedef struct measuring {
  clv__cpu_variant *variant;
  void *buffers[CLV__CPU_TRIAL_BUFFERS];
  size_t sizes[CLV__CPU_TRIAL_BUFFERS];
  ready ways[MOST_WAYS];
  uint32_t count;
} measuring;

static void need(measuring *m, clv__cpu_trial_buffer buffer, size_t size_bytes) {
  if (size_bytes > m->sizes[buffer]) m->sizes[buffer] = size_bytes;
}

static clv_status make_buffers(measuring *m, clv_error *error) {
  for (uint32_t w = 0; w < m->count; ++w) {
    const clv__cpu_trial *trial = m->ways[w].trial;
    for (uint32_t c = 0; c < trial->count; ++c) {
      const clv__cpu_trial_call *call = &trial->calls[c];
      for (uint32_t o = 0; o < call->count; ++o) {
        need(m, call->operands[o].buffer, clv__dnn_layout_size_bytes(call->operands[o].layout));
      }
      if (call->primitive != NULL) need(m, CLV__CPU_TRIAL_SCRATCH, call->primitive->scratch_bytes);
    }
  }
  for (uint32_t b = 0; b < CLV__CPU_TRIAL_BUFFERS; ++b) {
    if (m->sizes[b] == 0) continue;
    m->buffers[b] = clv__allocate(m->variant->device->allocator, m->sizes[b]);
    if (m->buffers[b] == NULL) return clv__error_memory(error, m->sizes[b]);
    memset(m->buffers[b], FILL, m->sizes[b]);
  }
  return CLV_OK;
}

static clv_status make_memories(measuring *m, ready *way, clv_error *error) {
  clv__dnn *dnn = m->variant->device->dnn;
  for (uint32_t c = 0; c < way->trial->count; ++c) {
    const clv__cpu_trial_call *call = &way->trial->calls[c];
    if (call->primitive == NULL) continue;
    for (uint32_t o = 0; o < call->count; ++o) {
      const clv__cpu_trial_operand *operand = &call->operands[o];
      CLV__TRY(clv__dnn_memory_create(dnn, operand->layout, m->buffers[operand->buffer], &way->memories[c][o], error));
    }
    if (call->primitive->scratch_bytes == 0) continue;
    CLV__TRY(clv__dnn_memory_create_bytes(dnn, call->primitive->scratch_bytes, m->buffers[CLV__CPU_TRIAL_SCRATCH],
                                          &way->memories[c][call->count], error));
  }
  return CLV_OK;
}

static void finish(measuring *m) {
  for (uint32_t w = 0; w < m->count; ++w) {
    for (uint32_t c = 0; c < CLV__CPU_TRIAL_CALLS; ++c) {
      for (uint32_t o = 0; o <= CLV__CPU_TRIAL_OPERANDS; ++o) clv__dnn_memory_release(m->ways[w].memories[c][o]);
    }
  }
  for (uint32_t b = 0; b < CLV__CPU_TRIAL_BUFFERS; ++b) clv__release(m->variant->device->allocator, m->buffers[b]);
}

/* ---- Running ---- */

static clv_status run_call(const measuring *m, const clv__cpu_trial_call *call, clv__dnn_memory *const *memories,
                           clv_error *error) {
  if (call->primitive == NULL) {
    clv_tensor operands[CLV__CPU_TRIAL_OPERANDS];
    memset(operands, 0, sizeof operands);
    for (uint32_t o = 0; o < call->count; ++o) operands[o].data = m->buffers[call->operands[o].buffer];
    clv__cpu_kernels()->row_run(call->row, operands, NULL);
    return CLV_OK;
  }
  clv__dnn_argument arguments[CLV__CPU_TRIAL_OPERANDS + 1];
  uint32_t count = 0;
  for (; count < call->count; ++count) arguments[count] = (clv__dnn_argument){call->operands[count].id, memories[count]};
  if (memories[count] != NULL) {
    arguments[count] = (clv__dnn_argument){CLV__DNN_SCRATCH, memories[count]};
    ++count;
  }
  return clv__dnn_execute(m->variant->device->dnn, call->primitive, arguments, count, error);
}

/* Measures the time per run, over `repeats` runs. */
static clv_status time_way(const measuring *m, const ready *way, uint32_t repeats, uint64_t *time_ns, clv_error *error) {
  const uint64_t start = clv__clock_ns();
  for (uint32_t r = 0; r < repeats; ++r) {
    for (uint32_t c = 0; c < way->trial->count; ++c) {
      CLV__TRY(run_call(m, &way->trial->calls[c], way->memories[c], error));
    }
  }
  *time_ns = (clv__clock_ns() - start) / repeats;
  return CLV_OK;
}

static int compare_times(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static clv_status measure(measuring *m, uint64_t *medians, clv_error *error) {
  for (uint32_t w = 0; w < m->count; ++w) { /* the first run only warms up: the second decides the number of repeats */
    uint64_t first, second;
    CLV__TRY(time_way(m, &m->ways[w], 1, &first, error));
    CLV__TRY(time_way(m, &m->ways[w], 1, &second, error));
    const uint64_t repeats = LEAST_NS / (second + 1) + 1;
    m->ways[w].repeats = repeats < MOST_REPEATS ? (uint32_t)repeats : MOST_REPEATS;
  }
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    for (uint32_t w = 0; w < m->count; ++w) {
      CLV__TRY(time_way(m, &m->ways[w], m->ways[w].repeats, &m->ways[w].times[round], error));
    }
  }
  for (uint32_t w = 0; w < m->count; ++w) {
    qsort(m->ways[w].times, ROUNDS, sizeof *m->ways[w].times, compare_times);
    medians[w] = m->ways[w].times[ROUNDS / 2];
  }
  return CLV_OK;
}

/* ---- Choosing ---- */

static void log_choice(const clv_device *device, const char *step, const char *choice, const char *why) {
  char line[640];
  if (device->host->log == NULL) return;
  snprintf(line, sizeof line, "%.40s: %.300s: %s, %.200s", device->name, step, choice, why);
  device->host->log(device->host->self, 2, line);
}

bool clv__cpu_tune_kept(const clv__cpu_variant *variant, const char *step, const char *const *names, uint32_t count,
                        uint32_t *chosen) {
  char choice[CLV__CPU_CHOICE_ROOM];
  if (!clv__cpu_notes_find(variant->device->notes, step, choice)) return false;
  for (uint32_t w = 0; w < count; ++w) {
    if (strcmp(names[w], choice) != 0) continue;
    *chosen = w;
    log_choice(variant->device, step, choice, "as stored");
    return true;
  }
  return false;
}

clv_status clv__cpu_tune(clv__cpu_variant *variant, const char *step, const clv__cpu_trial *trials, uint32_t count,
                         uint32_t *chosen, clv_error *error) {
  uint64_t medians[MOST_WAYS];
  char why[200] = "measured:";
  measuring m = {.variant = variant, .count = count < MOST_WAYS ? count : MOST_WAYS};
  for (uint32_t w = 0; w < m.count; ++w) m.ways[w].trial = &trials[w];
  const int threads = clv__cpu_threads_enter_packing(SIZE_MAX);
  clv_status status = make_buffers(&m, error);
  for (uint32_t w = 0; w < m.count && status == CLV_OK; ++w) status = make_memories(&m, &m.ways[w], error);
  if (status == CLV_OK) status = measure(&m, medians, error);
  finish(&m);
  clv__cpu_threads_leave_one(threads);
  if (status != CLV_OK) return status;
  *chosen = 0;
  for (uint32_t w = 0; w < m.count; ++w) {
    const size_t at = strlen(why);
    snprintf(why + at, sizeof why - at, "%s %s %.1f us", w > 0 ? "," : "", trials[w].name, (double)medians[w] / 1000.0);
    if (medians[w] < medians[*chosen]) *chosen = w;
  }
  log_choice(variant->device, step, trials[*chosen].name, why);
  clv__cpu_notes_add(variant->device->notes, step, trials[*chosen].name);
  return CLV_OK;
}
