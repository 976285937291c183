/* Parallel execution plans (PEPs) of one subgraph and one layer: 1 to 3 blocks over the layer's stages, each on one device or
 * shared out among several, no device in two blocks. Plain numbers: nothing here runs.
 *
 * How a run behaves, which prices and the simulation (simulate.h) assume. Values pass through host memory. A device has one
 * thread; a task of it, its part of a block, takes the device for packing (gathering the rows that it reads, laying values out in
 * padded form and without it again, results in the order of the vertices), copying in, computing and copying out, one after the
 * other; a device that shares the host's memory copies
 * nothing, and neither do blocks between devices that share another. Parts of a block begin each when its device is free, end
 * when it is done; the block is done `merge_ns` for each part beyond the first after the last of them. */
#ifndef CLEAVE_GNN_PLAN_PEP_H
#define CLEAVE_GNN_PLAN_PEP_H

#include "base/text.h"
#include "gnn/model/stage.h"
#include "gnn/tables/tables.h"

enum { CLV__PEP_DEVICES = 4, CLV__PEP_BLOCKS = 3, CLV__PEP_SHARES = 20, CLV__PEP_FORMS = 2 };

/* Of numbers, as all times are: fmax() and fmin() are calls, for the sake of what is none. */
static inline double clv__larger(double a, double b) {
  return a > b ? a : b;
}
static inline double clv__smaller(double a, double b) {
  return a < b ? a : b;
}

/* ---- The layer ---- */

/* Bytes of something: fixed + row * rows + target * targets + edge * edges. */
typedef struct clv__size_rule {
  double fixed, row, target, edge;
} clv__size_rule;

typedef struct clv__chain_block {
  bool is_empty;                /* computes nothing */
  bool reads_rows, reads_edges; /* n is its rows, otherwise its targets; m its edges, otherwise 0 */
  bool is_whole;                /* makes something for each row, so that parts would overlap: not to be shared out */
  /* Of what it reads: given by subgraph and layer before, made by earlier blocks, and, of both, a row for each row; in the open
   * form and in the padded one. */
  clv__size_rule given[CLV__PEP_FORMS], made[CLV__PEP_FORMS], packed[CLV__PEP_FORMS];
  clv__size_rule out; /* what it makes */
} clv__chain_block;

typedef struct clv__chain {
  char layer[64]; /* its key in tables: "graphsage-500-256-f32" */
  uint32_t stage_count;
  clv__stage stages[CLV__TABLE_STAGES];
  clv__chain_block blocks[CLV__TABLE_STAGES][CLV__TABLE_STAGES + 1]; /* [first][last] */
} clv__chain;

void clv__chain_of(const clv__stages *stages, clv__chain *chain);

/* ---- The machine ---- */

typedef struct clv__machine_device {
  const char *name;
  uint32_t space;        /* 0: the host's memory */
  bool is_static;        /* shapes fixed when compiled: rows and edges are padded */
  uint32_t cannot;       /* a bit for each clv__stage that it does not run */
  uint64_t memory_bytes; /* 0: no limit is known */
  double switch_ns;      /* between two clusters */
} clv__machine_device;

typedef struct clv__machine {
  uint32_t device_count;
  clv__machine_device devices[CLV__PEP_DEVICES];
  uint64_t pad_step; /* 1000 */
  double merge_ns;
  uint32_t queue_depth; /* results of a block that wait for the next; 2: double buffers */
} clv__machine;

/* What prices are made from, looked up once. */
typedef struct clv__costs {
  const clv__chain *chain;
  const clv__machine *machine;
  const clv__block_table
      *blocks[CLV__PEP_DEVICES][CLV__TABLE_STAGES][CLV__TABLE_STAGES + 1];    /* NULL: cannot, or never measured */
  const clv__copy_table *in[CLV__PEP_DEVICES], *out[CLV__PEP_DEVICES], *pack; /* in and out of the host's memory */
  clv__table_origin origin;                                                   /* the least trusted of what is used */
  bool is_last; /* its result is the graph's; false until somebody says so */
} clv__costs;

/* A device without any block of this layer in the tables, or without copies where it needs them, is CLV_NOT_FOUND. The others
 * must outlive `costs`. */
clv_status clv__costs_init(clv__costs *costs, const clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                           clv_error *error);

