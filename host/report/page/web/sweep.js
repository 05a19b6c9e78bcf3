// Sweeps: every trial as a line across its settings, and how much each setting matters.

const kWidth = 960;
const kHeight = 300;
const kTop = 34;
const kBottom = 24;

/** The section of all sweeps; `show` puts those of now into it, and keeps what was chosen along their axes. */
function makeSweeps(view) {
  const body = make("div", {});
  const section = make("section", { id: "sweeps" }, make("header", {}, make("h2", {}, "Sweeps")), body);
  const ranges = new Map();
  view.listen((what) => what === "look" && body.querySelectorAll("svg.parallel").forEach((svg) => svg.dispatchEvent(new Event("look"))));
  return {
    section,
    show(sweeps) {
      section.hidden = !sweeps.length;
      const focused = document.activeElement?.getAttribute("aria-label");
      fill(body, sweeps.map((sweep) => makeSweep(sweep, ranges)));
      [...body.querySelectorAll(".grip")].find((grip) => grip.getAttribute("aria-label") === focused)?.focus();
    },
  };
}

function makeSweep(sweep, ranges) {
  const done = sweep.trials.filter((trial) => trial.value !== null);
  const counts = Object.entries(sweep.counts).map(([state, count]) => `${count} ${state}`).join(", ");
  const best = done.find((trial) => trial.number === sweep.best);
  const words = `${counts}. The objective is ${sweep.objective}, ${sweep.maximise ? "more" : "less"} is better${best ? `; the best so far is ${short(best.value, 6)}, of trial ${best.number}` : ""}.`;
  if (!done.length) {
    return make("div", { class: "sweep" }, make("h3", {}, sweep.name), make("p", { class: "empty" }, `${words} No trial has a value yet.`));
  }
  const chosen = make("div", {});
  const parallel = makeParallel(sweep, done, ranges, (trials) => fill(chosen, trialTable(sweep, trials)));
  return make("div", { class: "sweep" }, make("h3", {}, sweep.name), make("p", { class: "note" }, words),
    make("div", { class: "card padded" }, make("div", { class: "scroll" }, parallel), make("p", { class: "note" }, "Drag along an axis to choose trials; a click beside it chooses all again. With the keyboard, arrows move the choice along an axis, with Shift its upper end, and Escape chooses all. Lines that stand out from the paper are good ones.")),
    sweep.importance.length ? make("div", { class: "card padded" }, make("h3", {}, "How much each setting matters"), importanceBars(sweep.importance)) : null,
    chosen);
}

/** The share of the objective's variance (of its ranks) that a setting tells by itself. */
function importanceBars(importance) {
  const ordered = [...importance].sort((a, b) => b.share - a.share);
  return [make("div", { class: "importance" }, ordered.map(({ name, share }) => [make("code", {}, name), make("i", { style: { width: `${Math.max(0, share) * 100}%` } }), make("span", {}, `${Math.round(share * 100)}\u202f%`)])),
    make("p", { class: "note" }, "Share of the variance of the trials' ranks that the setting explains by itself. What settings do together is in none of them.")];
}

function trialTable(sweep, trials) {
  const sign = sweep.maximise ? -1 : 1;
  const rows = [...trials].sort((a, b) => sign * (a.value - b.value)).slice(0, 20);
  const table = makeTable([
    { title: "trial", number: true, cell: (trial) => String(trial.number), order: (trial) => trial.number },
    { title: sweep.objective, number: true, cell: (trial) => short(trial.value, 6), order: (trial) => trial.value },
    { title: "state", cell: (trial) => trial.state, order: (trial) => trial.state },
    ...sweep.parameters.map((parameter, i) => ({ title: parameter.name, number: true, cell: (trial) => parameterText(parameter, trial.values[i]), order: (trial) => trial.values[i] })),
  ], rows, `Trials of ${sweep.name}`);
  return [make("p", { class: "note padded" }, `The best ${rows.length} of ${counted(trials.length, "chosen trial")}:`), table];
}

function parameterText(parameter, value) {
  if (value === null) {
    return "\u2013";
  }
  return parameter.labels.length ? parameter.labels[value] : short(value, 4);
}

/** The axes: those of the settings, then the objective. */
function axesOf(sweep, done, ranges) {
  const values = done.map((trial) => trial.value);
  const sorted = [...values].sort((a, b) => a - b);
  // One diverged trial must not flatten all others: beyond three times the spread of the middle half, values stand at the edge.
  const spread = sorted[Math.floor(sorted.length * 0.75)] - sorted[Math.floor(sorted.length * 0.25)];
  const middle = sorted[Math.floor(sorted.length / 2)];
  const near = values.filter((value) => spread === 0 || Math.abs(value - middle) <= 3 * spread);
  const objective = { name: sweep.objective, log: false, low: Math.min(...near), high: Math.max(...near), labels: [], of: (trial) => trial.value };
  return [...sweep.parameters.map((parameter, i) => ({ ...parameter, of: (trial) => trial.values[i] })), objective].map((axis) => {
    const log = axis.log && axis.low > 0;
    const [low, high] = axis.low === axis.high ? roomAround(axis.low, axis.high, log) : [axis.low, axis.high];
    const tall = kHeight - kTop - kBottom;
    const marks = axis.labels.length ? { ...makeAxis(0, Math.max(1, axis.labels.length - 1), tall, false, 5, ""), marks: axis.labels.map((label, i) => i), labels: axis.labels } : makeAxis(low, high, tall, log, 5, "");
    return { ...axis, ...marks, name: axis.name, of: axis.of, range: ranges.get(`${sweep.name}\n${axis.name}`) || null };
  });
}

