/* Reads partitionings computed elsewhere, from the files of --parts: one per k. k = 1 needs no file. */
#include <stdlib.h>
#include <string.h>

#include "cli/gnn/job.h"

static int compare_parts(const void *a, const void *b) {
  uint32_t x = ((const clv__membership *)a)->k, y = ((const clv__membership *)b)->k;
  return (x > y) - (x < y);
}

/* Adds k = 1, because the whole graph is always a candidate. */
static clv_status add_whole(cli_gnn_job *job, clv_error *error) {
  size_t size_bytes = (size_t)job->graph->csr.vertex_count * sizeof(uint32_t);
  uint32_t *parts = clv__allocate_zero(job->cli->allocator, size_bytes);
  if (parts == NULL) return clv__error_memory(error, size_bytes);
  job->parts[job->part_count++] = (clv__membership){.k = 1, .vertex_count = job->graph->csr.vertex_count, .parts = parts};
  return CLV_OK;
}

static bool has_k(const cli_gnn_job *job, uint32_t k) {
  for (uint32_t i = 0; i < job->part_count; ++i) {
    if (job->parts[i].k == k) return true;
  }
  return false;
}

/* If --kset is given, --kset and --parts must have the same numbers of subgraphs. */
static clv_status check_kset(cli_gnn_job *job, const char *const *paths, clv_error *error) {
  cli_invocation *cli = job->cli;
  uint32_t *ks, count;
  if (!cli_is_given(cli, OPTION_KSET)) return CLV_OK;
  CLV__TRY(cli_kset_parse(cli, cli_text(cli, OPTION_KSET, NULL), &ks, &count, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (ks[i] != 1 && !has_k(job, ks[i]))
      return cli_usage(cli, error, "option '--kset' has k = %u, but no --parts file has this number of parts", ks[i]);
  }
  for (uint32_t i = 0; i < job->part_count; ++i) {
    uint32_t at = 0;
    while (at < count && ks[at] != job->parts[i].k) ++at;
    if (job->parts[i].k != 1 && at == count)
      return cli_usage(cli, error, "%s has %u parts, but --kset does not contain k = %u", paths[i], job->parts[i].k,
                       job->parts[i].k);
  }
  return CLV_OK;
}

clv_status cli_gnn_parts_read(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const cli_given *given = &cli->options->given[OPTION_GNN_PARTS];
  if (given->count == 0) return CLV_OK;
  job->parts = clv__arena_allocate_zero(&cli->arena, given->count + 1u, sizeof *job->parts);
  if (job->parts == NULL) return clv__error_memory(error, (given->count + 1u) * sizeof *job->parts);
  for (uint32_t i = 0; i < given->count; ++i) {
    clv__membership *parts = &job->parts[i];
    CLV__TRY(clv__membership_read(cli->allocator, given->values[i], job->graph->csr.vertex_count, parts, error));
    bool is_twice = has_k(job, parts->k);
    ++job->part_count;
    if (is_twice) return cli_usage(cli, error, "%s: another --parts file also has k = %u", given->values[i], parts->k);
  }
  CLV__TRY(check_kset(job, given->values, error)); /* before sorting, while parts[i] is from paths[i] */
  if (!has_k(job, 1)) CLV__TRY(add_whole(job, error));
  qsort(job->parts, job->part_count, sizeof *job->parts, compare_parts);
  return CLV_OK;
}
