/* What a model is, as a hash: type, widths, activations and weights. */
#ifndef CLEAVE_GNN_MODEL_HASH_H
#define CLEAVE_GNN_MODEL_HASH_H

#include "base/hash.h"
#include "gnn/model/model.h"

void clv__gnn_model_hash(const clv__gnn_model *model, clv__hash *hash);
/* Type, dims and data; a tensor without dtype is like no other. */
void clv__hasher_tensor(clv__hasher *hasher, const clv_tensor *tensor);

#endif
