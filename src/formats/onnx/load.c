/* Loads an ONNX model (ModelProto) from a file or from memory, and makes a graph of it. */
#define _GNU_SOURCE /* for memmem() */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "formats/foreign.h"
#include "formats/onnx/loader.h"

/* ---- Strings ---- */

clv_status clv__onnx_string(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **string,
                            clv_error *error) {
  *string = "";
  for (size_t i = 0; i < bytes.size_bytes;) {
    size_t step = clv__utf8_bytes(bytes.data + i, bytes.size_bytes - i);
    if (step == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "byte %zu: a name contains 0x%02x, which is not UTF-8 text",
                            (size_t)(bytes.data - origin) + i, bytes.data[i]);
    }
    i += step;
  }
  if (bytes.size_bytes == 0) return CLV_OK;
  const char *copy = clv__arena_string(arena, (const char *)bytes.data, bytes.size_bytes);
  if (copy == NULL) return clv__error_memory(error, bytes.size_bytes);
  *string = copy;
  return CLV_OK;
}

clv_status clv__onnx_domain(clv__arena *arena, clv__proto_span bytes, const uint8_t *origin, const char **domain,
                            clv_error *error) {
  CLV__TRY(clv__onnx_string(arena, bytes, origin, domain, error));
  if (strcmp(*domain, "ai.onnx") == 0) *domain = "";
  return CLV_OK;
}

/* ---- The model ---- */

clv_status clv__onnx_import(clv__builder *builder, const char *domain, int64_t version, clv_error *error) {
  if (version <= 0 || version > INT32_MAX) {
    return clv__error_set(error, CLV_INVALID_MODEL, "imports version %lld of domain '%s', which is not a valid version",
                          (long long)version, domain[0] != '\0' ? domain : "ai.onnx");
  }
  if (domain[0] == '\0' && version > CLV__ONNX_NEWEST_OPSET) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "opset %lld of ai.onnx is above %d, the newest supported: convert the model to an older opset",
                          (long long)version, CLV__ONNX_NEWEST_OPSET);
  }
  return clv__builder_import(builder, domain, (int32_t)version, error);
}

static clv_status read_pair(clv__onnx_loader *loader, clv__proto_span span, const char **key, const char **value,
                            clv_error *error) {
  *key = *value = "";
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) return CLV_OK;
    const char **to = field.tag == BYTES_FIELD(ENTRY_KEY) ? key : field.tag == BYTES_FIELD(ENTRY_VALUE) ? value : NULL;
    if (to != NULL) CLV__TRY(clv__onnx_string(&loader->scratch, field.bytes, loader->origin, to, error));
  }
}

static clv_status read_import(clv__onnx_loader *loader, clv__proto_span span, clv_error *error) {
  const char *domain = "";
  uint64_t version = 0;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(OPSET_DOMAIN)) {
      CLV__TRY(clv__onnx_domain(&loader->scratch, field.bytes, loader->origin, &domain, error));
    }
    if (field.tag == VARINT_FIELD(OPSET_VERSION)) version = field.number;
  }
  return clv__onnx_import(loader->root, domain, (int64_t)version, error);
}

typedef struct model_message {
  bool has_graph;
  clv__proto_span graph;
  size_t import_count;
} model_message;

static clv_status scan_model(clv__onnx_loader *loader, model_message *model, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(loader->model, loader->origin);
  bool has_version = false;
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    switch (field.tag) {
      case VARINT_FIELD(MODEL_IR_VERSION):
        loader->ir_version = (int64_t)field.number;
        has_version = true;
        break;
      case BYTES_FIELD(MODEL_GRAPH):
        if (model->has_graph) return clv__error_set(error, CLV_INVALID_MODEL, "the model has more than one graph");
        model->has_graph = true;
        model->graph = field.bytes;
        break;
      case BYTES_FIELD(MODEL_OPSET_IMPORT):
        ++model->import_count;
        break;
      case BYTES_FIELD(MODEL_FUNCTIONS):
        CLV__TRY(clv__onnx_add_function(loader, field.bytes, error));
        break;
      default:
        break;
    }
  }
  if (!has_version || loader->ir_version < 1) {
    return clv__error_set(error, CLV_INVALID_MODEL, "the model has no valid IR version");
  }
  if (loader->ir_version > CLV__ONNX_IR_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "IR version %lld is above %d, the newest supported: save the model with an older version",
                          (long long)loader->ir_version, CLV__ONNX_IR_VERSION);
  }
  if (!model->has_graph) return clv__error_set(error, CLV_INVALID_MODEL, "the model has no graph");
  return CLV_OK;
}

