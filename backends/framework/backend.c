/* Makes a framework (OpenVINO, ONNX Runtime, PyTorch) a backend: fills its table of plugin ABI functions, and loads its library.
 * Each framework in the process has its own table. */
#include <string.h>

#include "queue.h"

enum { MAX_FRAMEWORKS = 8, MAX_OPTIONS = 24 };

/* A framework and the backend table created for it. Registrations are never freed. */
typedef struct registration {
  const clv__framework *framework;
  pthread_mutex_t lock; /* guards `library` */
  void *library;        /* NULL: not loaded */
  clv_option_info options[MAX_OPTIONS];
  clv_backend table;
} registration;

static registration registrations[MAX_FRAMEWORKS];
static uint32_t registration_count;
static pthread_mutex_t registrations_lock = PTHREAD_MUTEX_INITIALIZER;

/* Loads the library if it is not loaded. A failed load is tried again on the next call, because the library may be installed by
 * then. */
static clv_status load(registration *r, const clv_host *host, void **library, clv_error *error) {
  pthread_mutex_lock(&r->lock);
  clv_status status = r->library != NULL ? CLV_OK : r->framework->load(host, &r->library, error);
  if (status != CLV_OK) r->library = NULL;
  *library = r->library;
  pthread_mutex_unlock(&r->lock);
  return status;
}

static clv_status open_slot(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                            clv_error *error) {
  registration *r = self;
  void *library;
  *device = NULL;
  CLV__TRY(load(r, host, &library, error));
  return clv__framework_open(r->framework, library, host, config, device, error);
}

static clv_status list_slot(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                            clv_found_fn found, void *cookie, clv_error *error) {
  registration *r = self;
  void *library;
  (void)options;
  (void)option_count;
  CLV__TRY(load(r, host, &library, error));
  return r->framework->list(library, found, cookie, error);
}

static const clv_save_slots save_slots = {
    .struct_size = sizeof save_slots,
    .save = clv__framework_executable_save,
    .load = clv__framework_executable_load,
};

static void fill_table(registration *r) {
  static const clv_option_info async = {
      "async", "yes, no",
      "yes: run the device's work in a separate thread; devices other than the host's cores always do (default: no)"};
  const clv__framework *framework = r->framework;
  uint32_t count = 0;
  r->options[count++] = async;
  for (uint32_t i = 0; i < framework->option_count && count < MAX_OPTIONS; ++i) r->options[count++] = framework->options[i];
  bool saves = framework->model_save != NULL && framework->model_load != NULL;
  r->table = (clv_backend){
      .abi_version = CLV_ABI_VERSION,
      .struct_size = sizeof r->table,
      .name = framework->name,
      .version = framework->version,
      .self = r,
      .open = open_slot,
      .close = clv__framework_close,
      .info = clv__framework_info,
      .supports = clv__framework_supports,
      .buffer_alloc = clv__framework_buffer_alloc,
      .buffer_free = clv__framework_buffer_free,
      .buffer_host_pointer = clv__framework_buffer_host_pointer,
      .stream_create = clv__framework_stream_create,
      .stream_destroy = clv__framework_stream_destroy,
      .stream_synchronize = clv__framework_stream_synchronize,
      .event_create = clv__framework_event_create,
      .event_destroy = clv__framework_event_destroy,
      .event_record = clv__framework_event_record,
      .event_wait = clv__framework_event_wait,
      .event_synchronize = clv__framework_event_synchronize,
      .copy_in = clv__framework_copy_in,
      .copy_out = clv__framework_copy_out,
      .weight_upload = clv__framework_weight_upload,
      .weight_release = clv__framework_weight_release,
      .compile = clv__framework_compile,
      .executable_destroy = clv__framework_executable_destroy,
      .executable_info = clv__framework_executable_info,
      .instance_create = clv__framework_instance_create,
      .instance_destroy = clv__framework_instance_destroy,
      .instance_resize = framework->request_resize != NULL ? clv__framework_instance_resize : NULL,
      .execute = clv__framework_execute,
      .event_notify = clv__framework_event_notify,
      .stream_stop = clv__framework_stream_stop,
      .options = r->options,
      .option_count = count,
      .list = list_slot,
      .save = saves ? &save_slots : NULL,
  };
}

const clv_backend *clv__framework_backend(const clv__framework *framework) {
  const clv_backend *found = NULL;
  pthread_mutex_lock(&registrations_lock);
  for (uint32_t i = 0; i < registration_count && found == NULL; ++i) {
    if (registrations[i].framework == framework) found = &registrations[i].table;
  }
  if (found == NULL && registration_count < MAX_FRAMEWORKS) {
    registration *r = &registrations[registration_count++];
    r->framework = framework;
    pthread_mutex_init(&r->lock, NULL);
    fill_table(r);
    found = &r->table;
  }
  pthread_mutex_unlock(&registrations_lock);
  return found;
}
