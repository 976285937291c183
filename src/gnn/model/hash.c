/* See hash.h. */
#include "gnn/model/hash.h"

#include "base/tensor/tensor.h"

void clv__hasher_tensor(clv__hasher *hasher, const clv_tensor *tensor) {
  clv__hash hash;
  size_t size_bytes = 0;
  bool is_there = tensor->dtype != CLV_DTYPE_NONE && clv__tensor_size_bytes(tensor, &size_bytes);
  clv__hasher_u64(hasher, is_there ? (uint64_t)tensor->dtype : 0);
  if (!is_there) return;
  for (int32_t i = 0; i < tensor->rank; ++i) clv__hasher_u64(hasher, (uint64_t)tensor->dims[i]);
  clv__hash_bytes(tensor->data, size_bytes, &hash);
  clv__hasher_update(hasher, &hash, sizeof hash);
}

void clv__gnn_model_hash(const clv__gnn_model *model, clv__hash *hash) {
  clv__hasher whole, *hasher = &whole;
  clv__hasher_init(hasher);
  clv__hasher_u64(hasher, (uint64_t)model->type);
  clv__hasher_u64(hasher, model->layer_count);
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    const clv__gnn_layer *layer = &model->layers[i];
    const uint64_t numbers[] = {layer->in, layer->out, layer->heads, layer->concat, (uint64_t)layer->activation};
    clv__hasher_update(hasher, numbers, sizeof numbers);
    clv__hasher_tensor(hasher, &layer->neighbour);
    clv__hasher_tensor(hasher, &layer->self);
    clv__hasher_tensor(hasher, &layer->bias);
    clv__hasher_tensor(hasher, &layer->att_src);
    clv__hasher_tensor(hasher, &layer->att_dst);
  }
  clv__hasher_finish(hasher, hash);
}
