/* Options structs of the library from dicts of Python. */
#ifndef CLEAVE_PYTHON_OPTIONS_H
#define CLEAVE_PYTHON_OPTIONS_H

#include "module.h"

typedef enum py_kind {
  PY_TEXT,    /* const char *, from a str, bytes or os.PathLike */
  PY_FLAG,    /* bool */
  PY_UINT32,  /* uint32_t */
  PY_INT32,   /* int32_t, or an enum */
  PY_UINT64,  /* uint64_t */
  PY_SECONDS, /* double */
  PY_TEXTS,   /* const char *const *, with its count, from a sequence of texts */
  PY_PAIRS,   /* const clv_assignment *, with its count, from a sequence of pairs of texts */
  PY_SIZES    /* const clv_size *, with its count, from a sequence of (name, None or a list of sizes, or one size) */
} py_kind;

/* One field of a struct: its name in Python, and where it is. A table ends with a NULL name. */
typedef struct py_field {
  const char *name;
  py_kind kind;
  size_t offset;
  size_t count_offset; /* where the count of an array is */
} py_field;

/* Memory that lives as long as a call: what fields of options point to. */
typedef struct py_scratch {
  struct py_block *blocks;
} py_scratch;
void scratch_finish(py_scratch *scratch);
/* Returns zeroed memory, or NULL with an exception. */
void *scratch_allocate(py_scratch *scratch, size_t count, size_t size);
/* Keeps a reference to the object as long as the scratch; steals it. */
int scratch_keep(py_scratch *scratch, PyObject *object);
/* A zero-terminated UTF-8 text that is valid as long as the scratch. NULL with an exception. */
const char *scratch_text(py_scratch *scratch, PyObject *object);

extern const py_field devices_fields[]; /* of clv_devices_options */

/* Sets the fields of `options` from a dict, which may be NULL or None. An unknown name is a TypeError. Returns 0, or -1 with an
 * exception. */
int read_options(PyObject *given, const py_field *fields, void *options, py_scratch *scratch);

#endif
