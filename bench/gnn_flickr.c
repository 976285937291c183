/* Compares the predicted times of GNN plans with the measured times of their runs. The graphs are random, but their
 * subgraphs have the sizes of the subgraphs into which METIS cuts the Flickr graph. The devices are a virtual CPU, GPU and
 * NPU. They are as fast as those of a Core Ultra 9 185H, of which ../shared/data/gnx has measured times.
 *
 *   bench_gnn_flickr [--data DIR] [--kset FROM..TO] [--width F] [--time-scale S] [--runs N] [--json] [--check] [--planning]
 *                    [--profile FILE] [--prices FROM..TO]
 *
 * gnn_flickr.h explains the devices, prices and graphs, and which of them are synthetic. For each number k of subgraphs
 * (--kset), the bench predicts the times of five kinds of plans: the plan that `cleave gnn plan` would choose; the best
 * plan that only distributes subgraphs over devices (DP); the best plan that only distributes the blocks of layers (PP);
 * and everything on the CPU, or on the GPU. The chosen plan of every k runs N times (--runs; 0: not at all), and the bench
 * takes the median time. Each of the other four kinds runs N times too, but only with the k for which its predicted time is
 * least. The results of every run are compared with those of one device that computes the whole graph at once.
 *
 * --time-scale: the virtual devices take S times as long as the modelled hardware, and the bench divides the times by S
 * before it prints them. Runs are timed by the clock. On a machine that is not idle, choose a large S, so that the time for
 * computing and for waking threads is small compared with the modelled time. --width: the columns of the features in the
 * runs.
 *
 * --check: makes few runs, and does not fail if their times differ from the predictions. --planning: makes no runs, but
 * measures the CPU time of planning for ten values of k up to 64.
 *
 * --profile: stores the prices in FILE, or reads them if FILE exists. --prices: only with --planning or --runs 0. Repeats
 * the bench for each seed of the range. A seed changes the prices at random (0: unchanged). The checks of the plans must
 * pass for every seed. */
#include <math.h>
#include <string.h>
#include <time.h>

#define BENCH "gnn_flickr"
#include "bench.h"
#include "gnn/measure/measure.h"
#include "gnn/run/single.h"
#include "gnn_flickr.h"

enum { MOST_RUNS = 15 };
#define TOLERANCE 1e-5 /* relative to the largest result */

typedef enum way { WAY_CPU, WAY_GPU, WAY_DP, WAY_PP, WAY_ANY, WAYS } way;
static const char *const way_names[WAYS] = {"vcpu alone", "vgpu alone", "DP only", "PP only", "PP + DP"};

/* One number k of subgraphs: the graph that is cut into k subgraphs, its plans, and the times of the plans. */
typedef struct entry {
  uint32_t k, halo_missed;
  clv__gnn_graph *graph;
  clv__gnn_planning planning;
  float *expected;
  double predicted_ns[WAYS], measured_ns[WAYS], bound_ns, gap, worst; /* measured_ns: 0 if not measured */
  char plan[256];
} entry;

typedef struct bench {
  flickr_options options;
  flickr_machine machine;
  clv__tables tables;
  clv__text prices; /* the text of the tables before a seed changes them */
  entry entries[FLICKR_MOST_K];
  uint32_t count;
} bench;

static void need(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, BENCH ": %s\n", what);
  exit(1);
}

/* ---- Graphs ---- */

static void run_single(bench *b, entry *e) {
  clv_error error = {0};
  clv__gnn_single *single;
  uint32_t n = e->graph->csr.vertex_count;
  e->expected = malloc((size_t)n * b->options.width * sizeof *e->expected);
  need(e->expected != NULL, "out of memory");
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){n, b->options.width}, e->expected);
  check(clv__gnn_single_create(b->machine.reference, 0, &b->machine.model, e->graph, &single, &error), &error, "the whole graph");
  check(clv__gnn_single_run(single, NULL, &out, &error), &error, "the whole graph");
  clv__gnn_single_destroy(single);
}

