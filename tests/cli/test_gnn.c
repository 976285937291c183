/* Tests `cleave gnn generate` and `inspect`, and the help of all verbs, as users run them. */
#include <jansson.h>

#include "command.h"
#include "gnn/data/partition.h"

static void write_text(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", work, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* Runs `cleave gnn ARGUMENTS`. Checks the exit status, and that the output or, on failure, the error contains `part`. */
static void expect(const char *arguments, int status, const char *part) {
  char line[8192];
  assert_true(snprintf(line, sizeof line, "'%s' gnn %s", command, arguments) < (int)sizeof line);
  int is = shell(line);
  if (is != status || strstr(status == 0 ? out : err, part) == NULL) {
    fail_msg("cleave gnn %s: expected status %d and '%s'; status %d, standard error:\n%s\nstandard output:\n%s", arguments,
             status, part, is, err, out);
  }
}

static json_t *document(const char *arguments) {
  expect(arguments, 0, "{");
  json_t *root = json_loads(out, 0, NULL);
  assert_non_null(root);
  return root;
}

static json_int_t number(const json_t *object, const char *name) {
  const json_t *found = json_object_get(object, name);
  if (!json_is_integer(found)) fail_msg("the JSON output has no integer '%s':\n%s", name, out);
  return json_integer_value(found);
}

static int set_up(void **state) {
  (void)state;
  return command_set_up() ? 0 : -1;
}

static void a_small_graph_is_told_whole(void **state) {
  (void)state;
  /* Vertices 0, 1 and 2 form a ring with a repeated edge from 0 to 1; 6 has an edge to 0, 4 has a self loop, 3 and 5 have no
   * edges. */
  write_text("ring.txt", "# ring\n0 1\n0 1\n1 2\n2 0\n4 4\n6 0\n");
  json_t *root = document("inspect ring.txt --json");
  assert_int_equal(number(root, "vertices"), 7);
  assert_int_equal(number(root, "edges"), 6);
  assert_int_equal(number(json_object_get(root, "in_degree"), "min"), 0);
  assert_int_equal(number(json_object_get(root, "in_degree"), "max"), 2);
  assert_int_equal(number(json_object_get(root, "out_degree"), "max"), 2);
  assert_int_equal(number(root, "without_in_edges"), 3);
  assert_int_equal(number(root, "isolated"), 3);
  assert_int_equal(number(root, "self_loops"), 1);
  assert_int_equal(number(root, "repeated_edges"), 1);
  assert_int_equal(number(root, "rows_bytes"), 8 * 8 + 6 * 4);
  assert_int_equal(number(root, "features"), 0);
  assert_int_equal(json_array_size(json_object_get(root, "per_k")), 0);
  json_decref(root);
  expect("inspect ring.txt", 0, "in-degree    0 to 2; 3 without in-edges");
}

/* The commands generate the same graph and the same subgraphs as the library's functions. METIS partitions only once. */
static void generated_graphs_are_cut_once(void **state) {
  (void)state;
  clv_error error = {0};
  clv__gnn_graph *graph;
  clv__membership membership;
  clv__partitioned partitioned;
  char hash[2 * CLV__HASH_BYTES + 1];
  const clv_allocator *allocator = clv__allocator_default();
  expect("generate --rmat 9 --edges-per-vertex 6 --features 3 --seed 4 -o g.npz", 0, "512 vertices, 3,072 edges, 3 features");
  assert_ok(clv__gnn_graph_generate(allocator, 9, 6, 3, 4, &graph, &error), error);
  clv__hash_text(&graph->hash, hash);
  for (int round = 0; round < 2; ++round) {
    json_t *root = document("inspect g.npz --kset 5,1,3..4,3 --seed 2 --json -v"), *per_k = json_object_get(root, "per_k");
    assert_string_equal(json_string_value(json_object_get(root, "hash")), hash);
    assert_int_equal(json_array_size(per_k), 4);
    static const uint32_t ks[] = {1, 3, 4, 5};
    for (size_t i = 0; i < 4; ++i) {
      const json_t *cut = json_array_get(per_k, i), *parts = json_object_get(cut, "subgraphs");
      assert_ok(clv__membership_make(allocator, graph, ks[i], 2, NULL, &membership, &error), error);
      assert_ok(clv__partitioned_make(allocator, graph, &membership, &partitioned, &error), error);
      assert_int_equal(number(cut, "k"), ks[i]);
      assert_int_equal(number(cut, "communication_volume"), partitioned.communication_volume);
      assert_int_equal(json_is_true(json_object_get(cut, "cached")), round == 1 && ks[i] > 1);
      assert_int_equal(json_real_value(json_object_get(cut, "metis_seconds")) > 0, round == 0 && ks[i] > 1);
      assert_int_equal(json_array_size(parts), ks[i]);
      uint64_t most = 0;
      for (uint32_t p = 0; p < ks[i]; ++p) {
        const json_t *part = json_array_get(parts, p);
        assert_int_equal(number(part, "owned"), partitioned.subgraphs[p].owned_count);
        assert_int_equal(number(part, "halo"), partitioned.subgraphs[p].halo_count);
        assert_int_equal(number(part, "in_edges"), partitioned.subgraphs[p].edge_count);
        assert_int_equal(number(part, "cut_edges"), partitioned.subgraphs[p].cut_edge_count);
        if (partitioned.subgraphs[p].edge_count > most) most = partitioned.subgraphs[p].edge_count;
      }
      assert_int_equal(number(json_object_get(cut, "in_edges"), "max"), most);
      clv__partitioned_finish(&partitioned);
      clv__membership_finish(allocator, &membership);
    }
    json_decref(root);
  }
  clv__gnn_graph_destroy(graph);
  expect("inspect g.npz --kset 3 --seed 2", 0, "cached");
  expect("inspect g.npz --kset 3 --seed 2 --cache-dir ''", 0, "ms");
}

/* The help of a verb lists the verb's own options and no others. */
static void help_is_of_the_verb(void **state) {
  (void)state;
  static const struct {
    const char *verb, *usage, *has, *has_not;
  } texts[] = {{"generate", "  cleave gnn generate --rmat SCALE -o FILE [OPTIONS]", "--edges-per-vertex E", "--kset"},
               {"inspect", "  cleave gnn inspect GRAPH [OPTIONS]", "--kset LIST", "--rmat"},
               {"profile", "  cleave gnn profile --model FILE --graph FILE [OPTIONS]", "--import CSV", "--effort"},
               {"plan", "  cleave gnn plan --model FILE --graph FILE [OPTIONS]", "--list-peps", "--resume"},
               {"run", "  cleave gnn run --model FILE --graph FILE [OPTIONS]", "--resume", "--list-peps"}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    char arguments[64], first[sizeof out];
    snprintf(arguments, sizeof arguments, "%s --help", texts[i].verb);
    expect(arguments, 0, texts[i].usage);
    if (strstr(out, texts[i].has) == NULL || strstr(out, texts[i].has_not) != NULL || strstr(out, "\nExamples\n") == NULL)
      fail_msg("the help text of %s must contain '%s' and 'Examples', but not '%s':\n%s", texts[i].verb, texts[i].has,
               texts[i].has_not, out);
    strcpy(first, out);
    snprintf(arguments, sizeof arguments, "--help %s", texts[i].verb);
    expect(arguments, 0, texts[i].usage);
    assert_string_equal(out, first);
  }
  expect("--help", 0, "'cleave gnn VERB --help' shows the options of a verb.");
  expect("pln --help", 2, "did you mean 'plan'?");
}

static void wrong_usage_is_told(void **state) {
  (void)state;
  write_text("small.txt", "0 1\n1 2\n");
  write_text("bad.txt", "0 1\n1 x\n");
  expect("", 2, "VERB");
  expect("inspct g", 2, "unknown verb 'inspct' of 'gnn'; did you mean 'inspect'?");
  expect("inspect", 2, "GRAPH is missing; usage: cleave gnn inspect GRAPH");
  expect("generate x --rmat 3", 2, "'x' is one argument too many");
  expect("generate --rmat 3", 2, "'-o FILE' is missing");
  expect("generate -o x.npz", 2, "'--rmat SCALE' is missing");
  expect("generate --rmat 32 -o x.npz", 2, "scale 32 is above the maximum of 31");
  expect("inspect small.txt --rmat 3", 2, "option '--rmat' belongs to 'cleave gnn generate', not to 'inspect'");
  static const char *const sets[] = {"''", "0", "3..1", "1,,2", "1..", "x", "4294967296", "1-3", "1,2,"};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
    char arguments[64];
    snprintf(arguments, sizeof arguments, "inspect small.txt --kset %s", sets[i]);
    expect(arguments, 2, "option '--kset'");
  }
  expect("inspect small.txt --kset 1..100000", 2, "has more than");
  expect("inspect small.txt --kset 1,4", 1, "small.txt: k = 4: a graph with 3 vertices can have 1 to 3 parts");
  expect("inspect bad.txt", 1, "bad.txt: line 2: 'x' is not a valid destination");
  expect("inspect absent.npz", 1, "absent.npz: cannot open");
  expect("generate --rmat 3 -o no/where.npz", 1, "no/where.npz: cannot create");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_small_graph_is_told_whole),
      cmocka_unit_test(generated_graphs_are_cut_once),
      cmocka_unit_test(help_is_of_the_verb),
      cmocka_unit_test(wrong_usage_is_told),
  };
  return cmocka_run_group_tests(tests, set_up, command_tear_down);
}
