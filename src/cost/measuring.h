/* The public profile: measured tables, and how much of them was measured in this process. */
#ifndef CLEAVE_COST_MEASURING_H
#define CLEAVE_COST_MEASURING_H

#include "cleave/profile.h"
#include "cost/profile.h"

struct clv_profile {
  const clv_allocator *allocator;
  clv__profile *tables;
};

#endif
