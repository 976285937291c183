/* Tests the groups of nodes that pictures fold: scopes, blocks, runs and partitions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/picture/groups.h"
#include "support.h"

enum { MOST = 4000 };

typedef struct example {
  uint32_t node_count, edge_count;
  char names[MOST][64], operators[MOST][16];
  const char *name_list[MOST], *operator_list[MOST];
  uint32_t parts[MOST], from[2 * MOST], to[2 * MOST];
  clv__groups_input input;
} example;

static void add_node(example *x, const char *operator, const char * name) {
  snprintf(x->names[x->node_count], sizeof x->names[0], "%s", name);
  snprintf(x->operators[x->node_count++], sizeof x->operators[0], "%s", operator);
}

static void add_edge(example *x, uint32_t from, uint32_t to) {
  x->from[x->edge_count] = from;
  x->to[x->edge_count++] = to;
}

static void add_chain(example *x) {
  for (uint32_t v = 1; v < x->node_count; ++v) add_edge(x, v - 1, v);
}

static const clv__groups_input *input_of(example *x, bool parts) {
  for (uint32_t v = 0; v < x->node_count; ++v) {
    x->name_list[v] = x->names[v];
    x->operator_list[v] = x->operators[v];
  }
  x->input =
      (clv__groups_input){x->node_count, x->edge_count, x->name_list, x->operator_list, parts ? x->parts : NULL, x->from, x->to};
  return &x->input;
}

static example *make_example(void) {
  example *x = calloc(1, sizeof *x);
  assert_non_null(x);
  return x;
}

/* Checks that the order is a topological order of all nodes, that groups are nested, that each has at least two members, and
 * that none has more members than a picture can show. */
static void check_groups(const clv__groups_input *input, const clv__groups *groups) {
  uint32_t n = input->node_count, *positions = malloc((n + 1) * sizeof *positions),
           *members = calloc(groups->count + 1, sizeof *members);
  assert_true(positions != NULL && members != NULL);
  memset(positions, 0xff, (n + 1) * sizeof *positions);
  for (uint32_t i = 0; i < n; ++i) {
    assert_true(groups->order[i] < n && positions[groups->order[i]] == UINT32_MAX);
    positions[groups->order[i]] = i;
  }
  for (uint32_t e = 0; e < input->edge_count; ++e) assert_true(positions[input->from[e]] < positions[input->to[e]]);
  uint32_t *around = calloc(n + 1, sizeof *around); /* indexed by position: 1 + the innermost group */
  assert_non_null(around);
  for (uint32_t g = 0; g < groups->count; ++g) {
    const clv__group *group = &groups->items[g];
    assert_true(group->first + 1 < group->end && group->end <= n);
    assert_true((group->kind == CLV__GROUP_SCOPE) == (group->name != NULL));
    assert_int_equal(group->parent, around[group->first] - 1);
    for (uint32_t i = group->first; i < group->end; ++i) {
      assert_int_equal(around[i] - 1, group->parent);
      around[i] = g + 1;
    }
    if (group->parent == UINT32_MAX) continue;
    const clv__group *parent = &groups->items[group->parent];
    assert_true(group->parent < g && parent->end - parent->first > group->end - group->first);
    ++members[group->parent + 1];
  }
  for (uint32_t g = 0; g < groups->count; ++g) members[0] += groups->items[g].parent == UINT32_MAX;
  for (uint32_t i = 0; i < n; ++i) ++members[around[i]];
  for (uint32_t g = 0; g <= groups->count; ++g) assert_true(members[g] <= 48 && (g == 0 || members[g] >= 2));
  free(positions);
  free(members);
  free(around);
}

static void make(const clv__groups_input *input, clv__arena *arena, clv__groups *groups) {
  clv__arena_init(arena, clv__allocator_default());
  assert_true(clv__groups_make(input, arena, groups));
  check_groups(input, groups);
}

static const clv__group *find(const clv__groups *groups, const char *name) {
  for (uint32_t g = 0; g < groups->count; ++g) {
    if (groups->items[g].name != NULL && strcmp(groups->items[g].name, name) == 0) return &groups->items[g];
  }
  return NULL;
}

/* ---- Scopes ---- */

/* The nodes of a scope follow each other, although the graph has them in another order. */
static void test_scopes(void **state) {
  (void)state;
  example *x = make_example();
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (uint32_t step = 0; step < 4; ++step) {
      for (uint32_t head = 0; head < 2; ++head) { /* the two heads alternate */
        char name[64];
        snprintf(name, sizeof name, "/encoder/layer.%u/head_%c/op_%u", layer, head == 0 ? 'q' : 'k', step);
        if (step > 0) add_edge(x, x->node_count - 2, x->node_count);
        if (step == 0 && layer > 0) add_edge(x, x->node_count - 1 - head, x->node_count);
        add_node(x, "Relu", name);
      }
    }
  }
  clv__arena arena;
  clv__groups groups;
  make(input_of(x, false), &arena, &groups);
  assert_int_equal(groups.count, 9);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    char name[64];
    snprintf(name, sizeof name, "encoder/layer.%u", layer);
    const clv__group *group = find(&groups, name);
    assert_non_null(group);
    assert_int_equal(group->first, 8 * layer);
    assert_int_equal(group->end, 8 * layer + 8);
    snprintf(name, sizeof name, "encoder/layer.%u/head_k", layer);
    assert_int_equal(find(&groups, name)->first, 8 * layer + 4);
    assert_ptr_equal(&groups.items[find(&groups, name)->parent], group);
  }
  assert_null(find(&groups, "encoder")); /* it would contain everything */
  clv__arena_finish(&arena);
  free(x);
}

