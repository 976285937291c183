/* Inference of graph neural networks (GNNs) over large graphs, on all devices of a machine.
 *
 * Unstable: may change until 1.0.
 *
 * A graph has vertices with features, and directed edges. A model is a chain of layers, such as those of GraphSAGE. A plan
 * divides the graph into k subgraphs, divides each layer of each subgraph into blocks of stages, and gives every block to one
 * device, or shares it among several. A run executes a plan; its result is that of the whole graph in one piece, apart from
 * rounding. docs/gnn.md describes the files and the words.
 *
 * Ownership: an object refers to the objects that it was made from. Destroy objects in the reverse order of their creation. Every
 * destroy function accepts NULL. Arrays and texts that a function is given are copied unless its description says otherwise.
 * Threads: any thread may call these functions. Graphs, models, parts and plans may be shared by threads, except while a function
 * changes a graph's features. Only one thread at a time may use a clv_gnn_costs. Calls for one clv_gnn_run wait for each other.
 * Errors: besides those listed, every function that returns a status can return CLV_INVALID_ARGUMENT, for a NULL that its
 * description does not allow and for a wrong struct_size, and CLV_OUT_OF_MEMORY. Outputs are NULL until success.
 * Structs: set struct_size first, or begin with the initialiser. Functions that fill a struct write as many bytes as its
 * struct_size says. */
#ifndef CLEAVE_GNN_H
#define CLEAVE_GNN_H

#include "devices.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_gnn_graph clv_gnn_graph;
typedef struct clv_gnn_parts clv_gnn_parts; /* the part of each vertex */
typedef struct clv_gnn_model clv_gnn_model;
typedef struct clv_gnn_costs clv_gnn_costs; /* prices of blocks and copies: gnn_costs.h */
typedef struct clv_gnn_plan clv_gnn_plan;
typedef struct clv_gnn_run clv_gnn_run;

/* ---- Graphs ---- */

/* A graph in memory: its edges as pairs (sources and destinations), or as compressed rows (offsets and sources). */
typedef struct clv_gnn_arrays {
  uint32_t struct_size;
  uint64_t vertex_count; /* below 2^32; 0: the rows of `features` or, without features, one more than the largest id */
  uint64_t edge_count;
  const int64_t *sources;      /* [edge_count]: ids of vertices, from 0 */
  const int64_t *destinations; /* [edge_count]: edge i goes from sources[i] to destinations[i] */
  const int64_t *offsets;     /* [vertex_count + 1], instead of `destinations`: the in-edges of vertex v are those from offsets[v]
                                 up to but excluding offsets[v + 1]; needs vertex_count or features */
  const clv_tensor *features; /* numbers [vertex_count, F], finite in f32; NULL: none */
  clv_ownership features_ownership; /* CLV_BORROW: `features` must be f32; its data must outlive the graph and is not copied */
  const clv_tensor *labels;         /* i64 [vertex_count], always copied; NULL: none */
  const char *name;                 /* for messages, reports and plan files; NULL: "graph" */
} clv_gnn_arrays;
#define CLV_GNN_ARRAYS_INIT \
  { sizeof(clv_gnn_arrays), 0, 0, NULL, NULL, NULL, NULL, CLV_COPY, NULL, NULL }

