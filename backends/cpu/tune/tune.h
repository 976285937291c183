/* Choices by measurement (--tune). If a step has several implementations, each runs a few times, in turn, on the step's actual
 * shapes. The implementation with the smallest median time is chosen. The context's cache keeps the choice, keyed by the step's
 * description, the library, the CPU model and the device's settings. Later runs reuse it without measuring. */
#ifndef CLEAVE_BACKENDS_CPU_TUNE_TUNE_H
#define CLEAVE_BACKENDS_CPU_TUNE_TUNE_H

#include "backends/cpu/passes/variant.h"

/* ---- Stored choices (notes.c). Any thread may call these functions. ---- */

typedef struct clv__cpu_notes clv__cpu_notes;

#define CLV__CPU_NOTE_ROOM 400 /* size of a buffer for a step's description */
#define CLV__CPU_CHOICE_ROOM 32

/* Opens the store of choices. `key` describes everything but the step that affects its time: CPU, library and settings. */
clv_status clv__cpu_notes_create(const clv_host *host, const char *device, const char *key, clv__cpu_notes **notes,
                                 clv_error *error);
void clv__cpu_notes_destroy(clv__cpu_notes *notes); /* accepts NULL */
/* Copies the choice for a step to `choice`; returns false if there is none. The first call reads the stored choices. Damaged
 * data is ignored, with a warning. The caller must check that the step offers this choice, because stored data may be out of
 * date. */
bool clv__cpu_notes_find(clv__cpu_notes *notes, const char *step, char choice[CLV__CPU_CHOICE_ROOM]);
/* Records a choice. A failure is not reported, because it only means that the alternatives are measured again later. Neither
 * text may contain tabs or line breaks. */
void clv__cpu_notes_add(clv__cpu_notes *notes, const char *step, const char *choice);
/* Stores the new choices, in addition to those that other processes have stored meanwhile. A failure is only logged. */
void clv__cpu_notes_save(clv__cpu_notes *notes);

/* ---- Trials (tune.c) ---- */

enum { CLV__CPU_TRIAL_CALLS = 3, CLV__CPU_TRIAL_OPERANDS = 6, CLV__CPU_TRIAL_BUFFERS = 8 };

/* The buffers of a trial. Calls that name the same buffer use the same memory. */
typedef enum clv__cpu_trial_buffer {
  CLV__CPU_TRIAL_SOURCE,
  CLV__CPU_TRIAL_REORDERED,
  CLV__CPU_TRIAL_WEIGHTS,
  CLV__CPU_TRIAL_BIAS,
  CLV__CPU_TRIAL_DESTINATION,
  CLV__CPU_TRIAL_OTHER,
  CLV__CPU_TRIAL_SCRATCH
} clv__cpu_trial_buffer;

typedef struct clv__cpu_trial_operand {
  int id;
  clv__cpu_trial_buffer buffer;
  const clv__dnn_layout *layout;
} clv__cpu_trial_operand;

typedef struct clv__cpu_trial_call {
  clv__dnn_primitive *primitive; /* NULL: runs `row` instead */
  const clv__cpu_row *row;
  uint32_t count;
  clv__cpu_trial_operand operands[CLV__CPU_TRIAL_OPERANDS];
} clv__cpu_trial_call;

/* One implementation of a step. */
typedef struct clv__cpu_trial {
  const char *name;
  uint32_t count;
  clv__cpu_trial_call calls[CLV__CPU_TRIAL_CALLS];
} clv__cpu_trial;

/* Appends a call; the trial takes ownership of the primitive. */
clv__cpu_trial_call *clv__cpu_trial_add(clv__cpu_trial *trial, clv__dnn_primitive *primitive);
void clv__cpu_trial_operand_add(clv__cpu_trial_call *call, int id, clv__cpu_trial_buffer buffer, const clv__dnn_layout *layout);
void clv__cpu_trial_finish(clv__cpu_trial *trial); /* releases its primitives; accepts a zeroed trial */

/* Finds the stored choice for `step`, a description. Returns false if there is none, or it is not one of the `count` names. */
bool clv__cpu_tune_kept(const clv__cpu_variant *variant, const char *step, const char *const *names, uint32_t count,
                        uint32_t *chosen);
/* Measures the trials, chooses the fastest and stores its name as the choice for `step`. */
clv_status clv__cpu_tune(clv__cpu_variant *variant, const char *step, const clv__cpu_trial *trials, uint32_t count,
                         uint32_t *chosen, clv_error *error);

/* ---- Steps (steps.c). If a step has only one implementation, the caller's choice stays unchanged. ---- */

/* Chooses between Winograd's algorithm and the direct one. */
clv_status clv__cpu_tune_winograd(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                                  bool *winograd, clv_error *error);
/* Chooses between keeping the groups and merging them into one, with zeros between. */
clv_status clv__cpu_tune_groups(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *grouped,
                                const clv__dnn_convolution *whole, bool *as_one, clv_error *error);

typedef enum clv__cpu_product_way {
  CLV__CPU_PRODUCT_ROW,    /* the row step of this backend (kernels/row.h) */
  CLV__CPU_PRODUCT_PACKED, /* oneDNN's product, with the constant matrix in the layout that oneDNN prefers */
  CLV__CPU_PRODUCT_PLAIN   /* oneDNN's product, with the matrix as the model stores it */
} clv__cpu_product_way;

typedef struct clv__cpu_factors {
  const clv__dnn_layout *a, *b, *destination;
  const clv__cpu_row *row; /* the row step; NULL if the product has more than one row */
  const clv__dnn_layout *panels;
} clv__cpu_factors;
clv_status clv__cpu_tune_product(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_factors *factors,
                                 clv__cpu_product_way *way, clv_error *error);

/* Whether to measure: it was requested and nothing forbids it. */
static inline bool clv__cpu_tunes(const clv__cpu_variant *variant) {
  return variant->program->tune && !variant->program->deterministic && variant->onednn;
}

#endif
