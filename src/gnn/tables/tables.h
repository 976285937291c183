/* Cost tables of blocks and copies: what was measured, and what can be said between the points.
 *
 * T_comp and Mem_peak of (device, layer, stages first to last as one fused block) over n, the rows that the block reads, m, the
 * edges (0 where it reads none), and t, the rows that it makes: a + b n + c m + d t, none of them negative; where all points make
 * as many rows as they read, d is 0. T_comm of (from, to) over bytes: by the sizes beside. What
 * lies outside of what was measured is unknown, what is as large as a point that ran out of memory is infeasible; neither has a
 * time. */
#ifndef CLEAVE_GNN_TABLES_TABLES_H
#define CLEAVE_GNN_TABLES_TABLES_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cost/fit.h"

enum { CLV__TABLES_VERSION = 1, CLV__TABLE_STAGES = 8 };
#define CLV__TABLE_HOST "host" /* the other end of copies */

/* Sizes this little beyond the smallest and the largest that were measured, in n, m and m / n, still count as measured: subgraphs
 * are never quite equal. */
#define CLV__TABLE_TOLERANCE 0.05

typedef enum clv__table_origin { CLV__MEASURED, CLV__IMPORTED, CLV__SYNTHETIC } clv__table_origin;
const char *clv__table_origin_name(clv__table_origin origin);

typedef enum clv__known { CLV__KNOWN, CLV__UNKNOWN, CLV__INFEASIBLE } clv__known;

typedef struct clv__table_point {
  uint64_t n, m, targets; /* targets, 0: n */
  bool infeasible;        /* it ran out of memory: no time */
  clv__table_origin origin;
  double time_ns, spread_ns; /* the median, and how far the quarters lie apart; 0: one run, or not known */
  uint64_t peak_bytes;       /* 0: not known */
  double compile_ns;         /* of an executable for this size alone; 0: not known, or executables take any size */
} clv__table_point;

/* The rows that it makes: all that it reads where none are stated. */
static inline uint64_t clv__table_targets(const clv__table_point *point) {
  return point->targets == 0 ? point->n : point->targets;
}

/* One fit with how far to trust it. */
typedef struct clv__table_fit {
  bool is_good;
  double base, per_n, per_m, per_target;
  double error;       /* median of |predicted - measured| / measured over points that were left out of the fit, one by one */
  double worst_error; /* the largest of these */
  double spread;      /* median of spread / time: what no fit can do better than */
  uint32_t points;
} clv__table_fit;

typedef struct clv__block_table {
  const char *device, *layer; /* the layer's key: type, widths, dtype */
  uint32_t first, last;       /* stages, counted from 0; last is not in it */
  uint32_t point_count;
  clv__table_point *points; /* by n, then m */
  size_t capacity;
  clv__table_origin origin; /* the least trusted of its points' */
  clv__table_fit time, peak;
  double compile_ns;                                                    /* the median of its points'; 0: not known */
  uint32_t first_infeasible, end_infeasible;                            /* where among the points the infeasible ones lie */
  double least_n, most_n, least_m, most_m, least_density, most_density; /* of the points that have a time */
} clv__block_table;

typedef struct clv__copy_point {
  uint64_t size_bytes;
  clv__table_origin origin;
  double time_ns, spread_ns;
  double smooth_ns; /* what no larger one is below; set by fits */
} clv__copy_point;

typedef struct clv__copy_table {
  const char *from, *to; /* devices, or CLV__TABLE_HOST; from the host to the host: packing */
  uint32_t point_count;
  clv__copy_point *points; /* by size */
  size_t capacity;
  clv__table_origin origin;
  clv__table_fit time; /* per_n: a byte */
} clv__copy_table;

/* What a schedule takes beside blocks and copies. */
typedef enum clv__overhead_kind {
  CLV__OVERHEAD_MERGE,    /* a block is done on several devices: its end comes to who waits for it; for each part but one */
  CLV__OVERHEAD_SWITCH,   /* a device goes on to another executable */
  CLV__OVERHEAD_EXCHANGE, /* all devices are done with a layer, and begin the next */
  CLV__OVERHEADS
} clv__overhead_kind;
const char *clv__overhead_name(clv__overhead_kind kind);

typedef struct clv__table_overhead {
  clv__overhead_kind kind;
  const char *device; /* of a switch; "": of all */
  clv__table_origin origin;
  double time_ns, spread_ns;
} clv__table_overhead;

