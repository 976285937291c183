/* Writes a profile as JSON: devices sorted by fingerprint, operators by signature, edges by their operators, blocks by key.
 * Equal tables therefore give equal bytes. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "cost/profile.h"

/* An item and its sort key. */
typedef struct entry {
  uint32_t index;
  uint32_t first, second;
  const char *text; /* NULL: sorted by the two numbers */
} entry;

static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->text != NULL) return strcmp(x->text, y->text);
  if (x->first != y->first) return (x->first > y->first) - (x->first < y->first);
  return (x->second > y->second) - (x->second < y->second);
}

typedef struct printing {
  clv__text *text;
  const clv__profile_device *device;
  entry *operators, *savings, *blocks, *terms; /* each in the order of the file */
  uint32_t *operator_ranks, *saving_ranks;     /* by index in the tables: position in the file */
} printing;

/* ---- Pieces ---- */

static bool is_utf8(const char *string) {
  json_t *value = json_string(string); /* NULL if it is not valid */
  json_decref(value);
  return value != NULL;
}

static void put_string(clv__text *text, const char *string) {
  bool good = is_utf8(string);
  clv__text_append(text, "\"");
  for (const unsigned char *at = (const unsigned char *)string; *at != '\0'; ++at) {
    if (*at == '"' || *at == '\\')
      clv__text_append(text, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7f || (*at >= 0x80 && !good))
      clv__text_append(text, "\\u%04x", *at < 0x80 ? *at : '?'); /* a device may have an invalid name, but the JSON stays valid */
    else
      clv__text_append_bytes(text, at, 1);
  }
  clv__text_append(text, "\"");
}

static void put_pair(clv__text *text, const char *indent, const char *key, const char *value) {
  clv__text_append(text, "%s\"%s\": ", indent, key);
  put_string(text, value);
  clv__text_append(text, ",\n");
}

static void put_measure(clv__text *text, const clv__measure *measure) {
  clv__text_append(text, "\"time_ns\": %" PRIu64 ", \"spread_ns\": %" PRIu64 ", \"runs\": %u", measure->time_ns,
                   measure->spread_ns, measure->runs);
}

/* Prints the terms as a list of [position in the file, count], such as [[3, 1], [7, 2]], sorted by position. */
static void put_terms(printing *p, const clv__profile_term *terms, uint32_t count, const uint32_t *ranks) {
  for (uint32_t i = 0; i < count; ++i) p->terms[i] = (entry){i, ranks[terms[i].index], terms[i].count, NULL};
  if (count > 1) qsort(p->terms, count, sizeof *p->terms, compare_entries);
  clv__text_append(p->text, "[");
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(p->text, "%s[%u, %u]", i > 0 ? ", " : "", p->terms[i].first, p->terms[i].second);
  }
  clv__text_append(p->text, "]");
}

/* ---- Tables ---- */

static void put_copies(clv__text *text, const clv__profile_device *device) {
  static const char *const names[] = {"in", "out", "pinned_in", "pinned_out"};
  clv__text_append(text, "      \"copies\": {");
  bool any = false;
  for (uint32_t kind = 0; kind < CLV__COPY_KINDS; ++kind) {
    if (device->copy_counts[kind] == 0) continue;
    clv__text_append(text, "%s\n        \"%s\": [", any ? "," : "", names[kind]);
    any = true;
    for (uint32_t i = 0; i < device->copy_counts[kind]; ++i) {
      const clv__profile_copy *copy = &device->copies[kind][i];
      clv__text_append(text, "%s\n          {\"bytes\": %" PRIu64 ", ", i > 0 ? "," : "", copy->size_bytes);
      put_measure(text, &copy->time);
      clv__text_append(text, "}");
    }
    clv__text_append(text, "\n        ]");
  }
  clv__text_append(text, any ? "\n      },\n" : "},\n");
}

