/* Selects the blocks to measure, their order and their time. See measure_own.h. */
#include "gnn/measure/measure_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "gnn/measure/point.h"

/* A block is needless if it takes more than LONGER times as long as the whole layer on the same device: it would be better to
 * give that device all stages of the subgraph. Layers that take less than LEAST_NS are not compared, because of noise. */
#define LONGER 1.25
#define LEAST_NS 1e6
#define FIRST_PART 0.5 /* sizes of is_first entries that no fit needs are measured within this fraction of the time limit */

/* Added to the work of every size, because a measurement takes time however short the block's run is. */
enum { LEAST_WORK = 1000 };

/* ---- Selecting blocks ---- */

static bool runs(const clv__gnn_planning *p, uint32_t layer, uint32_t device, uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    if ((p->machine.devices[device].cannot >> p->chains[layer].stages[s] & 1u) != 0) return false;
  }
  return p->runs[layer]->runs[device][first][last] && !p->chains[layer].blocks[first][last].is_empty;
}

/* Counts devices in the tables that are not among the open ones. It is unknown which blocks they run. */
static uint32_t count_strangers(const clv__measuring *m) {
  uint32_t count = 0;
  for (uint32_t t = 0; t < m->tables->device_count; ++t) {
    bool is_stranger = true;
    for (uint32_t d = 0; d < m->planning->machine.device_count; ++d)
      is_stranger = is_stranger && strcmp(m->planning->machine.devices[d].name, m->tables->devices[t].name) != 0;
    count += is_stranger;
  }
  return count < CLV__PEP_BLOCKS ? count : CLV__PEP_BLOCKS;
}

/* Returns whether `left` blocks on devices outside `used` can cover stages `at` to the last. If `wanted` starts at or after
 * `at`, it must be among them. */
static bool can_hold(const clv__measuring *m, const clv__measure_entry *wanted, uint32_t at, uint32_t used, uint32_t left) {
  const clv__gnn_planning *p = m->planning;
  uint32_t stages = p->chains[wanted->layer].stage_count, devices = p->machine.device_count;
  if (at == stages) return true;
  if (left == 0) return false;
  if (at == wanted->first) return can_hold(m, wanted, wanted->last, used, left - 1);
  for (uint32_t end = at + 1; end <= (at < wanted->first && wanted->first < stages ? wanted->first : stages); ++end) {
    for (uint32_t d = 0; d < devices + m->strangers; ++d) {
      if ((used >> d & 1u) != 0 || (d < devices && !runs(p, wanted->layer, d, at, end))) continue;
      if (can_hold(m, wanted, end, used | 1u << d, left - 1)) return true;
    }
  }
  return false;
}

/* Returns whether to measure the block: its device must run it and, if time is limited, some plan must be able to contain it. If
 * no plan of the layer is possible on these devices alone, every block is wanted, because other devices may be measured later. */
static bool is_wanted(const clv__measuring *m, const clv__measure_entry *entry) {
  const clv__gnn_planning *p = m->planning;
  const clv__measure_entry nothing = {.layer = entry->layer, .first = CLV__TABLE_STAGES};
  for (uint32_t before = 0; before < entry->layer; ++before) { /* identical layers share one table */
    if (strcmp(p->chains[before].layer, p->chains[entry->layer].layer) == 0) return false;
  }
  if (!runs(p, entry->layer, entry->device, entry->first, entry->last)) return false;
  if (m->options->limit_s <= 0 || can_hold(m, entry, 0, 1u << entry->device, CLV__PEP_BLOCKS)) return true;
  return !can_hold(m, &nothing, 0, 0, CLV__PEP_BLOCKS);
}

static clv__layer_sizes trial_sizes(const clv__measure_entry *entry) {
  return entry->sizes.items[entry->trial == CLV__NO_ID ? 0 : entry->trial].sizes;
}

static uint64_t moved_bytes(const clv__gnn_planning *p, const clv__measure_entry *entry, clv__layer_sizes sizes) {
  const clv__stages *stages = &p->stages[entry->layer];
  uint64_t reads = clv__layer_set_bytes(stages, clv__block_reads(stages, entry->first, entry->last, false), sizes);
  uint64_t makes = clv__layer_set_bytes(stages, clv__block_makes(stages, entry->first, entry->last), sizes);
  return reads > makes ? reads : makes;
}

