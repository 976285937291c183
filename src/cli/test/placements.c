/* See placements.h. */
#include "cli/test/placements.h"

#include <string.h>

#include "cleave/plan_contents.h"

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *state) {
  uint64_t number = *state += UINT64_C(0x9e3779b97f4a7c15);
  number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
  return number ^ number >> 31;
}

static uint32_t choose(const clv_plan *base, uint32_t device_count, uint32_t node, const clv_placed_node_info *info,
                       uint64_t *state) {
  uint32_t able = 0;
  uint64_t bits = draw(state); /* one draw per node, so that a node's choice does not depend on the devices of others */
  if (strcmp(info->cause, "usr") == 0) return info->device;
  for (uint32_t d = 0; d < device_count; ++d) able += clv_plan_node_refusal(base, node, d) == NULL;
  if (able == 0) return info->device;
  uint64_t left = bits % able;
  for (uint32_t d = 0; d < device_count; ++d) {
    if (clv_plan_node_refusal(base, node, d) == NULL && left-- == 0) return d;
  }
  return info->device;
}

clv_status cli_placement_pins(const clv_plan *base, const clv_devices *devices, uint64_t seed, cli_arena *arena,
                              clv_assignment **out, uint32_t *out_count, clv_error *error) {
  clv_plan_info plan = {.struct_size = sizeof plan};
  clv_placed_node_info node = {.struct_size = sizeof node};
  clv_plan_get_info(base, &plan);
  clv_assignment *pins = cli_arena_allocate_zero(arena, plan.node_count, sizeof *pins);
  if (pins == NULL) return cli_error_memory(error, plan.node_count * sizeof *pins);
  uint64_t state = seed * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du;
  uint32_t count = 0;
  for (uint32_t n = 0; clv_plan_node(base, n, &node); ++n) {
    if (node.device == CLV_NO_INDEX) continue; /* constant-folded, so it runs on no device */
    const uint32_t device = choose(base, clv_devices_count(devices), n, &node, &state);
    if (strpbrk(node.name, "*?") != NULL) continue; /* a pin with this name could match other nodes too */
    pins[count++] = (clv_assignment){node.name, clv_devices_name(devices, device)};
  }
  *out = pins;
  *out_count = count;
  return CLV_OK;
}
