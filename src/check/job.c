/* Jobs (see run.h): an instance, its scratch and stream, and operands that the device can reach. */
#include <stdio.h>
#include <string.h>

#include "check/run.h"

/* ---- Operands ---- */

clv_status clv__check_operand_alloc(clv__check *check, const clv_tensor *type, clv__check_operand *operand, clv_error *error) {
  *operand = (clv__check_operand){.type = *type};
  operand->type.data = NULL;
  if (!clv__tensor_size_bytes(type, &operand->size_bytes)) return clv__error_memory(error, SIZE_MAX);
  size_t room = operand->size_bytes == 0 ? 1 : operand->size_bytes;
  if (check->device->space == CLV__SPACE_HOST) {
    operand->memory = clv__allocate(check->allocator, room);
    return operand->memory != NULL ? CLV_OK : clv__error_memory(error, room);
  }
  clv__error_clear(error);
  clv_status status = check->backend->buffer_alloc(check->handle, room, &operand->buffer, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "buffer_alloc of %zu bytes", room);
}

void clv__check_operand_free(clv__check *check, clv__check_operand *operand) {
  if (!operand->is_borrowed) {
    if (operand->buffer != NULL) check->backend->buffer_free(check->handle, operand->buffer);
    clv__release(check->allocator, operand->memory);
  }
  *operand = (clv__check_operand){0};
}

/* Returns the address of an operand, or NULL if the host can access it only through copies. */
static char *host_address(const clv__check *check, const clv__check_operand *operand) {
  if (operand->memory != NULL) return (char *)operand->memory + operand->offset_bytes;
  if (check->device->space != CLV__SPACE_HOST) return NULL;
  char *base = check->backend->buffer_host_pointer(check->handle, operand->buffer);
  return base == NULL ? NULL : base + operand->offset_bytes;
}

clv_status clv__check_operand_write(clv__check *check, clv_stream *stream, const clv__check_operand *operand, const void *data,
                                    clv_error *error) {
  char *address = host_address(check, operand);
  if (operand->size_bytes == 0) return CLV_OK;
  if (address != NULL) {
    memcpy(address, data, operand->size_bytes);
    return CLV_OK;
  }
  clv__error_clear(error);
  clv_status status =
      check->backend->copy_in(check->handle, stream, operand->buffer, operand->offset_bytes, data, operand->size_bytes, error);
  if (status == CLV_OK) status = check->backend->stream_synchronize(check->handle, stream, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "copy_in of %zu bytes", operand->size_bytes);
}

clv_status clv__check_operand_fill(clv__check *check, clv_stream *stream, const clv__check_operand *operand, int byte,
                                   clv_error *error) {
  void *bytes = clv__allocate(check->allocator, operand->size_bytes);
  if (bytes == NULL) return clv__error_memory(error, operand->size_bytes);
  memset(bytes, byte, operand->size_bytes);
  clv_status status = clv__check_operand_write(check, stream, operand, bytes, error);
  clv__release(check->allocator, bytes);
  return status;
}

clv_status clv__check_operand_read(clv__check *check, clv_stream *stream, const clv__check_operand *operand, void *data,
                                   clv_error *error) {
  const char *address = host_address(check, operand);
  if (operand->size_bytes == 0) return CLV_OK;
  if (address != NULL) {
    memcpy(data, address, operand->size_bytes);
    return CLV_OK;
  }
  clv__error_clear(error);
  clv_status status =
      check->backend->copy_out(check->handle, stream, data, operand->buffer, operand->offset_bytes, operand->size_bytes, error);
  if (status == CLV_OK) status = check->backend->stream_synchronize(check->handle, stream, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "copy_out of %zu bytes", operand->size_bytes);
}

void clv__check_bind(const clv__check *check, const clv__check_operand *operand, clv_binding *binding) {
  *binding = (clv_binding){.buffer = operand->buffer, .type = operand->type};
  if (operand->type.rank == CLV_RANK_UNKNOWN) return;
  if (operand->buffer != NULL) binding->offset_bytes = operand->offset_bytes;
  binding->type.data = host_address(check, operand);
}

/* ---- Jobs ---- */

/* The allocate_output() that the job passes to execute(). Any thread of the device may call it. */
static clv_status give_room(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error) {
  clv__check_job *job = cookie;
  if (index >= job->output_count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "allocate_output() was called for output %u, which does not exist", index);
  __atomic_add_fetch(&job->rooms, 1, __ATOMIC_RELAXED);
  if (job->refuse_rooms)
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for output %u (simulated by the kit)", index);
  clv__check_operand *operand = &job->operands[job->input_count + index];
  clv__check_operand_free(job->check, operand);
  CLV__TRY(clv__check_operand_alloc(job->check, type, operand, error));
  clv__check_bind(job->check, operand, binding);
  return CLV_OK;
}

