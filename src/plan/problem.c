/* Converts a graph, its verdicts and a cost model to the arrays of problem.h. */
#include "split/problem.h"

#include <string.h>

#include "plan/plan.h"

/* The arrays under construction. */
typedef struct making {
  clv_plan *plan;
  const clv__fixed *fixed;
  clv__problem *problem;
  uint32_t *nodes;   /* graph node -> problem node */
  uint32_t *values;  /* graph value -> problem value, or CLV__NONE */
  uint32_t *weights; /* graph value -> problem weight, or CLV__NONE */
  bool failed;
} making;

static void *make_array(making *m, size_t count, size_t element_bytes) {
  void *array = clv__arena_allocate_zero(&m->plan->arena, count, element_bytes);
  if (array == NULL) m->failed = true;
  return array;
}

static bool is_constant(const making *m, clv_value_id value) {
  return clv__value_is_constant(m->plan->graph, m->plan->shapes->types, value);
}

static uint64_t size_of(const making *m, clv_value_id value) {
  size_t size_bytes;
  return clv__tensor_size_bytes(&clv__plan_sized_types(m->plan)[value], &size_bytes) ? size_bytes : 0;
}

/* Numbers the nodes that run, the values that they read or compute, and the constants that they read. */
static void number(making *m) {
  const clv_graph *graph = m->plan->graph;
  clv__problem *problem = m->problem;
  m->nodes = make_array(m, graph->node_count, sizeof *m->nodes);
  m->values = make_array(m, graph->value_count, sizeof *m->values);
  m->weights = make_array(m, graph->value_count, sizeof *m->weights);
  if (m->failed) return;
  memset(m->values, 0xff, graph->value_count * sizeof *m->values);
  memset(m->weights, 0xff, graph->value_count * sizeof *m->weights);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    m->nodes[n] = m->plan->shapes->node_folded[n] ? CLV__NONE : problem->node_count++;
    if (m->nodes[n] == CLV__NONE) continue;
    const clv__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      clv_value_id value = node->inputs[i];
      if (value == CLV__NO_ID) continue;
      uint32_t *number = is_constant(m, value) ? &m->weights[value] : &m->values[value];
      if (*number == CLV__NONE) *number = is_constant(m, value) ? problem->weight_count++ : problem->value_count++;
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
      clv_value_id value = node->outputs[i];
      if (value != CLV__NO_ID && m->values[value] == CLV__NONE) m->values[value] = problem->value_count++;
    }
  }
}

/* Builds the reads, writes and weights of every node as CSR. Each value is listed once per node, in the order of the operands. */
static void connect(making *m) {
  const clv_graph *graph = m->plan->graph;
  clv__problem *problem = m->problem;
  size_t operands = 0, results = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    operands += graph->nodes[n].input_count;
    results += graph->nodes[n].output_count;
  }
  uint32_t *read_offsets = make_array(m, problem->node_count + 1, sizeof *read_offsets),
           *reads = make_array(m, operands, sizeof *reads);
  uint32_t *write_offsets = make_array(m, problem->node_count + 1, sizeof *write_offsets),
           *writes = make_array(m, results, sizeof *writes);
  uint32_t *weight_offsets = make_array(m, problem->node_count + 1, sizeof *weight_offsets),
           *weights = make_array(m, operands, sizeof *weights);
  uint32_t *weight_operands = make_array(m, operands, sizeof *weight_operands);
  uint32_t *node_ids = make_array(m, problem->node_count, sizeof *node_ids),
           *seen = make_array(m, graph->value_count, sizeof *seen);
  uint8_t *flags = make_array(m, problem->node_count, sizeof *flags);
  const char **names = make_array(m, problem->node_count, sizeof *names);
  if (m->failed) return;
  uint32_t r = 0, w = 0, c = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    uint32_t at = m->nodes[n];
    if (at == CLV__NONE) continue;
    const clv__node *node = &graph->nodes[n];
    node_ids[at] = n;
    names[at] = node->name;
    if (clv__plan_is_view(m->plan, node)) flags[at] |= CLV__NODE_VIEW;
    if (strcmp(node->op, "RotaryEmbedding") == 0) flags[at] |= CLV__NODE_LIGHT_WEIGHT;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      clv_value_id value = node->inputs[i];
      if (value == CLV__NO_ID || seen[value] == at + 1) continue;
      seen[value] = at + 1;
      if (is_constant(m, value)) {
        weight_operands[c] = i;
        weights[c++] = m->weights[value];
      } else {
        reads[r++] = m->values[value];
      }
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != CLV__NO_ID) writes[w++] = m->values[node->outputs[i]];
    }
    read_offsets[at + 1] = r;
    write_offsets[at + 1] = w;
    weight_offsets[at + 1] = c;
  }
  problem->read_offsets = read_offsets, problem->reads = reads;
  problem->write_offsets = write_offsets, problem->writes = writes;
  problem->weight_offsets = weight_offsets, problem->weights = weights, problem->weight_operands = weight_operands;
  problem->node_ids = node_ids, problem->node_names = names, problem->flags = flags;
}

