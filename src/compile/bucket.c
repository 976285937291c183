/* Chooses the sizes of buckets, and describes partitions at these sizes: see bucket.h. */
#include "compile/bucket.h"

#include <stddef.h>
#include <string.h>

#include "cost/nominal.h"
#include "cost/signature.h"

#define USUAL_MULTIPLE 64
#define MOST_MULTIPLE (1u << 20)
#define LONGER 1.25 /* padding may make a computation at most this many times as long */

/* The time of all bucketed partitions as a function of one size n: `fixed` + n * `each`. */
typedef struct line {
  double fixed, each; /* seconds */
} line;

struct clv__bucket_rule {
  const clv_plan *plan;
  clv__arena arena;
  int64_t multiple;
  line *lines; /* indexed by symbol; filled in for base symbols (analysis/open.h) only */
};

/* ---- Sizes ---- */

static bool round_up(int64_t size, int64_t step, int64_t *rounded) {
  return !__builtin_add_overflow(size, (step - size % step) % step, rounded);
}

static int64_t next_step(int64_t step) {
  int64_t power = 1;
  while (power * 2 < step) power *= 2;
  return power;
}

static int64_t pad_base(const clv__bucket_rule *rule, uint32_t base, int64_t size) {
  const line *l = &rule->lines[base];
  int64_t padded;
  if (size < 1) size = 1;
  double exact = l->fixed + l->each * (double)size;
  for (int64_t step = rule->multiple; step > 1; step = next_step(step)) {
    if (round_up(size, step, &padded) && l->fixed + l->each * (double)padded <= LONGER * exact) return padded;
  }
  return size;
}

int64_t clv__bucket_size(const clv__bucket_rule *rule, uint32_t symbol, int64_t size) {
  int64_t padded;
  if (rule == NULL || size < 0 || symbol >= rule->plan->open->symbol_count) return size;
  uint32_t base = rule->plan->open->base[symbol];
  int64_t factor = rule->plan->open->factor[symbol];
  if (size % factor != 0) return size; /* cannot occur: the symbol is always a multiple of `factor` */
  return __builtin_mul_overflow(pad_base(rule, base, size / factor), factor, &padded) ? size : padded;
}

clv_tensor clv__bucket_type(const clv__bucket_rule *rule, clv_value_id value, const clv_tensor *exact) {
  clv_tensor padded = *exact;
  if (rule == NULL || !clv__tensor_is_static(exact)) return padded;
  const clv_tensor *open = &rule->plan->shapes->types[value];
  for (int32_t d = 0; d < exact->rank && exact->rank == open->rank; ++d) {
    if (open->dims[d] < CLV_DIM_UNKNOWN) padded.dims[d] = clv__bucket_size(rule, (uint32_t)(-2 - open->dims[d]), exact->dims[d]);
  }
  return padded;
}

/* ---- Types of a partition at given sizes ---- */

/* Returns the types of a partition's values, indexed by value id, with the sizes of the base symbols from `sizes`. */
static clv_tensor *types_at(const clv_plan *plan, const clv_graph_view *view, const int64_t *sizes, clv__arena *arena) {
  clv_tensor *types = clv__arena_copy(arena, view->types, plan->graph->value_count * sizeof *types);
  for (uint32_t v = 0; types != NULL && v < view->value_count; ++v) {
    clv_tensor *type = &types[view->values[v]];
    for (int32_t d = 0; d < type->rank; ++d) type->dims[d] = clv__open_size(plan->open, type->dims[d], sizes);
  }
  return types;
}

static int64_t *no_sizes(const clv_plan *plan, clv__arena *arena) {
  int64_t *sizes = clv__arena_allocate(arena, (size_t)plan->open->symbol_count * sizeof *sizes);
  for (uint32_t s = 0; sizes != NULL && s < plan->open->symbol_count; ++s) sizes[s] = -1;
  return sizes;
}

/* ---- The rule ---- */

static double seconds_of(const clv_plan *plan, uint32_t device, const clv_graph_view *view, uint32_t node) {
  const clv__device *d = &plan->devices->items[device];
  double stated = d->backend->node_seconds != NULL ? d->backend->node_seconds(d->handle, view, node) : -1;
  if (stated >= 0) return stated;
  const clv__nominal *nominal = clv__nominal_find(d->info.kind);
  clv__work work;
  if (!clv__node_work(view, view->nodes[node], &work)) return 0; /* out of memory: this node counts as 0 */
  double arithmetic = work.flops / nominal->flops_per_second, traffic = work.bytes / nominal->bytes_per_second;
  return arithmetic > traffic ? arithmetic : traffic;
}

