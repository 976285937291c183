/* Tests runs of plans against the run on one device: unusual graphs and memberships on a CPU and two virtual NPUs, one of
 * which has no sparse operators; devices that fail; runs that are cancelled, or killed and resumed. test_exact.c tests all
 * plans. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gnn/plan/portion.h"
#include "gnn/run/sweep.h"
#include "scenes.h"

enum { MOST_K = 5 };

static machine open_three(const char *option) {
  clv_error error = {0};
  machine m;
  assert_ok(try_machine("cpu,npu,npu1", option, &m, &error), error);
  return m;
}

/* ---- Unusual graphs, with one plan for all subgraphs ---- */

static void test_odd_graphs(void **state) {
  (void)state;
  static const struct {
    uint32_t n;
    uint64_t edges;
  } sizes[] = {{1, 0}, {1, 3}, {2, 1}, {3, 0}, {4, 9}, {100, 200}, {400, 6000}};
  machine m = open_three(NULL);
  clv__machine means = about_machine(&m, 10, 2);
  uint64_t seed = 77;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int type = 0; type < 3; ++type) {
      for (uint32_t k = 1; k <= MOST_K; ++k) {
        scene s;
        turns p;
        clv__stages stages;
        char what[96];
        make_scene(&s, &m, (clv__gnn_type)type, 1 + k % SCENE_LAYERS, sizes[i].n, sizes[i].edges, k,
                   1 + (uint32_t)(test_random(&seed) % k), &seed);
        clv__stages_of((clv__gnn_type)type, s.model->layers, CLV_F32, &stages);
        clv__pep whole = one_device(&means, 0, stages.count), pipeline = {.block_count = 2},
                 shared = one_device(&means, 0, stages.count);
        pipeline.blocks[0] = pipeline.blocks[1] = whole.blocks[0];
        pipeline.blocks[0].last = pipeline.blocks[1].first = stages.count - 1;
        pipeline.blocks[1].parts[0].device = 1;
        shared.blocks[0].part_count = 2;
        shared.blocks[0].parts[0].to = shared.blocks[0].parts[1].from = 7;
        shared.blocks[0].parts[1].device = 2;
        shared.blocks[0].parts[1].to = CLV__PEP_SHARES;
        const clv__pep *const each[] = {&whole, &pipeline, &shared};
        for (size_t e = 0; e < sizeof each / sizeof *each; ++e) {
          make_turns(&p, &s, &means, &seed);
          for (uint32_t layer = 0; layer < s.model->layer_count; ++layer) {
            for (uint32_t a = 0; a < k; ++a) p.items[layer][a].pep = each[e];
          }
          snprintf(what, sizeof what, "n %u, m %llu, type %d, k %u, plan %zu", sizes[i].n, (unsigned long long)sizes[i].edges,
                   type, k, e);
          free(run_turns(&m, &s, &p, 2, e == 0 && k == 1 ? s.alone : NULL, what));
        }
        finish_scene(&s);
      }
    }
  }
  close_machine(&m);
}

/* Parts that are large enough to run piece by piece, in a layer that gathers before it transforms: their results are laid out
 * like those of small parts. */
static void test_large_parts(void **state) {
  (void)state;
  enum { VERTICES = 5000, FEATURES = 1024, LARGE_K = 2 };
  static uint32_t parts[VERTICES];
  machine m = open_machine("cpu");
  clv__machine means = about_machine(&m, 10, 2);
  uint64_t seed = 78;
  for (uint32_t k = 1; k <= LARGE_K; ++k) {
    scene s = {.k = k};
    turns p;
    clv__stages stages;
    do {
      clv__gnn_model_destroy(s.model);
      s.model = test_gnn_model(clv__allocator_default(), CLV__GNN_SAGE, 1, FEATURES, test_random(&seed));
      clv__stages_of(CLV__GNN_SAGE, s.model->layers, CLV_F32, &stages);
    } while (stages.transform_first);
    test_gnn_make(&s.gnn, clv__allocator_default(), VERTICES, 3 * VERTICES, FEATURES, test_random(&seed));
    for (uint32_t v = 0; v < VERTICES; ++v) parts[v] = (uint32_t)(test_random(&seed) % k);
    cut_scene(&s, &m, k, parts);
    for (uint32_t i = 0; i < k; ++i) {
      const clv__subgraph *sub = &s.partitioned.subgraphs[i];
      const clv__csr csr = {sub->owned_count, sub->edge_count, sub->offsets, sub->sources};
      assert_true(clv__sweep_find(&stages, 0, stages.count, &csr).piece > 0);
    }
    clv__pep whole = one_device(&means, 0, stages.count);
    make_turns(&p, &s, &means, &seed);
    for (uint32_t i = 0; i < k; ++i) p.items[0][i].pep = &whole;
    free(run_turns(&m, &s, &p, 2, NULL, "large parts"));
    finish_scene(&s);
  }
  close_machine(&m);
}

