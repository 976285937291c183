/* Makes the options, devices, prices and graphs of the benchmark: see gnn_flickr.h. */
#include <math.h>
#include <string.h>

#define BENCH "gnn_flickr"
#include "base/files/file.h"
#include "base/random.h"
#include "bench.h"
#include "cleave/devices.h"
#include "gnn_flickr.h"

static void need(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, BENCH ": %s\n", what);
  exit(1);
}

/* ---- Options ---- */

bool flickr_options_read(flickr_options *options, int count, char **arguments) {
  *options = (flickr_options){
      .data = CLEAVE_SOURCE_DIR "/../shared/data/gnx", .from = 1, .to = FLICKR_MOST_K, .width = 64, .runs = 3, .time_scale = 4};
  for (int i = 1; i < count; ++i) {
    const char *name = arguments[i], *text = i + 1 < count ? arguments[i + 1] : "";
    bool takes = true;
    if (strcmp(name, "--data") == 0)
      options->data = text;
    else if (strcmp(name, "--profile") == 0)
      options->profile = text;
    else if (strcmp(name, "--prices") == 0)
      takes = sscanf(text, "%u..%u", &options->prices_from, &options->prices_to) == 2;
    else if (strcmp(name, "--kset") == 0)
      takes = sscanf(text, "%u..%u", &options->from, &options->to) == 2;
    else if (strcmp(name, "--width") == 0)
      options->width = (uint32_t)atoi(text);
    else if (strcmp(name, "--time-scale") == 0)
      options->time_scale = atof(text);
    else if (strcmp(name, "--runs") == 0)
      options->runs = (uint32_t)atoi(text);
    else {
      options->json = options->json || strcmp(name, "--json") == 0;
      options->verbose = options->verbose || strcmp(name, "-v") == 0;
      options->is_check = options->is_check || strcmp(name, "--check") == 0;
      options->planning = options->planning || strcmp(name, "--planning") == 0;
      static const char *const flags[] = {"--json", "-v", "--check", "--planning"};
      bool known = false;
      for (size_t f = 0; f < sizeof flags / sizeof *flags; ++f) known = known || strcmp(name, flags[f]) == 0;
      if (!known) return false;
      continue;
    }
    if (!takes || *text == '\0') return false;
    ++i;
  }
  if (options->is_check) options->from = 3, options->to = 5, options->runs = 1, options->width = 8, options->time_scale = 0.2;
  return options->from >= 1 && options->from <= options->to && options->to <= FLICKR_MOST_K && options->width > 0 &&
         options->width <= FLICKR_COLUMNS && options->runs <= 15 && options->time_scale > 0 &&
         options->prices_from <= options->prices_to && (options->prices_to == 0 || options->planning || options->runs == 0);
}

/* ---- Tables ---- */

static bool open_file(const flickr_options *options, const char *name, clv__file_map *map) {
  clv_error error = {0};
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", options->data, name);
  return clv__file_map_open(path, map, &error) == CLV_OK;
}

bool flickr_import(const flickr_options *options, const char *layer, clv__tables *tables) {
  static const clv__import_column columns[] = {
      {"cpu_ms", "vcpu", 0, 4, true}, {"gpu_ms", "vgpu", 0, 4, true}, {"npu_ms", "vnpu", 4, 7, false}};
  clv_error error = {0};
  clv__file_map map;
  if (!open_file(options, "profile_185h_fused.csv", &map)) return false;
  check(clv__tables_import(tables, layer, columns, 3, (const char *)map.data, map.size_bytes, "profile", &error), &error,
        "import");
  clv__file_map_close(&map);
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    for (uint32_t p = 0; p < tables->tables[t].point_count; ++p) {
      clv__table_point *point = &tables->tables[t].points[p];
      if (point->origin == CLV__IMPORTED) point->time_ns *= options->time_scale, point->spread_ns *= options->time_scale;
    }
  }
  check(clv__tables_fit(tables, &error), &error, "fit");
  return true;
}

/* ---- Devices ---- */

/* Assumed peak rates, for stages that were not measured. */
typedef struct assumed {
  double flops, bytes; /* per second */
} assumed;
static const assumed of_cpu = {1e11, 4e10}, of_gpu = {1e12, 7e10};
#define COPY_BYTES_PER_SECOND 1e10
#define COPY_LATENCY_US 20.0
#define NPU_GATHER_NS 40.0 /* per edge */
#define ALONE 1.5          /* factor for gathering alone, because it writes what it gathers */

static double scattered(double figure, uint64_t *state) {
  return figure * (1 + 0.02 * (2 * clv__random_real(state) - 1));
}

static void append_figures(clv__text *text, const char *op, double per_row, double per_edge) {
  clv__text_append(text, "\"%s\": {\"ns_per_row\": %.9g, \"ns_per_edge\": %.9g}, ", op, per_row, per_edge);
}

