/* Compares a result with the expected one. */
#ifndef CLEAVE_CLI_TEST_COMPARE_H
#define CLEAVE_CLI_TEST_COMPARE_H

#include "cleave/types.h"

enum { CLI_COMPARE_BYTES = 600 };

typedef struct cli_tolerance {
  double relative, absolute;
  bool is_default; /* --rtol is not given, so f16 and bf16 use larger tolerances */
} cli_tolerance;

/* Returns true if dtype and shape are equal and every element agrees: floats within absolute + relative * |expected| (NaN
 * agrees with NaN, and an infinity with itself), everything else exactly. Otherwise `why` describes the difference at the worst
 * element. */
bool cli_compare(const clv_tensor *expected, const clv_tensor *actual, const cli_tolerance *tolerance,
                 char why[CLI_COMPARE_BYTES]);

#endif
