/* Reads METIS .graph files: a header "vertices edges [format [weights per vertex]]", then one line per vertex with its
 * neighbours, counted from 1. `%` starts a comment line. Each edge appears in the lines of both its ends, so the lines are
 * used directly as rows of in-edges. Sizes and weights only matter for partitioning: the reader validates and skips them. */
#include <string.h>

#include "base/error.h"
#include "gnn/data/readers.h"

typedef enum word_kind { WORD_NUMBER, WORD_LINE_END, WORD_FILE_END } word_kind;

typedef struct reader {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  clv__text_blocks *blocks;
  const char *at, *end; /* the part of the current block that is not read yet */
  bool at_line_begin, in_comment, at_file_end;
  uint64_t line;
  /* parsed from the header */
  bool has_header;
  uint64_t vertex_count, edge_count; /* as in the header; edge_count counts both directions as one edge */
  uint64_t skipped_words;            /* the number of words of a vertex's size and weights, which are skipped */
  bool has_edge_weights;
  /* position in the rows */
  uint64_t row, listed, words; /* the current row; neighbours read in all rows; words read in this row */
} reader;

/* Fetches the next block once the current one is used up. Sets `any` to false at the end of the file. */
static clv_status refill(reader *r, bool *any, clv_error *error) {
  size_t size_bytes;
  *any = true;
  if (r->at < r->end) return CLV_OK;
  if (r->at_file_end)
    size_bytes = 0;
  else
    CLV__TRY(clv__text_blocks_next(r->blocks, &r->at, &size_bytes, error));
  r->end = r->at + size_bytes;
  r->at_file_end = size_bytes == 0;
  *any = size_bytes > 0;
  return CLV_OK;
}

static clv_status wrong_word(const reader *r, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_MODEL, "line %llu: '%.*s' is not a whole number of 0 or more",
                        (unsigned long long)r->line, clv__word_length(r->at, r->end), r->at);
}

/* A word never crosses a block boundary: these blocks end at white space. */
static clv_status read_number(reader *r, uint64_t *number, clv_error *error) {
  const char *at = r->at;
  *number = 0;
  for (; at < r->end && (unsigned)(*at - '0') <= 9; ++at) {
    if (__builtin_mul_overflow(*number, (uint64_t)10, number) || __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number)) {
      return wrong_word(r, error);
    }
  }
  bool stops = at == r->end || *at == ' ' || *at == '\t' || *at == '\r' || *at == '\n';
  if (at == r->at || !stops) return wrong_word(r, error);
  r->at = at;
  return CLV_OK;
}

static clv_status next_word(reader *r, word_kind *kind, uint64_t *number, clv_error *error) {
  for (bool any;;) {
    CLV__TRY(refill(r, &any, error));
    if (!any) {
      *kind = WORD_FILE_END;
      return CLV_OK;
    }
    char c = *r->at;
    if (r->in_comment) {
      const char *line_end = memchr(r->at, '\n', (size_t)(r->end - r->at));
      r->in_comment = line_end == NULL;
      r->at = line_end == NULL ? r->end : line_end + 1;
      if (line_end != NULL) ++r->line;
    } else if (c == '%' && r->at_line_begin) {
      r->in_comment = true;
    } else if (c == '\n') {
      ++r->at;
      ++r->line;
      r->at_line_begin = true;
      *kind = WORD_LINE_END;
      return CLV_OK;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++r->at;
    } else {
      r->at_line_begin = false;
      *kind = WORD_NUMBER;
      return read_number(r, number, error);
    }
  }
}

/* `line` is the line of the header. The message cannot use the reader's line, which is already the one after the header. */
static clv_status wrong_header(uint64_t line, const char *what, uint64_t number, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_MODEL,
                        "line %llu: %s %llu in the header is invalid; expected 'vertices edges [format [weights per vertex]]'",
                        (unsigned long long)line, what, (unsigned long long)number);
}

static clv_status take_format(reader *r, uint64_t line, const uint64_t *numbers, uint32_t count, clv_error *error) {
  uint64_t format = count > 2 ? numbers[2] : 0, weights = count > 3 ? numbers[3] : 0;
  if (format > 111 || format % 10 > 1 || format / 10 % 10 > 1) return wrong_header(line, "format", format, error);
  bool has_weights = format / 10 % 10 == 1;
  if (count > 3 && (weights > 0) != has_weights && weights != 1)
    return wrong_header(line, "number of weights per vertex", weights, error);
  if (weights > 1u << 20) return wrong_header(line, "number of weights per vertex", weights, error);
  r->has_edge_weights = format % 10 == 1;
  r->skipped_words = format / 100 + (has_weights ? (weights > 0 ? weights : 1) : 0);
  return CLV_OK;
}

