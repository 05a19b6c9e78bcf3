// All charts, by what they are about. A chart is drawn when it comes into sight.

const kGroups = [
  { title: "Loss and evaluation", has: (name) => /^(loss|ce|z_loss|aux_loss|mtp_loss)$|^loss_fn\/|^eval\./.test(name), open: true },
  { title: "Learning rate and gradient", has: (name) => /^(lr|grad_norm|skipped)$/.test(name), open: true },
  { title: "Data by source", has: (name) => /^(loss|data)\//.test(name), open: true },
  { title: "Speed and memory", has: (name) => /^(tokens_per_sec|mfu|memory_bytes|data_wait|step_seconds.*|comm_.*)$/.test(name), open: true },
  { title: "Experts", has: (name) => name.startsWith("moe/"), open: true },
  { title: "Where the time went", has: (name) => name === "goodput" || name.startsWith("time/"), open: false },
  { title: "Norms by layer", has: (name) => name.startsWith("watch/"), open: false },
  { title: "Own numbers", has: () => true, open: true },
];
const kNoCharts = new Set(["step", "tokens", "seconds", "time", "eval.tokens"]);
const kFirst = ["loss", "eval.loss", "lr", "tokens_per_sec"]; // of their groups

function namesOf(runs) {
  const names = new Set();
  for (const run of runs) {
    Object.keys(run.series || {}).forEach((name) => names.add(name));
  }
  return [...names].filter((name) => !kNoCharts.has(name)).sort((a, b) => kFirst.includes(b) - kFirst.includes(a));
}

/** Numbers that stand still in every run are said and not drawn. */
function standStill(name, runs) {
  const values = runs.flatMap((run) => (run.series && run.series[name] && !name.startsWith("eval.") ? [run.series[name]] : []));
  const first = values.length ? values[0].value[0] : null;
  return values.length > 0 && name !== "loss" && name !== "lr" && values.every((series) => isConstant(series) && series.value[0] === first) ? first : null;
}

/** "eval.code.loss" of the set "code" is "eval code: loss". */
function titleOf(name) {
  const [, set, number] = name.match(/^eval\.(?:(.*)\.)?([^.]*)$/) || [null, null, null];
  return number === null ? name : `eval ${set ? set + ": " : ""}${number}`;
}

/** Whether two numbers are one in all runs, as the cross entropy and a loss that has no other terms. */
function sameNumbers(one, other, runs) {
  return runs.every(({ series }) => !series[one] || (series[other] && series[one].value.length === series[other].value.length &&
    series[one].value.every((value, i) => value === series[other].value[i])));
}

function makeCharts(view, numbers) {
  const place = make("div", { class: "groups" });
  const charts = new Map();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.get(entry.target.dataset.name);
      if (chart) {
        chart.visible = entry.isIntersecting;
        chart.redraw();
      }
    }
  }, { rootMargin: "200px" });
  const sized = new ResizeObserver((entries) => entries.forEach((entry) => charts.get(entry.target.parentElement.dataset.name)?.redraw()));
  let drawn = "";

  const chartOf = (name) => {
    if (!charts.has(name)) {
      const { unit, doc } = numbers[name] || {};
      const chart = new Chart(view, { name, title: titleOf(name), unit: unit || "", doc });
      charts.set(name, chart);
      seen.observe(chart.element);
      sized.observe(chart.canvas);
    }
    return charts.get(name);
  };

  const layOut = () => {
    const shown = view.shown().filter((run) => run.series);
    const still = [];
    const names = namesOf(shown).filter((name) => {
      const value = standStill(name, shown);
      if (value !== null) {
        still.push(`${name} is ${valueText(value, (numbers[name] || {}).unit)}`);
      } else if (name === "ce" && sameNumbers("ce", "loss", shown)) {
        still.push("ce is the loss");
        return false;
      }
      return value === null;
    });
    const key = names.join("\n") + still.join();
    if (key === drawn && place.childElementCount) {
      return;
    }
    drawn = key;
    const opened = new Map([...place.querySelectorAll("details")].map((group) => [group.dataset.title, group.open]));
    const left = new Set(names);
    const groups = kGroups.map((group) => {
      const own = [...left].filter(group.has);
      own.forEach((name) => left.delete(name));
      const open = opened.has(group.title) ? opened.get(group.title) : group.open && own.length <= 24;
      return own.length === 0 ? null : make("details", { class: "group", open, "data-title": group.title },
        make("summary", {}, group.title, own.length > 1 ? make("span", {}, own.length) : null), make("div", { class: "charts" }, own.map((name) => chartOf(name).element)));
    });
    const none = names.length ? null : make("p", { class: "empty" }, emptyWords(view));
    fill(place, none, ...groups, still.length ? make("p", { class: "note still" }, `Not drawn, because it is so in every row: ${still.join(", ")}.`) : null);
  };

  const update = () => {
    layOut();
    charts.forEach((chart) => chart.update());
  };
  view.listen((what) => (what === "runs" || what === "look" ? update() : charts.forEach((chart) => chart.redraw())));
  update();
  return place;
}

function emptyWords(view) {
  if (!view.runs.length) {
    return "There are no runs here yet. They appear as soon as one is started.";
  }
  if (!view.shown().length) {
    return "No run is shown. Choose some in the list.";
  }
  return view.shown().every((run) => run.series) ? "The shown runs have logged no numbers yet." : "Reading \u2026";
}

/** Axis, smoothing, logarithms: above all charts. */
function makeTools(view) {
  const changed = () => view.changed("look");
  const axis = make("select", { id: "axis", onchange: (event) => {
    view.axis = event.target.value;
    view.window = null;
    view.cursor = null;
    changed();
  } }, Object.entries(kAxes).map(([name, { title }]) => make("option", { value: name }, title)));
  const shown = make("output", { for: "smoothing" }, "off");
  const smoothing = make("input", { id: "smoothing", type: "range", min: "0", max: "1", step: "0.01", value: "0", oninput: (event) => {
    const at = Number(event.target.value);
    view.smoothing = at === 0 ? 0 : 1 - 10 ** (-3 * at); // finer towards 1: 0.999 at the right end
    shown.value = at === 0 ? "off" : view.smoothing.toFixed(3);
    changed();
  } });
  return make("div", { class: "tools" },
    make("label", { for: "axis" }, "Along", axis),
    make("label", { for: "smoothing", title: `Exponential moving average; curves of fewer than ${kFewest} points stay as they are` }, "Smooth", smoothing, shown),
    make("span", { class: "note" }, "Drag to zoom, double click for all."));
}
