/* Executables to files and back. All numbers are little-endian:
 *
 *   8 bytes   magic; u32 version; u32 0; u64 bytes of the payload; 32 bytes BLAKE2b-256 of the payload
 *   payload:
 *     text    fingerprint of the device                       (text: u32 bytes, then the bytes)
 *     u32     inputs; each: u32 dtype, i32 rank (-1: unknown), i64 dims[rank] (-1: unknown)
 *     u64     bytes of the graph; the graph, an ONNX model whose weights are its last inputs
 *     u32     programs; each: text family, text defines, text functions, u64 bytes, the driver's binary
 *
 * A file may come from a stranger. The graph goes through the same questions as one from the host, and steps are made from it
 * anew; a binary is only taken for a program that those steps need, and the driver may refuse it. A binary is code, though: who
 * can write files of the cache can have it run on the device (option binaries=off keeps to the sources). */
#include "base/hash.h"
#include "base/text.h"
#include "plan.h"

#define MAGIC "CLVOCL\r\n"
enum { VERSION = 1, HEADER_BYTES = 56, MAX_PROGRAMS = 65536 };

/* ---- Writing ---- */

static void put(clv__text *out, uint64_t number, size_t size_bytes) {
  uint8_t bytes[8];
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = (uint8_t)(number >> (8 * i));
  clv__text_append_bytes(out, bytes, size_bytes);
}

static void put_text(clv__text *out, const char *text) {
  put(out, strlen(text), 4);
  clv__text_append_bytes(out, text, strlen(text));
}

static clv_status put_program(clv__text *out, clv_device *device, const clv__opencl_program *program, clv_error *error) {
  void *binary = NULL;
  size_t binary_bytes = 0;
  if (device->binaries) CLV__TRY(clv__opencl_program_binary(device, program, &binary, &binary_bytes, error));
  put_text(out, program->family->name);
  put_text(out, program->defines);
  put_text(out, program->functions);
  put(out, binary_bytes, 8);
  clv__text_append_bytes(out, binary, binary_bytes);
  clv__release(device->allocator, binary);
  return CLV_OK;
}

/* Whether no earlier step has the same program. */
static bool is_first(const clv__opencl_plan *plan, bool once, size_t step) {
  const clv__opencl_program *program = once ? plan->once.items[step].program : plan->steps.items[step].program;
  const size_t once_count = once ? step : plan->once.count;
  for (size_t i = 0; i < once_count; ++i) {
    if (plan->once.items[i].program == program) return false;
  }
  for (size_t i = 0; i < step && !once; ++i) {
    if (plan->steps.items[i].program == program) return false;
  }
  return true;
}

static clv_status put_programs(clv__text *out, const clv_executable *e, clv_error *error) {
  const clv__opencl_plan *plan = e->plan;
  uint32_t count = 0;
  const size_t once_count = plan != NULL ? plan->once.count : 0, total = plan != NULL ? once_count + plan->steps.count : 0;
  for (int writing = 0; writing < 2; ++writing) {
    for (size_t i = 0; i < total; ++i) {
      const bool once = i < once_count;
      const clv__opencl_step *step = once ? &plan->once.items[i] : &plan->steps.items[i - once_count];
      if (step->is_copy || !is_first(plan, once, once ? i : i - once_count)) continue;
      if (writing == 0)
        ++count;
      else
        CLV__TRY(put_program(out, e->device, step->program, error));
    }
    if (writing == 0) put(out, count, 4);
  }
  return CLV_OK;
}

static clv_status put_payload(clv__text *out, const clv_executable *e, clv_error *error) {
  put_text(out, e->device->fingerprint);
  put(out, e->input_count, 4);
  for (uint32_t i = 0; i < e->input_count; ++i) {
    const clv_tensor *type = &e->input_types[i];
    put(out, type->dtype, 4);
    put(out, (uint32_t)type->rank, 4);
    for (int32_t d = 0; d < type->rank; ++d) put(out, (uint64_t)type->dims[d], 8);
  }
  put(out, e->onnx_bytes, 8);
  clv__text_append_bytes(out, e->onnx, e->onnx_bytes);
  return put_programs(out, e, error);
}

static void hash_payload(const void *data, size_t size_bytes, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, data, size_bytes);
  clv__hasher_finish(&hasher, hash);
}

