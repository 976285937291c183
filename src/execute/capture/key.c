/* Writes a capture's key. See key.h. difference.c reads two keys side by side, in the same order:
 *
 *   key        text device, text fingerprint, partitions, nodes in all partitions, partition...
 *   partition  nodes, node...
 *   node       text domain, text op, opset, attributes, attribute..., inputs, edge..., outputs, edge...
 *   edge       0: absent; 1 + the value's number; a new value gets the next number, and its `value` record follows
 *   value      flags, type, its index among the values that the body takes from outside (if CLV__KEY_CAPTURE is set), memory
 *              (0, or 1 + the number of the first value that shares its memory), content (if CLV__KEY_CONTENT is set)
 *   type       dtype, rank, dims
 *   attribute  text name, kind, is_list, count, then by kind: numbers, floats, texts, type and content, body
 *   content    byte count, then the bytes, or their hash if there are many; for strings: count, then texts
 *   body       inputs, edge..., nodes, node..., outputs, edge...; its values are numbered from 0 again
 *
 * A plural, such as `nodes`, is a count, and `node...` is that many of them. Numbers use 7 bits per byte, the lowest first.
 * Numbers that may be negative are zigzag-encoded. Texts begin with their length. */
#include "execute/capture/key.h"

#include "base/text.h"
#include "execute/capture/key_own.h"

typedef struct writer {
  const clv_graph *graph;
  const clv_tensor *types;     /* indexed by value; NULL in bodies, which use the declared types */
  const clv_value_id *aliases; /* indexed by value, or NULL */
  const uint8_t *boundary;     /* indexed by value: flags; NULL in bodies */
  uint32_t *numbers;           /* indexed by value: 1 + its number; 0: not seen yet */
  uint32_t *memory;            /* by the common id in `aliases`: 1 + the number of the first value in that memory */
  uint32_t value_count, node_count;
  const char **value_names, **node_names; /* NULL in bodies */
  clv__text *out;
  clv__arena *scratch;
  bool failed; /* memory for `scratch` ran out */
} writer;

static void put(clv__text *out, uint64_t number) {
  uint8_t bytes[10];
  size_t count = 0;
  for (; number >= 0x80; number >>= 7) bytes[count++] = (uint8_t)(number | 0x80);
  bytes[count++] = (uint8_t)number;
  clv__text_append_bytes(out, bytes, count);
}

static void put_signed(clv__text *out, int64_t number) {
  put(out, ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}

static void put_bytes(clv__text *out, const void *data, size_t size_bytes) {
  put(out, size_bytes);
  clv__text_append_bytes(out, data, size_bytes);
}

static void put_text(clv__text *out, const char *text) {
  put_bytes(out, text, strlen(text));
}

static void put_type(clv__text *out, const clv_tensor *type) {
  put(out, (uint64_t)type->dtype);
  put_signed(out, type->rank);
  for (int32_t i = 0; i < type->rank; ++i) put_signed(out, type->dims[i]);
}

/* Writes the content of `tensor`, which has `size_bytes` bytes; 0: its data is unknown, or it is empty. */
static void put_content(clv__text *out, const clv_tensor *tensor, size_t size_bytes) {
  if (tensor->dtype == CLV_STRING) {
    put(out, size_bytes / sizeof(clv_string));
    for (size_t i = 0; i < size_bytes / sizeof(clv_string); ++i) {
      clv_string string;
      memcpy(&string, (const char *)tensor->data + i * sizeof string, sizeof string);
      put_bytes(out, string.data, string.size_bytes);
    }
    return;
  }
  put(out, size_bytes);
  if (size_bytes <= CLV__KEY_SMALL_BYTES) {
    clv__text_append_bytes(out, tensor->data, size_bytes);
    return;
  }
  clv__hasher hasher;
  clv__hash hash;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, tensor->data, size_bytes);
  clv__hasher_finish(&hasher, &hash);
  clv__text_append_bytes(out, hash.bytes, sizeof hash.bytes);
}

