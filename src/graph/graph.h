/* The IR. A graph is immutable once built; nodes and values are dense ids into arrays; passes make new arrays beside it.
 *
 * If, Loop and Scan are one node each. Their bodies are graphs of their own, held by the node's attributes. What a body reads
 * from around it are its `captures`; they follow the node's explicit inputs, so that for order, liveness and transfers they are
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
  const char *name;        /* unique, never empty: `Op#index` where the model gives none or repeats one */
  const char *source_name; /* as the model has it; may be "" or repeated: one node of another format may become several */
  const char *source_op;   /* the operator of the format the model came in ("aten.cat.default"); "" where that is ONNX */
  const char *op;
  const char *domain; /* "" is ONNX's ("ai.onnx" is read as "") */
  int32_t opset;
  uint32_t input_count;   /* captures included */
  uint32_t capture_count; /* the last ones of `inputs` */
  uint32_t output_count;
  const clv_value_id *inputs;  /* CLV__NO_ID: absent */
  const clv_value_id *outputs; /* CLV__NO_ID: absent */
  clv__attributes attributes;  /* CLV_ATTRIBUTE_GRAPH's `graph` is the whole view of a body */
} clv__node;

typedef struct clv__value {
  const char *name;
  clv_tensor type;      /* as declared; `data` is the initializer's bytes, possibly unaligned */
  clv_node_id producer; /* CLV__NO_ID: input, initializer or capture */
  bool is_input;        /* a graph input (with `type.data` too: an initializer that may be overridden) */
  bool is_output;
  bool is_unbound;  /* a weight whose bytes the model's file does not hold: a constant, though `type.data` is NULL */
  uint32_t capture; /* index among the graph's captures, or CLV__NO_ID */
} clv__value;

typedef struct clv__opset_import {
  const char *domain;
  int32_t version;
} clv__opset_import;

typedef struct clv__graph_owned clv__graph_owned; /* file maps that die with the graph */
typedef struct clv__graph_memo clv__graph_memo;   /* hashes of its constants, content.c */

struct clv_graph {
  const clv_allocator *allocator;
  clv__arena arena;
  const char *name;
  const char *path; /* of the model's file; "" from memory */
  int64_t ir_version;
  uint32_t import_count;
  const clv__opset_import *imports;
  uint32_t metadata_count; /* pairs of key and value */
  const char *const *metadata;

  uint32_t node_count;
  const clv__node *nodes; /* in topological order; the model's own order where it is one */
  uint32_t value_count;
  const clv__value *values;
  uint32_t input_count; /* those without an initializer first come first in no particular way: the model's order */
  const clv_value_id *inputs;
  uint32_t output_count;
  const clv_value_id *outputs;
  uint32_t capture_count;
  const clv_value_id *captures;  /* values of this body that come from around it */
  const uint32_t *capture_index; /* per capture: its index among the node's captures */
  uint32_t symbol_count;
  const char *const *symbols; /* names of the symbolic dimensions */

  const uint32_t *use_offsets; /* CSR: uses of value v are use_nodes[use_offsets[v] .. use_offsets[v + 1]) */
  const clv_node_id *use_nodes;

  clv__graph_owned *owned;
  _Atomic(clv__graph_memo *) memo; /* NULL: nothing was hashed yet */
  const clv_graph_view *whole;     /* all of it, as backends see it; types as declared */
};

/* Whether a value is known before the graph runs: it is neither moved between devices nor an input of a partition. Its bytes may
 * still be missing (is_unbound): whoever reads them tests `data`. `types` is the table beside the graph (clv__shapes.types), or
 * NULL: as declared. */
static inline bool clv__value_is_constant(const clv_graph *graph, const clv_tensor *types, clv_value_id value) {
  const clv__value *v = &graph->values[value];
  if (v->is_unbound) return true;
  return types != NULL ? types[value].data != NULL : v->type.data != NULL && !v->is_input;
}
/* CLV_NOT_SUPPORTED, with the first of them, when bytes of weights are missing that nodes read: such a graph can be planned, not
 * run.
 */
