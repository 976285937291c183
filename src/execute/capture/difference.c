/* Finds the first difference of two keys of captures. Reads both keys field by field, in the order in which key.c writes them. Up
 * to the first difference both have the same fields, so one walk reads both. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "execute/capture/key.h"
#include "execute/capture/key_own.h"

enum { SHOWN = 8 }; /* how many numbers of a list are shown */

typedef struct cursor {
  const uint8_t *at, *end;
} cursor;

typedef struct comparison {
  cursor now, before;
  const char *const *nodes, *const *values; /* names, or NULL */
  uint32_t node_count, value_count;         /* seen so far */
  char *text;
  size_t size_bytes, used; /* `used`: the length of the location in `text`, which begins every message */
} comparison;

/* ---- Messages ---- */

static size_t append(comparison *c, size_t used, const char *format, va_list arguments) {
  int length = vsnprintf(c->text + used, c->size_bytes - used, format, arguments);
  size_t room = c->size_bytes - used - 1;
  return used + (length < 0 ? 0 : (size_t)length < room ? (size_t)length : room);
}

static CLV_PRINTF(2, 3) bool say(comparison *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(c, c->used, format, arguments);
  va_end(arguments);
  return true;
}

static CLV_PRINTF(2, 3) void enter(comparison *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  c->used = append(c, c->used, format, arguments);
  va_end(arguments);
}

/* ---- Fields ---- */

