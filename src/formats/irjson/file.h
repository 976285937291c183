/* Declarations shared by the parts of the IR JSON reader. See irjson.h. */
#ifndef CLEAVE_FORMATS_IRJSON_FILE_H
#define CLEAVE_FORMATS_IRJSON_FILE_H

#include "base/text.h"
#include "formats/irjson/lower.h"

typedef enum clv__irjson_origin { CLV__IRJSON_INPUT, CLV__IRJSON_WEIGHT, CLV__IRJSON_OUTPUT } clv__irjson_origin;

/* A tensor declared in the file. */
typedef struct clv__irjson_tensor {
  const char *name;
  const char *param; /* its name in the weight files; NULL if that is `name` */
  clv__irjson_origin origin;
  clv_tensor type;
  clv_value_id value;
  uint32_t node;  /* for an output: the node that produces it */
  uint32_t reads; /* number of nodes and model outputs that read it */
} clv__irjson_tensor;

typedef struct clv__irjson_node {
  const json_t *json;
  const char *name, *op_type;
  uint32_t first_output, output_count; /* the outputs are consecutive in clv__irjson.tensors */
} clv__irjson_node;

struct clv__irjson {
  const clv_allocator *allocator;
  clv__arena scratch;
  json_t *root;
  clv__builder *builder;
  clv__irjson_tensor *tensors;
  size_t tensor_count, tensor_capacity;
  clv__irjson_node *nodes;
  size_t node_count;
  clv__map tensor_index; /* names of tensors, and the names that nodes use for weights -> index in `tensors` */
  clv__map node_index;   /* names of nodes -> index in `nodes` */
  clv__map constants;    /* key of a constant (its type and numbers as text) -> value */
  clv__map lowerings;    /* stem -> index in `lowering_list` */
  const clv__aten_lowering **lowering_list;
  size_t lowering_count, lowering_capacity;
  uint32_t fresh_count; /* the next number that clv__irjson_fresh() appends to a name */
  clv_error *error;
};

/* Names the kind of a JSON value for errors: "a list", "a string", … NULL is "missing". */
const char *clv__irjson_kind(const json_t *value);
/* Parses a dtype such as "float32" or "torch.float32". Returns CLV_DTYPE_NONE if it is not supported. */
clv_dtype clv__irjson_dtype(const char *text);

/* Reads a number, a bool, or a number as a string: "nan", "inf" or "Infinity", the last two with an optional minus sign. Returns
 * false for anything else. */
bool clv__irjson_read_scalar(const json_t *json, clv__aten_scalar *value);
/* Stores a number as element `index` of data of any dtype except strings. */
void clv__irjson_put(clv_dtype dtype, void *data, size_t index, clv__aten_scalar value);

/* Reads an object {name, shape, dtype}. `where` is its place in the file, for errors: "nodes[3].inputs[0]". */
clv_status clv__irjson_read_tensor(const clv__irjson *file, const json_t *json, const char *where, const char **name,
                                   clv_tensor *type);
/* Reads the elements of a tensor of `type`, given as nested lists, a flat list or a single number. Sets type->data to memory of
 * the graph. */
clv_status clv__irjson_read_numbers(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type);
/* Determines the dims of nested lists. */
clv_status clv__irjson_measure(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type);

/* Finds the member `key` of `json`: a list, or an object if not `is_list`. Sets `*member` to NULL if it is absent. Any other type
 * is an error. */
clv_status clv__irjson_member(const clv__irjson *file, const json_t *json, const char *where, const char *key, bool is_list,
                              const json_t **member);

/* Creates a value with an unused name: `hint`, followed by a number if `numbered` or if the file uses the name. */
clv_status clv__irjson_fresh(clv__irjson *file, const char *hint, bool numbered, clv_value_id *value);

/* Finds the tensor that a node's input or a graph output refers to, and compares the tensor's declared type with the type
 * stated at the reference. */
clv_status clv__irjson_resolve(const clv__irjson *file, const json_t *json, const char *where, uint32_t *tensor);
/* Counts the readers of every tensor, and checks all references. */
clv_status clv__irjson_count_reads(clv__irjson *file);
/* Adds the ONNX nodes for node `index` of the file. */
clv_status clv__irjson_lower_node(clv__irjson *file, uint32_t index);
/* keep.c: adds the node `json` to the graph without lowering it, in domain `aten`. */
clv_status clv__irjson_keep(clv__irjson *file, const json_t *json, clv__aten_node *node);
clv_status clv__irjson_lowerings_init(clv__irjson *file);

/* Compares the inferred types of the outputs of all nodes with the types that the file declares. */
clv_status clv__irjson_check(const clv__irjson *file, const clv_graph *graph);

#endif
