/* Stores the prices of bench_gnn_flickr in a file, and changes them at random by a seed (gnn_flickr.h). Planning is tried
 * with many changed prices, because its time depends on the prices, and prices measured on a machine vary from run to run. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#define BENCH "gnn_flickr"
#include "base/random.h"
#include "bench.h"
#include "gnn_flickr.h"

#define DEVICE_FACTOR 1.5   /* one factor for all blocks of a device: they become at most this much faster or slower */
#define BLOCK_FACTOR 1.03   /* a further factor for each block */
#define COPY_FACTOR 2.0     /* one factor for each direction of copies */
#define OVERHEAD_FACTOR 4.0 /* one factor for merges, and one for the switches of each device */

/* A random factor between 1 / `most` and `most`, which depends on the seed and the other arguments. */
static double factor(uint64_t seed, const char *what, const char *of, uint32_t first, uint32_t last, double most) {
  uint64_t hash = clv__mix64(seed);
  for (; *what != '\0'; ++what) hash = clv__mix64(hash ^ (unsigned char)*what);
  for (; *of != '\0'; ++of) hash = clv__mix64(hash ^ (unsigned char)*of ^ 0x100u);
  hash = clv__mix64(hash ^ (first * 64u + last));
  return pow(most, 2 * clv__random_real(&hash) - 1);
}

void flickr_prices_change(clv__tables *tables, uint64_t seed) {
  clv_error error = {0};
  for (uint32_t t = 0; t < tables->table_count && seed != 0; ++t) {
    clv__block_table *table = &tables->tables[t];
    double by = factor(seed, "device", table->device, 0, 0, DEVICE_FACTOR);
    by *= factor(seed, "block", table->device, table->first, table->last, BLOCK_FACTOR);
    for (uint32_t p = 0; p < table->point_count; ++p) table->points[p].time_ns *= by;
  }
  for (uint32_t t = 0; t < tables->copy_count && seed != 0; ++t) {
    clv__copy_table *table = &tables->copies[t];
    double by = factor(seed, table->from, table->to, 0, 0, COPY_FACTOR);
    for (uint32_t p = 0; p < table->point_count; ++p) table->points[p].time_ns *= by;
  }
  for (uint32_t o = 0; o < tables->overhead_count && seed != 0; ++o)
    tables->overheads[o].time_ns *=
        factor(seed, "overhead", tables->overheads[o].device, tables->overheads[o].kind, 0, OVERHEAD_FACTOR);
  check(clv__tables_fit(tables, &error), &error, "fit");
}

bool flickr_prices_kept(const flickr_options *options, clv__tables *tables) {
  clv_error error = {0};
  if (options->profile == NULL || access(options->profile, R_OK) != 0) return false;
  check(clv__tables_read(tables, options->profile, &error), &error, "profile");
  return true;
}

void flickr_prices_keep(const flickr_options *options, const clv__tables *tables) {
  clv_error error = {0};
  if (options->profile != NULL) check(clv__tables_write(tables, options->profile, &error), &error, "profile");
}
