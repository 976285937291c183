/* Builds small problems by hand for worked examples, one node per line. With I graph inputs, node n computes value I + n. */
#ifndef CLEAVE_TESTS_SMALL_H
#define CLEAVE_TESTS_SMALL_H

#include <string.h>

#include "place/place.h"
#include "support.h"

enum { SMALL_NODES = 80, SMALL_READS = 400, SMALL_ALL = 0xffff };

typedef struct small {
  clv__problem problem;
  uint32_t inputs;
  uint32_t spaces[16];
  clv__limits limits[16];
  uint64_t launch_ns[16];
  uint32_t read_offsets[SMALL_NODES + 1], reads[SMALL_READS], write_offsets[SMALL_NODES + 1], writes[SMALL_NODES];
  uint16_t supports[SMALL_NODES], prefers[SMALL_NODES];
  uint32_t pins[SMALL_NODES];
  uint8_t flags[SMALL_NODES];
  uint64_t node_ns[SMALL_NODES * 16];
  uint32_t producers[2 * SMALL_NODES], reader_offsets[2 * SMALL_NODES + 1], readers[SMALL_READS];
  uint8_t is_output[2 * SMALL_NODES];
  uint64_t value_bytes[2 * SMALL_NODES], copies[2 * SMALL_NODES * 17];
  uint32_t value_homes[2 * SMALL_NODES];
  uint32_t weight_offsets[SMALL_NODES + 1], weights[SMALL_READS], weight_operands[SMALL_READS], weight_homes[SMALL_READS];
  uint64_t weight_bytes[SMALL_READS];
} small;

/* `spaces`: the memory space of each device. Graph inputs are the values 0 to inputs - 1. */
static inline void small_begin(small *s, uint32_t device_count, const uint32_t *spaces, uint32_t inputs) {
  memset(s, 0, sizeof *s);
  s->inputs = inputs;
  s->problem.device_count = device_count;
  s->problem.space_count = 1;
  for (uint32_t d = 0; d < device_count; ++d) {
    s->spaces[d] = spaces[d];
    if (spaces[d] >= s->problem.space_count) s->problem.space_count = spaces[d] + 1;
  }
  memset(s->pins, 0xff, sizeof s->pins);
  memset(s->producers, 0xff, sizeof s->producers);
  memset(s->value_homes, 0xff, sizeof s->value_homes);
  memset(s->weight_homes, 0xff, sizeof s->weight_homes);
}

/* Adds a node that the devices of `supports` (bits) can run. Returns its value. */
static inline uint32_t small_node_of(small *s, uint32_t supports, uint32_t count, const uint32_t *reads) {
  uint32_t n = s->problem.node_count++, value = s->inputs + n;
  assert_true(n < SMALL_NODES);
  for (uint32_t i = 0; i < count; ++i) s->reads[s->read_offsets[n] + i] = reads[i];
  s->read_offsets[n + 1] = s->read_offsets[n] + count;
  s->writes[n] = value;
  s->write_offsets[n + 1] = n + 1;
  s->weight_offsets[n + 1] = s->weight_offsets[n];
  s->supports[n] = (uint16_t)(supports & ((1u << s->problem.device_count) - 1));
  s->producers[value] = n;
  return value;
}
#define small_node(s, supports, ...) \
  small_node_of(s, supports, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (const uint32_t[]){__VA_ARGS__})

static inline uint32_t small_view(small *s, uint32_t supports, uint32_t source) {
  uint32_t value = small_node(s, supports, source);
  s->flags[s->problem.node_count - 1] |= CLV__NODE_VIEW;
  return value;
}

static inline void small_pin(small *s, uint32_t device) { /* pins the last node */
  s->pins[s->problem.node_count - 1] = device;
}

/* Adds a weight to the last node, as its input number `operand`. `home`: the device where the user placed the weight;
 * CLV__NONE: not placed. */
static inline uint32_t small_weight(small *s, uint32_t operand, uint32_t home) {
  uint32_t weight = s->problem.weight_count++, at = s->weight_offsets[s->problem.node_count]++;
  s->weights[at] = weight;
  s->weight_operands[at] = operand;
  s->weight_homes[weight] = home;
  return weight;
}

/* Completes the problem. The last value is the output. */
static inline const clv__problem *small_end(small *s) {
  clv__problem *p = &s->problem;
  p->value_count = s->inputs + p->node_count;
  for (uint32_t r = 0; r < s->read_offsets[p->node_count]; ++r) ++s->reader_offsets[s->reads[r] + 1];
  for (uint32_t v = 0; v < p->value_count; ++v) s->reader_offsets[v + 1] += s->reader_offsets[v];
  uint32_t at[2 * SMALL_NODES];
  memcpy(at, s->reader_offsets, sizeof at);
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t r = s->read_offsets[n]; r < s->read_offsets[n + 1]; ++r) s->readers[at[s->reads[r]]++] = n;
    for (uint32_t d = 0; d < p->device_count; ++d)
      s->node_ns[n * p->device_count + d] = (s->supports[n] >> d & 1u) != 0 ? 1 : CLV__NO_TIME;
  }
  s->is_output[p->value_count - 1] = 1;
  p->spaces = s->spaces, p->limits = s->limits, p->launch_ns = s->launch_ns;
  p->read_offsets = s->read_offsets, p->reads = s->reads, p->write_offsets = s->write_offsets, p->writes = s->writes;
  p->supports = s->supports, p->prefers = s->prefers, p->pins = s->pins, p->flags = s->flags, p->node_ns = s->node_ns;
  p->producers = s->producers, p->reader_offsets = s->reader_offsets, p->readers = s->readers, p->is_output = s->is_output;
  p->value_bytes = s->value_bytes, p->in_ns = s->copies, p->out_ns = s->copies, p->value_homes = s->value_homes;
  p->weight_offsets = s->weight_offsets, p->weights = s->weights, p->weight_operands = s->weight_operands;
  p->weight_bytes = s->weight_bytes, p->weight_homes = s->weight_homes;
  return p;
}

/* Writes devices as a text, one digit per node: "001"; '-' for CLV__NONE. */
static inline const char *small_devices(const uint32_t *devices, uint32_t count, char *text) {
  for (uint32_t n = 0; n < count; ++n) text[n] = devices[n] == CLV__NONE ? '-' : (char)('0' + devices[n]);
  text[count] = '\0';
  return text;
}

#endif