/* ---- Portions ---- */

static void test_portions(void **state) {
  (void)state;
  machine m = open_three(NULL);
  uint64_t seed = 9;
  for (int round = 0; round < 30; ++round) {
    scene s;
    clv__arena arena;
    clv_error error = {0};
    make_scene(&s, &m, CLV__GNN_SAGE, 1, 1 + (uint32_t)(test_random(&seed) % 60), test_random(&seed) % 300, 3, 3, &seed);
    clv__arena_init(&arena, clv__allocator_default());
    for (uint32_t i = 0; i < s.k; ++i) {
      const clv__subgraph *sub = &s.partitioned.subgraphs[i];
      uint32_t before = 0;
      for (uint32_t share = 1; share <= CLV__PEP_SHARES; ++share) {
        uint32_t to = clv__subgraph_vertex_at(sub, (double)share / CLV__PEP_SHARES);
        clv__portion portion;
        assert_true(to >= before);
        assert_ok(clv__portion_make(&arena, sub, before, to, &portion, &error), error);
        assert_int_equal(portion.sizes.targets, to - before);
        uint64_t e = sub->offsets[before];
        for (uint32_t v = before; v < to; ++v) {
          assert_int_equal(portion.vertices[v - before], sub->vertices[v]);
          assert_int_equal(portion.offsets[v + 1 - before] - portion.offsets[v - before], sub->offsets[v + 1] - sub->offsets[v]);
          for (uint64_t at = portion.offsets[v - before]; at < portion.offsets[v + 1 - before]; ++at, ++e) {
            assert_true(portion.sources[at] < portion.sizes.rows);
            assert_int_equal(portion.vertices[portion.sources[at]], sub->vertices[sub->sources[e]]);
          }
        }
        for (uint64_t r = to - before + 1u; r < portion.sizes.rows;
             ++r) /* the rows are in ascending order, so none occurs twice */
          assert_true(portion.is_whole || r == to - before || portion.rows[r] > portion.rows[r - 1] || r == to - before);
        before = to;
      }
      assert_int_equal(before, sub->owned_count);
    }
    clv__arena_finish(&arena);
    finish_scene(&s);
  }
  close_machine(&m);
}

/* ---- Failures ---- */

/* A pipeline from the CPU to the NPU over five subgraphs and three layers. */
typedef struct pipeline {
  machine m;
  clv__machine means;
  scene s;
  clv__pep pep;
  turns p;
  clv__gnn_run *run;
} pipeline;

static void open_pipeline(pipeline *l, const char *option, uint64_t seed) {
  clv__stages stages;
  clv_error error = {0};
  l->m = open_three(option);
  l->means = about_machine(&l->m, 16, 2);
  make_scene(&l->s, &l->m, CLV__GNN_SAGE, 3, 200, 2000, MOST_K, MOST_K, &seed);
  clv__stages_of(CLV__GNN_SAGE, l->s.model->layers, CLV_F32, &stages);
  l->pep = one_device(&l->means, 0, stages.count);
  l->pep.block_count = 2;
  l->pep.blocks[1] = l->pep.blocks[0];
  l->pep.blocks[0].last = l->pep.blocks[1].first = 5;
  l->pep.blocks[1].parts[0].device = 2;
  make_turns(&l->p, &l->s, &l->means, &seed);
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t a = 0; a < MOST_K; ++a) l->p.items[i][a].pep = &l->pep;
  }
  assert_ok(clv__gnn_run_create(l->m.devices, l->s.model, l->s.gnn.graph, &l->s.partitioned, &l->p.schedule, &l->run, &error),
            error);
}

static void close_pipeline(pipeline *l) {
  clv__gnn_run_destroy(l->run);
  finish_scene(&l->s);
  close_machine(&l->m);
}

static clv_status run_pipeline(pipeline *l, float *rows, const clv__gnn_run_options *options, clv_error *error) {
  clv_tensor out = clv__tensor_make(CLV_F32, 2, (const int64_t[]){l->s.gnn.vertex_count, l->s.width}, rows);
  return clv__gnn_run_execute(l->run, NULL, &out, options, error);
}

