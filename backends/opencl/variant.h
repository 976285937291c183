/* Executables, and variants: a variant lists the launches of an executable for given shapes, and the memory they use.
 *
 * An executable contains the partition as a separate ONNX model (executable.c). These passes make a variant, in this order:
 *   infer.c   infers the type of every value for the given inputs, and computes small values that depend only on shapes
 *   fuse.c    fuses elementwise nodes into the node before them
 *   lower.c   turns nodes into steps, with the lower() of each operator
 *   layout.c  decides where each value is stored; values that are not needed at the same time share scratch memory
 * A variant is immutable. Instances with the shapes of compile() share the executable's variant. Any other instance makes its
 * own. */
#ifndef CLEAVE_BACKENDS_OPENCL_VARIANT_H
#define CLEAVE_BACKENDS_OPENCL_VARIANT_H

#include "backends/opencl/lower/expressions.h"
#include "base/files/sealed.h"
#include "programs.h"

#define CLV__OPENCL_INLINE_BYTES 1024u /* constants of up to this many bytes are part of the executable; others are weights */
#define CLV__OPENCL_MAX_POSTS 4

/* The kind of memory that a cl_mem argument, or the source or target of a copy, refers to. */
typedef enum clv__opencl_where {
  CLV__OPENCL_AT_NOWHERE,
  CLV__OPENCL_AT_INPUT,    /* binding `index` */
  CLV__OPENCL_AT_OUTPUT,   /* binding `index` */
  CLV__OPENCL_AT_WEIGHT,   /* weight `index` */
  CLV__OPENCL_AT_CONSTANT, /* region `index` of the variant's constants */
  CLV__OPENCL_AT_SCRATCH,  /* region `index` of the instance's scratch */
  CLV__OPENCL_AT_KEPT      /* persistent memory `index` of the instance */
} clv__opencl_where;

typedef struct clv__opencl_location {
  clv__opencl_where where;
  uint32_t index;
} clv__opencl_location;

typedef struct clv__opencl_region {
  uint64_t offset, size_bytes;
  const void *data; /* constants: the bytes to upload */
} clv__opencl_region;

/* The kind of a kernel's argument, or of the source or target of a copy. The pass layout.c finds the locations of values. */
typedef enum clv__opencl_means {
  CLV__OPENCL_MEANS_BYTES,
  CLV__OPENCL_MEANS_VALUE,
  CLV__OPENCL_MEANS_LOCATION /* `at` is already set */
} clv__opencl_means;

typedef struct clv__opencl_operand {
  clv__opencl_means means;
  uint32_t value; /* if MEANS_VALUE: index of the value; layout.c sets `at` to the location of the value's root */
  clv__opencl_location at;
  uint32_t size_bytes; /* for MEANS_BYTES: the number of `bytes` */
  const void *bytes;
} clv__opencl_operand;

typedef struct clv__opencl_step {
  uint32_t node; /* the node it belongs to, for messages; NONE: a copy of an output at the end */
  bool is_copy;
  clv__opencl_program *program;
  const char *kernel;
  uint32_t dimensions;
  size_t global[3], local[3];
  bool has_local;
  uint32_t operand_count; /* number of operands; a copy has 2: target and source */
  clv__opencl_operand *operands;
  uint64_t to_offset, from_offset, size_bytes; /* for copies */
} clv__opencl_step;

typedef struct clv__opencl_post {
  clv__opencl_function function;
  clv__opencl_node shape; /* the fused node; messages use its name and operator */
  uint32_t operand;       /* index of the value that is the function's other operand; NONE if it has only one */
  bool is_first;          /* `operand` is the function's x, and the computed value its y */
  int64_t inner, period;  /* element `at` of the output uses element at / inner % period of the operand */
} clv__opencl_post;

typedef struct clv__opencl_variant_node {
  bool is_dead;                   /* the node needs no launch: it was folded, or fused into the node before it */
  const clv__opencl_operator *op; /* NULL: a view, or an operator without a kernel, which must be folded */
  uint32_t input_count, output_count;
  uint32_t *inputs, *outputs;
  uint32_t post_count;
  clv__opencl_post posts[CLV__OPENCL_MAX_POSTS];
  uint32_t first_scratch, scratch_count; /* the range of variant->scratch that only this node uses */
} clv__opencl_variant_node;

typedef struct clv__opencl_variant_value {
  clv_tensor type;         /* a static type; `data` is set if the value is known at compile time */
  uint32_t root;           /* the value whose bytes it shares; itself unless it is a view */
  clv__opencl_location at; /* set only for roots */
} clv__opencl_variant_value;

typedef struct clv__opencl_steps {
  clv__opencl_step *items;
  size_t count, capacity;
} clv__opencl_steps;

typedef struct clv__opencl_regions {
  clv__opencl_region *items;
  size_t count, capacity;
} clv__opencl_regions;