static void put_value(writer *w, clv_value_id id, uint32_t number) {
  const clv__value *value = &w->graph->values[id];
  const clv_tensor *type = w->types != NULL ? &w->types[id] : &value->type;
  uint8_t flags = w->boundary != NULL ? w->boundary[id] : 0;
  size_t size_bytes = 0;
  if (value->capture != CLV__NO_ID) flags |= CLV__KEY_CAPTURE;
  if (clv__value_is_constant(w->graph, w->types, id)) {
    flags |= CLV__KEY_CONSTANT;
    if (type->data != NULL && clv__tensor_size_bytes(type, &size_bytes) && size_bytes > 0 && size_bytes <= CLV__KEY_SMALL_BYTES) {
      flags |= CLV__KEY_CONTENT;
    }
  }
  put(w->out, flags);
  put_type(w->out, type);
  if ((flags & CLV__KEY_CAPTURE) != 0) put(w->out, w->graph->capture_index[value->capture]);
  clv_value_id shared = w->aliases != NULL ? w->aliases[id] : CLV__NO_ID;
  if (shared == CLV__NO_ID) shared = id;
  put(w->out, w->memory[shared]);
  if (w->memory[shared] == 0) w->memory[shared] = number + 1;
  if ((flags & CLV__KEY_CONTENT) != 0) put_content(w->out, type, size_bytes);
}

static void put_edges(writer *w, const clv_value_id *ids, uint32_t count) {
  put(w->out, count);
  for (uint32_t i = 0; i < count; ++i) {
    clv_value_id id = ids[i];
    if (id == CLV__NO_ID) {
      put(w->out, 0);
      continue;
    }
    bool is_new = w->numbers[id] == 0;
    if (is_new) {
      if (w->value_names != NULL) w->value_names[w->value_count] = w->graph->values[id].name;
      w->numbers[id] = ++w->value_count;
    }
    put(w->out, w->numbers[id]);
    if (is_new) put_value(w, id, w->numbers[id] - 1);
  }
}

static void put_node(writer *w, const clv__node *node);

static void put_body(writer *outer, const clv_graph *graph) {
  uint32_t *numbers = clv__arena_allocate_zero(outer->scratch, graph->value_count, 2 * sizeof *numbers);
  if (numbers == NULL) {
    outer->failed = true;
    return;
  }
  writer w = {
      .graph = graph, .numbers = numbers, .memory = numbers + graph->value_count, .out = outer->out, .scratch = outer->scratch};
  put_edges(&w, graph->inputs, graph->input_count);
  put(w.out, graph->node_count);
  for (uint32_t i = 0; i < graph->node_count; ++i) put_node(&w, &graph->nodes[i]);
  put_edges(&w, graph->outputs, graph->output_count);
  outer->failed = outer->failed || w.failed;
}

static void put_attribute(writer *w, const clv_attribute *attribute) {
  size_t size_bytes;
  put_text(w->out, attribute->name);
  put(w->out, (uint64_t)attribute->kind);
  put(w->out, attribute->is_list);
  put(w->out, attribute->count);
  switch (attribute->kind) {
    case CLV_ATTRIBUTE_INTS:
      for (size_t i = 0; i < attribute->count; ++i) put_signed(w->out, attribute->ints[i]);
      break;
    case CLV_ATTRIBUTE_FLOATS:
      clv__text_append_bytes(w->out, attribute->floats, attribute->count * sizeof *attribute->floats);
      break;
    case CLV_ATTRIBUTE_STRINGS:
      for (size_t i = 0; i < attribute->count; ++i)
        put_bytes(w->out, attribute->strings[i].data, attribute->strings[i].size_bytes);
      break;
    case CLV_ATTRIBUTE_TENSOR:
      put_type(w->out, attribute->tensor);
      if (attribute->tensor->data == NULL || !clv__tensor_size_bytes(attribute->tensor, &size_bytes)) size_bytes = 0;
      put_content(w->out, attribute->tensor, size_bytes);
      break;
    case CLV_ATTRIBUTE_GRAPH:
      put_body(w, attribute->graph->graph);
      break;
  }
}

static void put_node(writer *w, const clv__node *node) {
  if (w->node_names != NULL) w->node_names[w->node_count] = node->name;
  ++w->node_count;
  put_text(w->out, node->domain);
  put_text(w->out, node->op);
  put(w->out, (uint64_t)node->opset);
  put(w->out, node->attributes.count);
  for (uint32_t i = 0; i < node->attributes.count; ++i) put_attribute(w, &node->attributes.items[i]);
  put_edges(w, node->inputs, node->input_count);
  put_edges(w, node->outputs, node->output_count);
}

