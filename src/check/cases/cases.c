/* The cases of operators. Each row of text (operators/cases.h) expands to several cases. This file counts the cases, and creates
 * the graph and the data of one case. */
#include "check/cases/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

#define FAMILY(name) clv__cases_##name,
static const clv__case_row *const families[] = {CLV__TENSOR_FAMILIES(FAMILY) clv__cases_fused};
#undef FAMILY

/* ---- Lists of alternatives ----------------------------------------------------------------------------------------------- */

enum { OPS, OPSETS, DTYPES, OPERANDS, ATTRIBUTES, THEN, LISTS };

typedef struct span {
  const char *at, *end;
} span;

/* The lists of alternatives in a row. If `multiplies` is set for a list, each of its alternatives is combined with every case of
 * the other lists: see operators/cases.h. */
typedef struct lists {
  const char *text[LISTS];
  uint32_t count[LISTS];
  bool multiplies[LISTS];
} lists;

static const char *const separators[LISTS] = {" ", " ", " ", " | ", " | ", " | "};

static void read_lists(const clv__case_row *row, lists *l) {
  const char *const texts[LISTS] = {row->ops, row->opsets, row->dtypes, row->operands, row->attributes, row->then};
  for (int i = 0; i < LISTS; ++i) {
    const char *text = texts[i] != NULL ? texts[i] : "";
    l->multiplies[i] = i == OPS || *text == '*';
    l->text[i] = text + (*text == '*');
    l->count[i] = 1;
    for (const char *at = l->text[i]; (at = strstr(at, separators[i])) != NULL; at += strlen(separators[i])) ++l->count[i];
  }
}

static uint32_t row_count(const lists *l) {
  uint32_t product = 1, others = 1;
  for (int i = 0; i < LISTS; ++i) {
    if (l->multiplies[i])
      product *= l->count[i];
    else
      others += l->count[i] - 1;
  }
  return product * others;
}

/* Returns the text of alternative `index` of a list. */
static span alternative(const lists *l, int list, uint32_t index) {
  const char *at = l->text[list], *separator = separators[list];
  for (uint32_t k = 0; k < index; ++k) at = strstr(at, separator) + strlen(separator);
  const char *end = strstr(at, separator);
  span s = {at, end != NULL ? end : at + strlen(at)};
  while (s.at < s.end && *s.at == ' ') ++s.at;
  return s;
}

/* Selects the alternative of each list for case `index` of a row. */
static void pick(const lists *l, uint32_t index, span picked[LISTS]) {
  uint32_t chosen[LISTS] = {0}, others = 1;
  for (int i = 0; i < LISTS; ++i) others += l->multiplies[i] ? 0 : l->count[i] - 1;
  /* `other` selects at most one alternative after the first, in one of the lists that do not multiply. If it is 0, all these
   * lists keep their first alternative. */
  uint32_t other = index % others, rest = index / others;
  for (int i = LISTS - 1; i >= 0; --i) {
    if (l->multiplies[i]) {
      chosen[i] = rest % l->count[i];
      rest /= l->count[i];
    } else if (other > 0 && other < l->count[i]) {
      chosen[i] = other;
      other = 0;
    } else if (other > 0) {
      other -= l->count[i] - 1;
    }
  }
  for (int i = 0; i < LISTS; ++i) picked[i] = alternative(l, i, chosen[i]);
}

/* ---- One case ------------------------------------------------------------------------------------------------------------ */

typedef struct making {
  clv__builder *builder;
  clv__arena *arena; /* owned by the graph */
  clv_dtype dtype;
  uint64_t random;
  clv_tensor inputs[CLV__CASE_MAX_OPERANDS]; /* the graph's inputs added so far */
  uint32_t input_count;
  clv_error *error;
} making;

static bool next_word(span *s, span *word) {
  while (s->at < s->end && *s->at == ' ') ++s->at;
  word->at = s->at;
  while (s->at < s->end && *s->at != ' ') ++s->at;
  word->end = s->at;
  return word->at < word->end;
}

