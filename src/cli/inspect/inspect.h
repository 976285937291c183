/* The findings of `cleave inspect`, and their output as text or JSON. */
#ifndef CLEAVE_CLI_INSPECT_INSPECT_H
#define CLEAVE_CLI_INSPECT_INSPECT_H

#include "cli/job.h"

typedef struct cli_inspected_operator {
  const char *op, *domain;
  uint32_t count, folded;
  double flops;
  bool flops_complete;
  uint32_t supported[CLV__MAX_DEVICES]; /* nodes per device */
} cli_inspected_operator;

typedef struct cli_inspection {
  cli_invocation *cli;
  cli_job job;
  clv__shapes *shapes;
  clv__arena arena;
  clv__capability capability;
  bool has_capability;
  uint64_t parameter_count, parameter_bytes, folded_nodes;
  uint64_t unbound_bytes;              /* bytes of parameters that the file does not contain */
  uint64_t folded_count, folded_bytes; /* elements computed by constant folding that nodes read at run time */
  uint32_t parameter_values;
  double flops;
  bool flops_complete; /* false if shapes are open or an operator is unknown */
  cli_inspected_operator *rows;
  uint32_t row_count;
  clv_tensor *operands;
} cli_inspection;

/* Computes a node's FLOPs. Returns false if they depend on sizes that are not known. */
bool cli_inspected_flops(cli_inspection *in, clv_node_id id, double *flops);

clv_status cli_inspect_text(cli_inspection *in, clv_error *error); /* text.c */
clv_status cli_inspect_json(cli_inspection *in, clv_error *error); /* json.c */
clv_status cli_inspect_page(cli_inspection *in, clv_error *error); /* page.c: the file of --html, if that option is given */

#endif
