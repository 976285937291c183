/* Reads programs of the virtual NPU, and runs those that load. It needs the whole library.
 *
 * The first byte of an input is its mode. FUZZ_NPUBIN_RAW: a complete file follows. Otherwise the payload of a file
 * (npubin.h) follows, without the fingerprint. Header, checksum and fingerprint are added here, because a reader would
 * reject every mutated file with the wrong checksum. FUZZ_NPUBIN_COMPILE: only the types and the graph of the payload are
 * used. The graph is compiled and saved, and the result must load; so mutated graphs run too. */
#ifndef CLEAVE_FUZZ_TARGET_NPUBIN_H
#define CLEAVE_FUZZ_TARGET_NPUBIN_H

#include <stdlib.h>
#include <string.h>

#include "../tests/formats/onnx_models.h"
#include "backends/vnpu/instance.h"
#include "backends/vnpu/npubin.h"
#include "backends/vnpu/spec/speed.h"
#include "backends/vnpu/vnpu.h"
#include "base/hash.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "operators/run.h"
#include "sealed.h"

enum {
  FUZZ_NPUBIN_DYNAMIC = 1, /* use the device that supports unknown shapes */
  FUZZ_NPUBIN_COMPILE = 2,
  FUZZ_NPUBIN_WILD = 4, /* fill the inputs with any bytes instead of small numbers */
  FUZZ_NPUBIN_RAW = 8,
  FUZZ_NPUBIN_IO = 32, /* a program with more inputs, outputs or weights is not run */
  FUZZ_NPUBIN_BYTES = 1 << 16
};

typedef struct fuzz_npubin_setting {
  clv_context *context;
  const clv_backend *backend;
  clv_device *devices[2];
} fuzz_npubin_setting;

/* Returns the devices to load programs on. They are created once and never closed. */
static inline const fuzz_npubin_setting *fuzz_npubin_open(void) {
  static fuzz_npubin_setting setting;
  static const char *const specs[] = {"{\"operators\": \"all\", \"memory\": \"8M\", \"static_shapes\": true}",
                                      "{\"operators\": \"all\", \"memory\": \"8M\", \"control_flow\": true}"};
  if (setting.devices[1] != NULL) return &setting;
  if (clv_context_create(NULL, &setting.context, NULL) != CLV_OK) abort();
  const clv_host *host = clv__context_host(setting.context);
  if (clv__vnpu_backend_query(host, NULL, &setting.backend, NULL) != CLV_OK) abort();
  for (int i = 0; i < 2; ++i) {
    const clv_option spec = {"spec", specs[i]};
    clv_device_config config = {
        .struct_size = sizeof config, .name = i == 0 ? "fixed" : "free", .option_count = 1, .options = &spec, .thread_count = 1};
    if (setting.backend->open(NULL, host, &config, &setting.devices[i], NULL) != CLV_OK) abort();
  }
  return &setting;
}

/* ---- Run a loaded program ---- */

/* Returns whether the program is small enough to run quickly, and has no bodies: a loop might never end. */
static inline bool fuzz_npubin_is_small(const clv_executable *p) {
  static const clv__vnpu_speed speed = {
      .given = true, .flops_per_second = 1e9, .bytes_per_second = 1e9, .time_scale = 1, .frequency = 1};
  clv_tensor inputs[FUZZ_NPUBIN_IO], outputs[FUZZ_NPUBIN_IO];
  size_t total = 0;
  double seconds = 0;
  if (p->node_count > 64 || p->input_count + p->weight_count > FUZZ_NPUBIN_IO || p->output_count > FUZZ_NPUBIN_IO) return false;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    size_t size_bytes;
    if (!clv__tensor_size_bytes(&p->types[v], &size_bytes)) continue;
    if (!clv__add(total, size_bytes, &total) || total > FUZZ_NPUBIN_BYTES) return false;
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv_node_info *node = &p->instructions[n].node;
    if (p->instructions[n].kernel == NULL || node->input_count > FUZZ_NPUBIN_IO || node->output_count > FUZZ_NPUBIN_IO)
      return false;
    if (p->instructions[n].scratch_bytes > 1 << 20) return false;
    bool known = p->is_static;
    for (uint32_t i = 0; i < node->input_count; ++i)
      inputs[i] = node->inputs[i] == CLV_NO_VALUE ? (clv_tensor){0} : p->types[node->inputs[i]];
    for (uint32_t i = 0; i < node->output_count; ++i)
      outputs[i] = node->outputs[i] == CLV_NO_VALUE ? (clv_tensor){0} : p->types[node->outputs[i]];
    if (known) seconds += clv__vnpu_node_seconds(&speed, node, inputs, outputs);
  }
  return seconds < 0.02;
}

