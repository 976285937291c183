/* A library that says it is an ONNX Runtime too old to be used: a module for test_onnxruntime.c. */
#include <stdint.h>
#include <stdlib.h>

typedef struct base {
  const void *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} base;

/* What is too old prints when it is asked for an interface that it lacks: it must not be asked. */
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
