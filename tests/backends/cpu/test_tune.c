/* Tests --tune: measured choices are stored, stored choices are used without being measured again, and damaged or unknown stored
 * choices are ignored. */
#include "backends/cpu/run/executable.h"
#include "backends/cpu/tune/tune.h"
#include "cpu_host.h"

/* A host whose cache stores one text. It counts the calls of the cache and the log messages. */
typedef struct desk {
  cpu_host cpu; /* must be the first member: it is the host's `self` */
  char key[256];
  char text[8192];
  size_t size_bytes;
  bool is_kept;
  int asked, kept, measured, as_kept, warnings;
} desk;

static clv_status recall(void *self, const char *backend, const char *key, void **data, size_t *size_bytes, clv_error *error) {
  desk *d = self;
  d->asked++;
  assert_string_equal(backend, "cpu");
  if (!d->is_kept) return clv__error_set(error, CLV_NOT_FOUND, "nothing is stored");
  assert_string_equal(key, d->key);
  *data = clv__allocate(d->cpu.allocator, d->size_bytes > 0 ? d->size_bytes : 1);
  assert_non_null(*data);
  memcpy(*data, d->text, d->size_bytes);
  *size_bytes = d->size_bytes;
  return CLV_OK;
}

static clv_status keep(void *self, const char *backend, const char *key, const void *data, size_t size_bytes, clv_error *error) {
  desk *d = self;
  (void)error;
  assert_string_equal(backend, "cpu");
  assert_true(size_bytes < sizeof d->text && strlen(key) < sizeof d->key);
  strcpy(d->key, key);
  memcpy(d->text, data, size_bytes);
  d->text[size_bytes] = '\0';
  d->size_bytes = size_bytes;
  d->is_kept = true;
  d->kept++;
  return CLV_OK;
}

static void count(void *self, int level, const char *text) {
  desk *d = self;
  d->warnings += level <= 1;
  d->measured += strstr(text, "measured:") != NULL;
  d->as_kept += strstr(text, "as stored") != NULL;
}

static void open_desk(desk *d) {
  clv_error error = {0};
  d->asked = d->kept = d->measured = d->as_kept = d->warnings = 0;
  assert_ok(cpu_host_open(&d->cpu, clv__allocator_default(), NULL, NULL, &error), error);
  d->cpu.host.recall = recall;
  d->cpu.host.remember = keep;
  d->cpu.host.log = count;
}

/* A 3x3 convolution over many channels followed by a Relu, a convolution with groups, a product of several rows, and a product of
 * one row. */
static clv_graph *make_graph(void) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 4, (int64_t[]){1, 48, 14, 14});
  test_graph_weight(&g, "a", 4, (int64_t[]){48, 48, 3, 3});
  test_graph_weight(&g, "b", 4, (int64_t[]){48, 12, 3, 3});
  test_graph_weight(&g, "c", 2, (int64_t[]){48, 96});
  test_graph_weight(&g, "d", 2, (int64_t[]){14, 70});
  static const int64_t ones[] = {1, 1, 1, 1}, four[] = {4};
  const clv_attribute pads = {.name = "pads", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 4, .ints = ones};
  const clv_attribute grouped[2] = {pads, {.name = "group", .kind = CLV_ATTRIBUTE_INTS, .count = 1, .ints = four}};
  clv_error error = {0};
  clv_value_id in[2], out;
  const char *const convolutions[2][3] = {{"x", "a", "y"}, {"r", "b", "z"}};
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) assert_ok(clv__builder_value(g.builder, convolutions[i][k], &in[k], &error), error);
    assert_ok(clv__builder_value(g.builder, convolutions[i][2], &out, &error), error);
    assert_ok(clv__builder_node(g.builder, convolutions[i][2], "", "Conv", in, 2, &out, 1, i == 0 ? &pads : grouped,
                                i == 0 ? 1 : 2, &error),
              error);
    if (i == 0) test_graph_node(&g, "relu", "Relu", "y", "r");
  }
  test_graph_node(&g, "several", "MatMul", "z,d", "u");
  test_graph_node(&g, "pool", "GlobalAveragePool", "u", "p");
  test_graph_node(&g, "flat", "Flatten", "p", "f");
  test_graph_node(&g, "one", "MatMul", "f,c", "o");
  return test_graph_end(&g, "o");
}

