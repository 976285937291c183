/* See incidents.h. */
#include "cli/incidents.h"

#include "cli/console.h"

void cli_incidents_write(cli_invocation *cli, clv_session *session, clv__text *text) {
  clv__incident incident;
  for (uint32_t i = 0; clv__session_incident(session, i, &incident); ++i) {
    char line[640];
    clv__incident_text(clv__session_plan(session)->devices, &incident, line, sizeof line);
    clv__text_append(text, "%s%s%s; recovery took %.1f ms\n", cli_begin(cli, CLI_RED), line, cli_reset(cli), incident.cost_ms);
  }
}

json_t *cli_incidents_json(clv_session *session) {
  const clv_devices *devices = clv__session_plan(session)->devices;
  json_t *list = json_array();
  clv__incident incident;
  for (uint32_t i = 0; clv__session_incident(session, i, &incident); ++i) {
    json_t *object = json_object(), *onto = json_array();
    for (uint32_t d = 0; d < devices->count; ++d) {
      if ((incident.onto >> d & 1u) != 0) json_array_append_new(onto, cli_json_text(devices->items[d].name));
    }
    json_object_set_new(object, "device", cli_json_text(devices->items[incident.device].name));
    json_object_set_new(object, "status", cli_json_text(clv_status_name(incident.status)));
    json_object_set_new(object, "error", cli_json_text(incident.text));
    json_object_set_new(object, "partitions", json_integer(incident.partition_count));
    json_object_set_new(object, "placed_on", onto);
    json_object_set_new(object, "cost_ms", cli_json_real(incident.cost_ms));
    json_array_append_new(list, object);
  }
  return list;
}
