/* Storage of the choices made by --tune: see tune.h. The format is text: a header line, then one line per step with its
 * description, a tab and the choice. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/text.h"
#include "tune.h"

#define FIRST_LINE "cleave cpu choices 1\n"
enum { MOST_NOTES = 20000 };

typedef struct note {
  char *step;
  char choice[CLV__CPU_CHOICE_ROOM];
} note;

struct clv__cpu_notes {
  const clv_host *host;
  char device[32], key[256];
  pthread_mutex_t lock; /* guards the following members */
  note *items;
  size_t count, capacity;
  clv__map by_step;
  bool is_read, is_new; /* is_new: a choice was added or replaced since the last save */
};

clv_status clv__cpu_notes_create(const clv_host *host, const char *device, const char *key, clv__cpu_notes **notes,
                                 clv_error *error) {
  *notes = NULL;
  clv__cpu_notes *made = clv__allocate_zero(host->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  if (pthread_mutex_init(&made->lock, NULL) != 0) {
    clv__release(host->allocator, made);
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "cannot create a lock for stored choices");
  }
  made->host = host;
  snprintf(made->device, sizeof made->device, "%s", device);
  snprintf(made->key, sizeof made->key, "choices: %s", key);
  clv__map_init(&made->by_step, host->allocator);
  *notes = made;
  return CLV_OK;
}

void clv__cpu_notes_destroy(clv__cpu_notes *notes) {
  if (notes == NULL) return;
  for (size_t i = 0; i < notes->count; ++i) clv__release(notes->host->allocator, notes->items[i].step);
  clv__release(notes->host->allocator, notes->items);
  clv__map_finish(&notes->by_step);
  pthread_mutex_destroy(&notes->lock);
  clv__release(notes->host->allocator, notes);
}

static void log_note(const clv__cpu_notes *notes, int level, const char *what, const char *why) {
  char line[400];
  if (notes->host->log == NULL) return;
  snprintf(line, sizeof line, "%.40s: %.100s: %.200s", notes->device, what, why);
  notes->host->log(notes->host->self, level, line);
}

/* Adds a choice, unless the step already has one. The lengths must be below the limits. The caller holds the lock. */
static bool add(clv__cpu_notes *notes, const char *step, size_t step_bytes, const char *choice, size_t choice_bytes) {
  const clv_allocator *allocator = notes->host->allocator;
  if (notes->count >= MOST_NOTES) return false;
  void *items = notes->items;
  char *text = clv__allocate_zero(allocator, step_bytes + 1);
  if (text == NULL) return false;
  memcpy(text, step, step_bytes);
  bool done = clv__map_find(&notes->by_step, text) == CLV__MAP_NONE;
  if (done) {
    done = clv__array_reserve(allocator, &items, &notes->capacity, notes->count + 1, sizeof *notes->items, notes->count);
    notes->items = items;
  }
  if (!done || !clv__map_set(&notes->by_step, text, (uint32_t)notes->count)) {
    clv__release(allocator, text);
    return false;
  }
  note *made = &notes->items[notes->count++];
  made->step = text;
  memset(made->choice, 0, sizeof made->choice);
  memcpy(made->choice, choice, choice_bytes);
  return true;
}

/* Checks one line, given without its line break, and adds its choice unless `is_trial`. Returns false if the line is
 * invalid. */
static bool read_line(clv__cpu_notes *notes, const char *line, size_t size_bytes, bool is_trial) {
  const char *tab = memchr(line, '\t', size_bytes);
  if (tab == NULL || tab == line || tab + 1 == line + size_bytes) return false;
  const size_t step_bytes = (size_t)(tab - line), choice_bytes = size_bytes - step_bytes - 1;
  if (step_bytes >= CLV__CPU_NOTE_ROOM || choice_bytes >= CLV__CPU_CHOICE_ROOM) return false;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (line + i != tab && (line[i] < ' ' || line[i] > '~')) return false;
  }
  if (!is_trial) (void)add(notes, line, step_bytes, tab + 1, choice_bytes);
  return true;
}

