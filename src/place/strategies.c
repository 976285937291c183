/* The table of strategies, and the causes that they share. Also initialises the arrays of a placement, and computes the cut,
 * transfers and predicted time of a strategy's result. */
#include <string.h>

#include "place/place.h"

const clv__strategy *const clv__strategies[] = {
    &clv__strategy_optimal,
    &clv__strategy_contiguous,
    &clv__strategy_propagate,
    &clv__strategy_propagate_graph,
    &clv__strategy_delegate,
    &clv__strategy_ready,
    NULL,
};

/* The causes of several strategies, of planning, and of plan files. */
static const clv__cause common_causes[] = {
    {"const", "its outputs are computed at plan time"},
    {"usr", "fixed by the user"},
    {"view", "a view, which moves no data, so it stays where its source is, or where its result is read"},
    {"file", "set by the plan file"},
    {"only", "the only device that can run it"},
    {"single", "all nodes are on one device"},
    {"lost", "its device was removed"},
    {"memory", "the better device has too little memory"},
    {NULL, NULL},
};

const clv__strategy *clv__strategy_find(const char *name) {
  for (const clv__strategy *const *strategy = clv__strategies; *strategy != NULL; ++strategy) {
    if (strcmp((*strategy)->name, name) == 0) return *strategy;
  }
  return NULL;
}

static bool is_meant(const char *pattern, const char *cause) {
  size_t length = strcspn(pattern, "#");
  if (strncmp(pattern, cause, length) != 0) return false;
  return pattern[length] == '#' ? strspn(cause + length, "0123456789") == strlen(cause + length) : cause[length] == '\0';
}

static const char *find_meaning(const clv__cause *causes, const char *cause) {
  for (; causes->name != NULL; ++causes) {
    if (is_meant(causes->name, cause)) return causes->meaning;
  }
  return NULL;
}

const char *clv__cause_meaning(const char *cause) {
  const char *meaning = find_meaning(common_causes, cause);
  for (const clv__strategy *const *strategy = clv__strategies; *strategy != NULL && meaning == NULL; ++strategy) {
    meaning = find_meaning((*strategy)->causes, cause);
  }
  return meaning;
}

clv_status clv__placing_init(const clv__problem *problem, clv__arena *arena, clv__placing *placing, clv_error *error) {
  size_t count = problem->node_count;
  *placing = (clv__placing){.devices = clv__arena_allocate(arena, count * sizeof *placing->devices),
                            .causes = clv__arena_allocate(arena, count * sizeof *placing->causes)};
  if (placing->devices == NULL || placing->causes == NULL) return clv__error_memory(error, count * sizeof *placing->causes);
  memset(placing->devices, 0xff, count * sizeof *placing->devices); /* CLV__NONE */
  for (size_t n = 0; n < count; ++n) placing->causes[n] = "";
  return CLV_OK;
}

clv_status clv__place_candidate(const clv__place_input *input, clv__place_fn place, clv__arena *arena, clv__candidate *candidate,
                                clv_error *error) {
  *candidate = (clv__candidate){0};
  CLV__TRY(place(input, arena, &candidate->placing, error));
  return clv__place_price(input, arena, candidate, error);
}

clv_status clv__place_price(const clv__place_input *input, clv__arena *arena, clv__candidate *candidate, clv_error *error) {
  const clv__placing *placing = &candidate->placing;
  if (placing->has_cut)
    candidate->cut = placing->cut;
  else
    CLV__TRY(clv__split(input->problem, placing->devices, placing->groups, input->split, arena, &candidate->cut, error));
  CLV__TRY(clv__split_copies(input->problem, &candidate->cut, placing->streamed, arena, &candidate->copies, error));
  return clv__price_cut(input->problem, &candidate->cut, &candidate->copies, arena, &candidate->price, error);
}