function makeParallel(sweep, done, ranges, choose) {
  const axes = axesOf(sweep, done, ranges);
  const bottom = kHeight - kBottom;
  const xOf = (i) => 60 + (i * (kWidth - 140)) / Math.max(1, axes.length - 1);
  const yOf = (axis, trial) => (axis.of(trial) === null ? bottom + 12 : Math.min(bottom, Math.max(kTop, bottom - axis.place(axis.of(trial)))));
  const objective = axes[axes.length - 1];
  const goodness = (trial) => {
    const share = Math.min(1, Math.max(0, (trial.value - objective.low) / (objective.high - objective.low || 1)));
    return sweep.maximise ? share : 1 - share;
  };
  const ordered = [...done].sort((a, b) => goodness(a) - goodness(b));
  const lines = ordered.map((trial) => makeSvg("polyline", { points: axes.map((axis, i) => `${xOf(i).toFixed(1)},${yOf(axis, trial).toFixed(1)}`).join(" ") },
    makeSvg("title", {}, `trial ${trial.number}: ${short(trial.value, 6)}`)));
  const paint = () => {
    const dark = document.documentElement.dataset.theme === "dark";
    ordered.forEach((trial, i) => lines[i].setAttribute("stroke", viridis(dark ? 0.15 + 0.8 * goodness(trial) : 0.85 - 0.8 * goodness(trial))));
  };
  paint();
  const update = () => {
    const fits = (trial) => axes.every((axis) => !axis.range || (axis.of(trial) !== null && yOf(axis, trial) >= axis.range[0] && yOf(axis, trial) <= axis.range[1]));
    ordered.forEach((trial, i) => lines[i].classList.toggle("faded", !fits(trial)));
    axes.forEach((axis) => ranges.set(`${sweep.name}\n${axis.name}`, axis.range));
    const fitting = ordered.filter(fits);
    choose(fitting);
    return fitting.length;
  };
  const svg = makeSvg("svg", { class: "parallel", viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", "aria-label": `Parallel coordinates of ${counted(done.length, "trial")} over ${axes.map((axis) => axis.name).join(", ")}` });
  svg.addEventListener("look", paint);
  svg.append(...lines, ...axes.map((axis, i) => axisOf(svg, axis, xOf(i), i === axes.length - 1, update)));
  update();
  return svg;
}

/** The stretch of an axis after a key; null for one that means nothing here. */
function keyedRange(range, event, top, bottom) {
  if (event.key === "Escape") {
    return [0, 0];
  }
  const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
  if (!step) {
    return null;
  }
  const tall = bottom - top;
  if (!range) { // the quarter at the end that the arrow points to
    return step < 0 ? [top - 1, top + tall / 4] : [bottom - tall / 4, bottom + 1];
  }
  const [from, to] = range;
  const far = (step * tall) / 20;
  if (event.shiftKey) {
    return [Math.min(to - 5, Math.max(top - 1, from + far)), to];
  }
  const moved = Math.min(bottom + 1 - to, Math.max(top - 1 - from, far));
  return [from + moved, to + moved];
}

function axisOf(svg, axis, x, last, update) {
  const bottom = kHeight - kBottom;
  const [from, to] = axis.range || [0, 0];
  const brush = makeSvg("rect", { class: "brush", x: x - 7, width: 14, y: from, height: to - from });
  const side = last ? 8 : -8;
  const grip = makeSvg("rect", { class: "grip", x: x - 16, y: kTop - 6, width: 32, height: bottom - kTop + 12, tabindex: 0, role: "slider", "aria-orientation": "vertical",
    "aria-label": `Trials by ${axis.name}`, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 50, "aria-valuetext": "all" });
  let start = null;
  const at = (event) => ((event.clientY - svg.getBoundingClientRect().top) * kHeight) / svg.getBoundingClientRect().height;
  const set = (from, to) => {
    axis.range = to - from > 3 ? [from, to] : null;
    brush.setAttribute("y", from);
    brush.setAttribute("height", axis.range ? to - from : 0);
    const chosen = counted(update(), "trial");
    grip.setAttribute("aria-valuenow", axis.range ? Math.round((100 * (bottom - (from + to) / 2)) / (bottom - kTop)) : 50);
    grip.setAttribute("aria-valuetext", axis.range ? chosen : "all");
  };
  grip.addEventListener("pointerdown", (event) => {
    start = at(event);
    grip.setPointerCapture(event.pointerId);
  });
  grip.addEventListener("pointermove", (event) => start !== null && set(Math.min(start, at(event)), Math.max(start, at(event))));
  grip.addEventListener("pointerup", (event) => {
    set(Math.min(start, at(event)), Math.max(start, at(event)));
    start = null;
  });
  grip.addEventListener("keydown", (event) => {
    const range = keyedRange(axis.range, event, kTop, bottom);
    if (range) {
      event.preventDefault();
      set(...range);
    }
  });
  const anchor = last ? "end" : x < 80 ? "start" : "middle";
  return makeSvg("g", {}, makeSvg("line", { class: "axis", x1: x, x2: x, y1: kTop, y2: bottom }),
    makeSvg("text", { class: "name", x: last ? x + 70 : Math.max(x, 4), y: 14, "text-anchor": anchor }, axis.name),
    axis.marks.map((mark, i) => makeSvg("text", { x: x + side, y: bottom - axis.place(mark) + 4, "text-anchor": last ? "start" : "end" }, axis.labels[i])), brush, grip);
}
