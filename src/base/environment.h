/* The table of environment variables that the library and the command read. No other code reads the environment. A caller that
 * keeps a value copies it, because the environment may change at any time. */
#ifndef CLEAVE_BASE_ENVIRONMENT_H
#define CLEAVE_BASE_ENVIRONMENT_H

typedef enum clv__variable {
  CLV__VARIABLE_GRAPH,
  CLV__VARIABLE_GRAPH_CACHE,
  CLV__VARIABLE_PREFILL_GRAPH,
  CLV__VARIABLE_CACHE_DIR,
  CLV__VARIABLE_ISA,
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
  const char *values; /* the values it accepts; NULL: any */
  const char *help;   /* the variable's purpose; NULL: the help does not list the variable */
} clv__variable_info;

extern const clv__variable_info clv__variables[CLV__VARIABLE_COUNT];

/* Returns the text of a variable; NULL if it is not set. */
const char *clv__environment_get(clv__variable variable);

#endif