static void make_entry(bench *b, uint32_t k) {
  clv_error error = {0};
  entry *e = &b->entries[b->count++];
  flickr_graph made;
  need(flickr_graph_make(&b->options, k, &made), "no such k in metis_subgraphs.csv, or sizes that no graph has");
  e->k = k;
  e->graph = made.graph;
  e->halo_missed = made.missed;
  clv__membership membership = {.k = k, .vertex_count = made.graph->csr.vertex_count, .parts = made.parts};
  check(
      clv__gnn_planning_init_parts(&e->planning, b->machine.devices, &b->machine.model, made.graph, &membership, 1, 1000, &error),
      &error, "planning");
  free(made.parts);
  run_single(b, e);
}

/* ---- Prices: the devices' own estimates for the sizes of all k, and times measured on the hardware ---- */

static void make_tables(bench *b) {
  clv_error error = {0};
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  clv__gnn_cut *cuts = calloc(b->count, sizeof *cuts);
  need(cuts != NULL, "out of memory");
  for (uint32_t i = 0; i < b->count; ++i) cuts[i] = b->entries[i].planning.cuts[0];
  clv__gnn_planning all = b->entries[0].planning; /* a shallow copy with the cuts of all k; nothing of it is freed */
  all.cuts = cuts;
  all.cut_count = b->count;
  how.asks_models = true;
  clv__tables_init(&b->tables, clv__allocator_default());
  if (!flickr_prices_kept(&b->options, &b->tables)) {
    check(clv__gnn_measure(&all, &how, &b->tables, NULL, &error), &error, "prices");
    need(flickr_import(&b->options, all.chains[0].layer, &b->tables), "profile_185h_fused.csv cannot be read");
    flickr_prices_keep(&b->options, &b->tables);
  }
  clv__text_init(&b->prices, clv__allocator_default());
  check(clv__tables_print(&b->tables, &b->prices, &error), &error, "prices");
  free(cuts);
}

static void change_prices(bench *b, uint32_t seed) {
  clv_error error = {0};
  clv__tables_finish(&b->tables);
  clv__tables_init(&b->tables, clv__allocator_default());
  check(clv__tables_parse(&b->tables, b->prices.data, b->prices.size_bytes, "prices", &error), &error, "prices");
  flickr_prices_change(&b->tables, seed);
}

/* ---- Planning ---- */

static void limit(way which, clv__pep_options *peps) {
  if (which != WAY_ANY && which != WAY_DP) peps->most_parts = 1;
  if (which != WAY_ANY && which != WAY_PP) peps->most_blocks = 1;
}

/* Makes the best plan of the kind `which` for the k of the entry. It may also compute the whole graph without cutting it. */
static clv__gnn_plan *plan_entry(bench *b, entry *e, way which, clv__chosen_k *item) {
  clv_error error = {0};
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__choice choice;
  clv__gnn_plan *plan;
  limit(which, &options.peps);
  check(clv__gnn_planning_choose(&e->planning, &b->tables, &options, &choice, &error), &error, "choosing");
  for (uint32_t c = 0; c < choice.k_count; ++c) choice.chosen = choice.items[c].k == e->k ? c : choice.chosen;
  *item = choice.items[choice.chosen];
  need(item->has_plan, item->reason);
  check(clv__gnn_planning_plan(&e->planning, &b->tables, &choice, "graphsage", "flickr", &plan, &error), &error, "plan");
  return plan;
}

/* Plans all subgraphs for one device. */
static clv__gnn_plan *plan_single(bench *b, entry *e, uint32_t device, clv__chosen_k *item) {
  clv__machine *machine = &e->planning.machine;
  const clv__machine kept = *machine;
  for (uint32_t d = 0; d < machine->device_count;
       ++d) { /* leaves only `activate` to the other devices, so that they cannot run a whole layer */
    if (d != device) machine->devices[d].cannot = ~(1u << CLV__STAGE_ACTIVATE);
  }
  clv__gnn_plan *plan = plan_entry(b, e, device == 0 ? WAY_CPU : WAY_GPU, item);
  *machine = kept;
  return plan;
}

