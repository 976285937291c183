/* See einsum.h. */
#include "operators/common/einsum.h"

/* A position in the equation; spaces are skipped. */
typedef struct cursor {
  const char *at, *end;
} cursor;

static char peek(cursor *c) {
  while (c->at < c->end && *c->at == ' ') ++c->at;
  return c->at < c->end ? *c->at : '\0';
}

static clv_status cursor_begin(clv__attributes attributes, cursor *c, clv_error *error) {
  const clv_attribute *equation = clv__attribute_find(attributes, "equation");
  if (equation == NULL || equation->kind != CLV_ATTRIBUTE_STRINGS || equation->count != 1) {
    return clv__error_set(error, CLV_INVALID_MODEL, "equation is missing");
  }
  c->at = equation->strings[0].data;
  c->end = c->at + equation->strings[0].size_bytes;
  return CLV_OK;
}

static int letter_label(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  return letter >= 'a' && letter <= 'z' ? 26 + letter - 'a' : -1;
}

/* Reads up to the next ',', the arrow or the end. */
static clv_status term_read(cursor *c, clv__einsum_term *term, clv_error *error) {
  memset(term, 0, sizeof *term);
  for (char next = peek(c); next != '\0' && next != ',' && next != '-'; next = peek(c)) {
    if (next == '.') {
      if (c->end - c->at < 3 || c->at[1] != '.' || c->at[2] != '.' || term->has_ellipsis) {
        return clv__error_set(error, CLV_INVALID_MODEL, "equation: '.' is only allowed in one '...' per term");
      }
      term->has_ellipsis = true;
      term->ellipsis_at = term->count;
      c->at += 3;
      continue;
    }
    int label = letter_label(next);
    if (label < 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "equation: the character with code %d is not a letter, ',', '...' or '->'",
                            (int)(unsigned char)next);
    }
    if (term->count == CLV_MAX_RANK) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "equation: a term has more than %d letters", CLV_MAX_RANK);
    }
    term->letters[term->count++] = (int8_t)label;
    ++c->at;
  }
  return CLV_OK;
}

clv_status clv__einsum_read_input(clv__attributes attributes, uint32_t index, clv__einsum_term *term, clv_error *error) {
  cursor c;
  CLV__TRY(cursor_begin(attributes, &c, error));
  for (uint32_t i = 0;; ++i) {
    CLV__TRY(term_read(&c, term, error));
    if (i == index) return CLV_OK;
    if (peek(&c) != ',') {
      return clv__error_set(error, CLV_INVALID_MODEL, "equation has %u term%s, so none for input %u", (unsigned)i + 1,
                            CLV__S(i + 1), (unsigned)index);
    }
    ++c.at;
  }
}

clv_status clv__einsum_read_output(clv__attributes attributes, uint32_t input_count, clv__einsum_term *term, clv_error *error) {
  cursor c;
  uint32_t terms = 0;
  int32_t seen[CLV__EINSUM_LETTERS] = {0};
  bool ellipsis = false;
  CLV__TRY(cursor_begin(attributes, &c, error));
  for (;;) {
    CLV__TRY(term_read(&c, term, error));
    ++terms;
    ellipsis = ellipsis || term->has_ellipsis;
    for (int32_t i = 0; i < term->count; ++i) seen[term->letters[i]] += seen[term->letters[i]] < 2;
    if (peek(&c) != ',') break;
    ++c.at;
  }
  if (terms != input_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "equation has %u term%s, but the node has %u input%s", (unsigned)terms,
                          CLV__S(terms), (unsigned)input_count, CLV__S(input_count));
  }
  memset(term, 0, sizeof *term);
  if (peek(&c) == '\0') {
    term->has_ellipsis = ellipsis;
    for (int8_t i = 0; i < CLV__EINSUM_LETTERS; ++i) {
      if (seen[i] == 1) term->letters[term->count++] = i;
    }
    return CLV_OK;
  }
  ++c.at;
  if (c.at >= c.end || *c.at != '>') return clv__error_set(error, CLV_INVALID_MODEL, "equation: '-' without '>'");
  ++c.at;
  CLV__TRY(term_read(&c, term, error));
  if (peek(&c) != '\0') return clv__error_set(error, CLV_INVALID_MODEL, "equation: the output has more than one term");
  if (term->has_ellipsis && !ellipsis) {
    return clv__error_set(error, CLV_INVALID_MODEL, "equation: the output has '...', but no input term has it");
  }
  for (int32_t i = 0; i < term->count; ++i) {
    int8_t label = term->letters[i];
    char letter = (char)(label < 26 ? 'A' + label : 'a' + label - 26);
    if (seen[label] == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "equation: output letter '%c' is in no input term", letter);
    }
    if (seen[label] == INT32_MAX) {
      return clv__error_set(error, CLV_INVALID_MODEL, "equation: output letter '%c' is repeated", letter);
    }
    seen[label] = INT32_MAX;
  }
  return CLV_OK;
}

void clv__einsum_labels(const clv__einsum_term *term, int32_t ellipsis_rank, int8_t labels[CLV__EINSUM_LABELS]) {
  int32_t at = 0, before = term->has_ellipsis ? term->ellipsis_at : term->count;
  for (int32_t i = 0; i < before; ++i) labels[at++] = term->letters[i];
  for (int32_t i = 0; i < ellipsis_rank; ++i) labels[at++] = (int8_t)(CLV__EINSUM_LABELS - ellipsis_rank + i);
  for (int32_t i = before; i < term->count; ++i) labels[at++] = term->letters[i];
}
