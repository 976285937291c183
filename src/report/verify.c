/* The public verification: see cleave/verify.h. It copies what it needs from the session, whose plan may change later. */
#include "cleave/verify.h"

#include <string.h>

#include "base/document.h"
#include "base/options.h"
#include "execute/session.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

enum { NAME_COLUMNS = 40 };

struct clv_verification {
  clv__arena arena;
  clv_verify_result verdict;
  uint32_t count;
  clv_partition_result *partitions;
};

/* ---- The results ---- */

/* Appends the position of an element, given its flat index: as "[0,3,2]", or as "[5]" if the shape is unknown. */
static void append_position(const clv_plan *plan, clv_value_id value, size_t element, clv__text *text) {
  const clv_tensor *type = &plan->shapes->types[value];
  size_t count;
  if (!clv__tensor_count(type, &count) || type->rank == 0) {
    clv__text_append(text, "[%zu]", element);
    return;
  }
  clv__text_append(text, "[");
  for (int32_t d = 0; d < type->rank; ++d) {
    size_t inner = (size_t)clv__dims_product(type, d + 1, type->rank);
    clv__text_append(text, "%s%zu", d > 0 ? "," : "", inner == 0 ? 0 : element / inner % (size_t)type->dims[d]);
  }
  clv__text_append(text, "]");
}

static const char *keep(clv_verification *v, const char *text) {
  return clv__arena_string(&v->arena, text, strlen(text));
}

static const char *device_of(clv_verification *v, const clv_plan *plan, uint32_t partition) {
  return keep(v, plan->devices->items[plan->partitions[partition].device].name);
}

static clv_status keep_partitions(clv_verification *v, const clv_plan *plan, const clv__mismatch *m, clv_error *error) {
  v->partitions = clv__arena_allocate_zero(&v->arena, m->partitions_checked, sizeof *v->partitions);
  if (v->partitions == NULL) return clv__error_memory(error, m->partitions_checked * sizeof *v->partitions);
  for (uint32_t p = 0; p < m->partitions_checked; ++p) {
    const clv__partition_check *check = &m->checks[p];
    clv_partition_result *made = &v->partitions[v->count];
    if (plan->partitions[p].is_hosted) continue;
    *made = (clv_partition_result){.partition = p, .device = device_of(v, plan, p)};
    if (check->value != CLV__NO_ID) {
      made->value = keep(v, plan->graph->values[check->value].name);
      made->difference = check->difference.difference;
      made->tolerance = check->difference.tolerance;
      made->largest = check->difference.largest;
      made->share = check->allowed.share;
      made->steps = check->allowed.steps;
      made->step = check->difference.step;
      made->element_count = check->difference.count;
      made->beyond_count = check->difference.beyond;
    }
    if (made->device == NULL || (check->value != CLV__NO_ID && made->value == NULL)) return clv__error_memory(error, 0);
    ++v->count;
  }
  return CLV_OK;
}

static clv_status keep_verdict(clv_verification *v, const clv_plan *plan, const clv__mismatch *m, clv_error *error) {
  clv_verify_result *verdict = &v->verdict;
  *verdict = (clv_verify_result){.equal = m->partition == CLV__NO_ID,
                                 .compared_count = m->partitions_checked - m->partitions_unknown - m->partitions_hosted,
                                 .unknown_count = m->partitions_unknown,
                                 .partition = m->partition};
  if (verdict->equal) return CLV_OK;
  clv__text position;
  clv__text_init(&position, v->arena.allocator);
  append_position(plan, m->value, m->element, &position);
  verdict->device = device_of(v, plan, m->partition);
  verdict->value = keep(v, plan->graph->values[m->value].name);
  verdict->position = position.failed ? NULL : keep(v, position.data);
  clv__text_finish(&position);
  verdict->element = m->element;
  verdict->expected = m->expected;
  verdict->actual = m->actual;
  verdict->tolerance = m->tolerance;
  verdict->largest = m->largest;
  const bool is_whole = verdict->device != NULL && verdict->value != NULL && verdict->position != NULL;
  return is_whole ? CLV_OK : clv__error_memory(error, 0);
}

