/* Times of the steps inside partitions, such as kernels, that the devices of a session measure themselves. */
#include "execute/session_own.h"

/* The prepared set of the last run of request `index`; NULL if there is none for the session's current engine. */
static const clv__prepared *prepared_of(const clv_session *session, uint32_t index) {
  const clv__request *request = session->requests[index];
  return request != NULL && request->engine == session->engine ? request->prepared : NULL;
}

static clv_status time_prepared(clv_session *session, const clv__prepared *prepared, bool on, clv_error *error) {
  const clv_plan *plan = clv__session_plan(session);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__device *device = &session->devices->items[plan->partitions[p].device];
    if (prepared->partitions[p].instance == NULL || device->backend->timing == NULL) continue;
    const clv_status status = CLV__CALL(device, error, timing->enable, prepared->partitions[p].instance, on);
    if (status == CLV_OK || status == CLV_NOT_SUPPORTED) continue; /* clv__session_operators() will report CLV_NOT_SUPPORTED */
    return clv__error_prefix(error, status, "partition %u on %s: cannot turn the timing of its steps on or off", p, device->name);
  }
  return CLV_OK;
}

clv_status clv__session_time_operators(clv_session *session, bool on, clv_error *error) {
  clv_status status = CLV_OK;
  clv__devices_lock(session->devices);
  for (uint32_t r = 0; r < CLV_MAX_IN_FLIGHT && status == CLV_OK; ++r) { /* the next run may take any free request */
    const clv__prepared *prepared = prepared_of(session, r);
    if (prepared != NULL) status = time_prepared(session, prepared, on, error);
  }
  clv__devices_unlock(session->devices);
  return status;
}

clv_status clv__session_operators(clv_session *session, uint32_t index, clv_step_fn found, void *cookie, clv_error *error) {
  clv_devices *devices = session->devices;
  const clv_plan *plan = clv__session_plan(session);
  if (index >= plan->partition_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "there is no partition %u: the plan has %u", index, plan->partition_count);
  }
  const clv__device *device = &devices->items[plan->partitions[index].device];
  clv__devices_lock(devices);
  const clv__prepared *prepared = prepared_of(session, session->last_request);
  clv_instance *instance = prepared != NULL ? prepared->partitions[index].instance : NULL;
  clv_status status;
  clv__error_clear(error);
  if (device->backend->timing == NULL) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "%s does not report times of its steps", device->name);
  } else if (instance == NULL) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "partition %u on %s has not run yet: there are no times of its steps",
                            index, device->name);
  } else {
    status = CLV__CALL(device, error, timing->steps, instance, found, cookie);
    if (status != CLV_OK)
      clv__error_prefix(error, status, "partition %u on %s: cannot read the times of its steps", index, device->name);
  }
  clv__devices_unlock(devices);
  return status;
}

const clv_tensor *clv__session_types(clv_session *session) {
  const clv__prepared *prepared = prepared_of(session, session->last_request);
  return prepared != NULL ? prepared->types : clv__plan_sized_types(clv__session_plan(session));
}
