/* Runs a plan of GNN inference on request, with all tensors in memory. gnn_torch.py runs it in turn with PyTorch.
 *
 *   bench_gnn_worker --model FILE --graph FILE --plan FILE [--devices LIST] [--threads N]
 *
 * Reads commands, one per line, and answers each with a line. "run": runs the plan and answers with its seconds and the CPU
 * seconds of all threads. "write FILE": writes the last result as raw f32 and answers "done". "memory": answers with two
 * numbers: the resident bytes before anything was loaded, and the peak of the resident bytes. */
#define BENCH "bench_gnn_worker"

#include <string.h>
#include <time.h>

#include "base/tensor/tensor.h"
#include "bench.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "gnn/planning.h"
#include "gnn/run/run.h"

enum { LINE_BYTES = 4096 };

typedef struct worker {
  clv_context *context;
  clv_devices *devices;
  clv__gnn_model *model;
  clv__gnn_graph *graph;
  clv__gnn_plan *plan;
  clv__partitioned partitioned;
  clv__gnn_schedule schedule;
  clv__arena arena;
  clv__gnn_run *run;
  clv_tensor out;
} worker;

static double read_s(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Reads a size from /proc/self/status; returns bytes. */
static double status_bytes(const char *name) {
  char line[256];
  double bytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) bytes = 1024 * strtod(line + strlen(name) + 1, NULL);
  }
  if (file != NULL) fclose(file);
  return bytes;
}

static void open(worker *w, const char *model, const char *graph, const char *plan, const clv_devices_options *list) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  const char *reason;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  check(clv_context_create(&options, &w->context, &error), &error, "context");
  check(clv_devices_open(w->context, list, &w->devices, &error), &error, "devices");
  check(clv__gnn_model_read(allocator, model, &w->model, &error), &error, model);
  check(clv__gnn_graph_read(allocator, graph, &w->graph, &error), &error, graph);
  check(clv__gnn_plan_read(allocator, plan, &w->plan, &error), &error, plan);
  check(clv__gnn_plan_subgraphs(allocator, w->plan, w->model, w->graph, NULL, clv__context_cache(w->context, &reason),
                                &w->partitioned, &error),
        &error, plan);
  clv__arena_init(&w->arena, allocator);
  check(clv__gnn_schedule_of(&w->arena, w->plan, &w->schedule, &error), &error, plan);
  check(clv__gnn_run_create(w->devices, w->model, w->graph, &w->partitioned, &w->schedule, &w->run, &error), &error, plan);
  const int64_t dims[] = {w->graph->csr.vertex_count, clv__gnn_layer_width(&w->model->layers[w->model->layer_count - 1])};
  size_t size_bytes;
  w->out = clv__tensor_make(CLV_F32, 2, dims, NULL);
  if (clv__tensor_size_bytes(&w->out, &size_bytes)) w->out.data = clv__allocate(allocator, size_bytes);
  if (w->out.data == NULL) check(CLV_OUT_OF_MEMORY, &error, "result");
}

static void finish(worker *w) {
  clv__gnn_run_destroy(w->run);
  clv__partitioned_finish(&w->partitioned);
  clv__release(clv__allocator_default(), w->out.data);
  clv__gnn_plan_destroy(w->plan);
  clv__gnn_graph_destroy(w->graph);
  clv__gnn_model_destroy(w->model);
  clv__arena_finish(&w->arena);
  clv_devices_close(w->devices);
  clv_context_destroy(w->context);
}

static void run(worker *w) {
  clv_error error = {0};
  double begin_s = read_s(CLOCK_MONOTONIC), begin_cpu_s = read_s(CLOCK_PROCESS_CPUTIME_ID);
  check(clv__gnn_run_execute(w->run, NULL, &w->out, NULL, &error), &error, "run");
  double took_s = read_s(CLOCK_MONOTONIC) - begin_s;
  printf("%.6f %.6f\n", took_s, read_s(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_s);
}

static void write_out(const worker *w, const char *path) {
  size_t size_bytes = 0;
  FILE *file = fopen(path, "wb");
  clv__tensor_size_bytes(&w->out, &size_bytes);
  bool done = file != NULL && fwrite(w->out.data, 1, size_bytes, file) == size_bytes;
  if (file != NULL && fclose(file) != 0) done = false;
  if (!done) {
    fprintf(stderr, BENCH ": %s: cannot be written\n", path);
    exit(1);
  }
  printf("done\n");
}

int main(int argc, char **argv) {
  const char *model = NULL, *graph = NULL, *plan = NULL;
  clv_devices_options list = CLV_DEVICES_OPTIONS_INIT;
  list.list = "cpu";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--model") == 0) model = argv[i + 1];
    if (strcmp(argv[i], "--graph") == 0) graph = argv[i + 1];
    if (strcmp(argv[i], "--plan") == 0) plan = argv[i + 1];
    if (strcmp(argv[i], "--devices") == 0) list.list = argv[i + 1];
    if (strcmp(argv[i], "--threads") == 0) list.thread_count = (uint32_t)atoi(argv[i + 1]);
  }
  if (model == NULL || graph == NULL || plan == NULL) {
    fprintf(stderr, "usage: " BENCH " --model FILE --graph FILE --plan FILE [--devices LIST] [--threads N]\n");
    return 2;
  }
  static worker w;
  char line[LINE_BYTES];
  double before = status_bytes("VmRSS:");
  open(&w, model, graph, plan, &list);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "run") == 0)
      run(&w);
    else if (strncmp(line, "write ", 6) == 0)
      write_out(&w, line + 6);
    else if (strcmp(line, "memory") == 0)
      printf("%.0f %.0f\n", before, status_bytes("VmHWM:"));
    fflush(stdout);
  }
  finish(&w);
  return 0;
}
