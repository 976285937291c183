/* Appends the call of an elementwise row function. If the whole tensor is one contiguous row, the call is the row function
 * itself. Otherwise it is a loop that calls the row function for each position of the outer axes. */
#include "backends/cpu/lower/small.h"
#include "calls.h"

typedef struct row_call {
  clv__row row;
  clv__elementwise_params params;
} row_call;

typedef struct outer_axis {
  int64_t extent, out; /* `out` and `in` are strides in bytes */
  int64_t in[CLV__ROW_INPUTS];
} outer_axis;

typedef struct rows_arguments {
  clv__row_fn function;
  clv__row row;
  clv__elementwise_params params;
  uint32_t axis_count, input_count;
  outer_axis axes[]; /* the outer axes, the innermost of them first */
} rows_arguments;

/* Calls the row function for each position of the outer axes. */
static clv_status run_rows(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  (void)stop;
  const rows_arguments *arguments = (const rows_arguments *)(const void *)call->arguments;
  int64_t at[CLV_MAX_RANK] = {0};
  clv__row row = arguments->row;
  (void)error;
  for (;;) {
    arguments->function(&row);
    uint32_t d = 0;
    for (;; ++d) {
      if (d == arguments->axis_count) return CLV_OK;
      const outer_axis *axis = &arguments->axes[d];
      const bool more = ++at[d] < axis->extent;
      const int64_t steps = more ? 1 : 1 - axis->extent;
      row.out = (uint8_t *)row.out + steps * axis->out;
      for (uint32_t k = 0; k < arguments->input_count; ++k) row.in[k] = (const uint8_t *)row.in[k] + steps * axis->in[k];
      if (more) break;
      at[d] = 0;
    }
  }
}

static clv_status fill_row(clv__cpu_list *list, const clv__cpu_step *step, const clv__walk *walk, clv__row *row,
                           clv__elementwise_params *params, clv_error *error) {
  const clv__cpu_elementwise *elementwise = step->elementwise;
  row->count = walk->length;
  *params = elementwise->params;
  CLV__TRY(clv__cpu_list_patch(list, &row->params, CLV__CPU_BASE_LIST, (size_t)((uint8_t *)params - list->block), error));
  for (uint32_t k = 0; k < elementwise->input_count; ++k) {
    row->step[k] = walk->step[k];
    CLV__TRY(clv__cpu_calls_point(list, &row->in[k], step->operands[k].slot, error));
  }
  return clv__cpu_calls_point(list, &row->out, step->operands[step->input_count].slot, error);
}

static clv_status add_rows(clv__cpu_list *list, uint32_t index, const clv__walk *walk, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  const size_t size_bytes = sizeof(rows_arguments) + (size_t)walk->rank * sizeof(outer_axis);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  rows_arguments *arguments = (rows_arguments *)(void *)call->arguments;
  call->function.run = run_rows;
  arguments->function = step->elementwise->what.run;
  arguments->axis_count = (uint32_t)walk->rank;
  arguments->input_count = step->elementwise->input_count;
  int64_t stride = walk->length * (int64_t)clv_dtype_size_bytes(step->operands[step->input_count].type.dtype);
  for (int32_t d = 0; d < walk->rank; ++d) {
    outer_axis *axis = &arguments->axes[d];
    const int32_t from = walk->rank - 1 - d;
    axis->extent = walk->dims[from];
    axis->out = stride;
    stride *= axis->extent;
    for (uint32_t k = 0; k < arguments->input_count; ++k) {
      axis->in[k] = walk->strides[k][from] * (int64_t)clv_dtype_size_bytes(step->operands[k].type.dtype);
    }
  }
  return fill_row(list, step, walk, &arguments->row, &arguments->params, error);
}

clv_status clv__cpu_calls_elementwise(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  const clv_tensor *inputs[CLV__ROW_INPUTS];
  clv__walk walk;
  for (uint32_t k = 0; k < step->input_count; ++k) inputs[k] = &step->operands[k].type;
  clv__walk_plan(&walk, &step->operands[step->input_count].type, inputs, step->input_count);
  if (walk.rank > 0) return add_rows(list, index, &walk, error);
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(row_call));
  if (call == NULL) return clv__error_memory(error, sizeof(row_call));
  row_call *arguments = (row_call *)(void *)call->arguments;
  call->function.row = step->elementwise->what.run;
  call->is_row = 1;
  return fill_row(list, step, &walk, &arguments->row, &arguments->params, error);
}
