/* Helpers that build a small profile entry by entry, for tests of profile files and of prices. */
#ifndef CLEAVE_TESTS_PROFILES_H
#define CLEAVE_TESTS_PROFILES_H

#include <string.h>

#include "cost/profile.h"
#include "support.h"

typedef struct made_profile {
  clv__profile *profile;
  clv__profile_device *device;
} made_profile;

static inline void profile_begin(made_profile *p, const clv_allocator *allocator, const char *fingerprint) {
  clv_error error = {0};
  assert_ok(clv__profile_create(allocator, &p->profile, &error), error);
  assert_ok(clv__profile_find_or_add_device(p->profile, fingerprint, &p->device, &error), error);
  p->device->name = "cpu", p->device->kind = "cpu", p->device->description = "made up", p->device->measured = "2026-11-21";
  p->device->launch = (clv__measure){2000, 10, 50};
  p->device->flops_per_second = 1e9;
  p->device->bytes_per_second = 1e9;
}

static inline uint32_t profile_operator(made_profile *p, const char *signature, uint64_t alone_ns, uint64_t within_ns) {
  clv_error error = {0};
  uint32_t index;
  assert_ok(clv__profile_find_or_add_operator(p->profile, p->device, signature, &index, &error), error);
  p->device->operators[index].flops = 1000;
  p->device->operators[index].bytes = 4000;
  p->device->operators[index].alone = (clv__measure){alone_ns, 5, 9};
  p->device->operators[index].has_within = true;
  p->device->operators[index].within_ns = within_ns;
  return index;
}

static inline uint32_t profile_saving(made_profile *p, uint32_t producer, uint32_t consumer, uint64_t saving_ns) {
  clv_error error = {0};
  uint32_t index;
  assert_ok(clv__profile_find_or_add_saving(p->profile, p->device, producer, consumer, 1024, &index, &error), error);
  p->device->savings[index].saving_ns = saving_ns;
  return index;
}

static inline void profile_block(made_profile *p, const char *key, uint64_t time_ns, const clv__profile_term *nodes,
                                 uint32_t node_count, const clv__profile_term *edges, uint32_t edge_count) {
  clv_error error = {0};
  const clv__profile_block block = {key, {time_ns, 1, 9}, node_count, nodes, edge_count, edges};
  assert_ok(clv__profile_put_block(p->profile, p->device, &block, &error), error);
}

static inline void profile_text(const clv__profile *profile, clv__text *text) {
  clv_error error = {0};
  clv__text_init(text, clv__allocator_default());
  assert_ok(clv__profile_print(profile, text, &error), error);
}

#endif
