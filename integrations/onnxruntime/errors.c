/* Errors of Cleave and statuses of ONNX Runtime, each made from the other. */
#include <stdarg.h>
#include <stdio.h>

#include "provider.h"

clv_status clv__ep_error(clv_error *error, clv_status status, const char *format, ...) {
  if (error == NULL) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->status = status;
  return status;
}

clv_status clv__ep_no_memory(clv_error *error) {
  return clv__ep_error(error, CLV_OUT_OF_MEMORY, "out of memory");
}

clv_status clv__ep_check(const OrtApi *api, OrtStatus *status, const char *call, clv_error *error) {
  if (status == NULL) return CLV_OK;
  clv__ep_error(error, CLV_INTERNAL_ERROR, "ONNX Runtime: %s: %s", call, api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  return CLV_INTERNAL_ERROR;
}

OrtStatus *clv__ep_status(const OrtApi *api, clv_status status, const clv_error *error) {
  switch (status) {
    case CLV_OK:
      return NULL;
    case CLV_INVALID_ARGUMENT:
      return api->CreateStatus(ORT_CODE_INVALID_ARGUMENT, error->message);
    case CLV_INVALID_MODEL:
      return api->CreateStatus(ORT_CODE_INVALID_GRAPH, error->message);
    case CLV_NOT_SUPPORTED:
      return api->CreateStatus(ORT_CODE_NOT_IMPLEMENTED, error->message);
    default:
      return api->CreateStatus(ORT_CODE_EP_FAIL, error->message);
  }
}
