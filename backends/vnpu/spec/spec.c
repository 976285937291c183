/* Reads a device's description (json.c and operators.c read its members) and its options. Every mistake is reported with its
 * position and the allowed values. */
#include "spec.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/tensor/tensor.h"
#include "base/text.h"
#include "json.h"

enum { MAX_SPEC_BYTES = 1 << 24 };

static clv_status read_operator_speeds(clv__spec_reader *r, json_t *object, clv__vnpu_speed *speed) {
  static const char *const keys[] = {"us", "ns_per_row", "ns_per_edge", NULL};
  json_t *map = json_object_get(object, "operators"), *figures;
  const char *name;
  if (map == NULL) return CLV_OK;
  clv__spec_push(r, "operators");
  if (!json_is_object(map)) return clv__spec_fail(r, "must be an object that maps operators to figures");
  clv__vnpu_operator_speed *items = clv__arena_allocate_zero(&r->spec->arena, json_object_size(map), sizeof *items);
  if (items == NULL && json_object_size(map) > 0) return clv__spec_no_memory(r);
  speed->operators = items;
  json_object_foreach(map, name, figures) {
    clv__vnpu_operator_speed *item = &items[speed->operator_count];
    clv__spec_push(r, name);
    CLV__TRY(clv__spec_check_keys(r, figures, keys));
    CLV__TRY(clv__spec_figure(r, figures, "us", &item->us));
    CLV__TRY(clv__spec_figure(r, figures, "ns_per_row", &item->ns_per_row));
    CLV__TRY(clv__spec_figure(r, figures, "ns_per_edge", &item->ns_per_edge));
    item->name = clv__arena_string(&r->spec->arena, name, strlen(name));
    if (item->name == NULL) return clv__spec_no_memory(r);
    ++speed->operator_count;
    clv__spec_pop(r);
  }
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_speed(clv__spec_reader *r, json_t *root) {
  clv__vnpu_speed *speed = &r->spec->speed;
  *speed = (clv__vnpu_speed){.time_scale = 1, .frequency = 1};
  json_t *object = json_object_get(root, "speed");
  if (object == NULL) return CLV_OK;
  clv__spec_push(r, "speed");
  static const char *const keys[] = {"launch_overhead_us",    "flops_per_second", "bytes_per_second", "copy_latency_us",
                                     "copy_bytes_per_second", "time_scale",       "operators",        NULL};
  CLV__TRY(clv__spec_check_keys(r, object, keys));
  CLV__TRY(clv__spec_figure(r, object, "launch_overhead_us", &speed->launch_overhead_us));
  CLV__TRY(clv__spec_figure(r, object, "flops_per_second", &speed->flops_per_second));
  CLV__TRY(clv__spec_figure(r, object, "bytes_per_second", &speed->bytes_per_second));
  CLV__TRY(clv__spec_figure(r, object, "copy_latency_us", &speed->copy_latency_us));
  CLV__TRY(clv__spec_figure(r, object, "copy_bytes_per_second", &speed->copy_bytes_per_second));
  CLV__TRY(clv__spec_figure(r, object, "time_scale", &speed->time_scale));
  CLV__TRY(read_operator_speeds(r, object, speed));
  speed->given = true;
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_root(clv__spec_reader *r, json_t *root) {
  static const char *const keys[] = {"name",
                                     "description",
                                     "memory_space",
                                     "memory",
                                     "alignment",
                                     "dtypes",
                                     "compute_dtype",
                                     "max_rank",
                                     "operators",
                                     "static_shapes",
                                     "control_flow",
                                     "max_partition_inputs",
                                     "max_partition_nodes",
                                     "computes_views",
                                     "speed",
                                     NULL};
  clv__vnpu_spec *spec = r->spec;
  CLV__TRY(clv__spec_check_keys(r, root, keys));
  CLV__TRY(clv__spec_string(r, root, "name", &spec->name));
  CLV__TRY(clv__spec_string(r, root, "description", &spec->description));
  CLV__TRY(clv__spec_string(r, root, "memory_space", &spec->memory_space));
  CLV__TRY(clv__spec_bytes(r, root, "memory", &spec->memory_bytes));
  int64_t alignment = CLV__ALIGNMENT, rank = CLV_MAX_RANK;
  CLV__TRY(clv__spec_int(r, root, "alignment", 1, 1 << 20, &alignment));
  if ((alignment & (alignment - 1)) != 0) {
    clv__spec_push(r, "alignment");
    return clv__spec_fail(r, "must be a power of two");
  }
  /* Kernels need data aligned to CLV__ALIGNMENT, so a smaller alignment is raised to it. */
  spec->alignment_bytes = alignment < (int64_t)CLV__ALIGNMENT ? CLV__ALIGNMENT : (uint32_t)alignment;
  CLV__TRY(clv__spec_int(r, root, "max_rank", 0, CLV_MAX_RANK, &rank));
  spec->max_rank = (int32_t)rank;
  clv__spec_push(r, "dtypes");
  CLV__TRY(clv__spec_dtypes(r, json_object_get(root, "dtypes"), &spec->dtypes));
  clv__spec_pop(r);
  CLV__TRY(clv__spec_bool(r, root, "static_shapes", &spec->static_shapes));
  CLV__TRY(clv__spec_bool(r, root, "control_flow", &spec->control_flow));
  CLV__TRY(clv__spec_bool(r, root, "computes_views", &spec->computes_views));
  CLV__TRY(clv__spec_u32(r, root, "max_partition_inputs", &spec->max_partition_inputs));
  CLV__TRY(clv__spec_u32(r, root, "max_partition_nodes", &spec->max_partition_nodes));
  const char *compute = "f32";
  CLV__TRY(clv__spec_string(r, root, "compute_dtype", &compute));
  spec->compute_dtype = clv__spec_dtype(compute);
  if (spec->compute_dtype != CLV_F32 && spec->compute_dtype != CLV_F16 && spec->compute_dtype != CLV_BF16) {
    clv__spec_push(r, "compute_dtype");
    return clv__spec_fail(r, "'%.40s' must be f32, f16 or bf16", compute);
  }
  CLV__TRY(read_speed(r, root));
  return clv__spec_operators(r, root);
}

static bool parse_figure(const char *text, double *number) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0) || isinf(value)) return false;
  *number = value;
  return true;
}

