/* Decoders that generate text: first a prompt of 16 tokens in one run, then one token per run, with the caches that the previous
 * run returned. On all devices the tokens are the same as on the CPU alone. The prompt is issued launch by launch; the later runs
 * replay a capture. */
#include "decoder.h"

#include "execute/capture/capture.h"
#include "machine.h"

enum { PROMPT = 16, GENERATED = 64 };

typedef struct generation {
  const char *devices, *spec, *strategy;
  uint32_t bucket_multiple;
  clv_capture_policy mode;
  uint32_t npu_nodes; /* result: nodes of bucketed partitions on the NPU */
  int64_t tokens[GENERATED];
} generation;

typedef struct cache {
  float *data;
  int64_t length; /* tokens in the cache */
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

/* Makes one run with the tokens `ids` at positions from `first` on. Replaces the caches by the new ones. Returns the next
 * token. */
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

/* ---- How runs are issued ---- */

/* Counts how the runs of the session's device with fixed shapes were issued. */
typedef struct watch {
  const generation *how;
  bool grows;
  const clv_plan *plan;
  clv_session *session;
  int64_t buckets[2]; /* padded lengths of the input cache and the output cache in the last run; 0: not padded */
  uint32_t of_bucket; /* number of consecutive runs, up to the last, with these lengths */
  uint32_t captured, replayed;
} watch;

/* Returns the padded length of the cache `name`, whose actual length is `length`, in bucketed partitions; 0 if none of them has a
 * value of that length. */
static int64_t bucket_of(const watch *w, const char *name, int64_t length) {
  if (!w->grows) return 0;
  int64_t dim = w->plan->shapes->types[clv__graph_find_value(w->plan->graph, name)].dims[2];
  bool is_used = false;
  for (uint32_t p = 0; p < w->plan->partition_count; ++p) {
    const clv_graph_view *view = w->plan->partitions[p].view;
    for (uint32_t v = 0; w->plan->partitions[p].is_bucketed && v < view->value_count; ++v) {
      const clv_tensor *type = clv__view_type(view, v);
      for (int32_t d = 0; d < type->rank; ++d) is_used = is_used || type->dims[d] == dim;
    }
  }
  if (!is_used) return 0;
  int64_t multiple = w->how->bucket_multiple == 0 ? 64 : w->how->bucket_multiple;
  return length == 0 ? multiple : (length + multiple - 1) / multiple * multiple;
}

static void expect_issue(watch *w, uint32_t device, clv__issue wanted, int64_t length) {
  static const char *const words[] = {"not", "launch by launch", "captured", "replayed"};
  bool any = false;
  for (uint32_t p = 0; p < w->plan->partition_count; ++p) {
    clv__issue_info info;
    if (w->plan->partitions[p].device != device) continue;
    clv__session_issue(w->session, p, &info);
    if (info.issue != wanted) {
      fail_msg("%s, buckets of %u, at %d tokens: the status of partition %u is '%s' (%s), expected '%s'", w->how->spec,
               w->how->bucket_multiple, (int)length, p, words[info.issue], info.why, words[wanted]);
    }
    any = true;
  }
  w->captured += any && wanted == CLV__ISSUE_CAPTURED;
  w->replayed += any && wanted == CLV__ISSUE_REPLAYED;
}

/* Checks how a run of one token, after `length` others, was issued. */
static void check_step(watch *w, int64_t length) {
  if (w->how->mode == CLV_CAPTURE_OFF) return;
  if (w->grows && w->how->bucket_multiple == 1) return; /* every run has another shape: too many for the cache of captures */
  int64_t in = bucket_of(w, "k0", length), out = bucket_of(w, "new_k0", length + 1);
  w->of_bucket = w->of_bucket > 0 && in == w->buckets[0] && out == w->buckets[1] ? w->of_bucket + 1 : 1;
  w->buckets[0] = in, w->buckets[1] = out;
  uint32_t first = w->how->mode == CLV_CAPTURE_ON ? 1 : 2; /* which of the consecutive runs in a bucket is captured */
  for (uint32_t d = 0; d < w->plan->devices->count; ++d) {
    if (w->plan->devices->items[d].info.static_shapes_only) {
      expect_issue(w, d,
                   w->of_bucket < first    ? CLV__ISSUE_EAGER
                   : w->of_bucket == first ? CLV__ISSUE_CAPTURED
                                           : CLV__ISSUE_REPLAYED,
                   length);
    } else if (!w->grows && length > PROMPT + 3 && (w->how->spec == NULL || strcmp(w->how->spec, "all") != 0)) {
      uint32_t replayed = w->replayed; /* restored below, because `replayed` counts only the device with fixed shapes */
      expect_issue(w, d, CLV__ISSUE_REPLAYED, length);
      w->replayed = replayed;
    }
  }
}

static void check_prompt(const watch *w) {
  for (uint32_t p = 0; p < w->plan->partition_count; ++p) {
    clv__issue_info info;
    clv__session_issue(w->session, p, &info);
    assert_int_equal(info.issue, CLV__ISSUE_EAGER);
    assert_string_equal(info.why, w->how->mode == CLV_CAPTURE_OFF ? "capture is off" : "prefill");
  }
}

static void check_counters(const watch *w) {
  for (uint32_t d = 0; d < w->plan->devices->count; ++d) {
    clv__capture_counters counters;
    if (!w->plan->devices->items[d].info.static_shapes_only) continue;
    if (!clv__session_captures(w->session, d, &counters))
      fail_msg("%s, %s: %s has no cache of captures", w->how->spec, w->how->strategy, w->plan->devices->items[d].name);
    assert_int_equal(counters.failures, 0);
    if (w->grows && w->how->bucket_multiple == 1) continue;
    assert_int_equal(counters.captures, w->captured);
    assert_int_equal(counters.hits, w->replayed);
    assert_true(w->replayed > GENERATED * 2 / 3);
  }
}

/* ---- Generating a text ---- */

static bool open_machine(machine *m, const generation *how) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  context.cache_directory = "";
  context.capture = how->mode;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = how->devices;
  devices.npu_spec_count = how->spec != NULL;
  devices.npu_specs = &how->spec;
  if (clv_devices_open(m->context, &devices, &m->devices, &error) == CLV_OK) return true;
  if (strstr(how->devices, "opencl") == NULL) fail_msg("%s", error.message);
  printf("skipped: %s: %s\n", how->devices, error.message);
  clv_context_destroy(m->context);
  return false;
}

