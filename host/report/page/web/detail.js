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

/** The curve of a number for what the view shows now. */
function seriesOf(view, run, name) {
  const { detail } = run;
  if (detail && view.window && stepAt(run, view.axis, view.window[0]) >= detail.from && stepAt(run, view.axis, view.window[1]) <= detail.to) {
    return detail.series[name];
  }
  return run.series && run.series[name];
}

function watchZoom(view) {
  let timer = 0;
  view.listen((what) => {
    if (what !== "window") {
      return;
    }
    clearTimeout(timer);
    const thinned = view.shown().filter(isThinned);
    if (!view.window) {
      thinned.forEach((run) => {
        run.detail = null;
      });
      view.changed("look");
    } else {
      timer = setTimeout(() => thinned.forEach((run) => readStretch(view, run)), 150);
    }
  });
}
