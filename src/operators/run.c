/* The table of all reference kernels: finds them by domain and name, checks whether they accept a call, and runs them. */
#include "operators/run.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "base/lookup.h"
#include "base/memory.h"

#define FAMILY(name) clv__kernels_##name,
static const clv__kernel *const families[] = {CLV__TENSOR_FAMILIES(FAMILY)};
#undef FAMILY

static clv__lookup lookup;
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

static void fill_lookup(void) {
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__kernel *kernel = families[i]; kernel->op != NULL; ++kernel) {
      bool added = clv__lookup_add(&lookup, kernel->domain, kernel->op, kernel);
      assert(added);
      (void)added;
    }
  }
}

const clv__kernel *clv__kernel_find(const char *domain, const char *op) {
  pthread_once(&lookup_once, fill_lookup);
  return clv__lookup_find(&lookup, domain, op);
}

bool clv__kernel_holds(const clv__kernel *kernel, const clv__kernel_call *call, char reason[160]) {
  for (uint32_t i = 0; i < call->input_count + call->output_count; ++i) {
    const bool output = i >= call->input_count;
    const clv_dtype dtype = output ? call->outputs[i - call->input_count].dtype : call->inputs[i].dtype;
    if (!clv__dtype_is_in(dtype, CLV__DTYPES_SMALL & ~kernel->dtypes)) continue;
    snprintf(reason, 160, "dtype %s not supported (%s %u)", clv_dtype_name(dtype), output ? "output" : "input",
             output ? i - call->input_count : i);
    return false;
  }
  return true;
}

bool clv__kernel_accepts(const clv__kernel *kernel, const clv__kernel_call *call, char reason[160]) {
  const clv_tensor *decides = call->input_count > 0 ? call->inputs : call->output_count > 0 ? call->outputs : NULL;
  clv_dtype dtype = decides != NULL ? decides->dtype : CLV_DTYPE_NONE;
  if ((kernel->dtypes & CLV__DTYPE_BIT(dtype)) == 0) {
    snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(dtype));
    return false;
  }
  if (!clv__kernel_holds(kernel, call, reason)) return false;
  return kernel->accepts == NULL || kernel->accepts(call, reason);
}

clv_status clv__kernel_run(const clv__kernel *kernel, const clv__kernel_call *call, const clv_allocator *allocator) {
  size_t scratch_bytes = kernel->scratch_bytes != NULL && call->scratch == NULL ? kernel->scratch_bytes(call) : 0;
  if (scratch_bytes == 0) return kernel->run(call);
  void *scratch = scratch_bytes == SIZE_MAX ? NULL : clv__allocate(allocator, scratch_bytes);
  if (scratch == NULL) return clv__error_memory(call->error, scratch_bytes);
  clv__kernel_call with_scratch = *call;
  with_scratch.scratch = scratch;
  clv_status status = kernel->run(&with_scratch);
  clv__release(allocator, scratch);
  return status;
}
