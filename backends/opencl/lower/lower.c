/* The functions of lower.h, which build launches, and the pass that lowers nodes to steps. */
#include <stdarg.h>
#include <stdio.h>

#include "backends/opencl/variant.h"
#include "base/text.h"
#include "lower.h"

enum { MAX_OPERANDS = 40 };

struct clv__opencl_lowering {
  clv__opencl_variant *variant;
  uint32_t index; /* index of the node that is being lowered */
  const clv__opencl_node *node;
  bool wide, open;
  const char *family, *kernel;
  clv__text defines, functions;
  uint32_t operand_count;
  clv__opencl_operand operands[MAX_OPERANDS];
  clv_status failed; /* the first failure since the lowering of the node began */
  clv_error error;
  clv_error *out;
};

const clv__opencl_traits *clv__opencl_lowering_traits(const clv__opencl_lowering *l) {
  return &l->variant->device->traits;
}
clv__arena *clv__opencl_lowering_arena(clv__opencl_lowering *l) {
  return &l->variant->arena;
}

static void fail(clv__opencl_lowering *l, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);
static void fail(clv__opencl_lowering *l, clv_status status, const char *format, ...) {
  if (l->failed != CLV_OK) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(l->error.message, sizeof l->error.message, format, arguments);
  va_end(arguments);
  l->failed = l->error.status = status;
}

static void fail_memory(clv__opencl_lowering *l, size_t size_bytes) {
  if (l->failed == CLV_OK) l->failed = clv__error_memory(&l->error, size_bytes);
}

/* ---- A launch ---- */

static void empty(clv__text *text) {
  if (text->size_bytes > 0) text->data[0] = '\0';
  text->size_bytes = 0;
}

void clv__opencl_launch(clv__opencl_lowering *l, const char *family, const char *kernel) {
  if (l->open) fail(l, CLV_INTERNAL_ERROR, "launch of %s started before that of %s was enqueued", kernel, l->kernel);
  l->open = true;
  l->family = family;
  l->kernel = kernel;
  l->operand_count = 0;
  empty(&l->defines);
  empty(&l->functions);
  if (l->wide) clv__text_append(&l->defines, "#define CLV_WIDE 1\n");
}

void clv__opencl_define(clv__opencl_lowering *l, const char *name, const char *format, ...) {
  char value[2048];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof value) fail(l, CLV_INTERNAL_ERROR, "the value of define %s is too long", name);
  clv__text_append(&l->defines, "#define %s %s\n", name, value);
}

void clv__opencl_define_dtype(clv__opencl_lowering *l, const char *name, clv_dtype dtype) {
  clv__opencl_define(l, name, "%s", clv_dtype_name(dtype));
}

static void pass(clv__opencl_lowering *l, clv__opencl_operand operand) {
  if (l->operand_count == MAX_OPERANDS) {
    fail(l, CLV_INTERNAL_ERROR, "more than %d arguments", MAX_OPERANDS);
    return;
  }
  l->operands[l->operand_count++] = operand;
}

static void pass_bytes(clv__opencl_lowering *l, const void *bytes, size_t size_bytes) {
  const void *copy = clv__arena_copy(&l->variant->arena, bytes, size_bytes);
  if (copy == NULL) fail_memory(l, size_bytes);
  pass(l, (clv__opencl_operand){.means = CLV__OPENCL_MEANS_BYTES, .bytes = copy, .size_bytes = (uint32_t)size_bytes});
}

static void pass_value(clv__opencl_lowering *l, const uint32_t *values, uint32_t count, uint32_t index, const char *what) {
  if (index >= count || values[index] == CLV_NO_VALUE) {
    fail(l, CLV_INTERNAL_ERROR, "kernel %s is passed %s %u, which the node does not have", l->kernel, what, index);
    return;
  }
  pass(l, (clv__opencl_operand){.means = CLV__OPENCL_MEANS_VALUE, .value = values[index]});
}

void clv__opencl_pass_input(clv__opencl_lowering *l, uint32_t index) {
  const clv__opencl_variant_node *node = &l->variant->nodes[l->index];
  pass_value(l, node->inputs, node->input_count, index, "input");
}

