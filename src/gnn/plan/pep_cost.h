/* Prices of parts and blocks, and what they are made from: the layer, the machine and the subgraph. */
#ifndef CLEAVE_GNN_PLAN_PEP_COST_H
#define CLEAVE_GNN_PLAN_PEP_COST_H

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

/* ---- Parts and blocks ---- */

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

/* One block on one set of devices, with its neighbours' memory. */
typedef struct clv__block_question {
  uint32_t first, last;
  uint32_t set;               /* a bit for each device */
  bool shared_in, shared_out; /* earlier blocks' results, its own, stay in a memory that is not the host's */
} clv__block_question;

enum { CLV__BLOCK_VARIANTS = 32 };

typedef struct clv__block_answers {
  clv__known known; /* KNOWN: at least one */
  uint32_t count;
  clv__pep_block items[CLV__BLOCK_VARIANTS];
} clv__block_answers;

/* Whether stages and tables allow the block there at all. */
bool clv__block_is_legal(const clv__costs *costs, const clv__block_question *question);
/* The part as its device, share, sizes and padded sizes are: its times and bytes. */
clv__known clv__pep_part_price(const clv__costs *costs, const clv__piece *piece, const clv__block_question *question,
                               clv__pep_part *part);
/* The block with balanced shares, rounded to twentieths in every way near by. */
void clv__block_price(const clv__costs *costs, const clv__piece *piece, const clv__block_question *question, uint32_t variants,
                      clv__block_answers *answers);

#endif
