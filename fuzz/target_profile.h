/* Reads a profile as 'cleave plan --profile' and 'cleave profile -o' would, writes it, reads the result, and fits its costs. */
#ifndef CLEAVE_FUZZ_TARGET_PROFILE_H
#define CLEAVE_FUZZ_TARGET_PROFILE_H

#include <stdlib.h>
#include <string.h>

#include "cost/fit.h"
#include "cost/profile.h"

static inline void fuzz_profile(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__profile *profile, *again;
  clv__text text;
  if (clv__profile_parse((const char *)data, size_bytes, "fuzz", allocator, &profile, &error) != CLV_OK) return;
  clv__text_init(&text, allocator);
  if (clv__profile_print(profile, &text, &error) == CLV_OK) { /* the printed profile must be readable and have the same id */
    if (clv__profile_parse(text.data, text.size_bytes, "again", allocator, &again, &error) != CLV_OK ||
        strcmp(clv__profile_id(again), clv__profile_id(profile)) != 0) {
      abort();
    }
    clv__profile_destroy(again);
  }
  clv__text_finish(&text);
  for (uint32_t d = 0; d < profile->device_count; ++d) {
    clv__profile_device *device = profile->devices[d];
    clv__fits *fits;
    if (clv__fits_create(device, allocator, &fits, &error) == CLV_OK) clv__fits_destroy(fits);
    for (uint32_t kind = 0; kind < CLV__COPY_KINDS; ++kind)
      (void)clv__copy_time(device->copies[kind], device->copy_counts[kind], 12345);
    if (device->block_count < 200) (void)clv__profile_solve(device, allocator, &error);
  }
  clv__profile_destroy(profile);
}

#endif