static clv_status read_header(reader *r, clv_error *error) {
  uint64_t numbers[5] = {0}, line = r->line;
  uint32_t count = 0;
  for (;;) {
    word_kind kind;
    uint64_t number;
    CLV__TRY(next_word(r, &kind, &number, error));
    if (kind == WORD_NUMBER) {
      line = r->line;
      if (count == 4) return wrong_header(line, "a fifth number", number, error);
      numbers[count++] = number;
    } else if (count > 0 || kind == WORD_FILE_END) {
      break;
    }
  }
  if (count < 2) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "line %llu: %u numbers in the header; expected 'vertices edges [format [weights per vertex]]'",
                          (unsigned long long)line, count);
  }
  if (numbers[0] > CLV__MOST_VERTICES) return wrong_header(line, "number of vertices", numbers[0], error);
  if (numbers[1] > UINT64_MAX / 2) return wrong_header(line, "number of edges", numbers[1], error);
  r->vertex_count = numbers[0];
  r->edge_count = numbers[1];
  r->has_header = true;
  return take_format(r, line, numbers, count, error);
}

/* Runs the checks at the end of a vertex's line. */
static clv_status end_row(reader *r, clv_error *error) {
  if (r->words < r->skipped_words) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "vertex %llu has %llu of the %llu sizes and weights that the header announces",
                          (unsigned long long)r->row + 1, (unsigned long long)r->words, (unsigned long long)r->skipped_words);
  }
  if (r->has_edge_weights && (r->words - r->skipped_words) % 2 != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "vertex %llu: its last neighbour has no edge weight, but the header announces weights",
                          (unsigned long long)r->row + 1);
  }
  ++r->row;
  r->words = 0;
  return CLV_OK;
}

static clv_status end_file(reader *r, clv_error *error) {
  if (r->row < r->vertex_count && r->words > 0) CLV__TRY(end_row(r, error)); /* the last line has no newline */
  if (r->row < r->vertex_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "the header says %llu vertices, but there are lines for %llu",
                          (unsigned long long)r->vertex_count, (unsigned long long)r->row);
  }
  if (r->listed != 2 * r->edge_count) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "the header says %llu edges, which appear in the lines of both ends, but %llu neighbours are listed",
                          (unsigned long long)r->edge_count, (unsigned long long)r->listed);
  }
  r->source.vertex_count = r->vertex_count; /* confirmed: one line per vertex was read */
  return CLV_OK;
}

/* Interprets a number in a vertex's line: the vertex's size, a weight, a neighbour or its edge's weight. */
static clv_status take_word(reader *r, uint64_t number, bool *is_edge, clv_error *error) {
  uint64_t word = r->words++;
  *is_edge = false;
  if (r->row >= r->vertex_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "line %llu: more lines than the %llu vertices of the header",
                          (unsigned long long)r->line, (unsigned long long)r->vertex_count);
  }
  if (word < r->skipped_words || (r->has_edge_weights && (word - r->skipped_words) % 2 == 1)) return CLV_OK;
  if (number < 1 || number > r->vertex_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "line %llu: vertex %llu has the neighbour %llu, but vertices are 1 to %llu",
                          (unsigned long long)r->line, (unsigned long long)r->row + 1, (unsigned long long)number,
                          (unsigned long long)r->vertex_count);
  }
  *is_edge = true;
  ++r->listed;
  return CLV_OK;
}

static clv_status next_edges(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  reader *r = (reader *)source;
  *count = 0;
  if (!r->has_header) CLV__TRY(read_header(r, error));
  while (*count < room) {
    word_kind kind;
    uint64_t number = 0;
    bool is_edge;
    CLV__TRY(next_word(r, &kind, &number, error));
    if (kind == WORD_FILE_END) return end_file(r, error);
    if (kind == WORD_LINE_END) {
      if (r->row < r->vertex_count) CLV__TRY(end_row(r, error)); /* empty lines may follow the last vertex */
      continue;
    }
    CLV__TRY(take_word(r, number, &is_edge, error));
    if (!is_edge) continue;
    sources[*count] = (uint32_t)(number - 1);
    destinations[(*count)++] = (uint32_t)r->row;
  }
  return CLV_OK;
}

static clv_status rewind_edges(clv__edge_source *source, clv_error *error) {
  reader *r = (reader *)source;
  *r = (reader){.source = r->source, .blocks = r->blocks, .at_line_begin = true, .line = 1};
  return clv__text_blocks_rewind(r->blocks, error);
}

clv_status clv__graph_read_metis(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                                 clv_error *error) {
  enum { NEIGHBOUR_BYTES = 12 }; /* estimated bytes per neighbour, for an estimate of the edge count; few take more */
  reader r = {.source = {CLV__VERTICES_UNKNOWN, 0, rewind_edges, next_edges}};
  clv__csr csr;
  *graph = NULL;
  CLV__TRY(clv__text_blocks_open(allocator, bytes, true, &r.blocks, error));
  r.source.least_edges = clv__text_blocks_size(r.blocks) / NEIGHBOUR_BYTES;
  clv_status status = clv__csr_build(allocator, &r.source, &csr, error);
  clv__text_blocks_close(r.blocks);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", bytes->path);
  return clv__gnn_graph_wrap(allocator, &csr, NULL, NULL, graph, error);
}
