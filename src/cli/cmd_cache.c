/* `cleave cache`: lists, verifies and prunes the executables on disk. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache/cache.h"
#include "cli/console.h"
#include "cli/json.h"
#include "cli/options/options.h"
#include "report/label.h"
#include "report/table.h"

/* One file found by the directory walk. */
typedef struct entry {
  const char *name, *problem; /* problem: "" if the file is intact */
  const char *backend, *version, *device, *description, *operators;
  uint32_t node_count, weight_count;
  uint64_t size_bytes;
  struct timespec used;
  bool is_whole, is_damaged, is_unfinished, is_abandoned;
} entry;

typedef struct listing {
  cli_invocation *cli;
  clv__cache *cache; /* NULL: the directory does not exist */
  const char *path;
  entry *items;
  size_t count, capacity;
} listing;

static const char *keep_text(listing *l, const char *text) {
  return clv__arena_string(&l->cli->arena, text, strlen(text));
}

static clv_status add_entry(void *self, const clv__cache_item *item, clv_error *error) {
  listing *l = self;
  if (!clv__array_reserve(l->cli->allocator, (void **)&l->items, &l->capacity, l->count + 1, sizeof *l->items, l->count)) {
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
               .is_unfinished = item->is_unfinished,
               .is_abandoned = item->is_abandoned};
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

static clv_status open_cache(listing *l, clv_error *error) {
  const clv__settings *settings = clv__context_settings(l->cli->context);
  if (settings->cache_directory == NULL || settings->cache_directory[0] == '\0') {
    return cli_usage(l->cli, error, "no cache directory is set: give --cache-dir DIR, or set CLEAVE_CACHE_DIR");
  }
  l->path = settings->cache_directory;
  clv_status status = clv__cache_open(l->cli->allocator, l->path, UINT64_MAX, false, &l->cache, error);
  return status == CLV_NOT_FOUND ? CLV_OK : status; /* the directory does not exist: nothing was stored yet */
}

static clv_status read_entries(listing *l, clv__cache_depth depth, clv_error *error) {
  if (l->cache == NULL) return CLV_OK;
  cli_progress(l->cli, "reading %s", l->path);
  CLV__TRY(clv__cache_walk(l->cache, depth, add_entry, l, error));
  if (l->count > 1) qsort(l->items, l->count, sizeof *l->items, compare_entries);
  return CLV_OK;
}

static void write_place(const listing *l, clv__text *text) {
  clv__label_name(text, l->path);
  if (l->cache == NULL) clv__text_append(text, " (which does not exist)");
}

/* ---- ls ---- */

static json_t *time_json(const struct timespec *when) {
  char text[32];
  struct tm parts;
  if (gmtime_r(&when->tv_sec, &parts) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return json_null();
  return cli_json_text(text);
}

static json_t *entry_json(const entry *e) {
  json_t *object = json_object();
  json_object_set_new(object, "file", cli_json_text(e->name));
  json_object_set_new(object, "device", cli_json_text(e->device));
  json_object_set_new(object, "backend", cli_json_text(e->backend));
  json_object_set_new(object, "version", cli_json_text(e->version));
  json_object_set_new(object, "description", cli_json_text(e->description));
  json_object_set_new(object, "operators", cli_json_text(e->operators));
  json_object_set_new(object, "node_count", json_integer(e->node_count));
  json_object_set_new(object, "weight_count", json_integer(e->weight_count));
  json_object_set_new(object, "size_bytes", json_integer((json_int_t)e->size_bytes));
  json_object_set_new(object, "last_used", time_json(&e->used));
  return object;
}

static json_t *problem_json(const entry *e) {
  json_t *object = json_object();
  json_object_set_new(object, "file", cli_json_text(e->name));
  json_object_set_new(object, "problem", cli_json_text(e->problem));
  return object;
}

static clv_status list_json(const listing *l, clv_error *error) {
  json_t *root = json_object(), *entries = json_array(), *problems = json_array();
  uint64_t total = 0;
  for (size_t i = 0; i < l->count; ++i) {
    total += l->items[i].size_bytes;
    if (l->items[i].is_whole)
      json_array_append_new(entries, entry_json(&l->items[i]));
    else
      json_array_append_new(problems, problem_json(&l->items[i]));
  }
  json_object_set_new(root, "directory", cli_json_text(l->path));
  json_object_set_new(root, "total_bytes", json_integer((json_int_t)total));
  json_object_set_new(root, "entries", entries);
  json_object_set_new(root, "problems", problems);
  return cli_json_print(l->cli, root, error);
}

static const char *time_label(const struct timespec *when, char label[32]) {
  struct tm parts;
  if (localtime_r(&when->tv_sec, &parts) == NULL || strftime(label, 32, "%Y-%m-%d %H:%M", &parts) == 0) label[0] = '\0';
  return label;
}

static void write_table(const listing *l, clv__text *text) {
  static const char *const titles[] = {"device", "backend", "nodes", "operators", "size", "last used", "file"};
  const cli_invocation *cli = l->cli;
  char size[CLV__LABEL_BYTES], used[32];
  clv__table table;
  clv__table_init(&table, cli->allocator, cli->verbose ? "llrlrll" : "llrlrl", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (size_t i = 0; i < l->count; ++i) {
    const entry *e = &l->items[i];
    if (!e->is_whole) continue;
    clv__text operators;
    clv__text_init(&operators, cli->allocator);
    if (cli->verbose)
      clv__text_append(&operators, "%s", e->operators);
    else
      clv__label_short(&operators, e->operators, 48);
    clv__table_cell(&table, "%s", e->device);
    clv__table_cell(&table, "%s %s", e->backend, e->version);
    clv__table_cell(&table, "%u", e->node_count);
    clv__table_cell(&table, "%s", operators.data);
    clv__table_cell(&table, "%s", clv__label_size(e->size_bytes, size));
    clv__table_cell(&table, "%s", time_label(&e->used, used));
    if (cli->verbose) clv__table_cell(&table, "%s", e->name);
    clv__text_finish(&operators);
  }
  clv__table_write(&table, 0, cli->color_out, text);
  clv__table_finish(&table);
}

static clv_status list(listing *l, clv_error *error) {
  CLV__TRY(read_entries(l, CLV__CACHE_HEADERS, error));
  if (l->cli->json) return list_json(l, error);
  clv__text text;
  char size[CLV__LABEL_BYTES];
  uint64_t total = 0, whole = 0;
  clv__text_init(&text, l->cli->allocator);
  for (size_t i = 0; i < l->count; ++i) {
    total += l->items[i].size_bytes;
    whole += l->items[i].is_whole;
  }
  if (whole > 0) write_table(l, &text);
  for (size_t i = 0; i < l->count; ++i) {
    if (l->items[i].is_whole || l->items[i].is_unfinished) continue;
    clv__label_name(&text, l->items[i].name);
    clv__text_append(&text, ": ");
    clv__label_name(&text, l->items[i].problem);
    clv__text_append(&text, "\n");
  }
  if (!l->cli->quiet) {
    clv__label_plural(&text, whole, "executable");
    clv__text_append(&text, ", %s, in ", clv__label_size(total, size));
    write_place(l, &text);
    clv__text_append(&text, "\n");
  }
  return cli_print(l->cli, &text, error);
}

/* ---- verify ---- */

static clv_status verify(listing *l, clv_error *error) {
  CLV__TRY(read_entries(l, CLV__CACHE_WHOLE, error));
  json_t *root = json_object(), *bad = json_array();
  clv__text text;
  uint64_t whole = 0, wrong = 0;
  clv__text_init(&text, l->cli->allocator);
  for (size_t i = 0; i < l->count; ++i) {
    const entry *e = &l->items[i];
    whole += e->is_whole;
    if (e->is_whole || e->is_unfinished) continue; /* no run reads an unfinished file, so it does no harm */
    ++wrong;
    json_array_append_new(bad, problem_json(e));
    clv__label_name(&text, e->name);
    clv__text_append(&text, ": ");
    clv__label_name(&text, e->problem);
    clv__text_append(&text, "\n");
  }
  json_object_set_new(root, "directory", cli_json_text(l->path));
  json_object_set_new(root, "whole", json_integer((json_int_t)whole));
  json_object_set_new(root, "bad", bad);
  if (wrong > 0) l->cli->exit_status = CLI_EXIT_FAILED;
  if (l->cli->json) {
    clv__text_finish(&text);
    return cli_json_print(l->cli, root, error);
  }
  json_decref(root);
  if (!l->cli->quiet) {
    clv__label_plural(&text, whole, "executable");
    clv__text_append(&text, " intact, %llu damaged, in ", (unsigned long long)wrong);
    write_place(l, &text);
    clv__text_append(&text, wrong > 0 ? "; 'cleave cache prune' removes the damaged ones\n" : "\n");
  }
  return cli_print(l->cli, &text, error);
}

/* ---- prune ---- */

/* Parses a size such as "500", "64K", "500M" or "2G" (K is 1024 bytes), or an age such as "90s", "15m", "12h" or "30d". */
static bool parse_amount(const char *text, const char *units, const uint64_t *factors, uint64_t *amount) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  *amount = strtoull(text, &end, 10);
  if (*end == '\0') return units[0] == 'K'; /* a plain number means bytes; an age needs a unit */
  const char *unit = strchr(units, *end);
  return unit != NULL && end[1] == '\0' && !__builtin_mul_overflow(*amount, factors[unit - units], amount);
}

static clv_status read_amounts(cli_invocation *cli, uint64_t *limit_bytes, uint64_t *age_s, clv_error *error) {
  static const uint64_t sizes[] = {1ull << 10, 1ull << 20, 1ull << 30, 1ull << 40}, ages[] = {1, 60, 3600, 86400};
  const char *size = cli_text(cli, OPTION_MAX_SIZE, NULL), *age = cli_text(cli, OPTION_MAX_AGE, NULL);
  *limit_bytes = clv__context_settings(cli->context)->cache_bytes;
  *age_s = 0;
  if (size != NULL && !parse_amount(size, "KMGT", sizes, limit_bytes)) {
    return cli_usage(cli, error, "option '--max-size': '%s' is not a size, such as 500M, 2G or a number of bytes", size);
  }
  if (age != NULL && (!parse_amount(age, "smhd", ages, age_s) || *age_s == 0)) {
    return cli_usage(cli, error, "option '--max-age': '%s' is not an age, such as 90s, 15m, 12h or 30d", age);
  }
  if (cli_is_given(cli, OPTION_ALL)) {
    if (size != NULL || age != NULL)
      return cli_usage(cli, error, "option '--all' removes everything: do not combine it with --max-size or --max-age");
    *limit_bytes = 0;
  }
  return CLV_OK;
}

static clv_status prune(listing *l, clv_error *error) {
  clv__cache_pruned pruned = {0};
  uint64_t limit_bytes, age_s, damaged = 0, damaged_bytes = 0;
  CLV__TRY(read_amounts(l->cli, &limit_bytes, &age_s, error));
  if (limit_bytes > 0) CLV__TRY(read_entries(l, CLV__CACHE_WHOLE, error));
  for (size_t i = 0; i < l->count; ++i) {
    if (!l->items[i].is_damaged) continue;
    if (!clv__cache_remove_name(l->cache, l->items[i].name)) {
      cli_note(l->cli, "%s cannot be removed: remove it yourself", l->items[i].name);
      continue;
    }
    ++damaged;
    damaged_bytes += l->items[i].size_bytes;
  }
  if (l->cache != NULL) CLV__TRY(clv__cache_prune(l->cache, limit_bytes, age_s, &pruned, error));
  pruned.removed += damaged;
  pruned.removed_bytes += damaged_bytes;
  if (l->cli->json) {
    json_t *root = json_object();
    json_object_set_new(root, "directory", cli_json_text(l->path));
    json_object_set_new(root, "removed", json_integer((json_int_t)pruned.removed));
    json_object_set_new(root, "removed_bytes", json_integer((json_int_t)pruned.removed_bytes));
    json_object_set_new(root, "damaged", json_integer((json_int_t)damaged));
    json_object_set_new(root, "kept", json_integer((json_int_t)pruned.kept));
    json_object_set_new(root, "kept_bytes", json_integer((json_int_t)pruned.kept_bytes));
    return cli_json_print(l->cli, root, error);
  }
  if (l->cli->quiet) return CLV_OK;
  clv__text text;
  char removed[CLV__LABEL_BYTES], kept[CLV__LABEL_BYTES];
  clv__text_init(&text, l->cli->allocator);
  clv__label_plural(&text, pruned.removed, "file");
  clv__text_append(&text, " removed, %s", clv__label_size(pruned.removed_bytes, removed));
  if (damaged > 0) clv__text_append(&text, " (%llu damaged)", (unsigned long long)damaged);
  clv__text_append(&text, "; %llu left, %s, in ", (unsigned long long)pruned.kept, clv__label_size(pruned.kept_bytes, kept));
  write_place(l, &text);
  clv__text_append(&text, "\n");
  return cli_print(l->cli, &text, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  static const struct {
    const char *name;
    clv_status (*execute)(listing *l, clv_error *error);
  } verbs[] = {{"ls", list}, {"verify", verify}, {"prune", prune}};
  static const cli_option_id of_prune[] = {OPTION_MAX_SIZE, OPTION_MAX_AGE, OPTION_ALL};
  const char *verb = cli->options->operands[0];
  listing l = {.cli = cli};
  size_t which = 0;
  while (which < 3 && strcmp(verbs[which].name, verb) != 0) ++which;
  if (which == 3) return cli_usage(cli, error, "'%s' is not one of ls, verify, prune", verb);
  for (size_t i = 0; i < 3 && which != 2; ++i) {
    if (!cli_is_given(cli, of_prune[i])) continue;
    return cli_usage(cli, error, "option '--%s' belongs to 'cleave cache prune', not to '%s'", cli_option_table[of_prune[i]].name,
                     verb);
  }
  clv_status status = open_cache(&l, error);
  if (status == CLV_OK) status = verbs[which].execute(&l, error);
  cli_progress_end(cli);
  clv__cache_close(l.cache);
  clv__release(cli->allocator, l.items);
  return status;
}

const cli_command cli_command_cache = {
    .name = "cache",
    .operands = "ls|verify|prune",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "list, check or remove the compiled partitions on disk",
    .description =
        "Compiled partitions are kept in a directory, so that a model that is run again need not be compiled again. A file's\n"
        "name is a hash of everything that the file depends on (operators, weights, shapes, device, driver, options), so\n"
        "outdated files are never used, and you can remove any file at any time. 'run' and 'bench' limit the directory to 1 "
        "GiB.\n"
        "  ls      lists the files, the most recently used first; -v shows file names\n"
        "  verify  reads every file and reports damaged ones; the exit status is 1 if there are any\n"
        "  prune   removes damaged files, files left behind by killed processes, and the least recently used files",
    .examples =
        "  cleave cache ls                                      # list the files of the default directory\n"
        "  cleave cache verify --cache-dir /var/cache/cleave    # look for damaged files\n"
        "  cleave cache prune --max-size 500M --max-age 30d     # remove old files, and keep at most 500 MiB\n"
        "  cleave cache prune --all                             # remove every file\n",
    .execute = execute,
};
