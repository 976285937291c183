/* The section `memory` of the conformance kit (check.h): buffers are aligned and do not overlap, and allocations that exceed
 * the memory fail with an error. An execution reads its inputs, writes all bytes of its outputs, and writes nothing next to
 * them. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

enum { GUARD = 256, GUARD_BYTE = 0x5a, MOST_BUFFERS = 64 };
#define MOST_FILLED_BYTES (UINT64_C(1) << 30) /* check_limit() fills no memory that is larger than this */

/* ---- Buffers ---- */

static void check_alignment(clv__check *check) {
  static const uint32_t sizes[] = {1, 3, 64, 100, 4097, 70000};
  clv_buffer *buffers[sizeof sizes / sizeof *sizes] = {0};
  const clv_backend *b = check->backend;
  const uint32_t alignment = check->device->info.alignment_bytes, count = sizeof sizes / sizeof *sizes;
  bool any = false;
  for (uint32_t i = 0; i < count; ++i) {
    char what[64];
    clv_error error = {0};
    snprintf(what, sizeof what, "a buffer of %u bytes", sizes[i]);
    clv__check_at(check, "%s", what);
    clv_status status = b->buffer_alloc(check->handle, sizes[i], &buffers[i], &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, what, "buffer_alloc", status, &error);
      continue;
    }
    const void *pointer = b->buffer_host_pointer(check->handle, buffers[i]);
    if (pointer == NULL) continue;
    any = true;
    clv__check_that(check, alignment == 0 || (uintptr_t)pointer % alignment == 0, what,
                    "it starts at %p, which is not a multiple of the %u bytes that info() states", pointer, alignment);
  }
  if (!any) clv__check_skip(check, "alignment of buffers", "the host cannot access the buffers");
  for (uint32_t i = 0; i < count; ++i) b->buffer_free(check->handle, buffers[i]);
}

static void check_apart(clv__check *check) {
  enum { COUNT = 12, BYTES = 1000 };
  static uint8_t bytes[BYTES];
  const clv_backend *b = check->backend;
  clv_error error = {0};
  clv_buffer *buffers[COUNT] = {0};
  clv_stream *stream = NULL;
  clv_status status = b->stream_create(check->handle, &stream, &error);
  clv__check_at(check, "buffers side by side");
  for (uint32_t i = 0; status == CLV_OK && i < COUNT; ++i) {
    memset(bytes, (int)i + 1, sizeof bytes);
    status = b->buffer_alloc(check->handle, BYTES, &buffers[i], &error);
    if (status == CLV_OK && b->buffer_discard != NULL) b->buffer_discard(check->handle, buffers[i]);
    if (status == CLV_OK) status = b->copy_in(check->handle, stream, buffers[i], 0, bytes, BYTES, &error);
    if (status == CLV_OK) status = b->stream_synchronize(check->handle, stream, &error);
  }
  for (uint32_t i = 0; status == CLV_OK && i < COUNT; ++i) {
    memset(bytes, 0, sizeof bytes);
    status = b->copy_out(check->handle, stream, bytes, buffers[i], 0, BYTES, &error);
    if (status == CLV_OK) status = b->stream_synchronize(check->handle, stream, &error);
    uint32_t wrong = 0;
    for (uint32_t k = 0; k < BYTES; ++k) wrong += bytes[k] != i + 1;
    if (status == CLV_OK)
      clv__check_that(check, wrong == 0, "buffers side by side", "%u bytes of buffer %u changed when the others were written",
                      wrong, i);
  }
  if (status != CLV_OK) clv__check_failed_call(check, "buffers side by side", "allocating or copying", status, &error);
  for (uint32_t i = 0; i < COUNT; ++i) b->buffer_free(check->handle, buffers[i]);
  if (stream != NULL) b->stream_destroy(check->handle, stream);
}

/* Requests more memory than the device has. */
static void check_too_much(clv__check *check, uint64_t size_bytes) {
  char what[64];
  clv_error error = {0};
  clv_buffer *buffer = NULL;
  snprintf(what, sizeof what, "a buffer of %llu bytes", (unsigned long long)size_bytes);
  clv__check_at(check, "%s", what);
  clv_status status = check->backend->buffer_alloc(check->handle, size_bytes, &buffer, &error);
  if (!clv__check_that(check, status == CLV_OUT_OF_MEMORY || status == CLV_TOO_LARGE, what,
                       "buffer_alloc returned '%s'; expected 'out of memory' or 'too large'", clv_status_name(status))) {
    if (status == CLV_OK) check->backend->buffer_free(check->handle, buffer);
    return;
  }
  clv__check_that(check, error.message[0] != '\0', what, "buffer_alloc returned '%s' without an error text",
                  clv_status_name(status));
  clv__check_that(check, buffer == NULL, what, "buffer_alloc failed, but returned a buffer");
}

