/* See scopes.h. The order takes one ready node after the other: a node is ready when all nodes that it reads were taken. The
 * next node is the ready one with the lowest number in the innermost scope that contains the node taken before it and has a
 * ready node. A tree of minima over the nodes, sorted by scope, finds it in logarithmic time. */
#include "report/picture/scopes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* ---- Names ---- */

/* Returns whether a scope ends at `at`. Scopes are separated by '/', or by '.' in names without '/'. A number belongs to the word
 * before it: the scopes of "layers.3.output.linear" are "layers.3" and "layers.3.output". */
static bool ends_scope(const char *at, bool slashes) {
  if (slashes) return *at == '/';
  if (*at != '.') return false;
  size_t digits = strspn(at + 1, "0123456789");
  return digits == 0 || (at[1 + digits] != '.' && at[1 + digits] != '\0');
}

typedef struct naming {
  clv__scopes *scopes;
  clv__arena *arena;
  clv__map numbers; /* path -> scope */
  size_t name_capacity, part_capacity;
} naming;

/* Adds a scope. `key` and `name`: NULL for a part. Returns CLV__NO_SCOPE if memory runs out. */
static uint32_t add_scope(naming *n, const char *key, const char *name, uint32_t part) {
  clv__scopes *s = n->scopes;
  const clv_allocator *allocator = n->arena->allocator;
  if (!clv__array_reserve(allocator, (void **)&s->names, &n->name_capacity, s->count + 1, sizeof *s->names, s->count) ||
      !clv__array_reserve(allocator, (void **)&s->parts, &n->part_capacity, s->count + 1, sizeof *s->parts, s->count) ||
      (key != NULL && !clv__map_set(&n->numbers, key, s->count))) {
    return CLV__NO_SCOPE;
  }
  s->names[s->count] = name;
  s->parts[s->count] = part;
  return s->count++;
}

/* Sets the path of a node from its name. The last word of a name is the node's own. */
static bool split_name(naming *n, const char *name, uint32_t depth, uint32_t path[CLV__MOST_SCOPES]) {
  enum { PART_DIGITS = 8 }; /* keys begin with the part's scope: equal names in different parts are different scopes */
  bool slashes = strchr(name, '/') != NULL;
  name += strspn(name, "/");
  for (const char *at = name; *at != '\0' && depth < CLV__MOST_SCOPES; ++at) {
    if (at == name || at[-1] == '/' || !ends_scope(at, slashes)) continue;
    char *key = clv__arena_allocate(n->arena, PART_DIGITS + (size_t)(at - name) + 1);
    if (key == NULL) return false;
    snprintf(key, PART_DIGITS + 1, "%08x", path[0] * (depth > 0 && n->scopes->names[path[0]] == NULL));
    memcpy(key + PART_DIGITS, name, (size_t)(at - name));
    key[PART_DIGITS + (size_t)(at - name)] = '\0';
    uint32_t scope = clv__map_find(&n->numbers, key);
    if (scope == CLV__MAP_NONE) scope = add_scope(n, key, key + PART_DIGITS, 0);
    if (scope == CLV__NO_SCOPE) return false;
    path[depth++] = scope;
  }
  return true;
}

static bool name_parts(naming *n, const clv__groups_input *input) {
  uint32_t most = 0;
  for (uint32_t v = 0; v < input->node_count; ++v) most = input->parts[v] > most ? input->parts[v] : most;
  for (uint32_t p = 0; p <= most; ++p) {
    if (add_scope(n, NULL, NULL, p) == CLV__NO_SCOPE) return false;
  }
  for (uint32_t v = 0; v < input->node_count; ++v) n->scopes->paths[v][0] = input->parts[v] + 1;
  return true;
}

bool clv__scopes_make(const clv__groups_input *input, clv__arena *arena, clv__scopes *scopes) {
  *scopes = (clv__scopes){0};
  naming n = {.scopes = scopes, .arena = arena};
  clv__map_init(&n.numbers, arena->allocator);
  scopes->paths = clv__arena_allocate_zero(arena, (size_t)input->node_count + 1, sizeof *scopes->paths);
  bool done = scopes->paths != NULL;
  if (done) {
    (void)add_scope(&n, NULL, NULL, 0); /* the first scope is CLV__NO_SCOPE */
    done = scopes->count == 1 && (input->parts == NULL || name_parts(&n, input));
  }
  for (uint32_t v = 0; done && v < input->node_count; ++v) {
    done = split_name(&n, input->names[v], input->parts != NULL, scopes->paths[v]);
  }
  /* Move the growing arrays into the arena. */
  const char **names = scopes->names;
  uint32_t *parts = scopes->parts;
  scopes->names = done ? clv__arena_copy(arena, names, scopes->count * sizeof *names) : NULL;
  scopes->parts = done ? clv__arena_copy(arena, parts, scopes->count * sizeof *parts) : NULL;
  clv__release(arena->allocator, names);
  clv__release(arena->allocator, parts);
  clv__map_finish(&n.numbers);
  return done && scopes->names != NULL && scopes->parts != NULL;
}

/* ---- Order ---- */

typedef struct slot { /* one per node, sorted by scope */
  const uint32_t *path;
  uint32_t node;
} slot;

