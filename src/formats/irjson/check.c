/* Compares the types that the file declares with those inferred for the lowered graph, so that a wrong shape is an error of the
 * file and not of a device. */
#include "analysis/shapes.h"
#include "formats/irjson/file.h"

clv_status clv__irjson_check(const clv__irjson *file, const clv_graph *graph) {
  enum { FOLD_LIMIT = 4096 }; /* bytes; larger values are not computed, because only shapes and the like matter for types */
  clv__shapes *shapes;
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, FOLD_LIMIT, &shapes, file->error));
  clv_status status = CLV_OK;
  for (size_t i = 0; i < file->tensor_count && status == CLV_OK; ++i) {
    const clv__irjson_tensor *tensor = &file->tensors[i];
    if (tensor->origin != CLV__IRJSON_OUTPUT || graph->values[tensor->value].producer == CLV__NO_ID) continue;
    clv_tensor inferred = shapes->types[tensor->value];
    if (clv__tensor_same_type(&inferred, &tensor->type)) continue;
    char text[128], declared[128];
    clv__tensor_text(&inferred, text, sizeof text);
    clv__tensor_text(&tensor->type, declared, sizeof declared);
    const clv__irjson_node *node = &file->nodes[tensor->node];
    status =
        clv__error_set(file->error, CLV_INVALID_MODEL, "node '%.200s' (%.100s): output '%.200s' is declared as %s, but is %s",
                       node->name, node->op_type, tensor->name, declared, text);
  }
  clv__shapes_destroy(shapes);
  return status;
}
