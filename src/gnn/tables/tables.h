/* Cost tables of blocks and copies: measured points, and estimates between them.
 *
 * T_comp and Mem_peak are tabulated per (device, layer, stages first to last as one fused block). Their variables are n, the
 * rows that the block reads; m, its edges (0 if it reads none); and t, the rows that it computes. The fit is a + b n + c m + d
 * t with non-negative coefficients; d is 0 if all points compute as many rows as they read. T_comm is tabulated per (from, to)
 * and interpolated between neighbouring sizes in bytes. A size outside the measured range is unknown. A size as large as a
 * point that ran out of memory is infeasible. Neither has a time. */
#ifndef CLEAVE_GNN_TABLES_TABLES_H
#define CLEAVE_GNN_TABLES_TABLES_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cost/fit.h"

enum { CLV__TABLES_VERSION = 1, CLV__TABLE_STAGES = 8 };
#define CLV__TABLE_HOST "host" /* the name of host memory, as the source or destination of a copy */

/* Sizes beyond the smallest and largest measured ones by up to this fraction, in n, m and m / n, still count as measured,
 * because subgraphs never have exactly equal sizes. */
#define CLV__TABLE_TOLERANCE 0.05

typedef enum clv__table_origin { CLV__MEASURED, CLV__IMPORTED, CLV__SYNTHETIC, CLV__NOMINAL } clv__table_origin;
const char *clv__table_origin_name(clv__table_origin origin);

typedef enum clv__known { CLV__KNOWN, CLV__UNKNOWN, CLV__INFEASIBLE } clv__known;

typedef struct clv__table_point {
  uint64_t n, m, targets; /* targets 0: the same as n */
  bool infeasible;        /* ran out of memory: has no time */
  clv__table_origin origin;
  double time_ns, spread_ns; /* the median and the interquartile range; spread 0: one run, or unknown */
  uint64_t peak_bytes;       /* 0: unknown */
  double compile_ns;         /* of an executable for this size alone; 0: unknown, or executables accept any size */
} clv__table_point;

/* The number of rows that the block computes: all rows that it reads, unless `targets` is set. */
static inline uint64_t clv__table_targets(const clv__table_point *point) {
  return point->targets == 0 ? point->n : point->targets;
}

/* A fit and its reliability. */
typedef struct clv__table_fit {
  bool is_good;
  double base, per_n, per_m, per_target;
  double error;       /* median of |predicted - measured| / measured, leaving out one point of the fit at a time */
  double worst_error; /* the largest of these errors */
  double spread;      /* median of spread / time: no fit can do better */
  uint32_t points;
} clv__table_fit;

typedef struct clv__block_table {
  const char *device, *layer; /* the layer's key: type, widths, dtype */
  uint32_t first, last;       /* stages [first, last), counted from 0 */
  uint32_t point_count;
  clv__table_point *points; /* sorted by n, then m */
  size_t capacity;
  clv__table_origin origin; /* the least trusted origin of its points */
  clv__table_fit time, peak;
  double compile_ns;                         /* the median over the points whose compile_ns is known; 0: unknown */
  uint32_t first_infeasible, end_infeasible; /* all infeasible points are in this range */
  double least_n, most_n, least_m, most_m, least_density, most_density; /* over the points that have a time */
} clv__block_table;

typedef struct clv__copy_point {
  uint64_t size_bytes;
  clv__table_origin origin;
  double time_ns, spread_ns;
  double smooth_ns; /* the least time of this and all larger sizes; set by clv__tables_fit() */
} clv__copy_point;

typedef struct clv__copy_table {
  const char *from, *to; /* names of devices, or CLV__TABLE_HOST; a copy from the host to the host is packing */
  uint32_t point_count;
  clv__copy_point *points; /* sorted by size */
  size_t capacity;
  clv__table_origin origin;
  clv__table_fit time; /* the fit of the time; per_n is per byte */
} clv__copy_table;

/* A schedule's costs in addition to blocks and copies. */
typedef enum clv__overhead_kind {
  CLV__OVERHEAD_MERGE,    /* signalling the end of a part to the threads that wait for its block; charged for each part beyond the
                             first */
  CLV__OVERHEAD_SWITCH,   /* a device switches to another executable */
  CLV__OVERHEAD_EXCHANGE, /* all devices finish a layer and start the next */
  CLV__OVERHEADS
} clv__overhead_kind;
const char *clv__overhead_name(clv__overhead_kind kind);

typedef struct clv__table_overhead {
  clv__overhead_kind kind;
  const char *device; /* the device that switches; "": all devices */
  clv__table_origin origin;
  double time_ns, spread_ns;
} clv__table_overhead;

/* Identifies a device as it was when measured: costs from one machine do not apply to another. Devices with imported or
 * synthetic costs may be absent. */
typedef struct clv__tables_device {
  const char *name, *fingerprint;
} clv__tables_device;

