/* The report: a line of JSON for each graph about which ONNX Runtime asked. */
#include <errno.h>
#include <string.h>

#include "claim.h"

/* A reader of the graph, and the file that it is written to. */
typedef struct report {
  const claims *c;
  const clv__ep *provider;
  FILE *file;
} report;

static void write_text(FILE *file, const char *text, size_t size_bytes) {
  fputc('"', file);
  for (size_t i = 0; i < size_bytes; ++i) {
    unsigned char byte = (unsigned char)text[i];
    if (byte == '"' || byte == '\\')
      fprintf(file, "\\%c", byte);
    else if (byte < ' ')
      fprintf(file, "\\u%04x", byte);
    else
      fputc(byte, file);
  }
  fputc('"', file);
}

static void write_name(FILE *file, const char *text) {
  write_text(file, text, strlen(text));
}

static void write_dims(FILE *file, const clv_tensor *type, const char *const *symbols) {
  if (type->rank < 0) {
    fputs("null", file);
    return;
  }
  fputc('[', file);
  for (int32_t i = 0; i < type->rank; ++i) {
    if (i > 0) fputs(", ", file);
    if (symbols != NULL && symbols[i] != NULL)
      write_name(file, symbols[i]);
    else if (type->dims[i] < 0)
      fputs("null", file);
    else
      fprintf(file, "%lld", (long long)type->dims[i]);
  }
  fputc(']', file);
}

