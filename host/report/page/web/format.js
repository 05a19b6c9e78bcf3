// Numbers as people read them.

const kPrefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const kBytes = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const kSeconds = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** Without zeros at the end: "0.25", "3e-4". */
function short(value, digits) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    return value.toExponential(Math.max(0, digits - 1)).replace(/\.0+e/, "e").replace(/(\.\d*?)0+e/, "$1e").replace("e+", "e");
  }
  const text = value.toPrecision(digits);
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : String(Number(text));
}

function withUnit(value, units, digits) {
  const [factor, name] = units.find(([least]) => Math.abs(value) >= least) || [1, ""];
  return short(value / factor, digits) + (name ? "\u202f" + name : "");
}

/** 12.3 k, 4 G. */
function compact(value, digits = 3) {
  return Math.abs(value) < 1e4 ? short(value, Math.max(digits, 4)) : withUnit(value, kPrefixes, digits);
}

function duration(seconds) {
  if (!Number.isFinite(seconds)) {
    return "";
  }
  if (Math.abs(seconds) < 60) {
    return short(seconds, 3) + "\u202fs";
  }
  const at = kSeconds.findIndex(([size]) => Math.abs(seconds) >= size);
  const [size, name] = kSeconds[at];
  const [smaller, small] = kSeconds[at + 1];
  let whole = Math.floor(seconds / size);
  let rest = Math.round((seconds - whole * size) / smaller);
  if (rest * smaller === size) {
    whole += 1;
    rest = 0;
  }
  return `${whole}\u202f${name}` + (rest ? ` ${rest}\u202f${small}` : "");
}

/** A value of a number with this unit, as tips and tables show it. */
function valueText(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) {
    return "\u2013";
  }
  if (unit === "bytes") {
    return Math.abs(value) < 1024 ? `${short(value, 4)} B` : withUnit(value, kBytes, 4);
  }
  if (unit === "s") {
    return duration(value);
  }
  if (unit === "share") {
    return `${short(value * 100, 3)}\u202f%`;
  }
  return Math.abs(value) >= 1e5 ? compact(value, 4) : short(value, 5);
}

/** "2026-11-28 21:47", of a time in UTC. */
function timeText(text) {
  return text ? text.replace("T", " ").replace(/:\d\d(\.\d+)?Z?$/, "") : "";
}

function counted(count, noun, plural) {
  return `${count} ${count === 1 ? noun : plural || noun + "s"}`;
}
