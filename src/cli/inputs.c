/* Makes the inputs of a run, from files or from random numbers. See job.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/graph_contents.h"
#include "cleave/label.h"
#include "cleave/plan_contents.h"
#include "cleave/tensors.h"
#include "cli/console.h"
#include "cli/job.h"

enum { ALIGNMENT = 64, NAME_COLUMNS = 40, LABEL_BYTES = 1900 };

/* ---- Files ---- */

static uint32_t find_input(const clv_graph *graph, const char *name, size_t length) {
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) {
    const char *input = clv_graph_input_name(graph, i);
    if (strlen(input) == length && strncmp(input, name, length) == 0) return i;
  }
  return CLV_NO_INDEX;
}

/* Counts the inputs without a default, and sets *one to the last of them. */
static uint32_t count_needed(const clv_graph *graph, uint32_t *one) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) {
    if (clv_graph_input_type(graph, i)->data != NULL) continue;
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
  for (uint32_t i = 0; i < clv_graph_input_count(graph) && used < sizeof list; ++i) {
    int written = snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", clv_graph_input_name(graph, i));
    used += written < 0 ? 0 : (size_t)written;
  }
  if (path != NULL)
    return cli_error_set(error, CLV_NOT_FOUND, "option '--%s': array '%s' of %s is not an input; the model's inputs: %s", option,
                         text, path, clv_graph_input_count(graph) > 0 ? list : "none");
  return cli_error_set(error, CLV_NOT_FOUND,
                       "option '--%s': '%s' does not start with the name of an input; the model's inputs: %s", option, text,
                       clv_graph_input_count(graph) > 0 ? list : "none");
}

