/* The findings of an inspection, and their output as text or JSON: see cleave/inspect.h. */
#ifndef CLEAVE_REPORT_INSPECT_INSPECT_H
#define CLEAVE_REPORT_INSPECT_INSPECT_H

#include "base/text.h"
#include "cleave/inspect.h"
#include "device/device.h"

typedef struct clv__inspected_operator {
  const char *op, *domain;
  uint32_t count, folded;
  double flops;
  bool flops_complete;
  uint32_t supported[CLV__MAX_DEVICES]; /* nodes per device */
} clv__inspected_operator;

struct clv_inspection {
  const clv_graph *graph;
  clv_devices *devices;
  clv__shapes *shapes;
  clv__arena arena;
  clv__capability capability;
  bool has_capability;
  uint64_t parameter_count, parameter_bytes, folded_nodes;
  uint64_t unbound_bytes;              /* bytes of parameters that the file does not contain */
  uint64_t folded_count, folded_bytes; /* elements computed by constant folding that nodes read at run time */
  uint32_t parameter_values;
  double flops;
  double *node_flops;  /* by node; negative: they depend on sizes that are not known */
  bool flops_complete; /* false if shapes are open or an operator is unknown */
  clv__inspected_operator *rows;
  uint32_t row_count;
};

/* text.c, json.c: `name` is that of the model. */
void clv__inspect_text(const clv_inspection *in, const char *name, bool nodes, bool all_reasons, bool bold, clv__text *text);
clv_status clv__inspect_json(const clv_inspection *in, const char *name, bool nodes, char **out, clv_error *error);

#endif