static clv__gnn_plan *plan_way(bench *b, entry *e, way which, clv__chosen_k *item) {
  return which == WAY_CPU || which == WAY_GPU ? plan_single(b, e, which, item) : plan_entry(b, e, which, item);
}

static void predict(bench *b, entry *e) {
  for (way which = 0; which < WAYS; ++which) {
    clv__chosen_k item;
    clv__gnn_plan *plan = plan_way(b, e, which, &item);
    e->predicted_ns[which] = item.makespan_ns;
    if (which == WAY_ANY) {
      clv__text text;
      e->bound_ns = item.bound_ns;
      e->gap = item.gap;
      clv__text_init(&text, clv__allocator_default());
      for (uint32_t c = 0; c < item.layers[0].cluster_count; ++c) {
        const clv__cluster *cluster = &item.layers[0].clusters[c];
        clv__text_append(&text, "%s%ux ", c > 0 ? ", " : "", cluster->count);
        clv__pep_describe(item.layers[0].peps[item.layers[0].sequence[cluster->first]], &e->planning.machine, &text);
      }
      need(!text.failed, "out of memory");
      snprintf(e->plan, sizeof e->plan, "%s", text.data);
      clv__text_finish(&text);
    }
    clv__gnn_plan_destroy(plan);
  }
}

/* ---- Running ---- */

static double difference(const bench *b, const entry *e, const float *rows) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < (size_t)e->graph->csr.vertex_count * b->options.width; ++i) {
    double off = fabs((double)rows[i] - (double)e->expected[i]);
    worst = fmax(worst, isnan(off) ? INFINITY : off);
    largest = fmax(largest, fabs((double)e->expected[i]));
  }
  return worst / largest;
}

static void measure(bench *b, entry *e, way which) {
  clv_error error = {0};
  clv__chosen_k item;
  clv__partitioned parts;
  clv__gnn_schedule schedule;
  clv__gnn_run *run;
  clv__gnn_record record;
  clv__arena arena;
  double times[MOST_RUNS];
  uint32_t n = e->graph->csr.vertex_count;
  size_t size_bytes = (size_t)n * b->options.width * sizeof(float);
  float *rows = malloc(size_bytes);
  need(rows != NULL, "out of memory");
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){n, b->options.width}, rows);
  clv__gnn_plan *plan = plan_way(b, e, which, &item);
  clv__arena_init(&arena, clv__allocator_default());
  check(clv__gnn_planning_subgraphs(&e->planning, e->k, &parts, &error), &error, "subgraphs");
  check(clv__gnn_schedule_of(&arena, plan, &schedule, &error), &error, "schedule");
  check(clv__gnn_run_create(b->machine.devices, &b->machine.model, e->graph, &parts, &schedule, &run, &error), &error, "run");
  for (uint32_t r = 0; r < b->options.runs; ++r) {
    memset(rows, 0xff, size_bytes);
    check(clv__gnn_run_execute(run, NULL, &out, NULL, &error), &error, "run");
    clv__gnn_run_record(run, &record);
    times[r] = record.measured_ns;
    e->worst = fmax(e->worst, difference(b, e, rows));
  }
  qsort(times, b->options.runs, sizeof *times, compare);
  e->measured_ns[which] = times[b->options.runs / 2];
  if (b->options.verbose) flickr_tell_tasks(&record, &e->planning.machine);
  clv__gnn_run_destroy(run);
  clv__partitioned_finish(&parts);
  clv__arena_finish(&arena);
  clv__gnn_plan_destroy(plan);
  free(rows);
}

/* ---- Output ---- */

static uint32_t best_of(const bench *b, way which) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < b->count; ++i) {
    if (b->entries[i].predicted_ns[which] < b->entries[best].predicted_ns[which]) best = i;
  }
  return best;
}

static double ms(const bench *b, double ns) {
  return 1e-6 * ns / b->options.time_scale;
}