/* Makes a graph from arrays. Keeps the order of the edges, repeated edges and self loops. The edges are always copied, in less
 * memory than the arrays take.
 * Errors: CLV_INVALID_ARGUMENT, with the edge, row or vertex and the value, for an id that is negative or not below the vertex
 * count, for offsets that do not ascend from 0 to edge_count, for features or labels of another type or size, and for features
 * that are not finite. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_make(clv_context *context, const clv_gnn_arrays *arrays, clv_gnn_graph **graph,
                                                   clv_error *error);

/* Reads a graph file: npz (`edge_index` [2,m]; optionally `x` [n,F], `y` [n] and `num_nodes`), METIS's .graph, or text with one
 * "source destination" pair per line. The last two may be compressed with gzip.
 * Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the place in the file and the value. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_read(clv_context *context, const char *path, clv_gnn_graph **graph,
                                                   clv_error *error);

typedef struct clv_gnn_generate_options {
  uint32_t struct_size;
  uint32_t scale;            /* the graph has 2^scale vertices; at most 31 */
  uint32_t edges_per_vertex; /* on average */
  uint32_t feature_count;    /* numbers per vertex, uniform in [-1, 1); 0: none */
  uint64_t seed;             /* the same seed gives the same graph */
} clv_gnn_generate_options;
#define CLV_GNN_GENERATE_OPTIONS_INIT \
  { sizeof(clv_gnn_generate_options), 10, 16, 0, 0 }

/* Generates a random graph by the R-MAT model (Chakrabarti, Zhan, Faloutsos 2004), with the parameters of Graph500. Degrees are
 * as uneven as in social networks. `options` may be NULL. Errors: CLV_INVALID_ARGUMENT for a scale above 31. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_generate(clv_context *context, const clv_gnn_generate_options *options,
                                                       clv_gnn_graph **graph, clv_error *error);

/* Set a graph's features, and replace those that it has: numbers [vertex_count, F] in memory, or in an .npy file, or `count`
 * random numbers per vertex, uniform in [-1, 1). Ownership as in clv_gnn_arrays. Do not call them while another thread uses the
 * graph, or while a plan or a run of the graph exists: this is an error (CLV_INVALID_ARGUMENT).
 * Errors: CLV_INVALID_ARGUMENT, from a file CLV_INVALID_MODEL, for another type or size, and for numbers that are not finite in
 * f32; CLV_NOT_FOUND; CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_set_features(clv_gnn_graph *graph, const clv_tensor *features,
                                                           clv_ownership ownership, clv_error *error);
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_read_features(clv_gnn_graph *graph, const char *path, clv_error *error);
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_draw_features(clv_gnn_graph *graph, uint32_t count, uint64_t seed,
                                                            clv_error *error);

/* Writes the graph as npz, completely or not at all. Errors: CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_write(const clv_gnn_graph *graph, const char *path, clv_error *error);

typedef struct clv_gnn_graph_info {
  uint32_t struct_size;
  uint32_t vertex_count;
  uint64_t edge_count;
  uint64_t feature_count;  /* per vertex; 0: none */
  const char *name;        /* the path, or clv_gnn_arrays.name */
  const char *hash;        /* of the structure, as hexadecimal digits: equal graphs have equal hashes */
  const uint64_t *offsets; /* [vertex_count + 1]: the compressed rows, as in clv_gnn_arrays */
  const uint32_t *sources; /* [edge_count] */
  clv_tensor features;     /* f32 [vertex_count, F]; dtype none: the graph has no features */
  clv_tensor labels;       /* i64 [vertex_count]; dtype none: the graph has no labels */
} clv_gnn_graph_info;
/* Texts and arrays are valid as long as the graph; features until they are replaced. */
CLV_API void clv_gnn_graph_get_info(const clv_gnn_graph *graph, clv_gnn_graph_info *info);

typedef struct clv_gnn_graph_report_options {
  uint32_t struct_size;
  uint32_t part_count; /* also report the subgraphs of these parts: the sizes of the smallest and of the largest, and cut edges */
  const clv_gnn_parts *const *parts;
  bool list_subgraphs; /* in JSON, also list the subgraphs one by one */
} clv_gnn_graph_report_options;
#define CLV_GNN_GRAPH_REPORT_OPTIONS_INIT \
  { sizeof(clv_gnn_graph_report_options), 0, NULL, false }

/* Describes the graph: counts, degrees, isolated vertices, self loops, repeated edges, sizes. `options` may be NULL. Free the
 * text with clv_text_free(). Errors: CLV_INVALID_ARGUMENT if parts are of a graph with another number of vertices. */