void clv__opencl_pass_output(clv__opencl_lowering *l, uint32_t index) {
  const clv__opencl_variant_node *node = &l->variant->nodes[l->index];
  pass_value(l, node->outputs, node->output_count, index, "output");
}

static clv__opencl_operand place_operand(clv__opencl_where where, uint32_t index) {
  return (clv__opencl_operand){.means = CLV__OPENCL_MEANS_LOCATION, .at = {where, index}};
}

/* ---- Memory ---- */

static uint32_t add_region(clv__opencl_lowering *l, clv__opencl_regions *regions, uint64_t size_bytes, const void *data) {
  uint32_t index = 0;
  clv_status status = clv__opencl_region_add(l->variant, regions, size_bytes, data, &index, &l->error);
  if (status != CLV_OK && l->failed == CLV_OK) l->failed = status;
  return index;
}

uint32_t clv__opencl_scratch(clv__opencl_lowering *l, uint64_t size_bytes) {
  clv__opencl_variant_node *node = &l->variant->nodes[l->index];
  uint32_t index = add_region(l, &l->variant->scratch, size_bytes, NULL);
  if (node->scratch_count++ == 0) node->first_scratch = index;
  return index;
}
void clv__opencl_pass_scratch(clv__opencl_lowering *l, uint32_t scratch) {
  pass(l, place_operand(CLV__OPENCL_AT_SCRATCH, scratch));
}

uint32_t clv__opencl_table(clv__opencl_lowering *l, const void *data, uint64_t size_bytes) {
  const void *copy = clv__arena_copy(&l->variant->arena, data, size_bytes);
  if (copy == NULL) fail_memory(l, size_bytes);
  return add_region(l, &l->variant->constants, size_bytes, copy);
}
void clv__opencl_pass_table(clv__opencl_lowering *l, uint32_t table) {
  pass(l, place_operand(CLV__OPENCL_AT_CONSTANT, table));
}

/* All faults of a variant are in one region, so that one copy reads them back. */
void clv__opencl_pass_fault(clv__opencl_lowering *l, clv__opencl_explain_fn explain) {
  clv__opencl_variant *variant = l->variant;
  clv__opencl_fault_places *places = &variant->fault_places;
  if (places->count == 0) variant->kept_faults = add_region(l, &variant->kept, 0, NULL);
  if (l->failed != CLV_OK) return;
  if (!clv__array_reserve(variant->device->allocator, (void **)&places->items, &places->capacity, places->count + 1,
                          sizeof *places->items, places->count)) {
    fail_memory(l, (places->count + 1) * sizeof *places->items);
    return;
  }
  const uint32_t index = (uint32_t)places->count++;
  places->items[index] = (clv__opencl_fault_place){l->index, explain};
  variant->kept.items[variant->kept_faults].size_bytes = places->count * sizeof(clv__opencl_fault);
  pass(l, place_operand(CLV__OPENCL_AT_KEPT, variant->kept_faults));
  clv__opencl_pass_int(l, (int32_t)index);
}

/* ---- Numbers ---- */

void clv__opencl_pass_int(clv__opencl_lowering *l, int32_t value) {
  pass_bytes(l, &value, sizeof value);
}
void clv__opencl_pass_long(clv__opencl_lowering *l, int64_t value) {
  pass_bytes(l, &value, sizeof value);
}
void clv__opencl_pass_float(clv__opencl_lowering *l, float value) {
  pass_bytes(l, &value, sizeof value);
}

void clv__opencl_pass_index(clv__opencl_lowering *l, int64_t value) {
  if (l->wide)
    clv__opencl_pass_long(l, value);
  else if (value < INT32_MIN || value > INT32_MAX)
    fail(l, CLV_INTERNAL_ERROR, "index %lld of %s does not fit an int", (long long)value, l->kernel);
  else
    clv__opencl_pass_int(l, (int32_t)value);
}