/* A tensor's bytes by their number and a hash: FNV-1a, of 64 bits. */
static void write_bytes(FILE *file, const clv_tensor *tensor) {
  size_t count = 1;
  uint64_t hash = 14695981039346656037u;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->dims[i];
  size_t size_bytes = tensor->dtype == CLV_STRING ? 0 : (count * clv_dtype_size_bits(tensor->dtype) + 7) / 8;
  const uint8_t *bytes = tensor->data;
  for (size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  const clv_string *strings = tensor->data;
  for (size_t i = 0; tensor->dtype == CLV_STRING && i < count; ++i) {
    size_bytes += strings[i].size_bytes;
    for (size_t k = 0; k < strings[i].size_bytes; ++k) hash = (hash ^ (uint8_t)strings[i].data[k]) * 1099511628211u;
  }
  fprintf(file, "\"dtype\": \"%s\", \"dims\": ", clv_dtype_name(tensor->dtype));
  write_dims(file, tensor, NULL);
  fprintf(file, ", \"bytes\": %zu, \"hash\": \"%016llx\"", size_bytes, (unsigned long long)hash);
}

static clv_status write_names(const report *r, const char *key, const void *owner, clv__ep_list list, clv_error *error) {
  clv__ep_values values;
  TRY(clv__ep_read_values(r->provider, owner, list, r->c->arena, &values, error));
  fprintf(r->file, ", \"%s\": [", key);
  for (size_t i = 0; i < values.count; ++i) {
    const char *name;
    TRY(clv__ep_value_name(r->provider, values.items[i], &name, error));
    if (i > 0) fputs(", ", r->file);
    write_name(r->file, name);
  }
  fputc(']', r->file);
  return CLV_OK;
}

static clv_status write_values(const report *r, const char *key, clv__ep_list list, clv_error *error) {
  clv__ep_values values;
  TRY(clv__ep_read_values(r->provider, r->c->graph, list, r->c->arena, &values, error));
  fprintf(r->file, ", \"%s\": [", key);
  for (size_t i = 0; i < values.count; ++i) {
    const char *name, *symbols[CLV_MAX_RANK];
    clv_tensor type;
    bool is_output = false;
    size_t consumers = 0;
    TRY(clv__ep_value_name(r->provider, values.items[i], &name, error));
    TRY(clv__ep_value_type(r->provider, values.items[i], &type, symbols, error));
    ORT(r->provider, ValueInfo_IsGraphOutput, values.items[i], &is_output);
    ORT(r->provider, ValueInfo_GetValueNumConsumers, values.items[i], &consumers);
    fprintf(r->file, "%s{\"name\": ", i > 0 ? ", " : "");
    write_name(r->file, name);
    fprintf(r->file, ", \"dtype\": \"%s\", \"dims\": ", clv_dtype_name(type.dtype));
    write_dims(r->file, &type, symbols);
    fprintf(r->file, ", \"is_output\": %s, \"consumers\": %zu}", is_output ? "true" : "false", consumers);
  }
  fputc(']', r->file);
  return CLV_OK;
}

static clv_status write_constants(const report *r, clv_error *error) {
  clv__ep_values values;
  TRY(clv__ep_read_values(r->provider, r->c->graph, CLV__EP_GRAPH_INITIALIZERS, r->c->arena, &values, error));
  fputs(", \"initializers\": [", r->file);
  for (size_t i = 0; i < values.count; ++i) {
    const char *name;
    const OrtValue *value = NULL;
    OrtExternalInfo *external = NULL;
    clv_tensor tensor;
    TRY(clv__ep_value_name(r->provider, values.items[i], &name, error));
    fprintf(r->file, "%s{\"name\": ", i > 0 ? ", " : "");
    write_name(r->file, name);
    TRY(clv__ep_constant(r->provider, values.items[i], &value, error));
    if (value != NULL) {
      TRY(clv__ep_read_tensor(r->provider, value, r->c->arena, &tensor, error));
      fputs(", ", r->file);
      write_bytes(r->file, &tensor);
    }
    ORT(r->provider, ValueInfo_GetExternalInitializerInfo, values.items[i], &external);
    if (external != NULL) {
      fputs(", \"file\": ", r->file);
      write_name(r->file, r->provider->api->ExternalInitializerInfo_GetFilePath(external));
      fprintf(r->file, ", \"offset\": %lld, \"file_bytes\": %zu",
              (long long)r->provider->api->ExternalInitializerInfo_GetFileOffset(external),
              r->provider->api->ExternalInitializerInfo_GetByteSize(external));
      r->provider->api->ReleaseExternalInitializerInfo(external);
    }
    fputc('}', r->file);
  }
  fputc(']', r->file);
  return CLV_OK;
}

static void write_attribute(FILE *file, const clv_attribute *attribute) {
  write_name(file, attribute->name);
  fputs(": ", file);
  if (attribute->kind == CLV_ATTRIBUTE_TENSOR) {
    fputc('{', file);
    write_bytes(file, attribute->tensor);
    fputc('}', file);
    return;
  }
  if (attribute->is_list) fputc('[', file);
  for (size_t i = 0; i < attribute->count; ++i) {
    if (i > 0) fputs(", ", file);
    if (attribute->kind == CLV_ATTRIBUTE_INTS)
      fprintf(file, "%lld", (long long)attribute->ints[i]);
    else if (attribute->kind == CLV_ATTRIBUTE_FLOATS)
      fprintf(file, "\"%a\"", (double)attribute->floats[i]); /* exact, and also for infinities and NaN */
    else
      write_text(file, attribute->strings[i].data, attribute->strings[i].size_bytes);
  }
  if (attribute->is_list) fputc(']', file);
}

static clv_status write_attributes(const report *r, const OrtNode *node, clv_error *error) {
  clv_attribute *attributes;
  uint32_t count;
  size_t body_count = 0;
  clv_error why;
  fputs(", \"attributes\": ", r->file);
  if (clv__ep_read_attributes(r->provider, node, r->c->arena, &attributes, &count, 0, &why) != CLV_OK) {
    fputs("null", r->file); /* of a kind that Cleave does not have */
  } else {
    fputc('{', r->file);
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) fputs(", ", r->file);
      write_attribute(r->file, &attributes[i]);
    }
    fputc('}', r->file);
  }
  ORT(r->provider, Node_GetNumSubgraphs, node, &body_count);
  const OrtGraph **bodies = clv__ep_take(r->c->arena, body_count + 1, sizeof *bodies);
  const char **names = clv__ep_take(r->c->arena, body_count + 1, sizeof *names);
  if (bodies == NULL || names == NULL) return clv__ep_no_memory(error);
  if (body_count > 0) ORT(r->provider, Node_GetSubgraphs, node, bodies, body_count, names);
  fputs(", \"bodies\": [", r->file);
  for (size_t i = 0; i < body_count; ++i) {
    if (i > 0) fputs(", ", r->file);
    write_name(r->file, names[i]);
  }
  fputc(']', r->file);
  return CLV_OK;
}

