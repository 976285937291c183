/* clv_session_load_weights(): replaces weights of a session. The graph and the plan are made again with these weights, and then
 * an engine for them, so every device gets them as a new session's devices would. Runs use either engine as a whole. */
#include <string.h>

#include "execute/session_own.h"
#include "plan/make.h"

void clv__loaded_release(clv_session *session, clv__loaded *loaded) {
  if (loaded == NULL) return;
  pthread_mutex_lock(&session->lock);
  bool is_used = --loaded->users > 0;
  pthread_mutex_unlock(&session->lock);
  if (is_used) return;
  clv_plan_destroy(loaded->plan);
  clv__graph_destroy(loaded->graph);
  clv__release(session->allocator, loaded);
}

/* ---- The arguments ---- */

static clv_status check_weight(const clv_graph *graph, clv_value_id v, const clv_tensor *tensor, clv_error *error) {
  const clv__value *value = &graph->values[v];
  if (value->producer != CLV__NO_ID) {
    const clv__node *node = &graph->nodes[value->producer];
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is not a weight: node '%s' (%s) computes it", value->name,
                          node->name, node->op);
  }
  if (value->type.data == NULL && !value->is_unbound)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is not a weight, but an input of the model", value->name);
  size_t size_bytes;
  if (!clv__tensor_same_type(&value->type, tensor)) {
    char is[160], should[160];
    clv__tensor_text(tensor, is, sizeof is);
    clv__graph_type_text(graph, &value->type, should, sizeof should);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is %s, not %s", value->name, should, is);
  }
  if (tensor->data == NULL && (!clv__tensor_size_bytes(tensor, &size_bytes) || size_bytes > 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' has no data", value->name);
  return CLV_OK;
}

/* Finds the weights, and sorts the tensors by value. */
static clv_status find_weights(const clv_graph *graph, const char *const *names, const clv_tensor *tensors, uint32_t count,
                               clv_tensor *by_value, clv_error *error) {
  clv__map known;
  clv__map_init(&known, graph->allocator);
  clv_status status = CLV_OK;
  for (clv_value_id v = 0; v < graph->value_count && status == CLV_OK; ++v) {
    if (!clv__map_set(&known, graph->values[v].name, v)) status = clv__error_memory(error, sizeof(clv__map_slot));
  }
  for (uint32_t i = 0; i < count && status == CLV_OK; ++i) {
    clv_value_id v = names[i] == NULL ? CLV__MAP_NONE : clv__map_find(&known, names[i]);
    if (names[i] == NULL) {
      status = clv__error_set(error, CLV_INVALID_ARGUMENT, "weight %u has no name", i);
    } else if (v == CLV__MAP_NONE) {
      status = clv__error_set(error, CLV_NOT_FOUND, "the model has no weight '%s'", names[i]);
    } else if (by_value[v].dtype != CLV_DTYPE_NONE) {
      status = clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is given twice", names[i]);
    } else {
      status = check_weight(graph, v, &tensors[i], error);
      by_value[v] = tensors[i];
    }
  }
  clv__map_finish(&known);
  return status;
}

/* ---- The engine ---- */

/* Takes the devices out of the plan that were removed from the session. `own` is the new plan, or NULL. */
static clv_status leave_out(const clv_plan *current, const clv_plan *plan, clv_plan **own, clv_error *error) {
  static const char removed[] = "removed: ";
  *own = NULL;
  for (uint32_t d = 0; d < current->devices->count; ++d) {
    const clv_plan *from = *own != NULL ? *own : plan;
    if ((current->gone >> d & 1u) == 0 || (from->gone >> d & 1u) != 0) continue;
    const char *why = current->gone_why[d] != NULL ? current->gone_why[d] : "";
    if (strncmp(why, removed, sizeof removed - 1) == 0) why += sizeof removed - 1;
    clv_plan *next;
    clv_status status = clv__plan_without_devices(from, 1u << d, why, &next, error);
    clv_plan_destroy(*own);
    *own = next;
    CLV__TRY(status);
  }
  return CLV_OK;
}

static clv_status make_engine(clv_session *session, clv__loaded *loaded, clv__engine **engine, clv_error *error) {
  clv_plan *own;
  CLV__TRY(leave_out(session->engine->plan, loaded->plan, &own, error));
  for (;;) {
    clv__engine_failure failure;
    clv_plan *next;
    clv__error_clear(error);
    clv_status status = clv__engine_create(session, own != NULL ? own : loaded->plan, own, loaded, engine, &failure, error);
    if (status == CLV_OK) return status;
    bool is_divided = clv__session_divide(session, own != NULL ? own : loaded->plan, &failure, status, error, &next);
    clv_plan_destroy(own);
    if (!is_divided) return status;
    own = next;
  }
}

/* Takes all requests, unless a run has one of them. */
static bool take_requests(clv_session *session, clv__request **taken) {
  bool is_idle = true;
  pthread_mutex_lock(&session->lock);
  for (uint32_t i = 0; i < session->options.in_flight; ++i) is_idle = is_idle && !session->is_busy[i];
  for (uint32_t i = 0; is_idle && i < session->options.in_flight; ++i) {
    taken[i] = session->requests[i];
    session->requests[i] = NULL;
    session->is_busy[i] = true;
  }
  pthread_mutex_unlock(&session->lock);
  return is_idle;
}

static void give_requests(clv_session *session) {
  pthread_mutex_lock(&session->lock);
  for (uint32_t i = 0; i < session->options.in_flight; ++i) session->is_busy[i] = false;
  pthread_cond_broadcast(&session->freed);
  pthread_mutex_unlock(&session->lock);
}

/* Makes the engine while a device has too little memory for the old weights and the new ones: releases the old ones first. If
 * that fails too, the next run gets the old ones again. */
static clv_status make_alone(clv_session *session, clv__loaded *loaded, clv__engine **engine, clv_error *error) {
  clv__request *taken[CLV_MAX_IN_FLIGHT];
  if (!take_requests(session, taken)) {
    clv_error why = *error;
    return clv__error_set(error, CLV_OUT_OF_MEMORY,
                          "%s; there is no room for the old and the new weights: wait for the runs first", why.message);
  }
  for (uint32_t i = 0; i < session->options.in_flight; ++i) clv__request_destroy(taken[i]);
  clv__engine_empty(session, session->engine);
  clv__memory_pool_trim(session->devices);
  clv_status status = make_engine(session, loaded, engine, error);
  if (status == CLV_OK) {
    pthread_mutex_lock(&session->lock); /* before a run takes a request */
    clv__engine *old = session->engine;
    session->engine = *engine;
    pthread_mutex_unlock(&session->lock);
    *engine = old;
  }
  give_requests(session);
  return status;
}

static clv_status exchange(clv_session *session, clv__loaded *loaded, clv_error *error) {
  clv__engine *engine;
  clv_status status = make_engine(session, loaded, &engine, error);
  if (status == CLV_OUT_OF_MEMORY) {
    CLV__TRY(make_alone(session, loaded, &engine, error));
  } else if (status == CLV_OK) {
    pthread_mutex_lock(&session->lock);
    clv__engine *old = session->engine;
    session->engine = engine;
    pthread_mutex_unlock(&session->lock);
    engine = old;
  } else {
    return status;
  }
  clv__engine_release(session, engine);
  clv__session_sweep(session);
  return CLV_OK;
}

/* ---- The call ---- */

static clv_status load(clv_session *session, const char *const *names, const clv_tensor *tensors, uint32_t count,
                       clv_tensor *by_value, clv_error *error) {
  const clv_plan *current = session->engine->plan;
  CLV__TRY(find_weights(current->graph, names, tensors, count, by_value, error));
  clv__loaded *loaded = clv__allocate_zero(session->allocator, sizeof *loaded);
  if (loaded == NULL) return clv__error_memory(error, sizeof *loaded);
  loaded->users = 1;
  clv_status status = clv__graph_with_weights(current->graph, by_value, &loaded->graph, error);
  if (status == CLV_OK) status = clv__plan_with_weights(session->plan, loaded->graph, current->gone, &loaded->plan, error);
  if (status == CLV_OK) status = exchange(session, loaded, error);
  clv__loaded_release(session, loaded);
  return status;
}

clv_status clv_session_load_weights(clv_session *session, const char *const *names, const clv_tensor *tensors, uint32_t count,
                                    clv_error *given) {
  clv_error own = {0}, *error = given != NULL ? given : &own;
  if (session == NULL || (count > 0 && (names == NULL || tensors == NULL)))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "session, names and tensors must not be NULL");
  uint32_t value_count = session->plan->graph->value_count;
  clv_tensor *by_value = clv__allocate_zero(session->allocator, value_count * sizeof *by_value);
  if (by_value == NULL) return clv__error_memory(error, value_count * sizeof *by_value);
  pthread_mutex_lock(&session->replacing);
  clv_status status = load(session, names, tensors, count, by_value, error);
  pthread_mutex_unlock(&session->replacing);
  clv__release(session->allocator, by_value);
  return status;
}
