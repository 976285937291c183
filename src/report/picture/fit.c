/* See fit.h. Estimates widths from those of DejaVu Sans, because the other fonts of the pictures are narrower. */
#include "report/picture/fit.h"

#include <string.h>

#include "report/label.h"

/* Returns the approximate width of a character relative to the font size. */
static double part_of_size(uint32_t character) {
  if (character >= 0x80) return 0.9 * (double)clv__label_width(character);
  if (strchr("ijlI|!.,:;' ", (int)character) != NULL) return 0.34;
  if (strchr("frt()[]{}-/\\\"", (int)character) != NULL) return 0.41;
  if (strchr("mwMW@%", (int)character) != NULL) return 0.95;
  if (character >= 'A' && character <= 'Z') return 0.72;
  return 0.63;
}

double clv__fit_width(const char *content, double size) {
  double sum = 0;
  uint32_t character;
  for (size_t length; (length = clv__label_decode(content, &character)) > 0; content += length) sum += part_of_size(character);
  return sum * size;
}

void clv__fit_append(clv__text *text, const char *content, double size, double width) {
  /* Start with the number of characters that would fit if all were the narrowest, which are a third of the font size wide. */
  size_t columns = width > 0 ? (size_t)(3 * width / size) : 0;
  clv__text shortened;
  for (;; --columns) {
    clv__text_init(&shortened, text->allocator);
    clv__label_short(&shortened, content, columns);
    if (shortened.failed || columns == 0 || clv__fit_width(shortened.data, size) <= width) break;
    clv__text_finish(&shortened);
  }
  clv__text_append(text, "%s", shortened.data);
  text->failed = text->failed || shortened.failed;
  clv__text_finish(&shortened);
}