/* Builds producers, and readers as CSR: two passes over the reads. */
static void index_values(making *m) {
  clv__problem *problem = m->problem;
  uint32_t *producers = make_array(m, problem->value_count, sizeof *producers);
  uint32_t *offsets = make_array(m, (size_t)problem->value_count + 2, sizeof *offsets);
  uint32_t *readers = m->failed ? NULL : make_array(m, problem->read_offsets[problem->node_count], sizeof *readers);
  if (m->failed) return;
  memset(producers, 0xff, problem->value_count * sizeof *producers);
  for (uint32_t r = 0; r < problem->read_offsets[problem->node_count]; ++r) ++offsets[problem->reads[r] + 2];
  for (uint32_t v = 0; v < problem->value_count; ++v) offsets[v + 2] += offsets[v + 1];
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r)
      readers[offsets[problem->reads[r] + 1]++] = n;
    for (uint32_t k = problem->write_offsets[n]; k < problem->write_offsets[n + 1]; ++k) producers[problem->writes[k]] = n;
  }
  problem->producers = producers, problem->reader_offsets = offsets, problem->readers = readers;
}

static uint32_t home_of(const making *m, clv_value_id value) {
  return m->fixed == NULL || m->fixed->values == NULL ? CLV__NONE : m->fixed->values[value];
}

static void describe_values(making *m) {
  const clv_graph *graph = m->plan->graph;
  clv__problem *problem = m->problem;
  uint32_t *ids = make_array(m, problem->value_count, sizeof *ids), *homes = make_array(m, problem->value_count, sizeof *homes);
  uint32_t *weight_ids = make_array(m, problem->weight_count, sizeof *weight_ids);
  uint32_t *weight_homes = make_array(m, problem->weight_count, sizeof *weight_homes);
  uint64_t *bytes = make_array(m, problem->value_count, sizeof *bytes),
           *weight_bytes = make_array(m, problem->weight_count, sizeof *weight_bytes);
  uint8_t *is_output = make_array(m, problem->value_count, sizeof *is_output);
  const char **names = make_array(m, problem->value_count, sizeof *names);
  const char **weight_names = make_array(m, problem->weight_count, sizeof *weight_names);
  if (m->failed) return;
  for (clv_value_id id = 0; id < graph->value_count; ++id) {
    uint32_t value = m->values[id], weight = m->weights[id];
    if (value != CLV__NONE) {
      ids[value] = id, names[value] = graph->values[id].name, bytes[value] = size_of(m, id), homes[value] = home_of(m, id);
      is_output[value] = graph->values[id].is_output || (m->plan->is_kept != NULL && m->plan->is_kept[id]);
    } else if (weight != CLV__NONE) {
      weight_ids[weight] = id, weight_names[weight] = graph->values[id].name, weight_bytes[weight] = size_of(m, id);
      weight_homes[weight] = home_of(m, id);
    }
  }
  problem->value_ids = ids, problem->value_names = names, problem->value_bytes = bytes, problem->value_homes = homes;
  problem->is_output = is_output;
  problem->weight_ids = weight_ids, problem->weight_names = weight_names, problem->weight_bytes = weight_bytes;
  problem->weight_homes = weight_homes;
}