/* Reads the model's imports and metadata. Its imports are read after those of the functions and override them. */
static clv_status read_properties(clv__onnx_loader *loader, const model_message *model, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(loader->model, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(MODEL_OPSET_IMPORT)) {
      CLV__TRY(read_import(loader, field.bytes, error));
    } else if (field.tag == BYTES_FIELD(MODEL_METADATA_PROPS)) {
      const char *key, *value;
      CLV__TRY(read_pair(loader, field.bytes, &key, &value, error));
      CLV__TRY(clv__builder_metadata(loader->root, key, value, error));
    }
  }
  /* Models before IR version 3 have no imports and use opset 1. */
  return model->import_count == 0 && loader->ir_version < 3 ? clv__builder_import(loader->root, "", 1, error) : CLV_OK;
}

/* Chooses a marker for names inside function calls that does not occur in the bytes of the model, and therefore in none of its
 * names. */
static clv_status choose_marker(clv__onnx_loader *loader, clv_error *error) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    int length = attempt == 0 ? snprintf(loader->marker, sizeof loader->marker, "@call")
                              : snprintf(loader->marker, sizeof loader->marker, "@%u@call", attempt);
    if (memmem(loader->model.data, loader->model.size_bytes, loader->marker, (size_t)length) == NULL) return CLV_OK;
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED, "cannot create unique names for the values inside the model's functions");
}

static clv_status load_model(clv__onnx_loader *loader, clv_error *error) {
  if (loader->model.size_bytes == 0) return clv__error_set(error, CLV_INVALID_MODEL, "the model is empty: 0 bytes");
  model_message model = {0};
  clv_status status = scan_model(loader, &model, error);
  if (status == CLV_INVALID_MODEL) {
    const char *foreign = clv__foreign_format(loader->model.data, loader->model.size_bytes);
    if (foreign != NULL) return clv__error_set(error, status, "not an ONNX model: it is %s", foreign);
    return loader->ir_version < 1 ? clv__error_prefix(error, status, "not an ONNX model") : status;
  }
  CLV__TRY(status);
  CLV__TRY(read_properties(loader, &model, error));
  if (loader->function_count > 0) CLV__TRY(choose_marker(loader, error));
  return clv__onnx_load_graph(loader, loader->root, NULL, model.graph, 0, error);
}

static clv_status load(const clv_allocator *allocator, const char *path, clv__builder *root, clv__proto_span model,
                       clv_graph **graph, clv_error *error) {
  clv__onnx_loader loader = {.allocator = allocator, .path = path, .origin = model.data, .model = model, .root = root};
  clv__arena_init(&loader.scratch, allocator);
  clv__text_init(&loader.name, allocator);
  clv__map_init(&loader.function_index, allocator);
  clv_status status = load_model(&loader, error);
  if (status == CLV_OK)
    status = clv__builder_finish(root, graph, error);
  else
    clv__builder_destroy(root);
  clv__release(allocator, loader.files);
  clv__release(allocator, loader.functions);
  clv__release(allocator, loader.ids);
  clv__map_finish(&loader.function_index);
  clv__text_finish(&loader.name);
  clv__arena_finish(&loader.scratch);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path != NULL ? path : "model in memory");
  return CLV_OK;
}

clv_status clv__onnx_load_file(const clv_allocator *allocator, const char *path, clv_graph **graph, clv_error *error) {
  *graph = NULL;
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv__builder *root = NULL;
  clv_status status = clv__builder_create(allocator, &root, error);
  if (status == CLV_OK) status = clv__builder_own_map(root, &map, path, error);
  if (status != CLV_OK) {
    clv__file_map_close(&map);
    clv__builder_destroy(root);
    return clv__error_prefix(error, status, "%s", path);
  }
  return load(allocator, path, root, (clv__proto_span){map.data, map.size_bytes}, graph, error);
}

clv_status clv__onnx_load_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, bool copy,
                                 clv_graph **graph, clv_error *error) {
  *graph = NULL;
  clv__builder *root;
  CLV__TRY(clv__builder_create(allocator, &root, error));
  if (copy && size_bytes > 0) {
    void *bytes = clv__arena_allocate_data(clv__builder_arena(root), size_bytes);
    if (bytes == NULL) {
      clv__builder_destroy(root);
      return clv__error_memory(error, size_bytes);
    }
    memcpy(bytes, data, size_bytes);
    data = bytes;
  }
  return load(allocator, NULL, root, (clv__proto_span){data, size_bytes}, graph, error);
}
