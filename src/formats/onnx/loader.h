/* What the files of the ONNX reader share: the state of one load, and the steps from message to graph. */
#ifndef CLEAVE_FORMATS_ONNX_LOADER_H
#define CLEAVE_FORMATS_ONNX_LOADER_H

#include "base/files/file.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/protobuf.h"
#include "formats/onnx/schema.h"

#define VARINT_FIELD(number) CLV__PROTO_TAG(number, CLV__PROTO_VARINT)
#define BYTES_FIELD(number) CLV__PROTO_TAG(number, CLV__PROTO_BYTES)
#define FLOAT_FIELD(number) CLV__PROTO_TAG(number, CLV__PROTO_FIXED32)
#define DOUBLE_FIELD(number) CLV__PROTO_TAG(number, CLV__PROTO_FIXED64)

typedef struct clv__onnx_function {
  clv__proto_span message;
  const char *key; /* see clv__onnx_function_key() */
  size_t field_count;
} clv__onnx_function;

typedef struct clv__onnx_file {
  const char *location; /* as the model writes it */
  clv__file_map map;
} clv__onnx_file;

/* An attribute as the inside of a function sees it: a message, and the names in which it is to be understood. */
typedef struct clv__onnx_scope clv__onnx_scope;
typedef struct clv__onnx_argument {
  const char *name;
  clv__proto_span message;
  const clv__onnx_scope *scope;
} clv__onnx_argument;

/* The inside of one call of a model function; NULL stands for the model itself. Names of the function's inputs and outputs mean
 * the caller's values, all others get the number of the call. */
struct clv__onnx_scope {
  uint32_t call;
  const char *prefix;      /* of node names: the call's own name and a slash */
  clv__map formals;        /* -> index into `actuals` */
  const char **actuals;    /* "" where the call gives none */
  uint32_t argument_count; /* the call's attributes, then the defaults that it leaves in force */
  const clv__onnx_argument *arguments;
};

typedef struct clv__onnx_loader {
  const clv_allocator *allocator;
  const char *path;      /* NULL: from memory */
  const uint8_t *origin; /* byte offsets in errors count from here */
  clv__proto_span model;
  int64_t ir_version;
  clv__builder *root; /* owns what all graphs of the model point to */
  clv__arena scratch; /* dies with the load */
  clv__text name;     /* the name being made */
  clv_value_id *ids;  /* operands of the node being made */
  size_t id_capacity;
  clv__onnx_function *functions;
  size_t function_count, function_capacity;
  clv__map function_index;
  char marker[16]; /* stands before the number of a call in names, and nowhere in the model */
  uint32_t call_count;
  size_t inlined_nodes, inlined_bytes;
  clv__onnx_file *files;
  size_t file_count, file_capacity;
  bool located; /* the error names its node, which is this deep: */
  uint32_t located_depth;
} clv__onnx_loader;

/* What a message holds of a tensor before it is decoded. */
typedef struct clv__onnx_tensor_message {
  clv__proto_span message;
  clv__proto_span name;
  int64_t data_type;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK];
  bool has_raw, is_external, has_segment;
  clv__proto_span raw;
  clv__proto_span location, offset, length; /* of external data */
} clv__onnx_tensor_message;

/* A string field as a terminated string in `arena`. Refuses zero bytes and what is not UTF-8. */
clv_status clv__onnx_string(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **string,
                            clv_error *error);
/* The same for a domain, where "ai.onnx" reads "". */
clv_status clv__onnx_domain(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **domain,
                            clv_error *error);

/* tensor.c */
clv_status clv__onnx_tensor_scan(clv__proto_span message, const uint8_t *origin, clv__onnx_tensor_message *tensor,
                                 clv_error *error);
/* The data of a tensor: into its message where it lies there as it is in memory, else decoded into `arena`. */
clv_status clv__onnx_tensor_decode(const clv__onnx_tensor_message *message, const uint8_t *origin, clv__arena *arena,
                                   clv_tensor *tensor, clv_error *error);
/* Scans and decodes, external data included, and names the tensor in errors. */
clv_status clv__onnx_load_tensor(clv__onnx_loader *loader, clv__builder *builder, clv__proto_span span, clv_tensor *tensor,
                                 const char **name, clv_error *error);
/* Brings booleans other than 0 and 1 to 1; copies into `arena` where that is needed. */
clv_status clv__onnx_check_bools(clv__arena *arena, clv_tensor *tensor, clv_error *error);

/* external.c: points `tensor` at its bytes in a file of the model's folder. */
clv_status clv__onnx_external_data(clv__onnx_loader *loader, const clv__onnx_tensor_message *message, clv_tensor *tensor,
                                   clv_error *error);

/* type.c: declares the type of ValueInfoProto's value, and adds it as input where asked. */
clv_status clv__onnx_load_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, bool is_input, clv_value_id *value, clv_error *error);

/* function.c */
clv_status clv__onnx_add_function(clv__onnx_loader *loader, clv__proto_span span, clv_error *error);
const clv__onnx_function *clv__onnx_find_function(const clv__onnx_loader *loader, const char *key);
const char *clv__onnx_function_key(clv__arena *arena, const char *domain, const char *name, const char *overload);
/* Puts the nodes of a function in place of a node that calls it. */
clv_status clv__onnx_inline_call(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                 const clv__onnx_function *function, clv__proto_span node, const char *node_name, uint32_t depth,
                                 clv_error *error);
/* The value that a name of `scope` means, as an id; CLV__NO_ID for an absent one. */
clv_status clv__onnx_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, const char *name,
                           clv_value_id *value, clv_error *error);
/* The same name in the model's own scope; valid until the next call. NULL when memory is out. */
const char *clv__onnx_translate(clv__onnx_loader *loader, const clv__onnx_scope *scope, const char *name);
/* Counts what inlining writes out, against files of few bytes that call themselves into billions of nodes. */
clv_status clv__onnx_charge(clv__onnx_loader *loader, size_t nodes, size_t bytes, clv_error *error);

/* attribute.c */
/* All attributes of a node message, in its order; those that refer to an absent one of the function are left out. */
clv_status clv__onnx_load_attributes(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                     clv__proto_span node, uint32_t depth, clv_attribute **attributes, uint32_t *count,
                                     clv_error *error);
/* Destroys the bodies, which no graph owns yet. */
void clv__onnx_release_attributes(const clv_attribute *attributes, uint32_t count);
/* Follows references up the calls: the message to decode and its scope. False where the attribute is absent. */
clv_status clv__onnx_resolve_attribute(clv__onnx_loader *loader, const clv__onnx_scope *scope, clv__proto_span span,
                                       clv__arena *arena, clv__onnx_argument *argument, bool *present, clv_error *error);

/* graph.c */
clv_status clv__onnx_load_node(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                               clv__proto_span span, uint32_t depth, clv_error *error);
clv_status clv__onnx_load_graph(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, uint32_t depth, clv_error *error);
clv_status clv__onnx_check_depth(uint32_t depth, clv_error *error);

#endif
