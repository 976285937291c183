/* Writes the page of `cleave inspect --html`. */
#include <string.h>

#include "base/files/file.h"
#include "cli/inspect/inspect.h"
#include "report/model/page.h"

clv_status cli_inspect_page(cli_inspection *in, clv_error *error) {
  const char *path = cli_text(in->cli, OPTION_HTML, NULL);
  if (path == NULL) return CLV_OK;
  const clv_graph *graph = in->job.graph;
  double *flops = clv__arena_allocate_zero(&in->arena, (size_t)graph->node_count + 1, sizeof *flops);
  if (flops == NULL) return clv__error_memory(error, graph->node_count * sizeof *flops);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (!in->shapes->node_folded[n] && !cli_inspected_flops(in, n, &flops[n])) flops[n] = -1;
  }
  const char *slash = strrchr(in->job.model_path, '/');
  clv__model model = {.title = slash != NULL ? slash + 1 : in->job.model_path,
                      .graph = graph,
                      .shapes = in->shapes,
                      .devices = in->job.devices,
                      .capability = &in->capability,
                      .flops = flops,
                      .parameter_count = in->parameter_count,
                      .parameter_bytes = in->parameter_bytes,
                      .total_flops = in->flops,
                      .flops_complete = in->flops_complete};
  clv__text text;
  clv__text_init(&text, in->cli->allocator);
  clv_status status = clv__report_model(&model, &text, error);
  if (status == CLV_OK) status = clv__file_write(path, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}
