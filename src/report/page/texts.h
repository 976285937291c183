/* The repeated texts of a page's data: each is stored once, and the data has its index. */
#ifndef CLEAVE_REPORT_PAGE_TEXTS_H
#define CLEAVE_REPORT_PAGE_TEXTS_H

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct clv__html_texts {
  const clv_allocator *allocator;
  clv__arena arena;
  clv__map numbers; /* text -> index */
  const char **items;
  size_t count, capacity;
  bool failed; /* memory ran out: the indices returned since are wrong */
} clv__html_texts;

/* Text 0 is "". */
void clv__html_texts_init(clv__html_texts *texts, const clv_allocator *allocator);
void clv__html_texts_finish(clv__html_texts *texts);
/* Returns the index of a text; NULL is "". */
uint32_t clv__html_text_number(clv__html_texts *texts, const char *string);
/* Appends all texts as a JSON list. */
void clv__html_texts_write(const clv__html_texts *texts, clv__text *text);

#endif
