/* Command lists: one execution of a program in the form that the device reads.
 *
 * The host writes a list for every execution of a static program, as a driver fills a command buffer. The list holds the device
 * address of every operand of every instruction. Each address is checked to lie inside one allocation. A capture keeps its lists.
 * Rebinding a capture changes only the addresses of inputs and outputs.
 *
 * A dynamic program allocates memory as it runs, so its lists hold only the bindings. */
#ifndef CLEAVE_BACKENDS_VNPU_LIST_H
#define CLEAVE_BACKENDS_VNPU_LIST_H

#include "program.h"

/* The memory of one input or output of one execution. */
typedef struct clv__vnpu_operand_at {
  clv_tensor type; /* without data */
  uint64_t address;
  uint64_t size_bytes;
  bool waits; /* an output that has no memory yet: the host allocates it once its size is known */
} clv__vnpu_operand_at;

typedef struct clv__vnpu_list {
  clv_instance *instance; /* the instance that executes the list; the next three members are copied from it */
  const clv_executable *program;
  clv__vnpu_space *space;
  const uint64_t *weights;
  clv__vnpu_operand_at *bindings; /* inputs, then outputs */
  uint64_t *addresses; /* program->operand_count entries, in the order of program->instructions; 0 for an absent operand */
  uint64_t scratch;    /* the instance's scratch address when the list was written */
} clv__vnpu_list;

/* Allocates the arrays of a list. `program` must already be set. */
clv_status clv__vnpu_list_init(clv__vnpu_list *list, clv__arena *arena, clv_error *error);
/* Asks the host for the memory of an output of this type, and binds it. */
clv_status clv__vnpu_output_allocate(const clv_execute_args *args, uint32_t index, const clv_tensor *type, clv_error *error);
/* Checks the bindings and stores them in the list. If an output of a static program has no memory, asks the host for it. */
clv_status clv__vnpu_list_bind(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error);
/* Writes the device address of every operand of a static program. `scratch` is the address of the instance's scratch. */
clv_status clv__vnpu_list_write(clv__vnpu_list *list, uint64_t scratch, clv_error *error);
/* Rebinds a list that was already written. Only the addresses of the bindings change. If a binding is rejected, nothing
 * changes. */
clv_status clv__vnpu_list_patch(clv__vnpu_list *list, const clv_execute_args *args, clv_error *error);

/* Like clv__vnpu_space_reach(), but error messages name the program's value `value`, or the scratch of a kernel if `value` is
 * CLV_NO_VALUE. */
clv_status clv__vnpu_operand_reach(const clv_executable *program, uint32_t value, uint64_t address, uint64_t size_bytes,
                                   void **data, clv_error *error);
/* Finds a binding's memory. Checks that it belongs to this device, is aligned, and is large enough for the type. Error messages
 * name the program's value `value`. */
clv_status clv__vnpu_binding_resolve(const clv__vnpu_list *list, const clv_binding *binding, uint32_t value,
                                     clv__vnpu_operand_at *at, clv_error *error);

#endif
