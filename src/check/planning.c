/* The section `planning` of the conformance kit (check.h): the optional slots for the planner, besides verdicts: preferences,
 * estimates, node groups, and the list of devices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

static bool is_estimate(double seconds) {
  return !isnan(seconds) && !isinf(seconds) && seconds < 1e6;
}

static void check_estimates(clv__check *check) {
  const clv_backend *b = check->backend;
  if (b->copy_seconds != NULL) {
    double last = 0;
    for (uint64_t size = 1; size <= UINT64_C(1) << 32; size *= 16) {
      double seconds = b->copy_seconds(check->handle, size);
      clv__check_that(check, is_estimate(seconds) && (seconds < 0 || seconds >= last), "copy_seconds",
                      "the estimate is %g s for %llu bytes; expected a valid number, and at least the %g s for fewer bytes",
                      seconds, (unsigned long long)size, last);
      if (seconds > last) last = seconds;
    }
  } else {
    clv__check_skip(check, "estimates and preferences", "the backend lacks the optional slot 'copy_seconds'");
  }
  if (b->launch_seconds != NULL) {
    double seconds = b->launch_seconds(check->handle);
    clv__check_that(check, is_estimate(seconds), "launch_seconds", "the estimate is %g s; expected a finite number below 1e6",
                    seconds);
  } else {
    clv__check_skip(check, "estimates and preferences", "the backend lacks the optional slot 'launch_seconds'");
  }
}

static void check_nodes(clv__check_scene *scene) {
  clv__check *check = scene->check;
  const clv_backend *b = check->backend;
  const clv_graph_view *view = scene->program.view;
  for (uint32_t n = 0; n < view->node_count; ++n) {
    if (b->node_seconds != NULL) {
      double one = b->node_seconds(check->handle, view, n), two = b->node_seconds(check->handle, view, n);
      clv__check_that(check, is_estimate(one) && one == two, scene->what,
                      "node_seconds of node %u returned %g, then %g; expected the same number below 1e6 twice", n, one, two);
    }
    if (b->prefers != NULL) {
      bool one = b->prefers(check->handle, view, n), two = b->prefers(check->handle, view, n);
      clv__check_that(check, one == two, scene->what, "prefers() of node %u returned different results when called twice", n);
    }
  }
}

/* ---- Groups ---- */

typedef struct claims {
  clv__check_scene *scene;
  const bool *is_free;
  bool *taken;
  uint32_t groups, wrong;
  char text[256];
} claims;

static clv_status add_group(void *cookie, const uint32_t *nodes, uint32_t count) {
  claims *c = cookie;
  const clv_graph_view *view = c->scene->program.view;
  ++c->groups;
  const char *problem = count == 0 ? "it is empty" : NULL;
  for (uint32_t i = 0; problem == NULL && i < count; ++i) {
    if (nodes[i] >= view->node_count)
      problem = "it contains a node that is not in the graph";
    else if (i > 0 && nodes[i] <= nodes[i - 1])
      problem = "its nodes are not in ascending order";
    else if (!c->is_free[nodes[i]])
      problem = "it contains a node that is not free";
    else if (c->taken[nodes[i]])
      problem = "it contains a node of an earlier group";
    if (problem == NULL) c->taken[nodes[i]] = true;
  }
  if (problem == NULL) return CLV_OK;
  if (c->wrong++ == 0) snprintf(c->text, sizeof c->text, "group %u: %s", c->groups, problem);
  return CLV_OK;
}

static void check_claim(clv__check_scene *scene) {
  clv__check *check = scene->check;
  const clv_graph_view *view = scene->program.view;
  clv_error error = {0};
  bool *is_free = clv__arena_allocate_zero(&scene->arena, view->node_count, sizeof *is_free);
  bool *taken = clv__arena_allocate_zero(&scene->arena, view->node_count, sizeof *taken);
  if (is_free == NULL || taken == NULL) return;
  for (uint32_t n = 0; n < view->node_count; ++n) is_free[n] = n % 3 != 1;
  claims c = {.scene = scene, .is_free = is_free, .taken = taken};
  clv__check_at(check, "claim, %s", scene->what);
  clv_status status = check->backend->claim(check->handle, view, is_free, add_group, &c, &error);
  if (status != CLV_OK)
    clv__check_failed_call(check, scene->what, "claim", status, &error);
  else
    clv__check_that(check, c.wrong == 0, scene->what, "claim: %s", c.text);
}

/* ---- Devices ---- */

static clv_status count_found(void *cookie, const char *name, const char *kind) {
  uint32_t *count = cookie;
  if (name == NULL || kind == NULL) return CLV_INVALID_ARGUMENT;
  ++*count;
  return CLV_OK;
}

static clv_status refuse_found(void *cookie, const char *name, const char *kind) {
  (void)cookie;
  (void)name;
  (void)kind;
  return CLV_CANCELLED;
}

static void check_list(clv__check *check) {
  clv_error error = {0};
  uint32_t count = 0;
  if (check->backend->list == NULL) {
    clv__check_skip(check, "list", "the backend lacks the optional slot 'list': it has one device, or several chosen by number");
    return;
  }
  const clv_host *host = clv__context_host(check->context);
  clv_status status = check->backend->list(check->backend->self, host, NULL, 0, count_found, &count, &error);
  if (status == CLV_NOT_SUPPORTED && error.message[0] != '\0') {
    clv__check_skip(check, "list", "%s", error.message);
    return;
  }
  clv__check_that(check, status == CLV_OK && count > 0, "list",
                  "it listed %u devices and returned '%s'; expected at least the device being checked: %s", count,
                  clv_status_name(status), error.message);
  status = check->backend->list(check->backend->self, host, NULL, 0, refuse_found, NULL, &error);
  clv__check_that(check, status == CLV_CANCELLED, "list", "`found` returned 'cancelled', but list returned '%s'",
                  clv_status_name(status));
}

void clv__check_planning(clv__check *check) {
  const clv_backend *b = check->backend;
  check_estimates(check);
  check_list(check);
  if (b->node_seconds == NULL)
    clv__check_skip(check, "estimates and preferences", "the backend lacks the optional slot 'node_seconds'");
  if (b->prefers == NULL) clv__check_skip(check, "estimates and preferences", "the backend lacks the optional slot 'prefers'");
  if (b->claim == NULL) clv__check_skip(check, "claim", "the backend lacks the optional slot 'claim': the host groups its nodes");
  for (uint32_t i = 0; i < 4; ++i) {
    clv__check_scene scene;
    if (!clv__scene_plain(check, check->seed + 61u * i, &scene)) return;
    check_nodes(&scene);
    if (b->claim != NULL) check_claim(&scene);
    clv__scene_finish(&scene);
  }
}