static clv_status add(clv__measuring *m, clv__measure_entry *entry, size_t *capacity, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  const clv__chain_block *block = &p->chains[entry->layer].blocks[entry->first][entry->last];
  if (!clv__array_reserve(p->arena.allocator, (void **)&m->entries, capacity, m->count + 1u, sizeof *entry, m->count))
    return clv__error_memory(error, sizeof *entry);
  clv__measure_sizes_find(p, block, p->machine.devices[entry->device].is_static, m->options->steps, &entry->sizes);
  /* The trial (measure_own.h) is at a middle size that an actual share has, and that has enough smaller sizes below it for a
   * fit. */
  uint32_t count = entry->sizes.count, middle = count / 2;
  if (middle + 1 < CLV__MEASURE_ENOUGH && count > 0) middle = count < CLV__MEASURE_ENOUGH ? count - 1 : CLV__MEASURE_ENOUGH - 1;
  while (middle > 0 && entry->sizes.items[middle].share.targets == 0) --middle;
  entry->trial = entry->sizes.count > 0 && entry->sizes.items[middle].share.targets > 0 ? middle : CLV__NO_ID;
  if (entry->sizes.count > 0) m->entries[m->count++] = *entry;
  return CLV_OK;
}

/* Sorts the entries: those with is_first in the order found, then the others by the bytes that they read or compute at their
 * trial size. */
static void sort(clv__measuring *m) {
  for (uint32_t i = 1; i < m->count; ++i) {
    clv__measure_entry entry = m->entries[i];
    uint64_t moved = moved_bytes(m->planning, &entry, trial_sizes(&entry));
    uint32_t at = i;
    for (; at > 0; --at) {
      const clv__measure_entry *other = &m->entries[at - 1];
      if (other->is_first || (!entry.is_first && moved_bytes(m->planning, other, trial_sizes(other)) <= moved)) break;
      m->entries[at] = *other;
    }
    m->entries[at] = entry;
  }
}

clv_status clv__measure_entries_find(clv__measuring *m, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  size_t capacity = 0;
  m->strangers = count_strangers(m);
  for (uint32_t layer = 0; layer < p->model->layer_count; ++layer) {
    uint32_t stages = p->chains[layer].stage_count;
    for (uint32_t d = 0; d < p->machine.device_count; ++d) {
      bool has_first = false;
      for (uint32_t length = stages; length > 0; --length) {
        for (uint32_t first = 0; first + length <= stages; ++first) {
          clv__measure_entry entry = {.layer = layer, .device = d, .first = first, .last = first + length};
          if (!is_wanted(m, &entry)) continue;
          entry.is_first = !has_first;
          has_first = true;
          CLV__TRY(add(m, &entry, &capacity, error));
        }
      }
    }
  }
  sort(m);
  m->measured->blocks = m->count;
  return CLV_OK;
}

void clv__measure_entries_finish(clv__measuring *m) {
  clv__release(m->planning->arena.allocator, m->entries);
  m->entries = NULL;
}

uint64_t clv__measure_entries_bytes(const clv__measuring *m, bool all) {
  uint64_t most = 0;
  for (uint32_t e = 0; e < m->count; ++e) {
    const clv__measure_entry *entry = &m->entries[e];
    for (uint32_t s = 0; s < entry->sizes.count && !entry->is_needless; ++s) {
      if (!all && !entry->is_first && s != entry->trial) continue;
      uint64_t moved = moved_bytes(m->planning, entry, entry->sizes.items[s].sizes);
      most = moved > most ? moved : most;
    }
  }
  return most;
}

/* ---- The time limit ---- */

static double work_of(const clv__measure_entry *entry, uint32_t size) {
  const clv__layer_sizes *sizes = &entry->sizes.items[size].sizes;
  return LEAST_WORK + (double)sizes->rows + (double)sizes->edges;
}

static bool is_done(const clv__measure_entry *entry, uint32_t size) {
  const clv__layer_sizes *sizes = &entry->sizes.items[size].sizes, *large = &entry->too_large;
  bool is_too_large = large->rows > 0 && sizes->rows >= large->rows && sizes->edges >= large->edges;
  return (entry->done >> size & 1u) != 0 || is_too_large;
}

/* Returns the measured time per unit of work: of the block itself or, before it is measured, of its device or of all devices.
 * Negative if nothing is measured yet. */
