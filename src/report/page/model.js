// The page of a model: draws the visible part of its graph, and explains at the side the node or value that is chosen. The top of
// model/data.c describes the data. Uses the functions of write.js.
(() => {
  const model = JSON.parse(document.getElementById('model').textContent);
  const text = index => model.texts[index];
  const NODE = {name: 0, op: 1, domain: 2, opset: 3, source: 4, folded: 5, inputs: 6, outputs: 7, attributes: 8, flops: 9, verdicts: 10};
  const VALUE = {name: 0, type: 1, producer: 2, kind: 3, statistics: 4};
  const BOX = {kind: 0, id: 1, x: 2, rank: 3, width: 4, height: 5, bold: 6, name: 7, ports: 8, lines: 9};
  const STAT = {count: 0, bytes: 1, zeros: 2, nans: 3, infinities: 4, least: 5, largest: 6, mean: 7, deviation: 8, first: 9};
  const KIND = ['', 'input', 'weight', 'computed when planning', 'weight that is not in the file', 'value of the outer graph'];
  const $ = selector => document.querySelector(selector);
  const picture = $('.picture'), map = $('.map'), details = $('.details'), search = $('#search'), results = $('#results');
  const devices = model.devices;

  // ---- Labels ----

  function bytes(count) {
    if (count < 1024) return `${count} B`;
    let amount = count / 1024, unit = 0;
    while (amount >= 1023.95 && unit < 4) { amount /= 1024; ++unit; }
    return `${amount.toFixed(1)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}`;
  }
  function amount(count) {
    let unit = 0;
    while (count >= 999.95 && unit < 5) { count /= 1000; ++unit; }
    return unit === 0 ? count.toFixed(0) : `${count.toFixed(1)} ${' kMGTP'[unit]}`;
  }
  const grouped = count => String(count).replace(/\B(?=(\d{3})+$)/g, ',');
  const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? '' : 's'}`;
  const number = value => value === null ? '–' : String(Number(value.toPrecision(6)));
  const badge = device => make('span', {class: `badge d${devices[device].color}`}, devices[device].name);
  const link = (label, action) => make('button', {class: 'link', type: 'button', onclick: action}, label);
  const soft = content => make('span', {class: 'soft'}, content);

  // ---- The graphs ----

  for (const graph of model.graphs) {
    graph.readers = graph.values.map(() => []);
    graph.nodes.forEach((node, n) => { for (const value of new Set(node[NODE.inputs])) if (value >= 0) graph.readers[value].push(n); });
    graph.boxOf = new Map(); // 'n12' and 'v3' -> index of the box
    graph.byRank = graph.ranks.map(() => []);
    graph.boxes.forEach((box, b) => {
      const key = `${box[BOX.kind] === 0 ? 'n' : 'v'}${box[BOX.id]}`;
      if (!graph.boxOf.has(key)) graph.boxOf.set(key, b);
      graph.byRank[box[BOX.rank]].push(b);
    });
    for (const rank of graph.byRank) rank.sort((a, b) => graph.boxes[a][BOX.x] - graph.boxes[b][BOX.x]);
    graph.wiresByRank = graph.ranks.map(() => []); // the wires in the space below each rank
    graph.into = graph.boxes.map(() => []);
    graph.wires.forEach((wire, w) => {
      for (let r = graph.boxes[wire[0]][BOX.rank]; r < graph.boxes[wire[1]][BOX.rank]; ++r) graph.wiresByRank[r].push(w);
      graph.into[wire[1]].push(w);
    });
    graph.entry = graph.wires.map(() => 0);
    graph.into.forEach((list, b) => { // wires enter a box side by side, in the order in which they come
      const before = w => graph.wires[w].length > 3 ? graph.wires[w].at(-1) : portOf(graph, w)[0];
      const box = graph.boxes[b], step = Math.min(16, (box[BOX.width] - 16) / list.length);
      list.sort((a, c) => before(a) - before(c)).forEach((w, i) => { graph.entry[w] = box[BOX.x] + (i - (list.length - 1) / 2) * step; });
    });
  }
  function portOf(graph, w) { return graph.boxes[graph.wires[w][0]][BOX.ports][graph.wires[w][2]]; }
  const topOf = (graph, box) => graph.ranks[box[BOX.rank]][0];

  // ---- Drawing ----

  const LABEL = 18, READABLE = 0.32, MARGIN = 200;
  let shown = 0, graph = model.graphs[0], zoom = 1, colors = -1, chosen = null; // chosen: ['n' | 'v', id]
  let svg = null, drawn = null; // drawn: the part of the graph that is in the document, [left, top, right, bottom]

  // Returns the class of a node: the colour of the first device that can run it or, if a device is selected in the bar, of that
  // device if it can. 'nobody': it cannot, or no device can.
  function classOf(n) {
    const node = graph.nodes[n], verdicts = node[NODE.verdicts];
    if (node[NODE.folded]) return 'known d6';
    if (verdicts.length === 0) return 'plain';
    const device = colors >= 0 ? (verdicts[colors] === 0 ? colors : -1) : verdicts.indexOf(0);
    return device < 0 ? 'nobody' : `d${devices[device].color}`;
  }
  const hasType = v => text(graph.values[v][VALUE.type]) !== '?[…]';
  function wirePath(w) {
    const wire = graph.wires[w], from = graph.boxes[wire[0]], to = graph.boxes[wire[1]];
    const [start, value] = portOf(graph, w), labelled = hasType(value) || from[BOX.ports].length > 4;
    let rank = from[BOX.rank], x = start, d = `M${x},${topOf(graph, from) + from[BOX.height] + (labelled ? LABEL : 0)}V${graph.ranks[rank][1] + LABEL}`;
    const step = next => {
      const y = graph.ranks[rank][1] + LABEL, end = graph.ranks[rank + 1][0], middle = (y + end) / 2;
      d += Math.abs(next - x) < 0.5 ? `V${end}` : `C${x},${middle} ${next},${middle} ${next},${end}`;
      x = next;
      ++rank;
    };
    for (let i = 3; i < wire.length; ++i) { step(wire[i]); d += `V${graph.ranks[rank][1] + LABEL}`; }
    step(graph.entry[w]);
    return d;
  }
  // The path of a wire in straight lines, which are quicker to draw than curves.
  function roughPath(w) {
    const wire = graph.wires[w], from = graph.boxes[wire[0]];
    let rank = from[BOX.rank], d = `M${Math.round(portOf(graph, w)[0])},${graph.ranks[rank][1]}`;
    for (let i = 3; i < wire.length; ++i) if (i === 3 || i === wire.length - 1 || wire[i] !== wire[i - 1] || wire[i] !== wire[i + 1]) d += `L${wire[i]},${graph.ranks[rank + i - 2][0]}`;
    return d + `L${Math.round(graph.entry[w])},${graph.ranks[graph.boxes[wire[1]][BOX.rank]][0]}`;
  }
  // Returns [least x, largest x] of a wire.
  function reach(w) {
    const wire = graph.wires[w], xs = [portOf(graph, w)[0], graph.entry[w], ...wire.slice(3)];
    return [Math.min(...xs), Math.max(...xs)];
  }
  const isHot = w => chosen && (chosen[0] === 'v' ? portOf(graph, w)[1] === chosen[1]
    : [graph.wires[w][0], graph.wires[w][1]].includes(graph.boxOf.get(`n${chosen[1]}`)));

  function drawBox(b) {
    const box = graph.boxes[b], left = box[BOX.x] - box[BOX.width] / 2, top = topOf(graph, box), isNode = box[BOX.kind] === 0;
    const group = draw('g', isNode ? {class: 'node', 'data-n': box[BOX.id]} : {class: 'value', 'data-v': box[BOX.id]});
    if (chosen && graph.boxOf.get(chosen.join('')) === b) group.classList.add('chosen');
    group.append(draw('rect', {x: left, y: top, width: box[BOX.width], height: box[BOX.height], rx: isNode ? 5 : 10,
                               class: isNode ? `chip ${classOf(box[BOX.id])}` : 'pill d6'}));
    const marks = isNode && !graph.nodes[box[BOX.id]][NODE.folded] ? graph.nodes[box[BOX.id]][NODE.verdicts].slice(0, 6) : [];
    const label = draw('text', {x: box[BOX.x] - 5 * marks.length, y: top + (isNode ? 16 : 15), class: 'chip-text'});
    if (box[BOX.bold]) label.append(draw('tspan', {class: 'op'}, text(box[BOX.bold])));
    if (box[BOX.name]) label.append(draw('tspan', box[BOX.bold] ? {class: 'chip-name', dx: 6} : {class: 'chip-name'}, box[BOX.name]));
    group.append(label);
    marks.forEach((reason, d) => group.append(draw('rect', {
      x: left + box[BOX.width] - 6 - 10 * (marks.length - d), y: top + 8, width: 7, height: 7, rx: 1.5,
      class: reason === 0 ? `bar d${devices[d].color}` : 'mark-no'})));
    const head = isNode ? 24 : 22;
    if (box[BOX.lines].length > 0) group.append(draw('path', {class: 'divider', d: `M${left},${top + head}h${box[BOX.width]}`}));
    box[BOX.lines].forEach((line, i) => group.append(draw('text', {x: left + 9, y: top + head + 14 + 15 * i, class: 'box-line'}, line[0])));
    const name = isNode ? `${graph.nodes[box[BOX.id]][NODE.name]} (${text(graph.nodes[box[BOX.id]][NODE.op])})` : graph.values[box[BOX.id]][VALUE.name];
    group.append(draw('title', {}, name));
    return group;
  }
  function drawPorts(b) {
    const box = graph.boxes[b], ports = box[BOX.ports], y = topOf(graph, box) + box[BOX.height] + 13;
    if (ports.length > 4) return [draw('text', {x: ports[0][0], y, class: 'port'}, `${ports.length} values`)];
    return ports.filter(port => hasType(port[1])).map(port => draw('text', {x: port[0], y, class: 'port', 'data-v': port[1]}, text(graph.values[port[1]][VALUE.type])));
  }
  // Draws everything between two ranks that is at least partly between `left` and `right`.
  function drawPart(first, last, left, right) {
    const boxes = [], wires = new Set();
    for (let r = first; r <= last; ++r) {
      for (const b of graph.byRank[r]) {
        const box = graph.boxes[b];
        if (box[BOX.x] + box[BOX.width] / 2 >= left && box[BOX.x] - box[BOX.width] / 2 <= right) boxes.push(b);
      }
      for (const w of graph.wiresByRank[r]) wires.add(w);
    }
    if (first > 0) for (const w of graph.wiresByRank[first - 1]) wires.add(w);
    for (const w of wires) { const [least, most] = reach(w); if (most < left || least > right) wires.delete(w); }
    return zoom < READABLE ? drawFar(boxes, wires) : drawNear(boxes, wires);
  }
  function drawNear(boxes, wires) {
    const list = [], ordered = [...wires].sort((a, b) => Boolean(isHot(a)) - Boolean(isHot(b)));
    for (const w of ordered) {
      const d = wirePath(w);
      list.push(draw('path', {d, class: isHot(w) ? 'edge hot' : 'edge', 'marker-end': isHot(w) ? 'url(#tip-hot)' : 'url(#tip)'}),
                draw('path', {d, class: 'grip', 'data-v': portOf(graph, w)[1]}));
    }
    for (const b of boxes) list.push(...drawPorts(b));
    for (const b of boxes) list.push(drawBox(b));
    return list;
  }
  // Draws boxes without texts, one path per colour: from far away nothing can be read.
  function outlines(boxes, least) {
    const paths = new Map();
    for (const b of boxes) {
      const box = graph.boxes[b], key = box[BOX.kind] === 0 ? classOf(box[BOX.id]) : 'plain';
      const d = `M${box[BOX.x] - box[BOX.width] / 2},${topOf(graph, box)}h${box[BOX.width]}v${Math.max(least, box[BOX.height])}h${-box[BOX.width]}z`;
      paths.set(key, (paths.get(key) || '') + d);
    }
    return [...paths].map(([key, d]) => draw('path', {d, class: `chip ${key}`}));
  }
  function drawFar(boxes, wires) {
    const hot = [...wires].filter(isHot), groups = new Map(); // wires by place: browsers draw many small paths faster than a large one
    for (const w of wires) {
      const key = `${graph.boxes[graph.wires[w][0]][BOX.rank]} ${Math.floor(portOf(graph, w)[0] / 2000)}`;
      groups.set(key, (groups.get(key) || '') + roughPath(w));
    }
    const list = [...[...groups.values()].map(d => draw('path', {d, class: 'edge far'})), ...outlines(boxes, 0)];
    if (hot.length > 0) list.push(draw('path', {d: hot.map(wirePath).join(''), class: 'edge hot'}));
    const b = chosen ? graph.boxOf.get(chosen.join('')) : undefined;
    if (b !== undefined) list.push(drawBox(b));
    return list;
  }
  // Returns the first rank that ends below y, where a rank ends 60 pixels below its boxes.
  function rankAt(y) {
    let low = 0, high = graph.ranks.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (graph.ranks[middle][1] + 60 < y) low = middle + 1; else high = middle; }
    return low;
  }
  function visible() {
    const frame = picture.getBoundingClientRect(), own = svg.getBoundingClientRect();
    const left = (frame.left - own.left) / zoom, top = (frame.top - own.top) / zoom;
    return [left, top, left + frame.width / zoom, top + frame.height / zoom];
  }
  function refresh(anew) {
    if (!svg) return;
    const view = visible(), [left, top, right, bottom] = view;
    moveWindow(view);
    if (!anew && drawn && left >= drawn[0] && top >= drawn[1] && right <= drawn[2] && bottom <= drawn[3]) return;
    const more = [Math.max(MARGIN, (right - left) / 3), Math.max(MARGIN, (bottom - top) / 3)];
    drawn = [left - more[0], top - more[1], right + more[0], bottom + more[1]];
    if (graph.ranks.length === 0) return;
    svg.replaceChildren(definitions(), ...drawPart(rankAt(drawn[1]), rankAt(drawn[3]), drawn[0], drawn[2]));
  }
  function definitions() {
    const defs = draw('defs', {});
    for (const [id, style] of [['tip', 'tip'], ['tip-hot', 'tip hot']]) {
      const marker = draw('marker', {id, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 6, markerHeight: 6, markerUnits: 'userSpaceOnUse', orient: 'auto'});
      marker.append(draw('path', {d: 'M0,1 L10,5 L0,9 z', class: style}));
      defs.append(marker);
    }
    return defs;
  }

  // ---- The map: the whole graph beside the picture, with the visible part ----

  let mapWindow = null;
  function makeMap() {
    map.setAttribute('viewBox', `0 0 ${graph.width} ${graph.height}`);
    mapWindow = draw('rect', {class: 'window'});
    map.replaceChildren(...outlines(graph.boxes.keys(), graph.height / 400), mapWindow);
  }
  function moveWindow([left, top, right, bottom]) {
    const x = Math.max(0, left), y = Math.max(0, top), w = Math.max(Math.min(right, graph.width) - x, graph.width / 18), h = Math.max(Math.min(bottom, graph.height) - y, graph.height / 80);
    map.toggleAttribute('hidden', right - left >= 0.8 * graph.width && bottom - top >= 0.8 * graph.height);
    for (const [key, value] of [['x', x], ['y', y], ['width', w], ['height', h]]) mapWindow.setAttribute(key, value);
    for (const spot of map.querySelectorAll('.spot')) spot.remove();
    const b = chosen ? graph.boxOf.get(chosen.join('')) : undefined;
    if (b === undefined) return;
    const box = graph.boxes[b], width = Math.max(box[BOX.width], graph.width / 9), height = Math.max(box[BOX.height], graph.height / 120);
    map.append(draw('rect', {class: 'spot', x: box[BOX.x] - width / 2, y: topOf(graph, box) + box[BOX.height] / 2 - height / 2, width, height}));
  }
  function mapTo(event) {
    const box = map.getBoundingClientRect();
    center((event.clientX - box.left) / box.width * graph.width, (event.clientY - box.top) / box.height * graph.height);
  }
  map.addEventListener('pointerdown', event => { map.setPointerCapture(event.pointerId); mapTo(event); });
  map.addEventListener('pointermove', event => { if (event.buttons & 1) mapTo(event); });

  // ---- Moving and zooming ----

  function setZoom(next, x, y) {
    const at = x === undefined ? [picture.clientWidth / 2, picture.clientHeight / 2] : [x, y], [left, top] = visible();
    const point = [left + at[0] / zoom, top + at[1] / zoom];
    zoom = Math.min(3, Math.max(Math.min(0.05, fitting()), next));
    svg.setAttribute('width', graph.width * zoom);
    svg.setAttribute('height', graph.height * zoom);
    picture.scrollLeft = point[0] * zoom - at[0];
    picture.scrollTop = point[1] * zoom - at[1];
    refresh(true);
  }
  const fitting = () => Math.min((picture.clientWidth - 2) / graph.width, (picture.clientHeight - 2) / graph.height, 1.15);
  // "fit" shows the whole graph or, if that would make it a thin line, its whole width: the map still shows all of it.
  const fit = () => setZoom(fitting() < 0.12 ? Math.min((picture.clientWidth - 2) / graph.width, 0.6) : fitting());
  function center(x, y) {
    picture.scrollLeft = x * zoom - picture.clientWidth / 2;
    picture.scrollTop = y * zoom - picture.clientHeight / 2;
    refresh(false);
  }
  function open(index) {
    shown = index;
    graph = model.graphs[index];
    chosen = null;
    svg = draw('svg', {viewBox: `0 0 ${graph.width} ${graph.height}`});
    picture.replaceChildren(svg);
    makeMap();
    zoom = 1;
    const wide = (picture.clientWidth - 2) / graph.width;
    setZoom(Math.max(fitting(), Math.min(1, Math.max(wide, 0.75)))); // readable, from the top
    const first = graph.boxes[0];
    picture.scrollTop = 0;
    picture.scrollLeft = (first ? first[BOX.x] : 0) * zoom - picture.clientWidth / 2;
    refresh(true);
    for (const element of [$('#colors'), $('#legend')]) element.hidden = graph.parent >= 0; // nodes in a body have no verdicts
    $('#back').hidden = graph.parent < 0;
    $('#shown').textContent = graph.parent < 0 ? 'Graph' : `Body of ${model.graphs[graph.parent].nodes[graph.node][NODE.name]}${graph.name ? `: ${graph.name}` : ''}`;
    listNames();
  }
  function reveal(b) {
    // `details` covers the lower half of a narrow window.
    if (getComputedStyle(details).position === 'fixed') picture.parentElement.scrollIntoView({block: 'start'});
    const box = graph.boxes[b], y = topOf(graph, box), frame = picture.getBoundingClientRect();
    const free = getComputedStyle(details).position === 'fixed' ? Math.max(120, Math.min(frame.bottom, details.getBoundingClientRect().top) - frame.top) : frame.height;
    if (zoom < 0.6) setZoom(0.9);
    const [left, top, right] = visible();
    if (box[BOX.x] - box[BOX.width] / 2 > left && box[BOX.x] + box[BOX.width] / 2 < right && y > top && y + box[BOX.height] < top + free / zoom) return;
    center(box[BOX.x], y + box[BOX.height] / 2 + (frame.height - free) / 2 / zoom);
  }

  // ---- Explanations ----

  const nodeLink = n => link(graph.nodes[n][NODE.name], () => choose('n', n, true));
  const valueLink = v => link(graph.values[v][VALUE.name], () => choose('v', v, true));
  const opOf = node => text(node[NODE.op]);
  function pairs(rows) {
    return make('table', {class: 'pairs'}, make('tbody', {}, ...rows.map(([name, value]) => make('tr', {}, make('td', {}, name), make('td', {}, value)))));
  }
  function statistics(v) {
    const s = graph.values[v][VALUE.statistics];
    if (!s) return null;
    if (s[STAT.count] === 1) return make('code', {class: s[STAT.nans] + s[STAT.infinities] > 0 ? 'bad' : ''}, ` = ${s[STAT.first][0]}`);
    const list = make('dl'), item = (name, value, bad) => list.append(make('div', {}, make('dt', {}, name), make('dd', bad ? {class: 'bad'} : {}, value)));
    item('elements', grouped(s[STAT.count]));
    item('size', bytes(s[STAT.bytes]));
    if (s[STAT.least] !== null || s[STAT.nans] || s[STAT.infinities]) {
      item('min', number(s[STAT.least]));
      item('max', number(s[STAT.largest]));
      item('mean', number(s[STAT.mean]));
      item('std', number(s[STAT.deviation]));
      item('zeros', grouped(s[STAT.zeros]));
      item('NaN', grouped(s[STAT.nans]), s[STAT.nans] > 0);
      if (s[STAT.infinities] > 0) item('infinite', grouped(s[STAT.infinities]), true);
    }
    const rest = s[STAT.count] > s[STAT.first].length ? ', …' : '';
    return make('div', {class: 'weight'}, list, s[STAT.count] > 0 ? make('code', {}, s[STAT.first].join(', ') + rest) : null);
  }
  // Describes a value: its readers if `withReaders`, otherwise the node that computes it, and its statistics, if there are any.
  function valueLine(v, withReaders) {
    const value = graph.values[v], line = make('li', {}, valueLink(v), ' ', make('code', {}, text(value[VALUE.type])));
    if (value[VALUE.kind]) line.append(soft(`, ${KIND[value[VALUE.kind]]}`));
    if (!withReaders && value[VALUE.producer] >= 0 && !value[VALUE.statistics]) line.append(soft(' from '), nodeLink(value[VALUE.producer]));
    if (withReaders) line.append(...readersOf(v, 6));
    const found = statistics(v);
    if (found) line.append(found);
    return line;
  }
  function readersOf(v, most) {
    const list = graph.readers[v], content = list.length > 0 ? [soft(' read by ')] : [];
    list.slice(0, most).forEach((n, i) => content.push(i > 0 ? ' ' : '', make('span', {class: 'item'}, nodeLink(n), i + 1 < Math.min(list.length, most) ? ',' : '')));
    if (list.length > most) content.push(soft(` and ${list.length - most} more`));
    if (graph.outputs.includes(v)) content.push(soft(list.length > 0 ? '; an output' : ', an output'));
    return content;
  }
  function valueList(title, values, withReaders) {
    const present = values.filter(v => v >= 0), list = make('ul', {class: 'values'}), SHOWN = 12;
    if (present.length === 0) return [];
    const show = limit => {
      list.replaceChildren(...present.slice(0, limit).map(v => valueLine(v, withReaders)));
      if (present.length > limit) list.append(make('li', {}, link(`and ${present.length - limit} more`, () => show(Infinity))));
    };
    show(present.length <= SHOWN + 1 ? Infinity : SHOWN);
    return [make('h3', {}, present.length > SHOWN + 1 ? `${title} (${present.length})` : title), list];
  }
  function verdicts(node) {
    if (node[NODE.folded]) return [make('h3', {}, 'Devices'), make('p', {}, 'Computed when planning; no device runs it.')];
    if (node[NODE.verdicts].length === 0) return [];
    const rows = node[NODE.verdicts].map((reason, d) => make('tr', {}, make('td', {}, badge(d)),
      make('td', {class: 'verdict'}, reason === 0 ? 'can run it' : `cannot: ${text(reason)}`)));
    return [make('h3', {}, 'Devices'), make('table', {class: 'verdicts'}, make('tbody', {}, ...rows))];
  }
  function explainNode(n) {
    const node = graph.nodes[n], domain = text(node[NODE.domain]);
    const kind = [opOf(node), domain ? `(${domain})` : '', `opset ${node[NODE.opset]}`, node[NODE.source] ? `named ${node[NODE.source]} in the model` : '',
                  node[NODE.flops] > 0 ? `${amount(node[NODE.flops])} FLOP` : ''].filter(Boolean);
    const attributes = node[NODE.attributes].map(([name, value, body]) => [name,
      body < 0 ? make('span', {}, value) : make('span', {}, `${value} `, link('open', () => { open(body); explainGraph(); }))]);
    return [
      make('h2', {}, node[NODE.name]), make('p', {class: 'soft'}, kind.join(' · ').replace(' · (', ' (')), ...verdicts(node),
      ...(attributes.length > 0 ? [make('h3', {}, 'Attributes'), pairs(attributes)] : []),
      ...valueList('Reads', node[NODE.inputs], false), ...valueList('Writes', node[NODE.outputs], true),
      make('p', {}, n > 0 ? link('← previous node', () => choose('n', n - 1, true)) : '', n > 0 && n + 1 < graph.nodes.length ? '  ·  ' : '',
           n + 1 < graph.nodes.length ? link('next node →', () => choose('n', n + 1, true)) : ''),
    ];
  }
  function explainValue(v) {
    const value = graph.values[v];
    return [make('h2', {}, value[VALUE.name]), make('p', {}, make('code', {}, text(value[VALUE.type])), value[VALUE.kind] ? soft(`, ${KIND[value[VALUE.kind]]}`) : ''),
            value[VALUE.producer] >= 0 ? make('p', {}, soft('computed by '), nodeLink(value[VALUE.producer])) : null,
            statistics(v), make('p', {}, ...readersOf(v, 60))];
  }
  function explainGraph() {
    document.body.classList.remove('has-choice');
    const counts = devices.map((device, d) => [badge(d), `can run ${grouped(asked.filter(node => node[NODE.verdicts][d] === 0).length)} of ${plural(asked.length, 'node')}`]);
    const about = shown === 0 ? [make('h3', {}, 'Devices'), pairs(counts)] : [], facts = shown === 0 ? [make('h3', {}, 'Model'), pairs(model.facts)] : [];
    details.replaceChildren(make('p', {class: 'soft'}, 'Click a node or an edge, or search for one, to see its attributes, shapes and weights.'),
      ...about, ...valueList('Inputs', graph.inputs, true), ...valueList('Outputs', graph.outputs, false), ...facts);
  }

  // ---- Choosing ----

  function choose(kind, id, show) {
    chosen = [kind, id];
    const parts = kind === 'n' ? explainNode(id) : explainValue(id);
    details.replaceChildren(make('button', {id: 'close', type: 'button', 'aria-label': 'close', onclick: forget}, '×'), ...parts.filter(Boolean));
    details.scrollTop = details.parentElement.scrollTop = 0;
    document.body.classList.add('has-choice');
    const value = kind === 'v' ? graph.values[id] : null, first = kind === 'v' ? graph.readers[id][0] : undefined;
    let b = graph.boxOf.get(chosen.join(''));
    if (b === undefined && value && value[VALUE.producer] >= 0) b = graph.boxOf.get(`n${value[VALUE.producer]}`);
    if (b === undefined && first !== undefined) b = graph.boxOf.get(`n${first}`);
    if (b === undefined && kind === 'n') b = graph.boxOf.get(`n${(graph.readers[graph.nodes[id][NODE.outputs][0]] || [])[0]}`); // drawn as a line of its reader
    if (show && b !== undefined) reveal(b);
    refresh(true);
    try { history.replaceState(null, '', `#${shown > 0 ? `g${shown}` : ''}${kind}${id}`); } catch (error) { /* some viewers forbid replaceState() */ }
  }
  function forget() {
    chosen = null;
    explainGraph();
    refresh(true);
  }
  function chooseAt(event) {
    const element = event.target.closest('[data-n], [data-v]');
    if (element) return element.dataset.n !== undefined ? choose('n', Number(element.dataset.n), false) : choose('v', Number(element.dataset.v), false);
    if (zoom >= READABLE) return;
    // Below READABLE, boxes are not separate elements, so the box is found by its position.
    const own = svg.getBoundingClientRect(), x = (event.clientX - own.left) / zoom, y = (event.clientY - own.top) / zoom;
    const near = (graph.byRank[rankAt(y)] || []).find(b => Math.abs(graph.boxes[b][BOX.x] - x) <= graph.boxes[b][BOX.width] / 2 + 4 / zoom);
    if (near !== undefined) choose(graph.boxes[near][BOX.kind] === 0 ? 'n' : 'v', graph.boxes[near][BOX.id], false);
  }
  // The box to which an arrow key leads from the chosen one.
  function neighbour(b, key) {
    const box = graph.boxes[b], row = graph.byRank[box[BOX.rank]];
    if (key === 'ArrowLeft' || key === 'ArrowRight') return row[row.indexOf(b) + (key === 'ArrowLeft' ? -1 : 1)];
    if (key === 'ArrowUp') return graph.into[b].length > 0 ? graph.wires[graph.into[b][0]][0] : undefined;
    const down = graph.wiresByRank[box[BOX.rank]].find(w => graph.wires[w][0] === b);
    return down === undefined ? undefined : graph.wires[down][1];
  }

  let held = null, moved = false;
  picture.addEventListener('pointerdown', event => {
    if (event.button === 0 && event.pointerType === 'mouse') held = [event.clientX, event.clientY, picture.scrollLeft, picture.scrollTop];
    moved = false;
  });
  addEventListener('pointermove', event => {
    if (!held) return;
    const dx = event.clientX - held[0], dy = event.clientY - held[1];
    if (!moved && Math.abs(dx) + Math.abs(dy) < 5) return;
    moved = true;
    picture.classList.add('held');
    picture.scrollLeft = held[2] - dx;
    picture.scrollTop = held[3] - dy;
  });
  addEventListener('pointerup', () => { held = null; picture.classList.remove('held'); });
  picture.addEventListener('click', event => { if (!moved) chooseAt(event); });
  picture.addEventListener('scroll', () => refresh(false), {passive: true});
  picture.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const frame = picture.getBoundingClientRect();
    setZoom(zoom * Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top);
  }, {passive: false});
  picture.addEventListener('keydown', event => {
    if (event.key === '+' || event.key === '=') setZoom(zoom * 1.25);
    else if (event.key === '-') setZoom(zoom / 1.25);
    else if (event.key === '0') fit();
    else if (event.key === 'Escape') forget();
    else if (event.key.startsWith('Arrow')) {
      const current = chosen ? graph.boxOf.get(chosen.join('')) : undefined;
      const next = current === undefined ? 0 : neighbour(current, event.key);
      if (next !== undefined && graph.boxes[next]) choose(graph.boxes[next][BOX.kind] === 0 ? 'n' : 'v', graph.boxes[next][BOX.id], true);
    } else return;
    event.preventDefault();
  });
  $('#closer').addEventListener('click', () => setZoom(zoom * 1.25));
  $('#farther').addEventListener('click', () => setZoom(zoom / 1.25));
  $('#fit').addEventListener('click', fit);
  $('#back').addEventListener('click', () => { const {parent, node} = graph; open(parent); choose('n', node, true); });

  // ---- Colours ----

  const asked = model.graphs[0].nodes.filter(node => !node[NODE.folded]);
  function setColors(next) {
    colors = next;
    for (const button of $('#colors').children) button.setAttribute('aria-pressed', String(Number(button.dataset.device) === colors));
    const sample = style => make('span', {class: `sample ${style}`}), legend = [];
    if (colors < 0) devices.forEach((device, d) => legend.push(sample(`badge d${device.color}`), d === 0 ? `${device.name} can run it` : device.name));
    else legend.push(sample(`badge d${devices[colors].color}`), `${devices[colors].name} can run it`);
    if (asked.some(node => colors < 0 ? !node[NODE.verdicts].includes(0) : node[NODE.verdicts][colors] !== 0)) {
      legend.push(sample('nobody'), colors < 0 ? 'no device can' : `${devices[colors].name} cannot`);
    }
    if (asked.length < model.graphs[0].nodes.length) legend.push(sample('badge d6 known'), 'computed when planning');
    $('#legend').replaceChildren(...legend);
    if (svg) { makeMap(); refresh(true); }
  }
  if (devices.length > 1) {
    const button = (device, label) => make('button', {type: 'button', 'data-device': device, onclick: () => setColors(device)}, label);
    $('#colors').append(button(-1, 'first that can'), ...devices.map((device, d) => button(d, device.name)));
  }

  // ---- Tables ----

  function operatorTable() {
    const rows = new Map();
    for (const node of model.graphs[0].nodes) {
      const key = opOf(node);
      if (!rows.has(key)) rows.set(key, {count: 0, folded: 0, flops: 0, known: true, can: devices.map(() => 0)});
      const row = rows.get(key);
      ++row.count;
      if (node[NODE.folded]) { ++row.folded; continue; }
      if (node[NODE.flops] < 0) row.known = false; else row.flops += node[NODE.flops];
      node[NODE.verdicts].forEach((reason, d) => { row.can[d] += reason === 0; });
    }
    const find = op => link(op, () => { search.value = op; findNames(); search.focus(); });
    const verdict = (row, d) => {
      const all = row.count - row.folded;
      return all === 0 ? 'const' : row.can[d] === all ? 'yes' : row.can[d] === 0 ? 'no' : `${row.can[d]} of ${all}`;
    };
    const head = make('tr', {}, make('th', {}, 'operator'), make('th', {class: 'number'}, 'nodes'), make('th', {class: 'number'}, 'FLOP'),
                      ...devices.map((device, d) => make('th', {class: 'number'}, badge(d))));
    const body = [...rows].sort((a, b) => b[1].count - a[1].count || (a[0] < b[0] ? -1 : 1)).map(([op, row]) => make('tr', {},
      make('td', {}, find(op)), make('td', {class: 'number'}, grouped(row.count)), make('td', {class: 'number'}, row.known ? amount(row.flops) : '?'),
      ...devices.map((device, d) => make('td', {class: 'number'}, verdict(row, d)))));
    $('#operators').append(make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)));
  }
  function refusalTable() {
    const rows = new Map(); // device, operator and reason -> nodes
    model.graphs[0].nodes.forEach((node, n) => node[NODE.verdicts].forEach((reason, d) => {
      const key = `${d} ${node[NODE.op]} ${reason}`;
      if (reason !== 0) rows.set(key, [...(rows.get(key) || []), n]);
    }));
    if (rows.size === 0) return;
    const body = [...rows].sort((a, b) => parseInt(a[0], 10) - parseInt(b[0], 10) || b[1].length - a[1].length).map(([key, nodes]) => {
      const [device, , reason] = key.split(' ').map(Number);
      const show = () => { if (shown !== 0) open(0); choose('n', nodes[0], true); };
      return make('tr', {}, make('td', {}, badge(device)), make('td', {}, opOf(model.graphs[0].nodes[nodes[0]])), make('td', {class: 'verdict'}, text(reason)),
                  make('td', {}, link(nodes.length === 1 ? model.graphs[0].nodes[nodes[0]][NODE.name] : `${plural(nodes.length, 'node')}, first: ${model.graphs[0].nodes[nodes[0]][NODE.name]}`, show)));
    });
    const head = make('tr', {}, ...['device', 'operator', 'reason', 'nodes'].map(title => make('th', {}, title)));
    $('#refusals .wide').append(make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)));
    $('#refusals').hidden = false;
  }

  // ---- Search ----

  let found = [], at = -1, names = [];
  function listNames() { // nodes, then inputs and weights
    names = graph.nodes.map((node, n) => ['n', n, `${node[NODE.name]}\n${opOf(node)}\n${node[NODE.source]}`.toLowerCase()]);
    graph.values.forEach((value, v) => { if (value[VALUE.producer] < 0) names.push(['v', v, value[VALUE.name].toLowerCase()]); });
  }
  function pick(next) {
    at = next;
    [...results.children].forEach((item, i) => item.setAttribute('aria-selected', String(i === at)));
    if (results.children[at]) { results.children[at].scrollIntoView({block: 'nearest'}); search.setAttribute('aria-activedescendant', `result-${at}`); }
    else search.removeAttribute('aria-activedescendant');
  }
  function findNames() {
    const MOST = 60, wanted = search.value.trim().toLowerCase();
    found = [];
    if (wanted) for (let i = 0; i < names.length && found.length < 4 * MOST; ++i) if (names[i][2].includes(wanted)) found.push(i);
    found.sort((a, b) => names[a][2].indexOf(wanted) - names[b][2].indexOf(wanted) || a - b);
    found.length = Math.min(found.length, MOST);
    results.replaceChildren(...found.map((i, place) => {
      const [kind, id] = names[i], label = kind === 'n' ? graph.nodes[id][NODE.name] : graph.values[id][VALUE.name];
      return make('li', {role: 'option', id: `result-${place}`, onclick: () => choose(kind, id, true)}, label, soft(kind === 'n' ? opOf(graph.nodes[id]) : text(graph.values[id][VALUE.type])));
    }));
    if (wanted && found.length === 0) results.replaceChildren(make('li', {class: 'soft'}, 'no node, input or weight has this name'));
    results.hidden = !wanted;
    search.setAttribute('aria-expanded', String(!results.hidden));
    pick(found.length > 0 ? 0 : -1);
  }
  search.addEventListener('input', findNames);
  search.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' && at + 1 < found.length) pick(at + 1);
    else if (event.key === 'ArrowUp' && at > 0) pick(at - 1);
    else if (event.key === 'Enter' && at >= 0) choose(names[found[at]][0], names[found[at]][1], true);
    else if (event.key === 'Escape') { search.value = ''; findNames(); }
    else return;
    event.preventDefault();
  });
  addEventListener('keydown', event => {
    if (event.key === '/' && event.target !== search) { event.preventDefault(); search.focus(); search.select(); }
  });

  // ---- Beginning ----

  $('#about').textContent = model.facts.slice(0, 3).map(([name, value]) => name === 'IR version' ? `IR version ${value}` : `${name} ${value}`).join(', ');
  operatorTable();
  refusalTable();
  const wanted = /^#(?:g(\d+))?([nv])(\d+)$/.exec(location.hash), start = wanted && Number(wanted[1] || 0) < model.graphs.length ? Number(wanted[1] || 0) : 0;
  open(start);
  setColors(-1);
  explainGraph();
  if (wanted && Number(wanted[3]) < (wanted[2] === 'n' ? graph.nodes : graph.values).length) choose(wanted[2], Number(wanted[3]), true);
  addEventListener('resize', () => refresh(true));
})();
