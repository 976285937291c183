/* Measures the memory and time of reading graphs. An R-MAT graph is written in every format, and each file is read by a process
 * of its own, whose peak memory is compared with the size of the loaded rows (offsets and sources).
 *
 *   bench_graph_load [--scale S] [--edges-per-vertex E] [--folder DIR] [--check]
 *
 * --check: a small graph; fails if the peak exceeds twice the rows plus a constant for buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "gnn/data/graph.h"

enum { BUFFER_BYTES = 40 << 20 }; /* allowance for buffers and the program itself, for any size of graph */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double peak_bytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * (double)usage.ru_maxrss;
}

/* In a child process: reads the file, prints time and memory, and checks the number of edges and, if `check`, the memory.
 * Returns the exit status. */
static int read_one(const char *path, bool check, uint64_t expected_edges) {
  clv_error error = {0};
  clv__gnn_graph *graph;
  double begin_s = now_s();
  if (clv__gnn_graph_read(clv__allocator_default(), path, &graph, &error) != CLV_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  double seconds = now_s() - begin_s, peak = peak_bytes();
  double rows = 8.0 * (graph->csr.vertex_count + 1.0) + 4.0 * (double)graph->csr.edge_count;
  struct stat info = {0};
  if (stat(path, &info) != 0) return 1;
  printf("%-10s %8.1f MB file  %6.1f s  %7.1f M edges/s  peak %8.1f MB  rows %8.1f MB  ratio %.2f\n", strrchr(path, '.'),
         (double)info.st_size / 1e6, seconds, (double)graph->csr.edge_count / seconds / 1e6, peak / 1e6, rows / 1e6, peak / rows);
  bool right = graph->csr.edge_count == expected_edges;
  clv__gnn_graph_destroy(graph);
  if (!right) fprintf(stderr, "%s: the number of edges differs from that of the edges written\n", path);
  if (check && peak > 2 * rows + BUFFER_BYTES) {
    fprintf(stderr, "%s: the peak of %.1f MB exceeds twice the rows of %.1f MB by more than 40 MiB\n", path, peak / 1e6,
            rows / 1e6);
    right = false;
  }
  return right ? 0 : 1;
}

/* Writes the decimal digits of `number` at `to`; returns their end. */
static char *put_number(char *to, uint32_t number) {
  char digits[10];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

static bool write_text(const clv__csr *csr, const char *path, bool packed) {
  FILE *plain = packed ? NULL : fopen(path, "wb");
  gzFile zip = packed ? gzopen(path, "wb1") : NULL;
  char line[32];
  bool done = plain != NULL || zip != NULL;
  for (uint32_t v = 0; done && v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; done && e < csr->offsets[v + 1]; ++e) {
      char *end = put_number(line, csr->sources[e]);
      *end++ = ' ';
      end = put_number(end, v);
      *end++ = '\n';
      size_t length = (size_t)(end - line);
      done = packed ? gzwrite(zip, line, (unsigned)length) == (int)length : fwrite(line, 1, length, plain) == length;
    }
  }
  if (plain != NULL) done = fclose(plain) == 0 && done;
  if (zip != NULL) done = gzclose(zip) == Z_OK && done;
  return done;
}

/* Writes the sources of each vertex's in-edges on one line. The header of a METIS file has half the number of neighbours in the
 * file. If the number of edges is odd, one more neighbour is written. Sets `edge_count` to the number of neighbours in the
 * file. */
static bool write_metis(const clv__csr *csr, const char *path, uint64_t *edge_count) {
  FILE *file = fopen(path, "wb");
  char word[16];
  if (file == NULL) return false;
  bool odd = csr->edge_count % 2 != 0;
  *edge_count = csr->edge_count + odd;
  fprintf(file, "%u %llu\n", csr->vertex_count, (unsigned long long)(*edge_count / 2));
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e) {
      char *end = put_number(word, csr->sources[e] + 1);
      *end++ = ' ';
      fwrite(word, 1, (size_t)(end - word), file);
    }
    fputs(odd && v == 0 ? "1\n" : "\n", file);
  }
  return fclose(file) == 0;
}

static int start_child(const char *self, const char *path, uint64_t edge_count, bool check) {
  char edges[32];
  int status = 0;
  snprintf(edges, sizeof edges, "%llu", (unsigned long long)edge_count);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execl(self, self, "read", path, edges, check ? "check" : "show", (char *)NULL);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  unlink(path);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run(uint32_t scale, uint32_t edges_per_vertex, const char *folder, bool check, const char *self) {
  static const char *const endings[] = {"npz", "txt", "gz", "graph"};
  clv_error error = {0};
  clv__gnn_graph *graph;
  char path[512];
  int failed = 0;
  double begin_s = now_s();
  if (clv__gnn_graph_generate(clv__allocator_default(), scale, edges_per_vertex, 0, 1, &graph, &error) != CLV_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  double rows = 8.0 * (graph->csr.vertex_count + 1.0) + 4.0 * (double)graph->csr.edge_count;
  printf("generated  %25.1f s  %7.1f M edges/s  peak %8.1f MB  rows %8.1f MB  ratio %.2f\n", now_s() - begin_s,
         (double)graph->csr.edge_count / (now_s() - begin_s) / 1e6, peak_bytes() / 1e6, rows / 1e6, peak_bytes() / rows);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
    uint64_t edge_count = graph->csr.edge_count;
    snprintf(path, sizeof path, "%s/cleave-bench-%ld.%s", folder, (long)getpid(), endings[i]);
    bool written = i == 0   ? clv__gnn_graph_write(graph, path, &error) == CLV_OK
                   : i == 3 ? write_metis(&graph->csr, path, &edge_count)
                            : write_text(&graph->csr, path, i == 2);
    if (!written) fprintf(stderr, "%s: cannot be written\n", path);
    failed |= written ? start_child(self, path, edge_count, check) : 1;
  }
  printf("written    peak of this process %.1f MB\n", peak_bytes() / 1e6);
  clv__gnn_graph_destroy(graph);
  return failed;
}

int main(int count, char **arguments) {
  uint32_t scale = 20, edges_per_vertex = 16;
  const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
  bool check = false;
  if (count == 5 && strcmp(arguments[1], "read") == 0) {
    return read_one(arguments[2], strcmp(arguments[4], "check") == 0, strtoull(arguments[3], NULL, 10));
  }
  for (int i = 1; i < count; ++i) {
    if (strcmp(arguments[i], "--check") == 0) {
      check = true;
      scale = 18;
    } else if (i + 1 < count && strcmp(arguments[i], "--scale") == 0) {
      scale = (uint32_t)strtoul(arguments[++i], NULL, 10);
    } else if (i + 1 < count && strcmp(arguments[i], "--edges-per-vertex") == 0) {
      edges_per_vertex = (uint32_t)strtoul(arguments[++i], NULL, 10);
    } else if (i + 1 < count && strcmp(arguments[i], "--folder") == 0) {
      folder = arguments[++i];
    } else {
      fprintf(stderr, "usage: bench_graph_load [--scale S] [--edges-per-vertex E] [--folder DIR] [--check]\n");
      return 2;
    }
  }
  return run(scale, edges_per_vertex, folder, check, "/proc/self/exe");
}