static uint64_t get(cursor *at) {
  uint64_t number = 0;
  for (uint32_t shift = 0; at->at < at->end && shift < 64; shift += 7) {
    uint8_t byte = *at->at++;
    number |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return number;
}

static int64_t get_signed(cursor *at) {
  uint64_t number = get(at);
  return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static const void *get_bytes(cursor *at, size_t size_bytes) {
  const uint8_t *bytes = at->at;
  size_t left = (size_t)(at->end - at->at);
  at->at += size_bytes < left ? size_bytes : left;
  return bytes;
}

static clv_string get_text(cursor *at) {
  size_t size_bytes = get(at);
  const char *data = get_bytes(at, size_bytes);
  return (clv_string){data, size_bytes};
}

static bool same_text(clv_string a, clv_string b) {
  return a.size_bytes == b.size_bytes && memcmp(a.data, b.data, a.size_bytes) == 0;
}

#define TEXT(string) (int)((string).size_bytes < 100 ? (string).size_bytes : 100), (string).data

static clv_tensor get_type(cursor *at) {
  clv_tensor type = {.dtype = (clv_dtype)get(at)};
  type.rank = (int32_t)get_signed(at);
  for (int32_t i = 0; i < type.rank && i < CLV_MAX_RANK; ++i) type.dims[i] = get_signed(at);
  return type;
}

/* Two unknown sizes count as equal if their codes in `dims` are equal. */
static bool same_type(const clv_tensor *a, const clv_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  return a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool say_types(comparison *c, const clv_tensor *now, const clv_tensor *before) {
  char is[160], was[160];
  clv__tensor_text(now, is, sizeof is);
  clv__tensor_text(before, was, sizeof was);
  return say(c, "%s, was %s", is, was);
}

/* Returns whether the two numbers differ; sets `now` in any case. */
static bool count_differs(comparison *c, const char *what, uint64_t *now) {
  *now = get(&c->now);
  uint64_t before = get(&c->before);
  return *now != before &&
         say(c, "%llu %s%s, was %llu", (unsigned long long)*now, what, *now == 1 ? "" : "s", (unsigned long long)before);
}

/* Writes "[1,2,3,…]", with up to SHOWN elements. */
static void list_text(const clv_tensor *list, size_t count, char *text, size_t size_bytes) {
  size_t used = (size_t)snprintf(text, size_bytes, "[");
  for (size_t i = 0; i < count && i < SHOWN && used < size_bytes; ++i) {
    used += (size_t)snprintf(text + used, size_bytes - used, "%s%.7g", i > 0 ? "," : "", clv__tensor_get(list, i));
  }
  if (used < size_bytes) snprintf(text + used, size_bytes - used, count > SHOWN ? ",...]" : "]");
}

/* Reports "[1,2], was [1,3]". In long lists the part shown begins at the first difference. */
static bool say_lists(comparison *c, const char *what, clv_dtype dtype, const void *now, const void *before, size_t count) {
  char is[160], was[160];
  size_t element = clv_dtype_size_bytes(dtype), first = 0;
  const uint8_t *a = now, *b = before;
  while (count > SHOWN && first + 1 < count && memcmp(a + first * element, b + first * element, element) == 0) ++first;
  /* The elements in a key are not aligned, so copy the elements to be shown. */
  uint64_t aligned[2][SHOWN];
  size_t shown = count - first < SHOWN ? count - first : SHOWN;
  memcpy(aligned[0], a + first * element, shown * element);
  memcpy(aligned[1], b + first * element, shown * element);
  clv_tensor lists[2] = {{.dtype = dtype, .data = aligned[0]}, {.dtype = dtype, .data = aligned[1]}};
  list_text(&lists[0], count - first, is, sizeof is);
  list_text(&lists[1], count - first, was, sizeof was);
  if (first == 0) return say(c, "%s%s, was %s", what, is, was);
  return say(c, "%sfrom element %zu on: %s, was %s", what, first, is, was);
}

/* Compares two constants of the same type. */
static bool content_differs(comparison *c, clv_dtype dtype) {
  uint64_t now = get(&c->now), before = get(&c->before);
  if (now != before)
    return say(c, "the size of the known content is %llu, was %llu", (unsigned long long)now, (unsigned long long)before);
  if (dtype == CLV_STRING) {
    for (uint64_t i = 0; i < now; ++i) {
      clv_string a = get_text(&c->now), b = get_text(&c->before);
      if (!same_text(a, b)) return say(c, "element %llu is '%.*s', was '%.*s'", (unsigned long long)i, TEXT(a), TEXT(b));
    }
    return false;
  }
  bool whole = now <= CLV__KEY_SMALL_BYTES;
  size_t size_bytes = whole ? now : CLV__HASH_BYTES, element = clv_dtype_size_bytes(dtype);
  const void *a = get_bytes(&c->now, size_bytes), *b = get_bytes(&c->before, size_bytes);
  if (memcmp(a, b, size_bytes) == 0) return false;
  if (!whole || element == 0) return say(c, "different content");
  return say_lists(c, "", dtype, a, b, now / element);
}

/* ---- Records ---- */

static void value_text(const comparison *c, uint64_t edge, char *text, size_t size_bytes) {
  if (edge == 0)
    snprintf(text, size_bytes, "absent");
  else if (edge > c->value_count)
    snprintf(text, size_bytes, "another value");
  else if (c->values != NULL)
    snprintf(text, size_bytes, "'%.100s'", c->values[edge - 1]);
  else
    snprintf(text, size_bytes, "value %llu", (unsigned long long)(edge - 1));
}

static const char *role(uint64_t flags) {
  return (flags & CLV__KEY_CAPTURE) != 0    ? "a value from outside the body"
         : (flags & CLV__KEY_CONSTANT) != 0 ? "a constant"
         : (flags & CLV__KEY_INPUT) != 0    ? (flags & CLV__KEY_OUTPUT) != 0 ? "both an input and an output" : "an input"
         : (flags & CLV__KEY_OUTPUT) != 0   ? "an output"
                                            : "internal";
}

/* Compares the value that was numbered last. */
static bool value_differs(comparison *c) {
  uint64_t now = get(&c->now), before = get(&c->before);
  clv_tensor type = get_type(&c->now), old = get_type(&c->before);
  char name[128], is[160], was[160];
  value_text(c, c->value_count, name, sizeof name);
  enter(c, "%s%s: ", c->values != NULL ? "value " : "", name);
  if (!same_type(&type, &old)) return say_types(c, &type, &old);
  if (((now ^ before) & ~(uint64_t)CLV__KEY_CONTENT) != 0) return say(c, "is %s, was %s", role(now), role(before));
  if (now != before) return say(c, "its content is %s", (now & CLV__KEY_CONTENT) != 0 ? "known now" : "no longer known");
  if ((now & CLV__KEY_CAPTURE) != 0) {
    now = get(&c->now);
    before = get(&c->before);
    if (now != before)
      return say(c, "is value %llu from outside the body, was %llu", (unsigned long long)now, (unsigned long long)before);
    now = CLV__KEY_CAPTURE;
  }
  uint64_t memory = get(&c->now), memory_before = get(&c->before);
  if (memory != memory_before) {
    value_text(c, memory, is, sizeof is);
    value_text(c, memory_before, was, sizeof was);
    return say(c, "shares memory with %s, previously with %s", memory == 0 ? "no earlier value" : is,
               memory_before == 0 ? "none" : was);
  }
  return (now & CLV__KEY_CONTENT) != 0 && content_differs(c, type.dtype);
}

static bool edges_differ(comparison *c, const char *what, size_t place) {
  uint64_t count;
  if (count_differs(c, what, &count)) return true;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t now = get(&c->now), before = get(&c->before);
    if (now != before) {
      char is[128], was[128];
      value_text(c, now, is, sizeof is);
      value_text(c, before, was, sizeof was);
      return say(c, "%s %llu is %s, was %s", what, (unsigned long long)i, is, was);
    }
    if (now <= c->value_count) continue;
    size_t used = c->used;
    c->used = place; /* messages about a value omit the node that uses it first */
    ++c->value_count;
    if (value_differs(c)) return true;
    c->used = used;
    c->text[used] = '\0';
  }
  return false;
}

static bool node_differs(comparison *c);
static bool nodes_differ(comparison *c, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (node_differs(c)) return true;
  }
  return false;
}

static bool body_differs(comparison *c) {
  comparison body = {.now = c->now, .before = c->before, .text = c->text, .size_bytes = c->size_bytes, .used = c->used};
  uint64_t count;
  bool differs = edges_differ(&body, "input", body.used) || count_differs(&body, "node", &count) || nodes_differ(&body, count) ||
                 edges_differ(&body, "output", body.used);
  c->now = body.now;
  c->before = body.before;
  return differs;
}

static bool floats_differ(comparison *c, size_t count) {
  const void *a = get_bytes(&c->now, count * sizeof(float)), *b = get_bytes(&c->before, count * sizeof(float));
  return memcmp(a, b, count * sizeof(float)) != 0 && say_lists(c, "", CLV_F32, a, b, count);
}

static bool ints_differ(comparison *c, size_t count) {
  int64_t now[SHOWN], before[SHOWN];
  for (size_t i = 0; i < count; i += SHOWN) {
    size_t some = count - i < SHOWN ? count - i : SHOWN;
    for (size_t k = 0; k < some; ++k) now[k] = get_signed(&c->now), before[k] = get_signed(&c->before);
    if (memcmp(now, before, some * sizeof *now) == 0) continue;
    return say_lists(c, i > 0 ? "further on: " : "", CLV_I64, now, before, some);
  }
  return false;
}

static bool strings_differ(comparison *c, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    clv_string a = get_text(&c->now), b = get_text(&c->before);
    if (!same_text(a, b)) return say(c, "'%.*s', was '%.*s'", TEXT(a), TEXT(b));
  }
  return false;
}

