/* Decides which 3x3 convolutions use Winograd's algorithm. Compares the multiplications saved with the cost of the transforms and
 * of the additional memory traffic. */
#include "winograd_cost.h"

#include "backends/cpu/device.h"

/* Costs per core, fitted to 39 convolutions of 32 to 512 channels and 7x7 to 112x112 pixels on a Cascade Lake. Of those, the
 * estimate picks the faster algorithm whenever the two differ by more than a tenth. */
static const double NS_PER_FLOP = 1.0 / 130;      /* per operation of the products, in either algorithm */
static const double NS_PER_ELEMENT = 0.75;        /* per image element that is split into tiles or assembled from them */
static const double NS_PER_WEIGHT_BYTE = 1.0 / 6; /* per weight byte that is read again from outside the second-level cache */
static const double NS_PER_TILE_BYTE = 2.0 / 18;  /* per tile byte that is written to and read from outside that cache */
enum {
  WEIGHTS_NEAR_BYTES = 900 << 10, /* up to this size, weights are read as fast as from the second-level cache (1 MiB) */
  TILES_NEAR_BYTES = 1536 << 10   /* up to this size, tiles are written and read as fast as in that cache */
};

static int64_t tiles_along(int64_t pixels, int64_t points) {
  return (pixels + points - 3) / (points - 2);
}

static int64_t tiles_of(const clv_tensor *to, int64_t points) {
  return to->dims[0] * tiles_along(to->dims[2], points) * tiles_along(to->dims[3], points);
}

static int64_t pixels_of(const clv_tensor *to) {
  return to->dims[0] * to->dims[2] * to->dims[3];
}

/* Whether the saved multiplications make up for the larger weights within a run or two. The weights take points^2 floats per
 * filter instead of nine, and must be transformed, stored and read. Making an additional megabyte takes about 0.3 ms; in that
 * time, one core computes PAYS operations per additional byte. The transforms of the tiles are estimated as a quarter of the
 * multiplications. */
static bool pays_for_weights(const clv__dnn_convolution *spec, int64_t points) {
  enum { PAYS = 35 };
  const clv_tensor *to = &spec->destination;
  const double saved = 9.0 * (double)pixels_of(to) - 1.25 * (double)tiles_of(to, points) * (double)(points * points);
  return 2.0 * saved >= PAYS * (double)sizeof(float) * (double)(points * points - 9);
}

/* Whether the estimated time with tiles of 4x4 points is less than that of the direct algorithm. oneDNN processes as many tiles
 * at a time as fit in its scratch, and reads all weights again for each such batch. */
static bool is_faster(const clv__dnn_convolution *spec, size_t scratch_bytes) {
  enum { POINTS = 16 };
  const clv_tensor *to = &spec->destination;
  const double inputs = (double)spec->weights.dims[1], outputs = (double)spec->weights.dims[0];
  const double tiles = (double)tiles_of(to, 4), threads = clv__cpu_threads_team();
  const double tile_bytes = POINTS * sizeof(float) * (inputs + outputs), weight_bytes = POINTS * sizeof(float) * inputs * outputs;
  double batch = (double)scratch_bytes / threads / tile_bytes;
  if (batch > tiles / threads) batch = tiles / threads;
  if (batch < 1) batch = 1;
  const double direct_ns = NS_PER_FLOP * 18 * inputs * outputs * (double)pixels_of(to);
  double ns = NS_PER_FLOP * 2 * POINTS * inputs * outputs * tiles + NS_PER_ELEMENT * (inputs + outputs) * (double)pixels_of(to);
  if (weight_bytes > WEIGHTS_NEAR_BYTES) ns += NS_PER_WEIGHT_BYTE * weight_bytes * tiles / batch;
  if (batch * tile_bytes > TILES_NEAR_BYTES) ns += NS_PER_TILE_BYTE * tile_bytes * tiles;
  return ns < direct_ns;
}

/* Only 3x3 windows with stride and dilation 1 fit. */
bool clv__cpu_winograd_fits(const clv__dnn_convolution *spec) {
  if (spec->window.count != 2 || spec->weights.rank != 4) return false;
  for (int i = 0; i < 2; ++i) {
    if (spec->window.kernel[i] != 3 || spec->window.stride[i] != 1 || spec->window.dilation[i] != 1) return false;
  }
  return true;
}

bool clv__cpu_winograd_may_pay(const clv__dnn_convolution *spec) {
  enum { LEAST_CHANNELS = 32, FEW_CHANNELS = 128, FEW_PIXELS = 400 };
  const bool many = spec->weights.dims[1] >= FEW_CHANNELS || pixels_of(&spec->destination) >= FEW_PIXELS;
  return many && spec->weights.dims[0] >= LEAST_CHANNELS && spec->weights.dims[1] >= LEAST_CHANNELS && pays_for_weights(spec, 4);
}

bool clv__cpu_winograd_pays(const clv__dnn_convolution *spec, const clv__dnn_primitive *primitive) {
  clv__dnn_winograd winograd;
  if (!clv__dnn_layout_winograd(primitive->weights, &winograd)) return true;
  return pays_for_weights(spec, winograd.points) && (winograd.points != 4 || is_faster(spec, primitive->scratch_bytes));
}
