/* `cleave cache`: lists, verifies and prunes the executables on disk. */
#include <stdlib.h>
#include <string.h>

#include "cleave/cache.h"
#include "cli/console.h"
#include "cli/options/options.h"

static clv_status list(cli_invocation *cli, char **document, clv_error *error) {
  clv_cache_options options = CLV_CACHE_OPTIONS_INIT;
  options.details = cli->verbose;
  options.brief = cli->quiet;
  return clv_cache_list(cli->context, &options, cli_form(cli), document, error);
}

static clv_status verify(cli_invocation *cli, char **document, clv_error *error) {
  clv_cache_options options = CLV_CACHE_OPTIONS_INIT;
  uint64_t damaged = 0;
  options.brief = cli->quiet;
  clv_status status = clv_cache_verify(cli->context, &options, &damaged, cli_form(cli), document, error);
  if (damaged > 0) cli->exit_status = CLI_EXIT_FAILED;
  return status;
}

/* ---- prune ---- */

/* Parses a size such as "500", "64K", "500M" or "2G" (K is 1024 bytes), or an age such as "90s", "15m", "12h" or "30d". */
static bool parse_amount(const char *text, const char *units, const uint64_t *factors, uint64_t *amount) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  *amount = strtoull(text, &end, 10);
  if (*end == '\0') return units[0] == 'K'; /* a plain number means bytes; an age needs a unit */
  const char *unit = strchr(units, *end);
  return unit != NULL && end[1] == '\0' && !__builtin_mul_overflow(*amount, factors[unit - units], amount);
}

static clv_status read_amounts(cli_invocation *cli, clv_cache_prune_options *options, clv_error *error) {
  static const uint64_t sizes[] = {1ull << 10, 1ull << 20, 1ull << 30, 1ull << 40}, ages[] = {1, 60, 3600, 86400};
  const char *size = cli_text(cli, OPTION_MAX_SIZE, NULL), *age = cli_text(cli, OPTION_MAX_AGE, NULL);
  if (size != NULL && !parse_amount(size, "KMGT", sizes, &options->limit_bytes)) {
    return cli_usage(cli, error, "option '--max-size': '%s' is not a size, such as 500M, 2G or a number of bytes", size);
  }
  if (size != NULL && options->limit_bytes == 0) options->all = true; /* nothing may be left */
  if (age != NULL && (!parse_amount(age, "smhd", ages, &options->age_limit_s) || options->age_limit_s == 0)) {
    return cli_usage(cli, error, "option '--max-age': '%s' is not an age, such as 90s, 15m, 12h or 30d", age);
  }
  if (cli_is_given(cli, OPTION_ALL)) {
    if (size != NULL || age != NULL)
      return cli_usage(cli, error, "option '--all' removes everything: do not combine it with --max-size or --max-age");
    options->all = true;
  }
  return CLV_OK;
}

static clv_status prune(cli_invocation *cli, char **document, clv_error *error) {
  clv_cache_prune_options options = CLV_CACHE_PRUNE_OPTIONS_INIT;
  CLI_TRY(read_amounts(cli, &options, error));
  return clv_cache_prune(cli->context, &options, cli_form(cli), document, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  static const struct {
    const char *name;
    clv_status (*execute)(cli_invocation *cli, char **document, clv_error *error);
  } verbs[] = {{"ls", list}, {"verify", verify}, {"prune", prune}};
  static const cli_option_id of_prune[] = {OPTION_MAX_SIZE, OPTION_MAX_AGE, OPTION_ALL};
  const char *verb = cli->options->operands[0];
  char *document = NULL;
  size_t which = 0;
  while (which < 3 && strcmp(verbs[which].name, verb) != 0) ++which;
  if (which == 3) return cli_usage(cli, error, "'%s' is not one of ls, verify, prune", verb);
  for (size_t i = 0; i < 3 && which != 2; ++i) {
    if (!cli_is_given(cli, of_prune[i])) continue;
    return cli_usage(cli, error, "option '--%s' belongs to 'cleave cache prune', not to '%s'", cli_option_table[of_prune[i]].name,
                     verb);
  }
  cli_progress(cli, "reading the cache");
  clv_status status = verbs[which].execute(cli, &document, error);
  if (status == CLV_NOT_SUPPORTED)
    return cli_usage(cli, error, "no cache directory is set: give --cache-dir DIR, or set CLEAVE_CACHE_DIR");
  const bool is_shown = !cli->quiet || cli->json || which != 2; /* with --quiet, prune prints nothing */
  if (status == CLV_OK && is_shown) status = cli_print_document(cli, document, error);
  clv_text_free(document);
  return status;
}

const cli_command cli_command_cache = {
    .name = "cache",
    .operands = "ls|verify|prune",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "list, check or remove the compiled partitions on disk",
    .description =
        "Compiled partitions are kept in a directory, so that a model that is run again need not be compiled again. A file's\n"
        "name is a hash of everything that the file depends on (operators, weights, shapes, device, driver, options), so\n"
        "outdated files are never used, and you can remove any file at any time. 'run' and 'bench' limit the directory to 1 "
        "GiB.\n"
        "  ls      lists the files, the most recently used first; -v shows file names\n"
        "  verify  reads every file and reports damaged ones; the exit status is 1 if there are any\n"
        "  prune   removes damaged files, files left behind by killed processes, and the least recently used files",
    .examples =
        "  cleave cache ls                                      # list the files of the default directory\n"
        "  cleave cache verify --cache-dir /var/cache/cleave    # look for damaged files\n"
        "  cleave cache prune --max-size 500M --max-age 30d     # remove old files, and keep at most 500 MiB\n"
        "  cleave cache prune --all                             # remove every file\n",
    .execute = execute,
};
