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

void clv__params_close(clv__params *params) {
  if (params == NULL) return;
  for (uint32_t i = 0; i < params->count; ++i) {
    clv__safetensors_close(params->sources[i].safetensors);
    clv__npz_close(params->sources[i].npz);
  }
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

static clv_status read_copied(const clv__params *params, const source *s, clv__builder *builder, const char *name,
                              clv_tensor *tensor, clv_error *error) {
  CLV__TRY(clv__npz_read(s->npz, name, tensor, error));
  size_t size_bytes = 0;
  void *data = tensor->data, *copy = NULL;
  bool sized = tensor->dtype != CLV_STRING && clv__tensor_size_bytes(tensor, &size_bytes);
  if (sized) copy = clv__arena_allocate_data(clv__builder_arena(builder), size_bytes);
  if (copy != NULL) memcpy(copy, data, size_bytes);
  clv__release(params->allocator, data);
  tensor->data = copy;
  if (!sized) return clv__error_set(error, CLV_INVALID_MODEL, "%s: array '%.200s' does not contain numbers", s->path, name);
  return copy != NULL ? CLV_OK : clv__error_memory(error, size_bytes);
}

clv_status clv__params_bind(clv__params *params, clv__builder *builder, const char *name, const clv_tensor *type,
                            clv_tensor *bound, clv_error *error) {
  *bound = (clv_tensor){0};
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
