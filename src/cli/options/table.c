/* The options, in help-text order. */
#include "cli/options/options.h"

#define PLANS (CLI_IN(plan) | CLI_IN(run) | CLI_IN(compile) | CLI_IN(bench) | CLI_IN(test))
#define RUNS (CLI_IN(run) | CLI_IN(bench) | CLI_IN(test))
#define COMPILES (RUNS | CLI_IN(compile))
#define SIZED (CLI_IN(inspect) | CLI_IN(plan) | CLI_IN(run) | CLI_IN(compile) | CLI_IN(bench))
#define MEASURED (CLI_IN(bench) | CLI_IN(profile))
#define DEVICED (CLI_IN_ALL & ~CLI_IN(cache) & ~CLI_IN(completion))
#define REPORTING (CLI_IN_ALL & ~CLI_IN(completion))

_Static_assert(CLV_MAX_IN_FLIGHT == 16, "the help of --in-flight must state this number");

const cli_option cli_option_table[OPTION_COUNT] = {
    [OPTION_DEVICES] =
        {"devices", 0, CLI_TEXT, false, DEVICED & ~CLI_IN(check_backend), 0, "LIST", "cpu; for 'cleave devices', auto",
         "devices in order of priority, such as npu,cpu; auto: every physical device found, those that compute on the CPU last"},
    [OPTION_NPU_SPEC] = {"npu-spec", 0, CLI_TEXT, true, DEVICED, 0, "SPEC", "default",
                         "description of the virtual NPU: default, all (supports every operator), or a JSON file; the first "
                         "--npu-spec describes npu, the second npu1, and so on"},
    [OPTION_DEVICE_OPTION] = {"device-option", 0, CLI_TEXT, true, DEVICED, 0, "DEV:KEY=VALUE", NULL,
                              "set an option of one device; 'cleave devices -v' lists the keys"},
    [OPTION_PLUGIN] = {"plugin", 0, CLI_TEXT, true, DEVICED, 0, "FILE", NULL,
                       "load a backend from a shared library; its devices have the backend's name. '--devices NAME' also finds "
                       "cleave_NAME.so in the folders of CLEAVE_PLUGIN_PATH and in the installation's plugin folder"},
    [OPTION_THREADS] = {"threads", 0, CLI_NUMBER, false, DEVICED, 1, "N", "one per core", "number of threads of the cpu device"},
    [OPTION_STRATEGY] = {"strategy", 0, CLI_TEXT, false, PLANS, 0, "NAME", "optimal",
                         "how nodes are assigned to devices; see Strategies below"},
    [OPTION_SPLIT] = {"split", 0, CLI_CHOICE, false, PLANS, 0, "linear|convex|fewest", "chosen by the strategy",
                      "how nodes are grouped into partitions. linear: consecutive nodes of the topological order; convex: "
                      "least predicted time; fewest: fewest partitions"},
    [OPTION_OBJECTIVE] = {"objective", 0, CLI_CHOICE, false, PLANS, 0, "latency|overlap|throughput", "latency",
                          "what to minimise. latency: the time of a run whose steps run one after the other; overlap: the time "
                          "of a run in which devices work at the same time; throughput: the time of the busiest device"},
    [OPTION_PROFILE] = {"profile", 0, CLI_TEXT, false, PLANS | CLI_IN(gnn), 0, "FILE", NULL,
                        "measured costs, written by 'cleave profile'; without a profile, costs are estimates"},
    [OPTION_PIN] = {"pin", 0, CLI_PAIR, true, PLANS, 0, "PATTERN=DEV", NULL,
                    "run nodes whose name matches PATTERN on DEV, or fail; * and ? match as in file names"},
    [OPTION_PINS] =
        {"pins", 0, CLI_TEXT, true, PLANS, 0, "FILE", NULL,
         "read pins from a file: one PATTERN=DEV per line; a # at the start of a line or after a blank starts a comment"},
    [OPTION_FORCE] = {"force", 0, CLI_PAIR, true, PLANS, 0, "OP=DEV", NULL,
                      "run all nodes of operator OP on DEV; --pin takes precedence"},
    [OPTION_WEIGHTS] =
        {"weights", 0, CLI_PAIR, true, PLANS, 0, "PATTERN=DEV", NULL,
         "keep weights whose name matches PATTERN in the memory of DEV; the propagate strategies first place the nodes that read "
         "them there"},
    [OPTION_VALUE] =
        {"value", 0, CLI_PAIR, true, PLANS, 0, "NAME=DEV", NULL,
         "keep the input, output or other value NAME in the memory of DEV; the propagate strategies first place the nodes that "
         "compute or read it there"},
    [OPTION_OFFLOAD] = {"offload", 0, CLI_CHOICE, false, PLANS, 0, "auto|on|off", "auto",
                        "whether the propagate strategies give a device the nodes that it prefers although their weights are in "
                        "host memory. auto: unless copying placed weights in every run takes longer than the node gains"},
    [OPTION_SHAPE] = {"shape", 0, CLI_PAIR, true, SIZED | CLI_IN(profile), 0, "INPUT=1x3x224x224", NULL,
                      "set the shape of an input"},
    [OPTION_DIM] = {"dim", 0, CLI_PAIR, true, SIZED | CLI_IN(profile), 0, "NAME=N", NULL, "set the size of a symbolic dimension"},
    [OPTION_MODEL] = {"model", 0, CLI_TEXT, false, SIZED | CLI_IN(gnn), 0, "FILE", "the model that the plan file names",
                      "the model to use with a plan file"},
    [OPTION_PARAMS] = {"params", 0, CLI_TEXT, true, SIZED | CLI_IN(profile), 0, "FILE", NULL,
                       "weights for a model whose file contains none (IR JSON): safetensors or npz"},
    [OPTION_FOLD_LIMIT] = {"fold-limit", 0, CLI_NUMBER, false, SIZED | CLI_IN(profile) | CLI_IN(test), 1, "MIB", "64",
                           "memory, in MiB, for values that follow from constants and are computed when planning, in addition "
                           "to four times the weights; nodes beyond the limit run on a device"},
    [OPTION_NODES] = {"nodes", 0, CLI_FLAG, false, CLI_IN(inspect), 0, NULL, NULL, "list every node with its shapes"},
    [OPTION_OUTPUT] = {"output", 'o', CLI_TEXT, false, CLI_IN(plan) | CLI_IN(profile) | CLI_IN(gnn), 0, "FILE", NULL,
                       "write the result to FILE"},
    [OPTION_FOLDER] = {"output", 'o', CLI_TEXT, false, CLI_IN(compile), 0, "DIR", NULL,
                       "directory to write: a new one, an empty one, or one that 'cleave compile' wrote"},
    [OPTION_SVG] = {"svg", 0, CLI_TEXT, false, CLI_IN(plan), 0, "FILE", NULL, "draw the plan, with one lane per device"},
    [OPTION_DOT] = {"dot", 0, CLI_TEXT, false, CLI_IN(plan), 0, "FILE", NULL, "draw the plan for Graphviz"},
    [OPTION_HTML] = {"html", 0, CLI_TEXT, false, CLI_IN(plan) | CLI_IN(inspect) | CLI_IN(gnn), 0, "FILE", NULL,
                     "write a web page: picture, timeline, comparison of strategies, and an explanation of every node"},
    [OPTION_EXPLAIN] =
        {"explain", 0, CLI_MAYBE_TEXT, false, CLI_IN(plan), 0, "NODE", "all nodes",
         "explain why nodes are on their devices. NODE is a name, an operator or a pattern; give it after MODEL, or "
         "as --explain=NODE"},
    [OPTION_EXPLAIN_PASSES] =
        {"explain-passes", 0, CLI_FLAG, false, CLI_IN(plan), 0, NULL, NULL,
         "print the device (-1: none yet) of every value and node after each pass of propagate, with the cause, such "
         "as 1.off; docs/placement.md explains the causes"},
    [OPTION_COMPARE] = {"compare", 0, CLI_FLAG, false, CLI_IN(plan), 0, NULL, NULL,
                        "compare all strategies, and each device alone"},
    [OPTION_WHAT_IF] =
        {"what-if", 0, CLI_TEXT, true, CLI_IN(plan), 0, "OP@DEV", NULL,
         "predict the plan if DEV also supported operator OP; 'all' ranks every operator that some device does not support"},
    [OPTION_INPUT] = {"input", 0, CLI_TEXT, true, CLI_IN(run) | CLI_IN(bench), 0, "NAME=FILE", "random numbers",
                      "read an input from a .npy, .npz or .pb file; NAME= may be omitted if the model has one input, or for an "
                      "npz file whose arrays have the names of inputs"},
    [OPTION_OUTPUT_DIR] = {"output-dir", 0, CLI_TEXT, false, CLI_IN(run), 0, "DIR", NULL, "write every output to DIR/NAME.npy"},
    [OPTION_DUMP] = {"dump", 0, CLI_TEXT, true, CLI_IN(run), 0, "VALUE", NULL,
                     "also show a value inside the model, and write it with the outputs"},
    [OPTION_VERIFY] = {"verify", 0, CLI_FLAG, false, CLI_IN(run) | CLI_IN(gnn), 0, NULL, NULL,
                       "also run every partition on inputs that the reference evaluator computes, and report the first partition "
                       "whose outputs differ from the reference's"},
    [OPTION_TRACE] = {"trace", 0, CLI_TEXT, false, CLI_IN(run) | CLI_IN(bench) | CLI_IN(gnn), 0, "FILE", NULL,
                      "write a timeline of all devices, for Perfetto (ui.perfetto.dev) or chrome://tracing"},
    [OPTION_SEED] = {"seed", 0, CLI_NUMBER, false, RUNS | CLI_IN(check_backend) | CLI_IN(gnn), 0, "N", "0",
                     "seed of random inputs, of random placements, of random graphs"},
    [OPTION_RUNS] = {"runs", 0, CLI_NUMBER, false, MEASURED | CLI_IN(run) | CLI_IN(gnn), 1, "N",
                     "run: 1; bench: 50; profile: 15 per measurement",
                     "number of runs; 'cleave run' shows and traces the last one"},
    [OPTION_WARMUP] = {"warmup", 0, CLI_NUMBER, false, CLI_IN(bench), 0, "N", "5",
                       "runs before measuring starts, in addition to the first run"},
    [OPTION_DURATION] =
        {"duration", 0, CLI_DURATION, false, CLI_IN(bench), 0, "TIME", NULL,
         "measure for this time, such as 10s, 500ms or 2m, instead of a number of runs; with --runs, until either is "
         "reached"},
    [OPTION_BATCH] = {"batch", 0, CLI_NUMBER, false, CLI_IN(bench), 1, "N", NULL,
                      "set the first dimension of the inputs, which the model must leave open, and count N inferences per run"},
    [OPTION_PERCENTILES] = {"percentiles", 0, CLI_REALS, false, CLI_IN(bench), 0, "P,P,...", "90,99",
                            "percentiles of the run time to report, each from 0 to 100"},
    [OPTION_COMPARE_WITH] =
        {"compare-with", 0, CLI_TEXT, false, CLI_IN(bench), 0, "DEV,DEV,...", NULL,
         "also measure the whole model on each of these devices, such as onnxruntime,openvino, by turns and on the same inputs; "
         "check that the outputs agree, and report the ratio of the run times"},
    [OPTION_CSV] = {"csv", 0, CLI_FLAG, false, CLI_IN(bench), 0, NULL, NULL,
                    "print one line per configuration, with all columns, as comma-separated values"},
    [OPTION_MARKDOWN] = {"markdown", 0, CLI_FLAG, false, CLI_IN(bench), 0, NULL, NULL, "print the table in Markdown"},
    [OPTION_CONTINUE] = {"continue", 0, CLI_FLAG, false, CLI_IN(profile), 0, NULL, NULL,
                         "do not measure again what the file of -o already has"},
    [OPTION_OPERATORS] = {"operators", 0, CLI_FLAG, false, CLI_IN(bench), 0, NULL, NULL,
                          "report FLOP/s, bandwidth and share of the roofline for each operator; with -v, for each step"},
    [OPTION_GRAPH] = {"graph", 0, CLI_CHOICE, false, RUNS, 0, "off|on|auto", "CLEAVE_GRAPH, else auto",
                      "capture the launches of a device and replay them as one. off: never; on: capture the first run of each "
                      "shape; auto: capture the second run"},
    [OPTION_GRAPH_CACHE] =
        {"graph-cache", 0, CLI_NUMBER, false, RUNS, 0, "N", "CLEAVE_GRAPH_CACHE, else 12",
         "number of captured graphs kept per device; the least recently used is evicted first; 0 disables capture"},
    [OPTION_PREFILL_GRAPH] = {"prefill-graph", 0, CLI_CHOICE, false, RUNS, 0, "on|off", "CLEAVE_PREFILL_GRAPH, else off",
                              "also capture runs in which attention with a cache or a causal mask has several queries (prefill), "
                              "not only a single one"},
    [OPTION_BUCKET] = {"bucket", 0, CLI_NUMBER, false, COMPILES, 1, "N",
                       "the plan is for fixed sizes; 64 if a plan file leaves sizes open",
                       "make one plan for all sizes, so that --dim, --shape and --input apply to the runs only. For devices that "
                       "need fixed shapes, sizes are padded to multiples of N, or of a smaller number if that would cost much "
                       "time; 1: compile for each size instead of padding"},
    [OPTION_IN_FLIGHT] = {"in-flight", 0, CLI_NUMBER, false, CLI_IN(bench), 1, "N", "1",
                          "number of requests that run at the same time, 1 to 16, each with its own memory for values between "
                          "partitions"},
    [OPTION_DEVICE_TIME_LIMIT] = {"device-time-limit", 0, CLI_REAL, false, RUNS, 0, "SECONDS", "0, no limit",
                                  "stop using a device if a run waits longer than this for it"},
    [OPTION_NO_FALLBACK] = {"no-fallback", 0, CLI_FLAG, false, CLI_IN(plan) | CLI_IN(run) | CLI_IN(compile) | CLI_IN(bench), 0,
                            NULL, NULL,
                            "if a device is not available or fails, report an error; do not use other devices in its place"},
    [OPTION_CACHE_DIR] = {"cache-dir", 0, CLI_ANY_TEXT, false, COMPILES | CLI_IN(cache) | CLI_IN(gnn), 0, "DIR",
                          "CLEAVE_CACHE_DIR, else 'cleave' in the user's cache directory",
                          "where compiled partitions are kept; empty: do not keep them"},
    [OPTION_MAX_SIZE] = {"max-size", 0, CLI_TEXT, false, CLI_IN(cache), 0, "SIZE", "1G",
                         "prune: keep at most SIZE, such as 500M or 2G; the least recently used files are removed first"},
    [OPTION_MAX_AGE] = {"max-age", 0, CLI_TEXT, false, CLI_IN(cache), 0, "AGE", NULL,
                        "prune: remove files that were not used for AGE, such as 12h or 30d"},
    [OPTION_ALL] = {"all", 0, CLI_FLAG, false, CLI_IN(cache), 0, NULL, NULL, "prune: remove everything"},
    [OPTION_DETERMINISTIC] = {"deterministic", 0, CLI_FLAG, false, COMPILES, 0, NULL, NULL,
                              "do not use faster algorithms that round differently, such as Winograd convolution"},
    [OPTION_TUNE] = {"tune", 0, CLI_FLAG, false, COMPILES, 0, NULL, NULL,
                     "when compiling for the cpu device, measure the alternative algorithms for convolutions and products with "
                     "weights, and choose the fastest. Takes milliseconds per step. The choices are cached per step, library and "
                     "CPU, and used again with --tune; -v shows them. Ignored with --deterministic"},
    [OPTION_PRECISION] = {"precision", 0, CLI_CHOICE, false, COMPILES, 0, "f32|bf16", "as in the model",
                          "bf16: capable devices multiply the f32 values of a model in bf16 and accumulate in f32"},
    [OPTION_RTOL] = {"rtol", 0, CLI_REAL, false, CLI_IN(test), 0, "R", "1e-3; f16 2e-3, bf16 2e-2",
                     "relative tolerance for floats"},
    [OPTION_ATOL] = {"atol", 0, CLI_REAL, false, CLI_IN(test), 0, "A", "1e-7", "absolute tolerance for floats"},
    [OPTION_PLACEMENTS] = {"placements", 0, CLI_NUMBER, false, CLI_IN(test), 0, "N", "0",
                           "also test N random placements per directory; placement k uses seed --seed + k"},
    [OPTION_SECTION] =
        {"section", 0, CLI_TEXT, true, CLI_IN(check_backend), 0, "NAME", "all",
         "section to check, such as life, operators or boundaries; the error message for an unknown NAME lists all "
         "sections"},
    [OPTION_EVERY] = {"every", 0, CLI_NUMBER, false, CLI_IN(check_backend), 1, "N", "1, all",
                      "check only every Nth of the operator cases and random graphs, which are numerous"},
    [OPTION_RMAT] = {"rmat", 0, CLI_NUMBER, false, CLI_IN(gnn), 0, "SCALE", NULL, "the graph has 2^SCALE vertices"},
    [OPTION_EDGES_PER_VERTEX] = {"edges-per-vertex", 0, CLI_NUMBER, false, CLI_IN(gnn), 0, "E", "16",
                                 "average number of edges per vertex"},
    [OPTION_FEATURES] = {"features", 0, CLI_NUMBER, false, CLI_IN(gnn), 0, "F", "0, none",
                         "number of features per vertex, random in [-1, 1)"},
    [OPTION_GNN_X] = {"x", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "FILE", NULL,
                      "read the features from an .npy file, [vertices, features], in place of those of the graph"},
    [OPTION_KSET] = {"kset", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "LIST", "1,2,4,8",
                     "numbers of subgraphs to try, such as 1,2,10..20"},
    [OPTION_SECONDS] = {"seconds", 0, CLI_REAL, false, CLI_IN(gnn) | CLI_IN(profile), 0, "N", "60",
                        "approximate number of seconds for measuring blocks. Whole layers are always measured, then the blocks "
                        "that plans may use, smaller sizes first; 0: measure every block that a device can run, without a limit"},
    [OPTION_GNN_PARTS] =
        {"parts", 0, CLI_TEXT, true, CLI_IN(gnn), 0, "FILE", "METIS partitions the graph",
         "read the part of each vertex from FILE, one number per line, instead of running METIS. gpmetis writes such "
         "files, named GRAPH.part.K for K parts; give one FILE for each number of subgraphs"},
    [OPTION_GNN_GRAPH] = {"graph", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "FILE", NULL, "the graph to run the model on"},
    [OPTION_GNN_PLAN] = {"plan", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "FILE", NULL, "a plan written by 'cleave gnn plan -o'"},
    [OPTION_EFFORT] = {"effort", 0, CLI_CHOICE, false, CLI_IN(gnn), 0, "quick|full", "full",
                       "how thoroughly to search for plans. quick: only move subgraphs, one at a time, off the busiest device; "
                       "full: also search by simulated annealing"},
    [OPTION_TOP_K] = {"top-k", 0, CLI_NUMBER, false, CLI_IN(gnn), 1, "N", "all that may be useful",
                      "number of plans kept per subgraph, in addition to the plans that use a single device"},
    [OPTION_LIST_PEPS] = {"list-peps", 0, CLI_FLAG, false, CLI_IN(gnn), 0, NULL, NULL,
                          "list the candidate execution plans (PEPs) of each subgraph and layer for the chosen k, by their keys"},
    [OPTION_PAD] = {"pad", 0, CLI_NUMBER, false, CLI_IN(gnn), 1, "N", "1000",
                    "pad the numbers of rows and edges to multiples of N on devices that need fixed shapes"},
    [OPTION_EXPORT_DIR] = {"export-dir", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "DIR", NULL,
                           "write every block of the plan as ONNX; for devices that need fixed shapes, once per padded size"},
    [OPTION_INLINE] =
        {"inline", 0, CLI_FLAG, false, CLI_IN(gnn), 0, NULL, NULL,
         "with --export-dir: write standard operators in place of functions, for runtimes that take no functions, such as "
         "OpenVINO"},
    [OPTION_RESUME] = {"resume", 0, CLI_FLAG, false, CLI_IN(gnn), 0, NULL, NULL,
                       "continue after the last layer that an interrupted run with the same --output completed"},
    [OPTION_IMPORT] = {"import", 0, CLI_TEXT, false, CLI_IN(gnn), 0, "CSV", NULL,
                       "read costs measured elsewhere, with the columns n_nodes,n_edges,DEVICE_ms,...,status; a time of None "
                       "means not measured, -1 means out of memory"},
    [OPTION_STAGES] = {"stages", 0, CLI_PAIR, true, CLI_IN(gnn), 0, "DEVICE=FIRST-LAST", "the whole layer",
                       "which stages of a layer the --import times of DEVICE cover: from FIRST, counted from 0, up to but not "
                       "including LAST; npu=4-7 means stages 4, 5 and 6"},
    [OPTION_JSON] = {"json", 0, CLI_FLAG, false, REPORTING, 0, NULL, NULL, "print the result as one JSON document"},
    [OPTION_VERBOSE] = {"verbose", 'v', CLI_FLAG, false, REPORTING, 0, NULL, NULL,
                        "print more, including the library's messages"},
    [OPTION_QUIET] = {"quiet", 'q', CLI_FLAG, false, REPORTING, 0, NULL, NULL, "print less: no notes, no progress"},
    [OPTION_COLOR] = {"color", 0, CLI_CHOICE, false, REPORTING, 0, "auto|always|never", "auto", "use colours"},
    [OPTION_HELP] = {"help", 'h', CLI_FLAG, false, CLI_IN_ALL, 0, NULL, NULL, "show this help"},
};