/* How many steps of the compiled graph use Winograd's algorithm, and how many are row steps. */
typedef struct ways {
  int winograd, row;
} ways;

static ways run(desk *d, clv_graph *graph) {
  uint64_t seed = 5;
  clv_error error = {0};
  cpu_program program;
  ways made = {0};
  const clv_allocator *allocator = clv__allocator_default();
  clv_tensor input = random_tensor(allocator, &seed, 4, (int64_t[]){1, 48, 14, 14}), got = {.rank = CLV_RANK_UNKNOWN},
             wanted = {0};
  assert_ok(cpu_program_open(&program, &d->cpu, graph, NULL, &error), error);
  const clv__cpu_variant *variant = program.executable->variant;
  assert_non_null(variant);
  for (size_t s = 0; s < variant->step_count; ++s) {
    made.row += variant->steps[s].kind == CLV__CPU_STEP_ROW;
    made.winograd += variant->steps[s].primitive != NULL && strstr(variant->steps[s].primitive->implementation, "wino") != NULL;
  }
  assert_ok(cpu_program_run(&program, &input, &got, &error), error);
  assert_ok(clv__graph_evaluate(graph, &input, NULL, &wanted, NULL, NULL, allocator, &error), error);
  assert_tensor(&got, &wanted, "tuned");
  clv__release(allocator, input.data);
  clv__release(allocator, got.data);
  clv__release(allocator, wanted.data);
  cpu_program_close(&program);
  return made;
}

static ways run_anew(desk *d, clv_graph *graph) {
  open_desk(d);
  const ways made = run(d, graph);
  cpu_host_close(&d->cpu);
  return made;
}

/* Replaces the choice in every line that begins with `what` by `to`. */
static void edit(desk *d, const char *what, const char *to) {
  char text[sizeof d->text] = "";
  for (char *line = d->text, *end; *line != '\0'; line = end + 1) {
    end = strchr(line, '\n');
    const size_t at = strlen(text);
    if (strncmp(line, what, strlen(what)) == 0) {
      snprintf(text + at, sizeof text - at, "%.*s\t%s\n", (int)(strchr(line, '\t') - line), line, to);
    } else {
      snprintf(text + at, sizeof text - at, "%.*s\n", (int)(end - line), line);
    }
  }
  strcpy(d->text, text);
  d->size_bytes = strlen(text);
}

/* Stores these choices and compiles the graph with them. A choice may change the layout of the next step's source. That step is
 * then measured again, so this repeats until nothing is measured. */
static ways compile_tuned(desk *d, clv_graph *graph, const char *algorithm, const char *groups, const char *product) {
  for (int i = 0; i < 5; ++i) {
    edit(d, "algorithm", algorithm);
    edit(d, "groups", groups);
    edit(d, strcmp(product, "row") == 0 ? "product: MatMul f32[1,48]" : "product", product);
    const ways made = run_anew(d, graph);
    if (d->measured == 0) return made;
  }
  fail_msg("in every run, choices are measured again although they are stored:\n%s", d->text);
  return (ways){0};
}

static void set_up(desk *d, clv_graph **graph) {
  memset(d, 0, sizeof *d);
  cpu_host_tune = true;
  cpu_host_deterministic = false;
  *graph = make_graph();
}

static void what_is_measured_is_kept_and_obeyed(void **state) {
  (void)state;
  static desk d;
  clv_graph *graph;
  set_up(&d, &graph);
  (void)run_anew(&d, graph);
  const int choices = d.measured;
  assert_true(choices >= 1 && d.kept == 1 && d.warnings == 0);

  (void)run_anew(&d, graph);
  assert_int_equal(d.measured, 0);
  assert_true(d.as_kept >= choices && d.kept == 0);

  ways made = compile_tuned(&d, graph, "winograd", "groups", "row");
  const bool has_winograd = strstr(d.text, "\twinograd\n") != NULL; /* oneDNN does not support it on some CPUs */
  assert_int_equal(made.winograd > 0, has_winograd);
  assert_int_equal(made.row, 1);
  made = compile_tuned(&d, graph, "direct", "one group", "plain");
  assert_true(made.winograd == 0 && made.row == 0);
  made = compile_tuned(&d, graph, "direct", "groups", "packed");
  assert_true(made.winograd == 0 && made.row == 0);
  clv__graph_destroy(graph);
}