/* Fills a tensor with pseudo-random elements. */
static inline void fuzz_npubin_fill(uint8_t *data, size_t size_bytes, const clv_tensor *type, bool wild) {
  uint32_t state = 12345;
  size_t element = clv_dtype_size_bytes(type->dtype);
  memset(data, 0, size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    state = state * 1664525 + 1013904223;
    if (type->dtype == CLV_BOOL)
      data[i] = (uint8_t)(state >> 31);
    else if (wild)
      data[i] = (uint8_t)(state >> 24);
    else if (i % element == 0)
      data[i] = (uint8_t)(state >> 30);
  }
}

typedef struct fuzz_npubin_run {
  const clv_backend *b;
  clv_device *device;
  clv_tensor types[FUZZ_NPUBIN_IO];
  clv_weight *weights[FUZZ_NPUBIN_IO];
  clv_binding in[FUZZ_NPUBIN_IO], out[FUZZ_NPUBIN_IO];
  uint8_t bytes[FUZZ_NPUBIN_BYTES];
} fuzz_npubin_run;

static inline clv_status fuzz_npubin_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding,
                                            clv_error *error) {
  const fuzz_npubin_run *run = cookie;
  size_t size_bytes;
  (void)index;
  if (!clv__tensor_size_bytes(type, &size_bytes)) return CLV_OUT_OF_MEMORY;
  binding->type = *type;
  binding->offset_bytes = 0;
  return run->b->buffer_alloc(run->device, size_bytes, &binding->buffer, error);
}

/* Allocates and fills the program's bindings; open sizes are 2. Returns false if the program cannot run. */
static inline bool fuzz_npubin_bind(fuzz_npubin_run *run, const clv_executable *p, clv_stream *stream, bool wild) {
  for (uint32_t i = 0; i < p->input_count; ++i) {
    size_t size_bytes;
    clv_tensor *type = &run->types[i];
    *type = p->types[p->inputs[i]];
    if (type->rank < 0) *type = clv__tensor_make(type->dtype, 1, (const int64_t[]){2}, NULL);
    for (int32_t d = 0; d < type->rank; ++d) type->dims[d] = type->dims[d] < 0 ? 2 : type->dims[d];
    if (!clv__tensor_size_bytes(type, &size_bytes) || size_bytes > FUZZ_NPUBIN_BYTES) return false;
    run->in[i].type = *type;
    if (run->b->buffer_alloc(run->device, size_bytes, &run->in[i].buffer, NULL) != CLV_OK) return false;
    fuzz_npubin_fill(run->bytes, size_bytes, type, wild);
    if (run->b->copy_in(run->device, stream, run->in[i].buffer, 0, run->bytes, size_bytes, NULL) != CLV_OK) abort();
    if (run->b->stream_synchronize(run->device, stream, NULL) != CLV_OK) abort();
  }
  for (uint32_t i = 0; i < p->weight_count; ++i) {
    size_t size_bytes;
    clv_tensor type = p->types[p->weights[i]];
    if (!clv__tensor_size_bytes(&type, &size_bytes) || size_bytes > FUZZ_NPUBIN_BYTES) return false;
    fuzz_npubin_fill(run->bytes, size_bytes, &type, wild);
    type.data = run->bytes;
    if (run->b->weight_upload(run->device, p->weight_names[i], &type, &run->weights[i], NULL) != CLV_OK) return false;
  }
  for (uint32_t i = 0; i < p->output_count; ++i) {
    size_t size_bytes;
    run->out[i].type = p->types[p->outputs[i]];
    if (!p->is_static) {
      run->out[i].type.rank = CLV_RANK_UNKNOWN;
      continue;
    }
    if (!clv__tensor_size_bytes(&run->out[i].type, &size_bytes)) abort();
    if (run->b->buffer_alloc(run->device, size_bytes, &run->out[i].buffer, NULL) != CLV_OK) return false;
  }
  return true;
}