static bool tensors_differ(comparison *c) {
  clv_tensor type = get_type(&c->now), old = get_type(&c->before);
  return same_type(&type, &old) ? content_differs(c, type.dtype) : say_types(c, &type, &old);
}

static bool attribute_differs(comparison *c) {
  size_t used = c->used;
  clv_string name = get_text(&c->now), old = get_text(&c->before);
  if (!same_text(name, old)) return say(c, "attribute '%.*s', was '%.*s'", TEXT(name), TEXT(old));
  enter(c, "attribute '%.*s': ", TEXT(name));
  uint64_t kind = get(&c->now), old_kind = get(&c->before), is_list = get(&c->now), was_list = get(&c->before), count;
  if (kind != old_kind || is_list != was_list) return say(c, "of a different kind");
  if (count_differs(c, "element", &count)) return true;
  bool differs = kind == CLV_ATTRIBUTE_INTS      ? ints_differ(c, count)
                 : kind == CLV_ATTRIBUTE_FLOATS  ? floats_differ(c, count)
                 : kind == CLV_ATTRIBUTE_STRINGS ? strings_differ(c, count)
                 : kind == CLV_ATTRIBUTE_TENSOR  ? tensors_differ(c)
                                                 : body_differs(c);
  if (differs) return true;
  c->used = used;
  return false;
}

