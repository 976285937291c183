/* How names, types and sizes are written for people: one way, shared by texts, tables and pictures. */
#ifndef CLEAVE_REPORT_LABEL_H
#define CLEAVE_REPORT_LABEL_H

#include "base/text.h"
#include "plan/plan.h"

enum { CLV__LABEL_BYTES = 32 };

/* "832 B", "1.2 KiB", "97.5 MiB". Returns `label`. */
const char *clv__label_size(uint64_t size_bytes, char label[CLV__LABEL_BYTES]);
/* "4.1 G", "832", "12.0 k": decimal, for FLOPs and counts. */
const char *clv__label_count(double count, char label[CLV__LABEL_BYTES]);
/* "812 ns", "4.13 µs", "3.42 ms", "1.20 s"; always three digits or so. */
const char *clv__label_time(uint64_t time_ns, char label[CLV__LABEL_BYTES]);
/* A gap, (time - bound) / bound: "0.7 %", "281 %", and from ten times the bound on "×29". "–" where it is negative: none to tell.
 */
const char *clv__label_gap(double gap, char label[CLV__LABEL_BYTES]);
/* The operator in the words of the format the model came in: Concat, aten.cat.default. */
static inline const char *clv__label_op(const clv__node *node) {
  return node->source_op[0] != '\0' ? node->source_op : node->op;
}
/* "1 node", "5 nodes", "1,234 nodes". */
void clv__label_plural(clv__text *text, uint64_t count, const char *singular);
/* "1,234,567". */
const char *clv__label_grouped(uint64_t number, char label[CLV__LABEL_BYTES]);

/* Appends a name as it is, but for control characters and bytes that are no UTF-8, which are written as escapes: a name from a
 * file must not steer a terminal or break a line. */
void clv__label_name(clv__text *text, const char *name);
/* The same, of at most `columns` columns: the middle of a longer name becomes "…". */
void clv__label_short(clv__text *text, const char *name, size_t columns);
/* "f32[1,3,N,?]", with the symbols' own names. */
void clv__label_type(clv__text *text, const clv_graph *graph, const clv_tensor *type);
/* A memory space by its only device's name, or its own where several share it; `boundary` transfers know the host as "host". */
const char *clv__label_space(const clv_plan *plan, uint32_t space, clv__boundary boundary);
/* "Conv ×23, Relu ×17, Add ×8, …": the operators of a partition, the most frequent first, at most `limit` of them. */
void clv__label_operators(clv__text *text, const clv_graph *graph, const clv_node_id *nodes, uint32_t count, uint32_t limit);
/* Columns that a text takes on a terminal: combining marks none, wide characters two. */
size_t clv__label_columns(const char *text);
/* Decodes one character of UTF-8; bytes that are none count one each and give 0xfffd. Returns the bytes read, 0 at the end. */
size_t clv__label_decode(const char *text, uint32_t *character);
/* Columns of one character. */
size_t clv__label_width(uint32_t character);

/* Appends text escaped for XML (elements and attributes); what XML 1.0 cannot hold becomes U+FFFD. */
void clv__label_xml(clv__text *text, const char *name);

#endif
