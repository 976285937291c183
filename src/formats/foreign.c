/* See foreign.h. A table of the bytes with which files of other programs begin. No ONNX model begins with these bytes, because a
 * model's first byte is the tag of a field. */
#include "formats/foreign.h"

#include <stdint.h>
#include <string.h>

typedef struct signature {
  size_t offset, length;
  const char *bytes, *what;
} signature;

#define AT(offset, bytes, what) \
  { offset, sizeof bytes - 1, bytes, what }
#define EXPORT "export the model to ONNX"

static const signature signatures[] = {
    AT(0, "version https://git-lfs", "a Git LFS pointer instead of the file: fetch the file with 'git lfs pull'"),
    AT(0, "<!DOCTYPE html", "a web page: the download failed"),
    AT(0, "<!doctype html", "a web page: the download failed"),
    AT(0, "<html", "a web page: the download failed"),
    AT(0, "<?xml", "XML, like OpenVINO's models: " EXPORT),
    AT(0, "PK\3\4", "a zip archive, like PyTorch's and Keras' files and npz: " EXPORT ", or unpack it"),
    AT(0, "\x80\2", "a Python pickle, like older PyTorch files: " EXPORT),
    AT(0, "\x89HDF\r\n", "HDF5, like Keras' files: " EXPORT),
    AT(0, "\x93NUMPY", "a NumPy array: use it as an input with --input"),
    AT(0, "GGUF", "GGUF, like llama.cpp's models: " EXPORT),
    AT(0, "\x1f\x8b", "compressed with gzip: decompress it"),
    AT(4, "TFL3", "a TensorFlow Lite model: " EXPORT),
    AT(4, "ORTM", "ONNX Runtime's own format: use the ONNX file that it was made from"),
};

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
  if (is_safetensors(data, size_bytes))
    return "safetensors, which contain only weights: give them with --params, together with an IR JSON model";
  return NULL;
}
