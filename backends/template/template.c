/* The plugin's table, its device, and weights. The other files of this folder contain the rest. */
#include "template.h"

static const clv_option_info option_list[] = {
    {"trace", "on or off", "log one line per execution (default: off)"},
};

/* Reads the options. It need not check their keys: the host rejects keys that are not in `option_list`. */
static clv_status read_options(clv_device *device, const clv_device_config *config, clv_error *error) {
  for (uint32_t i = 0; i < config->option_count; ++i) {
    const char *value = config->options[i].value;
    device->trace = strcmp(value, "on") == 0;
    if (device->trace || strcmp(value, "off") == 0) continue;
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "option %s=%.80s: expected %s", config->options[i].key, value,
                         option_list[0].values);
  }
  return CLV_OK;
}

static void close_device(clv_device *device) {
  if (device != NULL) clv_host_release(device->base.host, device);
}

/* For a real device, CLV_NOT_SUPPORTED means that the device is absent, or that its driver is not usable. */
static clv_status open_device(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                              clv_error *error) {
  (void)self;
  *device = NULL;
  if (config->ordinal != 0)
    return clv_host_fail(error, CLV_NOT_FOUND, "there is only one template device, number 0, not %u", config->ordinal);
  clv_device *made = clv_host_allocate(host, sizeof *made);
  if (made == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for the device");
  /* The fingerprint covers everything that a program depends on. For a real device that includes the driver, and options that
   * change the generated code. */
  snprintf(made->fingerprint, sizeof made->fingerprint, "template %s, %zu-byte values", TEMPLATE_VERSION, sizeof(template_value));
  clv_host_device_init(&made->base, host, "cpu", "plain C loops: a starting point for new backends", made->fingerprint);
  const clv_status status = read_options(made, config, error);
  if (status != CLV_OK) {
    close_device(made);
    return status;
  }
  *device = made;
  return CLV_OK;
}

/* ---- Weights: copies that exist until the host releases them ---- */

static clv_status weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                clv_error *error) {
  const clv_host *host = device->base.host;
  const int64_t count = data->dtype == CLV_F32 ? clv_host_count(data) : -1;
  *weight = NULL;
  if (count < 0) return clv_host_fail(error, CLV_INVALID_ARGUMENT, "weight '%.200s' is not f32, or its size is unknown", id);
  const size_t head = (sizeof **weight + CLV_HOST_ALIGNMENT - 1) / CLV_HOST_ALIGNMENT * CLV_HOST_ALIGNMENT;
  clv_weight *made = clv_host_allocate(host, head + (size_t)count * sizeof(float));
  if (made == NULL)
    return clv_host_fail(error, CLV_OUT_OF_MEMORY, "weight '%.200s': not enough memory for %lld floats", id, (long long)count);
  made->tensor = *data;
  made->tensor.data = (char *)made + head;
  memcpy(made->tensor.data, data->data, (size_t)count * sizeof(float));
  *weight = made;
  return CLV_OK;
}

static void weight_release(clv_device *device, clv_weight *weight) {
  if (weight != NULL) clv_host_release(device->base.host, weight);
}

/* ---- The table ---- */

static const clv_save_slots save_slots = {
    .struct_size = sizeof save_slots,
    .save = template_executable_save,
    .load = template_executable_load,
};

static const clv_backend table = {
    .abi_version = CLV_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "template", /* the device's name, and part of the file name cleave_template.so */
    .version = TEMPLATE_VERSION,
    .open = open_device,
    .close = close_device,
    CLV_HOST_DEVICE_SLOTS,
    .supports = template_supports,
    .weight_upload = weight_upload,
    .weight_release = weight_release,
    .compile = template_compile,
    .executable_destroy = template_executable_destroy,
    .executable_info = template_executable_info,
    .instance_create = template_instance_create,
    .instance_destroy = template_instance_destroy,
    .instance_resize = template_instance_resize,
    .execute = template_execute,
    .node_seconds = template_node_seconds,
    .copy_seconds = template_copy_seconds,
    .launch_seconds = template_launch_seconds,
    .options = option_list,
    .option_count = sizeof option_list / sizeof *option_list,
    .save = &save_slots,
};

/* The only symbol that a plugin exports. Do not store `host` here: several contexts share the table, and each open() receives its
 * own host. */
CLV_API clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  if (host->abi_version != CLV_ABI_VERSION) {
    return clv_host_fail(error, CLV_NOT_SUPPORTED, "built for plugin ABI version %u, but the host has version %u",
                         CLV_ABI_VERSION, host->abi_version);
  }
  *backend = &table;
  return CLV_OK;
}