/* Finds the input that "NAME=REST" refers to. Names may contain `=`, so it tries every `=`. */
static uint32_t split_name(const clv_graph *graph, const char *text, const char **rest) {
  for (const char *equals = strchr(text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
    uint32_t input = find_input(graph, text, (size_t)(equals - text));
    *rest = equals + 1;
    if (input != CLV_NO_INDEX) return input;
  }
  return CLV_NO_INDEX;
}

/* Takes the value of an input from a file. If an input is given twice, the last value wins. */
static clv_status take(const clv_graph *graph, uint32_t index, const char *path, const clv_tensor *tensor, cli_inputs *inputs,
                       clv_error *error) {
  const char *name = clv_graph_input_name(graph, index);
  const clv_dtype dtype = clv_graph_input_type(graph, index)->dtype;
  if (dtype != CLV_DTYPE_NONE && dtype != tensor->dtype) {
    return cli_error_set(error, CLV_INVALID_ARGUMENT, "input '%s': %s contains %s, but the model expects %s", name, path,
                         clv_dtype_name(tensor->dtype), clv_dtype_name(dtype));
  }
  inputs->tensors[index] = *tensor;
  inputs->is_given[index] = true;
  return CLV_OK;
}

/* Opens a file, which `inputs` closes. */
static clv_status open_file(cli_invocation *cli, const char *path, clv_array_format format, cli_inputs *inputs,
                            clv_arrays **arrays, clv_error *error) {
  CLI_TRY(clv_arrays_open(cli->context, path, format, arrays, error));
  inputs->files[inputs->file_count++] = *arrays;
  return CLV_OK;
}

/* Reads the arrays of an npz file: only the array of input `only` or, if `only` is CLV_NO_INDEX, all arrays, each for the input
 * with the same name. */
static clv_status read_npz(cli_invocation *cli, const clv_graph *graph, const char *path, uint32_t only, cli_inputs *inputs,
                           clv_error *error) {
  clv_arrays *arrays;
  CLI_TRY(open_file(cli, path, CLV_ARRAYS_NPZ, inputs, &arrays, error));
  for (uint32_t i = 0; i < clv_arrays_count(arrays); ++i) {
    const char *name = clv_arrays_name(arrays, i);
    clv_tensor tensor;
    uint32_t index = find_input(graph, name, strlen(name));
    if (only != CLV_NO_INDEX && index != only && clv_arrays_count(arrays) > 1) continue;
    if (only != CLV_NO_INDEX) index = only;
    if (index == CLV_NO_INDEX) return no_such_input(graph, "input", path, name, error);
    CLI_TRY(clv_arrays_tensor(arrays, i, &tensor, error));
    CLI_TRY(take(graph, index, path, &tensor, inputs, error));
    if (only != CLV_NO_INDEX) return CLV_OK;
  }
  if (only == CLV_NO_INDEX) return CLV_OK;
  return cli_error_set(error, CLV_NOT_FOUND, "%s has several arrays, and none is named '%s'", path,
                       clv_graph_input_name(graph, only));
}

static clv_status read_one(cli_invocation *cli, const clv_graph *graph, const char *text, cli_inputs *inputs, clv_error *error) {
  const char *path = text;
  uint32_t only = 0, index = split_name(graph, text, &path);
  const bool is_path = strchr(text, '=') == NULL || access(text, F_OK) == 0;
  if (index == CLV_NO_INDEX && is_path && clv_arrays_recognise(text) == CLV_ARRAYS_NPZ)
    return read_npz(cli, graph, text, CLV_NO_INDEX, inputs, error);
  if (index == CLV_NO_INDEX && is_path && count_needed(graph, &only) == 1) {
    index = only;
    path = text;
  }
  if (index == CLV_NO_INDEX) return no_such_input(graph, "input", NULL, text, error);
  const clv_array_format format = clv_arrays_recognise(path);
  if (format == CLV_ARRAYS_UNKNOWN) return cli_usage(cli, error, "option '--input': '%s' is not a .npy, .npz or .pb file", path);
  if (format == CLV_ARRAYS_NPZ) return read_npz(cli, graph, path, index, inputs, error);
  clv_arrays *arrays;
  clv_tensor tensor;
  clv_status status = open_file(cli, path, format, inputs, &arrays, error);
  if (status == CLV_OK) status = clv_arrays_tensor(arrays, 0, &tensor, error);
  if (status != CLV_OK) return cli_error_prefix(error, status, "input '%s'", clv_graph_input_name(graph, index));
  return take(graph, index, path, &tensor, inputs, error);
}

clv_status cli_inputs_read(cli_invocation *cli, const clv_graph *graph, cli_inputs *inputs, clv_error *error) {
  const cli_given *given = &cli->options->given[OPTION_INPUT];
  inputs->count = clv_graph_input_count(graph);
  inputs->tensors = cli_arena_allocate_zero(&cli->arena, inputs->count, sizeof *inputs->tensors);
  inputs->is_given = cli_arena_allocate_zero(&cli->arena, inputs->count, sizeof *inputs->is_given);
  inputs->made = cli_arena_allocate_zero(&cli->arena, inputs->count, sizeof *inputs->made);
  inputs->files = cli_arena_allocate_zero(&cli->arena, given->count, sizeof *inputs->files);
  if (inputs->tensors == NULL || inputs->is_given == NULL || inputs->made == NULL || inputs->files == NULL)
    return cli_error_memory(error, inputs->count * sizeof(clv_tensor));
  for (uint32_t i = 0; i < given->count; ++i) CLI_TRY(read_one(cli, graph, given->values[i], inputs, error));
  return CLV_OK;
}

void cli_inputs_finish(cli_inputs *inputs) {
  for (uint32_t i = 0; inputs->made != NULL && i < inputs->count; ++i) free(inputs->made[i]);
  for (uint32_t i = 0; i < inputs->file_count; ++i) clv_arrays_close(inputs->files[i]);
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
  if (index == CLV_NO_INDEX) return no_such_input(graph, "shape", NULL, text, error);
  *size = (clv_size){.name = clv_graph_input_name(graph, index)};
  if (parse_shape(rest, size)) return CLV_OK;
  return cli_usage(cli, error, "option '--shape': '%s' is not a shape of at most %d sizes, such as 1x3x224x224", rest,
                   CLV_MAX_RANK);
}

static clv_status dim_option(cli_invocation *cli, const char *text, clv_size *size, clv_error *error) {
  const char *equals = strrchr(text, '=');
  char *name = cli_arena_string(&cli->arena, text, (size_t)(equals - text));
  if (name == NULL) return cli_error_memory(error, strlen(text));
  *size = (clv_size){.name = name, .is_symbol = true};
  if (parse_shape(equals + 1, size) && size->rank == 1) return CLV_OK;
  return cli_usage(cli, error, "option '--dim': '%s' is not a size", equals + 1);
}

/* Returns the size given for a symbolic dimension, or -1 if none is given. */
static int64_t bound_size(const clv_graph *graph, const clv_size *sizes, uint32_t count, int64_t dim) {
  const char *symbol = clv_graph_symbol_name(graph, (uint32_t)(-2 - dim));
  for (uint32_t i = 0; i < count; ++i) {
    if (sizes[i].is_symbol) {
      if (symbol != NULL && strcmp(sizes[i].name, symbol) == 0) return sizes[i].dims[0];
      continue;
    }
    uint32_t input = find_input(graph, sizes[i].name, strlen(sizes[i].name));
    if (input == CLV_NO_INDEX) continue;
    const clv_tensor *type = clv_graph_input_type(graph, input);
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

static bool is_static(const clv_tensor *type) {
  for (int32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] < 0) return false;
  }
  return type->rank >= 0;
}

/* Appends "'input' f32[1,3]" to the list of what a note is about. A list that is too long is cut. */
static void note_type(const char *name, const clv_graph *graph, const clv_tensor *type, char list[LABEL_BYTES]) {
  char label[200], text[200];
  const size_t used = strlen(list);
  (void)clv_label_name(name, NAME_COLUMNS, label, sizeof label);
  (void)clv_tensor_type_text(graph, type, text, sizeof text);
  snprintf(list + used, LABEL_BYTES - used, "%s'%s' %s", used > 0 ? ", " : "", label, text);
}

/* If an input has open sizes and no given shape, appends a shape for it to `sizes`, in which sizes that are not given are 1.
 * Then appends the input's name and shape to `noted`. */
static clv_status complete(const clv_graph *graph, uint32_t index, clv_size *sizes, uint32_t *count, char noted[LABEL_BYTES],
                           clv_error *error) {
  const clv_tensor *type = clv_graph_input_type(graph, index);
  const char *name = clv_graph_input_name(graph, index);
  if (type->data != NULL || is_static(type) || has_shape(sizes, *count, name)) return CLV_OK;
  if (type->dtype == CLV_DTYPE_NONE) {
    return cli_error_set(error, CLV_NOT_SUPPORTED, "input '%s' is not a tensor, or has an unsupported element type", name);
  }
  if (type->rank < 0) {
    return cli_error_set(error, CLV_INVALID_ARGUMENT, "input '%s' has no declared rank: give --shape '%s=...' or --input", name,
                         name);
  }
  clv_size size = {.name = name, .rank = type->rank};
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
  clv_tensor made = {.dtype = type->dtype, .rank = size.rank};
  memcpy(made.dims, size.dims, sizeof made.dims);
  note_type(name, graph, &made, noted);
  return CLV_OK;
}

clv_status cli_inputs_sizes(cli_invocation *cli, const clv_graph *graph, const cli_inputs *inputs, bool static_sizes,
                            clv_size **sizes, uint32_t *count, clv_error *error) {
  const cli_given *shapes = &cli->options->given[OPTION_SHAPE], *dims = &cli->options->given[OPTION_DIM];
  size_t most = (size_t)shapes->count + dims->count + 3 * (size_t)clv_graph_input_count(graph);
  *count = 0;
  *sizes = cli_arena_allocate_zero(&cli->arena, most, sizeof **sizes);
  if (*sizes == NULL) return cli_error_memory(error, most * sizeof **sizes);
  for (uint32_t i = 0; i < dims->count; ++i) CLI_TRY(dim_option(cli, dims->values[i], &(*sizes)[(*count)++], error));
  for (uint32_t i = 0; i < shapes->count; ++i) CLI_TRY(shape_option(cli, graph, shapes->values[i], &(*sizes)[(*count)++], error));
  CLI_TRY(cli_batch_sizes(cli, graph, *sizes, count, error));
  for (uint32_t i = 0; i < inputs->count; ++i) {
    if (!inputs->is_given[i]) continue;
    clv_size *size = &(*sizes)[(*count)++];
    *size = (clv_size){.name = clv_graph_input_name(graph, i), .rank = inputs->tensors[i].rank};
    memcpy(size->dims, inputs->tensors[i].dims, sizeof size->dims);
  }
  if (!static_sizes) return CLV_OK;
  char noted[LABEL_BYTES] = "";
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) CLI_TRY(complete(graph, i, *sizes, count, noted, error));
  if (noted[0] != '\0') cli_note(cli, "open sizes are set to 1: %s (set them with --shape, --dim or --input)", noted);
  return CLV_OK;
}