static void append_end(clv__text *text) {
  static const char *const free_of_cost[] = {"Max", "Reciprocal", "Slice", "Sub",
                                             "Cast"}; /* they compute at most one number per row */
  for (size_t i = 0; i < sizeof free_of_cost / sizeof *free_of_cost; ++i)
    clv__text_append(text, "%s\"%s\": {}", i > 0 ? ", " : "", free_of_cost[i]);
  clv__text_append(text, "}}}");
}

static void append_speed(clv__text *text, const flickr_options *options, double base_ns) {
  double rate = COPY_BYTES_PER_SECOND * options->width / FLICKR_COLUMNS;
  clv__text_append(text,
                   "\"speed\": {\"launch_overhead_us\": %.9g, \"copy_latency_us\": %g, \"copy_bytes_per_second\": %.9g, "
                   "\"time_scale\": %.9g, \"operators\": {",
                   base_ns / 1e3, COPY_LATENCY_US, rate, options->time_scale);
}

/* Describes a device that runs every operator on any shape. */
static void describe_open(clv__text *text, const flickr_options *options, const char *name, const char *space,
                          const clv__block_table *table, const assumed *peaks, uint64_t *state) {
  double row_bytes = 4.0 * FLICKR_COLUMNS, products = 2.0 * FLICKR_COLUMNS * FLICKR_COLUMNS;
  clv__text_append(
      text,
      "{\"name\": \"%s\", \"description\": \"virtual, partly synthetic\", \"memory_space\": \"%s\", \"operators\": \"all\", ",
      name, space);
  append_speed(text, options, table->time.base);
  append_figures(text, "ai.cleave:SparseAggregate", table->time.per_n, table->time.per_m);
  append_figures(text, "Gather", 0, scattered(ALONE * (table->time.per_m + table->time.per_n / 10), state));
  append_figures(text, "Gemm", scattered(products * 1e9 / peaks->flops, state), 0);
  append_figures(text, "Mul", scattered(2 * row_bytes * 1e9 / peaks->bytes, state), 0);
  append_figures(text, "Add", scattered(3 * row_bytes * 1e9 / peaks->bytes, state), 0);
  append_figures(text, "Relu", scattered(2 * row_bytes * 1e9 / peaks->bytes, state), 0);
  append_end(text);
}

/* Describes a device that needs fixed shapes and cannot sum over edges. */
static void describe_npu(clv__text *text, const flickr_options *options, const clv__block_table *table, uint64_t *state) {
  double row = table->time.per_n;
  clv__text_append(text,
                   "{\"name\": \"vnpu\", \"description\": \"virtual, partly synthetic\", \"static_shapes\": true, \"operators\": "
                   "{\"Gather\": {}, \"Identity\": {}, \"Max\": {}, \"Reciprocal\": {}, \"Mul\": {}, \"Gemm\": {}, \"Add\": {}, "
                   "\"Relu\": {}}, ");
  append_speed(text, options, table->time.base);
  append_figures(text, "Gather", 0, scattered(NPU_GATHER_NS, state));
  append_figures(text, "Gemm", 0.42 * row, 0);
  append_figures(text, "Mul", 0.06 * row, 0);
  append_figures(text, "Add", 0.06 * row, 0);
  append_figures(text, "Relu", 0.04 * row, 0);
  append_end(text);
}

static bool describe(const flickr_options *options, clv__text texts[3]) {
  clv__tables tables;
  flickr_options plain = *options;
  uint64_t state = FLICKR_SEED;
  plain.time_scale = 1;
  clv__tables_init(&tables, clv__allocator_default());
  bool is_there = flickr_import(&plain, "l", &tables);
  for (int i = 0; i < 3; ++i) clv__text_init(&texts[i], clv__allocator_default());
  if (is_there) {
    const clv__block_table *cpu = clv__tables_find(&tables, "vcpu", "l", 0, 4),
                           *gpu = clv__tables_find(&tables, "vgpu", "l", 0, 4),
                           *npu = clv__tables_find(&tables, "vnpu", "l", 4, 7);
    need(cpu != NULL && gpu != NULL && npu != NULL && cpu->time.is_good && gpu->time.is_good && npu->time.is_good,
         "the times in profile_185h_fused.csv give no usable fits");
    describe_open(&texts[0], options, "vcpu", "host", cpu, &of_cpu, &state);
    describe_open(&texts[1], options, "vgpu", "vgpu", gpu, &of_gpu, &state);
    describe_npu(&texts[2], options, npu, &state);
    need(!texts[0].failed && !texts[1].failed && !texts[2].failed, "out of memory");
  }
  clv__tables_finish(&tables);
  return is_there;
}

