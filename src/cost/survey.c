/* The nodes of a graph on one device: every signature alone, then blocks of neighbours in topological order. The longest runs
 * that the device supports come first; one that takes what its nodes take alone tells nothing more and is left, any other is cut
 * in halves, down to pairs. Blocks that look alike are measured once. What the numbers mean is worked out later (settle.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/measure.h"
#include "cost/signature.h"

#define ADDITIVE 0.03 /* so near the sum of its nodes alone, a block is not cut further */

typedef struct survey {
  const clv_devices *devices;
  const clv__device *device;
  const clv_graph *graph;
  const clv_graph_view *whole;
  const clv__shapes *shapes;
  const clv__measure_options *options;
  clv__profile *profile;
  clv__profile_device *tables;
  clv__arena arena;
  uint32_t *operators; /* by node: of the tables; CLV__NO_ID: a view, or not measured */
  uint32_t *positions; /* by node: in `list` */
  bool *is_view;
  bool *is_told; /* by operator of the tables, up to told_count: measured in this survey */
  uint32_t told_count;
  clv_node_id *list; /* nodes that can be measured, and views; runs one after the other */
  uint32_t list_count;
  uint32_t *run_ends; /* in `list` */
  uint32_t run_count;
  clv__map seen; /* looks of blocks -> index into `measures` */
  clv__measure *measures;
  size_t measure_count, measure_capacity;
  uint32_t *indices; /* room for sorting terms */
  size_t index_capacity;
  clv__profile_term *terms;
  size_t term_capacity;
  uint32_t done;
} survey;

static void report(survey *s, const char *what, uint32_t total) {
  if (s->options->progress != NULL) s->options->progress(s->options->user_data, s->device->name, what, s->done, total);
}

/* ---- What can be measured ---- */

static bool is_fixed(const survey *s, clv_node_id node) {
  return s->shapes->node_folded != NULL && s->shapes->node_folded[node];
}

static clv_status take_node(survey *s, clv_node_id node, clv__text *text, clv_error *error) {
  clv__work work;
  clv__signature_write(s->whole, node, text);
  if (text->failed || !clv__node_work(s->whole, node, &work)) return clv__error_memory(error, text->size_bytes);
  uint32_t index;
  CLV__TRY(clv__profile_take_operator(s->profile, s->tables, text->data, &index, error));
  s->tables->operators[index].flops = work.flops;
  s->tables->operators[index].bytes = work.bytes;
  s->operators[node] = index;
  return CLV_OK;
}

static clv_status measure_nodes(survey *s, const clv_node_id *nodes, uint32_t count, clv__measure *measure,
                                uint64_t *scratch_bytes, clv_error *error) {
  clv__arena arena;
  clv_graph_view *view;
  clv__arena_init(&arena, s->arena.allocator);
  clv_status status = clv__view_create(s->graph, s->shapes->types, nodes, count, NULL, &arena, &view, error);
  if (status == CLV_OK) status = clv__measure_view(s->device, view, s->options->runs, measure, scratch_bytes, error);
  clv__arena_finish(&arena);
  return status;
}

/* Every signature alone, once. What cannot run alone is left out, and cuts runs. */
static clv_status measure_singles(survey *s, uint32_t total, clv_error *error) {
  s->told_count = s->tables->operator_count;
  s->is_told = clv__arena_allocate_zero(&s->arena, s->told_count, sizeof *s->is_told);
  if (s->is_told == NULL) return clv__error_memory(error, s->told_count);
  for (clv_node_id node = 0; node < s->graph->node_count; ++node) {
    uint32_t index = s->operators[node];
    if (index == CLV__NO_ID) continue;
    ++s->done;
    clv__profile_operator *entry = &s->tables->operators[index];
    if (!s->is_told[index]) {
      report(s, "nodes", total);
      s->is_told[index] = true;
      clv_error reason = {0};
      entry->alone = (clv__measure){0};
      clv_status status = measure_nodes(s, &node, 1, &entry->alone, &entry->scratch_bytes, &reason);
      entry->infeasible = status == CLV_TOO_LARGE || status == CLV_OUT_OF_MEMORY;
      if (status != CLV_OK) {
        clv__context_log(s->devices->context, 1, "%s: node '%s' (%s) was not measured: %s", s->device->name,
                         s->graph->nodes[node].name, s->graph->nodes[node].op, reason.message);
      }
    }
    if (entry->alone.runs == 0) s->operators[node] = CLV__NO_ID;
  }
  return CLV_OK;
}

