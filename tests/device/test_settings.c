/* Tests the settings of a context: from options, from environment variables, which of the two takes precedence, and invalid
 * values. */
#include "device/device.h"
#include "machine.h"

static const char *const names[] = {
    "CLEAVE_ISA", "CLEAVE_GRAPH", "CLEAVE_GRAPH_CACHE", "CLEAVE_PREFILL_GRAPH", "CLEAVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};

/* Sets the variables above from "NAME=text;NAME=text" and unsets those that are not listed. */
static void set_environment(const char *text) {
  char copy[512];
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) unsetenv(names[i]);
  assert_true(snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy);
  for (char *at = strtok(copy, ";"); at != NULL; at = strtok(NULL, ";")) {
    char *equals = strchr(at, '=');
    *equals = '\0';
    assert_int_equal(setenv(at, equals + 1, 1), 0);
  }
}

static clv_status create(const char *environment, const clv_context_options *options, clv_context **context, clv_error *error) {
  set_environment(environment);
  clv_status status = clv_context_create(options, context, error);
  if (status != CLV_OK) assert_null(*context);
  return status;
}

/* Creates a context with the environment variables in `environment` and compares its settings with `expected`. */
static void expect(const char *environment, const clv_context_options *options, clv__settings expected) {
  clv_error error = {0};
  clv_context *context;
  assert_ok(create(environment, options, &context, &error), error);
  const clv__settings *settings = clv__context_settings(context);
  bool fine = settings->capture == expected.capture && settings->capture_cache_entries == expected.capture_cache_entries &&
              settings->capture_cache_bytes == expected.capture_cache_bytes &&
              settings->capture_prefill == expected.capture_prefill && settings->cache_bytes == expected.cache_bytes;
  const char *directory = settings->cache_directory;
  if (expected.cache_directory == NULL || directory == NULL) {
    fine = fine && directory == expected.cache_directory;
  } else {
    fine = fine && strcmp(directory, expected.cache_directory) == 0;
  }
  if (!fine) {
    fail_msg(
        "%s: unexpected settings: capture %d of at most %u entries and %llu bytes, prefill %d, cache directory '%s' of %llu "
        "bytes",
        environment, (int)settings->capture, settings->capture_cache_entries, (unsigned long long)settings->capture_cache_bytes,
        settings->capture_prefill, directory == NULL ? "(none)" : directory, (unsigned long long)settings->cache_bytes);
  }
  clv_context_destroy(context);
}

static clv__settings defaults(void) {
  return (clv__settings){CLV_CAPTURE_AUTO, 12, 256ull << 20, false, NULL, 1ull << 30, NULL, true, 0};
}

static void nothing_said(void **state) {
  (void)state;
  expect("", NULL, defaults());
  expect("CLEAVE_GRAPH=;CLEAVE_GRAPH_CACHE=;CLEAVE_PREFILL_GRAPH=", NULL, defaults());
}

static void capture_policies(void **state) {
  (void)state;
  static const struct {
    const char *text;
    clv_capture_policy mode;
  } cases[] = {{"off", CLV_CAPTURE_OFF}, {"0", CLV_CAPTURE_OFF},     {"no", CLV_CAPTURE_OFF},   {"FALSE", CLV_CAPTURE_OFF},
               {"on", CLV_CAPTURE_ON},   {"1", CLV_CAPTURE_ON},      {"Yes", CLV_CAPTURE_ON},   {"true", CLV_CAPTURE_ON},
               {"On", CLV_CAPTURE_ON},   {"auto", CLV_CAPTURE_AUTO}, {"AUTO", CLV_CAPTURE_AUTO}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char environment[64];
    snprintf(environment, sizeof environment, "CLEAVE_GRAPH=%s", cases[i].text);
    clv__settings expected = defaults();
    expected.capture = cases[i].mode;
    expect(environment, NULL, expected);
    if (cases[i].mode == CLV_CAPTURE_AUTO) continue;
    snprintf(environment, sizeof environment, "CLEAVE_PREFILL_GRAPH=%s", cases[i].text);
    expected = defaults();
    expected.capture_prefill = cases[i].mode == CLV_CAPTURE_ON;
    expect(environment, NULL, expected);
  }
}

