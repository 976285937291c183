/* Measures sizes from the largest down, each half of the one before. Caches make small copies faster than a line through the
 * large ones predicts. If one line does not fit all, the smallest sizes are omitted from the table, which then gives them the
 * time of the smallest remaining size. See copies.h. */
#include "gnn/measure/copies.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cost/measure.h"
#include "gnn/data/edges.h"

enum { MOST_SIZES = 12, LEAST_SIZES = 4, MOST_RUNS = 64, ROW_BYTES = 256, STRIDE = 4 };
#define LEAST_BYTES UINT64_C(4096)
#define LONG_NS UINT64_C(100000000) /* stop repeating once the copies have taken this long in total */

typedef struct line {
  uint32_t count;
  clv__copy_point points[MOST_SIZES]; /* sorted by size, the largest first */
} line;

static void add_point(line *l, uint64_t size_bytes, uint64_t *samples_ns, uint32_t runs) {
  clv__measure measure = clv__measure_of(samples_ns, runs);
  l->points[l->count++] = (clv__copy_point){.size_bytes = size_bytes,
                                            .origin = CLV__MEASURED,
                                            .time_ns = (double)measure.time_ns,
                                            .spread_ns = 2.0 * (double)measure.spread_ns};
}

static clv_status put_line(clv__tables *tables, const char *from, const char *to, const line *l, clv_error *error) {
  clv__fit_point points[MOST_SIZES];
  clv__fit fit;
  uint32_t count = l->count;
  for (uint32_t i = 0; i < count; ++i)
    points[i] = (clv__fit_point){.flops = (double)l->points[i].size_bytes, .time_ns = l->points[i].time_ns};
  while (count > LEAST_SIZES && !clv__fit_points(points, count, &fit)) --count;
  for (uint32_t i = 0; i < count; ++i) CLV__TRY(clv__tables_put_copy(tables, from, to, &l->points[i], error));
  return CLV_OK;
}

static uint32_t runs_of(uint32_t runs) {
  return runs == 0 ? 1 : runs < MOST_RUNS ? runs : MOST_RUNS;
}

clv_status clv__measure_packing(clv__tables *tables, const clv_allocator *allocator, uint64_t most_bytes, uint32_t runs,
                                uint64_t seed, clv_error *error) {
  char *from = clv__allocate_zero(allocator, most_bytes), *to = clv__allocate_zero(allocator, most_bytes);
  clv_status status = from == NULL || to == NULL ? clv__error_memory(error, most_bytes) : CLV_OK;
  line l = {0};
  for (uint64_t bytes = most_bytes; status == CLV_OK && bytes >= LEAST_BYTES && l.count < MOST_SIZES; bytes /= 2) {
    uint64_t samples[MOST_RUNS], rows = bytes / ROW_BYTES;
    uint32_t count = 0;
    for (uint64_t sum_ns = 0; count < runs_of(runs) && sum_ns <= LONG_NS; ++count) {
      uint64_t begin = clv__clock_ns();
      for (uint64_t r = 0; r < rows; ++r) {
        uint64_t place = (r * STRIDE + clv__mix64(seed + r) % STRIDE) % rows;
        memcpy(to + r * ROW_BYTES, from + place * ROW_BYTES, ROW_BYTES);
      }
      sum_ns += samples[count] = clv__clock_ns() - begin;
    }
    add_point(&l, bytes, samples, count);
  }
  if (status == CLV_OK) status = put_line(tables, CLV__TABLE_HOST, CLV__TABLE_HOST, &l, error);
  clv__release(allocator, to);
  clv__release(allocator, from);
  return status;
}

/* ---- Devices ---- */

typedef struct lane {
  const clv__device *device;
  clv_buffer *buffer;
  clv_stream *stream;
  char *host;
} lane;

static clv_status copy(const lane *at, bool is_in, uint64_t bytes, uint64_t *took_ns, clv_error *error) {
  const clv_backend *backend = at->device->backend;
  clv_device *handle = at->device->handle;
  uint64_t begin = clv__clock_ns();
  CLV__TRY(is_in ? backend->copy_in(handle, at->stream, at->buffer, 0, at->host, bytes, error)
                 : backend->copy_out(handle, at->stream, at->host, at->buffer, 0, bytes, error));
  CLV__TRY(backend->stream_synchronize(handle, at->stream, error));
  *took_ns = clv__clock_ns() - begin;
  return CLV_OK;
}

static clv_status measure_line(const lane *at, bool is_in, uint64_t most_bytes, uint32_t runs, line *l, clv_error *error) {
  for (uint64_t bytes = most_bytes; bytes >= LEAST_BYTES && l->count < MOST_SIZES; bytes /= 2) {
    uint64_t samples[MOST_RUNS], warm;
    CLV__TRY(copy(at, is_in, bytes, &warm, error));
    uint32_t count = 0;
    for (uint64_t sum_ns = 0; count < runs_of(runs) && sum_ns <= LONG_NS; sum_ns += samples[count++])
      CLV__TRY(copy(at, is_in, bytes, &samples[count], error));
    add_point(l, bytes, samples, count);
  }
  return CLV_OK;
}

clv_status clv__measure_device_copies(clv__tables *tables, const clv_allocator *allocator, const clv__device *device,
                                      uint64_t most_bytes, uint32_t runs, clv_error *error) {
  const clv_backend *backend = device->backend;
  lane at = {.device = device};
  line in = {0}, out = {0};
  clv_status status = backend->stream_create(device->handle, &at.stream, error);
  if (status != CLV_OK) return status;
  do {
    clv__error_clear(error);
    status = backend->buffer_alloc(device->handle, most_bytes, &at.buffer, error);
  } while (status == CLV_OUT_OF_MEMORY && (most_bytes /= 2) >= LEAST_BYTES);
  if (status == CLV_OK) {
    at.host = clv__allocate_zero(allocator, most_bytes);
    if (at.host == NULL) status = clv__error_memory(error, most_bytes);
  }
  if (status == CLV_OK) status = measure_line(&at, true, most_bytes, runs, &in, error);
  if (status == CLV_OK) status = measure_line(&at, false, most_bytes, runs, &out, error);
  if (status == CLV_OK) status = put_line(tables, CLV__TABLE_HOST, device->name, &in, error);
  if (status == CLV_OK) status = put_line(tables, device->name, CLV__TABLE_HOST, &out, error);
  clv__release(allocator, at.host);
  if (at.buffer != NULL) backend->buffer_free(device->handle, at.buffer);
  backend->stream_destroy(device->handle, at.stream);
  return status;
}

clv_status clv__model_device_copies(clv__tables *tables, const clv__device *device, uint64_t most_bytes, clv_error *error) {
  const clv_backend *backend = device->backend;
  if (backend->copy_seconds == NULL || backend->copy_seconds(device->handle, 1) < 0)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "'%s' has no speed model: measure the device instead", device->name);
  for (uint64_t bytes = most_bytes; bytes >= LEAST_BYTES; bytes /= 2) {
    clv__copy_point point = {.size_bytes = bytes, .origin = CLV__SYNTHETIC};
    point.time_ns = 1e9 * backend->copy_seconds(device->handle, bytes);
    CLV__TRY(clv__tables_put_copy(tables, CLV__TABLE_HOST, device->name, &point, error));
    CLV__TRY(clv__tables_put_copy(tables, device->name, CLV__TABLE_HOST, &point, error));
  }
  return CLV_OK;
}
