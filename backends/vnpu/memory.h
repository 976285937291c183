/* The device's own memory: addresses that the host cannot dereference, backed by mappings between guard pages. Allocation is
 * first-fit, freed memory is poisoned, and every access is checked.
 *
 * Each space has a name: devices of one host that give the same name share the space. The space named "host" is plain host
 * memory, and its addresses are host addresses.
 *
 * Every function here may be called from any thread. */
#ifndef CLEAVE_BACKENDS_VNPU_MEMORY_H
#define CLEAVE_BACKENDS_VNPU_MEMORY_H

#include "base/memory.h"
#include "cleave/plugin/backend.h"

#define CLV__VNPU_POISON 0xff /* value of every unused byte: NaN in all float dtypes, -1 in the signed integer dtypes */

typedef struct clv__vnpu_space clv__vnpu_space;

/* Opens the space with this name. If it is `shared` and another device of the same host has it open, both use it; their limit
 * and alignment must be equal. A space that is not `shared` belongs to this device alone, even if another space that is not
 * `shared` has the same name. A `limit_bytes` of 0 means the machine's physical memory. Errors: CLV_INVALID_ARGUMENT if the
 * name is in use with another size or alignment, or as both shared and not shared; CLV_OUT_OF_MEMORY. */
clv_status clv__vnpu_space_open(const clv_host *host, const char *name, bool shared, uint64_t limit_bytes,
                                uint32_t alignment_bytes, clv__vnpu_space **space, clv_error *error);
/* The last user to close a space frees all of it, including live allocations. Accepts NULL. */
void clv__vnpu_space_close(clv__vnpu_space *space);

/* Allocates `size_bytes` of poisoned memory; a size of 0 also gets an address. The address is a multiple of the space's alignment
 * and never 0. */
clv_status clv__vnpu_space_allocate(clv__vnpu_space *space, uint64_t size_bytes, uint64_t *address, clv_error *error);
/* Poisons and frees an allocation. `size_bytes` is the size that was requested. Address 0 is ignored. */
void clv__vnpu_space_free(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes);
/* In a guarded space, poisons an allocation; otherwise does nothing. */
void clv__vnpu_space_discard(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes);
/* The size of an allocation of `size_bytes`: rounded up to the alignment. */
uint64_t clv__vnpu_space_round(const clv__vnpu_space *space, uint64_t size_bytes);
uint64_t clv__vnpu_space_used(clv__vnpu_space *space);
bool clv__vnpu_space_is_host(const clv__vnpu_space *space);

/* enter() makes the memory accessible; leave() ends this. In between, the caller may use translated addresses. Pairs of calls
 * may be nested, also by several threads. In a guarded space, an access outside of all pairs is a fault. In other spaces, the
 * memory is always accessible. */
void clv__vnpu_space_enter(clv__vnpu_space *space);
void clv__vnpu_space_leave(clv__vnpu_space *space);
/* Guards the space from now on: see clv__vnpu_space_enter(). The memory of the space "host" stays accessible all the same. */
void clv__vnpu_space_guard(clv__vnpu_space *space);

/* Translates a device address to a host pointer. Returns NULL unless [address, address + size) lies inside one allocation. In the
 * space "host", returns every address unchanged and unchecked. Only code that acts as the device may call this function: the
 * engines, and uploads of weights and constants. */
void *clv__vnpu_space_translate(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes);
/* Translates the address of an operand: like clv__vnpu_space_translate(), but the address must also be a multiple of the space's
 * alignment, except in the space "host". An error names the range or the alignment. A range of 0 bytes is valid at any address;
 * `data` then receives a pointer that must not be dereferenced. */
clv_status clv__vnpu_space_reach(clv__vnpu_space *space, uint64_t address, uint64_t size_bytes, void **data, clv_error *error);

/* Formats a size for people, such as "1.5 GiB". */
const char *clv__vnpu_bytes_text(uint64_t size_bytes, char text[32]);

#endif
