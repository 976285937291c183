/* See layers.h. A node's rank is the length of the longest path to it; then nodes move down to their first reader if that
 * shortens their edges. Edges across several ranks get a point in each rank, so that they bend around nodes. The order within the
 * ranks is found by sweeping down and up with the barycentre heuristic. For this order, the positions minimise the squared
 * distances to the neighbours' mean, one rank at a time; pooling adjacent violators solves this exactly. */
#include "report/picture/layers.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 6, PLACE_SWEEPS = 8, LONGEST_BENT = 24 }; /* edges across more than LONGEST_BENT ranks get no points */
/* Two members of a rank may want the same place: the one with the larger weight comes closer to it. A node has weight 1; want()
 * uses these weights for edge points. */
static const double POINT_WIDTH = 10, POINT_WEIGHT = 4, LEAVING_WEIGHT = 0.02;

typedef struct layout {
  const clv__layers_input *input;
  clv__layers *layers;
  clv__arena *arena;
  uint32_t count;               /* nodes, then edge points */
  uint32_t link_count;          /* number of links: the parts of edges between neighbouring ranks */
  uint32_t *ranks;              /* indexed by node and edge point */
  uint32_t *positions;          /* indexed by node and edge point: its position in the rank's order */
  double *x, *wanted, *weights; /* indexed by node and edge point: its centre, where it would ideally be, and how strongly */
  uint32_t *first, *members;    /* CSR by rank: nodes and edge points, in the rank's order */
  uint32_t *down_offsets, *down, *up_offsets, *up; /* CSR: neighbours in the next and the previous rank */
} layout;

/* Builds a CSR of `entries` by `keys`. Entries with equal keys keep their order. */
static bool index_pairs(clv__arena *arena, uint32_t node_count, uint32_t count, const uint32_t *keys, const uint32_t *entries,
                        uint32_t **offsets, uint32_t **items) {
  *offsets = clv__arena_allocate_zero(arena, (size_t)node_count + 2, sizeof **offsets);
  *items = clv__arena_allocate_zero(arena, (size_t)count + 1, sizeof **items);
  if (*offsets == NULL || *items == NULL) return false;
  for (uint32_t i = 0; i < count; ++i) ++(*offsets)[keys[i] + 2];
  for (uint32_t v = 0; v < node_count; ++v) (*offsets)[v + 2] += (*offsets)[v + 1];
  for (uint32_t i = 0; i < count; ++i) (*items)[(*offsets)[keys[i] + 1]++] = entries[i];
  return true;
}

/* Returns the total length of a node's edges if the node had rank `rank`. All edges that are too long to be bent count the
 * same, because they are not drawn around nodes. Edges from sources with one reader do not count, because such a source follows
 * its reader. */
static uint64_t length_of_edges(const layout *l, uint32_t v, uint32_t rank) {
  const uint32_t *ranks = l->layers->ranks;
  uint64_t sum = 0;
  for (uint32_t i = l->up_offsets[v]; i < l->up_offsets[v + 1]; ++i) {
    uint32_t from = l->up[i], span = rank - ranks[from];
    bool follows = l->up_offsets[from] == l->up_offsets[from + 1] && l->down_offsets[from + 1] - l->down_offsets[from] == 1;
    sum += follows ? 0 : span < LONGEST_BENT ? span : LONGEST_BENT;
  }
  for (uint32_t i = l->down_offsets[v]; i < l->down_offsets[v + 1]; ++i) {
    uint32_t span = ranks[l->down[i]] - rank;
    sum += span < LONGEST_BENT ? span : LONGEST_BENT;
  }
  return sum;
}

/* Moves nodes down to their first reader if this shortens their edges, or if it does not lengthen them and the reader is far
 * away. This concerns sources, and nodes that are computed from inputs alone long before their result is needed. */
static void lower_nodes(layout *l) {
  uint32_t *ranks = l->layers->ranks;
  for (uint32_t v = l->input->node_count; v-- > 0;) {
    uint32_t lowest = UINT32_MAX;
    for (uint32_t i = l->down_offsets[v]; i < l->down_offsets[v + 1]; ++i) {
      if (ranks[l->down[i]] - 1 < lowest) lowest = ranks[l->down[i]] - 1;
    }
    if (lowest == UINT32_MAX || lowest == ranks[v]) continue;
    uint64_t here = length_of_edges(l, v, ranks[v]), there = length_of_edges(l, v, lowest);
    if (there < here || (there == here && lowest - ranks[v] > LONGEST_BENT)) ranks[v] = lowest;
  }
}

