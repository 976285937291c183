/* A provider: what one session of ONNX Runtime has of Cleave: a context and devices, which all its groups share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

static const char *get_name(const OrtEp *self) {
  (void)self;
  return CLV__EP_NAME;
}

void clv__ep_log(const clv__ep *provider, int severity, const char *format, ...) {
  char text[1200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (provider->logger == NULL) return;
  OrtStatus *status = provider->api->Logger_LogMessage(provider->logger, severity, text, "cleave", 0, CLV__EP_NAME);
  if (status != NULL) provider->api->ReleaseStatus(status);
}

/* Passes the context's log on. Level 1, a device that was removed, for example, is a warning. */
static void log_line(void *user_data, int level, const char *text) {
  static const int severities[] = {ORT_LOG_ERROR, ORT_LOG_WARNING, ORT_LOG_INFO, ORT_LOG_VERBOSE};
  clv__ep_log(user_data, severities[level < 0 ? 0 : level > 3 ? 3 : level], "cleave: %s", text);
}

/* Empties the file of the report, to which each graph adds a line. */
static clv_status begin_report(const clv__ep *provider, clv_error *error) {
  const char *path = provider->options.report;
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (path != NULL && file == NULL) return clv__ep_error(error, CLV_IO_ERROR, "report '%s': %s", path, strerror(errno));
  if (file != NULL) fclose(file);
  return CLV_OK;
}

clv_status clv__ep_create(const OrtApi *api, const OrtSessionOptions *options, const OrtLogger *logger, clv__ep **out,
                          clv_error *error) {
  *out = NULL;
  clv__ep *provider = calloc(1, sizeof *provider);
  if (provider == NULL) return clv__ep_no_memory(error);
  provider->table = (OrtEp){.ort_version_supported = CLV__ORT_API_VERSION,
                            .GetName = get_name,
                            .GetCapability = clv__ep_get_capability,
                            .Compile = clv__ep_compile,
                            .ReleaseNodeComputeInfos = clv__ep_release_infos};
  provider->api = api;
  provider->ep_api = api->GetEpApi();
  provider->logger = logger;
  clv_status status = clv__ep_options_read(api, options, &provider->options, error);
  if (status == CLV_OK) status = begin_report(provider, error);
  if (status == CLV_OK) {
    provider->options.context.log = log_line;
    provider->options.context.log_user_data = provider;
    status = clv_context_create(&provider->options.context, &provider->context, error);
  }
  if (status == CLV_OK) {
    status = clv_devices_open(provider->context, &provider->options.devices, &provider->devices, error);
  }
  if (status == CLV_OK)
    *out = provider;
  else
    clv__ep_destroy(provider);
  return status;
}

void clv__ep_destroy(clv__ep *provider) {
  if (provider == NULL) return;
  clv_devices_close(provider->devices);
  clv_context_destroy(provider->context);
  clv__ep_options_finish(&provider->options);
  free(provider);
}