clv_status clv__check_job_scratch(clv__check_job *job, clv_error *error) {
  const clv__check *check = job->check;
  if (check->backend->scratch == NULL) return CLV_OK;
  uint64_t size_bytes = check->backend->scratch->size_bytes(check->handle, job->instance);
  if (size_bytes == 0) return CLV_OK;
  clv_buffer *before = job->scratch;
  clv__error_clear(error);
  job->scratch = NULL;
  clv_status status = check->backend->buffer_alloc(check->handle, size_bytes, &job->scratch, error);
  if (status == CLV_OK) {
    status = check->backend->scratch->bind(check->handle, job->instance, job->scratch, 0, error);
  }
  check->backend->buffer_free(check->handle, before);
  if (status == CLV_OK) return status;
  return clv__error_prefix(error, status, "scratch of %llu bytes", (unsigned long long)size_bytes);
}

static clv_value_id operand_value(const clv__check_job *job, uint32_t index) {
  const clv_graph_view *view = job->program->view;
  return view->values[index < view->input_count ? view->inputs[index] : view->outputs[index - view->input_count]];
}

clv_status clv__check_job_types(const clv__check_job *job, const clv_tensor *values, clv__arena *arena, clv_tensor **types,
                                clv_error *error) {
  *types = clv__arena_allocate_zero(arena, job->input_count, sizeof **types);
  if (*types == NULL) return clv__error_memory(error, job->input_count * sizeof **types);
  for (uint32_t i = 0; i < job->input_count; ++i) {
    (*types)[i] = values[operand_value(job, i)];
    (*types)[i].data = NULL;
  }
  return CLV_OK;
}

static clv_status make_instance(clv__check_job *job, const clv_tensor *values, clv_error *error) {
  const clv__check *check = job->check;
  const clv__check_program *program = job->program;
  clv_tensor *types;
  CLV__TRY(clv__check_job_types(job, values, &job->arena, &types, error));
  clv__error_clear(error);
  clv_status status = check->backend->instance_create(check->handle, program->executable, types, job->input_count,
                                                      program->weights, program->info.weight_count, &job->instance, error);
  if (status == CLV_OK) return clv__check_job_scratch(job, error);
  job->instance = NULL;
  return clv__error_prefix(error, status, "instance_create");
}

/* Finds the outputs whose sizes do not follow from the sizes of the graph's inputs. The device calls allocate_output() for them
 * when it knows the sizes. */
static clv_status find_open(clv__check_job *job, const clv_tensor *values, bool *is_open, clv_error *error) {
  const clv__check_program *program = job->program;
  const clv_graph *graph = program->graph;
  clv__shape_given *given = clv__arena_allocate_zero(&job->arena, graph->input_count, sizeof *given);
  uint32_t given_count = 0, open_count = 0;
  if (given == NULL) return clv__error_memory(error, graph->input_count * sizeof *given);
  for (uint32_t i = 0; i < job->output_count; ++i) {
    open_count += !clv__tensor_is_static(&program->shapes->types[operand_value(job, job->input_count + i)]);
  }
  if (open_count == 0) return CLV_OK;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = &values[graph->inputs[i]];
    if (type->dtype == CLV_DTYPE_NONE || clv__tensor_is_static(&graph->values[graph->inputs[i]].type)) continue;
    given[given_count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = type->rank};
    memcpy(given[given_count++].dims, type->dims, sizeof type->dims);
  }
  clv__shapes *exact = NULL;
  CLV__TRY(clv__shapes_infer(graph, given, given_count, SIZE_MAX, &exact, error));
  for (uint32_t i = 0; i < job->output_count; ++i) {
    is_open[i] = !clv__tensor_is_static(&exact->types[operand_value(job, job->input_count + i)]);
  }
  clv__shapes_destroy(exact);
  return CLV_OK;
}

clv_status clv__check_job_place(clv__check_job *job, const clv_tensor *values, clv_error *error) {
  bool *is_open = clv__arena_allocate_zero(&job->arena, job->output_count, sizeof *is_open);
  if (is_open == NULL) return clv__error_memory(error, job->output_count);
  CLV__TRY(find_open(job, values, is_open, error));
  for (uint32_t i = 0; i < job->input_count + job->output_count; ++i) {
    clv_value_id value = operand_value(job, i);
    clv__check_operand_free(job->check, &job->operands[i]);
    if (i >= job->input_count && is_open[i - job->input_count]) {
      job->operands[i].type = (clv_tensor){.dtype = values[value].dtype, .rank = CLV_RANK_UNKNOWN};
    } else {
      CLV__TRY(clv__check_operand_alloc(job->check, &values[value], &job->operands[i], error));
    }
  }
  return CLV_OK;
}