typedef struct clv__tables {
  clv__arena arena;
  uint32_t table_count, copy_count, device_count, overhead_count;
  clv__tables_device *devices; /* sorted by name */
  clv__block_table *tables;    /* sorted by device, layer, first, last once fitted */
  clv__copy_table *copies;
  clv__table_overhead *overheads; /* sorted by kind, then device */
  size_t table_capacity, copy_capacity, device_capacity, overhead_capacity;
} clv__tables;

void clv__tables_init(clv__tables *tables, const clv_allocator *allocator);
void clv__tables_finish(clv__tables *tables);

/* Adds a point, replacing one for the same sizes. Returns CLV_INVALID_ARGUMENT for invalid numbers, or CLV_OUT_OF_MEMORY. Fits
 * do not change until clv__tables_fit(). */
clv_status clv__tables_put(clv__tables *tables, const char *device, const char *layer, uint32_t first, uint32_t last,
                           const clv__table_point *point, clv_error *error);
clv_status clv__tables_put_copy(clv__tables *tables, const char *from, const char *to, const clv__copy_point *point,
                                clv_error *error);
clv_status clv__tables_put_overhead(clv__tables *tables, const clv__table_overhead *overhead, clv_error *error);
/* Adds a device. Returns CLV_INVALID_ARGUMENT if the tables were measured on a different device of the same name. */
clv_status clv__tables_put_device(clv__tables *tables, const char *name, const char *fingerprint, clv_error *error);
/* Makes the check of clv__tables_put_device() without adding the device. A device that is not in the tables is not an error. */
clv_status clv__tables_check_device(const clv__tables *tables, const char *name, const char *fingerprint, clv_error *error);
/* Adds all points, overheads and devices of `from` to tables that do not have them yet, and fits the tables. */
clv_status clv__tables_copy(clv__tables *tables, const clv__tables *from, clv_error *error);
/* Sorts and fits all tables. The same points give the same tables, in any insertion order. */
clv_status clv__tables_fit(clv__tables *tables, clv_error *error);

/* Find a table by its key. Return NULL if there is none. */
const clv__block_table *clv__tables_find(const clv__tables *tables, const char *device, const char *layer, uint32_t first,
                                         uint32_t last);
const clv__copy_table *clv__tables_find_copy(const clv__tables *tables, const char *from, const char *to);
/* `device` is "" except for switches. */
const clv__table_overhead *clv__tables_find_overhead(const clv__tables *tables, clv__overhead_kind kind, const char *device);

/* Estimates the time for these sizes. `targets` may be any number up to n, even if no such number was measured: the time is
 * linear in it. */
clv__known clv__table_time(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets, double *time_ns);
/* Estimates the peak memory in bytes for sizes whose time is known; 0 if no peak was measured. */
uint64_t clv__table_peak(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets);
/* Interpolates linearly between the two nearest measured sizes, because caches make one line over all sizes wrong. More bytes
 * never take less time. Below the smallest size, returns the smallest size's time. Returns false above the largest size, and
 * if fewer than two sizes were measured. Zero bytes take no time. */
bool clv__copy_table_time(const clv__copy_table *table, uint64_t size_bytes, double *time_ns);
/* Writes why the block has no fit, or why its error is large at some size (above CLV__TABLE_LARGE_ERROR), and what to do; "" if
 * neither is the case. */
#define CLV__TABLE_LARGE_ERROR 0.5
void clv__table_fit_reason(const clv__block_table *table, char *reason, size_t room);
/* Writes, for error messages, why the time for a size is unknown, and what to do. If the time is known, writes why a plan may
 * have no price nevertheless. */
void clv__table_reason(const clv__block_table *table, uint64_t n, uint64_t m, char *reason, size_t room);

/* ---- Files ---- */

/* The block that a column of an imported file measures. `has_edges` is false if the block reads no edges; m is then
 * irrelevant. */
typedef struct clv__import_column {
  const char *column; /* the name of the column, such as "cpu_ms" */
  const char *device;
  uint32_t first, last;
  bool has_edges;
} clv__import_column;

/* Imports CSV: n_nodes,n_edges,<device>_ms…,status. A time of "None" or an empty field means not measured; -1 means out of
 * memory. The status ends with OOM if any time of the row is -1, and is OK otherwise; this column may be missing. Columns that
 * are not in `columns`, and fields that are not numbers, are errors. */
clv_status clv__tables_import(clv__tables *tables, const char *layer, const clv__import_column *columns, uint32_t column_count,
                              const char *text, size_t size_bytes, const char *name, clv_error *error);

/* Write and read JSON. The same tables give the same bytes. Tables are fitted when they are read. */
clv_status clv__tables_print(const clv__tables *tables, clv__text *text, clv_error *error);
clv_status clv__tables_write(const clv__tables *tables, const char *path, clv_error *error);
clv_status clv__tables_parse(clv__tables *tables, const char *text, size_t size_bytes, const char *name, clv_error *error);
clv_status clv__tables_read(clv__tables *tables, const char *path, clv_error *error);

#endif
