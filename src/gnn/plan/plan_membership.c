/* The membership beside a plan: plan.json has plan.membership.npy, with the part of each vertex, so that a run needs neither the
 * cache nor METIS. The plan names the file, and has its hash (membership_key). */
#include <string.h>

#include "base/error.h"
#include "formats/arrays/npy.h"
#include "gnn/plan/plan.h"

static const char ending[] = ".membership.npy";

/* The name of the membership's file, in the folder of the plan. */
static const char *name_of(clv__arena *arena, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  size_t length = strlen(name);
  if (length > 5 && strcmp(name + length - 5, ".json") == 0) length -= 5;
  char *made = clv__arena_allocate(arena, length + sizeof ending);
  if (made == NULL) return NULL;
  memcpy(made, name, length);
  memcpy(made + length, ending, sizeof ending);
  return made;
}

/* The path of file `name` in the folder of `path`. */
static clv_status path_beside(const clv_allocator *allocator, const char *path, const char *name, char **beside,
                              clv_error *error) {
  const char *slash = strrchr(path, '/');
  size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1, length = strlen(name) + 1;
  *beside = clv__allocate(allocator, folder + length);
  if (*beside == NULL) return clv__error_memory(error, folder + length);
  memcpy(*beside, path, folder);
  memcpy(*beside + folder, name, length);
  return CLV_OK;
}

clv_status clv__gnn_plan_write_with(clv__gnn_plan *plan, const clv__membership *membership, const char *path, clv_error *error) {
  const clv_allocator *allocator = plan->arena.allocator;
  char *beside;
  if (membership->k < 2) return clv__gnn_plan_write(plan, path, error);
  const char *name = name_of(&plan->arena, path);
  if (name == NULL) return clv__error_memory(error, strlen(path));
  CLV__TRY(path_beside(allocator, path, name, &beside, error));
  const int64_t count = membership->vertex_count;
  const clv_tensor parts = clv__tensor_make(CLV_U32, 1, &count, (void *)(uintptr_t)membership->parts);
  clv_status status = clv__npy_write(allocator, beside, &parts, error);
  clv__release(allocator, beside);
  if (status != CLV_OK) return status;
  plan->membership = name;
  return clv__gnn_plan_write(plan, path, error);
}

clv_status clv__gnn_plan_read_membership(const clv__gnn_plan *plan, const char *path, const clv_allocator *allocator,
                                         clv__membership *membership, clv_error *error) {
  clv_tensor parts;
  char *beside;
  CLV__TRY(path_beside(allocator, path, plan->membership, &beside, error));
  clv_status status = clv__npy_read(allocator, beside, &parts, error);
  if (status == CLV_OK) {
    bool is_good = parts.dtype == CLV_U32 && parts.rank == 1 && parts.dims[0] <= UINT32_MAX;
    const uint32_t *each = parts.data;
    for (int64_t v = 0; is_good && v < parts.dims[0]; ++v) is_good = each[v] < plan->k;
    *membership = (clv__membership){.k = plan->k, .vertex_count = is_good ? (uint32_t)parts.dims[0] : 0, .parts = parts.data};
    if (!is_good)
      status =
          clv__error_set(error, CLV_INVALID_MODEL, "%s: expected the part of each vertex, u32 [n], below %u", beside, plan->k);
    if (!is_good) clv__membership_finish(allocator, membership);
  }
  clv__release(allocator, beside);
  return status;
}