/* Runs of neighbours, folded nodes left out of the list. */
static clv_status find_runs(survey *s, const clv__capability *capability, uint32_t device, clv_error *error) {
  uint32_t count = s->graph->node_count;
  s->list = clv__arena_allocate_zero(&s->arena, count, sizeof *s->list);
  s->run_ends = clv__arena_allocate_zero(&s->arena, count, sizeof *s->run_ends);
  if (s->list == NULL || s->run_ends == NULL) return clv__error_memory(error, count * sizeof *s->list);
  uint32_t begin = 0;
  for (clv_node_id node = 0; node <= count; ++node) {
    if (node < count && is_fixed(s, node)) continue;
    bool runs = node < count && clv__capability_reason(capability, node, device) == NULL &&
                (s->operators[node] != CLV__NO_ID || (s->is_view[node] && clv__signature_is_static(s->whole, node)));
    if (runs) {
      s->positions[node] = s->list_count;
      s->list[s->list_count++] = node;
    } else if (s->list_count > begin) {
      s->run_ends[s->run_count++] = begin = s->list_count;
    }
  }
  return CLV_OK;
}

/* ---- Blocks: the list from `from` to `to` ---- */

static bool is_inside(const survey *s, clv_node_id node, uint32_t from, uint32_t to) {
  return s->positions[node] >= from && s->positions[node] < to; /* CLV__NO_ID is above */
}

/* What a block is to a device: its nodes, their edges inside, what enters and leaves. */
static void hash_look(const survey *s, uint32_t from, uint32_t to, char key[2 * CLV__HASH_BYTES + 1]) {
  clv__hasher hasher;
  clv__hash hash;
  clv__hasher_init(&hasher);
  for (uint32_t i = from; i < to; ++i) {
    const clv__node *node = &s->graph->nodes[s->list[i]];
    uint32_t index = s->operators[s->list[i]];
    clv__hasher_string(&hasher, index == CLV__NO_ID ? node->op : s->tables->operators[index].signature);
    for (uint32_t k = 0; k < node->input_count; ++k) {
      clv_value_id value = node->inputs[k];
      clv_node_id producer = value == CLV__NO_ID ? CLV__NO_ID : s->graph->values[value].producer;
      bool inside = producer != CLV__NO_ID && is_inside(s, producer, from, to);
      clv__hasher_u64(&hasher, inside ? s->positions[producer] - from + 1 : 0);
    }
    for (uint32_t k = 0; k < node->output_count; ++k) {
      clv_value_id value = node->outputs[k];
      bool leaves = value != CLV__NO_ID && s->graph->values[value].is_output;
      for (uint32_t u = value == CLV__NO_ID ? 0 : s->graph->use_offsets[value];
           !leaves && value != CLV__NO_ID && u < s->graph->use_offsets[value + 1]; ++u) {
        leaves = !is_inside(s, s->graph->use_nodes[u], from, to);
      }
      clv__hasher_u64(&hasher, leaves);
    }
  }
  clv__hasher_finish(&hasher, &hash);
  clv__hash_text(&hash, key);
}

static clv_status push_index(survey *s, size_t *count, uint32_t index, clv_error *error) {
  if (!clv__array_reserve(s->arena.allocator, (void **)&s->indices, &s->index_capacity, *count + 1, sizeof *s->indices, *count))
    return clv__error_memory(error, *count * sizeof *s->indices);
  s->indices[(*count)++] = index;
  return CLV_OK;
}

static clv_status push_edge(survey *s, size_t *count, clv_node_id producer, clv_node_id consumer, clv_value_id value,
                            clv_error *error) {
  uint32_t index, from = s->operators[producer], to = s->operators[consumer];
  if (from == CLV__NO_ID || to == CLV__NO_ID) return CLV_OK; /* a view, or never together in a partition */
  CLV__TRY(clv__profile_take_saving(s->profile, s->tables, from, to, clv__value_bytes(s->whole, value), &index, error));
  return push_index(s, count, index, error);
}