/* Executes the instance, and a static program once more through a capture. */
static inline void fuzz_npubin_execute(fuzz_npubin_run *run, const clv_executable *p, clv_instance *instance,
                                       clv_stream *stream) {
  clv_error error = {0};
  clv_execute_args args = {sizeof args, p->input_count, p->output_count, run->in, run->out, run, fuzz_npubin_output};
  for (int captured = 0; captured < 1 + p->is_static; ++captured) {
    clv_captured *graph = NULL;
    if (captured && run->b->capture->begin(run->device, stream, CLV_CAPTURE_THREAD, &error) != CLV_OK) abort();
    clv_status status = run->b->execute(run->device, instance, stream, &args, &error);
    if (captured && run->b->capture->end(run->device, stream, &graph, &error) != status) abort();
    if (graph != NULL && run->b->capture->launch(run->device, graph, stream, &error) != CLV_OK) abort();
    (void)run->b->stream_synchronize(run->device, stream, &error);
    run->b->capture->destroy(run->device, graph);
  }
}

static inline void fuzz_npubin_try(const fuzz_npubin_setting *setting, clv_device *device, clv_executable *p, bool wild) {
  if (!fuzz_npubin_is_small(p)) return;
  const clv_backend *b = setting->backend;
  fuzz_npubin_run *run = calloc(1, sizeof *run);
  clv_stream *stream = NULL;
  clv_instance *instance = NULL;
  if (run == NULL || b->stream_create(device, &stream, NULL) != CLV_OK) abort();
  run->b = b;
  run->device = device;
  if (fuzz_npubin_bind(run, p, stream, wild) &&
      b->instance_create(device, p, run->types, p->input_count, run->weights, p->weight_count, &instance, NULL) == CLV_OK) {
    fuzz_npubin_execute(run, p, instance, stream);
  }
  b->instance_destroy(device, instance);
  b->stream_destroy(device, stream);
  for (uint32_t i = 0; i < FUZZ_NPUBIN_IO; ++i) {
    b->buffer_free(device, run->in[i].buffer);
    b->buffer_free(device, run->out[i].buffer);
    b->weight_release(device, run->weights[i]);
  }
  free(run);
}

/* ---- The target ---- */

/* Compiles the types and the graph of an input, and saves the result to `file`, which stays empty if that fails. */
static inline void fuzz_npubin_compile(const clv_device *device, const uint8_t *data, size_t size_bytes, clv__text *file) {
  clv_tensor types[FUZZ_NPUBIN_IO];
  size_t at = fuzz_sealed_graph(data, size_bytes);
  if (at == 0 || fuzz_sealed_number(data, 4) > FUZZ_NPUBIN_IO) return;
  uint32_t inputs = (uint32_t)fuzz_sealed_number(data, 4);
  size_t from = 4;
  for (uint32_t i = 0; i < inputs; ++i) {
    types[i] = (clv_tensor){.dtype = (clv_dtype)fuzz_sealed_number(data + from, 4),
                            .rank = (int32_t)fuzz_sealed_number(data + from + 4, 4)};
    from += 8;
    if (clv_dtype_size_bytes(types[i].dtype) == 0 || types[i].dtype == CLV_STRING)
      return; /* Cleave never compiles a graph whose inputs have such dtypes */
    for (int32_t d = 0; d < types[i].rank; ++d, from += 8) {
      types[i].dims[d] = (int64_t)fuzz_sealed_number(data + from, 8);
      if (types[i].dims[d] < CLV_DIM_UNKNOWN) return;
    }
  }
  uint64_t graph_bytes = fuzz_sealed_number(data + at - 8, 8);
  if (graph_bytes > size_bytes - at) return;
  void *onnx = clv__allocate(device->allocator, graph_bytes);
  if (onnx == NULL) return;
  if (graph_bytes > 0) memcpy(onnx, data + at, graph_bytes);
  clv_executable *p = NULL;
  clv_error error = {0};
  clv_status status = clv__vnpu_program_open(device, onnx, graph_bytes, types, inputs, &p, &error);
  if (status == CLV_OK && p->is_static) status = clv__vnpu_layout_make(p, &error);
  if (status == CLV_OK) status = clv__vnpu_program_finish(p, &error);
  if (status == CLV_OK) status = clv__vnpu_npubin_save(p, fuzz_sealed_append, file, &error);
  clv__vnpu_program_destroy(p);
}

