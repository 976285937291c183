/* The IR. A graph is immutable once built. Nodes and values are dense ids into arrays; passes store their results in arrays
 * outside the graph.
 *
 * If, Loop and Scan are one node each. Their bodies are separate graphs, held by the node's attributes. The outer values that
 * a body reads are its `captures`. They follow the node's explicit inputs, so ordering, liveness and transfers treat them as
 * inputs. */
#ifndef CLEAVE_GRAPH_GRAPH_H
#define CLEAVE_GRAPH_GRAPH_H

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

typedef uint32_t clv_node_id;
typedef uint32_t clv_value_id;
#define CLV__NO_ID UINT32_MAX

typedef struct clv_graph clv_graph;

typedef struct clv__node {
  const char *name; /* unique, never empty: `Op#index` if the model gives no name or repeats one */
  /* The name in the model; may be "" or repeated, because one node of another format may become several nodes. */
  const char *source_name;
  const char *source_op; /* the operator in the source format ("aten.cat.default"); "" if that is ONNX */
  const char *op;
  const char *domain; /* "" is ONNX's own domain ("ai.onnx" is read as "") */
  int32_t opset;
  uint32_t input_count;   /* including captures */
  uint32_t capture_count; /* how many of the last `inputs` are captures */
  uint32_t output_count;
  const clv_value_id *inputs;  /* CLV__NO_ID: absent */
  const clv_value_id *outputs; /* CLV__NO_ID: absent */
  clv__attributes attributes;  /* `graph` of a CLV_ATTRIBUTE_GRAPH is the whole view of a body */
} clv__node;

typedef struct clv__value {
  const char *name;
  clv_tensor type;      /* as declared; `data` is the initializer's bytes, possibly unaligned */
  clv_node_id producer; /* CLV__NO_ID: input, initializer or capture */
  bool is_input;        /* a graph input (if `type.data` is set too: an initializer that may be overridden) */
  bool is_output;
  bool is_unbound;  /* a weight whose bytes are not in the model's file: a constant although `type.data` is NULL */
  uint32_t capture; /* index among the graph's captures; CLV__NO_ID: the value is not a capture */
} clv__value;

typedef struct clv__opset_import {
  const char *domain;
  int32_t version;
} clv__opset_import;

typedef struct clv__graph_owned clv__graph_owned; /* file maps closed with the graph */
typedef struct clv__graph_memo clv__graph_memo;   /* hashes of the graph's constants (content.c) */

struct clv_graph {
  const clv_allocator *allocator;
  clv__arena arena;
  const char *name;
  const char *path;    /* of the model's file; "" if it was read from memory */
  uint64_t fold_bytes; /* limit on computed constants (context.h); 0: the default */
  int64_t ir_version;
  uint32_t import_count;
  const clv__opset_import *imports;
  uint32_t metadata_count;     /* number of key-value pairs */
  const char *const *metadata; /* key, value, key, value, … */

  uint32_t node_count;
  const clv__node *nodes; /* in topological order; the model's own order if that is topological */
  uint32_t value_count;
  const clv__value *values;
  uint32_t input_count; /* inputs with and without an initializer are mixed, in the model's order */
  const clv_value_id *inputs;
  uint32_t output_count;
  const clv_value_id *outputs;
  uint32_t capture_count;
  const clv_value_id *captures;  /* values of this body that come from outside */
  const uint32_t *capture_index; /* per capture: its index among the node's captures */
  uint32_t symbol_count;
  const char *const *symbols; /* the names of the symbolic dimensions */

  const uint32_t *use_offsets; /* CSR: uses of value v are use_nodes[use_offsets[v] .. use_offsets[v + 1]) */
  const clv_node_id *use_nodes;

  const clv_graph *origin; /* NULL, or the graph with other weights that owns the nodes, the bodies and the files */
  clv__graph_owned *owned;
  _Atomic(clv__graph_memo *) memo; /* NULL: nothing is hashed yet */
  const clv_graph_view *whole;     /* the whole graph as backends see it; types as declared */
};

/* Whether a value is known before the graph runs. Such a value is neither moved between devices nor an input of a partition.
 * Its bytes may still be missing (is_unbound): a reader must test `data`. `types` is the table of inferred types
 * (clv__shapes.types), or NULL: as declared. */
static inline bool clv__value_is_constant(const clv_graph *graph, const clv_tensor *types, clv_value_id value) {
  const clv__value *v = &graph->values[value];
  if (v->is_unbound) return true;
  return types != NULL ? types[value].data != NULL : v->type.data != NULL && !v->is_input;
}
/* Returns CLV_NOT_SUPPORTED if a node reads a weight whose bytes are missing; the message names the first such weight. Such a
 * graph can be planned but not run. */
clv_status clv__graph_check_bound(const clv_graph *graph, clv_error *error);
/* Whether `pattern` (see clv__pattern_match) matches the node's operator: its ONNX name (Concat), or its source name with or
 * without the overload suffix (aten.cat.default, aten.cat). */
bool clv__node_matches_op(const clv__node *node, const char *pattern);
/* Whether `pattern` matches the node's unique name (Concat#7) or its name in the source. */
bool clv__node_matches_name(const clv__node *node, const char *pattern);

/* The name of a symbolic dimension, or NULL if `symbol` is not one of the graph's. It can be passed as a clv__symbol_name_fn,
 * so `graph` is declared as a pointer to void; it must be a clv_graph. */
