/* Programs to `.npubin` files and back: see npubin.h. A file may come from a stranger: its numbers are only compared with what
 * the graph inside it implies, and its scratch layout is checked before it is used. */
#include "npubin.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "program.h"

/* ---- Writing ---- */

static void put(clv__text *out, uint64_t number, size_t size_bytes) {
  uint8_t bytes[8];
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = (uint8_t)(number >> (8 * i));
  clv__text_append_bytes(out, bytes, size_bytes);
}

static void put_operands(clv__text *out, const clv_executable *p, const uint32_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__vnpu_location none = {0};
    const clv__vnpu_location *at = values[i] == CLV_NO_VALUE ? &none : &p->locations[values[i]];
    put(out, at->place, 4);
    put(out, at->index, 4);
    put(out, at->offset, 8);
  }
}

static void put_payload(clv__text *out, const clv_executable *p) {
  size_t fingerprint_bytes = strlen(p->device->fingerprint);
  put(out, fingerprint_bytes, 4);
  clv__text_append_bytes(out, p->device->fingerprint, fingerprint_bytes);
  put(out, p->input_count, 4);
  for (uint32_t i = 0; i < p->input_count; ++i) {
    const clv_tensor *type = &p->types[p->inputs[i]];
    put(out, type->dtype, 4);
    put(out, (uint32_t)type->rank, 4);
    for (int32_t d = 0; d < type->rank; ++d) put(out, (uint64_t)type->dims[d], 8);
  }
  put(out, p->onnx_bytes, 8);
  clv__text_append_bytes(out, p->onnx, p->onnx_bytes);
  put(out, p->is_static ? 1 : 0, 4);
  if (!p->is_static) return;
  put(out, p->scratch_bytes, 8);
  put(out, p->node_count, 4);
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    put(out, n, 4);
    put(out, instruction->scratch_offset, 8);
    put(out, instruction->scratch_bytes, 8);
    put(out, (uint64_t)node->input_count + node->output_count, 4);
    put_operands(out, p, node->inputs, node->input_count);
    put_operands(out, p, node->outputs, node->output_count);
  }
}

static void hash_payload(const void *data, size_t size_bytes, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, data, size_bytes);
  clv__hasher_finish(&hasher, hash);
}

clv_status clv__vnpu_npubin_save(const clv_executable *p, clv_write_fn write, void *cookie, clv_error *error) {
  clv__text payload, header;
  clv__text_init(&payload, p->device->allocator);
  clv__text_init(&header, p->device->allocator);
  put_payload(&payload, p);
  clv__text_append_bytes(&header, CLV__NPUBIN_MAGIC, 8);
  put(&header, CLV__NPUBIN_VERSION, 4);
  put(&header, 0, 4);
  put(&header, payload.size_bytes, 8);
  clv__hash hash;
  hash_payload(payload.data, payload.size_bytes, &hash);
  clv__text_append_bytes(&header, hash.bytes, sizeof hash.bytes);
  clv_status status = CLV_OK;
  if (payload.failed || header.failed) status = clv__error_memory(error, payload.size_bytes);
  if (status == CLV_OK) {
    status = write(cookie, header.data, header.size_bytes);
    if (status == CLV_OK) status = write(cookie, payload.data, payload.size_bytes);
    if (status != CLV_OK) clv__error_set(error, status, "npubin: cannot write %zu bytes", header.size_bytes + payload.size_bytes);
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
  return clv__error_set(r->error, CLV_INVALID_MODEL, "npubin: %s (byte %zu of %zu)", what, CLV__NPUBIN_HEADER_BYTES + r->at,
                        CLV__NPUBIN_HEADER_BYTES + r->size_bytes);
}

static clv_status open_payload(const void *data, size_t size_bytes, reader *r, clv_error *error) {
  *r = (reader){.data = data, .size_bytes = size_bytes, .error = error};
  const uint8_t *magic = take_bytes(r, 8);
  if (magic == NULL || memcmp(magic, CLV__NPUBIN_MAGIC, 8) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npubin: no program: it does not begin with its magic");
  }
  uint64_t version = take(r, 4), reserved = take(r, 4), payload_bytes = take(r, 8);
  const uint8_t *hash = take_bytes(r, CLV__HASH_BYTES);
  if (version != CLV__NPUBIN_VERSION && !r->failed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npubin: version %llu, this device runs %u: compile it again",
                          (unsigned long long)version, CLV__NPUBIN_VERSION);
  }
  if (r->failed || reserved != 0 || payload_bytes != size_bytes - r->at) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npubin: %zu bytes where its header says %llu", size_bytes,
                          (unsigned long long)payload_bytes);
  }
  clv__hash computed;
  hash_payload(r->data + r->at, payload_bytes, &computed);
  if (memcmp(computed.bytes, hash, CLV__HASH_BYTES) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npubin: damaged: its checksum does not match");
  }
  *r = (reader){.data = r->data + r->at, .size_bytes = payload_bytes, .error = error};
  return CLV_OK;
}

