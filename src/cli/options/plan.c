/* Reads the options of planning from the arguments: pins, files of pins, forces, the strategy and others. */
#include <stdlib.h>
#include <string.h>

#include "cleave/program.h"
#include "cli/options/options.h"
#include "cli/options/pins.h"

typedef struct assignments {
  cli_invocation *cli;
  clv_assignment *items;
  size_t count, capacity; /* `items` are on the heap until complete; see keep() */
} assignments;

static clv_status add(void *self, const char *text, size_t length, clv_error *error) {
  assignments *list = self;
  cli_pin pin;
  if (!cli_pin_read(text, length, &pin))
    return cli_usage(list->cli, error, "'%.*s' is not of the form PATTERN=DEV", (int)length, text);
  clv_assignment item = {cli_arena_string(&list->cli->arena, pin.pattern, pin.pattern_length),
                         cli_arena_string(&list->cli->arena, pin.device, pin.device_length)};
  if (item.pattern == NULL || item.device == NULL) return cli_error_memory(error, length);
  if (list->count == list->capacity) {
    const size_t capacity = 2 * list->capacity + 8;
    clv_assignment *larger = realloc(list->items, capacity * sizeof item);
    if (larger == NULL) return cli_error_memory(error, capacity * sizeof item);
    list->items = larger;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
  return CLV_OK;
}

static clv_status add_file(assignments *list, const char *path, clv_error *error) {
  char *text;
  size_t size_bytes;
  clv_status status = cli_file_read(path, &text, &size_bytes, error);
  if (status != CLV_OK) return cli_error_prefix(error, status, "option '--pins'");
  status = cli_pins_each(path, text, size_bytes, add, list, error);
  free(text);
  return status;
}

static clv_status add_given(assignments *list, const cli_given *given, clv_error *error) {
  for (uint32_t i = 0; i < given->count; ++i) CLI_TRY(add(list, given->values[i], strlen(given->values[i]), error));
  return CLV_OK;
}

static clv_status keep(assignments *list, const clv_assignment **items, uint32_t *count, clv_error *error) {
  clv_assignment *copy = cli_arena_copy(&list->cli->arena, list->items, list->count * sizeof *copy);
  if (copy == NULL) return cli_error_memory(error, list->count * sizeof *copy);
  *items = copy;
  *count = (uint32_t)list->count;
  return CLV_OK;
}

const char *cli_strategy(uint32_t index, const char **summary) {
  *summary = clv_strategy_summary(index);
  return clv_strategy_name(index);
}

static clv_status check_strategy(cli_invocation *cli, const char *name, clv_error *error) {
  const char *names[32], *summary;
  uint32_t count = 0;
  if (name == NULL) return CLV_OK;
  for (; count < 32 && (names[count] = cli_strategy(count, &summary)) != NULL; ++count) {
    if (strcmp(names[count], name) == 0) return CLV_OK;
  }
  const char *nearest = cli_nearest(name, names, count);
  if (nearest != NULL) return cli_usage(cli, error, "unknown strategy '%s'; did you mean '%s'?", name, nearest);
  return cli_usage(cli, error, "unknown strategy '%s'; 'cleave help plan' lists them", name);
}

clv_status cli_plan_options(cli_invocation *cli, clv_plan_options *options, clv_error *error) {
  const cli_given *given = cli->options->given;
  options->strategy = cli_text(cli, OPTION_STRATEGY, NULL);
  CLI_TRY(check_strategy(cli, options->strategy, error));
  options->split = cli_text(cli, OPTION_SPLIT, NULL);
  options->objective = cli_text(cli, OPTION_OBJECTIVE, NULL);
  options->offload = cli_text(cli, OPTION_OFFLOAD, NULL);
  options->profile = cli_text(cli, OPTION_PROFILE, NULL);
  assignments pins = {.cli = cli}, forces = {.cli = cli}, weights = {.cli = cli}, values = {.cli = cli};
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < given[OPTION_PINS].count; ++i) CLI_TRY_GOTO(add_file(&pins, given[OPTION_PINS].values[i], error));
  CLI_TRY_GOTO(add_given(&pins, &given[OPTION_PIN], error));
  CLI_TRY_GOTO(add_given(&forces, &given[OPTION_FORCE], error));
  CLI_TRY_GOTO(add_given(&weights, &given[OPTION_WEIGHTS], error));
  CLI_TRY_GOTO(add_given(&values, &given[OPTION_VALUE], error));
  CLI_TRY_GOTO(keep(&pins, &options->pins, &options->pin_count, error));
  CLI_TRY_GOTO(keep(&forces, &options->forces, &options->force_count, error));
  CLI_TRY_GOTO(keep(&weights, &options->weights, &options->weight_count, error));
  CLI_TRY_GOTO(keep(&values, &options->values, &options->value_count, error));
cleanup:
  free(pins.items);
  free(forces.items);
  free(weights.items);
  free(values.items);
  return status;
}