static void describe_devices(making *m) {
  const clv_devices *devices = m->plan->devices;
  clv__problem *problem = m->problem;
  uint32_t *spaces = make_array(m, devices->count, sizeof *spaces);
  clv__limits *limits = make_array(m, devices->count, sizeof *limits);
  uint64_t *launch_ns = make_array(m, devices->count, sizeof *launch_ns);
  uint32_t *alignments = make_array(m, devices->space_count, sizeof *alignments);
  const char **names = make_array(m, devices->count, sizeof *names);
  if (m->failed) return;
  for (uint32_t space = 0; space < devices->space_count; ++space) alignments[space] = clv__devices_alignment(devices, space);
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv_device_info *info = &devices->items[d].info;
    spaces[d] = devices->items[d].space;
    names[d] = devices->items[d].name;
    limits[d] = (clv__limits){info->max_partition_inputs, info->max_partition_nodes, info->memory_limit_bytes};
    launch_ns[d] = clv__cost_launch(m->plan->costs, d);
  }
  problem->alignments = alignments;
  problem->spaces = spaces, problem->limits = limits, problem->launch_ns = launch_ns, problem->device_names = names;
}

/* Returns why the node is too large for the device, although the device supports it: according to the profile, or because it
 * alone reads more values than a partition may. Returns NULL if it is not too large. */
static const char *find_excess(making *m, uint32_t node, uint32_t device) {
  const clv__problem *problem = m->problem;
  uint32_t inputs = problem->read_offsets[node + 1] - problem->read_offsets[node], most = problem->limits[device].max_inputs;
  if (clv__cost_node(m->plan->costs, problem->node_ids[node], device).infeasible)
    return "too large for this device, according to the profile";
  if (most == 0 || inputs <= most || (m->fixed != NULL && m->fixed->is_grouped)) return NULL;
  char text[80];
  snprintf(text, sizeof text, "it reads %u values; a partition may read at most %u", inputs, most);
  const char *reason = clv__arena_string(&m->plan->arena, text, strlen(text));
  if (reason == NULL) m->failed = true;
  return reason;
}

/* Excludes the node from a device that the node is too large for, and returns whether it did. A node is not excluded if the user
 * fixed its device or no other device supports it: a partition with the producers of its inputs may read fewer values. */
static bool exclude_too_large(making *m, uint32_t node, uint32_t device) {
  clv__capability *capability = &m->plan->capability;
  clv_node_id id = m->problem->node_ids[node];
  bool is_fixed = m->problem->pins[node] != CLV__NONE, has_other = false;
  if (clv__is_hosted(m->problem, node, device)) return false;
  for (uint32_t d = 0; d < m->problem->device_count; ++d) {
    has_other = has_other || (d != device && clv__capability_reason(capability, id, d) == NULL);
  }
  const char *reason = is_fixed || !has_other ? NULL : find_excess(m, node, device);
  if (reason != NULL) capability->reasons[(size_t)id * capability->device_count + device] = reason;
  return reason != NULL;
}

static void price_nodes(making *m) {
  const clv_plan *plan = m->plan;
  clv__problem *problem = m->problem;
  uint32_t device_count = problem->device_count;
  uint16_t *supports = make_array(m, problem->node_count, sizeof *supports);
  uint16_t *hosted = make_array(m, problem->node_count, sizeof *hosted);
  uint32_t *pins = make_array(m, problem->node_count, sizeof *pins);
  uint64_t *node_ns = make_array(m, (size_t)problem->node_count * device_count, sizeof *node_ns);
  uint64_t *saving_ns = make_array(m, (size_t)problem->read_offsets[problem->node_count] * device_count, sizeof *saving_ns);
  if (m->failed) return;
  problem->supports = supports, problem->hosted = hosted, problem->pins = pins, problem->node_ns = node_ns;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    clv_node_id id = problem->node_ids[n];
    pins[n] = m->fixed == NULL || m->fixed->nodes == NULL ? CLV__NONE : m->fixed->nodes[id];
    for (uint32_t d = 0; d < device_count; ++d) {
      uint64_t *time_ns = &node_ns[(size_t)n * device_count + d];
      *time_ns = CLV__NO_TIME;
      if (plan->capability.hosted != NULL) hosted[n] = plan->capability.hosted[id];
      if (clv__capability_reason(&plan->capability, id, d) != NULL || exclude_too_large(m, n, d)) continue;
      supports[n] |= (uint16_t)(1u << d);
      *time_ns = (problem->flags[n] & CLV__NODE_VIEW) != 0 ? 0 : clv__cost_node(plan->costs, id, d).time_ns;
    }
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      uint16_t both = supports[n] & supports[producer] & (uint16_t) ~(hosted[n] | hosted[producer]);
      for (uint32_t d = 0; d < device_count; ++d) {
        if ((both >> d & 1u) == 0) continue;
        saving_ns[(size_t)r * device_count + d] =
            clv__cost_saving(plan->costs, problem->node_ids[producer], problem->node_ids[n], d);
      }
    }
  }
  clv__problem_clamp_savings(problem, saving_ns);
  problem->saving_ns = saving_ns;
}

