/* A planned instance: its launch list, and the memory for values between steps, provided by the host or owned. An execution
 * updates the addresses of bindings that changed and walks the list. It allocates only on first use: that memory, and memory for
 * copies of unaligned bindings. */
#include <stdio.h>

#include "base/text.h"
#include "executable.h"
#include "list.h"

uint64_t clv__cpu_run_bytes(const clv__cpu_run *run) {
  return run->variant->memory_bytes;
}

clv_status clv__cpu_run_create(const clv__cpu_variant *variant, clv__cpu_run **run, clv_error *error) {
  const clv_allocator *allocator = variant->device->allocator;
  *run = NULL;
  clv__cpu_run *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->variant = variant;
  clv_status status = clv__cpu_list_create(variant, NULL, &made->list, error);
  if (status == CLV_OK && variant->device->profile) status = clv__cpu_run_time(made, true, error);
  if (status != CLV_OK) {
    clv__cpu_run_destroy(made);
    return status;
  }
  *run = made;
  return CLV_OK;
}

/* The array of times stays allocated when timing ends, because lists captured meanwhile write to it. */
clv_status clv__cpu_run_time(clv__cpu_run *run, bool on, clv_error *error) {
  const size_t size_bytes = (run->variant->step_count + 1) * sizeof *run->step_ns;
  if (on && run->step_ns == NULL) {
    run->step_ns = clv__allocate_zero(run->variant->device->allocator, size_bytes);
    if (run->step_ns == NULL) return clv__error_memory(error, size_bytes);
  }
  if (on) memset(run->step_ns, 0, size_bytes);
  if (on) run->executions = 0;
  run->list->step_ns = on || run->variant->device->profile ? run->step_ns : NULL;
  return CLV_OK;
}

static void log_profile(const clv__cpu_run *run) {
  const clv_host *host = run->variant->device->host;
  if (host->log == NULL || run->executions == 0) return;
  char line[256];
  uint64_t total_ns = 0;
  for (size_t s = 0; s < run->variant->step_count; ++s) {
    const clv__cpu_step *step = &run->variant->steps[s];
    const uint64_t ns = run->step_ns[s];
    total_ns += ns;
    snprintf(line, sizeof line, "%9.1f us  %-20s %-32s %.120s", (double)ns / 1e3 / (double)run->executions, step->what,
             step->primitive != NULL ? step->primitive->implementation : "kernel", step->node != NULL ? step->node->name : "");
    host->log(host->self, 2, line);
  }
  snprintf(line, sizeof line, "%9.1f us  in total, %zu steps, %zu bytes of memory (lower bound: %zu bytes)",
           (double)total_ns / 1e3 / (double)run->executions, run->variant->step_count, run->variant->memory_bytes,
           run->variant->least_memory_bytes);
  host->log(host->self, 2, line);
}

void clv__cpu_run_destroy(clv__cpu_run *run) {
  if (run == NULL) return;
  const clv_allocator *allocator = run->variant->device->allocator;
  if (run->step_ns != NULL && run->variant->device->profile) log_profile(run);
  clv__cpu_list_destroy(run->list);
  clv__release(allocator, run->step_ns);
  clv__release(allocator, run->own_memory);
  clv__release(allocator, run);
}

/* ---- The memory for values between steps. ---- */

clv_status clv__cpu_run_place(clv__cpu_run *run, void *memory, clv_error *error) {
  run->memory = NULL; /* stays NULL until the whole list has moved */
  run->placed++;
  atomic_fetch_add_explicit(&run->variant->device->changes, 1, memory_order_release);
  CLV__TRY(clv__cpu_list_place(run->list, memory, error));
  run->memory = memory;
  if (memory == run->own_memory) return CLV_OK;
  clv__release(run->variant->device->allocator, run->own_memory);
  run->own_memory = NULL;
  return CLV_OK;
}

clv_status clv__cpu_run_ready(clv__cpu_run *run, clv_error *error) {
  if (run->memory != NULL) return CLV_OK;
  const size_t size_bytes = run->variant->memory_bytes;
  if (run->own_memory == NULL) run->own_memory = clv__allocate(run->variant->device->allocator, size_bytes);
  if (run->own_memory == NULL) return clv__error_memory(error, size_bytes);
  return clv__cpu_run_place(run, run->own_memory, error);
}

/* ---- Execution. ---- */

clv_status clv__cpu_run_execute(clv__cpu_run *run, clv_execute_args *args, const clv__stop *stop, clv_error *error) {
  CLV__TRY(clv__cpu_run_ready(run, error));
  CLV__TRY(clv__cpu_list_bind(run->list, args, error));
  CLV__TRY(clv__cpu_list_run(run->list, stop, error));
  run->executions++;
  return CLV_OK;
}