static void put_operators(const printing *p) {
  clv__text *text = p->text;
  clv__text_append(text, "      \"operators\": [");
  for (uint32_t i = 0; i < p->device->operator_count; ++i) {
    const clv__profile_operator *o = &p->device->operators[p->operators[i].index];
    clv__text_append(text, "%s\n        {\"signature\": ", i > 0 ? "," : "");
    put_string(text, o->signature);
    clv__text_append(text, ", \"flops\": %.17g, \"bytes\": %.17g", o->flops, o->bytes);
    if (o->infeasible) clv__text_append(text, ", \"infeasible\": true");
    if (o->alone.runs > 0) {
      clv__text_append(text, ", ");
      put_measure(text, &o->alone);
    }
    if (o->has_within) clv__text_append(text, ", \"within_ns\": %" PRIu64, o->within_ns);
    if (o->scratch_bytes > 0) clv__text_append(text, ", \"scratch_bytes\": %" PRIu64, o->scratch_bytes);
    clv__text_append(text, "}");
  }
  clv__text_append(text, p->device->operator_count > 0 ? "\n      ],\n" : "],\n");
}

static void put_savings(const printing *p) {
  clv__text *text = p->text;
  clv__text_append(text, "      \"savings\": [");
  for (uint32_t i = 0; i < p->device->saving_count; ++i) {
    const clv__profile_saving *s = &p->device->savings[p->savings[i].index];
    clv__text_append(text, "%s\n        {\"producer\": %u, \"consumer\": %u, \"bytes\": %.17g, \"saving_ns\": %" PRIu64 "}",
                     i > 0 ? "," : "", p->savings[i].first, p->savings[i].second, s->bytes, s->saving_ns);
  }
  clv__text_append(text, p->device->saving_count > 0 ? "\n      ],\n" : "],\n");
}

static void put_blocks(printing *p) {
  clv__text *text = p->text;
  clv__text_append(text, "      \"blocks\": [");
  for (uint32_t i = 0; i < p->device->block_count; ++i) {
    const clv__profile_block *b = &p->device->blocks[p->blocks[i].index];
    clv__text_append(text, "%s\n        {\"key\": ", i > 0 ? "," : "");
    put_string(text, b->key);
    clv__text_append(text, ", ");
    put_measure(text, &b->total);
    clv__text_append(text, ", \"nodes\": ");
    put_terms(p, b->nodes, b->node_count, p->operator_ranks);
    clv__text_append(text, ", \"cut\": ");
    put_terms(p, b->edges, b->edge_count, p->saving_ranks);
    clv__text_append(text, "}");
  }
  clv__text_append(text, p->device->block_count > 0 ? "\n      ]\n" : "]\n");
}

/* ---- Devices ---- */

static bool sort_tables(printing *p, clv__arena *arena) {
  const clv__profile_device *device = p->device;
  uint32_t most = 0;
  for (uint32_t i = 0; i < device->block_count; ++i) {
    if (device->blocks[i].node_count > most) most = device->blocks[i].node_count;
    if (device->blocks[i].edge_count > most) most = device->blocks[i].edge_count;
  }
  p->operators = clv__arena_allocate_zero(arena, device->operator_count, sizeof *p->operators);
  p->savings = clv__arena_allocate_zero(arena, device->saving_count, sizeof *p->savings);
  p->blocks = clv__arena_allocate_zero(arena, device->block_count, sizeof *p->blocks);
  p->terms = clv__arena_allocate_zero(arena, most, sizeof *p->terms);
  p->operator_ranks = clv__arena_allocate_zero(arena, device->operator_count, sizeof *p->operator_ranks);
  p->saving_ranks = clv__arena_allocate_zero(arena, device->saving_count, sizeof *p->saving_ranks);
  if (p->operators == NULL || p->savings == NULL || p->blocks == NULL || p->terms == NULL || p->operator_ranks == NULL ||
      p->saving_ranks == NULL) {
    return false;
  }
  for (uint32_t i = 0; i < device->operator_count; ++i) p->operators[i] = (entry){i, 0, 0, device->operators[i].signature};
  if (device->operator_count > 1) qsort(p->operators, device->operator_count, sizeof *p->operators, compare_entries);
  for (uint32_t i = 0; i < device->operator_count; ++i) p->operator_ranks[p->operators[i].index] = i;
  for (uint32_t i = 0; i < device->saving_count; ++i) {
    const clv__profile_saving *s = &device->savings[i];
    p->savings[i] = (entry){i, p->operator_ranks[s->producer], p->operator_ranks[s->consumer], NULL};
  }
  if (device->saving_count > 1) qsort(p->savings, device->saving_count, sizeof *p->savings, compare_entries);
  for (uint32_t i = 0; i < device->saving_count; ++i) p->saving_ranks[p->savings[i].index] = i;
  for (uint32_t i = 0; i < device->block_count; ++i) p->blocks[i] = (entry){i, 0, 0, device->blocks[i].key};
  if (device->block_count > 1) qsort(p->blocks, device->block_count, sizeof *p->blocks, compare_entries);
  return true;
}