/* Renumbers the ranks so that no rank is without nodes. */
static void close_ranks(layout *l) {
  uint32_t *ranks = l->layers->ranks, *numbers = l->positions; /* `numbers` is indexed by old rank, and holds new ranks */
  memset(numbers, 0, l->input->node_count * sizeof *numbers);
  for (uint32_t v = 0; v < l->input->node_count; ++v) numbers[ranks[v]] = 1;
  for (uint32_t r = 0; r < l->input->node_count; ++r) numbers[r] = numbers[r] != 0 ? l->layers->rank_count++ : 0;
  for (uint32_t v = 0; v < l->input->node_count; ++v) ranks[v] = numbers[ranks[v]];
}

static void rank_nodes(layout *l) {
  uint32_t *ranks = l->layers->ranks;
  for (uint32_t v = 0; v < l->input->node_count; ++v) {
    for (uint32_t i = l->up_offsets[v]; i < l->up_offsets[v + 1]; ++i) {
      uint32_t from = l->up[i];
      if (ranks[from] + 1 > ranks[v]) ranks[v] = ranks[from] + 1;
    }
  }
  lower_nodes(l);
  close_ranks(l);
}

static bool is_bent(const layout *l, uint32_t edge) {
  uint32_t span = l->layers->ranks[l->input->to[edge]] - l->layers->ranks[l->input->from[edge]];
  return span > 1 && span <= LONGEST_BENT;
}

/* Adds a point for each rank that an edge crosses, and divides edges into links between neighbouring ranks. */
static bool add_points(layout *l) {
  const clv__layers_input *in = l->input;
  const uint32_t *ranks = l->layers->ranks;
  uint32_t *offsets = clv__arena_allocate_zero(l->arena, (size_t)in->edge_count + 1, sizeof *offsets);
  if (offsets == NULL) return false;
  size_t points = 0, links = 0;
  for (uint32_t e = 0; e < in->edge_count; ++e) {
    uint32_t span = ranks[in->to[e]] - ranks[in->from[e]];
    offsets[e] = (uint32_t)points;
    if (is_bent(l, e)) points += span - 1;
    links += span == 1 ? 1 : is_bent(l, e) ? span : 0;
  }
  offsets[in->edge_count] = (uint32_t)points;
  l->layers->bend_offsets = offsets;
  l->layers->bends = clv__arena_allocate_zero(l->arena, points + 1, sizeof *l->layers->bends);
  l->count = in->node_count + (uint32_t)points;
  l->ranks = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->ranks);
  uint32_t *from = clv__arena_allocate_zero(l->arena, links + 1, sizeof *from);
  uint32_t *to = clv__arena_allocate_zero(l->arena, links + 1, sizeof *to);
  if (l->layers->bends == NULL || l->ranks == NULL || from == NULL || to == NULL) return false;
  memcpy(l->ranks, ranks, in->node_count * sizeof *ranks);
  uint32_t count = 0;
  for (uint32_t e = 0; e < in->edge_count; ++e) {
    uint32_t span = ranks[in->to[e]] - ranks[in->from[e]], at = in->from[e];
    if (span > LONGEST_BENT) continue;
    for (uint32_t k = 1; k < span; ++k) {
      uint32_t point = in->node_count + offsets[e] + k - 1;
      l->ranks[point] = ranks[in->from[e]] + k;
      from[count] = at;
      to[count++] = at = point;
    }
    from[count] = at;
    to[count++] = in->to[e];
  }
  l->link_count = count;
  return index_pairs(l->arena, l->count, count, from, to, &l->down_offsets, &l->down) &&
         index_pairs(l->arena, l->count, count, to, from, &l->up_offsets, &l->up);
}

static bool fill_ranks(layout *l) {
  l->first = clv__arena_allocate_zero(l->arena, (size_t)l->layers->rank_count + 2, sizeof *l->first);
  l->members = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->members);
  l->positions = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->positions);
  l->x = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->x);
  l->wanted = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->wanted);
  l->weights = clv__arena_allocate_zero(l->arena, (size_t)l->count + 1, sizeof *l->weights);
  if (l->first == NULL || l->members == NULL || l->positions == NULL || l->x == NULL || l->wanted == NULL || l->weights == NULL) {
    return false;
  }
  for (uint32_t v = 0; v < l->count; ++v) l->weights[v] = 1;
  uint32_t *next = clv__arena_allocate_zero(l->arena, (size_t)l->layers->rank_count + 1, sizeof *next);
  if (next == NULL) return false;
  for (uint32_t v = 0; v < l->count; ++v) ++l->first[l->ranks[v] + 1];
  for (uint32_t r = 0; r < l->layers->rank_count; ++r) l->first[r + 1] += l->first[r];
  for (uint32_t v = 0; v < l->count; ++v) {
    uint32_t r = l->ranks[v];
    l->positions[v] = next[r];
    l->members[l->first[r] + next[r]++] = v;
  }
  return true;
}

