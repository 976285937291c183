/* Shows the result of --verify: per partition, the worst output and the tolerance that was applied to it; then the first wrong
 * element. */
#ifndef CLEAVE_CLI_VERDICT_H
#define CLEAVE_CLI_VERDICT_H

#include <jansson.h>

#include "cli/console.h"
#include "execute/session.h"

/* `plan` is the one that was verified. With --quiet, appends the verdict without the table of partitions. */
void cli_verdict_write(const cli_invocation *cli, const clv_plan *plan, const clv__mismatch *mismatch, clv__text *text);
json_t *cli_verdict_json(const clv_plan *plan, const clv__mismatch *mismatch);

#endif
