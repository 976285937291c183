/* A compiled partition: the executable of this backend.
 *
 * A program carries its graph as ONNX, without its large weights. Compiling and loading take the same way: the graph is opened,
 * every shape is inferred again from the types of the inputs, and memory is laid out (compiling) or the layout of the file is
 * checked against what was inferred (loading). So nothing that a file says is believed.
 *
 * A *static* program knows every shape: its instructions read and write fixed places. A *dynamic* one (an unknown shape, or a
 * body: only where the description allows them) infers and allocates as it goes. */
#ifndef CLEAVE_BACKENDS_VNPU_PROGRAM_H
#define CLEAVE_BACKENDS_VNPU_PROGRAM_H

#include "device.h"
#include "operators/run.h"

typedef enum clv__vnpu_place {
  CLV__VNPU_NOWHERE = 0,
  CLV__VNPU_INPUT = 1,    /* binding `index` */
  CLV__VNPU_OUTPUT = 2,   /* binding `index` */
  CLV__VNPU_WEIGHT = 3,   /* weight `index` */
  CLV__VNPU_CONSTANT = 4, /* `offset` into the program's constants */
  CLV__VNPU_SCRATCH = 5   /* `offset` into the instance's scratch (static programs) */
} clv__vnpu_place;

typedef struct clv__vnpu_location {
  clv__vnpu_place place;
  uint32_t index;
  uint64_t offset;
} clv__vnpu_location;

/* One node. */
typedef struct clv__vnpu_instruction {
  clv_node_info node;
  const clv__kernel *kernel; /* NULL: it has a body, and the host runs it */
  uint64_t scratch_offset;   /* the kernel's own scratch, in the instance's */
  uint64_t scratch_bytes;
  uint32_t first_operand; /* in a command list: inputs, outputs, then the kernel's scratch where it has some */
} clv__vnpu_instruction;

/* An output that is an input, a constant, or a value that another output holds already. */
typedef struct clv__vnpu_copy {
  uint32_t value;
  uint32_t output;
} clv__vnpu_copy;

struct clv_executable {
  clv__vnpu_live live;
  const clv_device *device;
  clv__arena arena; /* tables */
  void *onnx;       /* from the host's allocator */
  size_t onnx_bytes;
  clv_graph_view *view;

  bool is_static;
  uint32_t node_count, value_count, input_count, output_count, weight_count, copy_count;
  clv__vnpu_instruction *instructions;
  clv_tensor *types;                    /* by value, as far as known, without data */
  uint64_t *sizes;                      /* by value, bytes; static programs */
  clv__vnpu_location *locations;        /* by value */
  uint32_t *last_uses;                  /* by value: the last instruction that reads or makes it */
  uint32_t *inputs, *outputs, *weights; /* values */
  const char **weight_names;
  clv__vnpu_copy *copies;
  uint32_t most_inputs, most_outputs; /* of one instruction */

  /* Of command lists (list.h); static programs: */
  uint32_t operand_count, first_copy;
  uint32_t *use_starts, *uses; /* by binding, CSR: its positions in a list */

  uint64_t scratch_bytes;
  uint64_t constant_bytes;
  uint64_t constants; /* device address */
  double seconds;     /* a launch, by the speed model (static programs) */
  bool warned;        /* that a launch took longer than the model says; the compute engine's own */
};

/* Opens the graph and infers; no layout yet. Takes `onnx` over, also when it fails. `input_types` are those of the graph's first
 * inputs; what follows are weights. */
clv_status clv__vnpu_program_open(const clv_device *device, void *onnx, size_t onnx_bytes, const clv_tensor *input_types,
                                  uint32_t input_count, clv_executable **program, clv_error *error);
/* After the layout: checks that it fits (CLV_TOO_LARGE when it does not), and puts the constants on the device. */
clv_status clv__vnpu_program_finish(clv_executable *program, clv_error *error);
void clv__vnpu_program_destroy(clv_executable *program); /* accepts NULL */

/* The name of a value, for messages. */
const char *clv__vnpu_value_name(const clv_executable *program, uint32_t value);

/* Lays out the scratch of a static program: what does not live at once may share (layout.c). */
clv_status clv__vnpu_layout_make(clv_executable *program, clv_error *error);
/* Where each operand stands in a command list, and which of them are bindings; once the program is laid out. */
clv_status clv__vnpu_layout_index(clv_executable *program, clv_error *error);
/* That no two things that live at once overlap, and all lie inside the scratch. CLV_INVALID_MODEL otherwise. */
clv_status clv__vnpu_layout_check(clv_executable *program, clv_error *error);

/* A partition, as the host shows it (compile.c). */
clv_status clv__vnpu_compile(const clv_device *device, const clv_graph_view *graph, clv_executable **program, clv_error *error);

/* The `.npubin` file (npubin.c). */
clv_status clv__vnpu_npubin_save(const clv_executable *program, clv_write_fn write, void *cookie, clv_error *error);
clv_status clv__vnpu_npubin_load(const clv_device *device, const void *data, size_t size_bytes, clv_executable **program,
                                 clv_error *error);

#endif
