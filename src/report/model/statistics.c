/* See statistics.h. The elements pass through a small buffer: constants may be unaligned, and reading a mapped file directly
 * would end the process if the file was truncated. */
#include "report/model/statistics.h"

#include <math.h>

#include "base/memory.h"

enum { PART = 8192 /* elements per step; a multiple of 8, so that packed elements start at a byte */ };

typedef struct reader {
  const clv_graph *graph;
  const clv_tensor *tensor;
  size_t element_bits;
  bool in_file;
  union { /* raw elements, aligned for every dtype */
    double aligned;
    clv_string string;
    unsigned char bytes[PART * sizeof(clv_string)];
  } raw;
  double numbers[PART];
} reader;

/* Copies elements [first, first + count) to the buffer, and describes them as a vector. */
static clv_status read_part(reader *r, size_t first, size_t count, clv_tensor *part, clv_error *error) {
  const char *from = (const char *)r->tensor->data + first * r->element_bits / 8;
  size_t size_bytes = (count * r->element_bits + 7) / 8;
  *part = clv__tensor_make(r->tensor->dtype, 1, (const int64_t[]){(int64_t)count}, r->raw.bytes);
  if (r->in_file) return clv__graph_read_file(r->graph, from, size_bytes, r->raw.bytes, error);
  memcpy(r->raw.bytes, from, size_bytes);
  return CLV_OK;
}

static void convert(const clv_tensor *part, size_t count, double *numbers) {
  if (part->dtype == CLV_F32) {
    const float *from = part->data;
    for (size_t i = 0; i < count; ++i) numbers[i] = from[i];
  } else if (part->dtype == CLV_BF16) {
    const uint16_t *from = part->data;
    for (size_t i = 0; i < count; ++i) numbers[i] = clv__bf16_to_f32(from[i]);
  } else {
    for (size_t i = 0; i < count; ++i) numbers[i] = clv__tensor_get(part, i);
  }
}

/* Adds some numbers to the statistics. `finite` and `squares` (the sum of squared distances from the mean) cover all numbers of
 * earlier calls, and are updated by the formula of Chan, Golub and LeVeque for two samples. */
static void add(const double *numbers, size_t count, clv__statistics *s, size_t *finite, double *squares) {
  double sum = 0, distances = 0;
  size_t own = 0;
  for (size_t i = 0; i < count; ++i) {
    double number = numbers[i];
    s->zeros += number == 0;
    s->nans += number != number;
    s->infinities += fabs(number) == INFINITY;
    if (!isfinite(number)) continue;
    if (*finite + own == 0 || number < s->least) s->least = number;
    if (*finite + own == 0 || number > s->largest) s->largest = number;
    sum += number;
    ++own;
  }
  if (own == 0) return;
  double mean = sum / (double)own, all = (double)(*finite + own), step = mean - s->mean;
  for (size_t i = 0; i < count; ++i) {
    if (isfinite(numbers[i])) distances += (numbers[i] - mean) * (numbers[i] - mean);
  }
  *squares += distances + step * step * (double)*finite * (double)own / all;
  s->mean += step * (double)own / all;
  *finite += own;
}

static reader *open_reader(const clv_graph *graph, const clv_tensor *tensor, clv_error *error) {
  reader *r = clv__allocate(graph->allocator, sizeof *r);
  if (r == NULL) {
    (void)clv__error_memory(error, sizeof *r);
    return NULL;
  }
  r->graph = graph;
  r->tensor = tensor;
  r->element_bits = clv_dtype_size_bits(tensor->dtype);
  r->in_file = clv__graph_is_in_file(graph, tensor->data);
  return r;
}

clv_status clv__statistics_find(const clv_graph *graph, const clv_tensor *tensor, clv__statistics *statistics, clv_error *error) {
  *statistics = (clv__statistics){0};
  if (!clv__tensor_count(tensor, &statistics->count) || tensor->dtype == CLV_STRING) return CLV_OK;
  reader *r = open_reader(graph, tensor, error);
  if (r == NULL) return CLV_OUT_OF_MEMORY;
  clv_status status = CLV_OK;
  size_t finite = 0;
  double squares = 0;
  for (size_t first = 0; status == CLV_OK && first < statistics->count; first += PART) {
    size_t count = statistics->count - first < PART ? statistics->count - first : PART;
    clv_tensor part;
    status = read_part(r, first, count, &part, error);
    if (status != CLV_OK) break;
    convert(&part, count, r->numbers);
    add(r->numbers, count, statistics, &finite, &squares);
  }
  if (finite > 0) statistics->deviation = sqrt(squares / (double)finite);
  clv__release(graph->allocator, r);
  return status;
}

clv_status clv__statistics_first(const clv_graph *graph, const clv_tensor *tensor, size_t most,
                                 void (*each)(void *cookie, const clv_tensor *some, size_t index), void *cookie,
                                 clv_error *error) {
  size_t count;
  if (!clv__tensor_count(tensor, &count) || count == 0) return CLV_OK;
  if (count > most) count = most;
  if (count > PART) count = PART;
  reader *r = open_reader(graph, tensor, error);
  if (r == NULL) return CLV_OUT_OF_MEMORY;
  clv_tensor part;
  clv_status status = read_part(r, 0, count, &part, error);
  for (size_t i = 0; status == CLV_OK && i < count; ++i) each(cookie, &part, i);
  clv__release(graph->allocator, r);
  return status;
}
