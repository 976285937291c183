/* The settings of a context: its options, completed by environment variables that are read once. */
#ifndef CLEAVE_DEVICE_SETTINGS_H
#define CLEAVE_DEVICE_SETTINGS_H

#include "cleave/context.h"

typedef struct clv__settings {
  clv_capture_policy capture;     /* never UNSET; OFF if capture_cache_entries is 0 */
  uint32_t capture_cache_entries; /* entries in each device's cache of captures; 0: capture nothing */
  uint64_t capture_cache_bytes;
  bool capture_prefill;
  char *cache_directory; /* NULL: none */
  uint64_t cache_bytes;
  char *plugin_path;    /* folders separated by colons; NULL: none */
  bool has_plugin_home; /* whether to search the installation's own plugin folder, after those of plugin_path */
  uint64_t fold_bytes;  /* 0: the default */
} clv__settings;

/* Reads the settings. An option takes precedence: the variable for it is then not read. Values are case-insensitive. An empty
 * variable counts as unset, except CLEAVE_CACHE_DIR, for which empty means no cache. The default directory is "cleave" in
 * XDG_CACHE_HOME, otherwise in .cache in HOME; each must be an absolute path. Otherwise there is no cache. Errors:
 * CLV_INVALID_ARGUMENT with the variable, its text and the accepted values, or with the option; CLV_OUT_OF_MEMORY. */
clv_status clv__settings_read(const clv_context_options *options, const clv_allocator *allocator, clv__settings *settings,
                              clv_error *error);
void clv__settings_finish(clv__settings *settings, const clv_allocator *allocator);

#endif
