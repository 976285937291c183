/* Records the state after each pass of `propagate` for --explain-passes. */
#include <string.h>

#include "place/propagate/propagate.h"

typedef struct recording {
  uint32_t *devices, *value_devices, *weight_devices;
  const char **causes, **value_causes, **weight_causes;
} recording;

static void record_nodes(const clv__propagation *p, recording *r) {
  for (uint32_t n = 0; n < p->problem->node_count; ++n) {
    r->causes[n] = p->causes[n];
    r->devices[n] = p->causes[n][0] == '\0' ? CLV__NONE : p->devices[n];
  }
}

static void record_values(const clv__propagation *p, recording *r) {
  for (uint32_t v = 0; v < p->problem->value_count; ++v) {
    uint32_t producer = p->problem->producers[v];
    if (producer != CLV__NONE) {
      r->value_devices[v] = r->devices[producer];
      r->value_causes[v] = r->causes[producer];
      continue;
    }
    bool is_put = p->problem->value_homes != NULL && p->problem->value_homes[v] != CLV__NONE;
    r->value_devices[v] = clv__propagate_value_device(p, v);
    r->value_causes[v] = is_put ? "1.dst" : "1.inp";
  }
}

/* Records the locations of weights. `settled`: this is pass 4 or 5, so a weight without a location goes to the device of its
 * first reader. */
static void record_weights(const clv__propagation *p, bool settled, recording *r) {
  const clv__problem *problem = p->problem;
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    r->weight_devices[w] = CLV__NONE;
    r->weight_causes[w] = "";
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t w = problem->weights[k], device = clv__propagate_weight_device(p, n, w);
      if (device != CLV__NONE) {
        r->weight_devices[w] = device;
        r->weight_causes[w] = "1.dst";
      } else if (settled && r->weight_devices[w] == CLV__NONE) {
        r->weight_devices[w] = p->devices[n];
        r->weight_causes[w] = "4.cur";
      }
    }
  }
}

static void *keep(clv__arena *arena, const void *data, size_t size_bytes, bool *failed) {
  void *copy = clv__arena_copy(arena, data, size_bytes);
  *failed = *failed || copy == NULL;
  return copy;
}

clv_status clv__propagate_record(const clv__propagation *p, const char *name, const clv__cut *cut, const clv__copies *copies,
                                 clv__arena *arena, clv__pass *pass, clv_error *error) {
  const clv__problem *problem = p->problem;
  size_t nodes = problem->node_count, values = problem->value_count, weights = problem->weight_count;
  recording r = {.devices = clv__arena_allocate(arena, nodes * sizeof *r.devices),
                 .value_devices = clv__arena_allocate(arena, values * sizeof *r.value_devices),
                 .weight_devices = clv__arena_allocate(arena, weights * sizeof *r.weight_devices),
                 .causes = clv__arena_allocate(arena, nodes * sizeof *r.causes),
                 .value_causes = clv__arena_allocate(arena, values * sizeof *r.value_causes),
                 .weight_causes = clv__arena_allocate(arena, weights * sizeof *r.weight_causes)};
  if (r.devices == NULL || r.value_devices == NULL || r.weight_devices == NULL || r.causes == NULL || r.value_causes == NULL ||
      r.weight_causes == NULL) {
    return clv__error_memory(error, (nodes + values + weights) * (sizeof *r.devices + sizeof *r.causes));
  }
  record_nodes(p, &r);
  record_values(p, &r);
  record_weights(p, name[0] >= '4', &r);
  *pass = (clv__pass){name, r.devices, r.causes, r.value_devices, r.value_causes, r.weight_devices, r.weight_causes,
                      NULL, NULL,      NULL};
  if (cut == NULL) return CLV_OK;
  bool failed = false;
  pass->cut = keep(arena, cut, sizeof *cut, &failed);
  pass->copies = keep(arena, copies, sizeof *copies, &failed);
  pass->partition_of = cut->partition_of;
  return failed ? clv__error_memory(error, sizeof *cut + sizeof *copies) : CLV_OK;
}
