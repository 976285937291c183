/* The provider options: what a program passes with the provider, as texts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define PREFIX "ep.cleaveexecutionprovider." /* ONNX Runtime puts the provider's name, in small letters, before each key */

typedef enum form {
  TEXT,
  COUNT,   /* a whole number */
  SECONDS, /* a number */
  SWITCH,  /* 0, 1, off, on, false, true, no, yes */
  PAIRS,   /* PATTERN=DEVICE;PATTERN=DEVICE */
  CAPTURE, /* off, on, auto */
  PRECISION
} form;

typedef struct known {
  const char *key;
  form form;
  size_t place, count_place; /* in clv__ep_options; of PAIRS: also of their number */
} known;

#define AT(field) offsetof(clv__ep_options, field)
static const known list[] = {
    {"devices", TEXT, AT(devices.list), 0},
    {"npu_spec", TEXT, 0, 0}, /* taken apart: it repeats */
    {"threads", COUNT, AT(devices.thread_count), 0},
    {"no_fallback", SWITCH, AT(devices.no_fallback), 0},
    {"strategy", TEXT, AT(plan.strategy), 0},
    {"split", TEXT, AT(plan.split), 0},
    {"objective", TEXT, AT(plan.objective), 0},
    {"profile", TEXT, AT(plan.profile), 0},
    {"offload", TEXT, AT(plan.offload), 0},
    {"pin", PAIRS, AT(plan.pins), AT(plan.pin_count)},
    {"force", PAIRS, AT(plan.forces), AT(plan.force_count)},
    {"deterministic", SWITCH, AT(session.deterministic), 0},
    {"tune", SWITCH, AT(session.tune), 0},
    {"in_flight", COUNT, AT(session.in_flight), 0},
    {"prepared_shapes", COUNT, AT(session.prepared_shapes), 0},
    {"device_time_limit", SECONDS, AT(session.device_time_limit_s), 0},
    {"bucket", COUNT, AT(session.bucket_multiple), 0},
    {"precision", PRECISION, AT(session.precision), 0},
    {"capture", CAPTURE, AT(context.capture), 0},
    {"capture_cache", COUNT, AT(context.capture_cache_entries), 0},
    {"capture_prefill", SWITCH, AT(context.capture_prefill), 0},
    {"cache_dir", TEXT, AT(context.cache_directory), 0},
    {"plugin_path", TEXT, AT(context.plugin_path), 0},
    {"report", TEXT, AT(report), 0},
};
enum { KNOWN_COUNT = sizeof list / sizeof *list };

static clv_status unknown(const char *key, clv_error *error) {
  char keys[512] = "";
  size_t used = 0;
  for (size_t i = 0; i < KNOWN_COUNT && used < sizeof keys; ++i) {
    int written = snprintf(keys + used, sizeof keys - used, "%s%s", i > 0 ? ", " : "", list[i].key);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__ep_error(error, CLV_INVALID_ARGUMENT,
                       "provider option '%s' is unknown; expected one of: %s; or DEVICE:KEY for an option of a device", key,
                       keys);
}

static clv_status invalid(const char *key, const char *value, const char *expected, clv_error *error) {
  return clv__ep_error(error, CLV_INVALID_ARGUMENT, "provider option '%s': '%s' is not %s", key, value, expected);
}

/* The place of a word in a list that ends with NULL, or -1. */
static int find_word(const char *word, const char *const *words) {
  for (int i = 0; words[i] != NULL; ++i) {
    if (strcmp(words[i], word) == 0) return i;
  }
  return -1;
}

static clv_status read_switch(const char *key, const char *value, bool *is_on, clv_error *error) {
  static const char *const words[] = {"0", "1", "off", "on", "false", "true", "no", "yes", NULL};
  int word = find_word(value, words);
  if (word < 0) return invalid(key, value, "one of: on, off, true, false, yes, no, 1, 0", error);
  *is_on = word % 2 == 1;
  return CLV_OK;
}

static clv_status read_count(const char *key, const char *value, uint32_t *count, clv_error *error) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number > INT32_MAX) {
    return invalid(key, value, "a whole number from 0 to 2147483647", error);
  }
  *count = (uint32_t)number;
  return CLV_OK;
}

