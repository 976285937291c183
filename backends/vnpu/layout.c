/* Lays out the scratch of a static program: memory for computed values and for the kernels' own scratch. Checks a layout that
 * was read from a file. Also finds the positions of the operands in a command list. */
#include <stdlib.h>
#include <string.h>

#include "base/arrange.h"
#include "base/error.h"
#include "program.h"

/* ---- Contents of the scratch ---- */

/* Calls `visit` for every piece of scratch, in the order of the instructions, until it fails. A piece is a computed value or a
 * kernel's own scratch. `first` and `last` are the instructions between which it is in use, `size_bytes` its size, rounded up,
 * and `offset` the place where its offset is stored. */
typedef clv_status (*visit_fn)(void *cookie, uint32_t first, uint32_t last, uint64_t size_bytes, uint64_t *offset);

static clv_status each_piece(clv_executable *p, visit_fn visit, void *cookie, clv_error *error) {
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    for (uint32_t i = 0; i <= instruction->node.output_count; ++i) {
      bool is_own = i == instruction->node.output_count; /* the kernel's own scratch comes after its outputs */
      uint32_t v = is_own ? CLV_NO_VALUE : instruction->node.outputs[i];
      if (!is_own && (v == CLV_NO_VALUE || p->locations[v].kind != CLV__VNPU_SCRATCH)) continue;
      uint64_t size_bytes = is_own ? instruction->scratch_bytes : p->sizes[v];
      if (size_bytes > UINT64_MAX / 4) return clv__error_set(error, CLV_TOO_LARGE, "scratch is too large for any memory");
      if (size_bytes == 0) continue;
      size_bytes = clv__align_up(size_bytes, p->device->spec.alignment_bytes);
      uint64_t *offset = is_own ? &instruction->scratch_offset : &p->locations[v].offset;
      clv_status status = visit(cookie, n, is_own ? n : p->last_uses[v], size_bytes, offset);
      if (status != CLV_OK) return clv__error_prefix(error, status, "instruction %u", n);
    }
  }
  return CLV_OK;
}

static clv_status count_piece(void *cookie, uint32_t first, uint32_t last, uint64_t size_bytes, uint64_t *offset) {
  (void)first;
  (void)last;
  (void)size_bytes;
  (void)offset;
  ++*(size_t *)cookie;
  return CLV_OK;
}

/* ---- Making ---- */

typedef struct layout {
  clv__interval *intervals, **order;
  uint64_t **offsets;
  size_t count;
} layout;

static clv_status note_interval(void *cookie, uint32_t first, uint32_t last, uint64_t size_bytes, uint64_t *offset) {
  layout *l = cookie;
  l->intervals[l->count] = (clv__interval){.id = (uint32_t)l->count, .first = first, .last = last, .size_bytes = size_bytes};
  l->order[l->count] = &l->intervals[l->count];
  l->offsets[l->count++] = offset;
  return CLV_OK;
}

clv_status clv__vnpu_layout_make(clv_executable *p, clv_error *error) {
  const clv_allocator *allocator = p->device->allocator;
  size_t count = 0, total = 0;
  CLV__TRY(each_piece(p, count_piece, &count, error));
  layout l = {.intervals = clv__allocate(allocator, count * sizeof *l.intervals),
              .order = clv__allocate(allocator, count * sizeof *l.order),
              .offsets = clv__allocate(allocator, count * sizeof *l.offsets)};
  clv_status status = CLV_OK;
  if (l.intervals == NULL || l.order == NULL || l.offsets == NULL) status = clv__error_memory(error, count * sizeof *l.intervals);
  if (status == CLV_OK) status = each_piece(p, note_interval, &l, error);
  if (status == CLV_OK) status = clv__intervals_arrange(l.order, count, allocator, &total, error);
  for (size_t i = 0; i < count && status == CLV_OK; ++i) *l.offsets[i] = l.intervals[i].offset;
  p->scratch_bytes = total;
  clv__release(allocator, l.offsets);
  clv__release(allocator, l.order);
  clv__release(allocator, l.intervals);
  return status;
}

/* ---- A set of small numbers that finds the nearest member above or below a given number ----
 *
 * A bitmap with levels. Level 0 has one bit per number. A bit of a higher level is set if a word of the level below is not 0. */

enum { LEVELS = 6, NONE = -1 };

typedef struct numbers {
  uint64_t *levels[LEVELS];
  int depth;
} numbers;

