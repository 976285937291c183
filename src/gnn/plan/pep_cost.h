/* Prices of parts and blocks, and their inputs: the layer, the machine and the subgraph. */
#ifndef CLEAVE_GNN_PLAN_PEP_COST_H
#define CLEAVE_GNN_PLAN_PEP_COST_H

#include "gnn/model/stage.h"
#include "gnn/plan/memory.h"
#include "gnn/tables/tables.h"

enum { CLV__PEP_DEVICES = 4, CLV__PEP_BLOCKS = 3, CLV__PEP_SHARES = 20, CLV__PEP_FORMS = 2 };

/* Maximum and minimum of numbers that are not NaN. They are faster than fmax() and fmin(), which handle NaN. */
static inline double clv__larger(double a, double b) {
  return a > b ? a : b;
}
static inline double clv__smaller(double a, double b) {
  return a < b ? a : b;
}

/* ---- The layer ---- */

/* A size in bytes: fixed + row * rows + target * targets + edge * edges. */
typedef struct clv__size_rule {
  double fixed, row, target, edge;
} clv__size_rule;

typedef struct clv__chain_block {
  bool is_empty;                /* computes nothing */
  bool reads_rows, reads_edges; /* in the tables, n is its rows if it reads rows, otherwise its targets; m is its edges if it
                                   reads any, otherwise 0 */
  bool is_whole;                /* computes something for every row: its parts would overlap, so it cannot be divided */
  /* The values that it reads: from the subgraph and the previous layer (given), from earlier blocks (made), and, of both,
   * those with one entry per row (packed). Index 0 is for the open form, index 1 for the padded form (block.h). */
  clv__size_rule given[CLV__PEP_FORMS], made[CLV__PEP_FORMS], packed[CLV__PEP_FORMS];
  clv__size_rule out; /* the size of its results */
} clv__chain_block;

typedef struct clv__chain {
  char layer[64]; /* the layer's key in the tables: "graphsage-500-256-f32" */
  uint32_t stage_count;
  clv__stage stages[CLV__TABLE_STAGES];
  clv__chain_block blocks[CLV__TABLE_STAGES][CLV__TABLE_STAGES + 1]; /* [first][last] */
} clv__chain;

void clv__chain_of(const clv__stages *stages, clv__chain *chain);

/* ---- The machine ---- */

typedef struct clv__machine_device {
  const char *name;
  uint32_t space;        /* 0: the host's memory */
  bool is_static;        /* shapes are fixed when compiled: rows and edges are padded */
  uint32_t cannot;       /* one bit per clv__stage that no block on the device may contain */
  uint64_t memory_bytes; /* 0: no known limit */
  double switch_ns;      /* the time to switch to the executables of another cluster */
} clv__machine_device;

typedef struct clv__machine {
  uint32_t device_count;
  clv__machine_device devices[CLV__PEP_DEVICES];
  uint64_t pad_step; /* default 1000 */
  double merge_ns;
  uint32_t queue_depth; /* number of results of a block that may wait for the next block; 2: double buffering */
} clv__machine;

/* The tables that prices are computed from, looked up once. */
typedef struct clv__costs {
  const clv__chain *chain;
  const clv__machine *machine;
  const clv__block_table
      *blocks[CLV__PEP_DEVICES][CLV__TABLE_STAGES][CLV__TABLE_STAGES + 1]; /* NULL: unsupported, or never measured */
  /* Copies into and out of each device, and packing within host memory. */
  const clv__copy_table *in[CLV__PEP_DEVICES], *out[CLV__PEP_DEVICES], *pack;
  clv__table_origin origin; /* the least trusted origin among the tables used */
  bool is_last;             /* the last layer of the model; callers set it, default false */
  /* The memory of the open devices; callers set it. NULL: there are no devices to ask, only the tables' peaks. */
  clv__gnn_memory *memory;
  uint32_t layer; /* the index of this layer in `memory` */
} clv__costs;

