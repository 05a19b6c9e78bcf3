// The page: what stands where.

const kShownAtFirst = 6;

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  let looks = 0;
  const look = (run) => Object.assign(run, { look: lookOf(looks++) });
  const first = data.live ? data.runs.length - kShownAtFirst : 0; // the newest are last
  const runs = data.runs.map((run, i) => ({ ...run, on: i >= first }));
  // Those that are shown have the plainest looks.
  [...runs.filter((run) => run.on), ...runs.filter((run) => !run.on)].forEach(look);
  const view = makeView(runs, data.live);
  const numbers = data.numbers;
  const defaults = data.defaults;
  document.getElementById("theme").append(makeTheme(view));
  document.getElementById("side").append(...makeRuns(view));
  const charts = make("section", { id: "charts", "aria-label": "Charts" }, makeTools(view), makeCharts(view, numbers));
  const sweeps = makeSweeps(view);
  sweeps.show(data.sweeps);
  const problems = data.problems.length ? make("section", { id: "problems" }, make("header", {}, make("h2", {}, "What could not be read")),
    make("ul", { class: "note" }, data.problems.map((text) => make("li", {}, text)))) : null;
  fill(document.getElementById("main"), problems, charts, data.steers ? makeSteering(view) : null, makeOverview(view), makeSettings(view, defaults), makeIncidents(view), makeSamples(view), makeEnvironment(view), sweeps.section);
  if (!data.runs.length && data.sweeps.length) {
    charts.hidden = true;
    document.getElementById("side").hidden = true;
  }
  const links = () => fill(document.getElementById("sections"), [...document.querySelectorAll("main > section")].filter((section) => !section.hidden)
    .map((section) => make("a", { href: `#${section.id}` }, section.querySelector("h2")?.textContent || "Charts")));
  view.listen((what) => what === "runs" && links());
  links();
  const summary = document.getElementById("summary");
  if (data.live) {
    summary.append(follow(view, look, numbers, (found) => {
      sweeps.show(found);
      links();
    }));
  } else {
    summary.textContent = `${[data.runs.length ? counted(data.runs.length, "run") : null, data.sweeps.length ? counted(data.sweeps.length, "sweep") : null].filter(Boolean).join(", ")} \u00b7 ${timeText(data.made)} UTC`;
  }
}

start();
