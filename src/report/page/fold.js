// Pictures of graphs whose groups fold and unfold. Uses write.js and layers.js.
//
// foldable(source) takes
//   order, groups   as clv__html_groups() writes them: the nodes, and [parent, first, end, kind, name or number, total] of each group
//   edges           pairs [from, to] of nodes
//   describe(node)  {op, name, color, weights}, where `weights` are the names of the constants that it reads
// An item is a node or a group: {node, parent} or {group, parent, members, open, name, nodes}. The picture's root is an open group.
function foldable(source) {
  const PART = 0, SCOPE = 1, BLOCK = 2;
  const CHIP = 24, CARD = 46, SIDE = 9, PADDING = 14, HEAD = 30, PORT = 6, MOST_PORTS = 24, NAME_ROOM = 130, CARD_ROOM = 230, WIDE = 1200;
  const CULLED = 500; // pictures with more items are drawn only where they are in view
  const FINE = 0.3;   // below this zoom, nodes have no text
  const FONTS = {op: '600 11.5px', 'chip-name': '10.5px', name: '600 13px', small: '11.5px'};

  // ---- Texts ----

  const family = getComputedStyle(document.body).fontFamily, pens = {};
  for (const [style, font] of Object.entries(FONTS)) {
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = `${font} ${family}`;
    pens[style] = {pen, known: new Map()};
  }
  // Returns the sum of the widths of the letters, because that is much faster to get than the width of the whole text.
  function widthOf(text, style) {
    const {pen, known} = pens[style];
    let sum = 0;
    for (const letter of text) {
      let width = known.get(letter);
      if (width === undefined) known.set(letter, width = pen.measureText(letter).width);
      sum += width;
    }
    return sum;
  }
  // Replaces the middle of a text that is wider than `room` pixels.
  function fit(text, style, room) {
    const letters = [...(text.length > 400 ? `${text.slice(0, 200)}${text.slice(-200)}` : text)];
    if (text.length <= 400 && widthOf(text, style) <= room) return text;
    let low = 0, high = letters.length - 1;
    const short = count => `${letters.slice(0, Math.ceil(count / 2)).join('')}…${count > 1 ? letters.slice(-Math.floor(count / 2)).join('') : ''}`;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (widthOf(short(middle), style) <= room) low = middle;
      else high = middle - 1;
    }
    return short(low);
  }
  // The last word of a name, with the numbers after it: "linear/0" of "layer.1/linear/0".
  function lastWord(name) {
    const words = name.split('/').filter(Boolean);
    let first = words.length - 1;
    while (first > 0 && /^[0-9]+$/.test(words[first])) --first;
    return words.slice(first).join('/') || name;
  }

  // ---- Structure ----

  const root = {group: -1, parent: null, members: [], open: true, name: '', links: [], ins: new Map(), outs: new Map(), depth: 0};
  const groups = source.groups.map(([, first, end, kind, name, total], group) => ({group, kind, first, end, given: name, total, members: [],
    open: false, links: [], ins: new Map(), outs: new Map(), nodes: source.order.slice(first, end)}));
  root.nodes = source.order;
  const leaves = new Map();
  let next = 0;
  source.order.forEach((node, position) => {
    for (; next < groups.length && groups[next].first === position; ++next) {
      const parent = groups[source.groups[next][0]] || root;
      groups[next].parent = parent;
      groups[next].depth = parent.depth + 1;
      parent.members.push(groups[next]);
    }
    let parent = groups[next - 1] || root;
    while (parent !== root && parent.end <= position) parent = parent.parent;
    const leaf = {node, parent, depth: parent.depth + 1};
    parent.members.push(leaf);
    leaves.set(node, leaf);
  });

  function scopeAround(item) {
    for (let at = item.parent; at; at = at.parent) if (at.kind === SCOPE) return at.given;
    return '';
  }
  const within = (name, scope) => scope && name.startsWith(scope) && '/.'.includes(name[scope.length]) ? name.slice(scope.length + 1) : name;
  // Returns the scope of most weights of a group, such as "model.layers.3", or ''. It can name a group whose nodes have no
  // scope.
  function scopeOfWeights(nodes) {
    let names = nodes.flatMap(node => source.describe(node).weights.filter(name => /[/.]/.test(name))), scope = '';
    for (const least = 0.7 * names.length; names.length > 0;) {
      const longer = new Map();
      for (const name of names) {
        const end = name.slice(scope.length + 1).search(/[/.]/);
        if (end >= 0) longer.set(name.slice(0, scope.length + 1 + end), (longer.get(name.slice(0, scope.length + 1 + end)) || 0) + 1);
      }
      const [[next, count]] = [...longer, ['', 0]].sort((a, b) => b[1] - a[1]);
      if (count < least || count < 2) break;
      scope = next;
      names = names.filter(name => name.startsWith(scope));
    }
    return scope;
  }
  for (const group of groups) {
    const {kind, given, total, nodes} = group;
    group.scope = kind === SCOPE ? given : kind === PART ? '' : scopeOfWeights(nodes);
    const scope = kind === SCOPE || !group.scope || group.scope === group.parent.scope ? '' : within(group.scope, group.parent.scope);
    group.name = kind === PART ? `partition ${given}` : kind === SCOPE ? within(given, scopeAround(group)) :
      kind === BLOCK ? (scope ? `${scope} (${given} of ${total})` : `block ${given} of ${total}`) :
      scope || `${lastWord(source.describe(nodes[0]).name)} … ${lastWord(source.describe(nodes[nodes.length - 1]).name)}`;
  }

  // Adds a link to every group that the edge is in, or whose border it crosses. `ins` and `outs` number the nodes from which values enter
  // and leave a group.
  for (const [from, to] of source.edges) {
    let a = leaves.get(from), b = leaves.get(to);
    if (!a || !b) continue;
    while (a.parent !== b.parent) {
      const leave = a.depth >= b.depth, item = leave ? a : b, around = item.parent, ports = leave ? around.outs : around.ins;
      if (!ports.has(from)) ports.set(from, Math.min(ports.size, MOST_PORTS - 1));
      around.links.push(leave ? {a: item, b: null, from, to} : {a: null, b: item, from, to});
      if (leave) a = around;
      else b = around;
    }
    a.parent.links.push({a, b, from, to});
  }

  // The numbers of nodes by operator and by colour, most frequent first.
  function counts(item) {
    if (!item.counts) {
      const operators = new Map(), colors = new Map();
      for (const node of item.nodes) {
        const {op, color} = source.describe(node);
        operators.set(op, (operators.get(op) || 0) + 1);
        colors.set(color, (colors.get(color) || 0) + 1);
      }
      item.counts = {operators: [...operators].sort((a, b) => b[1] - a[1]), colors: [...colors].sort((a, b) => a[0] - b[0])};
    }
    return item.counts;
  }
  const shortOp = op => /^\w+\.\w+\.\w+$/.test(op) ? op.split('.')[1] : op; // "linear" of "aten.linear.default"
  // Returns the number of nodes and the most frequent operators, as many as there is room for.
  function summary(item, room) {
    let line = plural(item.nodes.length, 'node'), separator = ' · ';
    for (const [op, count] of counts(item).operators) {
      const longer = `${line}${separator}${shortOp(op)}${count > 1 ? ` ×${count}` : ''}`;
      if (widthOf(longer, 'small') > room) return line;
      line = longer;
      separator = ', ';
    }
    return line;
  }
  const colorOf = item => item.node !== undefined ? source.describe(item.node).color : counts(item).colors.length === 1 ? counts(item).colors[0][0] : 6;

  // ---- Layout ----

  function measure(item, slim) {
    if (item.open) {
      lay(item);
      return;
    }
    if (item.node === undefined) {
      item.label = fit(item.name, 'name', CARD_ROOM);
      item.detail = summary(item, CARD_ROOM);
      item.width = Math.max(widthOf(item.label, 'name') + 20, widthOf(item.detail, 'small')) + 2 * SIDE + 2;
      item.height = CARD;
      return;
    }
    const {op, name} = source.describe(item.node), word = lastWord(within(name, scopeAround(item)));
    item.label = fit(shortOp(op), 'op', 180);
    item.detail = slim ? '' : fit(word, 'chip-name', NAME_ROOM);
    item.width = 2 * SIDE + widthOf(item.label, 'op') + (item.detail ? 6 + widthOf(item.detail, 'chip-name') : 0);
    item.height = CHIP;
  }

  // Sets the size of an open group, and `left` and `top` of its members, relative to its content.
  function lay(group, slim) {
    if (group.laid) return;
    for (const member of group.members) measure(member, slim);
    const ports = (map, port) => Array.from({length: Math.min(map.size, MOST_PORTS)}, () => ({width: PORT, height: 0, port}));
    const ins = ports(group.ins, 'in'), outs = ports(group.outs, 'out'), items = [...ins, ...group.members, ...outs];
    group.members.forEach((member, i) => { member.index = ins.length + i; });
    const links = new Map();
    for (const {a, b, from, to} of group.links) {
      const leaving = a && a.open ? a.outs.get(from) : -1, entering = b && b.open ? b.ins.get(from) : -1;
      const start = a ? a.index : group.ins.get(from), end = b ? b.index : ins.length + group.members.length + group.outs.get(from);
      const key = `${start} ${leaving} ${end} ${entering}`;
      if (!links.has(key)) {
        links.set(key, {from: start, to: end, fromOffset: leaving < 0 ? 0 : a.outAt[leaving] - a.width / 2,
                        toOffset: entering < 0 ? 0 : b.inAt[entering] - b.width / 2, crossing: false});
      }
      if (source.describe(from).color !== source.describe(to).color) links.get(key).crossing = true;
    }
    group.wires = [...links.values()];
    const {width, height} = arrange(items, group.wires, HEAD, PADDING);
    if (width > WIDE && !slim) {
      lay(group, true);
      return;
    }
    const least = group === root ? 0 : Math.min(CARD_ROOM, widthOf(group.name, 'name')) + 28, pad = Math.max(0, least - width) / 2;
    group.shift = PADDING + pad;
    for (const member of group.members) {
      member.left = member.x - member.width / 2;
      member.top = member.y;
    }
    group.inAt = ins.map(port => group.shift + port.x);
    group.outAt = outs.map(port => group.shift + port.x);
    group.width = width + 2 * group.shift;
    group.height = height + HEAD + PADDING;
    group.laid = true;
  }
  function change(group, open) {
    if (group.open === open || group === root) return;
    group.open = open;
    for (let at = group; at; at = at.parent) at.laid = false;
  }
  function visible(group) {
    return group.members.reduce((sum, member) => sum + 1 + (member.open ? visible(member) : 0), 0);
  }

  // ---- Drawing ----

  const titleOf = item => `${typeof item.given === 'string' ? item.given : item.name}: ${summary(item, 600)}`;

  const sign = (x, y, plus) => draw('path', {class: 'sign', d: `M${x},${y}h9${plus ? 'm-4.5,-4.5v9' : ''}`});
  function drawNode(item, fine) {
    const {op, name, color} = source.describe(item.node), {left, top, width} = item;
    const group = draw('g', {class: 'node', 'data-n': item.node});
    group.append(draw('rect', {class: `chip d${color}`, x: left, y: top, width, height: CHIP, rx: 5}));
    if (!fine) return group;
    const text = draw('text', {class: 'chip-text', x: left + width / 2, y: top + 16});
    text.append(draw('tspan', {class: 'op'}, item.label));
    if (item.detail) text.append(draw('tspan', {class: 'chip-name', dx: 6}, item.detail));
    group.append(text, draw('title', {}, `${name} (${op})`));
    return group;
  }
  function drawCard(item, fine) {
    const {left, top, width} = item, group = draw('g', {class: 'group', 'data-g': item.group}), color = colorOf(item);
    group.append(draw('rect', {class: `box under d${color}`, x: left + 4, y: top + 4, width: width - 4, height: CARD - 4, rx: 7}),
                 draw('rect', {class: `box d${color}`, x: left, y: top, width: width - 4, height: CARD - 4, rx: 7}));
    const shares = counts(item).colors;
    let x = left + SIDE;
    for (const [share, count] of shares.length > 1 ? shares : []) {
      const wide = (width - 4 - 2 * SIDE) * count / item.nodes.length;
      group.append(draw('rect', {class: `bar d${share}`, x, y: top + CARD - 9, width: wide, height: 3}));
      x += wide;
    }
    if (!fine) return group;
    group.append(draw('rect', {class: 'grip', x: left, y: top, width: 28, height: 26}), sign(left + SIDE, top + 14, true), draw('text', {class: 'name', x: left + SIDE + 16, y: top + 18}, item.label),
                 draw('text', {class: 'small', x: left + SIDE, y: top + 33}, item.detail), draw('title', {}, titleOf(item)));
    return group;
  }
  function drawFrame(item) {
    const {left, top, width, height} = item, group = draw('g', {class: 'open', 'data-f': item.group});
    group.append(draw('rect', {class: `frame${item.depth % 2 ? ' odd' : ''}`, x: left, y: top, width, height, rx: 9}));
    return group;
  }
  function drawHead(item) {
    const group = draw('g', {class: 'head', 'data-g': item.group});
    group.append(draw('rect', {class: 'grip', x: item.left, y: item.top, width: 26, height: 26}), sign(item.left + 10, item.top + 14, false),
                 draw('text', {class: 'name', x: item.left + 25, y: item.top + 19}, fit(item.name, 'name', item.width - 36)), draw('title', {}, titleOf(item)));
    return group;
  }
  const meets = (item, area) => item.left < area.right && item.left + item.width > area.left && item.top < area.bottom && item.top + item.height > area.top;
  function drawContent(group, area, fine) {
    const content = draw('g', {transform: `translate(${group.shift},${group === root ? PADDING : HEAD})`});
    const inner = {left: area.left - group.shift, right: area.right - group.shift, top: area.top - HEAD, bottom: area.bottom - HEAD};
    const shown = group.members.filter(member => meets(member, inner));
    for (const member of shown) if (member.open) content.append(drawFrame(member));
    for (const [style, crossing] of [['edge', false], ['edge crossing', true]]) {
      const d = group.wires.filter(({crossing: crosses, area}) => crosses === crossing && area.left <= inner.right && area.right >= inner.left && area.top <= inner.bottom && area.bottom >= inner.top).map(wire => wire.path).join('');
      if (d) content.append(draw('path', {class: style, d}));
    }
    for (const member of shown) {
      if (member.open) {
        const holder = draw('g', {transform: `translate(${member.left},${member.top})`});
        holder.append(drawContent(member, {left: inner.left - member.left, right: inner.right - member.left, top: inner.top - member.top, bottom: inner.bottom - member.top}, fine));
        content.append(holder, drawHead(member));
      } else {
        content.append(member.node !== undefined ? drawNode(member, fine) : drawCard(member, fine));
      }
    }
    return content;
  }

  const svg = draw('svg', {class: 'folding'});
  return {
    svg, root, groups, summary, counts, leaves,
    partition: number => groups.find(group => group.kind === PART && group.given === number),
    FINE,
    // Lays out what changed. Returns whether the picture has so many items that only those in view should be drawn.
    layOut() {
      lay(root);
      svg.setAttribute('viewBox', `0 0 ${Math.ceil(root.width)} ${Math.ceil(root.height - HEAD + PADDING)}`);
      return visible(root) > CULLED;
    },
    // Draws the items in `area` {left, top, right, bottom}, in the coordinates of the picture.
    paint(area, zoom) {
      svg.replaceChildren(drawContent(root, {left: area.left, right: area.right, top: area.top + HEAD - PADDING, bottom: area.bottom + HEAD - PADDING}, zoom >= FINE));
    },
    // Returns the rectangle of an item whose surrounding groups are open.
    placeOf(item) {
      let left = item.left, top = item.top;
      for (let at = item.parent; at; at = at.parent) {
        left += at.shift + (at.left || 0);
        top += (at === root ? PADDING : HEAD) + (at.top || 0);
      }
      return {left, top, width: item.width, height: item.height};
    },
    // Returns what is visible of an item (or null): the outermost folded group around it, or the item itself.
    shown(item) {
      for (let at = item && item.parent; at; at = at.parent) if (!at.open) item = at;
      return item;
    },
    // Unfolds the groups around an item.
    reveal(item) { for (let at = item.parent; at; at = at.parent) change(at, true); },
    fold(group) { change(group, false); },
    unfold(group) { change(group, true); },
    toggle(group) { change(group, !group.open); },
    foldAll(group) { for (const inner of group.members) if (inner.members) { this.foldAll(inner); change(inner, false); } },
    unfoldAll(group) { change(group, true); for (const inner of group.members) if (inner.members) this.unfoldAll(inner); },
    // Unfolds one level after the other while at most `most` items are visible.
    unfoldTo(group, most) {
      for (let level = group.members.filter(member => member.members); level.length > 0;) {
        if (visible(root) + level.reduce((sum, inner) => sum + inner.members.length, 0) > most) break;
        for (const inner of level) change(inner, true);
        level = level.flatMap(inner => inner.members.filter(member => member.members));
      }
    },
  };
}

