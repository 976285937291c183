/* All unit tests in one program. `cleave_tests NAME` runs the cmocka tests of tests/NAME.c; the build has renamed their main().
 * Without NAME, the program lists the names of all tests. */
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
  clv__vnpu_guard_default = true; /* as if every virtual NPU were opened with guard=1 (docs/virtual-npu.md) */
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