/* ---- The subgraph ---- */

typedef struct clv__share {
  uint64_t targets, halo, edges; /* owned vertices; other vertices that their in-edges come from; in-edges */
} clv__share;

/* What falls to the owned vertices from share `from` to share `to` of the in-edges, both in [0, 1], in the order of the vertices:
 * both ends are rounded to vertices in the same way, so that neighbouring shares meet. */
typedef void (*clv__share_function)(const void *user, double from, double to, clv__share *share);

typedef struct clv__piece {
  uint64_t owned, halo, edges;
  clv__share_function share; /* NULL: vertices are alike, and each in-edge of a part comes from another row of the subgraph as far
                                as there are any: never fewer rows than are read */
  const void *user;
} clv__piece;

void clv__piece_share(const clv__piece *piece, double from, double to, clv__share *share);

/* ---- Plans ---- */

typedef struct clv__pep_part {
  uint32_t device;
  bool is_static;                 /* as its device */
  uint32_t from, to;              /* its share of the in-edges, in twentieths */
  clv__layer_sizes sizes, padded; /* what it works on, what it is compiled for; the same unless the device is static */
  double pack_ns, in_ns, compute_ns, out_ns, time_ns; /* time: the sum */
  uint64_t bytes;                                     /* copied in and out */
} clv__pep_part;

typedef struct clv__pep_block {
  uint32_t first, last; /* stages; last is not in it */
  uint32_t part_count;
  clv__pep_part parts[CLV__PEP_DEVICES]; /* in the order of the devices; in that of the vertices */
  double merge_ns;
  double time_ns;  /* of the longest part, and the merge */
  double ideal_ns; /* with shares that are not rounded */
} clv__pep_block;

typedef struct clv__pep {
  uint32_t block_count;
  clv__pep_block blocks[CLV__PEP_BLOCKS];
  double time_ns;                                              /* alone: all blocks one after the other */
  double ideal_ns;                                             /* the same with shares that are not rounded */
  double load_ns[CLV__PEP_DEVICES];                            /* of each device; 0: not used */
  double head_ns[CLV__PEP_DEVICES], tail_ns[CLV__PEP_DEVICES]; /* what must pass before and after a used device's task */
  uint8_t stage_of[CLV__PEP_DEVICES];                          /* the block that it is in; CLV__PEP_BLOCKS: none */
  uint64_t key;                                                /* a hash of the key; clv__pep_same() decides */
} clv__pep;

/* Sets what follows from the blocks: sums, heads and tails, the key. */
void clv__pep_finish(clv__pep *pep);
/* Same key: the same blocks, devices and shares, and, where static devices take part, the same padded sizes. */
bool clv__pep_same(const clv__pep *a, const clv__pep *b);
/* The device that runs all of it alone; CLV__NO_ID: there are several. */
uint32_t clv__pep_single(const clv__pep *pep);
/* "gpu 0-4 x0.85 + cpu 0-4 x0.15 | npu 4-7" */
void clv__pep_describe(const clv__pep *pep, const clv__machine *machine, clv__text *text);

typedef struct clv__pep_options {
  uint32_t top_k;                   /* plans kept a subgraph, beside those on one device; 0: all that are not dominated */
  uint32_t variants;                /* shares tried beside the two nearest to the balanced one, on each side */
  uint32_t most_blocks, most_parts; /* of a plan, and of each of its blocks; 0: no limit. 1 block: data parallel alone; 1 part:
                                       pipelines alone; both: one device */
} clv__pep_options;
#define CLV__PEP_OPTIONS_INIT \
  { 0, 1, 0, 0 }

typedef struct clv__pep_list {
  uint32_t count;
  clv__pep *items;              /* by time */
  uint32_t structures;          /* blocks on sets of devices that the stages allow */
  uint32_t priced;              /* of these with shares: all whose costs are known */
  uint32_t unknown, infeasible; /* structures without a price: outside the tables; beyond a memory */
} clv__pep_list;

/* All plans of a piece. None is CLV_NOT_SUPPORTED, with the reason of the first device's whole layer. */
clv_status clv__peps_make(clv__arena *arena, const clv__costs *costs, const clv__piece *piece, const clv__pep_options *options,
                          clv__pep_list *list, clv_error *error);

#endif
