/* Lists, verifies and prunes the executables on disk: see cleave/cache.h. */
#include "cleave/cache.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/document.h"
#include "base/options.h"
#include "cache/cache.h"
#include "device/device.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

/* One file found by the directory walk. */
typedef struct entry {
  const char *name, *problem; /* problem: "" if the file is intact */
  const char *backend, *version, *device, *description, *operators;
  uint32_t node_count, weight_count;
  uint64_t size_bytes;
  struct timespec used;
  bool is_whole, is_damaged, is_unfinished;
  bool is_stuck; /* damaged, and cannot be removed */
} entry;

typedef struct listing {
  const clv_allocator *allocator;
  clv__arena arena;
  clv__cache *cache; /* NULL: the directory does not exist */
  const char *path;
  entry *items;
  size_t count, capacity;
} listing;

static const char *keep_text(listing *l, const char *text) {
  return clv__arena_string(&l->arena, text, strlen(text));
}

static clv_status add_entry(void *self, const clv__cache_item *item, clv_error *error) {
  listing *l = self;
  if (!clv__array_reserve(l->allocator, (void **)&l->items, &l->capacity, l->count + 1, sizeof *l->items, l->count)) {
    return clv__error_memory(error, sizeof *l->items);
  }
  static const clv__cache_info none;
  const clv__cache_info *info = item->info != NULL ? item->info : &none;
  entry *e = &l->items[l->count++];
  *e = (entry){.name = keep_text(l, item->name),
               .problem = keep_text(l, item->problem),
               .backend = keep_text(l, info->backend),
               .version = keep_text(l, info->version),
               .device = keep_text(l, info->device),
               .description = keep_text(l, info->description),
               .operators = keep_text(l, info->operators),
               .node_count = info->node_count,
               .weight_count = info->weight_count,
               .size_bytes = item->size_bytes,
               .used = item->used,
               .is_whole = item->info != NULL,
               .is_damaged = item->is_damaged,
               .is_unfinished = item->is_unfinished};
  bool kept = e->name != NULL && e->problem != NULL && e->backend != NULL && e->version != NULL && e->device != NULL &&
              e->description != NULL && e->operators != NULL;
  return kept ? CLV_OK : clv__error_memory(error, sizeof *item);
}

/* Compares two entries, for qsort(): the most recently used one first. */
static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
  if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec > y->used.tv_nsec ? -1 : 1;
  return strcmp(x->name, y->name);
}

static clv_status open_cache(listing *l, clv_context *context, const char *directory, clv_error *error) {
  *l = (listing){.allocator = clv__context_allocator(context)};
  clv__arena_init(&l->arena, l->allocator);
  l->path = directory != NULL ? directory : clv__context_settings(context)->cache_directory;
  if (l->path == NULL || l->path[0] == '\0')
    return clv__error_set(error, CLV_NOT_SUPPORTED, "no cache directory is set: give one, or set CLEAVE_CACHE_DIR");
  clv_status status = clv__cache_open(l->allocator, l->path, UINT64_MAX, false, &l->cache, error);
  return status == CLV_NOT_FOUND ? CLV_OK : status; /* the directory does not exist: nothing was stored yet */
}

static void close_cache(listing *l) {
  clv__cache_close(l->cache);
  clv__release(l->allocator, l->items);
  clv__arena_finish(&l->arena);
}

static clv_status read_entries(listing *l, clv__cache_depth depth, clv_error *error) {
  if (l->cache == NULL) return CLV_OK;
  CLV__TRY(clv__cache_walk(l->cache, depth, add_entry, l, error));
  if (l->count > 1) qsort(l->items, l->count, sizeof *l->items, compare_entries);
  return CLV_OK;
}

static void write_problem(const entry *e, clv__text *text) {
  clv__label_name(text, e->name);
  clv__text_append(text, ": ");
  clv__label_name(text, e->problem);
  clv__text_append(text, "\n");
}

static void write_place(const listing *l, clv__text *text) {
  clv__label_name(text, l->path);
  if (l->cache == NULL) clv__text_append(text, " (which does not exist)");
}