/* Whether `operand` is for later nodes ("+r[3,4]="), but no later node in `then` ("Add(r) Relu") reads it. */
static bool is_unread(span operand, span then) {
  if (*operand.at != '+') return false;
  const char *name = operand.at + 1;
  size_t length = strcspn(name, ":[~=?&{( ");
  for (const char *at = then.at; at + length < then.end; ++at) {
    if ((*at == '(' || *at == ',') && strncmp(at + 1, name, length) == 0 && strchr(",)", at[length + 1]) != NULL) return false;
  }
  return true;
}

/* Adds a constant, a graph input, or the output of a node that copies a graph input. */
static clv_status add_operand(making *m, clv__case_operand *operand, clv_value_id *value) {
  CLV__TRY(clv__case_fill_data(operand, m->arena, &m->random, m->error));
  clv_tensor type = operand->type;
  if (!operand->constant) type.data = NULL;
  CLV__TRY(clv__builder_value(m->builder, operand->name, value, m->error));
  clv__builder_type(m->builder, *value, &type);
  if (operand->constant) return CLV_OK;
  CLV__TRY(clv__builder_input(m->builder, *value, m->error));
  m->inputs[m->input_count++] = operand->type;
  if (!operand->computed) return CLV_OK;
  char name[CLV__CASE_MAX_NAME + 8];
  clv_value_id made;
  snprintf(name, sizeof name, "%s_made", operand->name);
  CLV__TRY(clv__builder_value(m->builder, name, &made, m->error));
  CLV__TRY(clv__builder_node(m->builder, "", "", "Identity", value, 1, &made, 1, NULL, 0, m->error));
  *value = made;
  return CLV_OK;
}

static clv_status add_operands(making *m, span text, span then, clv_value_id values[CLV__CASE_MAX_OPERANDS], uint32_t *count) {
  uint32_t seen = 0;
  span word;
  *count = 0;
  while (next_word(&text, &word)) {
    clv__case_operand operand;
    clv_value_id value = CLV__NO_ID;
    if (is_unread(word, then)) continue;
    if (seen++ == CLV__CASE_MAX_OPERANDS) {
      return clv__error_set(m->error, CLV_INTERNAL_ERROR, "table of cases: too many operands");
    }
    CLV__TRY(clv__case_read_operand(&word.at, word.end, m->dtype, &operand, m->error));
    if (!operand.absent) CLV__TRY(add_operand(m, &operand, &value));
    if (!operand.later) values[(*count)++] = value;
  }
  return CLV_OK;
}

/* Adds the node under test. *output is its first output. */
static clv_status add_node(making *m, const span picked[LISTS], clv_value_id *output) {
  span op = picked[OPS], attributes = picked[ATTRIBUTES];
  clv_value_id inputs[CLV__CASE_MAX_OPERANDS], outputs[32];
  clv_attribute list[CLV__CASE_MAX_ATTRIBUTES];
  uint32_t input_count, attribute_count = 0, wanted = 1, output_count = 1;
  char name[64];
  span word;
  while (next_word(&attributes, &word)) {
    if (attribute_count == CLV__CASE_MAX_ATTRIBUTES) {
      return clv__error_set(m->error, CLV_INTERNAL_ERROR, "table of cases: too many attributes");
    }
    CLV__TRY(clv__case_read_attribute(&word.at, word.end, m->dtype, m->arena, &list[attribute_count], &wanted, &output_count,
                                      m->error));
    attribute_count += list[attribute_count].name != NULL;
  }
  CLV__TRY(add_operands(m, picked[OPERANDS], picked[THEN], inputs, &input_count));
  for (uint32_t i = 0; i < output_count; ++i) {
    outputs[i] = CLV__NO_ID;
    if ((wanted >> i & 1) == 0) continue;
    snprintf(name, sizeof name, "y%u", (unsigned)i);
    CLV__TRY(clv__builder_value(m->builder, name, &outputs[i], m->error));
    if (i > 0) CLV__TRY(clv__builder_output(m->builder, outputs[i], m->error));
  }
  snprintf(name, sizeof name, "%.*s", (int)(op.end - op.at), op.at);
  char *dot = strrchr(name, '.');
  if (dot != NULL) *dot = '\0';
  *output = outputs[0];
  return clv__builder_node(m->builder, "node", dot != NULL ? name : "", dot != NULL ? dot + 1 : name, inputs, input_count,
                           outputs, output_count, list, attribute_count, m->error);
}