// Shows pictures of foldable() in a box with a view of viewOf(), one at a time. Calls drawn() after items were drawn anew.
function foldsIn(box, view, drawn) {
  let folding = null, large = false, painted = null; // painted: the area that was drawn last
  const folds = {
    show(next, readable) {
      folding = next;
      painted = null;
      large = folding.layOut();
      view.show(folding.svg, readable);
    },
    // Draws the items in view and around it, if they were not drawn yet. The keyboard focus stays on the item that has it.
    paint() {
      const {zoom} = view, [w, h] = [box.clientWidth / zoom, box.clientHeight / zoom], [x, y] = [box.scrollLeft / zoom, box.scrollTop / zoom];
      const fine = zoom >= folding.FINE;
      if (painted && painted.fine === fine && x >= painted.left && y >= painted.top && x + w <= painted.right && y + h <= painted.bottom) return;
      const focused = box.contains(document.activeElement) && document.activeElement.dataset;
      painted = large ? {left: x - w / 2, top: y - h / 2, right: x + 1.5 * w, bottom: y + 1.5 * h} : {left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity};
      folding.paint(painted, zoom);
      painted.fine = fine;
      drawn();
      const again = focused && box.querySelector(focused.n !== undefined ? `[data-n="${focused.n}"]` : `[data-g="${focused.g}"]`);
      if (again) {
        again.setAttribute('tabindex', '0');
        again.focus({preventScroll: true});
      }
    },
    // Draws the picture after groups were folded or unfolded. `group` stays where it is on the screen.
    redraw(group) {
      const place = () => { const {left, top} = folding.placeOf(group); return [left * view.zoom, top * view.zoom]; };
      const before = group !== folding.root && place();
      large = folding.layOut();
      painted = null;
      view.resize();
      if (before) {
        const after = place();
        box.scrollLeft += after[0] - before[0];
        box.scrollTop += after[1] - before[1];
      }
      folds.paint();
    },
    // Unfolds the groups around an item, and scrolls to it. The zoom is at least `readable`.
    reveal(item, readable) {
      folding.reveal(item);
      folds.redraw(folding.root);
      if (view.zoom < readable) view.setZoom(readable);
      view.reveal(folding.placeOf(item));
    },
  };
  return folds;
}
