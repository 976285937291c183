/* Makes the inputs of a run, from files or from random numbers. See job.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/shapes_given.h"
#include "base/random.h"
#include "base/tensor/small.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/job.h"
#include "compile/bucket.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"
#include "formats/onnx/onnx.h"
#include "report/label.h"

/* ---- Files ---- */

static uint32_t find_input(const clv_graph *graph, const char *name, size_t length) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const char *input = graph->values[graph->inputs[i]].name;
    if (strlen(input) == length && strncmp(input, name, length) == 0) return i;
  }
  return CLV__NO_ID;
}

/* Counts the inputs without a default, and sets *one to the last of them. */
static uint32_t count_needed(const clv_graph *graph, uint32_t *one) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (graph->values[graph->inputs[i]].type.data != NULL) continue;
    *one = i;
    ++count;
  }
  return count;
}

/* Rejects a name that is not the name of an input, and lists the inputs. `path` is the npz file in which `text` is the name of
 * an array. If it is NULL, `text` is the option's value. */
static clv_status no_such_input(const clv_graph *graph, const char *option, const char *path, const char *text,
                                clv_error *error) {
  char list[500] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < graph->input_count && used < sizeof list; ++i) {
    int written = snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", graph->values[graph->inputs[i]].name);
    used += written < 0 ? 0 : (size_t)written;
  }
  if (path != NULL)
    return clv__error_set(error, CLV_NOT_FOUND, "option '--%s': array '%s' of %s is not an input; the model's inputs: %s", option,
                          text, path, graph->input_count > 0 ? list : "none");
  return clv__error_set(error, CLV_NOT_FOUND,
                        "option '--%s': '%s' does not start with the name of an input; the model's inputs: %s", option, text,
                        graph->input_count > 0 ? list : "none");
}

/* Finds the input that "NAME=REST" refers to. Names may contain `=`, so it tries every `=`. */
static uint32_t split_name(const clv_graph *graph, const char *text, const char **rest) {
  for (const char *equals = strchr(text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
    uint32_t input = find_input(graph, text, (size_t)(equals - text));
    *rest = equals + 1;
    if (input != CLV__NO_ID) return input;
  }
  return CLV__NO_ID;
}

typedef enum file_kind { KIND_OTHER, KIND_NPY, KIND_NPZ, KIND_PB } file_kind;

/* Determines the format of a file by its first bytes, or else by the ending of its name. The copy of a pipe (/proc/self/fd/N)
 * has no ending: unless its first bytes are those of npy or npz, it counts as protobuf, which has no fixed first bytes. */
static file_kind kind_of(const char *path) {
  char head[6] = "";
  const size_t length = strlen(path);
  FILE *file = fopen(path, "rb");
  const size_t count = file != NULL ? fread(head, 1, sizeof head, file) : 0;
  if (file != NULL) fclose(file);
  if (count == sizeof head && memcmp(head, "\x93NUMPY", sizeof head) == 0) return KIND_NPY;
  if (count >= 4 && memcmp(head, "PK", 2) == 0) return KIND_NPZ;
  if (length > 4 && strcmp(path + length - 4, ".npy") == 0) return KIND_NPY; /* the npy reader will report the wrong content */
  if (length > 4 && strcmp(path + length - 4, ".npz") == 0) return KIND_NPZ;
  if (length > 3 && strcmp(path + length - 3, ".pb") == 0) return KIND_PB;
  return strncmp(path, "/proc/self/fd/", 14) == 0 ? KIND_PB : KIND_OTHER;
}

/* Takes over `tensor` as the value of an input. */
static clv_status take(cli_invocation *cli, const clv_graph *graph, uint32_t index, const char *path, clv_tensor *tensor,
                       cli_inputs *inputs, clv_error *error) {
  const clv__value *value = &graph->values[graph->inputs[index]];
  if (value->type.dtype != CLV_DTYPE_NONE && value->type.dtype != tensor->dtype) {
    clv__release(cli->allocator, tensor->data);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s': %s contains %s, but the model expects %s", value->name, path,
                          clv_dtype_name(tensor->dtype), clv_dtype_name(value->type.dtype));
  }
  clv__release(cli->allocator, inputs->tensors[index].data); /* if an input is given twice, the last value wins */
  inputs->tensors[index] = *tensor;
  inputs->is_given[index] = true;
  return CLV_OK;
}