/* Fills the memory twice: freed memory must be available again, and no more than the stated size may be allocated. */
static void check_limit(clv__check *check) {
  const uint64_t limit = check->device->info.memory_limit_bytes;
  clv_buffer *buffers[MOST_BUFFERS];
  uint64_t first = 0;
  if (limit == 0 || limit > MOST_FILLED_BYTES) {
    clv__check_skip(check, "filling the memory", "%s",
                    limit == 0 ? "the device states no limit" : "the device states a limit above 1 GiB");
    return;
  }
  for (uint32_t round = 0; round < 2; ++round) {
    uint64_t taken = 0, piece = limit / 16 + 1;
    uint32_t count = 0;
    clv_error error = {0};
    clv_status status = CLV_OK;
    clv__check_at(check, "filling the memory, round %u", round + 1);
    while (count < MOST_BUFFERS && status == CLV_OK) {
      clv__error_clear(&error);
      status = check->backend->buffer_alloc(check->handle, piece, &buffers[count], &error);
      if (status == CLV_OK) taken += piece;
      count += status == CLV_OK;
    }
    clv__check_that(check, status == CLV_OUT_OF_MEMORY && error.message[0] != '\0', "filling the memory",
                    "after %llu of %llu bytes, buffer_alloc returned '%s'; expected 'out of memory' with an error text: %s",
                    (unsigned long long)taken, (unsigned long long)limit, clv_status_name(status), error.message);
    clv__check_that(check, taken <= limit, "filling the memory",
                    "%llu bytes could be allocated, but the device states a limit of %llu", (unsigned long long)taken,
                    (unsigned long long)limit);
    if (round == 0) first = taken;
    clv__check_that(check, round == 0 || taken >= first, "filling the memory again",
                    "only %llu bytes could be allocated after all buffers were freed; %llu the first time",
                    (unsigned long long)taken, (unsigned long long)first);
    while (count > 0) check->backend->buffer_free(check->handle, buffers[--count]);
  }
}

/* ---- Executions ---- */

/* Each operand lies in a block of its own, with guard bytes before and after it. guard_offset() is the operand's offset in the
 * block, and guarded_bytes() the size of the block. */
static uint64_t guard_offset(const clv__check *check) {
  return clv__align_up(GUARD, clv__devices_alignment(check->devices, check->device->space));
}
static size_t guarded_bytes(const clv__check *check, size_t size_bytes) {
  return (size_t)guard_offset(check) + size_bytes + GUARD;
}

/* Moves each operand into a block of its own, between guard bytes. */
static clv_status guard_operands(clv__check_job *job, clv_error *error) {
  clv__check *check = job->check;
  for (uint32_t i = 0; i < job->input_count + job->output_count; ++i) {
    clv__check_operand *operand = &job->operands[i], room;
    const clv_tensor type = operand->type;
    const size_t size_bytes = operand->size_bytes;
    const int64_t dims[] = {(int64_t)guarded_bytes(check, size_bytes)};
    const clv_tensor all = clv__tensor_make(CLV_U8, 1, dims, NULL);
    clv__check_operand_free(check, operand);
    CLV__TRY(clv__check_operand_alloc(check, &all, &room, error));
    clv_status status = clv__check_operand_fill(check, job->stream, &room, GUARD_BYTE, error);
    *operand = room;
    operand->type = type;
    operand->size_bytes = size_bytes;
    operand->offset_bytes = guard_offset(check);
    CLV__TRY(status);
  }
  return CLV_OK;
}

