/* See extreme.h. The search keeps LANES partial extremes that do not depend on each other, so that its loops vectorise. It also
 * records whether the row has a NaN. A second pass finds the position of the result. */
#include "backends/common/kernels/extreme.h"

enum { LANES = 16 };

static inline __attribute__((always_inline)) float row_extreme(const float *row, int64_t length, bool smallest) {
  float lanes[LANES];
  int32_t nans[LANES];
  int64_t i = 0;
  for (int k = 0; k < LANES; ++k) {
    lanes[k] = row[0];
    nans[k] = row[0] != row[0];
  }
  if (smallest) {
    for (; i + LANES <= length; i += LANES) {
      for (int k = 0; k < LANES; ++k) {
        lanes[k] = row[i + k] < lanes[k] ? row[i + k] : lanes[k];
        nans[k] |= row[i + k] != row[i + k];
      }
    }
  } else {
    for (; i + LANES <= length; i += LANES) {
      for (int k = 0; k < LANES; ++k) {
        lanes[k] = row[i + k] > lanes[k] ? row[i + k] : lanes[k];
        nans[k] |= row[i + k] != row[i + k];
      }
    }
  }
  float best = lanes[0];
  int32_t nan = nans[0];
  for (int k = 1; k < LANES; ++k) {
    best = (smallest ? lanes[k] < best : lanes[k] > best) ? lanes[k] : best;
    nan |= nans[k];
  }
  for (; i < length; ++i) {
    best = (smallest ? row[i] < best : row[i] > best) ? row[i] : best;
    nan |= row[i] != row[i];
  }
  return nan != 0 ? __builtin_nanf("") : best;
}

void clv__rows_extreme(const float *data, int64_t rows, int64_t length, bool smallest, float *results) {
  for (int64_t r = 0; r < rows; ++r) results[r] = row_extreme(data + r * length, length, smallest);
}

void clv__rows_extreme_at(const float *data, int64_t rows, int64_t length, bool smallest, int64_t *places) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = data + r * length;
    const float best = row_extreme(row, length, smallest);
    int64_t at = 0;
    if (best != best) {
      while (row[at] == row[at]) ++at;
    } else {
      while (row[at] != best) ++at;
    }
    places[r] = at;
  }
}
