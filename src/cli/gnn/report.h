/* What a plan of `cleave gnn` says, and, beside it, what a run by it came to: as text and as JSON. */
#ifndef CLEAVE_CLI_GNN_REPORT_H
#define CLEAVE_CLI_GNN_REPORT_H

#include <jansson.h>

#include "cli/gnn/job.h"
#include "report/gnn/account.h"

void cli_gnn_report_json(const cli_gnn_job *job, const clv__gnn_account *account, json_t *root);

/* Every k, and why it is this one. */
void cli_gnn_report_choice(const cli_gnn_job *job, clv__text *text);
/* Layers, clusters and blocks: predicted and, of a run, measured; and what is worked on beyond the graph. */
void cli_gnn_report_blocks(const cli_gnn_job *job, const clv__gnn_account *account, clv__text *text);

/* Writes the page that --html asks for, if it does. */
clv_status cli_gnn_report_html(const cli_gnn_job *job, const clv__gnn_account *account, clv_error *error);

#endif
