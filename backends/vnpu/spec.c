/* Reads a device's description and the options given for it. Every mistake is reported with its place and what would be allowed.
 */
#include "spec.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/tensor.h"
#include "base/text.h"

enum { MAX_DEPTH = 6, MAX_SPEC_BYTES = 1 << 24 };

/* The reader's state: where it is, for messages. */
typedef struct reader {
  clv__vnpu_spec *spec;
  const char *file; /* as messages name it */
  const char *text;
  size_t size_bytes;
  const char *path[MAX_DEPTH];
  int depth;
  clv_error *error;
} reader;

/* "npu.json: line 4: operators.Conv.attributes: …" */
static clv_status fail(reader *r, const char *format, ...) CLV_PRINTF(2, 3);
static clv_status fail(reader *r, const char *format, ...) {
  char what[600], place[200] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  size_t used = 0;
  for (int i = 0; i < r->depth && used < sizeof place; ++i) {
    int written = snprintf(place + used, sizeof place - used, "%s%.60s", i > 0 ? "." : "", r->path[i]);
    if (written < 0) break;
    used += (size_t)written;
  }
  int line = clv__vnpu_locate(r->text, r->size_bytes, r->path, r->depth);
  return clv__error_set(r->error, CLV_INVALID_ARGUMENT, "%s: line %d: %s%s%s", r->file, line > 0 ? line : 1, place,
                        r->depth > 0 ? ": " : "", what);
}

static clv_status no_memory(reader *r) {
  return clv__error_memory(r->error, r->size_bytes);
}

/* Goes down to `key`; every push has its pop on the way that succeeds (a failure needs no more places). */
static void push(reader *r, const char *key) {
  r->path[r->depth++] = key;
}
static void pop(reader *r) {
  --r->depth;
}

/* Every key of `object` must be one of `allowed` (ended by NULL). */
static clv_status check_keys(reader *r, json_t *object, const char *const *allowed) {
  if (!json_is_object(object)) return fail(r, "must be an object");
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    bool known = false;
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; allowed[i] != NULL; ++i) {
      known = known || strcmp(key, allowed[i]) == 0;
      int written = snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", allowed[i]);
      if (written > 0 && used + (size_t)written < sizeof names) used += (size_t)written;
    }
    if (known) continue;
    push(r, key);
    return fail(r, "unknown key (known: %s)", names);
  }
  return CLV_OK;
}

static clv_status read_string(reader *r, json_t *object, const char *key, const char **text) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  push(r, key);
  if (!json_is_string(value)) return fail(r, "must be a string");
  *text = clv__arena_string(&r->spec->arena, json_string_value(value), json_string_length(value));
  if (*text == NULL) return no_memory(r);
  pop(r);
  return CLV_OK;
}

static clv_status read_bool(reader *r, json_t *object, const char *key, bool *flag) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  push(r, key);
  if (!json_is_boolean(value)) return fail(r, "must be true or false");
  *flag = json_is_true(value);
  pop(r);
  return CLV_OK;
}

static clv_status read_int(reader *r, json_t *object, const char *key, int64_t least, int64_t most, int64_t *number) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  push(r, key);
  if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most) {
    return fail(r, "must be a whole number from %lld to %lld", (long long)least, (long long)most);
  }
  *number = json_integer_value(value);
  pop(r);
  return CLV_OK;
}

static clv_status read_u32(reader *r, json_t *object, const char *key, uint32_t *number) {
  int64_t wide = *number;
  CLV__TRY(read_int(r, object, key, 0, UINT32_MAX, &wide));
  *number = (uint32_t)wide;
  return CLV_OK;
}

/* A figure: zero or more. */
static clv_status read_figure(reader *r, json_t *object, const char *key, double *number) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  push(r, key);
  if (!json_is_number(value) || !(json_number_value(value) >= 0)) return fail(r, "must be a number, 0 or more");
  *number = json_number_value(value);
  pop(r);
  return CLV_OK;
}

/* "1073741824", "64M", "1 GiB". False when it is none, or above 2^62. */
static bool parse_bytes(const char *text, uint64_t *size_bytes) {
  if (*text < '0' || *text > '9') return false;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0) return false;
  while (*end == ' ') ++end;
  static const char units[] = "KMGT";
  unsigned shift = 0;
  const char *unit = *end == '\0' ? NULL : strchr(units, *end & ~0x20);
  if (unit != NULL && *unit != '\0') {
    shift = 10 * (unsigned)(unit - units + 1);
    ++end;
    if (*end == 'i') ++end;
  }
  if (*end == 'B') ++end;
  if (*end != '\0' || number > (UINT64_C(1) << 62) >> shift) return false;
  *size_bytes = (uint64_t)number << shift;
  return true;
}