clv_status clv__check_job_open(clv__check_program *program, const clv_tensor *values, clv__check_job *job, clv_error *error) {
  clv__check *check = program->check;
  *job = (clv__check_job){.program = program, .check = check};
  clv__arena_init(&job->arena, check->allocator);
  job->input_count = program->view->input_count;
  job->output_count = program->view->output_count;
  uint32_t count = job->input_count + job->output_count;
  job->operands = clv__arena_allocate_zero(&job->arena, count, sizeof *job->operands);
  job->bindings = clv__arena_allocate_zero(&job->arena, count, sizeof *job->bindings);
  if (job->operands == NULL || job->bindings == NULL) {
    job->operands = NULL;
    return clv__error_memory(error, count * sizeof *job->operands);
  }
  CLV__TRY(make_instance(job, values, error));
  clv__error_clear(error);
  clv_status status = check->backend->stream_create(check->handle, &job->stream, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "stream_create");
  return clv__check_job_place(job, values, error);
}

void clv__check_job_finish(clv__check_job *job) {
  clv__check *check = job->check;
  if (check == NULL) return;
  if (job->stream != NULL) {
    (void)check->backend->stream_synchronize(check->handle, job->stream, NULL);
    check->backend->stream_destroy(check->handle, job->stream);
  }
  if (job->instance != NULL) check->backend->instance_destroy(check->handle, job->instance);
  if (job->scratch != NULL) check->backend->buffer_free(check->handle, job->scratch);
  for (uint32_t i = 0; job->operands != NULL && i < job->input_count + job->output_count; ++i) {
    clv__check_operand_free(check, &job->operands[i]);
  }
  clv__arena_finish(&job->arena);
  *job = (clv__check_job){0};
}

clv_status clv__check_job_load(clv__check_job *job, const clv_tensor *values, int byte, clv_error *error) {
  for (uint32_t i = 0; i < job->input_count + job->output_count; ++i) {
    clv__check_operand *operand = &job->operands[i];
    if (i < job->input_count) {
      CLV__TRY(clv__check_operand_write(job->check, job->stream, operand, values[operand_value(job, i)].data, error));
    } else if (operand->type.rank != CLV_RANK_UNKNOWN) {
      CLV__TRY(clv__check_operand_fill(job->check, job->stream, operand, byte, error));
    }
    clv__check_bind(job->check, operand, &job->bindings[i]);
  }
  job->args = (clv_execute_args){
      .struct_size = sizeof job->args,
      .input_count = job->input_count,
      .output_count = job->output_count,
      .inputs = job->bindings,
      .outputs = job->bindings + job->input_count,
      .cookie = job,
      .allocate_output = give_room,
  };
  return CLV_OK;
}

clv_status clv__check_job_execute(clv__check_job *job, clv_error *error) {
  clv__error_clear(error);
  clv_status status = job->check->backend->execute(job->check->handle, job->instance, job->stream, &job->args, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "execute");
}

clv_status clv__check_job_wait(clv__check_job *job, clv_error *error) {
  clv__error_clear(error);
  clv_status status = job->check->backend->stream_synchronize(job->check->handle, job->stream, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "stream_synchronize");
}

static bool output_agrees(clv__check_job *job, uint32_t index, const clv_tensor *values, char *text, size_t text_bytes) {
  const clv__check *check = job->check;
  const clv__check_operand *operand = &job->operands[job->input_count + index];
  clv_value_id value = operand_value(job, job->input_count + index);
  const char *name = job->program->graph->values[value].name;
  if (operand->type.rank == CLV_RANK_UNKNOWN) {
    snprintf(text, text_bytes, "'%s': its size depends on data, but the device did not call allocate_output()", name);
    return false;
  }
  clv_tensor actual = operand->type;
  clv_error error = {0};
  actual.data = clv__allocate(check->allocator, operand->size_bytes);
  clv_status status = actual.data == NULL ? clv__error_memory(&error, operand->size_bytes)
                                          : clv__check_operand_read(job->check, job->stream, operand, actual.data, &error);
  bool agrees = status == CLV_OK && clv__check_same(&values[value], &actual, name, text, text_bytes);
  if (status != CLV_OK) clv__check_call_text("", status, &error, text, text_bytes);
  clv__release(check->allocator, actual.data);
  return agrees;
}

bool clv__check_job_agrees(clv__check_job *job, const clv_tensor *values, char *text, size_t text_bytes) {
  for (uint32_t i = 0; i < job->output_count; ++i) {
    if (!output_agrees(job, i, values, text, text_bytes)) return false;
  }
  return true;
}

bool clv__check_job_run(clv__check_job *job, const clv_tensor *values, char *text, size_t text_bytes) {
  clv_error error = {0};
  clv_status status = clv__check_job_load(job, values, CLV__CHECK_POISON, &error);
  if (status == CLV_OK) status = clv__check_job_execute(job, &error);
  if (status == CLV_OK) status = clv__check_job_wait(job, &error);
  if (status == CLV_OK) return clv__check_job_agrees(job, values, text, text_bytes);
  clv__check_call_text("", status, &error, text, text_bytes);
  return false;
}
