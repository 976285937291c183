/* A compiled partition: the executable of this backend.
 *
 * A program contains its graph as ONNX, without its large weights. Compiling and loading share one path: open the graph, then
 * infer every shape again from the types of the inputs. Compiling then lays out the memory. Loading checks the layout in the file
 * against the inferred shapes. So no number in a file is used unchecked.
 *
 * In a *static* program every shape is known, and its instructions read and write at fixed addresses. A *dynamic* program has
 * an unknown shape, or a node with a body, such as If or Loop. It infers shapes and allocates memory while it runs. But if all
 * shapes follow from those of the inputs, each instance has a static program for the input shapes of that instance. The
 * description can forbid dynamic programs. */
#ifndef CLEAVE_BACKENDS_VNPU_PROGRAM_H
#define CLEAVE_BACKENDS_VNPU_PROGRAM_H

#include "device.h"
#include "operators/run.h"

typedef enum clv__vnpu_location_kind {
  CLV__VNPU_NOWHERE = 0,
  CLV__VNPU_INPUT = 1,    /* binding `index` */
  CLV__VNPU_OUTPUT = 2,   /* binding `index` */
  CLV__VNPU_WEIGHT = 3,   /* weight `index` */
  CLV__VNPU_CONSTANT = 4, /* `offset` into the program's constants */
  CLV__VNPU_SCRATCH = 5   /* `offset` into the instance's scratch (static programs) */
} clv__vnpu_location_kind;

typedef struct clv__vnpu_location {
  clv__vnpu_location_kind kind;
  uint32_t index;
  uint64_t offset;
} clv__vnpu_location;

/* An instruction, which runs one node. */
typedef struct clv__vnpu_instruction {
  clv_node_info node;
  /* NULL if the node has a body, which the host runs, or if no kernel exists, which only `any_operator` (spec.h) permits. */
  const clv__kernel *kernel;
  uint64_t scratch_offset; /* offset of the kernel's own scratch inside the instance's scratch */
  uint64_t scratch_bytes;
  uint32_t first_operand; /* position in a command list: inputs, outputs, then the kernel's scratch if it has any */
} clv__vnpu_instruction;

/* An output that must be copied at the end of a launch, because its value is an input, a constant, a weight, or the value of an
 * earlier output. */
typedef struct clv__vnpu_copy {
  uint32_t value;
  uint32_t output;
} clv__vnpu_copy;

struct clv_executable {
  clv__vnpu_live live;
  const clv_device *device;
  clv__arena arena; /* holds the arrays below */
  void *onnx;       /* the graph as an ONNX model; owned by the program; from the host's allocator */
  size_t onnx_bytes;
  clv_graph_view *view;

  bool is_static;
  uint32_t node_count, value_count, input_count, output_count, weight_count, copy_count;
  clv__vnpu_instruction *instructions;
  clv_tensor *types;                    /* indexed by value: the type, as far as it is known, without data */
  uint64_t *sizes;                      /* indexed by value: the size in bytes (static programs) */
  clv__vnpu_location *locations;        /* indexed by value: where its data is */
  uint32_t *last_uses;                  /* indexed by value: the last instruction that reads or writes it */
  uint32_t *inputs, *outputs, *weights; /* value ids */
  const char **weight_names;
  clv__vnpu_copy *copies;
  uint32_t most_inputs, most_outputs; /* the maximum over all instructions */

  /* For command lists (list.h) of static programs: */
  uint32_t operand_count, first_copy;
  uint32_t *use_starts, *uses; /* the positions of binding b in a list: uses[use_starts[b]] up to uses[use_starts[b + 1] - 1] */

  uint64_t scratch_bytes;
  uint64_t constant_bytes;
  uint64_t constants; /* device address of the constants */
  double seconds;     /* duration of a launch, according to the speed model (static programs) */
  bool warned;        /* whether the host was warned that a launch took longer than the speed model says; compute engine only */
};

/* Opens the graph and infers its types. The caller then lays out the memory, or reads the layout from a file. Takes ownership of
 * `onnx`, even on failure. `input_types` are the types of the graph's first inputs. The remaining inputs are weights. */
clv_status clv__vnpu_program_open(const clv_device *device, void *onnx, size_t onnx_bytes, const clv_tensor *input_types,
                                  uint32_t input_count, clv_executable **program, clv_error *error);
/* Call after the layout. Checks that the program fits in the device's memory (otherwise CLV_TOO_LARGE), and uploads the
 * constants. */
clv_status clv__vnpu_program_finish(clv_executable *program, clv_error *error);
void clv__vnpu_program_destroy(clv_executable *program); /* accepts NULL */

/* The name of a value, for error messages. */
const char *clv__vnpu_value_name(const clv_executable *program, uint32_t value);

/* Lays out the scratch of a static program (layout.c). Values and kernels' scratch may share memory if they are not needed at the
 * same time. */
clv_status clv__vnpu_layout_make(clv_executable *program, clv_error *error);
/* Finds the position of each operand in a command list, and which operands are bindings. Call after the layout. */
clv_status clv__vnpu_layout_index(clv_executable *program, clv_error *error);
/* Checks that values and kernels' scratch that are needed at the same time do not overlap, and that all lie inside the scratch.
 * Otherwise returns CLV_INVALID_MODEL. */
clv_status clv__vnpu_layout_check(clv_executable *program, clv_error *error);

/* Compiles a partition from the host's view of it (compile.c). */
clv_status clv__vnpu_compile(const clv_device *device, const clv_graph_view *graph, clv_executable **program, clv_error *error);

/* Makes a static program of a dynamic one for inputs of these types (compile.c). *out is NULL if that is not possible, because
 * shapes depend on data, a node has a body, or the device lacks the memory; the dynamic program must then run. */
void clv__vnpu_compile_for(const clv_executable *program, const clv_tensor *inputs, clv_executable **out);

/* Saves and loads the `.npubin` file (npubin.c). */
clv_status clv__vnpu_npubin_save(const clv_executable *program, clv_write_fn write, void *cookie, clv_error *error);
clv_status clv__vnpu_npubin_load(const clv_device *device, const void *data, size_t size_bytes, clv_executable **program,
                                 clv_error *error);

#endif
