/* See shapes_given.h. */
#include "analysis/shapes_given.h"

#include <stdio.h>

/* Appends `name` to a list for an error message while there is room. */
static void list_name(char *list, size_t size_bytes, const char *name) {
  size_t used = strlen(list);
  snprintf(list + used, size_bytes - used, "%s%s", used > 0 ? ", " : "", name);
}

static clv_status bind(const clv_graph *graph, uint32_t symbol, int64_t size, const char *where, int64_t *bindings,
                       const char **bound_by, clv_error *error) {
  if (bindings[symbol] >= 0 && bindings[symbol] != size) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "dimension '%s' is %lld according to '%s', but %lld according to '%s'",
                          graph->symbols[symbol], (long long)bindings[symbol], bound_by[symbol], (long long)size, where);
  }
  bindings[symbol] = size;
  bound_by[symbol] = where;
  return CLV_OK;
}

static clv_status bind_symbol(const clv_graph *graph, const clv__shape_given *given, int64_t *bindings, const char **bound_by,
                              clv_error *error) {
  for (uint32_t k = 0; k < graph->symbol_count; ++k) {
    if (strcmp(graph->symbols[k], given->name) != 0) continue;
    if (given->dims[0] < 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "dimension '%s' must not be negative, but is set to %lld", given->name,
                            (long long)given->dims[0]);
    }
    return bind(graph, k, given->dims[0], given->name, bindings, bound_by, error);
  }
  char list[400] = "";
  for (uint32_t k = 0; k < graph->symbol_count; ++k) list_name(list, sizeof list, graph->symbols[k]);
  return clv__error_set(error, CLV_NOT_FOUND, "no symbolic dimension is named '%s'; %s: %s", given->name,
                        graph->symbol_count == 0 ? "there are none" : "the symbolic dimensions are",
                        graph->symbol_count == 0 ? "the model names no dimension" : list);
}

static clv_status bind_input(const clv_graph *graph, const clv__shape_given *given, int64_t *bindings, const char **bound_by,
                             clv_error *error) {
  const clv__value *input = NULL;
  for (uint32_t i = 0; i < graph->input_count && input == NULL; ++i) {
    const clv__value *value = &graph->values[graph->inputs[i]];
    if (strcmp(value->name, given->name) == 0) input = value;
  }
  if (input == NULL) {
    char list[400] = "";
    for (uint32_t i = 0; i < graph->input_count; ++i) list_name(list, sizeof list, graph->values[graph->inputs[i]].name);
    return clv__error_set(error, CLV_NOT_FOUND, "no input is named '%s'; the inputs are: %s", given->name, list);
  }
  const clv_tensor *declared = &input->type;
  bool fits = given->rank >= 0 && given->rank <= CLV_MAX_RANK;
  if (fits && declared->dtype != CLV_DTYPE_NONE && declared->rank >= 0) {
    fits = given->rank == declared->rank;
    for (int32_t d = 0; fits && d < given->rank; ++d) {
      fits = given->dims[d] < 0 || declared->dims[d] < 0 || given->dims[d] == declared->dims[d];
    }
  }
  if (!fits) {
    char want[200], have[96];
    clv_tensor type =
        clv__tensor_make(declared->dtype, given->rank < 0 || given->rank > CLV_MAX_RANK ? 0 : given->rank, given->dims, NULL);
    clv__graph_type_text(graph, declared, want, sizeof want);
    clv__graph_type_text(graph, &type, have, sizeof have);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is declared as %s, so it cannot be %s", given->name, want,
                          have);
  }
  for (int32_t d = 0; declared->dtype != CLV_DTYPE_NONE && d < declared->rank; ++d) {
    if (declared->dims[d] >= CLV_DIM_UNKNOWN || given->dims[d] < 0) continue;
    CLV__TRY(bind(graph, (uint32_t)(-2 - declared->dims[d]), given->dims[d], given->name, bindings, bound_by, error));
  }
  return CLV_OK;
}

/* Rejects shapes whose elements cannot be counted, because their prices and sizes would be meaningless. */
static clv_status check_countable(const clv_graph *graph, const int64_t *bindings, clv_error *error) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    const clv__value *value = &graph->values[graph->inputs[i]];
    clv_tensor type = value->type;
    bool is_known = type.dtype != CLV_DTYPE_NONE && type.rank >= 0;
    size_t size_bytes;
    for (int32_t d = 0; d < type.rank; ++d) {
      if (type.dims[d] < CLV_DIM_UNKNOWN) type.dims[d] = bindings[-2 - type.dims[d]];
      is_known = is_known && type.dims[d] >= 0;
    }
    if (!is_known || clv__tensor_size_bytes(&type, &size_bytes)) continue;
    char text[200];
    clv__graph_type_text(graph, &type, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' cannot be %s: this is too large for any machine", value->name,
                          text);
  }
  return CLV_OK;
}

clv_status clv__given_bind(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, int64_t *bindings,
                           clv_error *error) {
  for (uint32_t k = 0; k < graph->symbol_count; ++k) bindings[k] = CLV_DIM_SYMBOL(k);
  const char **bound_by = clv__allocate_zero(graph->allocator, graph->symbol_count * sizeof *bound_by);
  if (bound_by == NULL) return clv__error_memory(error, graph->symbol_count * sizeof *bound_by);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < given_count && status == CLV_OK; ++i) {
    status = given[i].is_symbol ? bind_symbol(graph, &given[i], bindings, bound_by, error)
                                : bind_input(graph, &given[i], bindings, bound_by, error);
  }
  clv__release(graph->allocator, (void *)bound_by);
  return status == CLV_OK && given_count > 0 ? check_countable(graph, bindings, error) : status;
}

void clv__given_apply(const char *name, const clv__shape_given *given, uint32_t given_count, clv_tensor *type) {
  for (uint32_t i = 0; i < given_count; ++i) {
    if (given[i].is_symbol || strcmp(given[i].name, name) != 0) continue;
    if (type->rank < 0) {
      type->rank = given[i].rank;
      for (int32_t d = 0; d < type->rank; ++d) type->dims[d] = CLV_DIM_UNKNOWN;
    }
    for (int32_t d = 0; d < type->rank; ++d) {
      if (given[i].dims[d] >= 0) type->dims[d] = given[i].dims[d];
    }
  }
}
