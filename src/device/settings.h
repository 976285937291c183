/* What a context was made with: its options, and what they leave unsaid from the environment, read once. */
#ifndef CLEAVE_DEVICE_SETTINGS_H
#define CLEAVE_DEVICE_SETTINGS_H

#include "cleave/context.h"

typedef struct clv__settings {
  clv_graph_mode graph;         /* never UNSET; OFF where no graph would be kept */
  uint32_t graph_cache_entries; /* 0: nothing is captured */
  uint64_t graph_cache_bytes;
  bool prefill_graph;
  char *cache_directory; /* NULL: none */
  uint64_t cache_bytes;
  char *plugin_path;    /* folders, separated by colons; NULL: none */
  bool has_plugin_home; /* the installation's own folder comes after them */
} clv__settings;

/* Options win: a variable that an option speaks for is not read, whatever it says. Texts are read in either case; an empty
 * variable counts as not set, but CLEAVE_CACHE_DIR, whose emptiness means none. Without it the directory is "cleave" in
 * XDG_CACHE_HOME, else in .cache in HOME, each where it is an absolute path; else none. Errors: CLV_INVALID_ARGUMENT with the
 * variable, its text and what it may say, or with the option; CLV_OUT_OF_MEMORY. */
clv_status clv__settings_read(const clv_context_options *options, const clv_allocator *allocator, clv__settings *settings,
                              clv_error *error);
void clv__settings_finish(clv__settings *settings, const clv_allocator *allocator);

#endif
