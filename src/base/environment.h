/* The variables of the environment that the library and the command know, in one table. Nothing else here reads the environment.
 * Who reads one copies what it says: it may change at any time. */
#ifndef CLEAVE_BASE_ENVIRONMENT_H
#define CLEAVE_BASE_ENVIRONMENT_H

typedef enum clv__variable {
  CLV__VARIABLE_GRAPH,
  CLV__VARIABLE_GRAPH_CACHE,
  CLV__VARIABLE_PREFILL_GRAPH,
  CLV__VARIABLE_CACHE_DIR,
  CLV__VARIABLE_PLUGIN_PATH,
  CLV__VARIABLE_OPENVINO,
  CLV__VARIABLE_ONNXRUNTIME,
  CLV__VARIABLE_TORCH,
  CLV__VARIABLE_VIRTUAL_ENV,
  CLV__VARIABLE_XDG_CACHE_HOME,
  CLV__VARIABLE_HOME,
  CLV__VARIABLE_NO_COLOR,
  CLV__VARIABLE_TERM,
  CLV__VARIABLE_COUNT
} clv__variable;

typedef struct clv__variable_info {
  const char *name;
  const char *values; /* what it may say; NULL: anything */
  const char *help;   /* what it is for; NULL: not worth a line of help */
} clv__variable_info;

extern const clv__variable_info clv__variables[CLV__VARIABLE_COUNT];

/* NULL where it is not set. */
const char *clv__environment_get(clv__variable variable);

#endif
