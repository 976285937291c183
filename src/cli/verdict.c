/* See verdict.h. */
#include "cli/verdict.h"

#include "cli/json.h"
#include "report/label.h"
#include "report/table.h"

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

/* Appends how the tolerance is computed: a number of quantisation steps, plus a share of the tensor's largest magnitude. For
 * example "1 step of 0.047 + 0.0001 of 5.23; 3 of 100,352 elements beyond". */
static void append_rule(const clv__partition_check *check, clv__text *text) {
  const clv__tolerance *allowed = &check->allowed;
  const clv__difference *worst = &check->difference;
  char label[CLV__LABEL_BYTES], count[CLV__LABEL_BYTES];
  if (allowed->steps == 0 && allowed->share == 0) clv__text_append(text, "exact");
  if (allowed->steps > 0) {
    clv__label_plural(text, allowed->steps, "step");
    clv__text_append(text, " of %.3g", worst->step);
  }
  if (allowed->share > 0) clv__text_append(text, "%s%g of %.3g", allowed->steps > 0 ? " + " : "", allowed->share, worst->largest);
  if (worst->beyond == 0) return;
  clv__text_append(text, "; %s of %s elements beyond", clv__label_grouped(worst->beyond, label),
                   clv__label_grouped(worst->count, count));
}

static void add_number(clv__table *table, bool is_known, double number) {
  if (is_known)
    clv__table_cell(table, "%.3g", number);
  else
    clv__table_cell(table, "%s", "");
}

static uint32_t count_verified(const clv__mismatch *m) {
  return m->partitions_checked - m->partitions_unknown - m->partitions_hosted;
}

static void write_checks(const clv_plan *plan, const clv__mismatch *m, clv__text *text) {
  clv__table table;
  clv__table_init(&table, text->allocator, "rllrrl", true);
  static const char *const header[] = {"partition", "device", "worst output", "difference", "tolerance", "allowed"};
  for (size_t i = 0; i < sizeof header / sizeof *header; ++i) clv__table_cell(&table, "%s", header[i]);
  for (uint32_t p = 0; p < m->partitions_checked; ++p) {
    if (plan->partitions[p].is_hosted) continue;
    const clv__partition_check *check = &m->checks[p];
    const bool is_compared = check->value != CLV__NO_ID;
    clv__text name, rule;
    clv__text_init(&name, text->allocator);
    clv__text_init(&rule, text->allocator);
    if (is_compared) {
      clv__label_short(&name, plan->graph->values[check->value].name, 40);
      append_rule(check, &rule);
    } else {
      clv__text_append(&rule, "not verified");
    }
    text->failed = text->failed || name.failed || rule.failed;
    clv__table_cell(&table, "%u", p);
    clv__table_cell(&table, "%s", plan->devices->items[plan->partitions[p].device].name);
    clv__table_cell(&table, "%s", text->failed ? "" : name.data);
    add_number(&table, is_compared, check->difference.difference);
    add_number(&table, is_compared, check->difference.tolerance);
    clv__table_cell(&table, "%s", text->failed ? "" : rule.data);
    clv__text_finish(&rule);
    clv__text_finish(&name);
  }
  clv__table_write(&table, 0, false, text);
  clv__table_finish(&table);
}

void cli_verdict_write(const cli_invocation *cli, const clv_plan *plan, const clv__mismatch *m, clv__text *text) {
  if (!cli->quiet) write_checks(plan, m, text);
  if (m->partition == CLV__NO_ID) {
    clv__text_append(text, "%sverified%s ", cli_begin(cli, CLI_GREEN), cli_reset(cli));
    clv__label_plural(text, count_verified(m), "partition");
    clv__text_append(text, ": all match the reference within tolerance");
    if (m->partitions_unknown > 0)
      clv__text_append(text, "; %u not verified: the reference does not support their operators", m->partitions_unknown);
    clv__text_append(text, "\n");
    return;
  }
  clv__text_append(text, "%sdiffers%s: partition %u on %s: value '", cli_begin(cli, CLI_RED), cli_reset(cli), m->partition,
                   plan->devices->items[plan->partitions[m->partition].device].name);
  clv__label_name(text, plan->graph->values[m->value].name);
  clv__text_append(text, "' ");
  append_position(plan, m->value, m->element, text);
  clv__text_append(text, " is %.9g, expected %.9g (difference %.3g, tolerance %.3g, largest magnitude %.6g)\n", m->actual,
                   m->expected, m->actual - m->expected, m->tolerance, m->largest);
}

static json_t *checks_json(const clv_plan *plan, const clv__mismatch *m) {
  json_t *list = json_array();
  for (uint32_t p = 0; p < m->partitions_checked; ++p) {
    if (plan->partitions[p].is_hosted) continue;
    const clv__partition_check *check = &m->checks[p];
    const clv__difference *worst = &check->difference;
    json_t *object = json_object();
    json_object_set_new(object, "partition", json_integer(p));
    json_object_set_new(object, "device", cli_json_text(plan->devices->items[plan->partitions[p].device].name));
    json_object_set_new(object, "compared", json_boolean(check->value != CLV__NO_ID));
    if (check->value != CLV__NO_ID) {
      json_object_set_new(object, "value", cli_json_text(plan->graph->values[check->value].name));
      json_object_set_new(object, "difference", cli_json_real(worst->difference));
      json_object_set_new(object, "tolerance", cli_json_real(worst->tolerance));
      json_object_set_new(object, "largest", cli_json_real(worst->largest));
      json_object_set_new(object, "share", cli_json_real(check->allowed.share));
      json_object_set_new(object, "steps", json_integer(check->allowed.steps));
      json_object_set_new(object, "step", cli_json_real(worst->step));
      json_object_set_new(object, "elements", json_integer((json_int_t)worst->count));
      json_object_set_new(object, "beyond", json_integer((json_int_t)worst->beyond));
    }
    json_array_append_new(list, object);
  }
  return list;
}

json_t *cli_verdict_json(const clv_plan *plan, const clv__mismatch *m) {
  json_t *object = json_object();
  json_object_set_new(object, "equal", json_boolean(m->partition == CLV__NO_ID));
  json_object_set_new(object, "partitions_checked", json_integer(count_verified(m)));
  json_object_set_new(object, "partitions_unknown", json_integer(m->partitions_unknown));
  json_object_set_new(object, "partitions", checks_json(plan, m));
  if (m->partition == CLV__NO_ID) return object;
  json_object_set_new(object, "partition", json_integer(m->partition));
  json_object_set_new(object, "device", cli_json_text(plan->devices->items[plan->partitions[m->partition].device].name));
  json_object_set_new(object, "value", cli_json_text(plan->graph->values[m->value].name));
  json_object_set_new(object, "element", json_integer((json_int_t)m->element));
  json_object_set_new(object, "expected", cli_json_real(m->expected));
  json_object_set_new(object, "actual", cli_json_real(m->actual));
  json_object_set_new(object, "tolerance", cli_json_real(m->tolerance));
  return object;
}
