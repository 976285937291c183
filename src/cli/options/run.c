/* Sets the options of the context and of sessions from the arguments. See options.h. */
#include <string.h>

#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/options/options.h"

void cli_context_options(cli_invocation *cli, clv_context_options *options) {
  *options = (clv_context_options)CLV_CONTEXT_OPTIONS_INIT;
  options->log = cli_log;
  options->log_user_data = cli;
  const char *graph = cli_text(cli, OPTION_GRAPH, ""), *prefill = cli_text(cli, OPTION_PREFILL_GRAPH, "");
  if (strcmp(graph, "off") == 0) options->capture = CLV_CAPTURE_OFF;
  if (strcmp(graph, "on") == 0) options->capture = CLV_CAPTURE_ON;
  if (strcmp(graph, "auto") == 0) options->capture = CLV_CAPTURE_AUTO;
  if (strcmp(prefill, "off") == 0) options->capture_prefill = CLV_SWITCH_OFF;
  if (strcmp(prefill, "on") == 0) options->capture_prefill = CLV_SWITCH_ON;
  if (cli_is_given(cli, OPTION_GRAPH_CACHE)) {
    uint64_t entries = cli_number(cli, OPTION_GRAPH_CACHE, 0); /* larger values are reduced to INT32_MAX */
    options->capture_cache_entries = entries > INT32_MAX ? INT32_MAX : (int32_t)entries;
  }
  const uint64_t fold_mib = cli_number(cli, OPTION_FOLD_LIMIT, 0);
  options->fold_bytes = fold_mib > UINT64_MAX >> 20 ? UINT64_MAX : fold_mib << 20;
  options->cache_directory = cli_text(cli, OPTION_CACHE_DIR, NULL);
}

/* Called if a call of a device never returns. Prints the message and exits, because the run cannot end in any other way. */
static void end_stuck(void *user_data, const char *message) {
  (void)user_data;
  cli_interrupt_exit(message, CLI_EXIT_FAILED);
}

void cli_session_options(cli_invocation *cli, clv_session_options *options) {
  *options = (clv_session_options)CLV_SESSION_OPTIONS_INIT;
  options->deterministic = cli_is_given(cli, OPTION_DETERMINISTIC);
  options->tune = cli_is_given(cli, OPTION_TUNE);
  if (strcmp(cli_text(cli, OPTION_PRECISION, ""), "bf16") == 0) options->precision = CLV_BF16;
  options->bucket_multiple = (uint32_t)cli_number(cli, OPTION_BUCKET, 0);
  options->in_flight = (uint32_t)cli_number(cli, OPTION_IN_FLIGHT, 1);
  options->device_time_limit_s = cli_real(cli, OPTION_DEVICE_TIME_LIMIT, 0);
  options->no_fallback = cli_is_given(cli, OPTION_NO_FALLBACK);
  options->stuck = end_stuck;
}
