/* Plugins for the tests of plugin loading. The macro VARIANT selects one: a correct plugin that runs Relu, or one that is older,
 * newer or faulty. */
#include "cleave/plugin/host_device.h"

#define RIGHT 0       /* a correct plugin with one device */
#define OLDER 1       /* the table of the first version, which ends with execute() */
#define NEWER 2       /* a table with more slots than the host knows */
#define OTHER_ABI 3   /* a table of another ABI version */
#define NO_SYMBOL 4   /* a library without clv_backend_query() */
#define FAILS 5       /* clv_backend_query() fails with a message */
#define NEEDS_NEWER 6 /* needs a newer host */
#define TOO_SHORT 7   /* a table that ends before compile() */
#define LACKS_SLOT 8  /* a table without compile() */
#define UNRESOLVED 9  /* calls a function that no library defines */
#define LISTS 10      /* a correct plugin with two devices and an option */

#ifndef NAME
#define NAME "right"
#endif

struct clv_device {
  clv_host_device base;
  char description[64];
};

struct clv_executable {
  clv_device *device;
};

static clv_status open_device(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                              clv_error *error) {
  (void)self;
  clv_device *made = clv_host_allocate(host, sizeof *made);
  *device = made;
  if (made == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for the device");
  bool gpu = VARIANT == LISTS && strstr(config->name, ":fast") != NULL;
  snprintf(made->description, sizeof made->description, "test device '%.30s' number %u", config->name, config->ordinal);
  clv_host_device_init(&made->base, host, gpu ? "gpu" : "cpu", made->description, NAME);
  made->base.info.max_partition_nodes = 1;
  for (uint32_t i = 0; i < config->option_count; ++i) {
    if (strcmp(config->options[i].key, "speed") != 0 || strcmp(config->options[i].value, "none") != 0) continue;
    clv_host_release(host, made);
    *device = NULL;
    return clv_host_fail(error, CLV_NOT_SUPPORTED, "speed=none is not supported");
  }
  return CLV_OK;
}

static void close_device(clv_device *device) {
  if (device != NULL) clv_host_release(device->base.host, device);
}

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  clv_node_info info = {.struct_size = sizeof info};
  clv_value_info value = {.struct_size = sizeof value};
  device->base.host->graph_node(graph, node, &info);
  verdict->supported = strcmp(info.op, "Relu") == 0 && info.domain[0] == '\0';
  if (verdict->supported) {
    device->base.host->graph_value(graph, info.inputs[0], &value);
    verdict->supported = value.type.dtype == CLV_F32;
  }
  if (!verdict->supported) snprintf(verdict->reason, sizeof verdict->reason, "only Relu of f32");
}

static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  (void)graph;
  (void)options;
  *executable = clv_host_allocate(device->base.host, sizeof **executable);
  if (*executable == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for an executable");
  (*executable)->device = device;
  return CLV_OK;
}

static void executable_destroy(clv_device *device, clv_executable *executable) {
  clv_host_release(device->base.host, executable);
}

static clv_status execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          clv_error *error) {
  (void)device;
  (void)instance;
  (void)stream;
  (void)error;
  const float *x = clv_host_address(&args->inputs[0]);
  float *y = clv_host_address(&args->outputs[0]);
  const int64_t count = clv_host_count(&args->inputs[0].type);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return CLV_OK;
}

static clv_status list(void *self, const clv_host *host, const clv_option *options, uint32_t option_count, clv_found_fn found,
                       void *cookie, clv_error *error) {
  (void)self;
  (void)host;
  (void)options;
  (void)option_count;
  (void)error;
  const clv_status status = found(cookie, "slow", "cpu");
  return status != CLV_OK ? status : found(cookie, "fast", "gpu");
}

/* The `list` slot of OLDER, whose table ends before that slot. The host must not call it. */
static clv_status beyond_the_end(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                                 clv_found_fn found, void *cookie, clv_error *error) {
  (void)self;
  (void)host;
  (void)options;
  (void)option_count;
  (void)found;
  (void)cookie;
  return clv_host_fail(error, CLV_INTERNAL_ERROR, "a slot beyond the table's end was called");
}

static const clv_option_info known_options[] = {{"speed", "high or none", "the speed of the device (default: high)"}};

/* A table as a later version might define it. */
typedef struct later_backend {
  clv_backend known;
  clv_status (*teleport)(clv_device *device, int where);
  void *more[5];
} later_backend;

static clv_status teleport(clv_device *device, int where) {
  (void)device;
  return where > 0 ? CLV_OK : CLV_INTERNAL_ERROR;
}

static const later_backend table = {
    .known =
        {
            .abi_version = VARIANT == OTHER_ABI ? CLV_ABI_VERSION + 1 : CLV_ABI_VERSION,
            .struct_size = VARIANT == NEWER       ? sizeof(later_backend)
                           : VARIANT == OLDER     ? offsetof(clv_backend, node_seconds)
                           : VARIANT == TOO_SHORT ? offsetof(clv_backend, compile)
                                                  : sizeof(clv_backend),
            .name = NAME,
            .version = "7",
            .open = open_device,
            .close = close_device,
            .supports = supports,
            .compile = VARIANT == LACKS_SLOT ? NULL : compile,
            .executable_destroy = executable_destroy,
            .execute = execute,
            CLV_HOST_DEVICE_SLOTS,
            CLV_HOST_WEIGHT_SLOTS,
            CLV_HOST_INSTANCE_SLOTS,
            .options = VARIANT == LISTS ? known_options : NULL,
            .option_count = VARIANT == LISTS,
            .list = VARIANT == LISTS   ? list
                    : VARIANT == OLDER ? beyond_the_end
                                       : NULL,
        },
    .teleport = teleport,
    .more = {NULL},
};

#if VARIANT == UNRESOLVED
void nobody_has_this_function(void);
#endif

#if VARIANT == NO_SYMBOL
#define clv_backend_query something_else
#endif

CLV_API clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
#if VARIANT == UNRESOLVED
  nobody_has_this_function();
#endif
  const size_t needed = VARIANT == NEEDS_NEWER ? sizeof(clv_host) + sizeof(void *) : offsetof(clv_host, graph_part);
  if (host->abi_version != CLV_ABI_VERSION || host->struct_size < needed) {
    return clv_host_fail(error, CLV_NOT_SUPPORTED,
                         "needs a host with ABI version %u and a table of %zu bytes; this host has version %u and %u bytes",
                         CLV_ABI_VERSION, needed, host->abi_version, host->struct_size);
  }
  if (VARIANT == FAILS) return clv_host_fail(error, CLV_DEVICE_ERROR, "driver 7 is asleep");
  *backend = &table.known;
  return CLV_OK;
}
