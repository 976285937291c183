// The page of a plan: explains at the side the node, partition, group or transfer that is chosen in the picture, in the timeline or by
// the search. Uses write.js, view.js and fold.js.
(() => {
  const plan = JSON.parse(document.getElementById('plan').textContent);
  const text = index => plan.texts[index];
  const NODE = {name: 0, op: 1, device: 2, cause: 3, meaning: 4, note: 5, partition: 6, inputs: 7, outputs: 8, verdicts: 9, moves: 10};
  const VALUE = {name: 0, type: 1, producer: 2, kind: 3};
  const PART = {device: 0, time: 1, start: 2, serial: 3, nodes: 4, inputs: 5, outputs: 6};
  const MOVE = {value: 0, from: 1, to: 2, bytes: 3, time: 4, start: 5, serial: 6, lane: 7, from_space: 8, to_space: 9};
  const KIND = ['', 'input of the graph', 'constant'];
  const $ = selector => document.querySelector(selector);
  const picture = $('.picture'), timeline = $('.timeline'), details = $('.details'), search = $('#search'), results = $('.results');

  // ---- Labels ----

  function bytes(count) {
    if (count < 0) return 'size known only at run time';
    if (count < 1024) return `${count} B`;
    let amount = count / 1024, unit = 0;
    while (amount >= 1023.95 && unit < 4) { amount /= 1024; ++unit; }
    return `${amount.toFixed(1)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}`;
  }
  const badge = device => device < 0 ? make('span', {class: 'badge d6'}, 'nowhere')
                                     : make('span', {class: `badge d${plan.devices[device].color}`}, plan.devices[device].name);
  const link = (label, action) => make('button', {class: 'link', type: 'button', onclick: action}, label);
  const nodeLink = n => link(plan.nodes[n][NODE.name], () => choose('n', n, true));
  const partLink = p => link(`partition ${p}`, () => choose('p', p, true));

  // ---- Values ----

  const readers = plan.values.map(() => []), copies = plan.values.map(() => []);
  plan.nodes.forEach((node, n) => { for (const value of new Set(node[NODE.inputs])) if (value >= 0) readers[value].push(n); });
  plan.transfers.forEach((move, t) => copies[move[MOVE.value]].push(t));

  function copyNote(t) {
    const move = plan.transfers[t];
    return make('li', {class: 'soft'}, 'copied ', link(`${text(move[MOVE.from])} → ${text(move[MOVE.to])}`, () => choose('t', t, true)),
                `, ${bytes(move[MOVE.bytes])}, ${time(move[MOVE.time])}`);
  }
  // Describes a value, followed by its copies: from the memory of `device` if `withReaders`, otherwise to that memory.
  function valueLine(value, withReaders, device) {
    const item = plan.values[value], line = make('li', {}, item[VALUE.name], ' ', make('code', {}, text(item[VALUE.type])));
    if (item[VALUE.kind]) line.append(make('span', {class: 'soft'}, `, ${KIND[item[VALUE.kind]]}`));
    if (!withReaders && item[VALUE.producer] >= 0) line.append(make('span', {class: 'soft'}, ' from '), nodeLink(item[VALUE.producer]));
    if (withReaders && readers[value].length > 0) {
      line.append(make('span', {class: 'soft'}, ' read by '));
      readers[value].slice(0, 6).forEach((n, i) => line.append(i > 0 ? ', ' : '', nodeLink(n)));
      if (readers[value].length > 6) line.append(make('span', {class: 'soft'}, ` and ${readers[value].length - 6} more`));
    }
    const list = [line];
    const side = withReaders ? MOVE.from_space : MOVE.to_space, here = device >= 0 ? plan.devices[device].space : -1;
    if (item[VALUE.kind] !== 2) copies[value].filter(t => plan.transfers[t][side] === here).slice(0, 4).forEach(t => list.push(copyNote(t)));
    return list;
  }
  function valueList(title, values, withReaders, device) {
    const present = values.filter(value => value >= 0);
    if (present.length === 0) return [];
    const list = make('ul', {class: 'values'}), SHOWN = 40;
    for (const value of present.slice(0, SHOWN)) list.append(...valueLine(value, withReaders, device));
    if (present.length > SHOWN) list.append(make('li', {class: 'soft'}, `and ${present.length - SHOWN} more`));
    return [make('h3', {}, title), list];
  }

  // ---- Explanations ----

  function explainNode(n) {
    const node = plan.nodes[n], here = node[NODE.device];
    const cause = text(node[NODE.cause]), meaning = text(node[NODE.meaning]), note = text(node[NODE.note]);
    const rows = plan.devices.map((device, d) => {
      const reason = text(node[NODE.verdicts][d]), move = node[NODE.moves] && node[NODE.moves][d];
      let verdict = 'can run it', price = '';
      if (here < 0) verdict = 'nothing to run';
      else if (d === here) verdict = 'runs it';
      else if (reason) verdict = `cannot: ${reason}`;
      if (here >= 0 && d !== here && !reason && move !== null && move !== undefined) {
        price = make('span', {class: move > 0 ? 'more' : 'less'}, `${move > 0 ? '+' : move < 0 ? '−' : ''}${time(Math.abs(move))}`);
      }
      return make('tr', {}, make('td', {}, badge(d)), make('td', {class: 'verdict'}, verdict), make('td', {class: 'number price'}, price));
    });
    return [
      make('h2', {}, node[NODE.name]),
      make('p', {class: 'soft'}, text(node[NODE.op])),
      make('p', {}, badge(here), node[NODE.partition] >= 0 ? ' in ' : '', node[NODE.partition] >= 0 ? partLink(node[NODE.partition]) : ''),
      make('h3', {}, 'Why there'),
      make('p', {class: 'cause'}, make('strong', {}, cause), meaning ? `: ${meaning}` : '', note ? ` (${note})` : ''),
      make('h3', {}, 'And elsewhere'),
      make('table', {class: 'elsewhere'}, make('tbody', {}, ...rows)),
      make('p', {class: 'soft'}, node[NODE.moves] ? 'The change of the predicted time if only this node moved, without the time of launches.' : 'The graph is too large to compute the price of moving each node.'),
      ...valueList('Reads', node[NODE.inputs], false, here),
      ...valueList('Writes', node[NODE.outputs], true, here),
      make('p', {}, n > 0 ? link('← previous node', () => choose('n', n - 1, true)) : '', n > 0 && n + 1 < plan.nodes.length ? '  ·  ' : '',
           n + 1 < plan.nodes.length ? link('next node →', () => choose('n', n + 1, true)) : ''),
    ];
  }
  function explainPart(p) {
    const part = plan.partitions[p], list = make('ul'), SHOWN = 300;
    const show = limit => {
      list.replaceChildren(...part[PART.nodes].slice(0, limit).map(n => make('li', {}, nodeLink(n), make('span', {class: 'soft'}, ` ${text(plan.nodes[n][NODE.op])}`))));
      if (part[PART.nodes].length > limit) list.append(make('li', {}, link(`and ${part[PART.nodes].length - limit} more`, () => show(Infinity))));
    };
    show(SHOWN);
    const counts = new Map();
    for (const n of part[PART.nodes]) counts.set(text(plan.nodes[n][NODE.op]), (counts.get(text(plan.nodes[n][NODE.op])) || 0) + 1);
    const kinds = [...counts].sort((a, b) => b[1] - a[1]).map(([op, count]) => count > 1 ? `${op} ×${count}` : op);
    return [
      make('h2', {}, `Partition ${p}`),
      make('p', {}, badge(part[PART.device]), ` ${plural(part[PART.nodes].length, 'node')}, ${time(part[PART.time])}`),
      make('p', {class: 'soft'}, `begins at ${time(part[PART.start])} with devices at the same time, at ${time(part[PART.serial])} one step after the other`),
      make('p', {}, make('button', {type: 'button', onclick: () => openPart(p)}, 'Show its nodes')),
      make('h3', {}, 'Operators'), make('p', {}, kinds.slice(0, 12).join(', ') + (kinds.length > 12 ? ', …' : '')),
      ...valueList('Reads', part[PART.inputs], false, part[PART.device]), ...valueList('Writes', part[PART.outputs], true, part[PART.device]),
      make('h3', {}, 'Nodes'), list,
    ];
  }
  function explainGroup(g) {
    const folding = current(), group = folding.groups[g], list = make('ul');
    const {operators, colors} = folding.counts(group), parts = [...new Set(group.nodes.map(n => plan.nodes[n][NODE.partition]))];
    const devices = colors.map(([color, count]) => make('p', {}, badge(plan.devices.findIndex(device => device.color === color)), ` ${plural(count, 'node')}`));
    const button = (label, action) => make('button', {type: 'button', onclick: () => { action(); redraw(group); }}, label);
    for (const member of group.members) list.append(make('li', {}, member.node !== undefined ? nodeLink(member.node) :
      link(member.name, () => choose('g', member.group, true)), make('span', {class: 'soft'}, ` ${member.node !== undefined ? text(plan.nodes[member.node][NODE.op]) : plural(member.nodes.length, 'node')}`)));
    return [
      make('h2', {}, group.given && group.name !== group.given && typeof group.given === 'string' ? group.given : group.name),
      ...devices,
      make('p', {}, group.open ? button('Fold', () => folding.fold(group)) : button('Unfold', () => folding.unfold(group)), ' ',
           button('Unfold all in it', () => folding.unfoldAll(group))),
      make('h3', {}, 'Operators'), make('p', {}, operators.map(([op, count]) => count > 1 ? `${op} ×${count}` : op).slice(0, 12).join(', ') + (operators.length > 12 ? ', …' : '')),
      make('h3', {}, parts.length === 1 ? 'Partition' : 'Partitions'),
      make('p', {}, ...parts.slice(0, 12).flatMap((p, i) => [i > 0 ? ', ' : '', partLink(p)]), parts.length > 12 ? ` and ${parts.length - 12} more` : ''),
      make('h3', {}, 'Content'), list,
    ];
  }
  function explainMove(t) {
    const move = plan.transfers[t], value = plan.values[move[MOVE.value]];
    return [
      make('h2', {}, `Transfer of ${value[VALUE.name]}`),
      make('p', {}, `${text(move[MOVE.from])} → ${text(move[MOVE.to])}`),
      make('p', {}, `${bytes(move[MOVE.bytes])}, ${time(move[MOVE.time])}`),
      make('p', {class: 'soft'}, `begins at ${time(move[MOVE.start])} with devices at the same time, at ${time(move[MOVE.serial])} one step after the other`),
      make('h3', {}, 'The value'), make('ul', {}, ...valueLine(move[MOVE.value], false, -1), ...valueLine(move[MOVE.value], true, -1)),
    ];
  }

  // ---- Choosing ----

  const explain = {n: explainNode, p: explainPart, g: explainGroup, t: explainMove};
  let chosen = null;
  function mark() {
    for (const element of document.querySelectorAll('.chosen')) element.classList.remove('chosen');
    if (!chosen) return;
    const [kind, id] = chosen, part = kind === 'n' ? plan.nodes[id][NODE.partition] : kind === 'p' ? id : -1;
    let target = null;
    if (form === 'layers') {
      const item = current().shown(itemOf(kind, id));
      target = item && picture.querySelector(item.node !== undefined ? `[data-n="${item.node}"]` : `[data-g="${item.group}"]`);
      const frame = item && item.open && picture.querySelector(`[data-f="${item.group}"]`);
      if (frame) frame.classList.add('chosen');
    } else {
      target = kind === 'n' ? picture.querySelector(`[data-n="${id}"]`) : null;
      if (!target && part >= 0) target = picture.querySelector(`[data-p="${part}"]`);
    }
    if (target) target.classList.add('chosen');
    const bar = timeline.querySelector(kind === 't' ? `[data-t="${id}"]` : `[data-b="${part}"]`);
    if (bar) bar.classList.add('chosen');
    return target;
  }
  function choose(kind, id, reveal) {
    chosen = [kind, id];
    details.replaceChildren(...explain[kind](id).filter(Boolean));
    details.parentElement.scrollTop = 0;
    if (reveal && form === 'layers' && itemOf(kind, id)) folds.reveal(itemOf(kind, id), READABLE);
    const target = mark();
    if (reveal && target && form !== 'layers') {
      if (view.zoom < READABLE) view.setZoom(READABLE);
      target.scrollIntoView({block: 'nearest', inline: 'center'});
    }
    if (target) focusable(target);
    try { history.replaceState(null, '', kind === 'g' ? '#' : `#${kind}${id}`); } catch (error) { /* some viewers forbid replaceState() */ }
  }

  // ---- Picture ----

  const READABLE = 0.5, FEW_PARTITIONS = 24, UNFOLDED = 40;
  const forms = {nodes: $('#form-nodes'), partitions: $('#form-partitions')};
  let form = 'partitions', by = plan.partitions.length > FEW_PARTITIONS ? 0 : plan.foldings.length - 1;
  const view = viewOf(picture, () => { if (form === 'layers') folds.paint(); });
  const copyOf = template => template.content.firstElementChild.cloneNode(true);

  // Shows nodes at first, unless they would be too small to read when all lanes are visible; then partitions. Shows layers if partitions
  // would be too small, too, or if there are too many nodes and so few partitions that they say little.
  function formAtFirst() {
    const readable = template => picture.clientWidth - 2 >= READABLE * template.content.firstElementChild.viewBox.baseVal.width;
    if (forms.nodes && readable(forms.nodes)) return 'nodes';
    return readable(forms.partitions) && (forms.nodes || plan.partitions.length > FEW_PARTITIONS) ? 'partitions' : 'layers';
  }
  function tools() {
    for (const button of document.querySelectorAll('[data-form]')) {
      button.hidden = !forms.nodes && button.dataset.form === 'nodes';
      button.setAttribute('aria-pressed', String(button.dataset.form === form));
    }
    for (const button of document.querySelectorAll('[data-by]')) {
      button.hidden = form !== 'layers' || plan.foldings.length < 2;
      button.setAttribute('aria-pressed', String(Number(button.dataset.by) === by));
    }
    $('#fold').hidden = $('#unfold').hidden = form !== 'layers';
  }
  function show(next) {
    form = next || form;
    if (form === 'layers') {
      folds.show(current(), READABLE);
    } else {
      view.show(copyOf(forms[form]));
      focusables();
    }
    tools();
    mark();
  }

  // ---- Layers ----

  const foldings = [];
  const folds = foldsIn(picture, view, () => { focusables(); mark(); });
  function current() {
    if (!foldings[by]) {
      const edges = [];
      plan.nodes.forEach((node, n) => {
        for (const from of new Set(node[NODE.inputs].map(value => value >= 0 ? plan.values[value][VALUE.producer] : -1))) if (from >= 0) edges.push([from, n]);
      });
      foldings[by] = foldable({...plan.foldings[by], edges, describe: n => described[n]});
      foldings[by].unfoldTo(foldings[by].root, UNFOLDED);
    }
    return foldings[by];
  }
  const described = plan.nodes.map(node => ({op: text(node[NODE.op]), name: node[NODE.name], color: node[NODE.device] < 0 ? 6 : plan.devices[node[NODE.device]].color,
    weights: node[NODE.inputs].flatMap(value => weightsOf(value, 4))}));
  // The names of the weights from which a constant was made when planning.
  function weightsOf(value, depth) {
    if (value < 0 || plan.values[value][VALUE.kind] !== 2) return [];
    const producer = plan.values[value][VALUE.producer];
    if (producer < 0) return [plan.values[value][VALUE.name]];
    return depth > 0 ? plan.nodes[producer][NODE.inputs].flatMap(input => weightsOf(input, depth - 1)) : [];
  }
  // The item of a node, a partition or a group; null for a node that does not run, and for a partition of several nodes without group.
  function itemOf(kind, id) {
    const folding = current(), nodes = kind === 'p' ? plan.partitions[id][PART.nodes] : [];
    if (kind === 'g') return folding.groups[id];
    return (kind === 'p' ? folding.partition(id) || (nodes.length === 1 && folding.leaves.get(nodes[0])) : kind === 'n' && folding.leaves.get(id)) || null;
  }
  function redraw(group) {
    folds.redraw(group);
    if (chosen && chosen[0] === 'g') details.replaceChildren(...explainGroup(chosen[1]).filter(Boolean));
  }
  function toggle(g) {
    current().toggle(current().groups[g]);
    redraw(current().groups[g]);
  }
  function openPart(p) {
    if (forms.nodes) {
      show('nodes');
      choose('p', p, true);
      return;
    }
    by = plan.foldings.length - 1;
    const group = current().partition(p);
    if (group) {
      current().unfold(group);
      current().unfoldTo(group, UNFOLDED);
    }
    show('layers');
    choose('p', p, true);
  }

  // ---- Mouse and keys in the picture ----

  const BOXES = '[data-n], [data-p], [data-g]';
  function focusables() {
    const all = picture.querySelectorAll(BOXES);
    for (const element of all) {
      element.setAttribute('tabindex', '-1');
      element.setAttribute('role', 'button');
    }
    if (all.length > 0) all[0].setAttribute('tabindex', '0');
  }
  function focusable(element) {
    for (const other of picture.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    element.setAttribute('tabindex', '0');
  }
  function chooseElement(element, reveal) {
    const {n, p, g, f} = element.dataset;
    if (n !== undefined) choose('n', Number(n), reveal);
    else if (p !== undefined) choose('p', Number(p), reveal);
    else choose('g', Number(g ?? f), reveal);
  }
  picture.addEventListener('click', event => {
    const element = event.target.closest(`${BOXES}, [data-f]`);
    if (!element || view.moved) return;
    if (event.target.closest('.sign, .grip')) toggle(Number(element.dataset.g));
    else chooseElement(element, false);
  });
  picture.addEventListener('dblclick', event => {
    const element = event.target.closest('[data-p], [data-g]');
    if (!element || event.target.closest('.sign, .grip')) return;
    if (element.dataset.g !== undefined) toggle(Number(element.dataset.g));
    else if (!forms.nodes) openPart(Number(element.dataset.p));
  });
  picture.addEventListener('keydown', event => {
    const box = event.target.closest(BOXES);
    if (!box) return;
    if (event.key === ' ' && box.dataset.g !== undefined) toggle(Number(box.dataset.g));
    else if (event.key === 'Enter' || event.key === ' ') chooseElement(box, false);
    else if (event.key.startsWith('Arrow')) {
      const all = [...picture.querySelectorAll(form === 'layers' ? BOXES : box.dataset.n !== undefined ? '[data-n]' : '[data-p]')];
      const step = event.key === 'ArrowRight' || event.key === 'ArrowDown' ? 1 : -1;
      const next = all[all.indexOf(box) + step];
      if (next) { focusable(next); next.focus({preventScroll: true}); next.scrollIntoView({block: 'nearest', inline: 'nearest'}); }
    } else return;
    event.preventDefault();
  });
  $('#closer').addEventListener('click', () => view.setZoom(view.zoom * 1.25));
  $('#farther').addEventListener('click', () => view.setZoom(view.zoom / 1.25));
  $('#fit').addEventListener('click', () => view.fit());
  $('#fold').addEventListener('click', () => { current().foldAll(current().root); redraw(current().root); });
  $('#unfold').addEventListener('click', () => { current().unfoldAll(current().root); redraw(current().root); });
  for (const button of document.querySelectorAll('[data-form]')) button.addEventListener('click', () => show(button.dataset.form));
  for (const button of document.querySelectorAll('[data-by]')) button.addEventListener('click', () => { by = Number(button.dataset.by); show(); });

  // ---- Timeline ----

  let serial = plan.objective === 0, stretch = 1;
  function ticks(end, count) {
    const rough = end / count, power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough) || 1;
    const list = [];
    for (let at = 0; at <= end; at += step) list.push(at);
    return list;
  }
  // Shortens a lane's name to at most `room` pixels. Returns the shortened name and its width.
  function fitLabel(svg, name, room) {
    const text = draw('text', {class: 'lane-label'}, name.length > 80 ? `${name.slice(0, 79)}…` : name);
    svg.append(text);
    for (let count = Math.min(79, name.length); count > 0 && text.getComputedTextLength() > room; --count) text.textContent = `${name.slice(0, count)}…`;
    return [text.textContent, text.getComputedTextLength()];
  }
  function drawTimeline() {
    const ROW = 30, TOP = 24, LETTER = 6.5, end = Math.max(1, serial ? plan.serial_ns : plan.overlapped_ns);
    const width = Math.max(300, timeline.clientWidth * stretch), labels = new Map();
    const most = Math.min(timeline.clientWidth * 0.4, 260), probe = draw('svg', {width: 0, height: 0}); // room for names
    timeline.replaceChildren(probe);
    for (const {name} of plan.lanes) labels.set(name, fitLabel(probe, name, most));
    const LEFT = Math.max(60, ...[...labels.values()].map(label => label[1] + 22)), scale = (width - LEFT - 14) / end;
    const height = TOP + plan.lanes.length * ROW + 6, chart = draw('svg', {width, height, role: 'group'});
    for (const at of ticks(end * 0.999, Math.max(2, Math.min(8 * stretch, (width - LEFT) / 90)))) {
      const x = LEFT + at * scale;
      chart.append(draw('line', {x1: x, x2: x, y1: TOP - 4, y2: height - 4, class: 'grid'}));
      if (x + 6 + LETTER * time(at).length < width) chart.append(draw('text', {x: x + 3, y: 14, class: 'axis'}, time(at)));
    }
    const lanes = plan.lanes.map((lane, i) => {
      const group = draw('g', {class: 'timeline-lane', 'data-lane': i});
      group.append(draw('rect', {x: LEFT, y: TOP + i * ROW + 3, width: width - LEFT, height: ROW - 6, class: 'row', 'fill-opacity': 0.6}),
                   draw('text', {x: 10, y: TOP + i * ROW + 19, class: `lane-label ink d${lane.color}`}, labels.get(lane.name)[0]));
      group.append(draw('title', {}, lane.name));
      chart.append(group);
      return group;
    });
    const bar = (lane, start, length, attributes, label, hint) => {
      const x = LEFT + start * scale, w = Math.max(1, length * scale), y = TOP + lane * ROW + 5;
      const rect = draw('rect', {x, y, width: w, height: ROW - 10, rx: Math.min(3, w / 4), ...attributes});
      rect.append(draw('title', {}, hint));
      lanes[lane].append(rect);
      if (label && w > 8 + 7 * label.length) lanes[lane].append(draw('text', {x: x + w / 2, y: y + 14, class: 'in-bar'}, label));
    };
    plan.partitions.forEach((part, p) => bar(part[PART.device], part[serial ? PART.serial : PART.start], part[PART.time],
      {class: `bar d${plan.devices[part[PART.device]].color}`, 'data-b': p}, String(p), `partition ${p}: ${plural(part[PART.nodes].length, 'node')}, ${time(part[PART.time])}`));
    plan.transfers.forEach((move, t) => bar(move[MOVE.lane], move[serial ? MOVE.serial : MOVE.start], move[MOVE.time],
      {class: `bar copy d${plan.lanes[move[MOVE.lane]].color}`, 'data-t': t}, '', `${plan.values[move[MOVE.value]][VALUE.name]}: ${text(move[MOVE.from])} → ${text(move[MOVE.to])}, ${bytes(move[MOVE.bytes])}, ${time(move[MOVE.time])}`));
    timeline.replaceChildren(chart);
    for (const button of document.querySelectorAll('[data-schedule]')) button.setAttribute('aria-pressed', String((button.dataset.schedule === 'serial') === serial));
    $('#span').textContent = time(end);
    mark();
  }
  timeline.addEventListener('click', event => {
    const element = event.target.closest('[data-b], [data-t]');
    if (!element) return;
    if (element.dataset.b !== undefined) choose('p', Number(element.dataset.b), true);
    else choose('t', Number(element.dataset.t), true);
  });
  for (const button of document.querySelectorAll('[data-schedule]')) button.addEventListener('click', () => { serial = button.dataset.schedule === 'serial'; drawTimeline(); });
  const restretch = factor => {
    const middle = (timeline.scrollLeft + timeline.clientWidth / 2) / stretch;
    stretch = Math.min(60, Math.max(1, stretch * factor));
    drawTimeline();
    timeline.scrollLeft = middle * stretch - timeline.clientWidth / 2;
  };
  $('#longer').addEventListener('click', () => restretch(1.6));
  $('#shorter').addEventListener('click', () => restretch(1 / 1.6));

  // ---- Search ----

  let found = [], at = -1;
  const names = plan.nodes.map(node => `${node[NODE.name]}\n${text(node[NODE.op])}`.toLowerCase());
  function pick(next) {
    at = next;
    [...results.children].forEach((item, i) => item.setAttribute('aria-selected', String(i === at)));
    if (results.children[at]) { results.children[at].scrollIntoView({block: 'nearest'}); search.setAttribute('aria-activedescendant', `result-${at}`); }
    else search.removeAttribute('aria-activedescendant');
  }
  // Chooses a node that was searched for. Single nodes of a large plan are only in the layers.
  function findNode(n) {
    if (!forms.nodes && form !== 'layers') show('layers');
    choose('n', n, true);
    if (matchMedia('(max-width: 980px)').matches) $('section').scrollIntoView(); // above the panel
  }
  function find() {
    const MOST = 60, wanted = search.value.trim().toLowerCase();
    found = [];
    if (wanted) for (let n = 0; n < names.length && found.length < 4 * MOST; ++n) if (names[n].includes(wanted)) found.push(n);
    found.sort((a, b) => names[a].indexOf(wanted) - names[b].indexOf(wanted) || a - b);
    found.length = Math.min(found.length, MOST);
    results.replaceChildren(...found.map((n, i) => make('li', {role: 'option', id: `result-${i}`, onclick: () => findNode(n)},
      plan.nodes[n][NODE.name], make('span', {class: 'soft'}, text(plan.nodes[n][NODE.op]), ' ', badge(plan.nodes[n][NODE.device])))));
    if (wanted && found.length === 0) results.replaceChildren(make('li', {class: 'soft'}, 'no node has this name or operator'));
    results.hidden = !wanted;
    search.setAttribute('aria-expanded', String(!results.hidden));
    pick(found.length > 0 ? 0 : -1);
  }
  search.addEventListener('input', find);
  search.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' && at + 1 < found.length) pick(at + 1);
    else if (event.key === 'ArrowUp' && at > 0) pick(at - 1);
    else if (event.key === 'Enter' && at >= 0) findNode(found[at]);
    else if (event.key === 'Escape') { search.value = ''; find(); }
    else return;
    event.preventDefault();
  });
  addEventListener('keydown', event => {
    if (event.key === '/' && event.target !== search) { event.preventDefault(); search.focus(); search.select(); }
  });

  // ---- Beginning ----

  show(formAtFirst());
  drawTimeline();
  let width = timeline.clientWidth;
  new ResizeObserver(() => { if (timeline.clientWidth !== width) { width = timeline.clientWidth; drawTimeline(); } }).observe(timeline);
  const wanted = /^#([npt])(\d+)$/.exec(location.hash), sizes = {n: plan.nodes.length, p: plan.partitions.length, t: plan.transfers.length};
  if (wanted && Number(wanted[2]) < sizes[wanted[1]]) choose(wanted[1], Number(wanted[2]), true);
})();
