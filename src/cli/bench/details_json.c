/* The members that only the JSON document of a single configuration has. See bench.h. */
#include "cli/bench/bench.h"
#include "cli/incidents.h"

static json_t *steps_json(const bench *b) {
  const clv_plan *plan = clv__session_plan(b->session);
  json_t *list = json_array();
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    json_t *object = json_object();
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      json_object_set_new(object, "transfer", json_integer(step->index));
      json_object_set_new(object, "value", cli_json_text(b->job.graph->values[transfer->value].name));
      json_object_set_new(object, "from", cli_json_text(plan->devices->spaces[transfer->from]));
      json_object_set_new(object, "to", cli_json_text(plan->devices->spaces[transfer->to]));
      json_object_set_new(object, "bytes", transfer->size_known ? json_integer((json_int_t)transfer->size_bytes) : json_null());
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      json_object_set_new(object, "partition", json_integer(step->index));
      json_object_set_new(object, "device", cli_json_text(plan->devices->items[partition->device].name));
      json_object_set_new(object, "nodes", json_integer(partition->node_count));
      json_object_set_new(object, "graph", bench_issue_json(b, step->index));
    }
    json_object_set_new(object, "predicted_ms", cli_json_real(bench_predicted_ms(plan, step)));
    json_object_set_new(object, "median_ms", b->steps_ms == NULL ? json_null() : cli_json_real(b->steps_ms[s]));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *memory_json(const bench *b) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  json_t *object = json_object(), *spaces = json_array();
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    const clv__space_stats *of = &stats.spaces[s];
    json_t *space = json_object();
    json_object_set_new(space, "name", cli_json_text(of->name));
    json_object_set_new(space, "planned_bytes", json_integer((json_int_t)of->planned_bytes));
    json_object_set_new(space, "lower_bound_bytes", json_integer((json_int_t)of->bound_bytes));
    json_object_set_new(space, "scratch_bytes", json_integer((json_int_t)of->scratch_bytes));
    json_object_set_new(space, "peak_bytes", json_integer((json_int_t)of->peak_bytes));
    json_object_set_new(space, "need_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->need_bytes));
    json_object_set_new(space, "limit_bytes", of->limit_bytes == 0 ? json_null() : json_integer((json_int_t)of->limit_bytes));
    json_array_append_new(spaces, space);
  }
  json_object_set_new(object, "spaces", spaces);
  json_object_set_new(object, "weight_bytes", json_integer((json_int_t)stats.weight_bytes));
  json_object_set_new(object, "resident_bytes", json_integer((json_int_t)stats.resident_bytes));
  return object;
}

/* Returns where the executables came from (memory, disk, compiling), per partition and in total. */
static json_t *executables_json(const bench *b) {
  clv__session_stats stats;
  clv__session_stats_get(b->session, &stats);
  json_t *object = json_object(), *list = json_array();
  json_object_set_new(object, "from_memory", json_integer(stats.executables.from_memory));
  json_object_set_new(object, "from_folder", json_integer(stats.executables.from_folder));
  json_object_set_new(object, "from_disk", json_integer(stats.executables.from_disk));
  json_object_set_new(object, "compiled", json_integer(stats.executables.compiled));
  json_object_set_new(object, "not_kept", json_integer(stats.executables.not_kept));
  json_object_set_new(object, "ms", cli_json_real(stats.executables.executables_ms));
  json_object_set_new(object, "weights_ms", cli_json_real(stats.executables.weights_ms));
  for (uint32_t p = 0; p < clv__session_plan(b->session)->partition_count; ++p) {
    const clv__origin *origin = clv__session_origin(b->session, p);
    json_t *one = json_object();
    json_object_set_new(one, "source", json_string(clv__source_word(origin->source)));
    json_object_set_new(one, "reason", cli_json_text(origin->reason));
    json_object_set_new(one, "ms", cli_json_real(origin->ms));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "partitions", list);
  return object;
}

void bench_details_json(const bench *b, json_t *root) {
  const clv_devices *devices = b->job.devices;
  json_t *names = json_array(), *load = json_object();
  for (uint32_t d = 0; d < devices->count; ++d) json_array_append_new(names, cli_json_text(devices->items[d].name));
  json_object_set_new(load, "load", cli_json_real(b->job.load_ms));
  json_object_set_new(load, "plan", cli_json_real(b->job.plan_ms));
  json_object_set_new(load, "compile", cli_json_real(b->compile_ms));
  json_object_set_new(root, "model", cli_json_text(b->job.model_path));
  json_object_set_new(root, "devices", names);
  json_object_set_new(root, "interrupted", json_boolean(clv__is_stopped(b->stop)));
  json_object_set_new(root, "timings_ms", load);
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)b->peak_rss_bytes));
  json_object_set_new(root, "memory", memory_json(b));
  json_object_set_new(root, "executables", executables_json(b));
  json_object_set_new(root, "fallbacks", cli_incidents_json(b->session));
  json_object_set_new(root, "graphs", bench_captures_json(b));
  json_object_set_new(root, "steps", steps_json(b));
  json_object_set_new(root, "operators", bench_operators_json(b, bench_median(b->sorted_ms, bench_runs(b))));
}
