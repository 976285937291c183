// What the pages have in common, before each page's own script: elements of the document and of pictures, and times as people read
// them. Texts come from files of strangers: they reach the document as text alone (textContent), never as markup.
'use strict';

// A key `onclick` is a listener; children that are null are left out.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}
function draw(tag, attributes, content) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (content !== undefined) element.textContent = content;
  return element;
}
function time(ns) {
  const size = Math.abs(ns);
  if (size < 1000) return `${Math.round(ns)} ns`;
  let amount = ns / 1000, unit = 0;
  while (Math.abs(amount) >= 999.5 && unit < 2) { amount /= 1000; ++unit; }
  const digits = Math.abs(amount) < 9.995 ? 2 : Math.abs(amount) < 99.95 ? 1 : 0;
  return `${amount.toFixed(digits)} ${['µs', 'ms', 's'][unit]}`;
}
