/* The files of page/ as text, converted to arrays when the library is built. */
#ifndef CLEAVE_REPORT_PAGE_PAGE_H
#define CLEAVE_REPORT_PAGE_PAGE_H

extern const char clv__page_style[], clv__page_script[];
extern const char clv__page_gnn_style[], clv__page_gnn_script[];     /* the GNN style follows clv__page_style */
extern const char clv__page_model_style[], clv__page_model_script[]; /* the model's style also follows clv__page_style */
extern const char clv__page_write_script[];                          /* precedes each page's own script */
/* For pages with pictures that zoom (view), and whose groups fold (fold, after layers). */
extern const char clv__page_view_script[], clv__page_layers_script[], clv__page_fold_script[];

#endif
