/* Reads text edge lists: "source destination" per line, separated by blanks, tabs or a comma; `#` and `%` start comments.
 * Blocks are split at line ends into pieces that threads parse in parallel. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "gnn/data/readers.h"

enum { MOST_PIECES = 16, LEAST_PIECE = 1 << 16, EDGE_BYTES = 4 /* "0 1\n": no edge takes fewer bytes, except the last */ };

typedef struct piece {
  const char *from, *to;
  uint32_t *sources, *destinations;
  size_t count, lines;
  clv_status status;
  clv_error error; /* lacks the line number until all earlier pieces are parsed */
} piece;

typedef struct reader {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  clv__text_blocks *blocks;
  uint64_t lines; /* number of lines before the current block */
} reader;

static clv_status wrong_word(const char *what, const char *at, const char *end, clv_error *error) {
  if (at == end || *at == '\n' || *at == '\r') {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s is missing: expected 'source destination'", what);
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "'%.*s' is not a valid %s: vertices are whole numbers from 0 to %llu",
                        clv__word_length(at, end), at, what, (unsigned long long)CLV__MOST_VERTICES - 1);
}

static clv_status read_id(const char **text, const char *end, const char *what, uint32_t *id, clv_error *error) {
  const char *at = *text;
  uint64_t number = 0;
  while (at < end && (unsigned)(*at - '0') <= 9 && number < CLV__MOST_VERTICES) number = 10 * number + (unsigned)(*at++ - '0');
  bool stops = at == end || *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' || *at == ',' || *at == '#' || *at == '%';
  if (at == *text || !stops || number >= CLV__MOST_VERTICES) return wrong_word(what, *text, end, error);
  *text = at;
  *id = (uint32_t)number;
  return CLV_OK;
}

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
  return at;
}

/* Parses one line, starting at its first word. Leaves `*text` at the line's end. */
static clv_status read_line(piece *p, const char **text, clv_error *error) {
  const char *at = *text, *end = p->to;
  if (at < end && *at != '\n' && *at != '#' && *at != '%') {
    uint32_t u, v;
    CLV__TRY(read_id(&at, end, "source", &u, error));
    at = skip_blanks(at, end);
    if (at < end && *at == ',') at = skip_blanks(at + 1, end);
    CLV__TRY(read_id(&at, end, "destination", &v, error));
    at = skip_blanks(at, end);
    if (at < end && *at != '\n' && *at != '#' && *at != '%') {
      return clv__error_set(
          error, CLV_INVALID_MODEL,
          "unexpected '%.*s' after source and destination: edge weights are not supported; remove other columns",
          clv__word_length(at, end), at);
    }
    p->sources[p->count] = u;
    p->destinations[p->count++] = v;
  }
  if (at < end && *at != '\n') { /* skip a comment */
    at = memchr(at, '\n', (size_t)(end - at));
    if (at == NULL) at = end;
  }
  *text = at;
  return CLV_OK;
}

static void read_piece(piece *p) {
  p->status = CLV_OK;
  for (const char *at = p->from; at < p->to;) {
    at = skip_blanks(at, p->to);
    p->status = read_line(p, &at, &p->error);
    if (p->status != CLV_OK) return;
    if (at < p->to) ++at;
    ++p->lines;
  }
}

/* Splits [data, end) into pieces at line ends. The offset of a piece in the data determines where in the arrays it may write
 * its edges. */
static uint32_t cut_pieces(const char *data, size_t size_bytes, uint32_t *sources, uint32_t *destinations, piece *pieces) {
  uint32_t wanted = clv__edge_threads(), count = 0;
  if (wanted > MOST_PIECES) wanted = MOST_PIECES;
  if (size_bytes / LEAST_PIECE < wanted) wanted = (uint32_t)(size_bytes / LEAST_PIECE);
  if (wanted == 0) wanted = 1;
  const char *at = data, *end = data + size_bytes;
  for (uint32_t i = 0; i < wanted && at < end; ++i) {
    const char *to = i + 1 == wanted ? end : data + size_bytes / wanted * (i + 1);
    if (to <= at) continue; /* the line that begins at `at` extends beyond this point */
    if (to < end) {
      to = memchr(to, '\n', (size_t)(end - to));
      to = to == NULL ? end : to + 1;
    }
    size_t first = (size_t)(at - data + EDGE_BYTES - 1) / EDGE_BYTES;
    pieces[count++] = (piece){.from = at, .to = to, .sources = sources + first, .destinations = destinations + first};
    at = to;
  }
  return count;
}

/* Parses a whole block. Its edges end up contiguous at the start of the arrays. */
static clv_status read_block(reader *r, const char *data, size_t size_bytes, uint32_t *sources, uint32_t *destinations,
                             size_t *count, clv_error *error) {
  piece pieces[MOST_PIECES];
  uint32_t piece_count = cut_pieces(data, size_bytes, sources, destinations, pieces);
#pragma omp parallel for num_threads(piece_count) if (piece_count > 1) schedule(static, 1)
  for (uint32_t i = 0; i < piece_count; ++i) read_piece(&pieces[i]);
  *count = 0;
  for (uint32_t i = 0; i < piece_count; ++i) {
    piece *p = &pieces[i];
    if (p->status != CLV_OK) {
      if (error != NULL) *error = p->error;
      return clv__error_prefix(error, p->status, "line %llu", (unsigned long long)(r->lines + p->lines + 1));
    }
    memmove(sources + *count, p->sources, p->count * sizeof *sources);
    memmove(destinations + *count, p->destinations, p->count * sizeof *destinations);
    *count += p->count;
    r->lines += p->lines;
  }
  return CLV_OK;
}

static clv_status next_edges(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  reader *r = (reader *)source;
  *count = 0;
  while (*count == 0) { /* a block may consist of comments only */
    const char *data;
    size_t size_bytes;
    CLV__TRY(clv__text_blocks_next(r->blocks, &data, &size_bytes, error));
    if (size_bytes == 0) return CLV_OK;
    if (size_bytes / EDGE_BYTES + 1 > room + 1) return clv__error_set(error, CLV_INTERNAL_ERROR, "a block has too many edges");
    CLV__TRY(read_block(r, data, size_bytes, sources, destinations, count, error));
  }
  return CLV_OK;
}

static clv_status rewind_edges(clv__edge_source *source, clv_error *error) {
  reader *r = (reader *)source;
  r->lines = 0;
  return clv__text_blocks_rewind(r->blocks, error);
}

clv_status clv__graph_read_edges(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                                 clv_error *error) {
  enum { LINE_BYTES = 24 }; /* estimated bytes per line, for an estimate of the edge count; few lines are longer */
  reader r = {.source = {CLV__VERTICES_UNKNOWN, 0, rewind_edges, next_edges}};
  clv__csr csr;
  *graph = NULL;
  CLV__TRY(clv__text_blocks_open(allocator, bytes, false, &r.blocks, error));
  r.source.least_edges = clv__text_blocks_size(r.blocks) / LINE_BYTES;
  clv_status status = clv__csr_build(allocator, &r.source, &csr, error);
  clv__text_blocks_close(r.blocks);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", bytes->path);
  return clv__gnn_graph_wrap(allocator, &csr, NULL, NULL, graph, error);
}