static bool parse_count(const char *text, uint64_t *count) {
  uint64_t number = 0;
  if (text[0] == '\0' || strlen(text) > 18) return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    number = number * 10 + (uint64_t)(*text - '0');
  }
  *count = number;
  return true;
}

bool clv__vnpu_guard_default;

const clv_option_info clv__vnpu_options[CLV__VNPU_OPTION_COUNT] = {
    {"frequency", "a number above 0",
     "clock frequency of the speed model: computing times are divided by it (default: as in the description)"},
    {"time_scale", "a number, 0 or more", "factor for the times of the speed model (default: as in the description)"},
    {"memory", "bytes, such as 64M or 1G (0: no limit)", "size of the device memory (default: as in the description)"},
    {"hang", "a launch number from 1, or 0", "for tests: this launch never ends (default: 0, none)"},
    {"fail", "a launch number from 1, or 0", "for tests: this launch fails (default: 0, none)"},
    {"guard", "1 or 0",
     "for tests: device memory is inaccessible while no engine works, and poisoned before each run (default: 0)"},
    {"spec", "default, all or a file", "the device description, as with --npu-spec (default: default)"},
};

const char *clv__vnpu_option_spec(const clv_option *options, uint32_t option_count) {
  const char *text = NULL;
  for (uint32_t i = 0; i < option_count; ++i) {
    if (strcmp(options[i].key, "spec") == 0) text = options[i].value;
  }
  return text;
}

/* Applies one option. The host has already checked that its key is in clv__vnpu_options. */
static clv_status apply_option(clv__vnpu_spec *spec, const clv_option *option, clv_error *error) {
  const char *value = option->value != NULL ? option->value : "";
  bool is_read = true;
  uint32_t i = 0;
  while (i < CLV__VNPU_OPTION_COUNT && strcmp(option->key, clv__vnpu_options[i].key) != 0) ++i;
  switch (i) {
    case 0:
      is_read = parse_figure(value, &spec->speed.frequency) && spec->speed.frequency > 0;
      break;
    case 1:
      is_read = parse_figure(value, &spec->speed.time_scale);
      break;
    case 2:
      is_read = clv__spec_parse_bytes(value, &spec->memory_bytes);
      break;
    case 3:
      is_read = parse_count(value, &spec->hang_at);
      break;
    case 4:
      is_read = parse_count(value, &spec->fail_at);
      break;
    case 5:
      is_read = strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
      spec->is_guarded = value[0] == '1';
      break;
    default: /* "spec" is read before the other options */
      break;
  }
  if (is_read) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "device option %s=%.80s: must be %s", option->key, value,
                        clv__vnpu_options[i].values);
}

