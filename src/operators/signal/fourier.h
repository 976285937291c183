/* The discrete Fourier transform of any length, in f64: radix 2 for powers of two, direct summation for short lengths,
 * Bluestein's algorithm (a convolution whose length is a power of two; IEEE Trans. Audio Electroacoust. 18, 1970) for all
 * others. */
#ifndef CLEAVE_OPERATORS_SIGNAL_FOURIER_H
#define CLEAVE_OPERATORS_SIGNAL_FOURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stop.h"

typedef struct clv__complex {
  double re, im;
} clv__complex;

typedef struct clv__fourier {
  int64_t length;
  int64_t inner; /* length of the transform by radix 2, a power of two; 0: direct summation */
  const clv__complex
      *roots; /* e^(-2πik/n), where n is `inner`, or `length` for direct summation; for radix 2 only the first half */
  const clv__complex *chirp;    /* e^(-πik²/length) */
  const clv__complex *spectrum; /* transform of the conjugated chirp, divided by `inner` */
  const clv__stop *stop;        /* of the call; may be NULL. Once it is set, results are undefined */
} clv__fourier;

/* Return the number of elements of the tables, which all threads share, or of the work area, of which each thread needs its
 * own. Return SIZE_MAX if the length is too large for any memory. */
size_t clv__fourier_table_count(int64_t length);
size_t clv__fourier_work_count(int64_t length);

/* Fills `tables` and points `fourier` to them. */
void clv__fourier_init(clv__fourier *fourier, int64_t length, const clv__stop *stop, clv__complex *tables);

/* Transforms `length` elements in place. The inverse transform also divides them by the length. */
void clv__fourier_run(const clv__fourier *fourier, clv__complex *data, bool inverse, clv__complex *work);

#endif
