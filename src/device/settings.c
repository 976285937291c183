/* See settings.h. */
#include "device/settings.h"

#include <string.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/isa.h"
#include "base/memory.h"

#define DEFAULT_CAPTURE_ENTRIES 12u
#define DEFAULT_CAPTURE_BYTES ((uint64_t)256 << 20)
#define DEFAULT_CACHE_BYTES ((uint64_t)1 << 30)

/* Whether `text` equals `word` (lower case), ignoring case. */
static bool says(const char *text, const char *word) {
  for (; *word != '\0'; ++text, ++word) {
    char letter = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    if (letter != *word) return false;
  }
  return *text == '\0';
}

static bool read_boolean(const char *text, bool *value) {
  static const char *const words[2][4] = {{"0", "off", "false", "no"}, {"1", "on", "true", "yes"}};
  for (uint32_t i = 0; i < 8; ++i) {
    if (!says(text, words[i % 2][i / 2])) continue;
    *value = i % 2 == 1;
    return true;
  }
  return false;
}

static bool read_count(const char *text, uint32_t *value) {
  uint64_t number = 0;
  for (const char *at = text; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9') return false;
    number = number * 10 + (uint64_t)(*at - '0');
    if (number > INT32_MAX) return false;
  }
  *value = (uint32_t)number;
  return true;
}

static bool read_mode(const char *text, clv_capture_policy *mode) {
  bool value;
  if (says(text, "auto")) {
    *mode = CLV_CAPTURE_AUTO;
    return true;
  }
  if (!read_boolean(text, &value)) return false;
  *mode = value ? CLV_CAPTURE_ON : CLV_CAPTURE_OFF;
  return true;
}

/* Returns the text of an environment variable; NULL if it is unset or empty. */
static const char *variable(clv__variable which) {
  const char *text = clv__environment_get(which);
  return text == NULL || text[0] == '\0' ? NULL : text;
}

static clv_status unreadable(clv__variable which, const char *text, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "environment variable %s is '%.200s'; it must be %s",
                        clv__variables[which].name, text, clv__variables[which].values);
}

static clv_status read_capture(const clv_context_options *options, clv__settings *settings, clv_error *error) {
  settings->capture = options->capture;
  if (options->capture == CLV_CAPTURE_UNSET) {
    const char *text = variable(CLV__VARIABLE_GRAPH);
    settings->capture = CLV_CAPTURE_AUTO;
    if (text != NULL && !read_mode(text, &settings->capture)) return unreadable(CLV__VARIABLE_GRAPH, text, error);
  } else if (options->capture != CLV_CAPTURE_OFF && options->capture != CLV_CAPTURE_ON && options->capture != CLV_CAPTURE_AUTO) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context options: capture is %d, which is not a clv_capture_policy",
                          (int)options->capture);
  }
  settings->capture_cache_entries =
      options->capture_cache_entries < 0 ? DEFAULT_CAPTURE_ENTRIES : (uint32_t)options->capture_cache_entries;
  if (options->capture_cache_entries < 0) {
    const char *text = variable(CLV__VARIABLE_GRAPH_CACHE);
    if (text != NULL && !read_count(text, &settings->capture_cache_entries))
      return unreadable(CLV__VARIABLE_GRAPH_CACHE, text, error);
  }
  if (settings->capture_cache_entries == 0) settings->capture = CLV_CAPTURE_OFF;
  settings->capture_cache_bytes = options->capture_cache_bytes > 0 ? options->capture_cache_bytes : DEFAULT_CAPTURE_BYTES;
  settings->capture_prefill = options->capture_prefill == CLV_SWITCH_ON;
  if (options->capture_prefill == CLV_SWITCH_UNSET) {
    const char *text = variable(CLV__VARIABLE_PREFILL_GRAPH);
    if (text != NULL && !read_boolean(text, &settings->capture_prefill))
      return unreadable(CLV__VARIABLE_PREFILL_GRAPH, text, error);
  } else if (options->capture_prefill != CLV_SWITCH_OFF && options->capture_prefill != CLV_SWITCH_ON) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context options: capture_prefill is %d, which is not a clv_switch",
                          (int)options->capture_prefill);
  }
  return CLV_OK;
}

/* Checks the text of CLEAVE_ISA, which limits the instruction set of the whole process. The limit is therefore not kept in the
 * settings of a context. */
static clv_status check_isa(clv_error *error) {
  const char *text = variable(CLV__VARIABLE_ISA);
  clv__isa limit;
  return text == NULL || clv__isa_read(text, &limit) ? CLV_OK : unreadable(CLV__VARIABLE_ISA, text, error);
}

/* Returns the path in an environment variable; NULL if there is none, or if the path is relative: it would name another folder
 * in each current directory. */
static const char *absolute(clv__variable which) {
  const char *text = variable(which);
  return text != NULL && text[0] == '/' ? text : NULL;
}

/* Allocates the concatenation of `first` and `second`. */
static clv_status join(const clv_allocator *allocator, const char *first, const char *second, char **joined, clv_error *error) {
  size_t first_bytes = strlen(first), second_bytes = strlen(second), size;
  if (!clv__add(first_bytes, second_bytes + 1, &size)) return clv__error_memory(error, first_bytes);
  *joined = clv__allocate(allocator, size);
  if (*joined == NULL) return clv__error_memory(error, size);
  memcpy(*joined, first, first_bytes);
  memcpy(*joined + first_bytes, second, second_bytes + 1);
  return CLV_OK;
}

static clv_status read_plugin_path(const clv_context_options *options, const clv_allocator *allocator, clv__settings *settings,
                                   clv_error *error) {
  const char *said = options->plugin_path != NULL ? options->plugin_path : variable(CLV__VARIABLE_PLUGIN_PATH);
  settings->has_plugin_home = options->plugin_path == NULL;
  return said == NULL ? CLV_OK : join(allocator, said, "", &settings->plugin_path, error);
}

static clv_status read_cache_directory(const clv_context_options *options, const clv_allocator *allocator,
                                       clv__settings *settings, clv_error *error) {
  const char *said = options->cache_directory != NULL ? options->cache_directory : clv__environment_get(CLV__VARIABLE_CACHE_DIR);
  const char *cache = absolute(CLV__VARIABLE_XDG_CACHE_HOME), *home = absolute(CLV__VARIABLE_HOME), *parts[2] = {said, ""};
  if (said != NULL && said[0] == '\0') return CLV_OK;
  if (said == NULL) {
    parts[0] = cache != NULL ? cache : home;
    parts[1] = cache != NULL ? "/cleave" : "/.cache/cleave";
    if (parts[0] == NULL) return CLV_OK;
  }
  return join(allocator, parts[0], parts[1], &settings->cache_directory, error);
}

clv_status clv__settings_read(const clv_context_options *options, const clv_allocator *allocator, clv__settings *settings,
                              clv_error *error) {
  *settings = (clv__settings){.cache_bytes = options->cache_bytes > 0 ? options->cache_bytes : DEFAULT_CACHE_BYTES,
                              .fold_bytes = options->fold_bytes};
  CLV__TRY(check_isa(error));
  CLV__TRY(read_capture(options, settings, error));
  CLV__TRY(read_plugin_path(options, allocator, settings, error));
  return read_cache_directory(options, allocator, settings, error);
}

void clv__settings_finish(clv__settings *settings, const clv_allocator *allocator) {
  clv__release(allocator, settings->cache_directory);
  clv__release(allocator, settings->plugin_path);
  settings->cache_directory = settings->plugin_path = NULL;
}
