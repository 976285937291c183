// Functions for all pages, placed before each page's own script. They create HTML and SVG elements and format times. Texts come from
// untrusted files, so they enter the document only as text (textContent), never as markup.
'use strict';

// Creates an HTML element. Attributes such as `onclick` become event listeners. Children that are null or undefined are omitted.
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
const grouped = count => String(count).replace(/\B(?=(\d{3})+$)/g, ','); // toLocaleString() takes 60 ms at its first call
const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? '' : 's'}`;