static clv_status read_bytes(reader *r, json_t *object, const char *key, uint64_t *size_bytes) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) return CLV_OK;
  push(r, key);
  bool good = json_is_string(value) && parse_bytes(json_string_value(value), size_bytes);
  if (json_is_integer(value) && json_integer_value(value) >= 0) {
    *size_bytes = (uint64_t)json_integer_value(value);
    good = true;
  }
  if (!good) return fail(r, "must be bytes: a whole number, or text such as \"64M\" or \"1G\"");
  pop(r);
  return CLV_OK;
}

static clv_dtype dtype_named(const char *name) {
  for (unsigned d = CLV_F32; d <= CLV_BF16; ++d) {
    if (clv_dtype_size_bytes((clv_dtype)d) > 0 && d != CLV_STRING && strcmp(clv_dtype_name((clv_dtype)d), name) == 0) {
      return (clv_dtype)d;
    }
  }
  return CLV_DTYPE_NONE;
}

/* A list of dtype names as a mask. `value` may be NULL: then the mask stays. */
static clv_status read_dtypes(reader *r, json_t *value, uint32_t *mask) {
  if (value == NULL) return CLV_OK;
  if (!json_is_array(value)) return fail(r, "must be a list of dtypes, such as [\"f32\", \"f16\"]");
  uint32_t read = 0;
  size_t i;
  json_t *item;
  json_array_foreach(value, i, item) {
    const char *name = json_is_string(item) ? json_string_value(item) : "";
    clv_dtype dtype = dtype_named(name);
    if (dtype == CLV_DTYPE_NONE) {
      return fail(r, "'%.40s' is no dtype (f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool)", name);
    }
    read |= CLV__DTYPE_BIT(dtype);
  }
  *mask = read;
  return CLV_OK;
}

/* {"1": ["i32", "i64"]}: dtypes of single operands. */
static clv_status read_operands(reader *r, json_t *object, const char *key, const clv__vnpu_operand **operands, uint32_t *count) {
  json_t *map = json_object_get(object, key);
  if (map == NULL) return CLV_OK;
  push(r, key);
  if (!json_is_object(map)) return fail(r, "must be an object from an index to a list of dtypes");
  clv__vnpu_operand *items = clv__arena_allocate_zero(&r->spec->arena, json_object_size(map), sizeof *items);
  if (items == NULL) return no_memory(r);
  const char *index;
  json_t *value;
  json_object_foreach(map, index, value) {
    push(r, index);
    char *end;
    unsigned long number = strtoul(index, &end, 10);
    if (*index < '0' || *index > '9' || *end != '\0' || number > 65535) return fail(r, "must be an index such as \"1\"");
    items[*count].index = (uint32_t)number;
    CLV__TRY(read_dtypes(r, value, &items[*count].dtypes));
    ++*count;
    pop(r);
  }
  *operands = items;
  pop(r);
  return CLV_OK;
}

static clv_status read_scalar(reader *r, json_t *value, clv__vnpu_scalar *scalar) {
  if (json_is_number(value)) {
    *scalar = (clv__vnpu_scalar){.number = json_number_value(value)};
    return CLV_OK;
  }
  if (!json_is_string(value)) return fail(r, "must be a number or a string");
  *scalar = (clv__vnpu_scalar){.is_text = true,
                               .text = clv__arena_string(&r->spec->arena, json_string_value(value), json_string_length(value))};
  return scalar->text != NULL ? CLV_OK : no_memory(r);
}