static float *make_rows(const pipeline *l) {
  float *rows = malloc((size_t)l->s.gnn.vertex_count * l->s.width * sizeof *rows);
  assert_non_null(rows);
  return rows;
}

static void test_device_fails(void **state) {
  (void)state;
  for (int launch = 1; launch <= 9; launch += 4) {
    pipeline l;
    char option[32];
    clv_error error = {0};
    snprintf(option, sizeof option, "npu1:fail=%d", launch);
    open_pipeline(&l, option, 3);
    float *rows = make_rows(&l);
    clv_status status = run_pipeline(&l, rows, NULL, &error);
    if (status != CLV_DEVICE_ERROR)
      fail_msg("launch %d fails, so the status must be CLV_DEVICE_ERROR, but it is %s", launch, clv_status_name(status));
    assert_non_null(strstr(error.message, "npu1"));
    assert_non_null(strstr(error.message, "layer "));
    assert_non_null(strstr(error.message, "subgraph "));
    free(rows);
    close_pipeline(&l);
  }
}

typedef struct watcher {
  uint32_t stop_at; /* stop after this many tasks; 0: never */
  uint32_t first, done;
  bool dies;
} watcher;

static bool watch(void *user_data, const clv__gnn_progress *progress) {
  watcher *w = user_data;
  assert_true(progress->done > w->done && progress->done <= progress->of);
  if (w->done == 0) w->first = progress->done;
  w->done = progress->done;
  if (w->stop_at == 0 || w->done < w->stop_at) return true;
  if (w->dies) kill(getpid(), SIGKILL);
  return false;
}

static void test_cancel(void **state) {
  (void)state;
  pipeline l;
  clv_error error = {0};
  open_pipeline(&l, NULL, 4);
  float *rows = make_rows(&l);
  for (uint32_t at = 1; at < 30; at += 7) {
    watcher w = {.stop_at = at};
    clv__gnn_run_options options = {.progress = watch, .user_data = &w};
    clv_status status = run_pipeline(&l, rows, &options, &error);
    assert_int_equal(status, CLV_CANCELLED);
    assert_true(w.done >= at && w.done <= at + 2);
  }
  watcher all = {0};
  clv__gnn_run_options options = {.progress = watch, .user_data = &all};
  assert_ok(run_pipeline(&l, rows, &options, &error), error); /* cancelled runs do not affect a later run */
  assert_int_equal(all.done, 3 * MOST_K * 2);
  test_gnn_compare(l.s.expected, rows, l.s.gnn.vertex_count, l.s.width, "after cancelled runs");
  free(rows);
  close_pipeline(&l);
}

static void test_refusals(void **state) {
  (void)state;
  pipeline l;
  clv__gnn_run *run = NULL;
  clv_error error = {0};
  open_pipeline(&l, NULL, 5);
  clv__pep wrong[8];
  for (size_t i = 0; i < 8; ++i) wrong[i] = l.pep;
  wrong[0].block_count = 0;
  wrong[1].blocks[1].first = 4;
  wrong[2].blocks[1].parts[0].device = 0; /* this device also runs the first block, which is not allowed */
  wrong[3].blocks[1].parts[0].device = 3;
  wrong[4].blocks[0].parts[0].to = 19;
  wrong[5].blocks[1].last = 6;
  wrong[6].blocks[1].part_count = 0;
  wrong[7].block_count = 1;
  for (size_t i = 0; i < 8; ++i) {
    l.p.items[1][2].pep = &wrong[i];
    assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                     CLV_INVALID_ARGUMENT);
    assert_null(run);
    assert_non_null(strstr(error.message, "layer 1"));
  }
  clv__pep aggregates = one_device(&l.means, 1, 7); /* device 1 has no sparse operators */
  l.p.items[1][2].pep = &aggregates;
  assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                   CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "npu"));
  l.p.items[1][2].pep = &l.pep;
  l.p.items[1][2].subgraph = l.p.items[1][1].subgraph;
  assert_int_equal(clv__gnn_run_create(l.m.devices, l.s.model, l.s.gnn.graph, &l.s.partitioned, &l.p.schedule, &run, &error),
                   CLV_INVALID_ARGUMENT);
  close_pipeline(&l);
}

/* ---- Killed and resumed runs ---- */

