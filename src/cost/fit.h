/* Interpolates measured prices: of operators by their work, of edges by their bytes, of copies by their size. */
#ifndef CLEAVE_COST_FIT_H
#define CLEAVE_COST_FIT_H

#include "cost/profile.h"

#define CLV__FIT_LEAST_POINTS 4
#define CLV__FIT_WORST_ERROR 0.35 /* a fit whose median error is larger is rejected */

/* time = base + flops * per_flop + bytes * per_byte + other * per_other, with non-negative coefficients, for the nodes of one
 * operator and dtype. `other` is explained at clv__fit_point. Valid only inside the domain: between the least and the most
 * work measured. */
typedef struct clv__fit {
  double base_ns, per_flop_ns, per_byte_ns, per_other_ns;
  double least_flops, most_flops, least_bytes, most_bytes;
  uint32_t points;
  double error; /* median of |predicted - measured| / (measured + 1 us) */
} clv__fit;

typedef struct clv__fits clv__fits;

/* Creates fits for all entries of the tables, which must outlive the fits. */
clv_status clv__fits_create(const clv__profile_device *tables, const clv_allocator *allocator, clv__fits **fits,
                            clv_error *error);
void clv__fits_destroy(clv__fits *fits); /* accepts NULL */

/* The fit of a family; NULL if there is no usable fit. `family` as in clv__signature_family(). */
const clv__fit *clv__fits_find(const clv__fits *fits, const char *family);
/* Predicts the time for this work. Returns false if the work is outside the domain. */
bool clv__fit_time(const clv__fit *fit, double flops, double bytes, double *time_ns);
/* The saving in ns per byte of an edge between nodes of these families; 0 if no such edge was measured. */
double clv__fits_saving_rate(const clv__fits *fits, const char *producer, const char *consumer);

/* One measurement for a fit. `other` is an optional third amount of work; set it to 0 in all points if it is not used. */
typedef struct clv__fit_point {
  double flops, bytes, time_ns, other;
} clv__fit_point;
/* Fits the points, weighted by relative errors. Returns false if the points do not determine a fit. */
bool clv__fit_points(const clv__fit_point *points, uint32_t count, clv__fit *fit);

/* Interpolates the time of a copy in ns from the measured copies. It never decreases with the size. Beyond the largest
 * measured size it continues with the slope of the last two sizes. */
double clv__copy_time(const clv__profile_copy *copies, uint32_t count, uint64_t size_bytes);

#endif
