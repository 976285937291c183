/* Draws an inspection as a page: clv_inspection_draw(). */
#include <string.h>

#include "base/document.h"
#include "report/inspect/inspect.h"
#include "report/model/page.h"

clv_status clv_inspection_draw(const clv_inspection *in, const char *path, clv_emit_fn emit, void *user_data, clv_error *error) {
  if (in == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "inspection must not be NULL");
  double *flops = clv__allocate(in->arena.allocator, ((size_t)in->graph->node_count + 1) * sizeof *flops);
  if (flops == NULL) return clv__error_memory(error, ((size_t)in->graph->node_count + 1) * sizeof *flops);
  for (clv_node_id n = 0; n < in->graph->node_count; ++n) flops[n] = in->shapes->node_folded[n] ? 0 : in->node_flops[n];
  const char *slash = strrchr(in->graph->path, '/');
  clv__model model = {.title = slash != NULL ? slash + 1 : in->graph->path,
                      .graph = in->graph,
                      .shapes = in->shapes,
                      .devices = in->devices,
                      .capability = &in->capability,
                      .flops = flops,
                      .parameter_count = in->parameter_count,
                      .parameter_bytes = in->parameter_bytes,
                      .total_flops = in->flops,
                      .flops_complete = in->flops_complete};
  clv__text text;
  clv__text_init(&text, in->arena.allocator);
  clv_status status = clv__report_model(&model, &text, error);
  clv__release(in->arena.allocator, flops);
  if (status == CLV_OK) return clv__document_write(&text, path, emit, user_data, error);
  clv__text_finish(&text);
  return status;
}
