/* Writes the files of a folder compiled ahead of time: models that share one file of weights, executables, and the list. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "compile/folder.h"
#include "formats/onnx/onnx.h"

/* Constants smaller than LEAST_BYTES stay in the models. They are often shapes and axes, which readers of a model need at
 * once. */
enum { LEAST_BYTES = 1024, WEIGHT_ALIGNMENT = 64 };
#define NOWHERE UINT64_MAX

struct clv__folder_writer {
  const clv_plan *plan;
  const clv_allocator *allocator;
  clv__new_folder made;
  clv__text path; /* the result of the last clv__folder_path() */
  clv__file_writer weights;
  uint64_t weights_bytes;
  uint64_t *offsets; /* indexed by value id; NOWHERE: not written yet */
  json_t *partitions;
};

const char *clv__folder_path(clv__folder_writer *writer, const char *name, clv_error *error) {
  writer->path.size_bytes = 0;
  clv__text_append(&writer->path, "%s/%s", writer->made.folder, name);
  if (!writer->path.failed) return writer->path.data;
  (void)clv__error_memory(error, strlen(writer->made.folder) + strlen(name));
  return NULL;
}

static clv_status write_file(clv__folder_writer *writer, const char *name, const void *data, size_t size_bytes,
                             clv_error *error) {
  const char *path = clv__folder_path(writer, name, error);
  return path == NULL ? CLV_OUT_OF_MEMORY : clv__file_write(path, data, size_bytes, error);
}

static clv_status copy_file(clv__folder_writer *writer, const char *from, const char *name, clv_error *error) {
  clv__file_map map;
  CLV__TRY(clv__file_map_open(from, &map, error));
  clv_status status = write_file(writer, name, map.data, map.size_bytes, error);
  clv__file_map_close(&map);
  return status;
}

/* ---- Begin and end ---- */

static json_t *empty_partitions(const clv_plan *plan) {
  json_t *list = json_array();
  char name[64];
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    json_t *item = json_object();
    snprintf(name, sizeof name, "partition-%u.onnx", p);
    json_object_set_new(item, "id", json_integer(p));
    json_object_set_new(item, "device", json_string(plan->devices->items[plan->partitions[p].device].name));
    json_object_set_new(item, "nodes", json_integer(plan->partitions[p].node_count));
    json_object_set_new(item, "onnx", json_string(name));
    json_object_set_new(item, "executables", json_array());
    if (plan->partitions[p].is_hosted) json_object_set_new(item, "reason", json_string("the host renames these views"));
    json_array_append_new(list, item);
  }
  return list;
}

clv_status clv__folder_begin(const clv_plan *plan, const char *directory, clv__folder_writer **out, clv_error *error) {
  const clv_allocator *allocator = plan->graph->allocator;
  size_t offset_bytes = plan->graph->value_count * sizeof(uint64_t);
  *out = NULL;
  clv__folder_writer *writer = clv__allocate_zero(allocator, sizeof *writer);
  if (writer == NULL) return clv__error_memory(error, sizeof *writer);
  *writer = (clv__folder_writer){.plan = plan, .allocator = allocator, .weights = {.file = -1, .special = -1}};
  clv__text_init(&writer->path, allocator);
  clv_status status = clv__new_folder_begin(allocator, directory, &writer->made, error);
  if (status == CLV_OK) {
    writer->offsets = clv__allocate(allocator, offset_bytes);
    writer->partitions = empty_partitions(plan);
    if (writer->offsets == NULL || json_array_size(writer->partitions) != plan->partition_count)
      status = clv__error_memory(error, offset_bytes);
    else
      memset(writer->offsets, 0xff, offset_bytes);
  }
  if (status != CLV_OK)
    clv__folder_end(writer);
  else
    *out = writer;
  return status;
}

void clv__folder_end(clv__folder_writer *writer) {
  if (writer == NULL) return;
  clv__file_writer_abandon(&writer->weights);
  clv__new_folder_end(&writer->made);
  json_decref(writer->partitions);
  clv__release(writer->allocator, writer->offsets);
  clv__text_finish(&writer->path);
  clv__release(writer->allocator, writer);
}

/* ---- Models ---- */