/* ---- Order ---- */

typedef struct keyed {
  double key;
  uint32_t position, member;
} keyed;

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->position > y->position) - (x->position < y->position);
}

/* Sorts a rank by the mean position of each member's neighbours in the rank above (`down`) or below. A member without neighbours
 * keeps its position. Positions are relative to the size of the rank, so that ranks of different sizes can be compared. */
static void order_rank(layout *l, uint32_t rank, bool down, keyed *keys) {
  const uint32_t *offsets = down ? l->up_offsets : l->down_offsets, *neighbours = down ? l->up : l->down;
  uint32_t first = l->first[rank], count = l->first[rank + 1] - first;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t v = l->members[first + i];
    double sum = 0;
    for (uint32_t k = offsets[v]; k < offsets[v + 1]; ++k) {
      uint32_t n = neighbours[k], r = l->ranks[n];
      sum += (l->positions[n] + 0.5) / (l->first[r + 1] - l->first[r]);
    }
    uint32_t degree = offsets[v + 1] - offsets[v];
    keys[i] = (keyed){degree > 0 ? sum / degree : (i + 0.5) / count, i, v};
  }
  qsort(keys, count, sizeof *keys, compare_keyed);
  for (uint32_t i = 0; i < count; ++i) {
    l->members[first + i] = keys[i].member;
    l->positions[keys[i].member] = i;
  }
}

/* ---- Places ---- */

typedef struct pool {
  double sum, weight;
  uint32_t end; /* one past its last member */
} pool;

static double width_of(const layout *l, uint32_t v) {
  return v < l->input->node_count ? l->input->widths[v] : POINT_WIDTH;
}

/* Finds the positions that are closest to the wanted ones (least squares) and do not overlap, by pooling adjacent violators. */
static void position_rank(layout *l, uint32_t rank, pool *pools) {
  uint32_t first = l->first[rank], count = l->first[rank + 1] - first, used = 0;
  double shift = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t v = l->members[first + i];
    if (i > 0) shift += (width_of(l, l->members[first + i - 1]) + width_of(l, v)) / 2 + l->input->gap;
    pools[used++] = (pool){(l->wanted[v] - shift) * l->weights[v], l->weights[v], i + 1};
    while (used > 1 && pools[used - 2].sum * pools[used - 1].weight >= pools[used - 1].sum * pools[used - 2].weight) {
      pools[used - 2].sum += pools[used - 1].sum;
      pools[used - 2].weight += pools[used - 1].weight;
      pools[used - 2].end = i + 1;
      --used;
    }
  }
  shift = 0;
  for (uint32_t i = 0, p = 0; i < count; ++i) {
    uint32_t v = l->members[first + i];
    if (i > 0) shift += (width_of(l, l->members[first + i - 1]) + width_of(l, v)) / 2 + l->input->gap;
    while (i >= pools[p].end) ++p;
    l->x[v] = pools[p].sum / pools[p].weight + shift;
  }
}

/* Sets the wanted position of each member to the mean of its neighbours in the rank above or below. The main path of a network
 * with skip connections should be straight, with the skip connections beside it. Therefore edges across several ranks have
 * little weight where they leave or enter a node, and much in between. */
static void want(layout *l, uint32_t rank, const uint32_t *offsets, const uint32_t *neighbours) {
  uint32_t nodes = l->input->node_count;
  for (uint32_t i = l->first[rank]; i < l->first[rank + 1]; ++i) {
    uint32_t v = l->members[i];
    double sum = 0, weights = 0;
    for (uint32_t k = offsets[v]; k < offsets[v + 1]; ++k) {
      bool leaves = v < nodes && neighbours[k] >= nodes;
      sum += l->x[neighbours[k]] * (leaves ? LEAVING_WEIGHT : 1);
      weights += leaves ? LEAVING_WEIGHT : 1;
    }
    l->wanted[v] = weights > 0 ? sum / weights : l->x[v];
    if (v >= nodes) l->weights[v] = neighbours[offsets[v]] >= nodes ? POINT_WEIGHT : LEAVING_WEIGHT;
  }
}

