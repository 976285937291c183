/* Reads results that backends found by trial and stored in the cache: choices of --tune (a text) and verdicts of frameworks (a
 * sealed file). Then adds one more result, stores all of them, and reads them again: they must be the same.
 *
 * The first byte of an input is its kind: choices, a file of verdicts, or FUZZ_NOTES_SEALED for the bytes after the fingerprint
 * of such a file. In the last case the beginning of the file is added here, because a reader would reject every mutated file with
 * the wrong checksum. */
#ifndef CLEAVE_FUZZ_TARGET_NOTES_H
#define CLEAVE_FUZZ_TARGET_NOTES_H

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/tune/tune.h"
#include "backends/framework/verdicts.h"
#include "sealed.h"

enum { FUZZ_NOTES_CHOICES, FUZZ_NOTES_FILE, FUZZ_NOTES_SEALED, FUZZ_NOTES_KINDS };
/* The limit on an input's size. A longer one could already contain the maximum number of results, so that none could be added. */
enum { FUZZ_NOTES_MOST_BYTES = 16384 };

static inline clv_status fuzz_notes_recall(void *self, const char *backend, const char *key, void **data, size_t *size_bytes,
                                           clv_error *error) {
  const clv__text *kept = self;
  (void)backend, (void)key, (void)error;
  *data = malloc(kept->size_bytes + 1);
  if (*data == NULL) return CLV_OUT_OF_MEMORY;
  if (kept->size_bytes > 0) memcpy(*data, kept->data, kept->size_bytes);
  *size_bytes = kept->size_bytes;
  return CLV_OK;
}

static inline clv_status fuzz_notes_remember(void *self, const char *backend, const char *key, const void *data,
                                             size_t size_bytes, clv_error *error) {
  clv__text *kept = self;
  (void)backend, (void)key, (void)error;
  clv__text_finish(kept);
  clv__text_init(kept, clv__allocator_default());
  clv__text_append_bytes(kept, data, size_bytes);
  return CLV_OK;
}

/* Looks for the choice of step `asked`, adds a choice of its own, stores all of them, and looks for both again. Returns whether
 * `asked` was found. */
static inline bool fuzz_notes_choices(const clv_host *host, const char *asked, char choice[CLV__CPU_CHOICE_ROOM]) {
  clv__cpu_notes *notes;
  char again[CLV__CPU_CHOICE_ROOM];
  if (clv__cpu_notes_create(host, "cpu", "fuzz", &notes, NULL) != CLV_OK) return false;
  bool found = clv__cpu_notes_find(notes, asked, choice);
  clv__cpu_notes_add(notes, "a step of this test's own", "one way");
  clv__cpu_notes_save(notes);
  clv__cpu_notes_destroy(notes);
  if (clv__cpu_notes_create(host, "cpu", "fuzz", &notes, NULL) != CLV_OK) return found;
  if (!clv__cpu_notes_find(notes, "a step of this test's own", again) || strcmp(again, "one way") != 0) abort();
  if (clv__cpu_notes_find(notes, asked, again) != found || (found && strcmp(again, choice) != 0)) abort();
  clv__cpu_notes_destroy(notes);
  return found;
}

/* Makes the checks of fuzz_notes_choices() on stored verdicts. Looks for the signature whose bytes are all 'v'. */
static inline bool fuzz_notes_verdicts(const clv_host *host, clv_verdict *verdict) {
  clv__hash asked, own = {{0}};
  clv__verdicts verdicts;
  clv_verdict again, made = {.supported = false};
  memset(asked.bytes, 'v', sizeof asked.bytes);
  memcpy(own.bytes, "this test's own", 15);
  memcpy(made.reason, "because", sizeof "because");
  clv__verdicts_init(&verdicts, host, "fuzz", "fuzz");
  bool found = clv__verdicts_find(&verdicts, &asked, verdict), had = clv__verdicts_find(&verdicts, &own, &again);
  clv__verdicts_add(&verdicts, &own, &made);
  clv__verdicts_finish(&verdicts);
  clv__verdicts_init(&verdicts, host, "fuzz", "fuzz");
  if (!clv__verdicts_find(&verdicts, &own, &made) || (had && made.supported != again.supported)) abort();
  if (clv__verdicts_find(&verdicts, &asked, &again) != found) abort();
  if (found && (again.supported != verdict->supported || strcmp(again.reason, verdict->reason) != 0)) abort();
  clv__verdicts_finish(&verdicts);
  return found;
}

/* Returns whether the stored results have a choice for the step "conv", or a verdict for the signature of 'v's. `says` is the
 * choice or the verdict. */
static inline bool fuzz_notes_found(const uint8_t *data, size_t size_bytes, char says[CLV__CPU_CHOICE_ROOM]) {
  static const clv__sealed_kind kind = {.what = "verdicts", .magic = "CLVTRIED", .version = 1};
  const int what = data[0] % FUZZ_NOTES_KINDS;
  clv__text kept;
  clv_verdict verdict = {.supported = false};
  const clv_host host = {.abi_version = CLV_ABI_VERSION,
                         .struct_size = sizeof host,
                         .self = &kept,
                         .allocator = clv__allocator_default(),
                         .recall = fuzz_notes_recall,
                         .remember = fuzz_notes_remember};
  clv__text_init(&kept, clv__allocator_default());
  if (what == FUZZ_NOTES_SEALED)
    fuzz_sealed_wrap(&kind, "fuzz", data + 1, size_bytes - 1, &kept);
  else
    clv__text_append_bytes(&kept, data + 1, size_bytes - 1);
  bool found;
  if (what == FUZZ_NOTES_CHOICES) {
    found = fuzz_notes_choices(&host, "conv", says);
  } else {
    found = fuzz_notes_verdicts(&host, &verdict);
    if (found) snprintf(says, CLV__CPU_CHOICE_ROOM, "%.31s", verdict.supported ? "yes" : verdict.reason);
  }
  clv__text_finish(&kept);
  return found;
}

static inline void fuzz_notes(const uint8_t *data, size_t size_bytes) {
  char says[CLV__CPU_CHOICE_ROOM];
  if (size_bytes == 0 || size_bytes > FUZZ_NOTES_MOST_BYTES) return;
  (void)fuzz_notes_found(data, size_bytes, says);
}

#endif
