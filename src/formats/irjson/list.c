/* Lowers ATen's indexing by lists of tensors, such as x[i, j], x[:, i] and x[i, :, j] = y. Moves the indexed axes to the front,
 * applies GatherND or ScatterND, and moves the axes of the result back. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

typedef struct places {
  uint32_t count;              /* number of index tensors, which are inputs 1 to `count` of the node */
  int64_t axes[CLV_MAX_RANK];  /* the axis that each index tensor indexes, ascending */
  int64_t order[CLV_MAX_RANK]; /* permutation of x's axes that puts the indexed axes first */
  int64_t inverse[CLV_MAX_RANK];
  clv_tensor shape;               /* common broadcast shape of the index tensors */
  int32_t at;                     /* position of `shape` in the result: the first indexed axis if all are adjacent, else 0 */
  int32_t rank;                   /* of the result */
  int64_t dims[2 * CLV_MAX_RANK]; /* of the result */
} places;

/* Sets p->shape to the common broadcast shape of the index tensors. Returns false if there is none, or if one more axis would
 * exceed CLV_MAX_RANK. */
static bool broadcast(aten *n, places *p) {
  clv_tensor *shape = &p->shape;
  *shape = (clv_tensor){.dtype = CLV_I64};
  for (uint32_t i = 1; i <= p->count; ++i) {
    if (n->inputs[i].type.rank > shape->rank) shape->rank = n->inputs[i].type.rank;
  }
  for (int32_t axis = 0; axis < shape->rank; ++axis) shape->dims[axis] = 1;
  for (uint32_t i = 1; i <= p->count; ++i) {
    const clv_tensor *type = &n->inputs[i].type;
    for (int32_t k = 0; k < type->rank; ++k) {
      int64_t *dim = &shape->dims[shape->rank - type->rank + k];
      if (*dim != 1 && type->dims[k] != 1 && *dim != type->dims[k]) {
        clv__aten_fail(n, "its indices do not broadcast: %lld and %lld", (long long)*dim, (long long)type->dims[k]);
        return false;
      }
      if (*dim == 1) *dim = type->dims[k];
    }
  }
  return shape->rank < CLV_MAX_RANK;
}

/* Finds the indexed axes. Returns false if an index tensor is a mask, or if there are more index tensors than axes. */
static bool read_axes(aten *n, const value *x, places *p) {
  bool none[CLV_MAX_RANK] = {false};
  uint32_t listed, found = 0;
  if (p->count < 1 || (int32_t)p->count > x->type.rank) return false;
  for (uint32_t i = 1; i <= p->count; ++i) {
    if (n->inputs[i].type.dtype != CLV_I64 && n->inputs[i].type.dtype != CLV_I32) return false;
  }
  if (!clv__aten_none_mask(n, none, &listed)) listed = p->count;
  for (uint32_t axis = 0; axis < listed && (int32_t)axis < x->type.rank; ++axis) {
    if (!none[axis] && found < p->count) p->axes[found++] = axis;
  }
  return found == p->count;
}

static bool read_places(aten *n, uint32_t count, places *p) {
  value x = n->inputs[0];
  *p = (places){.count = count};
  if (!read_axes(n, &x, p) || !broadcast(n, p)) return false;
  int32_t filled = 0, rank = x.type.rank;
  bool indexed[CLV_MAX_RANK] = {false};
  for (uint32_t i = 0; i < count; ++i) indexed[p->axes[i]] = true, p->order[filled++] = p->axes[i];
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (!indexed[axis]) p->order[filled++] = axis;
  }
  for (int32_t i = 0; i < rank; ++i) p->inverse[p->order[i]] = i;
  bool adjacent = p->axes[count - 1] - p->axes[0] == (int64_t)count - 1;
  p->at = adjacent ? (int32_t)p->axes[0] : 0;
  for (int32_t i = (int32_t)count; i < rank + 1; ++i) { /* the axes that are not indexed, with `shape` inserted at `at` */
    if (i - (int32_t)count == p->at) {
      for (int32_t k = 0; k < p->shape.rank; ++k) p->dims[p->rank++] = p->shape.dims[k];
    }
    if (i < rank) p->dims[p->rank++] = x.type.dims[p->order[i]];
  }
  return p->rank <= CLV_MAX_RANK;
}

