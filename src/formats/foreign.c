/* See foreign.h. A table of the bytes with which files of other programs begin. No ONNX model begins with these bytes, because a
 * model's first byte is the tag of a field. */
#define _GNU_SOURCE /* memmem */
#include "formats/foreign.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/onnx/protobuf.h"

typedef struct signature {
  size_t offset, length;
  const char *bytes, *what;
} signature;

#define AT(offset, bytes, what) \
  { offset, sizeof bytes - 1, bytes, what }
#define EXPORT "export the model to ONNX"
#define EXPORT_ORIGINAL "export the model that it was converted from to ONNX"
#define EXPORT_TORCH "export the module with torch.onnx.export() or tools/torch_to_ir.py"

static const signature signatures[] = {
    AT(0, "version https://git-lfs", "a Git LFS pointer instead of the file: fetch the file with 'git lfs pull'"),
    AT(0, "<!DOCTYPE html", "a web page: the download failed"),
    AT(0, "<!doctype html", "a web page: the download failed"),
    AT(0, "<html", "a web page: the download failed"),
    AT(0, "<?xml", "XML, like OpenVINO's models: " EXPORT),
    AT(0, "\x80\2", "a Python pickle, like older PyTorch files: " EXPORT_TORCH),
    AT(0, "\x89HDF\r\n", "HDF5, like Keras' files: " EXPORT),
    AT(0, "\x93NUMPY", "a NumPy array: use it as an input with --input"),
    AT(0, "GGUF", "GGUF, like llama.cpp's models: export the original model to ONNX, for example with 'optimum-cli export onnx'"),
    AT(0, "\x1f\x8b", "compressed with gzip: decompress it"),
    AT(4, "TFL3", "a TensorFlow Lite model: convert it with 'python -m tf2onnx.convert --tflite FILE --output model.onnx'"),
    AT(4, "MSL0", "a MindSpore Lite model: " EXPORT_ORIGINAL),
    AT(4, "MSL1", "a MindSpore Lite model: " EXPORT_ORIGINAL),
    AT(4, "MSL2", "a MindSpore Lite model: " EXPORT_ORIGINAL),
    AT(7, "\x12\11MindSpore", "MindIR, MindSpore's format: export the network with file_format='ONNX'"),
    AT(4, "ORTM", "ONNX Runtime's own format: use the ONNX file that it was made from"),
};

/* ---- Zip archives, by the names of their files ---- */

typedef struct member {
  const char *name, *what;
} member;

static const member members[] = {
    {"archive_format", "a program of torch.export (.pt2): " EXPORT_TORCH},
    {"serialized_exported_program", "a program of torch.export (.pt2): " EXPORT_TORCH},
    {"data.pkl", "a PyTorch file (.pt, .pth): " EXPORT_TORCH},
    {"model.weights.h5", "a Keras model: export it with model.export(FILE, format=\"onnx\")"},
    {".npy", "npz, which contains only arrays: give weights with --params, together with an IR JSON model"},
};

/* Recognises a zip archive by the names of its files, which are in the directory at its end. */
static const char *zip_format(const uint8_t *data, size_t size_bytes) {
  enum { TAIL_BYTES = 1 << 16 };
  size_t tail = size_bytes < TAIL_BYTES ? size_bytes : TAIL_BYTES;
  if (size_bytes < 4 || memcmp(data, "PK\3\4", 4) != 0) return NULL;
  for (size_t i = 0; i < sizeof members / sizeof *members; ++i) {
    const member *m = &members[i];
    if (memmem(data + size_bytes - tail, tail, m->name, strlen(m->name)) != NULL) return m->what;
  }
  return "a zip archive: " EXPORT ", or unpack it";
}

/* ---- Formats without a signature ---- */

/* Core ML's Model is a protobuf message like ONNX's. Its network is in a field from 200 to 3000, which ONNX does not have. */
static bool is_core_ml(const uint8_t *data, size_t size_bytes) {
  clv__proto_reader reader = clv__proto_read((clv__proto_span){data, size_bytes}, data);
  bool has_version = false, has_description = false, has_network = false;
  for (clv__proto_field field; clv__proto_next(&reader, &field, NULL) == CLV_OK && field.tag != 0;) {
    has_version |= field.tag == CLV__PROTO_TAG(1, CLV__PROTO_VARINT);
    has_description |= field.tag == CLV__PROTO_TAG(2, CLV__PROTO_BYTES);
    has_network |= field.tag >= CLV__PROTO_TAG(200, 0) && field.tag <= CLV__PROTO_TAG(3000, CLV__PROTO_BYTES);
  }
  return has_version && has_description && has_network;
}

/* A safetensors file begins with the length of its JSON header (8 bytes), which must fit in the file, and the header's brace. */
static int is_safetensors(const uint8_t *data, size_t size_bytes) {
  uint64_t length = 0;
  if (size_bytes < 10 || data[8] != '{') return 0;
  for (int i = 0; i < 8; ++i) length |= (uint64_t)data[i] << (8 * i);
  return length >= 2 && length <= size_bytes - 8;
}

const char *clv__foreign_format(const void *data, size_t size_bytes) {
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; ++i) {
    const signature *s = &signatures[i];
    if (size_bytes >= s->offset + s->length && memcmp((const char *)data + s->offset, s->bytes, s->length) == 0) return s->what;
  }
  const char *zip = zip_format(data, size_bytes);
  if (zip != NULL) return zip;
  if (is_core_ml(data, size_bytes)) return "a Core ML model: " EXPORT_ORIGINAL;
  if (is_safetensors(data, size_bytes))
    return "safetensors, which contain only weights: give them with --params, together with an IR JSON model";
  return NULL;
}

/* ---- Folders ---- */

const char *clv__foreign_folder(const char *path) {
  static const member files[] = {
      {"model.onnx", "a folder with an ONNX model: give its file model.onnx"},
      {"saved_model.pb",
       "a SavedModel of TensorFlow: convert it with 'python -m tf2onnx.convert --saved-model FOLDER --output model.onnx'"},
      {"Manifest.json", "a Core ML package: " EXPORT_ORIGINAL},
      {"config.json", "a model of transformers: export it with 'optimum-cli export onnx' or tools/torch_to_ir.py"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    char file[4096];
    const int length = snprintf(file, sizeof file, "%s/%s", path, files[i].name);
    if (length > 0 && (size_t)length < sizeof file && access(file, F_OK) == 0) return files[i].what;
  }
  return NULL;
}