const cli_option_words cli_option_words_table[] = {
    {CLI_INDEX_bench, OPTION_DEVICES, NULL, "cpu", true},
    {CLI_INDEX_bench, OPTION_THREADS, NULL, NULL, true},
    {CLI_INDEX_bench, OPTION_BATCH, NULL, NULL, true},
    {CLI_INDEX_bench, OPTION_IN_FLIGHT, NULL, NULL, true},
    {CLI_INDEX_inspect, OPTION_HTML, "write a web page: the graph, with attributes, shapes, weights and verdicts of every node",
     NULL, false},
    {CLI_INDEX_plan, OPTION_OUTPUT, "write the plan; run and bench accept it in place of a model", NULL, false},
    {CLI_INDEX_profile, OPTION_OUTPUT,
     "write the measured costs, for --profile of plan, run, bench and test; an existing profile is extended", NULL, false},
    {CLI_INDEX_run, OPTION_RUNS, "number of runs; only the last one is shown and traced", "1", false},
    {CLI_INDEX_bench, OPTION_RUNS, "number of measured runs", "50", false},
    {CLI_INDEX_profile, OPTION_SECONDS,
     "end after about N seconds, with a profile of what was measured until then; the devices share the time", "no limit", false},
    {CLI_INDEX_profile, OPTION_RUNS, "how often to repeat each measurement; the median is used", "15", false},
    {CLI_INDEX_run, OPTION_SEED, "seed of random inputs", NULL, false},
    {CLI_INDEX_bench, OPTION_SEED, "seed of random inputs", NULL, false},
    {CLI_INDEX_test, OPTION_SEED, "seed of random placements", NULL, false},
    {CLI_INDEX_check_backend, OPTION_SEED, "seed of all random choices", NULL, false},
};
const uint32_t cli_option_words_count = sizeof cli_option_words_table / sizeof *cli_option_words_table;
