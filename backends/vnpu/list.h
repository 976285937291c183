/* Command lists: one execution of a program as the device reads it. The host writes a list for every execution of a static
 * program, as a driver fills a command buffer: every operand of every instruction at its device address, each checked to lie
 * inside one allocation. A captured graph keeps its lists, and has only the addresses of its bindings changed.
 *
 * A dynamic program finds its places as it runs: its lists hold the bindings alone. */
#ifndef CLEAVE_BACKENDS_VNPU_LIST_H
#define CLEAVE_BACKENDS_VNPU_LIST_H

#include "program.h"

/* Where an input or output of one execution is. */
typedef struct clv__vnpu_operand_at {
  clv_tensor type; /* without data */
  uint64_t address;
  uint64_t size_bytes;
  bool waits; /* an output whose memory the host allocates once its size is known */
} clv__vnpu_operand_at;

typedef struct clv__vnpu_list {
  clv_instance *instance; /* whose execution it is; the next three are its own */
  const clv_executable *program;
  clv__vnpu_space *space;
  const uint64_t *weights;
  clv__vnpu_operand_at *bindings; /* inputs, then outputs */
  uint64_t *addresses;            /* program->operand_count, in the order of program->instructions; absent operands are 0 */
  uint64_t scratch;               /* of the instance, when the list was written */
} clv__vnpu_list;

/* Memory for a list whose program is set. */
clv_status clv__vnpu_list_init(clv__vnpu_list *list, clv__arena *arena, clv_error *error);
/* Checks the bindings and takes them. */
clv_status clv__vnpu_list_bind(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error);
/* Every address anew, from the bindings, the weights and `scratch` (static programs). */
clv_status clv__vnpu_list_write(clv__vnpu_list *list, uint64_t scratch, clv_error *error);
/* Other bindings for a list that was written: only their addresses change, or nothing where one is refused. */
clv_status clv__vnpu_list_patch(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error);

/* Where a binding's memory is; checks that it is this device's and has room for the type. `name` is that of `value`. */
clv_status clv__vnpu_binding_resolve(const clv__vnpu_list *list, const clv_binding *binding, uint32_t value,
                                     clv__vnpu_operand_at *at, clv_error *error);

#endif