/* In names without '/', a number belongs to the word before it. A scope with few nodes is no group. */
static void test_dots(void **state) {
  (void)state;
  example *x = make_example();
  static const char *const names[] = {"embed.tokens",
                                      "embed.positions",
                                      "model.layers.0.attention.query",
                                      "model.layers.0.attention.key",
                                      "model.layers.0.mlp.up",
                                      "model.layers.0.mlp.down",
                                      "model.layers.1.attention.query",
                                      "model.layers.1.attention.key",
                                      "model.layers.1.mlp.up",
                                      "model.layers.1.mlp.down",
                                      "model.norm.1",
                                      "head"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) add_node(x, "Relu", names[i]);
  add_chain(x);
  clv__arena arena;
  clv__groups groups;
  make(input_of(x, false), &arena, &groups);
  assert_int_equal(groups.count, 3);
  assert_string_equal(groups.items[0].name, "model");
  assert_string_equal(groups.items[1].name, "model.layers.0");
  assert_string_equal(groups.items[2].name, "model.layers.1");
  clv__arena_finish(&arena);
  free(x);
}

/* A scope that is left and entered again is several groups, so that no group both leads to another and depends on it. */
static void test_interrupted(void **state) {
  (void)state;
  example *x = make_example();
  for (uint32_t v = 0; v < 15; ++v) add_node(x, "Relu", v / 5 == 1 ? "b/node" : "a/node");
  add_chain(x);
  clv__arena arena;
  clv__groups groups;
  make(input_of(x, false), &arena, &groups);
  assert_int_equal(groups.count, 3);
  assert_string_equal(groups.items[0].name, "a");
  assert_string_equal(groups.items[1].name, "b");
  assert_string_equal(groups.items[2].name, "a");
  clv__arena_finish(&arena);
  free(x);
}

/* ---- Blocks and runs ---- */

/* Half a block precedes the repeated blocks, so every node of a block could be its first. The first must be the one before
 * which the fewest edges pass. */
static void test_blocks(void **state) {
  (void)state;
  static const char *const operators[] = {"MatMul", "Add",  "Softmax", "MatMul", "LayerNormalization",
                                          "MatMul", "Gelu", "MatMul",  "Add"};
  enum { PERIOD = sizeof operators / sizeof *operators, TOTAL = 12, BEFORE = 5 };
  example *x = make_example();
  for (uint32_t v = 0; v < BEFORE + PERIOD * TOTAL; ++v) add_node(x, operators[(v + PERIOD - BEFORE) % PERIOD], "");
  add_node(x, "Tanh", "");
  add_chain(x);
  for (uint32_t k = 0; k < TOTAL; ++k) add_edge(x, BEFORE + k * PERIOD, BEFORE + (k + 1) * PERIOD - 1);
  clv__arena arena;
  clv__groups groups;
  make(input_of(x, false), &arena, &groups);
  assert_int_equal(groups.count, TOTAL);
  for (uint32_t g = 0; g < TOTAL; ++g) {
    const clv__group *group = &groups.items[g];
    assert_int_equal(group->kind, CLV__GROUP_BLOCK);
    assert_int_equal(group->number, g + 1);
    assert_int_equal(group->total, TOTAL);
    assert_int_equal(group->first, BEFORE + g * PERIOD);
    assert_int_equal(group->end, BEFORE + (g + 1) * PERIOD);
  }
  clv__arena_finish(&arena);
  free(x);
}

/* Thousands of nodes that have nothing in common become runs within runs. check_groups() checks their sizes. */
static void test_runs(void **state) {
  (void)state;
  for (uint32_t count = 40; count <= MOST; count += 360) {
    example *x = make_example();
    uint64_t seed = count;
    for (uint32_t v = 0; v < count; ++v) {
      char operator[16];
      snprintf(operator, sizeof operator, "Op%u", v);
      add_node(x, operator, "node");
      if (v > 0) add_edge(x, (uint32_t)(test_random(&seed) % v), v);
    }
    clv__arena arena;
    clv__groups groups;
    make(input_of(x, false), &arena, &groups);
    assert_true((groups.count > 0) == (count > 48));
    for (uint32_t g = 0; g < groups.count; ++g) assert_int_equal(groups.items[g].kind, CLV__GROUP_RUN);
    clv__arena_finish(&arena);
    free(x);
  }
}