static bool numbers_init(numbers *set, size_t count, clv__arena *arena) {
  *set = (numbers){.depth = 0};
  do {
    count = (count + 63) / 64;
    uint64_t *words = clv__arena_allocate_zero(arena, count + 1, sizeof *words);
    if (words == NULL) return false;
    set->levels[set->depth++] = words;
  } while (count > 1);
  return true;
}

static void numbers_add(numbers *set, size_t number) {
  for (int l = 0; l < set->depth; ++l, number /= 64) set->levels[l][number / 64] |= UINT64_C(1) << (number % 64);
}

static void numbers_remove(numbers *set, size_t number) {
  for (int l = 0; l < set->depth; ++l, number /= 64) {
    uint64_t *word = &set->levels[l][number / 64];
    *word &= ~(UINT64_C(1) << (number % 64));
    if (*word != 0) return;
  }
}

/* The smallest member above `number`, or the largest below it; NONE if there is none. */
static int64_t numbers_next(const numbers *set, size_t number, bool above) {
  for (int l = 0; l < set->depth; ++l, number /= 64) {
    uint64_t bit = UINT64_C(1) << (number % 64), below_mask = bit - 1;
    uint64_t found = set->levels[l][number / 64] & (above ? ~(below_mask | bit) : below_mask);
    if (found == 0) continue;
    size_t at = number / 64 * 64 + (size_t)(above ? __builtin_ctzll(found) : 63 - __builtin_clzll(found));
    while (l-- > 0) {
      uint64_t word = set->levels[l][at];
      at = at * 64 + (size_t)(above ? __builtin_ctzll(word) : 63 - __builtin_clzll(word));
    }
    return (int64_t)at;
  }
  return NONE;
}

/* ---- Checking ---- */

typedef struct piece {
  uint64_t offset, end;
  uint32_t first, last;
  uint32_t rank;   /* index of the piece when all are sorted by offset */
  uint32_t ending; /* list of the pieces that end with the same instruction: 1 + the index of the next one; 0: the end */
} piece;

typedef struct check {
  uint64_t scratch_bytes, alignment_bytes;
  clv_error *error;
  piece *pieces;
  size_t count;
} check;

static clv_status note_piece(void *cookie, uint32_t first, uint32_t last, uint64_t size_bytes, uint64_t *offset) {
  check *c = cookie;
  if (*offset % c->alignment_bytes != 0) {
    return clv__error_set(c->error, CLV_INVALID_MODEL, "scratch offset %llu is not a multiple of %llu",
                          (unsigned long long)*offset, (unsigned long long)c->alignment_bytes);
  }
  if (*offset > c->scratch_bytes || size_bytes > c->scratch_bytes - *offset) {
    return clv__error_set(c->error, CLV_INVALID_MODEL, "%llu bytes at offset %llu do not fit in the scratch memory of %llu bytes",
                          (unsigned long long)size_bytes, (unsigned long long)*offset, (unsigned long long)c->scratch_bytes);
  }
  c->pieces[c->count++] = (piece){.offset = *offset, .end = *offset + size_bytes, .first = first, .last = last};
  return CLV_OK;
}

static int by_offset(const void *a, const void *b) {
  const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
  return x->offset != y->offset ? (x->offset > y->offset ? 1 : -1) : (x > y) - (x < y);
}

static clv_status refuse_overlap(const piece *a, const piece *b, clv_error *error) {
  clv_status status = clv__error_set(error, CLV_INVALID_MODEL,
                                     "scratch at offset %llu overlaps data at offset %llu that is in use at the same time",
                                     (unsigned long long)a->offset, (unsigned long long)b->offset);
  return clv__error_prefix(error, status, "instruction %u", a->first);
}

/* Goes through the instructions and keeps the set of live pieces, sorted by offset. Live pieces do not overlap, so a new piece is
 * compared only with its two neighbours. */
static clv_status sweep(const clv_executable *p, const check *c, piece **by_rank, uint32_t *ends, numbers *alive,
                        clv_error *error) {
  size_t next = 0;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (; next < c->count && c->pieces[next].first == n; ++next) {
      piece *made = &c->pieces[next];
      int64_t below = numbers_next(alive, made->rank, false), above = numbers_next(alive, made->rank, true);
      if (below != NONE && by_rank[below]->end > made->offset) return refuse_overlap(made, by_rank[below], error);
      if (above != NONE && by_rank[above]->offset < made->end) return refuse_overlap(made, by_rank[above], error);
      numbers_add(alive, made->rank);
      made->ending = ends[made->last];
      ends[made->last] = (uint32_t)next + 1;
    }
    for (uint32_t e = ends[n]; e != 0; e = c->pieces[e - 1].ending) numbers_remove(alive, c->pieces[e - 1].rank);
  }
  return CLV_OK;
}

