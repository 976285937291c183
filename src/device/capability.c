/* Asks every device for its verdict on every node. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"

/* Returns the view that the device's supports() gets for a node. NULL, with the reason, if the device cannot support the node. */
static const clv_graph_view *view_for(const clv__device *device, const clv_graph_view *whole, const clv_graph_view *typical,
                                      const clv__open *open, uint32_t node, clv_verdict *verdict) {
  if (!device->info.static_shapes_only || open == NULL || !open->is_open[node]) return whole;
  const char *reason = open->reasons[node];
  if (reason == NULL && typical != NULL) return typical;
  *verdict = (clv_verdict){0};
  snprintf(verdict->reason, sizeof verdict->reason, "resize not supported: %s",
           reason != NULL ? reason : "the model accepts none of the sizes that were tried");
  return NULL;
}

/* Values above this size fit no address space. Sums of sizes below it do not overflow. */
#define MOST_VALUE_BYTES ((size_t)1 << 47)

/* Returns whether a device could run the node at all. Returns false, with the reason in `verdict`, if a value that the node
 * reads or computes is larger than any memory. */
static bool is_possible(const clv_graph_view *whole, uint32_t node, clv_verdict *verdict) {
  const clv__node *n = &whole->graph->nodes[whole->nodes[node]];
  for (uint32_t i = 0; i < n->input_count + n->output_count; ++i) {
    const clv_value_id v = i < n->input_count ? n->inputs[i] : n->outputs[i - n->input_count];
    size_t size_bytes;
    char text[96];
    if (v == CLV__NO_ID) continue;
    const clv_tensor *type = whole->types != NULL ? &whole->types[v] : &whole->graph->values[v].type;
    if (!clv__tensor_is_static(type)) continue;
    if (clv__tensor_size_bytes(type, &size_bytes) && size_bytes <= MOST_VALUE_BYTES) continue;
    clv__tensor_text(type, text, sizeof text);
    *verdict = (clv_verdict){0};
    snprintf(verdict->reason, sizeof verdict->reason, "'%.40s' %.80s is larger than any memory", whole->graph->values[v].name,
             text);
    return false;
  }
  return true;
}

static void ask(const clv_host *host, const clv__device *device, const clv_graph_view *whole, uint32_t node,
                clv_support_fn support, void *user_data, clv_verdict *verdict) {
  *verdict = (clv_verdict){0};
  if (!is_possible(whole, node, verdict)) return;
  device->backend->supports(device->handle, whole, node, verdict);
  verdict->reason[sizeof verdict->reason - 1] = '\0';
  if (verdict->supported && support != NULL) {
    clv_node_info node_info = {.struct_size = sizeof node_info};
    host->graph_node(whole, node, &node_info);
    verdict->supported = support(user_data, device->name, &node_info, verdict->reason);
    verdict->reason[sizeof verdict->reason - 1] = '\0';
    if (!verdict->supported && verdict->reason[0] == '\0') strcpy(verdict->reason, "rejected by the application");
  }
  if (!verdict->supported && verdict->reason[0] == '\0') strcpy(verdict->reason, "not supported");
}

clv_status clv__capability_ask(const clv_devices *devices, const clv_graph_view *whole, const bool *folded, const clv__open *open,
                               clv_support_fn support, void *user_data, clv__poll *poll, clv__capability *capability,
                               clv_error *error) {
  clv__arena_init(&capability->arena, clv__context_allocator(devices->context));
  capability->device_count = devices->count;
  capability->hosted = NULL;
  size_t cells = (size_t)whole->node_count * devices->count;
  capability->reasons = clv__arena_allocate_zero(&capability->arena, cells, sizeof *capability->reasons);
  const clv_host *host = clv__context_host(devices->context);
  clv__map known; /* reasons repeat; each text is stored once */
  clv__map_init(&known, clv__context_allocator(devices->context));
  clv_status status = CLV_OK;
  if (capability->reasons == NULL) status = clv__error_memory(error, cells * sizeof *capability->reasons);
  clv_graph_view *typical = NULL;
  if (status == CLV_OK && open != NULL && open->typical != NULL) {
    status = clv__view_create_whole(whole->graph, open->typical, &capability->arena, &typical, error);
  }
  const char **texts = NULL;
  size_t text_capacity = 0;
  for (uint32_t node = 0; status == CLV_OK && node < whole->node_count; ++node) {
    if (folded != NULL && folded[node]) continue;
    if (clv__poll_stops(poll)) status = clv__error_set(error, CLV_CANCELLED, "planning was cancelled");
    for (uint32_t d = 0; status == CLV_OK && d < devices->count; ++d) {
      clv_verdict verdict;
      const clv_graph_view *view = view_for(&devices->items[d], whole, typical, open, node, &verdict);
      if (view != NULL) ask(host, &devices->items[d], view, node, support, user_data, &verdict);
      if (verdict.supported) continue;
      uint32_t index = clv__map_find(&known, verdict.reason);
      if (index == CLV__MAP_NONE) {
        index = known.count;
        char *copy = clv__arena_string(&capability->arena, verdict.reason, strlen(verdict.reason));
        if (copy == NULL ||
            !clv__array_reserve(known.allocator, (void **)&texts, &text_capacity, index + 1, sizeof *texts, index) ||
            !clv__map_set(&known, copy, index)) {
          status = clv__error_memory(error, sizeof verdict);
          break;
        }
        texts[index] = copy;
      }
      capability->reasons[(size_t)node * devices->count + d] = texts[index];
    }
  }
  clv__release(known.allocator, (void *)texts);
  clv__map_finish(&known);
  if (status != CLV_OK) clv__capability_finish(capability);
  return status;
}

void clv__capability_finish(clv__capability *capability) {
  clv__arena_finish(&capability->arena);
  capability->reasons = NULL;
  capability->hosted = NULL;
}
