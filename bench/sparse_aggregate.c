/* Compares the kernels that gather rows along the edges of a graph with the speed of memory. SparseAggregate (mean) and
 * SparseAttention run on an R-MAT graph, alternately with a copy of the features on as many threads. Bandwidths count the
 * bytes that must move if every message is read from memory: 4mF + 4nF + 4m + 8n bytes for a sum over m edges, with n
 * result rows of F columns. A copy counts what it reads and writes. Rows that are read often stay in caches, so a kernel
 * may be faster than a copy.
 *
 *   bench_sparse_aggregate [--scale N] [--edges-per-vertex N] [--columns N] [--heads N] [--rounds N] [--threads N] [--json]
 *                          [--check]
 *
 * The result is compared with sums in double, for random rows. */
#define BENCH "bench_sparse_aggregate"

#include <math.h>
#include <omp.h>
#include <string.h>
#include <time.h>

#include "backends/common/kernels.h"
#include "base/tensor/tensor.h"
#include "bench.h"
#include "gnn/data/graph.h"

enum { MOST_ROUNDS = 101, CHECKED_ROWS = 200, COPY, MEAN, ATTENTION, SUBJECTS };

typedef struct setting {
  uint32_t scale, edges_per_vertex, columns, heads;
  int rounds;
  bool json, only_check;
} setting;

typedef struct bench {
  clv__gnn_graph *graph;
  clv_tensor offsets, sources, scores[2], out;
  int64_t rows, edges, columns, heads;
} bench;

static double read_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static clv_tensor room(clv_dtype dtype, int64_t rows, int64_t columns) {
  clv_tensor made = clv__tensor_make(dtype, 2, (const int64_t[]){rows, columns}, NULL);
  size_t size_bytes;
  if (clv__tensor_size_bytes(&made, &size_bytes)) made.data = clv__allocate(clv__allocator_default(), size_bytes);
  if (made.data != NULL) return made;
  fprintf(stderr, BENCH ": out of memory\n");
  exit(1);
}

/* ---- The timed code ---- */

static void copy(const bench *b) {
  const char *from = b->graph->features.data;
  char *to = b->out.data;
  size_t size_bytes = (size_t)(b->rows * b->columns) * sizeof(float);
#pragma omp parallel
  {
    size_t parts = (size_t)omp_get_num_threads(), part = (size_t)omp_get_thread_num();
    size_t begin = size_bytes / 64 * part / parts * 64,
           end = part + 1 == parts ? size_bytes : size_bytes / 64 * (part + 1) / parts * 64;
    memcpy(to + begin, from + begin, end - begin);
  }
}

static void run_kernel(bench *b, const char *op, const clv_tensor *inputs, uint32_t count, const char *reduce) {
  const clv__kernel *kernel = clv__fast_kernel_find("ai.cleave", op);
  clv_string text = {reduce, strlen(reduce)};
  clv_attribute attribute = {.name = "reduce", .kind = CLV_ATTRIBUTE_STRINGS, .count = 1, .strings = &text};
  clv_error error = {0};
  clv__kernel_call call = {.op = op, .opset = 1, .attributes = {&attribute, 1}, .inputs = inputs, .input_count = count};
  call.outputs = &b->out;
  call.output_count = 1;
  call.error = &error;
  check(clv__kernel_run(kernel, &call, clv__allocator_default()), &error, op);
}

static void run(bench *b, int subject) {
  const clv_tensor *data = &b->graph->features;
  if (subject == COPY) copy(b);
  if (subject == MEAN) run_kernel(b, "SparseAggregate", (const clv_tensor[]){*data, b->offsets, b->sources}, 3, "mean");
  if (subject == ATTENTION)
    run_kernel(b, "SparseAttention", (const clv_tensor[]){*data, b->scores[0], b->scores[1], b->offsets, b->sources}, 5, "");
}

/* ---- Checking the results ---- */

