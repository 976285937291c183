/* The alternatives to a plan, for --compare, --what-if and the page of --html. */
#ifndef CLEAVE_CLI_ALTERNATIVES_H
#define CLEAVE_CLI_ALTERNATIVES_H

#include "cleave/report.h"
#include "cli/job.h"

/* Compares strategies and devices for --compare and --html. Sets `comparison` to NULL if neither is given. */
clv_status cli_alternatives_compare(cli_invocation *cli, const cli_job *job, clv_comparison **comparison, clv_error *error);
/* Makes the document of --what-if. Sets it to NULL without this option. */
clv_status cli_alternatives_what_if(cli_invocation *cli, const cli_job *job, clv_form form, char **document, clv_error *error);

#endif
