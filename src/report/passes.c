/* See passes.h. */
#include "report/passes.h"

#include <string.h>

#include "place/place.h"
#include "report/label.h"
#include "report/table.h"

static const struct {
  const char *name, *title;
} titles[] = {
    {"1", "assign nodes by pins, and by the memory of their outputs and weights"},
    {"2a", "give nodes without a device that of the nearest earlier node, unless it is the last device"},
    {"2b", "give nodes without a device that of the nearest later node, unless it is the last device"},
    {"2c", "give nodes without a device that of the nearest earlier node"},
    {"2d", "give nodes without a device that of the nearest later node"},
    {"3",
     "assign each other node to the device that can read most of its inputs; then move nodes to devices of higher priority that "
     "share the memory"},
    {"4", "assign views to the device of their source, and weights to that of their first reader"},
    {"5", "cut the list of nodes into partitions"},
};

static const char *title_of(const char *name) {
  for (size_t i = 0; i < sizeof titles / sizeof *titles; ++i) {
    if (strcmp(titles[i].name, name) == 0) return titles[i].title;
  }
  return "";
}

/* The values, the weights or the nodes after a pass. */
typedef struct list {
  const char *kind;
  uint32_t count;
  const char *const *names;
  const uint32_t *devices;
  const char *const *causes;
  const uint32_t *partition_of; /* indexed by node, if the pass cuts the graph into partitions; otherwise NULL */
} list;

static void lists_of(const clv__problem *problem, const clv__pass *pass, list lists[3]) {
  lists[0] = (list){"value", problem->value_count, problem->value_names, pass->value_devices, pass->value_causes, NULL};
  lists[1] = (list){"weight", problem->weight_count, problem->weight_names, pass->weight_devices, pass->weight_causes, NULL};
  lists[2] = (list){"node", problem->node_count, problem->node_names, pass->devices, pass->causes, pass->partition_of};
}

static const char *device_name(const clv_plan *plan, uint32_t device) {
  return device == CLV__NONE ? "-1" : plan->devices->items[device].name;
}

/* Returns the next copy, from *next on, that copies an input of partition `p` to the memory of its device. Skips copies to other
 * memories, such as the first half of a copy by way of the host. */
static const clv__copy *next_input(const clv_plan *plan, const clv__pass *pass, uint32_t p, uint32_t *next) {
  uint32_t space = plan->problem->spaces[pass->cut->devices[p]];
  while (*next < pass->copies->count && pass->copies->items[*next].before <= p) {
    const clv__copy *copy = &pass->copies->items[(*next)++];
    if (copy->before == p && copy->to == space) return copy;
  }
  return NULL;
}

static const char *copy_name(const clv_plan *plan, const clv__copy *copy) {
  return copy->is_weight ? plan->problem->weight_names[copy->value] : plan->problem->value_names[copy->value];
}

/* ---- Text ---- */

static void report_cut(const clv_plan *plan, const clv__pass *pass, clv__text *text) {
  uint32_t next = 0;
  for (uint32_t p = 0; p < pass->cut->count; ++p) {
    clv__text_append(text, "  partition %u on %s: ", p, device_name(plan, pass->cut->devices[p]));
    clv__label_plural(text, pass->cut->offsets[p + 1] - pass->cut->offsets[p], "node");
    clv__text_append(text, ", inputs [");
    const char *between = "";
    for (const clv__copy *copy; (copy = next_input(plan, pass, p, &next)) != NULL; between = ", ") {
      clv__text_append(text, "%s", between);
      clv__label_name(text, copy_name(plan, copy));
    }
    clv__text_append(text, "]\n");
  }
}

