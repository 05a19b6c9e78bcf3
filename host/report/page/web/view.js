// What all charts share: which runs are shown, along which axis, how smooth, which stretch of it, and where the cursor is.

const kAxes = {
  step: { title: "step", unit: "" },
  tokens: { title: "tokens", unit: "" },
  seconds: { title: "time of training", unit: "s" },
};

function makeView(runs, live) {
  const listeners = new Set();
  return {
    runs,
    live,
    axis: "step",
    smoothing: 0,
    window: null, // [from, to] of the axis; null: all
    cursor: null, // of the axis
    marked: null, // the run that stands out
    shown() {
      return this.runs.filter((run) => run.on);
    },
    /** All of the axis: the same for every chart, so that what stands one below the other belongs together. */
    extent() {
      const lastOf = (run) => Math.max(0, ...Object.values(run.series).map((series) => series.step.at(-1) || 0));
      const ends = this.shown().filter((run) => run.series).flatMap((run) => onAxis(run, this.axis, [lastOf(run)]) || []);
      return [0, Math.max(...ends, 0) || 1];
    },
    /** Calls f(what) after a change: "runs", "window", "cursor" or "look". */
    listen(f) {
      listeners.add(f);
    },
    changed(what) {
      listeners.forEach((f) => f(what));
    },
    zoom(from, to) {
      this.window = from === null || !(to > from) ? null : [from, to];
      this.changed("window");
    },
  };
}

/** Kept from visit to visit where the browser allows it; a page of a file may not. */
function remembered(name, value) {
  try {
    if (value !== undefined) {
      localStorage.setItem("kf-" + name, value);
    }
    return localStorage.getItem("kf-" + name);
  } catch (refused) {
    return null;
  }
}