/* Reads all lines or none: the first pass only checks. */
static bool read_text(clv__cpu_notes *notes, const char *text, size_t size_bytes) {
  const size_t first = sizeof FIRST_LINE - 1;
  if (size_bytes < first || memcmp(text, FIRST_LINE, first) != 0 || text[size_bytes - 1] != '\n') return false;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t at = first; at < size_bytes;) {
      const char *end = memchr(text + at, '\n', size_bytes - at);
      const size_t line_bytes = (size_t)(end - text) - at;
      if (!read_line(notes, text + at, line_bytes, pass == 0)) return false;
      at += line_bytes + 1;
    }
  }
  return true;
}

/* Reads the stored choices, and adds those that are not in `items` yet. The caller holds the lock. */
static void read_kept(clv__cpu_notes *notes) {
  const clv_host *host = notes->host;
  void *data = NULL;
  size_t size_bytes = 0;
  clv_error error = {0};
  if (host->recall == NULL) return;
  const clv_status status = host->recall(host->self, "cpu", notes->key, &data, &size_bytes, &error);
  if (status == CLV_OK && !read_text(notes, data, size_bytes))
    log_note(notes, 1, "choices stored by --tune are damaged", "measuring again");
  if (status != CLV_OK && status != CLV_NOT_FOUND) log_note(notes, 1, "choices stored by --tune cannot be read", error.message);
  if (status == CLV_OK) clv__release(host->allocator, data);
}

bool clv__cpu_notes_find(clv__cpu_notes *notes, const char *step, char choice[CLV__CPU_CHOICE_ROOM]) {
  pthread_mutex_lock(&notes->lock);
  if (!notes->is_read) read_kept(notes);
  notes->is_read = true;
  const uint32_t at = clv__map_find(&notes->by_step, step);
  if (at != CLV__MAP_NONE) memcpy(choice, notes->items[at].choice, CLV__CPU_CHOICE_ROOM);
  pthread_mutex_unlock(&notes->lock);
  return at != CLV__MAP_NONE;
}

void clv__cpu_notes_add(clv__cpu_notes *notes, const char *step, const char *choice) {
  const size_t step_bytes = strlen(step), choice_bytes = strlen(choice);
  if (step_bytes >= CLV__CPU_NOTE_ROOM || choice_bytes >= CLV__CPU_CHOICE_ROOM) return;
  pthread_mutex_lock(&notes->lock);
  const uint32_t at = clv__map_find(&notes->by_step, step);
  if (at == CLV__MAP_NONE) {
    if (add(notes, step, step_bytes, choice, choice_bytes)) notes->is_new = true;
  } else if (strcmp(notes->items[at].choice, choice) != 0) { /* replaces a stored choice that the step does not offer */
    memcpy(notes->items[at].choice, choice, choice_bytes + 1);
    notes->is_new = true;
  }
  pthread_mutex_unlock(&notes->lock);
}

static int by_step(const void *a, const void *b) {
  return strcmp(((const note *)a)->step, ((const note *)b)->step);
}

void clv__cpu_notes_save(clv__cpu_notes *notes) {
  const clv_host *host = notes->host;
  clv__text text;
  clv_error error = {0};
  pthread_mutex_lock(&notes->lock);
  if (notes->is_new && host->remember != NULL) {
    read_kept(notes);
    note *sorted = clv__allocate(host->allocator, (notes->count + 1) * sizeof *sorted);
    clv__text_init(&text, host->allocator);
    clv__text_append(&text, FIRST_LINE);
    if (sorted != NULL) {
      memcpy(sorted, notes->items, notes->count * sizeof *sorted);
      qsort(sorted, notes->count, sizeof *sorted, by_step);
    }
    for (size_t i = 0; i < notes->count && sorted != NULL; ++i) {
      clv__text_append(&text, "%s\t%s\n", sorted[i].step, sorted[i].choice);
    }
    if (sorted != NULL && !text.failed) {
      const clv_status status = host->remember(host->self, "cpu", notes->key, text.data, text.size_bytes, &error);
      if (status != CLV_OK) log_note(notes, 2, "choices measured by --tune cannot be stored", error.message);
      notes->is_new = false;
    }
    clv__release(host->allocator, sorted);
    clv__text_finish(&text);
  }
  pthread_mutex_unlock(&notes->lock);
}
