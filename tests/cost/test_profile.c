/* Tests the profile file: equal tables give equal bytes, in whatever order their entries were added; a damaged file is
 * rejected with an error that names the place. */
#include "profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Builds the same tables each time, adding the entries in one of two orders. */
static void make(made_profile *p, const clv_allocator *allocator, bool backwards) {
  static const clv__profile_copy copies[] = {{64, {900, 3, 11}}, {4096, {1100, 4, 11}}};
  clv_error error = {0};
  uint32_t conv, relu, add;
  profile_begin(p, allocator, "cpu:one \"odd\" \xc3\xbc fingerprint");
  if (backwards) {
    add = profile_operator(p, "Add(f32[4],f32[4])>f32[4]", 5000, 1000);
    relu = profile_operator(p, "Relu(f32[4])>f32[4]", 4000, 0);
    conv = profile_operator(p, "Conv(f32[4])>f32[4]", 9000, 7000);
  } else {
    conv = profile_operator(p, "Conv(f32[4])>f32[4]", 9000, 7000);
    relu = profile_operator(p, "Relu(f32[4])>f32[4]", 4000, 0);
    add = profile_operator(p, "Add(f32[4],f32[4])>f32[4]", 5000, 1000);
  }
  p->device->operators[add].infeasible = true;
  p->device->operators[add].scratch_bytes = 77;
  uint32_t first = profile_saving(p, conv, relu, 3000), second = profile_saving(p, relu, add, 200);
  const clv__profile_term nodes[] = {{conv, 1}, {relu, 3}}, cut[] = {{second, 2}, {first, 1}};
  profile_block(p, backwards ? "b" : "a", 12000, nodes, 2, cut, 2);
  profile_block(p, backwards ? "a" : "b", 12000, nodes, 2, cut, 2);
  assert_ok(clv__profile_put_copies(p->profile, p->device, CLV__COPY_OUT, copies, 2, &error), error);
  clv__profile_device *other;
  assert_ok(clv__profile_find_or_add_device(p->profile, "another", &other, &error), error);
}

static void order_does_not_matter(void **state) {
  (void)state;
  made_profile a, b;
  clv__text text_a, text_b;
  make(&a, clv__allocator_default(), false);
  make(&b, clv__allocator_default(), true);
  profile_text(a.profile, &text_a);
  profile_text(b.profile, &text_b);
  assert_string_equal(text_a.data, text_b.data);
  clv__text_finish(&text_a);
  clv__text_finish(&text_b);
  clv__profile_destroy(a.profile);
  clv__profile_destroy(b.profile);
}

static void reads_what_it_wrote(void **state) {
  (void)state;
  char path[] = "/tmp/cleave-profile-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  made_profile p;
  clv__profile *read;
  clv_error error = {0};
  clv__text before, after;
  make(&p, clv__allocator_default(), false);
  assert_string_equal(clv__profile_id(p.profile), "");
  assert_ok(clv__profile_write(p.profile, path, &error), error);
  assert_ok(clv__profile_read(path, clv__allocator_default(), &read, &error), error);
  profile_text(p.profile, &before);
  profile_text(read, &after);
  assert_string_equal(before.data, after.data);
  assert_int_equal(strlen(clv__profile_id(read)), 64);
  uint32_t found = clv__profile_find_device(read, p.device->fingerprint);
  assert_int_not_equal(found, CLV__NO_ID);
  const clv__profile_device *device = read->devices[found];
  uint32_t add = clv__profile_find_operator(device, "Add(f32[4],f32[4])>f32[4]");
  assert_int_not_equal(add, CLV__MAP_NONE);
  assert_true(device->operators[add].infeasible && device->operators[add].scratch_bytes == 77);
  assert_int_equal(device->copies[CLV__COPY_OUT][1].time.time_ns, 1100);
  assert_int_equal(device->copy_counts[CLV__COPY_IN], 0);
  clv__text_finish(&before);
  clv__text_finish(&after);
  clv__profile_destroy(read);
  clv__profile_destroy(p.profile);
  unlink(path);
}

/* Measuring again extends the tables: a new block replaces an old one with the same key, and an operator with a new signature
 * is added. */
static void extends(void **state) {
  (void)state;
  made_profile p;
  make(&p, clv__allocator_default(), false);
  uint32_t operators = p.device->operator_count, blocks = p.device->block_count;
  const clv__profile_term node = {0, 1};
  profile_block(&p, "a", 99, &node, 1, NULL, 0);
  assert_int_equal(p.device->block_count, blocks);
  assert_int_equal(p.device->blocks[0].total.time_ns, 99);
  assert_int_equal(profile_operator(&p, "Relu(f32[4])>f32[4]", 1, 1), 1);
  assert_int_equal(p.device->operator_count, operators);
  assert_int_equal(profile_operator(&p, "Relu(f32[5])>f32[5]", 1, 1), operators);
  clv__profile_destroy(p.profile);
}

