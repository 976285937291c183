/* Suggests "did you mean …?" for the nodes, operators, values and devices of --pin, --force, --weights, --value and --what-if. */
#include <stdio.h>
#include <string.h>

#include "cleave/graph_contents.h"
#include "cleave/program.h"
#include "cli/job.h"

typedef struct candidates {
  cli_invocation *cli;
  const char **names;
  size_t count;
} candidates;

static void add(candidates *list, const char *name) {
  if (name[0] != '\0') list->names[list->count++] = name;
}

/* Adds the name of an operator as people type it: aten.cat if the model has aten.cat.default. */
static void add_operator(candidates *list, const clv_graph_node_info *node) {
  const char *first = strchr(node->source_op, '.'), *last = strrchr(node->source_op, '.');
  bool has_overload = first != NULL && last != first;
  size_t length = has_overload ? (size_t)(last - node->source_op) : strlen(node->source_op);
  const char *shown = has_overload ? cli_arena_string(&list->cli->arena, node->source_op, length) : node->source_op;
  if (shown != NULL) add(list, shown);
  if (node->source_op[0] == '\0') add(list, node->op);
}

static void add_names(candidates *list, const cli_job *job, cli_option_id option) {
  const bool values = option == OPTION_WEIGHTS || option == OPTION_VALUE;
  clv_graph_node_info node = {.struct_size = sizeof node};
  clv_graph_value_info value = {.struct_size = sizeof value};
  for (uint32_t i = 0; values && clv_graph_value(job->graph, i, &value); ++i) {
    if (value.is_constant == (option == OPTION_WEIGHTS)) add(list, value.name);
  }
  for (uint32_t i = 0; !values && clv_graph_node(job->graph, i, &node); ++i) {
    if (option == OPTION_PIN) {
      add(list, node.name);
      add(list, node.source_name);
    } else {
      add_operator(list, &node);
    }
  }
}

/* Adds the device list to the message. If the device exists but is not in the list, also shows how to add it. */
static clv_status say_list(const cli_job *job, const char *device, bool known, clv_error *error) {
  char list[512] = "";
  size_t used = 0;
  for (uint32_t d = 0; d < clv_devices_count(job->devices) && used < sizeof list; ++d) {
    int written = snprintf(list + used, sizeof list - used, "%s%s", d > 0 ? "," : "", clv_devices_name(job->devices, d));
    used += written < 0 ? 0 : (size_t)written;
  }
  clv_error said = *error;
  if (!known) return cli_error_set(error, said.status, "%s (--devices %s)", said.message, list);
  return cli_error_set(error, said.status, "%s (--devices %s); to add it, give --devices %s,%s", said.message, list, device,
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
  size_t most = 2 * ((size_t)clv_graph_node_count(graph) + clv_graph_value_count(graph)) + clv_devices_count(job->devices);
  candidates list = {cli, cli_arena_allocate_zero(&cli->arena, most, sizeof *list.names), 0};
  if (list.names == NULL) return error->status; /* a missing suggestion is not an error */
  bool is_device = !cli_devices_find(job->devices, wrong->device, NULL);
  if (is_device) cli->exit_status = CLI_EXIT_USAGE;
  if (is_device && clv_context_knows_device(cli->context, wrong->device)) return say_list(job, wrong->device, true, error);
  for (uint32_t d = 0; is_device && d < clv_devices_count(job->devices); ++d) add(&list, clv_devices_name(job->devices, d));
  if (!is_device) add_names(&list, job, option);
  const char *nearest = cli_nearest(is_device ? wrong->device : wrong->pattern, list.names, list.count);
  if (nearest == NULL && is_device) return say_list(job, wrong->device, false, error);
  if (nearest == NULL || (!is_device && strpbrk(wrong->pattern, "*?") != NULL)) return error->status;
  clv_error said = *error;
  return cli_error_set(error, said.status, "%s; did you mean '%s'?", said.message, nearest);
}
