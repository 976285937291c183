/* Keeps what is left of a request after one of its devices was removed. The device may still read and write memory, notify
 * events, and call back for the memory of outputs, and a watcher thread may be blocked in a call to it. So the marks and the
 * board (session_own.h), the arrays that launches refer to, and the watchers are kept until the devices are closed. (The memory
 * pool keeps the memory that the device may access: device/memory_pool.h.) */
#include <sched.h>

#include "execute/session_own.h"

bool clv__request_has_lost_device(const clv__request *request) {
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) {
    if (request->streams[lane] != NULL && clv__device_is_lost(clv__request_device(request, clv__lane_device(lane)))) return true;
  }
  return false;
}

void clv__request_stop_callbacks(clv__request *request) {
  atomic_store(&request->refuses_callbacks, true);
  while (atomic_load(&request->callers) > 0) sched_yield();
}

/* Called after the devices are closed. Calls that were blocked in a device have then returned, so the watcher threads can be
 * joined. */
static void finish(void *self) {
  for (clv__request *request = self, *next; request != NULL; request = next) {
    next = request->next_abandoned;
    for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__watcher_destroy(request->watchers[d]);
    clv__request_free(request);
  }
}

void clv__request_abandon(clv__request *request) {
  clv_devices *devices = request->session->devices;
  clv__devices_lock(devices);
  clv__attachment *attachment = &devices->attachments[CLV__ATTACHED_REQUESTS];
  request->next_abandoned = attachment->self;
  *attachment = (clv__attachment){request, finish};
  clv__devices_unlock(devices);
}
