/* Describes a GNN model as it was read, for programs: see cleave/gnn.h. */
#include "base/document.h"
#include "base/error.h"
#include "device/device.h"
#include "report/gnn/own.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

static json_t *layer_json(const clv_gnn_model *model, uint32_t index, const clv_gnn_layer_info *layer) {
  json_t *object = json_object(), *stages = json_array();
  for (uint32_t s = 0; s < layer->stage_count; ++s)
    json_array_append_new(stages, json_string(clv_gnn_model_stage(model, index, s)));
  json_object_set_new(object, "in", json_integer(layer->in));
  json_object_set_new(object, "out", json_integer(layer->out));
  json_object_set_new(object, "heads", json_integer(layer->heads));
  json_object_set_new(object, "averaged", json_boolean(layer->is_averaged));
  json_object_set_new(object, "activation", json_string(layer->activation));
  json_object_set_new(object, "weight_bytes", json_integer((json_int_t)layer->weight_bytes));
  json_object_set_new(object, "stages", stages);
  return object;
}

static json_t *make_json(const clv_gnn_model *model, const clv_gnn_model_info *info) {
  json_t *root = json_object(), *layers = json_array();
  for (uint32_t i = 0; i < info->layer_count; ++i) {
    clv_gnn_layer_info layer = {.struct_size = sizeof layer};
    if (clv_gnn_model_layer(model, i, &layer)) json_array_append_new(layers, layer_json(model, i, &layer));
  }
  json_object_set_new(root, "model", clv__json_text(info->name));
  json_object_set_new(root, "hash", json_string(info->hash));
  json_object_set_new(root, "type", json_string(info->type));
  json_object_set_new(root, "features", json_integer(info->feature_count));
  json_object_set_new(root, "classes", json_integer(info->class_count));
  json_object_set_new(root, "layers", layers);
  return root;
}

static void append_layers(const clv_gnn_model *model, const clv_gnn_model_info *info, bool bold, clv__text *text) {
  static const char *const heads[] = {"layer", "in", "out", "heads", "activation", "weights", "stages"};
  clv__table table;
  char size[CLV__LABEL_BYTES];
  clv__table_init(&table, text->allocator, "rrrllrl", true);
  for (size_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", heads[i]);
  for (uint32_t i = 0; i < info->layer_count; ++i) {
    clv_gnn_layer_info layer = {.struct_size = sizeof layer};
    clv__text stages;
    clv_gnn_model_layer(model, i, &layer);
    clv__text_init(&stages, text->allocator);
    for (uint32_t s = 0; s < layer.stage_count; ++s)
      clv__text_append(&stages, "%s%s", s > 0 ? ", " : "", clv_gnn_model_stage(model, i, s));
    clv__table_cell(&table, "%u", i);
    clv__table_cell(&table, "%u", layer.in);
    clv__table_cell(&table, "%u", layer.out);
    clv__table_cell(&table, "%u%s", layer.heads, layer.is_averaged ? ", averaged" : "");
    clv__table_cell(&table, "%s", layer.activation);
    clv__table_cell(&table, "%s", clv__label_size(layer.weight_bytes, size));
    clv__table_cell(&table, "%s", stages.data);
    if (stages.failed) text->failed = true;
    clv__text_finish(&stages);
  }
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

clv_status clv_gnn_model_report(const clv_gnn_model *model, clv_form form, char **text, clv_error *error) {
  clv_gnn_model_info info = {.struct_size = sizeof info};
  clv__text written;
  CLV__TRY(clv__document_check(form, text, error));
  CLV__TRY(clv__argument_check(model, "model", error));
  const clv_allocator *allocator = clv__context_allocator(model->context);
  clv_gnn_model_get_info(model, &info);
  if (form == CLV_FORM_JSON) return clv__json_give(make_json(model, &info), allocator, text, error);
  clv__text_init(&written, allocator);
  clv__label_name(&written, info.name);
  clv__text_append(&written, ": %s, %u features to %u classes in ", info.type, info.feature_count, info.class_count);
  clv__label_plural(&written, info.layer_count, "layer");
  clv__text_append(&written, "\n");
  append_layers(model, &info, form == CLV_FORM_TERMINAL, &written);
  return clv__document_give(&written, text, error);
}
