/* See report.h. The texts are in the report's arena. The lists of items are arrays that double in size. */
#include "check/report.h"

#include <string.h>

enum { MOST_SKIPS = 400 }; /* reasons for skips listed per section; skips for further reasons are only counted */

typedef struct items {
  clv_check_item *list;
  size_t count, capacity;
} items;

typedef struct own_report {
  clv_check_report shown; /* must be first: callers hold a pointer to it */
  clv__arena arena;
  uint32_t failures_listed;
  clv_check_section *sections;
  items *failures, *skips; /* lists of items, one per section */
} own_report;

static own_report *own_of(clv_check_report *report) {
  return (own_report *)report;
}

clv_status clv__report_create(const clv_allocator *allocator, const clv_check_section *sections, uint32_t count,
                              uint32_t failures_listed, clv_check_report **report, clv_error *error) {
  *report = NULL;
  own_report *own = clv__allocate_zero(allocator, sizeof *own);
  if (own == NULL) return clv__error_memory(error, sizeof *own);
  clv__arena_init(&own->arena, allocator);
  own->failures_listed = failures_listed == 0 ? 20 : failures_listed;
  own->sections = clv__arena_allocate_zero(&own->arena, count, sizeof *own->sections);
  own->failures = clv__arena_allocate_zero(&own->arena, count, sizeof *own->failures);
  own->skips = clv__arena_allocate_zero(&own->arena, count, sizeof *own->skips);
  own->shown = (clv_check_report){.device = "", .backend = "", .version = "", .description = "", .sections = own->sections};
  if (own->sections == NULL || own->failures == NULL || own->skips == NULL) {
    clv_check_report_destroy(&own->shown);
    return clv__error_memory(error, count * sizeof *own->sections);
  }
  own->shown.section_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    own->sections[i].name = sections[i].name;
    own->sections[i].help = sections[i].help;
  }
  *report = &own->shown;
  return CLV_OK;
}

void clv_check_report_destroy(clv_check_report *report) {
  if (report == NULL) return;
  own_report *own = own_of(report);
  const clv_allocator *allocator = own->arena.allocator;
  for (uint32_t i = 0; i < report->section_count; ++i) {
    clv__release(allocator, own->failures[i].list);
    clv__release(allocator, own->skips[i].list);
  }
  clv__arena_finish(&own->arena);
  clv__release(allocator, own);
}

static const char *keep(own_report *own, const char *text) {
  return clv__arena_string(&own->arena, text == NULL ? "" : text, text == NULL ? 0 : strlen(text));
}

clv_status clv__report_identify(clv_check_report *report, const char *device, const char *backend, const char *version,
                                const char *description, clv_error *error) {
  own_report *own = own_of(report);
  const char *texts[] = {keep(own, device), keep(own, backend), keep(own, version), keep(own, description)};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    if (texts[i] == NULL) return clv__error_memory(error, 1);
  }
  report->device = texts[0];
  report->backend = texts[1];
  report->version = texts[2];
  report->description = texts[3];
  return CLV_OK;
}

static void list_item(own_report *own, items *list, const char *what, const char *text) {
  void *array = list->list;
  bool room = clv__array_reserve(own->arena.allocator, &array, &list->capacity, list->count + 1, sizeof *list->list, list->count);
  list->list = array;
  const char *what_kept = room ? keep(own, what) : NULL, *text_kept = room ? keep(own, text) : NULL;
  if (what_kept == NULL || text_kept == NULL) return;
  list->list[list->count++] = (clv_check_item){what_kept, text_kept, 1};
}

static void list_skip(own_report *own, items *list, const char *what, const char *text) {
  for (size_t i = 0; i < list->count; ++i) {
    if (strcmp(list->list[i].text, text) != 0) continue;
    ++list->list[i].count;
    return;
  }
  if (list->count < MOST_SKIPS) list_item(own, list, what, text);
}

void clv__report_add(clv_check_report *report, uint32_t index, clv__check_fact fact, const char *what, const char *text) {
  own_report *own = own_of(report);
  clv_check_section *section = &own->sections[index];
  if (fact == CLV__CHECK_PASS) {
    ++section->passed;
  } else if (fact == CLV__CHECK_FAIL) {
    ++section->failed;
    if (own->failures[index].count < own->failures_listed) list_item(own, &own->failures[index], what, text);
  } else {
    ++section->skipped;
    list_skip(own, &own->skips[index], what, text);
  }
}

void clv__report_time(clv_check_report *report, uint32_t index, double seconds) {
  own_of(report)->sections[index].seconds = seconds;
}

void clv__report_close(clv_check_report *report) {
  own_report *own = own_of(report);
  report->passed = report->failed = report->skipped = 0;
  for (uint32_t i = 0; i < report->section_count; ++i) {
    clv_check_section *section = &own->sections[i];
    section->failures = own->failures[i].list;
    section->failure_count = (uint32_t)own->failures[i].count;
    section->skips = own->skips[i].list;
    section->skip_count = (uint32_t)own->skips[i].count;
    report->passed += section->passed;
    report->failed += section->failed;
    report->skipped += section->skipped;
  }
}