/* Loads the input and, if that succeeds, runs it. Returns the status of loading. */
static inline clv_status fuzz_npubin_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  const fuzz_npubin_setting *setting = fuzz_npubin_open();
  if (size_bytes == 0) return CLV_INVALID_MODEL;
  uint8_t mode = data[0];
  clv_device *device = setting->devices[mode & FUZZ_NPUBIN_DYNAMIC];
  clv__text file;
  clv__text_init(&file, clv__allocator_default());
  if (mode & FUZZ_NPUBIN_RAW)
    clv__text_append_bytes(&file, data + 1, size_bytes - 1);
  else if (mode & FUZZ_NPUBIN_COMPILE)
    fuzz_npubin_compile(device, data + 1, size_bytes - 1, &file);
  else
    fuzz_sealed_wrap(&clv__vnpu_npubin_kind, device->fingerprint, data + 1, size_bytes - 1, &file);
  clv_executable *p = NULL;
  clv_status status = setting->backend->save->load(device, file.data, file.size_bytes, &p, error);
  if (status == CLV_OK) {
    fuzz_npubin_try(setting, device, p, (mode & FUZZ_NPUBIN_WILD) != 0);
    setting->backend->executable_destroy(device, p);
  } else if ((mode & FUZZ_NPUBIN_COMPILE) != 0 && (mode & FUZZ_NPUBIN_RAW) == 0 && file.size_bytes > 0 &&
             status != CLV_OUT_OF_MEMORY) {
    abort(); /* a program that was compiled and saved does not load */
  }
  clv__text_finish(&file);
  return status;
}

static inline void fuzz_npubin(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_npubin_status(data, size_bytes, &error);
}

/* ---- Seeds ---- */

enum { FUZZ_NPUBIN_SEEDS = 6 };

/* Writes a model with input `x`, and sometimes `y`, of type f32[4, 6]. The output shapes of the last model depend on data.
 * Returns the model's name. */
