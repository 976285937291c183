/* Converts a block of a survey to profile terms: how often each operator occurs in it, and how often it cuts each edge to or
 * from a neighbour. */
#include <stdlib.h>
#include <string.h>

#include "cost/signature.h"
#include "cost/survey.h"

static bool is_inside(const clv__survey *s, clv_node_id node, uint32_t from, uint32_t to) {
  return s->positions[node] >= from && s->positions[node] < to; /* CLV__NO_ID is larger than any position */
}

void clv__survey_look(const clv__survey *s, uint32_t from, uint32_t to, char look[2 * CLV__HASH_BYTES + 1]) {
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
  clv__hash_text(&hash, look);
}

static clv_status push_index(clv__survey *s, size_t *count, uint32_t index, clv_error *error) {
  if (!clv__array_reserve(s->arena.allocator, (void **)&s->indices, &s->index_capacity, *count + 1, sizeof *s->indices, *count))
    return clv__error_memory(error, *count * sizeof *s->indices);
  s->indices[(*count)++] = index;
  return CLV_OK;
}

static clv_status push_edge(clv__survey *s, size_t *count, clv_node_id producer, clv_node_id consumer, clv_value_id value,
                            clv_error *error) {
  uint32_t index, from = s->operators[producer], to = s->operators[consumer];
  if (from == CLV__NO_ID || to == CLV__NO_ID) return CLV_OK; /* one of the two nodes is a view or was not measured */
  CLV__TRY(clv__profile_find_or_add_saving(s->profile, s->tables, from, to, clv__value_bytes(s->whole, value), &index, error));
  return push_index(s, count, index, error);
}

static int compare_indices(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Collects the edges that a block cuts. */
static clv_status collect_edges(clv__survey *s, uint32_t from, uint32_t to, size_t *count, clv_error *error) {
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

/* Sorts the collected indices and appends one term per distinct index, with its count. */
static clv_status compress(clv__survey *s, size_t count, size_t *term_count, clv_error *error) {
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

/* Describes a block without its time. Its key is written to `look`; its terms are valid until the next call. */
static clv_status describe(clv__survey *s, uint32_t from, uint32_t to, char look[2 * CLV__HASH_BYTES + 1],
                           clv__profile_block *block, clv_error *error) {
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
  clv__survey_look(s, from, to, look);
  clv__hasher_string(&hasher, look);
  uint64_t sum[2] = {0, 0}; /* a sum of hashes does not depend on the order */
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
  look[32] = '\0'; /* 128 bits are enough to distinguish blocks */
  *block = (clv__profile_block){.key = look,
                                .node_count = (uint32_t)node_terms,
                                .nodes = s->terms,
                                .edge_count = (uint32_t)(terms - node_terms),
                                .edges = s->terms + node_terms};
  return CLV_OK;
}

clv_status clv__survey_find(clv__survey *s, uint32_t from, uint32_t to, clv__measure *measure, clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  clv__profile_block block;
  CLV__TRY(describe(s, from, to, look, &block, error));
  uint32_t known = clv__map_find(&s->tables->block_index, block.key);
  *measure = known == CLV__MAP_NONE ? (clv__measure){0} : s->tables->blocks[known].total;
  return CLV_OK;
}

clv_status clv__survey_put(clv__survey *s, uint32_t from, uint32_t to, const clv__measure *measure, clv_error *error) {
  char look[2 * CLV__HASH_BYTES + 1];
  clv__profile_block block;
  CLV__TRY(describe(s, from, to, look, &block, error));
  block.total = *measure;
  return clv__profile_put_block(s->profile, s->tables, &block, error);
}