static bool put_device(printing *p, const clv_allocator *allocator) {
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  bool sorted = sort_tables(p, &arena);
  if (sorted) {
    const clv__profile_device *device = p->device;
    clv__text_append(p->text, "    {\n");
    put_pair(p->text, "      ", "fingerprint", device->fingerprint);
    put_pair(p->text, "      ", "name", device->name);
    put_pair(p->text, "      ", "kind", device->kind);
    put_pair(p->text, "      ", "description", device->description);
    put_pair(p->text, "      ", "measured", device->measured);
    clv__text_append(p->text, "      \"launch\": {");
    put_measure(p->text, &device->launch);
    clv__text_append(p->text, "},\n      \"peaks\": {\"flops_per_second\": %.17g, \"bytes_per_second\": %.17g},\n",
                     device->flops_per_second, device->bytes_per_second);
    put_copies(p->text, device);
    put_operators(p);
    put_savings(p);
    put_blocks(p);
    clv__text_append(p->text, "    }");
  }
  clv__arena_finish(&arena);
  return sorted;
}

static int compare_devices(const void *a, const void *b) {
  return strcmp((*(const clv__profile_device *const *)a)->fingerprint, (*(const clv__profile_device *const *)b)->fingerprint);
}

clv_status clv__profile_print(const clv__profile *profile, clv__text *text, clv_error *error) {
  const clv_allocator *allocator = profile->arena.allocator;
  size_t size_bytes = profile->device_count * sizeof(clv__profile_device *);
  const clv__profile_device **devices = clv__allocate(allocator, size_bytes);
  if (devices == NULL) return clv__error_memory(error, size_bytes);
  if (profile->device_count > 0) {
    memcpy((void *)devices, (const void *)profile->devices, size_bytes);
    qsort((void *)devices, profile->device_count, sizeof *devices, compare_devices);
  }
  clv__text_append(text, "{\n  \"format\": \"cleave-profile\",\n  \"version\": %d,\n%s  \"host\": {\n", CLV__PROFILE_VERSION,
                   profile->is_partial ? "  \"partial\": true,\n" : "");
  put_pair(text, "    ", "processor", profile->host_processor);
  put_pair(text, "    ", "system", profile->host_system);
  clv__text_append(text, "    \"cleave\": ");
  put_string(text, profile->cleave_version);
  clv__text_append(text, "\n  },\n  \"devices\": [");
  bool good = true;
  for (uint32_t d = 0; d < profile->device_count && good; ++d) {
    printing p = {.text = text, .device = devices[d]};
    clv__text_append(text, d > 0 ? ",\n" : "\n");
    good = put_device(&p, allocator);
  }
  clv__text_append(text, profile->device_count > 0 ? "\n  ]\n}\n" : "]\n}\n");
  clv__release(allocator, (void *)devices);
  return good && !text->failed ? CLV_OK : clv__error_memory(error, text->size_bytes);
}

clv_status clv__profile_write(const clv__profile *profile, const char *path, clv_error *error) {
  clv__text text;
  clv__text_init(&text, profile->arena.allocator);
  clv_status status = clv__profile_print(profile, &text, error);
  if (status == CLV_OK) status = clv__file_write(path, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}
