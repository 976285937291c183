/* Compiles and runs blocks: each has its own plan and session. See block.h. */
#include <stdio.h>
#include <string.h>

#include "execute/session.h"
#include "gnn/model/block.h"

static clv_status open_session(clv_devices *devices, uint32_t device, const clv_session_options *options, clv__block_run *run,
                               clv_error *error) {
  clv_plan_options plan_options = CLV_PLAN_OPTIONS_INIT;
  clv_assignment pin = {.pattern = "*"};
  if (device != CLV__NO_ID) {
    char reason[200];
    bool runs;
    pin.device = devices->items[device].name;
    CLV__TRY(clv__block_ask(devices, device, &run->block, &runs, reason, error));
    if (!runs) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s: %s", pin.device, reason);
    plan_options.pins = &pin;
    plan_options.pin_count = 1;
  }
  CLV__TRY(clv_plan_make(run->block.graph, devices, &plan_options, &run->plan, error));
  return clv_session_create(run->plan, options, &run->session, error);
}

clv_status clv__block_open(clv_devices *devices, uint32_t device, clv__block *block, const clv_session_options *options,
                           clv__block_run *run, clv_error *error) {
  *run = (clv__block_run){.block = *block};
  block->graph = NULL;
  clv_status status = open_session(devices, device, options, run, error);
  if (status == CLV_OK) return CLV_OK;
  clv__error_prefix(error, status, "block %s to %s", clv__stage_name(run->block.stages.items[run->block.first]),
                    clv__stage_name(run->block.stages.items[run->block.last - 1]));
  clv__block_close(run);
  return status;
}

void clv__block_close(clv__block_run *run) {
  clv_session_destroy(run->session);
  clv_plan_destroy(run->plan);
  clv__block_finish(&run->block);
  run->session = NULL;
  run->plan = NULL;
}

clv_status clv__block_prepare(clv__block_run *run, clv__layer_sizes sizes, clv_error *error) {
  const clv__block *block = &run->block;
  clv_tensor types[CLV__LAYER_VALUES];
  for (uint32_t i = 0; i < block->input_count; ++i) {
    clv__value_shape shape = clv__layer_value_shape(&block->stages, block->inputs[i]);
    const int64_t dims[] = {(int64_t)clv__layer_dimension_size(shape.dimension, sizes), shape.columns};
    types[i] = clv__tensor_make(shape.dtype, shape.columns == 0 ? 1 : 2, dims, NULL);
  }
  return clv__session_prepare(run->session, types, block->input_count, error);
}

clv_status clv__block_execute(clv__block_run *run, clv__layer_values *values, clv_error *error) {
  const clv__block *block = &run->block;
  clv_tensor inputs[CLV__LAYER_VALUES], outputs[CLV__LAYER_VALUES];
  for (uint32_t i = 0; i < block->input_count; ++i) {
    inputs[i] = values->items[block->inputs[i]];
    if (inputs[i].dtype == CLV_DTYPE_NONE)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "value '%s' is missing", clv__layer_value_name(block->inputs[i]));
  }
  for (uint32_t i = 0; i < block->output_count; ++i) outputs[i] = values->items[block->outputs[i]];
  CLV__TRY(clv_session_run(run->session, inputs, block->input_count, outputs, block->output_count, error));
  for (uint32_t i = 0; i < block->output_count; ++i) values->items[block->outputs[i]] = outputs[i];
  return CLV_OK;
}
