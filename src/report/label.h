/* Formats names, types and sizes for people, in the same way in texts, tables and pictures. */
#ifndef CLEAVE_REPORT_LABEL_H
#define CLEAVE_REPORT_LABEL_H

#include "base/text.h"
#include "plan/plan.h"

enum { CLV__LABEL_BYTES = 32 };

/* "832 B", "1.2 KiB", "97.5 MiB". Returns `label`. */
const char *clv__label_size(uint64_t size_bytes, char label[CLV__LABEL_BYTES]);
/* "4.1 G", "832", "12.0 k": decimal, for FLOPs and counts. */
const char *clv__label_count(double count, char label[CLV__LABEL_BYTES]);
/* "812 ns", "4.13 µs", "3.42 ms", "1.20 s"; about three digits. */
const char *clv__label_time(uint64_t time_ns, char label[CLV__LABEL_BYTES]);
/* A gap, (time - bound) / bound: "0.7 %", "281 %", and "×29" if the time is at least ten times the bound. "–" if it is
 * negative, meaning unknown. */
const char *clv__label_gap(double gap, char label[CLV__LABEL_BYTES]);
/* The operator's name in the format of the model: Concat, aten.cat.default. */
static inline const char *clv__label_op(const clv__node *node) {
  return node->source_op[0] != '\0' ? node->source_op : node->op;
}
/* "1 node", "5 nodes", "1,234 nodes". */
void clv__label_plural(clv__text *text, uint64_t count, const char *singular);
/* "1,234,567". */
const char *clv__label_grouped(uint64_t number, char label[CLV__LABEL_BYTES]);

/* Appends a name, with control characters and invalid UTF-8 written as escapes: a name from a file must not control a terminal
 * or break a line. */
void clv__label_name(clv__text *text, const char *name);
/* The same with at most `columns` columns: "…" replaces the middle of a longer name. */
void clv__label_short(clv__text *text, const char *name, size_t columns);
/* "f32[1,3,N,?]", with the names of the symbols. */
void clv__label_type(clv__text *text, const clv_graph *graph, const clv_tensor *type);
/* The name of a memory space: the name of its only device; if several devices share it, the name of the space. Host memory is
 * always "host" in transfers of the graph's inputs, outputs or weights (`boundary` is not CLV__BOUNDARY_INNER). */
const char *clv__label_space(const clv_plan *plan, uint32_t space, clv__boundary boundary);
/* "Conv ×23, Relu ×17, Add ×8, …": the operators of a partition, most frequent first, at most `limit` of them. */
void clv__label_operators(clv__text *text, const clv_graph *graph, const clv_node_id *nodes, uint32_t count, uint32_t limit);
/* The number of terminal columns of a text: 0 for combining marks, 2 for wide characters. */
size_t clv__label_columns(const char *text);
/* Decodes one UTF-8 character; an invalid byte counts as one character, 0xfffd. Returns the number of bytes read, 0 at the
 * end. */
size_t clv__label_decode(const char *text, uint32_t *character);
/* Columns of one character. */
size_t clv__label_width(uint32_t character);

/* Appends text escaped for XML elements and attributes; characters not allowed in XML 1.0 become U+FFFD. */
void clv__label_xml(clv__text *text, const char *name);

#endif
