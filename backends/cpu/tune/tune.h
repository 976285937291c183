/* Choices by measurement (--tune): where a step can be made in several ways, each is run a few times on its actual shapes, in
 * turns, and the least median wins. What was chosen is kept in the context's cache, by what the step is, under the library, the
 * CPU's model and the device's settings, and is used again without measuring. */
#ifndef CLEAVE_BACKENDS_CPU_TUNE_TUNE_H
#define CLEAVE_BACKENDS_CPU_TUNE_TUNE_H

#include "backends/cpu/passes/plan.h"

/* ---- What is kept (notes.c). Any thread. ---- */

typedef struct clv__cpu_notes clv__cpu_notes;

#define CLV__CPU_NOTE_ROOM 400 /* of a step's description */
#define CLV__CPU_CHOICE_ROOM 32

/* `key` tells machines apart on which times differ. */
clv_status clv__cpu_notes_create(const clv_host *host, const char *device, const char *key, clv__cpu_notes **notes,
                                 clv_error *error);
void clv__cpu_notes_destroy(clv__cpu_notes *notes); /* accepts NULL */
/* The choice for a step, into `choice`; false where there is none. The first call reads what was kept: it may be damaged, or say
 * what never was; then it is left alone, and a warning says so. */
bool clv__cpu_notes_find(clv__cpu_notes *notes, const char *step, char choice[CLV__CPU_CHOICE_ROOM]);
/* Takes a choice down; a failure only means that it is measured again. Neither text has tabs or line breaks. */
void clv__cpu_notes_add(clv__cpu_notes *notes, const char *step, const char *choice);
/* Keeps what is new, beside what others have kept meanwhile. */
void clv__cpu_notes_save(clv__cpu_notes *notes);

/* ---- Trials (tune.c) ---- */

enum { CLV__CPU_TRIAL_CALLS = 3, CLV__CPU_TRIAL_OPERANDS = 6, CLV__CPU_TRIAL_BUFFERS = 8 };

/* Memory of a trial: calls that name the same buffer work on the same memory. */
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
  clv__dnn_primitive *primitive; /* NULL: a row */
  const clv__cpu_row *row;
  uint32_t count;
  clv__cpu_trial_operand operands[CLV__CPU_TRIAL_OPERANDS];
} clv__cpu_trial_call;

/* One way to make a step. */
typedef struct clv__cpu_trial {
  const char *name;
  uint32_t count;
  clv__cpu_trial_call calls[CLV__CPU_TRIAL_CALLS];
} clv__cpu_trial;

/* Appends a call; the primitive becomes the trial's. */
clv__cpu_trial_call *clv__cpu_trial_add(clv__cpu_trial *trial, clv__dnn_primitive *primitive);
void clv__cpu_trial_operand_add(clv__cpu_trial_call *call, int id, clv__cpu_trial_buffer buffer, const clv__dnn_layout *layout);
void clv__cpu_trial_finish(clv__cpu_trial *trial); /* releases its primitives; accepts a zeroed one */

/* Which of so many ways is kept for `step`, a description; false where none of them is. */
bool clv__cpu_tune_kept(const clv__cpu_plan *plan, const char *step, const char *const *names, uint32_t count, uint32_t *chosen);
/* The quickest of the ways, which is kept from then on. */
clv_status clv__cpu_tune(clv__cpu_plan *plan, const char *step, const clv__cpu_trial *trials, uint32_t count, uint32_t *chosen,
                         clv_error *error);

/* ---- Steps (steps.c); what they decide on is left alone where there is only one way ---- */

/* By Winograd's algorithm, or directly. */
clv_status clv__cpu_tune_winograd(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__dnn_convolution *spec,
                                  bool *winograd, clv_error *error);
/* Groups as they are, or as one with zeros between. */
clv_status clv__cpu_tune_groups(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__dnn_convolution *grouped,
                                const clv__dnn_convolution *whole, bool *as_one, clv_error *error);

typedef enum clv__cpu_product_way {
  CLV__CPU_PRODUCT_ROW,    /* our own (row.h) */
  CLV__CPU_PRODUCT_PACKED, /* oneDNN's, with the constant matrix as it likes it */
  CLV__CPU_PRODUCT_PLAIN   /* and as it lies in the model */
} clv__cpu_product_way;

typedef struct clv__cpu_factors {
  const clv__dnn_layout *a, *b, *destination;
  const clv__cpu_row *row; /* NULL: no product of one row */
  const clv__dnn_layout *panels;
} clv__cpu_factors;
clv_status clv__cpu_tune_product(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__cpu_factors *factors,
                                 clv__cpu_product_way *way, clv_error *error);

/* Whether to measure: asked for, and nothing forbids it. */
static inline bool clv__cpu_tunes(const clv__cpu_plan *plan) {
  return plan->program->tune && !plan->program->deterministic && plan->onednn;
}

#endif
