/* --compare and --what-if: compares a plan with its alternatives. */
#ifndef CLEAVE_CLI_ALTERNATIVES_H
#define CLEAVE_CLI_ALTERNATIVES_H

#include <jansson.h>

#include "cli/job.h"
#include "plan/compare.h"

typedef struct cli_alternatives {
  clv__arena arena;
  bool has_comparison, has_what_if;
  clv__comparison *comparison;
  uint32_t comparison_count;
  clv__what_if *what_if;
  uint32_t what_if_count;
} cli_alternatives;

/* Computes the alternatives that --compare and --what-if request. If `always_compare` is set, compares the strategies even
 * without --compare. Call cli_alternatives_finish() afterwards, also on failure. */
clv_status cli_alternatives_find(cli_invocation *cli, const cli_job *job, bool always_compare, cli_alternatives *alternatives,
                                 clv_error *error);
void cli_alternatives_text(const cli_job *job, const cli_alternatives *alternatives, clv__text *text);
void cli_alternatives_json(const cli_job *job, const cli_alternatives *alternatives, json_t *root);
void cli_alternatives_finish(cli_alternatives *alternatives); /* accepts a zeroed struct */

#endif
