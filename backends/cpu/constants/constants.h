/* Constants as the steps want them: raw and aligned, or packed in a layout of oneDNN's. Made once an executable, shared by all
 * its plans, and with executables that have the same (packs.h). The raw bytes of a large constant are the view's and gone after
 * compile(): a later plan is packed from an earlier pack. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_CONSTANTS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_CONSTANTS_H

#include "backends/cpu/passes/program.h"

typedef struct clv__cpu_pack {
  uint32_t value;
  uint64_t variant;        /* 0: the constant as it is; else which scaling or order went into it */
  clv__cpu_shared *shared; /* the bytes and their layout (NULL: raw, row-major) */
} clv__cpu_pack;

typedef struct clv__cpu_constants {
  clv__cpu_program *program;
  const clv_graph_view *graph; /* while compiling, else NULL: who has packed a constant says so */
  clv__arena arena;
  clv__cpu_pack *packs;
  size_t count, capacity;
  size_t resident_bytes; /* of packs that no executable had before */
  void *copy;            /* while packing: room for a constant that has to be copied first */
  size_t copy_bytes;
} clv__cpu_constants;

/* How a constant's bytes are read before packing. */
typedef struct clv__cpu_packing {
  uint32_t value;
  const clv__dnn_layout *from; /* the raw bytes as a tensor of the dims that the primitive knows */
  const float *scale;          /* factors along raw axis `scale_axis`; NULL: none */
  int32_t scale_axis;
  int64_t expand_groups; /* above 1: weights of a grouped convolution, written out with zeros for the other groups */
  uint64_t variant;      /* tells packs of one constant apart beside `scale` (a transposition) */
  bool turns;            /* u8, moved by 128: packed as i8 */
  bool is_streamed;      /* the time of the step that reads the pack is that of reading it, all of it for each run */
  /* Of weights for Winograd's algorithm, in an order that clv__dnn_layout_winograd() knows: `inputs` input channels from the
   * first of them on; 0: all. */
  int64_t first_input, inputs;
} clv__cpu_packing;

void clv__cpu_constants_init(clv__cpu_constants *constants, clv__cpu_program *program);
void clv__cpu_constants_finish(clv__cpu_constants *constants);
void clv__cpu_constants_rest(clv__cpu_constants *constants); /* gives back what is only needed while packing */
/* Aligned row-major bytes, valid as long as the executable. */
clv_status clv__cpu_constant_raw(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error);
/* A constant of f16 or bf16 in f32, row-major. */
clv_status clv__cpu_constant_wide(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error);
/* Weights of f16 and bf16 are packed in f32 or bf16, as `layout` says; their factors apply in f32. */
clv_status clv__cpu_constant_packed(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                    void **data, clv_error *error);
/* What can be said of a constant whose raw bytes were the view's. */
clv_status clv__cpu_constant_gone(const clv__cpu_constants *constants, uint32_t value, clv_error *error);
/* Writes raw (possibly unaligned, possibly to be scaled) bytes into `data`, as `layout` says (packing.c). */
clv_status clv__cpu_constant_write(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                   void *data, clv_error *error);
/* Copies every constant that has no copy yet: for programs whose plans are made after compile(). */
clv_status clv__cpu_constants_keep_all(clv__cpu_constants *constants, clv_error *error);

#endif
