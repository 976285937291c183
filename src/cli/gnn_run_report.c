/* See gnn_run_report.h. Tasks are summed up by layer, cluster, block and device: what a plan was made of. */
#include "cli/gnn_run_report.h"

#include <string.h>

#include "cli/json.h"

typedef struct sum {
  const clv__gnn_task *first; /* layer, cluster, stages and device are those of all */
  uint32_t count;
  double predicted_ms, measured_ms, packing_ms;
} sum;

static double ms_of(uint64_t from_ns, uint64_t to_ns) {
  return 1e-6 * (double)(to_ns - from_ns);
}

static bool belongs(const sum *s, const clv__gnn_task *task) {
  return s->first->layer == task->layer && s->first->cluster == task->cluster && s->first->block == task->block &&
         s->first->device == task->device;
}

/* The sum that begins with task `t`; count 0 where an earlier one has it. */
static sum sum_from(const clv__gnn_record *record, uint32_t t) {
  sum s = {.first = &record->tasks[t]};
  if (s.first->sizes.targets == 0 || s.first->end_ns == 0) return s;
  for (uint32_t u = 0; u < record->task_count; ++u) {
    const clv__gnn_task *task = &record->tasks[u];
    if (!belongs(&s, task) || task->sizes.targets == 0) continue;
    if (u < t) return (sum){.first = s.first};
    ++s.count;
    s.predicted_ms += 1e-6 * task->predicted_ns;
    s.measured_ms += ms_of(task->begin_ns, task->end_ns);
    s.packing_ms += ms_of(task->begin_ns, task->packed_ns) + ms_of(task->computed_ns, task->end_ns);
  }
  return s;
}

static double busy_ms(const clv__gnn_record *record, uint32_t device) {
  double busy = 0;
  for (uint32_t t = 0; t < record->task_count; ++t) {
    if (record->tasks[t].device == device) busy += ms_of(record->tasks[t].begin_ns, record->tasks[t].end_ns);
  }
  return busy;
}

void cli_gnn_record_json(const clv__gnn_record *record, const clv__gnn_schedule *schedule, const clv__stages *stages,
                         json_t *root) {
  json_t *blocks = json_array(), *layers = json_array(), *devices = json_array();
  for (uint32_t t = 0; t < record->task_count; ++t) {
    const sum s = sum_from(record, t);
    if (s.count == 0) continue;
    json_t *object = json_object();
    json_object_set_new(object, "layer", json_integer(s.first->layer));
    json_object_set_new(object, "cluster", json_integer(s.first->cluster));
    json_object_set_new(object, "device", cli_json_text(schedule->machine->devices[s.first->device].name));
    json_object_set_new(object, "from", cli_json_text(clv__stage_name(stages[s.first->layer].items[s.first->first])));
    json_object_set_new(object, "to", cli_json_text(clv__stage_name(stages[s.first->layer].items[s.first->last - 1])));
    json_object_set_new(object, "tasks", json_integer(s.count));
    json_object_set_new(object, "predicted_ms", s.predicted_ms > 0 ? cli_json_real(s.predicted_ms) : json_null());
    json_object_set_new(object, "measured_ms", cli_json_real(s.measured_ms));
    json_object_set_new(object, "packing_ms", cli_json_real(s.packing_ms));
    json_array_append_new(blocks, object);
  }
  for (uint32_t l = 0; l < schedule->layer_count; ++l) json_array_append_new(layers, cli_json_real(1e-6 * record->layer_ns[l]));
  for (uint32_t d = 0; d < schedule->machine->device_count; ++d) {
    json_t *object = json_object();
    json_object_set_new(object, "device", cli_json_text(schedule->machine->devices[d].name));
    json_object_set_new(object, "measured_busy_ms", cli_json_real(busy_ms(record, d)));
    json_array_append_new(devices, object);
  }
  json_object_set_new(root, "measured_ms", cli_json_real(1e-6 * record->measured_ns));
  json_object_set_new(root, "layers_ms", layers);
  json_object_set_new(root, "resumed_at_layer", json_integer(record->first_layer));
  json_object_set_new(root, "state_ms", cli_json_real(1e-6 * record->state_ns));
  json_object_set_new(root, "measured_devices", devices);
  json_object_set_new(root, "blocks", blocks);
  json_object_set_new(root, "clusters", json_integer(record->cluster_count));
  json_object_set_new(root, "switches", json_integer(record->switches));
  json_object_set_new(root, "executables", json_integer(record->executables));
  json_object_set_new(root, "halo_rows", json_integer((json_int_t)record->halo_rows));
  json_object_set_new(root, "padding_rows", json_integer((json_int_t)record->packed_rows));
  json_object_set_new(root, "padding_edges", json_integer((json_int_t)record->packed_edges));
}

void cli_gnn_record_text(const clv__gnn_record *record, const clv__gnn_schedule *schedule, const clv__stages *stages,
                         clv__text *text) {
  clv__text_append(
      text,
      "layer  cluster  device        block                                 tasks  predicted, ms   measured, ms  packing, ms\n");
  for (uint32_t t = 0; t < record->task_count; ++t) {
    const sum s = sum_from(record, t);
    char block[80];
    if (s.count == 0) continue;
    snprintf(block, sizeof block, "%s to %s", clv__stage_name(stages[s.first->layer].items[s.first->first]),
             clv__stage_name(stages[s.first->layer].items[s.first->last - 1]));
    clv__text_append(text, "%5u  %7u  %-12s  %-36s  %5u  ", s.first->layer, s.first->cluster,
                     schedule->machine->devices[s.first->device].name, block, s.count);
    if (s.predicted_ms > 0)
      clv__text_append(text, "%13.3f", s.predicted_ms);
    else
      clv__text_append(text, "%13s", "-");
    clv__text_append(text, "  %13.3f  %11.3f\n", s.measured_ms, s.packing_ms);
  }
  clv__text_append(
      text, "%u clusters, %u switches, %u executables; gathered from elsewhere %llu rows, padding %llu rows and %llu edges\n",
      record->cluster_count, record->switches, record->executables, (unsigned long long)record->halo_rows,
      (unsigned long long)record->packed_rows, (unsigned long long)record->packed_edges);
}
