/* Declarations shared by the files of the ONNX reader: the state of one load, and the functions that convert protobuf messages to
 * a graph. */
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
  const char *location; /* path of the data file, as written in the model */
  clv__file_map map;
} clv__onnx_file;

/* An attribute that a call passes to its function: the attribute's message, and the scope in which its names are to be read. */
typedef struct clv__onnx_scope clv__onnx_scope;
typedef struct clv__onnx_argument {
  const char *name;
  clv__proto_span message;
  const clv__onnx_scope *scope;
} clv__onnx_argument;

/* The scope of one call of a model function. A NULL pointer means the model itself. Names of the function's inputs and outputs
 * refer to values of the caller; all other names get the number of the call as a suffix. */
struct clv__onnx_scope {
  uint32_t call;
  const char *prefix;      /* of the names of the function's nodes: the name of the call and a slash */
  clv__map formals;        /* names of the function's inputs and outputs -> index into `actuals` */
  const char **actuals;    /* names of the caller's values, in the model's scope; "" if the call omits the operand */
  uint32_t argument_count; /* the attributes of the call, then the function's defaults; the first of a name applies */
  const clv__onnx_argument *arguments;
};

typedef struct clv__onnx_loader {
  const clv_allocator *allocator;
  const char *path;      /* NULL: loaded from memory */
  const uint8_t *origin; /* start of the file: byte offsets in errors are relative to it */
  clv__proto_span model;
  int64_t ir_version;
  clv__builder *root; /* owns everything that the model's graphs point to */
  clv__arena scratch; /* freed after the load */
  clv__text name;     /* buffer for the name being built */
  clv_value_id *ids;  /* operands of the node being loaded */
  size_t id_capacity;
  clv__onnx_function *functions;
  size_t function_count, function_capacity;
  clv__map function_index;
  char marker[16]; /* precedes the number of a call in names; occurs nowhere in the model */
  uint32_t call_count;
  size_t inlined_nodes, inlined_bytes;
  clv__onnx_file *files;
  size_t file_count, file_capacity;
  bool located;           /* the error already names its node */
  uint32_t located_depth; /* the nesting depth of that node */
} clv__onnx_loader;

/* The fields of a TensorProto before its data is decoded. */
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

/* Returns a string field as a terminated string in `arena`. Rejects zero bytes and invalid UTF-8. */
clv_status clv__onnx_string(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **string,
                            clv_error *error);
/* Like clv__onnx_string(), for an operator domain: "ai.onnx" becomes "". */
clv_status clv__onnx_domain(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **domain,
                            clv_error *error);

/* tensor.c */
clv_status clv__onnx_tensor_scan(clv__proto_span message, const uint8_t *origin, clv__onnx_tensor_message *tensor,
                                 clv_error *error);
/* Decodes the data of a tensor. If the data already has the layout of a tensor in memory, `tensor` points into the message;
 * otherwise the data is copied into `arena`. */
clv_status clv__onnx_tensor_decode(const clv__onnx_tensor_message *message, const uint8_t *origin, clv__arena *arena,
                                   clv_tensor *tensor, clv_error *error);
/* Scans and decodes a tensor, including external data. Errors name the tensor. */
clv_status clv__onnx_load_tensor(clv__onnx_loader *loader, clv__builder *builder, clv__proto_span span, clv_tensor *tensor,
                                 const char **name, clv_error *error);
/* Replaces booleans other than 0 and 1 by 1. If there are any, first copies the tensor's data into `arena`. */
clv_status clv__onnx_check_bools(clv__arena *arena, clv_tensor *tensor, clv_error *error);

/* external.c: points `tensor` at its bytes in a file in the model's folder. */
clv_status clv__onnx_external_data(clv__onnx_loader *loader, const clv__onnx_tensor_message *message, clv_tensor *tensor,
                                   clv_error *error);

/* type.c: declares the type of a ValueInfoProto's value, and adds it as an input if `is_input`. */
clv_status clv__onnx_load_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, bool is_input, clv_value_id *value, clv_error *error);

/* function.c */
clv_status clv__onnx_add_function(clv__onnx_loader *loader, clv__proto_span span, clv_error *error);
const clv__onnx_function *clv__onnx_find_function(const clv__onnx_loader *loader, const char *key);
const char *clv__onnx_function_key(clv__arena *arena, const char *domain, const char *name, const char *overload);
/* Replaces a node that calls a function by the function's nodes. */
clv_status clv__onnx_inline_call(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                 const clv__onnx_function *function, clv__proto_span node, const char *node_name, uint32_t depth,
                                 clv_error *error);
/* Finds the value that a name refers to in `scope`. Sets `*value` to CLV__NO_ID if the name is empty or refers to an operand that
 * the call omits. */
clv_status clv__onnx_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, const char *name,
                           clv_value_id *value, clv_error *error);
/* Translates a name in `scope` to the model's own scope. The result is valid until the next call. NULL if out of memory. */
const char *clv__onnx_translate(clv__onnx_loader *loader, const clv__onnx_scope *scope, const char *name);
/* Adds to the nodes and bytes that inlining has produced, and fails if they exceed a limit. Without a limit, functions that call
 * each other could expand a small file to billions of nodes. */
clv_status clv__onnx_charge(clv__onnx_loader *loader, size_t nodes, size_t bytes, clv_error *error);

/* attribute.c */
/* Loads all attributes of a node, in order. Skips those that refer to an attribute of the function that the call does not pass
 * and that has no default. */
clv_status clv__onnx_load_attributes(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                     clv__proto_span node, uint32_t depth, clv_attribute **attributes, uint32_t *count,
                                     clv_error *error);
/* Destroys the bodies in attributes that were not passed to a graph. */
void clv__onnx_release_attributes(const clv_attribute *attributes, uint32_t count);
/* Resolves an attribute that refers to one of the function's attributes, through all enclosing calls. Sets `*argument` to the
 * message to decode and its scope, or `*present` to false if no call passes the attribute. */
clv_status clv__onnx_resolve_attribute(clv__onnx_loader *loader, const clv__onnx_scope *scope, clv__proto_span span,
                                       clv__arena *arena, clv__onnx_argument *argument, bool *present, clv_error *error);

/* graph.c */
clv_status clv__onnx_load_node(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                               clv__proto_span span, uint32_t depth, clv_error *error);
clv_status clv__onnx_load_graph(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, uint32_t depth, clv_error *error);
clv_status clv__onnx_check_depth(uint32_t depth, clv_error *error);

#endif
