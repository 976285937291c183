/* Shared by the files of this folder: a device of OpenVINO, a model compiled for it, a request. */
#ifndef CLEAVE_BACKENDS_OPENVINO_DEVICE_H
#define CLEAVE_BACKENDS_OPENVINO_DEVICE_H

#include "api.h"
#include "backends/framework/framework.h"

/* Each device has its own core, so that its properties apply to it alone. */
typedef struct clv__openvino_device {
  const clv__openvino *ov;
  const clv_host *host;
  const clv_allocator *allocator;
  ov_core *core;
  char name[64]; /* "CPU", "GPU.0" */
  char kind[8];
  char description[320];
  char fingerprint[640];
  bool static_shapes;
  bool narrow;    /* 64-bit integers may be computed as 32-bit ones */
  bool wide;      /* intermediate f16 and bf16 results may stay f32 */
  bool keeps_nan; /* if set, operators that lose NaNs are rejected */
} clv__openvino_device;

/* An input or output of the partition, and the port of the compiled model that belongs to it. */
typedef struct clv__openvino_port {
  const char *name;
  clv_tensor type; /* the type that the host knows */
  ov_port *port;   /* NULL: an input that the model does not read */
  bool is_dropped; /* the model does not read this input; known before `port` is set */
  bool is_open;    /* the model determines the shape of the port in each run */
  bool is_copy;    /* an output that is the same tensor as port number `of` */
  uint32_t of;
} clv__openvino_port;

typedef struct clv__openvino_model {
  clv__openvino_device *device;
  clv__arena arena;
  ov_compiled_model *compiled;
  uint32_t input_count, output_count;
  clv__openvino_port *ports; /* inputs, then outputs */
} clv__openvino_model;

/* ---- Devices (device.c) ---- */
enum { CLV__OPENVINO_OPTION_COUNT = 7 };
extern const clv_option_info clv__openvino_options[CLV__OPENVINO_OPTION_COUNT];
clv_status clv__openvino_list(void *library, clv_found_fn found, void *cookie, clv_error *error);
clv_status clv__openvino_device_open(void *library, const clv_host *host, const char *name, const clv_device_config *config,
                                     void **device, clv__framework_device_info *info, clv_error *error);
void clv__openvino_device_close(void *device);

/* ---- Verdicts (supports.c) ---- */
bool clv__openvino_may_support(void *device, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict);

/* ---- Models (model.c, blob.c) ---- */
clv_status clv__openvino_model_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                                       const clv_compile_options *options, void **model, clv_error *error);
clv_status clv__openvino_node_try(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error);
void clv__openvino_model_destroy(void *model);
clv_status clv__openvino_model_save(void *model, clv_write_fn write, void *cookie, clv_error *error);
clv_status clv__openvino_model_load(void *device, const void *data, size_t size_bytes, void **model, clv_error *error);
/* Creates a model with room for its ports. Returns NULL if there is no memory. */
clv__openvino_model *clv__openvino_model_new(clv__openvino_device *device, uint32_t input_count, uint32_t output_count);
/* Finds the ports of a compiled model whose names and types are already set, and checks that the ports match them. */
clv_status clv__openvino_model_find_ports(clv__openvino_model *model, clv_error *error);

/* ---- Requests (request.c) ---- */
clv_status clv__openvino_request_create(void *model, const clv_tensor *inputs, uint32_t input_count, void **request,
                                        clv_error *error);
clv_status clv__openvino_request_resize(void *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
void clv__openvino_request_destroy(void *request);
clv_status clv__openvino_request_run(void *request, clv__framework_run *run, clv_error *error);
void clv__openvino_request_stop(void *request);

#endif