/* What a device was when it was measured: another machine's costs are not this one's. Devices whose costs were imported, or made
 * up, need not be here. */
typedef struct clv__tables_device {
  const char *name, *fingerprint;
} clv__tables_device;

typedef struct clv__tables {
  clv__arena arena;
  uint32_t table_count, copy_count, device_count, overhead_count;
  clv__tables_device *devices; /* by name */
  clv__block_table *tables;    /* in the order of device, layer, first, last once they are fitted */
  clv__copy_table *copies;
  clv__table_overhead *overheads; /* by kind, then device */
  size_t table_capacity, copy_capacity, device_capacity, overhead_capacity;
} clv__tables;

void clv__tables_init(clv__tables *tables, const clv_allocator *allocator);
void clv__tables_finish(clv__tables *tables);

/* Puts a point in, over one that is there for the same sizes. CLV_INVALID_ARGUMENT for numbers that are none, CLV_OUT_OF_MEMORY.
 * Fits are as before until clv__tables_fit(). */
clv_status clv__tables_put(clv__tables *tables, const char *device, const char *layer, uint32_t first, uint32_t last,
                           const clv__table_point *point, clv_error *error);
clv_status clv__tables_put_copy(clv__tables *tables, const char *from, const char *to, const clv__copy_point *point,
                                clv_error *error);
clv_status clv__tables_put_overhead(clv__tables *tables, const clv__table_overhead *overhead, clv_error *error);
/* CLV_INVALID_ARGUMENT where it was another device that was measured. */
clv_status clv__tables_put_device(clv__tables *tables, const char *name, const char *fingerprint, clv_error *error);
/* The same question, without putting it in: what is not in the tables is no error. */
clv_status clv__tables_check_device(const clv__tables *tables, const char *name, const char *fingerprint, clv_error *error);
/* Sorts and fits; the same points give the same tables in whatever order they came. */
clv_status clv__tables_fit(clv__tables *tables, clv_error *error);

/* NULL: there is none. */
const clv__block_table *clv__tables_find(const clv__tables *tables, const char *device, const char *layer, uint32_t first,
                                         uint32_t last);
const clv__copy_table *clv__tables_find_copy(const clv__tables *tables, const char *from, const char *to);
/* `device`: "" but for switches. */
const clv__table_overhead *clv__tables_find_overhead(const clv__tables *tables, clv__overhead_kind kind, const char *device);

/* `targets` may be anything up to n, whatever was measured: a time is a straight line between none and all. */
clv__known clv__table_time(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets, double *time_ns);
/* Never an unknown one where the time is known: 0 where no peak was measured. */
uint64_t clv__table_peak(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets);
/* Between two sizes that were measured a straight line (caches make one line over all sizes wrong), never less for more bytes.
 * Below the smallest: the smallest's. False above the largest, and of a single size. No bytes take no time. */
bool clv__copy_table_time(const clv__copy_table *table, uint64_t size_bytes, double *time_ns);
/* Why a time is not known, with the way out: for errors. */
void clv__table_reason(const clv__block_table *table, uint64_t n, uint64_t m, char *reason, size_t room);

/* ---- Files ---- */

/* Which block a column of an imported file measures: `has_edges` false where it reads no edges, so that m says nothing. */
typedef struct clv__import_column {
  const char *column; /* "cpu_ms" */
  const char *device;
  uint32_t first, last;
  bool has_edges;
} clv__import_column;

/* CSV: n_nodes,n_edges,<device>_ms…,status. None, or nothing: not measured; -1: out of memory, and then status ends with OOM, and
 * is OK otherwise (the column may be missing). Columns that nobody asks for are an error, and so is what is no number. */
clv_status clv__tables_import(clv__tables *tables, const char *layer, const clv__import_column *columns, uint32_t column_count,
                              const char *text, size_t size_bytes, const char *name, clv_error *error);

/* JSON, the same bytes for the same tables; fitted when read. */
clv_status clv__tables_print(const clv__tables *tables, clv__text *text, clv_error *error);
clv_status clv__tables_write(const clv__tables *tables, const char *path, clv_error *error);
clv_status clv__tables_parse(clv__tables *tables, const char *text, size_t size_bytes, const char *name, clv_error *error);
clv_status clv__tables_read(clv__tables *tables, const char *path, clv_error *error);

#endif
