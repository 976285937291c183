/* See label.h. */
#include "report/label.h"

#include "cleave/label.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *clv__label_size(uint64_t size_bytes, char label[CLV__LABEL_BYTES]) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (size_bytes < 1024) {
    snprintf(label, CLV__LABEL_BYTES, "%" PRIu64 " B", size_bytes);
    return label;
  }
  double amount = (double)size_bytes / 1024;
  size_t unit = 0;
  while (amount >= 1023.95 && unit + 1 < sizeof units / sizeof *units) {
    amount /= 1024;
    ++unit;
  }
  snprintf(label, CLV__LABEL_BYTES, "%.1f %s", amount, units[unit]);
  return label;
}

const char *clv__label_count(double count, char label[CLV__LABEL_BYTES]) {
  static const char *const units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (count >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
    count /= 1000;
    ++unit;
  }
  snprintf(label, CLV__LABEL_BYTES, unit == 0 ? "%.0f%s" : "%.1f%s", count, units[unit]);
  return label;
}

const char *clv__label_time(uint64_t time_ns, char label[CLV__LABEL_BYTES]) {
  static const char *const units[] = {"µs", "ms", "s"};
  if (time_ns < 1000) {
    snprintf(label, CLV__LABEL_BYTES, "%" PRIu64 " ns", time_ns);
    return label;
  }
  double amount = (double)time_ns / 1000;
  size_t unit = 0;
  while (amount >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
    amount /= 1000;
    ++unit;
  }
  int digits = amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  snprintf(label, CLV__LABEL_BYTES, "%.*f %s", digits, amount, units[unit]);
  return label;
}

const char *clv__label_gap(double gap, char label[CLV__LABEL_BYTES]) {
  if (gap < 0)
    snprintf(label, CLV__LABEL_BYTES, "–");
  else if (gap < 9)
    snprintf(label, CLV__LABEL_BYTES, gap < 1 ? "%.1f %%" : "%.0f %%", gap * 100);
  else
    snprintf(label, CLV__LABEL_BYTES, gap < 1e15 ? "×%.0f" : "×%.1g", gap + 1);
  return label;
}

const char *clv__label_grouped(uint64_t number, char label[CLV__LABEL_BYTES]) {
  char digits[24];
  int count = snprintf(digits, sizeof digits, "%" PRIu64, number);
  char *to = label;
  for (int i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return label;
}

void clv__label_plural(clv__text *text, uint64_t count, const char *singular) {
  char number[CLV__LABEL_BYTES];
  clv__text_append(text, "%s %s%s", clv__label_grouped(count, number), singular, count == 1 ? "" : "s");
}

size_t clv__label_decode(const char *text, uint32_t *character) {
  const unsigned char *bytes = (const unsigned char *)text;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (bytes[0] == 0) return 0;
  size_t length = bytes[0] < 0x80 ? 1 : bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
  *character = 0xfffd;
  if (length == 1) {
    *character = bytes[0];
    return 1;
  }
  if (bytes[0] < 0xc2 || bytes[0] > 0xf4) return 1;
  uint32_t value = bytes[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((bytes[i] & 0xc0) != 0x80) return 1;
    value = value << 6 | (bytes[i] & 0x3f);
  }
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 1;
  *character = value;
  return length;
}

/* Unicode blocks whose characters occupy no column or two columns of a terminal. */
static const struct block {
  uint32_t first, last;
  size_t columns;
} blocks[] = {
    {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x064b, 0x065f, 0}, {0x1100, 0x115f, 2},
    {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x202a, 0x202e, 0}, {0x20d0, 0x20ff, 0},
    {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},
    {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2},
    {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
};

size_t clv__label_width(uint32_t character) {
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks && character >= blocks[i].first; ++i) {
    if (character <= blocks[i].last) return blocks[i].columns;
  }
  return 1;
}

size_t clv__label_columns(const char *text) {
  size_t columns = 0, length;
  uint32_t character;
  for (; (length = clv__label_decode(text, &character)) > 0; text += length) columns += clv__label_width(character);
  return columns;
}

/* Returns whether a character controls the terminal, starts a line or changes the direction of writing. */
static bool is_unsafe(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 ||
         c == 0x2029;
}

void clv__label_name(clv__text *text, const char *name) {
  uint32_t character;
  for (size_t length; (length = clv__label_decode(name, &character)) > 0; name += length) {
    if (length == 1 && character == 0xfffd)
      clv__text_append(text, "\\x%02x", (unsigned char)*name);
    else if (character == '\n')
      clv__text_append(text, "\\n");
    else if (character == '\t')
      clv__text_append(text, "\\t");
    else if (character == '\r')
      clv__text_append(text, "\\r");
    else if (is_unsafe(character))
      clv__text_append(text, character < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)character);
    else
      clv__text_append_bytes(text, name, length);
  }
}

