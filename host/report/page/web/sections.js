// What stands below the charts: how the runs compare, their settings, incidents, samples, environment.

/**
 * A section of the shown runs, hidden where build(runs, update) gives nothing. It is filled anew only when what it shows of a run, `of(run)`, has
 * changed: what somebody reads or has chosen in it stays. `update` fills it by force.
 */
function makeSection(view, id, title, of, build) {
  const body = make("div");
  const section = make("section", { id }, make("header", {}, make("h2", {}, title)), body);
  let filled = null;
  const update = () => {
    const left = [...body.querySelectorAll(".scroll")].map((element) => element.scrollLeft);
    const built = build(view.shown(), update);
    section.hidden = !built;
    fill(body, built ? [built].flat() : []);
    body.querySelectorAll(".scroll").forEach((element, i) => {
      element.scrollLeft = left[i] || 0;
    });
  };
  const look = () => {
    const now = JSON.stringify(view.shown().map((run) => [run.key, of(run)]));
    if (now !== filled) {
      filled = now;
      update();
    }
  };
  view.listen((what) => what === "runs" && look());
  look();
  return section;
}

function whenCell(time) {
  return make("span", { class: "whole" }, timeText(time) || "\u2013");
}

function makeOverview(view) {
  const sorting = { at: -1, down: false };
  const of = (run) => [run.state, run.reason, run.step, run.loss, run.eval_loss, run.tokens, run.tokens_per_sec, run.seconds];
  return makeSection(view, "overview", "Runs", of, (runs) => {
    if (!runs.length) {
      return null;
    }
    const number = (title, value, text) => ({ title, number: true, order: value, cell: (run) => (value(run) === null || value(run) === undefined ? "\u2013" : text(value(run))) });
    return makeTable([
      { title: "run", cell: nameOf, order: (run) => run.label },
      { title: "state", cell: stateOf, order: (run) => run.state },
      number("step", (run) => run.step, (value) => compact(value)),
      number("loss", (run) => run.loss, (value) => short(value, 5)),
      number("eval loss", (run) => run.eval_loss, (value) => short(value, 5)),
      number("tokens", (run) => run.tokens, (value) => compact(value)),
      number("tokens/s", (run) => run.tokens_per_sec, (value) => compact(value)),
      number("time", (run) => run.seconds, duration),
      { title: "began", cell: (run) => whenCell(run.began ? new Date(run.began * 1000).toISOString() : ""), order: (run) => run.began },
      { title: "reason", cell: (run) => run.reason || "", order: (run) => run.reason },
    ], runs, "Runs", sorting);
  });
}

function makeSettings(view, defaults) {
  let onlyDifferences = true;
  return makeSection(view, "settings", "Settings", (run) => run.settings, (runs, update) => {
    const known = runs.filter((run) => run.settings);
    if (!known.length) {
      return null;
    }
    const maps = known.map((run) => new Map(run.settings));
    const keys = [...new Set(known.flatMap((run) => run.settings.map(([key]) => key)))];
    const valueOf = (map, key) => (map.has(key) ? map.get(key) : defaults[key]);
    const differs = (key) => new Set(maps.map((map) => valueOf(map, key))).size > 1;
    const differing = keys.filter(differs);
    const several = known.length > 1;
    const chosen = several && onlyDifferences ? differing : keys;
    const flip = several && differing.length < keys.length ? make("button", { type: "button", "aria-pressed": String(onlyDifferences), onclick: () => {
      onlyDifferences = !onlyDifferences;
      update();
    } }, "only what differs between runs") : null;
    const words = several ? `${differing.length} of ${counted(keys.length, "setting")} that are not the defaults differ between these runs.` : `${counted(keys.length, "setting")} that are not the defaults.`;
    const columns = [{ title: "setting", cell: (key) => make("code", {}, key) },
      ...known.map((run, i) => ({ title: nameOf(run), cell: (key) => settingCell(maps[i], key, valueOf, usual(maps.map((map) => valueOf(map, key)))) })),
      { title: "default", cell: (key) => make("span", { class: "default mono" }, defaults[key] ?? "\u2013") }];
    return [make("p", { class: "above note" }, words, flip), chosen.length ? makeTable(columns, chosen, "Settings") : make("p", { class: "empty" }, "All of these runs have the same settings.")];
  });
}

/** The value that most have; of as many the first. */
function usual(values) {
  const counts = new Map();
  values.forEach((value) => counts.set(value, (counts.get(value) || 0) + 1));
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best))[0];
}

