/* The files of page/ as text, converted to arrays when the library is built. */
#ifndef CLEAVE_REPORT_PAGE_PAGE_H
#define CLEAVE_REPORT_PAGE_PAGE_H

extern const char clv__page_style[], clv__page_script[];
extern const char clv__page_gnn_style[], clv__page_gnn_script[]; /* the GNN style follows clv__page_style */
extern const char clv__page_write_script[];                      /* precedes each page's own script */

#endif
