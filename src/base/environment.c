/* See environment.h. */
#include "base/environment.h"

#include <stdlib.h>

#define BOOLEANS "0, 1, on, off, true, false, yes or no"

const clv__variable_info clv__variables[CLV__VARIABLE_COUNT] = {
    [CLV__VARIABLE_GRAPH] = {"CLEAVE_GRAPH", "auto, " BOOLEANS, "same as --graph"},
    [CLV__VARIABLE_GRAPH_CACHE] = {"CLEAVE_GRAPH_CACHE", "a whole number from 0 to 2147483647", "same as --graph-cache"},
    [CLV__VARIABLE_PREFILL_GRAPH] = {"CLEAVE_PREFILL_GRAPH", BOOLEANS, "same as --prefill-graph"},
    [CLV__VARIABLE_CACHE_DIR] = {"CLEAVE_CACHE_DIR", NULL, "same as --cache-dir"},
    [CLV__VARIABLE_ISA] = {"CLEAVE_ISA", "v2, v3 or v4", "the highest x86-64 level whose instructions may be used"},
    [CLV__VARIABLE_PLUGIN_PATH] = {"CLEAVE_PLUGIN_PATH", NULL, "folders to search for plugins, separated by colons"},
    [CLV__VARIABLE_OPENVINO] = {"CLEAVE_OPENVINO", NULL, "OpenVINO's C library, or the folder that contains it"},
    [CLV__VARIABLE_ONNXRUNTIME] = {"CLEAVE_ONNXRUNTIME", NULL, "ONNX Runtime's library, or the folder that contains it"},
    [CLV__VARIABLE_TORCH] = {"CLEAVE_TORCH", NULL, "PyTorch's CPU library (libtorch_cpu.so), or the folder that contains it"},
    [CLV__VARIABLE_VIRTUAL_ENV] = {"VIRTUAL_ENV", NULL, NULL},
    [CLV__VARIABLE_XDG_CACHE_HOME] = {"XDG_CACHE_HOME", NULL,
                                      "the user's cache directory; default: .cache in the home directory"},
    [CLV__VARIABLE_HOME] = {"HOME", NULL, NULL},
    [CLV__VARIABLE_NO_COLOR] = {"NO_COLOR", NULL, "if not empty, output has no colours unless --color is 'always'"},
    [CLV__VARIABLE_TERM] = {"TERM", NULL, NULL},
};

const char *clv__environment_get(clv__variable variable) {
  return getenv(clv__variables[variable].name);
}
