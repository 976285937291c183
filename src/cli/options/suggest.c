/* Suggests "did you mean …?" for the nodes, operators, values and devices of --pin, --force, --weights, --value and --what-if. */
#include <stdio.h>
#include <string.h>

#include "cli/job.h"
#include "device/backends.h"

typedef struct candidates {
  cli_invocation *cli;
  const char **names;
  size_t count;
} candidates;

static void add(candidates *list, const char *name) {
  if (name[0] != '\0') list->names[list->count++] = name;
}

/* Adds the name of an operator as people type it: aten.cat if the model has aten.cat.default. */
static void add_operator(candidates *list, const clv__node *node) {
  const char *first = strchr(node->source_op, '.'), *last = strrchr(node->source_op, '.');
  bool has_overload = first != NULL && last != first;
  size_t length = has_overload ? (size_t)(last - node->source_op) : strlen(node->source_op);
  const char *shown = has_overload ? clv__arena_string(&list->cli->arena, node->source_op, length) : node->source_op;
  if (shown != NULL) add(list, shown);
  if (node->source_op[0] == '\0') add(list, node->op);
}

static void add_names(candidates *list, const cli_job *job, cli_option_id option) {
  const clv_graph *graph = job->graph;
  bool values = option == OPTION_WEIGHTS || option == OPTION_VALUE;
  for (uint32_t i = 0; i < (values ? graph->value_count : graph->node_count); ++i) {
    if (values) {
      const clv__value *value = &graph->values[i];
      bool is_constant = value->is_unbound || value->type.data != NULL;
      if (is_constant == (option == OPTION_WEIGHTS)) add(list, value->name);
    } else if (option == OPTION_PIN) {
      add(list, graph->nodes[i].name);
      add(list, graph->nodes[i].source_name);
    } else {
      add_operator(list, &graph->nodes[i]);
    }
  }
}

static bool is_known(const cli_invocation *cli, const char *device) {
  const char *rest;
  return clv__backends_find(clv__context_backends(cli->context), device, &rest) != NULL;
}

/* Adds the device list to the message. If the device exists but is not in the list, also shows how to add it. */
static clv_status say_list(const cli_job *job, const char *device, bool known, clv_error *error) {
  char list[512] = "";
  size_t used = 0;
  for (uint32_t d = 0; d < job->devices->count && used < sizeof list; ++d) {
    int written = snprintf(list + used, sizeof list - used, "%s%s", d > 0 ? "," : "", job->devices->items[d].name);
    used += written < 0 ? 0 : (size_t)written;
  }
  clv_error said = *error;
  if (!known) return clv__error_set(error, said.status, "%s (--devices %s)", said.message, list);
  return clv__error_set(error, said.status, "%s (--devices %s); to add it, give --devices %s,%s", said.message, list, device,
                        list);
}

clv_status cli_suggest(cli_invocation *cli, const cli_job *job, cli_option_id option, const clv_assignment *items, uint32_t count,
                       clv_error *error) {
  const clv_graph *graph = job->graph;
  const clv_assignment *wrong = NULL;
  char separator = option == OPTION_WHAT_IF ? '@' : '=';
  if (error == NULL || error->status != CLV_INVALID_ARGUMENT) return error == NULL ? CLV_INVALID_ARGUMENT : error->status;
  bool is_helped = strstr(error->message, "did you mean") != NULL;
  for (uint32_t i = 0; i < count && wrong == NULL && !is_helped; ++i) { /* find the item that the message quotes */
    char quoted[512];
    int length = snprintf(quoted, sizeof quoted, "'%s%c%s'", items[i].pattern, separator, items[i].device);
    if (length > 0 && (size_t)length < sizeof quoted && strstr(error->message, quoted) != NULL) wrong = &items[i];
  }
  if (wrong == NULL) return error->status;
  size_t most = 2 * (size_t)(graph->node_count + graph->value_count) + job->devices->count;
  candidates list = {cli, clv__arena_allocate_zero(&cli->arena, most, sizeof *list.names), 0};
  if (list.names == NULL) return error->status; /* a missing suggestion is not an error */
  bool is_device = clv__devices_find(job->devices, wrong->device) == CLV__NO_ID;
  if (is_device) cli->exit_status = CLI_EXIT_USAGE;
  if (is_device && is_known(cli, wrong->device)) return say_list(job, wrong->device, true, error);
  for (uint32_t d = 0; is_device && d < job->devices->count; ++d) add(&list, job->devices->items[d].name);
  if (!is_device) add_names(&list, job, option);
  const char *nearest = cli_nearest(is_device ? wrong->device : wrong->pattern, list.names, list.count);
  if (nearest == NULL && is_device) return say_list(job, wrong->device, false, error);
  if (nearest == NULL || (!is_device && strpbrk(wrong->pattern, "*?") != NULL)) return error->status;
  clv_error said = *error;
  return clv__error_set(error, said.status, "%s; did you mean '%s'?", said.message, nearest);
}
