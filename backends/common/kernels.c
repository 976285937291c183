/* See kernels.h. */
#include "backends/common/kernels/kernels.h"

#include <assert.h>
#include <pthread.h>

#include "backends/common/kernels/families.h"
#include "base/lookup.h"

#define FAMILY(name) clv__fast_##name,
static const clv__kernel *const families[] = {CLV__FAST_FAMILIES(FAMILY)};
#undef FAMILY

static clv__lookup lookup;
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

static void fill_lookup(void) {
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__kernel *kernel = families[i]; kernel->op != NULL; ++kernel) {
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
