// Runs that grow while they are shown: the server says what has changed, and the shown runs are asked for again.

const kToken = new URLSearchParams(location.search).get("token") || "";

function address(path, query) {
  return `${path}?${new URLSearchParams({ ...query, token: kToken })}`;
}

/** Fills in what `run` has beside its line in the list. */
async function readRun(view, run, numbers) {
  if (run.reading) {
    return;
  }
  run.reading = true;
  const version = run.version;
  const begin = performance.now();
  try {
    const answer = await fetch(address("run", { key: run.key }));
    if (answer.ok) {
      const details = await answer.json();
      Object.assign(numbers, details.numbers);
      Object.assign(run, details, { read: version });
      view.changed("runs");
    } else {
      run.read = version; // it has gone; the list will say so
    }
  } catch (lost) {
    // The stream of events says that the server has gone, and asks again when it is back.
  } finally {
    // A long run takes its time to read: most of it is left to others.
    setTimeout(() => {
      run.reading = false;
      readShown(view, numbers);
    }, 9 * (performance.now() - begin));
  }
}

function readShown(view, numbers) {
  for (const run of view.shown()) {
    if (run.read !== run.version && run.state !== "gone") {
      readRun(view, run, numbers);
    }
  }
}

/** Asks for the sweeps after something has changed, and once more a little later: a trial's value is written behind its run's end. */
function makeSweepReader(show) {
  let wanted = 0, known = "";
  const ask = async () => {
    const begin = performance.now();
    try {
      const answer = await fetch(address("sweeps", {}));
      const text = await answer.text();
      if (answer.ok && text !== known) {
        known = text;
        show(JSON.parse(text).sweeps);
      }
    } catch (lost) {
      // The stream of events says so.
    }
    wanted -= 1;
    if (wanted > 0) {
      setTimeout(ask, Math.max(2000, 9 * (performance.now() - begin)));
    }
  };
  return () => {
    const idle = wanted === 0;
    wanted = 2;
    if (idle) {
      ask();
    }
  };
}

/** Keeps the page as the server says it is; gives the words that say so. `numbers` learns what is read of runs, `showSweeps` what becomes of sweeps. */
function follow(view, look, numbers, showSweeps) {
  const readSweeps = makeSweepReader(showSweeps);
  const dot = make("span", { class: "live", "aria-hidden": "true" });
  const words = make("span", {}, "following");
  const events = new EventSource(address("events", {}));
  const say = (lost) => {
    dot.classList.toggle("lost", lost);
    words.textContent = lost ? "the server does not answer" : "following";
  };
  events.addEventListener("open", () => say(false));
  events.addEventListener("error", () => say(true));
  events.addEventListener("runs", (event) => {
    takeRuns(view, JSON.parse(event.data).runs, look);
    view.changed("runs");
    readSweeps();
    document.body.dataset.updates = String(Number(document.body.dataset.updates || 0) + 1);
  });
  view.listen((what) => what === "runs" && readShown(view, numbers));
  watchZoom(view);
  readShown(view, numbers);
  return make("span", {}, dot, words);
}

/** The list as it is now: runs keep what is known of them; one that has gone stays as long as it is shown. */
function takeRuns(view, runs, look) {
  const known = new Map(view.runs.map((run) => [run.key, run]));
  const here = new Set(runs.map((run) => run.key));
  const gone = view.runs.filter((run) => !here.has(run.key) && run.on).map((run) => Object.assign(run, { state: "gone", reason: "its folder is not there any more" }));
  view.runs = [...runs.map((run) => {
    const old = known.get(run.key);
    return old ? Object.assign(old, run) : look({ ...run, on: run.state === "running" || runs.length <= kShownAtFirst });
  }), ...gone];
}