CLV_API CLV_MUST_USE clv_status clv_gnn_graph_report(const clv_gnn_graph *graph, const clv_gnn_graph_report_options *options,
                                                     clv_form form, char **text, clv_error *error);

CLV_API void clv_gnn_graph_destroy(clv_gnn_graph *graph);

/* ---- Parts: which subgraph owns each vertex ---- */

/* Partitions the graph into k parts with METIS: few rows to exchange, and about equal work in each part. The parts come from the
 * context's cache if they are there. METIS runs in a process of its own, one at a time.
 * Errors: CLV_INVALID_ARGUMENT if k is 0, k exceeds the vertex count, or the graph exceeds METIS's 32-bit indices. */
CLV_API CLV_MUST_USE clv_status clv_gnn_parts_make(const clv_gnn_graph *graph, uint32_t k, uint64_t seed, clv_gnn_parts **parts,
                                                   clv_error *error);
/* Takes parts from an array: part_of[v], below k, is the part of vertex v. Every part needs a vertex.
 * Errors: CLV_INVALID_ARGUMENT, with the vertex or the part. */
CLV_API CLV_MUST_USE clv_status clv_gnn_parts_from(const clv_gnn_graph *graph, const uint32_t *part_of, uint32_t k,
                                                   clv_gnn_parts **parts, clv_error *error);
/* Reads parts from a text file, which may be compressed with gzip: one part number per line, in the order of the vertices, as
 * gpmetis writes it. The ending ".part.K" of the file's name, or else the largest number, determines k.
 * Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the line. */
CLV_API CLV_MUST_USE clv_status clv_gnn_parts_read(const clv_gnn_graph *graph, const char *path, clv_gnn_parts **parts,
                                                   clv_error *error);

typedef struct clv_gnn_parts_info {
  uint32_t struct_size;
  uint32_t k;
  uint32_t vertex_count;
  bool is_from_cache;
  const uint32_t *part_of; /* [vertex_count]; valid as long as the parts */
  double metis_seconds;    /* 0: METIS did not run */
} clv_gnn_parts_info;
CLV_API void clv_gnn_parts_get_info(const clv_gnn_parts *parts, clv_gnn_parts_info *info);
CLV_API void clv_gnn_parts_destroy(clv_gnn_parts *parts);

/* ---- Models ---- */

/* Reads a model: an ONNX file, whose layers are recognised and then compared with the file's graph on a random graph; or JSON
 * with a file of weights in the same folder, npz or safetensors.
 * Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the layer, the weight and both shapes; CLV_NOT_SUPPORTED, with the
 * node that no known layer explains. */
CLV_API CLV_MUST_USE clv_status clv_gnn_model_read(clv_context *context, const char *path, clv_gnn_model **model,
                                                   clv_error *error);
/* Like clv_gnn_model_read(), but from an ONNX model in memory, without external data. `name` is for messages, reports and plan
 * files; NULL: "model". */
CLV_API CLV_MUST_USE clv_status clv_gnn_model_read_memory(clv_context *context, const void *data, size_t size_bytes,
                                                          const char *name, clv_gnn_model **model, clv_error *error);

typedef struct clv_gnn_model_info {
  uint32_t struct_size;
  uint32_t layer_count;
  uint32_t feature_count; /* the columns that the first layer reads */
  uint32_t class_count;   /* the columns that the last layer computes */
  const char *type;       /* "graphsage", "gcn" or "gat" */
  const char *name;       /* the path, or the name in memory */
  const char *hash;       /* of type, sizes and weights, as hexadecimal digits */
} clv_gnn_model_info;
/* Texts are valid as long as the model. */
CLV_API void clv_gnn_model_get_info(const clv_gnn_model *model, clv_gnn_model_info *info);