/* ---- Invalid files ---- */

static void refuse(const char *text, size_t size_bytes, const char *word) {
  clv_error error = {0};
  clv__profile *profile = (clv__profile *)&error;
  clv_status status = clv__profile_parse(text, size_bytes, "costs.json", clv__allocator_default(), &profile, &error);
  if (status != CLV_INVALID_MODEL) fail_msg("expected an error with '%s', but the status is %s", word, clv_status_name(status));
  assert_null(profile);
  if (strncmp(error.message, "costs.json: ", 12) != 0 || strstr(error.message, word) == NULL)
    fail_msg("the error message must begin with 'costs.json: ' and contain '%s': %s", word, error.message);
}

/* Expects the error for a valid profile in which the first `from` is replaced by `to`. */
static void refuse_changed(const char *from, const char *to, const char *word) {
  made_profile p;
  clv__text text, changed;
  make(&p, clv__allocator_default(), false);
  profile_text(p.profile, &text);
  clv__text_init(&changed, clv__allocator_default());
  const char *at = strstr(text.data, from);
  if (at == NULL) fail_msg("'%s' is not in the profile", from);
  clv__text_append_bytes(&changed, text.data, (size_t)(at - text.data));
  clv__text_append(&changed, "%s%s", to, at + strlen(from));
  refuse(changed.data, changed.size_bytes, word);
  clv__text_finish(&changed);
  clv__text_finish(&text);
  clv__profile_destroy(p.profile);
}

static void refuses_by_name(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *word;
  } cases[] = {
      {"\"cleave-profile\"", "\"cleave-plan\"", "not a profile"},
      {"\"version\": 1", "\"version\": 2", "unknown version 2"},
      {"\"version\": 1", "\"version\": -1", "'version' is -1"},
      {"\"version\": 1", "\"version\": \"1\"", "'version' must be a whole number"},
      {"\"host\": {", "\"guest\": {", "unknown key 'guest'"},
      {"\"format\":", "\"devices\": [], \"format\":", "duplicate"},
      {"\"time_ns\": 9000", "\"time_ns\": -9000", "'time_ns' is -9000"},
      {"\"time_ns\": 9000", "\"time_ns\": 9000.5", "operators[1]: 'time_ns' must be a whole number"},
      {"\"time_ns\": 9000", "\"time_ns\": 1e400", "line"},
      {"\"time_ns\": 9000", "\"time_ns\": NaN", "line"},
      {"\"time_ns\": 9000", "\"time_ns\": 99999999999999999", "'time_ns' is 99999999999999999"},
      {"\"time_ns\": 9000", "\"time_ns\": 99999999999999999999999", "line"},
      {"\"flops\": 1000", "\"flops\": -1", "'flops' is -1"},
      {"\"flops\": 1000", "\"flops\": 1e300", "'flops' is 1e+300"},
      {"\"flops_per_second\": 1000000000", "\"flops_per_second\": null", "'flops_per_second' must be a number"},
      {"\"signature\": \"Relu(f32[4])>f32[4]\"", "\"signature\": \"Conv(f32[4])>f32[4]\"", "'Conv(f32[4])>f32[4]' appears twice"},
      {"\"signature\": \"Relu", "\"signature\": \"Re\\u0000lu", "line"},
      {"\"infeasible\": true", "\"infeasible\": 1", "'infeasible' must be true or false"},
      {"\"saving_ns\": 3000", "\"saving_ns\": 3001", "must be even"},
      {"\"producer\": 1", "\"producer\": 1000000000", "'producer' is 1000000000; expected 0 to 2"},
      {"\"producer\": 1, \"consumer\": 2", "\"producer\": 2, \"consumer\": 0",
       "savings[1]: an earlier entry has the same producer and consumer"},
      {"\"nodes\": [[1, 1], [2, 3]]", "\"nodes\": [[1, 1], [2, 1000000000]]", "the count 1000000000"},
      {"\"nodes\": [[1, 1], [2, 3]]", "\"nodes\": [[2, 1], [1, 3]]", "index 1 after 2"},
      {"\"nodes\": [[1, 1], [2, 3]]", "\"nodes\": [[1, 1], [3, 3]]", "has the index 3; expected 0 to 2"},
      {"\"nodes\": [[1, 1], [2, 3]]", "\"nodes\": [[1, 1, 1]]", "not a pair"},
      {"\"nodes\": [[1, 1], [2, 3]]", "\"nodes\": {}", "'nodes' must be a list"},
      {"\"key\": \"a\"", "\"key\": \"b\"", "'b' appears twice"},
      {"{\"bytes\": 64,", "{\"bytes\": 9999,", "sizes must ascend"},
      {"\"fingerprint\": \"another\"", "\"fingerprint\": 7", "devices[0]: device: 'fingerprint' must be a string"},
      {"\"blocks\": [", "\"blocks\": null, \"x\": [", "unknown key 'x'"},
      {"\"runs\": 50", "\"runs\": 1000000000", "'runs' is 1000000000"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) refuse_changed(cases[i].from, cases[i].to, cases[i].word);
  refuse("", 0, "line");
  refuse("[]", 2, "not a profile");
  refuse("\xff\xfe{}", 4, "line");
}

