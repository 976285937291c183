/* `--batch N`: the size of the inputs' first dimension, where the model leaves it open. See job.h. */
#include <stdio.h>
#include <string.h>

#include "cleave/label.h"
#include "cleave/tensors.h"
#include "cli/job.h"

/* Returns the name of a dimension; NULL unless it is symbolic. */
static const char *symbol_of(const clv_graph *graph, int64_t dim) {
  return dim < CLV_DIM_UNKNOWN && -2 - dim <= UINT32_MAX ? clv_graph_symbol_name(graph, (uint32_t)(-2 - dim)) : NULL;
}

/* Returns whether a symbol is the batch size: inputs have the symbol as their first dimension and in no other place. For
 * example, S is not the batch size if the inputs are [S] and [N,S]. */
static bool is_batch(const clv_graph *graph, int64_t symbol) {
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) {
    const clv_tensor *type = clv_graph_input_type(graph, i);
    for (int32_t d = 1; d < type->rank; ++d) {
      if (type->dims[d] == symbol) return false;
    }
  }
  return true;
}

static clv_status no_batch(const clv_graph *graph, uint64_t batch, clv_error *error) {
  char text[440] = "no input has dimensions";
  const char *way_out = "";
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) {
    const clv_tensor *type = clv_graph_input_type(graph, i);
    if (type->data != NULL || type->rank < 1) continue;
    char name[200], label[200];
    (void)clv_label_name(clv_graph_input_name(graph, i), 40, name, sizeof name);
    (void)clv_tensor_type_text(graph, type, label, sizeof label);
    snprintf(text, sizeof text, "input '%s' is %s", name, label);
    if (type->dims[0] == (int64_t)batch) return CLV_OK; /* the model has exactly this batch size */
    way_out = "; export the model with a symbol as first dimension that no other dimension of an input uses";
    break;
  }
  return cli_error_set(error, CLV_INVALID_ARGUMENT, "the model has no batch of %llu: %s%s", (unsigned long long)batch, text,
                       way_out);
}

/* Appends the batch as the size of a symbol. Appends nothing if `sizes` already has this size for the symbol, and fails if it
 * has another one. */
static clv_status set_symbol(const char *symbol, uint64_t batch, clv_size *sizes, uint32_t *count, clv_error *error) {
  for (uint32_t i = 0; i < *count; ++i) {
    if (!sizes[i].is_symbol || strcmp(sizes[i].name, symbol) != 0) continue;
    if (sizes[i].dims[0] == (int64_t)batch) return CLV_OK;
    return cli_error_set(error, CLV_INVALID_ARGUMENT, "--dim sets '%s', the batch, to %lld, but --batch is %llu", symbol,
                         (long long)sizes[i].dims[0], (unsigned long long)batch);
  }
  sizes[(*count)++] = (clv_size){.name = symbol, .is_symbol = true, .rank = 1, .dims = {(int64_t)batch}};
  return CLV_OK;
}

clv_status cli_batch_sizes(cli_invocation *cli, const clv_graph *graph, clv_size *sizes, uint32_t *count, clv_error *error) {
  const uint64_t batch = cli_number(cli, OPTION_BATCH, 0);
  bool any = false;
  if (batch == 0) return CLV_OK;
  for (uint32_t i = 0; i < clv_graph_input_count(graph); ++i) {
    const clv_tensor *type = clv_graph_input_type(graph, i);
    if (type->data != NULL || type->rank < 1 || symbol_of(graph, type->dims[0]) == NULL || !is_batch(graph, type->dims[0]))
      continue;
    any = true;
    CLI_TRY(set_symbol(symbol_of(graph, type->dims[0]), batch, sizes, count, error));
  }
  return any ? CLV_OK : no_batch(graph, batch, error);
}
