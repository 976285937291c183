/* Replays the fuzz corpus of the notes that backends store: tuning choices and verdicts. It is not part of test_corpus.c, because
 * the headers of different backends define the same names. */
#include "support.h"

#include <stdio.h>

#include "../../fuzz/target_notes.h"
#include "base/files/file.h"

static void read_seed(const char *name, clv__file_map *map) {
  char path[1024];
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/fuzz/corpus/notes/%s", CLEAVE_SOURCE_DIR, name);
  assert_ok(clv__file_map_open(path, map, &error), error);
}

/* Notes that are intact are found; of two notes with the same key, the first is found. Damaged choices are ignored completely,
 * damaged verdicts from the damage on. fuzz_notes_found() also stores the found notes again and checks that they can be read
 * back. */
static void seeds(void **state) {
  (void)state;
  static const char *const seeds[][2] = {{"choices", "winograd"},         {"choices-twice", "direct"},
                                         {"choices-no-tab", NULL},        {"choices-no-end", NULL},
                                         {"choices-long", NULL},          {"choices-other", NULL},
                                         {"choices-zero", NULL},          {"verdicts", "rank 5"},
                                         {"verdicts-yes", "yes"},         {"verdicts-twice", "yes"},
                                         {"verdicts-many", NULL},         {"verdicts-truncated", NULL},
                                         {"verdicts-third-answer", NULL}, {"file", NULL}};
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; ++i) {
    char says[CLV__CPU_CHOICE_ROOM] = "";
    clv__file_map map;
    read_seed(seeds[i][0], &map);
    bool found = fuzz_notes_found(map.data, map.size_bytes, says);
    clv__file_map_close(&map);
    if (found != (seeds[i][1] != NULL))
      fail_msg("%s: found '%s', expected '%s'", seeds[i][0], found ? says : "no note", found ? "no note" : seeds[i][1]);
    if (found) assert_string_equal(says, seeds[i][1]);
  }
}

/* Truncates intact notes at every length and changes every byte. fuzz_notes() checks that all notes found can be stored again. */
static void changed(void **state) {
  (void)state;
  static const char *const whole[] = {"choices", "verdicts"};
  static const uint8_t turned[] = {0x01, 0x80, 0xff};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) {
    clv__file_map map;
    uint8_t bytes[256];
    read_seed(whole[i], &map);
    const size_t size_bytes = map.size_bytes < sizeof bytes ? map.size_bytes : sizeof bytes;
    assert_int_equal(size_bytes, map.size_bytes);
    for (size_t at = 0; at < size_bytes; ++at) {
      memcpy(bytes, map.data, size_bytes);
      fuzz_notes(bytes, at);
      for (size_t t = 0; t < sizeof turned; ++t) {
        bytes[at] = map.data[at] ^ turned[t];
        fuzz_notes(bytes, size_bytes);
      }
    }
    clv__file_map_close(&map);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(seeds), cmocka_unit_test(changed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