void clv__opencl_pass_dims(clv__opencl_lowering *l, const int64_t *values, uint32_t count) {
  int64_t wide[CLV_MAX_RANK] = {0};
  int32_t narrow[CLV_MAX_RANK] = {0};
  for (uint32_t i = 0; i < count && i < CLV_MAX_RANK; ++i) {
    wide[i] = values[i];
    narrow[i] = (int32_t)values[i];
    if (!l->wide && narrow[i] != values[i]) fail(l, CLV_INTERNAL_ERROR, "a dimension of %s does not fit an int", l->kernel);
  }
  if (l->wide)
    pass_bytes(l, wide, sizeof wide);
  else
    pass_bytes(l, narrow, sizeof narrow);
}

/* ---- Posts: elementwise nodes that are fused into a kernel ---- */

/* Appends an expression with its parameters P and Q as numbers, because the kernel that computes the post may use those names
 * itself. */
static void append_expression(clv__text *text, const clv__opencl_post *post, clv_dtype dtype) {
  char p[64], q[64];
  clv__opencl_number_text(dtype, post->function.p, p);
  clv__opencl_number_text(dtype, post->function.q, q);
  bool inside = false;
  for (const char *at = post->function.expression->text; *at != '\0'; ++at) {
    bool is_name = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' || (*at >= '0' && *at <= '9');
    bool next =
        (at[1] >= 'a' && at[1] <= 'z') || (at[1] >= 'A' && at[1] <= 'Z') || at[1] == '_' || (at[1] >= '0' && at[1] <= '9');
    if ((*at == 'P' || *at == 'Q') && !inside && !next)
      clv__text_append(text, "%s", *at == 'P' ? p : q);
    else
      clv__text_append_bytes(text, at, 1);
    inside = is_name;
  }
}

/* Passes a post's operand to the kernel: adds an argument, and its declaration to `parameters`. Appends to `chain` a load of the
 * operand's element for element `at` of the output. */
static void pass_post_operand(clv__opencl_lowering *l, uint32_t index, clv__text *parameters, clv__text *chain) {
  const clv__opencl_post *post = &l->variant->nodes[l->index].posts[index];
  const int64_t count = clv__opencl_count(&l->node->outputs[0]);
  const bool repeats = post->period != count && post->period != 1;
  pass(l, (clv__opencl_operand){.means = CLV__OPENCL_MEANS_VALUE, .value = post->operand});
  clv__text_append(parameters, ", GLOBAL const STORAGE(T) *post_%u", index);
  clv__text_append(chain, ", LOAD(T, post_%u, ", index);
  if (post->period == 1)
    clv__text_append(chain, "0");
  else
    clv__text_append(chain, "(at)");
  if (repeats && post->inner != 1) {
    clv__text_append(parameters, ", const index_t post_inner_%u", index);
    clv__text_append(chain, " / post_inner_%u", index);
    clv__opencl_pass_index(l, post->inner);
  }
  if (repeats) {
    clv__text_append(parameters, ", const index_t post_period_%u", index);
    clv__text_append(chain, " %% post_period_%u", index);
    clv__opencl_pass_index(l, post->period);
  }
  clv__text_append(chain, ")");
}

void clv__opencl_pass_posts(clv__opencl_lowering *l) {
  const clv__opencl_variant_node *node = &l->variant->nodes[l->index];
  if (node->post_count == 0) return;
  clv__text chain, parameters;
  clv__text_init(&chain, l->variant->device->allocator);
  clv__text_init(&parameters, l->variant->device->allocator);
  clv__text_append(&l->functions, "#define N(constant) NUMBER(T, constant)\n#define real REAL(T)\n");
  for (uint32_t i = node->post_count; i-- > 0;) clv__text_append(&chain, "clv_post_%u(", i);
  clv__text_append(&chain, "value");
  for (uint32_t i = 0; i < node->post_count; ++i) {
    const clv__opencl_post *post = &node->posts[i];
    const bool two = post->operand != CLV__OPENCL_NONE;
    const char *names = !two ? "real x" : post->is_first ? "real y, real x" : "real x, real y";
    clv__text_append(&l->functions, "FUNCTION real clv_post_%u(%s) {\n  return (real)(", i, names);
    append_expression(&l->functions, post, l->node->outputs[0].dtype);
    clv__text_append(&l->functions, ");\n}\n");
    if (two) pass_post_operand(l, i, &parameters, &chain);
    clv__text_append(&chain, ")");
  }
  clv__text_append(&l->functions, "#undef N\n#undef real\n");
  if (chain.failed || parameters.failed) fail_memory(l, chain.size_bytes + parameters.size_bytes);
  clv__opencl_define(l, "POST(value, at)", "%s", chain.data);
  clv__opencl_define(l, "POST_PARAMETERS", "%s", parameters.data);
  clv__text_finish(&parameters);
  clv__text_finish(&chain);
}