static clv_status read_seconds(const char *key, const char *value, double *seconds, clv_error *error) {
  char *end;
  *seconds = strtod(value, &end);
  if (end == value || *end != '\0' || !(*seconds >= 0 && *seconds < 1e9))
    return invalid(key, value, "a number of seconds", error);
  return CLV_OK;
}

static clv_status read_pairs(clv__ep_arena *arena, const char *key, const char *value, const clv_assignment **pairs,
                             uint32_t *count, clv_error *error) {
  size_t room = 1;
  for (const char *at = value; *at != '\0'; ++at) room += *at == ';';
  clv_assignment *made = clv__ep_take(arena, room, sizeof *made);
  char *text = clv__ep_copy_text(arena, value, strlen(value));
  if (made == NULL || text == NULL) return clv__ep_no_memory(error);
  *count = 0;
  for (char *rest = text, *pair; (pair = strsep(&rest, ";")) != NULL;) {
    char *equals = strrchr(pair, '=');
    if (pair[0] == '\0') continue;
    if (equals == NULL || equals == pair || equals[1] == '\0') return invalid(key, value, "a list of PATTERN=DEVICE;…", error);
    *equals = '\0';
    made[(*count)++] = (clv_assignment){pair, equals + 1};
  }
  *pairs = made;
  return CLV_OK;
}

static clv_status read_one(clv__ep_options *options, const known *option, const char *value, clv_error *error) {
  static const char *const captures[] = {"off", "on", "auto", NULL};
  static const char *const precisions[] = {"f32", "bf16", NULL};
  void *place = (char *)options + option->place;
  bool is_on;
  int word;
  switch (option->form) {
    case TEXT:
      *(const char **)place = clv__ep_copy_text(&options->arena, value, strlen(value));
      return *(const char **)place == NULL ? clv__ep_no_memory(error) : CLV_OK;
    case COUNT:
      return read_count(option->key, value, place, error);
    case SECONDS:
      return read_seconds(option->key, value, place, error);
    case PAIRS:
      return read_pairs(&options->arena, option->key, value, place, (uint32_t *)((char *)options + option->count_place), error);
    case SWITCH:
      TRY(read_switch(option->key, value, &is_on, error));
      if (option->place == AT(context.capture_prefill))
        options->context.capture_prefill = is_on ? CLV_SWITCH_ON : CLV_SWITCH_OFF;
      else
        *(bool *)place = is_on;
      return CLV_OK;
    case CAPTURE:
      word = find_word(value, captures);
      if (word < 0) return invalid(option->key, value, "one of: off, on, auto", error);
      options->context.capture = (clv_capture_policy)(CLV_CAPTURE_OFF + word);
      return CLV_OK;
    case PRECISION:
      word = find_word(value, precisions);
      if (word < 0) return invalid(option->key, value, "one of: f32, bf16", error);
      options->session.precision = word == 1 ? CLV_BF16 : CLV_F32;
      return CLV_OK;
  }
  return CLV_OK;
}

/* The texts of options that repeat: npu_spec, npu_spec1, …; DEVICE:KEY. */
typedef struct repeated {
  const char **items;
  uint32_t count;
} repeated;

static clv_status repeat(clv__ep_options *options, repeated *texts, const char *first, const char *joint, const char *second,
                         clv_error *error) {
  size_t size_bytes = strlen(first) + strlen(joint) + strlen(second);
  char *text = clv__ep_take(&options->arena, size_bytes + 1, 1);
  if (text == NULL) return clv__ep_no_memory(error);
  snprintf(text, size_bytes + 1, "%s%s%s", first, joint, second);
  texts->items[texts->count++] = text;
  return CLV_OK;
}