static double off(const entry *e, way which) {
  if (!(e->measured_ns[which] > 0)) return 0;
  return e->measured_ns[which] / e->predicted_ns[which] - 1;
}

static void print_text(const bench *b) {
  printf("times in ms of the modelled hardware; prices: imported and synthetic; time scale %g, %u columns, seed %u\n",
         b->options.time_scale, b->options.width, FLICKR_SEED);
  printf("  k");
  for (way w = 0; w < WAYS; ++w) printf(" %11s", way_names[w]);
  printf("    at least     gap    measured      off  differs  plan\n");
  for (uint32_t i = 0; i < b->count; ++i) {
    const entry *e = &b->entries[i];
    printf("%3u", e->k);
    for (way w = 0; w < WAYS; ++w) printf(" %11.3f", ms(b, e->predicted_ns[w]));
    printf(" %11.3f %5.2f %% %11.3f %+6.2f %% %8.1e  %s\n", ms(b, e->bound_ns), 100 * e->gap, ms(b, e->measured_ns[WAY_ANY]),
           100 * off(e, WAY_ANY), e->worst, e->plan);
  }
  printf("\n%-12s  best k    predicted     measured      off\n", "");
  for (way w = 0; w < WAYS; ++w) {
    const entry *e = &b->entries[best_of(b, w)];
    printf("%-12s  %6u  %11.3f  %11.3f  %+6.2f %%\n", way_names[w], e->k, ms(b, e->predicted_ns[w]), ms(b, e->measured_ns[w]),
           100 * off(e, w));
  }
}

static void print_json(const bench *b) {
  printf("{\"prices\": \"synthetic\", \"time_scale\": %g, \"width\": %u, \"seed\": %u, \"per_k\": [", b->options.time_scale,
         b->options.width, FLICKR_SEED);
  for (uint32_t i = 0; i < b->count; ++i) {
    const entry *e = &b->entries[i];
    printf("%s\n {\"k\": %u, \"lower_bound_ms\": %.6f, \"gap\": %.6f, \"worst_difference\": %.3g, \"halo_missed\": %u",
           i > 0 ? "," : "", e->k, ms(b, e->bound_ns), e->gap, e->worst, e->halo_missed);
    for (way w = 0; w < WAYS; ++w) {
      printf(", \"%s\": {\"predicted_ms\": %.6f", way_names[w], ms(b, e->predicted_ns[w]));
      if (e->measured_ns[w] > 0) printf(", \"measured_ms\": %.6f", ms(b, e->measured_ns[w]));
      printf("}");
    }
    printf("}");
  }
  printf("]}\n");
}

/* Returns 1 if a check of a result or of a plan fails. Without --check, also if a measured time differs from the prediction by
 * more than 5 %. */
static int judge(const bench *b) {
  int bad = 0;
  double single = INFINITY, chosen = INFINITY, worst = 0;
  for (uint32_t i = 0; i < b->count; ++i) {
    const entry *e = &b->entries[i];
    bad += !(e->worst <= TOLERANCE) || e->gap > (b->options.is_check ? 0.05 : 0.01);
    for (way w = 0; w < WAY_ANY;
         ++w) { /* the search may end with a plan that is not the best but near enough to the bound: hence the slack */
      double slack = w == WAY_CPU || w == WAY_GPU ? 1e-9 : 0.01;
      bad += e->predicted_ns[WAY_ANY] > e->predicted_ns[w] * (1 + slack);
    }
    single = fmin(single, fmin(e->predicted_ns[WAY_CPU], e->predicted_ns[WAY_GPU]));
    chosen = fmin(chosen, e->predicted_ns[WAY_ANY]);
    for (way w = 0; w < WAYS; ++w) worst = e->measured_ns[w] > 0 ? fmax(worst, fabs(off(e, w))) : worst;
  }
  bad += chosen > single * (1 + 1e-9);
  if (!b->options.json)
    printf("time on the best single device / time of the chosen plan: %.3f; worst prediction off by %.2f %%; failed checks: %d\n",
           single / chosen, 100 * worst, bad);
  return bad > 0 || (!b->options.is_check && worst > 0.05);
}

