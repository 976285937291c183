/* Prices a block, and divides it among several devices. Each part has a range of the owned vertices, delimited by shares of
 * the in-edges, and pays for the halo that it reads. The shares are chosen so that all parts end together. */
#include "gnn/plan/pep_cost.h"

#include <math.h>

#include "gnn/data/partition.h"

enum { BISECTIONS = 16 }; /* accurate to 1/65536 of the edges; shares are finally rounded to 1/20 */

void clv__subgraph_share(const clv__subgraph_sizes *subgraph, double from, double to, clv__share *share) {
  if (subgraph->share != NULL && (from > 0 || to < 1)) {
    subgraph->share(subgraph->user, from, to, share);
    return;
  }
  if (from <= 0 && to >= 1) {
    *share = (clv__share){subgraph->owned, subgraph->halo, subgraph->edges};
    return;
  }
  double owned = (double)subgraph->owned, edges = (double)subgraph->edges;
  share->targets = (uint64_t)(llround(owned * to) - llround(owned * from));
  share->edges = (uint64_t)(llround(edges * to) - llround(edges * from));
  uint64_t others = subgraph->halo + subgraph->owned - share->targets;
  share->halo = share->edges < others ? share->edges : others;
}

static double bytes_of(const clv__size_rule *rule, clv__layer_sizes sizes) {
  return rule->fixed + rule->row * (double)sizes.rows + rule->target * (double)sizes.targets + rule->edge * (double)sizes.edges;
}

/* ---- One part ---- */

typedef struct pricing {
  const clv__costs *costs;
  const clv__subgraph_sizes *subgraph;
  const clv__block_question *question;
  const clv__chain_block *block;
} pricing;

static void size_part(const pricing *p, const clv__share *share, clv__pep_part *part) {
  const clv__machine *machine = p->costs->machine;
  uint64_t edges = p->block->reads_edges ? share->edges : 0;
  uint64_t rows = p->block->reads_rows ? share->targets + share->halo : share->targets;
  part->sizes = part->padded = (clv__layer_sizes){rows, share->targets, edges};
  if (!machine->devices[part->device].is_static) return;
  part->padded.edges = clv__pad_up(edges, machine->pad_step);
  part->padded.rows = clv__pad_up(rows + (part->padded.edges != edges ? 1 : 0), machine->pad_step);
  part->padded.targets = part->padded.rows;
}

/* The bytes rearranged after computing: padded results lose their padding, and the graph's final result is put into vertex
 * order. All other results are written in place. */
static double laid_out(const pricing *p, bool is_static, const clv__pep_part *part) {
  bool is_result = p->costs->is_last && p->question->last == p->costs->chain->stage_count && p->subgraph->halo > 0;
  return is_static || is_result ? bytes_of(&p->block->out, part->sizes) : 0;
}

/* Prices data movement. A part gathers its rows unless it reads the whole graph's rows in place. Padding copies everything
 * that is read. */
static clv__known price_moves(const pricing *p, bool is_part, clv__pep_part *part) {
  const clv__machine_device *device = &p->costs->machine->devices[part->device];
  const clv__chain_block *block = p->block;
  uint32_t form = device->is_static ? 1 : 0;
  double given = bytes_of(&block->given[form], part->padded), made = bytes_of(&block->made[form], part->padded);
  double out = bytes_of(&block->out, part->padded), packed = 0;
  if (p->question->shared_in) made = 0;
  if (device->is_static)
    packed = given + made;
  else if (is_part || p->subgraph->halo > 0)
    packed = bytes_of(&block->packed[form], part->padded);
  double laid_ns;
  if (!clv__copy_table_time(p->costs->pack, (uint64_t)packed, &part->pack_ns)) return CLV__UNKNOWN;
  if (!clv__copy_table_time(p->costs->pack, (uint64_t)laid_out(p, device->is_static, part), &laid_ns)) return CLV__UNKNOWN;
  part->pack_ns += laid_ns;
  if (device->space == 0) return CLV__KNOWN;
  if (p->question->shared_out) out = 0;
  part->bytes = (uint64_t)(given + made) + (uint64_t)out;
  if (!clv__copy_table_time(p->costs->in[part->device], (uint64_t)(given + made), &part->in_ns)) return CLV__UNKNOWN;
  return clv__copy_table_time(p->costs->out[part->device], (uint64_t)out, &part->out_ns) ? CLV__KNOWN : CLV__UNKNOWN;
}

