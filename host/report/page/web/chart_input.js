// Pointer and keyboard of a chart, and the tip beside its cursor.

const kMostInTip = 12;
const kDrag = 5; // pixels, before a press is a drag

function listenToPointer(chart) {
  const { canvas, view } = chart;
  let start = null;
  const inside = (event) => {
    const { frame } = chart;
    const at = event.clientX - canvas.getBoundingClientRect().left;
    return frame ? Math.min(frame.left + frame.wide, Math.max(frame.left, at)) : null;
  };
  const setCursor = (at) => {
    view.cursor = at === null ? null : chart.frame.x.back(at - chart.frame.left);
    view.changed("cursor");
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && chart.frame) {
      start = inside(event);
      canvas.setPointerCapture(event.pointerId);
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = inside(event);
    if (at === null) {
      return;
    }
    chart.selection = start !== null && Math.abs(at - start) > kDrag ? [start, at] : null;
    view.hovered = chart;
    setCursor(at);
  });
  const end = (event, cancelled) => {
    const chosen = chart.selection;
    chart.selection = null;
    start = null;
    if (chosen && !cancelled && chart.frame) {
      const [from, to] = chosen.map((at) => chart.frame.x.back(at - chart.frame.left)).sort((a, b) => a - b);
      view.zoom(from, to);
    } else {
      chart.redraw();
    }
  };
  canvas.addEventListener("pointerup", (event) => end(event, false));
  canvas.addEventListener("pointercancel", (event) => end(event, true));
  canvas.addEventListener("pointerleave", () => {
    if (start === null && document.activeElement !== canvas) {
      setCursor(null);
    }
  });
  canvas.addEventListener("dblclick", () => view.zoom(null));
  canvas.addEventListener("blur", () => setCursor(null));
}

function listenToKeys(chart) {
  const { canvas, view } = chart;
  const zoomBy = (factor) => {
    const [low, high] = chart.span();
    const centre = view.cursor === null ? (low + high) / 2 : view.cursor;
    view.zoom(centre - (centre - low) * factor, centre + (high - centre) * factor);
  };
  const move = (share) => {
    const [low, high] = chart.span();
    const from = view.cursor === null ? (share > 0 ? low : high) : view.cursor;
    view.cursor = Math.min(high, Math.max(low, from + (high - low) * share));
    view.hovered = chart;
    view.changed("cursor");
  };
  const keys = {
    ArrowLeft: (event) => move(event.shiftKey ? -0.1 : -0.01),
    ArrowRight: (event) => move(event.shiftKey ? 0.1 : 0.01),
    Home: () => move(-1),
    End: () => move(1),
    "+": () => zoomBy(0.5),
    "=": () => zoomBy(0.5),
    "-": () => zoomBy(2),
    0: () => view.zoom(null),
    Escape: () => view.zoom(null),
    l: () => chart.setLog(!chart.log),
    Enter: () => chart.setWide(),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (action && !event.ctrlKey && !event.altKey && !event.metaKey) {
      action(event);
      event.preventDefault();
    }
  });
}

/** The values of all runs at the cursor, the greatest first, in the chart that the pointer or the keyboard is in. */
function showTip(chart, at, found) {
  const { tip, view, definition, canvas } = chart;
  if (view.hovered !== chart || !found.length) {
    tip.hidden = true;
    return;
  }
  const axis = kAxes[view.axis];
  const shown = [...found].sort((a, b) => (b.y === null ? Infinity : b.y) - (a.y === null ? Infinity : a.y));
  const nearest = shown.reduce((best, point) => (Math.abs(point.x - view.cursor) < Math.abs(best.x - view.cursor) ? point : best));
  const rows = shown.slice(0, kMostInTip).map(({ line, y, smooth }) =>
    make("tr", {}, make("td", {}, swatch(line.run), line.run.label), make("td", {}, y === null ? "not finite" : valueText(y, definition.unit)),
      smooth === null ? null : make("td", {}, `\u2248 ${valueText(smooth, definition.unit)}`)));
  const more = shown.length > kMostInTip ? make("tr", {}, make("td", {}, `and ${shown.length - kMostInTip} more`)) : null;
  fill(tip, make("table", {}, make("caption", {}, `${axis.title} ${axis.unit === "s" ? duration(nearest.x) : Math.round(nearest.x).toLocaleString("en").replaceAll(",", "\u202f")}`), rows, more));
  tip.hidden = false;
  const room = chart.element.clientWidth;
  const from = canvas.offsetLeft + at;
  const left = from + 14 + tip.offsetWidth < room ? from + 14 : Math.max(4, from - 14 - tip.offsetWidth);
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${canvas.offsetTop + 12}px`);
}
