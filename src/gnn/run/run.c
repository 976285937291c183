/* Runs layer after layer and collects the results. See run.h. */
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file_writer.h"
#include "gnn/run/own.h"

/* Counts the layers of a resumed state as done. */
static void skip_layers(clv__gnn_run *run, uint32_t layers) {
  run->first_layer = layers;
  run->weight_done = 0;
  run->tasks_done = 0;
  for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
    clv__run_layer *layer = &run->layers[i];
    run->layer_ns[i] = 0;
    for (uint32_t t = 0; t < layer->task_count; ++t) {
      clv__gnn_task *said = &layer->tasks[t].said;
      said->begin_ns = said->packed_ns = said->computed_ns = said->end_ns = 0;
      if (i < layers) run->weight_done += layer->tasks[t].weight;
    }
    if (i < layers) run->tasks_done += layer->task_count;
  }
  run->weight_begun = run->weight_done;
}

static clv_status run_layers(clv__gnn_run *run, const clv_tensor *features, clv_tensor *out, const clv__gnn_run_options *options,
                             const clv__hash *key, clv_error *error) {
  uint32_t count = run->schedule->layer_count;
  const uint32_t *order = run->is_in_order ? NULL : run->rows;
  uint64_t spent_ns = 0;
  for (uint32_t i = run->first_layer; i < count; ++i) {
    uint32_t width = clv__gnn_layer_width(&run->model->layers[i]);
    clv__run_rows in = {run->between[(i + 1) % 2], order, run->model->layers[i].in}, result = {run->between[i % 2], order, width};
    if (i == 0) in = (clv__run_rows){features->data, NULL, in.columns};
    if (i + 1 == count) result = (clv__run_rows){out->data, NULL, width};
    uint64_t begin_ns = clv__clock_ns();
    /* Excludes the state file's time, so that layers follow each other directly, as predicted. */
    CLV__TRY(clv__run_layer_execute(run, i, &in, &result, options, begin_ns - spent_ns, error));
    uint64_t end_ns = clv__clock_ns();
    run->layer_ns[i] = (double)(end_ns - begin_ns);
    spent_ns += end_ns - begin_ns;
    if (key == NULL || i + 1 == count) continue;
    CLV__TRY(clv__run_state_write(options->state_path, key, i + 1, result.data, (size_t)run->vertex_count * width, error));
    run->state_ns += (double)(clv__clock_ns() - end_ns);
  }
  return CLV_OK;
}

clv_status clv__gnn_run_execute(clv__gnn_run *run, const clv_tensor *features, clv_tensor *out,
                                const clv__gnn_run_options *options, clv_error *error) {
  static const clv__gnn_run_options plain = CLV__GNN_RUN_OPTIONS_INIT;
  clv__hash key;
  uint32_t layers_done = 0;
  if (options == NULL) options = &plain;
  if (features == NULL) features = &run->graph->features;
  bool keeps = options->state_path != NULL && run->schedule->layer_count > 1;
  if (keeps) clv__file_writer_sweep(options->state_path);
  if (keeps) clv__run_state_key(run, features, &key);
  if (keeps && options->resume) {
    /* The layer after which the file was written determines in which of the two buffers its rows belong. They are read into
     * the first buffer, which always exists, and the buffers are swapped if necessary. */
    float *rows = run->between[0];
    CLV__TRY(clv__run_state_read(run, options->state_path, &key, &layers_done, rows, error));
    if (layers_done > 0 && layers_done % 2 == 0) {
      run->between[0] = run->between[1];
      run->between[1] = rows;
    }
  }
  run->state_ns = 0;
  skip_layers(run, layers_done);
  return run_layers(run, features, out, options, keeps ? &key : NULL, error);
}

void clv__gnn_run_forget(const char *state_path) {
  unlink(state_path);
}

/* ---- Results of a run ---- */

/* A device switches if its next task in the layer belongs to another cluster. */
static uint32_t count_switches(const clv__gnn_run *run) {
  uint32_t switches = 0;
  for (uint32_t d = 0; d < run->schedule->machine->device_count; ++d) {
    for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
      uint32_t last = CLV__NO_ID;
      for (uint32_t t = 0; t < run->layers[i].task_count; ++t) {
        const clv__gnn_task *said = &run->layers[i].tasks[t].said;
        if (said->device != d) continue;
        switches += last != CLV__NO_ID && last != said->cluster;
        last = said->cluster;
      }
    }
  }
  return switches;
}

void clv__gnn_run_record(const clv__gnn_run *run, clv__gnn_record *record) {
  uint32_t used = 0;
  *record = (clv__gnn_record){.tasks = run->said,
                              .task_count = run->task_count,
                              .first_layer = run->first_layer,
                              .layer_ns = run->layer_ns,
                              .state_ns = run->state_ns,
                              .switches = count_switches(run),
                              .executables = (uint32_t)run->block_count};
  for (uint32_t d = 0; d < run->schedule->machine->device_count; ++d) record->taken_bytes[d] = run->spaces[d].taken_bytes;
  for (uint32_t i = 0; i < run->schedule->layer_count; ++i) {
    const clv__run_layer *layer = &run->layers[i];
    record->measured_ns += run->layer_ns[i];
    record->cluster_count += layer->cluster_count;
    for (uint32_t t = 0; t < layer->task_count; ++t) {
      const clv__gnn_task *said = &layer->tasks[t].said;
      run->said[used++] = *said;
      record->halo_rows += said->sizes.rows - said->sizes.targets;
      record->packed_rows += said->padded.rows - said->sizes.rows;
      record->packed_edges += said->padded.edges - said->sizes.edges;
    }
  }
}