/* Returns the offset of a constant in the file of weights. The first request writes it there. */
static clv_status place(void *self, clv_value_id value, const clv_tensor *data, bool *is_outside, uint64_t *offset,
                        clv_error *error) {
  static const uint8_t zeros[WEIGHT_ALIGNMENT];
  clv__folder_writer *writer = self;
  size_t size_bytes;
  *is_outside = data->dtype != CLV_STRING && clv__tensor_size_bytes(data, &size_bytes) && size_bytes >= LEAST_BYTES;
  if (!*is_outside) return CLV_OK;
  if (writer->offsets[value] == NOWHERE) {
    size_t padding = (size_t)((0 - writer->weights_bytes) % WEIGHT_ALIGNMENT);
    CLV__TRY(clv__file_writer_append(&writer->weights, zeros, padding, error));
    CLV__TRY(clv__file_writer_append(&writer->weights, data->data, size_bytes, error));
    writer->offsets[value] = writer->weights_bytes + padding;
    writer->weights_bytes += padding + size_bytes;
  }
  *offset = writer->offsets[value];
  return CLV_OK;
}

static clv_status write_model(clv__folder_writer *writer, const char *name, const clv_graph_view *view, clv_error *error) {
  const clv__onnx_outside outside = {.file = CLV__FOLDER_WEIGHTS, .self = writer, .place = place};
  void *data = NULL;
  size_t size_bytes;
  clv_status status = clv__onnx_write_beside(view, &outside, writer->allocator, &data, &size_bytes, error);
  if (status == CLV_OK) status = write_file(writer, name, data, size_bytes, error);
  clv__release(writer->allocator, data);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", name);
}

clv_status clv__folder_write_models(clv__folder_writer *writer, clv_error *error) {
  const clv_plan *plan = writer->plan;
  char *path = clv__path_join(writer->allocator, writer->made.folder, CLV__FOLDER_WEIGHTS);
  if (path == NULL) return clv__error_memory(error, strlen(writer->made.folder));
  clv_status status = clv__file_writer_open(path, &writer->weights, error);
  if (status == CLV_OK) status = write_model(writer, CLV__FOLDER_MODEL, plan->graph->whole, error);
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    const char *name = json_string_value(json_object_get(json_array_get(writer->partitions, p), "onnx"));
    status = write_model(writer, name, plan->partitions[p].view, error);
  }
  if (status == CLV_OK) status = clv__file_writer_commit(&writer->weights, error);
  clv__file_writer_abandon(&writer->weights);
  clv__release(writer->allocator, path);
  return status;
}

clv_status clv__folder_write_plan(clv__folder_writer *writer, const clv_graph *graph, clv_error *error) {
  const clv_plan *plan = writer->plan;
  char *profile = NULL;
  if (plan->profile_path != NULL) {
    CLV__TRY(copy_file(writer, plan->profile_path, CLV__FOLDER_PROFILE, error));
    profile = clv__path_join(writer->allocator, writer->made.folder, CLV__FOLDER_PROFILE);
    if (profile == NULL) return clv__error_memory(error, strlen(writer->made.folder));
  }
  const char *path = clv__folder_path(writer, CLV__FOLDER_PLAN, error);
  clv_status status = path == NULL ? CLV_OUT_OF_MEMORY : clv__plan_write_for(plan, graph, profile, path, error);
  clv__release(writer->allocator, profile);
  return status;
}

/* ---- Executables ---- */

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  clv__text *payload = cookie;
  clv__text_append_bytes(payload, data, size_bytes);
  return payload->failed ? CLV_OUT_OF_MEMORY : CLV_OK;
}

static void refuse(json_t *partition, const char *reason) {
  json_t *text = json_string(reason);
  json_object_set_new(partition, "reason", text != NULL ? text : json_string("it cannot be saved"));
}

clv_status clv__folder_add_executable(clv__folder_writer *writer, uint32_t partition, const clv__compiled *compiled,
                                      clv_error *error) {
  json_t *item = json_array_get(writer->partitions, partition), *files = json_object_get(item, "executables");
  const clv__shared_executable *executable = compiled->use->of;
  const clv__device *device = &writer->plan->devices->items[executable->device];
  if (device->backend->save == NULL) {
    refuse(item, "its backend cannot save executables");
    return CLV_OK;
  }
  clv__cache_info info;
  clv__executable_describe(writer->plan->devices, compiled->view, executable, &info);
  CLV__TRY(clv__key_add_constants(compiled->view, &info.key, error)); /* not computed yet if there is no cache */
  char name[64];
  size_t before = json_array_size(files);
  snprintf(name, sizeof name, before == 0 ? "partition-%u" CLV__CACHE_SUFFIX : "partition-%u-%zu" CLV__CACHE_SUFFIX, partition,
           before);
  clv__text payload, header;
  clv__text_init(&payload, writer->allocator);
  clv__text_init(&header, writer->allocator);
  clv_error own = {0};
  clv_status status = device->backend->save->save(device->handle, compiled->executable, append, &payload, &own);
  if (payload.failed) {
    status = clv__error_memory(error, 2 * payload.size_bytes);
  } else if (status != CLV_OK) {
    refuse(item, own.message[0] != '\0' ? own.message : clv_status_name(status));
    status = CLV_OK;
  } else {
    clv__cache_header_write(&info, payload.data, payload.size_bytes, &header);
    clv__text_append_bytes(&header, payload.data, payload.size_bytes);
    status = header.failed ? clv__error_memory(error, 2 * payload.size_bytes)
                           : write_file(writer, name, header.data, header.size_bytes, error);
    json_array_append_new(files, json_string(name));
  }
  clv__text_finish(&header);
  clv__text_finish(&payload);
  return status;
}

