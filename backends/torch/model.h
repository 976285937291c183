/* Compiles a partition of ATen nodes by parsing the call of each node once. A request then makes the calls. */
#ifndef CLEAVE_BACKENDS_TORCH_MODEL_H
#define CLEAVE_BACKENDS_TORCH_MODEL_H

#include "backends/framework/framework.h"
#include "call.h"

typedef struct clv__torch_model clv__torch_model;
typedef struct clv__torch_request clv__torch_request;

/* Reads the call of every node, and checks that PyTorch knows the operator. Constants are copied. */
clv_status clv__torch_model_compile(const clv__torch_api *api, const clv_host *host, const clv_graph_view *graph,
                                    clv__torch_model **model, clv_error *error);
void clv__torch_model_destroy(clv__torch_model *model); /* accepts NULL */
uint64_t clv__torch_model_bytes(const clv__torch_model *model);

clv_status clv__torch_request_create(clv__torch_model *model, clv__torch_request **request, clv_error *error);
void clv__torch_request_destroy(clv__torch_request *request); /* accepts NULL */
clv_status clv__torch_request_run(clv__torch_request *request, clv__framework_run *run, clv_error *error);

#endif