void clv__report_passes(const clv_plan *plan, clv__text *text) {
  for (uint32_t i = 0; i < plan->pass_count; ++i) {
    const clv__pass *pass = &plan->passes[i];
    list lists[3];
    clv__table table;
    lists_of(plan->problem, pass, lists);
    clv__text_append(text, "\nafter pass %s: %s\n", pass->name, title_of(pass->name));
    clv__table_init(&table, text->allocator, "llll", false);
    for (uint32_t k = 0; k < 3; ++k) {
      for (uint32_t n = 0; n < lists[k].count; ++n) {
        clv__table_cell(&table, "%s", lists[k].kind);
        clv__table_cell(&table, "%s", lists[k].names[n]);
        clv__table_cell(&table, "%s", device_name(plan, lists[k].devices[n]));
        clv__table_cell(&table, "%s", lists[k].causes[n]);
      }
    }
    clv__table_write(&table, 2, false, text);
    clv__table_finish(&table);
    if (pass->cut != NULL) report_cut(plan, pass, text);
  }
}

/* ---- JSON ---- */

/* Makes a JSON string. In a name with invalid UTF-8, the invalid bytes become escapes. */
static json_t *json_name(const clv_plan *plan, const char *name) {
  json_t *string = json_string(name);
  if (string != NULL) return string;
  clv__text shown;
  clv__text_init(&shown, plan->arena.allocator);
  clv__label_name(&shown, name);
  string = shown.failed ? NULL : json_string(shown.data);
  clv__text_finish(&shown);
  return string;
}

static json_t *json_device(const clv_plan *plan, uint32_t device) {
  return device == CLV__NONE ? json_integer(-1) : json_name(plan, device_name(plan, device));
}

/* Adds `item`. Returns false if it is NULL or memory runs out. */
static bool append(json_t *array, json_t *item) {
  return json_array_append_new(array, item) == 0;
}
static bool set(json_t *object, const char *key, json_t *item) {
  return json_object_set_new(object, key, item) == 0;
}

static json_t *list_json(const clv_plan *plan, const list *from) {
  json_t *array = json_array();
  bool is_whole = array != NULL;
  for (uint32_t n = 0; is_whole && n < from->count; ++n) {
    json_t *item = json_object();
    is_whole = set(item, "name", json_name(plan, from->names[n])) && set(item, "device", json_device(plan, from->devices[n])) &&
               set(item, "cause", json_string(from->causes[n])) &&
               (from->partition_of == NULL || set(item, "partition", json_integer(from->partition_of[n])));
    is_whole = append(array, item) && is_whole;
  }
  if (is_whole) return array;
  json_decref(array);
  return NULL;
}

static json_t *cut_json(const clv_plan *plan, const clv__pass *pass) {
  json_t *array = json_array();
  uint32_t next = 0;
  bool is_whole = array != NULL;
  for (uint32_t p = 0; is_whole && p < pass->cut->count; ++p) {
    json_t *partition = json_object(), *inputs = json_array();
    for (const clv__copy *copy; is_whole && (copy = next_input(plan, pass, p, &next)) != NULL;)
      is_whole = append(inputs, json_name(plan, copy_name(plan, copy)));
    is_whole = set(partition, "device", json_device(plan, pass->cut->devices[p])) && is_whole;
    is_whole = set(partition, "inputs", inputs) && is_whole;
    is_whole = append(array, partition) && is_whole;
  }
  if (is_whole) return array;
  json_decref(array);
  return NULL;
}

json_t *clv__report_passes_json(const clv_plan *plan) {
  json_t *passes = json_array();
  bool is_whole = passes != NULL;
  for (uint32_t i = 0; is_whole && i < plan->pass_count; ++i) {
    const clv__pass *pass = &plan->passes[i];
    list lists[3];
    lists_of(plan->problem, pass, lists);
    json_t *object = json_object();
    is_whole = set(object, "pass", json_string(pass->name)) && set(object, "values", list_json(plan, &lists[0])) &&
               set(object, "weights", list_json(plan, &lists[1])) && set(object, "nodes", list_json(plan, &lists[2])) &&
               (pass->cut == NULL || set(object, "partitions", cut_json(plan, pass)));
    is_whole = append(passes, object) && is_whole;
  }
  if (is_whole) return passes;
  json_decref(passes);
  return NULL;
}
