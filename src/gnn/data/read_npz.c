/* Reads graphs from npz files: `edge_index` [2,m] of any integer type, `x` [n,F] of any numeric type, `y` [n], `num_nodes`.
 * Other arrays are ignored. Edges and features are read and converted in batches, so that no array is held in memory both as in
 * the file and converted. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "formats/arrays/npz.h"
#include "gnn/data/readers.h"

enum { BATCH = 1 << 16 }; /* elements per batch, in the file's type */

static bool is_integer(clv_dtype dtype) {
  return (CLV__DTYPES_INTEGER & CLV__DTYPE_BIT(dtype)) != 0;
}

static bool has_array(const clv__npz *npz, const char *name) {
  for (size_t i = 0; i < clv__npz_count(npz); ++i) {
    if (strcmp(clv__npz_name(npz, i), name) == 0) return true;
  }
  return false;
}

static clv_status wrong_type(const clv__npy_header *header, const char *should, clv_error *error) {
  char type[160];
  clv__tensor_text(&header->type, type, sizeof type);
  return clv__error_set(error, CLV_INVALID_MODEL, "it is %s; expected %s", type, should);
}

/* ---- Edges ---- */

typedef struct reader {
  clv__edge_source source; /* must be first: csr.c passes a pointer to this member, which is cast to the whole struct */
  const clv_allocator *allocator;
  const clv__npz *npz;
  clv__npz_stream *heads, *tails; /* sources and destinations; in Fortran order one stream alternates between both */
  void *batch;                    /* [2 * BATCH] elements of any width */
  clv_dtype dtype;
  bool in_turn; /* sources and destinations alternate (Fortran order) */
  uint64_t edge_count, at, passes;
} reader;

/* Converts integers of any type to ids. Returns the index of the first that is not a valid id, or `count`. */
#define CONVERT(type)                                                                  \
  do {                                                                                 \
    const type *from = (const type *)data + start;                                     \
    for (; e < count; ++e) {                                                           \
      uint64_t id = (uint64_t)from[e * step]; /* negative numbers become very large */ \
      if (id >= limit) return e;                                                       \
      ids[e] = (uint32_t)id;                                                           \
    }                                                                                  \
    return e;                                                                          \
  } while (0)

static size_t convert_ids(clv_dtype dtype, const void *data, size_t start, size_t step, size_t count, uint64_t limit,
                          uint32_t *ids) {
  size_t e = 0;
  switch (dtype) {
    case CLV_I64:
      CONVERT(int64_t);
    case CLV_U64:
      CONVERT(uint64_t);
    case CLV_I32:
      CONVERT(int32_t);
    case CLV_U32:
      CONVERT(uint32_t);
    case CLV_I16:
      CONVERT(int16_t);
    case CLV_U16:
      CONVERT(uint16_t);
    case CLV_I8:
      CONVERT(int8_t);
    default:
      CONVERT(uint8_t);
  }
}
#undef CONVERT

static clv_status wrong_id(const reader *r, const char *what, uint64_t edge, size_t element, clv_error *error) {
  clv_tensor batch = {.dtype = r->dtype, .rank = 1, .dims = {2 * BATCH}, .data = r->batch};
  char limit[64], number[32];
  if (r->source.vertex_count == CLV__VERTICES_UNKNOWN)
    snprintf(limit, sizeof limit, "ids are 0 to %" PRIu64, CLV__MOST_VERTICES - 1);
  else
    snprintf(limit, sizeof limit, "there are %" PRIu64 " vertices", r->source.vertex_count);
  if (r->dtype == CLV_U64)
    snprintf(number, sizeof number, "%" PRIu64, ((const uint64_t *)r->batch)[element]);
  else
    snprintf(number, sizeof number, "%" PRId64, clv__tensor_get_int(&batch, element));
  return clv__error_set(error, CLV_INVALID_MODEL, "array 'edge_index': edge %" PRIu64 " has the %s %s, but %s", edge, what,
                        number, limit);
}

