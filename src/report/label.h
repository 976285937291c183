/* Formats names, types, sizes and times for people, so that they look the same in texts, tables and pictures. Functions that
 * have a parameter `label` write into this array and return it. */
#ifndef CLEAVE_REPORT_LABEL_H
#define CLEAVE_REPORT_LABEL_H

#include "base/text.h"
#include "plan/plan.h"

enum { CLV__LABEL_BYTES = 32 };

/* A size: "832 B", "1.2 KiB", "97.5 MiB". */
const char *clv__label_size(uint64_t size_bytes, char label[CLV__LABEL_BYTES]);
/* A count or a number of FLOPs, with decimal prefixes: "832", "12.0 k", "4.1 G". */
const char *clv__label_count(double count, char label[CLV__LABEL_BYTES]);
/* A time with about three digits: "812 ns", "4.13 µs", "3.42 ms", "1.20 s". */
const char *clv__label_time(uint64_t time_ns, char label[CLV__LABEL_BYTES]);
/* A gap, which is (time - bound) / bound: "0.7 %", "281 %". If the time is at least ten times the bound, their quotient: "×29".
 * If the gap is negative, it is unknown: "–". */
const char *clv__label_gap(double gap, char label[CLV__LABEL_BYTES]);
/* The operator's name in the format of the model: Concat, aten.cat.default. */
static inline const char *clv__label_op(const clv__node *node) {
  return node->source_op[0] != '\0' ? node->source_op : node->op;
}
/* Appends a count and a noun: "1 node", "5 nodes", "1,234 nodes". */
void clv__label_plural(clv__text *text, uint64_t count, const char *singular);
/* A number with separators: "1,234,567". */
const char *clv__label_grouped(uint64_t number, char label[CLV__LABEL_BYTES]);

/* Appends a name, with control characters and invalid UTF-8 as escapes, because a name from a file must not control a terminal or
 * break a line. */
void clv__label_name(clv__text *text, const char *name);
/* Appends a name like clv__label_name(), but at most `columns` columns of it: "…" replaces the middle of a longer name. */
void clv__label_short(clv__text *text, const char *name, size_t columns);
/* Appends an element of a tensor: "0.25", "-3", "true", "\"text\"". Strings are shortened, and are made safe like names. */
void clv__label_element(clv__text *text, const clv_tensor *tensor, size_t index);
/* Appends a type, with the names of symbolic sizes: "f32[1,3,N,?]". */
void clv__label_type(clv__text *text, const clv_graph *graph, const clv_tensor *type);
/* Returns a name for a memory space: that of its device or, if several devices share the space, that of the space. In transfers
 * of the graph's inputs, outputs or weights (`boundary` is not CLV__BOUNDARY_INNER), host memory is always "host". */
const char *clv__label_space(const clv_plan *plan, uint32_t space, clv__boundary boundary);
/* Appends the operators of a partition, the most frequent first, at most `limit` of them: "Conv ×23, Relu ×17, Add ×8, …". */
void clv__label_operators(clv__text *text, const clv_graph *graph, const clv_node_id *nodes, uint32_t count, uint32_t limit);
/* Returns the number of terminal columns of a text. Combining marks have no column, wide characters two. */
size_t clv__label_columns(const char *text);
/* Decodes one UTF-8 character; an invalid byte counts as one character, 0xfffd. Returns the number of bytes read, 0 at the
 * end. */
size_t clv__label_decode(const char *text, uint32_t *character);
/* Returns the number of columns of one character. */
size_t clv__label_width(uint32_t character);

/* Appends text escaped for XML elements and attributes; characters not allowed in XML 1.0 become U+FFFD. */
void clv__label_xml(clv__text *text, const char *name);

#endif
