/* Loads graphs (GraphProto) and nodes (NodeProto). Reads the parts of a graph in this order: inputs, nodes, declared types,
 * initializers (whose dims override the declared ones), outputs. */
#include <string.h>

#include "formats/onnx/loader.h"
#include "operators/body.h"

clv_status clv__onnx_check_depth(uint32_t depth, clv_error *error) {
  if (depth <= CLV__ONNX_MAX_DEPTH) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "subgraphs and functions are nested more than %d levels deep",
                        CLV__ONNX_MAX_DEPTH);
}

/* ---- Nodes ---- */

typedef struct node_names {
  const char *name, *op, *domain, *overload;
  uint32_t operand_count;
  size_t bytes; /* size of the node's fields except the attributes */
} node_names;

static clv_status scan_node(clv__onnx_loader *loader, clv__proto_span span, node_names *node, clv_error *error) {
  *node = (node_names){"", "", "", "", 0, 0};
  clv__arena *arena = &loader->scratch;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag != BYTES_FIELD(NODE_ATTRIBUTE)) node->bytes += field.bytes.size_bytes;
    switch (field.tag) {
      case 0:
        if (node->op[0] == '\0') return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' has no operator", node->name);
        return CLV_OK;
      case BYTES_FIELD(NODE_INPUT):
      case BYTES_FIELD(NODE_OUTPUT):
        ++node->operand_count;
        break;
      case BYTES_FIELD(NODE_NAME):
        CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &node->name, error));
        break;
      case BYTES_FIELD(NODE_OP_TYPE):
        CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &node->op, error));
        break;
      case BYTES_FIELD(NODE_DOMAIN):
        CLV__TRY(clv__onnx_domain(arena, field.bytes, loader->origin, &node->domain, error));
        break;
      case BYTES_FIELD(NODE_OVERLOAD):
        CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &node->overload, error));
        break;
      default:
        break;
    }
  }
}

/* Sets `*name` to the node's name, with the call's name as a prefix if the node is inside a function call. */
static clv_status full_name(clv__onnx_loader *loader, const clv__onnx_scope *scope, const char *own, const char *op,
                            const char **name, clv_error *error) {
  *name = own;
  if (scope == NULL) return CLV_OK;
  if (own[0] == '\0') own = op;
  size_t prefix_bytes = strlen(scope->prefix), own_bytes = strlen(own);
  char *joined = clv__arena_allocate(&loader->scratch, prefix_bytes + own_bytes + 1);
  if (joined == NULL) return clv__error_memory(error, prefix_bytes + own_bytes + 1);
  memcpy(joined, scope->prefix, prefix_bytes);
  memcpy(joined + prefix_bytes, own, own_bytes + 1);
  *name = joined;
  return clv__onnx_charge(loader, 1, prefix_bytes, error);
}

/* Fills loader->ids with the node's inputs, followed by its outputs. */
static clv_status load_operands(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, uint32_t operand_count, uint32_t *input_count, clv_error *error) {
  size_t room = (size_t)operand_count + 1; /* at least 1, so that `ids` is not NULL */
  if (!clv__array_reserve(loader->allocator, (void **)&loader->ids, &loader->id_capacity, room, sizeof *loader->ids, 0)) {
    return clv__error_memory(error, operand_count * sizeof *loader->ids);
  }
  uint32_t at = 0;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) *input_count = at;
    clv__proto_reader reader = clv__proto_read(span, loader->origin);
    for (clv__proto_field field;;) {
      CLV__TRY(clv__proto_next(&reader, &field, error));
      if (field.tag == 0) break;
      if (field.tag != BYTES_FIELD(pass == 0 ? NODE_INPUT : NODE_OUTPUT)) continue;
      const char *name;
      CLV__TRY(clv__onnx_string(&loader->scratch, field.bytes, loader->origin, &name, error));
      CLV__TRY(clv__onnx_value(loader, builder, scope, name, &loader->ids[at++], error));
    }
  }
  return CLV_OK;
}

static clv_status load_plain_node(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                  clv__proto_span span, const node_names *node, const char *name, uint32_t depth,
                                  clv_error *error) {
  clv_attribute *attributes;
  uint32_t attribute_count, input_count = 0;
  CLV__TRY(clv__onnx_load_attributes(loader, builder, scope, span, depth, &attributes, &attribute_count, error));
  clv_status status = load_operands(loader, builder, scope, span, node->operand_count, &input_count, error);
  if (status == CLV_OK) {
    status = clv__builder_node(builder, name, node->domain, node->op, loader->ids, input_count, loader->ids + input_count,
                               node->operand_count - input_count, attributes, attribute_count, error);
    if (status == CLV_INVALID_MODEL) { /* the builder already names the node */
      loader->located = true;
      loader->located_depth = depth;
    }
  }
  if (status != CLV_OK) clv__onnx_release_attributes(attributes, attribute_count);
  return status;
}

