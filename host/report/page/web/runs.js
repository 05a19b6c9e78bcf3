// The list of runs: legend, filter, and what each has come to. Where runs come in, the newest stands first.

const kStates = {
  running: ["busy", "\u25cf"], finished: ["good", "\u2713"], stopped: ["wait", "\u25a0"], failed: ["bad", "\u2717"], killed: ["bad", "\u2717"],
  away: ["wait", "?"], unreadable: ["bad", "!"], gone: ["wait", "\u2205"],
};

function stateOf(run) {
  const [kind, sign] = kStates[run.state] || ["wait", "?"];
  return make("span", { class: `state ${kind}`, title: run.reason || null }, `${sign}\u00a0${run.state}`);
}

function factsOf(run) {
  const steps = run.step === null ? null : `step ${compact(run.step)}${run.max_steps ? ` of ${compact(run.max_steps)}` : ""}`;
  const loss = run.loss === null ? null : `loss ${short(run.loss, 4)}`;
  return [steps, loss].filter(Boolean).join(" \u00b7 ");
}

/** Everything by which the filter finds a run. */
function wordsOf(run) {
  return [run.label, run.key, run.id, run.state, run.host, run.device, ...(run.tags || [])].join(" ").toLowerCase();
}

function makeRunRow(view, run, showAlone) {
  const box = make("input", { type: "checkbox", onchange: (event) => {
    run.on = event.target.checked;
    view.changed("runs");
  } });
  const mark = (which) => {
    view.marked = which;
    view.changed("marked");
  };
  const name = make("span", { class: "name" });
  const state = make("span", {});
  const facts = make("span", { class: "facts" });
  const label = make("label", {}, make("span", { class: "key" }, box, swatch(run)), name, state, facts);
  const element = make("li", { class: "run", "data-key": run.key, onpointerenter: () => run.on && mark(run), onpointerleave: () => mark(null) },
    label, make("button", { class: "only", type: "button", title: "Show this run alone", onclick: showAlone }, "only"));
  const update = () => {
    box.checked = run.on;
    element.classList.toggle("off", !run.on);
    label.title = [run.folder, ...(run.tags || [])].join("\n");
    name.textContent = run.label;
    fill(state, stateOf(run));
    facts.textContent = factsOf(run);
  };
  return { element, update };
}

function makeRuns(view) {
  const filter = make("input", { type: "search", placeholder: "Filter runs", "aria-label": "Filter runs by name, tag, state or machine", oninput: () => layOut() });
  const list = make("ul", { class: "runs" });
  const count = make("span", { role: "status" });
  const fits = (run) => filter.value.toLowerCase().split(/\s+/).every((word) => wordsOf(run).includes(word));
  const show = (choose) => {
    view.runs.forEach((run) => {
      run.on = choose(run);
    });
    view.changed("runs");
  };
  const rows = new Map(); // run -> {element, update}: a row stays the same while its run grows, so that a click on it is never lost
  const rowOf = (run) => {
    if (!rows.has(run)) {
      rows.set(run, makeRunRow(view, run, () => show((other) => other === run)));
    }
    const row = rows.get(run);
    row.update();
    return row.element;
  };
  const layOut = () => {
    const wanted = (view.live ? [...view.runs].reverse() : view.runs).filter(fits).map(rowOf);
    if (wanted.length !== list.children.length || wanted.some((element, i) => element !== list.children[i])) {
      const at = list.scrollTop;
      const focused = document.activeElement;
      fill(list, wanted);
      list.scrollTop = at;
      if (list.contains(focused)) {
        focused.focus({ preventScroll: true });
      }
    }
    count.textContent = `${view.shown().length} of ${counted(view.runs.length, "run")} shown`;
  };
  view.listen((what) => what === "runs" && layOut());
  layOut();
  return [filter,
    make("div", { class: "bar" }, count, make("span", {}, make("button", { type: "button", onclick: () => show((run) => fits(run)) }, "all"),
      make("button", { type: "button", onclick: () => show(() => false) }, "none"))), list];
}