clv_status clv__opencl_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                       clv_error *error) {
  clv__text payload, header;
  clv__text_init(&payload, device->allocator);
  clv__text_init(&header, device->allocator);
  clv_status status = put_payload(&payload, executable, error);
  if (status == CLV_OK) {
    clv__hash hash;
    hash_payload(payload.data, payload.size_bytes, &hash);
    clv__text_append_bytes(&header, MAGIC, 8);
    put(&header, VERSION, 4);
    put(&header, 0, 4);
    put(&header, payload.size_bytes, 8);
    clv__text_append_bytes(&header, hash.bytes, sizeof hash.bytes);
    if (payload.failed || header.failed) status = clv__error_memory(error, payload.size_bytes);
  }
  if (status == CLV_OK) {
    status = write(cookie, header.data, header.size_bytes);
    if (status == CLV_OK) status = write(cookie, payload.data, payload.size_bytes);
    if (status != CLV_OK) clv__error_set(error, status, "cannot write %zu bytes", header.size_bytes + payload.size_bytes);
  }
  clv__text_finish(&header);
  clv__text_finish(&payload);
  return status;
}

/* ---- Reading ---- */

/* Reads beyond the end give zeros and set `failed`: checked wherever a number sizes something, and at the end. */
typedef struct reader {
  const uint8_t *data;
  size_t size_bytes, at;
  bool failed;
  clv_error *error;
} reader;

static uint64_t take(reader *r, size_t size_bytes) {
  if (r->size_bytes - r->at < size_bytes) {
    r->failed = true;
    r->at = r->size_bytes;
    return 0;
  }
  uint64_t number = 0;
  for (size_t i = 0; i < size_bytes; ++i) number |= (uint64_t)r->data[r->at + i] << (8 * i);
  r->at += size_bytes;
  return number;
}

static const uint8_t *take_bytes(reader *r, uint64_t size_bytes) {
  if (r->size_bytes - r->at < size_bytes) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *bytes = r->data + r->at;
  r->at += (size_t)size_bytes;
  return bytes;
}

static clv_status damaged(reader *r, const char *what) {
  return clv__error_set(r->error, CLV_INVALID_MODEL, "OpenCL executable: %s (byte %zu of %zu)", what, HEADER_BYTES + r->at,
                        HEADER_BYTES + r->size_bytes);
}

static clv_status open_payload(const void *data, size_t size_bytes, reader *r, clv_error *error) {
  *r = (reader){.data = data, .size_bytes = size_bytes, .error = error};
  const uint8_t *magic = take_bytes(r, 8);
  if (magic == NULL || memcmp(magic, MAGIC, 8) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "no OpenCL executable: it does not begin with its magic");
  }
  uint64_t version = take(r, 4), reserved = take(r, 4), payload_bytes = take(r, 8);
  const uint8_t *hash = take_bytes(r, CLV__HASH_BYTES);
  if (version != VERSION && !r->failed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenCL executable of version %llu, this library reads %d: compile it again",
                          (unsigned long long)version, VERSION);
  }
  if (r->failed || reserved != 0 || payload_bytes != size_bytes - r->at) {
    return clv__error_set(error, CLV_INVALID_MODEL, "OpenCL executable: %zu bytes where its header says %llu", size_bytes,
                          (unsigned long long)payload_bytes);
  }
  clv__hash computed;
  hash_payload(r->data + r->at, payload_bytes, &computed);
  if (memcmp(computed.bytes, hash, CLV__HASH_BYTES) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "OpenCL executable: damaged: its checksum does not match");
  }
  *r = (reader){.data = r->data + r->at, .size_bytes = payload_bytes, .error = error};
  return CLV_OK;
}

static clv_status read_fingerprint(reader *r, const clv_device *device) {
  uint64_t size_bytes = take(r, 4);
  const uint8_t *bytes = take_bytes(r, size_bytes);
  if (bytes == NULL) return damaged(r, "ends in the fingerprint");
  if (size_bytes == strlen(device->fingerprint) && memcmp(bytes, device->fingerprint, size_bytes) == 0) return CLV_OK;
  return clv__error_set(r->error, CLV_NOT_SUPPORTED, "OpenCL executable for another device, driver or options: compile it again");
}

static clv_status read_types(reader *r, clv__arena *arena, clv_tensor **types, uint32_t *count) {
  uint64_t inputs = take(r, 4);
  if (inputs > (r->size_bytes - r->at) / 8) return damaged(r, "more inputs than the file has room for");
  *types = clv__arena_allocate_zero(arena, inputs, sizeof **types);
  if (*types == NULL) return clv__error_memory(r->error, inputs * sizeof **types);
  *count = (uint32_t)inputs;
  for (uint32_t i = 0; i < *count; ++i) {
    clv_tensor *type = &(*types)[i];
    uint64_t dtype = take(r, 4);
    int32_t rank = (int32_t)(uint32_t)take(r, 4);
    if (dtype > CLV_BF16 || clv_dtype_size_bytes((clv_dtype)dtype) == 0 || dtype == CLV_STRING) {
      return damaged(r, "an input's dtype is none that it can be");
    }
    if (rank < CLV_RANK_UNKNOWN || rank > CLV_MAX_RANK) return damaged(r, "an input's rank is out of range");
    type->dtype = (clv_dtype)dtype;
    type->rank = rank;
    for (int32_t d = 0; d < rank; ++d) {
      type->dims[d] = (int64_t)take(r, 8);
      if (type->dims[d] < CLV_DIM_UNKNOWN) return damaged(r, "an input's dimension is negative");
    }
  }
  return r->failed ? damaged(r, "ends in its inputs") : CLV_OK;
}

