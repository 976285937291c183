/* See texts.h. */
#include "report/page/texts.h"

#include <string.h>

#include "report/page/html_json.h"

void clv__html_texts_init(clv__html_texts *texts, const clv_allocator *allocator) {
  *texts = (clv__html_texts){.allocator = allocator};
  clv__arena_init(&texts->arena, allocator);
  clv__map_init(&texts->numbers, allocator);
  (void)clv__html_text_number(texts, "");
}

void clv__html_texts_finish(clv__html_texts *texts) {
  clv__release(texts->allocator, (void *)texts->items);
  clv__map_finish(&texts->numbers);
  clv__arena_finish(&texts->arena);
}

uint32_t clv__html_text_number(clv__html_texts *texts, const char *string) {
  if (string == NULL) string = "";
  uint32_t number = clv__map_find(&texts->numbers, string);
  if (number != CLV__MAP_NONE) return number;
  char *copy = clv__arena_string(&texts->arena, string, strlen(string));
  if (copy == NULL ||
      !clv__array_reserve(texts->allocator, (void **)&texts->items, &texts->capacity, texts->count + 1, sizeof *texts->items,
                          texts->count) ||
      !clv__map_set(&texts->numbers, copy, (uint32_t)texts->count)) {
    texts->failed = true;
    return 0;
  }
  texts->items[texts->count] = copy;
  return (uint32_t)texts->count++;
}

void clv__html_texts_write(const clv__html_texts *texts, clv__text *text) {
  clv__text_append(text, "[");
  for (size_t i = 0; i < texts->count; ++i) {
    if (i > 0) clv__text_append(text, ",");
    clv__html_json_string(text, texts->items[i]);
  }
  clv__text_append(text, "]");
  text->failed = text->failed || texts->failed;
}
