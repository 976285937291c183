/* The library's two entry points, and the factory that they make. ONNX Runtime calls them when a program registers the library.
 */
#include <stdio.h>
#include <stdlib.h>

#include "provider.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct factory {
  OrtEpFactory table; /* first: ONNX Runtime passes a pointer to it */
  const OrtApi *api;
} factory;

static const char *get_name(const OrtEpFactory *self) {
  (void)self;
  return CLV__EP_NAME;
}

static const char *get_vendor(const OrtEpFactory *self) {
  (void)self;
  return "Cleave";
}

static const char *get_version(const OrtEpFactory *self) {
  (void)self;
  return CLEAVE_VERSION;
}

static uint32_t get_vendor_id(const OrtEpFactory *self) { /* that of a PCI vendor: this is not one */
  (void)self;
  return 0;
}

/* The provider counts as a device of the CPU, whichever devices of Cleave it drives: its values are in host memory, and the
 * option `devices` names the others. */
static OrtStatus *get_supported_devices(OrtEpFactory *self, const OrtHardwareDevice *const *hardware, size_t hardware_count,
                                        OrtEpDevice **devices, size_t room, size_t *count) {
  const OrtApi *api = ((factory *)self)->api;
  *count = 0;
  for (size_t i = 0; i < hardware_count && *count < room; ++i) {
    if (api->HardwareDevice_Type(hardware[i]) != ORT_DEVICE_CPU) continue;
    OrtStatus *status = api->GetEpApi()->CreateEpDevice(self, hardware[i], NULL, NULL, &devices[*count]);
    if (status != NULL) return status;
    ++*count;
    break;
  }
  return NULL;
}

static OrtStatus *create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *hardware, const OrtKeyValuePairs *const *metadata,
                            size_t count, const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep) {
  const OrtApi *api = ((factory *)self)->api;
  clv__ep *provider;
  clv_error error = {0};
  (void)hardware;
  (void)metadata;
  (void)count;
  *ep = NULL;
  clv_status status = clv__ep_create(api, options, logger, &provider, &error);
  if (status == CLV_OK) *ep = &provider->table;
  return clv__ep_status(api, status, &error);
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
  (void)self;
  clv__ep_destroy((clv__ep *)ep);
}

static OrtStatus *create_allocator(OrtEpFactory *self, const void *memory, const OrtKeyValuePairs *options, void **allocator) {
  (void)self;
  (void)memory;
  (void)options;
  *allocator = NULL; /* ONNX Runtime's own, of host memory */
  return NULL;
}

static void release_allocator(OrtEpFactory *self, void *allocator) {
  (void)self;
  (void)allocator;
}

static OrtStatus *create_data_transfer(OrtEpFactory *self, void **transfer) {
  (void)self;
  *transfer = NULL; /* all values are in host memory */
  return NULL;
}

static bool is_stream_aware(const OrtEpFactory *self) {
  (void)self;
  return false;
}

/* An older ONNX Runtime has no table of this version, and says so on stderr too. CreateStatus() and the errors' functions have
 * been there since version 1, so the error can be made. */
static OrtStatus *too_old(const OrtApiBase *base) {
  char text[200];
  const OrtApi *oldest = base->GetApi(1);
  snprintf(text, sizeof text, "this is ONNX Runtime %.40s; the execution provider of Cleave needs version 1.%u or later",
           base->GetVersionString(), CLV__ORT_API_VERSION);
  return oldest->CreateStatus(ORT_CODE_NOT_IMPLEMENTED, text);
}

EXPORT OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *logger,
                                    OrtEpFactory **factories, size_t room, size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *self);

EXPORT OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *logger,
                                    OrtEpFactory **factories, size_t room, size_t *count) {
  (void)registered_name;
  (void)logger;
  *count = 0;
  unsigned major = 0, minor = 0;
  const char *version = base->GetVersionString();
  bool is_readable = version != NULL && sscanf(version, "%u.%u", &major, &minor) == 2;
  if (is_readable && major == 1 && minor < CLV__ORT_API_VERSION) return too_old(base); /* before it prints that on stderr */
  const OrtApi *api = base->GetApi(CLV__ORT_API_VERSION);
  if (api == NULL) return too_old(base);
  if (room < 1) return api->CreateStatus(ORT_CODE_INVALID_ARGUMENT, "there is no room for the factory of " CLV__EP_NAME);
  factory *made = calloc(1, sizeof *made);
  if (made == NULL) return api->CreateStatus(ORT_CODE_FAIL, "out of memory");
  made->table = (OrtEpFactory){.ort_version_supported = CLV__ORT_API_VERSION,
                               .GetName = get_name,
                               .GetVendor = get_vendor,
                               .GetSupportedDevices = get_supported_devices,
                               .CreateEp = create_ep,
                               .ReleaseEp = release_ep,
                               .GetVendorId = get_vendor_id,
                               .GetVersion = get_version,
                               .CreateAllocator = create_allocator,
                               .ReleaseAllocator = release_allocator,
                               .CreateDataTransfer = create_data_transfer,
                               .IsStreamAware = is_stream_aware};
  made->api = api;
  factories[0] = &made->table;
  *count = 1;
  return NULL;
}

EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
  free(self);
  return NULL;
}
