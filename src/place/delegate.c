/* `delegate`: the delegates are all devices but the last. In order of priority, each gets the nodes that it supports and that
 * no earlier delegate got. A delegate that chose groups itself gets only the nodes of those groups. Every other node goes to
 * the last device or, if that cannot run it, to the first device that can. Views go to the device of their source. */
#include <string.h>

#include "place/groups.h"
#include "place/list_cut.h"
#include "place/node.h"
#include "place/views.h"

typedef struct delegating {
  const clv__problem *problem;
  const uint32_t *const *claims;
  clv__placing *placing;
  uint32_t closed; /* bit d: device d chose groups, and gets no node outside them */
  uint32_t last;
} delegating;

static uint32_t claim_of(const delegating *d, uint32_t device, uint32_t node) {
  return (d->closed >> device & 1u) == 0 ? CLV__NONE : d->claims[device][node];
}

/* Returns the delegates that may get the node, as bits: those that support it and, if they chose groups, have the node in a
 * group. */
static uint32_t takers(const delegating *d, uint32_t node) {
  uint32_t mask = d->problem->supports[node] & ((1u << d->last) - 1);
  for (uint32_t closed = mask & d->closed; closed != 0; closed &= closed - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(closed);
    if (d->claims[device][node] == CLV__NONE) mask &= ~(1u << device);
  }
  return mask;
}

static clv_status place_node(const delegating *d, uint32_t node, clv_error *error) {
  const clv__problem *problem = d->problem;
  uint32_t *device = &d->placing->devices[node], take = takers(d, node);
  const char **cause = &d->placing->causes[node];
  if (problem->pins[node] != CLV__NONE) {
    *device = problem->pins[node];
    *cause = "usr";
    return CLV_OK;
  }
  if (clv__node_is_view(problem, node)) {
    uint32_t source = clv__node_source(problem, node), at = source == CLV__NONE ? CLV__NONE : d->placing->devices[source];
    uint32_t rest = problem->supports[node] & ~(((1u << d->last) - 1) & d->closed);
    if (at != CLV__NONE && (((take | rest) >> at & 1u) != 0 || clv__is_hosted(problem, node, at))) {
      *device = at;
      *cause = "view";
      return CLV_OK;
    }
  }
  if (problem->supports[node] == 0) return clv__node_unsupported(problem, node, error);
  if (take != 0) {
    *device = (uint32_t)__builtin_ctz(take);
    *cause = claim_of(d, *device, node) == CLV__NONE ? "run" : "claim";
    return CLV_OK;
  }
  *device = clv__can_run(problem, node, d->last) ? d->last : (uint32_t)__builtin_ctz(problem->supports[node]);
  *cause = "rest";
  return CLV_OK;
}

/* Gives the groups of all devices common numbers, in the order in which they are met. So no two devices share a number, and
 * every number is below the number of nodes. */
static clv_status number_groups(const delegating *d, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = d->problem;
  size_t count = problem->node_count;
  clv_status status = CLV_OK;
  uint32_t next = 0, *groups = clv__arena_allocate(arena, count * sizeof *groups);
  /* For the current device, by the group number that the device chose: the common number. */
  uint32_t *numbers = clv__allocate(arena->allocator, (count + 1) * sizeof *numbers);
  if (groups == NULL || numbers == NULL) {
    status = clv__error_memory(error, count * sizeof *groups);
    goto cleanup;
  }
  memset(groups, 0xff, count * sizeof *groups); /* CLV__NONE */
  for (uint32_t device = 0; device < d->last; ++device) {
    if ((d->closed >> device & 1u) == 0) continue;
    memset(numbers, 0xff, (count + 1) * sizeof *numbers);
    for (uint32_t n = 0; n < count; ++n) {
      uint32_t claim = d->claims[device][n];
      if (d->placing->devices[n] != device || claim == CLV__NONE) continue;
      if (claim > count) {
        status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                                "device %u claims group number %u, which exceeds the number of nodes, %zu", device, claim, count);
        goto cleanup;
      }
      if (numbers[claim] == CLV__NONE) numbers[claim] = next++;
      groups[n] = numbers[claim];
    }
  }
  d->placing->groups = groups;
cleanup:
  clv__release(arena->allocator, numbers);
  return status;
}

clv_status clv__place_delegate(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  const clv__problem *problem = input->problem;
  delegating d = {.problem = problem, .claims = input->claims, .placing = placing, .last = problem->device_count - 1};
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  for (uint32_t device = 0; input->claims != NULL && device < d.last; ++device) {
    if (input->claims[device] != NULL) d.closed |= 1u << device;
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) CLV__TRY(place_node(&d, n, error));
  clv__list_cut options = {.joined = "view", .closed = d.closed};
  uint32_t *order = NULL;
  if (d.closed != 0) {
    CLV__TRY(number_groups(&d, arena, error));
    CLV__TRY(clv__groups_order(problem, placing->groups, arena, &order, error));
    options.order = order;
  }
  if (input->split == CLV__SPLIT_LINEAR) return clv__place_cut_list(problem, &options, arena, placing, error);
  const clv__view_options view_options = {.joined = "view", .closed = d.closed};
  clv__views views;
  return clv__place_views(problem, &view_options, arena, placing, &views, error);
}

static const clv__cause causes[] = {
    {"claim", "its device claimed it as part of a group"},
    {"run", "part of a run of consecutive nodes that its device supports"},
    {"rest", "none of the delegates (all devices but the last) takes it"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_delegate = {
    .name = "delegate",
    .summary = "each device but the last gets the runs of consecutive nodes that it supports",
    .place = clv__place_delegate,
    .split = CLV__SPLIT_LINEAR,
    .causes = causes,
};