clv_status clv_session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                              const clv_verify_options *options, clv_verification **out, clv_error *error) {
  if (session == NULL || (inputs == NULL && input_count > 0) || out == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "session, inputs and verification must not be NULL");
  *out = NULL;
  clv_verify_options read = CLV_VERIFY_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&read, sizeof read, options, "CLV_VERIFY_OPTIONS_INIT", error));
  clv__poll poll = {.go_on = read.go_on, .user_data = read.user_data};
  clv__mismatch mismatch;
  CLV__TRY(clv__session_verify(session, inputs, input_count, &poll, &mismatch, error));
  const clv_plan *plan = clv__session_plan(session);
  const clv_allocator *allocator = plan->graph->allocator;
  clv_verification *v = clv__allocate_zero(allocator, sizeof *v);
  if (v == NULL) return clv__error_memory(error, sizeof *v);
  clv__arena_init(&v->arena, allocator);
  clv_status status = keep_partitions(v, plan, &mismatch, error);
  if (status == CLV_OK) status = keep_verdict(v, plan, &mismatch, error);
  if (status == CLV_OK)
    *out = v;
  else
    clv_verification_destroy(v);
  return status;
}

void clv_verification_destroy(clv_verification *v) {
  if (v == NULL) return;
  const clv_allocator *allocator = v->arena.allocator;
  clv__arena_finish(&v->arena);
  clv__release(allocator, v);
}

void clv_verification_get_result(const clv_verification *v, clv_verify_result *verdict) {
  clv__info_fill(verdict, &v->verdict, sizeof v->verdict);
}

bool clv_verification_partition(const clv_verification *v, uint32_t index, clv_partition_result *result) {
  static const clv_partition_result none = {0};
  const bool exists = index < v->count;
  clv__info_fill(result, exists ? &v->partitions[index] : &none, sizeof none);
  return exists;
}

/* ---- Text ---- */

/* Appends how the tolerance is computed: a number of quantisation steps, plus a share of the tensor's largest magnitude. For
 * example "1 step of 0.047 + 0.0001 of 5.23; 3 of 100,352 elements beyond". */
static void append_rule(const clv_partition_result *p, clv__text *text) {
  char label[CLV__LABEL_BYTES], count[CLV__LABEL_BYTES];
  if (p->steps == 0 && p->share == 0) clv__text_append(text, "exact");
  if (p->steps > 0) {
    clv__label_plural(text, p->steps, "step");
    clv__text_append(text, " of %.3g", p->step);
  }
  if (p->share > 0) clv__text_append(text, "%s%g of %.3g", p->steps > 0 ? " + " : "", p->share, p->largest);
  if (p->beyond_count == 0) return;
  clv__text_append(text, "; %s of %s elements beyond", clv__label_grouped(p->beyond_count, label),
                   clv__label_grouped(p->element_count, count));
}

static void add_number(clv__table *table, bool is_known, double number) {
  if (is_known)
    clv__table_cell(table, "%.3g", number);
  else
    clv__table_cell(table, "%s", "");
}

static void write_partitions(const clv_verification *v, clv__text *text) {
  clv__table table;
  clv__table_init(&table, text->allocator, "rllrrl", true);
  static const char *const header[] = {"partition", "device", "worst output", "difference", "tolerance", "allowed"};
  for (size_t i = 0; i < sizeof header / sizeof *header; ++i) clv__table_cell(&table, "%s", header[i]);
  for (uint32_t i = 0; i < v->count; ++i) {
    const clv_partition_result *p = &v->partitions[i];
    const bool is_compared = p->value != NULL;
    clv__text name, rule;
    clv__text_init(&name, text->allocator);
    clv__text_init(&rule, text->allocator);
    if (is_compared) {
      clv__label_short(&name, p->value, NAME_COLUMNS);
      append_rule(p, &rule);
    } else {
      clv__text_append(&rule, "not verified");
    }
    text->failed = text->failed || name.failed || rule.failed;
    clv__table_cell(&table, "%u", p->partition);
    clv__table_cell(&table, "%s", p->device);
    clv__table_cell(&table, "%s", text->failed ? "" : name.data);
    add_number(&table, is_compared, p->difference);
    add_number(&table, is_compared, p->tolerance);
    clv__table_cell(&table, "%s", text->failed ? "" : rule.data);
    clv__text_finish(&rule);
    clv__text_finish(&name);
  }
  clv__table_write(&table, 0, false, text);
  clv__table_finish(&table);
}