static bool position_nodes(layout *l) {
  uint32_t widest = 0, ranks = l->layers->rank_count;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (l->first[r + 1] - l->first[r] > widest) widest = l->first[r + 1] - l->first[r];
  }
  keyed *keys = clv__arena_allocate_zero(l->arena, (size_t)widest + 1, sizeof *keys);
  pool *pools = clv__arena_allocate_zero(l->arena, (size_t)widest + 1, sizeof *pools);
  if (keys == NULL || pools == NULL) return false;
  for (uint32_t sweep = 0; sweep < SWEEPS; ++sweep) {
    for (uint32_t r = 1; r < ranks; ++r) order_rank(l, sweep % 2 == 0 ? r : ranks - 1 - r, sweep % 2 == 0, keys);
  }
  for (uint32_t r = 0; r < ranks; ++r) position_rank(l, r, pools);
  for (uint32_t sweep = 0; sweep < PLACE_SWEEPS; ++sweep) {
    bool down = sweep % 2 == 0;
    for (uint32_t i = 0; i < ranks; ++i) {
      uint32_t r = down ? i : ranks - 1 - i;
      want(l, r, down ? l->up_offsets : l->down_offsets, down ? l->up : l->down);
      position_rank(l, r, pools);
    }
  }
  return true;
}

/* Where few edges enter a rank, moves this rank and all ranks below it back to the middle. Otherwise drawings with a thousand
 * ranks drift to one side. */
static void recentre(layout *l) {
  enum { WINDOW = 24, MOST_LINKS = 4 };
  const double DRIFT = 160;
  double shift = 0;
  for (uint32_t r = 0; r < l->layers->rank_count; ++r) {
    uint32_t first = l->first[r], links = 0, last = r + WINDOW < l->layers->rank_count ? r + WINDOW : l->layers->rank_count;
    for (uint32_t i = first; i < l->first[r + 1]; ++i) links += l->up_offsets[l->members[i] + 1] - l->up_offsets[l->members[i]];
    if (links <= MOST_LINKS) {
      double least = l->x[l->members[first]], most = least;
      for (uint32_t i = first; i < l->first[last]; ++i) {
        if (l->x[l->members[i]] < least) least = l->x[l->members[i]];
        if (l->x[l->members[i]] > most) most = l->x[l->members[i]];
      }
      double middle = (least + most) / 2 + shift;
      if (r == 0 || middle > DRIFT || middle < -DRIFT) shift -= middle;
    }
    for (uint32_t i = first; i < l->first[r + 1]; ++i) l->x[l->members[i]] += shift;
  }
}

static void give(layout *l) {
  double least = 0, most = 0;
  for (uint32_t v = 0; v < l->count; ++v) {
    double left = l->x[v] - width_of(l, v) / 2, right = l->x[v] + width_of(l, v) / 2;
    if (v == 0 || left < least) least = left;
    if (v == 0 || right > most) most = right;
  }
  for (uint32_t v = 0; v < l->input->node_count; ++v) l->layers->x[v] = l->x[v] - least;
  for (uint32_t v = l->input->node_count; v < l->count; ++v) l->layers->bends[v - l->input->node_count] = l->x[v] - least;
  l->layers->width = most - least;
}

bool clv__layers_make(const clv__layers_input *input, clv__arena *arena, clv__layers *layers) {
  *layers = (clv__layers){0};
  layout l = {.input = input, .layers = layers, .arena = arena};
  layers->ranks = clv__arena_allocate_zero(arena, (size_t)input->node_count + 1, sizeof *layers->ranks);
  layers->x = clv__arena_allocate_zero(arena, (size_t)input->node_count + 1, sizeof *layers->x);
  l.positions = clv__arena_allocate_zero(arena, (size_t)input->node_count + 1, sizeof *l.positions);
  if (layers->ranks == NULL || layers->x == NULL || l.positions == NULL) return false;
  if (!index_pairs(arena, input->node_count, input->edge_count, input->to, input->from, &l.up_offsets, &l.up)) return false;
  if (!index_pairs(arena, input->node_count, input->edge_count, input->from, input->to, &l.down_offsets, &l.down)) return false;
  rank_nodes(&l);
  if (!add_points(&l) || !fill_ranks(&l) || !position_nodes(&l)) return false;
  recentre(&l);
  give(&l);
  return true;
}