/* A file cut off at any place is rejected. With one byte changed, the parser rejects the file or reads it, but does not crash. */
static void survives_damage(void **state) {
  (void)state;
  made_profile p;
  clv__text text;
  clv_error error = {0};
  clv__profile *profile;
  make(&p, clv__allocator_default(), false);
  profile_text(p.profile, &text);
  size_t body = strlen("{");
  for (size_t size = 0; size + 3 < text.size_bytes; size += size < 40 ? 1 : 7) {
    assert_int_equal(clv__profile_parse(text.data, size, "cut", clv__allocator_default(), &profile, &error), CLV_INVALID_MODEL);
  }
  uint64_t seed = 9;
  for (int i = 0; i < 3000; ++i) {
    size_t at = body + test_random(&seed) % (text.size_bytes - body);
    char old = text.data[at];
    text.data[at] = "0123456789-{}[]\",:e. x"[test_random(&seed) % 22];
    if (clv__profile_parse(text.data, text.size_bytes, "damaged", clv__allocator_default(), &profile, &error) == CLV_OK)
      clv__profile_destroy(profile);
    text.data[at] = old;
  }
  clv__text_finish(&text);
  clv__profile_destroy(p.profile);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  made_profile p;
  clv__text text;
  make(&p, clv__allocator_default(), false);
  profile_text(p.profile, &text);
  bool done = false;
  for (size_t fail_at = 1; !done; ++fail_at) {
    test_allocator counting;
    clv_error error = {0};
    clv__profile *profile = NULL;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = clv__profile_parse(text.data, text.size_bytes, "p", &counting.allocator, &profile, &error);
    if (status == CLV_OK) status = clv__profile_solve(profile->devices[0], &counting.allocator, &error);
    done = status == CLV_OK;
    if (!done) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    clv__profile_destroy(profile);
    assert_int_equal(counting.live, 0);
  }
  clv__text_finish(&text);
  clv__profile_destroy(p.profile);
}

/* If two profiles of one device are merged, in either order, the result has the entries of both. */
static void merges_lose_nothing(void **state) {
  (void)state;
  clv_error error = {0};
  clv__text texts[2];
  for (int turn = 0; turn < 2; ++turn) {
    made_profile a, b;
    profile_begin(&a, clv__allocator_default(), "one");
    profile_begin(&b, clv__allocator_default(), "one");
    uint32_t conv = profile_operator(&a, "Conv", 9000, 7000), relu = profile_operator(&a, "Relu", 4000, 100);
    uint32_t edge = profile_saving(&a, conv, relu, 0);
    const clv__profile_term of_a[] = {{conv, 1}}, cut_a[] = {{edge, 2}};
    profile_block(&a, "a", 9000, of_a, 1, cut_a, 1);
    uint32_t add = profile_operator(&b, "Add", 500, 300), same = profile_operator(&b, "Relu", 4000, 100);
    uint32_t other = profile_saving(&b, add, same, 0);
    const clv__profile_term of_b[] = {{same, 3}, {add, 1}}, cut_b[] = {{other, 1}};
    profile_block(&b, "b", 7000, of_b, 2, cut_b, 1);
    made_profile *into = turn == 0 ? &a : &b;
    assert_ok(clv__profile_merge(into->profile, (turn == 0 ? &b : &a)->profile, &error), error);
    assert_int_equal(into->device->operator_count, 3);
    assert_int_equal(into->device->saving_count, 2);
    assert_int_equal(into->device->block_count, 2);
    profile_text(into->profile, &texts[turn]);
    clv__profile_destroy(a.profile);
    clv__profile_destroy(b.profile);
  }
  assert_string_equal(texts[0].data, texts[1].data);
  clv__text_finish(&texts[0]);
  clv__text_finish(&texts[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_does_not_matter),     cmocka_unit_test(reads_what_it_wrote),
      cmocka_unit_test(merges_lose_nothing),       cmocka_unit_test(extends),
      cmocka_unit_test(refuses_by_name),           cmocka_unit_test(survives_damage),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