typedef struct clv_gnn_layer_info {
  uint32_t struct_size;
  uint32_t in, out;       /* the columns that the layer reads and computes */
  uint32_t heads;         /* of attention; 1 without attention */
  bool is_averaged;       /* heads are averaged; otherwise they are concatenated */
  const char *activation; /* "none", "relu" or "elu" */
  uint32_t stage_count;   /* see clv_gnn_model_stage() */
  uint64_t weight_bytes;
} clv_gnn_layer_info;
/* Returns false, and fills `info` with zeros, for an index beyond the count. */
CLV_API bool clv_gnn_model_layer(const clv_gnn_model *model, uint32_t index, clv_gnn_layer_info *info);
/* The name of a layer's stage, in execution order: "gather", "message", "reduce-sum", …. Static storage. NULL for an index beyond
 * a count. */
CLV_API const char *clv_gnn_model_stage(const clv_gnn_model *model, uint32_t layer, uint32_t stage);

/* Describes the model as it was read: its layers, their sizes, stages and weights. Free the text with clv_text_free(). */
CLV_API CLV_MUST_USE clv_status clv_gnn_model_report(const clv_gnn_model *model, clv_form form, char **text, clv_error *error);

CLV_API void clv_gnn_model_destroy(clv_gnn_model *model);

/* ---- Plans ---- */

typedef enum clv_gnn_message {
  CLV_GNN_PROGRESS = 0, /* the current step, for a line that the next message replaces */
  CLV_GNN_NOTE = 1,     /* a remark for users */
  CLV_GNN_DETAIL = 2    /* a remark for those who want to know more */
} clv_gnn_message;

typedef struct clv_gnn_plan_options {
  uint32_t struct_size;
  uint32_t k_count; /* the numbers of subgraphs to try, in any order; 1 is always tried. 0, and no parts: 1, 2, 4 and 8 */
  const uint32_t *ks;
  uint32_t part_count; /* instead of `ks`: given parts, each with another k. They are copied */
  const clv_gnn_parts *const *parts;
  uint64_t seed;              /* of METIS */
  uint64_t pad_step;          /* devices that need fixed shapes get rows and edges padded to multiples of this; 0: 1000 */
  const clv_gnn_costs *costs; /* measured prices; NULL: nominal ones, which rank plans but do not predict times */
  bool quick;                 /* search only briefly, by moving subgraphs off the busiest device */
  uint32_t top_k;             /* ways to divide a subgraph that the search considers; 0: all that may be useful */
  void (*tell)(void *user_data, clv_gnn_message kind, const char *text); /* NULL: notes are logged at level 2, details at 3 */
  void *user_data;
} clv_gnn_plan_options;
#define CLV_GNN_PLAN_OPTIONS_INIT \
  { sizeof(clv_gnn_plan_options), 0, NULL, 0, NULL, 0, 0, NULL, false, 0, NULL, NULL }

/* Chooses the number of subgraphs, and the devices of their blocks, so that the predicted time of all layers is least. Tries more
 * subgraphs than asked for if no number fits the memory of the devices. The same inputs give the same plan. `options` may be
 * NULL. Graph, model and devices must outlive the plan; `costs` is only read.
 * Errors: CLV_INVALID_ARGUMENT if the graph's features do not fit the model, for more than 4 devices, and for costs that were
 * measured on other devices; CLV_NOT_FOUND if costs lack a device; CLV_NOT_SUPPORTED and CLV_TOO_LARGE, with the reason of every
 * k, if there is no plan. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_make(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                                                  const clv_gnn_plan_options *options, clv_gnn_plan **plan, clv_error *error);

/* Writes the plan file and, unless k is 1, the parts beside it: plan.json and plan.membership.npy. Errors: CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_write(clv_gnn_plan *plan, const char *path, clv_error *error);

/* Reads a plan file for a model and a graph. The subgraphs come from the options' parts (one with the plan's k), or the file
 * beside the plan, or the cache, or METIS. Of the options, only parts and `tell` are used; `options` may be NULL. Errors:
 * CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the place, if the file is damaged or inconsistent; CLV_INVALID_ARGUMENT if
 * the plan is for another graph or model, or the parts are not those of the plan. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_read(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                                                  const char *path, const clv_gnn_plan_options *options, clv_gnn_plan **plan,
                                                  clv_error *error);

typedef struct clv_gnn_report_options {
  uint32_t struct_size;
  bool detailed;        /* plans: also merged executables; runs: also the table of every k */
  bool list_candidates; /* plans: also every way to divide each subgraph of the chosen k, with its price. Not for a plan from a
                           file, which has no prices (CLV_NOT_SUPPORTED) */
} clv_gnn_report_options;
#define CLV_GNN_REPORT_OPTIONS_INIT \
  { sizeof(clv_gnn_report_options), false, false }

