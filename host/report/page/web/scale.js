// Axes: from numbers to positions, and the numbers that stand beside them.

const kFraction = [1, 2, 2.5, 5, 10];
const kTimeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** The step between marks, so that at most `most` of them lie in `span`. */
function niceStep(span, most, unit) {
  const raw = span / Math.max(1, most);
  if (unit === "s" && raw > 0.5) {
    const fitting = kTimeSteps.find((step) => step >= raw);
    if (fitting) {
      return fitting;
    }
    return 86400 * niceStep(span / 86400, most, "");
  }
  const base = unit === "bytes" ? 2 : 10;
  const power = base ** Math.floor(Math.log(raw) / Math.log(base));
  return unit === "bytes" ? power * (power >= raw ? 1 : 2) : power * kFraction.find((factor) => factor * power >= raw * 0.999999);
}

function linearMarks(low, high, most, unit) {
  const step = niceStep(high - low, most, unit);
  const marks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9 && marks.length < 50; ++at) {
    marks.push(at * step);
  }
  const power = Math.floor(Math.log10(Math.max(...marks.map(Math.abs), step)));
  return { marks, labels: marks.map((mark) => markText(mark, step, unit, power)) };
}

/** All labels of an axis have as many digits as its step needs. */
function markText(mark, step, unit, power) {
  if (unit === "bytes") {
    return mark === 0 ? "0" : valueText(mark, unit);
  }
  if (unit === "s" && step >= 1) {
    return mark === 0 ? "0" : duration(mark);
  }
  const scaled = unit === "share" ? 100 : 1;
  const value = mark * scaled;
  const size = Math.max(Math.abs(value), step * scaled);
  const end = unit === "share" ? "\u202f%" : "";
  if (value === 0) {
    return "0" + end;
  }
  if (size >= 1e4) {
    const [factor, name] = kPrefixes.find(([least]) => Math.abs(value) >= least) || [1, ""];
    return fixed(value / factor, (step * scaled) / factor) + (name ? "\u202f" + name : "") + end;
  }
  if (step * scaled < 1e-3 && unit !== "share") {
    return fixed(value / 10 ** power, (step * scaled) / 10 ** power) + "e" + power + end;
  }
  return fixed(value, step * scaled) + end;
}

function fixed(value, step) {
  let digits = 0;
  while (digits < 12 && Math.abs(Math.round(step * 10 ** digits) - step * 10 ** digits) > 1e-6 * step * 10 ** digits) {
    ++digits;
  }
  return value.toFixed(digits);
}

function logMarks(low, high, most, unit) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = last - first;
  if (Math.log10(high / low) < 0.7) {
    return linearMarks(low, high, most, unit);
  }
  const factors = decades > most ? [1] : decades * 3 > most * 1.5 ? [1] : [1, 2, 5];
  const every = Math.max(1, Math.ceil(decades / most));
  const marks = [];
  for (let power = first; power <= last; ++power) {
    if ((power - first) % every === 0) {
      marks.push(...factors.map((factor) => factor * 10 ** power).filter((mark) => mark >= low * 0.999 && mark <= high * 1.001));
    }
  }
  const text = (mark) => (unit === "bytes" || unit === "s" || unit === "share" ? valueText(mark, unit) : compact(Number(mark.toPrecision(3))));
  return { marks, labels: marks.map(text) };
}

/** An axis between two numbers over `pixels`; `log` where all is above 0. */
function makeAxis(low, high, pixels, log, most, unit) {
  const place = log ? (value) => ((Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))) * pixels : (value) => ((value - low) / (high - low)) * pixels;
  const back = log ? (at) => Math.exp(Math.log(low) + (at / pixels) * (Math.log(high) - Math.log(low))) : (at) => low + (at / pixels) * (high - low);
  return { low, high, log, place, back, ...(log ? logMarks : linearMarks)(low, high, most, unit) };
}

/** Some room around the numbers; one number alone gets room, too. */
function roomAround(low, high, log) {
  if (log) {
    const factor = low === high ? 2 : (high / low) ** 0.05;
    return [low / factor, high * factor];
  }
  if (low === high) {
    const half = Math.abs(low) * 0.05 || 1;
    return [low - half, high + half];
  }
  const room = (high - low) * 0.06;
  return [low >= 0 && low - room < 0 ? Math.min(low, 0) : low - room, high + room];
}
