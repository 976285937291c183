/* Making a graph in memory, node by node, instead of loading a file. Operators are those of ONNX.
 *
 *   clv_graph_builder_create(context, 17, &builder, &error)
 *   clv_graph_builder_input(builder, "x", &type, NULL, &error)
 *   clv_graph_builder_weight(builder, "w", &weight, CLV_COPY, &error)
 *   clv_graph_builder_node(builder, &(clv_builder_node){.struct_size = ..., .op = "MatMul", ...}, &error)
 *   clv_graph_builder_output(builder, "y", NULL, &error)
 *   clv_graph_builder_finish(builder, &graph, &error)
 *
 * Values are named. A node may read a value that a later call defines. After an error, the builder can only be destroyed. A
 * builder must not be used by two threads at a time. All functions return CLV_INVALID_ARGUMENT for a NULL that is not allowed,
 * CLV_INVALID_MODEL for a name that is not UTF-8, and CLV_OUT_OF_MEMORY.
 *
 * Unstable: may change until 1.0. */
#ifndef CLEAVE_BUILDER_H
#define CLEAVE_BUILDER_H

#include "graph.h"
#include "info.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_graph_builder clv_graph_builder;

/* Begins a graph. `opset` is the version of ONNX's operators (domain ""). The context must outlive the builder and the graph.
 * Errors: CLV_NOT_SUPPORTED for a version above the newest supported one. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_create(clv_context *context, int32_t opset, clv_graph_builder **builder,
                                                         clv_error *error);
/* Begins the body of an If, Loop or Scan of `builder`, which may be a body itself. The new body's nodes can read the values of
 * all graphs around it. Finish the body with clv_graph_builder_finish_body() before `builder` is finished. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_body(clv_graph_builder *builder, clv_graph_builder **body, clv_error *error);
/* Discards a graph or body that is not finished. Call this for its unfinished bodies before you call it for `builder`. Accepts
 * NULL. */
CLV_API void clv_graph_builder_destroy(clv_graph_builder *builder);

/* Sets the version of the operators of a domain other than "", as an opset import of a model file does. `builder` must not be a
 * body. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_import(clv_graph_builder *builder, const char *domain, int32_t version,
                                                         clv_error *error);

/* Adds an input. Dimensions of `type` that are unknown are negative; `symbols`, if not NULL, has a name or NULL for each
 * dimension. A dimension with a name is symbolic, whatever size `type` gives for it. If `type` has data, it is the input's
 * default value, and is copied. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_input(clv_graph_builder *builder, const char *name, const clv_tensor *type,
                                                        const char *const *symbols, clv_error *error);
/* Adds a constant. With CLV_BORROW, its data must outlive the graph; strings are always copied. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_weight(clv_graph_builder *builder, const char *name, const clv_tensor *value,
                                                         clv_ownership ownership, clv_error *error);
/* Declares the type of a value that a node computes, as a model file's value_info does, for a node whose operator Cleave does not
 * know. A known operator's inferred type must agree with it. `symbols`: as for inputs. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_value(clv_graph_builder *builder, const char *name, const clv_tensor *type,
                                                        const char *const *symbols, clv_error *error);

typedef struct clv_builder_node {
  uint32_t struct_size;
  const char *op;
  const char *domain;        /* NULL or "ai.onnx": "" */
  const char *name;          /* NULL: none */
  const char *const *inputs; /* names of values; NULL or "": an absent optional input */
  uint32_t input_count;
  const char *const *outputs; /* names of values; NULL or "": an optional output that is not computed */
  uint32_t output_count;
  /* Their names and contents are copied. The graph of an attribute is a body from clv_graph_builder_finish_body(). A body can
   * be used in one attribute only. */
  const clv_attribute *attributes;
  uint32_t attribute_count;
} clv_builder_node;
/* Adds a node. Errors: CLV_INVALID_MODEL if one of its outputs is already a node's output. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_node(clv_graph_builder *builder, const clv_builder_node *node,
                                                       clv_error *error);

/* Adds an output. `type`: its declared type, as for inputs; NULL: the inferred one. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_output(clv_graph_builder *builder, const char *name, const clv_tensor *type,
                                                         clv_error *error);

/* Makes the graph. Destroys the builder, also after an error, except after CLV_INVALID_ARGUMENT. Checks what a loaded file is
 * checked for, and infers all types. Errors: CLV_INVALID_MODEL, with the node and its values, if the nodes have a cycle, read a
 * value that does not exist, or are not valid for their inputs; CLV_INVALID_ARGUMENT if `builder` is a body or has an
 * unfinished body. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_finish(clv_graph_builder *builder, clv_graph **graph, clv_error *error);
/* Makes a body, for one attribute of kind CLV_ATTRIBUTE_GRAPH. Destroys its builder, also after an error, except after
 * CLV_INVALID_ARGUMENT. The view is valid until the graph is finished. */
CLV_API CLV_MUST_USE clv_status clv_graph_builder_finish_body(clv_graph_builder *body, const clv_graph_view **view,
                                                              clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
