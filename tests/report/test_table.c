/* Tables as text, CSV and Markdown, with cells that need quoting. */
#include "report/table.h"

#include "support.h"

static void fill(clv__table *table) {
  static const char *const cells[] = {"name", "count", "note",       "a,b",    "1",  "says \"no\"",
                                      "c|d",  "",      "two\nlines", "größer", "10", ""};
  clv__table_init(table, clv__allocator_default(), "lrl", true);
  for (size_t i = 0; i < sizeof cells / sizeof *cells; ++i) clv__table_cell(table, "%s", cells[i]);
}

static void expect(void (*write)(const clv__table *, clv__text *), const char *expected) {
  clv__table table;
  clv__text text;
  fill(&table);
  clv__text_init(&text, clv__allocator_default());
  write(&table, &text);
  assert_false(text.failed);
  assert_string_equal(text.data, expected);
  clv__text_finish(&text);
  clv__table_finish(&table);
}

static void write_text(const clv__table *table, clv__text *text) {
  clv__table_write(table, 1, false, text);
}

static void as_text(void **state) {
  (void)state;
  expect(write_text,
         " name    count  note\n"
         " a,b         1  says \"no\"\n"
         " c|d            two\\nlines\n"
         " größer     10\n");
}

static void as_csv(void **state) {
  (void)state;
  expect(clv__table_write_csv,
         "name,count,note\n"
         "\"a,b\",1,\"says \"\"no\"\"\"\n"
         "c|d,,two\\nlines\n"
         "größer,10,\n");
}

static void as_markdown(void **state) {
  (void)state;
  expect(clv__table_write_markdown,
         "| name | count | note |\n"
         "| --- | ---: | --- |\n"
         "| a,b | 1 | says \"no\" |\n"
         "| c\\|d |  | two\\nlines |\n"
         "| größer | 10 |  |\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_text), cmocka_unit_test(as_csv), cmocka_unit_test(as_markdown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