/* A launch that may report an input error (faults.h). */
typedef struct clv__opencl_fault_place {
  uint32_t node;
  clv__opencl_explain_fn explain;
} clv__opencl_fault_place;

typedef struct clv__opencl_fault_places {
  clv__opencl_fault_place *items;
  size_t count, capacity;
} clv__opencl_fault_places;

typedef struct clv__opencl_variant {
  clv_device *device;
  clv_executable *executable;
  clv__arena arena;
  clv_tensor *input_types;
  clv__opencl_variant_node *nodes;
  clv__opencl_variant_value *values;
  clv__opencl_steps steps;
  clv__opencl_regions scratch, constants, kept;
  clv__opencl_fault_places fault_places;
  uint32_t kept_faults; /* if there are fault places: the region of `kept` with one fault per place */
  uint64_t scratch_bytes, constant_bytes;
  cl_mem constant_memory, *constant_parts;
} clv__opencl_variant;

typedef struct clv__opencl_value {
  const char *name;
  clv_tensor declared;            /* the type that the graph declares; `data` is set for a small constant */
  uint32_t weight, input, output; /* index among the executable's weights, inputs and outputs, or NONE; for a value that is
                                     several outputs, the first */
} clv__opencl_value;

struct clv_executable {
  clv__object object;
  clv_device *device;
  clv__arena arena;
  void *onnx; /* allocated with the host's allocator */
  size_t onnx_bytes;
  clv_graph_view *view;
  uint32_t node_count, value_count, input_count, output_count, weight_count;
  clv_node_info *nodes;
  clv__opencl_value *values;
  uint32_t *inputs, *outputs, *weights; /* indices of values */
  const char **weight_names;
  clv_tensor *input_types;      /* given to compile(); some may not be static */
  clv__opencl_variant *variant; /* the variant for input_types; NULL if they are not all static */
};

/* ---- Executables (executable.c) ---- */

extern const clv__sealed_kind clv__opencl_executable_kind; /* the file format of executables (blob.c) */

/* Creates an executable from the ONNX model `onnx`. Takes ownership of `onnx`, even on failure. `input_types` are the types of
 * the graph's first inputs. The remaining inputs are weights. */
clv_status clv__opencl_executable_open(clv_device *device, void *onnx, size_t onnx_bytes, const clv_tensor *input_types,
                                       uint32_t input_count, clv_executable **executable, clv_error *error);
clv_status clv__opencl_compile(clv_device *device, const clv_graph_view *graph, clv_executable **executable, clv_error *error);
void clv__opencl_executable_destroy(clv_device *device, clv_executable *executable);
void clv__opencl_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info);
/* Saves and loads files (blob.c). */
clv_status clv__opencl_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                       clv_error *error);
const clv_graph_view *clv__opencl_executable_graph(clv_device *device, const clv_executable *executable,
                                                   size_t *inline_limit_bytes);
/* Does the part of loading that needs no driver: it builds no program and calls no OpenCL function. */
clv_status clv__opencl_executable_read(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                       clv_error *error);
clv_status clv__opencl_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                       clv_error *error);

/* ---- Variants (variant.c) ---- */

/* Makes a variant for inputs of the types `inputs`, which must be static. The programs of its kernels are created, but not
 * built. */
clv_status clv__opencl_variant_make(clv_executable *executable, const clv_tensor *inputs, clv__opencl_variant **variant,
                                    clv_error *error);
/* Builds the programs and uploads the constants. */
clv_status clv__opencl_variant_finish(clv__opencl_variant *variant, clv_error *error);
void clv__opencl_variant_destroy(clv__opencl_variant *variant); /* accepts NULL */

/* ---- The passes ---- */
clv_status clv__opencl_pass_infer(clv__opencl_variant *variant, clv_error *error);
void clv__opencl_pass_fuse(clv__opencl_variant *variant);
clv_status clv__opencl_pass_lower(clv__opencl_variant *variant, clv_error *error);
clv_status clv__opencl_pass_layout(clv__opencl_variant *variant, clv_error *error);

/* ---- Shared by the passes (variant.c) ---- */
/* Describes a node with the types of its operands. `types` has room for input_count + output_count tensors, `constant` for
 * input_count flags. */
clv__opencl_node clv__opencl_variant_node_view(const clv__opencl_variant *variant, uint32_t node, clv_tensor *types,
                                               bool *constant);
/* The largest number of operands (inputs and outputs) of any node. */
uint32_t clv__opencl_variant_most(const clv__opencl_variant *variant);
clv_status clv__opencl_region_add(clv__opencl_variant *variant, clv__opencl_regions *regions, uint64_t size_bytes,
                                  const void *data, uint32_t *index, clv_error *error);
clv_status clv__opencl_step_add(clv__opencl_variant *variant, clv__opencl_steps *steps, const clv__opencl_step *step,
                                clv_error *error);

#endif
