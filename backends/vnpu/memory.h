/* The device's own memory: addresses that the host cannot follow, handed out first-fit, poisoned, and checked on every access.
 *
 * A space belongs to a name: devices of one host that say the same name share it. The space called "host" is plain host memory,
 * whose addresses are host addresses.
 *
 * Everything here may be called from any thread. */
#ifndef CLEAVE_BACKENDS_VNPU_MEMORY_H
#define CLEAVE_BACKENDS_VNPU_MEMORY_H

#include "base/memory.h"
#include "cleave/plugin/backend.h"

#define CLV__VNPU_POISON 0xff /* every byte of it: a NaN in all float dtypes, -1 in the signed ones */

typedef struct clv__vnpu_space clv__vnpu_space;

/* Opens the space of this name. A `shared` one is joined where another device of the same host has it open, and must then be
 * described alike; one that is not is the device's own, whatever others are called. `limit_bytes` 0: what the machine has.
 * Errors: CLV_INVALID_ARGUMENT when the name is in use with another size or alignment, or both shared and not; CLV_OUT_OF_MEMORY.
 */
clv_status clv__vnpu_space_open(const clv_host *host, const char *name, bool shared, uint64_t limit_bytes,
                                uint32_t alignment_bytes, clv__vnpu_space **space, clv_error *error);
/* The last one to leave frees all of it, whatever is still allocated. Accepts NULL. */
void clv__vnpu_space_close(clv__vnpu_space *space);

/* Memory of `size_bytes` (0 gets an address too), poisoned. The address is a multiple of the space's alignment and never 0. */
clv_status clv__vnpu_space_allocate(clv__vnpu_space *space, uint64_t size_bytes, uint64_t *address, clv_error *error);
/* Poisons and frees. `size_bytes` as it was asked for. Address 0 is nothing. */
void clv__vnpu_space_free(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes);
/* What `size_bytes` takes: rounded up to the alignment. */
uint64_t clv__vnpu_space_round(const clv__vnpu_space *space, uint64_t size_bytes);
uint64_t clv__vnpu_space_used(clv__vnpu_space *space);
bool clv__vnpu_space_is_host(const clv__vnpu_space *space);

/* The device's own view of its memory: NULL unless [address, address + size) lies inside one allocation. Of the host's space
 * every address is taken as it is. Only the device thread and copies use it. */
void *clv__vnpu_space_translate(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes);
/* The same with an error that says what was wanted. Nothing, which may have any address, is at one that nobody reads or writes.
 */
clv_status clv__vnpu_space_reach(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes, void **data, clv_error *error);

/* "1.5 GiB" for people. */
const char *clv__vnpu_bytes_text(uint64_t size_bytes, char text[32]);

#endif