static bool has_room(const pricing *p, const clv__block_table *table, clv__pep_part *part) {
  const clv__machine_device *device = &p->costs->machine->devices[part->device];
  uint32_t form = device->is_static ? 1 : 0;
  part->memory_bytes = 0;
  if (p->costs->memory != NULL) {
    const clv__memory_key key = {p->costs->layer, part->device, p->question->first, p->question->last, part->padded};
    return clv__memory_fits(p->costs->memory, &key, &part->memory_bytes);
  }
  if (device->memory_bytes == 0) return true;
  uint64_t peak = clv__table_peak(table, part->padded.rows, part->padded.edges, part->padded.targets);
  double held = bytes_of(&p->block->given[form], part->padded) + bytes_of(&p->block->made[form], part->padded) +
                bytes_of(&p->block->out, part->padded);
  part->memory_bytes = clv__larger((double)peak, held) > (double)peak ? (uint64_t)held : peak;
  return part->memory_bytes <= device->memory_bytes;
}

/* Prices the part for its sizes. `is_part`: the block has other parts. */
static clv__known price_sizes(const pricing *p, bool is_part, clv__pep_part *part) {
  const clv__block_table *table = p->costs->blocks[part->device][p->question->first][p->question->last];
  part->pack_ns = part->in_ns = part->compute_ns = part->out_ns = part->time_ns = 0;
  part->bytes = 0;
  if (part->sizes.targets == 0) return CLV__KNOWN; /* nothing to do */
  if (!has_room(p, table, part)) return CLV__INFEASIBLE;
  clv__known known = clv__table_time(table, part->padded.rows, part->padded.edges, part->padded.targets, &part->compute_ns);
  if (known != CLV__KNOWN) return known;
  known = price_moves(p, is_part, part);
  /* Whole nanoseconds stay the same when a plan is written and read back. */
  part->pack_ns = round(part->pack_ns), part->in_ns = round(part->in_ns);
  part->compute_ns = round(part->compute_ns), part->out_ns = round(part->out_ns);
  part->time_ns = part->pack_ns + part->in_ns + part->compute_ns + part->out_ns;
  return known;
}

static clv__known price_part(const pricing *p, double from, double to, clv__pep_part *part) {
  clv__share share;
  clv__subgraph_share(p->subgraph, from, to, &share);
  size_part(p, &share, part);
  return price_sizes(p, from > 0 || to < 1, part);
}

clv__known clv__pep_part_price(const clv__costs *costs, const clv__subgraph_sizes *subgraph, const clv__block_question *question,
                               clv__pep_part *part) {
  const pricing p = {costs, subgraph, question, &costs->chain->blocks[question->first][question->last]};
  return price_sizes(&p, part->from > 0 || part->to < CLV__PEP_SHARES, part);
}

/* ---- Dividing a block among devices ---- */

/* The price that guides balancing. It extrapolates beyond the tables, which only affects how the block is divided. A share
 * with an unknown price is rejected after rounding. */
static double guide(const pricing *p, uint32_t device, double from, double to) {
  const clv__costs *costs = p->costs;
  const clv__table_fit *fit = &costs->blocks[device][p->question->first][p->question->last]->time;
  clv__pep_part part = {.device = device};
  clv__share share;
  clv__subgraph_share(p->subgraph, from, to, &share);
  if (share.targets == 0) return 0;
  size_part(p, &share, &part);
  (void)price_moves(p, true, &part);
  return fit->base + fit->per_n * (double)part.padded.rows + fit->per_m * (double)part.padded.edges +
         fit->per_target * (double)part.padded.targets + part.pack_ns + part.in_ns + part.out_ns;
}

/* Divides the in-edges after `from` among `count` devices, so that the first device ends together with all others. A device's
 * time grows with its share, so bisection finds `cuts`. Returns the time of the slowest device. */
static double balance(const pricing *p, const uint32_t *devices, uint32_t count, double from, double *cuts) {
  if (count == 1) return guide(p, devices[0], from, 1);
  double low = from, high = 1, mine = 0, others = 0;
  for (int i = 0; i < BISECTIONS; ++i) {
    cuts[0] = (low + high) / 2;
    mine = guide(p, devices[0], from, cuts[0]);
    others = balance(p, devices + 1, count - 1, cuts[0], cuts + 1);
    if (mine < others)
      low = cuts[0];
    else
      high = cuts[0];
  }
  return clv__larger(mine, others);
}

