/* See model.h: which reader a file is given to. */
#include "gnn/model.h"

void clv__gnn_model_destroy(clv__gnn_model *model) {
  if (model == NULL) return;
  const clv_allocator *allocator = model->arena.allocator;
  clv__arena_finish(&model->arena);
  clv__release(allocator, model);
}