/* ---- Listing ---- */

static json_t *time_json(const struct timespec *when) {
  char text[32];
  struct tm parts;
  if (gmtime_r(&when->tv_sec, &parts) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return json_null();
  return clv__json_text(text);
}

static json_t *entry_json(const entry *e) {
  json_t *object = json_object();
  json_object_set_new(object, "file", clv__json_text(e->name));
  json_object_set_new(object, "device", clv__json_text(e->device));
  json_object_set_new(object, "backend", clv__json_text(e->backend));
  json_object_set_new(object, "version", clv__json_text(e->version));
  json_object_set_new(object, "description", clv__json_text(e->description));
  json_object_set_new(object, "operators", clv__json_text(e->operators));
  json_object_set_new(object, "node_count", json_integer(e->node_count));
  json_object_set_new(object, "weight_count", json_integer(e->weight_count));
  json_object_set_new(object, "size_bytes", json_integer((json_int_t)e->size_bytes));
  json_object_set_new(object, "last_used", time_json(&e->used));
  return object;
}

static json_t *problem_json(const entry *e) {
  json_t *object = json_object();
  json_object_set_new(object, "file", clv__json_text(e->name));
  json_object_set_new(object, "problem", clv__json_text(e->problem));
  return object;
}

static clv_status list_json(const listing *l, char **out, clv_error *error) {
  json_t *root = json_object(), *entries = json_array(), *problems = json_array();
  uint64_t total = 0;
  for (size_t i = 0; i < l->count; ++i) {
    total += l->items[i].size_bytes;
    if (l->items[i].is_whole)
      json_array_append_new(entries, entry_json(&l->items[i]));
    else
      json_array_append_new(problems, problem_json(&l->items[i]));
  }
  json_object_set_new(root, "directory", clv__json_text(l->path));
  json_object_set_new(root, "total_bytes", json_integer((json_int_t)total));
  json_object_set_new(root, "entries", entries);
  json_object_set_new(root, "problems", problems);
  return clv__json_give(root, l->allocator, out, error);
}

static const char *time_label(const struct timespec *when, char label[32]) {
  struct tm parts;
  if (localtime_r(&when->tv_sec, &parts) == NULL || strftime(label, 32, "%Y-%m-%d %H:%M", &parts) == 0) label[0] = '\0';
  return label;
}

static void write_table(const listing *l, bool details, bool bold, clv__text *text) {
  static const char *const titles[] = {"device", "backend", "nodes", "operators", "size", "last used", "file"};
  char size[CLV__LABEL_BYTES], used[32];
  clv__table table;
  clv__table_init(&table, l->allocator, details ? "llrlrll" : "llrlrl", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (size_t i = 0; i < l->count; ++i) {
    const entry *e = &l->items[i];
    if (!e->is_whole) continue;
    clv__text operators;
    clv__text_init(&operators, l->allocator);
    if (details)
      clv__text_append(&operators, "%s", e->operators);
    else
      clv__label_short(&operators, e->operators, 48);
    clv__table_cell(&table, "%s", e->device);
    clv__table_cell(&table, "%s %s", e->backend, e->version);
    clv__table_cell(&table, "%u", e->node_count);
    clv__table_cell(&table, "%s", operators.data);
    clv__table_cell(&table, "%s", clv__label_size(e->size_bytes, size));
    clv__table_cell(&table, "%s", time_label(&e->used, used));
    if (details) clv__table_cell(&table, "%s", e->name);
    clv__text_finish(&operators);
  }
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static void write_list(const listing *l, const clv_cache_options *options, bool bold, clv__text *text) {
  char size[CLV__LABEL_BYTES];
  uint64_t total = 0, whole = 0;
  for (size_t i = 0; i < l->count; ++i) {
    total += l->items[i].size_bytes;
    whole += l->items[i].is_whole;
  }
  if (whole > 0) write_table(l, options->details, bold, text);
  for (size_t i = 0; i < l->count; ++i) {
    if (!l->items[i].is_whole && !l->items[i].is_unfinished) write_problem(&l->items[i], text);
  }
  if (options->brief) return;
  clv__label_plural(text, whole, "executable");
  clv__text_append(text, ", %s, in ", clv__label_size(total, size));
  write_place(l, text);
  clv__text_append(text, "\n");
}

static clv_status read_options(clv_context *context, const clv_cache_options *given, clv_cache_options *options, clv_form form,
                               char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (context == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context must not be NULL");
  *options = (clv_cache_options)CLV_CACHE_OPTIONS_INIT;
  return clv__options_read(options, sizeof *options, given, "CLV_CACHE_OPTIONS_INIT", error);
}

clv_status clv_cache_list(clv_context *context, const clv_cache_options *given, clv_form form, char **out, clv_error *error) {
  clv_cache_options options;
  listing l;
  CLV__TRY(read_options(context, given, &options, form, out, error));
  clv_status status = open_cache(&l, context, options.directory, error);
  if (status == CLV_OK) status = read_entries(&l, CLV__CACHE_HEADERS, error);
  if (status == CLV_OK && form == CLV_FORM_JSON) {
    status = list_json(&l, out, error);
  } else if (status == CLV_OK) {
    clv__text text;
    clv__text_init(&text, l.allocator);
    write_list(&l, &options, form == CLV_FORM_TERMINAL, &text);
    status = clv__document_give(&text, out, error);
  }
  close_cache(&l);
  return status;
}

/* ---- Verifying ---- */

/* Returns whether a run could read the file although it is damaged: no run reads an unfinished file, so it does no harm. */
static bool is_bad(const entry *e) {
  return !e->is_whole && !e->is_unfinished;
}

static clv_status verified_json(const listing *l, uint64_t whole, char **out, clv_error *error) {
  json_t *root = json_object(), *bad = json_array();
  for (size_t i = 0; i < l->count; ++i) {
    if (is_bad(&l->items[i])) json_array_append_new(bad, problem_json(&l->items[i]));
  }
  json_object_set_new(root, "directory", clv__json_text(l->path));
  json_object_set_new(root, "whole", json_integer((json_int_t)whole));
  json_object_set_new(root, "bad", bad);
  return clv__json_give(root, l->allocator, out, error);
}

static clv_status verified_text(const listing *l, uint64_t whole, uint64_t wrong, bool brief, char **out, clv_error *error) {
  clv__text text;
  clv__text_init(&text, l->allocator);
  for (size_t i = 0; i < l->count; ++i) {
    if (is_bad(&l->items[i])) write_problem(&l->items[i], &text);
  }
  if (!brief) {
    clv__label_plural(&text, whole, "executable");
    clv__text_append(&text, " intact, %llu damaged, in ", (unsigned long long)wrong);
    write_place(l, &text);
    clv__text_append(&text, wrong > 0 ? "; 'cleave cache prune' removes the damaged ones\n" : "\n");
  }
  return clv__document_give(&text, out, error);
}

clv_status clv_cache_verify(clv_context *context, const clv_cache_options *given, uint64_t *damaged, clv_form form, char **out,
                            clv_error *error) {
  clv_cache_options options;
  listing l;
  uint64_t whole = 0, wrong = 0;
  CLV__TRY(read_options(context, given, &options, form, out, error));
  clv_status status = open_cache(&l, context, options.directory, error);
  if (status == CLV_OK) status = read_entries(&l, CLV__CACHE_WHOLE, error);
  for (size_t i = 0; i < l.count; ++i) {
    whole += l.items[i].is_whole;
    wrong += is_bad(&l.items[i]);
  }
  if (status == CLV_OK)
    status =
        form == CLV_FORM_JSON ? verified_json(&l, whole, out, error) : verified_text(&l, whole, wrong, options.brief, out, error);
  if (status == CLV_OK && damaged != NULL) *damaged = wrong;
  close_cache(&l);
  return status;
}

/* ---- Pruning ---- */

typedef struct pruning {
  clv__cache_pruned pruned; /* with the damaged files */
  uint64_t damaged, stuck;  /* stuck: damaged files that cannot be removed */
} pruning;

static clv_status prune(listing *l, uint64_t limit_bytes, uint64_t age_s, pruning *p, clv_error *error) {
  uint64_t damaged_bytes = 0;
  *p = (pruning){0};
  if (limit_bytes > 0) CLV__TRY(read_entries(l, CLV__CACHE_WHOLE, error));
  for (size_t i = 0; i < l->count; ++i) {
    entry *e = &l->items[i];
    if (!e->is_damaged) continue;
    e->is_stuck = !clv__cache_remove_name(l->cache, e->name);
    p->damaged += !e->is_stuck;
    p->stuck += e->is_stuck;
    damaged_bytes += e->is_stuck ? 0 : e->size_bytes;
  }
  if (l->cache != NULL) CLV__TRY(clv__cache_prune(l->cache, limit_bytes, age_s, &p->pruned, error));
  p->pruned.removed += p->damaged;
  p->pruned.removed_bytes += damaged_bytes;
  return CLV_OK;
}

static clv_status pruned_json(const listing *l, const pruning *p, char **out, clv_error *error) {
  json_t *root = json_object(), *stuck = json_array();
  for (size_t i = 0; i < l->count; ++i) {
    if (l->items[i].is_stuck) json_array_append_new(stuck, clv__json_text(l->items[i].name));
  }
  json_object_set_new(root, "directory", clv__json_text(l->path));
  json_object_set_new(root, "removed", json_integer((json_int_t)p->pruned.removed));
  json_object_set_new(root, "removed_bytes", json_integer((json_int_t)p->pruned.removed_bytes));
  json_object_set_new(root, "damaged", json_integer((json_int_t)p->damaged));
  json_object_set_new(root, "kept", json_integer((json_int_t)p->pruned.kept));
  json_object_set_new(root, "kept_bytes", json_integer((json_int_t)p->pruned.kept_bytes));
  json_object_set_new(root, "not_removed", stuck);
  return clv__json_give(root, l->allocator, out, error);
}

static clv_status pruned_text(const listing *l, const pruning *p, char **out, clv_error *error) {
  clv__text text;
  char removed[CLV__LABEL_BYTES], kept[CLV__LABEL_BYTES];
  clv__text_init(&text, l->allocator);
  for (size_t i = 0; i < l->count; ++i) {
    if (!l->items[i].is_stuck) continue;
    clv__label_name(&text, l->items[i].name);
    clv__text_append(&text, " cannot be removed: remove it yourself\n");
  }
  clv__label_plural(&text, p->pruned.removed, "file");
  clv__text_append(&text, " removed, %s", clv__label_size(p->pruned.removed_bytes, removed));
  if (p->damaged > 0) clv__text_append(&text, " (%llu damaged)", (unsigned long long)p->damaged);
  clv__text_append(&text, "; %llu left, %s, in ", (unsigned long long)p->pruned.kept,
                   clv__label_size(p->pruned.kept_bytes, kept));
  write_place(l, &text);
  clv__text_append(&text, "\n");
  return clv__document_give(&text, out, error);
}

clv_status clv_cache_prune(clv_context *context, const clv_cache_prune_options *given, clv_form form, char **out,
                           clv_error *error) {
  clv_cache_prune_options options = CLV_CACHE_PRUNE_OPTIONS_INIT;
  listing l;
  pruning p;
  CLV__TRY(clv__document_check(form, out, error));
  if (context == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context must not be NULL");
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_CACHE_PRUNE_OPTIONS_INIT", error));
  const uint64_t limit = options.limit_bytes > 0 ? options.limit_bytes : clv__context_settings(context)->cache_bytes;
  clv_status status = open_cache(&l, context, options.directory, error);
  if (status == CLV_OK) status = prune(&l, options.all ? 0 : limit, options.all ? 0 : options.age_limit_s, &p, error);
  if (status == CLV_OK) status = form == CLV_FORM_JSON ? pruned_json(&l, &p, out, error) : pruned_text(&l, &p, out, error);
  close_cache(&l);
  return status;
}
