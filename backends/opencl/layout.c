/* The last pass that makes a variant (variant.h): decides where each value is stored. A computed value that is an output is
 * stored directly in the output. The other computed values share one block of scratch, according to their lifetimes. A view
 * shares the bytes of its source. An output that is an input, a constant or another output is copied at the end. */
#include "variant.h"

static uint64_t rounded(const clv__opencl_variant *variant, uint64_t size_bytes) {
  return clv__align_up(size_bytes == 0 ? 1 : size_bytes, variant->device->alignment_bytes);
}

static uint64_t size_of(const clv_tensor *type) {
  size_t size_bytes = 0;
  if (type->dtype != CLV_DTYPE_NONE) clv__tensor_size_bytes(type, &size_bytes);
  return size_bytes;
}

/* ---- Roots: the values whose bytes the views share ---- */

static void find_roots(clv__opencl_variant *variant) {
  const clv_executable *e = variant->executable;
  for (uint32_t v = 0; v < e->value_count; ++v) variant->values[v].root = v;
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv__opencl_variant_node *node = &variant->nodes[n];
    bool view = clv__opencl_is_view(e->nodes[n].domain, e->nodes[n].op, e->nodes[n].opset);
    if (view && !node->is_dead && node->outputs[0] != CLV_NO_VALUE) {
      variant->values[node->outputs[0]].root = variant->values[node->inputs[0]].root;
    }
  }
}

/* ---- Lifetimes ---- */

typedef struct alive {
  uint64_t offset, size_bytes;
  uint32_t last; /* the last node that uses it */
} alive;

typedef struct block {
  const clv_allocator *allocator;
  alive *items; /* sorted by offset */
  size_t count, capacity;
} block;

static void end_lifetimes(block *b, uint32_t node) {
  size_t kept = 0;
  for (size_t i = 0; i < b->count; ++i) {
    if (b->items[i].last > node) b->items[kept++] = b->items[i];
  }
  b->count = kept;
}

/* Reserves the region at the lowest free offset of the scratch, until node `last` has run. */
static clv_status allocate_region(clv__opencl_variant *variant, block *b, clv__opencl_region *region, uint32_t last,
                                  clv_error *error) {
  if (region->size_bytes > UINT64_MAX / 4 || variant->scratch_bytes > UINT64_MAX / 4) {
    return clv__error_set(error, CLV_TOO_LARGE, "scratch is too large for any memory");
  }
  uint64_t room = rounded(variant, region->size_bytes), at = 0;
  size_t index = 0;
  for (; index < b->count && !(b->items[index].offset >= at && b->items[index].offset - at >= room); ++index) {
    uint64_t end = b->items[index].offset + b->items[index].size_bytes;
    if (end > at) at = end;
  }
  if (!clv__array_reserve(b->allocator, (void **)&b->items, &b->capacity, b->count + 1, sizeof *b->items, b->count)) {
    return clv__error_memory(error, (b->count + 1) * sizeof *b->items);
  }
  memmove(&b->items[index + 1], &b->items[index], (b->count - index) * sizeof *b->items);
  b->items[index] = (alive){at, room, last};
  ++b->count;
  region->offset = at;
  if (at + room > variant->scratch_bytes) variant->scratch_bytes = at + room;
  return CLV_OK;
}

/* Finds, for each root, the last node that reads or writes it. */
static clv_status find_last(const clv__opencl_variant *variant, uint32_t **last, clv_error *error) {
  const clv_executable *e = variant->executable;
  *last = clv__allocate_zero(variant->device->allocator, (size_t)e->value_count * sizeof **last);
  if (*last == NULL) return clv__error_memory(error, e->value_count * sizeof **last);
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv__opencl_variant_node *node = &variant->nodes[n];
    if (node->is_dead) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV_NO_VALUE) (*last)[variant->values[node->inputs[i]].root] = n;
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != CLV_NO_VALUE) (*last)[variant->values[node->outputs[i]].root] = n;
    }
    for (uint32_t i = 0; i < node->post_count; ++i) {
      if (node->posts[i].operand != CLV__OPENCL_NONE) (*last)[variant->values[node->posts[i].operand].root] = n;
    }
  }
  return CLV_OK;
}

/* ---- Locations ---- */

/* Locates inputs, weights and constants. */
static void locate_sources(clv__opencl_variant *variant) {
  const clv_executable *e = variant->executable;
  for (uint32_t v = 0; v < e->value_count; ++v) {
    clv__opencl_variant_value *value = &variant->values[v];
    if (value->root != v) continue;
    if (e->values[v].input != CLV__OPENCL_NONE) {
      value->at = (clv__opencl_location){CLV__OPENCL_AT_INPUT, e->values[v].input};
    } else if (e->values[v].weight != CLV__OPENCL_NONE) {
      value->at = (clv__opencl_location){CLV__OPENCL_AT_WEIGHT, e->values[v].weight};
    } else if (value->type.data != NULL) {
      value->at = (clv__opencl_location){CLV__OPENCL_AT_CONSTANT, CLV__OPENCL_NONE}; /* gets a region if a step reads it */
    }
  }
}

/* Locates each computed value that is a graph output in that output's memory. If the value is several outputs, it is located in
 * the first of them. */
static void locate_outputs(clv__opencl_variant *variant) {
  const clv_executable *e = variant->executable;
  for (uint32_t o = 0; o < e->output_count; ++o) {
    clv__opencl_variant_value *root = &variant->values[variant->values[e->outputs[o]].root];
    if (root->at.where == CLV__OPENCL_AT_NOWHERE) root->at = (clv__opencl_location){CLV__OPENCL_AT_OUTPUT, o};
  }
}