static double pace_of(const clv__measuring *m, const clv__measure_entry *entry) {
  double spent[2] = {0, 0}, work[2] = {0, 0};
  if (entry->work > 0) return entry->spent_ns / entry->work;
  for (uint32_t e = 0; e < m->count; ++e) {
    bool is_same = m->entries[e].device == entry->device;
    spent[is_same] += m->entries[e].spent_ns;
    work[is_same] += m->entries[e].work;
  }
  return work[1] > 0 ? spent[1] / work[1] : work[0] > 0 ? spent[0] / work[0] : -1;
}

static double spent_s(const clv__measuring *m) {
  return 1e-9 * (double)(clv__clock_ns() - m->begin_ns);
}

static double needed_s(const clv__measuring *m, const clv__measure_entry *entry, uint32_t size) {
  return 1e-9 * fmax(0, pace_of(m, entry)) * work_of(entry, size);
}

/* Returns whether time is reserved for this size: a needed size of an is_first entry, or a size below a completed trial,
 * because a single size allows no fit. */
static bool is_promised(const clv__measure_entry *entry, uint32_t size) {
  bool is_out = entry->is_needless || entry->is_cut_off || is_done(entry, size);
  if (entry->is_first) return !is_out && entry->sizes.items[size].is_needed;
  return !is_out && entry->trial != CLV__NO_ID && size < entry->trial && (entry->done >> entry->trial & 1u) != 0;
}

static double promised_s(const clv__measuring *m) {
  double sum_s = 0;
  for (uint32_t e = 0; e < m->count; ++e) {
    for (uint32_t s = 0; s < m->entries[e].sizes.count; ++s)
      sum_s += is_promised(&m->entries[e], s) ? needed_s(m, &m->entries[e], s) : 0;
  }
  return sum_s;
}

/* Returns whether the time spent so far, the reserved time and `seconds` together are within the fraction `part` of the time
 * limit. */
static bool has_time_for(const clv__measuring *m, double seconds, double part) {
  return m->options->limit_s <= 0 || spent_s(m) + promised_s(m) + seconds <= part * m->options->limit_s;
}

static clv_status report_progress(const clv__measuring *m, const clv__measure_entry *at, clv_error *error) {
  const clv__gnn_measure_options *o = m->options;
  clv__gnn_measure_progress progress = {m->planning->machine.devices[at->device].name, at->layer, 0, 0, 0};
  double first_s = 0, rest_s = 0;
  if (o->progress == NULL) return CLV_OK;
  for (uint32_t e = 0; e < m->count; ++e) {
    const clv__measure_entry *entry = &m->entries[e];
    double pace = pace_of(m, entry);
    for (uint32_t s = 0; s < entry->sizes.count; ++s) {
      bool done = is_done(entry, s);
      if (!done && (entry->is_needless || entry->is_cut_off)) continue;
      ++progress.of;
      progress.done += done;
      if (!done) *(entry->is_first && entry->sizes.items[s].is_needed ? &first_s : &rest_s) += 1e-9 * pace * work_of(entry, s);
      if (!done && pace < 0) progress.left_s = -1;
    }
  }
  if (o->limit_s > 0) rest_s = fmin(rest_s, fmax(0, o->limit_s - spent_s(m) - first_s));
  if (progress.left_s >= 0) progress.left_s = first_s + rest_s;
  if (o->progress(o->user_data, &progress)) return CLV_OK;
  return clv__error_set(error, CLV_CANCELLED, "measuring was cancelled at layer %u on %s", at->layer, progress.device);
}

/* ---- Measuring ---- */

static clv_status measure(clv__measuring *m, clv__measure_entry *entry, uint32_t size, clv__table_point *point,
                          clv_error *error) {
  const clv__measured_block block = {m->planning, m->options, m->tables, entry->layer, entry->device, entry->first, entry->last};
  const clv__layer_sizes sizes = entry->sizes.items[size].sizes;
  *point = (clv__table_point){.n = sizes.rows, .m = sizes.edges, .targets = sizes.targets, .origin = CLV__MEASURED};
  CLV__TRY(report_progress(m, entry, error));
  uint64_t begin_ns = clv__clock_ns();
  clv_status status =
      m->options->asks_models ? clv__model_block(&block, sizes, point, error) : clv__measure_block(&block, sizes, point, error);
  if (status != CLV_OK)
    return clv__error_prefix(error, status, "layer %u on %s", entry->layer, m->planning->machine.devices[entry->device].name);
  entry->done |= UINT64_C(1) << size;
  entry->spent_ns += (double)(clv__clock_ns() - begin_ns);
  entry->work += work_of(entry, size);
  if (point->infeasible && (entry->too_large.rows == 0 || sizes.rows < entry->too_large.rows)) entry->too_large = sizes;
  return CLV_OK;
}