/* ---- Random graphs ---- */

/* Makes a graph with repeated operators and names of several scopes. The parts are consecutive. */
static void randomise(example *x, uint64_t *seed) {
  x->node_count = x->edge_count = 0;
  uint32_t count = (uint32_t)(test_random(seed) % 400), operators = 1 + (uint32_t)(test_random(seed) % 12), part = 0;
  for (uint32_t v = 0; v < count; ++v) {
    char name[64], operator[16];
    int length = 0;
    static const char *const words[] = {"a", "b", "layer.1", "", "x.2.y", "<b>", "/"};
    for (uint32_t depth = (uint32_t)(test_random(seed) % 5); depth > 0; --depth) {
      length += snprintf(name + length, sizeof name - (size_t)length, "%s%c", words[test_random(seed) % 7],
                         test_random(seed) % 4 == 0 ? '.' : '/');
    }
    snprintf(name + length, sizeof name - (size_t)length, "n%u", v);
    snprintf(operator, sizeof operator, "Op%u", (uint32_t)(test_random(seed) % operators));
    add_node(x, operator, name);
    if (test_random(seed) % 20 == 0) ++part;
    x->parts[v] = part;
    for (uint64_t edges = v == 0 ? 0 : test_random(seed) % 3; edges > 0; --edges)
      add_edge(x, (uint32_t)(test_random(seed) % v), v);
  }
}

static void test_random_graphs(void **state) {
  (void)state;
  example *x = make_example();
  uint64_t seed = 5;
  for (int round = 0; round < 300; ++round) {
    randomise(x, &seed);
    clv__arena arena, again_arena;
    clv__groups groups, again;
    make(input_of(x, false), &arena, &groups);
    clv__arena_finish(&arena);
    const clv__groups_input *input = input_of(x, true);
    make(input, &arena, &groups);
    uint32_t sizes[MOST] = {0}, found[MOST] = {0}, last = x->node_count > 0 ? x->parts[x->node_count - 1] : 0;
    for (uint32_t v = 0; v < x->node_count; ++v) {
      ++sizes[x->parts[v]];
      assert_int_equal(x->parts[groups.order[v]], x->parts[v]); /* parts stay together, in order */
    }
    for (uint32_t g = 0; g < groups.count; ++g) {
      if (groups.items[g].kind != CLV__GROUP_PART) continue;
      ++found[groups.items[g].number];
      assert_int_equal(groups.items[g].end - groups.items[g].first, sizes[groups.items[g].number]);
      assert_int_equal(x->parts[groups.order[groups.items[g].first]], groups.items[g].number);
    }
    for (uint32_t p = 0; last > 0 && p <= last; ++p) assert_int_equal(found[p], sizes[p] > 1);
    make(input, &again_arena, &again);
    assert_int_equal(again.count, groups.count);
    assert_memory_equal(again.order, groups.order, x->node_count * sizeof *again.order);
    clv__arena_finish(&again_arena);
    clv__arena_finish(&arena);
  }
  free(x);
}

/* Names with thousands of scopes, or with nothing but separators, are no problem. */
static void test_odd_names(void **state) {
  (void)state;
  enum { COUNT = 60, LENGTH = 20000 };
  char *deep = malloc(LENGTH + 1);
  assert_non_null(deep);
  for (uint32_t i = 0; i < LENGTH; ++i) deep[i] = "a/"[i % 2];
  deep[LENGTH] = '\0';
  const char *odd[] = {deep, "", "/", "//////", ".", "..", ".1.2.3", "a//b", "a/", "\xff\xfe/\x80", "a.1.", "</script>/<b>"};
  const char *names[COUNT], *operators[COUNT];
  uint32_t from[COUNT], to[COUNT];
  for (uint32_t v = 0; v < COUNT; ++v) {
    names[v] = odd[v / 5];
    operators[v] = v % 3 == 0 ? "" : "Relu";
    from[v] = v;
    to[v] = v + 1;
  }
  clv__groups_input input = {COUNT, COUNT - 1, names, operators, NULL, from, to};
  clv__arena arena;
  clv__groups groups;
  make(&input, &arena, &groups);
  clv__arena_finish(&arena);
  free(deep);
}

static void test_out_of_memory(void **state) {
  (void)state;
  example *x = make_example();
  uint64_t seed = 11;
  randomise(x, &seed);
  const clv__groups_input *input = input_of(x, true);
  bool failed = true;
  for (size_t at = 1; failed; ++at) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = at;
    clv__arena arena;
    clv__groups groups;
    clv__arena_init(&arena, &counting.allocator);
    failed = !clv__groups_make(input, &arena, &groups);
    assert_true(failed || counting.calls < at);
    clv__arena_finish(&arena);
    assert_int_equal(counting.live, 0);
  }
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scopes),    cmocka_unit_test(test_dots),          cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_blocks),    cmocka_unit_test(test_runs),          cmocka_unit_test(test_random_graphs),
      cmocka_unit_test(test_odd_names), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