/* Adds one of the nodes after the first, such as "Add(r)!". *value is its first input on entry and its output on return. */
static clv_status add_after(making *m, span word, uint32_t index, clv_value_id *value) {
  clv_value_id inputs[CLV__CASE_MAX_OPERANDS] = {*value};
  uint32_t input_count = 1;
  char op[32], name[CLV__CASE_MAX_NAME];
  const char *at = word.at;
  while (at < word.end && *at != '(' && *at != '!') ++at;
  snprintf(op, sizeof op, "%.*s", (int)(at - word.at), word.at);
  while (at < word.end && *at != ')' && *at != '!' && input_count < CLV__CASE_MAX_OPERANDS) {
    const char *from = ++at;
    while (at < word.end && *at != ',' && *at != ')') ++at;
    snprintf(name, sizeof name, "%.*s", (int)(at - from), from);
    CLV__TRY(clv__builder_value(m->builder, name, &inputs[input_count++], m->error));
  }
  snprintf(name, sizeof name, "z%u", (unsigned)index);
  CLV__TRY(clv__builder_value(m->builder, name, value, m->error));
  return clv__builder_node(m->builder, name, "", op, inputs, input_count, value, 1, NULL, 0, m->error);
}

/* Imports version `opset` of the operator's domain. If that is not ONNX's domain, also imports ONNX's, for the other nodes. */
static clv_status import_opset(making *m, span op, span opset) {
  const int32_t version = (int32_t)strtol(opset.at, NULL, 10);
  const char *dot = op.end;
  char domain[32];
  while (dot > op.at && *dot != '.') --dot;
  snprintf(domain, sizeof domain, "%.*s", (int)(dot - op.at), op.at);
  CLV__TRY(clv__builder_import(m->builder, domain, version, m->error));
  return domain[0] != '\0' ? clv__builder_import(m->builder, "", 22, m->error) : CLV_OK;
}

static clv_status build_row(making *m, const span picked[LISTS]) {
  clv_value_id value;
  span rest = picked[THEN], word;
  bool is_output = false;
  CLV__TRY(import_opset(m, picked[OPS], picked[OPSETS]));
  CLV__TRY(add_node(m, picked, &value));
  for (uint32_t i = 0; next_word(&rest, &word); ++i) {
    const bool first = *word.at == '!'; /* a "!" alone: the first node's output is a graph output */
    if (!first) CLV__TRY(add_after(m, word, i, &value));
    is_output = word.end[-1] == '!';
    if (is_output) CLV__TRY(clv__builder_output(m->builder, value, m->error));
  }
  return is_output || value == CLV__NO_ID ? CLV_OK : clv__builder_output(m->builder, value, m->error);
}