/* Sums the times of all bucketed partitions with the base symbols at `sizes`. */
static clv_status time_all(const clv_plan *plan, const int64_t *sizes, double *seconds, clv_error *error) {
  *seconds = 0;
  clv__arena arena;
  clv__arena_init(&arena, plan->graph->allocator);
  clv_status status = CLV_OK;
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (!partition->is_bucketed) continue;
    clv_graph_view *view;
    const clv_tensor *types = types_at(plan, partition->view, sizes, &arena);
    status = types == NULL ? clv__error_memory(error, plan->graph->value_count * sizeof *types)
                           : clv__view_create(plan->graph, types, partition->nodes, partition->node_count, plan->is_kept, &arena,
                                              &view, error);
    if (status != CLV_OK) break;
    *seconds += (double)clv__cost_launch(plan->costs, partition->device) * 1e-9;
    for (uint32_t n = 0; n < view->node_count; ++n) *seconds += seconds_of(plan, partition->device, view, n);
    clv__arena_finish(&arena);
  }
  clv__arena_finish(&arena);
  return status;
}

/* Marks the symbols that bucketed partitions use. */
static void mark_symbols(const clv_plan *plan, bool *is_used) {
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    for (uint32_t v = 0; plan->partitions[p].is_bucketed && v < view->value_count; ++v) {
      const clv_tensor *type = clv__view_type(view, v);
      for (int32_t d = 0; d < type->rank; ++d) {
        if (type->dims[d] < CLV_DIM_UNKNOWN) is_used[plan->open->base[-2 - type->dims[d]]] = true;
      }
    }
  }
}

static clv_status draw_lines(clv__bucket_rule *rule, clv_error *error) {
  const clv_plan *plan = rule->plan;
  uint32_t count = plan->open->symbol_count;
  rule->lines = clv__arena_allocate_zero(&rule->arena, count, sizeof *rule->lines);
  bool *is_used = clv__arena_allocate_zero(&rule->arena, count, sizeof *is_used);
  int64_t *sizes = no_sizes(plan, &rule->arena);
  if (rule->lines == NULL || is_used == NULL || sizes == NULL) return clv__error_memory(error, count * sizeof *rule->lines);
  mark_symbols(plan, is_used);
  double usual, more;
  for (uint32_t s = 0; s < count; ++s) {
    if (is_used[s]) sizes[s] = rule->multiple;
  }
  CLV__TRY(time_all(plan, sizes, &usual, error));
  for (uint32_t s = 0; s < count && rule->multiple > 1; ++s) {
    if (!is_used[s]) continue;
    sizes[s] = 2 * rule->multiple;
    CLV__TRY(time_all(plan, sizes, &more, error));
    sizes[s] = rule->multiple;
    double each = more > usual ? (more - usual) / (double)rule->multiple : 0;
    double fixed = usual - each * (double)rule->multiple;
    rule->lines[s] = (line){fixed > 0 ? fixed : 0, each};
  }
  return CLV_OK;
}

clv_status clv__bucket_rule_create(const clv_plan *plan, uint32_t multiple, clv__bucket_rule **out, clv_error *error) {
  *out = NULL;
  bool any = false;
  for (uint32_t p = 0; p < plan->partition_count; ++p) any = any || plan->partitions[p].is_bucketed;
  if (!any) return CLV_OK;
  if (multiple > MOST_MULTIPLE) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "bucket_multiple is %u, above the maximum of %u", multiple, MOST_MULTIPLE);
  }
  clv__bucket_rule *rule = clv__allocate_zero(plan->graph->allocator, sizeof *rule);
  if (rule == NULL) return clv__error_memory(error, sizeof *rule);
  rule->plan = plan;
  rule->multiple = multiple == 0 ? USUAL_MULTIPLE : (int64_t)multiple;
  clv__arena_init(&rule->arena, plan->graph->allocator);
  clv__devices_lock(plan->devices);
  clv_status status = draw_lines(rule, error);
  clv__devices_unlock(plan->devices);
  if (status != CLV_OK) {
    clv__bucket_rule_destroy(rule);
    return status;
  }
  *out = rule;
  return CLV_OK;
}

