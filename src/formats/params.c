/* Reads weights from separate files. See params.h. */
#include "formats/params.h"

#include "formats/arrays/npz.h"
#include "formats/arrays/safetensors.h"

typedef struct source {
  const char *path;
  clv__safetensors *safetensors; /* either `safetensors` or `npz` is set; the other is NULL */
  clv__npz *npz;
  bool is_owned; /* the graph owns the mapping of the safetensors file */
} source;

struct clv__params {
  const clv_allocator *allocator;
  clv__arena arena;
  source *sources;
  uint32_t count;
  const clv_tensor *tensors; /* in the caller's memory, instead of sources; NULL if there are sources */
  clv__map tensor_index;     /* names of `tensors` -> their indices */
  bool is_copied;            /* the graph copies the data of `tensors` */
};

static clv_status is_zip(const char *path, bool *zip, clv_error *error) {
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  *zip = map.size_bytes >= 4 && map.data[0] == 'P' && map.data[1] == 'K' && map.data[2] < 9;
  clv__file_map_close(&map);
  return CLV_OK;
}

static clv_status open_source(clv__params *params, source *s, const char *path, clv_error *error) {
  bool zip;
  CLV__TRY(is_zip(path, &zip, error));
  s->path = clv__arena_string(&params->arena, path, strlen(path));
  if (s->path == NULL) return clv__error_memory(error, strlen(path));
  if (zip) return clv__npz_open(params->allocator, path, &s->npz, error);
  return clv__safetensors_open(params->allocator, path, &s->safetensors, error);
}

clv_status clv__params_open(const clv_allocator *allocator, const char *const *paths, uint32_t count, clv__params **params,
                            clv_error *error) {
  *params = NULL;
  if (count > CLV__PARAMS_MAX_FILES) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weight files are given; the maximum is %d", count,
                          CLV__PARAMS_MAX_FILES);
  }
  clv__params *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  clv__arena_init(&made->arena, allocator);
  clv__map_init(&made->tensor_index, allocator);
  made->sources = clv__arena_allocate_zero(&made->arena, count, sizeof *made->sources);
  clv_status status = made->sources == NULL ? clv__error_memory(error, count * sizeof *made->sources) : CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i)
    status = open_source(made, &made->sources[made->count++], paths[i], error);
  if (status == CLV_OK)
    *params = made;
  else
    clv__params_close(made);
  return status;
}

clv_status clv__params_wrap(const clv_allocator *allocator, const char *const *names, const clv_tensor *tensors, uint32_t count,
                            clv_ownership ownership, clv__params **params, clv_error *error) {
  *params = NULL;
  clv__params *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  made->tensors = tensors;
  made->is_copied = ownership == CLV_COPY;
  clv__arena_init(&made->arena, allocator);
  clv__map_init(&made->tensor_index, allocator);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
    if (clv__map_find(&made->tensor_index, names[i]) != CLV__MAP_NONE) continue; /* the first one is used */
    if (!clv__map_set(&made->tensor_index, names[i], i)) status = clv__error_memory(error, sizeof(clv__map_slot));
  }
  if (status == CLV_OK)
    *params = made;
  else
    clv__params_close(made);
  return status;
}

void clv__params_close(clv__params *params) {
  if (params == NULL) return;
  for (uint32_t i = 0; i < params->count; ++i) {
    clv__safetensors_close(params->sources[i].safetensors);
    clv__npz_close(params->sources[i].npz);
  }
  clv__map_finish(&params->tensor_index);
  clv__arena_finish(&params->arena);
  clv__release(params->allocator, params);
}

static bool source_has(const source *s, const char *name) {
  if (s->safetensors != NULL) return clv__safetensors_has(s->safetensors, name);
  for (size_t i = 0; i < clv__npz_count(s->npz); ++i) {
    if (strcmp(clv__npz_name(s->npz, i), name) == 0) return true;
  }
  return false;
}

static source *find(const clv__params *params, const char *name) {
  for (uint32_t i = 0; i < params->count; ++i) {
    if (source_has(&params->sources[i], name)) return &params->sources[i];
  }
  return NULL;
}

bool clv__params_has(const clv__params *params, const char *name) {
  if (params->tensors != NULL) return clv__map_find(&params->tensor_index, name) != CLV__MAP_NONE;
  return find(params, name) != NULL;
}