static inline const char *fuzz_npubin_model(int index, clv__text *text) {
  static const int64_t dims[] = {4, 6}, wide[] = {6, 200}, row[] = {6}, image[] = {1, 2, 4, 6}, filter[] = {3, 2, 3, 3},
                       shape[] = {2}, to[] = {2, 12}, two[] = {2}, indices[] = {2, 0};
  static float numbers[1200];
  static const char *const names[FUZZ_NPUBIN_SEEDS] = {"elementwise", "matmul", "shapes", "conv", "reduce", "nonzero"};
  for (int i = 0; i < 1200; ++i) numbers[i] = (float)(i % 7) - 3;
  size_t graph = model_open(text, 8);
  switch (index) {
    case 0:
      model_plain_node(text, "Add", "x,y", "a");
      model_plain_node(text, "Relu", "a", "b");
      model_plain_node(text, "Mul", "b,w", "c");
      model_plain_node(text, "Where", "is,c,y", "d");
      model_plain_node(text, "Greater", "x,y", "is2");
      model_tensor(text, GRAPH_INITIALIZER, "is", CLV_BOOL, row, 1, "\1\0\1\0\1\1", 6);
      model_tensor(text, GRAPH_INITIALIZER, "w", CLV_F32, row, 1, numbers, 24);
      model_value(text, GRAPH_OUTPUT, "is2", CLV_BOOL, dims, 2);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, dims, 2);
      break;
    case 1: /* `w` is a weight */
      model_plain_node(text, "MatMul", "x,w", "a");
      model_plain_node(text, "Softmax", "a", "d");
      model_value(text, GRAPH_INPUT, "x", CLV_F32, dims, 2);
      model_value(text, GRAPH_INPUT, "w", CLV_F32, wide, 2);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, (const int64_t[]){4, 200}, 2);
      break;
    case 2: {
      size_t node = model_node(text, GRAPH_NODE, "", "", "Concat", "x,y", "joined");
      model_int(text, "axis", 1);
      clv__proto_end(text, node, 0);
      model_plain_node(text, "Split", "joined", "p,q");
      model_plain_node(text, "Transpose", "p", "t");
      model_plain_node(text, "Reshape", "x,to", "r");
      model_plain_node(text, "Gather", "r,which", "d");
      model_tensor(text, GRAPH_INITIALIZER, "to", CLV_I64, shape, 1, to, sizeof to);
      model_tensor(text, GRAPH_INITIALIZER, "which", CLV_I64, two, 1, (const int64_t[]){1, -1}, 16);
      model_value(text, GRAPH_OUTPUT, "t", CLV_F32, dims, 2);
      model_value(text, GRAPH_OUTPUT, "q", CLV_F32, dims, 2);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, to, 2);
      break;
    }
    case 3:
      model_plain_node(text, "Reshape", "x,to", "a");
      model_plain_node(text, "Concat", "a,a", "b");
      model_plain_node(text, "Conv", "i,f", "c");
      model_plain_node(text, "GlobalAveragePool", "c", "d");
      model_tensor(text, GRAPH_INITIALIZER, "i", CLV_F32, image, 4, numbers, 192);
      model_tensor(text, GRAPH_INITIALIZER, "f", CLV_F32, filter, 4, numbers, 216);
      model_tensor(text, GRAPH_INITIALIZER, "to", CLV_I64, shape, 1, to, sizeof to);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, image, 4);
      break;
    case 4:
      model_plain_node(text, "ReduceMax", "x", "a");
      model_plain_node(text, "TopK", "x,k", "v,i");
      model_plain_node(text, "ScatterElements", "y,i,v", "s");
      model_plain_node(text, "CumSum", "s,axis", "d");
      model_tensor(text, GRAPH_INITIALIZER, "k", CLV_I64, (const int64_t[]){1}, 1, (const int64_t[]){2}, 8);
      model_tensor(text, GRAPH_INITIALIZER, "axis", CLV_I64, NULL, 0, (const int64_t[]){1}, 8);
      model_value(text, GRAPH_OUTPUT, "a", CLV_F32, dims, 2);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, dims, 2);
      break;
    default:
      model_plain_node(text, "Relu", "x", "r");
      model_plain_node(text, "NonZero", "r", "where");
      model_plain_node(text, "Shape", "where", "size");
      model_plain_node(text, "Slice", "where,from,size", "part");
      model_plain_node(text, "Expand", "one,size", "d");
      model_tensor(text, GRAPH_INITIALIZER, "from", CLV_I64, two, 1, indices, sizeof indices);
      model_tensor(text, GRAPH_INITIALIZER, "one", CLV_F32, NULL, 0, numbers, 4);
      model_value(text, GRAPH_OUTPUT, "part", CLV_I64, (const int64_t[]){-1, -1}, 2);
      model_value(text, GRAPH_OUTPUT, "d", CLV_F32, (const int64_t[]){-1, -1}, 2);
  }
  if (index != 1) {
    model_value(text, GRAPH_INPUT, "x", CLV_F32, dims, 2);
    if (index == 0 || index == 2 || index == 4) model_value(text, GRAPH_INPUT, "y", CLV_F32, dims, 2);
  }
  model_close(text, graph);
  return names[index];
}

/* Writes a model of one node whose operands are the `index`th set of f32 inputs `x` and `y` [4, 6] and constants. Returns the
 * set, or NULL if there is none. */