static clv_status read_fingerprint(reader *r, const clv_device *device) {
  uint64_t size_bytes = take(r, 4);
  const uint8_t *bytes = take_bytes(r, size_bytes);
  if (bytes == NULL) return damaged(r, "ends in the fingerprint");
  if (size_bytes == strlen(device->fingerprint) && memcmp(bytes, device->fingerprint, size_bytes) == 0) return CLV_OK;
  return clv__error_set(r->error, CLV_NOT_SUPPORTED, "npubin: compiled for another device or description: compile it again");
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

/* The place must be the one that the graph implies; only where a made value lies in the scratch is the file's to say. */
static clv_status read_operand(reader *r, clv_executable *p, uint32_t value, bool makes) {
  uint64_t place = take(r, 4), index = take(r, 4), offset = take(r, 8);
  if (r->failed) return damaged(r, "ends in an instruction");
  if (value == CLV_NO_VALUE)
    return place == 0 && index == 0 && offset == 0 ? CLV_OK : damaged(r, "an absent operand has a place");
  clv__vnpu_location *at = &p->locations[value];
  if (makes && at->place == CLV__VNPU_SCRATCH) at->offset = offset;
  if (place != (uint64_t)at->place || index != at->index || offset != at->offset) {
    return damaged(r, "an operand is not where the graph has it");
  }
  return CLV_OK;
}

static clv_status read_stream(reader *r, clv_executable *p) {
  p->scratch_bytes = take(r, 8);
  if (take(r, 4) != p->node_count || r->failed) return damaged(r, "it has not the instructions that the graph has");
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    uint64_t index = take(r, 4), scratch_offset = take(r, 8), scratch_bytes = take(r, 8), operands = take(r, 4);
    if (r->failed) return damaged(r, "ends in an instruction");
    if (index != n || operands != (uint64_t)node->input_count + node->output_count) {
      return damaged(r, "an instruction is not the graph's");
    }
    if (scratch_bytes != instruction->scratch_bytes) return damaged(r, "an instruction's scratch is not what its kernel needs");
    instruction->scratch_offset = scratch_offset;
    for (uint32_t i = 0; i < node->input_count; ++i) CLV__TRY(read_operand(r, p, node->inputs[i], false));
    for (uint32_t i = 0; i < node->output_count; ++i) CLV__TRY(read_operand(r, p, node->outputs[i], true));
  }
  return CLV_OK;
}

static clv_status read_program(reader *r, const clv_device *device, clv__arena *arena, clv_executable **program) {
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
  clv_status status = clv__vnpu_program_open(device, onnx, onnx_bytes, types, count, program, r->error);
  if (status != CLV_OK) return clv__error_prefix(r->error, status, "npubin");
  uint64_t is_static = take(r, 4);
  if (r->failed || is_static != ((*program)->is_static ? 1u : 0u)) return damaged(r, "static and dynamic are confused");
  if (is_static == 1) CLV__TRY(read_stream(r, *program));
  if (r->at != r->size_bytes) return damaged(r, "something follows its end");
  status = clv__vnpu_program_finish(*program, r->error);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(r->error, status, "npubin");
}

clv_status clv__vnpu_npubin_load(const clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                 clv_error *error) {
  *out = NULL;
  reader r;
  CLV__TRY(open_payload(data, size_bytes, &r, error));
  clv__arena arena;
  clv__arena_init(&arena, device->allocator);
  clv_executable *program = NULL;
  clv_status status = read_program(&r, device, &arena, &program);
  clv__arena_finish(&arena);
  if (status == CLV_OK)
    *out = program;
  else
    clv__vnpu_program_destroy(program);
  return status;
}