static clv_status read_limit(reader *r, json_t *object, clv__vnpu_attribute *limit) {
  static const char *const keys[] = {"min", "max", "in", "default", NULL};
  CLV__TRY(check_keys(r, object, keys));
  const char *bounds[] = {"min", "max"};
  for (int i = 0; i < 2; ++i) {
    json_t *value = json_object_get(object, bounds[i]);
    if (value == NULL) continue;
    push(r, bounds[i]);
    if (!json_is_number(value)) return fail(r, "must be a number");
    *(i == 0 ? &limit->min : &limit->max) = json_number_value(value);
    *(i == 0 ? &limit->has_min : &limit->has_max) = true;
    pop(r);
  }
  json_t *fallback = json_object_get(object, "default");
  if (fallback != NULL) {
    push(r, "default");
    CLV__TRY(read_scalar(r, fallback, &limit->fallback));
    limit->has_fallback = true;
    pop(r);
  }
  json_t *list = json_object_get(object, "in");
  if (list == NULL) return CLV_OK;
  push(r, "in");
  if (!json_is_array(list) || json_array_size(list) == 0) return fail(r, "must be a list of values");
  clv__vnpu_scalar *allowed = clv__arena_allocate_zero(&r->spec->arena, json_array_size(list), sizeof *allowed);
  if (allowed == NULL) return no_memory(r);
  for (size_t i = 0; i < json_array_size(list); ++i) CLV__TRY(read_scalar(r, json_array_get(list, i), &allowed[i]));
  limit->allowed = allowed;
  limit->allowed_count = (uint32_t)json_array_size(list);
  pop(r);
  return CLV_OK;
}

static clv_status read_attributes(reader *r, json_t *object, clv__vnpu_operator *op) {
  json_t *map = json_object_get(object, "attributes");
  if (map == NULL) return CLV_OK;
  push(r, "attributes");
  if (!json_is_object(map)) return fail(r, "must be an object from an attribute to its limits");
  clv__vnpu_attribute *items = clv__arena_allocate_zero(&r->spec->arena, json_object_size(map), sizeof *items);
  if (items == NULL) return no_memory(r);
  op->attributes = items;
  const char *name;
  json_t *value;
  json_object_foreach(map, name, value) {
    push(r, name);
    clv__vnpu_attribute *limit = &items[op->attribute_count++];
    limit->name = clv__arena_string(&r->spec->arena, name, strlen(name));
    if (limit->name == NULL) return no_memory(r);
    CLV__TRY(read_limit(r, value, limit));
    pop(r);
  }
  pop(r);
  return CLV_OK;
}

static clv_status read_constants(reader *r, json_t *object, clv__vnpu_operator *op) {
  json_t *list = json_object_get(object, "constant_inputs");
  if (list == NULL) return CLV_OK;
  push(r, "constant_inputs");
  if (!json_is_array(list)) return fail(r, "must be a list of input indices");
  uint32_t *items = clv__arena_allocate_zero(&r->spec->arena, json_array_size(list), sizeof *items);
  if (items == NULL) return no_memory(r);
  for (size_t i = 0; i < json_array_size(list); ++i) {
    json_t *item = json_array_get(list, i);
    if (!json_is_integer(item) || json_integer_value(item) < 0 || json_integer_value(item) > 65535) {
      return fail(r, "must be a list of input indices");
    }
    items[op->constant_count++] = (uint32_t)json_integer_value(item);
  }
  op->constants = items;
  pop(r);
  return CLV_OK;
}

static clv_status read_operator(reader *r, json_t *object, clv__vnpu_operator *op) {
  static const char *const keys[] = {"dtypes",     "inputs",     "outputs",         "max_rank", "max_inputs",
                                     "max_kernel", "attributes", "constant_inputs", NULL};
  CLV__TRY(check_keys(r, object, keys));
  int64_t rank = r->spec->max_rank;
  CLV__TRY(read_int(r, object, "max_rank", 0, CLV_MAX_RANK, &rank));
  op->max_rank = (int32_t)rank;
  op->dtypes = r->spec->dtypes;
  push(r, "dtypes");
  CLV__TRY(read_dtypes(r, json_object_get(object, "dtypes"), &op->dtypes));
  pop(r);
  CLV__TRY(read_operands(r, object, "inputs", &op->inputs, &op->input_count));
  CLV__TRY(read_operands(r, object, "outputs", &op->outputs, &op->output_count));
  CLV__TRY(read_u32(r, object, "max_inputs", &op->max_inputs));
  CLV__TRY(read_int(r, object, "max_kernel", 0, INT32_MAX, &op->max_kernel));
  CLV__TRY(read_attributes(r, object, op));
  return read_constants(r, object, op);
}

