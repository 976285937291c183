/* Prices between and beside what was measured: of operators by their work, of edges by their bytes, of copies by their size. */
#ifndef CLEAVE_COST_FIT_H
#define CLEAVE_COST_FIT_H

#include "cost/profile.h"

/* time = base + flops * per_flop + bytes * per_byte, none of them negative, for the nodes of one operator and dtype. Only to be
 * used inside the domain: the least and the most work that was measured. */
typedef struct clv__fit {
  double base_ns, per_flop_ns, per_byte_ns, per_other_ns;
  double least_flops, most_flops, least_bytes, most_bytes;
  uint32_t points;
  double error; /* median of |predicted - measured| / measured */
} clv__fit;

typedef struct clv__fits clv__fits;

/* Fits for everything in the tables, which must outlive them. */
clv_status clv__fits_create(const clv__profile_device *tables, const clv_allocator *allocator, clv__fits **fits,
                            clv_error *error);
void clv__fits_destroy(clv__fits *fits); /* accepts NULL */

/* NULL where there is none that is any good. `family` as of clv__signature_family(). */
const clv__fit *clv__fits_find(const clv__fits *fits, const char *family);
/* False outside the domain. */
bool clv__fit_time(const clv__fit *fit, double flops, double bytes, double *time_ns);
/* What an edge between these families saves a byte; 0 where none was measured. */
double clv__fits_saving_rate(const clv__fits *fits, const char *producer, const char *consumer);

/* One fit by itself: weighted to relative errors. False where the points do not give one. `other` is a third amount, for who has
 * one: 0 in all points where there is none. */
typedef struct clv__fit_point {
  double flops, bytes, time_ns, other;
} clv__fit_point;
bool clv__fit_points(const clv__fit_point *points, uint32_t count, clv__fit *fit);

/* A copy's time from the measured ones: never less for more bytes; the last slope goes on above the largest. */
double clv__copy_time(const clv__profile_copy *copies, uint32_t count, uint64_t size_bytes);

#endif
