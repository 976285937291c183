/* The members that only the JSON document of a single configuration has. See runner.h. */
#include "bench/columns.h"
#include "bench/runner.h"
#include "report/json.h"
#include "report/session.h"

/* Returns how the partition was issued; null if this is unknown. */
static json_t *launch_json(const clv__runner *b, uint32_t partition) {
  clv_launch_info info;
  if (!clv__runner_launch(b, partition, &info)) return json_null();
  json_t *object = json_object();
  json_object_set_new(object, "state", json_string(clv__launch_word(info.state)));
  if (info.state == CLV_LAUNCH_EAGER) json_object_set_new(object, "reason", json_string(info.reason));
  return object;
}

static json_t *steps_json(const clv__runner *b) {
  const clv_plan *plan = clv__session_plan(b->session);
  json_t *list = json_array();
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    json_t *object = json_object();
    if (step->is_transfer) {
      const clv__transfer *transfer = &plan->transfers[step->index];
      json_object_set_new(object, "transfer", json_integer(step->index));
      json_object_set_new(object, "value", clv__json_text(b->graph->values[transfer->value].name));
      json_object_set_new(object, "from", clv__json_text(plan->devices->spaces[transfer->from]));
      json_object_set_new(object, "to", clv__json_text(plan->devices->spaces[transfer->to]));
      json_object_set_new(object, "bytes", transfer->size_known ? json_integer((json_int_t)transfer->size_bytes) : json_null());
    } else {
      const clv__partition *partition = &plan->partitions[step->index];
      json_object_set_new(object, "partition", json_integer(step->index));
      json_object_set_new(object, "device", clv__json_text(plan->devices->items[partition->device].name));
      json_object_set_new(object, "nodes", json_integer(partition->node_count));
      json_object_set_new(object, "graph", launch_json(b, step->index));
    }
    json_object_set_new(object, "predicted_ms", clv__json_real(clv__predicted_ms(plan, step)));
    json_object_set_new(object, "median_ms", b->steps_ms == NULL ? json_null() : clv__json_real(b->steps_ms[s]));
    json_array_append_new(list, object);
  }
  return list;
}

void clv__runner_details_json(const clv__runner *b, json_t *root) {
  const clv_devices *devices = b->devices;
  json_t *names = json_array(), *load = json_object();
  for (uint32_t d = 0; d < devices->count; ++d) json_array_append_new(names, clv__json_text(devices->items[d].name));
  json_object_set_new(load, "load", clv__json_real(b->subject.load_ms));
  json_object_set_new(load, "plan", clv__json_real(b->subject.plan_ms));
  json_object_set_new(load, "compile", clv__json_real(b->subject.compile_ms));
  json_object_set_new(root, "model", clv__json_text(b->subject.model_path));
  json_object_set_new(root, "devices", names);
  json_object_set_new(root, "interrupted", json_boolean(b->bench->poll.is_stopped));
  json_object_set_new(root, "timings_ms", load);
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)b->peak_rss_bytes));
  clv__session_report_json(b->session, CLV_REPORT_EXECUTABLES | CLV_REPORT_FALLBACKS | CLV_REPORT_CAPTURES | CLV_REPORT_MEMORY,
                           root);
  json_object_set_new(root, "steps", steps_json(b));
  json_object_set_new(root, "operators", clv__runner_operators_json(b, clv__sample_median(b->sorted_ms, clv__runner_runs(b))));
}