static void nothing_is_measured_unasked(void **state) {
  (void)state;
  static desk d;
  clv_graph *graph;
  set_up(&d, &graph);
  cpu_host_deterministic = true;
  const ways made = run_anew(&d, graph);
  assert_true(d.asked == 0 && d.kept == 0 && d.measured == 0 && made.winograd == 0);
  cpu_host_deterministic = cpu_host_tune = false;
  (void)run_anew(&d, graph);
  assert_true(d.asked == 0 && d.kept == 0 && d.measured == 0);
  clv__graph_destroy(graph);
}

static void damage_is_told_and_left_alone(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "cleave cpu choices 2\n",
                                      "cleave cpu choices 1",
                                      "cleave cpu choices 1\nproduct\n",
                                      "cleave cpu choices 1\n\tdirect\n",
                                      "cleave cpu choices 1\nproduct\t\n",
                                      "cleave cpu choices 1\nproduct\tdirect",
                                      "cleave cpu choices 1\nproduct\ta choice that is longer than any that there is\n",
                                      "cleave cpu choices 1\nprod\x01uct\tdirect\n",
                                      "cleave cpu choices 1\na\tb\tc\n"};
  static desk d;
  clv_graph *graph;
  set_up(&d, &graph);
  (void)run_anew(&d, graph);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    strcpy(d.text, texts[i]);
    d.size_bytes = strlen(texts[i]);
    open_desk(&d);
    char choice[CLV__CPU_CHOICE_ROOM];
    assert_false(clv__cpu_notes_find(d.cpu.device->notes, "product", choice));
    assert_int_equal(d.warnings, 1);
    assert_false(clv__cpu_notes_find(d.cpu.device->notes, "product", choice));
    assert_int_equal(d.asked, 1);
    cpu_host_close(&d.cpu);
  }
  /* An unknown choice is measured again and replaced. */
  d.is_kept = false;
  (void)run_anew(&d, graph);
  edit(&d, "product", "nonsense");
  (void)run_anew(&d, graph);
  assert_true(d.measured >= 1 && d.kept == 1 && d.warnings == 0);
  assert_null(strstr(d.text, "nonsense"));
  (void)run_anew(&d, graph);
  assert_int_equal(d.measured, 0);
  clv__graph_destroy(graph);
}

/* Changes random bytes of the stored choices. Finding, adding and storing choices must still work. */
static void any_bytes_are_read(void **state) {
  (void)state;
  static desk d, damaged;
  clv_graph *graph;
  set_up(&d, &graph);
  (void)run_anew(&d, graph);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    uint64_t random = seed;
    damaged = d;
    for (uint64_t changes = 1 + test_random(&random) % 4; changes > 0; --changes) {
      damaged.text[test_random(&random) % d.size_bytes] = (char)test_random(&random);
    }
    if (seed % 5 == 0) damaged.size_bytes = test_random(&random) % d.size_bytes;
    open_desk(&damaged);
    char choice[CLV__CPU_CHOICE_ROOM];
    (void)clv__cpu_notes_find(damaged.cpu.device->notes, "product", choice);
    clv__cpu_notes_add(damaged.cpu.device->notes, "product", "row");
    clv__cpu_notes_save(damaged.cpu.device->notes);
    assert_int_equal(damaged.kept, 1);
    assert_true(clv__cpu_notes_find(damaged.cpu.device->notes, "product", choice));
    assert_string_equal(choice, "row");
    cpu_host_close(&damaged.cpu);
  }
  clv__graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_measured_is_kept_and_obeyed),
      cmocka_unit_test(nothing_is_measured_unasked),
      cmocka_unit_test(damage_is_told_and_left_alone),
      cmocka_unit_test(any_bytes_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