static clv_status write_node(const report *r, uint32_t number, clv_error *error) {
  const claims *c = r->c;
  const OrtNode *node = c->nodes.items[number];
  const char *name, *op, *domain;
  size_t id = 0;
  int since = 0;
  ORT(r->provider, Node_GetId, node, &id);
  ORT(r->provider, Node_GetName, node, &name);
  ORT(r->provider, Node_GetOperatorType, node, &op);
  ORT(r->provider, Node_GetDomain, node, &domain);
  ORT(r->provider, Node_GetSinceVersion, node, &since);
  fprintf(r->file, "%s{\"id\": %zu, \"name\": ", number > 0 ? ", " : "", id);
  write_name(r->file, name);
  fputs(", \"op\": ", r->file);
  write_name(r->file, op);
  fputs(", \"domain\": ", r->file);
  write_name(r->file, domain);
  fprintf(r->file, ", \"since\": %d", since);
  TRY(write_names(r, "inputs", node, CLV__EP_NODE_INPUTS, error));
  TRY(write_names(r, "outputs", node, CLV__EP_NODE_OUTPUTS, error));
  TRY(write_names(r, "captures", node, CLV__EP_NODE_CAPTURES, error));
  TRY(write_attributes(r, node, error));
  if (c->state[number] == POSSIBLE && !c->is_left)
    fprintf(r->file, ", \"group\": %u", c->level[number] / 2);
  else
    fputs(", \"group\": null", r->file);
  fputs(", \"reason\": ", r->file);
  if (c->reasons[number] != NULL)
    write_name(r->file, c->reasons[number]);
  else
    fputs("null", r->file);
  fputc('}', r->file);
  return CLV_OK;
}

static clv_status write_head(const report *r, clv_error *error) {
  const char *name, *path;
  int64_t ir_version = 0;
  size_t count = 0;
  const OrtNode *parent = NULL;
  ORT(r->provider, Graph_GetName, r->c->graph, &name);
  ORT(r->provider, Graph_GetModelPath, r->c->graph, &path);
  ORT(r->provider, Graph_GetOnnxIRVersion, r->c->graph, &ir_version);
  ORT(r->provider, Graph_GetNumOperatorSets, r->c->graph, &count);
  ORT(r->provider, Graph_GetParentNode, r->c->graph, &parent);
  const char **domains = clv__ep_take(r->c->arena, count + 1, sizeof *domains), *op = NULL;
  int64_t *versions = clv__ep_take(r->c->arena, count + 1, sizeof *versions);
  if (domains == NULL || versions == NULL) return clv__ep_no_memory(error);
  if (count > 0) ORT(r->provider, Graph_GetOperatorSets, r->c->graph, domains, versions, count);
  fputs("{\"graph\": ", r->file);
  write_name(r->file, name);
  fputs(", \"model_path\": ", r->file);
  write_name(r->file, path != NULL ? path : "");
  fprintf(r->file, ", \"ir_version\": %lld, \"opsets\": {", (long long)ir_version);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) fputs(", ", r->file);
    write_name(r->file, domains[i]);
    fprintf(r->file, ": %lld", (long long)versions[i]);
  }
  if (parent != NULL) ORT(r->provider, Node_GetOperatorType, parent, &op);
  fputs("}, \"body_of\": ", r->file);
  if (op != NULL)
    write_name(r->file, op);
  else
    fputs("null", r->file);
  fprintf(r->file, ", \"left_alone\": %s", r->c->is_left ? "true" : "false");
  return CLV_OK;
}

static clv_status write_graph(const report *r, clv_error *error) {
  TRY(write_head(r, error));
  TRY(write_values(r, "inputs", CLV__EP_GRAPH_INPUTS, error));
  TRY(write_values(r, "outputs", CLV__EP_GRAPH_OUTPUTS, error));
  TRY(write_constants(r, error));
  fputs(", \"nodes\": [", r->file);
  for (uint32_t n = 0; n < r->c->nodes.count; ++n) TRY(write_node(r, n, error));
  fputs("]}\n", r->file);
  return CLV_OK;
}

clv_status clv__ep_report(const claims *c, clv_error *error) {
  const char *path = c->provider->options.report;
  report r = {.c = c, .provider = c->provider, .file = fopen(path, "a")};
  if (r.file == NULL) return clv__ep_error(error, CLV_IO_ERROR, "report '%s': %s", path, strerror(errno));
  clv_status status = write_graph(&r, error);
  bool failed = ferror(r.file) != 0;
  if (fclose(r.file) != 0 || failed) {
    if (status == CLV_OK) status = clv__ep_error(error, CLV_IO_ERROR, "report '%s': %s", path, strerror(errno));
  }
  return status;
}
