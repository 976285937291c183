/* Improves the best fitted placement: moves nodes, and fits the placement again after each move; joins partitions that were cut
 * apart for memory. */
#include <string.h>

#include "place/optimal/optimal.h"

#define REFINE_EFFORT ((uint64_t)300000)

typedef struct refining {
  clv__optimal *o;
  clv__fitted *best;
  uint32_t *trial; /* by node: devices or groups */
  uint64_t limit;  /* the refinement ends when evaluator.spent reaches this number */
} refining;

/* Fits the placement in `trial`. If that is better than r->best, replaces r->best and sets `better`. */
static clv_status try_placement(refining *r, bool *better) {
  clv__optimal *o = r->o;
  uint32_t nodes = o->problem->node_count;
  bool hopeless;
  clv__arena arena;
  clv__placing placing;
  clv__score score;
  CLV__TRY(clv__is_hopeless(&o->evaluator, r->trial, &r->best->score, &hopeless, o->error));
  o->evaluator.spent += o->evaluator.effort / 8;
  if (hopeless || o->evaluator.spent >= r->limit) return CLV_OK;
  clv__arena_init(&arena, o->allocator);
  clv_status status = clv__optimal_stream(o, r->trial, &arena, &placing, &score);
  if (status == CLV_OK && clv__score_less(&score, &r->best->score)) {
    *better = true;
    r->best->score = score;
    memcpy(r->best->devices, r->trial, nodes * sizeof *r->trial);
    memcpy(r->best->placing.groups, placing.groups, nodes * sizeof *placing.groups);
    memcpy(r->best->placing.streamed, placing.streamed, o->problem->weight_count * sizeof *placing.streamed);
  }
  clv__arena_finish(&arena);
  return status;
}

/* Tries to move node `a` to device `d` and node `b` to device `e`. `a` and `b` may be the same node; then `d` must equal
 * `e`. */
static clv_status try_move(refining *r, uint32_t a, uint32_t d, uint32_t b, uint32_t e, bool *better) {
  const clv__problem *problem = r->o->problem;
  const uint32_t *devices = r->best->devices;
  if (devices[a] == d || devices[b] == e || (a == b && d != e)) return CLV_OK;
  if ((clv__node_devices(problem, a) >> d & 1u) == 0 || (clv__node_devices(problem, b) >> e & 1u) == 0) return CLV_OK;
  memcpy(r->trial, devices, problem->node_count * sizeof *devices);
  r->trial[a] = d;
  r->trial[b] = e;
  return try_placement(r, better);
}

/* Moves single nodes, then pairs, the nearest in the list first. */
static clv_status try_moves(refining *r, bool *better) {
  uint32_t nodes = r->o->problem->node_count, devices = r->o->problem->device_count;
  for (uint32_t apart = 0; apart < nodes; ++apart) {
    for (uint32_t a = 0; a + apart < nodes && r->o->evaluator.spent < r->limit; ++a) {
      for (uint32_t pair = 0; pair < devices * devices; ++pair)
        CLV__TRY(try_move(r, a, pair / devices, a + apart, pair % devices, better));
    }
  }
  return CLV_OK;
}

/* Prices the groups in `trial`. If they are better than those of r->best, replaces them and sets `better`. */
static clv_status try_groups(refining *r, bool *better) {
  clv__evaluator *evaluator = &r->o->evaluator;
  clv__fitted *best = r->best;
  clv__score score;
  evaluator->groups = r->trial;
  evaluator->streamed = best->placing.streamed;
  clv_status status = clv__evaluate(evaluator, best->devices, &score, r->o->error);
  evaluator->groups = NULL;
  evaluator->streamed = NULL;
  if (status != CLV_OK || !clv__score_less(&score, &best->score)) return status;
  *better = true;
  best->score = score;
  memcpy(best->placing.groups, r->trial, r->o->problem->node_count * sizeof *r->trial);
  return CLV_OK;
}

/* Tries to move node `a`, or its whole group, to the group of node `b`, if both nodes are on the same device. */
static clv_status try_join(refining *r, uint32_t a, uint32_t b, bool whole, bool *better) {
  const uint32_t *groups = r->best->placing.groups, *devices = r->best->devices;
  if (devices[a] != devices[b] || groups[a] == groups[b]) return CLV_OK;
  for (uint32_t n = 0; n < r->o->problem->node_count; ++n) {
    bool joins = n == a || (whole && devices[n] == devices[a] && groups[n] == groups[a]);
    r->trial[n] = joins ? groups[b] : groups[n];
  }
  return try_groups(r, better);
}

/* Joins whole groups, then moves single nodes to other groups, the nearest in the list first. */
static clv_status try_joins(refining *r, bool *better) {
  uint32_t nodes = r->o->problem->node_count;
  for (uint32_t whole = 2; whole-- > 0;) {
    for (uint32_t apart = 1; apart < nodes; ++apart) {
      for (uint32_t a = 0; a + apart < nodes && r->o->evaluator.spent < r->limit; ++a) {
        CLV__TRY(try_join(r, a, a + apart, whole == 1, better));
        if (whole == 0) CLV__TRY(try_join(r, a + apart, a, false, better)); /* for whole groups, the result would be the same */
      }
    }
  }
  return CLV_OK;
}

clv_status clv__optimal_refine(clv__optimal *o, clv__fitted *best) {
  bool better = true;
  refining r = {.o = o, .best = best, .trial = o->scratch, .limit = o->evaluator.spent + REFINE_EFFORT};
  while (better && o->evaluator.spent < r.limit) {
    better = false;
    CLV__TRY(try_joins(&r, &better));
    CLV__TRY(try_moves(&r, &better));
  }
  return CLV_OK;
}
