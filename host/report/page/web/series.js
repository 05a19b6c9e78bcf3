// The numbers of one curve: {step, value} as they are, or of many rows the least and the greatest of each stretch; then {mean_step, mean} beside
// them. null is a row whose number was not finite, or that had none.

/** The first index whose number is at least `x`. */
function lowerBound(numbers, x) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Steps as another axis of the run, tokens or seconds, between the rows that tell both; null where none do. */
function onAxis(run, axis, steps) {
  if (axis === "step") {
    return steps;
  }
  const known = run.axes[axis];
  const at = run.axes.step;
  if (at.length < 2) {
    return at.length ? steps.map(() => known[0]) : null;
  }
  return steps.map((step) => {
    const right = Math.min(at.length - 1, Math.max(1, lowerBound(at, step)));
    const left = right - 1;
    return known[left] + ((step - at[left]) / (at[right] - at[left] || 1)) * (known[right] - known[left]);
  });
}

/**
 * Exponential moving average without a bias at its beginning. `weight`: what a row keeps of those before it, for rows as far apart as usual;
 * rows further apart keep less.
 */
function smoothed(x, y, weight) {
  const out = new Array(y.length);
  const usual = x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : 1;
  let sum = 0;
  let mass = 0;
  let before = x[0];
  for (let i = 0; i < y.length; ++i) {
    if (y[i] === null) {
      out[i] = null;
      continue;
    }
    const keep = weight ** Math.max(0, usual > 0 ? (x[i] - before) / usual : 1);
    sum = sum * keep + y[i];
    mass = mass * keep + 1;
    before = x[i];
    out[i] = sum / mass;
  }
  return out;
}

const kFewest = 50; // points of a curve that is smoothed: an evaluation every thousand steps tells by itself what it is

/** What is drawn of a curve: `raw` always, `smooth` on top of it where there is such; null where the axis is not known. */
function curveOf(run, series, axis, weight) {
  const raw = { x: onAxis(run, axis, series.step), y: series.value };
  if (raw.x === null) {
    return null;
  }
  const many = series.mean_step !== undefined;
  if (!(weight > 0) || raw.y.length < kFewest) {
    // Of a long run the least and the greatest numbers are a band, and the means in it a line.
    return { raw, smooth: many ? { x: onAxis(run, axis, series.mean_step), y: series.mean } : null };
  }
  const x = many ? onAxis(run, axis, series.mean_step) : raw.x;
  return { raw, smooth: { x, y: smoothed(x, many ? series.mean : raw.y, weight) } };
}

/** Index of the point with a number that is next to `x`, or -1. */
function nearestIndex(line, x) {
  const at = lowerBound(line.x, x);
  let best = -1;
  for (const direction of [-1, 1]) {
    let i = direction < 0 ? at - 1 : at;
    while (i >= 0 && i < line.x.length && line.y[i] === null) {
      i += direction;
    }
    if (i >= 0 && i < line.x.length && (best < 0 || Math.abs(line.x[i] - x) < Math.abs(line.x[best] - x))) {
      best = i;
    }
  }
  return best;
}

/** Whether a curve stands still, as terms of the loss do that a job does not use. */
function isConstant(series) {
  return series.value.length > 1 && series.value.every((value) => value === series.value[0]);
}
