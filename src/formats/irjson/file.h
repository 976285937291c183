/* What the parts of the IR JSON reader share: see irjson.h. */
#ifndef CLEAVE_FORMATS_IRJSON_FILE_H
#define CLEAVE_FORMATS_IRJSON_FILE_H

#include "base/text.h"
#include "formats/irjson/lower.h"

typedef enum clv__irjson_origin { CLV__IRJSON_INPUT, CLV__IRJSON_WEIGHT, CLV__IRJSON_OUTPUT } clv__irjson_origin;

/* A tensor that the file declares. */
typedef struct clv__irjson_tensor {
  const char *name;
  const char *param; /* the name by which the files of weights have it; NULL: its own */
  clv__irjson_origin origin;
  clv_tensor type;
  clv_value_id value;
  uint32_t node;  /* that makes it */
  uint32_t reads; /* nodes and outputs of the model that read it */
} clv__irjson_tensor;

typedef struct clv__irjson_node {
  const json_t *json;
  const char *name, *op_type;
  uint32_t first_output, output_count; /* among the tensors */
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
  clv__map tensor_index; /* names of tensors, and the weights' other names -> tensors */
  clv__map node_index;   /* names of nodes -> nodes */
  clv__map constants;    /* text of a constant -> value */
  clv__map lowerings;    /* stem -> lowering */
  const clv__aten_lowering **lowering_list;
  size_t lowering_count, lowering_capacity;
  uint32_t fresh_count; /* values that the file does not name */
  clv_error *error;
};

/* "a list", "a text", "nothing", … */
const char *clv__irjson_kind(const json_t *value);
/* "float32", "torch.float32"; CLV_DTYPE_NONE for what is no dtype here. */
clv_dtype clv__irjson_dtype(const char *text);

/* A number, a truth value, or a text that says infinite; false for anything else. */
bool clv__irjson_read_scalar(const json_t *json, clv__aten_scalar *value);
/* Element `index` of data of any dtype but text. */
void clv__irjson_put(clv_dtype dtype, void *data, size_t index, clv__aten_scalar value);

/* {name, shape, dtype}; `where` is for the message: "nodes[3].inputs[0]". */
clv_status clv__irjson_read_tensor(const clv__irjson *file, const json_t *json, const char *where, const char **name,
                                   clv_tensor *type);
/* Numbers (a list of lists, or one number) into memory of the graph. */
clv_status clv__irjson_read_numbers(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type);
/* The dims of a list of lists. */
clv_status clv__irjson_measure(const clv__irjson *file, const json_t *json, const char *where, clv_tensor *type);

/* The list or object `key` of `json`; an error where it is something else, NULL where it is not there. */
clv_status clv__irjson_member(const clv__irjson *file, const json_t *json, const char *where, const char *key, bool is_list,
                              const json_t **member);

/* A value that no name of the file names: `hint`, with a number after it where the file takes that name, or always. */
clv_status clv__irjson_fresh(clv__irjson *file, const char *hint, bool numbered, clv_value_id *value);

/* The tensor that input `index` of a node means; checks what the file says of it. */
clv_status clv__irjson_resolve(const clv__irjson *file, const json_t *json, const char *where, uint32_t *tensor);
/* Counts the readers of every tensor (and checks all references on the way). */
clv_status clv__irjson_count_reads(clv__irjson *file);
/* Adds the nodes that node `index` becomes. */
clv_status clv__irjson_lower_node(clv__irjson *file, uint32_t index);
/* Adds node `json` as it is, in domain `aten`: keep.c. */
clv_status clv__irjson_keep(clv__irjson *file, const json_t *json, clv__aten_node *node);
clv_status clv__irjson_lowerings_init(clv__irjson *file);

/* Compares what inference says of every output of the file's nodes with what the file declares. */
clv_status clv__irjson_check(const clv__irjson *file, const clv_graph *graph);

#endif
