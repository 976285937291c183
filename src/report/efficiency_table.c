/* Writes the results as text. See efficiency.h. */
#include "report/efficiency.h"
#include "report/label.h"
#include "report/table.h"

enum { NAME_COLUMNS = 44, IMPLEMENTATION_COLUMNS = 28 };

static void real_cell(clv__table *table, const char *format, double number) {
  char text[CLV__LABEL_BYTES];
  snprintf(text, sizeof text, format, number);
  clv__table_cell(table, "%s", number >= 0 ? text : "–");
}

static void rate_cells(clv__table *table, double flops, double bytes, double ms) {
  real_cell(table, "%.1f", flops > 0 ? clv__per_second(flops, ms) / 1e9 : -1);
  real_cell(table, "%.1f", bytes > 0 ? clv__per_second(bytes, ms) / 1e9 : -1);
}

/* Adds three cells: the resource that bounds the time (`bound`), the bound as a share of the time, and the time above the bound.
 */
static void roof_cells(clv__table *table, const char *bound, double roof_ms, double ms, double lost_ms) {
  clv__table_cell(table, "%s", roof_ms > 0 ? bound : "–");
  real_cell(table, "%.0f %%", roof_ms > 0 && ms > 0 ? 100 * roof_ms / ms : -1);
  real_cell(table, "%.3f", lost_ms);
}

static double share(const clv__efficiency *e, double ms) {
  return e->ms > 0 ? 100 * ms / e->ms : 0;
}