static bool node_differs(comparison *c) {
  size_t place = c->used;
  uint32_t index = c->node_count++;
  enter(c, "node %u", index);
  if (c->nodes != NULL) enter(c, " '%.100s'", c->nodes[index]);
  clv_string domain = get_text(&c->now), old_domain = get_text(&c->before);
  clv_string op = get_text(&c->now), old = get_text(&c->before);
  if (!same_text(op, old)) return say(c, ": %.*s, was %.*s", TEXT(op), TEXT(old));
  if (!same_text(domain, old_domain)) return say(c, ": of domain '%.*s', was '%.*s'", TEXT(domain), TEXT(old_domain));
  enter(c, " (%.*s): ", TEXT(op));
  uint64_t opset = get(&c->now), old_opset = get(&c->before), attributes;
  if (opset != old_opset) return say(c, "opset %llu, was %llu", (unsigned long long)opset, (unsigned long long)old_opset);
  if (count_differs(c, "attribute", &attributes)) return true;
  for (uint64_t i = 0; i < attributes; ++i) {
    if (attribute_differs(c)) return true;
  }
  if (edges_differ(c, "input", place) || edges_differ(c, "output", place)) return true;
  c->used = place;
  c->text[place] = '\0';
  return false;
}

static bool keys_differ(comparison *c) {
  clv_string device = get_text(&c->now), old = get_text(&c->before);
  if (!same_text(device, old)) return say(c, "device '%.*s', was '%.*s'", TEXT(device), TEXT(old));
  clv_string fingerprint = get_text(&c->now), old_fingerprint = get_text(&c->before);
  if (!same_text(fingerprint, old_fingerprint)) {
    return say(c, "device '%.*s': %.*s, was %.*s", TEXT(device), TEXT(fingerprint), TEXT(old_fingerprint));
  }
  uint64_t partitions, nodes;
  if (count_differs(c, "partition", &partitions) || count_differs(c, "node", &nodes)) return true;
  for (uint64_t p = 0; p < partitions; ++p) {
    size_t used = c->used;
    enter(c, "partition %llu: ", (unsigned long long)p);
    if (count_differs(c, "node", &nodes)) return true;
    c->used = used;
    c->text[used] = '\0';
    if (nodes_differ(c, nodes)) return true;
  }
  return false;
}

void clv__capture_key_difference(const clv__capture_key *now, const clv__capture_key *before, char *text, size_t size_bytes) {
  if (size_bytes == 0) return;
  comparison c = {.now = {now->bytes, now->bytes + now->size_bytes},
                  .before = {before->bytes, before->bytes + before->size_bytes},
                  .nodes = now->nodes,
                  .values = now->values,
                  .text = text,
                  .size_bytes = size_bytes};
  text[0] = '\0';
  if (!keys_differ(&c)) snprintf(text, size_bytes, "no difference");
}