static int compare_slots(const void *a, const void *b) {
  const slot *x = a, *y = b;
  for (uint32_t d = 0; d < CLV__MOST_SCOPES; ++d) {
    if (x->path[d] != y->path[d]) return x->path[d] < y->path[d] ? -1 : 1;
    if (x->path[d] == CLV__NO_SCOPE) break;
  }
  return (x->node > y->node) - (x->node < y->node);
}

typedef struct ordering {
  uint32_t leaf_count;                /* a power of two */
  uint32_t *tree;                     /* minima of ready nodes; the leaves are from leaf_count on */
  uint32_t *slot_of;                  /* indexed by node */
  uint32_t *low, *high;               /* by scope: its slots are low[scope] up to but excluding high[scope] */
  uint32_t *waits;                    /* indexed by node: the number of edges to it from nodes that were not taken yet */
  uint32_t *reader_offsets, *readers; /* CSR by node */
} ordering;

static void set_ready(ordering *o, uint32_t node, bool ready) {
  uint32_t at = o->leaf_count + o->slot_of[node];
  o->tree[at] = ready ? node : UINT32_MAX;
  for (at /= 2; at > 0; at /= 2) {
    uint32_t a = o->tree[2 * at], b = o->tree[2 * at + 1];
    o->tree[at] = a < b ? a : b;
  }
}

/* Returns the first ready node of slots `low` up to but excluding `high`, or UINT32_MAX. */
static uint32_t first_ready(const ordering *o, uint32_t low, uint32_t high) {
  uint32_t least = UINT32_MAX;
  for (low += o->leaf_count, high += o->leaf_count; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1 && o->tree[low++] < least) least = o->tree[low - 1];
    if (high % 2 == 1 && o->tree[--high] < least) least = o->tree[high];
  }
  return least;
}

static bool prepare(const clv__groups_input *in, const clv__scopes *scopes, clv__arena *arena, ordering *o) {
  size_t count = (size_t)in->node_count + 1;
  for (o->leaf_count = 1; o->leaf_count < in->node_count;) o->leaf_count *= 2;
  slot *slots = clv__arena_allocate_zero(arena, count, sizeof *slots);
  o->tree = clv__arena_allocate_zero(arena, 2 * (size_t)o->leaf_count + 2, sizeof *o->tree);
  o->slot_of = clv__arena_allocate_zero(arena, count, sizeof *o->slot_of);
  o->low = clv__arena_allocate_zero(arena, scopes->count, sizeof *o->low);
  o->high = clv__arena_allocate_zero(arena, scopes->count, sizeof *o->high);
  o->waits = clv__arena_allocate_zero(arena, count, sizeof *o->waits);
  o->reader_offsets = clv__arena_allocate_zero(arena, count + 1, sizeof *o->reader_offsets);
  o->readers = clv__arena_allocate_zero(arena, (size_t)in->edge_count + 1, sizeof *o->readers);
  if (slots == NULL || o->tree == NULL || o->slot_of == NULL || o->low == NULL || o->high == NULL || o->waits == NULL ||
      o->reader_offsets == NULL || o->readers == NULL) {
    return false;
  }
  memset(o->tree, 0xff, 2 * (size_t)o->leaf_count * sizeof *o->tree);
  for (uint32_t v = 0; v < in->node_count; ++v) slots[v] = (slot){scopes->paths[v], v};
  qsort(slots, in->node_count, sizeof *slots, compare_slots);
  for (uint32_t i = 0; i < in->node_count; ++i) {
    o->slot_of[slots[i].node] = i;
    for (uint32_t d = 0; d < CLV__MOST_SCOPES && slots[i].path[d] != CLV__NO_SCOPE; ++d) {
      uint32_t scope = slots[i].path[d];
      if (o->high[scope] == 0) o->low[scope] = i;
      o->high[scope] = i + 1;
    }
  }
  for (uint32_t e = 0; e < in->edge_count; ++e) {
    ++o->waits[in->to[e]];
    ++o->reader_offsets[in->from[e] + 2];
  }
  for (uint32_t v = 0; v < in->node_count; ++v) o->reader_offsets[v + 2] += o->reader_offsets[v + 1];
  for (uint32_t e = 0; e < in->edge_count; ++e) o->readers[o->reader_offsets[in->from[e] + 1]++] = in->to[e];
  return true;
}

bool clv__scopes_order(const clv__groups_input *input, const clv__scopes *scopes, clv__arena *arena, uint32_t *order) {
  ordering o;
  if (!prepare(input, scopes, arena, &o)) return false;
  for (uint32_t v = 0; v < input->node_count; ++v) {
    if (o.waits[v] == 0) set_ready(&o, v, true);
  }
  for (uint32_t i = 0; i < input->node_count; ++i) {
    uint32_t next = UINT32_MAX;
    for (uint32_t d = i > 0 ? CLV__MOST_SCOPES : 0; d > 0 && next == UINT32_MAX; --d) {
      uint32_t scope = scopes->paths[order[i - 1]][d - 1];
      if (scope != CLV__NO_SCOPE) next = first_ready(&o, o.low[scope], o.high[scope]);
    }
    if (next == UINT32_MAX) next = o.tree[1];
    order[i] = next;
    set_ready(&o, next, false);
    for (uint32_t k = o.reader_offsets[next]; k < o.reader_offsets[next + 1]; ++k) {
      if (--o.waits[o.readers[k]] == 0) set_ready(&o, o.readers[k], true);
    }
  }
  return true;
}