static clv_status next_edges(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                             clv_error *error) {
  reader *r = (reader *)source;
  uint64_t left = r->edge_count - r->at;
  uint64_t limit = source->vertex_count == CLV__VERTICES_UNKNOWN ? CLV__MOST_VERTICES : source->vertex_count;
  *count = left < room ? (size_t)left : room;
  for (size_t done = 0; done < *count;) {
    size_t some = *count - done < BATCH ? *count - done : BATCH, wrong;
    if (r->in_turn)
      CLV__TRY(clv__npz_stream_read(r->heads, r->batch, 2 * some, error));
    else
      CLV__TRY(clv__npz_stream_read(r->heads, r->batch, some, error));
    size_t step = r->in_turn ? 2 : 1;
    wrong = convert_ids(r->dtype, r->batch, 0, step, some, limit, sources + done);
    if (wrong < some) return wrong_id(r, "source", r->at + done + wrong, wrong * step, error);
    if (!r->in_turn) CLV__TRY(clv__npz_stream_read(r->tails, r->batch, some, error));
    wrong = convert_ids(r->dtype, r->batch, step - 1, step, some, limit, destinations + done);
    if (wrong < some) return wrong_id(r, "destination", r->at + done + wrong, wrong * step + step - 1, error);
    done += some;
  }
  r->at += *count;
  return CLV_OK;
}

static void close_streams(reader *r) {
  clv__npz_stream_close(r->heads);
  clv__npz_stream_close(r->tails);
  r->heads = r->tails = NULL;
}

/* Opens a stream for the sources and one for the destinations, which follow the sources in the array. On the first call, the
 * second stream reads the sources instead of jumping over them, so that the checksum of the whole array is compared. */
static clv_status rewind_edges(clv__edge_source *source, clv_error *error) {
  reader *r = (reader *)source;
  close_streams(r);
  r->at = 0;
  CLV__TRY(clv__npz_stream_open(r->npz, "edge_index", &r->heads, error));
  if (!r->in_turn) {
    CLV__TRY(clv__npz_stream_open(r->npz, "edge_index", &r->tails, error));
    CLV__TRY(clv__npz_stream_skip(r->tails, (size_t)r->edge_count, r->passes > 0, error));
  }
  ++r->passes;
  return CLV_OK;
}

static clv_status read_edge_type(reader *r, clv_error *error) {
  clv__npz_stream *stream;
  CLV__TRY(clv__npz_stream_open(r->npz, "edge_index", &stream, error));
  const clv__npy_header *header = clv__npz_stream_header(stream);
  clv_status status = CLV_OK;
  if (!is_integer(header->type.dtype) || header->kind != 0 || header->type.rank != 2 || header->type.dims[0] != 2) {
    bool is_turned = header->type.rank == 2 && header->type.dims[1] == 2;
    status = wrong_type(header, is_turned ? "integers [2,m]: transpose it" : "integers [2,m]", error);
    clv__error_prefix(error, status, "array 'edge_index'");
  }
  r->dtype = header->type.dtype;
  r->edge_count = status == CLV_OK ? (uint64_t)header->type.dims[1] : 0;
  r->in_turn = header->is_fortran && header->count > 0;
  clv__npz_stream_close(stream);
  return status;
}

static clv_status read_edges(const clv_allocator *allocator, const clv__npz *npz, uint64_t vertex_count, clv__csr *csr,
                             clv_error *error) {
  reader r = {.source = {vertex_count, 0, rewind_edges, next_edges}, .allocator = allocator, .npz = npz};
  CLV__TRY(read_edge_type(&r, error));
  r.source.least_edges = r.edge_count;
  r.batch = clv__allocate(allocator, 2 * BATCH * sizeof(uint64_t));
  if (r.batch == NULL) return clv__error_memory(error, 2 * BATCH * sizeof(uint64_t));
  clv_status status = clv__csr_build(allocator, &r.source, csr, error);
  close_streams(&r);
  clv__release(allocator, r.batch);
  return status;
}

/* ---- Features ---- */

typedef struct features {
  clv__npz_stream *stream;
  clv_tensor batch; /* in the file's type */
  float *values;
  uint64_t rows, columns;
  bool is_fortran;
} features;

static clv_status wrong_feature(const features *f, uint64_t element, size_t at, clv_error *error) {
  uint64_t row = f->is_fortran ? element % f->rows : element / f->columns;
  uint64_t column = f->is_fortran ? element / f->rows : element % f->columns;
  double value = clv__tensor_get(&f->batch, at);
  return clv__error_set(error, CLV_INVALID_MODEL, "vertex %" PRIu64 ": feature %" PRIu64 " is %g, but must be finite%s", row,
                        column, isnan(value) ? fabs(value) : value, f->batch.dtype == CLV_F32 ? "" : " in f32");
}

