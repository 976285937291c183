/* Reads and checks the members of a JSON description. An invalid member is rejected with its position and the allowed values. An
 * absent member leaves its setting unchanged. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_JSON_H
#define CLEAVE_BACKENDS_VNPU_SPEC_JSON_H

#include <jansson.h>

#include "base/memory.h"
#include "cleave/plugin/backend.h"

enum { CLV__SPEC_DEPTH = 6 };

typedef struct clv__vnpu_spec clv__vnpu_spec; /* spec.h */

/* The reader's state, including the path of keys that error messages name. */
typedef struct clv__spec_reader {
  clv__vnpu_spec *spec;
  clv__arena *arena; /* the spec's arena */
  const char *file;  /* the name used in messages */
  const char *text;
  size_t size_bytes;
  const char *path[CLV__SPEC_DEPTH];
  int depth;
  clv_error *error;
} clv__spec_reader;

/* Formats an error such as "npu.json: line 4: operators.Conv.attributes: …". */
clv_status clv__spec_fail(clv__spec_reader *r, const char *format, ...) CLV_PRINTF(2, 3);
clv_status clv__spec_no_memory(clv__spec_reader *r);
/* Appends `key` to the path that error messages name. After a success the caller must pop the key again; after an error it need
 * not. */
void clv__spec_push(clv__spec_reader *r, const char *key);
void clv__spec_pop(clv__spec_reader *r);

/* Checks that every key of `object` is one of `allowed`, which ends with NULL. */
clv_status clv__spec_check_keys(clv__spec_reader *r, json_t *object, const char *const *allowed);
clv_status clv__spec_string(clv__spec_reader *r, json_t *object, const char *key, const char **text);
clv_status clv__spec_bool(clv__spec_reader *r, json_t *object, const char *key, bool *flag);
clv_status clv__spec_int(clv__spec_reader *r, json_t *object, const char *key, int64_t least, int64_t most, int64_t *number);
clv_status clv__spec_u32(clv__spec_reader *r, json_t *object, const char *key, uint32_t *number);
/* Reads a number that is zero or more. */
clv_status clv__spec_figure(clv__spec_reader *r, json_t *object, const char *key, double *number);
/* Parses "1073741824", "64M" or "1 GiB". Returns false if the text is not a size, or is above 2^62. */
bool clv__spec_parse_bytes(const char *text, uint64_t *size_bytes);
clv_status clv__spec_bytes(clv__spec_reader *r, json_t *object, const char *key, uint64_t *size_bytes);
clv_dtype clv__spec_dtype(const char *name); /* CLV_DTYPE_NONE: no dtype has this name */
/* Reads a list of dtype names into a mask. If `value` is NULL, the mask is unchanged. */
clv_status clv__spec_dtypes(clv__spec_reader *r, json_t *value, uint32_t *mask);

/* Finds the line (from 1) of the key at `path` in valid JSON; 0 if it is not found (locate.c). */
int clv__vnpu_locate(const char *text, size_t size_bytes, const char *const *path, int depth);

/* Reads the operators and their limits (operators.c). */
clv_status clv__spec_operators(clv__spec_reader *r, json_t *root);

#endif
