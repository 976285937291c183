/* "Did you mean …?": finds the name nearest to a misspelt one. */
#include <string.h>

#include "cli/command.h"

enum { LONGEST = 48 };

/* The edit distance (insertions, deletions, replacements, swaps of neighbours). */
static size_t distance(const char *a, const char *b) {
  size_t rows[3][LONGEST + 1], a_length = strlen(a), b_length = strlen(b);
  if (a_length > LONGEST || b_length > LONGEST) return SIZE_MAX / 4;
  for (size_t j = 0; j <= b_length; ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a_length; ++i) {
    size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b_length; ++j) {
      size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < best) best = above[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) best = before[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[a_length % 3][b_length];
}

static size_t common_prefix(const char *a, const char *b) {
  size_t length = 0;
  while (a[length] != '\0' && a[length] == b[length]) ++length;
  return length;
}

const char *cli_nearest(const char *wrong, const char *const *names, size_t count) {
  const char *nearest = NULL;
  long best = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t edits = distance(wrong, names[i]), longer = strlen(wrong) > strlen(names[i]) ? strlen(wrong) : strlen(names[i]);
    size_t prefix = common_prefix(wrong, names[i]);
    if (edits > 1 + longer / 2 || (edits > 2 && prefix == 0)) continue; /* too different to be a typo */
    long score = (long)edits - (long)prefix;                            /* the first letters are seldom misspelt */
    if (nearest != NULL && score >= best) continue;
    nearest = names[i];
    best = score;
  }
  return nearest;
}