static clv_status take_features(features *f, uint64_t first, size_t count, clv_error *error) {
  uint64_t row = f->is_fortran ? first % f->rows : 0, column = f->is_fortran ? first / f->rows : 0;
  bool is_f32 = f->batch.dtype == CLV_F32;
  for (size_t i = 0; i < count; ++i) {
    float value = is_f32 ? ((const float *)f->batch.data)[i] : (float)clv__tensor_get(&f->batch, i);
    if (!isfinite(value)) return wrong_feature(f, first + i, i, error);
    if (!f->is_fortran) {
      f->values[first + i] = value;
      continue;
    }
    f->values[row * f->columns + column] = value;
    if (++row == f->rows) {
      row = 0;
      ++column;
    }
  }
  return CLV_OK;
}

static clv_status fill_features(features *f, clv_error *error) {
  uint64_t total = f->rows * f->columns;
  for (uint64_t done = 0; done < total;) {
    size_t some = total - done < BATCH ? (size_t)(total - done) : BATCH;
    CLV__TRY(clv__npz_stream_read(f->stream, f->batch.data, some, error));
    clv_status status = take_features(f, done, some, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "array 'x'");
    done += some;
  }
  return CLV_OK;
}

/* Reads only the type of `x`, for the vertex count: edge validation needs it before features are read. */
static clv_status open_features(const clv__npz *npz, features *f, clv_error *error) {
  CLV__TRY(clv__npz_stream_open(npz, "x", &f->stream, error));
  const clv__npy_header *header = clv__npz_stream_header(f->stream);
  unsigned allowed = CLV__DTYPES_NUMBER | CLV__DTYPE_BIT(CLV_BOOL);
  if ((allowed & CLV__DTYPE_BIT(header->type.dtype)) == 0 || header->kind != 0 || header->type.rank != 2) {
    return clv__error_prefix(error, wrong_type(header, "numbers [n,F]", error), "array 'x'");
  }
  f->rows = (uint64_t)header->type.dims[0];
  f->columns = (uint64_t)header->type.dims[1];
  f->is_fortran = header->is_fortran;
  f->batch = (clv_tensor){.dtype = header->type.dtype, .rank = 1, .dims = {BATCH}};
  if (f->rows > CLV__MOST_VERTICES) {
    return clv__error_set(error, CLV_INVALID_MODEL, "array 'x': %" PRIu64 " vertices; at most %" PRIu64 " are possible", f->rows,
                          CLV__MOST_VERTICES);
  }
  return CLV_OK;
}

static clv_status read_features(const clv_allocator *allocator, features *f, clv_tensor *tensor, clv_error *error) {
  const int64_t dims[] = {(int64_t)f->rows, (int64_t)f->columns};
  clv_tensor made = clv__tensor_make(CLV_F32, 2, dims, NULL);
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&made, &size_bytes)) size_bytes = SIZE_MAX;
  made.data = f->values = clv__allocate(allocator, size_bytes);
  if (f->values == NULL) return clv__error_memory(error, size_bytes);
  f->batch.data = clv__allocate(allocator, BATCH * sizeof(uint64_t));
  clv_status status = f->batch.data == NULL ? clv__error_memory(error, BATCH * sizeof(uint64_t)) : fill_features(f, error);
  clv__release(allocator, f->batch.data);
  if (status == CLV_OK)
    *tensor = made;
  else
    clv__release(allocator, made.data);
  return status;
}

/* ---- Labels and the vertex count ---- */

static clv_status convert_labels(const clv_allocator *allocator, const clv_tensor *read, uint64_t count, clv_tensor *labels,
                                 clv_error *error) {
  const int64_t dims[] = {(int64_t)count};
  int64_t *values = clv__allocate(allocator, (size_t)count * sizeof *values);
  if (values == NULL) return clv__error_memory(error, (size_t)count * sizeof *values);
  for (size_t i = 0; i < count; ++i) {
    values[i] = clv__tensor_get_int(read, i);
    if (read->dtype != CLV_U64 || values[i] >= 0) continue;
    clv__release(allocator, values);
    return clv__error_set(error, CLV_INVALID_MODEL, "array 'y': the label of vertex %zu does not fit a signed 64-bit integer", i);
  }
  *labels = clv__tensor_make(CLV_I64, 1, dims, values);
  return CLV_OK;
}

static clv_status read_labels(const clv_allocator *allocator, const clv__npz *npz, uint64_t vertex_count, clv_tensor *labels,
                              clv_error *error) {
  clv_tensor read;
  CLV__TRY(clv__npz_read(npz, "y", &read, error));
  clv_status status = CLV_OK;
  bool is_list = read.rank == 1 || (read.rank == 2 && read.dims[1] == 1);
  if (!is_integer(read.dtype) || !is_list || (uint64_t)read.dims[0] != vertex_count) {
    char type[160];
    clv__tensor_text(&read, type, sizeof type);
    status = clv__error_set(error, CLV_INVALID_MODEL, "array 'y' is %s; expected integers [%" PRIu64 "], one per vertex", type,
                            vertex_count);
  }
  if (status == CLV_OK) status = convert_labels(allocator, &read, vertex_count, labels, error);
  clv__release(allocator, read.data);
  return status;
}

