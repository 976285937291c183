/* Writes a model as a self-contained web page: its graph, and at the side the attributes, values and weights of the selected
 * node, and for every device whether it can run the node. */
#ifndef CLEAVE_REPORT_MODEL_PAGE_H
#define CLEAVE_REPORT_MODEL_PAGE_H

#include "base/text.h"
#include "report/model/model.h"

/* Appends a complete HTML document. Reads every weight once, for its statistics. Fails if the model's file was truncated, or if
 * memory runs out. */
clv_status clv__report_model(const clv__model *model, clv__text *text, clv_error *error);

#endif