/* Sets the case's name, such as "Conv 22, f32: x[1,3,8,8] w[4,3,3,3]=; strides=[2,2]; then Relu". */
static void name_case(clv__check_case *made, const span p[LISTS]) {
  const size_t room = sizeof made->what;
  span operands = p[OPERANDS], word;
#define TEXT(s) (int)((s).end - (s).at), (s).at
  size_t used = (size_t)snprintf(made->what, room, "%.*s %.*s, %.*s:", TEXT(p[OPS]), TEXT(p[OPSETS]), TEXT(p[DTYPES]));
  while (next_word(&operands, &word)) {
    if (!is_unread(word, p[THEN]) && used < room) {
      used += (size_t)snprintf(made->what + used, room - used, " %.*s", TEXT(word));
    }
  }
  for (int list = ATTRIBUTES; list <= THEN; ++list) {
    if (p[list].at == p[list].end || used >= room) continue;
    used += (size_t)snprintf(made->what + used, room - used, "; %s%.*s", list == THEN ? "then " : "", TEXT(p[list]));
  }
#undef TEXT
}

/* ---- All cases ----------------------------------------------------------------------------------------------------------- */

uint32_t clv__check_case_count(void) {
  uint32_t total = clv__case_built_count;
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__case_row *row = families[i]; row->ops != NULL; ++row) {
      lists l;
      read_lists(row, &l);
      total += row_count(&l);
    }
  }
  return total;
}

/* Builds case `index`. The cases of the rows come first, then the cases built by hand. */
static clv_status build(making *m, uint32_t index, clv__check_case *made) {
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__case_row *row = families[i]; row->ops != NULL; ++row) {
      lists l;
      read_lists(row, &l);
      const uint32_t count = row_count(&l);
      if (index >= count) {
        index -= count;
        continue;
      }
      span picked[LISTS];
      pick(&l, index, picked);
      name_case(made, picked);
      m->dtype = clv__case_dtype(picked[DTYPES].at, (size_t)(picked[DTYPES].end - picked[DTYPES].at));
      return build_row(m, picked);
    }
  }
  if (index >= clv__case_built_count) return clv__error_set(m->error, CLV_NOT_FOUND, "unknown case");
  snprintf(made->what, sizeof made->what, "%s", clv__cases_built[index].what);
  return clv__cases_built[index].build(m->builder, m->error);
}

/* Sets the data of the graph's inputs. Cases from rows already have data; for cases built by hand it is generated here. */
static clv_status fill_inputs(making *m, clv__check_case *made) {
  clv_graph *graph = made->graph;
  made->inputs = clv__arena_allocate_zero(&graph->arena, graph->input_count + 1, sizeof *made->inputs);
  if (made->inputs == NULL) return clv__error_memory(m->error, (graph->input_count + 1) * sizeof *made->inputs);
  made->input_count = graph->input_count;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (m->input_count > 0) {
      made->inputs[i] = m->inputs[i];
      continue;
    }
    clv__case_operand operand = {.type = graph->values[graph->inputs[i]].type, .fill = CLV__FILL_RANGE, .low = 1, .high = 5};
    CLV__TRY(clv__case_fill_data(&operand, &graph->arena, &m->random, m->error));
    made->inputs[i] = operand.type;
  }
  return CLV_OK;
}

clv_status clv__check_case_make(const clv_allocator *allocator, uint32_t index, uint64_t seed, clv__check_case *made,
                                clv_error *error) {
  making m = {.random = seed ^ (UINT64_C(0xd1342543de82ef95) * (index + 1)), .error = error};
  memset(made, 0, sizeof *made);
  CLV__TRY(clv__builder_create(allocator, &m.builder, error));
  m.arena = clv__builder_arena(m.builder);
  clv__builder_info(m.builder, "case", "", 10);
  clv_status status = build(&m, index, made);
  if (status != CLV_OK) {
    clv__builder_destroy(m.builder);
    return clv__error_prefix(error, status, "%s", made->what);
  }
  status = clv__builder_finish(m.builder, &made->graph, error);
  if (status == CLV_OK) status = fill_inputs(&m, made);
  if (status != CLV_OK) clv__check_case_finish(made);
  return status;
}

void clv__check_case_finish(clv__check_case *made) {
  clv__graph_destroy(made->graph);
  made->graph = NULL;
  made->inputs = NULL;
  made->input_count = 0;
}
