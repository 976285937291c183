// A picture in a box that scrolls: zoom with buttons, keys and Ctrl + wheel, and drag with the mouse. Uses no other script.
//
// viewOf(box, drawn) calls drawn() after the part in view or the zoom changed.
function viewOf(box, drawn = () => {}) {
  // fitted: the zoom follows the width of the box, until the user zooms or the picture grows.
  let svg = null, zoom = 1, held = null, moved = false, fitted = true, width = 0;
  const size = () => svg.viewBox.baseVal, wide = () => Math.min(1.15, Math.max(0.02, view.fitting()));
  const view = {
    get zoom() { return zoom; },
    get moved() { return moved; }, // whether the mouse was dragged since it was pressed
    fitting: () => (box.clientWidth - 2) / size().width,
    fit() {
      view.setZoom(view.fitting());
      fitted = true;
    },
    // Sets the zoom. The point (x, y) of the window stays where it is; without x and y, the middle of the box does.
    setZoom(next, x, y) {
      const before = zoom, rect = box.getBoundingClientRect();
      zoom = Math.min(4, Math.max(0.02, next));
      view.resize();
      const at = x === undefined ? [box.clientWidth / 2, box.clientHeight / 2] : [x - rect.left, y - rect.top];
      box.scrollLeft = (box.scrollLeft + at[0]) * zoom / before - at[0];
      box.scrollTop = (box.scrollTop + at[1]) * zoom / before - at[1];
      drawn();
    },
    // Sets the size of the SVG element to that of the picture at the present zoom. From then on, a change of the window's width
    // does not change the zoom.
    resize() {
      fitted = false;
      svg.setAttribute('width', size().width * zoom);
      svg.setAttribute('height', size().height * zoom);
    },
    // Shows a picture from the middle of its top, as wide as the box unless the zoom would be below `least`.
    show(picture, least = 0) {
      if (svg !== picture) box.replaceChildren(picture);
      svg = picture;
      zoom = Math.max(wide(), least);
      view.resize();
      fitted = zoom > least;
      box.scrollLeft = (size().width * zoom - box.clientWidth) / 2;
      box.scrollTop = 0;
      drawn();
    },
    // Scrolls a rectangle of the picture into view, if it is not in view yet. A rectangle that is far away comes to the middle of the box.
    reveal({left, top, width, height}) {
      const near = (from, length, scroll, room) => {
        const begin = from * zoom, end = (from + length) * zoom;
        if (begin >= scroll && end <= scroll + room) return scroll;
        return end - begin > room ? begin - 20 : (begin + end - room) / 2;
      };
      box.scrollLeft = near(left, width, box.scrollLeft, box.clientWidth);
      box.scrollTop = near(top, height, box.scrollTop, box.clientHeight);
      drawn();
    },
  };
  box.addEventListener('pointerdown', event => {
    if (event.button === 0 && event.pointerType === 'mouse') held = [event.clientX, event.clientY, box.scrollLeft, box.scrollTop];
    moved = false;
  });
  addEventListener('pointermove', event => {
    if (!held) return;
    const dx = event.clientX - held[0], dy = event.clientY - held[1];
    if (!moved && Math.abs(dx) + Math.abs(dy) < 5) return;
    moved = true;
    box.classList.add('held');
    box.scrollLeft = held[2] - dx;
    box.scrollTop = held[3] - dy;
  });
  addEventListener('pointerup', () => { held = null; box.classList.remove('held'); });
  box.addEventListener('scroll', () => drawn());
  box.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    view.setZoom(zoom * Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
  }, {passive: false});
  box.addEventListener('keydown', event => {
    if (event.key === '+' || event.key === '=') view.setZoom(zoom * 1.25);
    else if (event.key === '-') view.setZoom(zoom / 1.25);
    else if (event.key === '0') view.fit();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => {
    if (!svg) return;
    const other = box.clientWidth !== width;
    width = box.clientWidth;
    if (fitted && other) {
      view.setZoom(wide());
      fitted = true;
    } else drawn();
  }).observe(box);
  return view;
}