static int compare_indices(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The edges that a block cuts. */
static clv_status collect_edges(survey *s, uint32_t from, uint32_t to, size_t *count, clv_error *error) {
  for (uint32_t i = from; i < to; ++i) {
    clv_node_id id = s->list[i];
    const clv__node *node = &s->graph->nodes[id];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      clv_node_id producer = clv__node_producer(s->whole, id, k);
      if (producer == CLV__NO_ID || is_inside(s, producer, from, to)) continue;
      CLV__TRY(push_edge(s, count, producer, id, node->inputs[k], error));
    }
    for (uint32_t k = 0; k < node->output_count; ++k) {
      clv_value_id value = node->outputs[k];
      clv_node_id last = CLV__NO_ID;
      if (value == CLV__NO_ID) continue;
      for (uint32_t u = s->graph->use_offsets[value]; u < s->graph->use_offsets[value + 1]; ++u) {
        clv_node_id reader = s->graph->use_nodes[u];
        if (reader == last || is_inside(s, reader, from, to)) continue;
        last = reader;
        CLV__TRY(push_edge(s, count, id, reader, value, error));
      }
    }
  }
  return CLV_OK;
}

/* Sorted indices to terms, behind those that are there. */
static clv_status compress(survey *s, size_t count, size_t *term_count, clv_error *error) {
  if (count > 0) qsort(s->indices, count, sizeof *s->indices, compare_indices);
  if (!clv__array_reserve(s->arena.allocator, (void **)&s->terms, &s->term_capacity, *term_count + count, sizeof *s->terms,
                          *term_count)) {
    return clv__error_memory(error, count * sizeof *s->terms);
  }
  size_t first = *term_count;
  for (size_t i = 0; i < count; ++i) {
    if (*term_count > first && s->terms[*term_count - 1].index == s->indices[i])
      ++s->terms[*term_count - 1].count;
    else
      s->terms[(*term_count)++] = (clv__profile_term){s->indices[i], 1};
  }
  return CLV_OK;
}

/* A block in its surroundings. */
static clv_status put_block(survey *s, uint32_t from, uint32_t to, const clv__measure *measure, clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  size_t count = 0, node_terms = 0, terms;
  for (uint32_t i = from; i < to; ++i) {
    if (s->operators[s->list[i]] != CLV__NO_ID) CLV__TRY(push_index(s, &count, s->operators[s->list[i]], error));
  }
  CLV__TRY(compress(s, count, &node_terms, error));
  terms = node_terms;
  count = 0;
  CLV__TRY(collect_edges(s, from, to, &count, error));
  CLV__TRY(compress(s, count, &terms, error));
  clv__hasher hasher;
  clv__hash hash;
  clv__hasher_init(&hasher);
  hash_look(s, from, to, look);
  clv__hasher_string(&hasher, look);
  uint64_t sum[2] = {0, 0}; /* of hashes, so that the order does not matter */
  for (size_t i = node_terms; i < terms; ++i) {
    const clv__profile_saving *saving = &s->tables->savings[s->terms[i].index];
    clv__hasher edge;
    clv__hasher_init(&edge);
    clv__hasher_string(&edge, s->tables->operators[saving->producer].signature);
    clv__hasher_string(&edge, s->tables->operators[saving->consumer].signature);
    clv__hasher_u64(&edge, s->terms[i].count);
    clv__hasher_finish(&edge, &hash);
    uint64_t words[2];
    memcpy(words, hash.bytes, sizeof words);
    sum[0] += words[0], sum[1] += words[1];
  }
  clv__hasher_u64(&hasher, sum[0]);
  clv__hasher_u64(&hasher, sum[1]);
  clv__hasher_finish(&hasher, &hash);
  clv__hash_text(&hash, look);
  look[32] = '\0'; /* 128 bits are enough to tell blocks apart */
  const clv__profile_block block = {
      look, *measure, (uint32_t)node_terms, s->terms, (uint32_t)(terms - node_terms), s->terms + node_terms};
  return clv__profile_put_block(s->profile, s->tables, &block, error);
}

/* ---- Measuring blocks ---- */

static uint32_t count_work(const survey *s, uint32_t from, uint32_t to) {
  uint32_t count = 0;
  for (uint32_t i = from; i < to; ++i) count += s->operators[s->list[i]] != CLV__NO_ID;
  return count;
}