static clv_tensor weight(uint32_t rows, uint32_t columns, uint64_t *state) {
  float *data = malloc((size_t)rows * columns * sizeof *data);
  need(data != NULL, "out of memory");
  for (size_t i = 0; i < (size_t)rows * columns; ++i) data[i] = (float)((clv__random_real(state) - 0.5) / sqrt(columns));
  return clv__tensor_make(CLV_F32, rows == 1 ? 1 : 2, rows == 1 ? (const int64_t[]){columns} : (const int64_t[]){rows, columns},
                          data);
}

bool flickr_machine_open(const flickr_options *options, flickr_machine *machine) {
  clv_error error = {0};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  clv__text texts[3];
  uint64_t state = FLICKR_SEED;
  *machine = (flickr_machine){.layer = {.in = options->width, .out = options->width, .heads = 1, .concat = true}};
  bool is_there = describe(options, texts);
  if (is_there) {
    const char *specs[] = {texts[0].data, texts[1].data, texts[2].data};
    context_options.cache_directory = "";
    check(clv_context_create(&context_options, &machine->context, &error), &error, "context");
    devices.thread_count = 1; /* three devices run at the same time */
    check(clv_devices_open(machine->context, &devices, &machine->reference, &error), &error, "cpu");
    devices.list = "vcpu,vgpu,vnpu";
    devices.npu_specs = specs;
    devices.npu_spec_count = 3;
    check(clv_devices_open(machine->context, &devices, &machine->devices, &error), &error, "devices");
    machine->layer.activation = CLV__GNN_RELU;
    machine->layer.neighbour = weight(options->width, options->width, &state);
    machine->layer.self = weight(options->width, options->width, &state);
    machine->layer.bias = weight(1, options->width, &state);
    machine->model = (clv__gnn_model){.type = CLV__GNN_SAGE, .layer_count = 1, .layers = &machine->layer};
  }
  for (int i = 0; i < 3; ++i) clv__text_finish(&texts[i]);
  return is_there;
}

void flickr_machine_close(flickr_machine *machine) {
  clv_devices_close(machine->devices);
  clv_devices_close(machine->reference);
  clv_context_destroy(machine->context);
  free(machine->layer.neighbour.data);
  free(machine->layer.self.data);
  free(machine->layer.bias.data);
}

/* ---- Graphs ---- */

typedef struct part_sizes {
  unsigned owned, halo, inner, boundary;
} part_sizes;

static bool read_sizes(const flickr_options *options, uint32_t k, part_sizes *sizes) {
  clv__file_map map;
  uint32_t found = 0;
  if (!open_file(options, "metis_subgraphs.csv", &map)) return false;
  for (size_t at = 0, end; at < map.size_bytes; at = end + 1) {
    char line[256];
    unsigned its_k, index;
    part_sizes read;
    for (end = at; end < map.size_bytes && map.data[end] != '\n';) ++end;
    snprintf(line, sizeof line, "%.*s", (int)(end - at), (const char *)map.data + at);
    if (sscanf(line, "flickr,%u,%u,%u,%u,%u,%u", &its_k, &index, &read.owned, &read.halo, &read.inner, &read.boundary) != 6 ||
        its_k != k || index >= k)
      continue;
    sizes[index] = read;
    ++found;
  }
  clv__file_map_close(&map);
  return found == k;
}

/* Draws the edges of one part, whose vertices are mine[0] to mine[owned - 1]. `others` are all other vertices. */
static uint32_t draw_edges(const part_sizes *sizes, const uint32_t *mine, uint32_t *others, uint32_t other_count, uint64_t *state,
                           uint32_t *sources, uint32_t *destinations) {
  uint32_t halo = sizes->halo < other_count ? sizes->halo : other_count, used = 0;
  if (halo > sizes->boundary) halo = sizes->boundary;
  for (uint32_t h = 0; h < halo; ++h) { /* draws `halo` vertices outside the part, and moves them to the front of `others` */
    uint32_t at = h + clv__random_below(state, other_count - h), kept = others[h];
    others[h] = others[at], others[at] = kept;
  }
  for (uint32_t e = 0; e < sizes->boundary && halo > 0; ++e, ++used)
    sources[used] = others[e < halo ? e : clv__random_below(state, halo)],
    destinations[used] = mine[clv__random_below(state, sizes->owned)];
  for (uint32_t e = 0; e < sizes->inner; ++e, ++used)
    sources[used] = mine[clv__random_below(state, sizes->owned)],
    destinations[used] = mine[clv__random_below(state, sizes->owned)];
  return used;
}

