/* See session.h. */
#include "report/session.h"

#include "base/document.h"
#include "execute/session.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

enum { ALL_PARTS = CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES | CLV_REPORT_MEMORY };

static void set_count(json_t *object, const char *key, uint64_t count) {
  json_object_set_new(object, key, json_integer((json_int_t)count));
}

/* ---- Executables ---- */

/* Writes a line such as "executables: 2 from disk, 1 compiled (…)", with the first reason for compiling in parentheses. */
static void write_executables(clv_session *session, clv__text *text) {
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  const clv__executables_counters *counters = &stats.executables;
  const struct {
    uint32_t count;
    const char *what;
  } parts[] = {{counters->from_memory, "from memory"},
               {counters->from_folder, "from the compiled directory"},
               {counters->from_disk, "from disk"},
               {counters->compiled, "compiled"},
               {counters->not_kept, "compiled but not cached"}};
  clv__text_append(text, "executables:");
  const char *separator = " ";
  for (uint32_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (parts[i].count == 0) continue;
    clv__text_append(text, "%s%u %s", separator, parts[i].count, parts[i].what);
    separator = ", ";
  }
  for (uint32_t p = 0; p < clv__session_plan(session)->partition_count; ++p) {
    const clv__origin *origin = clv__session_origin(session, p);
    if (origin->source != CLV__SOURCE_COMPILED || origin->reason[0] == '\0') continue;
    clv__text_append(text, " (%s)", origin->reason);
    break;
  }
  clv__text_append(text, "\n");
}

/* Returns where the executables came from (memory, disk, compiling), per partition and in total. */
static json_t *executables_json(clv_session *session) {
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  json_t *object = json_object(), *list = json_array();
  set_count(object, "from_memory", stats.executables.from_memory);
  set_count(object, "from_folder", stats.executables.from_folder);
  set_count(object, "from_disk", stats.executables.from_disk);
  set_count(object, "compiled", stats.executables.compiled);
  set_count(object, "not_kept", stats.executables.not_kept);
  json_object_set_new(object, "ms", clv__json_real(stats.executables.executables_ms));
  json_object_set_new(object, "weights_ms", clv__json_real(stats.executables.weights_ms));
  for (uint32_t p = 0; p < clv__session_plan(session)->partition_count; ++p) {
    const clv__origin *origin = clv__session_origin(session, p);
    json_t *one = json_object();
    json_object_set_new(one, "source", json_string(clv__source_word(origin->source)));
    json_object_set_new(one, "reason", clv__json_text(origin->reason));
    json_object_set_new(one, "ms", clv__json_real(origin->ms));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "partitions", list);
  return object;
}

/* ---- Devices that were removed ---- */

/* Writes one line per device; nothing if no device was removed. */
static void write_fallbacks(clv_session *session, bool is_terminal, clv__text *text) {
  clv__incident incident;
  for (uint32_t i = 0; clv__session_incident(session, i, &incident); ++i) {
    char line[640];
    clv__incident_text(clv__session_plan(session)->devices, &incident, line, sizeof line);
    clv__text_append(text, "%s%s%s; recovery took %.1f ms\n", is_terminal ? "\033[31m" : "", line, is_terminal ? "\033[0m" : "",
                     incident.cost_ms);
  }
}

static json_t *fallbacks_json(clv_session *session) {
  const clv_devices *devices = clv__session_plan(session)->devices;
  json_t *list = json_array();
  clv__incident incident;
  for (uint32_t i = 0; clv__session_incident(session, i, &incident); ++i) {
    json_t *object = json_object(), *onto = json_array();
    for (uint32_t d = 0; d < devices->count; ++d) {
      if ((incident.onto >> d & 1u) != 0) json_array_append_new(onto, clv__json_text(devices->items[d].name));
    }
    json_object_set_new(object, "device", clv__json_text(devices->items[incident.device].name));
    json_object_set_new(object, "status", clv__json_text(clv_status_name(incident.status)));
    json_object_set_new(object, "error", clv__json_text(incident.text));
    set_count(object, "partitions", incident.partition_count);
    json_object_set_new(object, "placed_on", onto);
    json_object_set_new(object, "cost_ms", clv__json_real(incident.cost_ms));
    json_array_append_new(list, object);
  }
  return list;
}

/* ---- Captures ---- */

/* Writes a line for each device that captured or tried to. */
static void write_captures(clv_session *session, clv__text *text) {
  const clv_devices *devices = clv__session_plan(session)->devices;
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv_capture_info c = {.struct_size = sizeof c};
    char size[CLV__LABEL_BYTES];
    if (!clv_session_captures(session, d, &c) || c.captures + c.failures == 0) continue;
    clv__text_append(text, "captures on %s: %llu made, %llu kept (%s), launched in %llu of %llu runs", devices->items[d].name,
                     (unsigned long long)c.captures, (unsigned long long)c.entries, clv__label_size(c.size_bytes, size),
                     (unsigned long long)(c.hits + c.captures), (unsigned long long)(c.hits + c.misses));
    if (c.failures > 0) clv__text_append(text, ", %llu failed", (unsigned long long)c.failures);
    if (c.knows_saved) clv__text_append(text, "; %.3f ms of host time saved", (double)c.saved_ns / 1e6);
    clv__text_append(text, "\n");
  }
}