/** Stands out where it is not the usual one, and back where it is the default. */
function settingCell(map, key, valueOf, most) {
  const value = valueOf(map, key);
  return make("span", { class: `mono ${value !== most ? "differs" : ""} ${map.has(key) ? "" : "default"}` }, value ?? "\u2013");
}

function makeIncidents(view) {
  return makeSection(view, "incidents", "Incidents", (run) => [run.marks, run.problems], (runs) => {
    const rows = runs.flatMap((run) => (run.marks || []).map((mark) => ({ run, ...mark })));
    const broken = runs.flatMap((run) => (run.problems || []).map((text) => ({ run, kind: "unreadable", step: null, time: "", text })));
    if (!runs.some((run) => run.marks)) {
      return broken.length ? incidentTable(broken) : null;
    }
    return rows.length + broken.length ? incidentTable([...broken, ...rows]) : make("p", { class: "empty" }, "None: no step was skipped, nothing was rolled back, and no process had to be started again.");
  });
}

function incidentTable(rows) {
  return makeTable([
    { title: "run", cell: (row) => nameOf(row.run), order: (row) => row.run.label },
    { title: "step", number: true, cell: (row) => (row.step === null ? "" : compact(row.step)), order: (row) => row.step },
    { title: "what", cell: (row) => make("span", { class: "state " + (row.kind === "restart" ? "wait" : "bad") }, row.kind.replace("_", " ")), order: (row) => row.kind },
    { title: "when", cell: (row) => whenCell(row.time), order: (row) => row.time },
    { title: "", cell: (row) => row.text },
  ], rows, "Incidents");
}

function makeSamples(view) {
  return makeSection(view, "samples", "Samples", (run) => run.samples, (runs) => {
    const rows = runs.flatMap((run) => (run.samples || []).map((sample) => ({ run, ...sample })));
    if (!rows.length) {
      return null;
    }
    const steps = [...new Set(rows.map((row) => row.step))].sort((a, b) => a - b);
    const texts = make("div", { class: "texts" });
    const label = make("output", {});
    const show = (at) => {
      label.value = `step ${compact(steps[at])}`;
      fill(texts, rows.filter((row) => row.step === steps[at]).map(({ run, prompt, text }) => make("article", { class: "text card" },
        make("header", {}, nameOf(run)), make("p", {}, make("span", { class: "prompt" }, prompt), text))));
    };
    show(steps.length - 1);
    const slider = steps.length > 1 ? make("label", { class: "above note" }, make("input", { type: "range", min: "0", max: String(steps.length - 1), value: String(steps.length - 1), "aria-label": "Step",
      oninput: (event) => show(Number(event.target.value)) }), label) : label;
    return [slider, texts];
  });
}

function environmentText(key, value) {
  return key === "memory" && /^\d+$/.test(value) ? valueText(Number(value), "bytes") : (value ?? "\u2013");
}

function makeEnvironment(view) {
  return makeSection(view, "environment", "Environment", (run) => [run.environment, run.starts], (runs) => {
    const known = runs.filter((run) => run.environment);
    const keys = [...new Set(known.flatMap((run) => run.environment.map(([key]) => key)))];
    if (!keys.length) {
      return null;
    }
    const maps = known.map((run) => new Map(run.environment));
    const text = (map, key) => environmentText(key, map.get(key));
    const alike = keys.filter((key) => maps.every((map) => map.get(key) === maps[0].get(key)));
    const unlike = keys.filter((key) => !alike.includes(key));
    const same = alike.length ? makeTable([{ title: known.length > 1 ? "the same on all" : "", cell: (key) => key }, { title: "", cell: (key) => text(maps[0], key) }], alike, "Environment") : null;
    const different = unlike.length ? makeTable([{ title: "different", cell: (key) => key }, ...known.map((run, i) => ({ title: nameOf(run), cell: (key) => text(maps[i], key) }))], unlike, "Environment, where it differs") : null;
    const starts = known.flatMap((run) => (run.starts || []).map((start) => ({ run, ...start })));
    const begun = starts.length ? makeTable([
      { title: "run", cell: (row) => nameOf(row.run), order: (row) => row.run.label },
      { title: "started", cell: (row) => whenCell(row.time), order: (row) => row.time },
      { title: "ended", cell: (row) => whenCell(row.end), order: (row) => row.end },
      { title: "how", cell: (row) => row.status || "\u2013", order: (row) => row.status },
      { title: "from step", number: true, cell: (row) => compact(row.step), order: (row) => row.step },
      { title: "command", cell: (row) => make("code", {}, row.command) },
    ], starts, "Starts") : null;
    return [make("div", { class: "texts" }, [different, same, begun].filter(Boolean))];
  });
}
