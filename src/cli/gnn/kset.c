/* Parses --kset, a set of subgraph counts. See gnn.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/gnn/gnn.h"

enum { MOST_KS = 4096 };

static int compare_ks(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static bool take_number(const char **text, uint32_t *number) {
  uint64_t value = 0;
  const char *at = *text;
  while (*at >= '0' && *at <= '9' && value <= UINT32_MAX) value = 10 * value + (uint64_t)(*at++ - '0');
  bool is_number = at > *text && value >= 1 && value <= UINT32_MAX;
  *text = at;
  *number = (uint32_t)value;
  return is_number;
}

clv_status cli_kset_parse(cli_invocation *cli, const char *text, uint32_t **ks, uint32_t *count, clv_error *error) {
  uint32_t made[MOST_KS], filled = 0;
  for (const char *at = text;; ++at) {
    uint32_t first, last;
    bool is_right = take_number(&at, &first);
    last = first;
    if (is_right && at[0] == '.' && at[1] == '.') {
      at += 2;
      is_right = take_number(&at, &last) && first <= last;
    }
    if (!is_right || (*at != ',' && *at != '\0')) {
      return cli_usage(cli, error, "option '--kset': '%s' is not a list of numbers of subgraphs, such as 4 or 1,2,10..20", text);
    }
    if (last - first >= MOST_KS - filled) {
      return cli_usage(cli, error, "option '--kset': '%s' has more than %d numbers", text, MOST_KS - 1);
    }
    for (uint32_t k = 0; k <= last - first; ++k) made[filled++] = first + k;
    if (*at == '\0') break;
  }
  qsort(made, filled, sizeof *made, compare_ks);
  *count = 0;
  for (uint32_t i = 0; i < filled; ++i) {
    if (*count == 0 || made[*count - 1] != made[i]) made[(*count)++] = made[i];
  }
  *ks = malloc(*count * sizeof *made);
  if (*ks == NULL) return cli_no_memory(error);
  memcpy(*ks, made, *count * sizeof *made);
  return CLV_OK;
}