/* Looks up the tables. Returns CLV_NOT_FOUND if a device has no block of this layer in the tables, or lacks copies that it
 * needs. The other arguments must outlive `costs`. */
clv_status clv__costs_init(clv__costs *costs, const clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                           clv_error *error);

/* ---- The subgraph ---- */

typedef struct clv__share {
  uint64_t targets, halo, edges; /* owned vertices; other vertices that their in-edges come from; in-edges */
} clv__share;

/* Computes the owned vertices, in vertex order, between shares `from` and `to` of the in-edges, both in [0, 1], and their
 * halo. Both ends are rounded to vertices in the same way, so that adjacent shares meet. */
typedef void (*clv__share_function)(const void *user, double from, double to, clv__share *share);

typedef struct clv__subgraph_sizes {
  uint64_t owned, halo, edges;
  clv__share_function share; /* NULL: assume that each in-edge of a part reads a different row of the subgraph, as long as there
                                are enough rows; never underestimates the rows read */
  const void *user;
} clv__subgraph_sizes;

void clv__subgraph_share(const clv__subgraph_sizes *subgraph, double from, double to, clv__share *share);

/* ---- Parts and blocks ---- */

typedef struct clv__pep_part {
  uint32_t device;
  bool is_static;                 /* whether the device needs fixed shapes; copied from clv__machine_device */
  uint32_t from, to;              /* its range of the in-edges, in twentieths */
  clv__layer_sizes sizes, padded; /* the actual sizes and the compiled sizes; equal unless the device needs fixed shapes */
  double pack_ns, in_ns, compute_ns, out_ns, time_ns; /* time_ns is the sum */
  uint64_t bytes;                                     /* bytes copied in and out */
  uint64_t memory_bytes; /* memory of the device that the part needs while it runs; 0: the device has no limit */
} clv__pep_part;

typedef struct clv__pep_block {
  uint32_t first, last; /* stages [first, last) */
  uint32_t part_count;
  clv__pep_part parts[CLV__PEP_DEVICES]; /* in the order of the devices, and of the vertices */
  double merge_ns;
  double time_ns;  /* time of the longest part, plus merging */
  double ideal_ns; /* time_ns if shares were not rounded */
} clv__pep_block;

/* Asks for the price of one block on one set of devices. The price depends on where the values are that cross to or from the
 * plan's other blocks (shared_in, shared_out). */
typedef struct clv__block_question {
  uint32_t first, last;
  uint32_t set;               /* one bit per device */
  bool shared_in, shared_out; /* the results of earlier blocks (in) or its own (out) stay in a memory other than the host's */
} clv__block_question;

/* The least memory with which some choice is possible, and the device that needs it. size_bytes 0: the choice needs no memory of
 * a device with a limit. */
typedef struct clv__least_memory {
  uint64_t size_bytes;
  uint32_t device;
} clv__least_memory;

enum { CLV__BLOCK_VARIANTS = 32 };

typedef struct clv__block_answers {
  clv__known known; /* CLV__KNOWN: at least one variant has a price */
  clv__least_memory least;
  uint32_t count;
  clv__pep_block items[CLV__BLOCK_VARIANTS];
} clv__block_answers;

/* Returns whether the stages and the tables allow the block on these devices. */
bool clv__block_is_legal(const clv__costs *costs, const clv__block_question *question);
/* Prices the part for its device, share, sizes and padded sizes: sets its times and bytes. */
clv__known clv__pep_part_price(const clv__costs *costs, const clv__subgraph_sizes *subgraph, const clv__block_question *question,
                               clv__pep_part *part);
/* Prices the block with balanced shares. Shares are multiples of a twentieth, so each boundary between two parts is rounded down
 * and up. For two devices, the `variants` next multiples on either side are priced as well. */
void clv__block_price(const clv__costs *costs, const clv__subgraph_sizes *subgraph, const clv__block_question *question,
                      uint32_t variants, clv__block_answers *answers);

#endif
