/* The directory of cached executables (clv_context_options.cache_directory): what `cleave cache` does. A file can be removed at
 * any time, also while other processes use the directory: they compile again.
 *
 * Unstable: may change until 1.0.
 *
 * `directory` is that of the cache; NULL: the context's. A directory that does not exist is an empty cache. Any thread may call
 * these functions. They set `text` to a document, which the caller frees with clv_text_free(). Errors: CLV_INVALID_ARGUMENT;
 * CLV_NOT_SUPPORTED if the context has no cache directory; CLV_IO_ERROR, with the path; CLV_OUT_OF_MEMORY. */
#ifndef CLEAVE_CACHE_H
#define CLEAVE_CACHE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_cache_options {
  uint32_t struct_size;
  const char *directory;
  bool details; /* the table also has the names of files and all operators */
  bool brief;   /* without the totals */
} clv_cache_options;
#define CLV_CACHE_OPTIONS_INIT \
  { sizeof(clv_cache_options), NULL, false, false }

/* Lists the executables, the most recently used first, and the files that are not valid. `options` may be NULL. */
CLV_API CLV_MUST_USE clv_status clv_cache_list(clv_context *context, const clv_cache_options *options, clv_form form, char **text,
                                               clv_error *error);

/* Reads every file, and lists the damaged ones. Sets `damaged` (may be NULL) to their number. `options` may be NULL. */
CLV_API CLV_MUST_USE clv_status clv_cache_verify(clv_context *context, const clv_cache_options *options, uint64_t *damaged,
                                                 clv_form form, char **text, clv_error *error);

typedef struct clv_cache_prune_options {
  uint32_t struct_size;
  const char *directory;
  uint64_t limit_bytes; /* the most that the rest may take; 0: the context's limit */
  uint64_t age_limit_s; /* removes files not used for so long; 0: no limit */
  bool all;             /* removes everything; the limits are ignored */
} clv_cache_prune_options;
#define CLV_CACHE_PRUNE_OPTIONS_INIT \
  { sizeof(clv_cache_prune_options), NULL, 0, 0, false }

/* Removes damaged files, files left behind by killed processes, files that are too old, and then the least recently used files
 * until the rest takes at most the limit. The document tells what was removed and what is left, and lists damaged files that
 * cannot be removed. `options` may be NULL. */
CLV_API CLV_MUST_USE clv_status clv_cache_prune(clv_context *context, const clv_cache_prune_options *options, clv_form form,
                                                char **text, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