/* Counts the changed bytes of an operand's block: those of the operand if `inside`, otherwise those around it. */
static clv_status count_changed(clv__check_job *job, uint32_t index, const void *was, bool inside, size_t *changed,
                                clv_error *error) {
  clv__check *check = job->check;
  clv__check_operand all = job->operands[index];
  const size_t from = (size_t)all.offset_bytes, size_bytes = all.size_bytes;
  all.offset_bytes = 0;
  all.size_bytes = guarded_bytes(check, size_bytes);
  uint8_t *bytes = clv__allocate(check->allocator, all.size_bytes);
  *changed = 0;
  if (bytes == NULL) return clv__error_memory(error, all.size_bytes);
  clv_status status = clv__check_operand_read(check, job->stream, &all, bytes, error);
  for (size_t i = 0; status == CLV_OK && i < all.size_bytes; ++i) {
    bool is_inside = i >= from && i < from + size_bytes;
    if (is_inside != inside) continue;
    *changed += bytes[i] != (inside ? ((const uint8_t *)was)[i - from] : GUARD_BYTE);
  }
  clv__release(check->allocator, bytes);
  return status;
}

static void check_guards(clv__check_scene *scene, clv__check_job *job) {
  clv__check *check = scene->check;
  const clv_graph_view *view = scene->program.view;
  clv_error error = {0};
  size_t changed;
  for (uint32_t i = 0; i < job->input_count + job->output_count; ++i) {
    bool is_input = i < job->input_count;
    clv_value_id value = view->values[is_input ? view->inputs[i] : view->outputs[i - job->input_count]];
    const char *name = scene->graph->values[value].name;
    clv_status status = count_changed(job, i, NULL, false, &changed, &error);
    if (status == CLV_OK) {
      clv__check_that(check, changed == 0, scene->what, "%zu bytes next to %s '%s' were written", changed,
                      is_input ? "input" : "output", name);
    }
    if (status == CLV_OK && is_input) {
      status = count_changed(job, i, scene->truth.values[value].data, true, &changed, &error);
      if (status == CLV_OK) {
        clv__check_that(check, changed == 0, scene->what, "%zu bytes of input '%s' were written", changed, name);
      }
    }
    if (status != CLV_OK) clv__check_failed_call(check, scene->what, "reading an operand", status, &error);
  }
}

static void check_execution(clv__check_scene *scene) {
  clv__check *check = scene->check;
  clv__check_job job = {0};
  clv_error error = {0};
  char text[1024];
  if (!clv__scene_start(scene, &job)) return;
  clv_status status = guard_operands(&job, &error);
  for (int round = 0; status == CLV_OK && round < 2; ++round) {
    status = clv__check_job_load(&job, scene->truth.values, round == 0 ? 0xff : 0x00, &error);
    if (status == CLV_OK) status = clv__check_job_execute(&job, &error);
    if (status == CLV_OK) status = clv__check_job_wait(&job, &error);
    if (status != CLV_OK) break;
    clv__check_that(check, clv__check_job_agrees(&job, scene->truth.values, text, sizeof text), scene->what,
                    "run with outputs that were filled with 0x%02x before: %s", round == 0 ? 0xff : 0, text);
    check_guards(scene, &job);
  }
  if (status != CLV_OK) clv__check_failed_call(check, scene->what, "executing between guards", status, &error);
  clv__check_job_finish(&job);
}

static void check_executions(clv__check *check, bool is_image, uint32_t count) {
  static const int64_t rows[][2] = {{7, 33}, {3, 5}, {1, 1}, {4, 8}},
                       images[][4] = {{1, 3, 5, 7}, {1, 4, 8, 8}, {2, 5, 1, 3}, {1, 1, 1, 1}};
  clv__menu menu;
  if (!clv__menu_find(check, is_image, false, &menu)) {
    clv__check_skip(check, is_image ? "images" : "rows", "the device supports none of the operators of the kit's random graphs");
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_scene scene;
    const int64_t *dims = is_image ? images[i % 4] : rows[i % 4];
    clv__check_progress(check, i, count);
    if (!clv__scene_draw(check, &menu, 1 + i % 5, dims, NULL, true, 40, check->seed + 7u * i, &scene)) continue;
    check_execution(&scene);
    clv__scene_finish(&scene);
  }
}

void clv__check_memory(clv__check *check) {
  const uint64_t limit = check->device->info.memory_limit_bytes;
  check_alignment(check);
  check_apart(check);
  check_too_much(check, UINT64_C(1) << 60);
  if (limit > 0) check_too_much(check, limit + 1);
  check_limit(check);
  check_executions(check, false, clv__check_thin(check, 24));
  check_executions(check, true, clv__check_thin(check, 16));
}
