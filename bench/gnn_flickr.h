/* The devices, prices and graphs of bench_gnn_flickr.
 *
 * Measured: ../shared/data/gnx/profile_185h_fused.csv has times of GraphSAGE's stages 1 to 4 (gather, message, both
 * reductions) on a CPU and a GPU, and of stages 5 to 7 (normalize, transform, activate) on an NPU, with 500 columns. The
 * times are fitted with a + b n + c m for n rows and m edges. The fits give the speeds of three virtual devices: a is the
 * time of a launch, and b and c are the times per row and per edge of SparseAggregate. On the NPU, b is divided among its
 * operators.
 *
 * Synthetic prices, because that file does not have them: normalize, transform and activate on CPU and GPU, from assumed
 * peaks (operations and bytes per second, 500 columns); gathering alone; gathering on the NPU; copies. Each of these is
 * varied at random by up to 2 %, with a fixed seed. For sizes below those of the file, the prices are extrapolated with
 * the same fits. The JSON output calls all prices synthetic, because every plan uses some synthetic ones.
 *
 * The runs use `width` columns, fewer than 500, so that computing the results takes less time than the virtual devices
 * model. The prices are those of 500 columns. Graphs are random, with a seed, and have exactly the owned, halo, internal
 * and boundary counts of metis_subgraphs.csv for each k. The vertices of a part are scattered over the numbering. */
#ifndef CLEAVE_BENCH_GNN_FLICKR_H
#define CLEAVE_BENCH_GNN_FLICKR_H

#include "gnn/planning.h"
#include "gnn/tables/tables.h"

enum { FLICKR_MOST_K = 20, FLICKR_SEED = 7, FLICKR_COLUMNS = 500 };

typedef struct flickr_options {
  const char *data, *profile; /* `data`: a folder; `profile`: a file, or NULL */
  uint32_t from, to, width, runs;
  uint32_t prices_from, prices_to; /* seeds that change the prices; 0: unchanged */
  double time_scale;
  bool json, is_check, planning, verbose;
} flickr_options;

bool flickr_options_read(flickr_options *options, int count, char **arguments);

typedef struct flickr_machine {
  clv_context *context;
  clv_devices *devices, *reference; /* `devices`: vcpu, vgpu, vnpu; `reference`: the cpu */
  clv__gnn_layer layer;
  clv__gnn_model model; /* GraphSAGE, one layer */
} flickr_machine;

/* Returns false if the table of measured times does not exist. */
bool flickr_machine_open(const flickr_options *options, flickr_machine *machine);
void flickr_machine_close(flickr_machine *machine);

/* Imports the times of profile_185h_fused.csv, multiplied by the time scale, as those of `layer`, and fits them. */
bool flickr_import(const flickr_options *options, const char *layer, clv__tables *tables);

/* Reads and writes the prices of --profile. flickr_prices_kept() returns false if the file does not exist yet. */
bool flickr_prices_kept(const flickr_options *options, clv__tables *tables);
void flickr_prices_keep(const flickr_options *options, const clv__tables *tables);
/* Makes devices, blocks, copies and overheads faster or slower, depending on the seed; 0 changes nothing. */
void flickr_prices_change(clv__tables *tables, uint64_t seed);

typedef struct flickr_graph {
  clv__gnn_graph *graph;
  uint32_t *parts; /* the caller frees it */
  uint32_t missed; /* how many halo vertices the parts lack compared with metis_subgraphs.csv, in total */
} flickr_graph;

bool flickr_graph_make(const flickr_options *options, uint32_t k, flickr_graph *made);
/* Makes subgraph sizes like Flickr's for any k, for --planning. */
void flickr_subgraphs(uint32_t k, clv__subgraph_sizes *subgraphs);

void flickr_tell_tasks(const clv__gnn_record *record, const clv__machine *machine);

#endif
