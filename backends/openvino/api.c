/* OpenVINO's library: finds and loads it, and checks its version. Also converts its types and errors. */
#include "api.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/framework/framework.h"
#include "base/environment.h"

/* ---- Types ---- */

/* In the order of ov_element_type_e. */
static const struct {
  int type;
  clv_dtype dtype;
} types[] = {
    {1, CLV_BOOL}, {2, CLV_BF16}, {3, CLV_F16}, {4, CLV_F32},  {5, CLV_F64},  {7, CLV_I8},   {8, CLV_I16},
    {9, CLV_I32},  {10, CLV_I64}, {16, CLV_U8}, {17, CLV_U16}, {18, CLV_U32}, {19, CLV_U64},
};

int clv__openvino_type(clv_dtype dtype) {
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    if (types[i].dtype == dtype) return types[i].type;
  }
  return 0;
}

void clv__openvino_type_text(int type, char text[24]) {
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    if (types[i].type != type) continue;
    snprintf(text, 24, "%s", clv_dtype_name(types[i].dtype));
    return;
  }
  snprintf(text, 24, "type %d", type);
}

/* ---- Errors ---- */

/* Skips the prefixes "Exception from a/b.cpp:12: " and "Check 'x' failed at a/b.cpp:12:". They are positions in OpenVINO's
 * sources, which do not help a user. */
static const char *after_place(const char *text) {
  static const char *const openings[] = {"Exception from ", "Check '"};
  for (;;) {
    while (isspace((unsigned char)*text)) ++text;
    const char *end = NULL;
    for (size_t i = 0; i < sizeof openings / sizeof *openings && end == NULL; ++i) {
      if (strncmp(text, openings[i], strlen(openings[i])) == 0) end = strchr(text, '\n');
    }
    if (end == NULL || end[strspn(end, " \n\t")] == '\0') return text;
    text = end;
  }
}

clv_status clv__openvino_failed(const clv__openvino *ov, clv_error *error, const char *call, int code) {
  enum { NOT_IMPLEMENTED = -2, NOT_IMPLEMENTED_IN_C = -16 };
  const char *message = ov->get_last_err_msg();
  const char *from = message != NULL ? after_place(message) : "";
  char line[600];
  size_t used = 0;
  for (bool space = false; *from != '\0' && used + 2 < sizeof line; ++from) {
    bool blank = isspace((unsigned char)*from) || iscntrl((unsigned char)*from);
    if (!blank && space && used > 0) line[used++] = ' ';
    if (!blank) line[used++] = *from;
    space = blank;
  }
  line[used] = '\0';
  if (message != NULL) ov->free(message);
  clv_status status = code == NOT_IMPLEMENTED || code == NOT_IMPLEMENTED_IN_C ? CLV_NOT_SUPPORTED : CLV_DEVICE_ERROR;
  const char *name = ov->get_error_info(code);
  return clv__error_set(error, status, "OpenVINO: %s: %s (%d)%s%s", call, name != NULL ? name : "unknown code", code,
                        used > 0 ? ": " : "", line);
}

/* ---- The library ---- */

static clv_status find_entry_point(void *handle, const char *path, const char *name, void *function, clv_error *error) {
  void *address = dlsym(handle, name);
  if (address == NULL) return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO: %s lacks %s", path, name);
  memcpy(function, &address, sizeof address);
  return CLV_OK;
}

static clv_status find_entry_points(void *handle, const char *path, clv__openvino *ov, clv_error *error) {
#define FIND(result, name, parameters) CLV__TRY(find_entry_point(handle, path, "ov_" #name, &ov->name, error));
  CLV__OPENVINO_ENTRY_POINTS(FIND)
#undef FIND
  return CLV_OK;
}

/* Runs before the other entry points are looked up, because an error about the version is clearer than one about a missing entry
 * point. */
static clv_status check_version(void *handle, const char *path, clv__openvino *ov, clv_error *error) {
  CLV__TRY(find_entry_point(handle, path, "ov_get_openvino_version", &ov->get_openvino_version, error));
  CLV__TRY(find_entry_point(handle, path, "ov_version_free", &ov->version_free, error));
  ov_version version = {NULL, NULL};
  int code = ov->get_openvino_version(&version);
  if (code != 0)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO: %s: ov_get_openvino_version failed with code %d", path, code);
  snprintf(ov->build, sizeof ov->build, "%s", version.build_number != NULL ? version.build_number : "");
  ov->version_free(&version);
  unsigned year = 0, release = 0;
  if (sscanf(ov->build, "%4u.%2u", &year, &release) == 2) {
    unsigned number = year * 100 + release;
    if (number >= CLV__OPENVINO_OLDEST && number < CLV__OPENVINO_BEYOND) return CLV_OK;
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO: %s is version '%.60s'; expected %d.%d or later, but before %d.%d",
                        path, ov->build, CLV__OPENVINO_OLDEST / 100, CLV__OPENVINO_OLDEST % 100, CLV__OPENVINO_BEYOND / 100,
                        CLV__OPENVINO_BEYOND % 100);
}

clv_status clv__openvino_load(const clv_host *host, void **library, clv_error *error) {
  (void)host;
  static const char *const names[] = {"libopenvino_c.so*", NULL}, *const subfolders[] = {"openvino/libs", NULL};
  /* static, because the library is never unloaded */
  static clv__openvino loaded;
  clv__library_search search = {
      .what = "OpenVINO",
      .variable_name = "CLEAVE_OPENVINO",
      .variable = clv__environment_get(CLV__VARIABLE_OPENVINO),
      .names = names,
      .subfolders = subfolders,
  };
  void *handle = NULL;
  char path[1024];
  *library = NULL;
  CLV__TRY(clv__library_open(&search, RTLD_NOW | RTLD_LOCAL, &handle, path, sizeof path, error));
  CLV__TRY(check_version(handle, path, &loaded, error)); /* a rejected library stays loaded: unloading it may be unsafe */
  CLV__TRY(find_entry_points(handle, path, &loaded, error));
  *library = &loaded;
  return CLV_OK;
}
