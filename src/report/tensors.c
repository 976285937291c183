/* Elements of tensors, comparisons and reports of values: see cleave/tensors.h. */
#include "cleave/tensors.h"

#include <math.h>
#include <string.h>

#include "base/document.h"
#include "base/options.h"
#include "base/random.h"
#include "base/tensor/small.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

enum { FIRST_ELEMENTS = 4, NAME_COLUMNS = 44 };

/* ---- Elements ---- */

bool clv_tensor_count(const clv_tensor *tensor, size_t *count) {
  return clv__tensor_count(tensor, count);
}

bool clv_tensor_size_bytes(const clv_tensor *tensor, size_t *size_bytes) {
  return clv__tensor_size_bytes(tensor, size_bytes);
}

bool clv_tensor_same_type(const clv_tensor *a, const clv_tensor *b) {
  return clv__tensor_same_type(a, b);
}

double clv_tensor_element(const clv_tensor *tensor, size_t index) {
  return clv__tensor_get(tensor, index);
}

clv_status clv_tensor_fill_random(clv_tensor *tensor, uint64_t seed, clv_error *error) {
  size_t count;
  if (tensor == NULL || tensor->data == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensor and its data must not be NULL");
  if (tensor->dtype == CLV_STRING || clv_dtype_size_bits(tensor->dtype) == 0 || !clv__tensor_count(tensor, &count)) {
    char type[160];
    clv__tensor_text(tensor, type, sizeof type);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s cannot be filled with random numbers", type);
  }
  clv__small_clear(tensor);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = clv__random(&seed);
    clv__tensor_put(tensor, i, (double)(bits >> 40) / 8388608.0 - 1.0 /* exact in f32 */, (int64_t)(bits >> 33) % 10,
                    bits >> 63 != 0);
  }
  return CLV_OK;
}

/* ---- Comparison ---- */

static bool same_string(const clv_string *a, const clv_string *b) {
  return a->size_bytes == b->size_bytes && (a->size_bytes == 0 || memcmp(a->data, b->data, a->size_bytes) == 0);
}

/* Returns by how much an element's difference exceeds the tolerance; 0 or less if it is within. */
static double excess(const clv_tensor *expected, const clv_tensor *actual, size_t i, bool is_float, double relative,
                     double absolute) {
  if (expected->dtype == CLV_STRING) {
    return same_string((const clv_string *)expected->data + i, (const clv_string *)actual->data + i) ? 0 : 1;
  }
  if (!is_float) {
    size_t size = clv_dtype_size_bytes(expected->dtype);
    if (size > 0 && memcmp((const char *)expected->data + i * size, (const char *)actual->data + i * size, size) == 0) return 0;
    double apart = fabs(clv__tensor_get(actual, i) - clv__tensor_get(expected, i));
    return apart > 0 || size == 0 ? apart : 1;
  }
  double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
  if (e == a || (isnan(e) && isnan(a))) return 0;
  if (!isfinite(e) || !isfinite(a)) return INFINITY;
  return fabs(a - e) - (absolute + relative * fabs(e));
}

static bool compare(const clv_tensor *expected, const clv_tensor *actual, double relative, double absolute,
                    clv_tensor_difference *d) {
  const bool is_float = clv__dtype_is_in(expected->dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT);
  size_t count;
  double largest = 0;
  if (!clv__tensor_same_type(expected, actual) || !clv__tensor_count(expected, &count)) return false;
  d->same_type = true;
  d->count = count;
  for (size_t i = 0; i < count; ++i) {
    double beyond = excess(expected, actual, i, is_float, relative, absolute);
    if (beyond <= 0) continue;
    ++d->beyond;
    if (beyond <= largest) continue;
    largest = beyond;
    d->worst = i;
  }
  if (count == 0 || expected->dtype == CLV_STRING) return d->beyond == 0;
  d->expected = clv__tensor_get(expected, d->worst);
  d->actual = clv__tensor_get(actual, d->worst);
  return d->beyond == 0;
}

bool clv_tensor_compare(const clv_tensor *expected, const clv_tensor *actual, double relative, double absolute,
                        clv_tensor_difference *difference) {
  clv_tensor_difference found = {0};
  const bool agree = compare(expected, actual, relative, absolute, &found);
  if (difference != NULL) clv__info_fill(difference, &found, sizeof found);
  return agree;
}

/* ---- Types ---- */

size_t clv_tensor_type_text(const clv_graph *graph, const clv_tensor *type, char *text, size_t size_bytes) {
  static const clv_graph none = {0};
  clv__text made;
  clv__text_init(&made, graph == NULL ? clv__allocator_default() : graph->allocator);
  clv__label_type(&made, graph == NULL ? &none : graph, type);
  const size_t needed = made.size_bytes;
  if (size_bytes > 0) snprintf(text, size_bytes, "%s", made.data);
  clv__text_finish(&made);
  return needed;
}

/* ---- The report ---- */