/* The block's time; runs 0 where it cannot be measured as one. `is_new`: its like was not met before. */
static clv_status measure_block(survey *s, uint32_t from, uint32_t to, clv__measure *measure, bool *is_new, clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  *measure = (clv__measure){0};
  hash_look(s, from, to, look);
  uint32_t known = clv__map_find(&s->seen, look);
  *is_new = known == CLV__MAP_NONE;
  if (*is_new) {
    clv_error reason = {0};
    uint32_t limit = s->device->info.max_partition_nodes;
    if (limit == 0 || to - from <= limit) {
      clv_status status = measure_nodes(s, s->list + from, to - from, measure, NULL, &reason);
      if (status != CLV_OK) {
        *measure = (clv__measure){0};
        clv__context_log(s->devices->context, 2, "%s: a block of %u nodes was not measured: %s", s->device->name, to - from,
                         reason.message);
      }
    }
    char *key = clv__arena_string(&s->arena, look, strlen(look));
    if (key == NULL ||
        !clv__array_reserve(s->arena.allocator, (void **)&s->measures, &s->measure_capacity, s->measure_count + 1,
                            sizeof *s->measures, s->measure_count) ||
        !clv__map_set(&s->seen, key, (uint32_t)s->measure_count)) {
      return clv__error_memory(error, sizeof look);
    }
    s->measures[s->measure_count++] = *measure;
    ++s->done;
    report(s, "blocks", 0);
  } else {
    *measure = s->measures[known];
  }
  return measure->runs == 0 ? CLV_OK : put_block(s, from, to, measure, error);
}

/* Whether the block takes about what its nodes take alone. */
static bool is_additive(const survey *s, uint32_t from, uint32_t to, const clv__measure *measure) {
  if (measure->runs == 0) return false;
  double launch = (double)s->tables->launch.time_ns, sum = launch;
  for (uint32_t i = from; i < to; ++i) {
    uint32_t index = s->operators[s->list[i]];
    if (index == CLV__NO_ID) continue;
    double alone = (double)s->tables->operators[index].alone.time_ns;
    if (alone > launch) sum += alone - launch;
  }
  return fabs(sum - (double)measure->time_ns) <= ADDITIVE * (double)measure->time_ns;
}

static clv_status measure_halves(survey *s, uint32_t from, uint32_t to, clv_error *error) {
  if (count_work(s, from, to) < 2) return CLV_OK; /* nodes alone are measured */
  clv__measure measure;
  bool is_new;
  CLV__TRY(measure_block(s, from, to, &measure, &is_new, error));
  if (!is_new || to - from == 2 || is_additive(s, from, to, &measure)) return CLV_OK;
  uint32_t middle = from + (to - from) / 2;
  CLV__TRY(measure_halves(s, from, middle, error));
  return measure_halves(s, middle, to, error);
}

/* Neighbours of which one feeds the other: what tells best which edge saves. */
static clv_status measure_pairs(survey *s, uint32_t from, uint32_t to, clv_error *error) {
  for (uint32_t i = from; i + 1 < to; ++i) {
    const clv__node *node = &s->graph->nodes[s->list[i + 1]];
    bool feeds = false, is_new;
    clv__measure measure;
    if (s->operators[s->list[i]] == CLV__NO_ID || s->operators[s->list[i + 1]] == CLV__NO_ID) continue;
    for (uint32_t k = 0; k < node->input_count && !feeds; ++k)
      feeds = clv__node_producer(s->whole, s->list[i + 1], k) == s->list[i];
    if (feeds) CLV__TRY(measure_block(s, i, i + 2, &measure, &is_new, error));
  }
  return CLV_OK;
}

/* A whole run is what plans are mostly made of: once more, some time after the first, and the lower time counts. */
static clv_status measure_again(survey *s, uint32_t from, uint32_t to, const clv__measure *first, clv_error *error) {
  clv__measure second;
  clv_error ignored;
  if (first->runs == 0) return CLV_OK;
  report(s, "blocks", 0);
  clv_status status = measure_nodes(s, s->list + from, to - from, &second, NULL, &ignored);
  return status == CLV_OK && second.time_ns < first->time_ns ? put_block(s, from, to, &second, error) : CLV_OK;
}

