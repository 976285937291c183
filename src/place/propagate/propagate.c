/* `propagate`: the multi-pass assignment by location. Data that already has a location (buffers, inputs, weights) decides first.
 * Then devices spread from there, the remaining nodes go to the device that can read most of their inputs, and views follow.
 * Finally the list is cut. `propagate-graph` differs in one way: devices spread along the edges of the graph instead of to
 * neighbours in the list. */
#include "place/propagate/propagate.h"

#include <stdio.h>
#include <string.h>

#include "place/list_cut.h"

enum { PASS_COUNT = 8 };

typedef struct sweep_entry {
  const char *name;
  clv__sweep sweep;
} sweep_entry;

static const sweep_entry sweeps[] = {
    {"2a", {.up = false, .host = false, .cause = "2a.down"}},
    {"2b", {.up = true, .host = false, .cause = "2b.up"}},
    {"2c", {.up = false, .host = true, .cause = "2c.down"}},
    {"2d", {.up = true, .host = true, .cause = "2d.up"}},
};

typedef struct passes {
  const clv__propagation *p;
  clv__arena *arena;
  clv__pass *items; /* NULL: not requested */
  uint32_t count;
} passes;

static clv_status record(passes *to, const char *name, const clv__cut *cut, const clv__moves *moves, clv_error *error) {
  if (to->items == NULL) return CLV_OK;
  CLV__TRY(clv__propagate_record(to->p, name, cut, moves, to->arena, &to->items[to->count], error));
  ++to->count;
  return CLV_OK;
}

/* The last device counts as the host. If it is not, the plan says so. */
static clv_status note_host(const clv__propagation *p, clv__arena *arena, const char **note, clv_error *error) {
  const clv__problem *problem = p->problem;
  const char *name = problem->device_names == NULL ? NULL : problem->device_names[p->last];
  bool is_cpu = name == NULL || strcmp(name, "cpu") == 0, is_host = problem->spaces[p->last] == 0;
  if (is_cpu && is_host) return CLV_OK;
  char text[256], number[16];
  snprintf(number, sizeof number, "device %u", p->last);
  snprintf(text, sizeof text,
           "the last device, %.64s, is treated as the host: inputs and weights without a given device are assumed to be in its "
           "memory%s",
           name == NULL ? number : name, is_host ? "" : ", although it does not use host memory");
  *note = clv__arena_string(arena, text, strlen(text));
  return *note == NULL ? clv__error_memory(error, strlen(text)) : CLV_OK;
}

/* Finds weights that the user placed in one memory and that are read in another: they are streamed there, except to host memory.
 * The operands of a view other than its source are not data. */
static clv_status find_streamed(const clv__problem *problem, clv__arena *arena, clv__placing *placing, clv_error *error) {
  if (problem->weight_homes == NULL) return CLV_OK;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t device = placing->devices[n], space = problem->spaces[device];
    if (space == 0 || clv__node_is_view(problem, n)) continue;
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t weight = problem->weights[k], home = problem->weight_homes[weight];
      if (home == CLV__NONE || problem->spaces[home] == space || !clv__can_stream(problem, weight, device)) continue;
      if (placing->streamed == NULL) {
        placing->streamed = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *placing->streamed);
        if (placing->streamed == NULL) return clv__error_memory(error, problem->weight_count * sizeof *placing->streamed);
      }
      placing->streamed[weight] |= (uint16_t)(1u << device);
    }
  }
  return CLV_OK;
}

static clv_status spread(clv__propagation *p, bool on_edges, passes *recorded, clv_error *error) {
  const clv_allocator *allocator = recorded->arena->allocator;
  clv_status status = CLV_OK;
  uint8_t *flows = on_edges ? clv__allocate(allocator, p->problem->node_count) : NULL;
  if (on_edges && flows == NULL) return clv__error_memory(error, p->problem->node_count);
  for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; ++i) {
    if (on_edges)
      clv__propagate_along_edges(p, &sweeps[i].sweep, flows);
    else
      clv__propagate_along_list(p, &sweeps[i].sweep);
    CLV__TRY_GOTO(record(recorded, sweeps[i].name, NULL, NULL, error));
  }
cleanup:
  clv__release(allocator, flows);
  return status;
}

/* Pass 5. If the user asks for another kind of cut, that happens later, and this pass does not exist. */
static clv_status cut_list(const clv__place_input *input, clv__placing *placing, passes *recorded, clv_error *error) {
  if (input->split != CLV__SPLIT_LINEAR) return CLV_OK;
  const clv__list_cut options = {.copy_limit = CLV__PROPAGATE_COPIES, .joined = "5.cur"};
  CLV__TRY(clv__place_cut_list(input->problem, &options, recorded->arena, placing, error));
  if (recorded->items == NULL) return CLV_OK;
  clv__moves moves;
  CLV__TRY(clv__split_moves(input->problem, &placing->cut, placing->streamed, recorded->arena, &moves, error));
  return record(recorded, "5", &placing->cut, &moves, error);
}

static clv_status place(const clv__place_input *input, bool on_edges, clv__arena *arena, clv__placing *placing,
                        clv_error *error) {
  const clv__problem *problem = input->problem;
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  clv__propagation p = {problem, placing->devices, placing->causes, problem->device_count - 1, 0};
  passes recorded = {.p = &p, .arena = arena};
  if (input->record_passes) {
    recorded.items = clv__arena_allocate_zero(arena, PASS_COUNT, sizeof *recorded.items);
    if (recorded.items == NULL) return clv__error_memory(error, PASS_COUNT * sizeof *recorded.items);
  }
  CLV__TRY(note_host(&p, arena, &placing->note, error));
  CLV__TRY(clv__propagate_locate(&p, arena, error));
  CLV__TRY(record(&recorded, "1", NULL, NULL, error));
  CLV__TRY(spread(&p, on_edges, &recorded, error));
  CLV__TRY(clv__propagate_best(&p, error));
  CLV__TRY(record(&recorded, "3", NULL, NULL, error));
  clv__propagate_views(&p);
  CLV__TRY(record(&recorded, "4", NULL, NULL, error));
  CLV__TRY(find_streamed(problem, arena, placing, error));
  CLV__TRY(cut_list(input, placing, &recorded, error));
  placing->passes = recorded.items;
  placing->pass_count = recorded.count;
  return CLV_OK;
}

clv_status clv__place_propagate(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  return place(input, false, arena, placing, error);
}

clv_status clv__place_propagate_graph(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  return place(input, true, arena, placing, error);
}