/* Explains a plan: for every k the predicted time, a lower bound, the gap to it, and the load of each device; why this k was
 * chosen; the blocks of each layer; and the memory of devices that have a limit. `options` may be NULL. Free the text with
 * clv_text_free(). */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_report(const clv_gnn_plan *plan, const clv_gnn_report_options *options,
                                                    clv_form form, char **text, clv_error *error);
/* Writes a web page with the same figures and a timeline, to a file, completely or not at all, or to `write`; give one of them,
 * and NULL for the other. Errors: CLV_IO_ERROR; CLV_CANCELLED if `write` returned false. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_page(const clv_gnn_plan *plan, const char *path, clv_emit_fn write, void *user_data,
                                                  clv_error *error);
/* Writes each block of the plan once as an ONNX file to `folder`, creating it if necessary, so that other tools can compile it.
 * The operators over edges are functions that the files define; with `inlines`, they are replaced by the standard operators of
 * the functions. `count` receives the number of files, and may be NULL. Errors: CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_export(const clv_gnn_plan *plan, const char *folder, bool inlines, uint32_t *count,
                                                    clv_error *error);
CLV_API void clv_gnn_plan_destroy(clv_gnn_plan *plan);

/* ---- Reading a plan. Texts are valid as long as the plan. Times are predictions, in nanoseconds ---- */

typedef struct clv_gnn_plan_info {
  uint32_t struct_size;
  uint32_t k; /* the number of subgraphs */
  uint32_t layer_count;
  uint32_t device_count;
  uint32_t k_count;    /* the numbers of subgraphs that were tried */
  uint32_t task_count; /* see clv_gnn_plan_task() */
  double predicted_ns;
  double bound_ns;                /* no plan with these prices and this k takes less time */
  double gap;                     /* (predicted - bound) / bound */
  double best_single_ns;          /* the time of the best device alone; infinite: no device can run everything */
  const char *best_single_device; /* "": there is none */
  uint32_t best_single_k;         /* the number of subgraphs with which it takes this time */
  const char *prices;             /* where they come from: "measured", "imported", "synthetic" or "nominal" */
  const char *why;                /* why this k was chosen */
  double cut_ns, plan_ns;         /* measured: the time to partition the graph, and to choose the plan (0: from a file) */
} clv_gnn_plan_info;
CLV_API void clv_gnn_plan_get_info(const clv_gnn_plan *plan, clv_gnn_plan_info *info);
/* The subgraph that owns each vertex, as parts that the caller destroys. */
CLV_API CLV_MUST_USE clv_status clv_gnn_plan_parts(const clv_gnn_plan *plan, clv_gnn_parts **parts, clv_error *error);
/* The name of a device of the plan. NULL for an index beyond the count. */
CLV_API const char *clv_gnn_plan_device(const clv_gnn_plan *plan, uint32_t index);

/* One of the numbers of subgraphs that were tried, in ascending order. */
typedef struct clv_gnn_k_info {
  uint32_t struct_size;
  uint32_t k;
  const char *reason; /* why there is no plan with this k; NULL: there is one, and the other members are set */
  double predicted_ns, bound_ns, gap;
  uint32_t switches; /* times that a device changes to another executable */
  uint64_t halo_rows, padding_rows, padding_edges;
} clv_gnn_k_info;
/* The functions below return false, and fill `info` with zeros, for an index beyond the count. */
CLV_API bool clv_gnn_plan_k(const clv_gnn_plan *plan, uint32_t index, clv_gnn_k_info *info);

