/* Loads ONNX Runtime: its library, the version of its API, and its errors. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "device.h"

/* Finds the closing parenthesis that belongs to the opening one at `at`. Returns NULL if there is none. */
static const char *closing(const char *at) {
  int depth = 0;
  for (; *at != '\0'; ++at) {
    depth += (*at == '(') - (*at == ')');
    if (depth == 0) return at;
  }
  return NULL;
}

/* Returns the part of a message after its position in the library's sources. Many messages start with that position, such as
 * "/path/file.cc:12 type function(types) ". If a check failed, "CONDITION was false. " follows and is skipped, too. */
static const char *without_place(const char *message) {
  static const char ending[] = " was false. ";
  const char *place = strstr(message, "/onnxruntime/core/"), *list = place != NULL ? strchr(place, '(') : NULL;
  const char *end = list != NULL ? closing(list) : NULL;
  if (end == NULL) return message;
  const char *said = end + 1 + strspn(end + 1, " "), *condition = strstr(said, ending);
  if (condition != NULL && condition[sizeof ending - 1 + strspn(condition + sizeof ending - 1, " \n")] != '\0') {
    said = condition + sizeof ending - 1; /* if nothing follows the condition, keep it: it is the whole message */
  }
  return *said != '\0' ? said : message;
}

clv_status clv__ort_check(const clv__ort_api *api, clv__ort_status *status, const char *call, clv_error *error) {
  if (status == NULL) return CLV_OK;
  int code = api->GetErrorCode(status);
  clv_status ours = code == CLV__ORT_CODE_NOT_IMPLEMENTED ? CLV_NOT_SUPPORTED : CLV_DEVICE_ERROR;
  clv__error_set(error, ours, "%s: %s (code %d)", call, without_place(api->GetErrorMessage(status)), code);
  api->ReleaseStatus(status);
  if (error == NULL) return ours;
  for (char *at = error->message; *at != '\0'; ++at) { /* puts a message of several lines on one line */
    if ((unsigned char)*at < ' ') *at = ' ';
  }
  return ours;
}

/* Version "1.31.1" supports every API version up to 31. A library that does not support a requested API version says so only on
 * stderr, so this check comes before the request. */
static clv_status check_version(const clv__ort_base *base, const char *path, clv__ort_library *library, clv_error *error) {
  unsigned major = 0, minor = 0;
  const char *version = base->GetVersionString();
  bool readable = version != NULL && sscanf(version, "%u.%u", &major, &minor) == 2;
  if (!readable || major != 1 || minor < CLV__ORT_API_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s is ONNX Runtime %.40s; expected version 1.%u or later, but below 2.0",
                          path, version != NULL ? version : "without a version", CLV__ORT_API_VERSION);
  }
  library->api = base->GetApi(CLV__ORT_API_VERSION);
  if (library->api == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s is ONNX Runtime %.40s, which does not support version %u of its API",
                          path, version, CLV__ORT_API_VERSION);
  }
  snprintf(library->version, sizeof library->version, "%s", version);
  return CLV_OK;
}

clv_status clv__ort_load(const clv_host *host, void **out, clv_error *error) {
  static clv__ort_library library; /* lives as long as the process; the caller that loads it holds a lock */
  static const char *const names[] = {"libonnxruntime.so*", "libonnxruntime.so.1", NULL};
  static const char *const subfolders[] = {"onnxruntime/capi", NULL};
  const clv__library_search search = {
      .what = "ONNX Runtime",
      .variable_name = clv__variables[CLV__VARIABLE_ONNXRUNTIME].name,
      .variable = clv__environment_get(CLV__VARIABLE_ONNXRUNTIME),
      .names = names,
      .subfolders = subfolders,
  };
  (void)host;
  *out = NULL;
  void *handle;
  char path[1024];
  CLV__TRY(clv__library_open(&search, RTLD_NOW | RTLD_LOCAL, &handle, path, sizeof path, error));
  const clv__ort_base *(*get_base)(void);
  *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
  const clv__ort_base *base = get_base != NULL ? get_base() : NULL;
  clv_status status = base != NULL
                          ? check_version(base, path, &library, error)
                          : clv__error_set(error, CLV_NOT_SUPPORTED, "%s is not ONNX Runtime: it lacks OrtGetApiBase", path);
  if (status != CLV_OK) {
    dlclose(handle);
    return status;
  }
  *out = &library;
  return CLV_OK;
}