/* Reads the arrays of an npz file: only the array of input `only` or, if `only` is CLV__NO_ID, all arrays, each for the input
 * with the same name. */
static clv_status read_arrays(cli_invocation *cli, const clv_graph *graph, const clv__npz *npz, const char *path, uint32_t only,
                              cli_inputs *inputs, clv_error *error) {
  for (size_t i = 0; i < clv__npz_count(npz); ++i) {
    const char *name = clv__npz_name(npz, i);
    clv_tensor tensor = {0};
    uint32_t index = find_input(graph, name, strlen(name));
    if (only != CLV__NO_ID && index != only && clv__npz_count(npz) > 1) continue;
    if (only != CLV__NO_ID) index = only;
    if (index == CLV__NO_ID) return no_such_input(graph, "input", path, name, error);
    CLV__TRY(clv__npz_read(npz, name, &tensor, error));
    CLV__TRY(take(cli, graph, index, path, &tensor, inputs, error));
    if (only != CLV__NO_ID) return CLV_OK;
  }
  if (only == CLV__NO_ID) return CLV_OK;
  return clv__error_set(error, CLV_NOT_FOUND, "%s has several arrays, and none is named '%s'", path,
                        graph->values[graph->inputs[only]].name);
}

static clv_status read_npz(cli_invocation *cli, const clv_graph *graph, const char *path, uint32_t only, cli_inputs *inputs,
                           clv_error *error) {
  clv__npz *npz;
  CLV__TRY(clv__npz_open(cli->allocator, path, &npz, error));
  clv_status status = read_arrays(cli, graph, npz, path, only, inputs, error);
  clv__npz_close(npz);
  return status;
}

static clv_status read_one(cli_invocation *cli, const clv_graph *graph, const char *text, cli_inputs *inputs, clv_error *error) {
  const char *path = text;
  uint32_t only = 0, index = split_name(graph, text, &path);
  const bool is_path = strchr(text, '=') == NULL || access(text, F_OK) == 0;
  if (index == CLV__NO_ID && is_path && kind_of(text) == KIND_NPZ) return read_npz(cli, graph, text, CLV__NO_ID, inputs, error);
  if (index == CLV__NO_ID && is_path && count_needed(graph, &only) == 1) {
    index = only;
    path = text;
  }
  if (index == CLV__NO_ID) return no_such_input(graph, "input", NULL, text, error);
  clv_tensor tensor = {0};
  clv_status status = CLV_OK;
  switch (kind_of(path)) {
    case KIND_NPY:
      status = clv__npy_read(cli->allocator, path, &tensor, error);
      break;
    case KIND_NPZ:
      return read_npz(cli, graph, path, index, inputs, error);
    case KIND_PB:
      status = clv__onnx_tensor_read_file(cli->allocator, path, &tensor, NULL, error);
      break;
    case KIND_OTHER:
      return cli_usage(cli, error, "option '--input': '%s' is not a .npy, .npz or .pb file", path);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "input '%s'", graph->values[graph->inputs[index]].name);
  return take(cli, graph, index, path, &tensor, inputs, error);
}

clv_status cli_inputs_read(cli_invocation *cli, const clv_graph *graph, cli_inputs *inputs, clv_error *error) {
  inputs->count = graph->input_count;
  inputs->tensors = clv__arena_allocate_zero(&cli->arena, graph->input_count, sizeof *inputs->tensors);
  inputs->is_given = clv__arena_allocate_zero(&cli->arena, graph->input_count, sizeof *inputs->is_given);
  if (inputs->tensors == NULL || inputs->is_given == NULL)
    return clv__error_memory(error, graph->input_count * sizeof(clv_tensor));
  const cli_given *given = &cli->options->given[OPTION_INPUT];
  for (uint32_t i = 0; i < given->count; ++i) CLV__TRY(read_one(cli, graph, given->values[i], inputs, error));
  return CLV_OK;
}