const char *clv__graph_symbol_name(const void *graph, uint32_t symbol);
/* "f32[1,3,batch,?]": a type of the graph, for messages. Always terminated. */
static inline void clv__graph_type_text(const clv_graph *graph, const clv_tensor *type, char *text, size_t size_bytes) {
  clv__tensor_text_named(type, clv__graph_symbol_name, graph, text, size_bytes);
}

/* Returns CLV_IO_ERROR, with the file's path, if a file that holds constants of the graph was changed after it was loaded. Call
 * this before reading constants, so that a truncated file gives an error, and again afterwards, so that what was read from an
 * overwritten file is discarded. It costs one fstat() for each file. */
clv_status clv__graph_check_files(const clv_graph *graph, clv_error *error);
/* Whether the bytes at `data` are in a mapped file that holds constants of the graph. clv__graph_read_file() copies such bytes
 * without touching the mapping. */
bool clv__graph_is_in_file(const clv_graph *graph, const void *data);
clv_status clv__graph_read_file(const clv_graph *graph, const void *data, size_t size_bytes, void *to, clv_error *error);

void clv__graph_destroy(clv_graph *graph); /* accepts NULL; also destroys the bodies */
/* Find the value or node called `name`; return CLV__NO_ID if there is none. Use them only in tools and tests, because their time
 * is linear in the size of the graph. */
clv_value_id clv__graph_find_value(const clv_graph *graph, const char *name);
clv_node_id clv__graph_find_node(const clv_graph *graph, const char *name);
/* Makes the same graph with other weights (with_weights.c). `tensors`, by value, has the new bytes of a constant, which are
 * copied, and its declared type; or dtype none: the value stays as in `graph`. The graph that was loaded from a model must
 * outlive the new one; another graph with other weights need not. */
clv_status clv__graph_with_weights(const clv_graph *graph, const clv_tensor *tensors, clv_graph **out, clv_error *error);
/* Computes the content hash of the structure, the attributes, the types and all weights. */
void clv__graph_hash(const clv_graph *graph, clv__hash *hash);

/* ---- Building (builder.c). The only way to make a graph; the readers of model formats and the tests use it. ---- */

typedef struct clv__builder clv__builder;

clv_status clv__builder_create(const clv_allocator *allocator, clv__builder **builder, clv_error *error);
void clv__builder_destroy(clv__builder *builder);      /* accepts NULL; for the error path: finish() consumes the builder */
clv__arena *clv__builder_arena(clv__builder *builder); /* the graph's own arena; its data lives as long as the graph */

/* Sets `value` to the id of the value called `name`. Creates the value on first use, and copies the name. Names are scoped to
 * this graph. */
clv_status clv__builder_value(clv__builder *builder, const char *name, clv_value_id *value, clv_error *error);
/* Sets `symbol` to the index of the symbolic dimension called `name`, which is created on first use. */
clv_status clv__builder_symbol(clv__builder *builder, const char *name, uint32_t *symbol, clv_error *error);
/* Declares the type of a value. If `type->data` is NULL, the initializer stays unchanged. Otherwise the value becomes an
 * initializer, and the data must live as long as the graph: in its arena, or in a mapping passed to clv__builder_own_map(). */
void clv__builder_type(clv__builder *builder, clv_value_id value, const clv_tensor *type);
/* Makes a value a weight of the declared type whose bytes come from elsewhere. Data passed to clv__builder_type() later makes
 * it an initializer. */
void clv__builder_unbound(clv__builder *builder, clv_value_id value);
/* Returns the type declared for a value so far. The pointer is valid until the next value is created. */
const clv_tensor *clv__builder_type_of(const clv__builder *builder, clv_value_id value);
clv_status clv__builder_input(clv__builder *builder, clv_value_id value, clv_error *error);
clv_status clv__builder_output(clv__builder *builder, clv_value_id value, clv_error *error);
clv_status clv__builder_import(clv__builder *builder, const char *domain, int32_t version, clv_error *error);
clv_status clv__builder_metadata(clv__builder *builder, const char *key, const char *value, clv_error *error);
void clv__builder_info(clv__builder *builder, const char *name, const char *path, int64_t ir_version);
clv_status clv__builder_own_map(clv__builder *builder, const clv__file_map *map, const char *path, clv_error *error);
/* Records the node of the source format that the nodes added next come from. Copies both texts. If both are NULL, the nodes
 * added next are nodes of the model itself. */
clv_status clv__builder_source(clv__builder *builder, const char *name, const char *op, clv_error *error);
/* Adds a node. Strings, id arrays and the attribute array are copied; data that the attributes point to must live in the
 * graph's arena. The graph under construction takes ownership of body graphs (whole views from clv__builder_finish_body()). */
clv_status clv__builder_node(clv__builder *builder, const char *name, const char *domain, const char *op,
                             const clv_value_id *inputs, uint32_t input_count, const clv_value_id *outputs, uint32_t output_count,
                             const clv_attribute *attributes, uint32_t attribute_count, clv_error *error);

/* Checks the graph (each value that is read has one producer, no cycle), sorts, names and indexes its nodes. Always consumes
 * the builder, even on failure. */
clv_status clv__builder_finish(clv__builder *builder, clv_graph **graph, clv_error *error);
/* Finishes a body: values that are read but not produced become captures. The body uses the opset imports of `parent`. Pass
 * the builder of the model itself, at any depth, because a body's builder has no imports. */
clv_status clv__builder_finish_body(clv__builder *builder, const clv__builder *parent, const clv_graph_view **body,
                                    clv_error *error);

#endif