/* ---- Buckets ---- */

static uint32_t count_symbols(const clv_graph *graph) {
  uint32_t count = 0;
  while (clv_graph_symbol_name(graph, count) != NULL) ++count;
  return count;
}

/* Returns the size that a symbol has in the inputs of this run, or -1 if no input uses the symbol. */
static int64_t size_of_run(const cli_job *job, uint32_t symbol) {
  for (uint32_t i = 0; i < job->inputs.count; ++i) {
    const clv_tensor *type = clv_plan_input_type(job->plan, i), *is = &job->inputs.tensors[i];
    for (int32_t d = 0; d < type->rank && d < is->rank; ++d) {
      if (type->dims[d] == CLV_DIM_SYMBOL(symbol)) return is->dims[d];
    }
  }
  return -1;
}

/* Reports the padded sizes that devices with static shapes use for sizes that the plan leaves open. */
static clv_status note_buckets(cli_invocation *cli, const cli_job *job, clv_error *error) {
  const uint32_t count = count_symbols(job->graph);
  int64_t *sizes = cli_arena_allocate_zero(&cli->arena, count, sizeof *sizes);
  clv_session_options options;
  char text[LABEL_BYTES] = "", label[200];
  bool pads;
  if (sizes == NULL) return cli_error_memory(error, count * sizeof *sizes);
  for (uint32_t s = 0; s < count; ++s) sizes[s] = size_of_run(job, s);
  cli_job_session_options(cli, job, &options);
  CLI_TRY(clv_plan_pad_sizes(job->plan, options.bucket_multiple, sizes, count, &pads, error));
  if (!pads && cli_is_given(cli, OPTION_BUCKET))
    cli_note(cli, "option '--bucket' has no effect: no partition with open sizes is on a device that needs fixed shapes");
  for (uint32_t s = 0; pads && s < count; ++s) {
    const size_t used = strlen(text);
    if (sizes[s] < 0) continue;
    (void)clv_label_name(clv_graph_symbol_name(job->graph, s), NAME_COLUMNS, label, sizeof label);
    snprintf(text + used, sizeof text - used, "%s'%s' %" PRId64 " to %" PRId64, used > 0 ? ", " : "", label, size_of_run(job, s),
             sizes[s]);
  }
  if (text[0] != '\0') cli_note(cli, "open sizes are padded for devices that need fixed shapes: %s", text);
  return CLV_OK;
}