/* The largest error in a row, relative to the sum of the magnitudes that are added up. */
static double row_error(const bench *b, int subject, int64_t v) {
  const clv__csr *csr = &b->graph->csr;
  const float *data = b->graph->features.data, *from = b->scores[0].data, *to = b->scores[1].data, *out = b->out.data;
  int64_t width = b->columns / b->heads;
  double worst = 0;
  for (int64_t c = 0; c < b->columns; ++c) {
    double sum = 0, scale = 0, weights = 0;
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      uint32_t source = csr->sources[e];
      int64_t head = c / width;
      double score = (double)from[source * b->heads + head] + (double)to[v * b->heads + head];
      double weight = subject == MEAN ? 1 : exp(score >= 0 ? score : 0.2 * score);
      double term = weight * (double)data[(int64_t)source * b->columns + c];
      sum += term, scale += fabs(term), weights += weight;
    }
    if (weights > 0) sum /= weights, scale /= weights;
    double off = fabs((double)out[v * b->columns + c] - sum) / (scale + 1e-30);
    if (!(off <= worst)) worst = off;
  }
  return worst;
}

static double check_rows(const bench *b, int subject) {
  double worst = 0;
  for (int64_t i = 0; i < CHECKED_ROWS; ++i) {
    double off = row_error(b, subject, (int64_t)(((uint64_t)i * 2654435761u + 12345u) % (uint64_t)b->rows));
    if (!(off <= worst)) worst = off;
  }
  if (worst <= 1e-5) return worst;
  fprintf(stderr, BENCH ": the error is %g of the sum of magnitudes; at most 1e-5 is allowed\n", worst);
  exit(1);
}

/* ---- Measuring ---- */

static double bytes_of(const bench *b, int subject) {
  double n = (double)b->rows, m = (double)b->edges, columns = (double)b->columns;
  if (subject == COPY) return 8 * n * columns;
  double scores = subject == ATTENTION ? 4 * (m + n) * (double)b->heads : 0;
  return 4 * m * columns + 4 * n * columns + 4 * m + 8 * n + scores;
}

static void open(bench *b, const setting *s) {
  clv_error error = {0};
  check(clv__gnn_graph_generate(clv__allocator_default(), s->scale, s->edges_per_vertex, s->columns, 0, &b->graph, &error),
        &error, "graph");
  const clv__csr *csr = &b->graph->csr;
  b->rows = csr->vertex_count;
  b->edges = (int64_t)csr->edge_count;
  b->columns = s->columns;
  b->heads = s->heads;
  b->offsets = clv__tensor_make(CLV_I64, 1, (const int64_t[]){b->rows + 1}, (void *)(uintptr_t)csr->offsets);
  b->sources = clv__tensor_make(CLV_I32, 1, (const int64_t[]){b->edges}, (void *)(uintptr_t)csr->sources);
  b->out = room(CLV_F32, b->rows, b->columns);
  for (int i = 0; i < 2; ++i) {
    b->scores[i] = room(CLV_F32, b->rows, b->heads);
    float *to = b->scores[i].data;
    for (int64_t k = 0; k < b->rows * b->heads; ++k) to[k] = (float)((k * 7919 + i) % 1000) / 250 - 2;
  }
}

/* Returns a kernel's bandwidth divided by the copy's in the same round: the median over all rounds. */
static double of_copy(const bench *b, const setting *s, double times[SUBJECTS][MOST_ROUNDS], int subject) {
  double ratios[MOST_ROUNDS];
  for (int i = 0; i < s->rounds; ++i) ratios[i] = bytes_of(b, subject) / times[subject][i] / (bytes_of(b, COPY) / times[COPY][i]);
  qsort(ratios, (size_t)s->rounds, sizeof *ratios, compare);
  return ratios[s->rounds / 2];
}

