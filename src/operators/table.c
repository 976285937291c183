/* The operator table: finds operators of all families by domain and name, and computes their work (FLOPs and bytes). The default
 * is one FLOP per element of the outputs. */
#include <assert.h>
#include <pthread.h>

#include "base/lookup.h"
#include "operators/infer.h"

#define FAMILY(name) clv__ops_##name,
static const clv__op *const families[] = {CLV__FAMILIES(FAMILY)};
#undef FAMILY

static clv__lookup lookup;
static pthread_once_t lookup_once = PTHREAD_ONCE_INIT;

static void fill_lookup(void) {
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    for (const clv__op *op = families[i]; op->name != NULL; ++op) {
      bool added = clv__lookup_add(&lookup, op->domain, op->name, op);
      assert(added);
      (void)added;
    }
  }
}

const clv__op *clv__op_find(const char *domain, const char *name) {
  pthread_once(&lookup_once, fill_lookup);
  return clv__lookup_find(&lookup, domain, name);
}

/* Adds the sizes of all present tensors to *bytes. Returns false if the shape of one of them is not fully known. */
static bool sum_bytes(const clv_tensor *tensors, uint32_t count, double *bytes) {
  for (uint32_t i = 0; i < count; ++i) {
    size_t size_bytes;
    if (tensors[i].dtype == CLV_DTYPE_NONE) continue;
    if (!clv__tensor_size_bytes(&tensors[i], &size_bytes)) return false;
    *bytes += (double)size_bytes;
  }
  return true;
}

void clv__op_work(const clv__op *op, const clv__infer *infer, clv__work *work) {
  *work = (clv__work){0, 0};
  double bytes = 0;
  if ((op->flags & CLV__OP_VIEW) != 0) return;
  if (!sum_bytes(infer->inputs, infer->input_count, &bytes)) return;
  if (!sum_bytes(infer->outputs, infer->output_count, &bytes)) return;
  if (op->work != NULL) {
    op->work(infer, work);
  } else {
    for (uint32_t i = 0; i < infer->output_count; ++i) {
      size_t count;
      if (infer->outputs[i].dtype != CLV_DTYPE_NONE && clv__tensor_count(&infer->outputs[i], &count))
        work->flops += (double)count;
    }
  }
  size_t all, picked;
  if ((op->flags & CLV__OP_PICKS) != 0 && clv__tensor_size_bytes(&infer->inputs[0], &all) &&
      clv__tensor_size_bytes(&infer->outputs[0], &picked) && picked < all) {
    bytes -= (double)(all - picked);
  }
  work->bytes = bytes;
}
