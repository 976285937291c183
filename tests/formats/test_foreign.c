/* Tests files and folders of other programs that are given as models. Each must be recognised, an ONNX model must not be taken
 * for one of them, and no byte beyond the end of the data may be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "formats/foreign.h"
#include "formats/onnx/onnx.h"
#include "support.h"

typedef struct sample {
  const char *bytes;
  size_t size_bytes;
  const char *what;
} sample;

#define SAMPLE(bytes, what) \
  { bytes, sizeof bytes - 1, what }

static const sample samples[] = {
    SAMPLE("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS"),
    SAMPLE("<!DOCTYPE html><html></html>", "web page"),
    SAMPLE("<?xml version=\"1.0\"?><net name=\"m\"/>", "OpenVINO"),
    SAMPLE("PK\3\4\24\0\0\0", "zip archive"),
    SAMPLE("PK\3\4....PK\1\2....model/archive_format....", "torch.export"),
    SAMPLE("PK\3\4....PK\1\2....serialized_exported_program.json....", "torch.export"),
    SAMPLE("PK\3\4....PK\1\2....model/data.pkl....", ".pth"),
    SAMPLE("PK\3\4....PK\1\2....model.weights.h5....", "Keras"),
    SAMPLE("PK\3\4....PK\1\2....w.npy....", "--params"),
    SAMPLE("\x80\2\x8a\nl\xfc", "pickle"),
    SAMPLE("\x89HDF\r\n\x1a\n", "HDF5"),
    SAMPLE("\x93NUMPY\1\0", "NumPy array"),
    SAMPLE("GGUF\3\0\0\0", "GGUF"),
    SAMPLE("\x1f\x8b\x08\0", "gzip"),
    SAMPLE("\x1c\0\0\0TFL3\0\0", "TensorFlow Lite"),
    SAMPLE("\x1c\0\0\0ORTM\0\0", "ONNX Runtime"),
    SAMPLE("\x1c\0\0\0MSL2\0\0", "MindSpore Lite"),
    SAMPLE("\n\0050.1.1\x12\11MindSpore", "MindIR"),
    SAMPLE("\x08\4\x12\2\n\0\xa2\x1f\0", "Core ML"),     /* field 500 */
    SAMPLE("\x08\7\x12\2\n\0\xb2\x1f\2\n\0", "Core ML"), /* field 502 */
    SAMPLE("\2\0\0\0\0\0\0\0{}", "safetensors"),
    /* no known format */
    SAMPLE("", NULL),
    SAMPLE("PK", NULL),
    SAMPLE("\x1c\0\0\0TFL", NULL),
    SAMPLE("\3\0\0\0\0\0\0\0{}", NULL), /* a header of 3 bytes, but the file has only 2 after the length */
    SAMPLE("\x08\x0a\x12\0", NULL),
    SAMPLE("\x08\4\x12\2\n\0\xa2\x1f\1", NULL), /* ends within field 500 */
    SAMPLE("plain text", NULL),
};

static void test_samples(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; ++i) {
    void *copy = malloc(samples[i].size_bytes + (samples[i].size_bytes ==
                                                 0)); /* an exact copy, so that the address sanitizer sees reads beyond its end */
    assert_non_null(copy);
    memcpy(copy, samples[i].bytes, samples[i].size_bytes);
    const char *what = clv__foreign_format(copy, samples[i].size_bytes);
    bool right = samples[i].what == NULL ? what == NULL : what != NULL && strstr(what, samples[i].what) != NULL;
    if (!right)
      fail_msg("sample %zu is recognised as '%s', expected '%s'", i, what != NULL ? what : "nothing",
               samples[i].what != NULL ? samples[i].what : "nothing");
    free(copy);
  }
}

/* Checks that the bytes are rejected as a model, with an error that contains `message`. */
static void check_error(const char *bytes, size_t size_bytes, const char *message) {
  clv_graph *graph = NULL;
  clv_error error = {0};
  clv_status status = clv__onnx_load_memory(clv__allocator_default(), bytes, size_bytes, true, &graph, &error);
  assert_int_equal(status, CLV_INVALID_MODEL);
  assert_null(graph);
  if (strstr(error.message, message) == NULL) fail_msg("'%s' does not contain '%s'", error.message, message);
}

static void test_error(void **state) {
  (void)state;
  const char lfs[] = "version https://git-lfs.github.com/spec/v1\n", core_ml[] = "\x08\4\x12\2\n\0\xa2\x1f\0";
  check_error(lfs, sizeof lfs - 1, "not an ONNX model: it is a Git LFS pointer");
  check_error(core_ml, sizeof core_ml - 1, "not an ONNX model: it is a Core ML model");
}

static void test_folders(void **state) {
  static const struct {
    const char *file, *what;
  } folders[] = {{"config.json", "transformers"},
                 {"Manifest.json", "Core ML"},
                 {"saved_model.pb", "SavedModel"},
                 {"model.onnx", "model.onnx"}};
  char folder[] = "/tmp/cleave-foreign-XXXXXX", file[sizeof folder + 32];
  (void)state;
  assert_non_null(mkdtemp(folder));
  assert_null(clv__foreign_folder(folder));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    snprintf(file, sizeof file, "%s/%s", folder, folders[i].file);
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    assert_int_equal(fclose(made), 0);
    const char *what = clv__foreign_folder(folder);
    if (what == NULL || strstr(what, folders[i].what) == NULL)
      fail_msg("a folder with %s is recognised as '%s', expected '%s'", folders[i].file, what != NULL ? what : "nothing",
               folders[i].what);
    assert_int_equal(remove(file), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples), cmocka_unit_test(test_error),
                                     cmocka_unit_test(test_folders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