void cli_inputs_finish(cli_invocation *cli, cli_inputs *inputs) {
  for (uint32_t i = 0; inputs->tensors != NULL && i < inputs->count; ++i) clv__release(cli->allocator, inputs->tensors[i].data);
  *inputs = (cli_inputs){0};
}

/* ---- Sizes ---- */

/* Parses "1x3x224x224" (or with commas); "" is a scalar. */
static bool parse_shape(const char *text, clv_size *size) {
  size->rank = 0;
  while (*text != '\0') {
    char *end;
    if (*text < '0' || *text > '9' || size->rank == CLV_MAX_RANK) return false;
    unsigned long long dim = strtoull(text, &end, 10);
    if (dim > (unsigned long long)INT64_MAX / 2) return false;
    size->dims[size->rank++] = (int64_t)dim;
    if (*end != '\0' && *end != 'x' && *end != ',') return false;
    if (*end != '\0' && end[1] == '\0') return false;
    text = *end == '\0' ? end : end + 1;
  }
  return true;
}

static clv_status shape_option(cli_invocation *cli, const clv_graph *graph, const char *text, clv_size *size, clv_error *error) {
  const char *rest;
  uint32_t index = split_name(graph, text, &rest);
  if (index == CLV__NO_ID) return no_such_input(graph, "shape", NULL, text, error);
  *size = (clv_size){.name = graph->values[graph->inputs[index]].name};
  if (parse_shape(rest, size)) return CLV_OK;
  return cli_usage(cli, error, "option '--shape': '%s' is not a shape of at most %d sizes, such as 1x3x224x224", rest,
                   CLV_MAX_RANK);
}

static clv_status dim_option(cli_invocation *cli, const char *text, clv_size *size, clv_error *error) {
  const char *equals = strrchr(text, '=');
  char *name = clv__arena_string(&cli->arena, text, (size_t)(equals - text));
  if (name == NULL) return clv__error_memory(error, strlen(text));
  *size = (clv_size){.name = name, .is_symbol = true};
  if (parse_shape(equals + 1, size) && size->rank == 1) return CLV_OK;
  return cli_usage(cli, error, "option '--dim': '%s' is not a size", equals + 1);
}

/* Returns the size given for a symbolic dimension, or -1 if none is given. `dim` encodes symbol s as -2 - s. */
static int64_t bound_size(const clv_graph *graph, const clv_size *sizes, uint32_t count, int64_t dim) {
  uint64_t symbol = (uint64_t)(-2 - dim);
  for (uint32_t i = 0; i < count; ++i) {
    if (sizes[i].is_symbol) {
      if (symbol < graph->symbol_count && strcmp(sizes[i].name, graph->symbols[symbol]) == 0) return sizes[i].dims[0];
      continue;
    }
    uint32_t input = find_input(graph, sizes[i].name, strlen(sizes[i].name));
    if (input == CLV__NO_ID) continue;
    const clv_tensor *type = &graph->values[graph->inputs[input]].type;
    for (int32_t d = 0; d < type->rank && d < sizes[i].rank; ++d) {
      if (type->dims[d] == dim && sizes[i].dims[d] >= 0) return sizes[i].dims[d];
    }
  }
  return -1;
}

static bool has_shape(const clv_size *sizes, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!sizes[i].is_symbol && strcmp(sizes[i].name, name) == 0) return true;
  }
  return false;
}

/* If an input has open sizes and no given shape, appends a shape for it to `sizes`, in which sizes that are not given are 1.
 * Then appends the input's name and shape to `noted`. */
static clv_status complete(const clv_graph *graph, const clv__value *input, clv_size *sizes, uint32_t *count, clv__text *noted,
                           clv_error *error) {
  const clv_tensor *type = &input->type;
  if (type->data != NULL || clv__tensor_is_static(type) || has_shape(sizes, *count, input->name)) return CLV_OK;
  if (type->dtype == CLV_DTYPE_NONE) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "input '%s' is not a tensor, or has an unsupported element type",
                          input->name);
  }
  if (type->rank < 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' has no declared rank: give --shape '%s=...' or --input",
                          input->name, input->name);
  }
  clv_size size = {.name = input->name, .rank = type->rank};
  bool invented = false;
  for (int32_t d = 0; d < type->rank; ++d) {
    size.dims[d] = type->dims[d];
    if (size.dims[d] >= 0) continue;
    if (size.dims[d] != CLV_DIM_UNKNOWN) size.dims[d] = bound_size(graph, sizes, *count, size.dims[d]);
    if (size.dims[d] < 0) {
      size.dims[d] = 1;
      invented = true;
    }
  }
  sizes[(*count)++] = size;
  if (!invented) return CLV_OK;
  clv_tensor made = clv__tensor_make(type->dtype, size.rank, size.dims, NULL);
  clv__text_append(noted, "%s'", noted->size_bytes > 0 ? ", " : "");
  clv__label_short(noted, input->name, 40);
  clv__text_append(noted, "' ");
  clv__label_type(noted, graph, &made);
  return CLV_OK;
}