/* Returns the length in bytes of the longest prefix of `text` that occupies at most `columns` columns. */
static size_t fitting_bytes(const char *text, size_t columns) {
  size_t bytes = 0, length;
  uint32_t character;
  while ((length = clv__label_decode(text + bytes, &character)) > 0) {
    size_t width = clv__label_width(character);
    if (width > columns) break;
    columns -= width;
    bytes += length;
  }
  return bytes;
}

void clv__label_short(clv__text *text, const char *name, size_t columns) {
  clv__text clean;
  clv__text_init(&clean, text->allocator);
  clv__label_name(&clean, name);
  size_t total = clv__label_columns(clean.data);
  if (clean.failed) {
    text->failed = true;
  } else if (total <= columns || columns < 3) {
    clv__text_append_bytes(text, clean.data, total <= columns ? clean.size_bytes : fitting_bytes(clean.data, columns));
  } else {
    size_t tail = (columns - 1) / 2, head = columns - 1 - tail;
    clv__text_append_bytes(text, clean.data, fitting_bytes(clean.data, head));
    clv__text_append(text, "…");
    const char *rest = clean.data + fitting_bytes(clean.data, total - tail);
    clv__text_append(text, "%s", rest);
  }
  clv__text_finish(&clean);
}

static void append_string(clv__text *text, const clv_string *string) {
  enum { MOST_BYTES = 200, MOST_COLUMNS = 40 };
  char copy[MOST_BYTES + 1];
  size_t size_bytes = string->size_bytes < MOST_BYTES ? string->size_bytes : MOST_BYTES;
  if (size_bytes > 0) memcpy(copy, string->data, size_bytes);
  copy[size_bytes] = '\0'; /* a zero within the string ends it here */
  clv__text_append(text, "\"");
  clv__label_short(text, copy, MOST_COLUMNS);
  clv__text_append(text, "\"");
}

void clv__label_element(clv__text *text, const clv_tensor *tensor, size_t index) {
  if (tensor->dtype == CLV_STRING)
    append_string(text, (const clv_string *)tensor->data + index);
  else if (tensor->dtype == CLV_BOOL)
    clv__text_append(text, "%s", clv__tensor_get(tensor, index) != 0 ? "true" : "false");
  else if (tensor->dtype == CLV_U64)
    clv__text_append(text, "%" PRIu64, ((const uint64_t *)tensor->data)[index]);
  else if (clv__dtype_is_in(tensor->dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT))
    clv__text_append(text, tensor->dtype == CLV_F64 ? "%.9g" : "%.6g", clv__tensor_get(tensor, index));
  else
    clv__text_append(text, "%" PRId64, clv__tensor_get_int(tensor, index));
}