static void entries(void **state) {
  (void)state;
  clv__settings expected = defaults();
  expected.capture_cache_entries = 1;
  expect("CLEAVE_GRAPH_CACHE=1", NULL, expected);
  expect("CLEAVE_GRAPH_CACHE=0001", NULL, expected);
  expected.capture_cache_entries = INT32_MAX;
  expect("CLEAVE_GRAPH_CACHE=2147483647", NULL, expected);
  expected.capture_cache_entries = 0; /* without room for captures, capturing is off */
  expected.capture = CLV_CAPTURE_OFF;
  expect("CLEAVE_GRAPH_CACHE=0", NULL, expected);
  expect("CLEAVE_GRAPH_CACHE=0;CLEAVE_GRAPH=on", NULL, expected);
}

static void directories(void **state) {
  (void)state;
  static const struct {
    const char *environment, *directory;
  } cases[] = {
      {"HOME=/home/a", "/home/a/.cache/cleave"},
      {"HOME=/home/a;XDG_CACHE_HOME=/x", "/x/cleave"},
      {"HOME=/home/a;XDG_CACHE_HOME=x", "/home/a/.cache/cleave"},
      {"HOME=/home/a;XDG_CACHE_HOME=", "/home/a/.cache/cleave"},
      {"HOME=here", NULL},
      {"HOME=", NULL},
      {"HOME=/home/a;XDG_CACHE_HOME=/x;CLEAVE_CACHE_DIR=/c", "/c"},
      {"HOME=/home/a;XDG_CACHE_HOME=/x;CLEAVE_CACHE_DIR=here", "here"},
      {"HOME=/home/a;XDG_CACHE_HOME=/x;CLEAVE_CACHE_DIR=", NULL},
  };
  clv_context_options said = CLV_CONTEXT_OPTIONS_INIT, none = CLV_CONTEXT_OPTIONS_INIT;
  char own[] = "/said";
  said.cache_directory = own;
  none.cache_directory = "";
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv__settings expected = defaults();
    expected.cache_directory = (char *)cases[i].directory;
    expect(cases[i].environment, NULL, expected);
    expected.cache_directory = own;
    expect(cases[i].environment, &said, expected);
    expected.cache_directory = NULL;
    expect(cases[i].environment, &none, expected);
  }
  /* The context copies its settings: changes of the caller's text and of the environment do not affect it. */
  clv_error error = {0};
  clv_context *context;
  assert_ok(create("CLEAVE_GRAPH=on", &said, &context, &error), error);
  own[1] = 'x';
  set_environment("CLEAVE_GRAPH=off");
  assert_string_equal(clv__context_settings(context)->cache_directory, "/said");
  assert_int_equal(clv__context_settings(context)->capture, CLV_CAPTURE_ON);
  clv_context_destroy(context);
}

static void options_win(void **state) {
  (void)state;
  static const char all[] = "CLEAVE_GRAPH=on;CLEAVE_GRAPH_CACHE=5;CLEAVE_PREFILL_GRAPH=on;CLEAVE_CACHE_DIR=/c";
  static const char unreadable[] = "CLEAVE_GRAPH=perhaps;CLEAVE_GRAPH_CACHE=-1;CLEAVE_PREFILL_GRAPH=2;CLEAVE_CACHE_DIR=/c";
  expect(all, NULL, (clv__settings){CLV_CAPTURE_ON, 5, 256ull << 20, true, (char *)"/c", 1ull << 30, NULL, true, 0});
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.capture = CLV_CAPTURE_OFF;
  options.capture_cache_entries = 7;
  options.capture_cache_bytes = 100;
  options.capture_prefill = CLV_SWITCH_OFF;
  options.cache_bytes = 200;
  const clv__settings said = {CLV_CAPTURE_OFF, 7, 100, false, (char *)"/c", 200, NULL, true, 0};
  expect(all, &options, said);
  expect(unreadable, &options, said); /* a variable is not read if its option is set */
  options.capture = CLV_CAPTURE_AUTO;
  options.capture_prefill = CLV_SWITCH_ON;
  expect("CLEAVE_GRAPH=off", &options, (clv__settings){CLV_CAPTURE_AUTO, 7, 100, true, NULL, 200, NULL, true, 0});
  options.capture_cache_entries = 0;
  expect("CLEAVE_GRAPH_CACHE=5", &options, (clv__settings){CLV_CAPTURE_OFF, 0, 100, true, NULL, 200, NULL, true, 0});
  /* An older program without these options: all come from the environment, whatever bytes follow its struct. */
  clv_context_options older;
  memset(&older, 0xa5, sizeof older);
  older.struct_size = (uint32_t)offsetof(clv_context_options, capture);
  older.allocator = NULL;
  older.log = NULL;
  expect(all, &older, (clv__settings){CLV_CAPTURE_ON, 5, 256ull << 20, true, (char *)"/c", 1ull << 30, NULL, true, 0});
}