/* ---- All inputs ---- */

/* Returns an input's type from the plan, with open sizes taken from the run. */
static clv_tensor type_of_run(const cli_job *job, uint32_t index) {
  clv_tensor type = *clv_plan_input_type(job->plan, index);
  type.data = NULL;
  for (uint32_t i = 0; i < job->size_count; ++i) {
    if (job->sizes[i].is_symbol || strcmp(job->sizes[i].name, clv_graph_input_name(job->graph, index)) != 0) continue;
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

/* Makes an input of random numbers, which are independent of the other inputs. */
static clv_status make_random(cli_job *job, uint32_t index, uint64_t seed, clv_error *error) {
  const char *name = clv_graph_input_name(job->graph, index);
  clv_tensor type = type_of_run(job, index);
  size_t size_bytes;
  if (type.dtype == CLV_STRING || type.dtype == CLV_DTYPE_NONE || type.rank < 0) {
    return cli_error_set(error, CLV_NOT_SUPPORTED, "input '%s' (%s) cannot be filled with random numbers: give it with --input",
                         name, clv_dtype_name(type.dtype));
  }
  if (!clv_tensor_size_bytes(&type, &size_bytes) || size_bytes > SIZE_MAX - ALIGNMENT)
    return cli_error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is too large for this machine", name);
  type.data = job->inputs.made[index] = aligned_alloc(ALIGNMENT, (size_bytes / ALIGNMENT + 1) * ALIGNMENT);
  if (type.data == NULL) return cli_error_prefix(error, cli_error_memory(error, size_bytes), "input '%s'", name);
  job->inputs.tensors[index] = type;
  return clv_tensor_fill_random(&type, seed ^ ((uint64_t)index + 1) * 0xd1342543de82ef95u, error);
}

clv_status cli_inputs_fill(cli_invocation *cli, cli_job *job, uint64_t seed, clv_error *error) {
  for (uint32_t i = 0; i < job->inputs.count; ++i) {
    if (job->inputs.is_given[i] || clv_graph_input_type(job->graph, i)->data != NULL) continue;
    CLI_TRY(make_random(job, i, seed, error));
  }
  return note_buckets(cli, job, error);
}
