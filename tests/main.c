/* All unit tests in one program: `cleave_tests NAME` runs the cmocka program of tests/NAME.c, whose main() the build renamed;
 * without a name the tests are listed. */
#include <stdio.h>
#include <string.h>

#include "backends/vnpu/spec/spec.h"

#define X(entry, name) int main_of_##entry(void);
#include "tests.inc"
#undef X

static const struct {
  const char *name;
  int (*run)(void);
} tests[] = {
#define X(entry, name) {name, main_of_##entry},
#include "tests.inc"
#undef X
};

int main(int argc, char **argv) {
  const size_t count = sizeof tests / sizeof *tests;
  clv__vnpu_guard_default = true; /* docs/virtual-npu.md: guard=1 for all virtual NPUs */
  for (size_t i = 0; i < count; ++i) {
    if (argc < 2) {
      puts(tests[i].name);
    } else if (strcmp(argv[1], tests[i].name) == 0) {
      return tests[i].run();
    }
  }
  if (argc < 2) return 0;
  fprintf(stderr, "cleave_tests: '%s' is not one of the %zu tests in this build\n", argv[1], count);
  return 2;
}