static void unreadable(void **state) {
  (void)state;
  static const struct {
    const char *environment, *message;
  } cases[] = {
      {"CLEAVE_GRAPH=perhaps",
       "environment variable CLEAVE_GRAPH is 'perhaps'; it must be auto, 0, 1, on, off, true, false, yes or no"},
      {"CLEAVE_GRAPH=onn", NULL},
      {"CLEAVE_GRAPH=o", NULL},
      {"CLEAVE_GRAPH= on", NULL},
      {"CLEAVE_GRAPH=2", NULL},
      {"CLEAVE_GRAPH_CACHE=twelve",
       "environment variable CLEAVE_GRAPH_CACHE is 'twelve'; it must be a whole number from 0 to 2147483647"},
      {"CLEAVE_GRAPH_CACHE=-1", NULL},
      {"CLEAVE_GRAPH_CACHE=1.5", NULL},
      {"CLEAVE_GRAPH_CACHE=12 ", NULL},
      {"CLEAVE_GRAPH_CACHE=+12", NULL},
      {"CLEAVE_GRAPH_CACHE=2147483648", NULL},
      {"CLEAVE_GRAPH_CACHE=18446744073709551617", NULL},
      {"CLEAVE_PREFILL_GRAPH=auto",
       "environment variable CLEAVE_PREFILL_GRAPH is 'auto'; it must be 0, 1, on, off, true, false, yes or no"},
      {"CLEAVE_PREFILL_GRAPH=01", NULL},
      {"CLEAVE_ISA=avx2", "environment variable CLEAVE_ISA is 'avx2'; it must be v2, v3 or v4"},
      {"CLEAVE_ISA=v5", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_error error = {0};
    clv_context *context;
    if (create(cases[i].environment, NULL, &context, &error) != CLV_INVALID_ARGUMENT)
      fail_msg("%s: expected CLV_INVALID_ARGUMENT, but the status is another one", cases[i].environment);
    if (cases[i].message != NULL) assert_string_equal(error.message, cases[i].message);
  }
  clv_error error = {0};
  clv_context *context;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.capture = (clv_capture_policy)9;
  assert_int_equal(create("", &options, &context, &error), CLV_INVALID_ARGUMENT);
  options = (clv_context_options)CLV_CONTEXT_OPTIONS_INIT;
  options.capture_prefill = (clv_switch)3;
  assert_int_equal(create("", &options, &context, &error), CLV_INVALID_ARGUMENT);
}

static void memory_fails(void **state) {
  (void)state;
  test_allocator counting;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  test_allocator_init(&counting);
  options.allocator = &counting.allocator;
  for (size_t at = 1;; ++at) {
    clv_error error = {0};
    clv_context *context;
    counting.calls = 0;
    counting.fail_at = at;
    clv_status status = create("HOME=/home/a", &options, &context, &error);
    clv_context_destroy(context);
    assert_int_equal(counting.live, 0);
    if (status == CLV_OK) {
      assert_true(at > 2); /* at least the context and its directory were allocated */
      break;
    }
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_said), cmocka_unit_test(capture_policies), cmocka_unit_test(entries),
      cmocka_unit_test(directories),  cmocka_unit_test(options_win),      cmocka_unit_test(unreadable),
      cmocka_unit_test(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
