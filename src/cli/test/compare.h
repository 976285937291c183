/* Whether a result is the expected one. */
#ifndef CLEAVE_CLI_TEST_COMPARE_H
#define CLEAVE_CLI_TEST_COMPARE_H

#include "base/text.h"
#include "cleave/types.h"

typedef struct cli_tolerance {
  double relative, absolute;
  bool is_default; /* then f16 and bf16 get their own */
} cli_tolerance;

/* True when dtype and shape are the same and every element agrees: floats within absolute + relative * |expected| (NaN agrees
 * with NaN, infinities with themselves), everything else exactly. Otherwise says in `why` what differs, by the worst element. */
bool cli_compare(const clv_tensor *expected, const clv_tensor *actual, const cli_tolerance *tolerance, clv__text *why);

#endif