clv_status cli_inputs_sizes(cli_invocation *cli, const clv_graph *graph, const cli_inputs *inputs, bool static_sizes,
                            clv_size **sizes, uint32_t *count, clv_error *error) {
  const cli_given *shapes = &cli->options->given[OPTION_SHAPE], *dims = &cli->options->given[OPTION_DIM];
  size_t most = (size_t)shapes->count + dims->count + 3 * (size_t)graph->input_count;
  *count = 0;
  *sizes = clv__arena_allocate_zero(&cli->arena, most, sizeof **sizes);
  if (*sizes == NULL) return clv__error_memory(error, most * sizeof **sizes);
  for (uint32_t i = 0; i < dims->count; ++i) CLV__TRY(dim_option(cli, dims->values[i], &(*sizes)[(*count)++], error));
  for (uint32_t i = 0; i < shapes->count; ++i)
    CLV__TRY(shape_option(cli, graph, shapes->values[i], &(*sizes)[(*count)++], error));
  CLV__TRY(cli_batch_sizes(cli, graph, *sizes, count, error));
  for (uint32_t i = 0; i < inputs->count; ++i) {
    if (!inputs->is_given[i]) continue;
    clv_size *size = &(*sizes)[(*count)++];
    *size = (clv_size){.name = graph->values[graph->inputs[i]].name, .rank = inputs->tensors[i].rank};
    memcpy(size->dims, inputs->tensors[i].dims, sizeof size->dims);
  }
  if (!static_sizes) return CLV_OK;
  clv__text noted;
  clv__text_init(&noted, cli->allocator);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < graph->input_count; ++i) {
    status = complete(graph, &graph->values[graph->inputs[i]], *sizes, count, &noted, error);
  }
  if (status == CLV_OK && noted.size_bytes > 0) {
    cli_note(cli, "open sizes are set to 1: %s (set them with --shape, --dim or --input)", noted.data);
  }
  clv__text_finish(&noted);
  return status;
}

clv_status cli_inputs_check_sizes(cli_invocation *cli, const cli_job *job, clv_error *error) {
  int64_t *bindings = clv__arena_allocate(&cli->arena, (size_t)job->graph->symbol_count * sizeof *bindings);
  clv__shape_given *given = clv__arena_allocate_zero(&cli->arena, job->size_count, sizeof *given);
  if (bindings == NULL || given == NULL) return clv__error_memory(error, job->size_count * sizeof *given);
  for (uint32_t i = 0; i < job->size_count; ++i) {
    const clv_size *size = &job->sizes[i];
    given[i] = (clv__shape_given){.name = size->name, .is_symbol = size->is_symbol, .rank = size->rank};
    memcpy(given[i].dims, size->dims, sizeof given[i].dims);
  }
  return clv__given_bind(job->graph, given, job->size_count, bindings, error);
}

/* ---- Random numbers ---- */

static void fill_random(clv_tensor *tensor, size_t count, uint64_t state) {
  clv__small_clear(tensor);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = clv__random(&state);
    clv__tensor_put(tensor, i, (double)(bits >> 40) / 8388608.0 - 1.0 /* exact in f32 */, (int64_t)(bits >> 33) % 10,
                    bits >> 63 != 0);
  }
}

/* ---- Buckets ---- */