typedef struct clv_gnn_subgraph_info {
  uint32_t struct_size;
  uint32_t owned_count;    /* vertices that it computes */
  uint32_t halo_count;     /* vertices of other subgraphs that it reads */
  uint64_t edge_count;     /* in-edges of the owned vertices, with self loops if the model uses them */
  uint64_t cut_edge_count; /* of these, the edges from the halo */
} clv_gnn_subgraph_info;
/* A subgraph of the chosen k. */
CLV_API bool clv_gnn_plan_subgraph(const clv_gnn_plan *plan, uint32_t index, clv_gnn_subgraph_info *info);

/* One task: a block, or one device's share of a block, for one subgraph and layer. The block consists of the layer's stages
 * first_stage up to but excluding end_stage; see clv_gnn_model_stage(). */
typedef struct clv_gnn_task_info {
  uint32_t struct_size;
  uint32_t layer, subgraph, device;
  uint32_t turn;    /* the position of the subgraph in the layer's order */
  uint32_t cluster; /* consecutive subgraphs of a layer that use the same executables */
  uint32_t block, part;
  uint32_t first_stage, end_stage;
  uint64_t targets, rows, edges;      /* vertices computed, vertices read, in-edges */
  uint64_t padded_rows, padded_edges; /* as compiled for a device that needs fixed shapes; otherwise rows and edges */
  double start_ns, end_ns;            /* predicted, from the start of the first layer */
  bool has_run;                       /* only from clv_gnn_run_task(): the task ran, and the times below are set */
  double begin_ns, packed_ns, computed_ns, done_ns; /* measured: begin, input gathered, computed, result laid out */
} clv_gnn_task_info;
/* A task, in the order of layers and turns. */
CLV_API bool clv_gnn_plan_task(const clv_gnn_plan *plan, uint32_t index, clv_gnn_task_info *info);

/* ---- Runs ---- */

/* Compiles every block of the plan for its devices. The plan must outlive the run.
 * Errors: CLV_TOO_LARGE if a block does not fit its device's memory, with layer, block and device; CLV_INVALID_ARGUMENT if a
 * device of the plan is not open; CLV_DEVICE_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_create(clv_gnn_plan *plan, clv_gnn_run **run, clv_error *error);

#define CLV_GNN_ANY_DEVICE UINT32_MAX

/* Prepares a run of the whole graph in one piece, without a plan, to compare with: on device `device` of the set or, with
 * CLV_GNN_ANY_DEVICE, where clv_plan_make() would place the nodes. All arguments must outlive the run.
 * Errors: CLV_INVALID_ARGUMENT if the graph's features do not fit the model, or there is no such device; those of clv_plan_make()
 * and clv_session_create(), with the layer. */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_create_whole(const clv_gnn_model *model, const clv_gnn_graph *graph,
                                                         clv_devices *devices, uint32_t device, clv_gnn_run **run,
                                                         clv_error *error);

typedef struct clv_gnn_progress {
  uint32_t layer, layer_count;
  uint32_t done, of;        /* tasks over all layers */
  double elapsed_s, left_s; /* left_s negative: not known yet */
} clv_gnn_progress;

typedef struct clv_gnn_execute_options {
  uint32_t struct_size;
  /* Called after each task of a plan, one call at a time, in a thread of the run. Return false to cancel the run. */
  bool (*progress)(void *user_data, const clv_gnn_progress *progress);
  void *user_data;
  /* The path of a file that keeps the rows after each layer but the last, so that a killed run can be resumed. The file remains
   * after the run: remove it once the result is saved. NULL: none. Only for runs of plans. */
  const char *state_path;
  bool resume; /* continue from the file if it exists */
} clv_gnn_execute_options;
#define CLV_GNN_EXECUTE_OPTIONS_INIT \
  { sizeof(clv_gnn_execute_options), NULL, NULL, NULL, false }