static inline const char *fuzz_npubin_node(const clv__kernel *kernel, int index, clv__text *text) {
  static const char *const inputs[] = {
      "x",     "x,y",       "x,k",   "x,one", "x,k,k",     "x,y,x", "x,i,y", "x,i", "is,x,y", "x,row,row,row,row", "image,filter",
      "image", "x,k,k,two", "x,row", "i",     "image,grid"};
  static const int64_t dims[] = {4, 6}, image[] = {1, 2, 4, 6}, filter[] = {2, 2, 3, 3}, grid[] = {1, 3, 3, 2}, pair[] = {2},
                       row[] = {6};
  static const int64_t small[24] = {0, 1, 0, 1}, two[] = {0, 1}, one[] = {1}, k[] = {1, 2};
  static const float numbers[72] = {1, -2, 0.5f, 3, 0.25f, -1};
  if (index >= (int)(sizeof inputs / sizeof *inputs)) return NULL;
  size_t graph = model_open(text, 8);
  clv__proto_end(text, model_node(text, GRAPH_NODE, "", kernel->domain, kernel->op, inputs[index], "d"), 0);
  model_tensor(text, GRAPH_INITIALIZER, "k", CLV_I64, pair, 1, k, sizeof k);
  model_tensor(text, GRAPH_INITIALIZER, "two", CLV_I64, pair, 1, two, sizeof two);
  model_tensor(text, GRAPH_INITIALIZER, "one", CLV_I64, NULL, 0, one, sizeof one);
  model_tensor(text, GRAPH_INITIALIZER, "i", CLV_I64, dims, 2, small, sizeof small);
  model_tensor(text, GRAPH_INITIALIZER, "is", CLV_BOOL, dims, 2, small, 24);
  model_tensor(text, GRAPH_INITIALIZER, "row", CLV_F32, row, 1, numbers, 24);
  model_tensor(text, GRAPH_INITIALIZER, "image", CLV_F32, image, 4, numbers, 192);
  model_tensor(text, GRAPH_INITIALIZER, "filter", CLV_F32, filter, 4, numbers, 144);
  model_tensor(text, GRAPH_INITIALIZER, "grid", CLV_F32, grid, 4, numbers, 72);
  model_value(text, GRAPH_INPUT, "x", CLV_F32, dims, 2);
  model_value(text, GRAPH_INPUT, "y", CLV_F32, dims, 2);
  model_value(text, GRAPH_OUTPUT, "d", CLV_F32, NULL, 0);
  model_close(text, graph);
  return inputs[index];
}

/* Compiles a model with `inputs` inputs f32[4, 6] to a seed for the target. False if the model does not compile. */
static inline bool fuzz_npubin_from_model(const clv__text *model, uint32_t inputs, uint8_t mode, clv__text *seed) {
  const clv_device *device = fuzz_npubin_open()->devices[mode];
  clv__text parts, file;
  clv__text_init(&parts, clv__allocator_default());
  clv__text_init(&file, clv__allocator_default());
  clv__sealed_put(&parts, inputs, 4);
  for (uint32_t i = 0; i < inputs; ++i) {
    clv__sealed_put(&parts, CLV_F32, 4);
    clv__sealed_put(&parts, 2, 4);
    clv__sealed_put(&parts, 4, 8);
    clv__sealed_put(&parts, 6, 8);
  }
  clv__sealed_put(&parts, model->size_bytes, 8);
  clv__text_append_bytes(&parts, model->data, model->size_bytes);
  fuzz_npubin_compile(device, (const uint8_t *)parts.data, parts.size_bytes, &file);
  size_t from = CLV__SEALED_HEADER_BYTES + 4 + strlen(device->fingerprint);
  bool made = file.size_bytes > from;
  if (made) {
    clv__text_append_bytes(seed, &mode, 1);
    clv__text_append_bytes(seed, file.data + from, file.size_bytes - from);
  }
  clv__text_finish(&file);
  clv__text_finish(&parts);
  return made;
}

/* Makes a seed from the `index`th valid program. Returns its name, or NULL if the model does not compile. */
static inline const char *fuzz_npubin_seed(int index, clv__text *seed) {
  clv__text model;
  clv__text_init(&model, clv__allocator_default());
  const char *name = fuzz_npubin_model(index, &model);
  uint8_t mode = index == FUZZ_NPUBIN_SEEDS - 1 ? FUZZ_NPUBIN_DYNAMIC : 0;
  bool made = fuzz_npubin_from_model(&model, index == 0 || index == 2 || index == 4 ? 2 : 1, mode, seed);
  clv__text_finish(&model);
  return made ? name : NULL;
}

#endif
