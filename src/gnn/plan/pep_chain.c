/* Derives the data that plans need about a layer and a machine: the bytes of every block, and the table that prices it. */
#include <stdio.h>
#include <string.h>

#include "gnn/plan/pep.h"

/* Finds the coefficients of a set's size, which is linear in each dimension. */
static clv__size_rule rule_of(const clv__stages *stages, clv__value_set set) {
  clv__size_rule rule;
  rule.fixed = (double)clv__layer_set_bytes(stages, set, (clv__layer_sizes){0, 0, 0});
  rule.row = (double)clv__layer_set_bytes(stages, set, (clv__layer_sizes){1, 0, 0}) - rule.fixed;
  rule.target = (double)clv__layer_set_bytes(stages, set, (clv__layer_sizes){0, 1, 0}) - rule.fixed;
  rule.edge = (double)clv__layer_set_bytes(stages, set, (clv__layer_sizes){0, 0, 1}) - rule.fixed;
  return rule;
}

static clv__value_set of_dimension(const clv__stages *stages, clv__value_set set, clv__layer_dimension dimension) {
  clv__value_set found = 0;
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    clv__value_set bit = CLV__VALUE_BIT(v);
    if ((set & bit) != 0 && clv__layer_value_shape(stages, (clv__layer_value)v).dimension == dimension) found |= bit;
  }
  return found;
}

static void set_block(const clv__stages *stages, uint32_t first, uint32_t last, clv__chain_block *block) {
  clv__value_set makes = clv__block_makes(stages, first, last);
  clv__value_set reads = clv__block_reads(stages, first, last, false);
  block->is_empty = clv__block_is_empty(stages, first, last);
  block->reads_rows = of_dimension(stages, reads, CLV__DIMENSION_ROWS) != 0;
  block->reads_edges = of_dimension(stages, reads | makes, CLV__DIMENSION_EDGES) != 0;
  block->is_whole = of_dimension(stages, makes, CLV__DIMENSION_ROWS) != 0;
  block->out = rule_of(stages, makes);
  for (uint32_t form = 0; form < CLV__PEP_FORMS; ++form) {
    reads = clv__block_reads(stages, first, last, form == 1);
    block->given[form] = rule_of(stages, reads & CLV__VALUES_GIVEN);
    block->made[form] = rule_of(stages, reads & ~CLV__VALUES_GIVEN);
    block->packed[form] = rule_of(stages, of_dimension(stages, reads, CLV__DIMENSION_ROWS));
  }
}

void clv__chain_of(const clv__stages *stages, clv__chain *chain) {
  const clv__gnn_layer *layer = stages->layer;
  *chain = (clv__chain){.stage_count = stages->count};
  char heads[32] = "";
  if (stages->type == CLV__GNN_GAT) snprintf(heads, sizeof heads, "%ux", layer->heads);
  snprintf(chain->layer, sizeof chain->layer, "%s-%u-%s%u%s-%s", clv__gnn_type_name(stages->type), layer->in, heads, layer->out,
           stages->type == CLV__GNN_GAT && !layer->concat ? "-mean" : "", stages->storage == CLV_BF16 ? "bf16" : "f32");
  memcpy(chain->stages, stages->items, stages->count * sizeof *stages->items);
  for (uint32_t first = 0; first < stages->count; ++first) {
    for (uint32_t last = first + 1; last <= stages->count; ++last) set_block(stages, first, last, &chain->blocks[first][last]);
  }
}

/* ---- Costs ---- */

static void trust_less(clv__costs *costs, clv__table_origin origin) {
  if (origin > costs->origin) costs->origin = origin;
}

static bool runs(const clv__machine_device *device, const clv__chain *chain, uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    if ((device->cannot >> chain->stages[s] & 1u) != 0) return false;
  }
  return !chain->blocks[first][last].is_empty;
}

static clv_status find_copy(clv__costs *costs, const clv__tables *tables, const char *from, const char *to,
                            const clv__copy_table **found, clv_error *error) {
  *found = clv__tables_find_copy(tables, from, to);
  if (*found == NULL)
    return clv__error_set(error, CLV_NOT_FOUND,
                          "copies from %s to %s are not in the profile: measure them with 'cleave gnn profile'", from, to);
  trust_less(costs, (*found)->origin);
  return CLV_OK;
}

clv_status clv__costs_init(clv__costs *costs, const clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                           clv_error *error) {
  *costs = (clv__costs){.chain = chain, .machine = machine};
  if (machine->device_count == 0 || machine->device_count > CLV__PEP_DEVICES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u devices, but 1 to %d can share a graph: choose them with --devices",
                          machine->device_count, CLV__PEP_DEVICES);
  if (machine->pad_step == 0 || machine->queue_depth == 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the padding step is %llu and the queue depth is %u; both must be 1 or more",
                          (unsigned long long)machine->pad_step, machine->queue_depth);
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    const clv__machine_device *device = &machine->devices[d];
    bool found = false;
    for (uint32_t first = 0; first < chain->stage_count; ++first) {
      for (uint32_t last = first + 1; last <= chain->stage_count; ++last) {
        if (!runs(device, chain, first, last)) continue;
        const clv__block_table *table = clv__tables_find(tables, device->name, chain->layer, first, last);
        costs->blocks[d][first][last] = table;
        if (table == NULL) continue;
        found = true;
        trust_less(costs, table->origin);
      }
    }
    if (!found)
      return clv__error_set(error, CLV_NOT_FOUND,
                            "%s: the profile has no block of layer %s for this device: measure it with 'cleave gnn profile', or "
                            "remove the device from --devices",
                            device->name, chain->layer);
    if (device->space == 0) continue;
    CLV__TRY(find_copy(costs, tables, CLV__TABLE_HOST, device->name, &costs->in[d], error));
    CLV__TRY(find_copy(costs, tables, device->name, CLV__TABLE_HOST, &costs->out[d], error));
  }
  return find_copy(costs, tables, CLV__TABLE_HOST, CLV__TABLE_HOST, &costs->pack, error);
}
