/* Finds and reads the files of ONNX test directories. */
#ifndef CLEAVE_CLI_TEST_DATA_H
#define CLEAVE_CLI_TEST_DATA_H

#include "cleave/tensors.h"
#include "cli/command.h"

/* A data set: test_data_set_N with input_K.pb and output_K.pb. */
typedef struct cli_data_set {
  const char *name;    /* "test_data_set_0" */
  clv_tensor *inputs;  /* in graph input order; dtype none if there is no file */
  clv_tensor *outputs; /* in graph output order; dtype none if there is no file */
  uint32_t input_count, output_count;
  clv_arrays **files; /* own the memory of the tensors: input_count + output_count of them; NULL: no file */
} cli_data_set;

typedef struct cli_test_paths {
  const char **items;
  size_t count, capacity;
} cli_test_paths;

/* Appends `path` if it contains a model.onnx; otherwise the test directories below it, by name; otherwise `path` itself. Paths
 * are in `arena`. */
clv_status cli_test_find(cli_arena *arena, const char *path, cli_test_paths *paths, clv_error *error);

/* Reads every data set of a directory, in numeric order. Call cli_test_release() afterwards, also on failure. */
clv_status cli_test_read(clv_context *context, cli_arena *arena, const char *path, const clv_graph *graph, cli_data_set **sets,
                         uint32_t *count, clv_error *error);
void cli_test_release(cli_data_set *sets, uint32_t count);

#endif