clv_status clv__onnx_load_node(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                               clv__proto_span span, uint32_t depth, clv_error *error) {
  node_names node;
  CLV__TRY(scan_node(loader, span, &node, error));
  const char *name;
  CLV__TRY(full_name(loader, scope, node.name, node.op, &name, error));
  if (scope != NULL) CLV__TRY(clv__onnx_charge(loader, 0, node.bytes, error));
  clv_status status = CLV_OK;
  const clv__onnx_function *function = NULL;
  const char *own = clv__body_operator(node.domain, node.op);
  if (own != NULL) { /* a call of the function that defines an operator of Cleave's */
    node.op = own;
  } else if (loader->function_count > 0) {
    const char *key = clv__onnx_function_key(&loader->scratch, node.domain, node.op, node.overload);
    if (key == NULL) return clv__error_memory(error, strlen(node.op));
    function = clv__onnx_find_function(loader, key);
  }
  if (function != NULL) {
    const char *call_name = name[0] != '\0' ? name : node.op;
    status = clv__onnx_inline_call(loader, builder, scope, function, span, call_name, depth, error);
  } else {
    status = load_plain_node(loader, builder, scope, span, &node, name, depth, error);
  }
  /* Prefix the error with the names of the innermost and the two outermost nodes only: the names of 64 levels would leave no room
   * for the message. */
  if (status != CLV_OK && (!loader->located || (depth < 2 && depth < loader->located_depth))) {
    clv__error_prefix(error, status, "node '%s' (%s)", name, node.op);
    if (!loader->located) loader->located_depth = depth;
    loader->located = true;
  }
  return status;
}

/* ---- Graphs ---- */

typedef struct initializer_set {
  bool *has; /* by value id */
  size_t capacity;
} initializer_set;

static clv_status load_initializer(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                   clv__proto_span span, initializer_set *set, clv_error *error) {
  clv_tensor tensor;
  const char *name;
  clv_value_id value;
  CLV__TRY(clv__onnx_load_tensor(loader, builder, span, &tensor, &name, error));
  if (name[0] == '\0') return clv__error_set(error, CLV_INVALID_MODEL, "an initializer has no name");
  CLV__TRY(clv__onnx_value(loader, builder, scope, name, &value, error));
  if (value == CLV__NO_ID) return CLV_OK;
  size_t old = set->capacity;
  if (!clv__array_reserve(loader->allocator, (void **)&set->has, &set->capacity, (size_t)value + 1, sizeof *set->has, old)) {
    return clv__error_memory(error, value);
  }
  memset(set->has + old, 0, set->capacity - old);
  if (set->has[value]) return clv__error_set(error, CLV_INVALID_MODEL, "initializer '%s' appears twice", name);
  set->has[value] = true;
  clv__builder_type(builder, value, &tensor);
  return CLV_OK;
}

static clv_status load_field(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, uint32_t number,
                             clv__proto_span span, uint32_t depth, initializer_set *set, clv_error *error) {
  clv_value_id value;
  switch (number) {
    case GRAPH_NODE:
      return clv__onnx_load_node(loader, builder, scope, span, depth, error);
    case GRAPH_INPUT:
      CLV__TRY(clv__onnx_load_value(loader, builder, scope, span, true, &value, error));
      if (value == CLV__NO_ID) return clv__error_set(error, CLV_INVALID_MODEL, "an input has no name");
      return CLV_OK;
    case GRAPH_OUTPUT:
      CLV__TRY(clv__onnx_load_value(loader, builder, scope, span, false, &value, error));
      if (value == CLV__NO_ID) return clv__error_set(error, CLV_INVALID_MODEL, "an output has no name");
      return clv__builder_output(builder, value, error);
    case GRAPH_VALUE_INFO:
      return clv__onnx_load_value(loader, builder, scope, span, false, &value, error);
    default:
      return load_initializer(loader, builder, scope, span, set, error);
  }
}

static clv_status load_fields(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, clv__proto_span span,
                              uint32_t depth, initializer_set *set, clv_error *error) {
  static const uint32_t order[] = {GRAPH_INPUT, GRAPH_NODE, GRAPH_VALUE_INFO, GRAPH_OUTPUT, GRAPH_INITIALIZER};
  for (size_t pass = 0; pass < sizeof order / sizeof *order; ++pass) {
    clv__proto_reader reader = clv__proto_read(span, loader->origin);
    for (clv__proto_field field;;) {
      CLV__TRY(clv__proto_next(&reader, &field, error));
      if (field.tag == 0) break;
      if (field.tag == BYTES_FIELD(order[pass])) {
        CLV__TRY(load_field(loader, builder, scope, order[pass], field.bytes, depth, set, error));
      } else if (field.tag == BYTES_FIELD(GRAPH_SPARSE_INITIALIZER)) {
        return clv__error_set(error, CLV_NOT_SUPPORTED, "the graph has sparse initializers, which are not supported");
      }
    }
  }
  return CLV_OK;
}

clv_status clv__onnx_load_graph(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, uint32_t depth, clv_error *error) {
  const char *name = "";
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(GRAPH_NAME)) {
      CLV__TRY(clv__onnx_string(&loader->scratch, field.bytes, loader->origin, &name, error));
    }
  }
  clv__builder_info(builder, name, depth == 0 ? loader->path : NULL, loader->ir_version);
  initializer_set set = {NULL, 0};
  clv_status status = load_fields(loader, builder, scope, span, depth, &set, error);
  clv__release(loader->allocator, set.has);
  return status;
}
