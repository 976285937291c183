/* Lists all plans of a layer's subgraphs, then narrows the lists. See choose_own.h. */
#include <string.h>

#include "gnn/plan/choose_own.h"

/* Prepares the data derived from the lists. */
static clv_status prepare(clv__choosing *c, clv_error *error) {
  size_t total = 0;
  uint32_t *offsets = clv__arena_allocate_zero(c->arena, c->k + 1u, sizeof *offsets);
  if (offsets == NULL) return clv__error_memory(error, c->k * sizeof *offsets);
  for (uint32_t i = 0; i < c->k; ++i) {
    total += c->lists[i].count;
    offsets[i + 1] = (uint32_t)total;
  }
  clv__pep_work *items = clv__arena_allocate_zero(c->arena, total, sizeof *items);
  c->ranked = clv__arena_allocate_zero(c->arena, total, sizeof *c->ranked);
  if (items == NULL || c->ranked == NULL) return clv__error_memory(error, total * sizeof *items);
  for (uint32_t i = 0; i < c->k; ++i) {
    for (uint32_t o = 0; o < c->lists[i].count; ++o) clv__pep_work_of(&c->lists[i].items[o], &items[offsets[i] + o]);
  }
  c->works = (clv__pep_works){c->costs->machine, c->k, offsets, items};
  return clv__assign_init(&c->assign, c->arena, c->costs->machine->device_count, c->lists, c->k, error);
}

clv_status clv__choosing_make_lists(clv__choosing *c, const clv__choose_cut *cut, clv_error *error) {
  clv__pep_options options = c->options->peps;
  options.top_k = 0; /* clv__choosing_narrow() later selects the best */
  c->lists = clv__arena_allocate_zero(c->arena, c->k, sizeof *c->lists);
  if (c->lists == NULL) return clv__error_memory(error, c->k * sizeof *c->lists);
  for (uint32_t i = 0; i < c->k; ++i) {
    clv_status status = clv__peps_make(c->arena, c->costs, &cut->subgraphs[i], &options, &c->lists[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "subgraph %u of %u", i, c->k);
  }
  CLV__TRY(prepare(c, error));
  CLV__TRY(clv__search_init(&c->search, c->arena, &c->works, error));
  CLV__TRY(clv__candidate_init(&c->best, c->arena, c->k, error));
  CLV__TRY(clv__candidate_init(&c->trial, c->arena, c->k, error));
  for (uint32_t s = 0; s < CLV__CHOOSING_STARTS; ++s) CLV__TRY(clv__candidate_init(&c->starts[s], c->arena, c->k, error));
  return CLV_OK;
}

/* ---- Top-K ---- */

bool clv__choosing_same_form(const clv__pep *a, const clv__pep *b) {
  if (a->block_count != b->block_count) return false;
  for (uint32_t k = 0; k < a->block_count; ++k) {
    const clv__pep_block *x = &a->blocks[k], *y = &b->blocks[k];
    if (x->first != y->first || x->last != y->last || x->part_count != y->part_count) return false;
    for (uint32_t i = 0; i < x->part_count; ++i) {
      if (x->parts[i].device != y->parts[i].device || x->parts[i].from != y->parts[i].from || x->parts[i].to != y->parts[i].to)
        return false;
    }
  }
  return true;
}

/* Returns whether the best schedule or one of the starts uses, for any subgraph, a plan of the same form (choose_own.h). */
static bool is_useful(const clv__choosing *c, const clv__pep *pep) {
  for (uint32_t i = 0; i < c->k; ++i) {
    if (clv__choosing_same_form(pep, &c->lists[i].items[c->best.choices[i]])) return true;
    for (uint32_t s = 0; s < c->start_count; ++s) {
      if (clv__choosing_same_form(pep, &c->lists[i].items[c->starts[s].choices[i]])) return true;
    }
  }
  return false;
}

clv_status clv__choosing_narrow(clv__choosing *c, clv_error *error) {
  clv__pep_list *kept = clv__arena_allocate_zero(c->arena, c->k, sizeof *kept);
  clv__pep **items = clv__arena_allocate_zero(c->arena, c->k, sizeof *items);
  uint32_t **moved = clv__arena_allocate_zero(c->arena, c->k, sizeof *moved); /* each plan's new index */
  if (kept == NULL || items == NULL || moved == NULL) return clv__error_memory(error, c->k * sizeof *kept);
  for (uint32_t i = 0; i < c->k; ++i) {
    const clv__pep_list *list = &c->lists[i];
    const uint32_t *ranked = c->ranked + c->works.offsets[i];
    bool *wanted = clv__arena_allocate_zero(c->arena, list->count, sizeof *wanted);
    moved[i] = clv__arena_allocate_zero(c->arena, list->count, sizeof **moved);
    kept[i] = *list;
    kept[i].count = 0;
    items[i] = kept[i].items = clv__arena_allocate_zero(c->arena, list->count, sizeof *items[i]);
    if (wanted == NULL || moved[i] == NULL || items[i] == NULL) return clv__error_memory(error, list->count * sizeof *items[i]);
    uint32_t used = 0;
    for (uint32_t o = 0; o < list->count; ++o) {
      wanted[o] = clv__pep_single(&list->items[o]) != CLV__NO_ID || is_useful(c, &list->items[o]);
      used += wanted[o];
    }
    for (uint32_t r = 0; r < list->count && used < c->options->peps.top_k; ++r) {
      used += !wanted[ranked[r]];
      wanted[ranked[r]] = true;
    }
    for (uint32_t o = 0; o < list->count; ++o) {
      moved[i][o] = kept[i].count;
      if (wanted[o]) items[i][kept[i].count++] = list->items[o];
    }
  }
  for (uint32_t i = 0; i < c->k; ++i) {
    c->best.choices[i] = moved[i][c->best.choices[i]];
    for (uint32_t s = 0; s < c->start_count; ++s) c->starts[s].choices[i] = moved[i][c->starts[s].choices[i]];
  }
  c->lists = kept;
  return prepare(c, error);
}
