/* See kernels.h. */
#include "backends/common/kernels.h"

#include <assert.h>
#include <pthread.h>

#include "base/lookup.h"

extern const clv__kernel_versions clv__kernel_table_base, clv__kernel_table_v3, clv__kernel_table_v4;

static clv__lookup lookup;
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

const clv__kernel_versions *clv__kernels(void) {
  return CLV__FOR_ISA(clv__kernel_table);
}

static void fill_lookup(void) {
  for (const clv__kernel *const *family = clv__kernels()->families; *family != NULL; ++family) {
    for (const clv__kernel *kernel = *family; kernel->op != NULL; ++kernel) {
      const bool added = clv__lookup_add(&lookup, kernel->domain, kernel->op, kernel);
      assert(added);
      (void)added;
    }
  }
}

const clv__kernel *clv__fast_kernel_find(const char *domain, const char *op) {
  pthread_once(&lookup_once, fill_lookup);
  const clv__kernel *kernel = clv__lookup_find(&lookup, domain, op);
  return kernel != NULL ? kernel : clv__kernel_find(domain, op);
}
