/* Reads models from JSON: {"type", "weights", "layers": [{"in", "out", "activation", "heads", "concat", "bias", "prefix"}]}.
 * Every key is checked. The weights are in a file next to the JSON, named as in PyTorch Geometric's state_dict after the
 * layer's prefix ("convs.<layer>." by default). */
#include <stdio.h>

#include "base/files/file.h"
#include "base/strict_json.h"
#include "gnn/model/model_own.h"

enum { LONGEST_PREFIX = 128, LONGEST_NAME = 192 };

typedef struct reading {
  clv__gnn_model *model;
  clv__gnn_weights *weights;
  const char *weights_path;
  clv_error *error;
} reading;

/* ---- Values ---- */

/* Reads an integer from 1 to `most`. `fallback` (0: none) applies if the key is missing. */
static clv_status get_count(const json_t *object, const char *key, uint32_t most, uint32_t fallback, uint32_t *count,
                            clv_error *error) {
  const json_t *value = json_object_get(object, key);
  *count = fallback;
  if (value == NULL && fallback != 0) return CLV_OK;
  if (value == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is missing", key);
  json_int_t got = json_integer_value(value);
  if (!json_is_integer(value) || got < 1 || got > (json_int_t)most)
    return clv__error_set(error, CLV_INVALID_MODEL, "'%s' must be a whole number from 1 to %u", key, most);
  *count = (uint32_t)got;
  return CLV_OK;
}

static clv_status get_truth(const json_t *object, const char *key, bool *truth, clv_error *error) {
  const json_t *value = json_object_get(object, key);
  *truth = true;
  if (value == NULL) return CLV_OK;
  if (!json_is_boolean(value)) return clv__error_set(error, CLV_INVALID_MODEL, "'%s' must be true or false", key);
  *truth = json_is_true(value);
  return CLV_OK;
}

/* Sets `place` to the index of the key's text in `words`, which ends with NULL. If the key is missing, `fallback` is used; if
 * `fallback` is NULL, the key is required. */
static clv_status get_word(const json_t *object, const char *key, const char *const *words, const char *fallback, uint32_t *place,
                           clv_error *error) {
  const json_t *value = json_object_get(object, key);
  const char *word = value == NULL ? fallback : json_string_value(value);
  char all[128] = "";
  for (uint32_t i = 0; words[i] != NULL; ++i) {
    size_t used = strlen(all);
    *place = i;
    if (word != NULL && strcmp(word, words[i]) == 0) return CLV_OK;
    snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ", words[i]);
  }
  if (value == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is missing; expected one of %s", key, all);
  if (word == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is not a string; expected one of %s", key, all);
  return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is '%.60s'; expected one of %s", key, word, all);
}

/* ---- Weights ---- */

static clv_status read_weight(const reading *r, const char *prefix, const char *suffix, int32_t rank, int64_t rows,
                              int64_t columns, clv_tensor *weight) {
  char name[LONGEST_NAME];
  const int64_t dims[] = {rows, columns};
  snprintf(name, sizeof name, "%s%s", prefix, suffix);
  if (clv__gnn_weights_has(r->weights, name))
    return clv__gnn_weights_read(r->weights, r->model, name, rank, dims, weight, r->error);
  clv_tensor wanted = clv__tensor_make(CLV_F32, rank, dims, NULL);
  char shape[64];
  clv__tensor_text(&wanted, shape, sizeof shape);
  return clv__error_set(r->error, CLV_INVALID_MODEL, "weight '%s' (%s) is missing in %s", name, shape, r->weights_path);
}

/* Rejects weights that have the layer's prefix but that this type of layer does not use: the layer was probably meant to
 * compute something else. */
static clv_status check_unused(const reading *r, const char *prefix, const char *const *known, bool has_bias) {
  for (size_t i = 0; i < clv__gnn_weights_count(r->weights); ++i) {
    const char *name = clv__gnn_weights_name(r->weights, i);
    bool found = false;
    if (strncmp(name, prefix, strlen(prefix)) != 0 || prefix[0] == '\0') continue;
    for (const char *const *k = known; *k != NULL && !found; ++k) found = strcmp(*k, name + strlen(prefix)) == 0;
    if (found && !has_bias && strcmp(known[0], name + strlen(prefix)) == 0)
      return clv__error_set(r->error, CLV_INVALID_MODEL, "weight '%.120s' exists, but \"bias\" is false", name);
    if (!found) return clv__error_set(r->error, CLV_NOT_SUPPORTED, "weight '%.120s' does not belong to this type of layer", name);
  }
  return CLV_OK;
}

static clv_status read_weights(const reading *r, clv__gnn_layer *layer, const char *prefix, bool has_bias) {
  /* The bias must come first: check_unused() tests the first name against `has_bias`. */
  static const char *const sage[] = {"lin_l.bias", "lin_l.weight", "lin_r.weight", NULL};
  static const char *const gcn[] = {"bias", "lin.weight", NULL};
  static const char *const gat[] = {"bias", "lin.weight", "lin_src.weight", "att_src", "att_dst", NULL};
  int64_t in = layer->in, out = layer->out, heads = layer->heads;
  const char *const *names = r->model->type == CLV__GNN_SAGE ? sage : r->model->type == CLV__GNN_GCN ? gcn : gat;
  if (r->model->type == CLV__GNN_SAGE) {
    CLV__TRY(read_weight(r, prefix, "lin_l.weight", 2, out, in, &layer->neighbour));
    CLV__TRY(read_weight(r, prefix, "lin_r.weight", 2, out, in, &layer->self));
  } else if (r->model->type == CLV__GNN_GCN) {
    CLV__TRY(read_weight(r, prefix, "lin.weight", 2, out, in, &layer->neighbour));
  } else {
    char older[LONGEST_NAME];
    snprintf(older, sizeof older, "%slin_src.weight", prefix);
    const char *name = clv__gnn_weights_has(r->weights, older) ? "lin_src.weight" : "lin.weight";
    CLV__TRY(read_weight(r, prefix, name, 2, heads * out, in, &layer->neighbour));
    CLV__TRY(read_weight(r, prefix, "att_src", 2, heads, out, &layer->att_src));
    CLV__TRY(read_weight(r, prefix, "att_dst", 2, heads, out, &layer->att_dst));
  }
  if (has_bias) {
    clv_status status = read_weight(r, prefix, names[0], 1, clv__gnn_layer_width(layer), 0, &layer->bias);
    char missing[LONGEST_NAME];
    snprintf(missing, sizeof missing, "%s%s", prefix, names[0]);
    if (status != CLV_OK && !clv__gnn_weights_has(r->weights, missing))
      clv__error_set(r->error, status, "weight '%s' [%u] is missing in %s (for a layer without it, set \"bias\": false)", missing,
                     clv__gnn_layer_width(layer), r->weights_path);
    CLV__TRY(status);
  }
  return check_unused(r, prefix, names, has_bias);
}

/* ---- Layers ---- */

static clv_status read_layer(const reading *r, json_t *object, uint32_t number) {
  static const char *const plain[] = {"in", "out", "activation", "bias", "prefix", NULL};
  static const char *const attention[] = {"in", "out", "activation", "bias", "prefix", "heads", "concat", NULL};
  static const char *const activations[] = {"none", "relu", "elu", NULL};
  clv__gnn_layer *layer = &r->model->layers[number];
  bool is_gat = r->model->type == CLV__GNN_GAT, has_bias;
  char prefix[LONGEST_PREFIX];
  uint32_t activation;
  clv_error *error = r->error;
  const json_t *heads = json_object_get(object, "heads"), *concat = json_object_get(object, "concat");
  if (!is_gat && ((heads != NULL && json_integer_value(heads) != 1) || (concat != NULL && !json_is_true(concat))))
    return clv__error_set(error, CLV_INVALID_MODEL, "'heads' and 'concat' are for \"gat\" only");
  CLV__TRY(clv__json_check_keys(&(clv__strict_json){.error = error}, object, NULL,
                                is_gat || heads != NULL || concat != NULL ? attention : plain));
  CLV__TRY(get_count(object, "in", CLV__MOST_WIDTH, 0, &layer->in, error));
  CLV__TRY(get_count(object, "out", CLV__MOST_WIDTH, 0, &layer->out, error));
  CLV__TRY(get_count(object, "heads", CLV__MOST_HEADS, 1, &layer->heads, error));
  CLV__TRY(get_truth(object, "concat", &layer->concat, error));
  CLV__TRY(get_truth(object, "bias", &has_bias, error));
  CLV__TRY(get_word(object, "activation", activations, "none", &activation, error));
  layer->activation = (clv__gnn_activation)activation;
  if ((uint64_t)layer->heads * layer->out > CLV__MOST_WIDTH)
    return clv__error_set(error, CLV_INVALID_MODEL, "%u heads of %u columns exceed %d columns", layer->heads, layer->out,
                          CLV__MOST_WIDTH);
  const json_t *said = json_object_get(object, "prefix");
  if (said != NULL && (!json_is_string(said) || json_string_length(said) + 2 > sizeof prefix))
    return clv__error_set(error, CLV_INVALID_MODEL, "'prefix' must be a string of at most %d bytes", LONGEST_PREFIX - 2);
  if (said == NULL)
    snprintf(prefix, sizeof prefix, "convs.%u.", number);
  else
    snprintf(prefix, sizeof prefix, "%s%s", json_string_value(said), json_string_length(said) > 0 ? "." : "");
  return read_weights(r, layer, prefix, has_bias);
}

static clv_status read_model(const clv_allocator *allocator, json_t *root, const char *path, reading *r) {
  static const char *const keys[] = {"type", "weights", "layers", NULL};
  static const char *const types[] = {"graphsage", "gcn", "gat", NULL};
  uint32_t type;
  CLV__TRY(clv__json_check_keys(&(clv__strict_json){.error = r->error}, root, NULL, keys));
  CLV__TRY(get_word(root, "type", types, NULL, &type, r->error));
  const json_t *weights = json_object_get(root, "weights");
  json_t *layers = json_object_get(root, "layers");
  size_t count = json_array_size(layers);
  if (!json_is_string(weights) || json_string_length(weights) == 0)
    return clv__error_set(r->error, CLV_INVALID_MODEL, "'weights' must name a file, npz or safetensors");
  if (!json_is_array(layers) || count == 0 || count > CLV__MOST_LAYERS)
    return clv__error_set(r->error, CLV_INVALID_MODEL, "'layers' must be a list of 1 to %d layers", CLV__MOST_LAYERS);
  CLV__TRY(clv__gnn_model_create(allocator, (clv__gnn_type)type, (uint32_t)count, &r->model, r->error));
  const char *name = json_string_value(weights);
  char *beside = name[0] == '/' ? clv__path_join(allocator, "/", name + 1) : clv__path_beside(allocator, path, name);
  if (beside == NULL) return clv__error_memory(r->error, strlen(path) + strlen(name));
  r->weights_path = name;
  clv_status status = clv__gnn_weights_open(allocator, beside, &r->weights, r->error);
  clv__release(allocator, beside);
  if (status != CLV_OK) return clv__error_prefix(r->error, status, "weights");
  for (uint32_t i = 0; i < count; ++i) {
    status = read_layer(r, json_array_get(layers, i), i);
    if (status != CLV_OK) return clv__error_prefix(r->error, status, "layer %u", i);
  }
  return clv__gnn_model_check_chain(r->model, r->error);
}

clv_status clv__gnn_model_read_json(const clv_allocator *allocator, const char *path, const char *text, size_t size_bytes,
                                    clv__gnn_model **model, clv_error *error) {
  reading r = {.error = error};
  json_t *root;
  *model = NULL;
  CLV__TRY(clv__json_parse(&(clv__strict_json){.name = path, .error = error}, text, size_bytes, SIZE_MAX, "model", &root));
  clv_status status = read_model(allocator, root, path, &r);
  json_decref(root);
  clv__gnn_weights_close(r.weights);
  if (status == CLV_OK) {
    *model = r.model;
    return CLV_OK;
  }
  clv__gnn_model_destroy(r.model);
  return clv__error_prefix(error, status, "%s", path);
}
