/* Saves executables to files, and loads them. All numbers are little-endian:
 *
 *   the header of base/files/sealed.h, then:
 *     text    fingerprint of the device                       (text: u32 bytes, then the bytes)
 *     u32     number of inputs; for each: u32 dtype, i32 rank (-1: unknown), i64 dims[rank] (-1: unknown)
 *     u64     size of the graph in bytes; then the graph, an ONNX model whose weights are its last inputs
 *     u32     number of programs; for each: text family, text defines, text functions, u64 size of the driver's binary in
 *             bytes, the binary
 *
 * A file may come from an untrusted source. Its graph passes the same checks as one from the host, and the steps are created
 * from the graph again. A binary is accepted only for a program that those steps need, and the driver may reject it. But a
 * binary is code: anyone who can write files in the cache can run code on the device. With the option binaries=off, only the
 * sources are used. */
#include "variant.h"

enum { MAX_PROGRAMS = 65536 };
const clv__sealed_kind clv__opencl_executable_kind = {"OpenCL executable", "CLVOCL\r\n", 1};

/* ---- Writing ---- */

static clv_status put_program(clv__text *out, clv_device *device, const clv__opencl_program *program, clv_error *error) {
  void *binary = NULL;
  size_t binary_bytes = 0;
  if (device->binaries) CLV__TRY(clv__opencl_program_binary(device, program, &binary, &binary_bytes, error));
  clv__sealed_put_text(out, program->family->name);
  clv__sealed_put_text(out, program->defines);
  clv__sealed_put_text(out, program->functions);
  clv__sealed_put_bytes(out, binary, binary_bytes);
  clv__release(device->allocator, binary);
  return CLV_OK;
}

/* Whether no earlier step has the same program. */
static bool is_first(const clv__opencl_steps *steps, size_t step) {
  for (size_t i = 0; i < step; ++i) {
    if (steps->items[i].program == steps->items[step].program) return false;
  }
  return true;
}

static clv_status put_programs(clv__text *out, const clv_executable *e, clv_error *error) {
  const clv__opencl_variant *variant = e->variant;
  uint32_t count = 0;
  for (int writing = 0; writing < 2; ++writing) {
    for (size_t i = 0; variant != NULL && i < variant->steps.count; ++i) {
      if (variant->steps.items[i].is_copy || !is_first(&variant->steps, i)) continue;
      if (writing == 0)
        ++count;
      else
        CLV__TRY(put_program(out, e->device, variant->steps.items[i].program, error));
    }
    if (writing == 0) clv__sealed_put(out, count, 4);
  }
  return CLV_OK;
}

static clv_status put_payload(clv__text *out, const clv_executable *e, clv_error *error) {
  clv__sealed_put_text(out, e->device->fingerprint);
  clv__sealed_put(out, e->input_count, 4);
  for (uint32_t i = 0; i < e->input_count; ++i) clv__sealed_put_type(out, &e->input_types[i]);
  clv__sealed_put_bytes(out, e->onnx, e->onnx_bytes);
  return put_programs(out, e, error);
}

clv_status clv__opencl_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                       clv_error *error) {
  clv__text payload;
  clv__text_init(&payload, device->allocator);
  clv_status status = put_payload(&payload, executable, error);
  if (status == CLV_OK) status = clv__sealed_write(&clv__opencl_executable_kind, &payload, write, cookie, error);
  clv__text_finish(&payload);
  return status;
}

/* ---- Reading ---- */

/* Finds the variant's program with this family, these defines and these functions. Returns NULL if there is none. */
static clv__opencl_program *find_program(const clv__opencl_variant *variant, const char *family, const char *defines,
                                         const char *functions) {
  for (size_t i = 0; i < variant->steps.count; ++i) {
    const clv__opencl_step *step = &variant->steps.items[i];
    if (step->is_copy || strcmp(step->program->family->name, family) != 0) continue;
    if (strcmp(step->program->defines, defines) == 0 && strcmp(step->program->functions, functions) == 0) return step->program;
  }
  return NULL;
}

static clv_status read_programs(clv__sealed_reader *r, clv_device *device, const clv_executable *e, clv__arena *arena) {
  uint64_t count = clv__sealed_take(r, 4);
  if (r->failed || count > MAX_PROGRAMS) return clv__sealed_damaged(r, "truncated, or too many programs");
  for (uint64_t i = 0; i < count; ++i) {
    const char *family = clv__sealed_take_text(r, arena), *defines = clv__sealed_take_text(r, arena),
               *functions = clv__sealed_take_text(r, arena);
    uint64_t binary_bytes = clv__sealed_take(r, 8);
    const uint8_t *binary = clv__sealed_take_bytes(r, binary_bytes);
    if (r->failed) return clv__sealed_damaged(r, "truncated in a program");
    if (family == NULL || defines == NULL || functions == NULL) return clv__error_memory(r->error, 64);
    clv__opencl_program *program = e->variant != NULL ? find_program(e->variant, family, defines, functions) : NULL;
    if (program == NULL || !device->binaries) continue; /* no such program, or binaries=off: compile the sources */
    CLV__TRY(clv__opencl_program_offer(device, program, binary, (size_t)binary_bytes, r->error));
  }
  return r->at == r->size_bytes ? CLV_OK : clv__sealed_damaged(r, "unexpected data after its end");
}

static clv_status read_executable(clv__sealed_reader *r, clv_device *device, clv__arena *arena, clv_executable **e) {
  clv_tensor *types = NULL;
  uint32_t count = 0;
  CLV__TRY(clv__sealed_check_fingerprint(r, device->fingerprint));
  CLV__TRY(clv__sealed_take_types(r, arena, &types, &count));
  void *onnx;
  size_t onnx_bytes;
  CLV__TRY(clv__sealed_copy_bytes(r, device->allocator, &onnx, &onnx_bytes));
  CLV__TRY(clv__opencl_executable_open(device, onnx, onnx_bytes, types, count, e, r->error));
  return read_programs(r, device, *e, arena);
}

clv_status clv__opencl_executable_read(clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                       clv_error *error) {
  *out = NULL;
  clv__sealed_reader r;
  CLV__TRY(clv__sealed_open(&clv__opencl_executable_kind, data, size_bytes, &r, error));
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
  clv_status status = e->variant != NULL ? clv__opencl_variant_finish(e->variant, error) : CLV_OK;
  if (status == CLV_OK)
    *out = e;
  else
    clv__opencl_executable_destroy(device, e);
  return status;
}

const clv_graph_view *clv__opencl_executable_graph(clv_device *device, const clv_executable *executable,
                                                   size_t *inline_limit_bytes) {
  (void)device;
  *inline_limit_bytes = CLV__OPENCL_INLINE_BYTES;
  return executable->view;
}