static void write_rows(const clv__efficiency *e, bool bold, clv__text *text) {
  static const char *const titles[] = {"operator", "device", "count", "ms",       "share",
                                       "GFLOP/s",  "GB/s",   "bound", "roofline", "lost ms"};
  const clv_devices *devices = clv__session_plan(e->session)->devices;
  clv__table table;
  clv__table_init(&table, text->allocator, "llrrrrrlrr", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  uint32_t count = 0;
  double flops = 0, lost_ms = 0;
  for (uint32_t r = 0; r < e->row_count; ++r) {
    const clv__op_row *row = &e->rows[r];
    clv__table_cell(&table, "%s", row->label);
    clv__table_cell(&table, "%s", devices->items[row->device].name);
    clv__table_cell(&table, "%u", row->count);
    clv__table_cell(&table, "%.3f", row->ms);
    clv__table_cell(&table, "%.1f %%", share(e, row->ms));
    rate_cells(&table, row->flops, row->bytes, row->ms);
    const bool is_known = clv__op_row_is_known(row);
    roof_cells(&table, 2 * row->compute_ms > row->roof_ms ? "compute" : "memory", is_known ? row->roof_ms : -1, row->roofed_ms,
               is_known ? row->lost_ms : -1);
    lost_ms += row->lost_ms;
    count += row->count;
    flops += row->flops;
  }
  clv__table_cell(&table, "total");
  clv__table_cell(&table, "%s", "");
  clv__table_cell(&table, "%u", count);
  clv__table_cell(&table, "%.3f", e->ms);
  clv__table_cell(&table, "100 %%");
  rate_cells(&table, flops, -1, e->ms);
  clv__table_cell(&table, "%s", "");
  real_cell(&table, "%.0f %%", e->ms > 0 ? 100 * e->roof_ms / e->ms : -1);
  real_cell(&table, "%.3f", lost_ms);
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

/* Adds a cell that identifies a step: the name of its first node, and the number of further nodes. */
static void node_cell(const clv__efficiency *e, const clv__op_step *step, clv__table *table) {
  const clv_graph *graph = clv__session_plan(e->session)->graph;
  const clv_node_id node = step->kind == CLV__STEP_OF_NODES ? step->nodes[0] : step->beside;
  clv__text name;
  clv__text_init(&name, graph->allocator);
  if (node != CLV__NO_ID) clv__label_short(&name, graph->nodes[node].name, NAME_COLUMNS);
  if (step->kind == CLV__STEP_OF_NODES && step->node_count > 1) clv__text_append(&name, " and %u more", step->node_count - 1);
  clv__table_cell(table, "%s", name.failed ? "" : name.data);
  clv__text_finish(&name);
}

static void write_steps(const clv__efficiency *e, bool bold, clv__text *text) {
  static const char *const titles[] = {"step",    "device", "node",  "implementation", "ms",
                                       "GFLOP/s", "GB/s",   "bound", "roofline",       "lost ms"};
  const clv_devices *devices = clv__session_plan(e->session)->devices;
  clv__table table;
  clv__table_init(&table, text->allocator, "llllrrrlrr", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t s = 0; s < e->step_count; ++s) {
    const clv__op_step *step = &e->steps[s];
    clv__text by;
    clv__text_init(&by, text->allocator);
    clv__label_short(&by, step->implementation, IMPLEMENTATION_COLUMNS);
    clv__table_cell(&table, "%s", step->label);
    clv__table_cell(&table, "%s", devices->items[step->device].name);
    node_cell(e, step, &table);
    clv__table_cell(&table, "%s", by.failed ? "" : by.data);
    clv__table_cell(&table, "%.3f", step->ms);
    rate_cells(&table, step->work.flops, step->bytes, step->ms);
    roof_cells(&table, step->by_compute ? "compute" : "memory", step->roof_ms, step->ms, clv__lost_ms(step));
    clv__text_finish(&by);
  }
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
  clv__text_append(text, "\n");
}

static void write_peaks(const clv__efficiency *e, clv__text *text) {
  const clv_devices *devices = clv__session_plan(e->session)->devices;
  char number[CLV__LABEL_BYTES], size[CLV__LABEL_BYTES];
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv__peaks *peaks = &e->peaks[d];
    const char *separator = " ";
    if (!e->has_peaks[d]) continue;
    clv__text_append(text, "Peaks of %s, measured", devices->items[d].name);
    if (peaks->thread_count > 0)
      clv__text_append(text, " with %u thread%s", peaks->thread_count, peaks->thread_count > 1 ? "s" : "");
    clv__text_append(text, ":");
    for (uint32_t p = 0; p < CLV__PEAK_COUNT; ++p) {
      if (peaks->flops_per_second[p] <= 0) continue;
      clv__text_append(text, "%s%s %sFLOP/s", separator, clv__peak_name((clv__peak)p),
                       clv__label_count(peaks->flops_per_second[p], number));
      separator = ", ";
    }
    if (peaks->size_count > 0) {
      const double memory = clv__peaks_bandwidth(peaks, (double)peaks->sizes_bytes[peaks->size_count - 1]);
      clv__text_append(text, "%smemory %sB/s", separator, clv__label_count(memory, number));
      separator = ", ";
    }
    if (peaks->size_count > 1) {
      const uint32_t middle = peaks->size_count / 2;
      clv__text_append(text, " (for data of %s: ", clv__label_size(peaks->sizes_bytes[middle], size));
      clv__text_append(text, "%sB/s)", clv__label_count(clv__peaks_bandwidth(peaks, (double)peaks->sizes_bytes[middle]), number));
    }
    clv__text_append(text, "%s\n", separator[0] == ' ' ? " unknown." : ".");
  }
}

void clv__efficiency_write(const clv__efficiency *e, double plain_ms, bool all, bool bold, clv__text *text) {
  const clv_devices *devices = clv__session_plan(e->session)->devices;
  if (all) write_steps(e, bold, text);
  write_rows(e, bold, text);
  clv__text_append(
      text,
      "'roofline' is the least possible time as a share of the measured time. 'lost ms' is the measured time above the "
      "least possible.\n"
      "FLOPs are those of the direct algorithm for convolutions. Winograd's algorithm needs fewer, so its 'roofline' can exceed "
      "100 %%.\n");
  write_peaks(e, text);
  if (plain_ms > 0) {
    clv__text_append(text, "The least possible time of the model is %.3f ms, %.0f %% of the %.3f ms that a run takes.\n",
                     e->roof_ms, 100 * e->roof_ms / plain_ms, plain_ms);
  }
  clv__text_append(
      text, "Times are medians of %u separate runs. Reading the clock at every step makes these runs longer: %.3f ms in total.\n",
      e->run_count, e->ms);
  for (uint32_t d = 0; d < devices->count; ++d) {
    if ((e->silent >> d & 1u) == 0) continue;
    clv__text_append(text, "%s does not report times of its steps, so each of its partitions is one row.\n",
                     devices->items[d].name);
  }
  if (e->idle_count > 0) {
    clv__text_append(text, "No device does any work for ");
    clv__label_plural(text, e->idle_count, "node");
    clv__text_append(text, ": views, and nodes computed when planning, need none.\n");
  }
}