void clv__bucket_rule_destroy(clv__bucket_rule *rule) {
  if (rule == NULL) return;
  const clv_allocator *allocator = rule->arena.allocator;
  clv__arena_finish(&rule->arena);
  clv__release(allocator, rule);
}

/* ---- A partition ---- */

/* Sets `sizes` for the symbols in the shape of an input: for each base symbol, its size in this run, padded. */
static clv_status read_input(const clv__bucket_rule *rule, clv_value_id value, const clv_tensor *exact, int64_t *sizes,
                             clv_error *error) {
  const clv_plan *plan = rule->plan;
  const clv_tensor *open = &plan->shapes->types[value];
  if (!clv__tensor_is_static(exact) || exact->rank != open->rank) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "the shape of '%s' is unknown, or its rank differs from the planned rank",
                          plan->graph->values[value].name);
  }
  for (int32_t d = 0; d < open->rank; ++d) {
    if (open->dims[d] >= CLV_DIM_UNKNOWN) continue;
    uint32_t symbol = (uint32_t)(-2 - open->dims[d]), base = plan->open->base[symbol];
    int64_t factor = plan->open->factor[symbol];
    int64_t padded = exact->dims[d] % factor != 0 ? -1 : pad_base(rule, base, exact->dims[d] / factor);
    if (padded < 0 || (sizes[base] >= 0 && sizes[base] != padded)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR,
                            "axis %d of '%s' has size %lld, which contradicts the plan or another input", (int)d,
                            plan->graph->values[value].name, (long long)exact->dims[d]);
    }
    sizes[base] = padded;
  }
  return CLV_OK;
}

/* Lists the types of the view's inputs or outputs at the bucket's sizes, and which of them are padded. A value whose exact type
 * is unknown counts as padded, so that it is always copied. */
static bool list_types(const clv_graph_view *view, const uint32_t *values, uint32_t count, const clv_tensor *types,
                       const clv_tensor *exact, clv__arena *arena, const clv_tensor **out, const bool **out_padded) {
  clv_tensor *list = clv__arena_allocate_zero(arena, count, sizeof *list);
  bool *padded = clv__arena_allocate_zero(arena, count, sizeof *padded);
  if (list == NULL || padded == NULL) return false;
  for (uint32_t i = 0; i < count; ++i) {
    clv_value_id id = view->values[values[i]];
    list[i] = types[id];
    list[i].data = NULL;
    padded[i] = !clv__tensor_same_type(&list[i], &exact[id]);
  }
  *out = list;
  *out_padded = padded;
  return true;
}

clv_status clv__bucket_describe(const clv__bucket_rule *rule, uint32_t index, const clv_tensor *exact, clv__arena *arena,
                                clv__bucket *bucket, clv_error *error) {
  const clv_plan *plan = rule->plan;
  const clv__partition *partition = &plan->partitions[index];
  const clv_graph_view *view = partition->view;
  *bucket = (clv__bucket){0};
  int64_t *sizes = no_sizes(plan, arena);
  if (sizes == NULL) return clv__error_memory(error, plan->open->symbol_count * sizeof *sizes);
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id id = view->values[view->inputs[i]];
    clv_status status = read_input(rule, id, &exact[id], sizes, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "partition %u", index);
  }
  const clv_tensor *types = types_at(plan, view, sizes, arena);
  if (types == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *types);
  clv_graph_view *made;
  CLV__TRY(clv__view_create(plan->graph, types, partition->nodes, partition->node_count, plan->is_kept, arena, &made, error));
  made->fills = view->fills;
  made->unstreamed = view->unstreamed;
  if (!list_types(view, view->inputs, view->input_count, types, exact, arena, &bucket->inputs, &bucket->input_is_padded) ||
      !list_types(view, view->outputs, view->output_count, types, exact, arena, &bucket->outputs, &bucket->output_is_padded)) {
    return clv__error_memory(error, (size_t)view->value_count * sizeof *types);
  }
  bucket->view = made;
  bucket->is_exact = true;
  for (uint32_t i = 0; i < view->input_count; ++i) bucket->is_exact = bucket->is_exact && !bucket->input_is_padded[i];
  for (uint32_t i = 0; i < view->output_count; ++i) bucket->is_exact = bucket->is_exact && !bucket->output_is_padded[i];
  return CLV_OK;
}
