/* Sessions on a device that accepts at most a given number of nodes per partition. The device is an ordinary one, but this file
 * registers a changed copy of its backend's table of functions. */
#include "replay.h"

#include <string.h>

/* ---- A device with a limit of nodes per partition ---- */

typedef struct pieces {
  clv_backend table;
  const clv_backend *inner;
  uint32_t nodes;
} pieces;

static pieces cut; /* static, because info() has no parameter through which it could find the changed table */

static void cut_info(clv_device *device, clv_device_info *info) {
  cut.inner->info(device, info);
  info->max_partition_nodes = cut.nodes;
}

static clv_status cut_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                           clv_error *error) {
  const clv_option spec = {"spec", "all"};
  clv_device_config all = *config;
  all.options = &spec;
  all.option_count = 1;
  return cut.inner->open(self, host, &all, device, error);
}

/* The session's driver calls this when it has issued everything. */
static clv_status cut_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  clv_status status = cut.inner->event_notify(device, event, notify, cookie, error);
  issued();
  return status;
}

static clv_status cut_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)host;
  (void)user_data;
  (void)error;
  *backend = &cut.table;
  return CLV_OK;
}

static void cut_add(clv_context *context, const char *device, uint32_t nodes) {
  clv_error error = {0};
  cut.inner = clv__context_find(context, device);
  if (cut.inner == NULL) check(CLV_NOT_SUPPORTED, &error, device);
  cut.table = *cut.inner;
  cut.table.name = "cut";
  cut.table.info = cut_info;
  cut.table.open = cut_open;
  if (cut.inner->event_notify != NULL) cut.table.event_notify = cut_notify;
  cut.nodes = nodes;
  check(clv_context_add_backend(context, cut_query, NULL, &error), &error, "backend");
}

/* ---- A session ---- */

void session_open(sessions *s, const clv_graph *graph, const char *device, uint32_t part_nodes, clv_capture_policy mode) {
  clv_error error = {0};
  memset(s, 0, sizeof *s);
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.capture = mode;
  options.cache_directory = "";
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "cut";
  devices.thread_count = 1;
  check(clv_context_create(&options, &s->context, &error), &error, "context");
  cut_add(s->context, device, part_nodes);
  check(clv_devices_open(s->context, &devices, &s->devices, &error), &error, device);
  check(clv_plan_make(graph, s->devices, NULL, &s->plan, &error), &error, "plan");
  check(clv_session_create(s->plan, NULL, &s->session, &error), &error, "session");
  const int64_t dims[2] = {ROWS, COLUMNS}, rank = 2;
  memcpy(s->dims, dims, sizeof dims);
  for (int i = 0; i < ELEMENTS; ++i) {
    s->in[0][i] = (float)(i * 7 % 13) - 5.5f;
    s->in[1][i] = (float)(i * 3 % 11) * 0.25f - 1;
  }
  for (int i = 0; i < 2; ++i) s->inputs[i] = clv__tensor_make(CLV_F32, 2, dims, s->in[i]);
  s->inputs[2] = clv__tensor_make(CLV_I64, 1, &rank, s->dims);
  s->input_count = graph->input_count;
  s->output = clv__tensor_make(CLV_F32, 2, dims, s->out);
}

void session_close(sessions *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
}

cost session_run(void *cookie) {
  sessions *s = cookie;
  clv_error error = {0};
  cost c = begin();
  check(clv_session_run(s->session, s->inputs, s->input_count, &s->output, 1, &error), &error, "run");
  return end(c);
}

const clv_backend *session_backend(void) {
  return cut.inner;
}