/* Reads a tensor in place. When the first tensor of a file is read, the graph takes ownership of the file's mapping. */
static clv_status read_mapped(source *s, clv__builder *builder, const char *name, clv_tensor *tensor, clv_error *error) {
  CLV__TRY(clv__safetensors_read(s->safetensors, name, tensor, error));
  if (s->is_owned) return CLV_OK;
  clv__file_map map = clv__safetensors_take_map(s->safetensors);
  clv_status status = clv__builder_own_map(builder, &map, s->path, error);
  if (status != CLV_OK) clv__file_map_close(&map);
  s->is_owned = status == CLV_OK;
  return status;
}

/* Copies the data of a tensor into the graph's arena. */
static clv_status copy_data(clv__builder *builder, clv_tensor *tensor, size_t size_bytes, clv_error *error) {
  void *copy = clv__arena_allocate_data(clv__builder_arena(builder), size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(copy, tensor->data, size_bytes);
  tensor->data = copy;
  return CLV_OK;
}

static clv_status read_copied(const clv__params *params, const source *s, clv__builder *builder, const char *name,
                              clv_tensor *tensor, clv_error *error) {
  CLV__TRY(clv__npz_read(s->npz, name, tensor, error));
  size_t size_bytes = 0;
  void *data = tensor->data;
  bool sized = tensor->dtype != CLV_STRING && clv__tensor_size_bytes(tensor, &size_bytes);
  clv_status status =
      sized ? copy_data(builder, tensor, size_bytes, error)
            : clv__error_set(error, CLV_INVALID_MODEL, "%s: array '%.200s' does not contain numbers", s->path, name);
  clv__release(params->allocator, data);
  if (status != CLV_OK) tensor->data = NULL;
  return status;
}

/* Reads a tensor of the caller's memory. */
static clv_status read_wrapped(const clv__params *params, clv__builder *builder, const char *name, const clv_tensor *type,
                               clv_tensor *bound, clv_error *error) {
  uint32_t index = clv__map_find(&params->tensor_index, name);
  if (index == CLV__MAP_NONE) return clv__error_set(error, CLV_NOT_FOUND, "no tensor '%.200s' is given for the weight", name);
  clv_tensor tensor = params->tensors[index];
  size_t size_bytes;
  if (!clv__tensor_same_type(&tensor, type)) {
    char has[128], wanted[128];
    clv__tensor_text(&tensor, has, sizeof has);
    clv__tensor_text(type, wanted, sizeof wanted);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the tensor given for weight '%.200s' is %s, but the model needs %s", name,
                          has, wanted);
  }
  if (!clv__tensor_size_bytes(type, &size_bytes) || (tensor.data == NULL && size_bytes > 0)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the tensor given for weight '%.200s' has no data", name);
  }
  /* A graph takes NULL for a weight that is missing. */
  if (params->is_copied || tensor.data == NULL) CLV__TRY(copy_data(builder, &tensor, size_bytes, error));
  *bound = tensor;
  return CLV_OK;
}

clv_status clv__params_bind(clv__params *params, clv__builder *builder, const char *name, const clv_tensor *type,
                            clv_tensor *bound, clv_error *error) {
  *bound = (clv_tensor){0};
  if (params->tensors != NULL) return read_wrapped(params, builder, name, type, bound, error);
  source *s = find(params, name);
  if (s == NULL) return clv__error_set(error, CLV_NOT_FOUND, "no weight file has a tensor '%.200s'", name);
  clv_tensor read;
  if (s->safetensors != NULL)
    CLV__TRY(read_mapped(s, builder, name, &read, error));
  else
    CLV__TRY(read_copied(params, s, builder, name, &read, error));
  if (read.dtype == CLV_U16 && type->dtype == CLV_BF16) read.dtype = CLV_BF16;
  if (!clv__tensor_same_type(&read, type)) {
    char has[128], wanted[128];
    clv__tensor_text(&read, has, sizeof has);
    clv__tensor_text(type, wanted, sizeof wanted);
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: tensor '%.200s' is %s, but the model needs %s", s->path, name, has,
                          wanted);
  }
  *bound = read;
  return CLV_OK;
}
