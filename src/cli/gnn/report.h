/* Reports a plan of `cleave gnn` and, next to it, the results of a run, as text and as JSON. */
#ifndef CLEAVE_CLI_GNN_REPORT_H
#define CLEAVE_CLI_GNN_REPORT_H

#include <jansson.h>

#include "cli/gnn/job.h"
#include "report/gnn/account.h"

void cli_gnn_report_json(const cli_gnn_job *job, const clv__gnn_account *account, json_t *root);

/* Writes a table of all values of k, and why this k was chosen. */
void cli_gnn_report_choice(const cli_gnn_job *job, clv__text *text);
/* Writes the predicted and, after a run, the measured times of layers and blocks, and the halo and padding rows that are computed
 * in addition to the graph's own. */
void cli_gnn_report_blocks(const cli_gnn_job *job, const clv__gnn_account *account, clv__text *text);

/* Writes the page for --html, if given. */
clv_status cli_gnn_report_html(const cli_gnn_job *job, const clv__gnn_account *account, clv_error *error);

#endif
