/* Writes seeds for the fuzz targets: make_corpus FOLDER makes FOLDER/{onnx,tensor,npy,npz,npubin,safetensors,gnn_tables,
 * gnn_plan,params,gnn_state}. The seeds are the same every time. The seeds of the other targets are texts in corpus/; their
 * folders in FOLDER stay empty, for new inputs that the fuzzer finds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../tests/formats/onnx_models.h"
#include "base/files/file.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"
#include "formats/onnx/onnx.h"
#include "gnn_seeds.h"
#include "target_gnn_state.h"
#include "target_npubin.h"

static const char *folder;

/* Makes a path in the folder; false if it is too long. */
static bool in_folder(char *path, size_t room, const char *kind, const char *name) {
  int length = snprintf(path, room, "%s/%s/%s", folder, kind, name);
  return length > 0 && (size_t)length < room;
}

static bool save(const char *kind, const char *name, const void *data, size_t size_bytes) {
  char path[1024];
  clv_error error = {0};
  if (in_folder(path, sizeof path, kind, name) && clv__file_write(path, data, size_bytes, &error) == CLV_OK) return true;
  fprintf(stderr, "%s\n", error.message);
  return false;
}

static bool save_text(const char *kind, const char *name, clv__text *text) {
  bool saved = !text->failed && save(kind, name, text->data, text->size_bytes);
  clv__text_finish(text);
  return saved;
}

static bool make_models(void) {
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  model_everything(&text);
  if (!save_text("onnx", "everything", &text)) return false;
  size_t marks[3 * 40];
  model_nested(&text, 40, marks);
  if (!save_text("onnx", "nested", &text)) return false;
  static const int64_t dims[] = {-1, 3};
  size_t graph = model_open(&text, 8);
  model_plain_node(&text, "Add", "X,b", "a");
  model_plain_node(&text, "Neg", "a", "b");
  model_value(&text, GRAPH_INPUT, "X", CLV_F32, dims, 2);
  model_value(&text, GRAPH_OUTPUT, "b", CLV_F32, dims, 2);
  model_external(&text, "w", CLV_F32, dims + 1, 1, "w.bin", "0", "12");
  model_close(&text, graph);
  return save_text("onnx", "cycle", &text);
}

static bool make_tensors(void) {
  static const clv_dtype dtypes[] = {CLV_F32, CLV_I64, CLV_BOOL, CLV_BF16, CLV_STRING};
  static const int64_t dims[] = {2, 3};
  static const clv_string strings[] = {{"one", 3}, {"", 0}, {"\xc3\xbc", 2}, {"x", 1}, {"y", 1}, {"z", 1}};
  static uint8_t bytes[48];
  static const char *const names[] = {"f32", "i64", "bool", "bf16", "string"};
  clv_tensor tensors[5];
  for (size_t i = 0; i < 5; ++i) {
    tensors[i] = clv__tensor_make(dtypes[i], 2, dims, dtypes[i] == CLV_STRING ? (void *)strings : bytes);
    clv__text text;
    clv_error error = {0};
    clv__text_init(&text, clv__allocator_default());
    bool appended = clv__npy_append(&text, &tensors[i], &error) == CLV_OK;
    if (!save_text("npy", names[i], &text) || !appended) return false;
    void *data;
    size_t size_bytes;
    if (clv__onnx_tensor_write(&tensors[i], names[i], clv__allocator_default(), &data, &size_bytes, &error) != CLV_OK)
      return false;
    bool saved = save("tensor", names[i], data, size_bytes);
    clv__release(clv__allocator_default(), data);
    if (!saved) return false;
  }
  for (int deflate = 0; deflate < 2; ++deflate) {
    char path[1024];
    clv_error error = {0};
    if (!in_folder(path, sizeof path, "npz", deflate ? "deflated" : "stored") ||
        clv__npz_write(clv__allocator_default(), path, names, tensors, 5, deflate != 0, &error) != CLV_OK) {
      return false;
    }
  }
  return true;
}

/* Makes a program for each set of inputs that the kernel accepts. */
static bool make_nodes(const clv__kernel *kernel) {
  for (int i = 0;; ++i) {
    clv__text model, seed;
    clv__text_init(&model, clv__allocator_default());
    clv__text_init(&seed, clv__allocator_default());
    const char *inputs = fuzz_npubin_node(kernel, i, &model);
    bool made = inputs != NULL &&
                (fuzz_npubin_from_model(&model, 2, 0, &seed) || fuzz_npubin_from_model(&model, 2, FUZZ_NPUBIN_DYNAMIC, &seed));
    clv__text_finish(&model);
    char name[128];
    snprintf(name, sizeof name, "%.80s-%d", kernel->op, i);
    if (made && !save_text("npubin", name, &seed)) return false;
    if (!made) clv__text_finish(&seed);
    if (inputs == NULL) return true;
  }
}

static bool make_programs(void) {
#define FAMILY(name) clv__kernels_##name,
  static const clv__kernel *const families[] = {CLV__TENSOR_FAMILIES(FAMILY)};
#undef FAMILY
  for (size_t f = 0; f < sizeof families / sizeof *families; ++f) {
    for (const clv__kernel *kernel = families[f]; kernel->op != NULL; ++kernel) {
      if (!make_nodes(kernel)) return false;
    }
  }
  for (int i = 0; i < FUZZ_NPUBIN_SEEDS; ++i) {
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    const char *name = fuzz_npubin_seed(i, &text);
    if (name == NULL) fprintf(stderr, "program %d does not compile\n", i);
    if (name == NULL || !save_text("npubin", name, &text)) return false;
  }
  return true;
}

