/* Reads partitionings computed elsewhere, from the files of --parts: one per k. k = 1 needs no file. */
#include <stdlib.h>

#include "cli/gnn/job.h"

static uint32_t k_of(const clv_gnn_parts *parts) {
  clv_gnn_parts_info info = {.struct_size = sizeof info};
  clv_gnn_parts_get_info(parts, &info);
  return info.k;
}

static bool has_k(const cli_gnn_job *job, uint32_t count, uint32_t k) {
  for (uint32_t i = 0; i < count; ++i) {
    if (k_of(job->parts[i]) == k) return true;
  }
  return false;
}

/* If --kset is given, --kset and --parts must have the same numbers of subgraphs. */
static clv_status check_kset(cli_gnn_job *job, const char *const *paths, clv_error *error) {
  cli_invocation *cli = job->cli;
  uint32_t count;
  if (!cli_is_given(cli, OPTION_KSET)) return CLV_OK;
  CLI_TRY(cli_kset_parse(cli, cli_text(cli, OPTION_KSET, NULL), &job->ks, &count, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (job->ks[i] != 1 && !has_k(job, job->part_count, job->ks[i]))
      return cli_usage(cli, error, "option '--kset' has k = %u, but no --parts file has this number of parts", job->ks[i]);
  }
  for (uint32_t i = 0; i < job->part_count; ++i) {
    uint32_t at = 0, k = k_of(job->parts[i]);
    while (at < count && job->ks[at] != k) ++at;
    if (k != 1 && at == count)
      return cli_usage(cli, error, "%s has %u parts, but --kset does not contain k = %u", paths[i], k, k);
  }
  return CLV_OK;
}

clv_status cli_gnn_parts_read(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const cli_given *given = &cli->options->given[OPTION_GNN_PARTS];
  if (given->count == 0) return CLV_OK;
  job->parts = calloc(given->count, sizeof *job->parts);
  if (job->parts == NULL) return cli_no_memory(error);
  for (uint32_t i = 0; i < given->count; ++i) {
    CLI_TRY(clv_gnn_parts_read(job->graph, given->values[i], &job->parts[i], error));
    ++job->part_count;
    uint32_t k = k_of(job->parts[i]);
    if (has_k(job, i, k)) return cli_usage(cli, error, "%s: another --parts file also has k = %u", given->values[i], k);
  }
  return check_kset(job, given->values, error);
}