clv_status clv__graph_check_bound(const clv_graph *graph, clv_error *error);
/* Whether `pattern` (see clv__pattern_match) names the node's operator: as ONNX has it (Concat), or as its source does, with or
 * without what follows the operator's own name there (aten.cat.default, aten.cat). */
bool clv__node_matches_op(const clv__node *node, const char *pattern);
/* The same for its name: unique (Concat#7), or of the source. */
bool clv__node_matches_name(const clv__node *node, const char *pattern);

void clv__graph_destroy(clv_graph *graph); /* accepts NULL; bodies included */
/* CLV__NO_ID when there is none. Linear in the graph: for tools and tests. */
clv_value_id clv__graph_find_value(const clv_graph *graph, const char *name);
clv_node_id clv__graph_find_node(const clv_graph *graph, const char *name);
/* Content hash: structure, attributes, types and all weights. */
void clv__graph_hash(const clv_graph *graph, clv__hash *hash);

/* ---- Building (builder.c). The only way to make a graph; used by the readers of model formats and by tests. ---- */

typedef struct clv__builder clv__builder;

clv_status clv__builder_create(const clv_allocator *allocator, clv__builder **builder, clv_error *error);
void clv__builder_destroy(clv__builder *builder);      /* accepts NULL; for the error path: finish() consumes the builder */
clv__arena *clv__builder_arena(clv__builder *builder); /* the graph's own arena: names, attributes, data that live with it */

/* The id of the value called `name` (copied), made when first seen. Names are scoped to this graph. */
clv_status clv__builder_value(clv__builder *builder, const char *name, clv_value_id *value, clv_error *error);
/* The index of a symbolic dimension called `name`, made when first seen. */
clv_status clv__builder_symbol(clv__builder *builder, const char *name, uint32_t *symbol, clv_error *error);
/* Declares the type of a value. `type->data` NULL leaves the initializer as it was; otherwise it becomes one (data must live as
 * long as the graph: in its arena, or in a mapping given to clv__builder_own_map()). */
void clv__builder_type(clv__builder *builder, clv_value_id value, const clv_tensor *type);
/* Makes a value a weight of the declared type whose bytes come from elsewhere. Data given to clv__builder_type() binds it. */
void clv__builder_unbound(clv__builder *builder, clv_value_id value);
/* The type a value has been given so far; valid until the next value is made. */
const clv_tensor *clv__builder_type_of(const clv__builder *builder, clv_value_id value);
clv_status clv__builder_input(clv__builder *builder, clv_value_id value, clv_error *error);
clv_status clv__builder_output(clv__builder *builder, clv_value_id value, clv_error *error);
clv_status clv__builder_import(clv__builder *builder, const char *domain, int32_t version, clv_error *error);
clv_status clv__builder_metadata(clv__builder *builder, const char *key, const char *value, clv_error *error);
void clv__builder_info(clv__builder *builder, const char *name, const char *path, int64_t ir_version);
clv_status clv__builder_own_map(clv__builder *builder, const clv__file_map *map, clv_error *error);
/* Nodes added from now on come from this node of the source format (copied); NULL for both: they are the model's own. */
clv_status clv__builder_source(clv__builder *builder, const char *name, const char *op, clv_error *error);
/* Adds a node. Strings and id arrays are copied; the attribute array is copied, what it points to must live in the graph's arena.
 * Body graphs (whole views from clv__builder_finish_body()) pass into the ownership of the graph that is being built. */
clv_status clv__builder_node(clv__builder *builder, const char *name, const char *domain, const char *op,
                             const clv_value_id *inputs, uint32_t input_count, const clv_value_id *outputs, uint32_t output_count,
                             const clv_attribute *attributes, uint32_t attribute_count, clv_error *error);

/* Checks (every value read has one producer, no cycle), sorts, names, indexes. Consumes the builder in every case. */
clv_status clv__builder_finish(clv__builder *builder, clv_graph **graph, clv_error *error);
/* A body: values read but not produced become captures. Its opset imports are those of `parent`: give the model's own builder, at
 * any depth, since a body's builder holds none. */
clv_status clv__builder_finish_body(clv__builder *builder, const clv__builder *parent, const clv_graph_view **body,
                                    clv_error *error);

#endif
