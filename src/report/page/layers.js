// Arranges the members of one group in layers, from top to bottom, as picture/layers.c does for pictures that are drawn
// when a file is written. Uses no other script.
//
// arrange(items, links, above, below) takes items {width, height, port} in topological order, where `port` is 'in' for the points at which wires
// enter the group, 'out' for those at which they leave it. A link {from, to, fromOffset, toOffset} leads from one item to a later
// one; the offsets are those of its ends from the items' centres. Wires that enter or leave the group begin `above` pixels above the
// content and end `below` pixels below it. arrange() sets x (the centre) and y (the top) of every item, and `path` (SVG path
// data) and `area` (the bounds of the path) of every link. It returns the size of the drawing.
const arrange = (() => {
  const GAP = 14, ROW_GAP = 18, POINT_WIDTH = 2, POINT_WEIGHT = 16, BRANCH_WEIGHT = 0.001, SWEEPS = 6, PLACE_SWEEPS = 8;
  const TALL = 1500, RATIO = 1.5, COLUMN_GAP = 36, TURN = 8;

  function ranksOf(items, links) {
    const ranks = new Int32Array(items.length), least = new Int32Array(items.length).fill(1 << 30), read = new Uint8Array(items.length);
    const lowest = items.some(item => item.port === 'in') ? 1 : 0;
    items.forEach((item, i) => { ranks[i] = item.port === 'in' ? 0 : lowest; });
    for (const link of [...links].sort((a, b) => a.to - b.to)) {
      ranks[link.to] = Math.max(ranks[link.to], ranks[link.from] + 1);
      read[link.to] = 1;
    }
    for (const link of links) if (items[link.to].port !== 'out') least[link.from] = Math.min(least[link.from], ranks[link.to]);
    items.forEach((item, i) => { if (!item.port && !read[i] && least[i] < 1 << 30) ranks[i] = least[i] - 1; });
    const last = items.reduce((most, item, i) => item.port === 'out' ? most : Math.max(most, ranks[i]), 0);
    items.forEach((item, i) => { if (item.port === 'out') ranks[i] = last + 1; });
    return ranks;
  }

  // Adds a point for every rank that a link crosses. Links from the same place share their points, so that a value that is read in many
  // ranks is one line with branches. Returns all vertices, {width, weight, rank, up, down}, items first.
  function addPoints(items, links, ranks) {
    const vertices = items.map((item, i) => ({width: item.width, weight: 1, rank: ranks[i], up: [], down: [], x: 0}));
    // `shift`: how far the centre of `to` is right of that of `from` if this part of the link is vertical. A branch from the
    // line of a value that is read in several ranks has a small weight: the line stays straight, and items stay below each
    // other rather than below the line.
    const join = (from, to, shift) => {
      const weight = from >= items.length ? (to >= items.length ? 1 : BRANCH_WEIGHT) : 1;
      vertices[from].down.push({other: to, shift: -shift, weight});
      vertices[to].up.push({other: from, shift, weight});
    };
    const shared = new Map(); // points by source
    for (const link of links) {
      const key = `${link.from} ${link.fromOffset}`, points = shared.get(key) || [], crossed = ranks[link.to] - ranks[link.from] - 1;
      shared.set(key, points);
      while (points.length < crossed) {
        const last = points.length > 0 ? points[points.length - 1] : link.from;
        vertices.push({width: POINT_WIDTH, weight: POINT_WEIGHT, rank: vertices[last].rank + 1, up: [], down: [], x: 0});
        join(last, vertices.length - 1, points.length > 0 ? 0 : link.fromOffset);
        points.push(vertices.length - 1);
      }
      link.points = points.slice(0, crossed);
      join(crossed > 0 ? link.points[crossed - 1] : link.from, link.to, (crossed > 0 ? 0 : link.fromOffset) - link.toOffset);
    }
    return vertices;
  }

  // Orders the vertices of each rank by the mean position of their neighbours, alternately in the rank above and below.
  function order(vertices, rows) {
    rows.forEach(row => row.forEach((v, i) => { vertices[v].place = (i + 0.5) / row.length; }));
    for (let sweep = 0; sweep < SWEEPS; ++sweep) {
      const down = sweep % 2 === 0;
      for (let k = 1; k < rows.length; ++k) {
        const row = rows[down ? k : rows.length - 1 - k];
        for (const v of row) {
          const vertex = vertices[v], near = down ? vertex.up : vertex.down;
          let sum = 0;
          for (let i = 0; i < near.length; ++i) sum += vertices[near[i].other].place;
          vertex.key = near.length > 0 ? sum / near.length : vertex.place;
        }
        row.sort((a, b) => vertices[a].key - vertices[b].key || vertices[a].place - vertices[b].place || a - b);
        row.forEach((v, i) => { vertices[v].place = (i + 0.5) / row.length; });
      }
    }
  }

  // Puts the vertices of a rank as close as possible to the wanted places without overlaps, by pooling adjacent violators.
  const sums = [], weights = [], ends = []; // of the pools
  function settle(vertices, row) {
    let count = 0, shift = 0;
    const step = i => (vertices[row[i - 1]].width + vertices[row[i]].width) / 2 + GAP;
    for (let i = 0; i < row.length; ++i) {
      if (i > 0) shift += step(i);
      const {wanted, weight} = vertices[row[i]];
      sums[count] = (wanted - shift) * weight;
      weights[count] = weight;
      ends[count++] = i + 1;
      for (; count > 1 && sums[count - 2] * weights[count - 1] >= sums[count - 1] * weights[count - 2]; --count) {
        sums[count - 2] += sums[count - 1];
        weights[count - 2] += weights[count - 1];
        ends[count - 2] = i + 1;
      }
    }
    shift = 0;
    for (let i = 0, pool = 0; i < row.length; ++i) {
      if (i > 0) shift += step(i);
      while (i >= ends[pool]) ++pool;
      vertices[row[i]].x = sums[pool] / weights[pool] + shift;
    }
  }

  function place(vertices, rows) {
    for (const row of rows) {
      for (const v of row) vertices[v].wanted = 0;
      settle(vertices, row);
    }
    for (let sweep = 0; sweep < PLACE_SWEEPS; ++sweep) {
      const down = sweep % 2 === 0;
      for (let k = 0; k < rows.length; ++k) {
        const row = rows[down ? k : rows.length - 1 - k];
        for (const v of row) {
          const vertex = vertices[v], near = down ? vertex.up : vertex.down;
          let sum = 0, weights = 0;
          for (let i = 0; i < near.length; ++i) {
            sum += (vertices[near[i].other].x + near[i].shift) * near[i].weight;
            weights += near[i].weight;
          }
          vertex.wanted = weights > 0 ? sum / weights : vertex.x;
        }
        settle(vertices, row);
      }
    }
  }

  // Stacks the rows. A tall stack becomes columns of about equal height that end where few links pass; together they are about RATIO
  // times as wide as high. Returns by rank {top, height, column}.
  function stack(items, ranks, rows, links, width) {
    const heights = rows.map(row => row.reduce((most, v) => v < items.length ? Math.max(most, items[v].height) : most, 0));
    const total = heights.reduce((sum, height) => sum + height + ROW_GAP, 0);
    const count = total > TALL ? Math.max(1, Math.round(Math.sqrt(RATIO * total / width))) : 1, passing = new Int32Array(rows.length + 2);
    for (const link of links) {
      ++passing[ranks[link.from] + 1];
      --passing[ranks[link.to] + 1];
    }
    for (let r = 1; r < passing.length; ++r) passing[r] += passing[r - 1];
    const breaks = new Set();
    for (let k = 1, r = 0, height = 0; k < count; ++k) {
      const low = total * (k - 0.2) / count, high = total * (k + 0.2) / count;
      let best = -1;
      for (; r < rows.length && height < high; height += heights[r++] + ROW_GAP) {
        if (height >= low && r > 0 && (best < 0 || passing[r] < passing[best])) best = r;
      }
      if (best > 0) breaks.add(best);
    }
    let top = 0, column = 0;
    return heights.map((height, r) => {
      if (breaks.has(r)) { top = 0; ++column; }
      const row = {top, height, column};
      top += height + ROW_GAP;
      return row;
    });
  }

  // Moves each column to the right of the one before it. Returns the left edges of the columns, and the total width.
  function separate(vertices, stacked) {
    const columns = [];
    for (const {rank, x, width} of vertices) {
      const at = columns[stacked[rank].column] ||= {least: Infinity, most: -Infinity};
      at.least = Math.min(at.least, x - width / 2);
      at.most = Math.max(at.most, x + width / 2);
    }
    let left = 0;
    const lefts = columns.map(({least, most}) => { const at = left; left += most - least + COLUMN_GAP; return at; });
    for (const vertex of vertices) {
      const column = stacked[vertex.rank].column;
      vertex.x += lefts[column] - columns[column].least;
    }
    return [lefts, Math.max(0, left - COLUMN_GAP)];
  }

  const n = number => Math.round(number * 10) / 10;
  // Draws a link, except for the part that it shares with a link that was drawn before. `drawn` has the points that are drawn.
  function pathOf(link, items, vertices, stacked, lefts, bottom, drawn) {
    const foot = r => stacked[r].top + stacked[r].height;
    let at = link.points.length;
    while (at > 0 && !drawn.has(link.points[at - 1])) --at;
    const start = at > 0 ? link.points[at - 1] : link.from;
    let {x, rank} = vertices[start];
    if (at === 0) x += link.fromOffset;
    const begin = at > 0 ? foot(rank) : items[link.from].y + items[link.from].height;
    link.area = {left: x, right: x, top: begin, bottom: items[link.to].y};
    let data = `M${n(x)},${n(begin)}`;
    for (const next of [...link.points.slice(at), link.to]) {
      const vertex = vertices[next], there = vertex.x + (next === link.to ? link.toOffset : 0), from = foot(rank), to = stacked[vertex.rank].top;
      drawn.add(next);
      data += `V${n(from)}`;
      if (stacked[vertex.rank].column !== stacked[rank].column) {
        const gutter = lefts[stacked[vertex.rank].column] - COLUMN_GAP / 2;
        data += `V${n(bottom + TURN)}H${n(gutter)}V${-TURN}H${n(there)}V${n(to)}`;
      } else if (Math.abs(there - x) < 0.5) {
        data += `V${n(to)}`;
      } else {
        const middle = (from + to) / 2;
        data += `C${n(x)},${n(middle)} ${n(there)},${n(middle)} ${n(there)},${n(to)}`;
      }
      x = there;
      rank = vertex.rank;
      link.area.left = Math.min(link.area.left, x);
      link.area.right = Math.max(link.area.right, x);
    }
    if (stacked[vertices[start].rank].column !== stacked[rank].column) link.area = {...link.area, top: -TURN, bottom: bottom + TURN};
    return `${data}V${n(items[link.to].y)}`;
  }

  return (items, links, above, below) => {
    const ranks = ranksOf(items, links), vertices = addPoints(items, links, ranks);
    const rows = Array.from({length: ranks.reduce((most, rank) => Math.max(most, rank), 0) + 1}, () => []);
    vertices.forEach((vertex, v) => rows[vertex.rank].push(v));
    order(vertices, rows);
    place(vertices, rows);
    const span = vertices.reduce((most, {x, width}) => Math.max(most, x + width / 2), 0) - vertices.reduce((least, {x, width}) => Math.min(least, x - width / 2), 0);
    const stacked = stack(items, ranks, rows, links, span), [lefts, width] = separate(vertices, stacked);
    const bottom = stacked.reduce((most, row) => Math.max(most, row.top + row.height), 0);
    items.forEach((item, i) => {
      item.x = vertices[i].x;
      item.y = item.port === 'in' ? -above : item.port === 'out' ? bottom + below : stacked[ranks[i]].top + (stacked[ranks[i]].height - item.height) / 2;
    });
    const drawn = new Set();
    for (const link of links) link.path = pathOf(link, items, vertices, stacked, lefts, bottom, drawn);
    return {width, height: bottom};
  };
})();