static json_t *captures_json(clv_session *session) {
  const clv_devices *devices = clv__session_plan(session)->devices;
  json_t *object = json_object();
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv_capture_info c = {.struct_size = sizeof c};
    if (!clv_session_captures(session, d, &c)) continue;
    json_t *device = json_object();
    set_count(device, "hits", c.hits);
    set_count(device, "misses", c.misses);
    set_count(device, "captures", c.captures);
    set_count(device, "evictions", c.evictions);
    set_count(device, "failures", c.failures);
    set_count(device, "patches", c.patches);
    set_count(device, "recaptures", c.recaptures);
    set_count(device, "entries", c.entries);
    set_count(device, "bytes", c.size_bytes);
    json_object_set_new(device, "saved_ms", c.knows_saved ? clv__json_real((double)c.saved_ns / 1e6) : json_null());
    json_object_set_new(object, devices->items[d].name, device);
  }
  return object;
}

/* ---- Memory ---- */

/* Writes one row per memory space. */
static void write_memory(clv_session *session, bool is_terminal, clv__text *text) {
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  clv__table table;
  char number[CLV__LABEL_BYTES];
  clv__table_init(&table, text->allocator, "lrrrrrr", true);
  static const char *const titles[] = {"memory space", "between partitions", "lower bound", "scratch",
                                       "peak",         "plan's need",        "limit"};
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    const clv__space_stats *of = &stats.spaces[s];
    clv__table_cell(&table, "%s", of->name);
    const uint64_t sizes[] = {of->planned_bytes, of->bound_bytes, of->scratch_bytes, of->peak_bytes};
    for (uint32_t i = 0; i < 4; ++i) clv__table_cell(&table, "%s", clv__label_size(sizes[i], number));
    clv__table_cell(&table, "%s", of->limit_bytes == 0 ? "–" : clv__label_size(of->need_bytes, number));
    clv__table_cell(&table, "%s", of->limit_bytes == 0 ? "none" : clv__label_size(of->limit_bytes, number));
  }
  clv__table_write(&table, 0, is_terminal, text);
  clv__table_finish(&table);
  clv__text_append(
      text,
      "'between partitions': memory for values that partitions pass to each other, inputs and outputs. 'lower bound': the "
      "most of it needed at one time, if steps run one after the other. 'scratch': memory in which partitions compute. "
      "'plan's need': what the plan states for all of it, with the weights.\n");
  clv__text_append(text, "Weights on devices: %s; ", clv__label_size(stats.weight_bytes, number));
  clv__text_append(text, "other memory of executables on devices: %s.\n", clv__label_size(stats.resident_bytes, number));
}

static json_t *memory_json(clv_session *session) {
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  json_t *object = json_object(), *spaces = json_array();
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    const clv__space_stats *of = &stats.spaces[s];
    json_t *space = json_object();
    json_object_set_new(space, "name", clv__json_text(of->name));
    set_count(space, "planned_bytes", of->planned_bytes);
    set_count(space, "lower_bound_bytes", of->bound_bytes);
    set_count(space, "scratch_bytes", of->scratch_bytes);
    set_count(space, "peak_bytes", of->peak_bytes);
    json_object_set_new(space, "need_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->need_bytes));
    json_object_set_new(space, "limit_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->limit_bytes));
    json_array_append_new(spaces, space);
  }
  json_object_set_new(object, "spaces", spaces);
  set_count(object, "weight_bytes", stats.weight_bytes);
  set_count(object, "resident_bytes", stats.resident_bytes);
  return object;
}

/* ---- Documents ---- */

void clv__session_report_text(clv_session *session, uint32_t parts, bool is_terminal, clv__text *text) {
  if ((parts & CLV_REPORT_EXECUTABLES) != 0) write_executables(session, text);
  if ((parts & CLV_REPORT_FALLBACKS) != 0) write_fallbacks(session, is_terminal, text);
  if ((parts & CLV_REPORT_CAPTURES) != 0) write_captures(session, text);
  if ((parts & CLV_REPORT_MEMORY) != 0) write_memory(session, is_terminal, text);
}

void clv__session_report_json(clv_session *session, uint32_t parts, json_t *object) {
  if ((parts & CLV_REPORT_MEMORY) != 0) json_object_set_new(object, "memory", memory_json(session));
  if ((parts & CLV_REPORT_EXECUTABLES) != 0) json_object_set_new(object, "executables", executables_json(session));
  if ((parts & CLV_REPORT_FALLBACKS) != 0) json_object_set_new(object, "fallbacks", fallbacks_json(session));
  if ((parts & CLV_REPORT_CAPTURES) != 0) json_object_set_new(object, "graphs", captures_json(session));
}

clv_status clv_session_report(clv_session *session, uint32_t parts, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (session == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "session must not be NULL");
  if ((parts & ~(uint32_t)ALL_PARTS) != 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "parts 0x%x: expected a combination of CLV_REPORT_ constants (0x%x)",
                          parts, ALL_PARTS);
  const clv_allocator *allocator = clv__session_plan(session)->graph->allocator;
  if (form == CLV_FORM_JSON) {
    json_t *object = json_object();
    clv__session_report_json(session, parts, object);
    return clv__json_give(object, allocator, out, error);
  }
  clv__text text;
  clv__text_init(&text, allocator);
  clv__session_report_text(session, parts, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