void clv__label_type(clv__text *text, const clv_graph *graph, const clv_tensor *type) {
  clv__text_append(text, "%s", type->dtype == CLV_DTYPE_NONE ? "?" : clv_dtype_name(type->dtype));
  if (type->rank < 0) {
    clv__text_append(text, "[…]");
    return;
  }
  clv__text_append(text, "[");
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t dim = type->dims[i];
    if (i > 0) clv__text_append(text, ",");
    if (dim >= 0)
      clv__text_append(text, "%" PRId64, dim);
    else if (dim != CLV_DIM_UNKNOWN && (uint64_t)(-2 - dim) < graph->symbol_count)
      clv__label_name(text, graph->symbols[-2 - dim]);
    else
      clv__text_append(text, "?");
  }
  clv__text_append(text, "]");
}

const char *clv__label_space(const clv_plan *plan, uint32_t space, clv__boundary boundary) {
  const clv_devices *devices = plan->devices;
  const char *name = devices->spaces[space];
  if (space == CLV__SPACE_HOST && boundary != CLV__BOUNDARY_INNER) return name;
  const char *only = NULL;
  uint32_t count = 0;
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (devices->items[d].space != space) continue;
    only = devices->items[d].name;
    ++count;
  }
  return count == 1 ? only : name;
}

typedef struct tally {
  const char *op;
  uint32_t count;
} tally;

void clv__label_operators(clv__text *text, const clv_graph *graph, const clv_node_id *nodes, uint32_t count, uint32_t limit) {
  enum { MOST = 256 }; /* number of different operators that are counted; further ones are ignored */
  tally tallies[MOST];
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const char *op = clv__label_op(&graph->nodes[nodes[i]]);
    uint32_t k = 0;
    while (k < kinds && strcmp(tallies[k].op, op) != 0) ++k;
    if (k == kinds && kinds == MOST) continue;
    if (k == kinds) tallies[kinds++] = (tally){op, 0};
    ++tallies[k].count;
  }
  for (uint32_t shown = 0; shown < kinds; ++shown) {
    if (shown == limit) {
      clv__text_append(text, ", …");
      return;
    }
    uint32_t best = shown; /* stable selection: the first of equal entries stays first */
    for (uint32_t k = shown + 1; k < kinds; ++k) {
      if (tallies[k].count > tallies[best].count) best = k;
    }
    tally chosen = tallies[best];
    memmove(&tallies[shown + 1], &tallies[shown], (best - shown) * sizeof *tallies);
    tallies[shown] = chosen;
    if (shown > 0) clv__text_append(text, ", ");
    clv__label_name(text, chosen.op);
    if (chosen.count > 1) clv__text_append(text, " ×%u", chosen.count);
  }
}

void clv__label_xml(clv__text *text, const char *name) {
  uint32_t character;
  for (size_t length; (length = clv__label_decode(name, &character)) > 0; name += length) {
    bool allowed = character >= 0x20 ? character != 0xfffe && character != 0xffff : character == '\n' || character == '\t';
    if (!allowed || (length == 1 && character == 0xfffd))
      clv__text_append(text, "\xef\xbf\xbd");
    else if (character == '&')
      clv__text_append(text, "&amp;");
    else if (character == '<')
      clv__text_append(text, "&lt;");
    else if (character == '>')
      clv__text_append(text, "&gt;");
    else if (character == '"')
      clv__text_append(text, "&quot;");
    else if (character == '\'')
      clv__text_append(text, "&#39;");
    else
      clv__text_append_bytes(text, name, length);
  }
}

size_t clv_label_name(const char *name, uint32_t columns, char *text, size_t size_bytes) {
  clv__text made;
  clv__text_init(&made, clv__allocator_default());
  if (columns > 0)
    clv__label_short(&made, name, columns);
  else
    clv__label_name(&made, name);
  const size_t needed = made.size_bytes;
  size_t kept = needed;
  if (size_bytes > 0) {
    if (kept >= size_bytes) kept = size_bytes - 1;
    while (kept < needed && kept > 0 && ((unsigned char)made.data[kept] & 0xc0u) == 0x80u) --kept; /* inside a character */
    memcpy(text, made.data, kept);
    text[kept] = '\0';
  }
  clv__text_finish(&made);
  return needed;
}