/* ---- Ending a launch ---- */

static clv_status give_up(clv__opencl_lowering *l) {
  l->open = false;
  if (l->out != NULL) *l->out = l->error;
  return l->failed;
}

static clv_status sizes_of(clv__opencl_lowering *l, clv__opencl_step *step, const int64_t *global, const int64_t *local) {
  uint64_t group = 1;
  step->has_local = local != NULL;
  for (uint32_t d = 0; d < step->dimensions; ++d) {
    int64_t part = local != NULL ? local[d] : 1;
    int64_t room = 0;
    if (global[d] <= 0 || part <= 0 || __builtin_add_overflow(global[d], part - 1, &room)) {
      fail(l, CLV_INTERNAL_ERROR, "invalid launch of %s: %lld work items in groups of %lld", l->kernel, (long long)global[d],
           (long long)part);
      return give_up(l);
    }
    step->global[d] = (size_t)(room / part * part);
    step->local[d] = (size_t)part;
    group *= (uint64_t)part;
  }
  if (group > l->variant->device->traits.max_group) {
    fail(l, CLV_INTERNAL_ERROR, "%s in groups of %llu work items, but the device's maximum is %u", l->kernel,
         (unsigned long long)group, l->variant->device->traits.max_group);
    return give_up(l);
  }
  return CLV_OK;
}

clv_status clv__opencl_enqueue(clv__opencl_lowering *l, uint32_t dimensions, const int64_t *global, const int64_t *local) {
  if (!l->open) fail(l, CLV_INTERNAL_ERROR, "enqueue without a launch");
  if (dimensions == 0 || dimensions > 3) fail(l, CLV_INTERNAL_ERROR, "a launch has %u dimensions; expected 1 to 3", dimensions);
  if (l->defines.failed || l->functions.failed) fail_memory(l, l->defines.size_bytes + l->functions.size_bytes);
  if (l->failed != CLV_OK) return give_up(l);
  clv__opencl_step step = {.node = l->index, .dimensions = dimensions, .operand_count = l->operand_count};
  CLV__TRY(sizes_of(l, &step, global, local));
  step.kernel = clv__arena_string(&l->variant->arena, l->kernel, strlen(l->kernel));
  step.operands = clv__arena_copy(&l->variant->arena, l->operands, l->operand_count * sizeof *l->operands);
  if (step.kernel == NULL || step.operands == NULL) fail_memory(l, l->operand_count * sizeof *l->operands);
  if (l->failed == CLV_OK) {
    l->failed =
        clv__opencl_program_get(l->variant->device, l->family, l->defines.data, l->functions.data, &step.program, &l->error);
  }
  if (l->failed == CLV_OK) {
    l->failed = clv__opencl_step_add(l->variant, &l->variant->steps, &step, &l->error);
  }
  if (l->failed != CLV_OK) return give_up(l);
  l->open = false;
  return CLV_OK;
}

clv_status clv__opencl_enqueue_1d(clv__opencl_lowering *l, int64_t count) {
  int64_t local = l->variant->device->traits.group_1d;
  while (local > 1 && local / 2 >= count) local /= 2; /* avoid idle work items if `count` is small */
  return clv__opencl_enqueue(l, 1, &count, &local);
}

static clv__opencl_operand copy_end(clv__opencl_lowering *l, clv__opencl_place place, uint32_t index) {
  const clv__opencl_variant_node *node = &l->variant->nodes[l->index];
  if (place == CLV__OPENCL_SCRATCH) return place_operand(CLV__OPENCL_AT_SCRATCH, index);
  uint32_t count = place == CLV__OPENCL_INPUT ? node->input_count : node->output_count;
  const uint32_t *values = place == CLV__OPENCL_INPUT ? node->inputs : node->outputs;
  if (index >= count || values[index] == CLV_NO_VALUE) {
    fail(l, CLV_INTERNAL_ERROR, "a copy of operand %u, which the node does not have", index);
    return (clv__opencl_operand){0};
  }
  return (clv__opencl_operand){.means = CLV__OPENCL_MEANS_VALUE, .value = values[index]};
}

