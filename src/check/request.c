/* Runs one section on a device opened for it, and writes the section's findings into the report. */
#include "check/request.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

clv_status clv__check_resolve(clv__check_request *request, clv_error *error) {
  if (strchr(request->device, '/') == NULL) return CLV_OK;
  const clv_backend *backend = NULL;
  CLV__TRY(clv__context_load_plugin(request->context, request->device, NULL, &backend, error));
  request->devices_options.list = backend->name;
  return CLV_OK;
}

static double now_s(void) {
  return (double)clv__clock_ns() * 1e-9;
}

clv_status clv__check_run_section(const clv__check_request *request, uint32_t index, clv_check_report *report,
                                  clv__check_listener listener, void *cookie, clv__check_sign *sign, clv_error *error) {
  double start_s = now_s();
  clv__check check = {
      .context = request->context,
      .allocator = clv__context_allocator(request->context),
      .devices_options = &request->devices_options,
      .options = request->options,
      .seed = request->options->seed,
      .report = report,
      .section = index,
      .listener = listener,
      .cookie = cookie,
      .sign = sign,
  };
  uint32_t section = 0;
  while (strcmp(clv__check_sections[section].name, report->sections[index].name) != 0) ++section;
  *sign = (clv__check_sign){0};
  snprintf(sign->what, sizeof sign->what, "opening the device");
  CLV__TRY(clv__check_open(&check, error));
  clv_status status = clv__report_identify(report, check.device->name, check.backend->name, check.backend->version,
                                           check.device->info.description, error);
  clv__arena_init(&check.arena, check.allocator);
  if (status == CLV_OK) clv__check_sections[section].run(&check);
  clv__check_at(&check, "closing the device");
  clv__arena_finish(&check.arena);
  clv_devices_close(check.devices);
  clv__report_time(report, index, now_s() - start_s);
  return status;
}
