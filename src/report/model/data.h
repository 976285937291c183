/* The data of a model's page, as JSON that is safe inside a script element. The top of data.c describes its arrays. */
#ifndef CLEAVE_REPORT_MODEL_DATA_H
#define CLEAVE_REPORT_MODEL_DATA_H

#include "base/text.h"
#include "report/model/model.h"

clv_status clv__model_data(const clv__model *model, clv__text *text, clv_error *error);

#endif