/* CPU times are those of all threads. They are meaningful even on a busy machine. */
static void report(const bench *b, const setting *s, double times[SUBJECTS][MOST_ROUNDS], double cpu_times[SUBJECTS][MOST_ROUNDS],
                   const double errors[SUBJECTS]) {
  static const char *const names[] = {[COPY] = "copy", [MEAN] = "mean", [ATTENTION] = "attention"};
  double ratios[SUBJECTS], cpu_ratios[SUBJECTS];
  for (int k = COPY; k < SUBJECTS; ++k) {
    ratios[k] = of_copy(b, s, times, k);
    cpu_ratios[k] = of_copy(b, s, cpu_times, k);
  }
  for (int k = COPY; k < SUBJECTS; ++k) {
    qsort(times[k], (size_t)s->rounds, sizeof(double), compare);
    double median_ns = times[k][s->rounds / 2], gigabytes = bytes_of(b, k) / median_ns;
    if (s->json)
      printf("%s\"%s\": {\"ms\": %.3f, \"gb_per_s\": %.3f, \"of_copy\": %.4f, \"of_copy_by_cpu_time\": %.4f}",
             k == COPY ? "{" : ", ", names[k], 1e-6 * median_ns, gigabytes, ratios[k], cpu_ratios[k]);
    else
      printf("%-10s %10.2f ms  %7.2f GB/s  %5.2f of a copy (by CPU time %5.2f)  off by %.1e\n", names[k], 1e-6 * median_ns,
             gigabytes, ratios[k], cpu_ratios[k], errors[k]);
  }
  if (s->json)
    printf(", \"vertices\": %lld, \"edges\": %lld, \"columns\": %lld}\n", (long long)b->rows, (long long)b->edges,
           (long long)b->columns);
}

static int usage(void) {
  fprintf(stderr,
          "usage: " BENCH
          " [--scale N] [--edges-per-vertex N] [--columns N] [--heads N] [--rounds N] [--threads N] [--json] [--check]\n");
  return 2;
}

int main(int argc, char **argv) {
  static double times[SUBJECTS][MOST_ROUNDS], cpu_times[SUBJECTS][MOST_ROUNDS];
  setting s = {.scale = 20, .edges_per_vertex = 16, .columns = 128, .heads = 4, .rounds = 9};
  for (int i = 1; i < argc; ++i) {
    int number = i + 1 < argc ? atoi(argv[i + 1]) : 0;
    bool takes = true;
    if (strcmp(argv[i], "--scale") == 0) {
      s.scale = (uint32_t)number;
    } else if (strcmp(argv[i], "--edges-per-vertex") == 0) {
      s.edges_per_vertex = (uint32_t)number;
    } else if (strcmp(argv[i], "--columns") == 0) {
      s.columns = (uint32_t)number;
    } else if (strcmp(argv[i], "--heads") == 0) {
      s.heads = (uint32_t)number;
    } else if (strcmp(argv[i], "--rounds") == 0) {
      s.rounds = number;
    } else if (strcmp(argv[i], "--threads") == 0 && number > 0) {
      omp_set_num_threads(number);
    } else {
      takes = false;
      if (strcmp(argv[i], "--json") == 0)
        s.json = true;
      else if (strcmp(argv[i], "--check") == 0)
        s.only_check = true;
      else
        return usage();
    }
    if (takes && (++i == argc || number < 1)) return usage();
  }
  if (s.only_check) s.scale = 10, s.rounds = 1;
  if (s.rounds > MOST_ROUNDS) s.rounds = MOST_ROUNDS;
  if (s.columns % s.heads != 0) return usage();
  bench b = {.graph = NULL};
  double errors[SUBJECTS] = {0};
  open(&b, &s);
  for (int k = COPY; k < SUBJECTS; ++k) {
    run(&b, k);
    if (k != COPY) errors[k] = check_rows(&b, k);
  }
  for (int i = 0; i < s.rounds; ++i) {
    for (int k = COPY; k < SUBJECTS; ++k) {
      double begin_ns = read_ns(CLOCK_MONOTONIC), begin_cpu_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
      run(&b, k);
      times[k][i] = read_ns(CLOCK_MONOTONIC) - begin_ns;
      cpu_times[k][i] = read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    }
  }
  report(&b, &s, times, cpu_times, errors);
  clv__release(clv__allocator_default(), b.out.data);
  for (int i = 0; i < 2; ++i) clv__release(clv__allocator_default(), b.scores[i].data);
  clv__gnn_graph_destroy(b.graph);
  return 0;
}
