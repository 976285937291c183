/* See trace.h. */
#include "report/gnn/trace.h"

static void append_device(clv__text *text, uint32_t device, const char *name) {
  clv__text_append(text, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"name\": \"thread_name\", \"args\": {\"name\": \"", device);
  for (const char *at = name; *at != '\0'; ++at) {
    if (*at == '"' || *at == '\\') clv__text_append(text, "\\");
    if ((unsigned char)*at >= ' ') clv__text_append(text, "%c", *at);
  }
  clv__text_append(text, "\"}}");
}

static void append_span(clv__text *text, const clv__gnn_task *task, const char *name, uint64_t begin_ns, uint64_t end_ns) {
  if (end_ns <= begin_ns) return;
  clv__text_append(text, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %u, \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f}",
                   task->device, name, 1e-3 * (double)begin_ns, 1e-3 * (double)(end_ns - begin_ns));
}

static void append_task(clv__text *text, const clv__gnn_task *task, const clv__stages *stages) {
  clv__text_append(
      text,
      ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %u, \"name\": \"layer %u, subgraph %u: %s to %s\", \"ts\": %.3f, \"dur\": %.3f",
      task->device, task->layer, task->subgraph, clv__stage_name(stages->items[task->first]),
      clv__stage_name(stages->items[task->last - 1]), 1e-3 * (double)task->begin_ns,
      1e-3 * (double)(task->end_ns - task->begin_ns));
  clv__text_append(
      text,
      ", \"args\": {\"predicted_us\": %.3f, \"cluster\": %u, \"block\": %u, \"part\": %u, \"rows\": %llu, \"edges\": %llu, "
      "\"padded_rows\": %llu, \"padded_edges\": %llu}}",
      1e-3 * task->predicted_ns, task->cluster, task->block, task->part, (unsigned long long)task->sizes.rows,
      (unsigned long long)task->sizes.edges, (unsigned long long)task->padded.rows, (unsigned long long)task->padded.edges);
  append_span(text, task, "gather and pad", task->begin_ns, task->packed_ns);
  append_span(text, task, "lay out", task->computed_ns, task->end_ns);
}

void clv__report_gnn_trace(const clv__gnn_record *record, const clv__machine *machine, const clv__stages *stages,
                           clv__text *text) {
  clv__text_append(text, "{\"traceEvents\": [\n");
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    if (d > 0) clv__text_append(text, ",\n");
    append_device(text, d, machine->devices[d].name);
  }
  for (uint32_t t = 0; t < record->task_count; ++t) {
    const clv__gnn_task *task = &record->tasks[t];
    if (task->end_ns > 0) append_task(text, task, &stages[task->layer]);
  }
  clv__text_append(text, "\n]}\n");
}
