// Draws the timeline of a GNN plan: per device, a row with the predicted tasks and, after a run, a row with the measured tasks. Uses the
// functions of write.js.
(() => {
  const plan = JSON.parse(document.getElementById('plan').textContent);
  const SPAN = {layer: 0, subgraph: 1, cluster: 2, block: 3, part: 4, device: 5, name: 6, start: 7, end: 8, rows: 9, targets: 10, edges: 11,
                padded_rows: 12, padded_edges: 13, begin: 14, packed: 15, computed: 16, done: 17};
  const ROW = 26, GAP = 10, AXIS = 24;
  const $ = selector => document.querySelector(selector);
  const timeline = $('.timeline'), names = $('.lane-names'), details = $('.details');
  const kinds = plan.has_run ? ['predicted', 'measured'] : ['predicted'];
  // The end of the last span. It may exceed the sum of the layers' times, because saving the state for --resume happens between layers.
  const total = plan.spans.reduce((most, span) => Math.max(most, span[SPAN.end], span[SPAN.done] || 0), Math.max(plan.predicted, 1));
  let zoom = 1, rows = [];

  // ---- Spans ----

  const has_run = span => span.length > SPAN.begin;
  const from = (span, kind) => span[kind === 'measured' ? SPAN.begin : SPAN.start];
  const to = (span, kind) => span[kind === 'measured' ? SPAN.done : SPAN.end];

  // ---- Explaining ----

  function explain(index) {
    const span = plan.spans[index], device = plan.devices[span[SPAN.device]];
    const predicted = span[SPAN.end] - span[SPAN.start], list = make('dl');
    const say = (what, value) => list.append(make('div', {}, make('dt', {}, what), make('dd', {}, value)));
    say('predicted', `${time(predicted)}, from ${time(span[SPAN.start])}`);
    if (has_run(span)) {
      const measured = span[SPAN.done] - span[SPAN.begin];
      const packing = span[SPAN.packed] - span[SPAN.begin] + span[SPAN.done] - span[SPAN.computed];
      say('measured', `${time(measured)}, from ${time(span[SPAN.begin])}`);
      if (predicted > 0) say('measured / predicted', `×${(measured / predicted).toFixed(2)}`);
      say('gathering, padding, laying out', time(packing));
    } else if (plan.has_run) say('measured', 'not in this run');
    const count = number => number.toLocaleString('en');
    say('rows computed', count(span[SPAN.targets]));
    say('rows read', count(span[SPAN.rows]));
    say('edges', count(span[SPAN.edges]));
    if (device.static) say('padded to', `${count(span[SPAN.padded_rows])} rows, ${count(span[SPAN.padded_edges])} edges`);
    say('cluster, block, part', `${span[SPAN.cluster]}, ${span[SPAN.block]}, ${span[SPAN.part]}`);
    const title = make('h2', {}, `Layer ${span[SPAN.layer]}, subgraph ${span[SPAN.subgraph]}: ${span[SPAN.name]} `,
                       make('span', {class: `badge d${device.color}`}, device.name));
    details.replaceChildren(title, list);
    for (const task of timeline.querySelectorAll('.task')) task.classList.toggle('chosen', Number(task.dataset.span) === index);
  }

  // ---- Drawing ----

  function drawTask(index, kind, y, scale) {
    const span = plan.spans[index], device = plan.devices[span[SPAN.device]];
    const x = from(span, kind) * scale, width = Math.max(1, (to(span, kind) - from(span, kind)) * scale), height = ROW - 6;
    const task = draw('g', {class: 'task', tabindex: -1, role: 'button', 'data-span': index, 'data-kind': kind,
                            'aria-label': `${kind}: layer ${span[SPAN.layer]}, subgraph ${span[SPAN.subgraph]}, ${span[SPAN.name]} on ` +
                                          `${device.name}, ${time(to(span, kind) - from(span, kind))}`});
    task.append(draw('rect', {class: `span ${kind === 'measured' ? 'bar' : 'chip'} d${device.color}`, x, y: y + 3, width, height, rx: 2}));
    if (kind === 'measured') {
      for (const [begin, end] of [[SPAN.begin, SPAN.packed], [SPAN.computed, SPAN.done]]) {
        const wide = (span[end] - span[begin]) * scale;
        if (wide >= 1) task.append(draw('rect', {class: 'packing', x: span[begin] * scale, y: y + 3, width: wide, height}));
      }
    }
    const label = `${span[SPAN.subgraph]}`;
    if (width > 8 * label.length + 4)
      task.append(draw('text', {class: kind === 'measured' ? 'in-bar' : 'in-chip', x: x + width / 2, y: y + ROW / 2 + 4}, label));
    return task;
  }

  function axis(svg, width, height, scale) {
    const wanted = total * 80 / width, power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= wanted);
    for (let at = 0; at <= total; at += step) {
      const x = at * scale;
      svg.append(draw('line', {class: 'grid', x1: x, x2: x, y1: AXIS - 4, y2: height}));
      if (x + 40 < width || at === 0) svg.append(draw('text', {class: 'axis', x: x + 3, y: 14}, at === 0 ? '0' : time(at)));
    }
  }

  // Must be called before the first render(), because the timeline gets the width that the names leave.
  function nameRows() {
    names.append(make('div', {style: `height: ${AXIS}px`}));
    for (const device of plan.devices) {
      const list = make('div', {class: 'kinds'});
      for (const kind of kinds) list.append(make('span', {style: `line-height: ${ROW}px`}, kind));
      names.append(make('div', {class: 'lane-name', style: `height: ${kinds.length * ROW + GAP}px`, title: device.name},
                        make('span', {class: `badge d${device.color}`}, device.name), list));
    }
  }

  function render() {
    const width = Math.max(200, Math.floor((timeline.clientWidth - 2) * zoom)), scale = (width - 4) / total;
    const height = AXIS + plan.devices.length * (kinds.length * ROW + GAP);
    const svg = draw('svg', {width, height, viewBox: `0 0 ${width} ${height}`});
    axis(svg, width, height, scale);
    rows = [];
    let y = AXIS;
    plan.devices.forEach((device, d) => {
      for (const kind of kinds) {
        svg.append(draw('rect', {class: 'row', x: 0, y: y + 1, width, height: ROW - 2}));
        const tasks = plan.spans.map((span, index) => index)
          .filter(index => plan.spans[index][SPAN.device] === d && (kind === 'predicted' || has_run(plan.spans[index])))
          .sort((a, b) => from(plan.spans[a], kind) - from(plan.spans[b], kind))
          .map(index => drawTask(index, kind, y, scale));
        svg.append(...tasks);
        plan.layers.forEach((layer, l) => {
          const at = layer[kind === 'measured' ? 2 : 0];
          if (l > 0 && at >= 0) svg.append(draw('line', {class: 'layer-line', x1: at * scale, x2: at * scale, y1: y, y2: y + ROW}));
        });
        if (tasks.length > 0) rows.push(tasks);
        y += ROW;
      }
      y += GAP;
    });
    timeline.replaceChildren(svg);
    if (rows.length > 0) rows[0][0].setAttribute('tabindex', 0);
  }

  function zoomTo(next) {
    const box = timeline.getBoundingClientRect(), middle = (timeline.scrollLeft + box.width / 2) / zoom;
    const focused = timeline.contains(document.activeElement) ? document.activeElement : null, chosen = timeline.querySelector('.chosen');
    zoom = Math.min(64, Math.max(1, next));
    render();
    timeline.scrollLeft = middle * zoom - box.width / 2;
    if (chosen) for (const task of timeline.querySelectorAll(`[data-span='${chosen.dataset.span}']`)) task.classList.add('chosen');
    if (focused && focused.dataset.span) focus(find(focused.dataset));
  }

  // ---- Choosing ----

  function find(wanted) {
    for (const tasks of rows) for (const task of tasks) if (task.dataset.span === wanted.span && task.dataset.kind === wanted.kind) return task;
    return null;
  }
  function focus(task) {
    if (!task) return;
    for (const other of timeline.querySelectorAll(".task[tabindex='0']")) other.setAttribute('tabindex', -1);
    task.setAttribute('tabindex', 0);
    task.focus({preventScroll: true});
    const view = timeline.getBoundingClientRect(), box = task.getBoundingClientRect();
    if (box.left < view.left || box.right > view.right) timeline.scrollLeft += box.left - view.left - view.width / 3;
    explain(Number(task.dataset.span));
  }
  function step(task, key) {
    const r = rows.findIndex(tasks => tasks.includes(task)), i = r < 0 ? -1 : rows[r].indexOf(task);
    if (i < 0) return null;
    if (key === 'ArrowLeft') return rows[r][i - 1];
    if (key === 'ArrowRight') return rows[r][i + 1];
    if (key === 'Home') return rows[r][0];
    if (key === 'End') return rows[r][rows[r].length - 1];
    const other = rows[r + (key === 'ArrowDown' ? 1 : -1)];
    if (!other) return null;
    const twin = other.find(candidate => candidate.dataset.span === task.dataset.span);
    const middle = element => { const box = element.getBoundingClientRect(); return box.x + box.width / 2; };
    return twin || other.reduce((best, candidate) => Math.abs(middle(candidate) - middle(task)) < Math.abs(middle(best) - middle(task)) ? candidate : best);
  }

  timeline.addEventListener('click', event => focus(event.target.closest('.task')));
  timeline.addEventListener('focusin', event => { if (event.target.dataset.span) explain(Number(event.target.dataset.span)); });
  timeline.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const task = event.target.closest('.task');
    if (event.key === '+' || event.key === '=') zoomTo(zoom * 2);
    else if (event.key === '-') zoomTo(zoom / 2);
    else if (event.key === '0') zoomTo(1);
    else if (task && ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key)) focus(step(task, event.key));
    else if (task && (event.key === 'Enter' || event.key === ' ')) explain(Number(task.dataset.span));
    else return;
    event.preventDefault();
  });
  $('#closer').addEventListener('click', () => zoomTo(zoom * 2));
  $('#farther').addEventListener('click', () => zoomTo(zoom / 2));
  $('#fit').addEventListener('click', () => zoomTo(1));
  let shown = 0;
  addEventListener('resize', () => { if (timeline.clientWidth !== shown) { shown = timeline.clientWidth; zoomTo(zoom); } });
  nameRows();
  render();
  shown = timeline.clientWidth;
})();
