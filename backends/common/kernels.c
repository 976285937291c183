/* See kernels.h. */
#include "backends/common/kernels.h"

#include <assert.h>
#include <pthread.h>

#include "base/lookup.h"

extern const clv__kernel_versions clv__kernel_table_base, clv__kernel_table_v3, clv__kernel_table_v4;

enum { MOST = 256 };
static clv__kernel kernels[MOST]; /* the fast kernels; dtypes and accepts() are those of the reference kernels */
static clv__lookup lookup;
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

const clv__kernel_versions *clv__kernels(void) {
  return CLV__FOR_ISA(clv__kernel_table);
}

static void fill_lookup(void) {
  uint32_t count = 0;
  for (const clv__fast_kernel *const *family = clv__kernels()->families; *family != NULL; ++family) {
    for (const clv__fast_kernel *fast = *family; fast->op != NULL && count < MOST; ++fast) {
      const clv__kernel *reference = clv__kernel_find(fast->domain, fast->op);
      assert(reference != NULL);
      kernels[count] =
          (clv__kernel){fast->domain, fast->op, reference->dtypes, fast->run, fast->scratch_bytes, reference->accepts};
      const bool added = clv__lookup_add(&lookup, fast->domain, fast->op, &kernels[count++]);
      assert(added && count < MOST);
      (void)added;
    }
  }
}

const clv__kernel *clv__fast_kernel_find(const char *domain, const char *op) {
  pthread_once(&lookup_once, fill_lookup);
  const clv__kernel *kernel = clv__lookup_find(&lookup, domain, op);
  return kernel != NULL ? kernel : clv__kernel_find(domain, op);
}