static const char *path_with(const char *path, const char *end) {
  static char whole[64];
  snprintf(whole, sizeof whole, "%s%s", path, end);
  return whole;
}

static void leave_file(const char *path, const char *end) {
  int file = open(path_with(path, end), O_CREAT | O_WRONLY, 0600);
  assert_true(file >= 0);
  close(file);
}

static bool is_there(const char *path, const char *end) {
  return access(path_with(path, end), F_OK) == 0;
}

static void remove_file(const char *path, const char *end) {
  unlink(path_with(path, end));
}

/* This test forks, so it must run first, while the process has no other threads: a forked child would not have them. */
static void test_resume(void **state) {
  (void)state;
  char path[] = "/tmp/cleave-gnn-run-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  unlink(path);
  for (uint32_t layer = 1; layer <= 2; ++layer) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      pipeline l;
      clv_error error = {0};
      watcher w = {.stop_at = layer * MOST_K * 2 + 3, .dies = true};
      clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path};
      open_pipeline(&l, NULL, 6);
      (void)run_pipeline(&l, make_rows(&l), &options, &error);
      _exit(1); /* not reached: the watcher kills the process */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(access(path, R_OK), 0);
    leave_file(path, ".tmp-a1B2c3");
    leave_file(path, ".tmp-a1B2c34");
    child = fork(); /* runs in a child again, so that this process has no threads */
    assert_true(child >= 0);
    if (child == 0) {
      pipeline l, other;
      clv_error error = {0};
      clv__gnn_record record;
      watcher w = {0};
      clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path, .resume = true};
      open_pipeline(&other, NULL, 7);
      float *rows = make_rows(&other);
      assert_int_equal(run_pipeline(&other, rows, &options, &error),
                       CLV_INVALID_ARGUMENT); /* the state belongs to another model */
      free(rows);
      close_pipeline(&other);
      open_pipeline(&l, NULL, 6);
      rows = make_rows(&l);
      assert_ok(run_pipeline(&l, rows, &options, &error), error);
      clv__gnn_run_record(l.run, &record);
      assert_int_equal(record.first_layer, layer);
      assert_true(w.first > layer * MOST_K * 2 && w.done == 3 * MOST_K * 2);
      test_gnn_compare(l.s.expected, rows, l.s.gnn.vertex_count, l.s.width, "resumed");
      assert_true(!is_there(path, ".tmp-a1B2c3") &&
                  is_there(path, ".tmp-a1B2c34")); /* a killed writer's leftover is removed; another file is kept */
      assert_true(is_there(path, ""));             /* the state file is kept until clv__gnn_run_forget() */
      clv__gnn_run_forget(path);
      assert_false(is_there(path, ""));
      free(rows);
      close_pipeline(&l);
      fflush(NULL);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  remove_file(path, ".tmp-a1B2c34");
}

static void test_damaged_state(void **state) {
  (void)state;
  pipeline l;
  char path[] = "/tmp/cleave-gnn-run-XXXXXX";
  clv_error error = {0};
  int file = mkstemp(path);
  assert_true(file >= 0);
  open_pipeline(&l, NULL, 8);
  float *rows = make_rows(&l);
  watcher w = {.stop_at = MOST_K * 2 + 1};
  clv__gnn_run_options options = {.progress = watch, .user_data = &w, .state_path = path};
  assert_int_equal(run_pipeline(&l, rows, &options, &error), CLV_CANCELLED);
  off_t length = lseek(open(path, O_RDWR), 0, SEEK_END);
  close(file);
  for (off_t at = 0; at < length; at += 1 + length / 23) {
    uint8_t byte, changed;
    file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    changed = byte ^ 0x40u;
    assert_int_equal(pwrite(file, &changed, 1, at), 1);
    clv__gnn_run_options again = {.state_path = path, .resume = true};
    clv_status status = run_pipeline(&l, rows, &again, &error);
    if (at < 44 || at >= 56) assert_int_equal(status, CLV_INVALID_ARGUMENT);
    if (status == CLV_OK) break; /* a reserved byte, which is not checked; the run has resumed and written a new file */
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
  }
  unlink(path);
  free(rows);
  close_pipeline(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resume),      cmocka_unit_test(test_portions),      cmocka_unit_test(test_odd_graphs),
      cmocka_unit_test(test_large_parts), cmocka_unit_test(test_device_fails),  cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_refusals),    cmocka_unit_test(test_damaged_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
