/* Prices of parts and blocks: between pep.c and pep_cost.c. */
#ifndef CLEAVE_GNN_PLAN_PEP_COST_H
#define CLEAVE_GNN_PLAN_PEP_COST_H

#include "gnn/plan/pep.h"

/* One block on one set of devices, with its neighbours' memory. */
typedef struct clv__block_question {
  uint32_t first, last;
  uint32_t set;               /* a bit for each device */
  bool shared_in, shared_out; /* earlier blocks' results, its own, stay in a memory that is not the host's */
} clv__block_question;

enum { CLV__BLOCK_VARIANTS = 32 };

typedef struct clv__block_answers {
  clv__known known; /* KNOWN: at least one */
  uint32_t count;
  clv__pep_block items[CLV__BLOCK_VARIANTS];
} clv__block_answers;

/* Whether stages and tables allow the block there at all. */
bool clv__block_is_legal(const clv__costs *costs, const clv__block_question *question);
/* The part as its device, share, sizes and padded sizes are: its times and bytes. */
clv__known clv__pep_part_price(const clv__costs *costs, const clv__piece *piece, const clv__block_question *question,
                               clv__pep_part *part);
/* What is asked of each block of a plan: stages between `cuts`, on `sets`. */
void clv__block_questions(const clv__machine *machine, uint32_t blocks, const uint32_t *cuts, const uint32_t *sets,
                          clv__block_question *questions);
/* The block with balanced shares, rounded to twentieths in every way near by. */
void clv__block_price(const clv__costs *costs, const clv__piece *piece, const clv__block_question *question, uint32_t variants,
                      clv__block_answers *answers);

#endif
