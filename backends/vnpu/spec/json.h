/* Members of a description in JSON: read, checked, and refused with the place where they stand and what would be allowed. A
 * member that is not there leaves what it would set. */
#ifndef CLEAVE_BACKENDS_VNPU_SPEC_JSON_H
#define CLEAVE_BACKENDS_VNPU_SPEC_JSON_H

#include <jansson.h>

#include "base/memory.h"
#include "cleave/plugin/backend.h"

enum { CLV__SPEC_DEPTH = 6 };

typedef struct clv__vnpu_spec clv__vnpu_spec; /* spec.h */

/* The reader's state: where it is, for messages. */
typedef struct clv__spec_reader {
  clv__vnpu_spec *spec;
  clv__arena *arena; /* its */
  const char *file;  /* as messages name it */
  const char *text;
  size_t size_bytes;
  const char *path[CLV__SPEC_DEPTH];
  int depth;
  clv_error *error;
} clv__spec_reader;

/* "npu.json: line 4: operators.Conv.attributes: …" */
clv_status clv__spec_fail(clv__spec_reader *r, const char *format, ...) CLV_PRINTF(2, 3);
clv_status clv__spec_no_memory(clv__spec_reader *r);
/* Goes down to `key`; every push has its pop on the way that succeeds (a failure needs no more places). */
void clv__spec_push(clv__spec_reader *r, const char *key);
void clv__spec_pop(clv__spec_reader *r);

/* Every key of `object` must be one of `allowed` (ended by NULL). */
clv_status clv__spec_check_keys(clv__spec_reader *r, json_t *object, const char *const *allowed);
clv_status clv__spec_string(clv__spec_reader *r, json_t *object, const char *key, const char **text);
clv_status clv__spec_bool(clv__spec_reader *r, json_t *object, const char *key, bool *flag);
clv_status clv__spec_int(clv__spec_reader *r, json_t *object, const char *key, int64_t least, int64_t most, int64_t *number);
clv_status clv__spec_u32(clv__spec_reader *r, json_t *object, const char *key, uint32_t *number);
/* A figure: zero or more. */
clv_status clv__spec_figure(clv__spec_reader *r, json_t *object, const char *key, double *number);
/* "1073741824", "64M", "1 GiB". False when it is none, or above 2^62. */
bool clv__spec_parse_bytes(const char *text, uint64_t *size_bytes);
clv_status clv__spec_bytes(clv__spec_reader *r, json_t *object, const char *key, uint64_t *size_bytes);
clv_dtype clv__spec_dtype(const char *name); /* CLV_DTYPE_NONE: there is none of that name */
/* A list of dtype names as a mask. `value` may be NULL: then the mask stays. */
clv_status clv__spec_dtypes(clv__spec_reader *r, json_t *value, uint32_t *mask);

/* The line (from 1) where the key that `path` leads to stands in valid JSON; 0 when it is not found (locate.c). */
int clv__vnpu_locate(const char *text, size_t size_bytes, const char *const *path, int depth);

/* The operators and what each of them takes (operators.c). */
clv_status clv__spec_operators(clv__spec_reader *r, json_t *root);

#endif
