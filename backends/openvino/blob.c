/* Saves and loads compiled models. The C API can export a model only to a path. So the model is exported to a file in memory,
 * which other processes cannot open or replace, because the file has no name. */
#define _GNU_SOURCE /* memfd_create() */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/sealed.h"
#include "device.h"

enum { FORMAT = 1 };

static const clv__sealed_kind kind = {.what = "OpenVINO model", .magic = "", .version = FORMAT};

/* ---- Saving ---- */

static void write_ports(const clv__openvino_model *model, clv__text *payload) {
  clv__sealed_put(payload, FORMAT, 4);
  clv__sealed_put_text(payload, model->device->ov->build);
  clv__sealed_put(payload, model->input_count, 4);
  clv__sealed_put(payload, model->output_count, 4);
  for (uint32_t i = 0; i < model->input_count + model->output_count; ++i) clv__sealed_put_text(payload, model->ports[i].name);
  for (uint32_t i = 0; i < model->input_count; ++i) clv__sealed_put(payload, model->ports[i].is_dropped, 1);
  for (int outputs = 0; outputs <= 1; ++outputs) {
    uint32_t from = outputs == 0 ? 0 : model->input_count, count = outputs == 0 ? model->input_count : model->output_count;
    clv__sealed_put(payload, count, 4);
    for (uint32_t i = 0; i < count; ++i) clv__sealed_put_type(payload, &model->ports[from + i].type);
  }
}

/* Maps the data that was exported to `file` and writes it. */
static clv_status write_file(int file, const clv__text *payload, clv_write_fn write, void *cookie, clv_error *error) {
  struct stat about;
  if (fstat(file, &about) != 0 || about.st_size <= 0) {
    return clv__error_set(error, CLV_IO_ERROR, "the model that OpenVINO exported is empty or cannot be read");
  }
  size_t size_bytes = (size_t)about.st_size;
  void *data = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return clv__error_memory(error, size_bytes);
  clv_status status = write(cookie, payload->data, payload->size_bytes);
  if (status == CLV_OK) status = write(cookie, data, size_bytes);
  munmap(data, size_bytes);
  return status == CLV_OK ? CLV_OK : clv__error_set(error, status, "cannot write the exported model of %zu bytes", size_bytes);
}

clv_status clv__openvino_model_save(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  clv__openvino_model *model = self;
  const clv__openvino *ov = model->device->ov;
  int file = memfd_create("openvino-model", MFD_CLOEXEC);
  if (file < 0) return clv__error_set(error, CLV_NOT_SUPPORTED, "cannot create a file in memory for the export");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  clv__text payload;
  clv__text_init(&payload, model->device->allocator);
  write_ports(model, &payload);
  clv_status status = payload.failed ? clv__error_memory(error, payload.size_bytes) : CLV_OK;
  if (status == CLV_OK) {
    int code = ov->compiled_model_export_model(model->compiled, path);
    status = code == 0 ? write_file(file, &payload, write, cookie, error)
                       : clv__openvino_failed(ov, error, "ov_compiled_model_export_model", code);
  }
  clv__text_finish(&payload);
  close(file);
  return status;
}

/* ---- Loading ---- */

static clv_status read_types(clv__sealed_reader *reader, clv__openvino_model *model, uint32_t from, uint32_t count) {
  clv_tensor *types;
  uint32_t type_count;
  CLV__TRY(clv__sealed_take_types(reader, &model->arena, &types, &type_count));
  if (type_count != count) return clv__sealed_damaged(reader, "the number of types differs from the number of ports");
  for (uint32_t i = 0; i < count; ++i) model->ports[from + i].type = types[i];
  return CLV_OK;
}

static clv_status read_ports(clv__sealed_reader *reader, clv__openvino_model *model) {
  uint32_t count = model->input_count + model->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    model->ports[i].name = clv__sealed_take_text(reader, &model->arena);
    if (model->ports[i].name == NULL) return clv__sealed_damaged(reader, "truncated in the names of its ports");
  }
  for (uint32_t i = 0; i < model->input_count; ++i) model->ports[i].is_dropped = clv__sealed_take(reader, 1) != 0;
  CLV__TRY(read_types(reader, model, 0, model->input_count));
  return read_types(reader, model, model->input_count, model->output_count);
}

clv_status clv__openvino_model_load(void *self, const void *data, size_t size_bytes, void **out, clv_error *error) {
  clv__openvino_device *device = self;
  const clv__openvino *ov = device->ov;
  clv__sealed_reader reader = {.kind = &kind, .data = data, .size_bytes = size_bytes, .error = error};
  *out = NULL;
  if (clv__sealed_take(&reader, 4) != FORMAT)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO model: the file's format version is not supported");
  CLV__TRY(clv__sealed_check_fingerprint(&reader, ov->build));
  uint32_t input_count = (uint32_t)clv__sealed_take(&reader, 4), output_count = (uint32_t)clv__sealed_take(&reader, 4);
  /* In the file, each input and output has a name, which takes at least four bytes. A count that is too high for the size of
   * the file means that the file is damaged. Reject it before it makes the model allocate much memory. */
  if (reader.failed || input_count > size_bytes / 4 || output_count > size_bytes / 4) {
    return clv__sealed_damaged(&reader, "truncated, or more inputs and outputs than fit in the file");
  }
  clv__openvino_model *model = clv__openvino_model_new(device, input_count, output_count);
  if (model == NULL) return clv__error_memory(error, (size_t)input_count + output_count);
  clv_status status;
  CLV__TRY_GOTO(read_ports(&reader, model));
  /* An imported model reads its weights and code from these bytes for as long as it lives. */
  size_t blob_bytes = reader.size_bytes - reader.at;
  const char *blob = clv__arena_copy(&model->arena, (const char *)reader.data + reader.at, blob_bytes);
  CLV__TRY_GOTO(blob != NULL ? CLV_OK : clv__error_memory(error, blob_bytes));
  int code = ov->core_import_model(device->core, blob, blob_bytes, device->name, &model->compiled);
  if (code != 0) {
    status = clv__openvino_failed(ov, error, "ov_core_import_model", code);
    goto cleanup;
  }
  CLV__TRY_GOTO(clv__openvino_model_find_ports(model, error));
  *out = model;
cleanup:
  if (status != CLV_OK) clv__openvino_model_destroy(model);
  return status;
}