static clv_status check_in(clv_executable *p, clv__arena *arena, clv_error *error) {
  check c = {.scratch_bytes = p->scratch_bytes, .alignment_bytes = p->device->spec.alignment_bytes, .error = error};
  size_t count = 0;
  CLV__TRY(each_piece(p, count_piece, &count, error));
  c.pieces = clv__arena_allocate_zero(arena, count, sizeof *c.pieces);
  piece **by_rank = clv__arena_allocate_zero(arena, count, sizeof *by_rank);
  uint32_t *ends = clv__arena_allocate_zero(arena, (size_t)p->node_count + 1, sizeof *ends);
  numbers alive;
  if (c.pieces == NULL || by_rank == NULL || ends == NULL || !numbers_init(&alive, count, arena))
    return clv__error_memory(error, count * sizeof *c.pieces);
  CLV__TRY(each_piece(p, note_piece, &c, error));
  for (size_t i = 0; i < count; ++i) by_rank[i] = &c.pieces[i];
  qsort(by_rank, count, sizeof *by_rank, by_offset);
  for (size_t i = 0; i < count; ++i) by_rank[i]->rank = (uint32_t)i;
  return sweep(p, &c, by_rank, ends, &alive, error);
}

clv_status clv__vnpu_layout_check(clv_executable *p, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, p->device->allocator);
  clv_status status = check_in(p, &arena, error);
  clv__arena_finish(&arena);
  return status;
}

/* ---- Operands in a command list ---- */

/* Calls `visit` for every operand whose memory is a binding, with the operand's position in a command list. */
static void each_bound(const clv_executable *p, void (*visit)(const clv_executable *p, uint32_t binding, uint32_t position)) {
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
      uint32_t v = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
      if (v == CLV_NO_VALUE) continue;
      const clv__vnpu_location *at = &p->locations[v];
      if (at->kind == CLV__VNPU_INPUT) visit(p, at->index, instruction->first_operand + i);
      if (at->kind == CLV__VNPU_OUTPUT) visit(p, p->input_count + at->index, instruction->first_operand + i);
    }
  }
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    const clv__vnpu_location *at = &p->locations[p->copies[c].value];
    uint32_t position = p->first_copy + 2 * c;
    if (at->kind == CLV__VNPU_INPUT) visit(p, at->index, position);
    if (at->kind == CLV__VNPU_OUTPUT) visit(p, p->input_count + at->index, position);
    visit(p, p->input_count + p->copies[c].output, position + 1);
  }
}

static void count_use(const clv_executable *p, uint32_t binding, uint32_t position) {
  (void)position;
  ++p->use_starts[binding + 1];
}

/* Adds a use of a binding. While uses are added, use_starts[b] is the index in `uses` of the next use of binding b. */
static void note_use(const clv_executable *p, uint32_t binding, uint32_t position) {
  p->uses[p->use_starts[binding]++] = position;
}

clv_status clv__vnpu_layout_index(clv_executable *p, clv_error *error) {
  uint64_t operands = 0;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    instruction->first_operand = (uint32_t)operands;
    operands += (uint64_t)instruction->node.input_count + instruction->node.output_count + (instruction->scratch_bytes > 0);
    if (operands > UINT32_MAX / 2) return clv__error_set(error, CLV_TOO_LARGE, "too many operands for a program");
  }
  p->first_copy = (uint32_t)operands;
  p->operand_count = (uint32_t)operands + 2 * p->copy_count;
  uint32_t bindings = p->input_count + p->output_count;
  p->use_starts = clv__arena_allocate_zero(&p->arena, (size_t)bindings + 2, sizeof *p->use_starts);
  if (p->use_starts == NULL) return clv__error_memory(error, bindings * sizeof *p->use_starts);
  each_bound(p, count_use);
  for (uint32_t b = 0; b < bindings; ++b) p->use_starts[b + 1] += p->use_starts[b];
  uint32_t uses = p->use_starts[bindings];
  p->uses = clv__arena_allocate_zero(&p->arena, uses, sizeof *p->uses);
  if (p->uses == NULL) return clv__error_memory(error, uses * sizeof *p->uses);
  each_bound(p, note_use);
  for (uint32_t b = bindings; b > 0; --b) p->use_starts[b] = p->use_starts[b - 1];
  p->use_starts[0] = 0;
  return CLV_OK;
}
