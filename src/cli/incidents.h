/* Reports devices that were removed during a run, for `cleave run` and `cleave bench`. */
#ifndef CLEAVE_CLI_INCIDENTS_H
#define CLEAVE_CLI_INCIDENTS_H

#include "base/text.h"
#include "cli/json.h"
#include "execute/session.h"

/* Writes one line per device; nothing if there was no incident. */
void cli_incidents_write(cli_invocation *cli, clv_session *session, clv__text *text);
/* Returns an array of {device, status, error, partitions, placed_on, cost_ms}. */
json_t *cli_incidents_json(clv_session *session);

#endif
