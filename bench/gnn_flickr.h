/* What bench_gnn_flickr plans for.
 *
 * Measured: ../shared/data/gnx/profile_185h_fused.csv has times of GraphSAGE's stages 1 to 4 (gather, message, both reductions)
 * on a CPU and a GPU, and of 5 to 7 (normalize, transform, activate) on an NPU, with 500 columns. Fits a + b n + c m of them are
 * the figures of three virtual devices: a for a launch, b and c for a row and an edge of SparseAggregate; on the NPU b is shared
 * out among its operators.
 *
 * Synthetic, where the table is silent: normalize, transform and activate on CPU and GPU by assumed peaks (operations and bytes a
 * second, 500 columns), gathering by itself, gathering on the NPU, copies; each figure scattered by up to 2 %, seeded. Sizes
 * below the table's follow the same lines. All prices of a plan that uses any of this are marked synthetic.
 *
 * What runs has `width` columns, fewer than 500, so that computing takes less than is modelled; rates of copies are those of 500.
 * Graphs are random, seeded, and have exactly the owned, halo, internal and boundary counts of metis_subgraphs.csv at each k; a
 * part's vertices are anywhere in the numbering. */
#ifndef CLEAVE_BENCH_GNN_FLICKR_H
#define CLEAVE_BENCH_GNN_FLICKR_H

#include "gnn/planning.h"
#include "gnn/tables/tables.h"

enum { FLICKR_MOST_K = 20, FLICKR_SEED = 7, FLICKR_COLUMNS = 500 };

typedef struct flickr_options {
  const char *data, *profile; /* a folder; a file, or NULL */
  uint32_t from, to, width, runs;
  uint32_t prices_from, prices_to; /* seeds; 0: as they are */
  double time_scale;
  bool json, is_check, planning, verbose;
} flickr_options;

bool flickr_options_read(flickr_options *options, int count, char **arguments);

typedef struct flickr_machine {
  clv_context *context;
  clv_devices *devices, *reference; /* vcpu, vgpu, vnpu; the cpu */
  clv__gnn_layer layer;
  clv__gnn_model model; /* GraphSAGE, one layer */
} flickr_machine;

/* False where there is no table. */
bool flickr_machine_open(const flickr_options *options, flickr_machine *machine);
void flickr_machine_close(flickr_machine *machine);

/* Puts what the file has for a layer into tables, with the time scale, and fits. */
bool flickr_import(const flickr_options *options, const char *layer, clv__tables *tables);

/* Prices of --profile; false: there is no such file yet. The other writes it. */
bool flickr_prices_kept(const flickr_options *options, clv__tables *tables);
void flickr_prices_keep(const flickr_options *options, const clv__tables *tables);
/* Other prices for each seed: devices, blocks, copies and overheads faster or slower; 0: the same. */
void flickr_prices_change(clv__tables *tables, uint64_t seed);

typedef struct flickr_graph {
  clv__gnn_graph *graph;
  uint32_t *parts; /* to be freed */
  uint32_t missed; /* halo vertices that a part has too few of */
} flickr_graph;

bool flickr_graph_make(const flickr_options *options, uint32_t k, flickr_graph *made);
/* Subgraphs as Flickr's are at any k: for planning alone. */
void flickr_subgraphs(uint32_t k, clv__subgraph_sizes *subgraphs);

void flickr_tell_tasks(const clv__gnn_record *record, const clv__machine *machine);

#endif
