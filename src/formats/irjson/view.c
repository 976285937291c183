/* ATen's operators that only change the shape, type or name of a tensor. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static void lower_identity(aten *n) {
  clv__aten_return(n, 0, clv__aten_input(n, 0));
}

/* In inference, dropout returns its input. A node in training mode stays an ATen node. */
static void lower_dropout(aten *n) {
  bool train = clv__aten_bool(n, "train", true), functional = strcmp(n->stem, "native_dropout") == 0;
  if (train && clv__aten_real(n, "p", 0.5) != 0) clv__aten_keep(n);
  if (functional && n->output_count > 1 && n->output_read[1]) clv__aten_keep(n);
  clv__aten_return(n, 0, clv__aten_input(n, 0));
}

/* Uses the declared shape of the output, because the list in the arguments may contain -1. Type inference later checks the number
 * of elements. */
static void lower_reshape(aten *n) {
  value x = clv__aten_input(n, 0);
  if (n->status != CLV_OK) return;
  const clv_tensor *to = &n->outputs[0].type;
  if (strcmp(n->overload, "dtype") == 0 && to->dtype != x.type.dtype) { /* reinterprets the bits as another dtype */
    clv__aten_keep(n);
    return;
  }
  clv__aten_return(n, 0, clv__aten_reshape(n, x, to->rank, to->dims));
}

static void lower_unsqueeze(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank + 1);
  clv__aten_return(n, 0, clv__aten_unsqueeze(n, x, axis));
}

/* Casts to the declared dtype of the output, which ATen takes from attrs.dtype or from another tensor. */
static void lower_to(aten *n) {
  value x = clv__aten_input(n, 0);
  if (n->status != CLV_OK) return;
  if (clv__aten_has(n, "dtype")) {
    clv_dtype said = clv__aten_dtype(n, "dtype", CLV_DTYPE_NONE), made = n->outputs[0].type.dtype;
    if (said != made) {
      clv__aten_fail(n, "attrs.dtype is %s, but its output is %s", clv_dtype_name(said), clv_dtype_name(made));
    }
  }
  clv__aten_return(n, 0, clv__aten_cast(n, x, n->outputs[0].type.dtype));
}

static void lower_expand(aten *n) {
  value x = clv__aten_input(n, 0);
  if (n->status != CLV_OK) return;
  const clv_tensor *to = &n->outputs[0].type;
  clv__aten_return(n, 0, clv__aten_expand(n, x, to->rank, to->dims));
}

/* copy(self, source) returns the source with self's shape and dtype. */
static void lower_copy(aten *n) {
  value self = clv__aten_input(n, 0), source = clv__aten_input(n, 1);
  if (n->status != CLV_OK) return;
  source = clv__aten_cast(n, source, self.type.dtype);
  clv__aten_return(n, 0, clv__aten_expand(n, source, self.type.rank, self.type.dims));
}

const clv__aten_lowering clv__aten_view[] = {
    {"alias", lower_identity},
    {"alias_copy", lower_identity},
    {"clone", lower_identity},
    {"detach", lower_identity},
    {"detach_", lower_identity}, /* in place, but changes no data */
    {"detach_copy", lower_identity},
    {"contiguous", lower_identity},
    {"lift_fresh_copy", lower_identity},
    {"lift_fresh", lower_identity},
    {"lift", lower_identity},
    {"positive", lower_identity},
    {"resolve_conj", lower_identity},
    {"resolve_neg", lower_identity},
    {"dropout", lower_dropout},
    {"native_dropout", lower_dropout},
    {"feature_dropout", lower_dropout},
    {"alpha_dropout", lower_dropout},
    {"view", lower_reshape},
    {"view_copy", lower_reshape},
    {"_unsafe_view", lower_reshape},
    {"reshape", lower_reshape},
    {"_reshape_alias", lower_reshape},
    {"view_as", lower_reshape},
    {"reshape_as", lower_reshape},
    {"flatten", lower_reshape},
    {"unflatten", lower_reshape},
    {"squeeze", lower_reshape},
    {"squeeze_copy", lower_reshape},
    {"ravel", lower_reshape},
    {"unsqueeze", lower_unsqueeze},
    {"unsqueeze_copy", lower_unsqueeze},
    {"to", lower_to},
    {"_to_copy", lower_to},
    {"type_as", lower_to},
    {"expand", lower_expand},
    {"expand_copy", lower_expand},
    {"expand_as", lower_expand},
    {"broadcast_to", lower_expand},
    {"copy", lower_copy},
    {NULL, NULL},
};