clv_status clv__opencl_copy(clv__opencl_lowering *l, clv__opencl_place to, uint32_t to_index, uint64_t to_offset,
                            clv__opencl_place from, uint32_t from_index, uint64_t from_offset, uint64_t size_bytes) {
  if (size_bytes == 0) return CLV_OK;
  const clv__opencl_operand ends[2] = {copy_end(l, to, to_index), copy_end(l, from, from_index)};
  clv__opencl_step step = {.node = l->index,
                           .is_copy = true,
                           .operand_count = 2,
                           .operands = clv__arena_copy(&l->variant->arena, ends, sizeof ends),
                           .to_offset = to_offset,
                           .from_offset = from_offset,
                           .size_bytes = size_bytes};
  if (step.operands == NULL) fail_memory(l, sizeof ends);
  if (l->failed == CLV_OK) l->failed = clv__opencl_step_add(l->variant, &l->variant->steps, &step, &l->error);
  return l->failed == CLV_OK ? CLV_OK : give_up(l);
}

/* ---- The pass ---- */

/* Whether indices need a long. The limit is half of an int's range, because kernels add a group's size or a stride before they
 * check bounds. Dims of 0 count as 1. */
static bool is_wide(const clv__opencl_node *node) {
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    const clv_tensor *type = i < node->input_count ? &node->inputs[i] : &node->outputs[i - node->input_count];
    int64_t product = 1;
    for (int32_t d = 0; d < type->rank; ++d) product *= type->dims[d] > 0 ? type->dims[d] : 1; /* cannot overflow: see infer.c */
    if (type->dtype != CLV_DTYPE_NONE && product > INT32_MAX / 2) return true;
  }
  return false;
}

static clv_status lower_node(clv__opencl_lowering *l, uint32_t index, clv_tensor *types, bool *constant, clv_error *error) {
  const clv__opencl_variant_node *variant_node = &l->variant->nodes[index];
  if (variant_node->is_dead ||
      clv__opencl_is_view(l->variant->executable->nodes[index].domain, l->variant->executable->nodes[index].op,
                          l->variant->executable->nodes[index].opset)) {
    return CLV_OK;
  }
  const clv__opencl_node node = clv__opencl_variant_node_view(l->variant, index, types, constant);
  if (variant_node->op == NULL)
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "the operator has no kernel, and its output is too large to be computed at compile time");
  l->index = index;
  l->node = &node;
  l->wide = is_wide(&node);
  l->failed = CLV_OK;
  l->open = false;
  clv_status status = variant_node->op->lower(l, &node, error);
  l->node = NULL;
  if (status == CLV_OK && l->open) return clv__error_set(error, CLV_INTERNAL_ERROR, "launch of %s was not enqueued", l->kernel);
  return status;
}

clv_status clv__opencl_pass_lower(clv__opencl_variant *variant, clv_error *error) {
  const clv_executable *e = variant->executable;
  uint32_t most = clv__opencl_variant_most(variant);
  clv_tensor *types = clv__arena_allocate_zero(&variant->arena, (size_t)most + 1, sizeof *types);
  bool *constant = clv__arena_allocate_zero(&variant->arena, (size_t)most + 1, sizeof *constant);
  clv__opencl_lowering *l = clv__arena_allocate_zero(&variant->arena, 1, sizeof *l);
  if (types == NULL || constant == NULL || l == NULL) return clv__error_memory(error, sizeof *l);
  l->variant = variant;
  l->out = error;
  clv__text_init(&l->defines, variant->device->allocator);
  clv__text_init(&l->functions, variant->device->allocator);
  clv_status status = CLV_OK;
  for (uint32_t n = 0; n < e->node_count && status == CLV_OK; ++n) {
    status = lower_node(l, n, types, constant, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "node '%s' (%s)", e->nodes[n].name, e->nodes[n].op);
  }
  clv__text_finish(&l->functions);
  clv__text_finish(&l->defines);
  return status;
}
