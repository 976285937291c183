/* Reads the options of planning from the arguments: pins, files of pins, forces, the strategy and others. */
#include <string.h>

#include "base/files/file.h"
#include "cli/options/options.h"
#include "cli/options/pins.h"
#include "place/place.h"

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
  clv_assignment item = {clv__arena_string(&list->cli->arena, pin.pattern, pin.pattern_length),
                         clv__arena_string(&list->cli->arena, pin.device, pin.device_length)};
  if (item.pattern == NULL || item.device == NULL ||
      !clv__array_reserve(list->cli->allocator, (void **)&list->items, &list->capacity, list->count + 1, sizeof item,
                          list->count)) {
    return clv__error_memory(error, length);
  }
  list->items[list->count++] = item;
  return CLV_OK;
}

static clv_status add_file(assignments *list, const char *path, clv_error *error) {
  clv__file_map map;
  clv_status status = clv__file_map_open(path, &map, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "option '--pins'");
  status = cli_pins_each(path, (const char *)map.data, map.size_bytes, add, list, error);
  clv__file_map_close(&map);
  return status;
}

static clv_status add_given(assignments *list, const cli_given *given, clv_error *error) {
  for (uint32_t i = 0; i < given->count; ++i) CLV__TRY(add(list, given->values[i], strlen(given->values[i]), error));
  return CLV_OK;
}

static clv_status keep(assignments *list, const clv_assignment **items, uint32_t *count, clv_error *error) {
  clv_assignment *copy = clv__arena_copy(&list->cli->arena, list->items, list->count * sizeof *copy);
  if (copy == NULL) return clv__error_memory(error, list->count * sizeof *copy);
  *items = copy;
  *count = (uint32_t)list->count;
  return CLV_OK;
}

const char *cli_strategy(uint32_t index, const char **summary) {
  for (const clv__strategy *const *s = clv__strategies; *s != NULL; ++s) {
    if (index-- > 0) continue;
    *summary = (*s)->summary;
    return (*s)->name;
  }
  return NULL;
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
  CLV__TRY(check_strategy(cli, options->strategy, error));
  options->split = cli_text(cli, OPTION_SPLIT, NULL);
  options->objective = cli_text(cli, OPTION_OBJECTIVE, NULL);
  options->offload = cli_text(cli, OPTION_OFFLOAD, NULL);
  options->profile = cli_text(cli, OPTION_PROFILE, NULL);
  assignments pins = {.cli = cli}, forces = {.cli = cli}, weights = {.cli = cli}, values = {.cli = cli};
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < given[OPTION_PINS].count; ++i) CLV__TRY_GOTO(add_file(&pins, given[OPTION_PINS].values[i], error));
  CLV__TRY_GOTO(add_given(&pins, &given[OPTION_PIN], error));
  CLV__TRY_GOTO(add_given(&forces, &given[OPTION_FORCE], error));
  CLV__TRY_GOTO(add_given(&weights, &given[OPTION_WEIGHTS], error));
  CLV__TRY_GOTO(add_given(&values, &given[OPTION_VALUE], error));
  CLV__TRY_GOTO(keep(&pins, &options->pins, &options->pin_count, error));
  CLV__TRY_GOTO(keep(&forces, &options->forces, &options->force_count, error));
  CLV__TRY_GOTO(keep(&weights, &options->weights, &options->weight_count, error));
  CLV__TRY_GOTO(keep(&values, &options->values, &options->value_count, error));
cleanup:
  clv__release(cli->allocator, pins.items);
  clv__release(cli->allocator, forces.items);
  clv__release(cli->allocator, weights.items);
  clv__release(cli->allocator, values.items);
  return status;
}