/* Returns the size that a symbol has in the inputs of this run, or -1 if no input uses the symbol. */
static int64_t size_of_run(const cli_job *job, uint32_t symbol) {
  for (uint32_t i = 0; i < job->inputs.count; ++i) {
    const clv_tensor *type = &job->plan->shapes->types[job->graph->inputs[i]], *is = &job->inputs.tensors[i];
    for (int32_t d = 0; d < type->rank && d < is->rank; ++d) {
      if (type->dims[d] == CLV_DIM_SYMBOL(symbol)) return is->dims[d];
    }
  }
  return -1;
}

/* Reports the padded sizes that devices with static shapes use for sizes that the plan leaves open. */
static clv_status note_buckets(cli_invocation *cli, const cli_job *job, clv_error *error) {
  clv_session_options options;
  clv__bucket_rule *rule;
  cli_job_session_options(cli, job, &options);
  CLV__TRY(clv__bucket_rule_create(job->plan, options.bucket_multiple, &rule, error));
  if (rule == NULL) {
    if (cli_is_given(cli, OPTION_BUCKET))
      cli_note(cli, "option '--bucket' has no effect: no partition with open sizes is on a device that needs fixed shapes");
    return CLV_OK;
  }
  clv__text text;
  clv__text_init(&text, cli->allocator);
  for (uint32_t s = 0; s < job->graph->symbol_count; ++s) {
    int64_t size = size_of_run(job, s);
    if (size < 0) continue;
    clv__text_append(&text, "%s'", text.size_bytes > 0 ? ", " : "");
    clv__label_short(&text, job->graph->symbols[s], 40);
    clv__text_append(&text, "' %" PRId64 " to %" PRId64, size, clv__bucket_size(rule, s, size));
  }
  if (text.size_bytes > 0) cli_note(cli, "open sizes are padded for devices that need fixed shapes: %s", text.data);
  clv__text_finish(&text);
  clv__bucket_rule_destroy(rule);
  return CLV_OK;
}

/* ---- All inputs ---- */

/* Returns an input's type from the plan, with open sizes taken from the run. */
static clv_tensor type_of_run(const cli_job *job, uint32_t index) {
  const clv_graph *graph = job->graph;
  clv_tensor type = job->plan->shapes->types[graph->inputs[index]];
  type.data = NULL;
  for (uint32_t i = 0; i < job->size_count; ++i) {
    if (job->sizes[i].is_symbol || strcmp(job->sizes[i].name, graph->values[graph->inputs[index]].name) != 0) continue;
    if (type.rank < 0) {
      type.rank = job->sizes[i].rank;
      for (int32_t d = 0; d < type.rank; ++d) type.dims[d] = CLV_DIM_UNKNOWN;
    }
    for (int32_t d = 0; d < type.rank && d < job->sizes[i].rank; ++d) {
      if (type.dims[d] < 0) type.dims[d] = job->sizes[i].dims[d];
    }
  }
  return type;
}

clv_status cli_inputs_fill(cli_invocation *cli, cli_job *job, uint64_t seed, clv_error *error) {
  const clv_graph *graph = job->graph;
  cli_inputs *inputs = &job->inputs;
  for (uint32_t i = 0; i < inputs->count; ++i) {
    const clv__value *value = &graph->values[graph->inputs[i]];
    if (inputs->is_given[i] || value->type.data != NULL) continue;
    clv_tensor type = type_of_run(job, i);
    size_t count, size_bytes;
    if (type.dtype == CLV_STRING || type.dtype == CLV_DTYPE_NONE || type.rank < 0) {
      return clv__error_set(error, CLV_NOT_SUPPORTED,
                            "input '%s' (%s) cannot be filled with random numbers: give it with --input", value->name,
                            clv_dtype_name(type.dtype));
    }
    if (!clv__tensor_count(&type, &count) || !clv__tensor_size_bytes(&type, &size_bytes)) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is too large for this machine", value->name);
    }
    type.data = clv__allocate(cli->allocator, size_bytes);
    if (type.data == NULL) return clv__error_prefix(error, clv__error_memory(error, size_bytes), "input '%s'", value->name);
    uint64_t state =
        seed ^ ((uint64_t)i + 1) * 0xd1342543de82ef95u; /* makes an input's numbers independent of the other inputs */
    fill_random(&type, count, state);
    inputs->tensors[i] = type;
  }
  return note_buckets(cli, job, error);
}
