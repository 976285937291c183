/* Saves and loads `.npubin` files: see npubin.h. A file may come from an untrusted source. So the program is compiled again from
 * the graph in the file, and the other numbers in the file must match the result. The scratch layout is taken from the file, and
 * checked before use. */
#include "npubin.h"

#include <string.h>

#include "base/error.h"
#include "base/files/sealed.h"
#include "program.h"

/* ---- Writing ---- */

const clv__sealed_kind clv__vnpu_npubin_kind = {"npubin", "NPUBIN\r\n", 1};

static void put_operands(clv__text *out, const clv_executable *p, const uint32_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__vnpu_location none = {0};
    const clv__vnpu_location *at = values[i] == CLV_NO_VALUE ? &none : &p->locations[values[i]];
    clv__sealed_put(out, at->kind, 4);
    clv__sealed_put(out, at->index, 4);
    clv__sealed_put(out, at->offset, 8);
  }
}

static void put_payload(clv__text *out, const clv_executable *p) {
  clv__sealed_put_text(out, p->device->fingerprint);
  clv__sealed_put(out, p->input_count, 4);
  for (uint32_t i = 0; i < p->input_count; ++i) clv__sealed_put_type(out, &p->types[p->inputs[i]]);
  clv__sealed_put_bytes(out, p->onnx, p->onnx_bytes);
  clv__sealed_put(out, p->is_static ? 1 : 0, 4);
  if (!p->is_static) return;
  clv__sealed_put(out, p->scratch_bytes, 8);
  clv__sealed_put(out, p->node_count, 4);
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    clv__sealed_put(out, n, 4);
    clv__sealed_put(out, instruction->scratch_offset, 8);
    clv__sealed_put(out, instruction->scratch_bytes, 8);
    clv__sealed_put(out, (uint64_t)node->input_count + node->output_count, 4);
    put_operands(out, p, node->inputs, node->input_count);
    put_operands(out, p, node->outputs, node->output_count);
  }
}

clv_status clv__vnpu_npubin_save(const clv_executable *p, clv_write_fn write, void *cookie, clv_error *error) {
  clv__text payload;
  clv__text_init(&payload, p->device->allocator);
  put_payload(&payload, p);
  clv_status status = clv__sealed_write(&clv__vnpu_npubin_kind, &payload, write, cookie, error);
  clv__text_finish(&payload);
  return status;
}

/* ---- Reading ---- */

/* Reads the location of an operand. It must be the location that follows from the graph, with one exception: the offset of a
 * computed value in the scratch is taken from the file. This is done for the instruction that computes the value (`makes`). */
static clv_status read_operand(clv__sealed_reader *r, clv_executable *p, uint32_t value, bool makes) {
  uint64_t kind = clv__sealed_take(r, 4), index = clv__sealed_take(r, 4), offset = clv__sealed_take(r, 8);
  if (r->failed) return clv__sealed_damaged(r, "truncated in an instruction");
  if (value == CLV_NO_VALUE)
    return kind == 0 && index == 0 && offset == 0 ? CLV_OK : clv__sealed_damaged(r, "a missing operand has an address");
  clv__vnpu_location *at = &p->locations[value];
  if (makes && at->kind == CLV__VNPU_SCRATCH) at->offset = offset;
  if (kind != (uint64_t)at->kind || index != at->index || offset != at->offset) {
    return clv__sealed_damaged(r, "an operand's location differs from the one that its graph implies");
  }
  return CLV_OK;
}

static clv_status read_stream(clv__sealed_reader *r, clv_executable *p) {
  p->scratch_bytes = clv__sealed_take(r, 8);
  if (clv__sealed_take(r, 4) != p->node_count || r->failed)
    return clv__sealed_damaged(r, "the number of instructions differs from the number of nodes");
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    uint64_t index = clv__sealed_take(r, 4), scratch_offset = clv__sealed_take(r, 8), scratch_bytes = clv__sealed_take(r, 8),
             operands = clv__sealed_take(r, 4);
    if (r->failed) return clv__sealed_damaged(r, "truncated in an instruction");
    if (index != n || operands != (uint64_t)node->input_count + node->output_count) {
      return clv__sealed_damaged(r, "an instruction's node or number of operands differs from the graph");
    }
    if (scratch_bytes != instruction->scratch_bytes)
      return clv__sealed_damaged(r, "an instruction's scratch size differs from what its kernel needs");
    instruction->scratch_offset = scratch_offset;
    for (uint32_t i = 0; i < node->input_count; ++i) CLV__TRY(read_operand(r, p, node->inputs[i], false));
    for (uint32_t i = 0; i < node->output_count; ++i) CLV__TRY(read_operand(r, p, node->outputs[i], true));
  }
  return CLV_OK;
}

static clv_status read_program(clv__sealed_reader *r, const clv_device *device, clv__arena *arena, clv_executable **program) {
  clv_tensor *types = NULL;
  uint32_t count = 0;
  CLV__TRY(clv__sealed_check_fingerprint(r, device->fingerprint));
  CLV__TRY(clv__sealed_take_types(r, arena, &types, &count));
  void *onnx;
  size_t onnx_bytes;
  CLV__TRY(clv__sealed_copy_bytes(r, device->allocator, &onnx, &onnx_bytes));
  clv_status status = clv__vnpu_program_open(device, onnx, onnx_bytes, types, count, program, r->error);
  if (status != CLV_OK) return clv__error_prefix(r->error, status, "npubin");
  uint64_t is_static = clv__sealed_take(r, 4);
  if (r->failed || is_static != ((*program)->is_static ? 1u : 0u))
    return clv__sealed_damaged(r, "truncated, or its mark as static or dynamic does not match its graph");
  if (is_static == 1) CLV__TRY(read_stream(r, *program));
  if (r->at != r->size_bytes) return clv__sealed_damaged(r, "unexpected data after its end");
  status = clv__vnpu_program_finish(*program, r->error);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(r->error, status, "npubin");
}

clv_status clv__vnpu_npubin_load(const clv_device *device, const void *data, size_t size_bytes, clv_executable **out,
                                 clv_error *error) {
  *out = NULL;
  clv__sealed_reader r;
  CLV__TRY(clv__sealed_open(&clv__vnpu_npubin_kind, data, size_bytes, &r, error));
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
