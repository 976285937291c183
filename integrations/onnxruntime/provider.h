/* Shared by the files of this folder. The factory (factory.c) creates a provider for each session of ONNX Runtime. The provider
 * claims the nodes that Cleave can run (claim.c), in groups. Each group becomes a session of Cleave's (group.c). */
#ifndef CLEAVE_INTEGRATIONS_ONNXRUNTIME_PROVIDER_H
#define CLEAVE_INTEGRATIONS_ONNXRUNTIME_PROVIDER_H

#include <cleave/cleave.h>
#include <pthread.h>

#include "api.h"

#define CLV__EP_NAME "CleaveExecutionProvider"

/* ---- memory.c: memory that is released all at once, and names ---- */

typedef struct clv__ep_block clv__ep_block;
typedef struct clv__ep_arena {
  clv__ep_block *blocks;
} clv__ep_arena;
/* Memory of zeros, aligned for any type. NULL if there is none left. */
void *clv__ep_take(clv__ep_arena *arena, size_t count, size_t item_bytes);
char *clv__ep_copy_text(clv__ep_arena *arena, const char *text, size_t size_bytes);
void clv__ep_arena_finish(clv__ep_arena *arena);

/* Maps names to numbers. The names must outlive the map, which is in an arena. */
typedef struct clv__ep_names {
  struct clv__ep_name *slots;
  size_t capacity, count;
} clv__ep_names;
#define CLV__EP_ABSENT UINT32_MAX
uint32_t clv__ep_find(const clv__ep_names *names, const char *name);
bool clv__ep_put(clv__ep_arena *arena, clv__ep_names *names, const char *name, uint32_t number);

/* ---- errors.c ---- */

/* Fills `error`, which may be NULL, and returns `status`. */
clv_status clv__ep_error(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);
clv_status clv__ep_no_memory(clv_error *error);
/* Releases a status of ONNX Runtime, and makes an error with its text of it. Returns CLV_OK for NULL. */
clv_status clv__ep_check(const OrtApi *api, OrtStatus *status, const char *call, clv_error *error);
/* Makes a status of ONNX Runtime with the text of an error. Returns NULL for CLV_OK. */
OrtStatus *clv__ep_status(const OrtApi *api, clv_status status, const clv_error *error);

#define TRY(expression)                          \
  do {                                           \
    clv_status try_status = (expression);        \
    if (try_status != CLV_OK) return try_status; \
  } while (0)
#define ORT(provider, function, ...) TRY(clv__ep_check((provider)->api, (provider)->api->function(__VA_ARGS__), #function, error))

/* ---- options.c ---- */

/* The provider options, in the forms that Cleave takes. All texts are in `arena`. */
typedef struct clv__ep_options {
  clv__ep_arena arena;
  clv_context_options context;
  clv_devices_options devices;
  clv_plan_options plan;
  clv_session_options session;
  const char *report; /* a file for what was claimed and why not more; NULL: none */
} clv__ep_options;
/* Reads the options of a session that begin with "ep.<name of the provider>.". Errors: CLV_INVALID_ARGUMENT for an unknown key,
 * which lists the known ones, and for a value that is not valid. */
clv_status clv__ep_options_read(const OrtApi *api, const OrtSessionOptions *from, clv__ep_options *options, clv_error *error);
void clv__ep_options_finish(clv__ep_options *options);

/* ---- provider.c ---- */

typedef struct clv__ep {
  OrtEp table; /* first: ONNX Runtime passes a pointer to it */
  const OrtApi *api;
  const OrtEpApi *ep_api;
  const OrtLogger *logger;
  clv__ep_options options;
  clv_context *context;
  clv_devices *devices;
} clv__ep;
clv_status clv__ep_create(const OrtApi *api, const OrtSessionOptions *options, const OrtLogger *logger, clv__ep **provider,
                          clv_error *error);
void clv__ep_destroy(clv__ep *provider);
void clv__ep_log(const clv__ep *provider, int severity, const char *format, ...) CLV_PRINTF(3, 4);

/* ---- read.c: graphs of ONNX Runtime ---- */

