/* What a run over several devices came to, beside what was predicted. */
#ifndef CLEAVE_CLI_GNN_RUN_REPORT_H
#define CLEAVE_CLI_GNN_RUN_REPORT_H

#include <jansson.h>

#include "base/text.h"
#include "gnn/run.h"

void cli_gnn_record_json(const clv__gnn_record *record, const clv__gnn_schedule *schedule, const clv__stages *stages,
                         json_t *root);
void cli_gnn_record_text(const clv__gnn_record *record, const clv__gnn_schedule *schedule, const clv__stages *stages,
                         clv__text *text);

#endif
