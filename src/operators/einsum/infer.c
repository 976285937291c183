/* Einsum: infers shape, work and independence from the equation. */
#include "operators/common/checks.h"
#include "operators/common/einsum.h"
#include "operators/common/padding.h"

/* Merges the dims of input `index` into the sizes of the labels. A dim of 1 broadcasts, for letters as for the axes of an
 * ellipsis, as in numpy. */
static clv_status input_merge(clv__infer *infer, uint32_t index, const clv__einsum_term *term, int32_t ellipsis, int64_t *sizes) {
  const clv_tensor *t = &infer->inputs[index];
  int8_t labels[CLV__EINSUM_LABELS];
  clv__einsum_labels(term, ellipsis, labels);
  for (int32_t i = 0; i < t->rank; ++i) {
    int64_t *size = &sizes[labels[i]], own = t->dims[i];
    if (own == 1 || *size == own) continue;
    if (*size == 1) {
      *size = own;
    } else if (*size >= 0 && own >= 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "dimension %d of input %u is %lld, but the same letter or ellipsis axis has size %lld elsewhere",
                            (int)i, (unsigned)index, (long long)own, (long long)*size);
    } else {
      *size = *size < 0 && own < 0 ? CLV_DIM_UNKNOWN : *size < 0 ? own : *size;
    }
  }
  return CLV_OK;
}

static clv_status einsum_infer(clv__infer *infer) {
  clv__einsum_term term, output;
  int64_t sizes[CLV__EINSUM_LABELS], dims[CLV_MAX_RANK];
  int32_t ellipsis_rank = 0;
  bool known = true;
  for (int i = 0; i < CLV__EINSUM_LABELS; ++i) sizes[i] = 1;
  CLV__TRY(clv__einsum_read_output(infer->attributes, infer->input_count, &output, infer->error));
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    const clv_tensor *t = &infer->inputs[i];
    CLV__TRY(clv__check_same_dtype(infer, 0, i));
    CLV__TRY(clv__einsum_read_input(infer->attributes, i, &term, infer->error));
    if (t->rank == CLV_RANK_UNKNOWN) {
      known = false;
      continue;
    }
    int32_t ellipsis = t->rank - term.count;
    if (ellipsis < 0 || (ellipsis > 0 && !term.has_ellipsis)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "input %u has rank %d, but its term in the equation has %d letters%s", (unsigned)i, (int)t->rank,
                            (int)term.count, term.has_ellipsis ? " and an ellipsis" : "");
    }
    if (ellipsis > ellipsis_rank) ellipsis_rank = ellipsis;
    CLV__TRY(input_merge(infer, i, &term, ellipsis, sizes));
  }
  if (!known && output.has_ellipsis) {
    clv__infer_set(infer, 0, infer->inputs[0].dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  int32_t rank = output.count + (output.has_ellipsis ? ellipsis_rank : 0);
  if (rank > CLV_MAX_RANK) {
    return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "the output would have rank %d; the maximum is %d", (int)rank,
                          CLV_MAX_RANK);
  }
  int8_t labels[CLV__EINSUM_LABELS];
  clv__einsum_labels(&output, rank - output.count, labels);
  for (int32_t i = 0; i < rank; ++i) dims[i] = known || sizes[labels[i]] > 1 ? sizes[labels[i]] : CLV_DIM_UNKNOWN;
  clv__infer_set(infer, 0, infer->inputs[0].dtype, rank, dims);
  return CLV_OK;
}

/* Counts one evaluation of the whole expression: two FLOPs per input for every combination of the labels. This is an upper bound
 * for three or more inputs. */
static void einsum_work(const clv__infer *infer, clv__work *work) {
  double sizes[CLV__EINSUM_LABELS], product = 1;
  for (int i = 0; i < CLV__EINSUM_LABELS; ++i) sizes[i] = 1;
  for (uint32_t i = 0; i < infer->input_count; ++i) {
    const clv_tensor *t = &infer->inputs[i];
    clv__einsum_term term;
    int8_t labels[CLV__EINSUM_LABELS];
    if (clv__einsum_read_input(infer->attributes, i, &term, NULL) != CLV_OK || t->rank < term.count) return;
    clv__einsum_labels(&term, t->rank - term.count, labels);
    for (int32_t d = 0; d < t->rank; ++d) {
      if (t->dims[d] != 1) sizes[labels[d]] = (double)t->dims[d];
    }
  }
  for (int i = 0; i < CLV__EINSUM_LABELS; ++i) product *= sizes[i];
  work->flops = product * (infer->input_count > 1 ? 2 * (double)(infer->input_count - 1) : 1);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* A label whose axis is padded must be in the output, because padding must not be added up. It must be padded wherever it
 * occurs, except where its size is 1. */
static bool independent_einsum(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__einsum_term term;
  int8_t labels[CLV__EINSUM_LABELS];
  bool padded[CLV__EINSUM_LABELS] = {false}, whole[CLV__EINSUM_LABELS] = {false};
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const clv_tensor *input = &node->inputs[i];
    if (clv__einsum_read_input(node->attributes, i, &term, NULL) != CLV_OK || input->rank < term.count)
      return clv__padding_no(padding, "its equation does not fit input %u", i);
    clv__einsum_labels(&term, input->rank - term.count, labels);
    for (int32_t axis = 0; axis < input->rank; ++axis) {
      bool is_padded = (padding->inputs[i] >> axis & 1u) != 0;
      if (is_padded) padded[labels[axis]] = true;
      if (!is_padded && input->dims[axis] != 1) whole[labels[axis]] = true;
    }
  }
  if (clv__einsum_read_output(node->attributes, node->input_count, &term, NULL) != CLV_OK || node->outputs[0].rank < term.count)
    return clv__padding_no(padding, "its equation does not fit the output");
  clv__einsum_labels(&term, node->outputs[0].rank - term.count, labels);
  for (int32_t axis = 0; axis < node->outputs[0].rank; ++axis) {
    if (!padded[labels[axis]]) continue;
    if (whole[labels[axis]])
      return clv__padding_no(padding, "its inputs do not have the same open size along axis %d", (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis);
    padded[labels[axis]] = false;
  }
  for (int i = 0; i < CLV__EINSUM_LABELS; ++i) {
    if (padded[i]) return clv__padding_no(padding, "it sums along an axis of open size");
  }
  return true;
}

const clv__op clv__ops_einsum[] = {
    {"", "Einsum", 1, CLV__ANY_COUNT, 1, 1, 0, einsum_infer, einsum_work, independent_einsum},
    {.name = NULL},
};