typedef struct clv__ep_values {
  const OrtValueInfo **items; /* NULL: an absent optional input or output */
  size_t count;
} clv__ep_values;
typedef struct clv__ep_nodes {
  const OrtNode **items;
  size_t count;
} clv__ep_nodes;
typedef enum clv__ep_list { /* which values of a graph or node */
                            CLV__EP_GRAPH_INPUTS,
                            CLV__EP_GRAPH_OUTPUTS,
                            CLV__EP_GRAPH_INITIALIZERS,
                            CLV__EP_NODE_INPUTS,
                            CLV__EP_NODE_OUTPUTS,
                            CLV__EP_NODE_CAPTURES, /* outer values that the node's bodies read */
} clv__ep_list;
/* `owner`: an OrtGraph or an OrtNode. */
clv_status clv__ep_read_values(const clv__ep *provider, const void *owner, clv__ep_list list, clv__ep_arena *arena,
                               clv__ep_values *values, clv_error *error);
clv_status clv__ep_read_nodes(const clv__ep *provider, const OrtGraph *graph, clv__ep_arena *arena, clv__ep_nodes *nodes,
                              clv_error *error);
/* The name of a value; "" for NULL. */
clv_status clv__ep_value_name(const clv__ep *provider, const OrtValueInfo *value, const char **name, clv_error *error);
/* The type of a value: CLV_DTYPE_NONE if it is not a tensor of a dtype that Cleave knows, or if ONNX Runtime does not know its
 * type. `symbols`: names of dimensions, NULL for those without. */
clv_status clv__ep_value_type(const clv__ep *provider, const OrtValueInfo *value, clv_tensor *type,
                              const char *symbols[CLV_MAX_RANK], clv_error *error);
/* A tensor whose data is that of `value`. The strings of a tensor are copied to the arena; if it
 * is NULL, they are an error. */
clv_status clv__ep_read_tensor(const clv__ep *provider, const OrtValue *value, clv__ep_arena *arena, clv_tensor *tensor,
                               clv_error *error);
clv_dtype clv__ep_dtype(int ort_dtype);
/* Whether `value` is a constant, with its value. `tensor` is NULL if it is not. */
clv_status clv__ep_constant(const clv__ep *provider, const OrtValueInfo *value, const OrtValue **tensor, clv_error *error);

/* ---- attributes.c ---- */

/* The attributes of a node, except those that are graphs. Error: CLV_NOT_SUPPORTED for a kind that Cleave does not have. */
clv_status clv__ep_read_attributes(const clv__ep *provider, const OrtNode *node, clv__ep_arena *arena, clv_attribute **attributes,
                                   uint32_t *count, uint32_t extra_room, clv_error *error);

/* ---- maps.c ---- */

typedef struct clv__ep_map clv__ep_map;
/* Finds a constant of `size_bytes` in a file of external data, and maps the file, unless it is in the list already. `data` is
 * NULL if the constant is not in a file, or if the file does not have these bytes: then its value in memory must be used. */
clv_status clv__ep_find_mapped(const clv__ep *provider, const OrtGraph *graph, const OrtValueInfo *value, size_t size_bytes,
                               clv__ep_map **maps, const void **data, clv_error *error);
void clv__ep_unmap(clv__ep_map *maps);

/* ---- model.c ---- */

/* Which nodes become a graph of Cleave's. */
typedef struct clv__ep_part {
  const OrtGraph *graph;                  /* the operator sets are taken from it */
  clv__ep_nodes nodes;                    /* in topological order */
  const clv__ep_values *inputs, *outputs; /* in the order of the graph to make; NULL: as the nodes need them, in any order */
  bool is_declared;                       /* values have the types that ONNX Runtime says; otherwise Cleave infers them */
  clv_ownership ownership; /* of constants: CLV_BORROW if the graph is used only while ONNX Runtime's graph is valid */
  clv__ep_map **maps;      /* constants in files are read from there; the maps must outlive the graph. NULL: they are copied */
} clv__ep_part;
clv_status clv__ep_make_graph(const clv__ep *provider, const clv__ep_part *part, clv_graph **graph, clv_error *error);

/* ---- claim.c, group.c, report.c ---- */

OrtStatus *clv__ep_get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info);
OrtStatus *clv__ep_compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count,
                           OrtNodeComputeInfo **infos, OrtNode **context_nodes);
void clv__ep_release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count);

#endif