/* ---- The list ---- */

static json_t *text_or_null(const char *text) {
  json_t *string = text == NULL ? NULL : json_string(text);
  return string != NULL ? string : json_null();
}

static json_t *devices_json(const clv_devices *devices) {
  json_t *list = json_array();
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv__device *device = &devices->items[d];
    json_t *item = json_object();
    json_object_set_new(item, "name", text_or_null(device->name));
    json_object_set_new(item, "backend", text_or_null(device->backend->name));
    json_object_set_new(item, "version", text_or_null(device->backend->version));
    json_object_set_new(item, "description", text_or_null(device->info.description));
    json_object_set_new(item, "fingerprint", text_or_null(device->info.fingerprint));
    json_array_append_new(list, item);
  }
  return list;
}

/* Adds the descriptions of virtual NPUs. Those that are files are copied into the folder. */
static clv_status add_specs(clv__folder_writer *writer, const clv_devices_options *options, json_t *list, clv_error *error) {
  for (uint32_t i = 0; i < options->npu_spec_count; ++i) {
    const char *spec = options->npu_specs[i];
    char name[64];
    bool is_word = strcmp(spec, "default") == 0 || strcmp(spec, "all") == 0;
    snprintf(name, sizeof name, "npu-%u.json", i);
    if (!is_word) CLV__TRY(copy_file(writer, spec, name, error));
    json_array_append_new(list, json_string(is_word ? spec : name));
  }
  return CLV_OK;
}

static json_t *options_json(const clv_session_options *options) {
  json_t *object = json_object();
  json_object_set_new(object, "deterministic", json_boolean(options->deterministic));
  json_object_set_new(object, "tune", json_boolean(options->tune));
  json_object_set_new(object, "precision", options->precision == CLV_BF16 ? json_string("bf16") : json_null());
  json_object_set_new(object, "bucket", json_integer(options->bucket_multiple));
  return object;
}

static clv_status write_list(clv__folder_writer *writer, const clv_compiled_options *options, clv_error *error) {
  const char *model = writer->plan->graph->path, *slash = model != NULL ? strrchr(model, '/') : NULL;
  const clv_session_options none = CLV_SESSION_OPTIONS_INIT;
  json_t *root = json_object(), *specs = json_array(), *settings = json_array();
  json_object_set_new(root, "cleave_compiled", json_integer(CLV__FOLDER_VERSION));
  json_object_set_new(root, "cleave", json_string(clv_version()));
  json_object_set_new(root, "source", text_or_null(slash != NULL ? slash + 1 : model));
  json_object_set_new(root, "devices", devices_json(writer->plan->devices));
  json_object_set_new(root, "device_options", settings);
  json_object_set_new(root, "npu_specs", specs);
  json_object_set_new(root, "options", options_json(options->session != NULL ? options->session : &none));
  json_object_set(root, "partitions", writer->partitions);
  clv_status status = CLV_OK;
  if (options->devices != NULL) {
    for (uint32_t i = 0; i < options->devices->device_option_count; ++i) {
      json_array_append_new(settings, json_string(options->devices->device_options[i]));
    }
    status = add_specs(writer, options->devices, specs, error);
  }
  char *text = status == CLV_OK ? json_dumps(root, JSON_INDENT(1)) : NULL;
  json_decref(root);
  if (status == CLV_OK && text == NULL) status = clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
  if (status == CLV_OK) status = write_file(writer, CLV__FOLDER_LIST, text, strlen(text), error);
  free(text);
  return status;
}

clv_status clv__folder_commit(clv__folder_writer *writer, const clv_compiled_options *options, clv_error *error) {
  CLV__TRY(write_list(writer, options, error));
  return clv__new_folder_commit(&writer->made, error);
}
