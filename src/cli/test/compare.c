/* See compare.h. */
#include "cli/test/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/tensors.h"

/* Returns the relative tolerance for a dtype. The default is that of ONNX's test runner, but at least two units in the last place
 * for 16-bit floats. */
static double relative_of(const cli_tolerance *tolerance, clv_dtype dtype) {
  double least = dtype == CLV_F16 ? 0x1p-9 : dtype == CLV_BF16 ? 0x1p-6 : 0;
  return tolerance->is_default && tolerance->relative < least ? least : tolerance->relative;
}

static bool is_float(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F16:
    case CLV_BF16:
    case CLV_F32:
    case CLV_F64:
    case CLV_F8E4M3FN:
    case CLV_F8E4M3FNUZ:
    case CLV_F8E5M2:
    case CLV_F8E5M2FNUZ:
    case CLV_F8E8M0:
    case CLV_F4E2M1:
      return true;
    default:
      return false;
  }
}

/* Writes the position of an element, such as "[0,3]". */
static void write_position(const clv_tensor *type, uint64_t element, char text[200]) {
  size_t used = 0;
  text[used++] = '[';
  for (int32_t d = 0; d < type->rank; ++d) {
    uint64_t inner = 1;
    for (int32_t k = d + 1; k < type->rank; ++k) inner *= (uint64_t)type->dims[k];
    used += (size_t)snprintf(text + used, 200 - used, "%s%" PRIu64, d > 0 ? "," : "", element / inner % (uint64_t)type->dims[d]);
  }
  snprintf(text + used, 200 - used, "]");
}

bool cli_compare(const clv_tensor *expected, const clv_tensor *actual, const cli_tolerance *tolerance,
                 char why[CLI_COMPARE_BYTES]) {
  char should[200], is[200], beyond[64] = "";
  const double relative = relative_of(tolerance, expected->dtype);
  clv_tensor_difference d = {.struct_size = sizeof d};
  if (clv_tensor_compare(expected, actual, relative, tolerance->absolute, &d)) return true;
  if (!d.same_type) {
    (void)clv_tensor_type_text(NULL, expected, should, sizeof should);
    (void)clv_tensor_type_text(NULL, actual, is, sizeof is);
    snprintf(why, CLI_COMPARE_BYTES, "is %s, expected %s", is, should);
    return false;
  }
  snprintf(beyond, sizeof beyond, "; %" PRIu64 " of %" PRIu64 " elements differ", d.beyond, d.count);
  write_position(expected, d.worst, is);
  if (expected->dtype == CLV_STRING) {
    snprintf(why, CLI_COMPARE_BYTES, "at %s is not the expected string%s", is, beyond);
    return false;
  }
  should[0] = '\0';
  if (is_float(expected->dtype))
    snprintf(should, sizeof should, " (tolerance %.3g)", tolerance->absolute + relative * fabs(d.expected));
  snprintf(why, CLI_COMPARE_BYTES, "at %s is %.9g, expected %.9g%s%s", is, d.actual, d.expected, should, beyond);
  return false;
}