/* Prices the block with parts that begin and end at `cuts`, in twentieths. Adds it to the answers if all prices are known. */
static clv__known try_cuts(const pricing *p, const uint32_t *devices, uint32_t count, const int *cuts, double ideal_ns,
                           clv__block_answers *answers) {
  clv__pep_block block = {.first = p->question->first, .last = p->question->last, .part_count = count};
  clv__known all = CLV__KNOWN;
  clv__least_memory most = {0, 0};
  for (uint32_t i = 0; i < count; ++i) {
    clv__pep_part *part = &block.parts[i];
    *part = (clv__pep_part){.device = devices[i], .is_static = p->costs->machine->devices[devices[i]].is_static};
    part->from = i == 0 ? 0 : (uint32_t)cuts[i - 1];
    part->to = i + 1 == count ? CLV__PEP_SHARES : (uint32_t)cuts[i];
    clv__known known = price_part(p, (double)part->from / CLV__PEP_SHARES, (double)part->to / CLV__PEP_SHARES, part);
    if (part->memory_bytes > most.size_bytes) most = (clv__least_memory){part->memory_bytes, devices[i]};
    if (known != CLV__KNOWN && all != CLV__INFEASIBLE) all = known;
    block.time_ns = clv__larger(block.time_ns, part->time_ns);
  }
  if (answers->least.size_bytes == 0 || most.size_bytes < answers->least.size_bytes) answers->least = most;
  if (all != CLV__KNOWN) return all;
  block.merge_ns = round(p->costs->machine->merge_ns * (count - 1));
  block.time_ns += block.merge_ns;
  block.ideal_ns = count == 1 ? block.time_ns : clv__smaller(block.time_ns, round(ideal_ns) + block.merge_ns);
  if (answers->count < CLV__BLOCK_VARIANTS) answers->items[answers->count++] = block;
  return CLV__KNOWN;
}

bool clv__block_is_legal(const clv__costs *costs, const clv__block_question *question) {
  const clv__chain_block *block = &costs->chain->blocks[question->first][question->last];
  for (uint32_t d = 0; d < costs->machine->device_count; ++d) {
    if ((question->set >> d & 1u) != 0 && costs->blocks[d][question->first][question->last] == NULL) return false;
  }
  return question->set != 0 && !((question->set & (question->set - 1)) != 0 && block->is_whole);
}

/* For two devices, one of which has too little memory for its balanced share: tries the other shares, those closest to the
 * balanced one first, until some have a price. */
static void try_all_cuts(const pricing *p, const uint32_t *devices, double balanced, double ideal_ns,
                         clv__block_answers *answers) {
  int middle = (int)lround(balanced * CLV__PEP_SHARES);
  for (int away = 0; away <= CLV__PEP_SHARES && answers->known != CLV__KNOWN; ++away) {
    for (int side = -1; side <= 1; side += 2) {
      int at = middle + side * away;
      if (at <= 0 || at >= CLV__PEP_SHARES) continue;
      if (try_cuts(p, devices, 2, &at, ideal_ns, answers) == CLV__KNOWN) answers->known = CLV__KNOWN;
    }
  }
}

void clv__block_price(const clv__costs *costs, const clv__subgraph_sizes *subgraph, const clv__block_question *question,
                      uint32_t variants, clv__block_answers *answers) {
  pricing p = {costs, subgraph, question, &costs->chain->blocks[question->first][question->last]};
  uint32_t devices[CLV__PEP_DEVICES], count = 0;
  double cuts[CLV__PEP_DEVICES], ideal_ns = 0;
  int least[CLV__PEP_DEVICES], most[CLV__PEP_DEVICES], at[CLV__PEP_DEVICES];
  *answers = (clv__block_answers){.known = CLV__UNKNOWN};
  for (uint32_t d = 0; d < costs->machine->device_count; ++d) {
    if ((question->set >> d & 1u) != 0) devices[count++] = d;
  }
  if (count > 1) ideal_ns = balance(&p, devices, count, 0, cuts);
  for (uint32_t i = 0; i + 1 < count; ++i) {
    int around = count == 2 ? (int)variants : 0; /* with more devices, there would be too many combinations */
    least[i] = (int)floor(cuts[i] * CLV__PEP_SHARES) - around;
    most[i] = (int)ceil(cuts[i] * CLV__PEP_SHARES) + around;
    at[i] = least[i];
  }
  for (bool more = true; more;) { /* enumerates all roundings like an odometer */
    bool ascends = true;
    for (uint32_t i = 0; i + 1 < count; ++i) ascends = ascends && at[i] > (i == 0 ? 0 : at[i - 1]) && at[i] < CLV__PEP_SHARES;
    if (ascends) {
      clv__known known = try_cuts(&p, devices, count, at, ideal_ns, answers);
      if (answers->known != CLV__KNOWN && known != CLV__UNKNOWN) answers->known = known;
    }
    more = false;
    for (uint32_t i = 0; i + 1 < count && !more; ++i) {
      more = ++at[i] <= most[i];
      if (!more) at[i] = least[i];
    }
  }
  if (count == 2 && answers->known == CLV__INFEASIBLE) try_all_cuts(&p, devices, cuts[0], ideal_ns, answers);
}