/* Returns false if the device list needs OpenCL and it is not available. */
static bool generate(generation *how, bool grows) {
  machine m;
  clv_error error = {0};
  if (!open_machine(&m, how)) return false;
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
  watch w = {.how = how, .grows = grows, .plan = plan, .session = session};
  cache caches[DECODER_CACHES];
  for (int c = 0; c < DECODER_CACHES; ++c) caches[c] = (cache){calloc(DECODER_LONGEST * DECODER_WIDTH, sizeof(float)), 0};
  int64_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; ++i) prompt[i] = (i * 37 + 11) % DECODER_WORDS;
  how->tokens[0] = step(session, grows, prompt, PROMPT, 0, caches);
  check_prompt(&w);
  for (int i = 1; i < GENERATED; ++i) {
    how->tokens[i] = step(session, grows, &how->tokens[i - 1], 1, PROMPT + i - 1, caches);
    check_step(&w, PROMPT + i - 1);
  }
  check_counters(&w);
  for (int c = 0; c < DECODER_CACHES; ++c) free(caches[c].data);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
  return true;
}

static const char fixed_shapes[] = "{\"static_shapes\": true, \"operators\": \"all\"}",
                  in_host_memory[] = "{\"static_shapes\": true, \"operators\": \"all\", \"memory_space\": \"host\"}";

static void tokens_are_those_of_the_cpu(bool grows) {
  generation alone = {.devices = "cpu", .mode = CLV_CAPTURE_OFF};
  assert_true(generate(&alone, grows));
  uint32_t distinct = 0; /* different tokens; a decoder that repeats itself would prove little */
  for (int i = 0; i < GENERATED; ++i) {
    bool is_new = true;
    for (int k = 0; k < i; ++k) is_new = is_new && alone.tokens[k] != alone.tokens[i];
    distinct += is_new;
  }
  assert_true(distinct > 8);
  generation others[] = {
      {.devices = "npu,cpu", .spec = "default", .strategy = "contiguous", .mode = CLV_CAPTURE_AUTO},
      {.devices = "npu,cpu", .spec = "default", .strategy = "propagate", .bucket_multiple = 8, .mode = CLV_CAPTURE_ON},
      {.devices = "npu,cpu", .spec = fixed_shapes, .strategy = "delegate", .bucket_multiple = 24, .mode = CLV_CAPTURE_AUTO},
      {.devices = "npu,cpu", .spec = fixed_shapes, .strategy = "propagate", .bucket_multiple = 24, .mode = CLV_CAPTURE_ON},
      {.devices = "npu,cpu", .spec = fixed_shapes, .strategy = "contiguous", .bucket_multiple = 1, .mode = CLV_CAPTURE_ON},
      {.devices = "npu,cpu", .spec = in_host_memory, .strategy = "contiguous", .bucket_multiple = 24, .mode = CLV_CAPTURE_ON},
      {.devices = "npu,cpu", .spec = "all", .strategy = "contiguous", .mode = CLV_CAPTURE_AUTO},
      {.devices = "opencl,cpu", .strategy = "contiguous", .mode = CLV_CAPTURE_ON},
      {.devices = "opencl,cpu", .strategy = "optimal", .mode = CLV_CAPTURE_AUTO},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    if (!generate(&others[i], grows)) continue;
    if (others[i].spec != NULL && strcmp(others[i].spec, "all") != 0) assert_true(others[i].npu_nodes > 15);
    for (int t = 0; t < GENERATED; ++t) {
      if (others[i].tokens[t] == alone.tokens[t]) continue;
      fail_msg("%s cache, configuration %zu: token %d is %d, but %d on the CPU", grows ? "growing" : "fixed", i, t,
               (int)others[i].tokens[t], (int)alone.tokens[t]);
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