/* Joins the index tensors into one, for GatherND and ScatterND. Its last axis has one index per indexed axis. */
static value rows(aten *n, const places *p) {
  value parts[CLV_MAX_RANK];
  for (uint32_t i = 0; i < p->count; ++i) {
    parts[i] = clv__aten_expand(n, clv__aten_cast(n, n->inputs[1 + i], CLV_I64), p->shape.rank, p->shape.dims);
    parts[i] = clv__aten_unsqueeze(n, parts[i], p->shape.rank);
  }
  if (p->count == 1) return parts[0];
  clv__aten_set_int(n, "axis", p->shape.rank);
  return clv__aten_op(n, "Concat", CLV_I64, parts, p->count);
}

static value transposed(aten *n, value x, const int64_t *order) {
  bool same = true;
  for (int32_t i = 0; i < x.type.rank; ++i) same = same && order[i] == i;
  return same ? x : clv__aten_transpose(n, x, order);
}

/* GatherND and ScatterND put the axes of the index first, then the other axes of x. Transposes x from this order to the result's
 * order, or, if not `to_result`, the other way. */
static value moved(aten *n, const places *p, value x, bool to_result) {
  int64_t forward[CLV_MAX_RANK], back[CLV_MAX_RANK];
  int32_t width = p->shape.rank;
  for (int32_t i = 0; i < p->rank; ++i) forward[i] = i < p->at ? width + i : i < p->at + width ? i - p->at : i;
  for (int32_t i = 0; i < p->rank; ++i) back[forward[i]] = i;
  return transposed(n, x, to_result ? forward : back);
}

static void lower_index(aten *n) {
  value x = clv__aten_input(n, 0);
  clv__aten_input(n, 1);
  if (n->status != CLV_OK) return;
  places p;
  if (!read_places(n, n->input_count - 1, &p)) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  if (p.count == 1) {
    clv__aten_set_int(n, "axis", p.axes[0]);
    clv__aten_return(n, 0, clv__aten_call(n, "Gather", x.type.dtype, x, n->inputs[1]));
    return;
  }
  value front = transposed(n, x, p.order);
  value made = clv__aten_call(n, "GatherND", x.type.dtype, front, rows(n, &p));
  made.type.rank = p.rank;
  clv__aten_return(n, 0, moved(n, &p, made, true));
}

/* Lowers x[i, j] = values or, with attrs.accumulate, x[i, j] += values. */
static void lower_index_put(aten *n) {
  value x = clv__aten_input(n, 0);
  clv__aten_input(n, 2);
  if (n->status != CLV_OK) return;
  places p;
  if (!read_places(n, n->input_count - 2, &p)) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  value values = clv__aten_expand(n, clv__aten_cast(n, n->inputs[n->input_count - 1], x.type.dtype), p.rank, p.dims);
  values = moved(n, &p, values, false);
  value front = transposed(n, x, p.order), index = rows(n, &p);
  if (clv__aten_bool(n, "accumulate", false)) clv__aten_set_string(n, "reduction", "add");
  value made = clv__aten_call(n, "ScatterND", x.type.dtype, front, index, values);
  made.type.rank = x.type.rank;
  clv__aten_return(n, 0, transposed(n, made, p.inverse));
}

const clv__aten_lowering clv__aten_list[] = {
    {"index", lower_index},
    {"_unsafe_index", lower_index},
    {"index_put", lower_index_put},
    {"_unsafe_index_put", lower_index_put},
    {NULL, NULL},
};