static clv_status read_operators(reader *r, json_t *root) {
  clv__vnpu_spec *spec = r->spec;
  json_t *value = json_object_get(root, "operators");
  if (value == NULL) return fail(r, "'operators' is missing: \"all\", or an object from each operator to its limits");
  push(r, "operators");
  bool is_all = json_is_string(value) && strcmp(json_string_value(value), "all") == 0;
  if (!is_all && !json_is_object(value)) return fail(r, "must be \"all\", or an object from each operator to its limits");
  json_t *map = is_all ? NULL : value;
  /* One more, the last, stands for the operators that have no entry: those of "all". */
  clv__vnpu_operator *items = clv__arena_allocate_zero(&spec->arena, json_object_size(map) + 1, sizeof *items);
  if (items == NULL) return no_memory(r);
  spec->operators = items;
  const char *name;
  json_t *limits;
  json_object_foreach(map, name, limits) {
    push(r, name);
    clv__vnpu_operator *op = &items[spec->operator_count];
    op->name = clv__arena_string(&spec->arena, name, strlen(name));
    if (op->name == NULL) return no_memory(r);
    CLV__TRY(read_operator(r, limits, op));
    if (!clv__map_set(&spec->index, op->name, spec->operator_count)) return no_memory(r);
    ++spec->operator_count;
    pop(r);
  }
  items[spec->operator_count] = (clv__vnpu_operator){.name = "any", .dtypes = spec->dtypes, .max_rank = spec->max_rank};
  spec->any_operator = is_all;
  pop(r);
  return CLV_OK;
}

static clv_status read_operator_speeds(reader *r, json_t *object, clv__vnpu_speed *speed) {
  static const char *const keys[] = {"us", "ns_per_row", "ns_per_edge", NULL};
  json_t *map = json_object_get(object, "operators"), *figures;
  const char *name;
  if (map == NULL) return CLV_OK;
  push(r, "operators");
  if (!json_is_object(map)) return fail(r, "must be an object from an operator to its figures");
  clv__vnpu_operator_speed *items = clv__arena_allocate_zero(&r->spec->arena, json_object_size(map), sizeof *items);
  if (items == NULL && json_object_size(map) > 0) return no_memory(r);
  speed->operators = items;
  json_object_foreach(map, name, figures) {
    clv__vnpu_operator_speed *item = &items[speed->operator_count];
    push(r, name);
    CLV__TRY(check_keys(r, figures, keys));
    CLV__TRY(read_figure(r, figures, "us", &item->us));
    CLV__TRY(read_figure(r, figures, "ns_per_row", &item->ns_per_row));
    CLV__TRY(read_figure(r, figures, "ns_per_edge", &item->ns_per_edge));
    item->name = clv__arena_string(&r->spec->arena, name, strlen(name));
    if (item->name == NULL) return no_memory(r);
    ++speed->operator_count;
    pop(r);
  }
  pop(r);
  return CLV_OK;
}

static clv_status read_speed(reader *r, json_t *root) {
  clv__vnpu_speed *speed = &r->spec->speed;
  *speed = (clv__vnpu_speed){.time_scale = 1, .frequency = 1};
  json_t *object = json_object_get(root, "speed");
  if (object == NULL) return CLV_OK;
  push(r, "speed");
  static const char *const keys[] = {"launch_overhead_us",    "flops_per_second", "bytes_per_second", "copy_latency_us",
                                     "copy_bytes_per_second", "time_scale",       "operators",        NULL};
  CLV__TRY(check_keys(r, object, keys));
  CLV__TRY(read_figure(r, object, "launch_overhead_us", &speed->launch_overhead_us));
  CLV__TRY(read_figure(r, object, "flops_per_second", &speed->flops_per_second));
  CLV__TRY(read_figure(r, object, "bytes_per_second", &speed->bytes_per_second));
  CLV__TRY(read_figure(r, object, "copy_latency_us", &speed->copy_latency_us));
  CLV__TRY(read_figure(r, object, "copy_bytes_per_second", &speed->copy_bytes_per_second));
  CLV__TRY(read_figure(r, object, "time_scale", &speed->time_scale));
  CLV__TRY(read_operator_speeds(r, object, speed));
  speed->given = true;
  pop(r);
  return CLV_OK;
}

