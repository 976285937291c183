/* Replays the fuzz corpora of OpenCL executables and of the virtual NPU's programs, whose graphs are read in the same way. They
 * contain inputs that once caused errors, and inputs that reach deep into the code. The sanitizers detect errors. Needs no OpenCL
 * device. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>

#include "../../../fuzz/target_opencl.h"
#include "base/files/file.h"

/* Loads the files of a corpus, and returns how many of them load without an error. */
static unsigned replay(const char *kind) {
  char folder[512], path[1024];
  snprintf(folder, sizeof folder, "%s/fuzz/corpus/%s", CLEAVE_SOURCE_DIR, kind);
  DIR *listing = opendir(folder);
  if (listing == NULL) fail_msg("%s does not exist", folder);
  unsigned loaded = 0;
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    if (item->d_name[0] == '.') continue;
    int length = snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    assert_true(length > 0 && (size_t)length < sizeof path);
    clv__file_map map;
    clv_error error = {0};
    assert_ok(clv__file_map_open(path, &map, &error), error);
    if (fuzz_opencl_status(map.data, map.size_bytes, &error) == CLV_OK) ++loaded;
    clv__file_map_close(&map);
  }
  closedir(listing);
  return loaded;
}

static void executables(void **state) {
  (void)state;
  assert_true(replay("opencl") > 0);
}

static void programs_of_the_virtual_npu(void **state) {
  (void)state;
  assert_true(replay("npubin") > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(executables),
      cmocka_unit_test(programs_of_the_virtual_npu),
  };
  return cmocka_run_group_tests_name("opencl corpus", tests, NULL, NULL);
}