static clv_status keep(clv__measuring *m, const clv__measure_entry *entry, const clv__table_point *point, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  ++m->measured->points;
  return clv__tables_put(m->tables, p->machine.devices[entry->device].name, p->chains[entry->layer].layer, entry->first,
                         entry->last, point, error);
}

/* Returns whether the block takes more than LONGER times as long as the whole layer on the same device, for the same share.
 * Returns false if there is no time limit, because every block is then measured, or if a time is not known. */
static bool is_needless(const clv__measuring *m, const clv__measure_entry *entry, const clv__table_point *point) {
  const clv__gnn_planning *p = m->planning;
  const clv__measured_size *size = &entry->sizes.items[entry->trial];
  const uint32_t stages = p->chains[entry->layer].stage_count;
  const clv__machine_device *device = &p->machine.devices[entry->device];
  const clv__block_table *table = clv__tables_find(m->tables, device->name, p->chains[entry->layer].layer, 0, stages);
  if (m->options->limit_s <= 0 || table == NULL || point->infeasible || (entry->first == 0 && entry->last == stages))
    return false;
  const clv__layer_sizes whole =
      clv__measure_sizes_of(p, &p->chains[entry->layer].blocks[0][stages], device->is_static, &size->share);
  const clv__measured_block all = {p, m->options, m->tables, entry->layer, entry->device, 0, stages};
  const clv__measured_block part = {p, m->options, m->tables, entry->layer, entry->device, entry->first, entry->last};
  double all_ns;
  if (clv__table_time(table, whole.rows, whole.edges, whole.targets, &all_ns) != CLV__KNOWN) return false;
  all_ns += clv__measured_copies_ns(&all, whole);
  return all_ns >= LEAST_NS && point->time_ns + clv__measured_copies_ns(&part, size->sizes) > LONGER * all_ns;
}

clv_status clv__measure_entries_try(clv__measuring *m, clv_error *error) {
  clv__table_point point;
  for (uint32_t pass = 0; pass < 2; ++pass) { /* first the sizes that a fit needs, then the others as time allows */
    for (uint32_t e = 0; e < m->count && m->entries[e].is_first; ++e) {
      clv__measure_entry *entry = &m->entries[e];
      for (uint32_t s = 0; s < entry->sizes.count; ++s) {
        if (is_done(entry, s) || (pass == 0 && !entry->sizes.items[s].is_needed)) continue;
        if (pass == 1 && !has_time_for(m, needed_s(m, entry, s), FIRST_PART)) continue;
        CLV__TRY(measure(m, entry, s, &point, error));
        CLV__TRY(keep(m, entry, &point, error));
      }
    }
  }
  CLV__TRY(clv__tables_fit(m->tables, error));
  for (uint32_t e = 0; e < m->count; ++e) {
    clv__measure_entry *entry = &m->entries[e];
    if (entry->is_first || entry->trial == CLV__NO_ID) continue;
    double wanted_s = 0;
    for (uint32_t s = 0; s <= entry->trial; ++s) wanted_s += needed_s(m, entry, s);
    entry->is_cut_off = !has_time_for(m, wanted_s, 1);
    if (entry->is_cut_off) continue;
    CLV__TRY(measure(m, entry, entry->trial, &point, error));
    entry->is_needless = is_needless(m, entry, &point);
    if (!entry->is_needless) CLV__TRY(keep(m, entry, &point, error));
  }
  return CLV_OK;
}

clv_status clv__measure_entries_rest(clv__measuring *m, clv_error *error) {
  clv__table_point point;
  for (uint32_t s = 0; s < CLV__MEASURE_MOST_SIZES; ++s) {
    for (uint32_t e = 0; e < m->count; ++e) {
      clv__measure_entry *entry = &m->entries[e];
      if (entry->is_first || entry->is_needless || entry->is_cut_off) continue;
      if (s >= entry->sizes.count || is_done(entry, s)) continue;
      entry->is_cut_off = !is_promised(entry, s) && !has_time_for(m, needed_s(m, entry, s), 1);
      if (entry->is_cut_off) continue;
      CLV__TRY(measure(m, entry, s, &point, error));
      CLV__TRY(keep(m, entry, &point, error));
    }
  }
  for (uint32_t e = 0; e < m->count; ++e) {
    m->measured->needless += m->entries[e].is_needless;
    m->measured->cut_off += m->entries[e].is_cut_off;
  }
  return CLV_OK;
}
