/* Shared by the documents of plans and runs of GNNs. */
#ifndef CLEAVE_REPORT_GNN_OWN_H
#define CLEAVE_REPORT_GNN_OWN_H

#include <jansson.h>

#include "base/text.h"
#include "gnn/api/handles.h"

/* plan_json.c: adds the plan and, if the account has a record, the results of the run. */
void clv__report_gnn_json(const clv_gnn_plan *handle, const clv__gnn_account *account, json_t *root);

/* plan_text.c: writes a table of all values of k, and why this k was chosen. `bold`: the heads of tables are bold on a terminal.
 */
void clv__report_gnn_choice(const clv__gnn_plan *plan, bool bold, clv__text *text);
/* Writes the predicted and, after a run, the measured times of layers and blocks, and the halo and padding rows that are computed
 * in addition to the graph's own. With `detailed`, also which executables were merged. */
void clv__report_gnn_blocks(const clv__gnn_account *account, bool detailed, bool bold, clv__text *text);

/* candidates.c: writes or lists every way to divide each subgraph of the chosen k, with its price. CLV_NOT_SUPPORTED for a plan
 * from a file. */
clv_status clv__report_gnn_candidates(const clv_gnn_plan *handle, clv__text *text, clv_error *error);
clv_status clv__report_gnn_candidates_json(const clv_gnn_plan *handle, json_t *list, clv_error *error);

#endif