/* Runs all layers once, over all vertices.
 *
 * `features` is f32 [vertex_count, F]; NULL: the graph's features. `output` receives f32 [vertex_count, class_count]: the result
 * of each vertex, in the graph's order. If output->data is NULL, the run points it at its own memory, which is valid until the
 * next execution or until the run is destroyed. Otherwise dtype and dims must match, and the result is written there. `options`
 * may be NULL.
 *
 * Errors: CLV_INVALID_ARGUMENT for features or an output of another type, and for a state file of another graph, model or plan;
 * CLV_CANCELLED; CLV_DEVICE_ERROR, with layer, subgraph, block and device. After an error, the output is unspecified. */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_execute(clv_gnn_run *run, const clv_tensor *features, clv_tensor *output,
                                                    const clv_gnn_execute_options *options, clv_error *error);

#define CLV_GNN_TOLERANCE 1e-5 /* for sums of f32 that are added in another order */

/* Runs the whole graph in one piece and compares its result with `output`, the result for the same `features`. `difference`
 * receives the largest difference, relative to the largest value; it may be NULL. Blocks of the run are closed meanwhile, because
 * both would need the devices' memory; the next execution compiles them again.
 * Errors: CLV_INTERNAL_ERROR, with the vertex, the column and both values, if the difference exceeds `tolerance`; `difference` is
 * then set, too. Those of clv_gnn_run_create_whole() and clv_gnn_run_execute(). */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_verify(clv_gnn_run *run, const clv_tensor *features, const clv_tensor *output,
                                                   double tolerance, double *difference, clv_error *error);

/* Writes an output as npz: the array `out`, f32 [vertex_count, class_count]. Completely or not at all; files that a killed
 * program left half-written beside `path` are removed. Errors: CLV_IO_ERROR; CLV_INVALID_ARGUMENT for another type. */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_write(const clv_gnn_run *run, const clv_tensor *output, const char *path,
                                                  clv_error *error);

typedef struct clv_gnn_run_info {
  uint32_t struct_size;
  uint32_t run_count; /* completed executions */
  uint32_t task_count;
  double compile_ns;
  double first_ns, last_ns; /* the times of the first and the last execution */
  double warm_ns;           /* the median of the latest 1000 executions, without the first; negative: there was only one */
  double state_ns;          /* time spent on state files, over all executions */
} clv_gnn_run_info;
CLV_API void clv_gnn_run_get_info(clv_gnn_run *run, clv_gnn_run_info *info);
/* A task of the plan with its times in the last execution, as clv_gnn_plan_task(). A run without a plan has no tasks. */
CLV_API bool clv_gnn_run_task(clv_gnn_run *run, uint32_t index, clv_gnn_task_info *info);

/* Reports a run: predicted and measured times of layers and blocks, and the times of loading, compiling and executing. The
 * functions below need at least one execution; otherwise they return CLV_INVALID_ARGUMENT. Apart from that they are like those of
 * plans. The last two are only for runs of plans (CLV_NOT_SUPPORTED). The trace is for Chrome and Perfetto: one row per device.
 */
CLV_API CLV_MUST_USE clv_status clv_gnn_run_report(clv_gnn_run *run, const clv_gnn_report_options *options, clv_form form,
                                                   char **text, clv_error *error);
CLV_API CLV_MUST_USE clv_status clv_gnn_run_page(clv_gnn_run *run, const char *path, clv_emit_fn write, void *user_data,
                                                 clv_error *error);
CLV_API CLV_MUST_USE clv_status clv_gnn_run_trace(clv_gnn_run *run, const char *path, clv_emit_fn write, void *user_data,
                                                  clv_error *error);

CLV_API void clv_gnn_run_destroy(clv_gnn_run *run);

#ifdef __cplusplus
}
#endif
#endif
