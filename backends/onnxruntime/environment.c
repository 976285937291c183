/* The environment of ONNX Runtime: one per process, with the threads that sessions share. The first device to open creates it,
 * and the last one to close releases it. If a later device has another number of threads or another setting of option `spin`,
 * each of its sessions creates its own threads. */
#include <pthread.h>
#include <stdio.h>

#include "device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static clv__ort_env *environment;
static int environment_threads;
static bool environment_spins;
static clv__ort_device *open_devices;

static void log_line(const clv_host *host, int severity, const char *message) {
  char text[512];
  snprintf(text, sizeof text, "onnxruntime: %s", message);
  for (char *at = text; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ') *at = ' ';
  }
  int level = severity >= CLV__ORT_LOG_ERROR ? 1 : severity == CLV__ORT_LOG_WARNING ? 2 : 3;
  if (host->log != NULL) host->log(host->self, level, text);
}

void clv__ort_log(void *cookie, int severity, const char *category, const char *log_id, const char *location,
                  const char *message) {
  const clv__ort_device *device = cookie;
  (void)category;
  (void)log_id;
  (void)location;
  log_line(device->host, severity, message);
}

/* Passes messages that belong to no session to the host of any open device. May be called from any thread. Does nothing while the
 * lock is held. */
static void log_anywhere(void *cookie, int severity, const char *category, const char *log_id, const char *location,
                         const char *message) {
  (void)cookie;
  (void)category;
  (void)log_id;
  (void)location;
  if (pthread_mutex_trylock(&lock) != 0) return; /* the environment is being created or released: drop the message */
  if (open_devices != NULL) log_line(open_devices->host, severity, message);
  pthread_mutex_unlock(&lock);
}

static clv_status create(const clv__ort_api *api, int thread_count, bool spins, clv_error *error) {
  clv__ort_threading *threading = NULL;
  CLV__ORT_TRY(api, CreateThreadingOptions, &threading);
  clv_status status;
  CLV__ORT_TRY_GOTO(api, SetGlobalIntraOpNumThreads, threading, thread_count);
  CLV__ORT_TRY_GOTO(api, SetGlobalSpinControl, threading, spins);
  CLV__ORT_TRY_GOTO(api, CreateEnvWithCustomLoggerAndGlobalThreadPools, log_anywhere, NULL, CLV__ORT_LOG_ERROR, "cleave",
                    threading, &environment);
  environment_threads = thread_count;
  environment_spins = spins;
cleanup:
  api->ReleaseThreadingOptions(threading);
  return status;
}

clv_status clv__ort_environment_join(clv__ort_device *device, bool spins, clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&lock);
  if (environment == NULL) status = create(device->api, device->thread_count, spins, error);
  if (status == CLV_OK) {
    device->env = environment;
    device->shares_threads = device->thread_count == environment_threads && spins == environment_spins;
    device->next = open_devices;
    open_devices = device;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void clv__ort_environment_leave(clv__ort_device *device) {
  pthread_mutex_lock(&lock);
  clv__ort_device **link = &open_devices;
  while (*link != NULL && *link != device) link = &(*link)->next;
  if (*link == device) *link = device->next;
  if (open_devices == NULL && environment != NULL) {
    device->api->ReleaseEnv(environment);
    environment = NULL;
  }
  pthread_mutex_unlock(&lock);
}
