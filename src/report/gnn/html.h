/* Writes a GNN plan, and the results of a run if there was one, as a self-contained web page: timelines, and tables of every
 * tried number of subgraphs (k) and of every block. */
#ifndef CLEAVE_REPORT_GNN_HTML_H
#define CLEAVE_REPORT_GNN_HTML_H

#include "gnn/run/account.h"

/* Appends a complete HTML document. */
void clv__report_gnn_html(const clv__gnn_account *account, clv__text *text);

#endif
