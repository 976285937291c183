/* Decoders that generate text: a prompt of 16 tokens at once, then one token at a time, each fed with the caches that the run
 * before gave. On any devices the tokens are those of the CPU alone. */
#include "decoder.h"
#include "machine.h"

enum { PROMPT = 16, GENERATED = 64 };

typedef struct generation {
  const char *devices, *spec, *strategy;
  uint32_t bucket_multiple;
  uint32_t npu_nodes; /* out: on the NPU with an open size */
  int64_t tokens[GENERATED];
} generation;

typedef struct cache {
  float *data;
  int64_t length; /* tokens in it */
} cache;

static int64_t largest(const float *row) {
  int64_t best = 0;
  for (int64_t i = 1; i < DECODER_WORDS; ++i) {
    if (row[i] > row[best]) best = i;
  }
  return best;
}

static clv_tensor cache_tensor(bool grows, int64_t length, float *data) {
  const int64_t fixed[] = {DECODER_LONGEST, DECODER_WIDTH};
  const int64_t growing[] = {1, DECODER_HEADS, length, DECODER_WIDTH / DECODER_HEADS};
  return grows ? f32(4, growing, data) : f32(2, fixed, data);
}

/* One run: `ids` at the places from `first` on. Caches are replaced by those that come out. */
static int64_t step(clv_session *session, bool grows, const int64_t *ids, int64_t count, int64_t first, cache *caches) {
  clv_error error = {0};
  int64_t positions[PROMPT], tokens[PROMPT];
  for (int64_t i = 0; i < count; ++i) positions[i] = first + i, tokens[i] = ids[i];
  clv_tensor inputs[2 + DECODER_CACHES], outputs[1 + DECODER_CACHES] = {{0}};
  inputs[0] = clv__tensor_make(CLV_I64, 2, (const int64_t[]){1, count}, tokens);
  inputs[1] = clv__tensor_make(CLV_I64, 1, &count, positions);
  for (int c = 0; c < DECODER_CACHES; ++c) inputs[2 + c] = cache_tensor(grows, caches[c].length, caches[c].data);
  assert_ok(clv_session_run(session, inputs, 2 + DECODER_CACHES, outputs, 1 + DECODER_CACHES, &error), error);
  assert_int_equal(outputs[0].dims[1], count);
  int64_t token = largest((const float *)outputs[0].data + (count - 1) * DECODER_WORDS);
  for (int c = 0; c < DECODER_CACHES; ++c) {
    clv_tensor wanted = cache_tensor(grows, first + count, NULL);
    size_t size_bytes;
    assert_true(clv__tensor_same_type(&outputs[1 + c], &wanted) && clv__tensor_size_bytes(&wanted, &size_bytes));
    memcpy(caches[c].data, outputs[1 + c].data, size_bytes);
    caches[c].length = first + count;
  }
  return token;
}

static void generate(generation *how, bool grows) {
  machine m;
  clv_error error = {0};
  machine_open(&m, how->devices, how->spec == NULL ? 0 : 1, &how->spec);
  clv_graph *graph = grows ? test_decoder_growing(&m.counting.allocator) : test_decoder_fixed(&m.counting.allocator);
  clv_plan_options plan_options = CLV_PLAN_OPTIONS_INIT;
  plan_options.strategy = how->strategy;
  clv_plan *plan = machine_plan(&m, graph, NULL, plan_options);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->partitions[p].is_bucketed) how->npu_nodes += plan->partitions[p].node_count;
  }
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.bucket_multiple = how->bucket_multiple;
  clv_session *session;
  assert_ok(clv_session_create(plan, &options, &session, &error), error);
  cache caches[DECODER_CACHES];
  for (int c = 0; c < DECODER_CACHES; ++c) caches[c] = (cache){calloc(DECODER_LONGEST * DECODER_WIDTH, sizeof(float)), 0};
  int64_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; ++i) prompt[i] = (i * 37 + 11) % DECODER_WORDS;
  how->tokens[0] = step(session, grows, prompt, PROMPT, 0, caches);
  for (int i = 1; i < GENERATED; ++i) how->tokens[i] = step(session, grows, &how->tokens[i - 1], 1, PROMPT + i - 1, caches);
  for (int c = 0; c < DECODER_CACHES; ++c) free(caches[c].data);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static const char fixed_shapes[] = "{\"static_shapes\": true, \"operators\": \"all\"}";

static void tokens_are_those_of_the_cpu(bool grows) {
  generation alone = {.devices = "cpu"};
  generate(&alone, grows);
  uint32_t distinct = 0; /* a decoder that repeats itself shows little */
  for (int i = 0; i < GENERATED; ++i) {
    bool is_new = true;
    for (int k = 0; k < i; ++k) is_new = is_new && alone.tokens[k] != alone.tokens[i];
    distinct += is_new;
  }
  assert_true(distinct > 8);
  generation others[] = {
      {.devices = "npu,cpu", .spec = "default", .strategy = "contiguous"},
      {.devices = "npu,cpu", .spec = "default", .strategy = "propagate", .bucket_multiple = 8},
      {.devices = "npu,cpu", .spec = fixed_shapes, .strategy = "delegate", .bucket_multiple = 24},
      {.devices = "npu,cpu", .spec = fixed_shapes, .strategy = "contiguous", .bucket_multiple = 1},
      {.devices = "npu,cpu", .spec = "all", .strategy = "contiguous"},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    generate(&others[i], grows);
    if (strcmp(others[i].spec, "all") != 0) assert_true(others[i].npu_nodes > 15);
    for (int t = 0; t < GENERATED; ++t) {
      if (others[i].tokens[t] == alone.tokens[t]) continue;
      fail_msg("%s, way %zu: token %d is %d, on the CPU %d", grows ? "growing" : "fixed", i, t, (int)others[i].tokens[t],
               (int)alone.tokens[t]);
    }
  }
}

static void a_cache_of_the_greatest_length(void **state) {
  (void)state;
  tokens_are_those_of_the_cpu(false);
}

static void a_cache_that_grows(void **state) {
  (void)state;
  tokens_are_those_of_the_cpu(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_cache_of_the_greatest_length), cmocka_unit_test(a_cache_that_grows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
