/* Profiles of callers: see cleave/profile.h. Their lifetime, files and figures. */
#include <string.h>

#include "base/document.h"
#include "base/options.h"
#include "cost/measuring.h"

enum { SHAKY = 8 /* a measurement is shaky if its relative spread is above 1 / SHAKY */ };

static clv_status wrap(clv_context *context, clv__profile *tables, clv_profile **out, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(context);
  *out = clv__allocate_zero(allocator, sizeof **out);
  if (*out == NULL) {
    clv__profile_destroy(tables);
    return clv__error_memory(error, sizeof **out);
  }
  **out = (clv_profile){allocator, tables};
  return CLV_OK;
}

clv_status clv_profile_create(clv_context *context, clv_profile **out, clv_error *error) {
  clv__profile *tables;
  if (context == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and profile must not be NULL");
  *out = NULL;
  CLV__TRY(clv__profile_create(clv__context_allocator(context), &tables, error));
  return wrap(context, tables, out, error);
}

clv_status clv_profile_read(clv_context *context, const char *path, clv_profile **out, clv_error *error) {
  clv__profile *tables;
  if (context == NULL || path == NULL || out == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, path and profile must not be NULL");
  *out = NULL;
  CLV__TRY(clv__profile_read(path, clv__context_allocator(context), &tables, error));
  return wrap(context, tables, out, error);
}

void clv_profile_destroy(clv_profile *profile) {
  if (profile == NULL) return;
  clv__profile_destroy(profile->tables);
  clv__release(profile->allocator, profile);
}

clv_status clv_profile_merge(clv_profile *profile, const clv_profile *from, clv_error *error) {
  if (profile == NULL || from == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "both profiles must not be NULL");
  return profile == from ? CLV_OK : clv__profile_merge(profile->tables, from->tables, error);
}

clv_status clv_profile_write(const clv_profile *profile, const char *path, clv_error *error) {
  if (profile == NULL || path == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile and path must not be NULL");
  return clv__profile_write(profile->tables, path, error);
}

clv_status clv_profile_update(clv_profile *profile, const char *path, clv_error *error) {
  if (profile == NULL || path == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile and path must not be NULL");
  return clv__profile_update(profile->tables, path, error);
}

clv_status clv_profile_json(const clv_profile *profile, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(CLV_FORM_JSON, out, error));
  if (profile == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile must not be NULL");
  clv__text text;
  clv__text_init(&text, profile->allocator);
  clv_status status = clv__profile_print(profile->tables, &text, error);
  if (status == CLV_OK) return clv__document_give(&text, out, error);
  clv__text_finish(&text);
  return status;
}

static void count_device(const clv__profile_device *tables, clv_profile_info *info) {
  info->block_count += tables->block_count;
  for (uint32_t b = 0; b < tables->block_count; ++b)
    info->shaky_count += tables->blocks[b].total.spread_ns * SHAKY > tables->blocks[b].total.time_ns;
}

void clv_profile_get_info(const clv_profile *profile, const clv_devices *devices, clv_profile_info *info) {
  const clv__profile *tables = profile->tables;
  clv_profile_info filled = {.is_partial = tables->is_partial, .device_count = tables->device_count};
  for (uint32_t d = 0; devices == NULL && d < tables->device_count; ++d) count_device(tables->devices[d], &filled);
  for (uint32_t d = 0; devices != NULL && d < devices->count; ++d) {
    const uint32_t found = clv__profile_find_device(tables, devices->items[d].info.fingerprint);
    if (found != CLV__NO_ID) count_device(tables->devices[found], &filled);
  }
  clv__info_fill(info, &filled, sizeof filled);
}