static clv_status measure_blocks(survey *s, clv_error *error) {
  for (uint32_t i = 0; i < s->list_count; ++i) { /* the nodes alone, in their surroundings */
    uint32_t index = s->operators[s->list[i]];
    if (index != CLV__NO_ID) CLV__TRY(put_block(s, i, i + 1, &s->tables->operators[index].alone, error));
  }
  uint32_t begin = 0;
  for (uint32_t r = 0; r < s->run_count; ++r) {
    uint32_t end = s->run_ends[r];
    clv__measure measure = {0};
    bool is_new = false;
    if (count_work(s, begin, end) > 1) {
      CLV__TRY(measure_block(s, begin, end, &measure, &is_new, error));
      if (is_new && !is_additive(s, begin, end, &measure)) {
        CLV__TRY(measure_halves(s, begin, begin + (end - begin) / 2, error));
        CLV__TRY(measure_halves(s, begin + (end - begin) / 2, end, error));
        CLV__TRY(measure_pairs(s, begin, end, error));
        CLV__TRY(measure_again(s, begin, end, &measure, error));
      }
    }
    begin = end;
  }
  return CLV_OK;
}

/* ---- The whole ---- */

static clv_status prepare(survey *s, const clv__capability *capability, uint32_t device, uint32_t *total, clv_error *error) {
  uint32_t count = s->graph->node_count;
  s->operators = clv__arena_allocate(&s->arena, count * sizeof *s->operators);
  s->positions = clv__arena_allocate(&s->arena, count * sizeof *s->positions);
  s->is_view = clv__arena_allocate_zero(&s->arena, count, sizeof *s->is_view);
  if (s->operators == NULL || s->positions == NULL || s->is_view == NULL) return clv__error_memory(error, count);
  memset(s->operators, 0xff, count * sizeof *s->operators); /* CLV__NO_ID */
  memset(s->positions, 0xff, count * sizeof *s->positions);
  clv__text text;
  clv__text_init(&text, s->arena.allocator);
  clv_status status = CLV_OK;
  for (clv_node_id node = 0; status == CLV_OK && node < count; ++node) {
    s->is_view[node] = clv__node_is_view(&s->graph->nodes[node]);
    if (is_fixed(s, node) || s->is_view[node] || clv__capability_reason(capability, node, device) != NULL) continue;
    if (!clv__signature_is_static(s->whole, node)) continue;
    status = take_node(s, node, &text, error);
    ++*total;
  }
  clv__text_finish(&text);
  return status;
}

static clv_status survey_graph(survey *s, uint32_t device, uint32_t *measured, clv_error *error) {
  clv_graph_view *whole;
  clv__capability capability;
  uint32_t total = 0;
  CLV__TRY(clv__view_create_whole(s->graph, s->shapes->types, &s->arena, &whole, error));
  s->whole = whole;
  CLV__TRY(clv__profile_take_device(s->profile, s->device->info.fingerprint, &s->tables, error));
  CLV__TRY(clv__capability_ask(s->devices, whole, s->shapes->node_folded, NULL, NULL, NULL, &capability, error));
  clv_status status = prepare(s, &capability, device, &total, error);
  if (status == CLV_OK) status = measure_singles(s, total, error);
  if (status == CLV_OK) status = find_runs(s, &capability, device, error);
  clv__capability_finish(&capability);
  s->done = 0;
  if (status == CLV_OK) status = measure_blocks(s, error);
  for (clv_node_id node = 0; status == CLV_OK && node < s->graph->node_count; ++node) {
    *measured += s->operators[node] != CLV__NO_ID;
  }
  return status == CLV_OK ? clv__profile_settle(s->tables, s->arena.allocator, error) : status;
}

clv_status clv__measure_graph(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                              const clv__measure_options *options, clv__profile *profile, uint32_t *measured, clv_error *error) {
  survey s = {.devices = devices,
              .device = &devices->items[device],
              .graph = graph,
              .shapes = shapes,
              .options = options,
              .profile = profile};
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  *measured = 0;
  clv__arena_init(&s.arena, allocator);
  clv__map_init(&s.seen, allocator);
  clv__devices_lock(devices);
  clv_status status = survey_graph(&s, device, measured, error);
  clv__devices_unlock(devices);
  clv__release(allocator, s.measures);
  clv__release(allocator, s.indices);
  clv__release(allocator, s.terms);
  clv__map_finish(&s.seen);
  clv__arena_finish(&s.arena);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "measuring %s", devices->items[device].name);
}
