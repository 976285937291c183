/* What `run` and `bench` say of devices that were taken out. */
#ifndef CLEAVE_CLI_INCIDENTS_H
#define CLEAVE_CLI_INCIDENTS_H

#include "base/text.h"
#include "cli/json.h"
#include "execute/session.h"

/* A line for each; nothing where all went well. */
void cli_incidents_write(cli_invocation *cli, clv_session *session, clv__text *text);
/* [{device, status, error, partitions, placed_on, cost_ms}] */
json_t *cli_incidents_json(clv_session *session);

#endif
