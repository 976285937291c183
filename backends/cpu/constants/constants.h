/* Constants in the form that steps need: raw and aligned, or packed in a oneDNN layout. Each is made once per executable and
 * shared by all variants of the executable. Executables with equal constants share the bytes as well (packs.h). The raw bytes
 * of a large constant belong to the graph view that compile() gets, and are gone after compile(). A variant that is made later
 * must therefore convert an existing pack. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_CONSTANTS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_CONSTANTS_H

#include "backends/cpu/passes/program.h"

typedef struct clv__cpu_pack {
  uint32_t value;
  uint64_t arrangement;    /* 0: the constant as it is; otherwise identifies how its elements were scaled or reordered */
  clv__cpu_shared *shared; /* the bytes and their layout (NULL: raw, row-major) */
} clv__cpu_pack;

typedef struct clv__cpu_constants {
  clv__cpu_program *program;
  const clv_graph_view *graph; /* the view being compiled, passed to the host service constant_copied(); NULL after compile() */
  clv__arena arena;
  clv__cpu_pack *packs;
  size_t count, capacity;
  size_t resident_bytes; /* total size of the packs that this executable was the first to make */
  void *copy;            /* while packing: buffer for a constant that must be copied first */
  size_t copy_bytes;
} clv__cpu_constants;

/* How to read a constant's bytes before packing. */
typedef struct clv__cpu_packing {
  uint32_t value;
  const clv__dnn_layout *from; /* the raw bytes as a tensor with the dims that the primitive expects */
  const float *scale;          /* factors along raw axis `scale_axis`; NULL: none */
  int32_t scale_axis;
  int64_t expand_groups; /* above 1: number of groups of a convolution whose weights are expanded with zeros to one group */
  uint64_t arrangement; /* distinguishes packs of one constant that differ in more than `scale`, for example by a transposition */
  bool turns;           /* the weights are u8; shift them by 128 and pack them as i8 */
  bool is_streamed;     /* the step reads the whole pack in each run, and that read dominates its time */
  /* For Winograd weights in an order that clv__dnn_layout_winograd() knows: pack `inputs` input channels from `first_input` on.
   * If `inputs` is 0, all are packed. */
  int64_t first_input, inputs;
} clv__cpu_packing;

void clv__cpu_constants_init(clv__cpu_constants *constants, clv__cpu_program *program);
void clv__cpu_constants_finish(clv__cpu_constants *constants);
void clv__cpu_constants_rest(clv__cpu_constants *constants); /* frees `copy`, which only packing needs */
/* Sets *data to the constant's bytes, aligned and row-major. They stay valid as long as the executable. Returns
 * CLV_NOT_SUPPORTED if the bytes were available only while compiling and have not been kept. */
clv_status clv__cpu_constant_raw(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error);
/* Sets *data to an f16 or bf16 constant converted to row-major f32. */
clv_status clv__cpu_constant_wide(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error);
/* Sets *data to the constant packed in `layout`, converted to the layout's dtype if necessary. The factors `packing->scale` are
 * applied in f32. */
clv_status clv__cpu_constant_packed(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                    void **data, clv_error *error);
/* Sets the error for a constant whose raw bytes were available only while compiling. Returns CLV_NOT_SUPPORTED. */
clv_status clv__cpu_constant_gone(const clv__cpu_constants *constants, uint32_t value, clv_error *error);
/* Writes raw bytes into `data` as `layout` says. The raw bytes may be unaligned and may need scaling (packing.c). */
clv_status clv__cpu_constant_write(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                   void *data, clv_error *error);
/* Copies every constant whose bytes still belong to the graph view, for programs whose variants are made after compile(). */
clv_status clv__cpu_constants_keep_all(clv__cpu_constants *constants, clv_error *error);

#endif