static clv_status read_root(reader *r, json_t *root) {
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
                                     "speed",
                                     NULL};
  clv__vnpu_spec *spec = r->spec;
  CLV__TRY(check_keys(r, root, keys));
  CLV__TRY(read_string(r, root, "name", &spec->name));
  CLV__TRY(read_string(r, root, "description", &spec->description));
  CLV__TRY(read_string(r, root, "memory_space", &spec->memory_space));
  CLV__TRY(read_bytes(r, root, "memory", &spec->memory_bytes));
  int64_t alignment = CLV__ALIGNMENT, rank = CLV_MAX_RANK;
  CLV__TRY(read_int(r, root, "alignment", 1, 1 << 20, &alignment));
  if ((alignment & (alignment - 1)) != 0) {
    push(r, "alignment");
    return fail(r, "must be a power of two");
  }
  /* Kernels want the alignment of their elements; a device that asks for less than the library gives gets the library's. */
  spec->alignment_bytes = alignment < (int64_t)CLV__ALIGNMENT ? CLV__ALIGNMENT : (uint32_t)alignment;
  CLV__TRY(read_int(r, root, "max_rank", 0, CLV_MAX_RANK, &rank));
  spec->max_rank = (int32_t)rank;
  push(r, "dtypes");
  CLV__TRY(read_dtypes(r, json_object_get(root, "dtypes"), &spec->dtypes));
  pop(r);
  CLV__TRY(read_bool(r, root, "static_shapes", &spec->static_shapes));
  CLV__TRY(read_bool(r, root, "control_flow", &spec->control_flow));
  CLV__TRY(read_u32(r, root, "max_partition_inputs", &spec->max_partition_inputs));
  CLV__TRY(read_u32(r, root, "max_partition_nodes", &spec->max_partition_nodes));
  const char *compute = "f32";
  CLV__TRY(read_string(r, root, "compute_dtype", &compute));
  spec->compute_dtype = dtype_named(compute);
  if (spec->compute_dtype != CLV_F32 && spec->compute_dtype != CLV_F16 && spec->compute_dtype != CLV_BF16) {
    push(r, "compute_dtype");
    return fail(r, "'%.40s' must be f32, f16 or bf16", compute);
  }
  CLV__TRY(read_speed(r, root));
  return read_operators(r, root);
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

const clv_option_info clv__vnpu_options[CLV__VNPU_OPTION_COUNT] = {
    {"frequency", "a number above 0", "of the speed model; as described"},
    {"time_scale", "a number, 0 or more", "what modelled times are multiplied by; as described"},
    {"memory", "bytes, such as 64M or 1G (0: no limit)", "how much there is; as described"},
    {"hang", "which launch never ends: 1 is the first, 0 none", "for tests; 0"},
    {"fail", "which launch fails: 1 is the first, 0 none", "for tests; 0"},
};

/* Keys are those of the list: the host has seen to that. */
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
      is_read = parse_bytes(value, &spec->memory_bytes);
      break;
    case 3:
      is_read = parse_count(value, &spec->hang_at);
      break;
    case 4:
      is_read = parse_count(value, &spec->fail_at);
      break;
    default:
      break;
  }
  if (is_read) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "device option %s=%.80s: must be %s", option->key, value,
                        clv__vnpu_options[i].values);
}

/* The description in one spelling, then what the options made of it. Faults leave programs as they are. */
static clv_status make_canonical(reader *r, json_t *root) {
  clv__vnpu_spec *spec = r->spec;
  char *json = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
  if (json == NULL) return no_memory(r);
  clv__text text;
  clv__text_init(&text, spec->arena.allocator);
  clv__text_append(&text, "%s memory=%llu frequency=%.17g time_scale=%.17g", json, (unsigned long long)spec->memory_bytes,
                   spec->speed.frequency, spec->speed.time_scale);
  free(json);
  if (!text.failed) spec->canonical = clv__arena_string(&spec->arena, text.data, text.size_bytes);
  clv__text_finish(&text);
  return spec->canonical != NULL ? CLV_OK : no_memory(r);
}

static clv_status read_text(reader *r, const clv_option *options, uint32_t option_count) {
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
  clv__arena_init(&spec->arena, allocator);
  clv__map_init(&spec->index, allocator);
  if (text == NULL) text = "default";
  const char *builtin = clv__vnpu_builtin(text);
  if (builtin == NULL && text[0] == '{') builtin = text;
  clv__file_map file = {0};
  clv_status status = CLV_OK;
  if (builtin == NULL) {
    status = clv__file_map_open(text, &file, error);
    if (status == CLV_NOT_FOUND) clv__error_prefix(error, status, "--npu-spec is default, all or a file");
  }
  if (status == CLV_OK && file.size_bytes > MAX_SPEC_BYTES) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: %zu bytes are no device description (at most %d)", text,
                            file.size_bytes, MAX_SPEC_BYTES);
  }
  if (status == CLV_OK) {
    reader r = {.spec = spec, .file = builtin == NULL ? text : builtin == text ? "device description" : text, .error = error};
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
