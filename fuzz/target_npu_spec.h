/* A fuzz target for descriptions of virtual NPUs: see targets.h. */
#ifndef CLEAVE_FUZZ_TARGET_NPU_SPEC_H
#define CLEAVE_FUZZ_TARGET_NPU_SPEC_H

#include <string.h>

#include "backends/vnpu/spec/spec.h"

/* An input is a description, and after its first zero byte a device option: KEY=VALUE. */
static inline void fuzz_npu_spec(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__vnpu_spec spec;
  if (size_bytes == 0 || data[0] != '{') return; /* skip other texts, which clv__vnpu_spec_open() takes as the name of a file */
  char *text = clv__allocate(allocator, size_bytes + 2);
  if (text == NULL) return;
  memcpy(text, data, size_bytes);
  memset(text + size_bytes, 0, 2);
  char *key = text + strlen(text) + 1, *value = key < text + size_bytes ? strchr(key, '=') : NULL;
  if (value != NULL) *value++ = '\0';
  clv_option option = {key, value};
  if (clv__vnpu_spec_open(allocator, text, &option, value != NULL, &spec, &error) == CLV_OK) {
    for (uint32_t i = 0; i < spec.operator_count; ++i) (void)clv__vnpu_spec_find(&spec, "", spec.operators[i].name);
    clv__vnpu_spec_finish(&spec);
  }
  clv__release(allocator, text);
}

#endif
