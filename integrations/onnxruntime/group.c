/* A group of nodes that the provider claimed, as a session of Cleave's. */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

typedef struct group {
  OrtNodeComputeInfo table; /* first: ONNX Runtime passes a pointer to it */
  const clv__ep *provider;
  clv__ep_map *maps;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  uint32_t input_count, output_count;
  pthread_mutex_t lock; /* held during runs whose outputs are in the session's memory */
} group;

static void destroy(group *g) {
  if (g == NULL) return;
  clv_session_destroy(g->session);
  clv_plan_destroy(g->plan);
  clv_graph_destroy(g->graph);
  clv__ep_unmap(g->maps);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* ---- Runs ---- */

enum { FEW = 32 }; /* inputs and outputs for which the stack has room */

static clv_status take_inputs(const group *g, const OrtKernelContext *context, clv_tensor *inputs, clv_error *error) {
  for (uint32_t i = 0; i < g->input_count; ++i) {
    const OrtValue *value = NULL;
    ORT(g->provider, KernelContext_GetInput, context, i, &value);
    if (value == NULL)
      return clv__ep_error(error, CLV_INVALID_ARGUMENT, "input '%s' has no value", clv_graph_input_name(g->graph, i));
    TRY(clv__ep_read_tensor(g->provider, value, NULL, &inputs[i], error));
  }
  return CLV_OK;
}

/* Finds an input's dimension with the same symbol as an output's dimension. */
static bool find_axis(const group *g, int64_t dim, uint32_t *input, int32_t *axis) {
  if (dim == CLV_DIM_UNKNOWN) return false;
  for (*input = 0; *input < g->input_count; ++*input) {
    const clv_tensor *type = clv_graph_input_type(g->graph, *input);
    for (*axis = 0; *axis < type->rank; ++*axis) {
      if (type->dims[*axis] == dim) return true;
    }
  }
  return false;
}

/* Sets the size of an output's dimension, if it is known before the run. */
static bool find_size(const group *g, const clv_tensor *inputs, int64_t *dim) {
  uint32_t input;
  int32_t axis;
  if (*dim >= 0) return true;
  if (!find_axis(g, *dim, &input, &axis)) return false;
  *dim = inputs[input].dims[axis];
  return true;
}

/* The memory of an output of ONNX Runtime, with the type that `output` has. */
static clv_status place_output(const group *g, OrtKernelContext *context, uint32_t index, clv_tensor *output, void **data,
                               clv_error *error) {
  static char nothing[16];
  OrtValue *value = NULL;
  ORT(g->provider, KernelContext_GetOutput, context, index, output->dims, (size_t)output->rank, &value);
  ORT(g->provider, GetTensorMutableData, value, data);
  if (*data == NULL) *data = nothing; /* without elements, there may be no memory */
  return CLV_OK;
}

/* Gives each output whose size is known before the run its memory. Sets `all` to whether that is so for all of them. */
static clv_status place_outputs(const group *g, OrtKernelContext *context, const clv_tensor *inputs, clv_tensor *outputs,
                                bool *all, clv_error *error) {
  *all = true;
  for (uint32_t i = 0; i < g->output_count; ++i) {
    outputs[i] = *clv_graph_output_type(g->graph, i);
    outputs[i].data = NULL;
    bool is_known = outputs[i].rank >= 0;
    for (int32_t d = 0; d < outputs[i].rank && is_known; ++d) is_known = find_size(g, inputs, &outputs[i].dims[d]);
    if (is_known)
      TRY(place_output(g, context, i, &outputs[i], &outputs[i].data, error));
    else
      *all = false;
  }
  return CLV_OK;
}

static clv_status copy_output(const group *g, OrtKernelContext *context, uint32_t index, clv_tensor *output, clv_error *error) {
  void *data;
  size_t count = 1;
  for (int32_t d = 0; d < output->rank; ++d) count *= (size_t)output->dims[d];
  TRY(place_output(g, context, index, output, &data, error));
  size_t size_bytes = (count * clv_dtype_size_bits(output->dtype) + 7) / 8;
  if (size_bytes > 0) memcpy(data, output->data, size_bytes);
  return CLV_OK;
}

static clv_status run(group *g, OrtKernelContext *context, clv_tensor *inputs, clv_tensor *outputs, clv_error *error) {
  bool all;
  TRY(take_inputs(g, context, inputs, error));
  TRY(place_outputs(g, context, inputs, outputs, &all, error));
  if (all) return clv_session_run(g->session, inputs, g->input_count, outputs, g->output_count, error);
  bool is_placed[FEW] = {false}, *placed = g->output_count <= FEW ? is_placed : calloc(g->output_count, sizeof *placed);
  if (placed == NULL) return clv__ep_no_memory(error);
  for (uint32_t i = 0; i < g->output_count; ++i) placed[i] = outputs[i].data != NULL;
  pthread_mutex_lock(&g->lock);
  clv_status status = clv_session_run(g->session, inputs, g->input_count, outputs, g->output_count, error);
  for (uint32_t i = 0; status == CLV_OK && i < g->output_count; ++i) {
    if (!placed[i]) status = copy_output(g, context, i, &outputs[i], error);
  }
  pthread_mutex_unlock(&g->lock);
  if (placed != is_placed) free(placed);
  return status;
}

static OrtStatus *compute(OrtNodeComputeInfo *self, void *state, OrtKernelContext *context) {
  group *g = (group *)self;
  clv_tensor few[FEW], *tensors = few;
  clv_error error = {0};
  clv_status status;
  (void)state;
  if (g->input_count + g->output_count > FEW) tensors = calloc((size_t)g->input_count + g->output_count, sizeof *tensors);
  if (tensors == NULL)
    status = clv__ep_no_memory(&error);
  else
    status = run(g, context, tensors, tensors + g->input_count, &error);
  if (tensors != few) free(tensors);
  return clv__ep_status(g->provider->api, status, &error);
}

/* ---- Compiling ---- */

static OrtStatus *create_state(OrtNodeComputeInfo *self, OrtNodeComputeContext *context, void **state) {
  (void)context;
  *state = self; /* a group has no state of its own */
  return NULL;
}

static void release_state(OrtNodeComputeInfo *self, void *state) {
  (void)self;
  (void)state;
}

/* Whether the sizes of all outputs are known before each run: fixed, or those of inputs. */
static bool knows_sizes(const group *g) {
  for (uint32_t i = 0; i < g->output_count; ++i) {
    const clv_tensor *type = clv_graph_output_type(g->graph, i);
    if (type->rank < 0) return false;
    for (int32_t d = 0; d < type->rank; ++d) {
      uint32_t input = 0;
      int32_t axis = 0;
      if (type->dims[d] < 0 && !find_axis(g, type->dims[d], &input, &axis)) return false;
    }
  }
  return true;
}

static clv_status make_session(group *g, const OrtGraph *graph, const OrtNode *fused, clv__ep_arena *arena, clv_error *error) {
  const clv__ep *provider = g->provider;
  clv__ep_values inputs, outputs;
  clv__ep_part part = {.graph = graph, .inputs = &inputs, .outputs = &outputs, .ownership = CLV_COPY, .maps = &g->maps};
  TRY(clv__ep_read_values(provider, fused, CLV__EP_NODE_INPUTS, arena, &inputs, error));
  TRY(clv__ep_read_values(provider, fused, CLV__EP_NODE_OUTPUTS, arena, &outputs, error));
  TRY(clv__ep_read_nodes(provider, graph, arena, &part.nodes, error));
  TRY(clv__ep_make_graph(provider, &part, &g->graph, error));
  g->input_count = clv_graph_input_count(g->graph);
  g->output_count = clv_graph_output_count(g->graph);
  if (g->input_count != inputs.count || g->output_count != outputs.count) {
    return clv__ep_error(error, CLV_INTERNAL_ERROR, "the graph has %u inputs and %u outputs; the fused node has %zu and %zu",
                         g->input_count, g->output_count, inputs.count, outputs.count);
  }
  TRY(clv_plan_make(g->graph, provider->devices, &provider->options.plan, &g->plan, error));
  clv_session_options options = provider->options.session;
  if (!knows_sizes(g)) options.in_flight = 1; /* the session's own memory, which holds such outputs, is there once */
  return clv_session_create(g->plan, &options, &g->session, error);
}

static clv_status create(const clv__ep *provider, const OrtGraph *graph, const OrtNode *fused, group **out, clv_error *error) {
  group *g = calloc(1, sizeof *g);
  if (g == NULL) return clv__ep_no_memory(error);
  g->table = (OrtNodeComputeInfo){CLV__ORT_API_VERSION, create_state, compute, release_state};
  g->provider = provider;
  pthread_mutex_init(&g->lock, NULL);
  clv__ep_arena arena = {0};
  clv_status status = make_session(g, graph, fused, &arena, error);
  clv__ep_arena_finish(&arena);
  if (status == CLV_OK)
    *out = g;
  else
    destroy(g);
  return status;
}

OrtStatus *clv__ep_compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count,
                           OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
  clv__ep *provider = (clv__ep *)self;
  clv_error error = {0};
  clv_status status = CLV_OK;
  (void)context_nodes;
  for (size_t i = 0; i < count; ++i) infos[i] = NULL;
  for (size_t i = 0; status == CLV_OK && i < count; ++i) {
    group *made = NULL;
    status = create(provider, graphs[i], fused_nodes[i], &made, &error);
    if (status == CLV_OK) infos[i] = &made->table;
  }
  if (status != CLV_OK) clv__ep_release_infos(self, infos, count);
  return clv__ep_status(provider->api, status, &error);
}

void clv__ep_release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count) {
  (void)self;
  for (size_t i = 0; i < count; ++i) {
    destroy((group *)infos[i]);
    infos[i] = NULL;
  }
}
