/* The descriptions that applications and backends share: nodes with their attributes, devices, and the function by which a
 * program adds a backend. plugin/backend.h has the rest of the plugin ABI. */
#ifndef CLEAVE_INFO_H
#define CLEAVE_INFO_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_NO_VALUE UINT32_MAX /* an absent optional input or output of a node */

/* A part of a graph. Node indices are [0, node_count), in topological order. Value ids are [0, value_count). The host owns the
 * view. It is valid during the call that received it. */
typedef struct clv_graph_view clv_graph_view;

typedef enum clv_attribute_kind {
  CLV_ATTRIBUTE_INTS = 1, /* one or several; a scalar has count 1 and `is_list` false */
  CLV_ATTRIBUTE_FLOATS = 2,
  CLV_ATTRIBUTE_STRINGS = 3,
  CLV_ATTRIBUTE_TENSOR = 4,
  CLV_ATTRIBUTE_GRAPH = 5
} clv_attribute_kind;

typedef struct clv_attribute {
  const char *name;
  clv_attribute_kind kind;
  bool is_list;
  size_t count;
  const int64_t *ints;
  const float *floats;
  const clv_string *strings;
  const clv_tensor *tensor;
  const clv_graph_view *graph; /* a body; its captured values follow the node's explicit inputs, see clv_node_info */
} clv_attribute;

typedef struct clv_node_info {
  uint32_t struct_size; /* set by the caller */
  int32_t opset;        /* the version of the node's domain that the model imports */
  const char *name;     /* never empty: `Op#index` if the model has no name for the node, or repeats it */
  const char *op;
  const char *domain; /* "" is the ONNX domain */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  uint32_t capture_count; /* the last `capture_count` of `inputs` are outer values that the node's bodies read */
  const uint32_t *inputs; /* view-local value ids; CLV_NO_VALUE if absent */
  const uint32_t *outputs;
  const clv_attribute *attributes;
} clv_node_info;

typedef struct clv_device_info {
  uint32_t struct_size;
  bool static_shapes_only;     /* every shape must be known when supports() is called */
  const char *kind;            /* "cpu", "npu", "gpu" */
  const char *description;     /* one line for the user */
  const char *fingerprint;     /* everything that an executable depends on: device, driver, options */
  const char *memory_space;    /* "host", or another name; devices that give the same name here share memory */
  uint64_t memory_limit_bytes; /* 0: no limit */
  uint32_t alignment_bytes;
  uint32_t max_partition_inputs; /* 0: no limit; streamed weights do not count */
  uint32_t max_partition_nodes;  /* 0: no limit */
  bool is_synchronous;           /* execute() and copies run in the caller's thread and return when they are done */
  /* The device accepts integer weights as the model stores them. A DequantizeLinear of such weights before a Conv, MatMul or Gemm
   * then stays a node with constant inputs. The device computes it once if no integer kernel consumes it. If this is false, the
   * host folds the DequantizeLinear. */
  bool keeps_quantised;
  /* The silicon that computes: "cpu" for the host's cores, or a short name that identifies one chip. Devices that give the same
   * name here share the silicon, and slow each other down when they run at the same time. NULL: unknown. */
  const char *silicon;
  /* The device computes views (Reshape, Flatten, Identity) into memory of its own. If this is false, the host renames a value in
   * the device's memory where the device does not support the view: the next partition reads the same bytes with another shape.
   */
  bool computes_views;
} clv_device_info;

typedef struct clv_host clv_host;       /* the services of the library for a backend: plugin/backend.h */
typedef struct clv_backend clv_backend; /* a backend's table of functions: plugin/backend.h */

/* The type of `clv_backend_query`, the only symbol a plugin exports. A function of this type sets `backend` to a table that is
 * valid as long as the plugin is loaded. */
typedef clv_status (*clv_backend_query_fn)(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
