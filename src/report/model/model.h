/* What the page of a model shows. */
#ifndef CLEAVE_REPORT_MODEL_MODEL_H
#define CLEAVE_REPORT_MODEL_MODEL_H

#include "analysis/shapes.h"
#include "device/device.h"

typedef struct clv__model {
  const char *title; /* such as "resnet50.onnx" */
  const clv_graph *graph;
  const clv__shapes *shapes;
  const clv_devices *devices;
  const clv__capability *capability;
  const double *flops; /* indexed by node; negative: not known */
  uint64_t parameter_count, parameter_bytes;
  double total_flops;
  bool flops_complete; /* false: the FLOPs of some nodes are not known */
} clv__model;

#endif
