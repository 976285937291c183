/* Lowers scaled_dot_product_attention(q, k, v, mask?, dropout_p, is_causal, scale?, enable_gqa) to softmax(q k^T scale + mask)
 * v. See lower.h. */
#include <math.h>

#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static const clv__aten_scalar one = {CLV_F32, 1, 1};

/* Repeats each head of k or v for all heads of q that share it. */
static value repeat_heads(aten *n, value x, int64_t heads) {
  int32_t rank = x.type.rank;
  int64_t own = x.type.dims[rank - 3], wide[CLV_MAX_RANK + 1], dims[CLV_MAX_RANK];
  if (own == heads) return x;
  if (own < 1 || heads % own != 0) {
    clv__aten_fail(n, "the number of key or value heads, %lld, does not divide the number of query heads, %lld", (long long)own,
                   (long long)heads);
    return x;
  }
  if (rank == CLV_MAX_RANK) {
    clv__aten_fail(n, "its inputs have rank %d; with grouped heads, expected at most %d", (int)rank, CLV_MAX_RANK - 1);
    return x;
  }
  memcpy(dims, x.type.dims, sizeof dims);
  dims[rank - 3] = heads;
  for (int32_t i = 0; i <= rank; ++i) wide[i] = i < rank - 2 ? x.type.dims[i] : i == rank - 2 ? heads / own : x.type.dims[i - 1];
  x = clv__aten_expand(n, clv__aten_unsqueeze(n, x, rank - 2), rank + 1, wide);
  return clv__aten_reshape(n, x, rank, dims);
}

/* Returns the bool mask [queries, keys] of is_causal: a query attends only to keys at its own or an earlier position. */
static value causal_mask(aten *n, int64_t queries, int64_t keys) {
  clv_tensor shape = {.rank = 2, .dims = {queries, keys}};
  value all = clv__aten_filled(n, CLV_I64, one, &shape);
  clv__aten_set_int(n, "upper", 0);
  return clv__aten_cast(n, clv__aten_call(n, "Trilu", CLV_I64, all), CLV_BOOL);
}

static value masked(aten *n, value scores, value mask) {
  clv_dtype dtype = scores.type.dtype;
  if (mask.id == CLV__NO_ID) return scores;
  if (mask.type.dtype != CLV_BOOL) return clv__aten_call(n, "Add", dtype, scores, clv__aten_cast(n, mask, dtype));
  return clv__aten_call(n, "Where", dtype, mask, scores, clv__aten_number(n, dtype, -INFINITY));
}

/* Returns `made`, with zeros for queries all of whose keys are masked. */
static value without_masked(aten *n, value scores, value made) {
  clv_dtype dtype = made.type.dtype;
  int64_t last = -1;
  clv__aten_set_int(n, "keepdims", 1);
  value most = clv__aten_call(n, "ReduceMax", dtype, scores, clv__aten_vector(n, &last, 1));
  value nowhere = clv__aten_call(n, "Equal", CLV_BOOL, most, clv__aten_number(n, dtype, -INFINITY));
  return clv__aten_call(n, "Where", dtype, nowhere, clv__aten_number(n, dtype, 0), made);
}

static void lower_attention(aten *n) {
  value q = clv__aten_input(n, 0), k = clv__aten_input(n, 1), v = clv__aten_input(n, 2);
  value mask = n->input_count > 3 ? n->inputs[3] : clv__aten_absent();
  for (uint32_t i = 1; i < n->output_count; ++i) {
    if (n->output_read[i]) clv__aten_keep(n);
  }
  bool causal = clv__aten_bool(n, "is_causal", false), grouped = clv__aten_bool(n, "enable_gqa", false);
  if (n->input_count > 4 || clv__aten_real(n, "dropout_p", 0) != 0 || q.type.rank < 2 || k.type.rank != q.type.rank ||
      v.type.rank != q.type.rank || (grouped && q.type.rank < 3)) {
    clv__aten_keep(n);
  }
  if (n->status != CLV_OK) return;
  int32_t rank = q.type.rank;
  clv_dtype dtype = clv__aten_wide(q.type.dtype);
  int64_t order[CLV_MAX_RANK], depth = q.type.dims[rank - 1];
  if (grouped) {
    k = repeat_heads(n, k, q.type.dims[rank - 3]);
    v = repeat_heads(n, v, q.type.dims[rank - 3]);
  }
  for (int32_t i = 0; i < rank; ++i) order[i] = i;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  double scale = clv__aten_real(n, "scale", depth > 0 ? 1 / sqrt((double)depth) : 1);
  q = clv__aten_cast(n, q, dtype);
  k = clv__aten_cast(n, clv__aten_transpose(n, k, order), dtype);
  value scores = clv__aten_call(n, "MatMul", dtype, q, k);
  scores = clv__aten_call(n, "Mul", dtype, scores, clv__aten_number(n, dtype, scale));
  if (causal) scores = masked(n, scores, causal_mask(n, q.type.dims[rank - 2], k.type.dims[rank - 1]));
  scores = masked(n, scores, mask);
  clv__aten_set_int(n, "axis", -1);
  value weights = clv__aten_call(n, "Softmax", dtype, scores);
  value made = clv__aten_call(n, "MatMul", dtype, weights, clv__aten_cast(n, v, dtype));
  clv__aten_return(n, 0, mask.id != CLV__NO_ID ? without_masked(n, scores, made) : made);
}

const clv__aten_lowering clv__aten_attention[] = {
    {"scaled_dot_product_attention", lower_attention},
    {"_scaled_dot_product_flash_attention_for_cpu", lower_attention},
    {NULL, NULL},
};