/* Makes a file with many dtypes, and a file with metadata. */
static bool make_safetensors(void) {
  static const char *const headers[] = {
      "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":["
      "8,16]},"
      "\"c\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[16,24]},\"d\":{\"dtype\":\"I64\",\"shape\":[],\"data_"
      "offsets\":[24,32]},"
      "\"e\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[32,32]},\"f\":{\"dtype\":\"BOOL\",\"shape\":[8],\"data_"
      "offsets\":[32,40]}}",
      "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"y\"},\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[5,8],\"data_offsets\":[0,40]}}  "
      " "};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
    clv__text text;
    clv__text_init(&text, clv__allocator_default());
    const uint64_t length = strlen(headers[i]);
    static const uint8_t data[40];
    clv__text_append_bytes(&text, &length, sizeof length); /* the format is little-endian, like the machines that fuzz */
    clv__text_append_bytes(&text, headers[i], (size_t)length);
    clv__text_append_bytes(&text, data, sizeof data);
    if (!save_text("safetensors", i == 0 ? "dtypes" : "metadata", &text)) return false;
  }
  return true;
}

static bool make_gnn(void) {
  clv__text tables, plan, csv;
  clv_error error = {0};
  clv__text_init(&tables, clv__allocator_default());
  clv__text_init(&plan, clv__allocator_default());
  clv__text_init(&csv, clv__allocator_default());
  clv__text_append(&csv, "%s", FUZZ_GNN_CSV);
  clv_status status = fuzz_gnn_seeds(&tables, &plan, &error);
  if (status != CLV_OK) fprintf(stderr, "%s\n", error.message);
  bool saved = save_text("gnn_tables", "tables", &tables);
  saved = save_text("gnn_plan", "plan", &plan) && saved;
  saved = save_text("gnn_tables", "csv", &csv) && saved;
  return saved && status == CLV_OK;
}

/* Makes the weights that fuzz_params() binds, and one that it does not, as npz and as safetensors. */
static bool make_params(void) {
  static const char *const names[] = {"w", "b", "h", "n", "other"};
  static const uint8_t bytes[32];
  const clv_tensor tensors[] = {clv__tensor_make(CLV_F32, 2, (const int64_t[]){2, 3}, (void *)(uintptr_t)bytes),
                                clv__tensor_make(CLV_I64, 1, (const int64_t[]){3}, (void *)(uintptr_t)bytes),
                                clv__tensor_make(CLV_U16, 1, (const int64_t[]){2}, (void *)(uintptr_t)bytes),
                                clv__tensor_make(CLV_F32, 0, NULL, (void *)(uintptr_t)bytes),
                                clv__tensor_make(CLV_BOOL, 1, (const int64_t[]){7}, (void *)(uintptr_t)bytes)};
  static const char header[] =
      "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"I64\",\"shape\":[3],\"data_"
      "offsets\":[24,48]},"
      "\"h\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[48,52]},\"n\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":["
      "52,56]}}";
  char path[1024];
  clv_error error = {0};
  for (int deflate = 0; deflate < 2; ++deflate) {
    if (!in_folder(path, sizeof path, "params", deflate ? "deflated" : "stored") ||
        clv__npz_write(clv__allocator_default(), path, names, tensors, 5, deflate != 0, &error) != CLV_OK)
      return false;
  }
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  const uint64_t length = sizeof header - 1;
  static const uint8_t data[56];
  clv__text_append_bytes(&text, &length, sizeof length);
  clv__text_append_bytes(&text, header, (size_t)length);
  clv__text_append_bytes(&text, data, sizeof data);
  return save_text("params", "safetensors", &text);
}

/* Makes states of a run after its first and its second layer, for both kinds of input of target_gnn_state.h. */
static bool make_states(void) {
  static const float rows[FUZZ_STATE_VERTICES * FUZZ_STATE_WIDEST] = {1, 2, 3};
  static const size_t widths[] = {3, 2};
  clv__hash key;
  clv__hash_bytes("key", 3, &key);
  for (uint32_t layer = 0; layer < 2; ++layer) {
    const size_t rows_bytes = FUZZ_STATE_VERTICES * widths[layer] * sizeof *rows;
    const uint8_t file_head = FUZZ_STATE_FILE, sealed_head[] = {FUZZ_STATE_SEALED, (uint8_t)(layer + 1)};
    clv__text file, sealed;
    clv__text_init(&file, clv__allocator_default());
    clv__text_init(&sealed, clv__allocator_default());
    clv__text_append_bytes(&file, &file_head, 1);
    fuzz_gnn_state_file(&key, layer + 1, rows, rows_bytes, &file);
    clv__text_append_bytes(&sealed, sealed_head, sizeof sealed_head);
    clv__text_append_bytes(&sealed, rows, rows_bytes);
    bool saved = save_text("gnn_state", layer == 0 ? "file-1" : "file-2", &file);
    if (!save_text("gnn_state", layer == 0 ? "sealed-1" : "sealed-2", &sealed) || !saved) return false;
  }
  return true;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 2) {
    fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  folder = arguments[1];
  static const char *const kinds[] = {"",         "onnx",   "tensor",   "npy",    "npz",         "plan",
                                      "npu_spec", "irjson", "profile",  "npubin", "safetensors", "gnn_tables",
                                      "gnn_plan", "params", "gnn_state"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    char path[1024];
    if (!in_folder(path, sizeof path, kinds[i], "") || (mkdir(path, 0777) != 0 && errno != EEXIST)) {
      fprintf(stderr, "%s: %s\n", arguments[1], strerror(errno));
      return 1;
    }
  }
  return make_models() && make_tensors() && make_programs() && make_safetensors() && make_gnn() && make_params() && make_states()
             ? 0
             : 1;
}
