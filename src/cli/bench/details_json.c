/* The members that only the JSON document of a single configuration has. See bench.h. */
#include "cli/bench/bench.h"
#include "report/session.h"

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
  clv__session_report_json(b->session, CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES | CLV_REPORT_MEMORY,
                           root);
  json_object_set_new(root, "steps", steps_json(b));
  json_object_set_new(root, "operators", bench_operators_json(b, bench_median(b->sorted_ms, bench_runs(b))));
}