static void price_copies(making *m) {
  clv__problem *problem = m->problem;
  size_t cells = (size_t)problem->value_count * problem->space_count;
  uint64_t *in_ns = make_array(m, cells, sizeof *in_ns), *out_ns = make_array(m, cells, sizeof *out_ns);
  uint64_t *weight_in_ns = make_array(m, (size_t)problem->weight_count * problem->space_count, sizeof *weight_in_ns);
  if (m->failed) return;
  for (uint32_t space = 1; space < problem->space_count; ++space) {
    uint32_t device = clv__space_device(problem, space);
    for (uint32_t v = 0; v < problem->value_count && device < problem->device_count; ++v) {
      size_t cell = (size_t)v * problem->space_count + space;
      in_ns[cell] = clv__cost_copy(m->plan->costs, device, true, problem->value_bytes[v]);
      out_ns[cell] = clv__cost_copy(m->plan->costs, device, false, problem->value_bytes[v]);
    }
    for (uint32_t w = 0; w < problem->weight_count && device < problem->device_count; ++w) {
      weight_in_ns[(size_t)w * problem->space_count + space] =
          clv__cost_copy(m->plan->costs, device, true, problem->weight_bytes[w]);
    }
  }
  problem->in_ns = in_ns, problem->out_ns = out_ns, problem->weight_in_ns = weight_in_ns;
}

/* Records the devices that were lost before the plan was made. */
static void leave_lost(clv_plan *plan, clv__problem *problem) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (!clv__device_is_lost(&plan->devices->items[d])) continue;
    plan->gone |= 1u << d;
    plan->gone_why[d] = CLV__LOST_REASON;
  }
  problem->gone = plan->gone;
}

clv_status clv__plan_set_problem(clv_plan *plan, const clv__fixed *fixed, const clv__profile *profile, clv_error *error) {
  clv__problem *problem = clv__arena_allocate_zero(&plan->arena, 1, sizeof *problem);
  clv_graph_view *whole;
  if (problem == NULL) return clv__error_memory(error, sizeof *problem);
  CLV__TRY(clv__view_create_whole(plan->graph, clv__plan_sized_types(plan), &plan->arena, &whole, error));
  CLV__TRY(clv__cost_model_create(plan->devices, whole, plan->shapes->node_folded, profile, &plan->costs, error));
  problem->device_count = plan->devices->count;
  problem->space_count = plan->devices->space_count;
  leave_lost(plan, problem);
  making m = {.plan = plan, .fixed = fixed, .problem = problem};
  number(&m);
  if (!m.failed) connect(&m);
  if (!m.failed) index_values(&m);
  if (!m.failed) describe_values(&m);
  if (!m.failed) describe_devices(&m);
  if (!m.failed) price_nodes(&m);
  if (!m.failed) price_copies(&m);
  if (m.failed) return clv__error_memory(error, (size_t)plan->graph->value_count * sizeof *m.values);
  CLV__TRY(clv__plan_ask_streams(plan, problem, error));
  CLV__TRY(clv__plan_ask_prefers(plan, whole, problem, error));
  plan->problem = problem;
  plan->problem_nodes = m.nodes;
  if (profile != NULL) {
    const char *id = clv__profile_id(profile);
    plan->profile = clv__arena_string(&plan->arena, id, strlen(id));
    if (plan->profile == NULL) return clv__error_memory(error, strlen(id));
  }
  return CLV_OK;
}