typedef struct summary {
  double least, largest, mean;
  size_t counted;    /* finite elements */
  size_t not_finite; /* NaN and infinities */
} summary;

static summary summarize(const clv_tensor *tensor) {
  summary s = {.least = INFINITY, .largest = -INFINITY};
  size_t count;
  double sum = 0;
  if (!clv__dtype_is_in(tensor->dtype, CLV__DTYPES_NUMBER | CLV__DTYPES_SMALL) || !clv__tensor_count(tensor, &count)) return s;
  for (size_t i = 0; i < count; ++i) {
    double value = clv__tensor_get(tensor, i);
    if (!isfinite(value)) {
      ++s.not_finite;
      continue;
    }
    if (value < s.least) s.least = value;
    if (value > s.largest) s.largest = value;
    sum += value;
    ++s.counted;
  }
  if (s.counted > 0) s.mean = sum / (double)s.counted;
  return s;
}

static void append_first(const clv_tensor *tensor, const summary *s, clv__text *text) {
  size_t count = 0;
  bool known = clv__tensor_count(tensor, &count);
  for (size_t i = 0; known && i < count && i < FIRST_ELEMENTS; ++i) {
    clv__text_append(text, i > 0 ? " " : "");
    clv__label_element(text, tensor, i);
  }
  if (count > FIRST_ELEMENTS) clv__text_append(text, " …");
  if (count == 0) clv__text_append(text, "(empty)");
  if (s->not_finite > 0) clv__text_append(text, "  (%zu are not finite)", s->not_finite);
}

static void add_row(clv__table *table, const clv_graph *graph, const clv_named_tensor *value, bool with_files) {
  const clv_tensor *tensor = &value->tensor;
  const summary s = summarize(tensor);
  clv__text name, type, first;
  clv__text_init(&name, table->cells.allocator);
  clv__text_init(&type, table->cells.allocator);
  clv__text_init(&first, table->cells.allocator);
  clv__label_short(&name, value->name, NAME_COLUMNS);
  clv__label_type(&type, graph, tensor);
  append_first(tensor, &s, &first);
  clv__table_cell(table, "%s", name.data);
  clv__table_cell(table, "%s", type.data);
  if (s.counted > 0) {
    clv__table_cell(table, "%.6g", s.least);
    clv__table_cell(table, "%.6g", s.largest);
    clv__table_cell(table, "%.6g", s.mean);
  } else {
    for (int i = 0; i < 3; ++i) clv__table_cell(table, "-");
  }
  clv__table_cell(table, "%s", first.data);
  if (with_files) clv__table_cell(table, "%s", value->file != NULL ? value->file : "");
  clv__text_finish(&first);
  clv__text_finish(&type);
  clv__text_finish(&name);
}

static void write_table(const clv_graph *graph, const clv_named_tensor *values, uint32_t count, bool bold, clv__text *text) {
  static const char *const titles[] = {"output", "type", "min", "max", "mean", "first elements", "file"};
  bool with_files = false;
  for (uint32_t i = 0; i < count; ++i) with_files = with_files || values[i].file != NULL;
  clv__table table;
  clv__table_init(&table, text->allocator, with_files ? "llrrrll" : "llrrrl", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < count; ++i) add_row(&table, graph, &values[i], with_files);
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static json_t *list_json(const clv_graph *graph, const clv_named_tensor *values, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    json_t *object = clv__json_type(graph, &values[i].tensor);
    const summary s = summarize(&values[i].tensor);
    json_object_set_new(object, "name", clv__json_text(values[i].name));
    json_object_set_new(object, "min", s.counted > 0 ? clv__json_real(s.least) : json_null());
    json_object_set_new(object, "max", s.counted > 0 ? clv__json_real(s.largest) : json_null());
    json_object_set_new(object, "mean", s.counted > 0 ? clv__json_real(s.mean) : json_null());
    json_object_set_new(object, "not_finite", json_integer((json_int_t)s.not_finite));
    if (values[i].file != NULL) json_object_set_new(object, "file", clv__json_text(values[i].file));
    json_array_append_new(list, object);
  }
  return list;
}

clv_status clv_tensors_report(const clv_graph *graph, const clv_named_tensor *tensors, uint32_t count, clv_form form, char **out,
                              clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (graph == NULL || (tensors == NULL && count > 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and tensors must not be NULL");
  for (uint32_t i = 0; i < count; ++i) {
    size_t elements = 0;
    const bool is_known = clv__tensor_count(&tensors[i].tensor, &elements);
    if (tensors[i].name == NULL || !is_known || (tensors[i].tensor.data == NULL && elements > 0))
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensor %u has no name, no data, or no known shape", i);
  }
  if (form == CLV_FORM_JSON) return clv__json_give(list_json(graph, tensors, count), graph->allocator, out, error);
  clv__text text;
  clv__text_init(&text, graph->allocator);
  write_table(graph, tensors, count, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
