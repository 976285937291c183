/* The error for a node that no device supports: what it is, every device's reason, and which other devices could run it. */
#include <stdio.h>
#include <string.h>

#include "plan/make.h"

/* Formats the call of an ATen operator, if the importer kept it: ": Tensor A=%0, bool upper=False". */
static void call_text(const clv__node *node, char *text, size_t room) {
  const clv_attribute *call = clv__attribute_find(node->attributes, "call");
  size_t used = 0;
  text[0] = '\0';
  if (strcmp(node->domain, "aten") != 0 || call == NULL || call->kind != CLV_ATTRIBUTE_STRINGS) return;
  for (size_t i = 0; i < call->count && used < room; ++i) {
    int written = snprintf(text + used, room - used, "%s %.*s", i > 0 ? "," : ":",
                           (int)(call->strings[i].size_bytes < room ? call->strings[i].size_bytes : room), call->strings[i].data);
    used += written < 0 ? 0 : (size_t)written;
  }
}

/* Returns the first node that no device supports, or CLV__NO_ID. */
static clv_node_id find_unsupported(const clv_plan *plan) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    bool supported = plan->shapes->node_folded[n];
    for (uint32_t d = 0; d < plan->devices->count && !supported; ++d) {
      supported = clv__capability_reason(&plan->capability, n, d) == NULL;
    }
    if (!supported) return n;
  }
  return CLV__NO_ID;
}

static void list_reasons(const clv_plan *plan, clv_node_id node, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t d = 0; d < plan->devices->count && used < room; ++d) {
    int written = snprintf(text + used, room - used, "%s%s: %s", used > 0 ? "; " : "", plan->devices->items[d].name,
                           clv__capability_reason(&plan->capability, node, d));
    used += written < 0 ? 0 : (size_t)written;
  }
}

/* Asks all devices found on this computer about the node, and lists those that support it and are not in the plan's list:
 * "torch, gpu". The text is empty if there is none, or if anything fails. */
static void list_others(const clv_plan *plan, const clv_graph_view *whole, clv_node_id node, char *text, size_t room) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_devices *found;
  clv__capability capability;
  size_t used = 0;
  text[0] = '\0';
  options.list = "auto";
  bool *is_skipped = clv__allocate(plan->graph->allocator, plan->graph->node_count);
  if (is_skipped == NULL) return;
  memset(is_skipped, true, plan->graph->node_count);
  is_skipped[node] = false;
  if (clv_devices_open(plan->devices->context, &options, &found, NULL) == CLV_OK) {
    if (clv__capability_ask(found, whole, is_skipped, plan->open, NULL, NULL, NULL, &capability, NULL) == CLV_OK) {
      for (uint32_t d = 0; d < found->count && used < room; ++d) {
        const char *name = found->items[d].name;
        if (clv__capability_reason(&capability, node, d) != NULL || clv__devices_find(plan->devices, name) != CLV__NO_ID)
          continue;
        int written = snprintf(text + used, room - used, "%s%s", used > 0 ? ", " : "", name);
        used += written < 0 ? 0 : (size_t)written;
      }
      clv__capability_finish(&capability);
    }
    clv_devices_close(found);
  }
  clv__release(plan->graph->allocator, is_skipped);
}

clv_status clv__plan_check_supported(const clv_plan *plan, const clv_graph_view *whole, clv_error *error) {
  clv_node_id n = find_unsupported(plan);
  if (n == CLV__NO_ID) return CLV_OK;
  const clv__node *node = &plan->graph->nodes[n];
  char call[256], reasons[600], others[128] = "";
  call_text(node, call, sizeof call);
  list_reasons(plan, n, reasons, sizeof reasons);
  if (whole != NULL) list_others(plan, whole, n, others, sizeof others);
  return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s%s): no device can run it: %s%s%s", node->name, node->op, call,
                        reasons, others[0] != '\0' ? "; not in the list of devices, but able to run it: " : "", others);
}