/* The NPU's number in the key "npu_spec3": 3; 0 for "npu_spec"; -1 for another key. */
static int spec_number(const char *key) {
  static const char stem[] = "npu_spec";
  if (strncmp(key, stem, sizeof stem - 1) != 0) return -1;
  const char *number = key + sizeof stem - 1;
  if (*number == '\0') return 0;
  return strspn(number, "0123456789") == strlen(number) && strlen(number) <= 2 ? atoi(number) : -1;
}

static clv_status read_specs(clv__ep_options *options, const char *const *keys, const char *const *values, size_t count,
                             repeated *specs, clv_error *error) {
  for (int number = 0; number < 100; ++number) {
    for (size_t i = 0; i < count; ++i) {
      if (strncmp(keys[i], PREFIX, sizeof PREFIX - 1) != 0 || spec_number(keys[i] + sizeof PREFIX - 1) != number) continue;
      TRY(repeat(options, specs, values[i], "", "", error));
    }
  }
  return CLV_OK;
}

static clv_status read_all(clv__ep_options *options, const char *const *keys, const char *const *values, size_t count,
                           clv_error *error) {
  repeated specs = {clv__ep_take(&options->arena, count + 1, sizeof(char *)), 0};
  repeated devices = {clv__ep_take(&options->arena, count + 1, sizeof(char *)), 0};
  if (specs.items == NULL || devices.items == NULL) return clv__ep_no_memory(error);
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(keys[i], "ep.context_enable") != 0 || strcmp(values[i], "1") != 0) continue;
    return clv__ep_error(error, CLV_NOT_SUPPORTED,
                         "ep.context_enable: the provider makes no EPContext nodes; it caches executables itself (option "
                         "cache_dir), and `cleave compile` compiles a model ahead of time");
  }
  TRY(read_specs(options, keys, values, count, &specs, error));
  for (size_t i = 0; i < count; ++i) {
    const char *key = keys[i] + sizeof PREFIX - 1;
    size_t k = 0;
    if (strncmp(keys[i], PREFIX, sizeof PREFIX - 1) != 0 || spec_number(key) >= 0) continue;
    if (strchr(key, ':') != NULL) {
      TRY(repeat(options, &devices, key, "=", values[i], error));
      continue;
    }
    while (k < KNOWN_COUNT && strcmp(list[k].key, key) != 0) ++k;
    if (k == KNOWN_COUNT) return unknown(key, error);
    TRY(read_one(options, &list[k], values[i], error));
  }
  options->devices.npu_specs = specs.items;
  options->devices.npu_spec_count = specs.count;
  options->devices.device_options = devices.items;
  options->devices.device_option_count = devices.count;
  options->session.no_fallback = options->devices.no_fallback;
  return CLV_OK;
}

clv_status clv__ep_options_read(const OrtApi *api, const OrtSessionOptions *from, clv__ep_options *options, clv_error *error) {
  OrtKeyValuePairs *pairs = NULL;
  const char *const *keys = NULL, *const *values = NULL;
  size_t count = 0;
  *options = (clv__ep_options){.context = CLV_CONTEXT_OPTIONS_INIT,
                               .devices = CLV_DEVICES_OPTIONS_INIT,
                               .plan = CLV_PLAN_OPTIONS_INIT,
                               .session = CLV_SESSION_OPTIONS_INIT};
  TRY(clv__ep_check(api, api->GetSessionOptionsConfigEntries(from, &pairs), "GetSessionOptionsConfigEntries", error));
  api->GetKeyValuePairs(pairs, &keys, &values, &count);
  clv_status status = read_all(options, keys, values, count, error);
  api->ReleaseKeyValuePairs(pairs);
  return status;
}

void clv__ep_options_finish(clv__ep_options *options) {
  clv__ep_arena_finish(&options->arena);
}