/* A terminated text, in the arena. */
static const char *read_text(reader *r, clv__arena *arena) {
  uint64_t size_bytes = take(r, 4);
  const uint8_t *bytes = take_bytes(r, size_bytes);
  return bytes == NULL ? NULL : clv__arena_string(arena, (const char *)bytes, (size_t)size_bytes);
}

/* The plan's program of these texts, or NULL. */
static clv__opencl_program *find_program(const clv__opencl_plan *plan, const char *family, const char *defines,
                                         const char *functions) {
  for (size_t i = 0; i < plan->once.count + plan->steps.count; ++i) {
    const clv__opencl_step *step = i < plan->once.count ? &plan->once.items[i] : &plan->steps.items[i - plan->once.count];
    if (step->is_copy || strcmp(step->program->family->name, family) != 0) continue;
    if (strcmp(step->program->defines, defines) == 0 && strcmp(step->program->functions, functions) == 0) return step->program;
  }
  return NULL;
}

static clv_status read_programs(reader *r, clv_device *device, const clv_executable *e, clv__arena *arena) {
  uint64_t count = take(r, 4);
  if (r->failed || count > MAX_PROGRAMS) return damaged(r, "more programs than there can be");
  for (uint64_t i = 0; i < count; ++i) {
    const char *family = read_text(r, arena), *defines = read_text(r, arena), *functions = read_text(r, arena);
    uint64_t binary_bytes = take(r, 8);
    const uint8_t *binary = take_bytes(r, binary_bytes);
    if (r->failed) return damaged(r, "ends in a program");
    if (family == NULL || defines == NULL || functions == NULL) return clv__error_memory(r->error, 64);
    clv__opencl_program *program = e->plan != NULL ? find_program(e->plan, family, defines, functions) : NULL;
    if (program == NULL || !device->binaries) continue; /* sources have changed since: they are compiled */
    CLV__TRY(clv__opencl_program_offer(device, program, binary, (size_t)binary_bytes, r->error));
  }
  return r->at == r->size_bytes ? CLV_OK : damaged(r, "something follows its end");
}

static clv_status read_executable(reader *r, clv_device *device, clv__arena *arena, clv_executable **e) {
  clv_tensor *types = NULL;
  uint32_t count = 0;
  CLV__TRY(read_fingerprint(r, device));
  CLV__TRY(read_types(r, arena, &types, &count));
  uint64_t onnx_bytes = take(r, 8);
  const uint8_t *bytes = take_bytes(r, onnx_bytes);
  if (r->failed) return damaged(r, "ends in its graph");
  void *onnx = clv__allocate(device->allocator, onnx_bytes);
  if (onnx == NULL) return clv__error_memory(r->error, onnx_bytes);
  if (onnx_bytes > 0) memcpy(onnx, bytes, onnx_bytes);
  CLV__TRY(clv__opencl_executable_open(device, onnx, onnx_bytes, types, count, e, r->error));
  return read_programs(r, device, *e, arena);
}

clv_status clv__opencl_executable_read(clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                       clv_error *error) {
  *out = NULL;
  reader r;
  CLV__TRY(open_payload(data, size_bytes, &r, error));
  clv__arena arena;
  clv__arena_init(&arena, device->allocator);
  clv_executable *e = NULL;
  clv_status status = read_executable(&r, device, &arena, &e);
  clv__arena_finish(&arena);
  if (status == CLV_OK)
    *out = e;
  else
    clv__opencl_executable_destroy(device, e);
  return status;
}

clv_status clv__opencl_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                       clv_error *error) {
  clv_executable *e = NULL;
  *out = NULL;
  CLV__TRY(clv__opencl_executable_read(device, data, size_bytes, &e, error));
  clv_status status = e->plan != NULL ? clv__opencl_plan_finish(e->plan, error) : CLV_OK;
  if (status == CLV_OK)
    *out = e;
  else
    clv__opencl_executable_destroy(device, e);
  return status;
}
