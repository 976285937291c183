/* A fake ONNX Runtime library for test_onnxruntime.c. It reports a version that is too old to be used. */
#include <stdint.h>
#include <stdlib.h>

typedef struct base {
  const void *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} base;

/* Must not be called: an old library prints an error if it lacks the requested API version. */
static const void *get_api(uint32_t version) {
  (void)version;
  abort();
}

static const char *get_version(void) {
  return "1.2.0";
}

const base *OrtGetApiBase(void);
const base *OrtGetApiBase(void) {
  static const base table = {get_api, get_version};
  return &table;
}