static void write_verdict(const clv_verify_result *verdict, bool is_terminal, clv__text *text) {
  const char *end = is_terminal ? "\033[0m" : "";
  if (verdict->equal) {
    clv__text_append(text, "%sverified%s ", is_terminal ? "\033[32m" : "", end);
    clv__label_plural(text, verdict->compared_count, "partition");
    clv__text_append(text, ": all match the reference within tolerance");
    if (verdict->unknown_count > 0)
      clv__text_append(text, "; %u not verified: the reference does not support their operators", verdict->unknown_count);
    clv__text_append(text, "\n");
    return;
  }
  clv__text_append(text, "%sdiffers%s: partition %u on %s: value '", is_terminal ? "\033[31m" : "", end, verdict->partition,
                   verdict->device);
  clv__label_name(text, verdict->value);
  clv__text_append(text, "' %s is %.9g, expected %.9g (difference %.3g, tolerance %.3g, largest magnitude %.6g)\n",
                   verdict->position, verdict->actual, verdict->expected, verdict->actual - verdict->expected, verdict->tolerance,
                   verdict->largest);
}

/* ---- JSON ---- */

static json_t *partition_json(const clv_partition_result *p) {
  json_t *object = json_object();
  json_object_set_new(object, "partition", json_integer(p->partition));
  json_object_set_new(object, "device", clv__json_text(p->device));
  json_object_set_new(object, "compared", json_boolean(p->value != NULL));
  if (p->value == NULL) return object;
  json_object_set_new(object, "value", clv__json_text(p->value));
  json_object_set_new(object, "difference", clv__json_real(p->difference));
  json_object_set_new(object, "tolerance", clv__json_real(p->tolerance));
  json_object_set_new(object, "largest", clv__json_real(p->largest));
  json_object_set_new(object, "share", clv__json_real(p->share));
  json_object_set_new(object, "steps", json_integer(p->steps));
  json_object_set_new(object, "step", clv__json_real(p->step));
  json_object_set_new(object, "elements", json_integer((json_int_t)p->element_count));
  json_object_set_new(object, "beyond", json_integer((json_int_t)p->beyond_count));
  return object;
}

static json_t *whole_json(const clv_verification *v) {
  const clv_verify_result *verdict = &v->verdict;
  json_t *object = json_object(), *partitions = json_array();
  for (uint32_t i = 0; i < v->count; ++i) json_array_append_new(partitions, partition_json(&v->partitions[i]));
  json_object_set_new(object, "equal", json_boolean(verdict->equal));
  json_object_set_new(object, "partitions_checked", json_integer(verdict->compared_count));
  json_object_set_new(object, "partitions_unknown", json_integer(verdict->unknown_count));
  json_object_set_new(object, "partitions", partitions);
  if (verdict->equal) return object;
  json_object_set_new(object, "partition", json_integer(verdict->partition));
  json_object_set_new(object, "device", clv__json_text(verdict->device));
  json_object_set_new(object, "value", clv__json_text(verdict->value));
  json_object_set_new(object, "element", json_integer((json_int_t)verdict->element));
  json_object_set_new(object, "expected", clv__json_real(verdict->expected));
  json_object_set_new(object, "actual", clv__json_real(verdict->actual));
  json_object_set_new(object, "tolerance", clv__json_real(verdict->tolerance));
  return object;
}

clv_status clv_verification_text(const clv_verification *v, clv_form form, bool brief, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (v == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "verification must not be NULL");
  if (form == CLV_FORM_JSON) return clv__json_give(whole_json(v), v->arena.allocator, out, error);
  clv__text text;
  clv__text_init(&text, v->arena.allocator);
  if (!brief) write_partitions(v, &text);
  write_verdict(&v->verdict, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