static bool is_taken(const clv_plan *plan, uint32_t device, const bool *captured, uint32_t partition) {
  return plan->partitions[partition].device == device && captured[partition];
}

/* Marks the values that enter and leave the partitions. */
static void mark_boundary(const clv_plan *plan, uint32_t device, const bool *captured, uint8_t *boundary) {
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (!is_taken(plan, device, captured, p)) continue;
    const clv_graph_view *view = plan->partitions[p].view;
    for (uint32_t i = 0; i < view->input_count; ++i) boundary[view->values[view->inputs[i]]] |= CLV__KEY_INPUT;
    for (uint32_t i = 0; i < view->output_count; ++i) boundary[view->values[view->outputs[i]]] |= CLV__KEY_OUTPUT;
  }
}

static void put_plan(writer *w, const clv_plan *plan, uint32_t device, const bool *captured) {
  uint32_t partition_count = 0, node_count = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (!is_taken(plan, device, captured, p)) continue;
    ++partition_count;
    node_count += plan->partitions[p].node_count;
  }
  const clv__device *where = &plan->devices->items[device];
  put_text(w->out, where->name);
  put_text(w->out, where->info.fingerprint != NULL ? where->info.fingerprint : "");
  put(w->out, partition_count);
  put(w->out, node_count);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (!is_taken(plan, device, captured, p)) continue;
    put(w->out, plan->partitions[p].node_count);
    for (uint32_t i = 0; i < plan->partitions[p].node_count; ++i) put_node(w, &plan->graph->nodes[plan->partitions[p].nodes[i]]);
  }
}

clv_status clv__capture_key_make(const clv_plan *plan, uint32_t device, const bool *captured, const clv_tensor *types,
                                 const clv_value_id *aliases, clv__arena *arena, clv__capture_key *key, clv_error *error) {
  const clv_graph *graph = plan->graph;
  clv__arena scratch;
  clv__text out;
  *key = (clv__capture_key){0};
  clv__arena_init(&scratch, arena->allocator);
  clv__text_init(&out, arena->allocator);
  uint32_t *numbers = clv__arena_allocate_zero(&scratch, graph->value_count, 2 * sizeof *numbers);
  uint8_t *boundary = clv__arena_allocate_zero(&scratch, graph->value_count, sizeof *boundary);
  const char **value_names = clv__arena_allocate_zero(arena, graph->value_count, sizeof *value_names);
  const char **node_names = clv__arena_allocate_zero(arena, graph->node_count, sizeof *node_names);
  bool failed = numbers == NULL || boundary == NULL || value_names == NULL || node_names == NULL;
  if (!failed) {
    writer w = {.graph = graph,
                .types = types,
                .aliases = aliases,
                .boundary = boundary,
                .numbers = numbers,
                .memory = numbers + graph->value_count,
                .value_names = value_names,
                .node_names = node_names,
                .out = &out,
                .scratch = &scratch};
    mark_boundary(plan, device, captured, boundary);
    put_plan(&w, plan, device, captured);
    key->bytes = clv__arena_copy(arena, out.data, out.size_bytes);
    failed = w.failed || out.failed || key->bytes == NULL;
  }
  if (!failed) {
    clv__hasher hasher;
    key->size_bytes = out.size_bytes;
    key->values = value_names;
    key->nodes = node_names;
    clv__hasher_init(&hasher);
    clv__hasher_update(&hasher, key->bytes, key->size_bytes);
    clv__hasher_finish(&hasher, &key->hash);
  }
  size_t size_bytes = out.size_bytes;
  clv__text_finish(&out);
  clv__arena_finish(&scratch);
  return failed ? clv__error_memory(error, size_bytes) : CLV_OK;
}

bool clv__capture_key_equal(const clv__capture_key *a, const clv__capture_key *b) {
  return a->size_bytes == b->size_bytes && memcmp(a->hash.bytes, b->hash.bytes, sizeof a->hash.bytes) == 0 &&
         memcmp(a->bytes, b->bytes, a->size_bytes) == 0;
}