/* Writes the description in canonical form, then the settings that options can change. `hang`, `fail` and `guard` are omitted
 * because they do not change programs. */
static clv_status make_canonical(clv__spec_reader *r, json_t *root) {
  clv__vnpu_spec *spec = r->spec;
  char *json = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
  if (json == NULL) return clv__spec_no_memory(r);
  clv__text text;
  clv__text_init(&text, spec->arena.allocator);
  clv__text_append(&text, "%s memory=%llu frequency=%.17g time_scale=%.17g", json, (unsigned long long)spec->memory_bytes,
                   spec->speed.frequency, spec->speed.time_scale);
  free(json);
  if (!text.failed) spec->canonical = clv__arena_string(&spec->arena, text.data, text.size_bytes);
  clv__text_finish(&text);
  return spec->canonical != NULL ? CLV_OK : clv__spec_no_memory(r);
}

static clv_status read_text(clv__spec_reader *r, const clv_option *options, uint32_t option_count) {
  clv__vnpu_spec *spec = r->spec;
  json_error_t problem;
  json_t *root = json_loadb(r->text, r->size_bytes, JSON_REJECT_DUPLICATES, &problem);
  if (root == NULL) {
    return clv__error_set(r->error, CLV_INVALID_ARGUMENT, "%s: line %d: %s", r->file, problem.line, problem.text);
  }
  clv_status status = read_root(r, root);
  for (uint32_t i = 0; i < option_count && status == CLV_OK; ++i) status = apply_option(spec, &options[i], r->error);
  if (status == CLV_OK) status = make_canonical(r, root);
  json_decref(root);
  return status;
}

clv_status clv__vnpu_spec_open(const clv_allocator *allocator, const char *text, const clv_option *options, uint32_t option_count,
                               clv__vnpu_spec *spec, clv_error *error) {
  *spec = (clv__vnpu_spec){.name = "", .description = "virtual NPU", .memory_space = "", .dtypes = CLV__DTYPES_ANY};
  spec->is_guarded = clv__vnpu_guard_default;
  clv__arena_init(&spec->arena, allocator);
  clv__map_init(&spec->index, allocator);
  if (text == NULL) text = "default";
  const char *builtin = clv__vnpu_builtin(text);
  if (builtin == NULL && text[0] == '{') builtin = text;
  clv__file_map file = {0};
  clv_status status = CLV_OK;
  if (builtin == NULL) {
    status = clv__file_map_open(text, &file, error);
    if (status == CLV_NOT_FOUND) clv__error_prefix(error, status, "a device description must be default, all, JSON or a file");
  }
  if (status == CLV_OK && file.size_bytes > MAX_SPEC_BYTES) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: a file of %zu bytes cannot be a device description (maximum %d)",
                            text, file.size_bytes, MAX_SPEC_BYTES);
  }
  if (status == CLV_OK) {
    clv__spec_reader r = {.spec = spec,
                          .arena = &spec->arena,
                          .file = builtin == NULL   ? text
                                  : builtin == text ? "device description"
                                                    : text,
                          .error = error};
    r.text = builtin != NULL ? builtin : file.data != NULL ? (const char *)file.data : "";
    r.size_bytes = builtin != NULL ? strlen(builtin) : file.size_bytes;
    status = read_text(&r, options, option_count);
  }
  clv__file_map_close(&file);
  if (status != CLV_OK) clv__vnpu_spec_finish(spec);
  return status;
}

void clv__vnpu_spec_finish(clv__vnpu_spec *spec) {
  clv__map_finish(&spec->index);
  clv__arena_finish(&spec->arena);
}

const clv__vnpu_operator *clv__vnpu_spec_find(const clv__vnpu_spec *spec, const char *domain, const char *op) {
  char key[256];
  int length = snprintf(key, sizeof key, "%s%s%s", domain, domain[0] != '\0' ? ":" : "", op);
  uint32_t found = CLV__MAP_NONE;
  if (length > 0 && (size_t)length < sizeof key) found = clv__map_find(&spec->index, key);
  if (found != CLV__MAP_NONE) return &spec->operators[found];
  return spec->any_operator ? &spec->operators[spec->operator_count] : NULL;
}
