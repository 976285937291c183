/* Checks that a schedule can run: it must match the model and the subgraphs, its devices must be open, and each block must be
 * complete. */
#include "base/error.h"
#include "gnn/run/own.h"

static clv_status check_parts(const clv__gnn_schedule *schedule, const clv__chain_block *about, const clv__pep_block *block,
                              uint32_t *devices, clv_error *error) {
  uint32_t at = 0;
  if (block->part_count == 0 || block->part_count > CLV__PEP_DEVICES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a block has %u parts; expected at least 1, and at most one per device",
                          block->part_count);
  if (block->part_count > 1 && about->is_whole)
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "stages %u to %u compute something for every row that they read, so they cannot be divided among devices", block->first,
        block->last);
  for (uint32_t i = 0; i < block->part_count; ++i) {
    const clv__pep_part *part = &block->parts[i];
    if (part->device >= schedule->machine->device_count || (*devices >> part->device & 1u) != 0)
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "device number %u is not below %u, or appears twice in the plan of a subgraph", part->device,
                            schedule->machine->device_count);
    *devices |= 1u << part->device;
    if (part->from != at || part->to < part->from || part->to > CLV__PEP_SHARES)
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "a part has the share from %u to %u, but must start at %u and end at %d or before", part->from,
                            part->to, at, CLV__PEP_SHARES);
    at = part->to;
  }
  if (at != CLV__PEP_SHARES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the shares end at %u; expected %d", at, CLV__PEP_SHARES);
  return CLV_OK;
}

static clv_status check_pep(const clv__gnn_schedule *schedule, const clv__chain *chain, const clv__pep *pep, clv_error *error) {
  uint32_t at = 0, devices = 0;
  if (pep == NULL || pep->block_count == 0 || pep->block_count > CLV__PEP_BLOCKS)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan of a subgraph has %u blocks, which is none or too many",
                          pep == NULL ? 0 : pep->block_count);
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    const clv__pep_block *block = &pep->blocks[b];
    if (block->first != at || block->last <= at || block->last > chain->stage_count)
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "a block has stages %u to %u, but must start at stage %u and end at stage %u or before", block->first,
                            block->last, at, chain->stage_count);
    CLV__TRY(check_parts(schedule, &chain->blocks[block->first][block->last], block, &devices, error));
    at = block->last;
  }
  if (at != chain->stage_count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "stages %u to %u are not assigned to a device", at, chain->stage_count);
  return CLV_OK;
}

static clv_status check_layer(clv__gnn_run *run, uint32_t layer, uint8_t *seen, clv_error *error) {
  const clv__gnn_schedule *schedule = run->schedule;
  clv__chain chain;
  clv__chain_of(&run->layers[layer].stages, &chain);
  memset(seen, 0, schedule->k);
  for (uint32_t p = 0; p < schedule->k; ++p) {
    const clv__gnn_turn *turn = &schedule->layers[layer][p];
    if (turn->subgraph >= schedule->k || seen[turn->subgraph]++ != 0)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "layer %u: subgraph number %u is not below %u, or appears twice", layer,
                            turn->subgraph, schedule->k);
    clv_status status = check_pep(schedule, &chain, turn->pep, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u, subgraph %u", layer, turn->subgraph);
  }
  return CLV_OK;
}

clv_status clv__run_check_schedule(clv__gnn_run *run, clv_error *error) {
  const clv__gnn_schedule *schedule = run->schedule;
  const clv__machine *machine = schedule->machine;
  if (schedule->layer_count != run->model->layer_count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan has %u layers, but the model has %u", schedule->layer_count,
                          run->model->layer_count);
  if (schedule->k != run->partitioned->k)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan has %u subgraphs, but the graph was partitioned into %u",
                          schedule->k, run->partitioned->k);
  if (machine->pad_step == 0 || machine->queue_depth == 0 || machine->device_count > CLV__PEP_DEVICES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "invalid plan: it has too many devices (%u), or its padding step (%llu) or queue depth (%u) is 0",
                          machine->device_count, (unsigned long long)machine->pad_step, machine->queue_depth);
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    run->device_of[d] = clv__devices_find(run->devices, machine->devices[d].name);
    if (run->device_of[d] == CLV__NO_ID)
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan needs device '%s', which is not open: add it to --devices",
                            machine->devices[d].name);
  }
  uint8_t *seen = clv__arena_allocate(&run->arena, schedule->k);
  if (seen == NULL) return clv__error_memory(error, schedule->k);
  for (uint32_t i = 0; i < schedule->layer_count; ++i) CLV__TRY(check_layer(run, i, seen, error));
  return CLV_OK;
}