/* ---- Planning alone ---- */

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Plans for ten numbers of subgraphs k, from 1 to 64, in one call. The subgraphs have sizes like Flickr's. Returns the CPU time
 * in seconds. */
static double time_planning(bench *b, uint32_t seed) {
  static const uint32_t ks[] = {1, 2, 4, 8, 16, 24, 32, 40, 48, 64};
  clv_error error = {0};
  clv__choose_cut cuts[10];
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  clv__choice choice;
  clv__gnn_planning *planning = &b->entries[0].planning;
  for (uint32_t c = 0; c < 10; ++c) {
    clv__subgraph_sizes *subgraphs = calloc(ks[c], sizeof *subgraphs);
    need(subgraphs != NULL, "out of memory");
    flickr_subgraphs(ks[c], subgraphs);
    cuts[c] = (clv__choose_cut){ks[c], subgraphs};
  }
  planning->choose_cuts = cuts;
  planning->cut_count = 10;
  double begin = cpu_seconds();
  check(clv__gnn_planning_choose(planning, &b->tables, &options, &choice, &error), &error, "choosing");
  double took = cpu_seconds() - begin;
  planning->cut_count = 1;
  printf("seed of the prices %u: planning k = 1, 2, 4, 8, 16, 24, 32, 40, 48, 64 for three devices: %.3f s of CPU time\n", seed,
         took);
  for (uint32_t c = 0; c < choice.k_count; ++c)
    printf("  k %2u: %11.3f ms, gap %.2f %%\n", choice.items[c].k, ms(b, choice.items[c].makespan_ns), 100 * choice.items[c].gap);
  for (uint32_t c = 0; c < 10; ++c) free((void *)cuts[c].subgraphs);
  return took;
}

static void time_all(bench *b) {
  double most = 0;
  for (uint32_t seed = b->options.prices_from; seed <= b->options.prices_to; ++seed) {
    change_prices(b, seed);
    most = fmax(most, time_planning(b, seed));
  }
  printf("at most %.3f s of CPU time\n", most);
}

/* ---- All of it ---- */

static int plan_and_run(bench *b, uint32_t seed) {
  for (uint32_t i = 0; i < b->count; ++i) {
    predict(b, &b->entries[i]);
    if (b->options.runs > 0) measure(b, &b->entries[i], WAY_ANY);
  }
  for (way w = 0; w < WAY_ANY && b->options.runs > 0; ++w) measure(b, &b->entries[best_of(b, w)], w);
  if (seed > 0 && !b->options.json) printf("\nprices changed by seed %u\n", seed);
  if (b->options.json)
    print_json(b);
  else
    print_text(b);
  return judge(b);
}

int main(int count, char **arguments) {
  static bench b;
  need(flickr_options_read(&b.options, count, arguments),
       "an option is unknown, incomplete or out of range: see the top of bench/gnn_flickr.c");
  if (!flickr_machine_open(&b.options, &b.machine)) {
    printf(BENCH ": no profile_185h_fused.csv in %s: skipped\n", b.options.data);
    return 0;
  }
  for (uint32_t k = b.options.from; k <= b.options.to; ++k) make_entry(&b, k);
  make_tables(&b);
  int status = 0;
  if (b.options.planning) {
    time_all(&b);
  } else {
    for (uint32_t seed = b.options.prices_from; seed <= b.options.prices_to; ++seed) {
      if (seed > 0) change_prices(&b, seed);
      status |= plan_and_run(&b, seed);
    }
  }
  for (uint32_t i = 0; i < b.count; ++i) {
    clv__gnn_planning_finish(&b.entries[i].planning);
    clv__gnn_graph_destroy(b.entries[i].graph);
    free(b.entries[i].expected);
  }
  clv__text_finish(&b.prices);
  clv__tables_finish(&b.tables);
  flickr_machine_close(&b.machine);
  return status;
}