static clv_tensor draw_features(uint32_t n, uint32_t width, uint64_t *state) {
  float *data = malloc((size_t)n * width * sizeof *data);
  need(data != NULL, "out of memory");
  for (size_t i = 0; i < (size_t)n * width; ++i) data[i] = (float)clv__random_real(state) - 0.5f;
  return clv__tensor_make(CLV_F32, 2, (const int64_t[]){n, width}, data);
}

bool flickr_graph_make(const flickr_options *options, uint32_t k, flickr_graph *made) {
  part_sizes sizes[FLICKR_MOST_K];
  clv_error error = {0};
  uint64_t state = FLICKR_SEED + k, edges = 0;
  uint32_t n = 0, at = 0, count = 0;
  *made = (flickr_graph){.missed = 0};
  if (!read_sizes(options, k, sizes)) return false;
  for (uint32_t i = 0; i < k; ++i) n += sizes[i].owned, edges += (uint64_t)sizes[i].inner + sizes[i].boundary;
  uint32_t *order = malloc(n * sizeof *order), *others = malloc(n * sizeof *others), *parts = malloc(n * sizeof *parts);
  uint32_t *sources = malloc((edges + 1) * sizeof *sources), *destinations = malloc((edges + 1) * sizeof *destinations);
  need(order != NULL && others != NULL && parts != NULL && sources != NULL && destinations != NULL, "out of memory");
  for (uint32_t v = 0; v < n; ++v) order[v] = v;
  for (uint32_t v = n; v-- > 1;) { /* shuffles, so that the vertices of a part are scattered */
    uint32_t other = clv__random_below(&state, v + 1), kept = order[v];
    order[v] = order[other], order[other] = kept;
  }
  for (uint32_t i = 0; i < k; at += sizes[i].owned, ++i) {
    uint32_t other_count = 0;
    for (uint32_t v = 0; v < n; ++v) {
      bool is_mine = v >= at && v < at + sizes[i].owned;
      if (is_mine) parts[order[v]] = i;
      if (!is_mine) others[other_count++] = order[v];
    }
    count += draw_edges(&sizes[i], order + at, others, other_count, &state, sources + count, destinations + count);
  }
  clv_tensor features = draw_features(n, options->width, &state);
  check(clv__gnn_graph_make(clv__allocator_default(), n, count, sources, destinations, &features, NULL, &made->graph, &error),
        &error, "graph");
  made->parts = parts;
  clv__membership membership = {.k = k, .vertex_count = n, .parts = parts};
  clv__partitioned cut;
  check(clv__partitioned_make(clv__allocator_default(), made->graph, &membership, &cut, &error), &error, "parts");
  for (uint32_t i = 0; i < k; ++i) { /* checks that the parts have the wanted sizes */
    const clv__subgraph *sub = &cut.subgraphs[i];
    need(sub->owned_count == sizes[i].owned && sub->edge_count == (uint64_t)sizes[i].inner + sizes[i].boundary &&
             sub->cut_edge_count == sizes[i].boundary,
         "a subgraph is not as large as it should be");
    made->missed += sizes[i].halo - sub->halo_count;
  }
  clv__partitioned_finish(&cut);
  free(features.data);
  free(order), free(others), free(sources), free(destinations);
  return true;
}

void flickr_subgraphs(uint32_t k, clv__subgraph_sizes *subgraphs) {
  uint64_t state = FLICKR_SEED + k;
  double rows = 89250.0 / k, edges = 899756.0 / k, outside = k == 1 ? 0 : fmin(3.4 * rows, 89250 - rows);
  for (uint32_t i = 0; i < k; ++i) {
    subgraphs[i] = (clv__subgraph_sizes){.owned = (uint64_t)(rows * (0.97 + 0.06 * clv__random_real(&state))),
                                         .halo = (uint64_t)(outside * (0.7 + 0.3 * clv__random_real(&state))),
                                         .edges = (uint64_t)(edges * (0.8 + 0.4 * clv__random_real(&state)))};
  }
}

/* ---- A run in detail ---- */

void flickr_tell_tasks(const clv__gnn_record *record, const clv__machine *machine) {
  for (uint32_t t = 0; t < record->task_count; ++t) {
    const clv__gnn_task *task = &record->tasks[t];
    printf("  %2u %-4s %u-%u  rows %6llu edges %7llu  at %9.3f  packs %7.3f  runs %9.3f  lays out %7.3f  of %9.3f\n", task->turn,
           machine->devices[task->device].name, task->first, task->last, (unsigned long long)task->padded.rows,
           (unsigned long long)task->padded.edges, 1e-6 * (double)task->begin_ns,
           1e-6 * (double)(task->packed_ns - task->begin_ns), 1e-6 * (double)(task->computed_ns - task->packed_ns),
           1e-6 * (double)(task->end_ns - task->computed_ns), 1e-6 * task->predicted_ns);
  }
}
