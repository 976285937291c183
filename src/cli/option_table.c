/* The options, in the order of the help texts. */
#include "cli/options.h"

#define PLANS (CLI_IN(plan) | CLI_IN(run) | CLI_IN(bench) | CLI_IN(test))
#define RUNS (CLI_IN(run) | CLI_IN(bench) | CLI_IN(test))
#define SIZED (CLI_IN(inspect) | CLI_IN(plan) | CLI_IN(run) | CLI_IN(bench))

const cli_option cli_option_table[OPTION_COUNT] = {
    [OPTION_DEVICES] = {"devices", 0, CLI_TEXT, false, CLI_IN_ALL, 0, "LIST", "cpu",
                        "devices in the order of priority: npu,cpu; auto takes every real one found, the CPU last"},
    [OPTION_NPU_SPEC] = {"npu-spec", 0, CLI_TEXT, true, CLI_IN_ALL, 0, "SPEC", "default",
                         "what the virtual NPU is: default, all (takes every operator), or a description file; the first is "
                         "npu, the second npu1, ..."},
    [OPTION_DEVICE_OPTION] = {"device-option", 0, CLI_TEXT, true, CLI_IN_ALL, 0, "DEV:KEY=VALUE", NULL,
                              "a setting of one device; a wrong KEY names those there are"},
    [OPTION_THREADS] = {"threads", 0, CLI_NUMBER, false, CLI_IN_ALL, 1, "N", "one a core", "threads of the cpu device"},
    [OPTION_STRATEGY] = {"strategy", 0, CLI_TEXT, false, PLANS, 0, "NAME", "contiguous", "how nodes are placed"},
    [OPTION_PIN] = {"pin", 0, CLI_PAIR, true, PLANS, 0, "PATTERN=DEV", NULL,
                    "nodes whose name matches run there, or the plan is refused; * and ? as in file names"},
    [OPTION_PINS] = {"pins", 0, CLI_TEXT, true, PLANS, 0, "FILE", NULL,
                     "pins from a file: a PATTERN=DEV a line, # at its begin or after a blank begins a comment"},
    [OPTION_FORCE] = {"force", 0, CLI_PAIR, true, PLANS, 0, "OP=DEV", NULL,
                      "all nodes of an operator run there; a pin wins over it"},
    [OPTION_SHAPE] = {"shape", 0, CLI_PAIR, true, SIZED, 0, "INPUT=1x3x224x224", NULL, "the shape of an input"},
    [OPTION_DIM] = {"dim", 0, CLI_PAIR, true, SIZED, 0, "NAME=N", NULL, "the size of a symbolic dimension"},
    [OPTION_MODEL] = {"model", 0, CLI_TEXT, false, SIZED, 0, "FILE", "as the plan file says", "the model of a plan file"},
    [OPTION_NODES] = {"nodes", 0, CLI_FLAG, false, CLI_IN(inspect), 0, NULL, NULL, "list every node with its shapes"},
    [OPTION_OUTPUT] = {"output", 'o', CLI_TEXT, false, CLI_IN(plan), 0, "FILE", NULL,
                       "write the plan as JSON, for run and bench"},
    [OPTION_SVG] = {"svg", 0, CLI_TEXT, false, CLI_IN(plan), 0, "FILE", NULL, "draw the plan: a lane a device"},
    [OPTION_DOT] = {"dot", 0, CLI_TEXT, false, CLI_IN(plan), 0, "FILE", NULL, "write the plan for graphviz"},
    [OPTION_EXPLAIN] = {"explain", 0, CLI_MAYBE_TEXT, false, CLI_IN(plan), 0, "NODE", "all nodes",
                        "why nodes are where they are; NODE is a name, an operator or a pattern, and comes after MODEL or "
                        "with ="},
    [OPTION_INPUT] = {"input", 0, CLI_TEXT, true, CLI_IN(run) | CLI_IN(bench), 0, "NAME=FILE", "seeded random numbers",
                      "an input's data, .npy or .pb; NAME= may be left out where the model has one input"},
    [OPTION_OUTPUT_DIR] = {"output-dir", 0, CLI_TEXT, false, CLI_IN(run), 0, "DIR", NULL, "write every output as DIR/NAME.npy"},
    [OPTION_DUMP] = {"dump", 0, CLI_TEXT, true, CLI_IN(run), 0, "VALUE", NULL,
                     "show an inner value too, and write it with the outputs"},
    [OPTION_VERIFY] = {"verify", 0, CLI_FLAG, false, CLI_IN(run), 0, NULL, NULL,
                       "run every partition on the reference's inputs and name the first that differs"},
    [OPTION_SEED] = {"seed", 0, CLI_NUMBER, false, RUNS, 0, "N", "0", "of random inputs, and of random placements"},
    [OPTION_RUNS] = {"runs", 0, CLI_NUMBER, false, CLI_IN(bench), 1, "N", "50", "runs that are measured"},
    [OPTION_WARMUP] = {"warmup", 0, CLI_NUMBER, false, CLI_IN(bench), 0, "N", "5", "runs before that, beside the very first"},
    [OPTION_DETERMINISTIC] = {"deterministic", 0, CLI_FLAG, false, RUNS, 0, NULL, NULL, "no algorithm that changes rounding"},
    [OPTION_TUNE] = {"tune", 0, CLI_FLAG, false, RUNS, 0, NULL, NULL, "measure to choose algorithms"},
    [OPTION_RTOL] = {"rtol", 0, CLI_REAL, false, CLI_IN(test), 0, "R", "1e-3; f16 2e-3, bf16 2e-2",
                     "relative tolerance of floats"},
    [OPTION_ATOL] = {"atol", 0, CLI_REAL, false, CLI_IN(test), 0, "A", "1e-7", "absolute tolerance of floats"},
    [OPTION_PLACEMENTS] = {"placements", 0, CLI_NUMBER, false, CLI_IN(test), 0, "N", "0",
                           "try N random placements a directory as well; number k has seed --seed + k"},
    [OPTION_JSON] = {"json", 0, CLI_FLAG, false, CLI_IN_ALL, 0, NULL, NULL, "print one JSON document"},
    [OPTION_VERBOSE] = {"verbose", 'v', CLI_FLAG, false, CLI_IN_ALL, 0, NULL, NULL, "print more, and the library's messages"},
    [OPTION_QUIET] = {"quiet", 'q', CLI_FLAG, false, CLI_IN_ALL, 0, NULL, NULL, "print less: no notes, no progress"},
    [OPTION_COLOR] = {"color", 0, CLI_CHOICE, false, CLI_IN_ALL, 0, "auto|always|never", "auto", "colours in what is printed"},
    [OPTION_HELP] = {"help", 'h', CLI_FLAG, false, CLI_IN_ALL, 0, NULL, NULL, "show this text"},
};