static clv_status lay_out_made(clv__opencl_variant *variant, const uint32_t *last, block *b, clv_error *error) {
  const clv_executable *e = variant->executable;
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv__opencl_variant_node *node = &variant->nodes[n];
    if (node->is_dead) continue;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      uint32_t v = node->outputs[i];
      if (v == CLV_NO_VALUE || variant->values[v].root != v || variant->values[v].at.where != CLV__OPENCL_AT_NOWHERE) continue;
      clv__opencl_location *at = &variant->values[v].at;
      at->where = CLV__OPENCL_AT_SCRATCH;
      CLV__TRY(clv__opencl_region_add(variant, &variant->scratch, size_of(&variant->values[v].type), NULL, &at->index, error));
      CLV__TRY(allocate_region(variant, b, &variant->scratch.items[at->index], last[v], error));
    }
    for (uint32_t i = 0; i < node->scratch_count; ++i) {
      CLV__TRY(allocate_region(variant, b, &variant->scratch.items[node->first_scratch + i], n, error));
    }
    end_lifetimes(b, n);
  }
  return CLV_OK;
}

/* Adds copies for outputs that are inputs, constants or other outputs. */
static clv_status copy_outputs(clv__opencl_variant *variant, clv_error *error) {
  const clv_executable *e = variant->executable;
  for (uint32_t o = 0; o < e->output_count; ++o) {
    uint32_t v = e->outputs[o];
    const clv__opencl_location *at = &variant->values[variant->values[v].root].at;
    uint64_t size_bytes = size_of(&variant->values[v].type);
    if ((at->where == CLV__OPENCL_AT_OUTPUT && at->index == o) || size_bytes == 0) continue;
    const clv__opencl_operand ends[2] = {{.means = CLV__OPENCL_MEANS_LOCATION, .at = {CLV__OPENCL_AT_OUTPUT, o}},
                                         {.means = CLV__OPENCL_MEANS_VALUE, .value = v}};
    clv__opencl_step step = {.node = CLV__OPENCL_NONE,
                             .is_copy = true,
                             .operand_count = 2,
                             .operands = clv__arena_copy(&variant->arena, ends, sizeof ends),
                             .size_bytes = size_bytes};
    if (step.operands == NULL) return clv__error_memory(error, sizeof ends);
    CLV__TRY(clv__opencl_step_add(variant, &variant->steps, &step, error));
  }
  return CLV_OK;
}

static clv_status lay_out_constants(clv__opencl_variant *variant, clv_error *error) {
  for (size_t i = 0; i < variant->constants.count; ++i) {
    clv__opencl_region *region = &variant->constants.items[i];
    region->offset = variant->constant_bytes;
    if (region->size_bytes > UINT64_MAX / 4 || variant->constant_bytes > UINT64_MAX / 4) {
      return clv__error_set(error, CLV_TOO_LARGE, "constants are too large for any memory");
    }
    variant->constant_bytes += rounded(variant, region->size_bytes);
  }
  return CLV_OK;
}

static clv_status locate_operand(clv__opencl_variant *variant, clv__opencl_operand *operand, clv_error *error) {
  clv__opencl_variant_value *root = &variant->values[variant->values[operand->value].root];
  if (root->at.where == CLV__OPENCL_AT_CONSTANT && root->at.index == CLV__OPENCL_NONE) {
    CLV__TRY(clv__opencl_region_add(variant, &variant->constants, size_of(&root->type), root->type.data, &root->at.index, error));
  }
  operand->at = root->at;
  return CLV_OK;
}

/* Sets the locations of the values that are operands of steps. */
static clv_status resolve_operands(clv__opencl_variant *variant, clv_error *error) {
  const clv__opencl_steps *steps = &variant->steps;
  for (size_t s = 0; s < steps->count; ++s) {
    for (uint32_t i = 0; i < steps->items[s].operand_count; ++i) {
      clv__opencl_operand *operand = &steps->items[s].operands[i];
      if (operand->means == CLV__OPENCL_MEANS_VALUE) CLV__TRY(locate_operand(variant, operand, error));
      if (operand->means != CLV__OPENCL_MEANS_VALUE && operand->means != CLV__OPENCL_MEANS_LOCATION) continue;
      if (operand->at.where == CLV__OPENCL_AT_NOWHERE) {
        return clv__error_set(error, CLV_INTERNAL_ERROR, "argument %u of %s has no memory", i,
                              steps->items[s].is_copy ? "a copy" : steps->items[s].kernel);
      }
    }
  }
  return CLV_OK;
}

static clv_status check_fits(const clv__opencl_variant *variant, clv_error *error) {
  uint64_t limit = variant->device->traits.max_buffer_bytes, most = variant->scratch_bytes;
  if (variant->constant_bytes > most) most = variant->constant_bytes;
  if (most <= limit) return CLV_OK;
  return clv__error_set(error, CLV_TOO_LARGE,
                        "a buffer of %llu bytes is needed, but the device's buffers are limited to %llu bytes",
                        (unsigned long long)most, (unsigned long long)limit);
}

clv_status clv__opencl_pass_layout(clv__opencl_variant *variant, clv_error *error) {
  block b = {.allocator = variant->device->allocator};
  uint32_t *last = NULL;
  clv_status status;
  find_roots(variant);
  locate_sources(variant);
  locate_outputs(variant);
  CLV__TRY_GOTO(find_last(variant, &last, error));
  CLV__TRY_GOTO(lay_out_made(variant, last, &b, error));
  CLV__TRY_GOTO(copy_outputs(variant, error));
  CLV__TRY_GOTO(resolve_operands(variant, error));
  CLV__TRY_GOTO(lay_out_constants(variant, error));
  status = check_fits(variant, error);
cleanup:
  clv__release(b.allocator, last);
  clv__release(b.allocator, b.items);
  return status;
}
