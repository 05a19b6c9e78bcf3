// Long runs, closely: what lies in the stretch that is zoomed to is asked for by itself, as fine as it is.

const kBefore = 0.5; // of the stretch, in front of it, for what is smoothed

/** A place of the axis as a step of the run. */
function stepAt(run, axis, x) {
  if (axis === "step") {
    return x;
  }
  const known = run.axes[axis];
  const at = run.axes.step;
  if (at.length < 2) {
    return at[0] || 0;
  }
  const right = Math.min(at.length - 1, Math.max(1, lowerBound(known, x)));
  const share = (x - known[right - 1]) / (known[right] - known[right - 1] || 1);
  return at[right - 1] + share * (at[right] - at[right - 1]);
}

/** Whether more of the run lies on the disk than the page has. */
function isThinned(run) {
  return Object.values(run.series || {}).some((series) => series.mean_step !== undefined);
}

async function readStretch(view, run) {
  const [from, to] = view.window;
  const first = Math.floor(stepAt(run, view.axis, from - kBefore * (to - from)));
  const last = Math.ceil(stepAt(run, view.axis, to)) + 1;
  const answer = await fetch(address("run", { key: run.key, from: first, to: last })).catch(() => null);
  if (answer && answer.ok) {
    run.detail = { from: first, to: last, series: (await answer.json()).series };
    view.changed("look");
  }
}

/** Whether what was read closely holds the stretch that is zoomed to. */
function coversZoom(view, run) {
  const { detail } = run;
  return Boolean(detail && view.window) && stepAt(run, view.axis, view.window[0]) >= detail.from && stepAt(run, view.axis, view.window[1]) <= detail.to;
}

/** The curve of a number for what the view shows now. */
function seriesOf(view, run, name) {
  return coversZoom(view, run) ? run.detail.series[name] : run.series && run.series[name];
}

function watchZoom(view) {
  let timer = 0;
  let moved = false; // the stretch is another one: all are read; else those of which it is not known
  const read = () => {
    const wanted = view.window ? view.shown().filter((run) => isThinned(run) && run.state !== "gone" && (moved || !coversZoom(view, run))) : [];
    moved = false;
    wanted.forEach((run) => readStretch(view, run));
  };
  view.listen((what) => {
    if (what !== "window" && !(what === "runs" && view.window)) {
      return;
    }
    clearTimeout(timer);
    moved = moved || what === "window";
    if (view.window) {
      timer = setTimeout(read, 150);
      return;
    }
    view.shown().filter(isThinned).forEach((run) => {
      run.detail = null;
    });
    view.changed("look");
  });
}
