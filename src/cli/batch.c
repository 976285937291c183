/* `--batch N`: the size of the inputs' first dimension, where the model leaves it open. See job.h. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/job.h"
#include "report/label.h"

static bool is_symbol(const clv_graph *graph, int64_t dim) {
  return dim < 0 && dim != CLV_DIM_UNKNOWN && (uint64_t)(-2 - dim) < graph->symbol_count;
}

static const clv_tensor *input_type(const clv_graph *graph, uint32_t input) {
  return &graph->values[graph->inputs[input]].type;
}

/* Returns whether a symbol is the batch size: inputs have the symbol as their first dimension and in no other place. For
 * example, S is not the batch size if the inputs are [S] and [N,S]. */
static bool is_batch(const clv_graph *graph, int64_t symbol) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = input_type(graph, i);
    for (int32_t d = 1; d < type->rank; ++d) {
      if (type->dims[d] == symbol) return false;
    }
  }
  return true;
}

static clv_status no_batch(const clv_graph *graph, uint64_t batch, clv_error *error) {
  char text[200] = "no input has dimensions";
  const char *way_out = "";
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = input_type(graph, i);
    if (type->data != NULL || type->rank < 1) continue;
    clv__text label;
    clv__text_init(&label, graph->allocator);
    clv__label_short(&label, graph->values[graph->inputs[i]].name, 40);
    clv__text_append(&label, "' is ");
    clv__label_type(&label, graph, type);
    snprintf(text, sizeof text, "input '%s", label.data);
    clv__text_finish(&label);
    if (type->dims[0] == (int64_t)batch) return CLV_OK; /* the model has exactly this batch size */
    way_out = "; export the model with a symbol as first dimension that no other dimension of an input uses";
    break;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "the model has no batch of %llu: %s%s", (unsigned long long)batch, text,
                        way_out);
}

/* Appends the batch as the size of a symbol. Appends nothing if `sizes` already has this size for the symbol, and fails if it
 * has another one. */
static clv_status set_symbol(const char *symbol, uint64_t batch, clv_size *sizes, uint32_t *count, clv_error *error) {
  for (uint32_t i = 0; i < *count; ++i) {
    if (!sizes[i].is_symbol || strcmp(sizes[i].name, symbol) != 0) continue;
    if (sizes[i].dims[0] == (int64_t)batch) return CLV_OK;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "--dim sets '%s', the batch, to %lld, but --batch is %llu", symbol,
                          (long long)sizes[i].dims[0], (unsigned long long)batch);
  }
  sizes[(*count)++] = (clv_size){.name = symbol, .is_symbol = true, .rank = 1, .dims = {(int64_t)batch}};
  return CLV_OK;
}

clv_status cli_batch_sizes(cli_invocation *cli, const clv_graph *graph, clv_size *sizes, uint32_t *count, clv_error *error) {
  const uint64_t batch = cli_number(cli, OPTION_BATCH, 0);
  bool any = false;
  if (batch == 0) return CLV_OK;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv_tensor *type = input_type(graph, i);
    if (type->data != NULL || type->rank < 1 || !is_symbol(graph, type->dims[0]) || !is_batch(graph, type->dims[0])) continue;
    any = true;
    CLV__TRY(set_symbol(graph->symbols[-2 - type->dims[0]], batch, sizes, count, error));
  }
  return any ? CLV_OK : no_batch(graph, batch, error);
}