/* Reads `num_nodes`, which may be any number: check_plausible() compares it with the edge count. */
static clv_status read_vertex_count(const clv__npz *npz, const clv_allocator *allocator, uint64_t *vertex_count,
                                    clv_error *error) {
  clv_tensor read;
  size_t count;
  CLV__TRY(clv__npz_read(npz, "num_nodes", &read, error));
  bool is_one = is_integer(read.dtype) && clv__tensor_count(&read, &count) && count == 1;
  int64_t number = is_one ? clv__tensor_get_int(&read, 0) : -1;
  char type[160];
  clv__tensor_text(&read, type, sizeof type);
  clv__release(allocator, read.data);
  if (!is_one) return clv__error_set(error, CLV_INVALID_MODEL, "array 'num_nodes' is %s; expected one integer", type);
  if (number < 0 || (uint64_t)number > CLV__MOST_VERTICES) {
    return clv__error_set(error, CLV_INVALID_MODEL, "array 'num_nodes': %" PRId64 " vertices; 0 to %" PRIu64 " are possible",
                          number, CLV__MOST_VERTICES);
  }
  *vertex_count = (uint64_t)number;
  return CLV_OK;
}

/* A small file can state any vertex count with `num_nodes` or `x` [n,0], so the count must be plausible for the number of
 * edges. */
static clv_status check_plausible(const clv__npz *npz, uint64_t vertex_count, const features *f, clv_error *error) {
  if (vertex_count == CLV__VERTICES_UNKNOWN || (f->stream != NULL && f->columns > 0)) return CLV_OK;
  reader r = {.npz = npz};
  CLV__TRY(read_edge_type(&r, error));
  uint64_t limit = clv__vertices_limit(r.edge_count);
  if (vertex_count <= limit) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL,
                        "%" PRIu64 " vertices without features for %" PRIu64 " edges; at most %" PRIu64 " are accepted",
                        vertex_count, r.edge_count, limit);
}

static clv_status read_arrays(const clv_allocator *allocator, const clv__npz *npz, clv__csr *csr, features *f,
                              clv_tensor *features_tensor, clv_tensor *labels, clv_error *error) {
  uint64_t vertex_count = CLV__VERTICES_UNKNOWN;
  if (has_array(npz, "num_nodes")) CLV__TRY(read_vertex_count(npz, allocator, &vertex_count, error));
  if (has_array(npz, "x")) {
    CLV__TRY(open_features(npz, f, error));
    if (vertex_count != CLV__VERTICES_UNKNOWN && vertex_count != f->rows) {
      return clv__error_set(error, CLV_INVALID_MODEL, "array 'x' has %" PRIu64 " rows, but 'num_nodes' is %" PRIu64, f->rows,
                            vertex_count);
    }
    vertex_count = f->rows;
  }
  CLV__TRY(check_plausible(npz, vertex_count, f, error));
  CLV__TRY(read_edges(allocator, npz, vertex_count, csr, error));
  if (has_array(npz, "y")) CLV__TRY(read_labels(allocator, npz, csr->vertex_count, labels, error));
  if (f->stream != NULL) CLV__TRY(read_features(allocator, f, features_tensor, error));
  return CLV_OK;
}

clv_status clv__graph_read_npz(const clv_allocator *allocator, const clv__bytes_at *bytes, clv__gnn_graph **graph,
                               clv_error *error) {
  clv__npz *npz;
  clv__csr csr = {0};
  features f = {0};
  clv_tensor features_tensor = {0}, labels = {0};
  *graph = NULL;
  if (bytes->data == NULL)
    CLV__TRY(clv__npz_open(allocator, bytes->path, &npz, error));
  else
    CLV__TRY(clv__npz_open_memory(allocator, bytes->data, bytes->size_bytes, &npz, error));
  clv_status status = read_arrays(allocator, npz, &csr, &f, &features_tensor, &labels, error);
  clv__npz_stream_close(f.stream);
  clv__npz_close(npz);
  if (status == CLV_OK) return clv__gnn_graph_wrap(allocator, &csr, &features_tensor, &labels, graph, error);
  clv__release(allocator, labels.data);
  clv__release(allocator, features_tensor.data);
  clv__csr_finish(allocator, &csr);
  return clv__error_name(error, status, bytes->path);
}
